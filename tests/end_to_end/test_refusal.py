"""A service that had to refuse for a while gives the verdict it would have given, or none."""

import time
from contextlib import AsyncExitStack
from pathlib import Path

import orjson
import pytest

from collector.otlp import join_spans, split_request
from tests.support.backends import ACCEPT, Answer, GrpcBackend
from tests.support.corpus import recorded_requests
from tests.support.deliveries import make_spans
from tests.support.otlp_senders import GrpcSender
from tests.support.service_in_loop import ServiceInLoop

pytestmark = pytest.mark.end_to_end

_CRITERIA = """
agents:
  weather_agent:
    evaluations:
      - evaluator: tool-call-count
        criteria: {tool_calls_count: {get_temperature: ["=", 1], get_forecast: [">=", 1]}}
"""

_CONFIGURATION = """
receivers: {{otlp: {{protocols: {{grpc: {{endpoint: "127.0.0.1:0"}}}}}}}}
processors:
  memory_limiter: {{limit_mib: 1}}
  group_by_trace: {{max_lateness: 1000000h}}
  evaluation: {{criteria: ["{criteria}"]}}
exporters:
  otlp: {{endpoint: "{endpoint}", tls: {{insecure: true}}}}
  results_file: {{path: "{results}"}}
service: {{telemetry: {{endpoint: "127.0.0.1:0", self_check: {{enabled: false}}}}, shutdown_timeout: 5s}}
"""


@pytest.mark.parametrize("refused_for", [1, 20, 120])
@pytest.mark.parametrize("sender_gives_up", [False, True])
async def test_refusing_never_turns_a_pass_into_a_fail(
    tmp_path: Path, refused_for: int, sender_gives_up: bool
) -> None:
    is_down = True
    backend = GrpcBackend(lambda _: Answer("unavailable") if is_down else ACCEPT)
    await backend.start()
    criteria, results = tmp_path / "criteria.yaml", tmp_path / "verdicts.runs.jsonl"
    criteria.write_text(_CRITERIA)
    configuration = _CONFIGURATION.format(endpoint=backend.endpoint, criteria=criteria, results=results)
    (spans,) = (
        spans
        for body in recorded_requests("pydantic_ai", "s1")
        for spans in split_request(body).traces.values()
    )
    root = [span for span in spans if b"invoke_agent" in span[1]]
    tools = [span for span in spans if b"execute_tool" in span[1]]
    others = [span for span in spans if span not in root and span not in tools]
    try:
        async with AsyncExitStack() as stack:
            service = await stack.enter_async_context(ServiceInLoop(configuration, time.time_ns()))
            sender = await stack.enter_async_context(GrpcSender(service.endpoints["grpc"]))
            # What the backend does not take fills the memory limit.
            filler = make_spans(1, 8, padding=100_000)
            assert "OK" == (await sender.send(join_spans(filler))).code
            await service.pass_time(10)
            assert "OK" == (await sender.send(join_spans(root + others))).code
            big = make_spans(2, 1, padding=300_000)
            tools_and_more = join_spans(tools + big)
            for _ in range(refused_for):
                assert "UNAVAILABLE" == (await sender.send(tools_and_more)).code
                await service.pass_time(1)
            is_down = False
            forwarded = 'tracegrade_spans_forwarded_total{exporter="otlp"}'
            await service.until(lambda samples: samples[forwarded] >= len(filler), step=0.2)
            await service.pass_time(1)
            if not sender_gives_up:
                assert "OK" == (await sender.send(tools_and_more)).code
            await service.pass_time(60)
            metrics = await service.metrics()
    finally:
        await backend.stop()

    (run,) = (orjson.loads(line) for line in results.read_bytes().splitlines())
    outcomes = {evaluation["outcome"] for evaluation in run["evaluations"]}
    assert outcomes <= {"pass", "not_evaluated"}
    if sender_gives_up:
        assert {"not_evaluated"} == outcomes
    assert refused_for * (len(tools) + 1) == metrics['tracegrade_spans_refused_total{reason="overloaded"}']
    assert 0 == metrics['tracegrade_accounting_error_spans{exporter="otlp"}']
