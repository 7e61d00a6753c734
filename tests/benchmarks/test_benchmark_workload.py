from collections import Counter
from itertools import pairwise

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from benchmarks.agent_criteria import CRITERIA_TEXT, EVALUATIONS_PER_TRACE
from benchmarks.agent_trace import AGENT_NAME, SPANS_PER_TRACE
from benchmarks.naive_peer import NaivePeer
from benchmarks.sink import span_payloads
from benchmarks.workload import SHAPES, Shape, TemplateRequest, process_requests
from collector.otlp.codec import split_request
from processors.criteria.agent_criteria import CriteriaSet
from processors.criteria.criteria_file import read_criteria

START = 1_700_000_000_000_000_000
SHAPE_NAMES = [shape.name for shape in SHAPES]


@pytest.fixture(scope="module", params=SHAPES, ids=SHAPE_NAMES)
def shape(request: pytest.FixtureRequest) -> Shape:
    chosen = request.param
    assert isinstance(chosen, Shape)
    return chosen


@pytest.fixture(scope="module")
def requests(shape: Shape) -> list[TemplateRequest]:
    return process_requests(0, shape, START)


def _decoded(requests: list[TemplateRequest], pass_number: int) -> list[Span]:
    return [
        span
        for request in requests
        for resource_spans in ExportTraceServiceRequest.FromString(
            request.for_pass(pass_number)
        ).resource_spans
        for scope_spans in resource_spans.scope_spans
        for span in scope_spans.spans
    ]


def test_every_request_but_the_last_of_a_pass_has_the_size_of_its_shape(
    shape: Shape, requests: list[TemplateRequest]
) -> None:
    sizes = [request.spans for request in requests]

    assert shape.spans == sum(sizes)
    assert all(shape.smallest_request <= size <= shape.largest_request for size in sizes[:-1])
    assert 0 < sizes[-1] <= shape.largest_request


def test_every_trace_of_a_pass_has_13_spans_with_one_root_and_all_parents(
    shape: Shape, requests: list[TemplateRequest]
) -> None:
    spans = _decoded(requests, 1)

    by_trace: dict[bytes, list[Span]] = {}
    for span in spans:
        by_trace.setdefault(span.trace_id, []).append(span)
    assert shape.traces == len(by_trace)
    for trace in by_trace.values():
        ids = {span.span_id for span in trace}
        assert SPANS_PER_TRACE == len(trace) == len(ids)
        assert [f"invoke_agent {AGENT_NAME}"] == [span.name for span in trace if not span.parent_span_id]
        assert all(span.parent_span_id in ids for span in trace if span.parent_span_id)
        assert all(span.start_time_unix_nano < span.end_time_unix_nano for span in trace)


def test_a_trace_has_the_operations_of_an_agent_run(requests: list[TemplateRequest]) -> None:
    spans = _decoded(requests, 1)

    trace_id = spans[0].trace_id
    kinds = Counter(span.name.split()[0] for span in spans if span.trace_id == trace_id)
    assert {"invoke_agent": 1, "chat": 4, "execute_tool": 4, "SELECT": 2, "POST": 2} == kinds


def test_traces_overlap_and_no_parent_is_sent_in_an_earlier_request_than_its_child(
    requests: list[TemplateRequest],
) -> None:
    requests_of = [
        {span.span_id: span.parent_span_id for span in _decoded([request], 1)} for request in requests
    ]

    sent: set[bytes] = set()
    for parents in requests_of:
        assert sent.isdisjoint(parents.values())
        sent.update(parents)
    starts_and_ends = [(span.trace_id, span.end_time_unix_nano) for span in _decoded(requests, 1)]
    in_order = [trace_id for trace_id, _ in sorted(starts_and_ends, key=lambda pair: pair[1])]
    changes = sum(a != b for a, b in pairwise(in_order))
    assert changes > 3 * len(set(in_order))


def test_every_pass_has_trace_ids_of_its_own_and_is_otherwise_equal(
    shape: Shape, requests: list[TemplateRequest]
) -> None:
    first, second = _decoded(requests, 1), _decoded(requests, (1 << 32) - 1)

    ids = {span.trace_id for span in first} | {span.trace_id for span in second}
    assert 2 * shape.traces == len(ids)
    for one, other in zip(first, second, strict=True):
        one.trace_id = other.trace_id = b""
        assert one == other


def test_two_builds_are_equal_and_two_processes_differ(shape: Shape, requests: list[TemplateRequest]) -> None:
    again = process_requests(0, shape, START)
    other = process_requests(1, shape, START)

    assert requests == again
    trace_ids = {span.trace_id for span in _decoded(requests, 1)}
    assert trace_ids.isdisjoint(span.trace_id for span in _decoded(other, 1))


def test_the_codec_and_the_sink_see_the_same_spans(requests: list[TemplateRequest]) -> None:
    body = requests[0].for_pass(1)

    split = split_request(body)

    expected = sorted(payload for spans in split.traces.values() for _, payload, _ in spans)
    assert expected == sorted(span_payloads(body))
    assert 0 == split.rejected


def test_the_agent_of_the_workload_has_six_evaluations() -> None:
    criteria = CriteriaSet(read_criteria(CRITERIA_TEXT, "criteria.yaml", {}).agents)

    assert EVALUATIONS_PER_TRACE == len(criteria.evaluations_for(AGENT_NAME))


def test_the_naive_peer_forwards_every_span_unchanged(requests: list[TemplateRequest]) -> None:
    forwarded: list[ExportTraceServiceRequest] = []

    class RecordingStub:
        def Export(self, request: ExportTraceServiceRequest) -> None:
            forwarded.append(request)

    now = 0.0
    peer = NaivePeer(RecordingStub(), 1.0, monotonic=lambda: now)
    for request in requests:
        peer.Export(ExportTraceServiceRequest.FromString(request.for_pass(1)), None)

    peer.forward_finished()
    too_early = len(forwarded)
    now = 1.0
    peer.forward_finished()

    expected = sorted(span for request in requests for span in span_payloads(request.for_pass(1)))
    assert 0 == too_early
    assert expected == sorted(
        span for request in forwarded for span in span_payloads(request.SerializeToString())
    )
