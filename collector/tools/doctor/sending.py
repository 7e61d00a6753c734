"""Sends one request with an exporter of this service, and reports what is wrong where it is not accepted."""

import asyncio
import io
import re
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any

from pydantic import BaseModel

from collector.clock import Clock
from collector.errors import ExportError
from collector.exporters import ExporterContext, exporter_types
from collector.telemetry import Metrics
from collector.tools.doctor.hop import Hop
from collector.tools.doctor.wire import Problem, Remote, wire_problem

_LONGEST_SECONDS = 15.0
_CODE = re.compile(r"(?:HTTP (3|\d{3}):?|([A-Z][A-Z_]+):|No answer (within))")
_ADVICE = {
    "401 403 UNAUTHENTICATED PERMISSION_DENIED": (
        "credentials that may write there",
        "Correct the token or the key in headers of this exporter, or give it the right to write traces.",
        "Send the header `Authorization: Bearer TOKEN` with a token of the listener's bearer_token_file.",
    ),
    "404 405 415 UNIMPLEMENTED": (
        "a server that accepts OTLP as application/x-protobuf under this path",
        "Give the OTLP endpoint of the backend (docs/backends.md): endpoint gets /v1/traces appended, "
        "traces_endpoint nothing. One that accepts JSON alone needs an OpenTelemetry Collector in between.",
        "Send to /v1/traces and /v1/logs over HTTP, to TraceService/Export and LogsService/Export over gRPC.",
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
"""By codes of answers: what was expected, what to do at an exporter, and what at a sender to a listener."""
_OTHER_ADVICE = (
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
        problem = await asyncio.to_thread(wire_problem, Remote(url, settings, path))
        return Hop(where, *(problem or _refusal(message, at_exporter=path is not None)))
    if rejected := getattr(answer, "rejected_spans", 0):
        result = f"{url} answered that it rejected {rejected} spans: {answer.message}"
        return Hop(where, result, "that all of it is accepted", "See the limits and the log there.")
    return Hop(where, f"{url} accepted it")


def _refusal(message: str, *, at_exporter: bool) -> Problem:
    """What it means that a server answered with the error `message`, which begins with its code."""
    match = _CODE.match(message)
    code = match and match[match.lastindex or 0]
    advice = (advice for codes, advice in _ADVICE.items() if code in codes.split())
    expected, for_exporter, for_sender = next(advice, _OTHER_ADVICE)
    return message, expected, for_exporter if at_exporter else for_sender
