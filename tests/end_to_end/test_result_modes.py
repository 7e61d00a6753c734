"""Spans that wait for their verdict, that do not, and that go nowhere: the same verdicts every time.

The service is the real one with real OTLP backends over gRPC and HTTP; recorded traffic of several frameworks
goes through it.
"""

from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.otlp import join_spans, split_request
from processors.annotation import EVENT_NAME
from processors.annotation.evaluation_span import SCOPE_NAME
from tests.support.agent_spans import agent, tool
from tests.support.backends import GrpcBackend, HttpBackend, eventually, log_records
from tests.support.corpus import recorded_requests
from tests.support.graded_spans import attributes_of
from tests.support.held_spans import START_UNIX_NANO
from tests.support.otlp_senders import GrpcSender
from tests.support.service_in_loop import ServiceInLoop

pytestmark = pytest.mark.end_to_end

FRAMEWORKS = ("pydantic_ai", "openinference_langchain", "openinference_openai_agents", "uipath_style")

_CONFIGURATION = """
receivers: {{otlp: {{protocols: {{grpc: {{endpoint: "127.0.0.1:0"}}}}}}}}
processors: {{group_by_trace: {{idle_timeout: 5s}}}}
exporters: {exporters}
results: {results}
service: {{telemetry: {{endpoint: "127.0.0.1:0", self_check: {{enabled: false}}}}, shutdown_timeout: 20s}}
"""

Verdict = tuple[bytes, bytes, frozenset[tuple[str, object]]]
"""Trace, judged span, and every attribute of the result but for who gave it."""


def _verdict(trace_id: bytes, span_id: bytes, attributes: dict[str, object]) -> Verdict:
    told = {key: value for key, value in attributes.items() if key != "tracegrade.instance"}
    return trace_id, span_id, frozenset(told.items())


@dataclass
class _Received:
    """What a backend got, told apart."""

    spans: dict[tuple[bytes, bytes], bytes] = field(default_factory=dict)
    verdict_spans: list[Span] = field(default_factory=list)
    events: "Counter[Verdict]" = field(default_factory=Counter)
    records: "Counter[Verdict]" = field(default_factory=Counter)

    @classmethod
    def by(cls, backend: GrpcBackend | HttpBackend) -> "_Received":
        found = cls()
        for request in backend.requests:
            for resource_spans in ExportTraceServiceRequest.FromString(request).resource_spans:
                for scope_spans in resource_spans.scope_spans:
                    for span in scope_spans.spans:
                        found.add_span(span, scope_spans.scope.name)
        for _, _, record in log_records(backend.log_requests):
            attributes = attributes_of(list(record.attributes))
            assert attributes["gen_ai.agent.name"]  # no span is beside it; the rest is that of the event
            for key in [
                key
                for key in attributes
                if key.startswith(("gen_ai.agent.", "gen_ai.conversation.", "tracegrade.run."))
            ]:
                del attributes[key]
            found.records[_verdict(record.trace_id, record.span_id, attributes)] += 1
        return found

    def add_span(self, span: Span, scope: str) -> None:
        judged = span.parent_span_id if scope == SCOPE_NAME else span.span_id
        ours = [event for event in span.events if event.name == EVENT_NAME]
        for event in ours:
            self.events[_verdict(span.trace_id, judged, attributes_of(list(event.attributes)))] += 1
        if scope == SCOPE_NAME:
            self.verdict_spans.append(span)
            return
        key = (span.trace_id, span.span_id)
        assert key not in self.spans, "a span was forwarded twice"
        kept = [event for event in span.events if event.name != EVENT_NAME]
        del span.events[:]
        span.events.extend(kept)
        self.spans[key] = span.SerializeToString(deterministic=True)


@asynccontextmanager
async def _started(backend: GrpcBackend | HttpBackend) -> AsyncIterator[None]:
    await backend.start()
    try:
        yield
    finally:
        await backend.stop()


async def _run(
    backend: GrpcBackend | HttpBackend,
    results: str,
    requests: Iterable[bytes],
    *,
    sent_at_once: int = 0,
) -> tuple[_Received, dict[str, float]]:
    """Send `requests` through the service; what the backend got, and the metrics before the stop."""
    async with _started(backend):
        if isinstance(backend, GrpcBackend):
            exporters = f'{{otlp: {{endpoint: "{backend.endpoint}", tls: {{insecure: true}}}}}}'
        else:
            exporters = f'{{otlp_http: {{endpoint: "{backend.endpoint}"}}}}'
        text = _CONFIGURATION.format(exporters=exporters, results=results)
        async with ServiceInLoop(text, START_UNIX_NANO) as service:
            async with GrpcSender(service.endpoints["grpc"]) as sender:
                for body in requests:
                    answer = await sender.send(body)
                    assert ("OK", 0) == (answer.code, answer.rejected), answer
            if sent_at_once:
                await service.pass_time(0.5)
                await eventually(
                    lambda: len(_Received.by(backend).spans) == sent_at_once,
                    "spans leave before any verdict",
                )
                assert not backend.log_requests
                metrics = await service.metrics()
                assert 0 == metrics['tracegrade_accounting_error_spans{exporter="otlp"}']
                assert 0 == metrics['tracegrade_spans_held{exporter=""}']
                assert sent_at_once == metrics["tracegrade_spans_awaiting_verdict"]
            await service.pass_time(30)
            metrics = await service.metrics()
    return _Received.by(backend), metrics


def _sent() -> tuple[list[bytes], dict[tuple[bytes, bytes], bytes]]:
    requests = [body for framework in FRAMEWORKS for body in recorded_requests(framework)]
    spans = {
        (trace_id, span_id): Span.FromString(payload).SerializeToString(deterministic=True)
        for body in requests
        for trace_id, spans in split_request(body).traces.items()
        for span_id, payload, _ in spans
    }
    return requests, spans


def _by_trace(verdicts: "Counter[Verdict]") -> "Counter[tuple[bytes, frozenset[tuple[str, object]]]]":
    """Verdicts of one trace without the spans that they judge, which a verdict's own span does not name."""
    found: Counter[tuple[bytes, frozenset[tuple[str, object]]]] = Counter()
    for (trace_id, _, attributes), count in verdicts.items():
        found[trace_id, attributes] += count
    return found


async def test_verdicts_are_those_of_hold_in_every_mode_and_form() -> None:
    requests, sent = _sent()
    held, _ = await _run(GrpcBackend(), "{emit: [span_event, log]}", requests)
    assert sent.keys() == held.spans.keys()
    assert held.events == held.records
    labels = Counter(dict(attributes)["gen_ai.evaluation.score.label"] for _, _, attributes in held.events)
    assert labels["pass"] > 10
    assert labels["fail"] > 0

    streamed, metrics = await _run(
        GrpcBackend(), "{mode: stream, emit: [log, span]}", requests, sent_at_once=len(sent)
    )

    assert sent == streamed.spans
    assert held.records == streamed.records
    assert _by_trace(held.events) == _by_trace(streamed.events)
    assert len(sent) == metrics["tracegrade_spans_received_total"]
    assert 0 == metrics['tracegrade_accounting_error_spans{exporter="otlp"}']
    assert 0 == metrics["tracegrade_spans_awaiting_verdict"]

    only, metrics = await _run(HttpBackend(), "{mode: verdicts_only, emit: [log, span]}", requests)

    assert {} == only.spans
    assert held.records == only.records
    assert _by_trace(held.events) == _by_trace(only.events)
    assert len(sent) == metrics['tracegrade_spans_forwarded_total{exporter="prometheus"}']
    assert 0 == metrics['tracegrade_accounting_error_spans{exporter="prometheus"}']
    assert 'tracegrade_spans_forwarded_total{exporter="otlp_http"}' not in metrics


async def test_a_verdict_that_comes_back_is_not_graded_again() -> None:
    trace = [tool(2, 1, "get_weather"), agent(1, None, "planner")]
    first, _ = await _run(GrpcBackend(), "{mode: verdicts_only, emit: [span]}", [join_spans(trace)])
    (verdict,) = first.verdict_spans
    came_back = (verdict.span_id, verdict.SerializeToString(), trace[0][2])

    alone, alone_metrics = await _run(
        GrpcBackend(), "{mode: verdicts_only, emit: [span, log]}", [join_spans([came_back])]
    )
    together, _ = await _run(
        GrpcBackend(), "{mode: verdicts_only, emit: [span]}", [join_spans([*trace, came_back])]
    )

    assert ([], Counter()) == (alone.verdict_spans, alone.records)
    assert len(verdict.events) == alone_metrics["tracegrade_foreign_results_total"]
    assert [verdict.span_id] == [span.span_id for span in together.verdict_spans]
    assert _by_trace(first.events) == _by_trace(together.events)


async def test_annotations_stand_on_spans_that_wait_and_else_on_those_of_the_verdicts() -> None:
    trace = [tool(2, 1, "get_weather"), agent(1, None, "planner")]
    for results, scope in (
        ("{annotations: [openinference]}", "test"),
        ("{mode: stream, emit: [span], annotations: [openinference]}", SCOPE_NAME),
    ):
        backend = GrpcBackend()

        await _run(backend, results, [join_spans(trace)])

        annotated = {
            scope_spans.scope.name
            for request in backend.requests
            for resource_spans in ExportTraceServiceRequest.FromString(request).resource_spans
            for scope_spans in resource_spans.scope_spans
            for span in scope_spans.spans
            if any(item.key.startswith("evaluations.0.evaluation.") for item in span.attributes)
        }
        assert {scope} == annotated
