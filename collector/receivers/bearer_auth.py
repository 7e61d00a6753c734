"""Bearer tokens: which senders a listener lets in."""

import hmac
import logging
from pathlib import Path

from collector.clock import Clock
from collector.errors import StartupError, Unauthenticated
from collector.receivers.server_config import ServerAuthConfig
from collector.telemetry.logs import RateLimitedLogger

_CHECK_INTERVAL_SECONDS = 1.0
"""How often at most the file is looked at for a change."""


class BearerAuth:
    """The tokens of a file; the file is read again when it changes.

    A changed file that cannot be read or holds no token leaves the tokens in force that were, and is logged.
    """

    def __init__(self, config: ServerAuthConfig, clock: Clock) -> None:
        self._path = config.bearer_token_file
        self._clock = clock
        self._log = RateLimitedLogger(logging.getLogger(__name__), clock)
        self._tokens: tuple[bytes, ...] = ()
        self._version: tuple[int, int, int] | None = None
        self._checked_at = 0.0

    def load(self) -> None:
        """Read the file.

        Raises:
            StartupError: it cannot be read or holds no token.
        """
        try:
            version = _version(self._path)
            lines = self._path.read_bytes().split(b"\n")
        except OSError as error:
            raise StartupError(f"{self._path}: cannot be read: {error.strerror or error}") from error
        tokens = tuple(line.strip() for line in lines if line.strip())
        if not tokens:
            raise StartupError(f"{self._path}: expected a token on each line, found none")
        self._tokens = tokens
        self._version = version
        self._checked_at = self._clock.monotonic()

    def check(self, authorization: str | bytes | None) -> None:
        """Let a request pass whose `authorization` header names one of the tokens.

        Takes the same time whichever token is compared and however much of it is right.

        Raises:
            Unauthenticated: it does not.
        """
        if self._clock.monotonic() - self._checked_at >= _CHECK_INTERVAL_SECONDS:
            self._reload()
        if authorization is None:
            raise Unauthenticated("A bearer token is required in the authorization header.")
        header = authorization.encode() if isinstance(authorization, str) else authorization
        scheme, _, presented = header.partition(b" ")
        presented = presented.strip()
        is_known = False
        for token in self._tokens:
            is_known |= hmac.compare_digest(token, presented)
        if scheme.lower() != b"bearer" or not is_known:
            raise Unauthenticated("The bearer token in the authorization header is not accepted.")

    def _reload(self) -> None:
        self._checked_at = self._clock.monotonic()
        try:
            if _version(self._path) != self._version:
                self.load()
        except OSError as error:
            self._log.error("bearer_tokens", "Tokens stay as they were: the file is gone.", error=str(error))
        except StartupError as error:
            self._log.error("bearer_tokens", "Tokens stay as they were.", error=str(error))


def _version(path: Path) -> tuple[int, int, int]:
    """Changes whenever the file is written or replaced."""
    status = path.stat()
    return status.st_ino, status.st_mtime_ns, status.st_size
