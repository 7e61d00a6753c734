"""Remembers what was read out of bytes, unless they are large."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

LARGEST_CACHED = 16 * 1024
"""Larger bytes are read anew each time: what is remembered is in no memory limit, and adds up."""

_ReadT = TypeVar("_ReadT")


def cached_for_small(entries: int) -> Callable[[Callable[[bytes], _ReadT]], Callable[[bytes], _ReadT]]:
    """A function of bytes that remembers its last `entries` answers for bytes up to `LARGEST_CACHED`."""

    def cached(read: Callable[[bytes], _ReadT]) -> Callable[[bytes], _ReadT]:
        known = lru_cache(maxsize=entries)(read)

        @wraps(read)
        def read_or_known(data: bytes) -> _ReadT:
            return known(data) if len(data) <= LARGEST_CACHED else read(data)

        return read_or_known

    return cached
