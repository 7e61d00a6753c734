"""What a receiver promises and does with requests whatever the transport, and what its file has to expose.

A receiver is one file in this folder with a `COMPONENT`; it is found by the folder and registered nowhere.
"""

import asyncio
import hmac
import logging
import random as random_module
import ssl
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Generic, Protocol, TypeVar

from google.rpc import code_pb2
from pydantic import BaseModel

from collector.clock import Clock, SystemClock, ends_within
from collector.errors import Draining, Refusal, StartupError, Unauthenticated
from collector.otlp import ErrorStatus, error_status
from collector.receivers.consumer import LARGE_REQUEST_BYTES, Consumer, ExportOutcome, RecordConsumer
from collector.receivers.in_flight import InFlightBudget
from collector.receivers.server_config import ServerAuthConfig, ServerConfig
from collector.task_supervisor import TaskOwner
from collector.telemetry import Metrics, RateLimitedLogger


class SpanSource(Protocol):
    """Where spans come from, whether they are sent or fetched."""

    @property
    def endpoint(self) -> str:
        """Where it listens or reads, for people."""
        ...

    async def start(self, tasks: TaskOwner) -> None:
        """Open what is needed; raises `StartupError`."""
        ...

    async def set_serving(self, is_serving: bool) -> None:
        """Whether spans are taken now; after `start`."""
        ...

    async def shutdown(self, deadline: float) -> None:
        """Take nothing more; return by `deadline` on the clock's monotonic time."""
        ...


class Receiver(ABC):
    """Takes export requests at one endpoint between `start` and `shutdown`.

    Each answered request is counted in `metrics.requests` by its status. What is special about a transport
    is in the classes below.

    Attributes:
        config: Where to listen and what to accept.

    Args:
        config: Where to listen and what to accept.
        consumer: Takes the requests.
        metrics: Counts the requests.
        clock: What deadlines are measured on.
        budget: Bytes that all messages under way may have together, by default four of the
            largest.
        random: Gives numbers in [0, 1) for retry delays.
    """

    transport: ClassVar[str]
    """The label under which requests are counted."""

    def __init__(
        self,
        config: ServerConfig,
        consumer: Consumer,
        metrics: Metrics,
        *,
        clock: Clock | None = None,
        budget: InFlightBudget | None = None,
        random: Callable[[], float] = random_module.random,
    ) -> None:
        self.config = config
        self._consumer = consumer
        self._requests = metrics.requests
        self._clock = clock or SystemClock()
        self._random = random
        self._budget = budget or InFlightBudget(4 * config.max_request_bytes, config.max_request_bytes)
        self._auth = BearerAuth(config.auth, self._clock) if config.auth else None
        self._log = RateLimitedLogger(logging.getLogger(__name__), self._clock)
        self._endpoint = config.endpoint
        self._is_draining = False
        self._running = 0
        self._idle = asyncio.Event()

    @property
    def endpoint(self) -> str:
        """`host:port` with the real port; as configured before `start`."""
        return self._endpoint

    async def start(self, tasks: TaskOwner | None = None) -> None:
        """Listen.

        Raises:
            StartupError: The address cannot be listened on, or a certificate or token file is unusable.
        """
        if self._auth is not None:
            self._auth.load()
        self._endpoint = await self._listen()

    async def _consume(self, request: bytes) -> ExportOutcome:
        """Hand a request on; the loop goes on while a long one is read."""
        if len(request) <= LARGE_REQUEST_BYTES:
            return self._consumer.consume_traces(request)
        return await self._consumer.consume_large_traces(request)

    @abstractmethod
    async def set_serving(self, is_serving: bool) -> None:
        """Tell those who ask the receiver itself whether requests are taken now; after `start`."""

    @abstractmethod
    async def shutdown(self, deadline: float) -> None:
        """Send new requests away, let running ones finish until `deadline`, close the port.

        `deadline` is on the clock's monotonic time. Safe before `start` and twice.
        """

    @abstractmethod
    async def _listen(self) -> str:
        """Open the port; the endpoint with the real one."""

    def _admit(self, authorization: str | bytes | None) -> None:
        """Let a request in whose `authorization` header is this.

        Raises:
            Draining: no request is taken any more.
            Unauthenticated: its sender is not known.
        """
        if self._is_draining:
            raise Draining("The service is shutting down; send the request again.")
        if self._auth is not None:
            self._auth.check(authorization)

    def _failure(self, error: Exception) -> ErrorStatus:
        """The status that answers a request which ended with `error`; called while that is being handled.

        Refusals are the sender's matter and are not logged here. Anything else is a fault of the service: it
        is logged with its traceback, at most once in ten seconds, and the sender is asked to come back.
        """
        if not isinstance(error, Refusal):
            self._log.exception(
                "unexpected_error",
                "A request failed unexpectedly; its sender is asked to send it again.",
                transport=self.transport,
            )
        return error_status(error, self._random)

    def _tell_refused_credentials(self, status: ErrorStatus, peer: str) -> None:
        """Log, at most once in ten seconds, that `status` refuses a request for its credentials, if so."""
        if status.code == code_pb2.UNAUTHENTICATED:
            self._log.warning(
                "unauthenticated",
                "A request was refused for its credentials.",
                listener=self.endpoint,
                transport=self.transport,
                peer=peer,
                error=status.message,
            )

    def _tell_failed_handshake(self, error: ssl.SSLError) -> None:
        """Log, at most once in ten seconds, that a client and the listener did not come to terms over TLS."""
        self._log.warning(
            "failed_handshake",
            "A TLS handshake failed.",
            listener=self.endpoint,
            transport=self.transport,
            error=error.reason or str(error),
        )

    def _begun(self) -> None:
        """A request runs that `_drain` waits for, until it is `_ended`."""
        self._running += 1

    def _ended(self) -> None:
        self._running -= 1
        if self._is_draining and not self._running:
            self._idle.set()

    async def _drain(self, deadline: float) -> None:
        """Admit nothing more, and return when no request runs, or at `deadline`."""
        self._is_draining = True
        remaining = deadline - self._clock.monotonic()
        if not self._running or remaining <= 0:
            return
        await ends_within(remaining, self._idle.wait(), self._clock)


ConfigT = TypeVar("ConfigT", bound=BaseModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverType(Generic[ConfigT]):
    """A receiver, as configuration sees it.

    `create` makes the listeners (or whatever else spans come from) of a configuration, by name. `default`
    is the configuration in force where none is written; None leaves the receiver off.
    """

    type_name: str
    config_model: type[ConfigT]
    create: Callable[[ConfigT, RecordConsumer, Metrics, Clock], Mapping[str, SpanSource]]
    default: ConfigT | None = None


_CHECK_INTERVAL_SECONDS = 1.0
"""How often at most the file of tokens is looked at for a change."""


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
