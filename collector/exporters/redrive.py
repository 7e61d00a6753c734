"""Sending again what a backend refused (`tracegrade redrive`).

The file is moved first, so that a running service continues with a new one. What is refused again returns to
the file; an interrupted redrive sends some of it twice.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from pydantic import BaseModel

from collector.clock import Clock
from collector.errors import MalformedRequest, PermanentExportError, RetryableExportError
from collector.exporters.assembly import exporter_types
from collector.exporters.dead_letters import PRIVATE, locked, read_header
from collector.exporters.exporter import ExporterContext, ExportResponse, SpanExporter
from collector.exporters.json_lines_file import JsonLinesFile
from collector.exporters.retry import BackOff
from collector.exporters.span_exporter_config import RetryConfig
from collector.otlp import json_to_request, logs_json_to_request, split_request
from collector.trace import Signal

_SHUTDOWN_SECONDS = 5.0


@dataclass(slots=True)
class Redriven:
    """The outcome, in lines of the file. `problems` name those that stay, with the line's number."""

    sent: int = 0
    kept: int = 0
    rejected_spans: int = 0
    """Spans and records that the backend left out of requests that it accepted; which ones is not known."""
    problems: list[str] = field(default_factory=list)


async def redrive_file(
    path: Path, name: str, config: BaseModel, context: ExporterContext, *, patience_seconds: float
) -> Redriven:
    """Send every line of the file `path` to the exporter `name`.

    A request that may be accepted later is tried again for `patience_seconds`; after that nothing more is
    tried, and the rest stays in the file.

    Raises:
        ValueError: the exporter accepts neither spans nor log records; a message for users.
        FileNotFoundError: there is no such file.
        StartupError: the exporter cannot be opened.
    """
    component = exporter_types()[name.partition("/")[0]]
    if component.kind == "results":
        raise ValueError(f'"{name}" accepts neither spans nor log records')
    exporter = component.create(name, config, context)
    moved = path.with_name(path.name + ".redriving")
    await exporter.start()
    try:
        _move(path, moved)
        outcome, kept = await _send_all(moved, exporter, context.clock, patience_seconds)
        if kept:
            file = JsonLinesFile(path, mode=PRIVATE)
            file.append(b"".join(kept))
            file.sync()
            file.close()
        moved.unlink()
    finally:
        await exporter.shutdown(context.clock.monotonic() + _SHUTDOWN_SECONDS)
    return outcome


def _move(path: Path, target: Path) -> None:
    """Move the file where no service writes; after an interruption the file moved before is used."""
    if target.exists():
        return
    with locked(path) as file:
        if file is None:
            raise FileNotFoundError(path)
        os.rename(path, target)


async def _send_all(
    path: Path, exporter: SpanExporter, clock: Clock, patience_seconds: float
) -> tuple[Redriven, list[bytes]]:
    outcome = Redriven()
    kept: list[bytes] = []
    gave_up = False
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            problem = ""
            if not gave_up:
                try:
                    response = await _send(line, exporter, clock, patience_seconds)
                except RetryableExportError as error:
                    gave_up = True
                    problem = f"not accepted within {patience_seconds:g} s, nothing more was tried: {error}"
                except (PermanentExportError, MalformedRequest, ValueError) as error:
                    problem = str(error)
                else:
                    outcome.sent += 1
                    outcome.rejected_spans += response.rejected_spans
                    continue
            outcome.kept += 1
            kept.append(line if line.endswith(b"\n") else line + b"\n")
            if problem:
                outcome.problems.append(f"line {number}: {problem}")
    return outcome, kept


async def _send(line: bytes, exporter: SpanExporter, clock: Clock, patience_seconds: float) -> ExportResponse:
    """Send one line until it is accepted or refused, or patience ends."""
    header = read_header(line)
    signal: Signal = "traces"
    if header.get("kind") == "log_records" or line.startswith(b'{"resourceLogs"'):
        signal = "logs"
    if signal not in exporter.endpoints:
        raise ValueError(f'"{exporter.name}" accepts no {"spans" if signal == "traces" else "log records"}')
    if signal == "logs":
        request, count = logs_json_to_request(line), header.get("count")
    else:
        request = json_to_request(line)
        count = split_request(request).accepted
    spans = count if isinstance(count, int) else 1
    return await send_patiently(exporter, request, spans, signal, clock, patience_seconds)


async def send_patiently(
    exporter: SpanExporter,
    request: bytes,
    count: int,
    signal: Signal,
    clock: Clock,
    patience_seconds: float,
) -> ExportResponse:
    """Send a request until it is accepted or refused, or patience ends: see `SpanExporter.export`."""
    back_off = BackOff(RetryConfig(), Random())
    give_up_at = clock.monotonic() + patience_seconds
    while True:
        try:
            return await exporter.export(request, count, signal)
        except RetryableExportError as error:
            wait = back_off.next_wait(error.retry_after_seconds)
            if clock.monotonic() + wait > give_up_at:
                raise
            await clock.sleep(wait)
