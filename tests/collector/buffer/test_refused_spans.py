from collector.buffer.outages import Outages, RefusedSpans
from tests.support.held_spans import span_id, trace_id


def test_a_trace_is_known_until_every_refused_span_came() -> None:
    refused = RefusedSpans(Outages())
    refused.add(trace_id(1), [span_id(1), span_id(2)], 0, 0.0)

    refused.remove(trace_id(1), [span_id(1), span_id(3)])
    after_one = trace_id(1) in refused
    refused.remove(trace_id(1), [span_id(2)])

    assert (True, False) == (after_one, trace_id(1) in refused)
    assert not refused


def test_a_span_refused_again_counts_once() -> None:
    refused = RefusedSpans(Outages())

    refused.add(trace_id(1), [span_id(1)], 0, 0.0)
    refused.add(trace_id(1), [span_id(1)], 5, 5.0)

    assert 1 == len(refused)


def test_beyond_the_limit_the_oldest_trace_becomes_an_outage() -> None:
    outages = Outages()
    refused = RefusedSpans(outages, max_spans=2)
    refused.add(trace_id(1), [span_id(1)], 1_000, 1.0)
    refused.add(trace_id(2), [span_id(2)], 2_000, 2.0)
    before = outages.touch(0.5, 500, 600)

    refused.add(trace_id(3), [span_id(3)], 3_000, 3.0)

    assert (False, True) == (before, outages.touch(0.5, 500, 600))
    assert (False, True, True) == tuple(trace_id(number) in refused for number in (1, 2, 3))
    assert 2 == len(refused)


def test_a_request_larger_than_the_record_is_an_outage_of_its_own() -> None:
    outages = Outages()
    refused = RefusedSpans(outages, max_spans=2)

    refused.add(trace_id(1), [span_id(number) for number in range(1, 5)], 1_000, 1.0)

    assert outages.touch(0.5, 500, 600) is True
    assert 0 == len(refused)


def test_forgetting_and_empty_lists_leave_nothing() -> None:
    refused = RefusedSpans(Outages())
    refused.add(trace_id(1), [span_id(1)], 0, 0.0)

    refused.add(trace_id(2), [], 0, 0.0)
    refused.forget(trace_id(1))
    refused.forget(trace_id(9))
    refused.remove(trace_id(9), [span_id(1)])

    assert 0 == len(refused)
    assert not refused
