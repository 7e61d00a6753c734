"""What `benchmarks sizing` sends: scripted runs under the names in criteria, or recorded traffic."""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from benchmarks.workload import Shape, TemplateRequest, process_requests
from collector.otlp import SplitRequest, join_spans
from collector.recordings.recorded_traffic import RecordedTraffic
from processors.documents import InvalidInput
from processors.spans import RawSpan

SPANS_A_REQUEST = 512
"""What the batch span processor of the OpenTelemetry SDKs sends at most."""
_TRACES_A_PASS = 118


@dataclass(frozen=True, slots=True)
class Traffic:
    """Requests to be sent over and over, each time as new traces."""

    requests: Sequence[TemplateRequest]
    traces: int
    """In one pass of all requests."""

    @property
    def spans(self) -> int:
        """Spans in one pass."""
        return sum(request.spans for request in self.requests)

    @property
    def bytes(self) -> int:
        """Bytes of one pass."""
        return sum(len(request.body) for request in self.requests)


def scripted_traffic(agents: Sequence[str], spans_a_request: int = SPANS_A_REQUEST) -> Traffic:
    """Runs of 13 spans with four tool calls, by `agents` in turn; begun now."""
    shape = Shape("sizing", spans_a_request, spans_a_request, _TRACES_A_PASS)
    requests = process_requests(0, shape, time.time_ns(), agents=agents)
    return Traffic(requests, shape.traces)


def recorded_traffic(paths: Sequence[Path], spans_a_request: int = SPANS_A_REQUEST) -> Traffic:
    """The traces recorded in `paths`, as if they began now.

    Raises:
        ProblemsFound: something cannot be read.
    """
    recorded = RecordedTraffic()
    spans: list[RawSpan] = []
    traces: set[bytes] = set()
    for item in (item for file in recorded.find(paths) for item in recorded.read(file)):
        if isinstance(item, SplitRequest):
            traces.update(item.traces)
            spans += [span for group in item.traces.values() for span in group]
    if recorded.problems:
        raise InvalidInput(recorded.problems)
    if not spans:
        return Traffic((), 0)
    whole = ExportTraceServiceRequest.FromString(join_spans(spans))
    _begin_at(whole, time.time_ns())
    bodies = [_part(whole, first, first + spans_a_request) for first in range(0, len(spans), spans_a_request)]
    return Traffic([_template(body, traces) for body in bodies], len(traces))


def _begin_at(request: ExportTraceServiceRequest, unix_nano: int) -> None:
    """Move all times, so that the earliest span begins at `unix_nano`."""
    spans = [
        span for resource in request.resource_spans for scope in resource.scope_spans for span in scope.spans
    ]
    later = unix_nano - min(span.start_time_unix_nano for span in spans)
    for span in spans:
        span.start_time_unix_nano += later
        span.end_time_unix_nano = max(span.end_time_unix_nano + later, 0)
        for event in span.events:
            event.time_unix_nano = max(event.time_unix_nano + later, 0)


def _part(request: ExportTraceServiceRequest, first: int, end: int) -> bytes:
    """The spans of `request` from number `first` to `end`, with what is around them."""
    part = ExportTraceServiceRequest()
    number = 0
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            size = len(scope.spans)
            chosen = scope.spans[max(first - number, 0) : max(end - number, 0)]
            number += size
            if chosen:
                around = part.resource_spans.add(schema_url=resource.schema_url)
                around.resource.CopyFrom(resource.resource)
                inner = around.scope_spans.add(schema_url=scope.schema_url)
                inner.scope.CopyFrom(scope.scope)
                inner.spans.extend(chosen)
    return part.SerializeToString()


def _template(body: bytes, traces: set[bytes]) -> TemplateRequest:
    found = re.finditer(rb"\n\x10(.{16})\x12\x08", body, re.DOTALL)
    return TemplateRequest(body, [match.start(1) for match in found if match[1] in traces])
