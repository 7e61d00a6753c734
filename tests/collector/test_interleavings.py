"""However the two signals of an agent arrive, in which order, pieces and repeats: the verdicts are the same.

Requests recorded from real packages go through the real intake, buffer and grading, without sockets; those
are in `tests/end_to_end/test_both_signals.py` and `test_kafka_log_records.py`.
"""

import json
from collections.abc import Iterable
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.buffer import GroupByTraceConfig, TraceBuffer
from collector.clock import ManualClock
from collector.criteria import default_file, load_criteria
from collector.grading import Grader, GradingStage
from collector.memory_limiter import MemoryLimiter
from collector.otlp import EnvelopeRegistry, join_spans, split_records, split_request
from collector.path import read_records
from collector.recordings import RecordedStream
from collector.telemetry import Metrics
from collector.trace import SpanBatch
from processors.annotation import format_run
from processors.model import GradedRun
from tests.support.both_signals import BOTH_SIGNALS, NAMES, requests

Piece = tuple[str, bytes]
"""A signal, and a request with one span or log record."""


@cache
def _pieces(name: str) -> list[Piece]:
    spans = [
        ("traces", join_spans([span]))
        for body in requests(name, "traces")
        for of_trace in split_request(body).traces.values()
        for span in of_trace
    ]
    records = [
        ("logs", join_spans([record]))
        for body in requests(name, "logs")
        for record in split_records(body).records
    ]
    return spans + records


def _graded(pieces: list[Piece]) -> list[str]:
    """What is decided of the runs in these pieces, received in this order."""
    clock, metrics, envelopes = ManualClock(), Metrics(), EnvelopeRegistry()
    criteria = load_criteria([default_file("criteria/default.yaml")], environment={})
    limiter = MemoryLimiter(1 << 40)
    buffer = TraceBuffer(config=GroupByTraceConfig(), limiter=limiter, metrics=metrics, clock=clock)
    for signal, body in pieces:
        if signal == "traces":
            traces = split_request(body, envelopes).traces
            buffer.admit([SpanBatch(trace_id, spans) for trace_id, spans in traces.items()])
        else:
            received = read_records(body, envelopes)
            admitted = buffer.admit_records(received.request.records, received.content)
            assert not admitted.late
    grader = Grader(criteria=lambda: criteria, clock=clock, instance="test")
    stage = GradingStage(grader=grader, metrics=metrics, clock=clock)
    graded = [run for trace in buffer.settle() for run in stage.grade_now(trace).runs]
    assert 0 == metrics.traces_failed.value()
    return _decided(graded)


def _decided(runs: Iterable[GradedRun]) -> list[str]:
    lines: list[Any] = [json.loads(format_run(run)) for run in runs]
    return sorted(json.dumps({key: line[key] for key in _DECIDED}, sort_keys=True) for line in lines)


_DECIDED = (
    "trace_id", "span_id", "agent", "input", "output", "messages", "tool_calls", "evaluations",
    "finish_reason",
)  # fmt: skip


@cache
def _expected(name: str) -> list[str]:
    return _graded(_pieces(name))


@pytest.mark.parametrize("name", NAMES)
def test_replay_decides_as_the_service_does(name: str) -> None:
    stream = RecordedStream()

    assert [] == stream.read([BOTH_SIGNALS / name])
    criteria = load_criteria([default_file("criteria/default.yaml")], environment={})
    assert _expected(name) == _decided(stream.grade(criteria))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_no_verdict_depends_on_how_the_signals_arrive(name: str, data: st.DataObject) -> None:
    pieces = _pieces(name)
    how = data.draw(st.sampled_from(("shuffled", "spans first", "records first", "doubled")))
    order = data.draw(st.randoms(use_true_random=False))
    arrived = list(pieces)
    order.shuffle(arrived)
    if how == "doubled":
        arrived += arrived
        order.shuffle(arrived)
    elif how != "shuffled":
        first = "traces" if how == "spans first" else "logs"
        arrived.sort(key=lambda piece: piece[0] != first)

    assert _expected(name)
    assert _expected(name) == _graded(arrived)
