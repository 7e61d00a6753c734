"""The new verdicts of stored runs as log records, for exporters of scores."""

from collections.abc import Iterator, Sequence

from opentelemetry.proto.logs.v1.logs_pb2 import ResourceLogs

from collector.otlp import join_spans
from processors.annotation import result_records
from processors.model import AgentRun, EvaluationResult
from processors.spans import Envelope, RawSpan

_INSTANCE = "regrade"
"""Whose verdicts they are, as `tracegrade.instance` of each."""
_PER_REQUEST = 200


def verdict_records(run: AgentRun, results: Sequence[EvaluationResult], unix_nano: int) -> list[RawSpan]:
    """The verdicts among `results` as log records, as a service makes them."""
    decided = [result for result in results if result.is_verdict]
    resource = ResourceLogs()
    for key, value in run.resource.items():
        if isinstance(value, str):
            resource.resource.attributes.add(key=key).value.string_value = value
    envelope = Envelope(resource.SerializeToString(), b"")
    carriers = {result.tool_span_id or run.carrier_span_id or b"" for result in decided} - {b""}
    spans = [(span_id, b"", envelope) for span_id in sorted(carriers)]
    return result_records(spans, [(run, decided)], time_unix_nano=unix_nano, instance=_INSTANCE)


def verdict_requests(records: Sequence[RawSpan]) -> Iterator[tuple[bytes, int]]:
    """ExportLogsServiceRequests with all of `records`, each with the number of its records."""
    for start in range(0, len(records), _PER_REQUEST):
        some = records[start : start + _PER_REQUEST]
        yield join_spans(some), len(some)
