"""What the process is at, for the one after it: when it last lived, and which trace it was grading.

A page of memory that is mapped to a file: writing it costs nothing, and it outlives a crash of the process,
though not a power cut, after which the time is too early and the trace may be missing.
"""

import mmap
import os
import struct
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

_FILE = "activity"
_SIZE = 4096
_HEAD = struct.Struct("<QH")
_LONGEST_KEY = _SIZE - _HEAD.size


class LastActivity(NamedTuple):
    """What the process before was at. `in_work` is the key of a trace, empty for none."""

    alive_unix_nano: int
    in_work: bytes


class Activity:
    """The page of this process."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / _FILE
        self._page: mmap.mmap | None = None

    def open(self) -> LastActivity:
        """Map the page; what stood in it. Raises OSError."""
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(file, _SIZE)
            page = self._page = mmap.mmap(file, _SIZE)
        finally:
            os.close(file)
        alive, length = _HEAD.unpack_from(page)
        in_work = page[_HEAD.size : _HEAD.size + length] if length <= _LONGEST_KEY else b""
        return LastActivity(alive, in_work)

    def note_alive(self, unix_nano: int) -> None:
        """The process lives."""
        if self._page is not None:
            self._page[:8] = unix_nano.to_bytes(8, "little")

    def begin(self, key: bytes) -> None:
        """The trace of that key is in work."""
        if self._page is not None and len(key) <= _LONGEST_KEY:
            self._page[_HEAD.size : _HEAD.size + len(key)] = key
            self._page[8:10] = len(key).to_bytes(2, "little")

    def end(self) -> None:
        """No trace is in work."""
        if self._page is not None:
            self._page[8:10] = b"\0\0"

    def close(self) -> None:
        """Let go of the page; safe twice."""
        page, self._page = self._page, None
        if page is not None:
            page.close()

    def __enter__(self) -> "Activity":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
