"""A buffer that streams: spans leave when they come, copies stay for grading."""

import pytest

from collector.buffer import GroupByTraceConfig
from collector.errors import Overloaded
from collector.trace import SpanBatch, held_bytes
from processors.model import FinishReason
from tests.support.held_spans import START_UNIX_NANO, BufferUnderTest, batch, raw_span, span_id, trace_id

ROOT, CHILD = raw_span(1), raw_span(2, 1)
LONGER_ROOT = raw_span(1, name="span that ended later", end=START_UNIX_NANO + 1)


def _ids(batches: "list[SpanBatch]") -> list[bytes]:
    return [span[0] for each in batches for span in each.spans]


def test_a_span_leaves_when_it_comes_and_is_graded_with_its_trace() -> None:
    under_test = BufferUnderTest(streams=True)

    first = under_test.buffer.admit([batch(CHILD)])
    second = under_test.buffer.admit([batch(ROOT)])
    (finished,) = under_test.pass_time(5)

    assert [batch(CHILD)] == list(first.fresh)
    assert [batch(ROOT)] == list(second.fresh)
    assert (FinishReason.ROOT, [CHILD, ROOT]) == (finished.reason, list(finished.spans))


def test_a_buffer_that_holds_hands_out_nothing_fresh() -> None:
    under_test = BufferUnderTest()

    assert () == under_test.buffer.admit([batch(ROOT)]).fresh


def test_a_repeat_leaves_once() -> None:
    under_test = BufferUnderTest(streams=True)
    under_test.buffer.admit([batch(ROOT)])

    again = under_test.buffer.admit([batch(ROOT, CHILD, CHILD)])

    assert [span_id(2)] == _ids(list(again.fresh))
    assert 2 == under_test.metrics.spans_dropped.value("duplicate", "")


def test_of_two_versions_the_first_has_left_and_the_later_end_is_graded() -> None:
    under_test = BufferUnderTest(streams=True)

    first = under_test.buffer.admit([batch(ROOT)])
    second = under_test.buffer.admit([batch(LONGER_ROOT)])
    (finished,) = under_test.pass_time(5)

    assert [batch(ROOT)] == list(first.fresh)
    assert () == second.fresh
    assert 1 == under_test.metrics.spans_dropped.value("conflict", "")
    assert [LONGER_ROOT] == list(finished.spans)


def test_what_leaves_counts_against_the_limit_beside_its_copy() -> None:
    under_test = BufferUnderTest(streams=True)

    under_test.buffer.admit([batch(ROOT, CHILD, CHILD)])

    spans = held_bytes([ROOT, CHILD])
    assert under_test.buffer.held_bytes + spans == under_test.limiter.used


def test_a_refused_request_hands_out_nothing_and_acquires_nothing() -> None:
    room = 2 * held_bytes([ROOT, CHILD]) + 2000
    under_test = BufferUnderTest(streams=True, limit_bytes=room)
    under_test.buffer.admit([batch(ROOT, CHILD)])
    used = under_test.limiter.used

    with pytest.raises(Overloaded):
        under_test.buffer.admit([batch(raw_span(3, trace=2), trace=2)])

    assert used == under_test.limiter.used


def test_spans_behind_the_limit_of_their_trace_are_late_and_leave_too() -> None:
    under_test = BufferUnderTest(GroupByTraceConfig(max_spans_per_trace=2), streams=True)
    spans = [raw_span(number, 1 if number > 1 else None) for number in range(1, 6)]

    first = under_test.buffer.admit([batch(*spans[:3])])
    second = under_test.buffer.admit([batch(*spans[3:])])

    assert [span_id(number) for number in (1, 2, 3)] == _ids(list(first.fresh))
    assert [span_id(number) for number in (4, 5)] == _ids(list(second.late))
    (finished,) = under_test.pass_time(0.5)
    assert FinishReason.OVER_LIMIT is finished.reason
    assert trace_id(1) == finished.trace_id
