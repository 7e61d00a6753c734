"""Access to the page: allowed host names, origins of requests, tokens and the runs that they open."""

import hashlib
import secrets
from collections import OrderedDict
from contextlib import suppress
from typing import NamedTuple

from starlette.requests import Request

from collector.browser_requests import LOOPBACK_NAMES, is_of_own_site
from collector.clock import Clock
from collector.config_fields import parse_endpoint
from collector.errors import Unauthenticated
from collector.page.page_config import PageConfig
from collector.receivers import BearerAuth

COOKIE = "tracegrade_page"
VISITOR = "tracegrade.visitor"
"""The key of a request's `Visitor` in its scope; a request without one may see nothing."""
HAS_SESSION = "tracegrade.has_session"
"""The key in a request's scope of whether it is of a session, which its visitor can end."""
SESSION_SECONDS = 12 * 3600
_MAX_SESSIONS = 1_000
_ANY_ADDRESS = ("0.0.0.0", "::")


class Visitor(NamedTuple):
    """May see the runs of every tenant, or only those of `tenant`."""

    tenant: str | None = None


class PageAccess:
    """Checks requests; a token is exchanged for a session, which is in memory only."""

    def __init__(self, config: PageConfig, clock: Clock) -> None:
        host, _ = parse_endpoint(config.endpoint)
        own = () if host in _ANY_ADDRESS else (host,)
        self._hosts = {name.lower() for name in (*LOOPBACK_NAMES, *own, *config.public_hosts)}
        self._clock = clock
        self._tokens = [
            (Visitor(tenant), BearerAuth(auth, clock))
            for tenant, auth in ((None, config.auth), *config.tenant_auth.items())
            if auth is not None
        ]
        self._sessions: OrderedDict[str, tuple[float, str]] = OrderedDict()
        self.needs_token = config.needs_token
        self.is_secure = config.is_secure

    def load(self) -> None:
        """Read the tokens; raises `StartupError`."""
        for _, tokens in self._tokens:
            tokens.load()

    def is_allowed_origin(self, request: Request) -> bool:
        """Whether the request is for an allowed host name, and not from another site's page."""
        return is_of_own_site(request.method, request.headers, self._hosts)

    def visitor(self, request: Request) -> Visitor | None:
        """The visitor of a session or token; None: it may see nothing."""
        if not self.needs_token:
            return Visitor()
        expires, authorization = self._sessions.get(request.cookies.get(COOKIE, ""), (0.0, ""))
        if expires > self._clock.monotonic() and (visitor := self._known(authorization)) is not None:
            return visitor
        return self._known(request.headers.get("authorization"))

    def session_for(self, token: str) -> str | None:
        """A new session for this token, which ends when the token is withdrawn; None if it is wrong."""
        authorization = f"Bearer {token}"
        if self._known(authorization) is None:
            return None
        session = secrets.token_urlsafe(32)
        self._sessions[session] = self._clock.monotonic() + SESSION_SECONDS, authorization
        if len(self._sessions) > _MAX_SESSIONS:
            self._sessions.popitem(last=False)
        return session

    def credential(self, request: Request) -> str:
        """What authenticated the request, for audits: the beginning of a digest of its token, or `none`."""
        if not self.needs_token:
            return "none"
        _, authorization = self._sessions.get(request.cookies.get(COOKIE, ""), (0.0, ""))
        if self._known(authorization) is None:
            authorization = request.headers.get("authorization", "")
        return f"token {hashlib.sha256(authorization.encode(errors='replace')).hexdigest()[:12]}"

    def has_session(self, request: Request) -> bool:
        """Whether the request is of a session, which a visitor can end."""
        return request.cookies.get(COOKIE, "") in self._sessions

    def end_session(self, request: Request) -> None:
        """End the session of a request, if it has one."""
        self._sessions.pop(request.cookies.get(COOKIE, ""), None)

    def _known(self, authorization: str | None) -> Visitor | None:
        """The visitor with this token; None if it is in several files, since it is ambiguous then."""
        collected = []
        for visitor, tokens in self._tokens:
            with suppress(Unauthenticated, UnicodeError):
                tokens.check(authorization)
                collected.append(visitor)
        return collected[0] if len(collected) == 1 else None
