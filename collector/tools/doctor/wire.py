"""What is wrong between here and an address: its name, connection, TLS, certificate or protocol.

One is tried after the other, since the errors of libraries do not distinguish them. Blocking; a few seconds
at most.
"""

import contextlib
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from collector.tools.doctor.hop import Hop, broken

_TIMEOUT_SECONDS = 3.0
_H2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5)
"""A client's first bytes, with empty settings (RFC 9113, 3.4)."""
_H2_FRAME_HEAD_BYTES, _SETTINGS_FRAME = 9, 4
_EXPIRED, _NOT_YET_VALID, _OTHER_NAME, _OTHER_ADDRESS = 10, 9, 62, 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """A server to reach for the hop `where`.

    `name` is what its certificate must be made out to; `trusted` None: the system's authorities.
    `tls_setting` names what the user would change, `other_protocol` says what to do where it speaks the other
    of the two protocols.
    """

    where: str
    host: str
    port: int
    speaks: Literal["grpc", "http"]
    secure: bool
    name: str
    trusted: Path | None
    tls_setting: str
    other_protocol: str

    @property
    def address(self) -> str:
        """`host:port`."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def wire_problem(remote: Remote) -> Hop | None:
    """What keeps a client from speaking with `remote`; None where nothing does."""
    problem = _connection_problem(remote) or _tls_problem(remote) or _protocol_problem(remote)
    return None if problem is None else broken(remote.where, *problem)


_Problem = tuple[str, str, str]
"""What was found, what was expected, and what to do."""


def _connection_problem(remote: Remote) -> _Problem | None:
    try:
        socket.create_connection((remote.host, remote.port), _TIMEOUT_SECONDS).close()
    except socket.gaierror as error:
        return (
            f"the name {remote.host} is not known here: {error.strerror}",
            "a name that this machine resolves",
            "Check the spelling, and that this runs in the network that knows the name.",
        )
    except ConnectionRefusedError:
        return (
            f"nothing listens at {remote.address}",
            "a server at this address",
            "Start it, or correct the host and the port.",
        )
    except OSError as error:
        return (
            f"no connection to {remote.address}: {error.strerror or error}",
            f"a connection within {_TIMEOUT_SECONDS:g} s",
            "Check the address, the route and the firewalls between.",
        )
    return None


def _tls_problem(remote: Remote) -> _Problem | None:
    problem = _handshake(remote, _trusting_anyone())
    if not remote.secure:
        if problem is not None:
            return None
        return (
            f"{remote.address} speaks TLS and was sent plain text",
            "TLS",
            f"Send with TLS: https:// before the address, and no insecure: true in {remote.tls_setting}.",
        )
    if problem is not None:
        return (
            f"{remote.address} speaks no TLS: {problem}",
            "TLS",
            f"Give it a certificate, or send plain text: http:// before the address or insecure: true in "
            f"{remote.tls_setting}.",
        )
    try:
        strict = ssl.create_default_context(cafile=remote.trusted)
    except OSError as error:
        return (
            f"{remote.trusted}: no certificates in it: {error.strerror or error}",
            "authorities in PEM form",
            f"Correct {remote.tls_setting}.ca_file.",
        )
    strict.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    for checks_name in (False, True):  # the name matters little in a certificate that is not trusted
        strict.check_hostname = checks_name
        problem = _handshake(remote, strict)
        if isinstance(problem, ssl.SSLCertVerificationError):
            return _certificate_problem(remote, problem)
    return None


def _certificate_problem(remote: Remote, error: ssl.SSLCertVerificationError) -> _Problem:
    found = f"the certificate of {remote.address} is not trusted: {error.verify_message}"
    if error.verify_code in (_EXPIRED, _NOT_YET_VALID):
        advice = "Renew the certificate of the server; check the clock of this machine."
        return found, "a certificate that is valid now", advice
    if error.verify_code in (_OTHER_NAME, _OTHER_ADDRESS):
        advice = f"Use the name in the certificate, or give it as {remote.tls_setting}.server_name_override."
        return found, f"a certificate made out to {remote.name}", advice
    expected = f"one issued by an authority in {remote.trusted or 'the list of this system'}"
    return found, expected, f"Name the authority that issued it in {remote.tls_setting}.ca_file."


def _protocol_problem(remote: Remote) -> _Problem | None:
    speaks_http2 = _speaks_http2(remote)
    if (remote.speaks == "grpc") is speaks_http2 or _speaks_http1(remote) is speaks_http2:
        return None
    if speaks_http2:
        found, expected = "speaks gRPC (HTTP/2)", "OTLP over HTTP/1.1, by custom on port 4318"
    else:
        found, expected = "speaks HTTP/1.1, not gRPC", "OTLP over gRPC, by custom on port 4317"
    return f"{remote.address} {found}", expected, remote.other_protocol


def _speaks_http1(remote: Remote) -> bool:
    request = f"GET / HTTP/1.1\r\nHost: {remote.address}\r\nConnection: close\r\n\r\n"
    return _answer(remote, request.encode(), "http/1.1").startswith(b"HTTP/1")


def _speaks_http2(remote: Remote) -> bool:
    answer = _answer(remote, _H2_PREFACE, "h2")
    return len(answer) == _H2_FRAME_HEAD_BYTES and answer[3] == _SETTINGS_FRAME


def _handshake(remote: Remote, context: ssl.SSLContext) -> OSError | None:
    """What a handshake ends with; None where it succeeds."""
    try:
        with (
            socket.create_connection((remote.host, remote.port), _TIMEOUT_SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=remote.name),
        ):
            return None
    except OSError as error:
        return error


def _answer(remote: Remote, request: bytes, protocol: str) -> bytes:
    """The first bytes of the answer, empty for none."""
    answer = b""
    with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
        connection = stack.enter_context(
            socket.create_connection((remote.host, remote.port), _TIMEOUT_SECONDS)
        )
        if remote.secure:
            context = _trusting_anyone()
            context.set_alpn_protocols([protocol])
            connection = stack.enter_context(context.wrap_socket(connection))
        connection.sendall(request)
        while len(answer) < _H2_FRAME_HEAD_BYTES and (
            piece := connection.recv(_H2_FRAME_HEAD_BYTES - len(answer))
        ):
            answer += piece
    return answer


def _trusting_anyone() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
