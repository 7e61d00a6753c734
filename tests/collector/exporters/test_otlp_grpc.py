"""OTLP over gRPC: which answers are final, TLS, headers, compression."""

from pathlib import Path

import grpc
import pytest
from pydantic import ValidationError

from collector.errors import ContentRefusedError, PermanentExportError, RetryableExportError, StartupError
from collector.exporters.otlp_grpc import OtlpGrpcConfig, OtlpGrpcExporter
from collector.otlp import join_spans
from tests.support.backends import TLS_DIRECTORY, Answer, GrpcBackend
from tests.support.deliveries import make_spans

_REQUEST = join_spans(make_spans(1, 3))


def _exporter(**config: object) -> OtlpGrpcExporter:
    return OtlpGrpcExporter("otlp", OtlpGrpcConfig.model_validate(config))


async def _export(exporter: OtlpGrpcExporter, request: bytes = _REQUEST) -> None:
    await exporter.start()
    try:
        await exporter.export(request, 3)
    finally:
        await exporter.shutdown(0)


_RETRYABLE = ["CANCELLED", "DEADLINE_EXCEEDED", "ABORTED", "OUT_OF_RANGE", "UNAVAILABLE", "DATA_LOSS"]
_CONTENT = ["INVALID_ARGUMENT", "RESOURCE_EXHAUSTED"]
_FINAL = [
    "UNKNOWN",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "FAILED_PRECONDITION",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAUTHENTICATED",
]


@pytest.mark.parametrize(
    ("code", "expected"),
    [(code, RetryableExportError) for code in _RETRYABLE]
    + [(code, ContentRefusedError) for code in _CONTENT]
    + [(code, PermanentExportError) for code in _FINAL],
)
async def test_every_status_code_is_final_or_not_as_the_protocol_says(
    code: str, expected: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = GrpcBackend(lambda request: Answer("refuse", message="no"))
    monkeypatch.setitem(GrpcBackend._CODES, "refuse", grpc.StatusCode[code])
    await backend.start()

    with pytest.raises(expected, match=f"{code}: no") as raised:
        await _export(_exporter(endpoint=backend.endpoint, tls={"insecure": True}))

    assert expected is type(raised.value)
    await backend.stop()


async def test_resource_exhausted_with_a_delay_is_worth_a_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = GrpcBackend(lambda request: Answer("refuse", retry_after=2))
    monkeypatch.setitem(GrpcBackend._CODES, "refuse", grpc.StatusCode.RESOURCE_EXHAUSTED)
    await backend.start()

    with pytest.raises(RetryableExportError) as raised:
        await _export(_exporter(endpoint=backend.endpoint, tls={"insecure": True}))

    assert 2.0 == raised.value.retry_after_seconds
    await backend.stop()


async def test_nobody_at_the_endpoint_is_worth_a_retry() -> None:
    with pytest.raises(RetryableExportError, match="UNAVAILABLE"):
        await _export(_exporter(endpoint="127.0.0.1:1", tls={"insecure": True}))


async def test_the_request_leaves_byte_for_byte_with_its_headers() -> None:
    backend = GrpcBackend()
    await backend.start()

    await _export(
        _exporter(endpoint=f"http://{backend.endpoint}", headers={"Authorization": "Bearer secret"})
    )

    assert [_REQUEST] == backend.requests
    assert "Bearer secret" == backend.headers[0]["authorization"]
    assert backend.headers[0]["user-agent"].startswith("tracegrade")
    await backend.stop()


async def test_gzip_is_understood_by_a_grpc_server() -> None:
    backend = GrpcBackend()
    await backend.start()
    large = join_spans(make_spans(1, 100, padding=500))

    await _export(_exporter(endpoint=backend.endpoint, tls={"insecure": True}, compression="gzip"), large)

    assert [large] == backend.requests
    await backend.stop()


async def test_tls_with_an_own_authority_and_a_client_certificate() -> None:
    backend = GrpcBackend(tls=True, client_tls=True)
    await backend.start()
    tls = {
        "ca_file": TLS_DIRECTORY / "ca.pem",
        "cert_file": TLS_DIRECTORY / "client.pem",
        "key_file": TLS_DIRECTORY / "client.key",
    }

    await _export(_exporter(endpoint=f"https://{backend.endpoint}", tls=tls))

    assert [_REQUEST] == backend.requests
    await backend.stop()


async def test_the_name_in_the_certificate_can_be_another_one() -> None:
    backend = GrpcBackend(tls=True)
    await backend.start()
    tls = {"ca_file": TLS_DIRECTORY / "ca.pem", "server_name_override": "backend.test"}

    await _export(_exporter(endpoint=backend.endpoint, tls=tls))

    assert [_REQUEST] == backend.requests
    await backend.stop()


async def test_an_unknown_authority_is_not_trusted() -> None:
    backend = GrpcBackend(tls=True)
    await backend.start()

    with pytest.raises(RetryableExportError):
        await _export(_exporter(endpoint=backend.endpoint, timeout="5s"))

    assert [] == backend.requests
    await backend.stop()


async def test_a_missing_tls_file_stops_the_start_with_one_line(tmp_path: Path) -> None:
    missing = tmp_path / "nowhere.pem"

    with pytest.raises(StartupError) as raised:
        await _exporter(endpoint="tempo:4317", tls={"ca_file": missing}).start()

    assert f"exporters.otlp.tls.ca_file: {missing} cannot be read: No such file or directory" == str(
        raised.value
    )


@pytest.mark.parametrize(
    "endpoint", ["tempo", "tempo:", ":4317", "tempo:0", "tempo:99999", "http://a:1/path"]
)
def test_an_endpoint_must_be_host_and_port(endpoint: str) -> None:
    with pytest.raises(ValidationError, match="expected host:port"):
        OtlpGrpcConfig.model_validate({"endpoint": endpoint})


@pytest.mark.parametrize(
    ("endpoint", "insecure", "is_secure"),
    [
        ("tempo:4317", False, True),
        ("tempo:4317", True, False),
        ("http://tempo:4317", False, False),
        ("https://tempo:4317/", True, True),
    ],
)
def test_the_scheme_decides_about_tls(endpoint: str, insecure: bool, is_secure: bool) -> None:
    config = OtlpGrpcConfig.model_validate({"endpoint": endpoint, "tls": {"insecure": insecure}})

    assert ("tempo:4317", is_secure) == (config.target, config.is_secure)


@pytest.mark.parametrize(
    "headers", [{"a b": "x"}, {"grpc-timeout": "1S"}, {"x": "two\nlines"}, {"x-bin": "x"}]
)
def test_headers_that_cannot_be_sent_are_refused(headers: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="header"):
        OtlpGrpcConfig.model_validate({"endpoint": "tempo:4317", "headers": headers})


def test_header_values_are_not_printed() -> None:
    config = OtlpGrpcConfig.model_validate(
        {"endpoint": "tempo:4317", "headers": {"authorization": "hunter2"}}
    )

    assert "hunter2" not in repr(config) + config.model_dump_json()


def test_a_certificate_needs_its_key() -> None:
    with pytest.raises(ValidationError, match="belong together"):
        OtlpGrpcConfig.model_validate({"endpoint": "tempo:4317", "tls": {"cert_file": "a.pem"}})
