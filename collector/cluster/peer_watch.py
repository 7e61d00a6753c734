"""Watches the set of replicas while the service runs: looks their name up at the machine's name servers."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import InitVar, dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, get_args

from collector.clock import Clock
from collector.cluster.cluster_config import ClusterConfig
from collector.cluster.peer_set import LOOKUP_SECONDS, Change, PeerSet
from collector.errors import StartupError, TracegradeError
from collector.task_supervisor import TaskOwner
from collector.telemetry import Metrics, RateLimitedLogger

if TYPE_CHECKING:  # loaded where names are looked up
    import dns.asyncresolver
    import dns.message
    import dns.resolver

_LONGEST_PAUSE_SECONDS = 0.5
_PAUSES_AN_INTERVAL = 5

_logger = logging.getLogger(__name__)

LookupProblem: TypeAlias = Literal["failed", "empty", "truncated"]


class LookupFailed(TracegradeError):
    """No answer with all addresses, for this `reason`."""

    def __init__(self, reason: LookupProblem, message: str) -> None:
        super().__init__(message)
        self.reason: LookupProblem = reason


class Answer(NamedTuple):
    """The addresses of a name, IPv4 and IPv6, and for how many seconds caches may keep them."""

    addresses: frozenset[str]
    ttl: int


class NameLookup:
    """Looks names up as `/etc/resolv.conf` specifies, search domains included; `/etc/hosts` is not read.

    An answer that does not fit into a datagram is requested over TCP. `resolver` queries other servers
    instead. Raises StartupError if the machine has no configuration of name servers.
    """

    def __init__(self, resolver: "dns.asyncresolver.Resolver | None" = None) -> None:
        import dns.asyncresolver
        import dns.exception

        try:
            self._resolver = resolver or dns.asyncresolver.Resolver()
        except dns.exception.DNSException as error:
            raise StartupError(f"cluster.peers_dns: cannot look names up: {error}") from error
        self._resolver.timeout = LOOKUP_SECONDS / 2

    async def __call__(self, name: str) -> Answer:
        """The addresses of `name`, at least one.

        Raises:
            LookupFailed: there was no answer, or not all of them were in it.
        """
        import dns.exception

        try:
            answers = await asyncio.gather(*(self._query(name, kind) for kind in ("A", "AAAA")))
        except (dns.exception.DNSException, OSError) as error:
            raise LookupFailed("truncated" if _was_truncated(error) else "failed", str(error)) from error
        collected = [answer for answer in answers if answer is not None and answer.rrset is not None]
        if not collected:
            raise LookupFailed("empty", f"{name} has no addresses")
        return Answer(
            frozenset(str(record) for answer in collected for record in answer),
            max(answer.chaining_result.minimum_ttl for answer in collected),
        )

    async def _query(self, name: str, kind: str) -> "dns.resolver.Answer | None":
        import dns.resolver

        try:
            return await self._resolver.resolve(
                name, kind, search=True, raise_on_no_answer=False, lifetime=LOOKUP_SECONDS
            )
        except dns.resolver.NXDOMAIN:
            return None


def _was_truncated(error: Exception) -> bool:
    """Whether an answer did not fit into a datagram, and could not be obtained over TCP either."""
    import dns.message

    tries = getattr(error, "kwargs", {}).get("errors", ())
    return any(isinstance(problem, dns.message.Truncated) for *_, problem, _ in tries)


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
        self.metrics.cluster_changes.start(*get_args(Change))
        self.metrics.cluster_resolve_problems.start(*get_args(LookupProblem), "long_ttl")

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
