"""Sends one request with an exporter of this service, and reports what is wrong where it is not accepted."""

import asyncio
import io
import re
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal

from pydantic import BaseModel
from yarl import URL

from collector.clock import Clock
from collector.errors import ExportError
from collector.exporters import ExporterContext, exporter_types
from collector.telemetry import Metrics
from collector.tools.doctor.hop import Hop
from collector.tools.doctor.wire import Remote, wire_problem

_LONGEST_SECONDS = 15.0
_OTHER_EXPORTER = {
    "grpc": "Use an exporter of type otlp_http for this address, or give the backend's port for gRPC.",
    "http": "Use an exporter of type otlp for this address, or give the backend's port for OTLP/HTTP.",
}
_OTHER_PORT = (
    "Set OTEL_EXPORTER_OTLP_PROTOCOL of the sender to what listens there, or send to the other port."
)
_CODE = re.compile(r"(?:HTTP (3|\d{3}):?|([A-Z][A-Z_]+):|No answer (within))")
_Advice = tuple[str, str, str]
"""What was expected, what to do at an exporter, and what at a sender to a listener."""
_ADVICE: Mapping[str, _Advice] = {
    "401 403 UNAUTHENTICATED PERMISSION_DENIED": (
        "credentials that may write there",
        "Correct the token or the key in headers of this exporter, or give it the right to write traces.",
        "Send the header `Authorization: Bearer TOKEN` with a token of the listener's bearer_token_file.",
    ),
    "404 405 415 UNIMPLEMENTED": (
        "a server that accepts OTLP as application/x-protobuf under this path",
        "Give the OTLP endpoint of the backend (docs/backends.md): endpoint gets /v1/traces appended, "
        "traces_endpoint nothing. One that accepts JSON alone needs an OpenTelemetry Collector in between.",
        "Send to /v1/traces over HTTP, to TraceService/Export over gRPC.",
    ),
    "429 502 503 RESOURCE_EXHAUSTED UNAVAILABLE": (
        "a server that accepts requests now",
        "See the backend's own limits and log. Spans are held and sent again meanwhile.",
        "The service holds all that it may: see whether an exporter hangs (below), then raise "
        "processors.memory_limiter. docs/runbooks.md says more under TracegradeRefusingSpans.",
    ),
    "504 DEADLINE_EXCEEDED within": (
        "an answer within the timeout",
        "See why the backend is slow, or raise timeout of this exporter.",
        "See the log of the service.",
    ),
    "3": (
        "the address itself: redirects are not followed",
        "Write the address to which it redirects.",
        "Send to the address to which the proxy redirects.",
    ),
}
"""By the codes of answers."""
_OTHER_ADVICE: _Advice = (
    "the answer that it was accepted",
    "See the log of the backend.",
    "See the log of the service.",
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
        return problem or _refusal(where, message, at_exporter=path is not None)
    if rejected := getattr(answer, "rejected_spans", 0):
        result = f"{url} answered that it rejected {rejected} spans: {answer.message}"
        return Hop(where, result, "that all of it is accepted", "See the limits and the log there.")
    return Hop(where, f"{url} accepted it")


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


def _refusal(where: str, message: str, *, at_exporter: bool) -> Hop:
    """The hop whose server answered an exporter with the error `message`, which begins with its code."""
    match = _CODE.match(message)
    code = match and match[match.lastindex or 0]
    advice = (advice for codes, advice in _ADVICE.items() if code in codes.split())
    expected, for_exporter, for_sender = next(advice, _OTHER_ADVICE)
    return Hop(where, message, expected, for_exporter if at_exporter else for_sender)
