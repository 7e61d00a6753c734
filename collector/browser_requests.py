"""Requests that a browser sends for the sites which it shows.

A browser reaches the loopback on behalf of any site: either the site's name resolves to it (and is the host
of the request), or the request contains the site's origin.
"""

from collections.abc import Container
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from collector.config_fields import is_loopback, parse_endpoint

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
_SENT_BY_BROWSERS = ("origin", "sec-fetch-site", "accept-language")
"""A page's script can remove none of them, and the last is in every request of a browser."""


def local_names(endpoint: str) -> frozenset[str] | None:
    """The names of a listener that only this machine reaches; None if others do, by names not known here."""
    return frozenset((*LOOPBACK_NAMES, parse_endpoint(endpoint)[0])) if is_loopback(endpoint) else None


def is_of_browser(headers: Headers) -> bool:
    """Whether a browser may have sent the request; scrapers, probes and exporters have no such headers."""
    return any(name in headers for name in _SENT_BY_BROWSERS)


def is_for_host(host: str, names: Container[str]) -> bool:
    """Whether a Host header has one of `names`, in lower case, with any port."""
    try:
        return urlsplit(f"//{host}").hostname in names
    except ValueError:  # not a host
        return False


def is_of_own_site(method: str, headers: Headers, names: Container[str] | None) -> bool:
    """Whether the request is for one of `names` (None: for any), and not from another site's page.

    A link on another site is followed.
    """
    host, origin = headers.get("host", ""), headers.get("origin")
    if names is not None and not is_for_host(host, names):
        return False
    try:
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            return False
    except ValueError:  # not a URL
        return False
    return headers.get("sec-fetch-site", "none") in ("none", "same-origin") or (
        method == "GET" and headers.get("sec-fetch-mode") == "navigate"
    )
