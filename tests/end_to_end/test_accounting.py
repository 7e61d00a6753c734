"""Received = forwarded + dropped(reason) + held, whatever happens, on the running service.

The service is the real one, with real gRPC in and out, on a clock that moves only when the machine below says
so. What is checked is what a scrape shows.
"""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from collector.otlp import join_spans
from processors.spans import RawSpan
from tests.support.backends import ACCEPT, Answer, GrpcBackend, log_records, spans_and_verdicts
from tests.support.held_spans import START_UNIX_NANO, raw_span
from tests.support.otlp_senders import GrpcSender, logs_request
from tests.support.service_in_loop import ServiceInLoop

pytestmark = pytest.mark.end_to_end

T = TypeVar("T")

_CONFIGURATION = """
receivers: {{otlp: {{protocols: {{grpc: {{endpoint: "127.0.0.1:0", server: {server}}}}}}}}}
processors:
  memory_limiter: {{limit_mib: 1}}
  group_by_trace: {{max_spans_per_trace: 6, idle_timeout: 5s, max_trace_age: 30s}}
exporters:
  otlp: {{endpoint: "{endpoint}", tls: {{insecure: true}}, delivery: {delivery}}}
results: {results}
service: {{telemetry: {{endpoint: "127.0.0.1:0", self_check: {{enabled: false}}}}, shutdown_timeout: 5s}}
"""


class RunningService(RuleBasedStateMachine):
    """A sender that repeats, contradicts and delays itself, a backend that comes and goes, and time.

    Spans wait for their verdict, or leave before it, or go nowhere; verdicts travel beside them.
    """

    @initialize(
        delivery=st.sampled_from(["required", "best_effort"]),
        mode=st.sampled_from(["hold", "stream", "verdicts_only"]),
        server=st.sampled_from(["grpcio", "uvicorn"]),
    )
    def start(self, delivery: str, mode: str, server: str) -> None:
        self.end_of_spans = "prometheus" if mode == "verdicts_only" else "otlp"
        emit = "[span_event, log]" if mode == "hold" else "[log, span]"
        self.loop = asyncio.new_event_loop()
        self.backend = GrpcBackend(lambda _: self.answer)
        self.answer = ACCEPT
        self.accepted_ids: set[bytes] = set()
        self.sent = 0
        self.refused = 0
        self.accepted_records = 0
        self.run_until(self.backend.start())
        text = _CONFIGURATION.format(
            server=server,
            endpoint=self.backend.endpoint,
            delivery=delivery,
            results=f"{{mode: {mode}, emit: {emit}}}",
        )
        self.service = self.run_until(self.start_service(text))
        self.sender = self.run_until(self.make_sender())

    async def start_service(self, configuration: str) -> ServiceInLoop:
        service = ServiceInLoop(configuration, START_UNIX_NANO)
        await service.start()
        return service

    def run_until(self, step: Coroutine[object, object, T] | asyncio.Future[T]) -> T:
        return self.loop.run_until_complete(step)

    async def make_sender(self) -> GrpcSender:
        return GrpcSender(self.service.endpoints["grpc"])

    @rule(
        trace=st.integers(1, 4),
        numbers=st.lists(st.integers(1, 9), min_size=1, max_size=5),
        root=st.booleans(),
        ends=st.integers(0, 1),
        padding=st.sampled_from([0, 0, 0, 200_000]),
    )
    def send(self, trace: int, numbers: list[int], root: bool, ends: int, padding: int) -> None:
        spans: list[RawSpan] = [
            raw_span(
                trace * 100 + number,
                None if root and number == 1 else trace * 100 + 1,
                trace=trace,
                end=START_UNIX_NANO + ends,
                name="x" * padding + "span",
                attribute="gen_ai.tool.name" if number > 1 else "",
            )
            for number in numbers
        ]
        answer = self.run_until(self.sender.send(join_spans(spans)))
        assert answer.code in ("OK", "UNAVAILABLE", "RESOURCE_EXHAUSTED"), answer
        self.sent += len(spans)
        if answer.code == "OK":
            self.accepted_ids.update(span[0] for span in spans)
        else:
            self.refused += len(spans)

    @rule(count=st.integers(1, 5), padding=st.sampled_from([0, 0, 200_000]))
    def send_log_records(self, count: int, padding: int) -> None:
        body = logs_request(count, padding=padding)
        answer = self.run_until(self.sender.send(body, signal="logs"))
        assert answer.code in ("OK", "UNAVAILABLE", "RESOURCE_EXHAUSTED"), answer
        if answer.code == "OK":
            self.accepted_records += count

    @rule(seconds=st.integers(1, 20))
    def pass_time(self, seconds: int) -> None:
        self.run_until(self.service.pass_time(seconds))

    @rule(seconds=st.sampled_from([2, 8, 30]))
    def stop_the_process(self, seconds: int) -> None:
        self.service.clock.advance(seconds)
        self.run_until(asyncio.sleep(0))

    @rule(kind=st.sampled_from(["accept", "unavailable", "refuse_content", "partial"]))
    def change_the_backend(self, kind: str) -> None:
        self.answer = Answer("partial", rejected=1) if kind == "partial" else Answer(kind)  # type: ignore[arg-type]

    @invariant()
    def nothing_is_unaccounted_for(self) -> None:
        if hasattr(self, "sender"):
            samples = self.run_until(self.service.metrics())
            assert 0 == samples[f'tracegrade_accounting_error_spans{{exporter="{self.end_of_spans}"}}']
            assert self.sent - self.refused == samples["tracegrade_spans_received_total"]
            assert 0 == samples[f'tracegrade_accounting_error_log_records{{exporter="{self.end_of_spans}"}}']
            assert self.accepted_records == samples["tracegrade_log_records_received_total"]

    def teardown(self) -> None:
        if not hasattr(self, "sender"):
            return
        self.answer = ACCEPT
        self.run_until(self.service.stop())
        arrived, verdicts = spans_and_verdicts(self.backend.requests)
        assert len(arrived) == len(set(arrived)), "a span was forwarded twice"
        assert set(arrived) <= (set() if self.end_of_spans == "prometheus" else self.accepted_ids)
        assert len(verdicts) == len(set(verdicts)), "a verdict was sent twice"
        assert not self.accepted_ids & set(verdicts)
        records = [record for _, scope, record in log_records(self.backend.log_requests) if scope == "app"]
        assert len(records) <= (0 if self.end_of_spans == "prometheus" else self.accepted_records)
        self.run_until(self.sender.channel.close())
        self.run_until(self.backend.stop())
        self.run_until(self.loop.shutdown_default_executor())
        self.loop.close()


TestRunningService = RunningService.TestCase
TestRunningService.settings = settings(
    max_examples=18,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
