"""Sends one request with an exporter of this service, and reports what is wrong where it is not accepted."""

import asyncio
import io
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any, Literal

from pydantic import BaseModel
from yarl import URL

from collector.clock import Clock
from collector.errors import ExportError
from collector.exporters import ExporterContext, exporter_types
from collector.telemetry import Metrics
from collector.tools.doctor.hop import Hop, broken, works
from collector.tools.doctor.refusals import refusal
from collector.tools.doctor.wire import Remote, wire_problem

_LONGEST_SECONDS = 15.0
_OTHER_EXPORTER = {
    "grpc": "Use an exporter of type otlp_http for this address, or give the backend's port for gRPC.",
    "http": "Use an exporter of type otlp for this address, or give the backend's port for OTLP/HTTP.",
}
_OTHER_PORT = (
    "Set OTEL_EXPORTER_OTLP_PROTOCOL of the sender to what listens there, or send to the other port."
)


@asynccontextmanager
async def open_exporter(
    kind: str, settings: BaseModel, clock: Clock, name: str = "doctor"
) -> AsyncIterator[Any]:
    """An exporter of one type, started; raises `StartupError`."""
    context = ExporterContext(clock=clock, metrics=Metrics(), console=io.StringIO())
    exporter = exporter_types()[kind].create(name, settings, context)
    try:
        await exporter.start()
        yield exporter
    finally:
        await exporter.shutdown(clock.monotonic())


async def sent(
    where: str, url: str, settings: BaseModel, sending: Awaitable[Any], path: str | None = None
) -> Hop:
    """The hop to `url`, by how `sending` with an exporter that has these settings ends.

    `path` is that of the exporter in the configuration; None: it stands for a sender to a listener.
    """
    try:
        answer = await asyncio.wait_for(sending, _LONGEST_SECONDS)
    except (ExportError, TimeoutError) as error:
        message = str(error) or f"No answer within {_LONGEST_SECONDS:g} s."
        problem = await asyncio.to_thread(wire_problem, _remote(where, url, settings, path))
        return problem or refusal(where, message, "listener" if path is None else "exporter")
    if rejected := getattr(answer, "rejected_spans", 0):
        result = f"{url} answered that it rejected {rejected} spans: {answer.message}"
        return broken(where, result, "that all of it is accepted", "See the limits and the log there.")
    return works(where, f"{url} accepted it")


def _remote(where: str, url: str, settings: Any, path: str | None) -> Remote:
    speaks: Literal["grpc", "http"] = "grpc" if hasattr(settings, "is_secure") else "http"
    parts = URL(url if "://" in url else f"//{url}")
    secure = settings.is_secure if speaks == "grpc" else parts.scheme == "https"
    host = parts.host or ""
    return Remote(
        where=where,
        host=host,
        port=parts.port or (443 if secure else 80),
        speaks=speaks,
        secure=secure,
        trusted=settings.tls.ca_file,
        name=settings.tls.server_name_override or host,
        tls_setting="the sender's tls" if path is None else f"{path}.tls",
        other_protocol=_OTHER_PORT if path is None else _OTHER_EXPORTER[speaks],
    )
