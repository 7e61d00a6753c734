"""The pipeline: everything between the receivers and the exporters but the holding of spans itself.

It takes requests in, has the trace buffer hold their spans, grades each trace when it is finished, writes the
results in the configured forms and hands the spans on. Whatever goes wrong while one trace is rebuilt or
graded is logged and counted, and its spans leave unchanged: a trace cannot harm the service.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal, Protocol

from collector.buffer import FinishedTraces, RecordClock, TraceBuffer
from collector.clock import Clock, ends_within
from collector.contradictions import Contradictions
from collector.conversations import Conversations
from collector.errors import Draining, GradingCutShort, MalformedRequest, Overloaded, RequestTooLarge
from collector.exporters import FanOut, TaskOwner
from collector.grading import (
    AwaitedTrace,
    Form,
    Grader,
    GradingPool,
    GradingThread,
    Quarantined,
    Question,
    Questions,
    Tally,
    compact,
    full_collections,
    is_large,
)
from collector.journal import Journal, StoredVerdicts
from collector.memory_limiter import MemoryLimiter
from collector.otlp import EnvelopeRegistry, SplitRequest, split_request
from collector.receivers import ExportOutcome
from collector.results_config import ResultsConfig
from collector.telemetry import BEFORE_FAN_OUT, Metrics, RateLimitedLogger
from collector.trace import FinishedTrace, GradedTrace, Receipt, RecordSource, SpanBatch, held_bytes
from collector.workers.pool import WorkerPool
from collector.workers.worker_evaluations import ask_workers
from processors.criteria import CriteriaSet
from processors.evaluate import Answer
from processors.model import AgentRun, FinishReason, NotEvaluatedReason, PriceTable
from processors.shapes import Dialect
from processors.spans import RawSpan, read_span_head

BACKED_UP = 0.4
"""Part of the memory limit that may wait for exporters before no more records are read."""
FINISH_INTERVAL_SECONDS = 0.1
"""How often finished traces are looked for."""
_TRACES_AT_A_TIME = 8
_SHORTEST_TURN_SECONDS, _LONGEST_TURN_SECONDS = 0.01, 0.05
"""How long finished traces are graded before requests get their turn again."""
_ROUNDS_BETWEEN_TURNS = 4
"""Rounds of the loop between two turns: a request takes several from its first byte to its answer."""

_RUNS_AT_ONCE = 500
"""Runs of a large trace that are counted before requests get their turn: some 15 ms."""

_MOST_REMEMBERED, _FEWEST_REMEMBERED = 100_000, 1000
_MOST_REMEMBERED_BYTES = 64 * 1024 * 1024
"""Finished traces that all partitions together remember, and how many each may at least."""

_INVALID_ID = "invalid_id"
_ON_SPANS = ResultsConfig()
_ALL_OF_RUNS = Form(lines=True, details=True, resource_attributes=())

_logger = logging.getLogger(__name__)


class ServiceTraces(Protocol):
    """The traces that the service sends to its own listener: they end elsewhere than those of users."""

    def made(self, trace_id: bytes) -> bool:
        """Whether the trace is one of these, and not finished yet."""
        ...

    def finish(self, trace: FinishedTrace) -> None:
        """Take a finished trace that was `made` here, count its spans and give back its bytes."""
        ...


class Pipeline:
    """Takes the spans of requests in and sends each on its way: at once, or graded with its trace.

    Args:
        buffer: Holds the spans of traces that are not finished.
        envelopes: Where what spans share, their resources and scopes, comes from.
        evaluation: Grades finished traces.
        workers: Those that `evaluation` asks, if it asks any.
        fan_out: Where spans and results leave.
        limiter: Gets back the bytes of streamed spans that go no further.
        service_traces: Takes the traces that the service made itself, which reach no exporter.
        streams: Whether spans leave when they come, so that the buffer holds copies of them.
        journal: Keeps what is admitted until it is delivered, if there is one.
        on_runs: Called with every graded trace before it leaves; with a large one, once for some of its runs.
        on_graded: Called with every trace, its graded form, and when grading began.
        tasks: Runs what goes on between requests.
        metrics: Says how many spans wait.
        clock: Time of grading, turns and deadlines.
        contradictions: Holds late spans against what was said, if that is asked for.
    """

    def __init__(
        self,
        *,
        buffer: TraceBuffer,
        envelopes: EnvelopeRegistry,
        evaluation: "EvaluationStage",
        workers: WorkerPool | None,
        fan_out: FanOut,
        limiter: MemoryLimiter,
        service_traces: ServiceTraces,
        streams: bool,
        journal: Journal | None,
        on_runs: Callable[[GradedTrace], None],
        on_graded: Callable[[FinishedTrace, GradedTrace, int], None],
        tasks: TaskOwner,
        metrics: Metrics,
        clock: Clock,
        contradictions: Contradictions | None = None,
    ) -> None:
        self._contradictions = contradictions
        self._buffer = buffer
        self._buffers = deque([buffer])  # those whose traces finish, the next to be asked first
        self._envelopes = envelopes
        self._evaluation = evaluation
        self._workers = workers
        self._fan_out = fan_out
        self._limiter = limiter
        self._service_traces = service_traces
        self._streams = streams
        self._journal = journal
        self._spans_to_store = 0
        self._to_store: deque[tuple[GradedTrace, int, int]] = deque()
        """Graded traces whose verdicts are not on disk yet, oldest first, with their held bytes and spans."""
        self._on_runs = on_runs
        self._on_graded = on_graded
        self._tasks = tasks
        self._metrics = metrics
        self._clock = clock
        self._is_draining = False
        self._splitting = asyncio.Lock()
        self._aside: dict[asyncio.Task[None], int] = {}
        """What is graded beside the loop, or waits for custom evaluators, and how many spans it has."""
        self._withheld_spans = 0
        """Streamed spans of the service's own traces: they stay until these are finished."""
        metrics.spans_awaiting_verdict.read_from(self._spans_awaiting_verdict)
        metrics.spans_held.read_from(
            (lambda: self._withheld_spans) if streams else self._spans_awaiting_verdict, BEFORE_FAN_OUT
        )
        for reason in (Overloaded.reason, RequestTooLarge.reason, _INVALID_ID):
            metrics.spans_refused.add(0, reason)

    def start(self, resumed_unix_nano: int = 0) -> None:
        """Begin to take finished traces out of the buffer, and spans into it.

        Earlier ones went elsewhere, or were restored as far as they came until `resumed_unix_nano`.
        """
        self._buffer.note_ready(resumed_unix_nano)
        self._tasks.create_task(self._finish_traces(), name="finish traces")

    def consume_traces(self, body: bytes) -> ExportOutcome:
        """Admit the spans of a serialised export request: what receivers call for every request.

        A request is taken as a whole or refused as a whole; spans whose ids are invalid are the one exception
        and are told to the sender as a partial success. Spans that wait for no verdict have left before the
        request is acknowledged.

        Raises:
            MalformedRequest: the bytes are no such request.
            RequestTooLarge: the request could never fit.
            Overloaded: there is no room now, or the journal cannot be written.
            Draining: the service is stopping.
        """
        if self._is_draining:
            raise Draining("The service is shutting down; send the request again.")
        return self._take(split_request(body, self._envelopes), body)

    async def consume_large_traces(self, body: bytes) -> ExportOutcome:
        """As `consume_traces`, for a long request: it is split in a thread, one at a time."""
        async with self._splitting:
            request = await asyncio.to_thread(split_request, body, self._envelopes)
        if self._is_draining:
            raise Draining("The service is shutting down; send the request again.")
        return self._take(request, body)

    def _take(self, request: SplitRequest, body: bytes) -> ExportOutcome:
        batches = [SpanBatch(trace_id, spans) for trace_id, spans in request.traces.items()]
        to_keep: Sequence[SpanBatch] = ()
        try:
            if self._journal is not None:
                self._journal.require_room(len(body))
                to_keep = [] if self._streams else [batch for batch in batches if self._waits(batch)]
            admitted = self._buffer.admit(batches)
        except (Overloaded, RequestTooLarge) as refusal:
            self._metrics.spans_refused.add(request.accepted + request.rejected, refusal.reason)
            if isinstance(refusal, Overloaded):
                self._buffer.note_refused(batches)
            raise
        if admitted.late or admitted.fresh:
            self._forward_at_once(admitted.late, streamed=False)
            self._forward_at_once(admitted.fresh, streamed=True)
        stored = None
        if self._journal is not None:
            if not self._streams:
                to_keep = [*to_keep, *admitted.continued]
            is_whole = len(to_keep) == len(batches) and not admitted.continued
            self._journal.add(to_keep, body if is_whole else None)
            stored = self._journal.stored()
        if not request.rejected:
            return ExportOutcome(accepted=request.accepted, rejected=0, stored=stored)
        self._metrics.spans_refused.add(request.rejected, _INVALID_ID)
        return ExportOutcome(request.accepted, request.rejected, request.rejection(), stored)

    def open_partition(self, source: RecordSource, partition_count: int) -> "Partition":
        """Take in the records of one of so many partitions of a topic, beside what senders send."""
        share = max(_MOST_REMEMBERED // partition_count, _FEWEST_REMEMBERED)
        clock = RecordClock(self._clock)
        finished_traces = FinishedTraces(share, _MOST_REMEMBERED_BYTES * share // _MOST_REMEMBERED)
        buffer = self._buffer.sibling(source, clock, finished_traces)
        self._buffers.append(buffer)
        return Partition(self, buffer, clock, source)

    @property
    def is_backed_up(self) -> bool:
        """Whether so much waits for exporters that nothing more should be read."""
        return self._fan_out.bytes_that_must_wait > BACKED_UP * self._limiter.limit

    def _waits(self, batch: SpanBatch) -> bool:
        """Whether the spans of `batch` are to wait for their verdict: neither late nor the service's own."""
        return not (self._buffer.has_finished(batch) or self._service_traces.made(batch.trace_id))

    def _admit_record(
        self, buffer: TraceBuffer, source: RecordSource, body: bytes, record: int
    ) -> Collection[bytes]:
        """See `Partition.admit`."""
        request = split_request(body, self._envelopes)
        batches = [SpanBatch(trace_id, spans) for trace_id, spans in request.traces.items()]
        try:
            admitted = buffer.admit(batches, record)
        except RequestTooLarge as refusal:
            self._metrics.spans_refused.add(request.accepted + request.rejected, refusal.reason)
            raise
        for leaving, streamed in ((admitted.late, False), (admitted.fresh, True)):
            if leaving:
                source.hold(record)
                self._forward_at_once(leaving, streamed=streamed, receipt=source.receipt((record,)))
        if request.rejected:
            self._metrics.spans_refused.add(request.rejected, _INVALID_ID)
        return request.traces

    def _admit_delivered(
        self, buffer: TraceBuffer, source: RecordSource, body: bytes, record: int | None
    ) -> None:
        """See `Partition.admit_again`."""
        request = split_request(body, self._envelopes)
        batches = [SpanBatch(trace_id, spans) for trace_id, spans in request.traces.items()]
        if record is not None and buffer.holds_any(batches):
            self._admit_record(buffer, source, body, record)
            return
        for batch in batches:
            end = max(read_span_head(payload)[3] for _, payload, _ in batch.spans)
            buffer.remember_finished(batch.trace_id, [span[0] for span in batch.spans], end)

    def _count_revoked(self, spans: int) -> None:
        if not self._streams:  # else they have left, and only copies are gone
            self._metrics.spans_revoked.add(spans)

    def refuse_requests(self) -> None:
        """Refuse every further request, retryably."""
        self._is_draining = True

    async def shutdown(self, deadline: float) -> None:
        """Send everything that is held on its way, with what can be said of it by now.

        What is graded beside the loop has half of the time until `deadline`; the exporters need the other.
        """
        is_kept = self._journal is not None and self._journal.config.on_shutdown == "keep"
        if not is_kept:
            for trace in self._buffer.finish_all(FinishReason.SHUTDOWN):
                self._grade_and_forward(trace)
                await asyncio.sleep(0)
        await self._end_work_aside(deadline, is_kept=is_kept)
        if self._journal is not None:
            await self._journal.flush(deadline)

    async def _end_work_aside(self, deadline: float, *, is_kept: bool) -> None:
        """Wait for what is graded beside the loop; where traces are kept the next process grades them."""
        if is_kept:
            for task in list(self._aside):
                task.cancel()
        if self._aside:
            graded = asyncio.ensure_future(asyncio.wait(list(self._aside)))
            await ends_within((deadline - self._clock.monotonic()) / 2, graded, self._clock)
            self._evaluation.close()
            if self._workers is not None:
                self._workers.close()
            await graded
        if self._journal is not None:
            self._journal.end(aside=True)  # what is left in work did not crash
        await self._evaluation.shutdown()
        if self._workers is not None:
            await self._workers.shutdown()

    def _forward_at_once(
        self, batches: Sequence[SpanBatch], *, streamed: bool, receipt: Receipt | None = None
    ) -> None:
        """Forward spans that wait for no verdict: late ones, and all where spans are streamed.

        `receipt` is for whom they were read from; the journal has one of its own.
        """
        if self._contradictions is not None and not streamed:
            for batch in batches:
                self._contradictions.note_late(batch)
        spans: list[RawSpan] = []
        leaving: list[SpanBatch] = []
        for batch in batches:
            if self._service_traces.made(batch.trace_id):
                # Streamed: they stay until their trace is finished, as the copies that are graded.
                self._withheld_spans += len(batch.spans)
                self._limiter.release(held_bytes(batch.spans))
            else:
                spans += batch.spans
                leaving.append(batch)
        if not leaving:
            if receipt is not None:
                receipt.seal()
            return
        if self._journal is not None:
            receipt = self._journal.add_leaving(leaving, streamed=streamed)
        self._fan_out.forward(spans, held_bytes(spans), receipt)

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
        if not self._evaluation.has_room:
            return False
        unasked = len(self._buffers)
        while unasked:
            finished = self._buffers[0].poll(_TRACES_AT_A_TIME)
            if not finished:
                unasked -= 1
                self._buffers.rotate(-1)
                continue
            unasked = len(self._buffers)
            for trace in finished:
                self._grade_and_forward(trace)
            if self._clock.monotonic() >= turn_ends:
                self._buffers.rotate(-1)
                return True
        return False

    def _grade_and_forward(self, trace: FinishedTrace) -> None:
        """Send the trace on its way graded; at once, unless a custom evaluator has to be waited for."""
        if self._service_traces.made(trace.trace_id):
            if self._withheld_spans:
                self._withheld_spans -= len(trace.spans)
            self._service_traces.finish(trace)
            return
        if self._journal is not None:
            self._journal.finish(trace)
        if trace.receipt is not None:
            permission = trace.receipt.permission(trace.trace_id)
            if permission is not None:
                self._work_aside(self._grade_if_permitted(trace, permission), len(trace.spans))
                return
        self._grade(trace)

    async def _grade_if_permitted(self, trace: FinishedTrace, permission: Awaitable[bool]) -> None:
        """Grade the trace once that is known elsewhere; not, if it has ended two processes before."""
        may_grade = await permission
        self._end_aside()
        if not may_grade:
            self._metrics.traces_quarantined.add(1)
            _logger.error(
                "A trace was being graded when the process crashed, twice: it is forwarded ungraded.",
                extra={"trace_id": trace.trace_id.hex()},
            )
            trace = replace(trace, quarantined=True)
        self._grade(trace)

    def _grade(self, trace: FinishedTrace) -> None:
        started = self._clock.unix_nano()
        if self._evaluation.goes_aside(trace):
            self._work_aside(self._forward_when_graded(trace, started), len(trace.spans))
            return
        if self._journal is None:
            graded = self._evaluation.begin(trace)
        else:
            self._journal.begin(trace)
            graded = self._evaluation.begin(trace)
            self._journal.end()
        if isinstance(graded, AwaitedTrace):
            self._work_aside(self._forward_when_answered(graded, started), len(trace.spans))
        else:
            self._on_runs(graded)
            self._forward(trace, graded, started)

    def _work_aside(self, work: Coroutine[object, object, None], spans: int) -> None:
        """Let `work` send a trace with so many spans on its way, sometime."""
        task = self._tasks.create_task(work, name="grade aside")
        self._aside[task] = spans
        task.add_done_callback(self._aside.pop)

    async def _forward_when_answered(self, awaited: AwaitedTrace, started: int) -> None:
        graded = await self._evaluation.complete(awaited)
        self._end_aside()
        self._on_runs(graded)
        self._forward(awaited.trace, graded, started)

    async def _forward_when_graded(self, trace: FinishedTrace, started: int) -> None:
        with full_collections.held_off():
            graded = await self._evaluation.grade_aside(trace, partial(self._note_work, trace))
            for part in _parts(graded):
                self._on_runs(part)
                await asyncio.sleep(0)
            self._end_aside()
            self._forward(trace, graded, started)
            del graded, part

    def _note_work(self, trace: FinishedTrace, begins: bool) -> None:
        """Called in the thread that grades `trace`."""
        if self._journal is None:
            return
        if begins:
            self._journal.begin(trace, aside=True)
        else:
            self._journal.end(aside=True)

    def _end_aside(self) -> None:
        """The current task goes on in the loop: from here on the queues count its spans."""
        task = asyncio.current_task()
        if task in self._aside:
            self._aside[task] = 0

    def _forward(self, trace: FinishedTrace, graded: GradedTrace, started: int) -> None:
        self._on_graded(trace, graded, started)
        if self._contradictions is not None:
            self._contradictions.keep(trace, graded)
        held = held_bytes(trace.spans)
        if self._journal is None:
            self._fan_out.export(graded, held, trace.receipt)
            return
        if not self._fan_out.result_exporters:
            # Nobody takes runs, and none is kept in memory until the disk has it.
            graded = graded.without_runs()
        self._spans_to_store += len(trace.spans)
        self._to_store.append((graded, held, len(trace.spans)))
        self._journal.add_verdicts(trace, graded, self._export_oldest)

    def _export_oldest(self) -> None:
        """The oldest of the graded traces is on disk."""
        if self._journal is not None:
            graded, held, count = self._to_store.popleft()
            self._spans_to_store -= count
            self._fan_out.export(graded, held, self._journal.receipt(graded.trace_id, graded.tenant))

    def _spans_awaiting_verdict(self) -> int:
        return self._buffer.group.spans_held + sum(self._aside.values()) + self._spans_to_store


class Partition:
    """One partition of a topic: its records in, each held at its source until its spans were delivered.

    Its traces finish by the time of its records, apart from all others.
    """

    def __init__(
        self, pipeline: Pipeline, buffer: TraceBuffer, clock: RecordClock, source: RecordSource
    ) -> None:
        self._pipeline = pipeline
        self._buffer = buffer
        self._clock = clock
        self._source = source
        self._is_closed = False

    def read(self, unix_nano: int) -> None:
        """A record was read that was written at this time."""
        self._clock.read(unix_nano)

    def reach_end(self) -> None:
        """There is no further record for now: the time that passes is quiet."""
        self._clock.reach_end()

    def hear(self) -> None:
        """The reader has asked for records, and has handed in all that it got."""
        self._clock.hear()

    def leave_end(self) -> None:
        """Records may wait that are not read."""
        self._clock.leave_end()

    def stand_still(self) -> None:
        """Nothing is heard of the broker."""
        self._clock.stand_still()

    def note_horizon(self, unix_nano: int) -> None:
        """Records written before `unix_nano` were not read."""
        self._buffer.note_horizon(unix_nano)

    def admit(self, body: bytes, record: int) -> Collection[bytes]:
        """Take in the spans of a record, which stays held at the source for each trace that has any.

        Returns:
            The ids of the traces that are in it.

        Raises:
            MalformedRequest: it holds no export request.
            RequestTooLarge: it could never fit.
            Overloaded: there is no room now; nothing of it was kept.
        """
        return self._pipeline._admit_record(self._buffer, self._source, body, record)

    def admit_again(self, body: bytes, record: int | None) -> None:
        """A record that was delivered before is read again, so that what belongs to it is known as late.

        Where spans of the same trace, which were not delivered, are held already, it is admitted with them.

        Raises:
            Overloaded: there is no room now; nothing of it was kept.
        """
        try:
            self._pipeline._admit_delivered(self._buffer, self._source, body, record)
        except (MalformedRequest, RequestTooLarge):
            return  # as it was when it was delivered: counted then

    def close(self) -> None:
        """Finish no trace any more."""
        if not self._is_closed:
            self._is_closed = True
            self._pipeline._buffers.remove(self._buffer)

    def forget(self) -> None:
        """Let go of everything that is held, without a verdict: whoever reads the partition next has it."""
        self.close()
        self._pipeline._count_revoked(self._buffer.forget())


def _parts(graded: GradedTrace) -> Iterator[GradedTrace]:
    """A graded trace in parts of some runs each."""
    if len(graded.runs) <= _RUNS_AT_ONCE:
        yield graded
        return
    for first in range(0, len(graded.runs), _RUNS_AT_ONCE):
        part = slice(first, first + _RUNS_AT_ONCE)
        yield replace(graded, runs=graded.runs[part], hidden_runs=graded.hidden_runs[part])


class EvaluationStage:
    """Grades finished traces (`collector.grading` says how) and counts what came of it.

    `criteria` is asked for the set in force once per trace, so a reload never mixes two sets in one.
    `workers` answer for custom evaluators; without them such evaluations end in `error`. `results` says in
    which forms verdicts leave, by default on the spans; scores are made of log records. Without `prices` no
    run has a cost.

    `pool` grades all traces in processes of its own, if there is one; else a thread grades large ones. Of
    what these graded there is left what `form` says; `read_run` reads the line of a run.
    """

    def __init__(
        self,
        *,
        criteria: Callable[[], CriteriaSet],
        metrics: Metrics,
        clock: Clock,
        instance: str,
        missing_parents: Literal["grade", "not_evaluated"] = "grade",
        dialects: Sequence[Dialect] = (),
        prices: PriceTable | None = None,
        workers: WorkerPool | None = None,
        results: ResultsConfig = _ON_SPANS,
        writes_scores: bool = False,
        pool: GradingPool | None = None,
        form: Form = _ALL_OF_RUNS,
        read_run: Callable[[bytes], AgentRun] | None = None,
        conversations: Conversations | None = None,
    ) -> None:
        self._criteria = criteria
        self._metrics = metrics
        self._workers = workers
        self._pool = pool
        self._form = form
        self._read_run = read_run
        self._envelopes = EnvelopeRegistry()
        self._grader, self._grader_aside = [
            Grader(
                criteria=criteria,
                clock=clock,
                instance=instance,
                missing_parents=missing_parents,
                dialects=dialects,
                prices=prices,
                asks_workers=workers is not None,
                is_aside=is_aside,
                results=results,
                writes_scores=writes_scores,
                conversations=conversations,
            )
            for is_aside in (False, True)
        ]
        self._thread = GradingThread()
        self._log = RateLimitedLogger(_logger, clock)

    def grade(self, trace: FinishedTrace) -> GradedTrace:
        """Grade one trace here and now, where there are no workers; as `begin`."""
        graded = self.begin(trace)
        if isinstance(graded, AwaitedTrace):
            raise ValueError("workers have to be asked for this trace")
        return graded

    def begin(self, trace: FinishedTrace) -> GradedTrace | AwaitedTrace:
        """Grade one trace, unless worker processes have to be asked: then `complete` it.

        Never raises for what a trace can hold.
        """
        tally = Tally()
        graded = self._grader.begin(trace, tally)
        if not isinstance(graded, AwaitedTrace):
            self._count(graded, tally)
        return graded

    def regrade(self, trace: FinishedTrace) -> GradedTrace | None:
        """What the verdicts on a trace would be now, uncounted; None where workers would have to be asked."""
        tally = Tally()
        graded = self._grader.begin(trace, tally)
        return None if isinstance(graded, AwaitedTrace) or tally.failure is not None else graded

    async def complete(self, awaited: AwaitedTrace) -> GradedTrace:
        """Grade a trace with the help of workers; never raises for what a trace can hold, nor for theirs.

        The time of waiting for workers does not count as time of evaluation.
        """
        graded = self._grader.finish(awaited, await self._answers(awaited))
        self._count(graded, awaited.tally)
        return graded

    async def grade_aside(self, trace: FinishedTrace, note_work: Callable[[bool], None]) -> GradedTrace:
        """Grade one trace beside the loop, which goes on meanwhile; never raises for what a trace can hold.

        `note_work` is told when its grading begins and, with False, when it ends.
        """
        if self._pool is not None and not trace.quarantined:
            try:
                return await self._grade_in_pool(trace, self._pool)
            except Quarantined:
                self._metrics.traces_quarantined.add(1)
                _logger.error(
                    "Process after process ended while it graded a trace: it is forwarded ungraded.",
                    extra={"trace_id": trace.trace_id.hex()},
                )
                trace = replace(trace, quarantined=True)
        tally, grader = Tally(), self._grader_aside

        def grade(step: Callable[[], GradedTrace | AwaitedTrace]) -> GradedTrace | AwaitedTrace:
            note_work(True)
            try:
                graded = step()
                if isinstance(graded, AwaitedTrace) or self._read_run is None:
                    return graded
                compacted = compact(trace, graded, self._form, self._envelopes, self._read_run)
                runs = list(graded.graded_runs)
                del graded
                while runs:  # all at once they would go in one step, which no other thread can interrupt
                    runs.pop()
                return compacted
            finally:
                note_work(False)

        try:
            graded = await self._thread.run(partial(grade, partial(grader.begin, trace, tally)))
            if isinstance(graded, AwaitedTrace):
                finish = partial(grader.finish, graded, await self._answers(graded))
                graded = await self._thread.run(partial(grade, finish))
            assert isinstance(graded, GradedTrace)  # there was an answer to all that was asked
        except TimeoutError:
            graded = grader.unchanged(trace, GradingCutShort("the service stopped before it was done"), tally)
        self._count(graded, tally)
        return graded

    async def _grade_in_pool(self, trace: FinishedTrace, pool: GradingPool) -> GradedTrace:
        question = Question(trace)
        try:
            while True:
                graded, tally = await pool.grade(question)
                if isinstance(graded, GradedTrace):
                    break
                question = Question(trace, await self._answers_to(graded))
        except GradingCutShort as error:
            tally = Tally()
            graded = self._grader.unchanged(trace, error, tally)
        self._count(graded, tally)
        return graded

    def goes_aside(self, trace: FinishedTrace) -> bool:
        """Whether the trace is to be graded beside the loop (`grade_aside`).

        None is while criteria look at conversations, of which there is one memory, in the loop.
        """
        if self._criteria().looks_at_conversations:
            return False
        return self._pool is not None or is_large(trace)

    @property
    def has_room(self) -> bool:
        """Whether further traces should be graded; if not they wait in the buffer."""
        return self._pool is None or self._pool.has_room

    def start(self, tasks: TaskOwner) -> None:
        """Start the processes that grade, if there are any."""
        if self._pool is not None:
            self._pool.start(tasks)

    def close(self) -> None:
        """Let the traces that are graded beside the loop, and are not done, leave unchanged."""
        self._thread.close()
        if self._pool is not None:
            self._pool.close()

    async def shutdown(self) -> None:
        """Close, and end the processes that grade."""
        self.close()
        if self._pool is not None:
            await self._pool.shutdown()

    async def _answers(self, awaited: AwaitedTrace) -> Sequence[Mapping[str, Answer]]:
        return await self._answers_to([run.questions for run in awaited.runs])

    async def _answers_to(self, questions: Questions) -> Sequence[Mapping[str, Answer]]:
        workers = self._workers
        if workers is None:
            return [{} for _ in questions]
        return await asyncio.gather(*[ask_workers(of_run, workers) for of_run in questions])

    def restore(self, trace: FinishedTrace, verdicts: StoredVerdicts) -> GradedTrace:
        """The trace as it was graded by a process before, without grading it again.

        If its runs cannot be rebuilt as they were, which takes another version of the service, it is graded.
        """
        tally = Tally()
        graded = self._grader.restore(
            trace, verdicts.results, unix_nano=verdicts.unix_nano, instance=verdicts.instance, tally=tally
        )
        self._count(graded, tally)
        return graded

    def _count(self, graded: GradedTrace, tally: Tally) -> None:
        """Let the metrics and the log tell what grading this trace came to."""
        metrics = self._metrics
        if tally.foreign_results:
            metrics.foreign_results.add(tally.foreign_results)
        if tally.without_criteria:
            metrics.not_evaluated.add(tally.without_criteria, NotEvaluatedReason.NO_CRITERIA.value)
        if tally.skipped:
            for reason, count in tally.skipped.items():
                metrics.evaluations_skipped.add(count, reason.value)
        if tally.failure is not None:
            metrics.traces_failed.add(1)
            self._log.exception(
                "trace_failed",
                "A trace could not be evaluated; it is forwarded unchanged.",
                tally.failure,
                trace_id=graded.trace_id.hex(),
            )
        if tally.seconds is not None:
            metrics.evaluation_seconds.observe(tally.seconds)
