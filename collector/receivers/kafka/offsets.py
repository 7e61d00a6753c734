"""Which records of a partition are done, and what to commit, so that nothing undelivered is ever passed.

A record is done when nothing of it is held any more. The committed offset is the first that is not done;
those done beyond it are in the commit's metadata, so that the next member does not deliver them again.
"""

from array import array
from bisect import bisect_right
from collections.abc import Collection, Iterator
from dataclasses import dataclass

MAX_METADATA_BYTES = 4095
"""What a broker accepts with a committed offset, by default: it refuses 4,096 bytes (seen with 4.1.1)."""
MIN_METADATA_BYTES = 255
"""No commit has less room, however little a broker accepts: a trace in work must fit."""

_VERSION = "1"
_NO_TIME = "-"
_IS_OPEN = "o"
_COMPACT_AT = 4096
_OPEN, _DONE = b"\x01", b"\x00"


@dataclass(frozen=True, slots=True)
class Commit:
    """The next offset to read, and what else is known, as a text."""

    offset: int
    metadata: str


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a member of the group had come, as in a commit of its `OffsetTracker`.

    `unix_milli` is the time of the first record that was not done, None if it is not known. `done` are the
    ranges of offsets beyond `offset` that were done, each without its end, in order. `is_open`: the member
    still had the partition; where this is the last commit, it crashed with it. `in_work` are the ids of the
    traces that were being graded.
    """

    offset: int
    unix_milli: int | None = None
    done: tuple[tuple[int, int], ...] = ()
    is_open: bool = False
    in_work: frozenset[bytes] = frozenset()

    def is_done(self, offset: int) -> bool:
        """Whether the record at `offset` was done."""
        if offset < self.offset:
            return True
        place = bisect_right(self.done, offset, key=lambda span: span[0]) - 1
        return place >= 0 and offset < self.done[place][1]


def read_progress(offset: int, metadata: str | None) -> Progress:
    """What is in a commit; where its metadata was written by something else, the offset alone."""
    version, _, rest = (metadata or "").partition(" ")
    if version != _VERSION:
        return Progress(offset)
    time, _, rest = rest.partition(" ")
    runs, _, marks = rest.partition(" ")
    words = marks.split(",") if marks else []
    is_open = _IS_OPEN in words
    try:
        unix_milli = None if time == _NO_TIME else int(time, 16)
        steps = [int(step, 16) for step in runs.split(",")] if runs else []
        in_work = frozenset(bytes.fromhex(word) for word in words if word != _IS_OPEN)
    except ValueError:
        return Progress(offset)
    done: list[tuple[int, int]] = []
    position = offset
    for gap, length in zip(steps[::2], steps[1::2], strict=False):
        if gap < 0 or length < 0:
            return Progress(offset, unix_milli, (), is_open, in_work)
        done.append((position + gap, position + gap + length))
        position += gap + length
    return Progress(offset, unix_milli, tuple(done), is_open, in_work)


class OffsetTracker:
    """Counts for each record read its holders; 21 bytes a record, each call O(1).

    Records are added in the order of their offsets; an offset that is left out counts as done. They are
    known by their number: the first is 0.
    """

    __slots__ = (
        "_before", "_first", "_head", "_holders", "_is_open", "_last_milli", "_offsets", "_times", "position",
    )  # fmt: skip

    def __init__(self, before: Progress) -> None:
        """`before` is how far the member before had come: that is committed until a record is read."""
        self.position = before.offset
        """The offset behind the last record."""
        self._before = before
        self._last_milli = before.unix_milli
        self._first = 0  # the number of the first record in the arrays
        self._head = 0  # the place of the first that is not done
        self._holders = array("i")
        self._offsets = array("q")
        self._times = array("q")
        self._is_open = bytearray()

    @property
    def offset(self) -> int:
        """The first offset that is not done."""
        return self._offsets[self._head] if self._head < len(self._offsets) else self.position

    @property
    def open_records(self) -> int:
        """Records from the first that is not done to the last."""
        return len(self._offsets) - self._head

    def add(self, offset: int, unix_milli: int) -> int:
        """Enter a record that was read, held once; its number.

        Raises:
            ValueError: one at this offset or a later one was entered before.
        """
        if offset < self.position:
            raise ValueError(f"offset {offset} is not after {self.position - 1}")
        self.position = offset + 1
        self._last_milli = unix_milli
        self._holders.append(1)
        self._offsets.append(offset)
        self._times.append(unix_milli)
        self._is_open.append(1)
        return self._first + len(self._holders) - 1

    def hold(self, record: int, holders: int = 1) -> None:
        """Add holders of something of a record that is not done."""
        self._holders[record - self._first] += holders

    def release(self, record: int) -> None:
        """One holder of something of the record is done with it."""
        place = record - self._first
        self._holders[place] -= 1
        if self._holders[place]:
            return
        self._is_open[place] = 0
        if place != self._head:
            return
        head = self._is_open.find(_OPEN, place)
        self._head = len(self._holders) if head < 0 else head
        if self._head >= _COMPACT_AT and 2 * self._head >= len(self._holders):
            for column in (self._holders, self._offsets, self._times, self._is_open):
                del column[: self._head]
            self._first += self._head
            self._head = 0

    def commit(
        self, max_bytes: int = MAX_METADATA_BYTES, *, is_open: bool = False, in_work: Collection[bytes] = ()
    ) -> Commit:
        """What to commit now, with metadata of at most `max_bytes`; see `Progress` for the rest.

        Offsets that do not fit there are left out: they would be delivered again.
        """
        unix_milli = self._times[self._head] if self._head < len(self._times) else self._last_milli
        time = _NO_TIME if unix_milli is None else f"{max(unix_milli, 0):x}"
        text = f"{_VERSION} {time} "
        words = [*([_IS_OPEN] if is_open else []), *sorted(trace_id.hex() for trace_id in in_work)]
        marks = f" {','.join(words)}" if words else ""
        steps: list[str] = []
        size = len(text) + len(marks)
        offset = position = self.offset
        for start, stop in self._done() if self.position > self._before.offset else self._before.done:
            step = f"{start - position:x},{stop - start:x}"
            size += len(step) + bool(steps)
            if size > max_bytes:
                break
            steps.append(step)
            position = stop
        return Commit(offset, text + ",".join(steps) + marks)

    def _done(self) -> Iterator[tuple[int, int]]:
        """The ranges of offsets beyond the first open one that are done, each without its end."""
        place = self._is_open.find(_DONE, self._head)
        while place >= 0:
            following = self._is_open.find(_OPEN, place)
            yield self._offsets[place], self.position if following < 0 else self._offsets[following]
            place = self._is_open.find(_DONE, following) if following >= 0 else -1
