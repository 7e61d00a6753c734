"""A client of the own listener trusts its certificate, whatever name it is made out to."""

import ssl
from pathlib import Path

import pytest

from collector.errors import StartupError
from collector.receivers import ServerTlsConfig
from collector.telemetry import SelfCheckTlsConfig
from collector.tools.self_check.listener_client import ListenerTls
from tests.support.otlp_senders import TLS


def listener(name: str, client_ca: str | None = None) -> ServerTlsConfig:
    return ServerTlsConfig(
        cert_file=TLS / f"{name}.pem",
        key_file=TLS / f"{name}.key",
        client_ca_file=None if client_ca is None else TLS / client_ca,
    )


@pytest.mark.parametrize(
    ("certificate", "name"),
    [("server", "localhost"), ("wildcard", "self-check.agents.test"), ("common_name", "agents.test")],
)
def test_a_name_of_the_certificate_is_read_from_it(certificate: str, name: str) -> None:
    tls = ListenerTls(listener(certificate), None)

    assert name == tls.certificate_name()


def test_an_expired_certificate_is_not_trusted() -> None:
    tls = ListenerTls(listener("expired"), None)

    with pytest.raises(ssl.SSLError, match="expired"):
        tls.certificate_name()


def test_no_certificate_is_shown_to_a_listener_that_asks_for_none() -> None:
    tls = ListenerTls(
        listener("server"), SelfCheckTlsConfig(cert_file=TLS / "client.pem", key_file=TLS / "client.key")
    )

    assert (None, None) == (tls.certificate, tls.key)


def test_a_listener_that_asks_for_a_certificate_is_shown_its_own() -> None:
    tls = ListenerTls(listener("server", client_ca="ca.pem"), None)

    assert (TLS / "server.pem").read_bytes() == tls.certificate
    assert (TLS / "server.key").read_bytes() == tls.key


def test_a_listener_that_asks_for_a_certificate_is_shown_the_configured_one() -> None:
    client = SelfCheckTlsConfig(cert_file=TLS / "client.pem", key_file=TLS / "client.key")

    tls = ListenerTls(listener("server", client_ca="ca.pem"), client)

    assert (TLS / "client.pem").read_bytes() == tls.certificate


def test_a_client_certificate_that_is_not_there_is_told_at_the_start(tmp_path: Path) -> None:
    client = SelfCheckTlsConfig(cert_file=tmp_path / "none.pem", key_file=tmp_path / "none.key")

    with pytest.raises(StartupError, match=r"none\.pem"):
        ListenerTls(listener("server", client_ca="ca.pem"), client)
