"""What the listeners' configurations share: TLS and authentication."""

import ssl
from collections.abc import Callable
from pathlib import Path

import grpc
from pydantic import Field

from collector.config_fields import Endpoint, FilePath
from collector.errors import StartupError
from processors.documents import StrictModel

DEFAULT_MAX_REQUEST_BYTES = 64 * 1024 * 1024
"""The limit that OTLP recommends."""

DEFAULT_MAX_BYTES_IN_FLIGHT = 4 * DEFAULT_MAX_REQUEST_BYTES
"""The limit for all messages in flight together."""

LARGEST_MAX_REQUEST_BYTES = 1024 * 1024 * 1024
"""gRPC and protobuf cannot carry messages of 2 GiB."""


class ServerTlsConfig(StrictModel):
    """Certificates of a listener, all PEM files. With `client_ca_file` clients must present a certificate."""

    cert_file: FilePath = Field(description="The server's certificate, followed by its chain.")
    key_file: FilePath = Field(description="The private key of the certificate, without a passphrase.")
    client_ca_file: FilePath | None = Field(
        default=None, description="Authorities that client certificates must come from (mutual TLS)."
    )


class ServerAuthConfig(StrictModel):
    """Who may send."""

    bearer_token_file: FilePath = Field(
        description="Accepted tokens, one per line; blank lines are skipped. Read again when it changes."
    )


class ServerConfig(StrictModel):
    """The settings that every listener has."""

    max_request_bytes: int = Field(
        default=DEFAULT_MAX_REQUEST_BYTES,
        ge=1,
        le=LARGEST_MAX_REQUEST_BYTES,
        description="Larger requests are refused permanently; applies on the wire and after decompression.",
    )
    tls: ServerTlsConfig | None = None
    auth: ServerAuthConfig | None = None
    endpoint: Endpoint


def ssl_context(
    tls: ServerTlsConfig, on_failed_handshake: Callable[[ssl.SSLError], None] | None = None
) -> ssl.SSLContext:
    """The context of a TLS listener, TLS 1.2 or newer.

    `on_failed_handshake` is called for failed handshakes, which event loops do not report. Raises
    `StartupError` if a file cannot be read or has the wrong content.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    for path in (tls.cert_file, tls.key_file, tls.client_ca_file):
        if path is not None:
            read_file(path)
    try:
        # The callback keeps OpenSSL from asking the terminal for a passphrase.
        context.load_cert_chain(tls.cert_file, tls.key_file, password=lambda: "")
    except (ssl.SSLError, OSError) as error:
        raise StartupError(
            f"{tls.cert_file}, {tls.key_file}: not a certificate and its unencrypted key in PEM form: {error}"
        ) from error
    if tls.client_ca_file is not None:
        try:
            context.load_verify_locations(tls.client_ca_file)
        except (ssl.SSLError, OSError) as error:
            raise StartupError(f"{tls.client_ca_file}: no certificates in PEM form: {error}") from error
        context.verify_mode = ssl.CERT_REQUIRED
    if on_failed_handshake is not None:
        context.sslobject_class = _connection_type(on_failed_handshake)
    return context


def _connection_type(on_failed_handshake: Callable[[ssl.SSLError], None]) -> type[ssl.SSLObject]:
    class Connection(ssl.SSLObject):
        def do_handshake(self) -> None:
            try:
                super().do_handshake()
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                raise  # it continues once more has been received
            except ssl.SSLError as error:
                on_failed_handshake(error)
                raise

    return Connection


def grpc_credentials(tls: ServerTlsConfig) -> grpc.ServerCredentials:
    """The credentials of a TLS listener for gRPC; raises `StartupError` as `ssl_context` does."""
    ssl_context(tls)  # gRPC itself would notice a bad file only at the first handshake
    return grpc.ssl_server_credentials(
        [(read_file(tls.key_file), read_file(tls.cert_file))],
        root_certificates=read_file(tls.client_ca_file) if tls.client_ca_file else None,
        require_client_auth=tls.client_ca_file is not None,
    )


def read_file(path: Path) -> bytes:
    """The content of a file that the configuration names; raises `StartupError`."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise StartupError(f"{path}: cannot be read: {error.strerror or error}") from error
