import pytest

from collector.buffer.finish_clock import FinishClock
from collector.clock import ManualClock


class JumpingClock(ManualClock):
    """A manual clock whose wall time can move alone, as when a machine wakes from suspension."""

    jump = 0

    def unix_nano(self) -> int:
        return super().unix_nano() + self.jump


def run(clock: ManualClock, finish_clock: FinishClock, seconds: float) -> None:
    for _ in range(round(seconds * 2)):
        clock.advance(0.5)
        finish_clock.now()


def test_it_passes_with_the_clock_while_the_process_runs() -> None:
    clock = ManualClock()
    finish_clock = FinishClock(clock)
    finish_clock.now()

    run(clock, finish_clock, 30)

    assert 30 == finish_clock.now()
    assert 0 == finish_clock.standstill_seconds


def test_time_before_the_first_reading_does_not_count() -> None:
    clock = ManualClock()
    finish_clock = FinishClock(clock)

    clock.advance(60)
    first = finish_clock.now()
    run(clock, finish_clock, 3)

    assert 0 == first
    assert 3 == finish_clock.now()


def test_it_stands_still_for_ten_seconds_after_a_refusal() -> None:
    clock = ManualClock()
    finish_clock = FinishClock(clock)
    finish_clock.now()
    run(clock, finish_clock, 2)

    finish_clock.stand_still()
    run(clock, finish_clock, 4)
    finish_clock.stand_still()
    run(clock, finish_clock, 10)
    before = finish_clock.now()
    run(clock, finish_clock, 1)

    assert (2, 3) == (before, finish_clock.now())
    assert 14 == finish_clock.standstill_seconds


def test_the_reading_across_the_end_of_a_standstill_counts_only_the_time_after_it() -> None:
    clock = ManualClock()
    finish_clock = FinishClock(clock)
    finish_clock.stand_still()

    for _ in range(12):
        clock.advance(0.875)
        finish_clock.now()

    assert 0.5 == finish_clock.now()


@pytest.mark.parametrize("gap", [1.5, 20.0, 3600.0])
def test_a_stopped_process_is_a_standstill_and_ten_seconds_more(gap: float) -> None:
    clock = ManualClock()
    finish_clock = FinishClock(clock)
    finish_clock.now()

    clock.advance(gap)
    finish_clock.now()
    run(clock, finish_clock, 10)
    at_end = finish_clock.now()
    run(clock, finish_clock, 2)

    assert (0, 2) == (at_end, finish_clock.now())
    assert gap + 10 == finish_clock.standstill_seconds


def test_a_gap_of_more_than_five_seconds_is_an_outage() -> None:
    clock = ManualClock(unix_nano=10**18)
    finish_clock = FinishClock(clock)
    finish_clock.now()

    clock.advance(5)
    finish_clock.now()
    after_five = finish_clock.outages.touch(0, 10**18, 10**18)
    clock.advance(6)
    finish_clock.now()

    assert after_five is False
    assert finish_clock.outages.touch(0, 10**18, 10**18) is True


def test_a_jump_of_the_wall_clock_alone_counts_as_a_stop() -> None:
    clock = JumpingClock()
    finish_clock = FinishClock(clock)
    finish_clock.now()

    clock.jump = 60 * 10**9
    clock.advance(0.5)
    finish_clock.now()
    run(clock, finish_clock, 10)

    assert 0 == finish_clock.now()
    assert finish_clock.outages.touch(0, 0, 0) is True
