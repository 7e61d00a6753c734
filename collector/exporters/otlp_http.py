"""OTLP over HTTP to a trace backend (`otlp_http`), in binary protobuf."""

import asyncio
import io
from typing import Literal, Self

import aiohttp
from pydantic import Field, field_validator, model_validator
from yarl import URL

from collector.clock import Clock
from collector.config_fields import PositiveDuration
from collector.errors import (
    ContentRefusedError,
    ExportError,
    PermanentExportError,
    RetryableExportError,
)
from collector.exporters.exporter import ACCEPTED, ExportResponse, SpanExporterType
from collector.exporters.http_client import (
    is_usable_url,
    read_body,
    retry_after_seconds,
    shown_url,
    tls_context,
)
from collector.exporters.otlp_client import (
    ClientTlsConfig,
    Headers,
    one_line,
    read_response,
    read_status,
    user_agent,
)
from collector.exporters.span_exporter_config import RESULT_QUEUES, Signal, SpanExporterConfig
from collector.otlp import gzip_compress

_PROTOBUF = "application/x-protobuf"
_RETRYABLE = frozenset({429, 502, 503, 504})  # OTLP specification, "Retryable Response Codes"
_CONTENT = frozenset({400, 413, 422})
_IN_LOOP_BYTES = 64 * 1024
"""Requests up to this size are compressed at once; larger ones in a thread."""

_IN_ONE_WRITE_BYTES = 512 * 1024
"""Larger requests are handed to the transport piece by piece."""


class OtlpHttpConfig(SpanExporterConfig):
    """`exporters.otlp_http`: a backend that speaks OTLP over HTTP."""

    endpoint: str | None = None
    """Base URL; `/v1/traces` and `/v1/logs` are appended."""
    traces_endpoint: str | None = None
    """The whole URL for spans instead, where the path is another. Log records then go there only if
    `logs_endpoint` is given as well."""
    logs_endpoint: str | None = None
    """The whole URL for log records instead. Spans then go there only if `traces_endpoint` is given as
    well."""
    tls: ClientTlsConfig = ClientTlsConfig()
    headers: Headers = Field(default_factory=dict)
    """Headers of every request."""
    compression: Literal["gzip", "none"] = "gzip"
    encoding: Literal["proto"] = "proto"
    """Requests are binary protobuf."""
    timeout: PositiveDuration = 10.0
    """For one attempt."""
    signals: tuple[Signal, ...] = Field(default=("traces", "logs"), min_length=1)
    """What goes there: spans, and log records if `results.emit` makes any."""

    @field_validator("encoding", mode="before")
    @classmethod
    def _refuse_json(cls, value: object) -> object:
        if value == "json":
            raise ValueError('encoding: "json" is not supported, "proto" is the only encoding')
        return value

    @model_validator(mode="after")
    def _check_endpoint(self) -> Self:
        if (self.endpoint is None) == (self.traces_endpoint is None and self.logs_endpoint is None):
            raise ValueError(
                "give exactly one of endpoint (base URL) and traces_endpoint or logs_endpoint (whole URLs)"
            )
        for key in ("endpoint", "traces_endpoint", "logs_endpoint"):
            text = getattr(self, key)
            if text is not None and not is_usable_url(text):
                raise ValueError(
                    f'{key}: expected a URL such as "https://backend.example/otlp", got {text!r}'
                )
        if not self.takes_spans and not self.takes_log_records:
            raise ValueError(f"signals: there is no URL for {self.signals[0]}")
        return self

    @property
    def traces_url(self) -> URL | None:
        """Where spans go, if they do."""
        return self._url("traces", self.traces_endpoint)

    @property
    def logs_url(self) -> URL | None:
        """Where log records go, if they do."""
        return self._url("logs", self.logs_endpoint)

    @property
    def takes_spans(self) -> bool:
        """Whether spans go there."""
        return self.traces_url is not None

    @property
    def takes_log_records(self) -> bool:
        """Whether log records go there."""
        return self.logs_url is not None

    def _url(self, signal: Signal, whole: str | None) -> URL | None:
        if signal not in self.signals:
            return None
        if whole is not None:
            return URL(whole)
        if self.endpoint is None:
            return None
        base = URL(self.endpoint)
        return base.with_path(f"{base.path.rstrip('/')}/v1/{signal}", keep_query=True)


class OtlpHttpExporter:
    """Posts requests to one URL for each signal. Redirects are not followed: they would lose the body."""

    def __init__(self, name: str, config: OtlpHttpConfig, clock: Clock) -> None:
        self.name = name
        self.endpoint = shown_url(config.traces_url)
        self.logs_endpoint = shown_url(config.logs_url)
        self._config = config
        self._traces_url = config.traces_url
        self._logs_url = config.logs_url
        self._clock = clock
        self._session: aiohttp.ClientSession | None = None

    async def start(self) -> None:
        """Read the TLS files and make the connection pool."""
        config = self._config
        schemes = {url.scheme for url in (self._traces_url, self._logs_url) if url is not None}
        tls = tls_context(config.tls, self.name) if "https" in schemes else True
        headers = {"Content-Type": _PROTOBUF, "Accept": _PROTOBUF, "User-Agent": user_agent()}
        if config.compression == "gzip":
            headers["Content-Encoding"] = "gzip"
        headers.update((name, value.get_secret_value()) for name, value in config.headers.items())
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=config.sending_queue.num_consumers + RESULT_QUEUES, ssl=tls),
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=config.timeout),
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def export(self, request: bytes, span_count: int) -> ExportResponse:
        """Post one request; see `SpanExporter.export`."""
        return await self._post(self._traces_url, request)

    async def export_logs(self, request: bytes, record_count: int) -> ExportResponse:
        """Post one request with log records; see `LogExporter.export_logs`."""
        return await self._post(self._logs_url, request)

    async def shutdown(self, deadline: float) -> None:
        """Close all connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _post(self, url: URL | None, request: bytes) -> ExportResponse:
        session = self._session
        if session is None:
            raise RetryableExportError("The exporter is not started.")
        if url is None:
            raise PermanentExportError("There is no URL for this signal.")
        body = request
        if self._config.compression == "gzip":
            compress_in_loop = len(request) <= _IN_LOOP_BYTES
            body = (
                gzip_compress(request)
                if compress_in_loop
                else await asyncio.to_thread(gzip_compress, request)
            )
        try:
            async with session.post(
                url,
                data=body if len(body) <= _IN_ONE_WRITE_BYTES else io.BytesIO(body),
                allow_redirects=False,
                server_hostname=self._config.tls.server_name_override,
            ) as response:
                answer = await read_body(response)
                if 200 <= response.status < 300:
                    return read_response(answer) if response.content_type == _PROTOBUF else ACCEPTED
                raise self._export_error(response, answer)
        except TimeoutError as error:
            raise RetryableExportError(f"No answer within {self._config.timeout:g} s.") from error
        except (aiohttp.ClientError, OSError) as error:
            raise RetryableExportError(one_line(f"{type(error).__name__}: {error}")) from error

    def _export_error(self, response: aiohttp.ClientResponse, body: bytes) -> ExportError:
        if response.content_type == _PROTOBUF:
            text = read_status(body)[0]
        else:
            text = one_line(body[:4096].decode("utf-8", "replace"))
        location = response.headers.get("Location")
        message = f"HTTP {response.status}: " + (f"redirect to {one_line(location)}" if location else text)
        if response.status in _RETRYABLE:
            return RetryableExportError(message, retry_after_seconds(response.headers, self._clock))
        if response.status in _CONTENT:
            return ContentRefusedError(message)
        return PermanentExportError(message)


COMPONENT = SpanExporterType(
    type_name="otlp_http",
    config_model=OtlpHttpConfig,
    create=lambda name, config, context: OtlpHttpExporter(name, config, context.clock),
)
