"""Puts the parts of the service together: what there is, and what each works with.

1. `receivers`: bytes of export requests, over gRPC and HTTP, or records of Kafka.
2. `path.Intake`: takes requests in (`otlp.codec` splits them).
3. `buffer.TraceBuffer`: spans by trace, until `buffer.finish_policy` decides that a trace is finished.
4. `path.Finisher`: takes finished traces out, in turns with requests.
5. `grading.GradingStage`: spans to runs, runs to results, results onto spans; asks `workers`.
   `path.EarlyVerdicts` looks at traces that are not finished yet.
6. `path.Delivery`: graded traces to the exporters, once the journal has their verdicts.
7. `exporters.FanOut`: a sending queue and an exporter for each backend, and all that take results.

Stages do not know each other; they meet here, with `telemetry` around them, and `cluster` where there are
several of this service.
"""

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import TextIO, get_args

from collector.buffer import LearnedWaits, TraceBuffer
from collector.clock import Clock
from collector.cluster import PeerWatch
from collector.config_fields import AUTO
from collector.configuration import PROMETHEUS, ServiceConfig
from collector.container import container_memory
from collector.contradictions import Contradictions
from collector.conversations import Conversations
from collector.criteria import CriteriaFollower, CriteriaStore, DraftSettings
from collector.exporters import (
    DeadLetters,
    ExporterContext,
    FanOut,
    build_fan_out,
    contents_of,
    score_exporters,
)
from collector.grading import (
    WATCHED,
    EarlyFailure,
    Form,
    GradingPool,
    GradingStage,
    ThreadLane,
    WorkerSettings,
    evidence_reader,
    reports_end,
)
from collector.journal import Journal, stored_criteria_files
from collector.memory_limiter import MemoryLimiter
from collector.memory_plan import plan_memory
from collector.monitoring import MetricsRegistry, OwnLogs, OwnTraces, TelemetryServer
from collector.otlp import EnvelopeRegistry
from collector.page import PageServer, Views
from collector.path import Delivery, EarlyVerdicts, Finisher, Intake
from collector.receivers import SpanSource, build_receivers
from collector.resumption import Resumption
from collector.store import RunStore, StoredConversations
from collector.task_supervisor import TaskOwner
from collector.telemetry import (
    Metrics,
    Readiness,
    ScoreSeries,
    Watchdog,
    observe_verdict_delays,
    publish_accounting_errors,
)
from collector.tools.self_check import SelfCheck
from collector.trace import FinishedTrace, GradedTrace, Signal
from collector.workers.custom_evaluators import load_custom_evaluators
from collector.workers.pool import WorkerPool
from processors.annotation import run_from_json
from processors.criteria import CriteriaSet
from processors.model import AgentRun, decode_json
from processors.spans import NATIVE, NATIVE_REASON


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts of a service; what the configuration does not name is None."""

    metrics: Metrics
    readiness: Readiness
    telemetry: TelemetryServer
    watchdog: Watchdog
    scores: ScoreSeries
    self_check: SelfCheck
    own_traces: OwnTraces | None
    own_logs: OwnLogs | None
    criteria: CriteriaFollower
    conversations: Conversations
    contradictions: Contradictions | None
    peers: PeerWatch | None
    journal: Journal | None
    resumption: Resumption | None
    page: PageServer | None
    receivers: Mapping[str, SpanSource]
    intake: Intake
    finisher: Finisher
    early: EarlyVerdicts
    grading: GradingStage
    fan_out: FanOut


def assemble(
    config: ServiceConfig,
    *,
    environment: Mapping[str, str],
    console: TextIO,
    clock: Clock,
    tasks: TaskOwner,
) -> Parts:
    """Build the parts that `config` names.

    It opens nothing but reads the criteria files, and loads custom evaluators once in a process that ends at
    once.

    Raises:
        InvalidInput: the criteria files have mistakes, a custom evaluator cannot be loaded, or what may be
            held does not fit the container's memory.
    """
    prometheus, telemetry = config.prometheus, config.service.telemetry
    evaluation, grouping = config.processors.evaluation, config.processors.group_by_trace
    instance = f"{socket.gethostname()}:{os.getpid()}"
    release = version("tracegrade")
    verdict_delay = 0.0 if config.cluster is None else config.cluster.verdict_delay

    # What all stages depend on.
    metrics = Metrics(prometheus.resource_labels())
    evaluators = load_custom_evaluators(evaluation)
    criteria = CriteriaStore(
        config.criteria_patterns(),
        environment=environment,
        evaluators=evaluators.known,
        last_good=tuple
        if config.journal is None
        else partial(stored_criteria_files, config.journal.directory),
    )
    envelopes = EnvelopeRegistry()
    memory = plan_memory(config, container_memory())
    limiter = MemoryLimiter(memory.held_bytes, envelopes.bytes_held)
    journal = Journal(config.journal, metrics=metrics, clock=clock) if config.journal else None

    # What reports on it.
    readiness = Readiness()
    self_check = SelfCheck(
        telemetry.self_check,
        grace_seconds=grouping.fixed_root_grace + verdict_delay,
        release=limiter.release,
        metrics=metrics,
        clock=clock,
    )
    scores = ScoreSeries(
        metrics,
        clock,
        resource_attributes=prometheus.resource_attributes,
        expiry_seconds=prometheus.series_expiry,
    )
    telemetry_server = TelemetryServer(
        telemetry,
        registry=MetricsRegistry(metrics),
        score_series=scores,
        readiness=readiness,
        clock=clock,
        probes=self_check,
    )
    own_logs = (
        OwnLogs(telemetry.logs.otlp, version=release, instance=instance, clock=clock)
        if telemetry.logs.otlp
        else None
    )
    own_traces = (
        OwnTraces(
            telemetry.traces.otlp,
            telemetry.traces.sampling_ratio,
            version=release,
            instance=instance,
            clock=clock,
        )
        if telemetry.traces.otlp
        else None
    )

    # What is held, and what is known of it.
    streams = config.results.mode == "stream"
    learned = (
        LearnedWaits(lambda service, seconds: metrics.learned_root_grace.set(seconds, service))
        if grouping.root_grace == AUTO
        else None
    )
    buffer = TraceBuffer(
        config=grouping,
        limiter=limiter,
        metrics=metrics,
        clock=clock,
        streams=streams,
        has_receipts=journal is not None,
        verdict_delay=verdict_delay,
        learned=learned,
        settled_scopes=None if evaluation.grading_processes else evidence_reader(evaluation.own_dialects()),
        reports_end=reports_end,
    )
    if journal is not None:
        buffer.on_unmatched = journal.discard_records
    conversations = Conversations(
        evaluation.conversations,
        hidden=config.hides_conversations,
        lost_until=lambda: buffer.lost_until_unix_nano,
    )
    store = (
        RunStore(
            config.store,
            metrics=metrics,
            clock=clock,
            limit_bytes=memory.store_bytes,
            conversations=StoredConversations(
                conversations,
                read_run=run_from_json,
                are_as_graded=config.results.content_rules().shows_all,
                retention=evaluation.conversations.retention,
                clock=clock,
            ),
        )
        if config.keeps_runs
        else None
    )
    peers = (
        PeerWatch(config.cluster, note_rerouting=buffer.note_rerouting, metrics=metrics, clock=clock)
        if config.cluster
        else None
    )
    dead_letters = config.service.dead_letters

    # The data path, from its end.
    fan_out = build_fan_out(
        config.exporters,
        config.results,
        ExporterContext(clock=clock, metrics=metrics, console=console, limiter=limiter),
        limiter,
        end_of_spans=PROMETHEUS,
        dead_letters=DeadLetters(dead_letters, metrics, clock) if dead_letters else None,
        store=store,
    )
    workers = WorkerPool(evaluators, metrics=metrics, clock=clock) if evaluators.kinds else None
    settings = WorkerSettings(
        config=config.processors.evaluation,
        instance=instance,
        missing_parents=grouping.missing_parents,
        uses_workers=workers is not None,
        results=config.results,
        writes_scores=any("score" in contents_of(each, config.results) for each in config.exporters.values()),
        form=Form(
            lines=bool(fan_out.result_exporters),
            details=bool(fan_out.result_exporters) and journal is not None,
            resource_attributes=tuple(prometheus.resource_attributes),
        ),
    )
    grader = settings.grader(lambda: criteria.current, clock)
    grading = GradingStage(
        grader=grader,
        metrics=metrics,
        clock=clock,
        workers=workers,
        conversations=conversations,
        pool=GradingPool(
            settings,
            processes=evaluation.grading_processes,
            criteria=lambda: criteria.texts,
            read_run=_run_of_line,
            metrics=metrics,
            clock=clock,
        )
        if evaluation.grading_processes
        else None,
        thread=ThreadLane(grader.for_thread(), journal, settings.form, _run_of_line),
        journal=journal,
    )
    contradictions = (
        Contradictions(grading.regrade, criteria=lambda: criteria.current, metrics=metrics, clock=clock)
        if learned
        else None
    )

    def count_runs(graded: GradedTrace) -> None:
        now = clock.unix_nano()
        scores.record(graded)
        observe_verdict_delays(metrics, graded, now)

    def trace_grading(trace: FinishedTrace, graded: GradedTrace, started_unix_nano: int) -> None:
        if own_traces is not None:
            own_traces.trace_evaluated(
                spans=len(trace.spans),
                runs=len(graded.runs),
                reason=trace.reason.value,
                start_unix_nano=started_unix_nano,
                end_unix_nano=clock.unix_nano(),
            )

    def report_early(failure: EarlyFailure) -> None:
        (result,) = failure.failed.results
        scores.record_early(failure.failed.run.agent.name, result.name)
        fan_out.export_early(failure.records)

    def use_criteria(in_force: CriteriaSet) -> None:
        scores.set_criteria(in_force)
        conversations.follow(in_force.looks_at_conversations, clock.unix_nano())

    delivery = Delivery(
        fan_out=fan_out,
        limiter=limiter,
        service_traces=self_check,
        journal=journal,
        contradictions=contradictions,
    )
    finisher = Finisher(
        buffer=buffer,
        grading=grading,
        delivery=delivery,
        on_runs=count_runs,
        on_graded=trace_grading,
        tasks=tasks,
        metrics=metrics,
        clock=clock,
    )
    early = EarlyVerdicts(
        group=buffer.group,
        grader=grader.for_thread(),
        service_traces=self_check,
        on_failure=report_early,
        metrics=metrics,
        clock=clock,
    )
    intake = Intake(
        buffer=buffer,
        envelopes=envelopes,
        delivery=delivery,
        finisher=finisher,
        metrics=metrics,
        clock=clock,
    )

    metrics.build_info.set(1, release)
    metrics.native_info.set(*((1, NATIVE.VERSION, "") if NATIVE else (0, "", NATIVE_REASON)))
    metrics.held_bytes.read_from(lambda: limiter.used)
    metrics.held_bytes_limit.set(limiter.limit)
    for signal in get_args(Signal):
        publish_accounting_errors(metrics, [queue.name for queue in fan_out.queues_of(signal)], signal)
    return Parts(
        metrics=metrics,
        readiness=readiness,
        telemetry=telemetry_server,
        watchdog=Watchdog(telemetry_server.heartbeat, WATCHED),
        scores=scores,
        self_check=self_check,
        own_traces=own_traces,
        own_logs=own_logs,
        criteria=CriteriaFollower(
            criteria,
            use_criteria,
            metrics=metrics,
            clock=clock,
            readiness=readiness,
            keep=None if journal is None else journal.keep_criteria,
        ),
        conversations=conversations,
        contradictions=contradictions,
        peers=peers,
        journal=journal,
        resumption=Resumption(
            journal=journal,
            envelopes=envelopes,
            buffer=buffer,
            grading=grading,
            fan_out=fan_out,
            limiter=limiter,
            metrics=metrics,
            on_runs=count_runs,
        )
        if journal
        else None,
        page=PageServer(
            config.page,
            Views(
                None if store is None else store.queries,
                lambda: criteria.current,
                clock,
                config.page.trace_link,
                waits=None if learned is None else learned.waits,
                criteria_problems=lambda: criteria.problems,
                running=early.running,
            ),
            draft_order=lambda *draft: DraftSettings(criteria.texts, evaluation, evaluators.order).order(
                *draft
            ),
            draft_files=lambda: criteria.texts.files,
            score_exporters=score_exporters(config.exporters),
        )
        if config.page
        else None,
        receivers=build_receivers(
            config.receivers, intake, metrics, clock, max_bytes_in_flight=memory.in_flight_bytes
        ),
        intake=intake,
        finisher=finisher,
        early=early,
        grading=grading,
        fan_out=fan_out,
    )


def _run_of_line(line: bytes) -> AgentRun:
    """The run that a line of the service's own shows."""
    return run_from_json(decode_json(line), "a process that grades")
