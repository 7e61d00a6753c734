"""The one budget of bytes for held spans: in the buffer, under evaluation and in every sending queue.

A trace's bytes are taken when its spans are admitted and given back when the last exporter is done with
them. What spans share is not taken for each but measured. All calls happen on the event loop's thread.
"""

from collections.abc import Callable

from pydantic import Field

from processors.documents import StrictModel


class MemoryLimiterConfig(StrictModel):
    """`processors.memory_limiter`: how much may be held before senders are told to come back."""

    limit_mib: int = Field(default=2048, ge=1)
    """Mebibytes of held spans, queues included."""

    @property
    def limit_bytes(self) -> int:
        """The limit in bytes."""
        return self.limit_mib * 1024 * 1024


class MemoryLimiter:
    """Counts bytes of held spans (as `collector.trace.held_bytes` does) against a limit.

    Before an acquisition is refused, the functions of `add_relief` are asked to let go of bytes. Each gets
    the number of bytes wanted and returns how many it let go of; they come back through `release` once
    nobody else holds the same spans. Best-effort queues are such functions; without any, a full budget
    simply refuses.

    `shared_bytes` measures what several spans hold together, such as their resources: bytes that fill the
    budget as well, and that nobody acquires or releases.
    """

    __slots__ = ("_reliefs", "_shared_bytes", "_used", "limit")

    def __init__(self, limit_bytes: int, shared_bytes: Callable[[], int] = int) -> None:
        self.limit = limit_bytes
        self._shared_bytes = shared_bytes
        self._used = 0
        self._reliefs: list[Callable[[int], int]] = []

    @property
    def used(self) -> int:
        """Bytes held now, shared ones included."""
        return self._used + self._shared_bytes()

    @property
    def shared(self) -> int:
        """Bytes that spans hold together now."""
        return self._shared_bytes()

    def add_relief(self, relieve: Callable[[int], int]) -> None:
        """Let `relieve` free bytes when the limit is reached."""
        self._reliefs.append(relieve)

    def try_acquire(self, count: int) -> bool:
        """Take `count` bytes if they fit under the limit (after relief); False leaves all as it was."""
        while (excess := self.used + count - self.limit) > 0:
            if count > self.limit or not self._relieve(excess):
                return False
        self._used += count
        return True

    def take(self, count: int) -> None:
        """Take `count` bytes whether they fit or not: what a process before acknowledged is held again."""
        self._used += count

    def release(self, count: int) -> None:
        """Give back `count` bytes that were acquired."""
        if count > self._used:
            raise ValueError(f"{count} bytes released, but only {self._used} are held")
        self._used -= count

    def _relieve(self, excess: int) -> bool:
        """Ask all in the order they were added, until enough is free; False when none could let go of any."""
        target = self.used - excess
        has_progress = False
        for relieve in self._reliefs:
            if relieve(self.used - target):
                has_progress = True
            if self.used <= target:
                break
        return has_progress
