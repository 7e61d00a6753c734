from collections.abc import Sequence
from itertools import permutations

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.buffer import FinishedTraces, GroupByTraceConfig
from collector.buffer.held_trace import TRACE_OVERHEAD_BYTES
from collector.errors import Overloaded, RequestTooLarge
from collector.trace import FinishedTrace, held_bytes
from processors.model import FinishReason
from processors.spans import RawSpan
from tests.support.held_spans import (
    REMOTE_PARENT,
    SECOND,
    START_UNIX_NANO,
    BufferUnderTest,
    batch,
    envelope,
    raw_span,
    record_outage,
    span_id,
    trace_id,
)

ROOT = raw_span(1)
CHILD = raw_span(2, parent=1)
GRANDCHILD = raw_span(3, parent=2)


def config(**settings: object) -> GroupByTraceConfig:
    return GroupByTraceConfig.model_validate({"root_grace": "2s", **settings})


def reasons(finished: Sequence[FinishedTrace]) -> list[str]:
    return [trace.reason.value for trace in finished]


def finish_time(buffer: BufferUnderTest, at_most: float = 4000.0) -> tuple[float, FinishedTrace]:
    """Let time pass until a trace finishes; the seconds that took."""
    passed = 0.0
    while passed < at_most:
        passed += 0.5
        for trace in buffer.pass_time(0.5):
            return passed, trace
    raise AssertionError("nothing finished")


def test_spans_of_a_trace_leave_together_in_order_of_arrival_once_it_was_quiet() -> None:
    buffer = BufferUnderTest()
    buffer.admit(batch(GRANDCHILD))
    buffer.pass_time(1)
    buffer.admit(batch(ROOT, CHILD))

    before = buffer.pass_time(1.5)
    (trace,) = buffer.pass_time(0.5)

    assert [] == before
    assert [GRANDCHILD, ROOT, CHILD] == trace.spans
    assert ("root", trace_id(1), 3.0) == (trace.reason, trace.trace_id, trace.held_seconds)
    assert (False, False, "") == (trace.interrupted, trace.backfill, trace.tenant)


def test_a_root_is_not_judged_within_its_request_nor_before_its_grace_has_passed() -> None:
    buffer = BufferUnderTest(config(root_grace="0s"))

    buffer.admit(batch(ROOT, CHILD))
    (trace,) = buffer.buffer.poll()

    assert [ROOT, CHILD] == trace.spans


def test_every_span_starts_the_quiet_time_again() -> None:
    buffer = BufferUnderTest()
    buffer.admit(batch(ROOT))

    finished = []
    for number in range(2, 8):
        finished += buffer.pass_time(1.5)
        buffer.admit(batch(raw_span(number, parent=1)))
    after, trace = finish_time(buffer)

    assert [] == finished
    assert (2.0, 7) == (after, len(trace.spans))


def test_traces_are_apart_even_within_one_request() -> None:
    buffer = BufferUnderTest()

    buffer.admit(batch(ROOT), batch(raw_span(1, trace=2), trace=2))
    finished = buffer.pass_time(2)

    assert {trace_id(1), trace_id(2)} == {trace.trace_id for trace in finished}


def test_one_trace_id_of_two_tenants_is_two_traces() -> None:
    buffer = BufferUnderTest()

    buffer.admit(batch(ROOT, tenant="a"), batch(ROOT, tenant="b"))
    finished = buffer.pass_time(2)

    assert ["a", "b"] == sorted(trace.tenant for trace in finished)
    assert [trace_id(1)] * 2 == [trace.trace_id for trace in finished]


@pytest.mark.parametrize(
    ("spans", "after", "reason"),
    [
        pytest.param([ROOT, CHILD], 2, "root", id="complete"),
        pytest.param([ROOT, GRANDCHILD], 10, "root_incomplete", id="a parent is missing"),
        pytest.param([CHILD, GRANDCHILD], 300, "idle", id="no root"),
        pytest.param([raw_span(2, parent=9, flags=REMOTE_PARENT)], 10, "root", id="remote parent, absent"),
        pytest.param(
            [raw_span(2, parent=9, flags=0x200)], 300, "idle", id="remote bit without saying so is no root"
        ),
        pytest.param(
            [ROOT, raw_span(2, parent=1, flags=REMOTE_PARENT)], 2, "root", id="remote parent, present"
        ),
        pytest.param([ROOT, raw_span(2, parent=1, of=envelope("other"))], 6, "root", id="two service names"),
        pytest.param([raw_span(1, kind=Span.SPAN_KIND_SERVER)], 6, "root", id="a SERVER span"),
        pytest.param([raw_span(1, kind=Span.SPAN_KIND_CONSUMER)], 6, "root", id="a CONSUMER span"),
        pytest.param([raw_span(1, kind=Span.SPAN_KIND_CLIENT)], 2, "root", id="a plain CLIENT span"),
        pytest.param(
            [raw_span(1, kind=Span.SPAN_KIND_CLIENT, attribute="mcp.method.name")],
            6,
            "root",
            id="an MCP client span",
        ),
        pytest.param(
            [ROOT, raw_span(2, parent=9), raw_span(9, parent=1)], 2, "root", id="a child before its parent"
        ),
        pytest.param([raw_span(1, parent=1)], 300, "idle", id="a span that is its own parent"),
    ],
)
def test_quiet_time_depends_on_what_the_spans_show(spans: list[RawSpan], after: float, reason: str) -> None:
    buffer = BufferUnderTest()
    buffer.admit(batch(*spans))

    passed, trace = finish_time(buffer)

    assert (after, reason) == (passed, trace.reason)


def test_a_root_that_comes_late_ends_the_long_wait() -> None:
    buffer = BufferUnderTest()
    buffer.admit(batch(CHILD))
    buffer.pass_time(200)

    buffer.admit(batch(ROOT))
    passed, trace = finish_time(buffer)

    assert (2.0, "root", 202.0) == (passed, trace.reason, trace.held_seconds)


def test_a_missing_parent_that_comes_during_the_wait_completes_the_trace() -> None:
    buffer = BufferUnderTest()
    buffer.admit(batch(ROOT, GRANDCHILD))
    buffer.pass_time(5)

    buffer.admit(batch(CHILD))
    passed, trace = finish_time(buffer)

    assert (2.0, "root") == (passed, trace.reason)


def test_a_trace_that_is_never_quiet_ends_at_its_age() -> None:
    buffer = BufferUnderTest(config(max_trace_age="20s"))
    finished = []

    for number in range(1, 22):
        buffer.admit(batch(raw_span(number, parent=1 if number > 1 else None)))
        finished += buffer.pass_time(1)

    assert ["max_age"] == reasons(finished)
    assert 20 == len(finished[0].spans)
    assert 1 == buffer.metrics.late_spans.value()


def test_a_span_that_comes_twice_is_dropped_as_duplicate() -> None:
    buffer = BufferUnderTest()

    buffer.admit(batch(ROOT, CHILD))
    buffer.admit(batch(raw_span(2, parent=1), ROOT))
    (trace,) = buffer.pass_time(2)

    assert [ROOT, CHILD] == trace.spans
    assert 2 == buffer.metrics.spans_dropped.value("duplicate", "")
    assert 4 == buffer.metrics.spans_received.value()
    assert held_bytes(trace.spans) == buffer.limiter.used


def test_duplicates_alone_do_not_start_the_quiet_time_again() -> None:
    buffer = BufferUnderTest()
    buffer.admit(batch(CHILD), batch(ROOT))

    buffer.pass_time(1.5)
    buffer.admit(batch(CHILD, ROOT))

    (finished,) = buffer.pass_time(0.5)
    assert FinishReason.ROOT is finished.reason


def test_what_comes_beside_duplicates_or_contradicts_them_starts_the_quiet_time_again() -> None:
    for news in (GRANDCHILD, raw_span(2, parent=1, name="other")):
        buffer = BufferUnderTest()
        buffer.admit(batch(CHILD, ROOT))

        buffer.pass_time(1.5)
        buffer.admit(batch(CHILD, news, ROOT))

        assert [] == buffer.pass_time(1.5)
        assert 1 == len(buffer.pass_time(0.5))


def test_duplicates_of_an_old_trace_make_it_no_backfill() -> None:
    buffer = BufferUnderTest(config(root_grace="1000s", max_lateness="60s"))
    buffer.admit(batch(ROOT))

    buffer.pass_time(120)
    buffer.admit(batch(ROOT))

    (finished,) = buffer.pass_time(880)
    assert not finished.backfill


def test_a_span_that_stands_twice_in_one_request_is_dropped_as_duplicate() -> None:
    buffer = BufferUnderTest()

    buffer.admit(batch(ROOT, ROOT), batch(ROOT))
    (trace,) = buffer.pass_time(2)

    assert [ROOT] == trace.spans
    assert 2 == buffer.metrics.spans_dropped.value("duplicate", "")
    assert held_bytes(trace.spans) == buffer.limiter.used


LATER = raw_span(2, parent=1, end=START_UNIX_NANO + 1)
LONGER = raw_span(2, parent=1, name="a longer name")
GREATER = raw_span(2, parent=1, name="spbn")


@pytest.mark.parametrize(
    ("kept", "dropped"),
    [
        pytest.param(LATER, LONGER, id="the later end"),
        pytest.param(LONGER, GREATER, id="then the longer"),
        pytest.param(GREATER, CHILD, id="then the greater bytes"),
    ],
)
def test_of_two_spans_with_one_id_the_same_is_kept_in_either_order(kept: RawSpan, dropped: RawSpan) -> None:
    finished = []
    for order in permutations([kept, dropped]):
        buffer = BufferUnderTest()
        buffer.admit(batch(ROOT))
        for span in order:
            buffer.admit(batch(span))
        finished += buffer.pass_time(2)

        assert 1 == buffer.metrics.spans_dropped.value("conflict", "")
        assert held_bytes([ROOT, kept]) == buffer.limiter.used

    assert [[ROOT, kept]] * 2 == [trace.spans for trace in finished]


def test_of_two_resources_of_one_span_the_same_is_kept_in_either_order() -> None:
    one, other = raw_span(1, of=envelope("a")), raw_span(1, of=envelope("b"))
    finished = []

    for order in permutations([one, other]):
        buffer = BufferUnderTest()
        buffer.admit(batch(*order))
        finished += buffer.pass_time(2)

    assert [[other]] * 2 == [trace.spans for trace in finished]


def test_a_replaced_span_no_longer_shapes_its_trace() -> None:
    buffer = BufferUnderTest()
    buffer.admit(batch(ROOT, raw_span(2, parent=9)))
    buffer.pass_time(3)

    buffer.admit(batch(LATER))
    passed, trace = finish_time(buffer)

    assert (2.0, "root") == (passed, trace.reason)


def test_a_span_after_the_finish_is_late_and_opens_no_second_trace() -> None:
    buffer = BufferUnderTest()
    buffer.admit(batch(ROOT))
    (trace,) = buffer.pass_time(2)

    late = buffer.admit(batch(CHILD))
    finished = buffer.pass_time(400)

    assert [batch(CHILD).trace_id] == [each.trace_id for each in late]
    assert [[CHILD]] == [each.spans for each in late]
    assert [] == finished
    assert 1 == buffer.metrics.late_spans.value()
    assert held_bytes([*trace.spans, CHILD]) == buffer.limiter.used


def test_a_late_span_that_was_graded_or_came_late_before_is_a_duplicate() -> None:
    buffer = BufferUnderTest()
    buffer.admit(batch(ROOT))
    buffer.pass_time(2)
    buffer.admit(batch(CHILD))

    late = buffer.admit(batch(ROOT, CHILD, GRANDCHILD))

    assert [[GRANDCHILD]] == [each.spans for each in late]
    assert 2 == buffer.metrics.spans_dropped.value("duplicate", "")
    assert 2 == buffer.metrics.late_spans.value()


def test_a_request_of_late_duplicates_only_leaves_nothing() -> None:
    buffer = BufferUnderTest()
    buffer.admit(batch(ROOT))
    buffer.pass_time(2)
    used = buffer.limiter.used

    late = buffer.admit(batch(ROOT))

    assert [] == late
    assert used == buffer.limiter.used


def test_a_trace_that_is_no_longer_remembered_opens_again() -> None:
    buffer = BufferUnderTest(finished_traces=FinishedTraces(max_traces=1))
    buffer.admit(batch(ROOT))
    buffer.pass_time(2)
    buffer.admit(batch(raw_span(1, trace=2), trace=2))
    buffer.pass_time(2)

    late = buffer.admit(batch(ROOT))

    assert [] == late
    assert ["root"] == reasons(buffer.pass_time(2))


@pytest.mark.parametrize("settings", [{"max_spans_per_trace": 3}, {"max_bytes_per_trace": 1000}])
def test_a_trace_over_its_limits_finishes_and_later_spans_are_late(settings: dict[str, object]) -> None:
    buffer = BufferUnderTest(config(**settings))
    spans = [raw_span(number) for number in range(1, 5)]

    buffer.admit(batch(*spans[:3]))
    within = buffer.buffer.poll()
    buffer.admit(batch(spans[3]))
    late = buffer.admit(batch(raw_span(9)))
    held = [buffer.buffer.spans_held, buffer.metrics.traces_held.value()]
    finished = buffer.buffer.poll()

    assert [] == within
    assert 1 == len(late)
    assert [4, 1] == held
    assert ["over_limit"] == reasons(finished)
    assert spans == finished[0].spans
    assert (0, 0) == (buffer.buffer.held_bytes, buffer.metrics.traces_held.value())


def test_a_full_buffer_refuses_the_whole_request() -> None:
    first, second = batch(ROOT), batch(raw_span(1, trace=2), raw_span(2, trace=2), trace=2)
    room = held_bytes(first.spans) + held_bytes(second.spans) + 2 * TRACE_OVERHEAD_BYTES
    buffer = BufferUnderTest(limit_bytes=room - 1)
    buffer.admit(first)

    with pytest.raises(Overloaded, match="send the request again"):
        buffer.buffer.admit([batch(CHILD), second])

    assert (1, 1) == (buffer.buffer.spans_held, buffer.metrics.traces_held.value())
    assert 1 == buffer.metrics.spans_received.value()
    assert held_bytes(first.spans) + TRACE_OVERHEAD_BYTES == buffer.limiter.used == buffer.buffer.held_bytes


def test_a_request_that_could_never_fit_is_refused_for_good() -> None:
    buffer = BufferUnderTest(limit_bytes=1000)

    with pytest.raises(RequestTooLarge, match="more than the limit of 1000"):
        buffer.buffer.admit([batch(ROOT)])

    assert 0 == buffer.limiter.used


def test_a_trace_whose_spans_were_refused_for_good_is_interrupted() -> None:
    buffer = BufferUnderTest(limit_bytes=10_000)
    with pytest.raises(RequestTooLarge):
        buffer.buffer.admit([batch(*(raw_span(number, parent=1) for number in range(2, 100)))])

    buffer.admit(batch(ROOT))
    _, trace = finish_time(buffer)

    assert ("root", True) == (trace.reason, trace.interrupted)


def test_a_buffer_that_fills_finishes_the_longest_quiet_traces_first() -> None:
    one = held_bytes([CHILD]) + TRACE_OVERHEAD_BYTES
    buffer = BufferUnderTest(config(idle_timeout="1h"), limit_bytes=10 * one)
    for number in range(1, 11):
        buffer.admit(batch(raw_span(2, parent=1, trace=number), trace=number))

    finished = buffer.buffer.poll()

    assert [(trace_id(1), "pressure"), (trace_id(2), "pressure")] == [
        (trace.trace_id, trace.reason.value) for trace in finished
    ]
    assert 8 * one == buffer.buffer.held_bytes
    assert [] == buffer.buffer.poll()


def test_a_span_makes_its_trace_the_last_to_finish_under_pressure() -> None:
    one = held_bytes([CHILD]) + TRACE_OVERHEAD_BYTES
    buffer = BufferUnderTest(config(idle_timeout="1h"), limit_bytes=10 * one)
    for number in range(1, 9):
        buffer.admit(batch(raw_span(2, parent=1, trace=number), trace=number))

    buffer.admit(batch(raw_span(3, parent=1, trace=1), trace=1))
    finished = buffer.buffer.poll()

    assert [trace_id(2)] == [trace.trace_id for trace in finished]


def test_bytes_that_wait_in_queues_put_no_pressure_on_the_buffer() -> None:
    one = held_bytes([CHILD]) + TRACE_OVERHEAD_BYTES
    buffer = BufferUnderTest(limit_bytes=10 * one)
    buffer.admit(batch(CHILD))

    assert buffer.limiter.try_acquire(9 * one)

    assert [] == buffer.buffer.poll()


def test_room_is_made_for_a_large_request_that_was_refused_below_the_mark() -> None:
    one = held_bytes([CHILD]) + TRACE_OVERHEAD_BYTES
    buffer = BufferUnderTest(limit_bytes=10 * one)
    for number in range(1, 6):
        buffer.admit(batch(raw_span(2, parent=1, trace=number), trace=number))
    large = [batch(raw_span(2, parent=1, trace=number), trace=number) for number in range(11, 18)]
    with pytest.raises(Overloaded):
        buffer.buffer.admit(large)
    buffer.buffer.note_refused(large)

    finished = buffer.buffer.poll()
    for trace in finished:
        buffer.limiter.release(held_bytes(trace.spans))
    buffer.admit(*large)

    assert ["pressure"] * 2 == reasons(finished)
    assert 10 == buffer.buffer.spans_held


def test_quiet_time_does_not_pass_while_requests_are_refused_and_ten_seconds_after() -> None:
    buffer = BufferUnderTest()
    buffer.admit(batch(ROOT))
    finished = []

    for _ in range(20):
        finished += buffer.pass_time(1)
        buffer.buffer.note_refused([])
    passed, trace = finish_time(buffer)

    assert [] == finished
    assert (11.0, "root", False) == (passed, trace.reason, trace.interrupted)
    assert 29 == buffer.metrics.finish_clock_standstill_seconds.value()


def test_a_trace_with_refused_spans_that_never_came_back_is_interrupted() -> None:
    buffer = BufferUnderTest()
    buffer.admit(batch(ROOT))
    buffer.buffer.note_refused([batch(CHILD)])

    passed, trace = finish_time(buffer)

    assert (20.0, "root", True) == (passed, trace.reason, trace.interrupted)


def test_refused_spans_that_came_back_leave_no_mark() -> None:
    buffer = BufferUnderTest()
    buffer.admit(batch(ROOT))
    buffer.buffer.note_refused([batch(CHILD, GRANDCHILD)])
    buffer.buffer.note_refused([batch(CHILD, GRANDCHILD)])

    buffer.pass_time(3)
    buffer.admit(batch(GRANDCHILD, CHILD))
    passed, trace = finish_time(buffer)

    assert (9.0, "root", False) == (passed, trace.reason, trace.interrupted)


def test_a_trace_first_seen_after_some_of_its_spans_were_refused_is_interrupted() -> None:
    buffer = BufferUnderTest()
    buffer.buffer.note_refused([batch(CHILD), batch(raw_span(2, trace=2), trace=2)])
    buffer.pass_time(60)

    buffer.admit(batch(ROOT), batch(raw_span(1, trace=3), trace=3))
    finished = buffer.pass_time(10)

    assert {trace_id(1): True, trace_id(3): False} == {
        trace.trace_id: trace.interrupted for trace in finished
    }


def test_a_refused_repeat_of_spans_that_are_held_leaves_no_mark() -> None:
    buffer = BufferUnderTest()
    buffer.admit(batch(ROOT))

    buffer.buffer.note_refused([batch(ROOT)])
    _, trace = finish_time(buffer)

    assert trace.interrupted is False


def test_spans_refused_after_the_finish_are_not_waited_for() -> None:
    buffer = BufferUnderTest()
    buffer.admit(batch(ROOT))
    buffer.pass_time(2)

    buffer.buffer.note_refused([batch(CHILD)])

    assert not buffer.buffer._refused


def test_an_outage_of_a_moment_interrupts_every_trace_of_which_it_may_have_cost_spans() -> None:
    buffer = BufferUnderTest()
    buffer.admit(batch(ROOT))
    buffer.pass_time(1)

    record_outage(buffer.buffer)
    now = START_UNIX_NANO + SECOND
    buffer.pass_time(1)
    begun_before = raw_span(1, trace=2, start=now - 1, end=now + SECOND)
    begun_after = raw_span(1, trace=3, start=now + 1, end=now + SECOND)
    buffer.admit(batch(begun_before, trace=2), batch(begun_after, trace=3))
    finished = buffer.pass_time(15)

    assert {trace_id(1): True, trace_id(2): True, trace_id(3): False} == {
        trace.trace_id: trace.interrupted for trace in finished
    }


def test_a_trace_of_the_millisecond_in_which_the_service_became_ready_is_not_interrupted() -> None:
    buffer = BufferUnderTest()
    buffer.clock.advance(0.0109)
    buffer.buffer.note_ready()

    buffer.admit(*(batch(began_at(milliseconds), trace=1 + milliseconds) for milliseconds in (9, 10)))
    finished = buffer.pass_time(15)

    assert [(10, True), (11, False)] == [(trace.trace_id[-1], trace.interrupted) for trace in finished]


def began_at(milliseconds: int) -> RawSpan:
    start = START_UNIX_NANO + milliseconds * 1_000_000
    return raw_span(1, start=start, end=start + SECOND)


def rerouted(*, ago: int = 6, seconds: float = 6) -> BufferUnderTest:
    """A buffer an hour after its start that has just heard of a change of the replicas."""
    buffer = BufferUnderTest()
    buffer.buffer.note_ready()
    buffer.pass_time(3600)
    buffer.buffer.note_rerouting(buffer.clock.unix_nano() - ago * SECOND, seconds)
    return buffer


def began(
    buffer: BufferUnderTest, seconds_ago: int, *, number: int = 1, parent: int | None = None
) -> RawSpan:
    start = buffer.clock.unix_nano() - seconds_ago * SECOND
    return raw_span(number, parent, start=start, end=start + seconds_ago * SECOND)


def test_a_trace_under_way_while_the_replicas_changed_is_interrupted() -> None:
    buffer = rerouted()

    buffer.admit(batch(began(buffer, 10)))
    (trace,) = buffer.pass_time(2)

    assert (True, True) == (trace.interrupted, trace.split)
    assert 1 == buffer.metrics.traces_interrupted.value("peers")
    assert 0 == buffer.metrics.traces_orphaned.value()


def test_a_trace_that_began_before_a_change_was_known_everywhere_is_interrupted_however_late_it_comes() -> (
    None
):
    buffer = rerouted()

    buffer.pass_time(300)
    buffer.admit(batch(began(buffer, 295)))
    (trace,) = buffer.pass_time(2)

    assert trace.split


def test_a_trace_that_was_held_when_a_change_became_known_is_interrupted() -> None:
    buffer = BufferUnderTest()
    buffer.buffer.note_ready()
    buffer.pass_time(60)
    buffer.admit(batch(began(buffer, 5)))

    buffer.buffer.note_rerouting(buffer.clock.unix_nano() - 6 * SECOND, 6)
    (trace,) = buffer.pass_time(2)

    assert trace.split


def test_a_trace_that_began_after_a_change_was_known_everywhere_is_not_interrupted() -> None:
    buffer = rerouted()

    buffer.pass_time(8)
    buffer.admit(batch(began(buffer, 1)))
    (trace,) = buffer.pass_time(2)

    assert (False, False) == (trace.interrupted, trace.split)
    assert 0 == buffer.metrics.traces_interrupted.value("peers")


def test_a_trace_that_only_waits_for_news_of_the_replicas_is_not_interrupted_by_a_later_change() -> None:
    buffer = BufferUnderTest(verdict_delay=10)
    buffer.buffer.note_ready()
    buffer.pass_time(60)
    buffer.admit(batch(began(buffer, 5)))
    buffer.admit(batch(began(buffer, 5, number=2), trace=2))

    assert [] == buffer.pass_time(1.5)
    buffer.admit(batch(began(buffer, 1, number=3, parent=2), trace=2))
    assert [] == buffer.pass_time(4.5)
    buffer.buffer.note_rerouting(buffer.clock.unix_nano() - 3 * SECOND, 6)

    # Quiet for its 2 s before the change, and for less than that.
    assert [(1, False), (2, True)] == [(t.trace_id[-1], t.split) for t in buffer.pass_time(20)]


def test_a_part_of_a_split_trace_that_lacks_its_root_or_parents_is_counted() -> None:
    buffer = rerouted()

    buffer.admit(batch(began(buffer, 10, number=2, parent=1)))
    buffer.admit(
        batch(raw_span(1, trace=2), began(buffer, 10, number=3, parent=9), trace=2),
    )
    finished = buffer.pass_time(300)

    assert [("root_incomplete", True), ("idle", True)] == [(t.reason.value, t.split) for t in finished]
    assert 2 == buffer.metrics.traces_orphaned.value()


def test_a_trace_that_began_before_the_start_is_told_as_that_also_while_the_replicas_change() -> None:
    buffer = BufferUnderTest()
    buffer.buffer.note_ready()
    buffer.buffer.note_rerouting(START_UNIX_NANO, 6)

    buffer.admit(batch(began(buffer, 10)))
    buffer.admit(batch(began(buffer, 0, number=5), trace=2))
    finished = buffer.pass_time(2)

    assert [False, True] == [trace.split for trace in finished]
    assert [1, 1] == [buffer.metrics.traces_interrupted.value(reason) for reason in ("start", "peers")]


def test_a_stopped_process_finishes_nothing_on_waking_and_interrupts_what_was_open() -> None:
    buffer = BufferUnderTest()
    buffer.admit(batch(ROOT))

    on_waking = buffer.stop_process(60)
    during = buffer.pass_time(10)
    (trace,) = buffer.pass_time(2)

    assert [] == [*on_waking, *during]
    assert ("root", True, 72.0) == (trace.reason, trace.interrupted, trace.held_seconds)


def test_a_short_stop_delays_the_finish_and_interrupts_nothing() -> None:
    buffer = BufferUnderTest()
    buffer.admit(batch(ROOT))

    on_waking = buffer.stop_process(4)
    passed, trace = finish_time(buffer)

    assert [] == on_waking
    assert (12.0, False) == (passed, trace.interrupted)


def test_a_request_is_what_notices_that_the_process_was_stopped() -> None:
    buffer = BufferUnderTest()
    buffer.admit(batch(ROOT))

    buffer.clock.advance(60)
    buffer.admit(batch(raw_span(1, trace=2), trace=2))
    finished = buffer.pass_time(12)

    assert [True, True] == [trace.interrupted for trace in finished]


def test_a_long_run_that_was_going_on_during_a_stop_is_interrupted_though_it_is_seen_much_later() -> None:
    buffer = BufferUnderTest()
    buffer.stop_process(60)
    buffer.pass_time(100)
    begun_during, ended = START_UNIX_NANO + 30 * SECOND, START_UNIX_NANO + 160 * SECOND

    buffer.admit(
        batch(raw_span(1, start=begun_during, end=ended)),
        batch(raw_span(1, trace=2, start=begun_during + 60 * SECOND, end=ended), trace=2),
    )
    finished = buffer.pass_time(2)

    assert {trace_id(1): True, trace_id(2): False} == {
        trace.trace_id: trace.interrupted for trace in finished
    }


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        pytest.param([-901], True, id="older"),
        pytest.param([-900], False, id="exactly as old as allowed"),
        pytest.param([-5000, -2000], True, id="all older"),
        pytest.param([-5000, -10], False, id="one span in time makes it live"),
        pytest.param([3600], False, id="from the future"),
    ],
)
def test_a_trace_whose_last_end_is_too_long_ago_is_backfill(ends: list[int], expected: bool) -> None:
    buffer = BufferUnderTest()
    spans = [raw_span(number, end=START_UNIX_NANO + end * SECOND) for number, end in enumerate(ends, start=1)]

    buffer.admit(batch(*spans))
    (trace,) = buffer.pass_time(2)

    assert expected is trace.backfill


def test_waiting_in_the_buffer_is_not_lateness() -> None:
    buffer = BufferUnderTest(config(max_lateness="10s", idle_timeout="30s"))

    buffer.admit(batch(CHILD))
    _, trace = finish_time(buffer)

    assert trace.backfill is False


def test_spans_without_an_end_are_not_backfill() -> None:
    buffer = BufferUnderTest()

    buffer.admit(batch(raw_span(1, start=0, end=0)))
    (trace,) = buffer.pass_time(2)

    assert trace.backfill is False


def test_shutdown_finishes_everything_in_order_of_first_arrival() -> None:
    buffer = BufferUnderTest(config(max_spans_per_trace=1))
    for number in (1, 2, 3):
        buffer.admit(batch(raw_span(2, parent=1, trace=number), trace=number))
    buffer.admit(batch(raw_span(1, trace=2), trace=2))

    finished = buffer.buffer.finish_all(FinishReason.SHUTDOWN)

    assert [(2, "over_limit"), (1, "shutdown"), (3, "shutdown")] == [
        (int.from_bytes(trace.trace_id, "big"), trace.reason.value) for trace in finished
    ]
    assert (0, 0, 0) == (buffer.buffer.spans_held, buffer.buffer.held_bytes, len(buffer.pass_time(400)))
    assert sum(held_bytes(trace.spans) for trace in finished) == buffer.limiter.used


def test_settling_gives_the_reasons_of_unlimited_quiet() -> None:
    buffer = BufferUnderTest()
    buffer.admit(batch(ROOT, CHILD))
    buffer.admit(batch(raw_span(2, parent=1, trace=2), trace=2))
    buffer.admit(batch(raw_span(1, trace=3), raw_span(3, parent=2, trace=3), trace=3))
    buffer.admit(batch(GRANDCHILD))

    finished = buffer.buffer.settle()

    assert ["root", "idle", "root_incomplete"] == reasons(finished)
    assert {"root": 1, "idle": 1, "root_incomplete": 1} == {
        labels[0]: count for labels, count in buffer.metrics.traces_finished.values.items() if count
    }


def test_an_empty_buffer_has_nothing_to_give() -> None:
    buffer = BufferUnderTest()

    buffer.admit()
    buffer.admit(batch())

    assert [] == [
        *buffer.buffer.poll(),
        *buffer.buffer.settle(),
        *buffer.buffer.finish_all(FinishReason.SHUTDOWN),
    ]
    assert 0 == buffer.limiter.used


def test_a_poll_can_be_taken_in_pieces() -> None:
    buffer = BufferUnderTest()
    for number in range(1, 6):
        buffer.admit(batch(raw_span(1, trace=number), trace=number))
    buffer.pass_time(1.5)
    buffer.clock.advance(0.5)

    pieces = [len(buffer.buffer.poll(max_traces=2)) for _ in range(4)]

    assert [2, 2, 1, 0] == pieces


def test_span_ids_reach_the_memory_of_finished_traces() -> None:
    finished = FinishedTraces()
    buffer = BufferUnderTest(finished_traces=finished)
    buffer.admit(batch(ROOT))

    buffer.pass_time(2)

    assert finished.add_late_span(trace_id(1), span_id(1)) is False


def test_a_trace_cut_short_after_its_grace_was_quiet_and_one_cut_within_it_was_not() -> None:
    buffer = BufferUnderTest()
    buffer.admit(batch(raw_span(2, parent=1, trace=1), trace=1))  # its parent still runs
    buffer.pass_time(10)
    buffer.admit(batch(raw_span(2, parent=1, trace=2), trace=2))
    buffer.pass_time(1)

    finished = buffer.buffer.finish_all(FinishReason.SHUTDOWN)

    assert [True, False] == [trace.was_quiet for trace in finished]


def test_a_request_that_nothing_held_makes_room_for_puts_no_pressure_on_later_ones() -> None:
    one = held_bytes([CHILD]) + TRACE_OVERHEAD_BYTES
    shared = [20 * one]  # more than all there is: resources, counted when they are read
    buffer = BufferUnderTest(limit_bytes=10 * one, shared_bytes=lambda: shared[0])
    with pytest.raises(Overloaded):
        buffer.buffer.admit([batch(CHILD)])
    assert [] == buffer.buffer.poll()

    shared[0] = 0
    buffer.admit(batch(CHILD))

    assert [] == buffer.buffer.poll()
