"""What is wrong between here and an address: its name, connection, TLS, certificate or protocol.

One is tried after the other, since the errors of libraries do not distinguish them. Blocking; a few seconds
at most.
"""

import socket
import ssl
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

from yarl import URL

_TIMEOUT_SECONDS = 3.0
_H2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5)
"""A client's first bytes, with empty settings (RFC 9113, 3.4)."""
_H2_FRAME_HEAD_BYTES, _SETTINGS_FRAME = 9, 4
_OTHER_EXPORTER = {
    True: "Use an exporter of type otlp_http for this address, or give the backend's port for gRPC.",
    False: "Use an exporter of type otlp for this address, or give the backend's port for OTLP/HTTP.",
}
"""By whether the one configured is for gRPC."""
_OTHER_PORT = (
    "Set OTEL_EXPORTER_OTLP_PROTOCOL of the sender to what listens there, or send to the other port."
)
_EXPIRED, _NOT_YET_VALID, _OTHER_NAME, _OTHER_ADDRESS = 10, 9, 62, 64


Problem = tuple[str, str, str]
"""What was observed, what was expected, and what to do."""


class Remote:
    """A server to reach at `url` with an exporter that has these `settings`.

    `path` is that of the exporter in the configuration; None: it stands for a sender to a listener.
    """

    def __init__(self, url: str, settings: Any, path: str | None) -> None:
        parts = URL(url if "://" in url else f"//{url}")
        self.speaks_grpc = hasattr(settings, "is_secure")
        self.secure: bool = settings.is_secure if self.speaks_grpc else parts.scheme == "https"
        self.host = parts.host or ""
        self.port = parts.port or (443 if self.secure else 80)
        self.address = f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
        self.trusted: Path | None = settings.tls.ca_file
        self.name: str = settings.tls.server_name_override or self.host
        self.tls_setting = "the sender's tls" if path is None else f"{path}.tls"
        self.other_protocol = _OTHER_PORT if path is None else _OTHER_EXPORTER[self.speaks_grpc]


def wire_problem(remote: Remote) -> Problem | None:
    """What keeps a client from speaking with `remote`; None where nothing does."""
    return _connection_problem(remote) or _tls_problem(remote) or _protocol_problem(remote)


def _connection_problem(remote: Remote) -> Problem | None:
    try:
        _answer(remote, None)
    except socket.gaierror as error:
        result = f"the name {remote.host} is not known here: {error.strerror}"
        advice = "Check the spelling, and that this runs in the network that knows the name."
        return result, "a name that this machine resolves", advice
    except ConnectionRefusedError:
        result = f"nothing listens at {remote.address}"
        return result, "a server at this address", "Start it, or correct the host and the port."
    except OSError as error:
        result = f"no connection to {remote.address}: {error.strerror or error}"
        advice = "Check the address, the route and the firewalls between."
        return result, f"a connection within {_TIMEOUT_SECONDS:g} s", advice
    return None


def _tls_problem(remote: Remote) -> Problem | None:
    setting = remote.tls_setting
    try:
        _answer(remote, _trusting_anyone())
    except OSError as error:
        if not remote.secure:
            return None
        advice = (
            "Give it a certificate, or send plain text: http:// before the address or insecure: true in "
            f"{setting}."
        )
        return f"{remote.address} speaks no TLS: {error}", "TLS", advice
    if not remote.secure:
        advice = f"Send with TLS: https:// before the address, and no insecure: true in {setting}."
        return f"{remote.address} speaks TLS and was sent plain text", "TLS", advice
    try:
        strict = ssl.create_default_context(cafile=remote.trusted)
    except OSError as error:
        result = f"{remote.trusted}: no certificates in it: {error.strerror or error}"
        return result, "authorities in PEM form", f"Correct {setting}.ca_file."
    strict.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        for checks_name in (False, True):  # the name matters little in a certificate that is not trusted
            strict.check_hostname = checks_name
            _answer(remote, strict)
    except ssl.SSLCertVerificationError as error:
        return _certificate_problem(remote, error)
    except OSError:
        pass  # what it is about shows in the answer to the request
    return None


def _certificate_problem(remote: Remote, error: ssl.SSLCertVerificationError) -> Problem:
    result = f"the certificate of {remote.address} is not trusted: {error.verify_message}"
    if error.verify_code in (_EXPIRED, _NOT_YET_VALID):
        advice = "Renew the certificate of the server; check the clock of this machine."
        return result, "a certificate that is valid now", advice
    if error.verify_code in (_OTHER_NAME, _OTHER_ADDRESS):
        advice = f"Use the name in the certificate, or give it as {remote.tls_setting}.server_name_override."
        return result, f"a certificate made out to {remote.name}", advice
    expected = f"one issued by an authority in {remote.trusted or 'the list of this system'}"
    return result, expected, f"Name the authority that issued it in {remote.tls_setting}.ca_file."


def _protocol_problem(remote: Remote) -> Problem | None:
    speaks_http2 = _speaks(remote, "h2", _H2_PREFACE)
    request = f"GET / HTTP/1.1\r\nHost: {remote.address}\r\nConnection: close\r\n\r\n".encode()
    if remote.speaks_grpc is speaks_http2 or _speaks(remote, "http/1.1", request) is speaks_http2:
        return None
    if speaks_http2:
        result, expected = "speaks gRPC (HTTP/2)", "OTLP over HTTP/1.1, by custom on port 4318"
    else:
        result, expected = "speaks HTTP/1.1, not gRPC", "OTLP over gRPC, by custom on port 4317"
    return f"{remote.address} {result}", expected, remote.other_protocol


def _speaks(remote: Remote, protocol: Literal["h2", "http/1.1"], request: bytes) -> bool:
    context = _trusting_anyone() if remote.secure else None
    if context is not None:
        context.set_alpn_protocols([protocol])
    try:
        answer = _answer(remote, context, request)
    except OSError:
        return False
    if protocol == "h2":
        return len(answer) == _H2_FRAME_HEAD_BYTES and answer[3] == _SETTINGS_FRAME
    return answer.startswith(b"HTTP/1")


def _answer(remote: Remote, context: ssl.SSLContext | None, request: bytes = b"") -> bytes:
    """The first bytes of the answer to `request`, after a handshake if there is a context.

    Raises:
        OSError: there is no connection, or the handshake fails.
    """
    answer = b""
    with ExitStack() as stack:
        connection = stack.enter_context(
            socket.create_connection((remote.host, remote.port), _TIMEOUT_SECONDS)
        )
        if context is not None:
            connection = stack.enter_context(context.wrap_socket(connection, server_hostname=remote.name))
        connection.sendall(request)
        while request and len(answer) < _H2_FRAME_HEAD_BYTES:
            piece = connection.recv(_H2_FRAME_HEAD_BYTES - len(answer))
            if not piece:
                break
            answer += piece
    return answer


def _trusting_anyone() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
