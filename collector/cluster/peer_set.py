"""The set of replicas as it was last seen, and the time around a change in which traces may be split.

A balancer looks the replicas up at its interval, and the answer may be from a cache (the TTL).
`resolver_interval` is at least both together. So a change that is seen here now

- took place after the old set was last looked up here, less the TTL of that answer, and
- is known to every balancer `resolver_interval` after it took place, and the time of one lookup.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from collector.clock import Clock

LOOKUP_SECONDS = 1.0
"""How long one lookup may take: here, and by default in the Collector's load balancing exporter."""

FLAP_SECONDS = 600.0
"""An address that is added or removed again within this time is unsteady."""
FLAP_SHARE = 0.5
"""The part of that time which unsteady addresses may interrupt; beyond it they no longer do."""

Change: TypeAlias = Literal["change", "flap"]


@dataclass(eq=False)
class PeerSet:
    """Follows the set of replicas; calls `note_rerouting(start_unix_nano, seconds)` when traces may be split.

    Traces may be split from the start on (this replica itself is new to the balancers) and around every
    change. Unsteady addresses must not silence all verdicts: once half of the last ten minutes was
    interrupted, only a change of an address that was steady for ten minutes interrupts.

    `peers` are the addresses last seen; None before the first answer.
    """

    interval_seconds: float
    note_rerouting: Callable[[int, float], None]
    clock: Clock

    def __post_init__(self) -> None:
        self._seen_at = self.clock.monotonic()
        """When `peers` was last looked up with success; before the first answer, when this began."""
        self._moved_at: dict[str, float] = {}
        self._interrupted: deque[tuple[float, float]] = deque()
        self.peers: frozenset[str] | None = None
        self._interrupt(self._seen_at)

    def see(self, peers: frozenset[str], queried_at: float) -> Change | None:
        """Take in what was looked up at `queried_at`, monotonic seconds; the kind of change, if any."""
        before, self.peers = self.peers, peers
        last_seen_at, self._seen_at = self._seen_at, queried_at
        if before is None:
            self._interrupt(last_seen_at)
            return None
        moved = before ^ peers
        if not moved:
            return None
        now = self.clock.monotonic()
        self._moved_at = {peer: at for peer, at in self._moved_at.items() if now - at < FLAP_SECONDS}
        is_flap = moved <= self._moved_at.keys() and self._interrupted_share(now) >= FLAP_SHARE
        self._moved_at.update(dict.fromkeys(moved, now))
        if is_flap:
            return "flap"
        self._interrupt(last_seen_at - self.interval_seconds)
        return "change"

    def _interrupt(self, start: float) -> None:
        now = self.clock.monotonic()
        seconds = self.interval_seconds + LOOKUP_SECONDS
        self._interrupted.append((start, now + seconds))
        self.note_rerouting(self.clock.unix_nano() - int((now - start) * 1e9), seconds)

    def _interrupted_share(self, now: float) -> float:
        """The part of the last ten minutes in which traces were interrupted; they began one after another."""
        covered = 0.0
        covered_until = now - FLAP_SECONDS
        while self._interrupted and self._interrupted[0][1] <= covered_until:
            self._interrupted.popleft()
        for start, end in self._interrupted:
            end = min(end, now)
            covered += max(0.0, end - max(start, covered_until))
            covered_until = max(covered_until, end)
        return covered / FLAP_SECONDS
