"""A trace that lost spans to a stop or to refusals never passes for a whole one."""

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from collector.trace import FinishedTrace, SpanBatch
from processors.model import CUT_SHORT
from processors.spans import RawSpan
from tests.support.held_spans import SECOND, START_UNIX_NANO, BufferUnderTest, batch, raw_span

RUN_SECONDS = 60
GIVE_UP_SECONDS = 10
STEPS_A_SECOND = 2


@dataclass
class Export:
    """One request of one span, repeated until it is taken or the sender's deadline passes."""

    span: RawSpan
    at: float
    is_done: bool = False


@dataclass(frozen=True)
class Disturbance:
    is_stop: bool
    start: float
    end: float


disturbances = st.builds(
    lambda is_stop, start, seconds: Disturbance(is_stop, start, start + seconds),
    is_stop=st.booleans(),
    start=st.integers(0, 70),
    seconds=st.integers(1, 40),
)


def run(
    ends: list[int], delays: list[int], disturbance: Disturbance
) -> tuple[list[RawSpan], FinishedTrace | None]:
    """Play a run of a minute, whose root ends last; what was sent, and the trace it became, if any."""
    under_test = BufferUnderTest()
    exports = [
        Export(
            raw_span(
                number,
                parent=None if number == 1 else 1,
                start=START_UNIX_NANO + (0 if number == 1 else (end - 1) * SECOND),
                end=START_UNIX_NANO + end * SECOND,
            ),
            at=end + delay,
        )
        for number, (end, delay) in enumerate(zip([RUN_SECONDS, *ends], delays, strict=False), start=1)
    ]
    for step in range(1, 450 * STEPS_A_SECOND):
        now = step / STEPS_A_SECOND
        under_test.clock.advance(1 / STEPS_A_SECOND)
        is_disturbed = disturbance.start <= now < disturbance.end
        if is_disturbed and disturbance.is_stop:
            continue
        for export in exports:
            if export.is_done or not export.at <= now < export.at + GIVE_UP_SECONDS:
                continue
            if is_disturbed:
                under_test.buffer.note_refused([batch(export.span)])
            else:
                under_test.admit(batch(export.span))
                export.is_done = True
        for trace in under_test.buffer.poll():
            return [export.span for export in exports], trace
    return [export.span for export in exports], None


@given(
    st.lists(st.integers(1, RUN_SECONDS - 1), max_size=6),
    st.lists(st.integers(0, 5), min_size=7, max_size=7),
    disturbances,
)
@settings(max_examples=100, deadline=None)
def test_a_trace_that_lost_spans_is_interrupted(
    ends: list[int], delays: list[int], disturbance: Disturbance
) -> None:
    delays[0] = 5  # the root is sent last

    sent, trace = run(ends, delays, disturbance)

    assert trace is None or set(sent) == set(trace.spans) or trace.interrupted or trace.reason in CUT_SHORT


def test_a_minute_of_refusals_costs_no_trace_its_verdict_but_those_that_they_left_without_spans() -> None:
    under_test = BufferUnderTest()
    root, child = raw_span(1), raw_span(2, parent=1)

    def of(trace: int, *numbers: int) -> SpanBatch:
        spans = [raw_span(n, parent=None if n == 1 else 1, trace=trace) for n in numbers]
        return batch(*spans, trace=trace)

    under_test.admit(batch(root, child))
    for trace in (2, 3):
        under_test.admit(of(trace, 1))
    finished: list[FinishedTrace] = []
    for step in range(200):
        under_test.clock.advance(0.5)
        if step < 120:
            under_test.buffer.note_refused([of(2, 2), of(3, 2), of(4, 1)])
        if step == 120:
            under_test.admit(of(2, 2))
        finished += under_test.buffer.poll()
        assert not finished or step >= 120  # quiet is no sign of an end while senders are turned away

    assert {(1, "root", False), (2, "root", False), (3, "root", True)} == {
        (int.from_bytes(trace.trace_id, "big"), trace.reason.value, trace.interrupted) for trace in finished
    }
    assert [True] * 3 == [trace.was_quiet for trace in finished]
