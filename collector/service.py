"""The map: every stage of the service, in the order in which a span meets them.

receivers -> intake -> trace buffer -> evaluation -> fan-out to exporters, with telemetry beside them. Stages
do not know each other; they are put together, started from the exporters to the receivers and stopped the
other way here.
"""

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib.metadata import version
from typing import TextIO

from collector.buffer.trace_buffer import TraceBuffer
from collector.clock import Clock, SystemClock
from collector.configuration.criteria_files import CriteriaStore
from collector.configuration.service_file import PROMETHEUS, ServiceConfig
from collector.errors import BackgroundTaskDied
from collector.exporters.assembly import build_fan_out
from collector.exporters.exporter import ExporterContext
from collector.intake import TraceIntake
from collector.memory_limiter import MemoryLimiter
from collector.otlp.envelope_registry import EnvelopeRegistry
from collector.pipeline import AwaitedTrace, EvaluationStage
from collector.receivers.otlp_grpc import OtlpGrpcReceiver
from collector.receivers.otlp_http import OtlpHttpReceiver
from collector.task_supervisor import TaskSupervisor
from collector.telemetry.accounting import BEFORE_FAN_OUT, publish_accounting_errors
from collector.telemetry.http import TelemetryServer
from collector.telemetry.loop_lag import measure_loop_lag
from collector.telemetry.metrics import Metrics
from collector.telemetry.otlp_destination import refuse_own_receivers
from collector.telemetry.own_logs import OwnLogs
from collector.telemetry.own_traces import OwnTraces
from collector.telemetry.readiness import Readiness
from collector.telemetry.registry import MetricsRegistry
from collector.telemetry.score_series import ScoreSeries
from collector.telemetry.verdict_delay import observe_verdict_delays
from collector.tools.self_check.checker import SelfCheck
from collector.trace import FinishedTrace, GradedTrace, SpanBatch, held_bytes
from collector.workers.custom_evaluators import load_custom_evaluators
from collector.workers.pool import WorkerPool
from processors.model.finish_reason import FinishReason
from processors.spans.span import RawSpan

FINISH_INTERVAL_SECONDS = 0.1
"""How often finished traces are looked for."""
RELOAD_INTERVAL_SECONDS = 2.0
"""How often criteria files are looked at for changes."""
_TRACES_AT_A_TIME = 8
_SHORTEST_TURN_SECONDS, _LONGEST_TURN_SECONDS = 0.01, 0.05
"""How long finished traces are graded before requests get their turn again."""
_ROUNDS_BETWEEN_TURNS = 4
"""Rounds of the loop between two turns: a request takes several from its first byte to its answer."""

_logger = logging.getLogger(__name__)


class Service:
    """Everything between the sockets and the backends; one per process.

    Constructing it opens nothing but reads the criteria files, and loads custom evaluators once in a process
    that ends at once.

    Raises:
        ProblemsFound: the criteria files have mistakes, or a custom evaluator cannot be loaded.
    """

    def __init__(
        self,
        config: ServiceConfig,
        *,
        environment: Mapping[str, str],
        console: TextIO,
        clock: Clock | None = None,
    ) -> None:
        self._clock = clock = clock or SystemClock()
        self._shutdown_timeout = config.service.shutdown_timeout
        self._tasks = TaskSupervisor(on_failure=self.request_stop)
        self._stop_requested = asyncio.Event()
        self._reload_requested = asyncio.Event()
        instance = f"{socket.gethostname()}:{os.getpid()}"

        # What all stages lean on.
        prometheus = config.prometheus
        self._metrics = metrics = Metrics(prometheus.resource_labels())
        evaluators = load_custom_evaluators(config.processors.evaluation)
        self._criteria = CriteriaStore(
            config.criteria_patterns(), environment=environment, evaluators=evaluators.known
        )
        envelopes = EnvelopeRegistry()
        self._limiter = MemoryLimiter(config.processors.memory_limiter.limit_bytes, envelopes.bytes_held)

        # The data path, from its end to its beginning.
        self._fan_out = build_fan_out(
            config.exporters,
            config.results,
            ExporterContext(clock=clock, metrics=metrics, console=console),
            self._limiter,
            end_of_spans=PROMETHEUS,
        )
        grouping = config.processors.group_by_trace
        self._workers = WorkerPool(evaluators, metrics=metrics, clock=clock) if evaluators.kinds else None
        self._awaiting_workers: dict[asyncio.Task[None], int] = {}
        self._evaluation = EvaluationStage(
            criteria=lambda: self._criteria.current,
            metrics=metrics,
            clock=clock,
            instance=instance,
            missing_parents=grouping.missing_parents,
            dialects=config.own_dialects(),
            workers=self._workers,
            results=config.results,
        )
        streams = config.results.mode == "stream"
        self._buffer = TraceBuffer(
            config=grouping, limiter=self._limiter, metrics=metrics, clock=clock, streams=streams
        )
        self._withheld_spans = 0
        metrics.spans_awaiting_verdict.read_from(self._spans_awaiting_verdict)
        metrics.spans_held.read_from(
            (lambda: self._withheld_spans) if streams else self._spans_awaiting_verdict, BEFORE_FAN_OUT
        )
        self._intake = TraceIntake(self._buffer, self._forward_at_once, metrics, envelopes)
        protocols = config.receivers.otlp.protocols
        self._receivers: dict[str, OtlpGrpcReceiver | OtlpHttpReceiver] = {}
        if protocols.grpc is not None:
            self._receivers["grpc"] = OtlpGrpcReceiver(protocols.grpc, self._intake, metrics, clock=clock)
        if protocols.http is not None:
            self._receivers["http"] = OtlpHttpReceiver(protocols.http, self._intake, metrics, clock=clock)

        # What tells people about it.
        self._telemetry_config = telemetry = config.service.telemetry
        self._self_check = SelfCheck(
            telemetry.self_check,
            grace_seconds=grouping.root_grace,
            release=self._limiter.release,
            metrics=metrics,
            clock=clock,
        )
        self._scores = ScoreSeries(
            metrics,
            clock,
            resource_attributes=prometheus.resource_attributes,
            expiry_seconds=prometheus.series_expiry,
        )
        self._readiness = Readiness()
        self._telemetry = TelemetryServer(
            telemetry,
            registry=MetricsRegistry(metrics),
            score_series=self._scores,
            readiness=self._readiness,
            clock=clock,
        )
        release = version("tracegrade")
        self._own_traces = (
            None
            if telemetry.traces.otlp is None
            else OwnTraces(
                telemetry.traces.otlp,
                telemetry.traces.sampling_ratio,
                version=release,
                instance=instance,
                clock=clock,
            )
        )
        self._own_logs = (
            None
            if telemetry.logs.otlp is None
            else OwnLogs(telemetry.logs.otlp, version=release, instance=instance, clock=clock)
        )
        metrics.build_info.set(1, release)
        metrics.held_bytes.read_from(lambda: self._limiter.used)
        metrics.held_bytes_limit.set(self._limiter.limit)
        publish_accounting_errors(metrics, [queue.name for queue in self._fan_out.queues])
        self._publish_criteria(is_current=True)

    def endpoints_line(self) -> str:
        """Where the service really listens, as `name=host:port` pairs; after `start`."""
        endpoints = {name: receiver.endpoint for name, receiver in self._receivers.items()}
        endpoints["telemetry"] = self._telemetry.endpoint
        return " ".join(f"{name}={endpoint}" for name, endpoint in endpoints.items())

    def request_stop(self) -> None:
        """Let `run` drain and return; safe in a signal handler of the loop and any number of times."""
        self._stop_requested.set()

    def request_reload(self) -> None:
        """Let criteria files be read again soon; safe in a signal handler of the loop."""
        self._reload_requested.set()

    async def run(self, on_ready: Callable[[str], None]) -> None:
        """Start, serve until `request_stop`, drain, stop.

        `on_ready` is called once with `endpoints_line` when requests are taken. If a background task dies,
        the service drains and stops as if it had been asked to.

        Raises:
            StartupError: something could not be opened; what was open is closed again.
            BackgroundTaskDied: a task died and the service has stopped because of it.
        """
        try:
            await self._start()
            on_ready(self.endpoints_line())
            await self._stop_requested.wait()
        finally:
            await self._stop()
        if self._tasks.failures:
            raise BackgroundTaskDied(
                "A background task died; the service has stopped."
            ) from self._tasks.failures[0]

    async def _start(self) -> None:
        """Open everything, from the exporters to the receivers."""
        self._readiness.set("receivers", False, "starting")
        if self._own_logs is not None:
            logging.getLogger().addHandler(self._own_logs)
        await self._telemetry.start()
        await self._fan_out.start(self._tasks)
        if self._workers is not None:
            self._workers.start(self._tasks)
        for receiver in self._receivers.values():
            await receiver.start()
        refuse_own_receivers(
            self._telemetry_config, [receiver.endpoint for receiver in self._receivers.values()]
        )
        if (grpc := self._receivers.get("grpc")) and isinstance(grpc, OtlpGrpcReceiver):
            await grpc.set_serving(True)
        self._readiness.set("receivers", True)
        self._tasks.create_task(self._finish_traces(), name="finish traces")
        self._tasks.create_task(self._follow_criteria(), name="follow criteria")
        self._tasks.create_task(measure_loop_lag(self._metrics, self._clock), name="measure loop lag")
        checked = next(iter(self._receivers.values()))  # gRPC where it is served
        self._self_check.start(checked.config, checked.endpoint, self._tasks)

    async def _stop(self) -> None:
        """Close everything, from the receivers to the exporters, by the shutdown timeout; at any stage.

        What goes wrong in one step does not keep the next from being taken.
        """
        deadline = self._clock.monotonic() + self._shutdown_timeout
        self._readiness.set("receivers", False, "shutting down")
        await _completed(self._self_check.shutdown())
        self._intake.drain()
        for receiver in self._receivers.values():
            await _completed(receiver.shutdown(deadline))
        await _completed(self._finish_what_is_held())
        await _completed(self._finish_what_awaits_workers(deadline))
        await _completed(self._fan_out.shutdown(deadline))
        await self._tasks.cancel()
        self._scores.flush()
        for own in (self._own_traces, self._own_logs, self._telemetry):
            if own is not None:
                await _completed(own.shutdown(deadline))

    async def _finish_what_is_held(self) -> None:
        for trace in self._buffer.finish_all(FinishReason.SHUTDOWN):
            self._grade_and_forward(trace)
            await asyncio.sleep(0)

    async def _finish_what_awaits_workers(self, deadline: float) -> None:
        """Let workers answer for half of the time that is left; the exporters need the other half."""
        if self._workers is None:
            return
        if self._awaiting_workers:
            patience = (deadline - self._clock.monotonic()) / 2
            timer = asyncio.ensure_future(self._clock.sleep(patience))
            answered = asyncio.ensure_future(asyncio.wait(list(self._awaiting_workers)))
            await asyncio.wait((timer, answered), return_when=asyncio.FIRST_COMPLETED)
            timer.cancel()
            self._workers.close()
            await answered
        await self._workers.shutdown()

    async def _finish_traces(self) -> None:
        """Take finished traces out of the buffer and send them on their way.

        Grading and receiving share the loop. A turn of grading is short; while more is due than a turn can
        do, turns get longer, so that senders are slowed down before the buffer fills up.
        """
        turn = _SHORTEST_TURN_SECONDS
        while True:
            if self._finish_until(self._clock.monotonic() + turn):
                turn = min(2 * turn, _LONGEST_TURN_SECONDS)
                for _ in range(_ROUNDS_BETWEEN_TURNS):
                    await self._clock.sleep(0)
            else:
                turn = _SHORTEST_TURN_SECONDS
                await self._clock.sleep(FINISH_INTERVAL_SECONDS)

    def _finish_until(self, turn_ends: float) -> bool:
        """Send finished traces on their way and hold on to none; whether more may be due."""
        while finished := self._buffer.poll(_TRACES_AT_A_TIME):
            for trace in finished:
                self._grade_and_forward(trace)
            if self._clock.monotonic() >= turn_ends:
                return True
        return False

    def _grade_and_forward(self, trace: FinishedTrace) -> None:
        """Send the trace on its way graded; at once, unless a custom evaluator has to be waited for."""
        if self._self_check.made(trace.trace_id):
            if self._withheld_spans:
                self._withheld_spans -= len(trace.spans)
            self._self_check.finish(trace)
            return
        started = self._clock.unix_nano()
        graded = self._evaluation.begin(trace)
        if isinstance(graded, AwaitedTrace):
            work = self._forward_when_answered(graded, started)
            task = self._tasks.create_task(work, name="await workers")
            self._awaiting_workers[task] = len(trace.spans)
            task.add_done_callback(self._awaiting_workers.pop)
        else:
            self._forward(trace, graded, started)

    async def _forward_when_answered(self, awaited: AwaitedTrace, started: int) -> None:
        graded = await self._evaluation.complete(awaited)
        task = asyncio.current_task()
        if task in self._awaiting_workers:
            self._awaiting_workers[task] = 0  # from here on the queues count its spans
        self._forward(awaited.trace, graded, started)

    def _forward(self, trace: FinishedTrace, graded: GradedTrace, started: int) -> None:
        self._scores.record(graded)
        observe_verdict_delays(self._metrics, graded, self._clock.unix_nano())
        self._fan_out.export(graded, held_bytes(trace.spans))
        if self._own_traces is not None:
            self._own_traces.trace_evaluated(
                spans=len(trace.spans),
                runs=len(graded.runs),
                reason=trace.reason.value,
                start_unix_nano=started,
                end_unix_nano=self._clock.unix_nano(),
            )

    def _spans_awaiting_verdict(self) -> int:
        return self._buffer.spans_held + sum(self._awaiting_workers.values())

    def _forward_at_once(self, batches: Sequence[SpanBatch]) -> None:
        """Forward spans that wait for no verdict: late ones, and all where spans are streamed."""
        spans: list[RawSpan] = []
        for batch in batches:
            if self._self_check.made(batch.trace_id):
                # Streamed: they stay until their trace is finished, as the copies that are graded.
                self._withheld_spans += len(batch.spans)
                self._limiter.release(held_bytes(batch.spans))
            else:
                spans += batch.spans
        self._fan_out.forward(spans, held_bytes(spans))

    async def _follow_criteria(self) -> None:
        """Reload criteria when a file changes or when asked to; a bad file never takes good ones down."""
        while True:
            asked = asyncio.ensure_future(self._reload_requested.wait())
            timer = asyncio.ensure_future(self._clock.sleep(RELOAD_INTERVAL_SECONDS))
            try:
                await asyncio.wait((asked, timer), return_when=asyncio.FIRST_COMPLETED)
            finally:
                asked.cancel()
                timer.cancel()
            was_asked = self._reload_requested.is_set()
            self._reload_requested.clear()
            if was_asked or await asyncio.to_thread(self._criteria.changed):
                problems = await asyncio.to_thread(self._criteria.reload)
                self._publish_criteria(is_current=not problems)
                self._metrics.criteria_reloads.add(1, "failure" if problems else "success")
                for problem in problems:
                    _logger.error("A criteria file was not reloaded: %s", problem)
                if not problems:
                    _logger.info(
                        "Criteria are reloaded.", extra={"criteria_hash": self._criteria.current.hash}
                    )

    def _publish_criteria(self, *, is_current: bool) -> None:
        criteria = self._criteria.current
        self._metrics.criteria_last_reload_successful.set(is_current)
        self._metrics.criteria_info.values.clear()
        self._metrics.criteria_info.set(1, criteria.hash)
        for warning in self._criteria.warnings:
            _logger.warning("A criteria file may not say what it should: %s", warning)
        self._scores.set_criteria(criteria)


async def _completed(step: Awaitable[None]) -> None:
    """Wait for one step of the shutdown; a failure is logged and goes no further."""
    try:
        await step
    except Exception:
        _logger.exception("A step of the shutdown failed.")
