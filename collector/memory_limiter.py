"""The one budget of bytes for held spans: in the buffer, under evaluation and in every sending queue.

A trace's bytes are taken when its spans are admitted and released when the last exporter is done with them.
All calls happen on the event loop's thread.
"""

from collections.abc import Callable

from pydantic import Field

from processors.documents import StrictModel


class MemoryLimiterConfig(StrictModel):
    """`processors.memory_limiter`: how much may be held before requests are refused retryably."""

    limit_mib: int = Field(default=2048, ge=1)
    """Mebibytes of held spans, queues included."""

    @property
    def limit_bytes(self) -> int:
        """The limit in bytes."""
        return self.limit_mib * 1024 * 1024


class MemoryLimiter:
    """Counts bytes of held spans (as `collector.trace.held_bytes` does) against a limit.

    Before an acquisition is refused, the functions of `add_relief` are called in turn, such as those of
    best-effort queues. Each gets the number of bytes required and returns how many it discarded; they are
    given back through `release` once nothing else holds the same spans.

    `shared_bytes` measures what several spans hold together, such as their resources: bytes that fill the
    budget as well, without being acquired or released.
    """

    def __init__(self, limit_bytes: int, shared_bytes: Callable[[], int] = int) -> None:
        self.limit = limit_bytes
        self.shared_bytes = shared_bytes
        self._used = 0
        self._reliefs: list[Callable[[int], int]] = []
        self.add_relief = self._reliefs.append

    @property
    def used(self) -> int:
        """Bytes held now, shared ones included."""
        return self._used + self.shared_bytes()

    def try_acquire(self, count: int) -> bool:
        """Take `count` bytes if they fit under the limit (after relief); False leaves all as it was."""
        while (excess := self.used + count - self.limit) > 0:
            if count > self.limit or not self._relieve(excess):
                return False
        self._used += count
        return True

    def take(self, count: int) -> None:
        """Take `count` bytes whether they fit or not, for what a process before acknowledged."""
        self._used += count

    def release(self, count: int) -> None:
        """Give back `count` bytes that were acquired."""
        if count > self._used:
            raise ValueError(f"{count} bytes released, but only {self._used} are held")
        self._used -= count

    def _relieve(self, excess: int) -> bool:
        """Call the functions in their order until enough is free; False when none could discard any."""
        target = self.used - excess
        has_progress = False
        for relieve in self._reliefs:
            has_progress = bool(relieve(self.used - target)) or has_progress
            if self.used <= target:
                break
        return has_progress
