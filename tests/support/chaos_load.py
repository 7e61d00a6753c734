"""Load whose every span and verdict is known: senders that try again, a backend that keeps what it got."""

import asyncio
import contextlib
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import grpc
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpanExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpSpanExporter
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.otlp import split_request
from collector.receivers import ExportOutcome
from processors.spans import RawSpan
from tests.support.agent_spans import TRACE_ID, agent, tool
from tests.support.load_senders import LoadSender, PlainSender, StockSender

SPANS_PER_TRACE = 3
CRITERIA = """
agents:
  shop:
    evaluations:
      - {evaluator: tool-call-count, criteria: {tool_calls_count: {search: ["=", 1], pay: ["=", 1]}}}
"""
_EVENT = b"gen_ai.evaluation.result"


@dataclass
class Sink:
    """A backend that keeps what it got: every span's bytes, and the verdicts of every trace.

    Only of `Load`: trace ids of others begin with another byte than 0.
    """

    spans: dict[tuple[bytes, bytes], bytes] = field(default_factory=dict)
    verdicts: dict[bytes, set[tuple[str, int, str]]] = field(default_factory=lambda: defaultdict(set))
    deliveries: int = 0

    async def consume_large_traces(self, body: bytes) -> ExportOutcome:
        return self.consume_traces(body)

    def consume_traces(self, body: bytes) -> ExportOutcome:
        split = split_request(body)
        for trace_id, spans in split.traces.items():
            if trace_id[0]:
                continue
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
    seconds: list[float] = field(default_factory=list)
    """How long each acknowledgement took, from the first attempt on."""

    def outcomes(self, sink: Sink, *, cut_short: float = 0) -> dict[str, int]:
        """How many traces got which verdict: one each, and what an undisturbed run gives.

        Only of a trace in a request that was not answered a part may have been missing, and of as many as
        the service says that it had to cut short.
        """
        outcomes: dict[str, int] = defaultdict(int)
        for number in self.traces:
            verdicts = sink.verdicts[number.to_bytes(16, "big")]
            assert 1 == len(verdicts), (number, verdicts)  # graded once, or told as it was graded
            (outcome, _, _) = next(iter(verdicts))
            outcomes[outcome] += 1
            if outcome == "not_evaluated":
                cut_short -= number not in self.unanswered
                assert cut_short >= 0, number
            else:
                assert outcome == ("pass" if number % 7 else "fail"), number
        return dict(outcomes)

    def require_delivered(self, sink: Sink) -> None:
        """Every acknowledged span is in `sink` byte for byte, but for verdicts behind its end."""
        lost = [key for key in self.acknowledged if key not in sink.spans]
        assert not lost, (len(lost), lost[:3])
        changed = [
            key for key, payload in self.acknowledged.items() if not sink.spans[key].startswith(payload)
        ]
        assert not changed, (len(changed), changed[:3])


def shop_trace(number: int) -> Sequence[RawSpan]:
    """A run that searches first and pays last, but for each seventh, which searches twice."""
    start = int(time.time() * 1000)
    spans = (
        tool(2, 1, "search", at=(start + 1, start + 2)),
        tool(3, 1, "pay" if number % 7 else "search", at=(start + 3, start + 4)),
        agent(1, None, "shop", at=(start, start + 5)),
    )
    trace_id = number.to_bytes(16, "big")
    return [(span_id, payload.replace(TRACE_ID, trace_id), of) for span_id, payload, of in spans]


class Load:
    """Senders that try each request until it is acknowledged, at a fixed rate together.

    With `http`, an endpoint of OTLP/HTTP of the same service, two of them are the SDK's own exporters, over
    gRPC and over HTTP.
    """

    def __init__(
        self,
        target: str,
        spans_per_second: float,
        *,
        http: str | None = None,
        senders: int = 8,
        traces_per_request: int = 32,
    ) -> None:
        self.sent = Sent()
        self.is_over = asyncio.Event()
        self._target = target
        self._http = http
        self._senders = senders
        self._traces_per_request = traces_per_request
        self._interval = senders * traces_per_request * SPANS_PER_TRACE / spans_per_second

    async def run(self) -> None:
        options = [("grpc.max_reconnect_backoff_ms", 200), ("grpc.use_local_subchannel_pool", 1)]
        async with contextlib.AsyncExitStack() as stack:
            senders: list[LoadSender] = []
            if self._http is not None:
                stock = [
                    GrpcSpanExporter(endpoint=self._target, insecure=True, timeout=5),
                    HttpSpanExporter(endpoint=f"http://{self._http}/v1/traces", timeout=5),
                ]
                threads = stack.enter_context(ThreadPoolExecutor(len(stock)))
                for exporter in stock:
                    stack.callback(exporter.shutdown)
                    senders.append(StockSender(exporter, threads))
            while len(senders) < self._senders:
                channel = grpc.aio.insecure_channel(self._target, options=options)
                senders.append(PlainSender(await stack.enter_async_context(channel)))
            await asyncio.gather(*(self._send_all(number, sender) for number, sender in enumerate(senders)))

    async def _send_all(self, number: int, sender: LoadSender) -> None:
        numbers = self._numbers(number)
        await asyncio.sleep(self._interval * number / self._senders)
        due = time.monotonic()
        while not self.is_over.is_set():
            traces = {number: shop_trace(number) for number in next(numbers)}
            await self._send(sender, {number: spans[:1] for number, spans in traces.items()})
            await self._send(sender, {number: spans[1:] for number, spans in traces.items()})
            due += self._interval
            await asyncio.sleep(max(0.0, due - time.monotonic()))

    async def _send(self, sender: LoadSender, traces: dict[int, Sequence[RawSpan]]) -> None:
        request = [span for spans in traces.values() for span in spans]
        started = time.monotonic()
        while True:
            exported = await sender.export(request)
            if exported.was_unanswered:
                self.sent.unanswered.update(traces)
            if exported.is_acknowledged:
                break
            await asyncio.sleep(0.05)
        self.sent.seconds.append(time.monotonic() - started)
        for number, spans in traces.items():
            self.sent.traces.add(number)
            for span_id, payload, _ in sender.encoded(spans):
                self.sent.acknowledged[number.to_bytes(16, "big"), span_id] = payload

    def _numbers(self, sender: int) -> Iterator[range]:
        first = 1 + sender * 10_000_000
        while True:
            yield range(first, first + self._traces_per_request)
            first += self._traces_per_request
