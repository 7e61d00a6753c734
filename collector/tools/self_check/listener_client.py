"""A client of the service's own listener: sends an export request as any sender would.

Each request has a connection of its own, so that accepting connections is checked too, and nothing is open
between two checks. Proxies that the environment names are not used.
"""

import ssl
from pathlib import Path
from typing import Protocol

import aiohttp
import grpc

from collector.endpoint import parse_endpoint
from collector.errors import TracegradeError
from collector.exporters.otlp_client import one_line, read_response, read_status, user_agent
from collector.receivers.otlp_grpc import TRACE_SERVICE, GrpcServerConfig
from collector.receivers.otlp_http import PROTOBUF, TRACES_PATH
from collector.receivers.server_config import ServerConfig
from collector.telemetry.telemetry_config import SelfCheckConfig
from collector.tools.self_check.listener_tls import ListenerTls

TIMEOUT_SECONDS = 10.0
"""For connecting, sending and the answer."""

_EXPORT_METHOD = f"/{TRACE_SERVICE}/Export"
_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}


class NotAcceptedError(TracegradeError):
    """The listener was not reached, or did not take the request; the message says which and why."""


class ListenerClient(Protocol):
    """Sends to one listener."""

    async def send(self, request: bytes) -> None:
        """Send a serialised ExportTraceServiceRequest and return when all of it is accepted.

        Raises:
            NotAcceptedError: it is not.
        """
        ...


def listener_client(config: ServerConfig, endpoint: str, self_check: SelfCheckConfig) -> ListenerClient:
    """A client for the listener of `config`, which listens on `endpoint`.

    Raises:
        StartupError: a certificate or key cannot be read.
    """
    tls = None if config.tls is None else ListenerTls(config.tls, self_check.tls)
    token_file = None if config.auth is None else config.auth.bearer_token_file
    if isinstance(config, GrpcServerConfig):
        return _GrpcClient(_reachable(endpoint), tls, token_file)
    return _HttpClient(_reachable(endpoint), tls, token_file)


class _GrpcClient:
    """Calls `TraceService/Export`."""

    def __init__(self, endpoint: str, tls: ListenerTls | None, token_file: Path | None) -> None:
        self._endpoint = endpoint
        self._tls = tls
        self._token_file = token_file

    async def send(self, request: bytes) -> None:
        """Send one request; see `ListenerClient.send`."""
        token = _token(self._token_file)
        metadata = () if token is None else (("authorization", token),)
        try:
            async with self._channel() as channel:
                export = channel.unary_unary(_EXPORT_METHOD)
                answer = await export(request, metadata=metadata, timeout=TIMEOUT_SECONDS)
        except grpc.aio.AioRpcError as error:
            message = f"{error.code().name}: {one_line(error.details() or '')}"
            raise NotAcceptedError(f"gRPC listener {self._endpoint}: {message}") from error
        except ssl.SSLError as error:
            raise NotAcceptedError(f"gRPC listener {self._endpoint}: {error}") from error
        _check_nothing_rejected(answer)

    def _channel(self) -> grpc.aio.Channel:
        options: list[tuple[str, str | int]] = [
            ("grpc.primary_user_agent", user_agent()),
            ("grpc.enable_http_proxy", 0),
            ("grpc.use_local_subchannel_pool", 1),
        ]
        tls = self._tls
        if tls is None:
            return grpc.aio.insecure_channel(self._endpoint, options=options)
        options.append(("grpc.ssl_target_name_override", tls.certificate_name()))
        credentials = grpc.ssl_channel_credentials(tls.authorities, tls.key, tls.certificate)
        return grpc.aio.secure_channel(self._endpoint, credentials, options=options)


class _HttpClient:
    """Posts to `/v1/traces`."""

    def __init__(self, endpoint: str, tls: ListenerTls | None, token_file: Path | None) -> None:
        self._url = f"{'http' if tls is None else 'https'}://{endpoint}{TRACES_PATH}"
        self._tls = tls
        self._token_file = token_file

    async def send(self, request: bytes) -> None:
        """Send one request; see `ListenerClient.send`."""
        headers = {"Content-Type": PROTOBUF.decode(), "User-Agent": user_agent()}
        token = _token(self._token_file)
        if token is not None:
            headers["Authorization"] = token
        connector = aiohttp.TCPConnector(ssl=True if self._tls is None else self._tls.context)
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_SECONDS)
        try:
            async with (
                aiohttp.ClientSession(connector=connector, timeout=timeout) as session,
                session.post(self._url, data=request, headers=headers, allow_redirects=False) as response,
            ):
                answer = await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            message = one_line(f"{type(error).__name__}: {error}")
            raise NotAcceptedError(f"HTTP listener {self._url}: {message}") from error
        if response.status != 200:
            text = read_status(answer)[0]
            raise NotAcceptedError(f"HTTP listener {self._url}: status {response.status}: {text}")
        _check_nothing_rejected(answer)


def _reachable(endpoint: str) -> str:
    """The address at which a listener on `endpoint` is reached from its own machine."""
    host, port = parse_endpoint(endpoint)
    host = _ANY_ADDRESS.get(host, host)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _token(path: Path | None) -> str | None:
    """The authorization header to send: the first token that the listener accepts, read anew each time."""
    if path is None:
        return None
    try:
        tokens = path.read_text().split()
    except (OSError, UnicodeDecodeError) as error:
        raise NotAcceptedError(f"{path}: no token to send: {error}") from error
    if not tokens:
        raise NotAcceptedError(f"{path}: no token to send: the file is empty")
    return f"Bearer {tokens[0]}"


def _check_nothing_rejected(answer: bytes) -> None:
    response = read_response(answer)
    if response.rejected_spans:
        raise NotAcceptedError(f"{response.rejected_spans} spans were rejected: {response.message}")
