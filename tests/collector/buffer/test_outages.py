import pytest

from collector.buffer.outages import Outage, Outages

SECOND = 1_000_000_000
# An outage from second 100 to 120 of the wall clock; the monotonic clock reads 20 at its end.
OUTAGE = Outage(100 * SECOND, 120 * SECOND, 20.0)


@pytest.mark.parametrize(
    ("first_arrival", "start", "end", "expected"),
    [
        pytest.param(5.0, 90, 95, True, id="open during the outage"),
        pytest.param(20.0, 119, 120, True, id="first seen as it ended"),
        pytest.param(25.0, 119, 121, True, id="begun before its end, seen soon after"),
        pytest.param(25.0, 10, 11, True, id="old, but seen soon after"),
        pytest.param(25.0, 121, 124, False, id="begun after it"),
        pytest.param(300.0, 119, 400, True, id="begun before its end, seen much later"),
        pytest.param(300.0, 60, 86, True, id="ended so shortly before it that spans were on their way"),
        pytest.param(300.0, 60, 84, False, id="over before it"),
    ],
)
def test_a_trace_is_touched_when_its_spans_may_have_been_lost(
    first_arrival: float, start: int, end: int, expected: bool
) -> None:
    outages = Outages()
    outages.record(OUTAGE)

    assert expected is outages.touch(first_arrival, start * SECOND, end * SECOND)


def test_without_outages_nothing_is_touched() -> None:
    assert Outages().touch(0.0, 0, 0) is False


def test_close_outages_are_one_whatever_the_order_of_recording() -> None:
    outages = Outages()

    outages.record(Outage(130 * SECOND, 130 * SECOND, 30.0))
    outages.record(OUTAGE)

    assert outages.touch(300.0, 125 * SECOND, 126 * SECOND) is True


def test_many_outages_stay_bounded_and_forget_no_touch() -> None:
    outages = Outages()

    for number in range(1000):
        at = (1000 + number * 100) * SECOND
        outages.record(Outage(at, at, number * 100.0))

    touched = [
        outages.touch(1e6, (1000 + number * 100 - 1) * SECOND, (1000 + number * 100) * SECOND)
        for number in range(1000)
    ]
    assert [True] * 1000 == touched
    assert outages.touch(1e6, (1000 + 999 * 100 + 1) * SECOND, 1 << 62) is False
    assert 16 == len(outages._outages)
