"""How a self-check speaks TLS to the service's own listener.

It trusts the listener's certificate itself, as it was when the service started, whoever issued it. What a
certificate says of names is not held against it, since the listener is reached by its address; that it has
expired is.
"""

import contextlib
import ssl
from pathlib import Path
from typing import Any

from collector.errors import StartupError
from collector.receivers.server_config import ServerTlsConfig
from collector.telemetry.telemetry_config import SelfCheckTlsConfig

_HANDSHAKE_STEPS = 10


class ListenerTls:
    """Everything a client of one TLS listener needs.

    Where the listener asks clients for a certificate, it is shown the one in `client`; without that its own,
    which serves if its authorities issued it and it is not limited to servers.

    Attributes:
        authorities: The certificates to trust, PEM.
        certificate: What to show where the listener asks for it, PEM; None: nothing.
        key: The private key of it, PEM.

    Raises:
        StartupError: a file cannot be read or does not hold what it should.
    """

    def __init__(self, listener: ServerTlsConfig, client: SelfCheckTlsConfig | None) -> None:
        self._server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        _load(self._server, listener.cert_file, listener.key_file)
        self.authorities = _read(listener.cert_file)
        self.certificate: bytes | None = None
        self.key: bytes | None = None
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.context.check_hostname = False
        self.context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        self.context.load_verify_locations(cadata=self.authorities.decode())
        if listener.client_ca_file is not None:
            own = client or SelfCheckTlsConfig(cert_file=listener.cert_file, key_file=listener.key_file)
            _load(self.context, own.cert_file, own.key_file)
            self.certificate, self.key = _read(own.cert_file), _read(own.key_file)

    def certificate_name(self) -> str:
        """A name that the listener's certificate is made out to, for clients that insist on one.

        Raises:
            ssl.SSLError: the certificate is not valid now.
        """
        certificate = self._peer_certificate()
        subject = [pair for fields in certificate.get("subject", ()) for pair in fields]
        names = [*certificate.get("subjectAltName", ()), *subject]
        for wanted in ("DNS", "IP Address", "commonName"):
            for key, value in names:
                if key == wanted:
                    return str(value).replace("*", "self-check")
        return ""

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


def _load(context: ssl.SSLContext, certificate: Path, key: Path) -> None:
    try:
        # The callback keeps OpenSSL from asking the terminal for a passphrase.
        context.load_cert_chain(certificate, key, password=lambda: "")
    except (ssl.SSLError, OSError) as error:
        raise StartupError(
            f"{certificate}, {key}: no certificate with its unencrypted key in PEM form: {error}"
        ) from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise StartupError(f"{path}: cannot be read: {error.strerror or error}") from error
