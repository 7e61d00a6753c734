"""The trace buffer under any sequence of events: nothing is lost, doubled or miscounted."""

from collections import defaultdict
from collections.abc import Sequence
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from collector.buffer import GroupByTraceConfig
from collector.buffer.held_trace import TRACE_OVERHEAD_BYTES
from collector.errors import Overloaded, RequestTooLarge
from collector.trace import FinishedTrace, SpanBatch, held_bytes
from processors.model import FinishReason
from processors.spans import RawSpan, Span
from tests.support.held_spans import (
    REMOTE_PARENT,
    START_UNIX_NANO,
    BufferUnderTest,
    raw_span,
    record_outage,
    trace_id,
)

# Three versions of each of five spans in four traces: a version may end later, or only be longer.
SPANS: dict[int, list[RawSpan]] = {
    trace: [
        raw_span(
            number,
            parent=parent,
            trace=trace,
            flags=REMOTE_PARENT if number == 5 else 0x100,
            end=START_UNIX_NANO + (version == 2),
            name="span" + "x" * version,
        )
        for number, parent in ((1, None), (2, 1), (3, 2), (4, 9), (5, 8))
        for version in range(3)
    ]
    for trace in (1, 2, 3, 4)
}

Request = list[tuple[int, list[RawSpan]]]


def requests() -> st.SearchStrategy[Request]:
    return st.lists(
        st.sampled_from(sorted(SPANS)).flatmap(
            lambda trace: st.tuples(st.just(trace), st.lists(st.sampled_from(SPANS[trace]), max_size=6))
        ),
        max_size=4,
    )


def batches(request: Request) -> list[SpanBatch]:
    return [SpanBatch(trace_id(trace), spans) for trace, spans in request]


def kept(versions: Sequence[RawSpan]) -> RawSpan:
    return max(versions, key=lambda span: (Span(span[1]).end_unix_nano, len(span[1])))


class TraceBufferStates(RuleBasedStateMachine):
    """Admits, waits, refuses, fills, drains; a plain model says what must be where.

    In a buffer that `streams` what is held are copies of spans that have left.
    """

    streams = False

    def __init__(self) -> None:
        super().__init__()
        self.under_test = BufferUnderTest(
            GroupByTraceConfig.model_validate({"max_spans_per_trace": 4, "idle_timeout": "20s"}),
            limit_bytes=18 * (held_bytes([SPANS[1][2]]) + 40) + 4 * TRACE_OVERHEAD_BYTES,
            streams=self.streams,
        )
        self.buffer = self.under_test.buffer
        self.received = 0
        self.held: dict[bytes, dict[bytes, list[RawSpan]]] = {}
        self.gone: dict[bytes, set[bytes]] = defaultdict(set)
        self.over_limit: set[bytes] = set()
        self.left: list[RawSpan] = []
        self.downstream_bytes = 0
        self.late = 0

    @rule(request=requests())
    def admit(self, request: Request) -> None:
        arriving = batches(request)
        before = self.under_test.limiter.used
        try:
            admission = self.buffer.admit(arriving)
        except (Overloaded, RequestTooLarge):
            assert before == self.under_test.limiter.used
            self.buffer.note_refused(arriving)
            return
        expected_late: dict[bytes, list[RawSpan]] = defaultdict(list)
        known = {trace: set(versions) for trace, versions in self.held.items()}
        for batch in arriving:
            self.received += len(batch.spans)
            if batch.spans:
                self._model_arrival(batch, expected_late)
        actual_late: dict[bytes, list[RawSpan]] = defaultdict(list)
        for batch in admission.late:
            actual_late[batch.trace_id] += batch.spans
        assert expected_late == actual_late
        self._leave([span for spans in actual_late.values() for span in spans])
        self.late += sum(map(len, actual_late.values()))
        fresh = [(batch.trace_id, span) for batch in admission.fresh for span in batch.spans]
        new = [
            (trace, span_id)
            for trace, versions in self.held.items()
            for span_id in versions
            if span_id not in known.get(trace, ())
        ]
        assert sorted(new if self.streams else []) == sorted((trace, span[0]) for trace, span in fresh)
        for trace, span in fresh:
            assert span in self.held[trace][span[0]]
        self._leave([span for _, span in fresh])

    def _model_arrival(self, batch: SpanBatch, late: dict[bytes, list[RawSpan]]) -> None:
        trace = batch.trace_id
        if trace in self.over_limit or (trace in self.gone and trace not in self.held):
            for span in batch.spans:
                if span[0] not in self.gone[trace]:
                    self.gone[trace].add(span[0])
                    late[trace].append(span)
            return
        versions = self.held.setdefault(trace, {})
        for span in batch.spans:
            versions.setdefault(span[0], []).append(span)
        if len(versions) > 4:
            self.over_limit.add(trace)
            self.gone[trace] = set(versions)

    @rule(seconds=st.sampled_from([0.5, 2, 6, 10, 20]))
    def wait(self, seconds: float) -> None:
        self._finished(self.under_test.pass_time(seconds))

    @rule(seconds=st.sampled_from([3.0, 60.0]))
    def stop_the_process(self, seconds: float) -> None:
        self._finished(self.under_test.stop_process(seconds))

    @rule()
    def lose_spans(self) -> None:
        record_outage(self.buffer)

    @rule()
    def poll_one(self) -> None:
        finished = self.buffer.poll(max_traces=1)
        assert len(finished) <= 1
        self._finished(finished)

    @precondition(lambda self: self.downstream_bytes)
    @rule()
    def deliver(self) -> None:
        self.under_test.limiter.release(self.downstream_bytes)
        self.downstream_bytes = 0

    @rule(reason=st.sampled_from([FinishReason.SHUTDOWN, None]))
    def drain(self, reason: FinishReason | None) -> None:
        self._finished(self.buffer.settle() if reason is None else self.buffer.finish_all(reason))
        assert {} == self.held

    def _finished(self, finished: list[FinishedTrace]) -> None:
        for trace in finished:
            versions = self.held.pop(trace.trace_id)
            assert {kept(each) for each in versions.values()} == set(trace.spans)
            assert len(versions) == len(trace.spans)
            assert (trace.trace_id in self.over_limit) == (trace.reason is FinishReason.OVER_LIMIT)
            self.over_limit.discard(trace.trace_id)
            self.gone[trace.trace_id] |= set(versions)
            if self.streams:
                self.under_test.limiter.release(held_bytes(trace.spans))
            else:
                self._leave(trace.spans)

    def _leave(self, spans: Sequence[RawSpan]) -> None:
        self.left += spans
        self.downstream_bytes += held_bytes(spans)

    @invariant()
    def every_span_is_accounted_for(self) -> None:
        dropped = sum(self.under_test.metrics.spans_dropped.values.values())
        held = sum(map(len, self.held.values()))

        assert self.received == self.under_test.metrics.spans_received.value()
        assert held == self.buffer.spans_held == self.under_test.metrics.spans_held.value("")
        assert self.received == len(self.left) + dropped + (0 if self.streams else held)
        assert self.late == self.under_test.metrics.late_spans.value()
        assert len(self.held) == self.under_test.metrics.traces_held.value()

    @invariant()
    def memory_is_accounted_for(self) -> None:
        spans = [kept(versions) for trace in self.held.values() for versions in trace.values()]
        held = held_bytes(spans) + TRACE_OVERHEAD_BYTES * len(self.held)

        # The overhead of a trace over its limit is given back when it leaves.
        assert held == self.buffer.held_bytes
        assert held + self.downstream_bytes == self.under_test.limiter.used

    def teardown(self) -> None:
        self._finished(self.buffer.finish_all(FinishReason.SHUTDOWN))
        ids = [(Span(span[1]).trace_id, span[0]) for span in self.left]
        assert len(set(ids)) == len(ids)
        self.every_span_is_accounted_for()
        self.memory_is_accounted_for()


TestTraceBufferStates = TraceBufferStates.TestCase
TestTraceBufferStates.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)


class StreamingBufferStates(TraceBufferStates):
    """The same where every span is handed out when it comes."""

    streams = True


TestStreamingBufferStates = StreamingBufferStates.TestCase
TestStreamingBufferStates.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)


@given(
    st.lists(st.sampled_from(SPANS[1]), min_size=1, max_size=12),
    st.randoms(use_true_random=False),
    st.randoms(use_true_random=False),
)
def test_the_same_spans_finish_alike_whatever_their_order_and_batching(
    spans: list[RawSpan], one: Random, other: Random
) -> None:
    outcomes = []

    for random in (one, other):
        under_test = BufferUnderTest()
        rest = list(spans)
        random.shuffle(rest)
        while rest:
            size = random.randint(1, len(rest))
            under_test.admit(SpanBatch(trace_id(1), rest[:size]))
            del rest[:size]
            # Shorter than every grace in all: repeats do not restart quiet time.
            under_test.pass_time(random.choice([0.05, 0.15]))
        (trace,) = under_test.buffer.settle() if under_test.buffer.spans_held else (None,)
        outcomes.append(trace and (frozenset(trace.spans), trace.reason, trace.backfill))

    assert outcomes[0] == outcomes[1]
