"""A client of the service's own listener: sends an export request as any sender would.

Each request has a connection of its own, so that accepting connections is checked too, and nothing is open
between two checks. Proxies that the environment names are not used. An exporter of the service would not do:
it keeps its connection, and would read a renewed certificate before the listener does.

With TLS it trusts the listener's certificate itself, as it was when the service started, whoever issued it
and whatever name is in it, since the listener is reached by its address. An expired one is not trusted.
"""

import contextlib
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import grpc

from collector.config_fields import reachable_address
from collector.errors import StartupError, TracegradeError
from collector.exporters import one_line, read_response, read_status, user_agent
from collector.receivers import (
    LOGS_PATH,
    LOGS_SERVICE,
    PROTOBUF,
    TRACE_SERVICE,
    TRACES_PATH,
    GrpcServerConfig,
    ServerConfig,
    ServerTlsConfig,
    read_file,
)
from collector.telemetry import SelfCheckConfig, SelfCheckTlsConfig
from collector.trace import Signal

TIMEOUT_SECONDS = 10.0
"""For connecting, sending and the answer."""

_SERVICES: Mapping[Signal, str] = {"traces": TRACE_SERVICE, "logs": LOGS_SERVICE}
_PATHS: Mapping[Signal, str] = {"traces": TRACES_PATH, "logs": LOGS_PATH}
_ITEMS: Mapping[Signal, str] = {"traces": "spans", "logs": "log records"}
_HANDSHAKE_STEPS = 10


class NotAcceptedError(TracegradeError):
    """The listener was not reached, or did not accept the request; the message states which and why."""


class ListenerClient:
    """Sends to the listener of `config`, which listens on `endpoint`.

    Raises:
        StartupError: a certificate or key cannot be read.
    """

    def __init__(self, config: ServerConfig, endpoint: str, self_check: SelfCheckConfig) -> None:
        self._address = reachable_address(endpoint)
        self._tls = None if config.tls is None else ListenerTls(config.tls, self_check.tls)
        self._token_file = None if config.auth is None else config.auth.bearer_token_file
        self._post = self._send_grpc if isinstance(config, GrpcServerConfig) else self._send_http

    async def send(self, request: bytes, signal: Signal) -> None:
        """Send a serialised export request of spans or log records, and return when all of it is accepted.

        Raises:
            NotAcceptedError: it is not.
        """
        token = None if self._token_file is None else authorization(self._token_file)
        response = read_response(await self._post(request, signal, token))
        if response.rejected_spans:
            rejected = f"{response.rejected_spans} {_ITEMS[signal]}"
            raise NotAcceptedError(f"{rejected} were rejected: {response.message}")

    async def _send_grpc(self, request: bytes, signal: Signal, token: str | None) -> bytes:
        metadata = () if token is None else (("authorization", token),)
        try:
            async with self._channel() as channel:
                export = channel.unary_unary(f"/{_SERVICES[signal]}/Export")
                answer: bytes = await export(request, metadata=metadata, timeout=TIMEOUT_SECONDS)
                return answer
        except grpc.aio.AioRpcError as error:
            message = f"{error.code().name}: {one_line(error.details() or '')}"
            raise NotAcceptedError(f"gRPC listener {self._address}: {message}") from error
        except ssl.SSLError as error:
            raise NotAcceptedError(f"gRPC listener {self._address}: {error}") from error

    def _channel(self) -> grpc.aio.Channel:
        options: list[tuple[str, str | int]] = [
            ("grpc.primary_user_agent", user_agent()),
            ("grpc.enable_http_proxy", 0),
            ("grpc.use_local_subchannel_pool", 1),
        ]
        tls = self._tls
        if tls is None:
            return grpc.aio.insecure_channel(self._address, options=options)
        options.append(("grpc.ssl_target_name_override", tls.certificate_name()))
        credentials = grpc.ssl_channel_credentials(tls.authorities, tls.key, tls.certificate)
        return grpc.aio.secure_channel(self._address, credentials, options=options)

    async def _send_http(self, request: bytes, signal: Signal, token: str | None) -> bytes:
        import aiohttp  # takes a tenth of a start, and most listeners are checked over gRPC

        url = f"{'http' if self._tls is None else 'https'}://{self._address}{_PATHS[signal]}"
        headers = {"Content-Type": PROTOBUF.decode(), "User-Agent": user_agent()}
        if token is not None:
            headers["Authorization"] = token
        connector = aiohttp.TCPConnector(ssl=True if self._tls is None else self._tls.context)
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_SECONDS)
        try:
            async with (
                aiohttp.ClientSession(connector=connector, timeout=timeout) as session,
                session.post(url, data=request, headers=headers, allow_redirects=False) as response,
            ):
                answer = await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            message = one_line(f"{type(error).__name__}: {error}")
            raise NotAcceptedError(f"HTTP listener {url}: {message}") from error
        if response.status != 200:
            text = read_status(answer)[0]
            raise NotAcceptedError(f"HTTP listener {url}: status {response.status}: {text}")
        return answer


class ListenerTls:
    """Everything a client of one TLS listener needs.

    A listener that requires certificates of clients is shown the one in `client`; without that its own, which
    serves if its authorities issued it and it is not limited to servers. `authorities` are the certificates
    to trust, `certificate` and `key` what is shown, if anything; all PEM.

    Raises:
        StartupError: a file cannot be read or does not hold what it should.
    """

    def __init__(self, listener: ServerTlsConfig, client: SelfCheckTlsConfig | None) -> None:
        self._server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        _load(self._server, listener.cert_file, listener.key_file)
        self.authorities = read_file(listener.cert_file)
        self.certificate: bytes | None = None
        self.key: bytes | None = None
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.context.check_hostname = False
        self.context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        self.context.load_verify_locations(cadata=self.authorities.decode())
        if listener.client_ca_file is not None:
            own = client or SelfCheckTlsConfig(cert_file=listener.cert_file, key_file=listener.key_file)
            _load(self.context, own.cert_file, own.key_file)
            self.certificate, self.key = read_file(own.cert_file), read_file(own.key_file)

    def certificate_name(self) -> str:
        """A name that the listener's certificate is made out to, for clients that insist on one.

        Raises:
            ssl.SSLError: the certificate is not valid now.
        """
        certificate = self._peer_certificate()
        subject = [pair for fields in certificate.get("subject", ()) for pair in fields]
        names = dict(reversed([*certificate.get("subjectAltName", ()), *subject]))
        name = names.get("DNS") or names.get("IP Address") or names.get("commonName") or ""
        return str(name).replace("*", "self-check")

    def _peer_certificate(self) -> dict[str, Any]:
        """The listener's certificate as a client decodes it, from a handshake within this process."""
        to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = self.context.wrap_bio(to_client, to_server)
        server = self._server.wrap_bio(to_server, to_client, server_side=True)
        for _ in range(_HANDSHAKE_STEPS):
            try:
                client.do_handshake()
                return client.getpeercert() or {}
            except ssl.SSLWantReadError:
                with contextlib.suppress(ssl.SSLWantReadError):
                    server.do_handshake()
        raise ssl.SSLError("no handshake with the listener's certificate")


def authorization(path: Path) -> str:
    """The header to send: the first token that the listener accepts, read anew each time."""
    try:
        tokens = path.read_text().split()
    except (OSError, UnicodeDecodeError) as error:
        raise NotAcceptedError(f"{path}: no token to send: {error}") from error
    if not tokens:
        raise NotAcceptedError(f"{path}: no token to send: the file is empty")
    return f"Bearer {tokens[0]}"


def _load(context: ssl.SSLContext, certificate: Path, key: Path) -> None:
    try:
        # The callback keeps OpenSSL from asking the terminal for a passphrase.
        context.load_cert_chain(certificate, key, password=lambda: "")
    except (ssl.SSLError, OSError) as error:
        raise StartupError(
            f"{certificate}, {key}: no certificate with its unencrypted key in PEM form: {error}"
        ) from error
