"""Who may see the page: the hosts that it is reached by, where requests come from, and a token."""

import secrets
from collections import OrderedDict
from urllib.parse import urlsplit

from starlette.requests import Request

from collector.clock import Clock
from collector.config_fields import parse_endpoint
from collector.errors import Unauthenticated
from collector.page.page_config import PageConfig
from collector.receivers import BearerAuth

COOKIE = "tracegrade_page"
SESSION_SECONDS = 12 * 3600
_MAX_SESSIONS = 1_000
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_ANY_ADDRESS = ("0.0.0.0", "::")


class PageAccess:
    """Answers whether a request may be answered; a token is exchanged for a session, kept in memory."""

    def __init__(self, config: PageConfig, clock: Clock) -> None:
        host, _ = parse_endpoint(config.endpoint)
        own = () if host in _ANY_ADDRESS else (host,)
        self._hosts = {name.lower() for name in (*_LOOPBACK, *own, *config.allowed_hosts)}
        self._clock = clock
        self._auth = None if config.auth is None else BearerAuth(config.auth, clock)
        self._sessions: OrderedDict[str, float] = OrderedDict()
        self.is_secure = config.is_secure

    def load(self) -> None:
        """Read the tokens; raises `StartupError`."""
        if self._auth is not None:
            self._auth.load()

    @property
    def asks_for_token(self) -> bool:
        """Whether a token is needed."""
        return self._auth is not None

    def comes_from_here(self, request: Request) -> bool:
        """Whether the request is for a name of ours, and from no other site's page.

        A browser reaches the loopback for any site: the site's name then resolves to it (and is the request's
        host), or the request says where it comes from.
        """
        host = request.headers.get("host", "")
        if _host_name(f"//{host}") not in self._hosts:
            return False
        origin = request.headers.get("origin")
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            return False
        return request.headers.get("sec-fetch-site", "none") in ("none", "same-origin") or (
            request.method == "GET" and request.headers.get("sec-fetch-mode") == "navigate"
        )

    def may_see(self, request: Request) -> bool:
        """Whether the request has a session, or a token."""
        if self._auth is None:
            return True
        expires = self._sessions.get(request.cookies.get(COOKIE, ""))
        if expires is not None and expires > self._clock.monotonic():
            return True
        return self._knows(request.headers.get("authorization"))

    def session_for(self, token: str) -> str | None:
        """A new session for whoever has this token; None for a wrong one."""
        if not self._knows(f"Bearer {token}"):
            return None
        session = secrets.token_urlsafe(32)
        self._sessions[session] = self._clock.monotonic() + SESSION_SECONDS
        if len(self._sessions) > _MAX_SESSIONS:
            self._sessions.popitem(last=False)
        return session

    def _knows(self, authorization: str | None) -> bool:
        if self._auth is None:
            return False
        try:
            self._auth.check(authorization)
        except (Unauthenticated, UnicodeError):
            return False
        return True


def _host_name(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
