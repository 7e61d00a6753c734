"""What a look at the bytes of answers saves decoding for is what decoding gives."""

from collections.abc import Iterator

import pytest

from benchmarks.micro import bodies_of
from benchmarks.workload import SHAPES
from collector.otlp import split_request
from processors.model import AgentRun, FinishReason
from processors.reconstruction import reconstruct
from processors.reconstruction.calls import RunCalls
from processors.spans import RawSpan
from tests.support.corpus import recorded_requests


def _traces() -> Iterator[tuple[bytes, list[RawSpan]]]:
    for bodies in (recorded_requests(), bodies_of(SHAPES[1])):
        traces: dict[bytes, list[RawSpan]] = {}
        for body in bodies:
            for trace_id, spans in split_request(body).traces.items():
                traces.setdefault(trace_id, []).extend(spans)
        yield from traces.items()


def _runs(trace_id: bytes, spans: list[RawSpan]) -> list[AgentRun]:
    return reconstruct(spans, trace_id=trace_id, reason=FinishReason.ROOT)


def test_the_bytes_of_answers_show_the_calls_that_decoding_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    traces = list(_traces())
    by_bytes = [_runs(*trace) for trace in traces]
    looked_at = [[(run.tool_calls, run.requested_calls, run.complete) for run in runs] for runs in by_bytes]
    monkeypatch.setattr(RunCalls, "_requesting_these_alone", None)

    decoded = [
        [(run.tool_calls, run.requested_calls, run.complete) for run in _runs(*trace)] for trace in traces
    ]

    assert any(run.tool_calls for runs in by_bytes for run in runs)
    assert decoded == looked_at
