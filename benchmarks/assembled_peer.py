"""What a user would assemble of packages to grade agents online: no line of this project takes part.

A grpcio server on generated classes takes spans in; they become the SDK's spans and wait until their trace
was quiet; the evaluators of `uipath` grade the tool calls; results become events of the agent's span and
counters of prometheus_client; the SDK's OTLP exporter sends everything on. There is no evaluator for
repetition or for recovery from errors, so it does four evaluations of the six. It bounds nothing.

`PYTHON assembled_peer.py SINK QUIET_SECONDS CRITERIA` (an interpreter that has the packages) announces its
ports on stderr.
"""

import asyncio
import importlib
import json
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any

import grpc
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags
from prometheus_client import Counter, Histogram, start_http_server

_CHECK_SECONDS = 0.2
_SPANS_PER_REQUEST = 512
_EVALUATORS = {
    "tool-call-count": "ToolCallCountEvaluator",
    "tool-call-order": "ToolCallOrderEvaluator",
    "tool-call-args": "ToolCallArgsEvaluator",
    "tool-call-output": "ToolCallOutputEvaluator",
}
_TOOL_ATTRIBUTES = {"gen_ai.tool.name": "tool.name", "gen_ai.tool.call.arguments": "input.value"}

_results = Counter("evaluation_results", "Evaluations.", ["agent", "evaluation", "label"])
_scores = Histogram(
    "evaluation_score", "Scores.", ["agent", "evaluation"], buckets=[i / 10 for i in range(11)]
)


class Evaluations:
    """The evaluators of the package, with the criteria of one agent."""

    def __init__(self, entries: Iterable[dict[str, Any]]) -> None:
        evaluators = importlib.import_module("uipath.eval.evaluators")
        self._execution = importlib.import_module("uipath.eval.models.models").WorkloadExecution
        self._evaluations: list[tuple[str, Any, Any]] = []
        for entry in entries:
            if (name := entry["evaluator"]) in _EVALUATORS:
                config = {"name": name} | ({"subset": True} if name == "tool-call-args" else {})
                evaluator = getattr(evaluators, _EVALUATORS[name])(id=name, evaluatorConfig=config)
                criteria = evaluator.validate_evaluation_criteria(entry["criteria"])
                self._evaluations.append((name, evaluator, criteria))

    async def grade(self, agent: str, spans: Sequence[ReadableSpan]) -> list[Event]:
        """The results for one run as events; they are counted as well."""
        calls = [_as_expected(span) for span in spans if "gen_ai.tool.name" in (span.attributes or {})]
        execution = self._execution(agent_input={}, workload_output={}, workload_trace=calls)
        events = []
        for name, evaluator, criteria in self._evaluations:
            result = await evaluator.evaluate(execution, criteria)
            score = float(result.score)
            label = "pass" if score >= 1.0 else "fail"
            _results.labels(agent, name, label).inc()
            _scores.labels(agent, name).observe(score)
            attributes: dict[str, str | float] = {
                "gen_ai.evaluation.name": name,
                "gen_ai.evaluation.score.value": score,
                "gen_ai.evaluation.score.label": label,
                "gen_ai.evaluation.explanation": str(result.details),
            }
            events.append(Event("gen_ai.evaluation.result", attributes))
        return events


class AssembledPeer(TraceServiceServicer):
    """Holds spans by trace, grades every trace that was quiet, and exports it."""

    def __init__(
        self, exporter: OTLPSpanExporter, quiet_seconds: float, agents: dict[str, Evaluations]
    ) -> None:
        self._exporter = exporter
        self._quiet_seconds = quiet_seconds
        self._agents = agents
        self._lock = Lock()
        self._traces: dict[int, tuple[list[ReadableSpan], float]] = {}

    def Export(self, request: ExportTraceServiceRequest, context: object) -> ExportTraceServiceResponse:
        """Take the spans of one request in."""
        received = list(read_spans(request))
        now = time.monotonic()
        with self._lock:
            for span in received:
                spans, _ = self._traces.get(span.context.trace_id, ([], now))
                spans.append(span)
                self._traces[span.context.trace_id] = spans, now
        return ExportTraceServiceResponse()

    async def finish(self) -> None:
        """Grade and export the traces that are quiet now."""
        quiet_since = time.monotonic() - self._quiet_seconds
        with self._lock:
            finished = [trace for trace, (_, last) in self._traces.items() if last <= quiet_since]
            traces = [self._traces.pop(trace)[0] for trace in finished]
        pending: list[ReadableSpan] = []
        for spans in traces:
            pending += await self._graded(spans)
            if len(pending) >= _SPANS_PER_REQUEST:
                self._send(pending)
                pending = []
        if pending:
            self._send(pending)

    async def _graded(self, spans: list[ReadableSpan]) -> list[ReadableSpan]:
        spans.sort(key=lambda span: span.start_time or 0)
        graded = []
        for span in spans:
            agent = (span.attributes or {}).get("gen_ai.agent.name")
            evaluations = self._agents.get(agent) if isinstance(agent, str) else None
            events = await evaluations.grade(str(agent), spans) if evaluations else []
            graded.append(_with_events(span, events) if events else span)
        return graded

    def _send(self, spans: Sequence[ReadableSpan]) -> None:
        if self._exporter.export(spans) is not SpanExportResult.SUCCESS:
            sys.exit("an export failed")


def read_spans(request: ExportTraceServiceRequest) -> Iterable[ReadableSpan]:
    """The spans of a request as the SDK's own."""
    for resource_spans in request.resource_spans:
        resource = Resource(_attributes(resource_spans.resource.attributes), resource_spans.schema_url)
        for scope_spans in resource_spans.scope_spans:
            scope = InstrumentationScope(
                scope_spans.scope.name, scope_spans.scope.version or None, scope_spans.schema_url
            )
            for span in scope_spans.spans:
                yield _read_span(span, resource, scope)


def _read_span(span: Span, resource: Resource, scope: InstrumentationScope) -> ReadableSpan:
    trace_id = int.from_bytes(span.trace_id, "big")

    def context(span_id: bytes) -> SpanContext:
        return SpanContext(
            trace_id, int.from_bytes(span_id, "big"), is_remote=False, trace_flags=TraceFlags(1)
        )

    return ReadableSpan(
        name=span.name,
        context=context(span.span_id),
        parent=context(span.parent_span_id) if span.parent_span_id else None,
        resource=resource,
        attributes=_attributes(span.attributes),
        events=[
            Event(event.name, _attributes(event.attributes), event.time_unix_nano) for event in span.events
        ],
        kind=SpanKind(max(span.kind - 1, 0)),
        status=Status(StatusCode(span.status.code), span.status.message or None),
        start_time=span.start_time_unix_nano,
        end_time=span.end_time_unix_nano,
        instrumentation_scope=scope,
    )


def _as_expected(span: ReadableSpan) -> ReadableSpan:
    """A tool span under the attribute names that the evaluators read."""
    found = span.attributes or {}
    attributes: dict[str, Any] = {new: found[old] for old, new in _TOOL_ATTRIBUTES.items() if old in found}
    attributes["output.value"] = json.dumps({"content": found.get("gen_ai.tool.call.result", "")})
    return ReadableSpan(name=span.name, context=span.context, attributes=attributes)


def _with_events(span: ReadableSpan, events: Sequence[Event]) -> ReadableSpan:
    return ReadableSpan(
        name=span.name,
        context=span.context,
        parent=span.parent,
        resource=span.resource,
        attributes=span.attributes,
        events=[*span.events, *events],
        links=span.links,
        kind=span.kind,
        status=span.status,
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )


def _attributes(attributes: Iterable[KeyValue]) -> dict[str, Any]:
    return {attribute.key: _value(attribute.value) for attribute in attributes}


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(item) for item in value.array_value.values]
    if kind == "kvlist_value":
        return _attributes(value.kvlist_value.values)
    return getattr(value, kind) if kind else None


async def main() -> None:
    """Serve until the process is told to end."""
    sink, quiet_seconds, criteria = sys.argv[1:]
    with open(criteria, encoding="utf-8") as file:
        agents = {
            agent: Evaluations(entry["evaluations"]) for agent, entry in json.load(file)["agents"].items()
        }
    exporter = OTLPSpanExporter(endpoint=sink, insecure=True)
    peer = AssembledPeer(exporter, float(quiet_seconds), agents)
    server = grpc.server(ThreadPoolExecutor(10), options=[("grpc.so_reuseport", 0)])
    add_TraceServiceServicer_to_server(peer, server)  # type: ignore[no-untyped-call]  # generated
    port = server.add_insecure_port("127.0.0.1:0")
    metrics, _ = start_http_server(0, "127.0.0.1")
    server.start()
    print(
        f"assembled ready: grpc=127.0.0.1:{port} metrics=127.0.0.1:{metrics.server_port}",
        file=sys.stderr,
        flush=True,
    )
    while True:
        await asyncio.sleep(_CHECK_SECONDS)
        await peer.finish()


if __name__ == "__main__":
    asyncio.run(main())
