"""`page`: what the user writes."""

from collections.abc import Mapping
from typing import Annotated, Self, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, field_validator, model_validator

from collector.config_fields import Endpoint, is_loopback
from collector.receivers import ServerAuthConfig, ServerTlsConfig
from processors.documents import StrictModel

TenantName: TypeAlias = Annotated[str, Field(min_length=1, max_length=200)]


def _checked_url(text: str) -> str:
    """`text` without a slash at its end."""
    url = urlsplit(text)
    is_plain = not url.query and not url.fragment and "{{" not in text
    if url.scheme not in ("http", "https") or not url.hostname or not is_plain:
        raise ValueError("expected an address of http or https, such as https://tracegrade.example.com")
    return text.rstrip("/")


class PageConfig(StrictModel):
    """A web page that shows runs, on a listener of its own."""

    endpoint: Endpoint = "127.0.0.1:9465"
    """Address of the page. Addresses reachable from other machines need `auth`, and `tls` or `behind_proxy`.
    """
    tls: ServerTlsConfig | None = None
    behind_proxy: bool = False
    """Whether a proxy in front of the page serves browsers over HTTPS."""
    auth: ServerAuthConfig | None = None
    """Tokens, one of which people enter to get a cookie. Programs send it as a bearer token. A token shows
    the runs of every tenant."""
    tenant_auth: Mapping[TenantName, ServerAuthConfig] = Field(
        default={}, examples=[{"blue": {"bearer_token_file": "/etc/tracegrade/blue-tokens"}}]
    )
    """Tokens by tenant: a token shows the runs of this tenant and the criteria that apply to them, and
    nothing else. A token in more than one file is refused."""
    allowed_hosts: tuple[str, ...] = Field(default=(), examples=[["tracegrade.example.com"]])
    """Host names, without a port, by which browsers reach the page, in addition to those of the loopback and
    the host of `endpoint`. Requests for other hosts are refused."""
    public_url: Annotated[str, AfterValidator(_checked_url)] | None = Field(
        default=None, examples=["https://tracegrade.example.com"]
    )
    """The address at which people reach the page, used in links to it, such as those of alerts. Its host is
    allowed, as in `allowed_hosts`."""
    trace_link: str | None = Field(
        default=None, examples=["https://grafana.example.com/explore?trace={trace_id}"]
    )
    """Link to a trace in the trace backend; `{trace_id}` is replaced."""

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
        if not is_loopback(self.endpoint):
            if not self.needs_token:
                raise ValueError("endpoint: reachable from other machines: expected auth, or 127.0.0.1")
            if self.tls is None and not self.behind_proxy:
                raise ValueError(
                    "endpoint: reachable from other machines: expected tls, behind_proxy or 127.0.0.1"
                )
        return self

    @property
    def public_hosts(self) -> tuple[str, ...]:
        """The names by which browsers reach the page, besides those of the loopback and `endpoint`."""
        host = urlsplit(self.public_url or "").hostname
        return (*self.allowed_hosts, host) if host else self.allowed_hosts

    @property
    def needs_token(self) -> bool:
        """Whether the page can only be seen with a token."""
        return self.auth is not None or bool(self.tenant_auth)

    @property
    def is_secure(self) -> bool:
        """Whether browsers use HTTPS."""
        return self.tls is not None or self.behind_proxy
