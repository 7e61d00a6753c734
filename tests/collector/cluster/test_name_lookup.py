from collections.abc import AsyncIterator

import dns.asyncresolver
import dns.name
import pytest

from collector.cluster.peer_watch import LookupFailed, NameLookup
from tests.support.name_server import Behaviour, NameServer

NAME = "replicas.test"


@pytest.fixture
async def server() -> AsyncIterator[NameServer]:
    async with NameServer(NAME, ["127.0.0.2", "127.0.0.3"]) as server:
        yield server


def lookup_at(server: NameServer, *, search: str = "") -> NameLookup:
    resolver = dns.asyncresolver.Resolver(configure=False)
    resolver.nameservers = [server.host]
    resolver.port = server.port
    resolver.search = [dns.name.from_text(search)] if search else []
    return NameLookup(resolver)


async def test_the_addresses_of_both_families_and_their_ttl_are_found(server: NameServer) -> None:
    server.addresses = ["127.0.0.2", "::2"]
    server.ttl = 7

    answer = await lookup_at(server)(NAME)

    assert (frozenset({"127.0.0.2", "::2"}), 7) == answer


async def test_a_short_name_is_looked_up_in_the_search_domains(server: NameServer) -> None:
    answer = await lookup_at(server, search="test.")("replicas")

    assert frozenset({"127.0.0.2", "127.0.0.3"}) == answer.addresses


async def test_an_answer_that_does_not_fit_into_a_datagram_is_had_over_tcp(server: NameServer) -> None:
    server.addresses = [f"127.0.1.{number}" for number in range(1, 120)]

    answer = await lookup_at(server)(NAME)

    assert frozenset(server.addresses) == answer.addresses


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [("fail", "failed"), ("silent", "failed"), ("deny", "empty"), ("truncate", "truncated")],
)
async def test_no_answer_is_told_apart_from_an_empty_and_a_truncated_one(
    server: NameServer, behaviour: Behaviour, reason: str
) -> None:
    server.behaviour = behaviour

    with pytest.raises(LookupFailed) as failure:
        await lookup_at(server)(NAME)

    assert reason == failure.value.reason


async def test_a_name_without_addresses_is_empty(server: NameServer) -> None:
    server.addresses = []

    with pytest.raises(LookupFailed) as failure:
        await lookup_at(server)(NAME)

    assert "empty" == failure.value.reason
