"""No scrape of a busy service shows a span or log record that is unaccounted for.

Senders over both protocols at once, repeats, contradictions and late spans, custom evaluators that are waited
for in worker processes, self-checks, and scrapes in between.
"""

import asyncio
from pathlib import Path

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.otlp import join_spans
from processors.model import JsonObject
from processors.spans import RawSpan
from tests.support.agent_spans import agent, tool
from tests.support.otlp_senders import GrpcSender, HttpSender, Sender, logs_request
from tests.support.service_process import PATIENCE_SECONDS, ServiceProcess

pytestmark = pytest.mark.end_to_end

SENDERS = 4
TRACES_PER_SENDER = 30
LINES = 5
CODE = """
import time

def slowly(run, config, criteria):
    time.sleep(0.005)
    return True, "slowly"
"""
CRITERIA = """
agents:
  clerk:
    evaluations:
      - {evaluator: tool-call-count, criteria: {tool_calls_count: {refund: ["=", 1]}}}
      - {evaluator: my-check}
  hasty:
    evaluations:
      - {evaluator: tool-call-count, criteria: {tool_calls_count: {refund: ["=", 1]}}}
"""


def in_trace(number: int, span: RawSpan, *, name: str = "") -> RawSpan:
    """`span` in the trace of that number, under another name if one is given."""
    message = Span.FromString(span[1])
    message.trace_id = number.to_bytes(16, "big")
    message.name = name or message.name
    return span[0], message.SerializeToString(), span[2]


async def send_traces(sender: Sender, numbers: range) -> None:
    """Send traces in two requests each, with repeats and contradictions; all must be accepted."""
    for number in numbers:
        first = in_trace(number, tool(2, 1, "refund"))
        root = in_trace(number, agent(1, None, "clerk" if number % 2 else "hasty"))
        for spans in ([first], [first, root], [in_trace(number, tool(2, 1, "refund"), name="other")]):
            answer = await sender.send(join_spans(spans))
            assert "OK" == answer.code, answer
        assert "OK" == (await sender.send(logs_request(LINES), signal="logs")).code


async def send_late_spans(sender: Sender, numbers: range) -> None:
    for number in numbers:
        late = in_trace(number, tool(3, 1, "refund"))
        for spans in ([late], [late, in_trace(number, tool(2, 1, "refund"))]):
            assert "OK" == (await sender.send(join_spans(spans))).code


async def test_every_scrape_of_a_busy_service_adds_up(tmp_path: Path) -> None:
    (tmp_path / "checks.py").write_text(CODE)
    settings: JsonObject = {
        "processors": {
            "group_by_trace": {"root_grace": "2s", "idle_timeout": "30s", "max_lateness": "1000000h"},
            "evaluation": {
                "workers": 1,
                "timeout": "30s",
                "custom_evaluators": {"my-check": {"file": "checks.py", "function": "slowly"}},
            },
        },
        "service": {"telemetry": {"self_check": {"enabled": True, "interval": "200ms"}}},
        "exporters": {"file": {"path": "spans.jsonl", "logs_path": "logs.jsonl"}},
    }
    errors: list[float] = []

    async with ServiceProcess(tmp_path, settings, CRITERIA) as service:
        errors_of = [
            f'tracegrade_accounting_error_{signal}{{exporter="file"}}' for signal in ("spans", "log_records")
        ]

        async def scrape() -> dict[str, float]:
            samples = await service.metrics()
            errors.extend(samples[name] for name in errors_of)
            return samples

        async def scrape_until(samples_name: str, value: float) -> dict[str, float]:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while (samples := await scrape())[samples_name] < value:
                    await asyncio.sleep(0.02)
            return samples

        batches = [
            range(1 + start, 1 + start + TRACES_PER_SENDER)
            for start in range(0, SENDERS * TRACES_PER_SENDER, TRACES_PER_SENDER)
        ]
        traces = SENDERS * TRACES_PER_SENDER
        grpc, http = service.endpoints["grpc"], service.endpoints["http"]
        async with GrpcSender(grpc) as a, HttpSender(http) as b, GrpcSender(grpc) as c, HttpSender(http) as d:
            senders: list[Sender] = [a, b, c, d]
            for step, finished in ((send_traces, 2 * traces), (send_late_spans, 3 * traces)):
                sending = [
                    asyncio.create_task(step(sender, numbers))
                    for sender, numbers in zip(senders, batches, strict=True)
                ]
                while not all(task.done() for task in sending):
                    await scrape()
                await asyncio.gather(*sending)
                samples = await scrape_until('tracegrade_spans_forwarded_total{exporter="file"}', finished)
        samples = await scrape_until(
            'tracegrade_self_checks_total{outcome="success"}',
            samples['tracegrade_self_checks_total{outcome="success"}'] + 1,
        )
        assert 0 == await service.stop()

    assert {0.0} == set(errors)
    dropped = {
        reason: samples[f'tracegrade_spans_dropped_total{{exporter="",reason="{reason}"}}']
        for reason in ("duplicate", "conflict", "self_check")
    }
    assert 4 * traces == dropped["duplicate"] + dropped["conflict"]
    assert 0 < dropped["self_check"]
    assert samples["tracegrade_spans_received_total"] == (
        7 * traces + dropped["self_check"] + samples['tracegrade_spans_held{exporter=""}']
    )
    assert traces == samples["tracegrade_late_spans_total"]
    assert LINES * traces == samples['tracegrade_log_records_forwarded_total{exporter="file"}']
    assert 0 == samples['tracegrade_self_checks_total{outcome="failure"}']
    assert traces == samples["tracegrade_verdict_delay_seconds_count"]
    by_workers = (
        'gen_ai_evaluation_results_total{gen_ai_agent_name="clerk",gen_ai_evaluation_name="my-check",'
        'gen_ai_evaluation_score_label="pass"}'
    )
    assert traces / 2 == samples[by_workers]
