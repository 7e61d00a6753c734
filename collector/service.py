"""The map: every stage of the service, in the order in which a span meets them.

1. `receivers`: bytes of export requests, over gRPC and HTTP.
2. `pipeline.Pipeline`: takes requests in (`otlp.codec` splits them) and sees each span through to its end.
3. `buffer.trace_buffer`: spans by trace, until `buffer.finish_policy` says that a trace is finished.
4. `pipeline.EvaluationStage`: spans to runs, runs to results, results onto spans; asks `workers`.
5. `exporters.fan_out`: a sending queue and an exporter for each backend, and whoever takes results.

Stages do not know each other. They are put together, started from the exporters to the receivers and stopped
the other way here, with `telemetry` beside them, and `cluster` where there are several of this service.
"""

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from importlib.metadata import version
from typing import TextIO

from collector.buffer import LearnedWaits, TraceBuffer
from collector.clock import Clock, SystemClock
from collector.cluster import PeerWatch
from collector.config_fields import AUTO
from collector.configuration import PROMETHEUS, CriteriaFollower, CriteriaStore, ServiceConfig
from collector.container import container_memory
from collector.contradictions import Contradictions
from collector.conversations import Conversations
from collector.errors import BackgroundTaskDied
from collector.exporters import DeadLetters, ExporterContext, build_fan_out, receives_scores
from collector.grading import WATCHED, Form, GradingPool, WorkerSettings, evidence_reader
from collector.journal import Journal, kept_files
from collector.memory_limiter import MemoryLimiter
from collector.memory_plan import plan_memory
from collector.otlp import EnvelopeRegistry
from collector.page import PageServer
from collector.pipeline import EvaluationStage, Pipeline
from collector.receivers import Receiver, build_receivers
from collector.recordings import run_from_json
from collector.resumption import Resumption
from collector.store import RunStore, StoredConversations
from collector.task_supervisor import TaskSupervisor
from collector.telemetry import (
    Metrics,
    MetricsRegistry,
    OwnLogs,
    OwnTraces,
    Readiness,
    ScoreSeries,
    TelemetryServer,
    Watchdog,
    measure_loop_lag,
    observe_verdict_delays,
    publish_accounting_errors,
    refuse_own_receivers,
)
from collector.tools.self_check import SelfCheck
from collector.trace import FinishedTrace, GradedTrace
from collector.workers.custom_evaluators import load_custom_evaluators
from collector.workers.pool import WorkerPool
from processors.criteria import CriteriaSet
from processors.model import AgentRun, decode_json

_logger = logging.getLogger(__name__)


class Service:
    """Everything between the sockets and the backends; one per process.

    Constructing it opens nothing but reads the criteria files, and loads custom evaluators once in a process
    that ends at once.

    Raises:
        ProblemsFound: the criteria files have mistakes, a custom evaluator cannot be loaded, or what may be
            held does not fit the container's memory.
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
        instance = f"{socket.gethostname()}:{os.getpid()}"

        # What all stages lean on.
        prometheus, telemetry = config.prometheus, config.service.telemetry
        grouping = config.processors.group_by_trace
        verdict_delay = 0.0 if config.cluster is None else config.cluster.verdict_delay
        self._metrics = metrics = Metrics(prometheus.resource_labels())
        evaluators = load_custom_evaluators(config.processors.evaluation)
        criteria = CriteriaStore(
            config.criteria_patterns(),
            environment=environment,
            evaluators=evaluators.known,
            last_good=tuple if config.journal is None else partial(kept_files, config.journal.directory),
        )
        envelopes = EnvelopeRegistry()
        memory = plan_memory(config, container_memory())
        limiter = MemoryLimiter(memory.held_bytes, envelopes.bytes_held)

        # What tells people about it.
        self._self_check = SelfCheck(
            telemetry.self_check,
            grace_seconds=grouping.fixed_root_grace + verdict_delay,
            release=limiter.release,
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
        self._telemetry_config = telemetry
        self._telemetry = TelemetryServer(
            telemetry,
            registry=MetricsRegistry(metrics),
            score_series=self._scores,
            readiness=self._readiness,
            clock=clock,
            probes=self._self_check,
        )
        self._watchdog = Watchdog(self._telemetry.heartbeat, WATCHED)
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
        self._journal = (
            None if config.journal is None else Journal(config.journal, metrics=metrics, clock=clock)
        )
        self._conversations = Conversations(
            config.processors.evaluation.conversations,
            hidden=config.hides_conversations,
            lost_until=lambda: buffer.lost_until_unix_nano,
        )
        self._criteria = CriteriaFollower(
            criteria,
            self._use_criteria,
            metrics=metrics,
            clock=clock,
            readiness=self._readiness,
            keep=None if self._journal is None else self._journal.keep_criteria,
        )

        # The data path.
        streams = config.results.mode == "stream"
        learned = (
            LearnedWaits(lambda service, seconds: metrics.learned_root_grace.set(seconds, service))
            if grouping.root_grace == AUTO
            else None
        )
        processes = config.processors.evaluation.grading_processes
        buffer = TraceBuffer(
            config=grouping,
            limiter=limiter,
            metrics=metrics,
            clock=clock,
            streams=streams,
            has_receipts=self._journal is not None,
            verdict_delay=verdict_delay,
            learned=learned,
            settled_scopes=None if processes else evidence_reader(config.own_dialects()),
        )
        self._peers = (
            None
            if config.cluster is None
            else PeerWatch(config.cluster, note_rerouting=buffer.note_rerouting, metrics=metrics, clock=clock)
        )
        self._workers = WorkerPool(evaluators, metrics=metrics, clock=clock) if evaluators.kinds else None
        stored_conversations = StoredConversations(
            self._conversations,
            read_run=run_from_json,
            are_as_graded=config.results.content_rules().shows_all,
            retention=config.processors.evaluation.conversations.retention,
            clock=clock,
        )
        store = (
            RunStore(
                config.store,
                metrics=metrics,
                clock=clock,
                limit_bytes=memory.store_bytes,
                conversations=stored_conversations,
            )
            if config.keeps_runs
            else None
        )
        self._fan_out = build_fan_out(
            config.exporters,
            config.results,
            ExporterContext(clock=clock, metrics=metrics, console=console, limiter=limiter),
            limiter,
            end_of_spans=PROMETHEUS,
            dead_letters=None
            if config.service.dead_letters is None
            else DeadLetters(config.service.dead_letters, metrics, clock),
            store=store,
        )
        form = Form(
            lines=bool(self._fan_out.result_exporters),
            details=bool(self._fan_out.result_exporters) and self._journal is not None,
            resource_attributes=tuple(prometheus.resource_attributes),
        )
        writes_scores = any(map(receives_scores, config.exporters.values()))
        pool = None
        if processes:
            settings = WorkerSettings(
                config=config,
                instance=instance,
                missing_parents=grouping.missing_parents,
                asks_workers=self._workers is not None,
                results=config.results,
                writes_scores=writes_scores,
                form=form,
            )
            pool = GradingPool(
                settings,
                processes=processes,
                criteria=lambda: criteria.texts,
                read_run=_run_of_line,
                metrics=metrics,
                clock=clock,
            )
        self._evaluation = evaluation = EvaluationStage(
            criteria=lambda: criteria.current,
            metrics=metrics,
            clock=clock,
            instance=instance,
            missing_parents=grouping.missing_parents,
            dialects=config.own_dialects(),
            prices=config.model_prices(),
            workers=self._workers,
            results=config.results,
            writes_scores=writes_scores,
            conversations=self._conversations,
            pool=pool,
            form=form,
            read_run=_run_of_line,
        )
        self._contradictions = (
            None
            if learned is None
            else Contradictions(
                evaluation.regrade, criteria=lambda: criteria.current, metrics=metrics, clock=clock
            )
        )
        self._envelopes = envelopes
        self._page = (
            None
            if config.page is None
            else PageServer(
                config.page,
                queries=None if store is None else store.queries,
                criteria=lambda: criteria.current,
                clock=clock,
                waits=None if learned is None else learned.waits,
            )
        )
        self._resumption = Resumption(
            buffer=buffer,
            evaluation=evaluation,
            fan_out=self._fan_out,
            limiter=limiter,
            metrics=metrics,
            streams=streams,
            on_runs=self._count_runs,
        )
        self._pipeline = Pipeline(
            buffer=buffer,
            envelopes=envelopes,
            evaluation=evaluation,
            workers=self._workers,
            fan_out=self._fan_out,
            limiter=limiter,
            service_traces=self._self_check,
            streams=streams,
            journal=self._journal,
            on_runs=self._count_runs,
            on_graded=self._trace_grading,
            tasks=self._tasks,
            metrics=metrics,
            clock=clock,
            contradictions=self._contradictions,
        )
        self._receivers = build_receivers(
            config.receivers, self._pipeline, metrics, clock, max_bytes_in_flight=memory.in_flight_bytes
        )

        metrics.build_info.set(1, release)
        metrics.held_bytes.read_from(lambda: limiter.used)
        metrics.held_bytes_limit.set(limiter.limit)
        publish_accounting_errors(metrics, [queue.name for queue in self._fan_out.queues])

    def endpoints_line(self) -> str:
        """Where the service really listens, as `name=host:port` pairs; after `start`."""
        endpoints = {name: receiver.endpoint for name, receiver in self._receivers.items()}
        endpoints["telemetry"] = self._telemetry.endpoint
        if self._page is not None:
            endpoints["page"] = self._page.endpoint
        return " ".join(f"{name}={endpoint}" for name, endpoint in endpoints.items())

    def request_stop(self) -> None:
        """Let `run` drain and return; safe in a signal handler of the loop and any number of times."""
        self._stop_requested.set()

    def request_reload(self) -> None:
        """Let criteria files be read again soon; safe in a signal handler of the loop."""
        self._criteria.request_reload()

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
        self._watchdog.start()
        await self._fan_out.start(self._tasks)
        self._evaluation.start(self._tasks)
        if self._workers is not None:
            self._workers.start(self._tasks)
        resumed_unix_nano = await self._resume()
        if self._page is not None:
            await self._page.start()
        for receiver in self._receivers.values():
            await receiver.start(self._tasks)
        listeners = [receiver for receiver in self._receivers.values() if isinstance(receiver, Receiver)]
        refuse_own_receivers(self._telemetry_config, [listener.endpoint for listener in listeners])
        for receiver in self._receivers.values():
            await receiver.set_serving(True)
        self._readiness.set("receivers", True)
        self._pipeline.start(resumed_unix_nano)
        self._conversations.open(self._clock.unix_nano())
        if self._peers is not None:
            self._peers.start(self._tasks)
        if self._contradictions is not None:
            self._tasks.create_task(self._contradictions.follow(), name="check late spans")
        self._tasks.create_task(self._criteria.follow(), name="follow criteria")
        self._tasks.create_task(measure_loop_lag(self._metrics, self._clock), name="measure loop lag")
        checked = listeners[0]  # gRPC where it is served
        self._self_check.start(checked.config, checked.endpoint, self._tasks)

    async def _resume(self) -> int:
        """Go on with what a process before acknowledged; until when that is all, 0 for not at all."""
        if self._journal is None:
            return 0
        recovered = await asyncio.to_thread(self._journal.open, self._envelopes)
        self._journal.start(self._tasks)
        await self._resumption.resume(recovered, self._journal)
        return recovered.alive_unix_nano

    async def _stop(self) -> None:
        """Close everything, from the receivers to the exporters, by the shutdown timeout; at any stage.

        What goes wrong in one step does not keep the next from being taken.
        """
        deadline = self._clock.monotonic() + self._shutdown_timeout
        self._readiness.set("receivers", False, "shutting down")
        await _completed(self._self_check.shutdown())
        self._pipeline.refuse_requests()
        self._conversations.close(self._clock.unix_nano())
        for receiver in self._receivers.values():
            await _completed(receiver.shutdown(deadline))
        await _completed(self._pipeline.shutdown(deadline))
        await _completed(self._fan_out.shutdown(deadline))
        if self._journal is not None:
            await _completed(self._journal.shutdown())
        await self._tasks.cancel()
        self._scores.flush()
        self._watchdog.stop()
        for own in (self._page, self._own_traces, self._own_logs, self._telemetry):
            if own is not None:
                await _completed(own.shutdown(deadline))

    def _use_criteria(self, criteria: CriteriaSet) -> None:
        """Let those know who go by what is in force as a whole."""
        self._scores.set_criteria(criteria)
        self._conversations.follow(criteria.looks_at_conversations, self._clock.unix_nano())

    def _count_runs(self, graded: GradedTrace) -> None:
        """Let metrics tell of a trace that was graded, or of a part of its runs."""
        now = self._clock.unix_nano()
        self._scores.record(graded)
        observe_verdict_delays(self._metrics, graded, now)

    def _trace_grading(self, trace: FinishedTrace, graded: GradedTrace, started_unix_nano: int) -> None:
        """Let the service's own traces tell of it."""
        if self._own_traces is not None:
            self._own_traces.trace_evaluated(
                spans=len(trace.spans),
                runs=len(graded.runs),
                reason=trace.reason.value,
                start_unix_nano=started_unix_nano,
                end_unix_nano=self._clock.unix_nano(),
            )


def _run_of_line(line: bytes) -> AgentRun:
    """The run that a line of the service's own tells."""
    return run_from_json(decode_json(line), "a process that grades")


async def _completed(step: Awaitable[None]) -> None:
    """Wait for one step of the shutdown; a failure is logged and goes no further."""
    try:
        await step
    except Exception:
        _logger.exception("A step of the shutdown failed.")
