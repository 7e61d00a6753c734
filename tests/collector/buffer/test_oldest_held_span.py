"""The oldest span that is held, as a scrape sees it."""

from collector.buffer import FinishedTraces, GroupByTraceConfig
from tests.support.held_spans import START_UNIX_NANO, BufferUnderTest, batch, raw_span

START = START_UNIX_NANO / 1e9


def seconds_since_start(under_test: BufferUnderTest) -> float:
    return under_test.metrics.oldest_held_span.value() - START


def test_with_nothing_held_it_is_the_time_of_the_scrape() -> None:
    under_test = BufferUnderTest()

    under_test.clock.advance(7)

    assert 7 == seconds_since_start(under_test)


def test_it_is_the_first_span_of_the_oldest_trace_whichever_was_touched_last() -> None:
    under_test = BufferUnderTest()
    under_test.pass_time(1)
    under_test.admit(batch(raw_span(1, 9), trace=1))
    under_test.pass_time(1)
    under_test.admit(batch(raw_span(2, 9, trace=2), trace=2))
    under_test.pass_time(1)

    under_test.admit(batch(raw_span(3, 9), trace=1))

    assert 1 == seconds_since_start(under_test)


def test_it_moves_on_when_the_oldest_trace_is_finished() -> None:
    under_test = BufferUnderTest()
    under_test.admit(batch(raw_span(1), trace=1))
    under_test.pass_time(1)
    under_test.admit(batch(raw_span(2, 9, trace=2), trace=2))

    finished = under_test.pass_time(2)

    assert 1 == len(finished)
    assert 1 == seconds_since_start(under_test)


def test_a_trace_over_its_limits_is_held_until_it_leaves() -> None:
    under_test = BufferUnderTest(GroupByTraceConfig(max_spans_per_trace=1))
    under_test.admit(batch(raw_span(1), raw_span(2, 1)))
    under_test.clock.advance(0.2)

    before = seconds_since_start(under_test)
    under_test.buffer.poll()

    assert 0 == before
    assert 0.2 == round(seconds_since_start(under_test), 6)


def test_a_trace_that_comes_again_while_its_first_part_is_leaving_breaks_nothing() -> None:
    under_test = BufferUnderTest(
        GroupByTraceConfig(max_spans_per_trace=1), finished_traces=FinishedTraces(max_traces=1)
    )
    for number in (1, 2, 1):
        under_test.admit(batch(raw_span(1, trace=number), raw_span(2, 1, trace=number), trace=number))
    under_test.clock.advance(1)

    finished = under_test.buffer.poll()

    assert 3 == len(finished)
    assert under_test.buffer.oldest_arrival_unix_nano() is None
    assert 1 == seconds_since_start(under_test)
