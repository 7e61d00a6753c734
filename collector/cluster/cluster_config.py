"""`cluster`: the replicas behind a balancer by trace id."""

import re
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from collector.config_fields import PositiveDuration, parse_endpoint
from processors.documents import StrictModel

NOTICE_SECONDS = 2.0
"""How long after the caches a change is seen here: a pause, the longest lookup, some to spare."""

_HOST_NAME = re.compile(r"(?=.{1,253}\.?\Z)(?:[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\.?)+\Z")


def _checked_name(text: str) -> str:
    if not _HOST_NAME.match(text) or text.replace(".", "").isdigit():
        raise ValueError(f"expected a host name without a port, such as tracegrade-replicas, got {text!r}")
    return text


def _checked_peer(text: str) -> str:
    _, port = parse_endpoint(text)
    if text.startswith(":") or not port:
        raise ValueError(f"expected host:port as the balancer knows a replica, got {text!r}")
    return text


class ClusterConfig(StrictModel):
    """The replicas behind a balancer by trace id: one of `peers_dns` and `peers`.

    While the set of replicas changes, spans of one trace may go to two of them. Traces under way then are
    interrupted: nothing is judged that more spans could change.
    """

    peers_dns: Annotated[str, AfterValidator(_checked_name)] | None = Field(
        default=None, examples=["tracegrade-replicas"]
    )
    """The name of all replicas, the one that the balancer looks up: that of a headless service which
    publishes addresses that are not ready. Every verdict then waits `name_ttl` and 2 s longer, or
    `resolver_interval` where that is less, since the balancer may know of a change before it is known here.
    """
    peers: (
        Annotated[tuple[Annotated[str, AfterValidator(_checked_peer)], ...], Field(min_length=1)] | None
    ) = Field(default=None, examples=[["tracegrade-0:4317", "tracegrade-1:4317"]])
    """Alternatively all replicas, exactly as in the balancer's static list. A change of the list requires a
    restart."""
    resolver_interval: PositiveDuration = Field(default=5.0, ge=1)
    """How long after a change a balancer may still use the old set. At least the balancer's own interval and
    the name's TTL together; for a list, the time until all balancers have a new one."""

    name_ttl: PositiveDuration = 5.0
    """How long answers for `peers_dns` may be cached before they reach this service: the name's TTL, 5 s in
    clusters with CoreDNS. A change is noticed at most that much later."""

    @model_validator(mode="after")
    def _names_peers_once(self) -> Self:
        if (self.peers_dns is None) == (self.peers is None):
            raise ValueError("expected either peers_dns or peers")
        if self.peers is not None and len(set(self.peers)) < len(self.peers):
            raise ValueError("peers: a replica is listed twice")
        return self

    @property
    def verdict_delay(self) -> float:
        """Seconds for which a change of the peers may go unnoticed here: no verdict is given sooner."""
        return 0.0 if self.peers_dns is None else min(self.resolver_interval, self.name_ttl + NOTICE_SECONDS)
