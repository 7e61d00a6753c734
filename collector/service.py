"""The service as a whole: starts its parts from the exporters to the receivers, and stops them the other way.

`collector.assembly` is the map of the parts.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TextIO

from collector.assembly import assemble
from collector.clock import Clock, SystemClock
from collector.configuration import ServiceConfig
from collector.errors import BackgroundTaskDied
from collector.monitoring import refuse_own_receivers
from collector.receivers import Receiver
from collector.task_supervisor import TaskSupervisor
from collector.telemetry import measure_loop_lag

_logger = logging.getLogger(__name__)


class Service:
    """Everything between the sockets and the backends; one per process.

    Constructing it opens nothing; see `collector.assembly.assemble`, also for what it raises.

    Attributes:
        parts: What it starts and stops.
    """

    def __init__(
        self,
        config: ServiceConfig,
        *,
        environment: Mapping[str, str],
        console: TextIO,
        clock: Clock | None = None,
    ) -> None:
        self._config = config
        self._clock = clock or SystemClock()
        self._tasks = TaskSupervisor(on_failure=self.request_stop)
        self._stop_requested = asyncio.Event()
        self.parts = assemble(
            config, environment=environment, console=console, clock=self._clock, tasks=self._tasks
        )

    def endpoints_line(self) -> str:
        """Where the service really listens, as `name=host:port` pairs; after `start`."""
        parts = self.parts
        endpoints = {name: receiver.endpoint for name, receiver in parts.receivers.items()}
        endpoints["telemetry"] = parts.telemetry.endpoint
        if parts.page is not None:
            endpoints["page"] = parts.page.endpoint
        return " ".join(f"{name}={endpoint}" for name, endpoint in endpoints.items())

    def request_stop(self) -> None:
        """Let `run` drain and return; safe in a signal handler of the loop and any number of times."""
        self._stop_requested.set()

    def request_reload(self) -> None:
        """Let criteria files be read again soon; safe in a signal handler of the loop."""
        self.parts.criteria.request_reload()

    async def run(self, on_ready: Callable[[str], None]) -> None:
        """Start, serve until `request_stop`, drain, stop.

        `on_ready` is called once with `endpoints_line` when requests are taken. If a background task dies,
        the service drains and stops as if that had been requested.

        Raises:
            StartupError: something could not be opened; what was open is closed again.
            BackgroundTaskDied: a task died and the service has stopped because of it.
        """
        try:
            await self._start()
            on_ready(self.endpoints_line())
            if self.parts.resumption is not None:
                await self.parts.resumption.send_graded()
            self.parts.finisher.start()
            await self._stop_requested.wait()
        finally:
            await self._stop()
        if self._tasks.failures:
            raise BackgroundTaskDied(
                "A background task died; the service has stopped."
            ) from self._tasks.failures[0]

    async def _start(self) -> None:
        """Open everything, from the exporters to the receivers; no trace finishes yet."""
        parts, tasks = self.parts, self._tasks
        parts.readiness.set("receivers", False, "starting")
        if parts.own_logs is not None:
            logging.getLogger().addHandler(parts.own_logs)
        await parts.telemetry.start()
        parts.watchdog.start()
        await parts.fan_out.start(tasks)
        parts.grading.start(tasks)
        # Listening comes first: what the journal holds may take long to recover, and senders give up sooner
        # on a port that is closed than on an answer that says when to come back.
        parts.intake.refuse_requests("starting")
        listeners = [receiver for receiver in parts.receivers.values() if isinstance(receiver, Receiver)]
        for listener in listeners:
            await listener.start(tasks)
        refuse_own_receivers(self._config.service.telemetry, [listener.endpoint for listener in listeners])
        resumed_unix_nano = 0 if parts.resumption is None else await parts.resumption.resume(tasks)
        if parts.page is not None:
            await parts.page.start()
        for receiver in parts.receivers.values():
            if receiver not in listeners:
                await receiver.start(tasks)
        parts.finisher.buffer.note_ready(resumed_unix_nano)
        parts.intake.accept_requests()
        for receiver in parts.receivers.values():
            await receiver.set_serving(True)
        parts.readiness.set("receivers", True)
        parts.early.start(tasks)
        parts.conversations.open(self._clock.unix_nano())
        if parts.peers is not None:
            parts.peers.start(tasks)
        if parts.contradictions is not None:
            tasks.create_task(parts.contradictions.follow(), name="check late spans")
        tasks.create_task(parts.criteria.follow(), name="follow criteria")
        tasks.create_task(measure_loop_lag(parts.metrics, self._clock), name="measure loop lag")
        checked = listeners[0]  # gRPC where it is served
        parts.self_check.start(checked.config, checked.endpoint, tasks)

    async def _stop(self) -> None:
        """Close everything, from the receivers to the exporters, by the shutdown timeout; at any stage.

        What goes wrong in one step does not keep the next from being taken.
        """
        parts = self.parts
        deadline = self._clock.monotonic() + self._config.service.shutdown_timeout
        parts.readiness.set("receivers", False, "shutting down")
        await _completed(parts.self_check.shutdown())
        parts.intake.refuse_requests("shutting down")
        parts.conversations.close(self._clock.unix_nano())
        for receiver in parts.receivers.values():
            await _completed(receiver.shutdown(deadline))
        await _completed(parts.finisher.shutdown(deadline))
        await _completed(parts.fan_out.shutdown(deadline))
        if parts.journal is not None:
            await _completed(parts.journal.shutdown())
        await self._tasks.cancel()
        parts.scores.flush()
        parts.watchdog.stop()
        for last in (parts.page, parts.own_traces, parts.own_logs, parts.telemetry):
            if last is not None:
                await _completed(last.shutdown(deadline))


async def _completed(step: Awaitable[None]) -> None:
    """Wait for one step of the shutdown; a failure is logged and goes no further."""
    try:
        await step
    except Exception:
        _logger.exception("A step of the shutdown failed.")
