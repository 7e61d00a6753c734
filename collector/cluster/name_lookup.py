"""Looks up the addresses of a name at the machine's name servers."""

import asyncio
from typing import Literal, NamedTuple, TypeAlias

import dns.asyncresolver
import dns.exception
import dns.message
import dns.resolver

from collector.cluster.peer_set import LOOKUP_SECONDS
from collector.errors import StartupError, TracegradeError

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

    An answer that does not fit into a datagram is requested over TCP.

    Args:
        resolver: Queries other servers instead.

    Raises:
        StartupError: the machine has no configuration of name servers.
    """

    def __init__(self, resolver: dns.asyncresolver.Resolver | None = None) -> None:
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

    async def _query(self, name: str, kind: str) -> dns.resolver.Answer | None:
        try:
            return await self._resolver.resolve(
                name, kind, search=True, raise_on_no_answer=False, lifetime=LOOKUP_SECONDS
            )
        except dns.resolver.NXDOMAIN:
            return None


def _was_truncated(error: Exception) -> bool:
    """Whether an answer did not fit into a datagram, and could not be obtained over TCP either."""
    tries = getattr(error, "kwargs", {}).get("errors", ())
    return any(isinstance(problem, dns.message.Truncated) for *_, problem, _ in tries)
