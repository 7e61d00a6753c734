"""OTLP over HTTP to a trace backend (`otlp_http`), in binary protobuf."""

import asyncio
import io
import ssl
from email.utils import parsedate_to_datetime
from typing import Literal, Self

import aiohttp
from pydantic import Field, field_validator, model_validator
from yarl import URL

from collector.clock import Clock
from collector.duration import PositiveDuration
from collector.errors import (
    ContentRefusedError,
    ExportError,
    PermanentExportError,
    RetryableExportError,
    StartupError,
)
from collector.exporters.client_config import ClientTlsConfig, Headers, read_tls_file, user_agent
from collector.exporters.exporter import ACCEPTED, ExporterContext, ExportResponse, SpanExporterType
from collector.exporters.otlp_response import one_line, read_response, read_status
from collector.exporters.span_exporter_config import SpanExporterConfig
from collector.otlp.compression import gzip_compress

_PROTOBUF = "application/x-protobuf"
_RETRYABLE = frozenset({429, 502, 503, 504})  # OTLP specification, "Retryable Response Codes"
_CONTENT = frozenset({400, 413, 422})
_MAX_RESPONSE_BYTES = 4 * 1024 * 1024
_IN_LOOP_BYTES = 64 * 1024
"""Requests up to this size are compressed at once; larger ones in a thread."""

_IN_ONE_WRITE_BYTES = 512 * 1024
"""Larger requests are handed to the transport piece by piece."""


class OtlpHttpConfig(SpanExporterConfig):
    """`exporters.otlp_http`: a backend that speaks OTLP over HTTP."""

    endpoint: str | None = None
    """Base URL; `/v1/traces` is appended."""
    traces_endpoint: str | None = None
    """The whole URL instead, where the path is another."""
    tls: ClientTlsConfig = ClientTlsConfig()
    headers: Headers = Field(default_factory=dict)
    """Headers of every request."""
    compression: Literal["gzip", "none"] = "gzip"
    encoding: Literal["proto"] = "proto"
    """Requests are binary protobuf."""
    timeout: PositiveDuration = 10.0
    """For one attempt."""

    @field_validator("encoding", mode="before")
    @classmethod
    def _refuse_json(cls, value: object) -> object:
        if value == "json":
            raise ValueError('encoding: "json" is not supported, "proto" is the only encoding')
        return value

    @model_validator(mode="after")
    def _check_endpoint(self) -> Self:
        if (self.endpoint is None) == (self.traces_endpoint is None):
            raise ValueError("give exactly one of endpoint (base URL) and traces_endpoint (whole URL)")
        key = "endpoint" if self.traces_endpoint is None else "traces_endpoint"
        text = self.endpoint or self.traces_endpoint or ""
        try:
            url = URL(text)
            is_usable = url.scheme in ("http", "https") and bool(url.host) and not url.fragment
        except ValueError:
            is_usable = False
        if not is_usable:
            raise ValueError(f'{key}: expected a URL such as "https://backend.example/otlp", got {text!r}')
        return self

    @property
    def url(self) -> URL:
        """Where requests go."""
        if self.traces_endpoint is not None:
            return URL(self.traces_endpoint)
        base = URL(self.endpoint or "")
        return base.with_path(base.path.rstrip("/") + "/v1/traces", keep_query=True)


class OtlpHttpExporter:
    """Posts requests to one URL. Redirects are not followed: they would lose the body."""

    def __init__(self, name: str, config: OtlpHttpConfig, clock: Clock) -> None:
        self.name = name
        self.endpoint = str(config.url.with_user(None).with_query(None))
        self._config = config
        self._clock = clock
        self._session: aiohttp.ClientSession | None = None

    async def start(self) -> None:
        """Read the TLS files and make the connection pool."""
        config = self._config
        tls = self._tls_context() if config.url.scheme == "https" else True
        headers = {"Content-Type": _PROTOBUF, "Accept": _PROTOBUF, "User-Agent": user_agent()}
        if config.compression == "gzip":
            headers["Content-Encoding"] = "gzip"
        headers.update((name, value.get_secret_value()) for name, value in config.headers.items())
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=config.sending_queue.num_consumers, ssl=tls),
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=config.timeout),
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def export(self, request: bytes, span_count: int) -> ExportResponse:
        """Post one request; see `SpanExporter.export`."""
        session = self._session
        if session is None:
            raise RetryableExportError("The exporter is not started.")
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
                self._config.url,
                data=body if len(body) <= _IN_ONE_WRITE_BYTES else io.BytesIO(body),
                allow_redirects=False,
                server_hostname=self._config.tls.server_name_override,
            ) as response:
                answer = await _read_body(response)
                if 200 <= response.status < 300:
                    return read_response(answer) if response.content_type == _PROTOBUF else ACCEPTED
                raise self._export_error(response, answer)
        except TimeoutError as error:
            raise RetryableExportError(f"No answer within {self._config.timeout:g} s.") from error
        except (aiohttp.ClientError, OSError) as error:
            raise RetryableExportError(one_line(f"{type(error).__name__}: {error}")) from error

    async def shutdown(self, deadline: float) -> None:
        """Close all connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _export_error(self, response: aiohttp.ClientResponse, body: bytes) -> ExportError:
        if response.content_type == _PROTOBUF:
            text = read_status(body)[0]
        else:
            text = one_line(body[:4096].decode("utf-8", "replace"))
        location = response.headers.get("Location")
        message = f"HTTP {response.status}: " + (f"redirect to {one_line(location)}" if location else text)
        if response.status in _RETRYABLE:
            return RetryableExportError(message, self._retry_after(response.headers.get("Retry-After")))
        if response.status in _CONTENT:
            return ContentRefusedError(message)
        return PermanentExportError(message)

    def _retry_after(self, value: str | None) -> float | None:
        """RFC 9110 `Retry-After`, seconds or a date, as seconds from now; None if it is neither."""
        if value is None:
            return None
        if value.strip().isdecimal():
            return float(value)
        try:
            moment = parsedate_to_datetime(value)
        except ValueError:
            return None
        return max(0.0, moment.timestamp() - self._clock.unix_nano() / 1e9)

    def _tls_context(self) -> ssl.SSLContext:
        tls = self._config.tls
        for path, key in ((tls.ca_file, "ca_file"), (tls.cert_file, "cert_file"), (tls.key_file, "key_file")):
            read_tls_file(path, self.name, key)
        try:
            context = ssl.create_default_context(cafile=tls.ca_file)
            if tls.cert_file is not None:
                context.load_cert_chain(tls.cert_file, tls.key_file)
        except (ssl.SSLError, OSError) as error:
            raise StartupError(f"exporters.{self.name}.tls: {error}") from error
        return context


async def _read_body(response: aiohttp.ClientResponse) -> bytes:
    """The body, cut at a size that no honest response has."""
    chunks: list[bytes] = []
    size = 0
    async for chunk in response.content.iter_chunked(64 * 1024):
        chunks.append(chunk)
        size += len(chunk)
        if size >= _MAX_RESPONSE_BYTES:
            response.close()
            break
    return b"".join(chunks)


def _create(name: str, config: OtlpHttpConfig, context: ExporterContext) -> OtlpHttpExporter:
    return OtlpHttpExporter(name, config, context.clock)


COMPONENT = SpanExporterType(type_name="otlp_http", config_model=OtlpHttpConfig, create=_create)
