"""What the process is doing, for the next one: when it received, and which trace it was grading.

A page of memory that is mapped to a file: writing it costs nothing, and it outlives a crash of the process,
though not a power cut, after which the time is too early and the trace may be missing.
"""

import mmap
import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

_FILE = "activity"
_SIZE = 4096
_TIME = struct.Struct("<Q")
_LENGTH = struct.Struct("<H")
_PLACES = (_TIME.size, _SIZE // 2)
"""Of the key of the trace that is graded in the loop, and of the one that is graded in the background."""
_TIMES = struct.Struct("<QQ")
_MAX_OUTAGES = 17
_OUTAGES = _SIZE - _LENGTH.size - _MAX_OUTAGES * _TIMES.size
"""Their number, and the start and end of each."""
_LONGEST_KEY = _OUTAGES - _PLACES[1] - _LENGTH.size


class LastActivity(NamedTuple):
    """What the previous process was doing.

    `in_work` are the keys of traces that it graded; `outages` are start and end, in Unix nanoseconds, of the
    times of which it may have missed spans, oldest first.
    """

    alive_unix_nano: int
    in_work: Sequence[bytes]
    outages: Sequence[tuple[int, int]] = ()


class Activity:
    """The page of this process."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / _FILE
        self._page: mmap.mmap | None = None

    def open(self) -> LastActivity:
        """Map the page and return what it held. Raises OSError."""
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(file, _SIZE)
            page = self._page = mmap.mmap(file, _SIZE)
        finally:
            os.close(file)
        (alive,) = _TIME.unpack_from(page)
        in_work = []
        for place in _PLACES:
            (length,) = _LENGTH.unpack_from(page, place)
            if 0 < length <= _LONGEST_KEY:
                in_work.append(page[place + _LENGTH.size : place + _LENGTH.size + length])
        (count,) = _LENGTH.unpack_from(page, _OUTAGES)
        written = page[_OUTAGES + _LENGTH.size :][: min(count, _MAX_OUTAGES) * _TIMES.size]
        return LastActivity(alive, in_work, list(_TIMES.iter_unpack(written)))

    def note_alive(self, unix_nano: int, outages: Sequence[tuple[int, int]] = ()) -> None:
        """The process receives requests; spans of the last 17 `outages` may be missing."""
        if self._page is None:
            return
        latest = outages[-_MAX_OUTAGES:]
        for number, times in enumerate(latest):
            _TIMES.pack_into(self._page, _OUTAGES + _LENGTH.size + number * _TIMES.size, *times)
        _LENGTH.pack_into(self._page, _OUTAGES, len(latest))
        _TIME.pack_into(self._page, 0, unix_nano)

    def begin(self, key: bytes, *, in_background: bool = False) -> None:
        """The trace of that key is being graded: in the loop, or in the background."""
        if self._page is not None and len(key) <= _LONGEST_KEY:
            written = len(key).to_bytes(_LENGTH.size, "little") + key
            self._page[_PLACES[in_background] : _PLACES[in_background] + len(written)] = written

    def end(self, *, in_background: bool = False) -> None:
        """No trace is being graded there."""
        if self._page is not None:
            _LENGTH.pack_into(self._page, _PLACES[in_background], 0)

    def close(self) -> None:
        """Unmap the page. May be called twice."""
        page, self._page = self._page, None
        if page is not None:
            page.close()
