"""Recordings of both signals (`tests/data/both_signals/README.md`), as grading receives each trace."""

import gzip
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import ResourceLogs, ScopeLogs

from collector.otlp import split_request
from processors.records import RecordHead, read_record_head
from processors.spans import Envelope, RawRecord, RawSpan

BOTH_SIGNALS = Path(__file__).parent.parent / "data" / "both_signals"
NAMES = sorted(path.parent.name for path in BOTH_SIGNALS.glob("*/recording.json"))


@dataclass
class TraceInBothSignals:
    """The spans of a trace and the content records that name it, or belong to one prompt; as they arrived."""

    spans: list[RawSpan] = field(default_factory=list)
    records: list[RawRecord] = field(default_factory=list)


def requests(name: str, signal: str) -> list[bytes]:
    """The bodies of the requests of one signal, `traces` or `logs`."""
    return [gzip.decompress(path.read_bytes()) for path in sorted((BOTH_SIGNALS / name / signal).glob("*"))]


def expected_runs(name: str) -> list[dict[str, Any]]:
    """What is to be rebuilt."""
    runs: list[dict[str, Any]] = json.loads((BOTH_SIGNALS / name / "recording.json").read_text("utf-8"))[
        "runs"
    ]
    return runs


@cache
def records_in(body: bytes) -> Sequence[tuple[RecordHead | None, RawRecord]]:
    """Every log record of a request, with its head if it carries content."""
    records: list[tuple[RecordHead | None, RawRecord]] = []
    for of_resource in ExportLogsServiceRequest.FromString(body).resource_logs:
        resource = ResourceLogs(resource=of_resource.resource).SerializeToString()
        for of_scope in of_resource.scope_logs:
            envelope = Envelope(resource, ScopeLogs(scope=of_scope.scope).SerializeToString())
            for record in of_scope.log_records:
                payload = record.SerializeToString()
                head = read_record_head(payload, envelope)
                records.append((head, (head.span_id if head else b"", payload, envelope)))
    return records


def traces_in(name: str) -> dict[bytes, TraceInBothSignals]:
    """All traces of a recording by their ids."""
    return gathered(requests(name, "traces"), requests(name, "logs"))


def gathered(of_traces: Iterable[bytes], of_logs: Iterable[bytes]) -> dict[bytes, TraceInBothSignals]:
    """The traces in requests of either signal."""
    traces: dict[bytes, TraceInBothSignals] = {}
    for body in of_traces:
        for trace_id, spans in split_request(body).traces.items():
            traces.setdefault(trace_id, TraceInBothSignals()).spans.extend(spans)
    for body in of_logs:
        for head, record in records_in(body):
            for key in () if head is None else filter(None, (head.trace_id, head.run_id)):
                traces.setdefault(key, TraceInBothSignals()).records.append(record)
    return traces
