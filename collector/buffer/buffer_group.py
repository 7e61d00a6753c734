"""Buffers under one memory limit: what they hold together, and how much of it must go when it is full."""

from typing import Protocol

from collector.clock import Clock
from collector.telemetry import Metrics

SOFT_LIMIT = 0.8
"""Part of the memory limit that buffers may fill by themselves before they finish traces early."""


class HeldTraces(Protocol):
    """What a buffer tells of itself."""

    @property
    def spans_held(self) -> int:
        """Spans in it."""
        ...

    @property
    def traces_held(self) -> int:
        """Traces in it."""
        ...

    def oldest_arrival_unix_nano(self) -> int | None:
        """When the oldest of its spans came; None if it has none."""
        ...


class BufferGroup:
    """The buffers of a service.

    Attributes:
        buffers: those that are in use.
        held_bytes: bytes acquired for what they hold together.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.buffers: list[HeldTraces] = []
        self.held_bytes = 0
        self._limit = limit_bytes
        self._soft_limit = self._wanted_limit = int(limit_bytes * SOFT_LIMIT)

    @property
    def spans_held(self) -> int:
        """Spans in all of them."""
        return sum(buffer.spans_held for buffer in self.buffers)

    @property
    def excess_bytes(self) -> int:
        """How much more is held than should be; negative while there is room."""
        return self.held_bytes - self._wanted_limit

    def share_of_excess(self, held_bytes: int) -> int:
        """How much of the excess, which there is, a buffer is to let go of that holds so much of it all."""
        return -(-self.excess_bytes * held_bytes // self.held_bytes)

    def want_room(self, size: int) -> None:
        """A request found no room: so much is to be free beside what is held, or as much as there can be."""
        self._wanted_limit = max(0, min(self._wanted_limit, self._limit - size))

    def relax(self) -> None:
        """There is room: let the soft limit count again."""
        self._wanted_limit = self._soft_limit

    def publish(self, metrics: Metrics, clock: Clock) -> None:
        """Let every scrape see what is held."""

        def oldest() -> float:
            arrivals = [buffer.oldest_arrival_unix_nano() for buffer in self.buffers]
            return min((arrival for arrival in arrivals if arrival), default=clock.unix_nano()) / 1e9

        metrics.spans_held.read_from(lambda: self.spans_held, "")
        metrics.traces_held.read_from(lambda: sum(buffer.traces_held for buffer in self.buffers))
        metrics.oldest_held_span.read_from(oldest)
