"""OTLP over HTTP: which answers are final, URLs, delays, TLS, compression."""

import gzip

import pytest
from aiohttp import web
from pydantic import ValidationError

from collector.clock import ManualClock
from collector.errors import ContentRefusedError, PermanentExportError, RetryableExportError
from collector.exporters.exporter import ExportResponse
from collector.exporters.otlp_http import OtlpHttpConfig, OtlpHttpExporter
from collector.otlp import join_spans
from tests.support.backends import TLS_DIRECTORY, HttpBackend
from tests.support.deliveries import make_spans

_REQUEST = join_spans(make_spans(1, 3))
_LARGE = join_spans(make_spans(1, 1500, padding=1000))


def _exporter(clock: ManualClock | None = None, **config: object) -> OtlpHttpExporter:
    return OtlpHttpExporter("otlp_http", OtlpHttpConfig.model_validate(config), clock or ManualClock())


async def _export(exporter: OtlpHttpExporter, request: bytes = _REQUEST) -> ExportResponse:
    await exporter.start()
    try:
        return await exporter.export(request, 3)
    finally:
        await exporter.shutdown(0)


@pytest.mark.parametrize(
    ("status", "expected"),
    [(status, RetryableExportError) for status in (429, 502, 503, 504)]
    + [(status, ContentRefusedError) for status in (400, 413, 422)]
    + [(status, PermanentExportError) for status in (301, 307, 401, 403, 404, 405, 415, 500, 501)],
)
async def test_every_status_is_final_or_not_as_the_protocol_says(
    status: int, expected: type[Exception]
) -> None:
    backend = HttpBackend()
    backend.override = lambda request: web.Response(status=status, text="because")
    await backend.start()

    with pytest.raises(expected, match=f"HTTP {status}: because") as raised:
        await _export(_exporter(endpoint=backend.endpoint))

    assert expected is type(raised.value)
    await backend.stop()


@pytest.mark.parametrize("compression", ["gzip", "none"])
@pytest.mark.parametrize("request_bytes", [_REQUEST, _LARGE], ids=["small", "large"])
async def test_the_request_arrives_byte_for_byte(compression: str, request_bytes: bytes) -> None:
    backend = HttpBackend()
    await backend.start()

    await _export(_exporter(endpoint=backend.endpoint, compression=compression), request_bytes)

    assert [request_bytes] == backend.requests
    assert ["/v1/traces"] == backend.paths
    assert "application/x-protobuf" == backend.headers[0]["Content-Type"]
    assert (compression == "gzip") == (backend.headers[0].get("Content-Encoding") == "gzip")
    await backend.stop()


async def test_headers_are_sent() -> None:
    backend = HttpBackend()
    await backend.start()

    await _export(_exporter(endpoint=backend.endpoint, headers={"Authorization": "Basic abc"}))

    assert "Basic abc" == backend.headers[0]["Authorization"]
    assert backend.headers[0]["User-Agent"].startswith("tracegrade")
    await backend.stop()


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7.0),
        ("Thu, 01 Jan 1970 00:00:30 GMT", 20.0),
        ("Thu, 01 Jan 1970 00:00:05 GMT", 0.0),
        ("soon", None),
        ("Mon, 01 Jan 2024 00:00:00 +99999999999999999999", None),
        ("Mon, 01 Jan 99999 00:00:00 GMT", None),
    ],
)
async def test_retry_after_is_read_as_seconds_or_date(value: str, seconds: float | None) -> None:
    backend = HttpBackend()
    backend.override = lambda request: web.Response(status=503, headers={"Retry-After": value})
    await backend.start()

    with pytest.raises(RetryableExportError) as raised:
        await _export(_exporter(ManualClock(unix_nano=10_000_000_000), endpoint=backend.endpoint))

    assert seconds == raised.value.retry_after_seconds
    await backend.stop()


async def test_a_redirect_is_not_followed_but_named() -> None:
    backend = HttpBackend()
    backend.override = lambda request: web.Response(status=308, headers={"Location": "https://elsewhere/"})
    await backend.start()

    with pytest.raises(PermanentExportError, match="redirect to https://elsewhere/"):
        await _export(_exporter(endpoint=backend.endpoint))

    assert 1 == backend.attempts
    await backend.stop()


async def test_a_success_with_an_odd_body_is_a_success() -> None:
    backend = HttpBackend()
    backend.override = lambda request: web.Response(body=b"\xff\xff", content_type="application/x-protobuf")
    await backend.start()

    response = await _export(_exporter(endpoint=backend.endpoint))

    assert ExportResponse() == response
    await backend.stop()


async def test_a_connection_that_breaks_is_worth_a_retry() -> None:
    def drop(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    backend = HttpBackend()
    backend.override = drop
    await backend.start()

    with pytest.raises(RetryableExportError):
        await _export(_exporter(endpoint=backend.endpoint))

    await backend.stop()


async def test_tls_with_an_own_authority() -> None:
    backend = HttpBackend(tls=True)
    await backend.start()

    await _export(_exporter(endpoint=backend.endpoint, tls={"ca_file": TLS_DIRECTORY / "ca.pem"}))

    assert [_REQUEST] == backend.requests
    await backend.stop()


async def test_an_unknown_authority_is_not_trusted() -> None:
    backend = HttpBackend(tls=True)
    await backend.start()

    with pytest.raises(RetryableExportError, match="ertificate"):
        await _export(_exporter(endpoint=backend.endpoint))

    assert [] == backend.requests
    await backend.stop()


@pytest.mark.parametrize(
    ("config", "url"),
    [
        ({"endpoint": "http://a:4318"}, "http://a:4318/v1/traces"),
        ({"endpoint": "https://a/api/otel/"}, "https://a/api/otel/v1/traces"),
        ({"traces_endpoint": "https://a/ingest?x=1"}, "https://a/ingest?x=1"),
    ],
)
def test_the_path_is_appended_to_a_base_url_only(config: dict[str, str], url: str) -> None:
    assert url == str(OtlpHttpConfig.model_validate(config).url("traces"))


@pytest.mark.parametrize(
    ("config", "traces", "logs"),
    [
        ({"endpoint": "http://a/x?y=1"}, "http://a/x/v1/traces?y=1", "http://a/x/v1/logs?y=1"),
        ({"endpoint": "http://a", "signals": ["traces"]}, "http://a/v1/traces", "None"),
        ({"endpoint": "http://a", "signals": ["logs"]}, "None", "http://a/v1/logs"),
        ({"traces_endpoint": "http://a/t"}, "http://a/t", "None"),
        ({"logs_endpoint": "http://a/l"}, "None", "http://a/l"),
        ({"traces_endpoint": "http://a/t", "logs_endpoint": "http://b/l"}, "http://a/t", "http://b/l"),
    ],
)
def test_a_signal_goes_there_if_it_is_wanted_and_has_a_url(
    config: dict[str, object], traces: str, logs: str
) -> None:
    model = OtlpHttpConfig.model_validate(config)

    assert (traces, logs) == (str(model.url("traces")), str(model.url("logs")))
    assert (traces != "None", logs != "None") == ("traces" in model.accepts, "logs" in model.accepts)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "exactly one of endpoint"),
        ({"endpoint": "http://a", "logs_endpoint": "http://a"}, "exactly one of endpoint"),
        ({"logs_endpoint": "a"}, "logs_endpoint: expected a URL"),
        ({"traces_endpoint": "http://a", "signals": ["logs"]}, "no URL for logs"),
        ({"endpoint": "http://a", "signals": []}, "at least 1 item"),
        ({"endpoint": "http://a", "traces_endpoint": "http://a"}, "exactly one of endpoint"),
        ({"endpoint": "a:4318"}, "endpoint: expected a URL"),
        ({"traces_endpoint": "ftp://a"}, "traces_endpoint: expected a URL"),
        ({"endpoint": "http://a", "encoding": "json"}, '"json" is not supported'),
        ({"endpoint": "http://a", "timeout": 5}, "the unit is missing"),
        ({"endpoint": "http://a", "retires": 5}, "Extra inputs"),
    ],
)
def test_bad_configuration_is_refused_in_plain_words(config: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        OtlpHttpConfig.model_validate(config)


def test_credentials_in_the_url_are_not_shown() -> None:
    assert "http://a:1/v1/traces" == _exporter(endpoint="http://user:secret@a:1").endpoints["traces"]


def test_the_fixture_is_larger_than_what_is_compressed_in_the_loop() -> None:
    assert len(_LARGE) > 1 << 20
    assert len(gzip.compress(_LARGE)) < len(_LARGE)
