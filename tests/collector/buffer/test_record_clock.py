"""The clock of a partition: time is what was read, and own seconds only at its end."""

import pytest

from collector.buffer import RecordClock
from collector.clock import ManualClock

START = 1_800_000_000
SECOND = 1_000_000_000


class Reader:
    """A clock, and whoever reads records by it."""

    def __init__(self) -> None:
        self.time = ManualClock(unix_nano=START * SECOND)
        self.clock = RecordClock(self.time)
        self._began = self.clock.now()

    def read(self, second: float) -> None:
        """A record of `second` seconds after the start."""
        self.clock.read(int((START + second) * SECOND))

    def ask(self, seconds: float, every: float = 0.1) -> None:
        """Ask for records for so long, and get none."""
        for _ in range(round(seconds / every)):
            self.time.advance(every)
            self.clock.caught_up()

    @property
    def seconds(self) -> float:
        return self.clock.now()


def test_a_backlog_passes_in_the_time_of_its_records() -> None:
    reader = Reader()

    for second in (-3600, -3590, -1800):
        reader.read(second)
    reader.ask(1)

    assert 1800 == reader.seconds


def test_own_seconds_count_at_the_end_and_join_those_of_the_records() -> None:
    reader = Reader()
    reader.read(0)
    reader.clock.reach_end()

    reader.ask(3)
    at_end = reader.seconds
    reader.time.advance(0.5)
    reader.read(3.2)

    assert 3 == pytest.approx(at_end)
    assert 3.2 == pytest.approx(reader.seconds)


def test_own_seconds_do_not_count_while_records_wait_or_nobody_asks() -> None:
    reader = Reader()
    reader.read(0)
    reader.ask(3)
    waiting = reader.seconds
    reader.clock.reach_end()
    reader.time.advance(0.5)
    unasked = reader.seconds
    reader.clock.leave_end()
    reader.ask(3)

    assert (0, 0, 0) == (waiting, unasked, reader.seconds)


def test_a_gap_adds_nothing_and_neither_do_the_seconds_after_it() -> None:
    reader = Reader()
    reader.read(0)
    reader.clock.reach_end()
    reader.time.advance(12)

    reader.ask(9.9)
    settling = reader.seconds
    reader.ask(1)

    assert 0 == settling
    assert 0.5 < reader.seconds < 1.1


def test_nothing_passes_while_the_broker_is_silent() -> None:
    reader = Reader()
    reader.read(0)
    reader.clock.reach_end()

    reader.clock.stand_still()
    reader.ask(9.9)

    assert 0 == reader.seconds


def test_a_record_from_the_future_is_one_of_now_and_an_old_one_turns_nothing_back() -> None:
    reader = Reader()
    reader.read(-10)
    reader.read(3600)
    future = reader.seconds
    reader.read(-300)

    assert (10, 10) == (future, reader.seconds)
