"""OTLP over HTTP to a trace backend (`otlp_http`), in binary protobuf."""

import asyncio
import io
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator
from yarl import URL

from collector.clock import Clock
from collector.errors import PermanentExportError
from collector.exporters.exporter import ACCEPTED, ExportResponse, SpanExporterType
from collector.exporters.http_client import HttpSender, is_usable_url, shown_url
from collector.exporters.otlp_client import ClientConfig, read_response, read_status
from collector.exporters.span_exporter_config import OTHER_QUEUES, SpanExporterConfig
from collector.otlp import gzip_compress
from collector.trace import Signal

_PROTOBUF = "application/x-protobuf"
_RETRYABLE = frozenset({429, 502, 503, 504})  # OTLP specification, "Retryable Response Codes"
_IN_LOOP_BYTES = 64 * 1024
"""Requests up to this size are compressed at once; larger ones in a thread."""

_IN_ONE_WRITE_BYTES = 512 * 1024
"""Larger requests are handed to the transport piece by piece."""


class OtlpHttpConfig(SpanExporterConfig, ClientConfig):
    """`exporters.otlp_http`: a backend that speaks OTLP over HTTP."""

    endpoint: str | None = None
    """Base URL; `/v1/traces` and `/v1/logs` are appended."""
    traces_endpoint: str | None = None
    """The whole URL for spans instead, where the path is another. Log records then go there only if
    `logs_endpoint` is given as well."""
    logs_endpoint: str | None = None
    """The whole URL for log records instead. Spans then go there only if `traces_endpoint` is given as
    well."""
    compression: Literal["gzip", "none"] = "gzip"
    encoding: Literal["proto"] = "proto"
    """Requests are binary protobuf."""
    signals: tuple[Signal, ...] = Field(default=("traces", "logs"), min_length=1)
    """What goes there: spans, and log records: those received, and verdicts if `results.emit` has `log`."""

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
        if not self.accepts:
            raise ValueError(f"signals: there is no URL for {self.signals[0]}")
        return self

    @property
    def accepts(self) -> tuple[Signal, ...]:
        """What goes to the exporter."""
        return tuple(signal for signal in self.signals if self.url(signal) is not None)

    def url(self, signal: Signal) -> URL | None:
        """Where a signal goes, if it does."""
        whole = self.traces_endpoint if signal == "traces" else self.logs_endpoint
        if signal not in self.signals or not (whole or self.endpoint):
            return None
        if whole is not None:
            return URL(whole)
        base = URL(self.endpoint or "")
        return base.with_path(f"{base.path.rstrip('/')}/v1/{signal}", keep_query=True)


class OtlpHttpExporter:
    """Posts requests to one URL for each signal."""

    def __init__(self, name: str, config: OtlpHttpConfig, clock: Clock) -> None:
        self.name = name
        self._urls = {signal: url for signal in config.signals if (url := config.url(signal)) is not None}
        self.endpoints = {signal: shown_url(url) for signal, url in self._urls.items()}
        self._compresses = config.compression == "gzip"
        headers = {"Content-Type": _PROTOBUF, "Accept": _PROTOBUF}
        if self._compresses:
            headers["Content-Encoding"] = "gzip"
        self._sender = HttpSender(
            name=name,
            config=config,
            headers=headers,
            clock=clock,
            connections=config.sending_queue.num_consumers + OTHER_QUEUES,
        )

    async def start(self) -> None:
        """Read the TLS files and create the connection pool."""
        await self._sender.start(uses_tls=any(url.scheme == "https" for url in self._urls.values()))

    async def export(self, request: bytes, count: int, signal: Signal = "traces") -> ExportResponse:
        """Post one request; see `SpanExporter.export`."""
        if signal not in self._urls:
            raise PermanentExportError(f"There is no URL for {signal}.")
        url = self._urls[signal]
        body = request
        if self._compresses:
            in_loop = len(body) <= _IN_LOOP_BYTES
            body = gzip_compress(body) if in_loop else await asyncio.to_thread(gzip_compress, body)
        data = body if len(body) <= _IN_ONE_WRITE_BYTES else io.BytesIO(body)
        response, answer = await self._sender.send("POST", url, data)
        is_protobuf = response.content_type == _PROTOBUF
        if 200 <= response.status < 300:
            return read_response(answer) if is_protobuf else ACCEPTED
        shown = read_status(answer)[0] if is_protobuf else answer[:4096].decode("utf-8", "replace")
        location = response.headers.get("Location")
        raise self._sender.refusal(response, _RETRYABLE, f"redirect to {location}" if location else shown)

    async def shutdown(self, deadline: float) -> None:
        """Close all connections."""
        await self._sender.close()


COMPONENT = SpanExporterType(
    type_name="otlp_http",
    config_model=OtlpHttpConfig,
    create=lambda name, config, context: OtlpHttpExporter(name, config, context.clock),
)
