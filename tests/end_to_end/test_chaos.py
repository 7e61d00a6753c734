"""kill -9 at random moments under load: acknowledged is delivered and graded, and no verdict is another.

`CHAOS_KILLS` kills (10 by default; `make chaos` does 50) while some 5,000 spans a second come.
"""

import asyncio
import os
import random
import signal
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.otlp.codec import join_spans, split_request
from collector.receivers.consumer import ExportOutcome
from collector.receivers.otlp_grpc import GrpcServerConfig, OtlpGrpcReceiver
from collector.telemetry.metrics import Metrics
from processors.model.json_values import JsonObject
from processors.spans.span import RawSpan
from tests.support.agent_spans import TRACE_ID, agent, tool
from tests.support.backend_server import free_port
from tests.support.otlp_senders import EXPORT_METHOD
from tests.support.service_process import ServiceProcess

pytestmark = pytest.mark.end_to_end

KILLS = int(os.environ.get("CHAOS_KILLS", "10"))
SPANS_PER_SECOND = 5_000
SENDERS, TRACES_PER_REQUEST, SPANS_PER_TRACE = 8, 32, 3
CRITERIA = """
agents:
  shop:
    evaluations:
      - {evaluator: tool-call-count, criteria: {tool_calls_count: {search: ["=", 1], pay: ["=", 1]}}}
"""
_EVENT = b"gen_ai.evaluation.result"


@dataclass
class Sink:
    """A backend that keeps what it got: every span's bytes, and the verdicts of every trace."""

    spans: dict[tuple[bytes, bytes], bytes] = field(default_factory=dict)
    verdicts: dict[bytes, set[tuple[str, int, str]]] = field(default_factory=lambda: defaultdict(set))
    deliveries: int = 0

    async def consume_large_traces(self, body: bytes) -> ExportOutcome:
        return self.consume_traces(body)

    def consume_traces(self, body: bytes) -> ExportOutcome:
        split = split_request(body)
        for trace_id, spans in split.traces.items():
            for span_id, payload, _ in spans:
                self.deliveries += 1
                self.spans[trace_id, span_id] = payload
                if _EVENT in payload:
                    for event in Span.FromString(payload).events:
                        told = {each.key: each.value for each in event.attributes}
                        label = told["gen_ai.evaluation.score.label"].string_value
                        instance = told["tracegrade.instance"].string_value
                        self.verdicts[trace_id].add((label, event.time_unix_nano, instance))
        return ExportOutcome(split.accepted, 0)


@dataclass
class Sent:
    """What the service acknowledged, and which traces were in a request that it did not answer."""

    acknowledged: dict[tuple[bytes, bytes], bytes] = field(default_factory=dict)
    traces: set[int] = field(default_factory=set)
    unanswered: set[int] = field(default_factory=set)


def _trace(number: int) -> tuple[RawSpan, RawSpan, RawSpan]:
    """A run that searches first and pays last, but for each seventh, which searches twice."""
    start = int(time.time() * 1000)
    spans = (
        tool(2, 1, "search", at=(start + 1, start + 2)),
        tool(3, 1, "pay" if number % 7 else "search", at=(start + 3, start + 4)),
        agent(1, None, "shop", at=(start, start + 5)),
    )
    trace_id = number.to_bytes(16, "big")
    first, second, third = (
        (span_id, payload.replace(TRACE_ID, trace_id), of) for span_id, payload, of in spans
    )
    return first, second, third


class Load:
    """Senders that try each request until it is acknowledged, at a fixed rate together."""

    def __init__(self, target: str) -> None:
        self.sent = Sent()
        self.is_over = asyncio.Event()
        self._target = target

    async def run(self) -> None:
        await asyncio.gather(*(self._send_all(number) for number in range(SENDERS)))

    async def _send_all(self, sender: int) -> None:
        interval = SENDERS * TRACES_PER_REQUEST * SPANS_PER_TRACE / SPANS_PER_SECOND
        numbers = self._numbers(sender)
        due = time.monotonic()
        options = [("grpc.max_reconnect_backoff_ms", 200), ("grpc.use_local_subchannel_pool", 1)]
        async with grpc.aio.insecure_channel(self._target, options=options) as channel:
            export = channel.unary_unary(EXPORT_METHOD)
            while not self.is_over.is_set():
                traces = {number: _trace(number) for number in next(numbers)}
                await self._send(export, {number: spans[:1] for number, spans in traces.items()})
                await self._send(export, {number: spans[1:] for number, spans in traces.items()})
                due += interval
                await asyncio.sleep(max(0.0, due - time.monotonic()))

    async def _send(
        self, export: grpc.aio.UnaryUnaryMultiCallable, traces: dict[int, tuple[RawSpan, ...]]
    ) -> None:
        body = join_spans(span for spans in traces.values() for span in spans)
        while True:
            try:
                await export(body, timeout=5)
            except grpc.aio.AioRpcError as error:
                if error.code() is not grpc.StatusCode.UNAVAILABLE or "connect" not in (
                    error.details() or ""
                ):
                    self.sent.unanswered.update(traces)
                await asyncio.sleep(0.05)
            else:
                break
        for number, spans in traces.items():
            self.sent.traces.add(number)
            for span_id, payload, _ in spans:
                self.sent.acknowledged[number.to_bytes(16, "big"), span_id] = payload

    def _numbers(self, sender: int) -> Iterator[range]:
        first = 1 + sender * 10_000_000
        while True:
            yield range(first, first + TRACES_PER_REQUEST)
            first += TRACES_PER_REQUEST


async def test_kills_under_load_lose_nothing_and_change_no_verdict(tmp_path: Path) -> None:
    sink = Sink()
    receiver = OtlpGrpcReceiver(GrpcServerConfig(endpoint="127.0.0.1:0"), sink, Metrics())
    await receiver.start()
    try:
        await _kill_under_load(tmp_path, sink, receiver.endpoint)
    finally:
        await receiver.shutdown(time.monotonic())


async def _kill_under_load(folder: Path, sink: Sink, backend: str) -> None:
    target = f"127.0.0.1:{free_port()}"
    settings: JsonObject = {
        "receivers": {"otlp": {"protocols": {"grpc": {"endpoint": target}}}},
        "exporters": {"otlp": {"endpoint": backend, "tls": {"insecure": True}}},
        "journal": {"directory": "journal"},
        # A sender that waits for a busy service between its two requests must not find the trace finished.
        "processors": {"group_by_trace": {"idle_timeout": "5m"}},
    }
    load = Load(target)
    moments = random.Random(KILLS)
    sending: asyncio.Task[None] | None = None
    recovered = again = 0.0
    for kill in range(KILLS):
        async with ServiceProcess(folder, settings, CRITERIA) as service:
            sending = sending or asyncio.create_task(load.run())
            metrics = await service.metrics()
            recovered += metrics['tracegrade_spans_recovered_total{exporter=""}']
            again += metrics.get('tracegrade_spans_sent_again_total{exporter="otlp"}', 0.0)
            # After a restart no trace finishes before senders had time to come back; some kills wait.
            await asyncio.sleep(moments.uniform(0.0, 2.0) + (10.5 if kill % 5 == 1 else 0.0))
            service.signal(signal.SIGKILL)
            await service.wait()
    async with ServiceProcess(folder, settings, CRITERIA) as service:
        load.is_over.set()
        assert sending is not None
        await sending
        sent = load.sent
        await service.until(lambda: len(sink.spans) >= len(sent.acknowledged))
        metrics = await service.metrics()
        again += metrics.get('tracegrade_spans_sent_again_total{exporter="otlp"}', 0.0)
        assert 0 == await service.stop()
    lost = [key for key in sent.acknowledged if key not in sink.spans]
    changed = [key for key, payload in sent.acknowledged.items() if not sink.spans[key].startswith(payload)]
    assert not lost
    assert not changed
    outcomes: dict[str, int] = defaultdict(int)
    for number in sent.traces:
        verdicts = sink.verdicts[number.to_bytes(16, "big")]
        assert 1 == len(verdicts), (number, verdicts)  # graded once, or told as it was graded
        (outcome, _, _) = next(iter(verdicts))
        outcomes[outcome] += 1
        if outcome == "not_evaluated":
            assert number in sent.unanswered
        else:
            assert outcome == ("pass" if number % 7 else "fail"), number
    assert 0 == metrics['tracegrade_accounting_error_spans{exporter="otlp"}']
    assert recovered
    assert sink.deliveries - len(sink.spans) <= again  # no repeat that is not counted
    print(
        f"{KILLS} kills, {len(sent.acknowledged)} spans acknowledged, {sink.deliveries} delivered, "
        f"{recovered:g} recovered, {again:g} sent again, outcomes {dict(outcomes)}, "
        f"{len(sent.unanswered)} traces unanswered at a kill"
    )
