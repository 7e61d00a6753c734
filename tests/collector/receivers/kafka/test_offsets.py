"""The offset tracker against a model: whatever is held, nothing undelivered is passed."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.receivers.kafka.offsets import OffsetTracker, Progress, read_progress

Step = tuple[str, int, int]


class Model:
    """Every record with its holders, and nothing clever."""

    def __init__(self, offset: int) -> None:
        self.next = offset
        self.holders: dict[int, int] = {}
        self.times: dict[int, int] = {}

    @property
    def offset(self) -> int:
        return min((offset for offset, count in self.holders.items() if count), default=self.next)

    def is_done(self, offset: int) -> bool:
        return offset < self.next and not self.holders.get(offset)


def _play(steps: list[Step], check: Callable[[OffsetTracker, Model], None]) -> None:
    tracker, model = OffsetTracker(Progress(7)), Model(7)
    numbers: list[tuple[int, int]] = []
    for kind, choice, amount in steps:
        held = [pair for pair in numbers if model.holders[pair[1]]]
        if kind == "add":
            offset = model.next + (amount if choice % 4 == 0 else 0)
            number = tracker.add(offset, 1000 + offset)
            assert len(numbers) == number
            numbers.append((number, offset))
            model.next, model.holders[offset], model.times[offset] = offset + 1, 1, 1000 + offset
        elif held:
            number, offset = held[choice % len(held)]
            if kind == "hold":
                tracker.hold(number, amount)
                model.holders[offset] += amount
            else:
                tracker.release(number)
                model.holders[offset] -= 1
        check(tracker, model)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "let_go", "let_go", "hold"]),
        st.integers(0, 1000),
        st.integers(1, 5),
    ),
    max_size=200,
)


@given(STEPS)
@settings(deadline=None)
def test_what_is_committed_is_what_the_model_has_done(steps: list[Step]) -> None:
    def check(tracker: OffsetTracker, model: Model) -> None:
        commit = tracker.commit()
        assert (model.offset, model.next) == (commit.offset, tracker.position)
        progress = read_progress(commit.offset, commit.metadata)
        for offset in model.holders:
            assert model.is_done(offset) == progress.is_done(offset)
        assert not progress.is_done(model.next)
        if model.offset in model.times:
            assert model.times[model.offset] == progress.unix_milli

    _play(steps, check)


@given(STEPS, st.integers(0, 40))
@settings(deadline=None)
def test_metadata_that_is_cut_never_calls_something_done_that_is_not(steps: list[Step], size: int) -> None:
    def check(tracker: OffsetTracker, model: Model) -> None:
        commit = tracker.commit(size)
        assert size >= len(commit.metadata) or commit.metadata.count(" ") == 2
        progress = read_progress(commit.offset, commit.metadata)
        for offset in range(model.next):
            assert model.is_done(offset) or not progress.is_done(offset)

    _play(steps, check)


def test_metadata_stays_within_what_a_broker_takes_and_the_memory_within_what_is_open() -> None:
    tracker = OffsetTracker(Progress(0))
    for offset in range(100_000):
        tracker.add(offset, 1_700_000_000_000 + offset)
    for number in range(1, 100_000, 2):
        tracker.release(number)

    commit = tracker.commit()

    assert 0 == commit.offset
    assert 4000 < len(commit.metadata) <= 4096
    assert 500 < len(read_progress(0, commit.metadata).done)
    for number in range(0, 100_000, 2):
        tracker.release(number)
    assert (100_000, 0) == (tracker.commit().offset, tracker.open_records)
    assert 100_000 > len(tracker._holders)
    assert 100_000 == tracker.add(100_005, 0)
    assert 100_005 == tracker.offset


@pytest.mark.parametrize("metadata", [None, "", "by hand", "1", "1 xyz ", "1 12 a,b,zz", "2 12 1,1"])
def test_metadata_of_others_leaves_the_offset(metadata: str | None) -> None:
    assert Progress(5) == read_progress(5, metadata)


def test_a_record_out_of_order_is_refused() -> None:
    tracker = OffsetTracker(Progress(5))
    tracker.add(5, 0)

    with pytest.raises(ValueError, match="offset 5 is not after 5"):
        tracker.add(5, 0)
