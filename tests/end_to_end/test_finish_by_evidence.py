"""The default waits against the SDK's own batch processor, whose batches lie 5 s apart."""

import asyncio
import json
import time
from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, Span, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.trace import set_span_in_context

from collector.buffer import GroupByTraceConfig
from tests.support.service_process import ServiceProcess

pytestmark = pytest.mark.end_to_end

CRITERIA = """
agents:
  "*":
    evaluations:
      - evaluator: tool-call-count
        criteria: {tool_calls_count: {pay: [">=", 1]}}
"""
ASKED = [{"role": "user", "parts": [{"type": "text", "content": "Pay."}]}]
REQUEST = [
    {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "pay", "arguments": {}}]}
]
RESULT = [{"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "paid"}]}]
ANSWER = [{"role": "assistant", "parts": [{"type": "text", "content": "It is paid."}]}]


class _Exporter(OTLPSpanExporter):
    """The stock exporter, with the names of the spans of each batch."""

    def __init__(self, endpoint: str) -> None:
        super().__init__(endpoint=endpoint)
        self.batches: list[set[str]] = []

    def export(self, spans: "list[ReadableSpan]") -> SpanExportResult:  # type: ignore[override]
        self.batches.append({span.name for span in spans})
        return super().export(spans)


class _Agent:
    """An agent that is traced through the SDK as it is."""

    def __init__(self, service: ServiceProcess) -> None:
        self.exporter = _Exporter(f"http://{service.endpoints['http']}/v1/traces")
        self.provider = TracerProvider(resource=Resource({"service.name": "shop"}))
        self.provider.add_span_processor(BatchSpanProcessor(self.exporter))
        self._tracer = self.provider.get_tracer("shop")

    def start(self, name: str, parent: Span | None = None) -> Span:
        context = None if parent is None else set_span_in_context(parent)
        span = self._tracer.start_span(name, context)
        assert isinstance(span, Span)
        return span


def _agent_span(agent: _Agent, name: str) -> Span:
    fields = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}
    span = agent.start(f"invoke_agent {name}")
    span.set_attributes(fields)
    return span


def _turn(agent: _Agent, parent: Span, messages: object, answer: object) -> None:
    span = agent.start("chat", parent)
    span.set_attributes(
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.input.messages": json.dumps(messages),
            "gen_ai.output.messages": json.dumps(answer),
        }
    )
    span.end()


def _call(agent: _Agent, parent: Span, name: str) -> Span:
    span = agent.start(f"execute_tool {name}", parent)
    span.set_attributes(
        {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "pay", "gen_ai.tool.call.id": "c1"}
    )
    return span


def _service(folder: Path) -> ServiceProcess:
    defaults = GroupByTraceConfig().model_dump()
    waits = {name: defaults[name] for name in ("root_grace", "multi_service_grace", "incomplete_grace")}
    return ServiceProcess(folder, {"processors": {"group_by_trace": waits}}, CRITERIA)


def _outcomes(service: ServiceProcess) -> dict[str, str]:
    lines = [json.loads(line) for line in service.results_path.read_text().splitlines()]
    return {line["agent"]["name"]: line["evaluations"][0]["outcome"] for line in lines}


async def test_a_call_that_ends_after_its_root_comes_in_the_next_batch_and_is_graded(tmp_path: Path) -> None:
    async with _service(tmp_path) as service:
        agent = await asyncio.to_thread(_Agent, service)
        await asyncio.sleep(4.0)  # so that the roots end shortly before a batch leaves
        calls = []
        for name in ("with messages", "without messages"):
            root = _agent_span(agent, name)
            if name == "with messages":
                _turn(agent, root, ASKED, REQUEST)
            calls.append(_call(agent, root, name))
            root.end()
        await service.until(lambda: len(agent.exporter.batches) == 1)
        for call in calls:
            call.end()
        await service.until(lambda: len(service.results()) == 2)
        metrics = await service.metrics()
        await asyncio.to_thread(agent.provider.shutdown)

    first, second = agent.exporter.batches
    assert {"invoke_agent with messages", "invoke_agent without messages", "chat"} == first
    assert {"execute_tool with messages", "execute_tool without messages"} == second
    assert {"with messages": "pass", "without messages": "pass"} == _outcomes(service)
    assert 0 == metrics["tracegrade_late_spans_total"]


async def test_the_verdict_on_a_settled_run_comes_within_two_seconds_of_its_batch(tmp_path: Path) -> None:
    async with _service(tmp_path) as service:
        agent = await asyncio.to_thread(_Agent, service)
        root = _agent_span(agent, "shop")
        _turn(agent, root, ASKED, REQUEST)
        _call(agent, root, "shop").end()
        _turn(agent, root, [*ASKED, *REQUEST, *RESULT], ANSWER)
        root.end()
        await asyncio.to_thread(agent.provider.force_flush)
        sent = time.monotonic()
        await service.until(lambda: len(service.results()) == 1)
        seconds = time.monotonic() - sent
        await asyncio.to_thread(agent.provider.shutdown)

    assert {"shop": "pass"} == _outcomes(service)
    assert 0.9 < seconds < 2.0
