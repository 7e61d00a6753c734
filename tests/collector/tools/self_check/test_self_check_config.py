"""`service.telemetry.self_check` in the service file."""

from pathlib import Path

import pytest

from collector.configuration import load_configuration, parse_configuration
from collector.telemetry import SelfCheckConfig
from processors.documents import InvalidInput


def self_check(text: str) -> SelfCheckConfig:
    text = f"service: {{telemetry: {{self_check: {text}}}}}"
    return parse_configuration(text, "tracegrade.yaml", {}).service.telemetry.self_check


@pytest.mark.parametrize("text", ["", "{}", "{enabled: true, interval: 60s}"])
def test_a_check_is_made_every_minute_by_default(text: str) -> None:
    assert SelfCheckConfig(enabled=True, interval="60s") == self_check(text)


@pytest.mark.parametrize("text", ["{interval: 0s}", "{intervall: 1m}", "{tls: {cert_file: client.pem}}"])
def test_what_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"service\.telemetry\.self_check\."):
        self_check(text)


def test_certificates_lie_beside_the_service_file(tmp_path: Path) -> None:
    file = tmp_path / "tracegrade.yaml"
    file.write_text("service: {telemetry: {self_check: {tls: {cert_file: a.pem, key_file: a.key}}}}")

    tls = load_configuration(file, {}).service.telemetry.self_check.tls

    assert tls is not None
    assert (tmp_path / "a.pem", tmp_path / "a.key") == (tls.cert_file, tls.key_file)
