"""What is wrong between here and an address: its name, connection, TLS, certificate or protocol.

One is tried after the other, since the errors of libraries do not tell them apart. Blocking; a few seconds at
most.
"""

import contextlib
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from collector.tools.doctor.hop import Trouble

_TIMEOUT_SECONDS = 3.0
_H2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5)
"""A client's first bytes, with empty settings (RFC 9113, 3.4)."""
_H2_FRAME_HEAD_BYTES, _SETTINGS_FRAME = 9, 4
_EXPIRED, _NOT_YET_VALID, _OTHER_NAME, _OTHER_ADDRESS = 10, 9, 62, 64


@dataclass(frozen=True, slots=True)
class Remote:
    """Who is to be reached, and as what a client takes it.

    `name` is what the certificate must be made out to; `trusted` None: the system's authorities.
    `tls_setting` names what the user would change.
    """

    host: str
    port: int
    speaks: Literal["grpc", "http"]
    secure: bool
    name: str
    trusted: Path | None = None
    tls_setting: str = "tls"
    other_protocol: str = ""
    """What to do where it speaks the other of the two protocols."""

    @property
    def address(self) -> str:
        """`host:port`."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def wire_trouble(remote: Remote) -> Trouble | None:
    """What keeps a client from speaking with `remote`; None where nothing does."""
    return _connection_trouble(remote) or _tls_trouble(remote) or _protocol_trouble(remote)


def _connection_trouble(remote: Remote) -> Trouble | None:
    try:
        socket.create_connection((remote.host, remote.port), _TIMEOUT_SECONDS).close()
    except socket.gaierror as error:
        return Trouble(
            f"the name {remote.host} is not known here: {error.strerror}",
            "a name that this machine resolves",
            "Check the spelling, and that this runs in the network that knows the name.",
        )
    except ConnectionRefusedError:
        return Trouble(
            f"nothing listens at {remote.address}",
            "a server at this address",
            "Start it, or correct the host and the port.",
        )
    except OSError as error:
        return Trouble(
            f"no connection to {remote.address}: {error.strerror or error}",
            f"a connection within {_TIMEOUT_SECONDS:g} s",
            "Check the address, the route and the firewalls between.",
        )
    return None


def _tls_trouble(remote: Remote) -> Trouble | None:
    anyone = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anyone.check_hostname = False
    anyone.verify_mode = ssl.CERT_NONE
    problem = _handshake(remote, anyone)
    if not remote.secure:
        if problem is None:
            return Trouble(
                f"{remote.address} speaks TLS and was sent plain text",
                "TLS",
                f"Send with TLS: https:// before the address, and no insecure: true in {remote.tls_setting}.",
            )
        return None
    if problem is not None:
        return Trouble(
            f"{remote.address} speaks no TLS: {problem}",
            "TLS",
            f"Give it a certificate, or send plain text: http:// before the address or insecure: true in "
            f"{remote.tls_setting}.",
        )
    try:
        strict = ssl.create_default_context(cafile=remote.trusted)
    except OSError as error:
        return Trouble(
            f"{remote.trusted}: no certificates in it: {error.strerror or error}",
            "authorities in PEM form",
            f"Correct {remote.tls_setting}.ca_file.",
        )
    strict.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    for checks_name in (False, True):  # a name says little of a certificate that is not trusted
        strict.check_hostname = checks_name
        problem = _handshake(remote, strict)
        if isinstance(problem, ssl.SSLCertVerificationError):
            return _certificate_trouble(remote, problem)
    return None


def _certificate_trouble(remote: Remote, problem: ssl.SSLCertVerificationError) -> Trouble:
    found = f"the certificate of {remote.address} is not trusted: {problem.verify_message}"
    if problem.verify_code in (_EXPIRED, _NOT_YET_VALID):
        return Trouble(
            found,
            "a certificate that is valid now",
            "Renew the certificate of the server; check the clock of this machine.",
        )
    if problem.verify_code in (_OTHER_NAME, _OTHER_ADDRESS):
        return Trouble(
            found,
            f"a certificate made out to {remote.name}",
            f"Use the name in the certificate, or give it as {remote.tls_setting}.server_name_override.",
        )
    return Trouble(
        found,
        f"one issued by an authority in {remote.trusted or 'the list of this system'}",
        f"Name the authority that issued it in {remote.tls_setting}.ca_file.",
    )


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


def _protocol_trouble(remote: Remote) -> Trouble | None:
    if remote.speaks == "http" and not _speaks_http1(remote) and _speaks_http2(remote):
        return Trouble(
            f"{remote.address} speaks gRPC (HTTP/2)",
            "OTLP over HTTP/1.1, by custom on port 4318",
            remote.other_protocol,
        )
    if remote.speaks == "grpc" and not _speaks_http2(remote) and _speaks_http1(remote):
        return Trouble(
            f"{remote.address} speaks HTTP/1.1, not gRPC",
            "OTLP over gRPC, by custom on port 4317",
            remote.other_protocol,
        )
    return None


def _speaks_http1(remote: Remote) -> bool:
    request = f"GET / HTTP/1.1\r\nHost: {remote.address}\r\nConnection: close\r\n\r\n"
    return _answer(remote, request.encode(), "http/1.1").startswith(b"HTTP/1")


def _speaks_http2(remote: Remote) -> bool:
    answer = _answer(remote, _H2_PREFACE, "h2")
    return len(answer) == _H2_FRAME_HEAD_BYTES and answer[3] == _SETTINGS_FRAME


def _answer(remote: Remote, request: bytes, protocol: str) -> bytes:
    """The first bytes of what comes back, empty for none."""
    answer = b""
    with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
        connection = stack.enter_context(
            socket.create_connection((remote.host, remote.port), _TIMEOUT_SECONDS)
        )
        if remote.secure:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            context.set_alpn_protocols([protocol])
            connection = stack.enter_context(context.wrap_socket(connection))
        connection.sendall(request)
        while len(answer) < _H2_FRAME_HEAD_BYTES and (
            piece := connection.recv(_H2_FRAME_HEAD_BYTES - len(answer))
        ):
            answer += piece
    return answer
