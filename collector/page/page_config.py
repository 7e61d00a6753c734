"""`page`: what the user writes."""

from ipaddress import ip_address
from typing import Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from collector.config_fields import Endpoint, parse_endpoint
from collector.receivers import ServerAuthConfig, ServerTlsConfig
from processors.documents import StrictModel


class PageConfig(StrictModel):
    """A page to look runs up on, on a listener of its own."""

    endpoint: Endpoint = Field(
        default="127.0.0.1:9465",
        description="Where the page is. Addresses that other machines reach need `auth`, and `tls` or "
        "`behind_proxy`.",
    )
    tls: ServerTlsConfig | None = None
    behind_proxy: bool = Field(
        default=False, description="Says that a proxy in front of the page speaks HTTPS to browsers."
    )
    auth: ServerAuthConfig | None = Field(
        default=None,
        description="Tokens, one of which people enter in exchange for a cookie. Programs send it as a "
        "bearer token.",
    )
    allowed_hosts: tuple[str, ...] = Field(
        default=(),
        description="The names, without a port, by which browsers reach the page. The loopback's names and "
        "the host of `endpoint` are always among them; requests for any other are refused.",
        examples=[["tracegrade.example.com"]],
    )
    trace_link: str | None = Field(
        default=None,
        description="Where the trace backend shows a trace; `{trace_id}` is replaced.",
        examples=["https://grafana.example.com/explore?trace={trace_id}"],
    )

    @field_validator("trace_link")
    @classmethod
    def _check_link(cls, link: str | None) -> str | None:
        if link is not None:
            url = urlsplit(link)
            if url.scheme not in ("http", "https") or not url.hostname or "{trace_id}" not in link:
                raise ValueError("expected an address of http or https with {trace_id} in it")
        return link

    @model_validator(mode="after")
    def _check_exposure(self) -> Self:
        if not self.is_local:
            if self.auth is None:
                raise ValueError("endpoint: other machines reach this address: expected auth, or 127.0.0.1")
            if self.tls is None and not self.behind_proxy:
                raise ValueError(
                    "endpoint: other machines reach this address: expected tls, behind_proxy or 127.0.0.1"
                )
        return self

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches the endpoint."""
        host, _ = parse_endpoint(self.endpoint)
        try:
            return ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"

    @property
    def is_secure(self) -> bool:
        """Whether browsers reach the page by HTTPS."""
        return self.tls is not None or self.behind_proxy
