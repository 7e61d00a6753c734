"""A trace that goes on after it was graded: what began after all of it finishes once more."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.buffer import GroupByTraceConfig
from processors.model import FinishReason
from processors.spans import RawSpan
from tests.support.held_spans import (
    START_UNIX_NANO,
    BufferUnderTest,
    batch,
    raw_span,
    span_id,
    trace_id,
)

GRACE = 2.0
CONFIG = GroupByTraceConfig.model_validate(
    {"root_grace": "2s", "incomplete_grace": "4s", "idle_timeout": "20s"}
)
END = START_UNIX_NANO + 100
FIRST = (
    raw_span(1, start=START_UNIX_NANO, end=END),
    raw_span(2, 1, start=START_UNIX_NANO + 10, end=START_UNIX_NANO + 20),
)
SECOND_RUN = (
    raw_span(11, 1, start=END + 10, end=END + 100),
    raw_span(12, 11, start=END + 20, end=END + 30),
    raw_span(13, 11, start=END + 40, end=END + 50),
)


def buffer_after_first(**settings: object) -> BufferUnderTest:
    """A buffer in which the first part of trace 1 has finished."""
    under_test = BufferUnderTest(CONFIG, **settings)  # type: ignore[arg-type]
    under_test.admit(batch(*FIRST))
    (trace,) = under_test.pass_time(GRACE)
    assert not trace.continues
    under_test.limiter.release(sum(len(span[1]) + 256 for span in trace.spans))
    return under_test


@pytest.mark.parametrize("order", list(permutations(SECOND_RUN)))
def test_a_second_run_finishes_by_its_own_invocation_whatever_comes_first(order: tuple[RawSpan, ...]) -> None:
    under_test = buffer_after_first()
    finished = []
    for span in order:
        assert [] == under_test.admit(batch(span))
        finished += under_test.pass_time(GRACE - 0.5)

    finished += under_test.pass_time(GRACE)

    (trace,) = finished
    assert (FinishReason.ROOT, set(SECOND_RUN)) == (trace.reason, set(trace.spans))
    assert trace.was_quiet
    assert trace.continues
    assert 1 == under_test.metrics.traces_continued.value()
    assert 0 == under_test.buffer.held_bytes == under_test.buffer.spans_held


def test_its_calls_wait_for_its_invocation_though_something_else_goes_on_below_the_first_run() -> None:
    under_test = buffer_after_first()
    guardrail = raw_span(10, 1, start=END + 5, end=END + 6)
    under_test.admit(batch(guardrail, *SECOND_RUN[1:]))

    assert [] == under_test.pass_time(15)
    under_test.admit(batch(SECOND_RUN[0]))
    (trace,) = under_test.pass_time(GRACE)

    assert (FinishReason.ROOT, 4) == (trace.reason, len(trace.spans))


def test_what_began_before_the_graded_part_ended_is_late() -> None:
    under_test = buffer_after_first()
    straggler = raw_span(3, 1, start=END, end=END + 50)

    (late,) = under_test.admit(batch(straggler, SECOND_RUN[1]))

    assert [straggler] == late.spans
    assert 1 == under_test.buffer.spans_held
    assert 1 == under_test.metrics.late_spans.value()
    (again,) = under_test.admit(batch(raw_span(4, 1, start=END, end=END)))  # while the trace goes on
    assert 1 == len(again.spans)


def test_repeats_of_the_graded_part_and_of_what_goes_on_are_dropped() -> None:
    under_test = buffer_after_first()
    under_test.admit(batch(*SECOND_RUN))

    assert [] == under_test.admit(batch(*FIRST, *SECOND_RUN))
    (trace,) = under_test.pass_time(GRACE)

    assert 3 == len(trace.spans)
    assert 5 == under_test.metrics.spans_dropped.value("duplicate", "")
    assert [] == under_test.admit(batch(*FIRST, *SECOND_RUN))
    assert 0 == under_test.buffer.spans_held


def test_a_trace_goes_on_any_number_of_times() -> None:
    under_test = buffer_after_first()
    for number in range(1, 5):
        begin = END + number * 1000
        under_test.admit(batch(raw_span(100 + number, 1, start=begin, end=begin + 10)))
        (trace,) = under_test.pass_time(GRACE)
        assert FinishReason.ROOT is trace.reason
        (late,) = under_test.admit(batch(raw_span(200 + number, 1, start=begin, end=begin)))
        assert 1 == len(late.spans)

    assert 4 == under_test.metrics.traces_continued.value()


@pytest.mark.parametrize("reason", [FinishReason.SHUTDOWN, FinishReason.PRESSURE])
def test_a_trace_that_was_cut_short_for_want_of_room_is_not_held_again(reason: FinishReason) -> None:
    under_test = BufferUnderTest(CONFIG)
    under_test.admit(batch(*FIRST))
    under_test.buffer.finish_all(reason)

    (late,) = under_test.admit(batch(*SECOND_RUN))

    assert 3 == len(late.spans)


def test_a_trace_over_its_limit_is_not_held_again() -> None:
    under_test = BufferUnderTest(CONFIG.model_copy(update={"max_spans_per_trace": 1}))
    under_test.admit(batch(*FIRST))

    (late,) = under_test.admit(batch(*SECOND_RUN))

    assert 3 == len(late.spans)


def test_streamed_spans_leave_and_a_copy_goes_on() -> None:
    under_test = buffer_after_first(streams=True)

    admission = under_test.buffer.admit([batch(*SECOND_RUN)])

    assert [list(SECOND_RUN)] == [list(part.spans) for part in admission.fresh]
    (trace,) = under_test.pass_time(GRACE)
    assert 3 == len(trace.spans)


def test_what_goes_on_is_known_as_such_after_a_restart() -> None:
    under_test = BufferUnderTest(CONFIG)
    under_test.buffer.remember_finished(trace_id(1), [span_id(1), span_id(2)], END)
    under_test.buffer.restore(batch(SECOND_RUN[1]), START_UNIX_NANO, START_UNIX_NANO)
    under_test.buffer.note_ready(START_UNIX_NANO)

    assert [] == under_test.admit(batch(SECOND_RUN[0], SECOND_RUN[2]))
    (late,) = under_test.admit(batch(raw_span(3, 1, start=END, end=END)))
    (trace,) = under_test.pass_time(10 + GRACE)

    assert 1 == len(late.spans)
    assert (FinishReason.ROOT, 3, False) == (trace.reason, len(trace.spans), trace.interrupted)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=20), st.permutations(range(6)))
def test_every_span_leaves_once_however_a_conversation_comes(
    waits: list[tuple[int, int]], order: list[int]
) -> None:
    under_test = BufferUnderTest(CONFIG)
    turns = [
        batch(
            raw_span(
                10 * turn + 1, None if turn == 0 else 1, start=END + 1000 * turn, end=END + 1000 * turn + 90
            ),
            raw_span(10 * turn + 2, 10 * turn + 1, start=END + 1000 * turn + 5, end=END + 1000 * turn + 9),
        )
        for turn in range(6)
    ]
    left: list[bytes] = []
    pauses = iter(waits)
    for turn in order:
        for part in under_test.admit(turns[turn]):
            left += [span[0] for span in part.spans]
        seconds, repeats = next(pauses, (0, 0))
        for trace in under_test.pass_time(float(seconds)):
            left += [span[0] for span in trace.spans]
        for _ in range(repeats):
            under_test.admit(turns[turn])
    for trace in under_test.pass_time(60):
        left += [span[0] for span in trace.spans]

    assert sorted(left) == sorted(span[0] for turn in turns for span in turn.spans)
    assert 0 == under_test.buffer.held_bytes == under_test.buffer.spans_held
