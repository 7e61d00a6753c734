"""What receivers have in common whatever their transport, and what the module of a receiver exposes.

A receiver is one module in this folder with a `COMPONENT`; it is discovered by the folder.
"""

import asyncio
import hmac
import logging
import random as random_module
import ssl
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Generic, Protocol, TypeVar

from google.rpc import code_pb2
from pydantic import BaseModel
from starlette.types import ASGIApp

from collector.asgi_server import AsgiServer, ConnectionFactory
from collector.clock import Clock, SystemClock, ends_within
from collector.config_fields import parse_endpoint
from collector.errors import Draining, Refusal, StartupError, Unauthenticated
from collector.otlp import ErrorStatus, error_status
from collector.receivers.consumer import LARGE_REQUEST_BYTES, Consumer, ExportOutcome, RecordConsumer
from collector.receivers.in_flight import InFlightBudget
from collector.receivers.server_config import ServerAuthConfig, ServerConfig, ssl_context
from collector.task_supervisor import TaskOwner
from collector.telemetry import Metrics, RateLimitedLogger
from collector.trace import Signal

_logger = logging.getLogger(__name__)


class SpanSource(Protocol):
    """Where spans come from, whether they are sent or fetched."""

    @property
    def endpoint(self) -> str:
        """Where it listens or reads, for people."""

    async def start(self, tasks: TaskOwner) -> None:
        """Open what is needed; raises `StartupError`."""

    async def set_serving(self, is_serving: bool) -> None:
        """Set whether spans are accepted now; after `start`."""

    async def shutdown(self, deadline: float) -> None:
        """Accept nothing more; return by `deadline` on the clock's monotonic time."""


class Receiver(ABC):
    """Accepts export requests at one endpoint between `start` and `shutdown`, whatever the transport.

    Each answered request is counted in `metrics.requests` by its status.

    Args:
        config: Where to listen and what to accept.
        consumer: Takes the requests.
        metrics: Counts the requests.
        clock: Measures deadlines.
        budget: Bytes that all messages in flight may have together, by default four of the largest.
        random: Returns numbers in [0, 1) for retry delays.
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
        self._discarded = metrics.metrics_requests_discarded
        self._clock = clock or SystemClock()
        self._random = random
        self._budget = budget or InFlightBudget(4 * config.max_request_bytes, config.max_request_bytes)
        self._auth = BearerAuth(config.auth, self._clock) if config.auth else None
        self._log = RateLimitedLogger(_logger, self._clock)
        self.endpoint = config.endpoint
        """`host:port` with the real port; as configured before `start`."""
        self._is_draining = False
        self._running = 0
        self._idle = asyncio.Event()

    async def start(self, tasks: TaskOwner | None = None) -> None:
        """Listen; raises `StartupError` if the address, a certificate or a token file is unusable."""
        if self._auth is not None:
            self._auth.load()
        self.endpoint = await self._listen()

    @abstractmethod
    async def set_serving(self, is_serving: bool) -> None:
        """Report whether requests are accepted now to clients of the receiver itself; after `start`."""

    @abstractmethod
    async def shutdown(self, deadline: float) -> None:
        """Send new requests away, let running ones finish until `deadline`, close the port.

        `deadline` is on the clock's monotonic time. Safe before `start` and twice.
        """

    @abstractmethod
    async def _listen(self) -> str:
        """Open the port; the endpoint with the real one."""

    async def _serve(self, app: ASGIApp, connection: ConnectionFactory | None = None) -> AsgiServer:
        """Listen with an ASGI application, over a protocol of its own if one is given."""
        context = ssl_context(self.config.tls, self._log_failed_handshake) if self.config.tls else None
        if context is not None and connection is not None:
            context.set_alpn_protocols(["h2"])
        host, port = parse_endpoint(self.config.endpoint)
        server = AsgiServer(app, host, port, ssl=context, connection=connection, clock=self._clock)
        await server.start()
        return server

    async def _consume(self, request: bytes, signal: Signal) -> ExportOutcome:
        """Pass a request on and wait until it is stored; long ones are read in a thread."""
        consumer, is_long = self._consumer, len(request) > LARGE_REQUEST_BYTES
        if signal == "traces":
            outcome = (
                await consumer.consume_large_traces(request) if is_long else consumer.consume_traces(request)
            )
        else:
            outcome = (
                await consumer.consume_large_logs(request) if is_long else consumer.consume_logs(request)
            )
        if outcome.stored is not None:
            await outcome.stored
        return outcome

    def _discard_metrics(self) -> None:
        """Count a request of metrics, which is acknowledged and discarded; logged the first time.

        Senders with one endpoint for all signals would report an error with every export otherwise.
        """
        if not self._discarded.value(self.transport):
            _logger.warning(
                "Metrics are acknowledged and discarded here: send them to where you store them.",
                extra={"listener": self.endpoint, "transport": self.transport},
            )
        self._discarded.add(1, self.transport)

    def _admit(self, authorization: str | bytes | None) -> None:
        """Admit a request with this `authorization` header; raises `Draining` or `Unauthenticated`."""
        if self._is_draining:
            raise Draining("The service is shutting down; send the request again.")
        if self._auth is not None:
            self._auth.check(authorization)

    def _failure(self, error: Exception) -> ErrorStatus:
        """The status that answers a request which ended with `error`; called while that is being handled.

        Refusals concern the sender and are not logged here. Anything else is a fault of the service: it is
        logged with its traceback, at most once in ten seconds, and the sender is asked to retry.
        """
        if not isinstance(error, Refusal):
            self._log.exception(
                "unexpected_error",
                "A request failed unexpectedly; its sender may retry.",
                transport=self.transport,
            )
        return error_status(error, self._random)

    def _log_refused_credentials(self, status: ErrorStatus, peer: str) -> None:
        """Log a refusal because of credentials, at most once in ten seconds."""
        if status.code == code_pb2.UNAUTHENTICATED:
            self._log_problem(
                "unauthenticated", "Request refused: invalid credentials.", status.message, peer=peer
            )

    def _log_failed_handshake(self, error: ssl.SSLError) -> None:
        self._log_problem("failed_handshake", "TLS handshake failed.", error.reason or str(error))

    def _log_problem(self, reason: str, message: str, error: str, **fields: str) -> None:
        listener, transport = self.endpoint, self.transport
        self._log.warning(reason, message, listener=listener, transport=transport, **fields, error=error)

    def _begun(self) -> None:
        """A request starts, for which `_drain` waits until it has `_ended`."""
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

    `create` creates the listeners (or other sources of spans) of a configuration, by name. `default` applies
    where nothing is configured; None leaves the receiver off.
    """

    type_name: str
    config_model: type[ConfigT]
    create: Callable[[ConfigT, RecordConsumer, Metrics, Clock], Mapping[str, SpanSource]]
    default: ConfigT | None = None


_CHECK_INTERVAL_SECONDS = 1.0
"""How often at most the token file is checked for a change."""


class BearerAuth:
    """The tokens of a file, which is read again when it changes.

    If a changed file cannot be read or has no token, the previous tokens stay valid and the problem is
    logged.
    """

    def __init__(self, config: ServerAuthConfig, clock: Clock) -> None:
        self._path = config.bearer_token_file
        self._clock = clock
        self._log = RateLimitedLogger(logging.getLogger(__name__), clock)
        self._tokens: tuple[bytes, ...] = ()
        self._version: tuple[int, int, int] | None = None
        self._checked_at = 0.0

    def load(self) -> None:
        """Read the file; raises `StartupError` if it cannot be read or contains no token."""
        try:
            version = self._version_on_disk()
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
        """Accept an `authorization` header with one of the tokens; raises `Unauthenticated`.

        Takes the same time whichever token is compared and however much of it is right.
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
            if self._version_on_disk() != self._version:
                self.load()
        except (OSError, StartupError) as error:
            message = "The bearer token file cannot be reloaded; the previous tokens stay valid."
            self._log.error("bearer_tokens", message, error=str(error))

    def _version_on_disk(self) -> tuple[int, int, int]:
        """Changes whenever the file is written or replaced."""
        status = self._path.stat()
        return status.st_ino, status.st_mtime_ns, status.st_size
