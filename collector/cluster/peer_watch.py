"""Watches the set of replicas while the service runs."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import InitVar, dataclass
from typing import get_args

from collector.clock import Clock
from collector.cluster.cluster_config import ClusterConfig
from collector.cluster.name_lookup import Answer, LookupFailed, LookupProblem, NameLookup
from collector.cluster.peer_set import Change, PeerSet
from collector.task_supervisor import TaskOwner
from collector.telemetry import Metrics, RateLimitedLogger

_LONGEST_PAUSE_SECONDS = 0.5
_PAUSES_AN_INTERVAL = 5

_logger = logging.getLogger(__name__)


@dataclass(eq=False)
class PeerWatch:
    """Looks up the replicas several times in each resolver interval, and reports when traces may be split.

    An answer that is missing, empty or truncated leaves the set as it was, as it does in the balancers. It is
    counted and logged. `note_rerouting` is called with the start (Unix nanoseconds) and the seconds from now
    of each time in which spans of one trace may go to different replicas. `lookup` returns the addresses of a
    name, by default from the machine's name servers.
    """

    config: ClusterConfig
    note_rerouting: Callable[[int, float], None]
    metrics: Metrics
    clock: Clock
    lookup: InitVar[Callable[[str], Awaitable[Answer]] | None] = None

    def __post_init__(self, lookup: Callable[[str], Awaitable[Answer]] | None) -> None:
        self._log = RateLimitedLogger(_logger, self.clock)
        self._lookup = lookup or (None if self.config.peers_dns is None else NameLookup())
        self.metrics.cluster_peers.set(len(self.config.peers or ()))
        for kind in get_args(Change):
            self.metrics.cluster_changes.add(0, kind)
        for reason in (*get_args(LookupProblem), "long_ttl"):
            self.metrics.cluster_resolve_problems.add(0, reason)

    def start(self, tasks: TaskOwner) -> None:
        """Begin to watch; called when spans are taken."""
        peers = PeerSet(self.config.resolver_interval, self.note_rerouting, self.clock)
        if self.config.peers_dns is not None and self._lookup is not None:
            watching = self._watch(self.config.peers_dns, self._lookup, peers)
            tasks.create_task(watching, name="watch peers")

    async def _watch(self, name: str, lookup: Callable[[str], Awaitable[Answer]], peers: PeerSet) -> None:
        pause = min(_LONGEST_PAUSE_SECONDS, self.config.resolver_interval / _PAUSES_AN_INTERVAL)
        while True:
            queried_at = self.clock.monotonic()
            try:
                answer = await lookup(name)
            except LookupFailed as problem:
                self._report(
                    problem.reason,
                    "The peers could not be looked up; the set is unchanged.",
                    error=str(problem),
                )
            else:
                self._take_in(answer, peers, queried_at)
            await self.clock.sleep(pause)

    def _report(self, problem: str, text: str, **details: str | int) -> None:
        self.metrics.cluster_resolve_problems.add(1, problem)
        self._log.warning(problem, text, **details)

    def _take_in(self, answer: Answer, peers: PeerSet, queried_at: float) -> None:
        if answer.ttl >= self.config.resolver_interval or answer.ttl > self.config.name_ttl:
            self._report(
                "long_ttl",
                "The name of the peers may be cached for longer than cluster.name_ttl, or for as long as "
                "cluster.resolver_interval: changes may be noticed too late.",
                ttl_seconds=answer.ttl,
            )
        before = peers.peers or frozenset()
        change = peers.see(answer.addresses, queried_at)
        self.metrics.cluster_peers.set(len(answer.addresses))
        if change is None:
            return
        self.metrics.cluster_changes.add(1, change)
        self._log.info(
            change,
            "The set of peers changed; traces under way are interrupted."
            if change == "change"
            else "The set of peers changed again; unsteady peers no longer interrupt traces.",
            added=" ".join(sorted(answer.addresses - before)),
            removed=" ".join(sorted(before - answer.addresses)),
        )
