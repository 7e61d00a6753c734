"""kill -9 under load of both signals: acknowledged is delivered, and each verdict counts its log records.

`CHAOS_KILLS` kills (4 by default) while agents whose content is in log records, runs that log records alone
report, and log lines of programs come over gRPC and HTTP.
"""

import asyncio
import os
import random
import signal
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.otlp import split_records, split_request
from tests.support.backend_server import free_port
from tests.support.backends import GrpcBackend
from tests.support.both_signals import requests
from tests.support.otlp_senders import GrpcSender, HttpSender, Sender, logs_request
from tests.support.service_process import ServiceProcess

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow]

KILLS = int(os.environ.get("CHAOS_KILLS", "4"))
IN_BOTH, ALONE = "genai_openai", "claude_code_logs_alone"
PAUSE_SECONDS = 0.05
LINES = 200
SHORTER = 10_000
"""So much shorter than when they were recorded: what began before the service did is not judged."""


def _trace(number: int) -> tuple[bytes, bytes]:
    """The requests of a trace: log records, and spans that began now."""
    (logs,), (traces,) = requests(IN_BOTH, "logs"), requests(IN_BOTH, "traces")
    (old,) = split_request(traces).traces
    of_spans = ExportTraceServiceRequest.FromString(traces.replace(old, number.to_bytes(16, "big")))
    spans = [span for of in of_spans.resource_spans for of_scope in of.scope_spans for span in of_scope.spans]
    end, now = max(span.end_time_unix_nano for span in spans), time.time_ns()
    for span in spans:
        span.start_time_unix_nano = now - (end - span.start_time_unix_nano) // SHORTER
        span.end_time_unix_nano = now - (end - span.end_time_unix_nano) // SHORTER
    return logs.replace(old, number.to_bytes(16, "big")), of_spans.SerializeToString()


def _run(number: int) -> list[bytes]:
    """The requests of a run without any span: a half of its log records each."""
    (body,) = requests(ALONE, "logs")
    request = ExportLogsServiceRequest.FromString(body)
    (records,) = (of_scope.log_records for of in request.resource_logs for of_scope in of.scope_logs)
    session = next(each.value.string_value for each in records[0].attributes if each.key == "session.id")
    end, now = max(record.time_unix_nano for record in records), time.time_ns()
    for record in records:
        record.time_unix_nano = record.observed_time_unix_nano = (
            now - (end - record.time_unix_nano) // SHORTER
        )
    kept, halves = list(records), []
    for half in (kept[: len(kept) // 2], kept[len(kept) // 2 :]):
        del records[:]
        records.extend(half)
        halves.append(request.SerializeToString())
    new = f"{number:036d}"
    return [half.replace(session.encode(), new.encode()) for half in halves]


class Load:
    """Senders that try each request until it is acknowledged."""

    def __init__(self) -> None:
        self.is_over = asyncio.Event()
        self.records: Counter[bytes] = Counter()
        self.spans: set[tuple[bytes, bytes]] = set()
        self.traces: set[str] = set()
        self.runs = 0
        self.unanswered: set[str] = set()
        """Traces of which a request was tried more than once: the sender may have been away for long."""

    async def run(self, over_grpc: Sender, over_http: Sender) -> None:
        await asyncio.gather(
            *(self._traces(sender, first) for first, sender in enumerate((over_grpc, over_http), 1)),
            self._runs(over_grpc),
            self._lines(over_http),
        )

    async def _traces(self, sender: Sender, number: int) -> None:
        while not self.is_over.is_set():
            logs, spans = _trace(number)
            trace_id = number.to_bytes(16, "big").hex()
            tries = await self._send(sender, logs, "logs") + await self._send(sender, spans, "traces")
            if tries > 2:
                self.unanswered.add(trace_id)
            self.traces.add(trace_id)
            number += 2
            await asyncio.sleep(PAUSE_SECONDS)

    async def _runs(self, sender: Sender) -> None:
        while not self.is_over.is_set():
            self.runs += 1
            for body in _run(self.runs):
                await self._send(sender, body, "logs")
            await asyncio.sleep(4 * PAUSE_SECONDS)

    async def _lines(self, sender: Sender) -> None:
        number = 0
        while not self.is_over.is_set():
            number += 1
            await self._send(sender, logs_request(LINES, padding=number), "logs")
            await asyncio.sleep(PAUSE_SECONDS)

    async def _send(self, sender: Sender, body: bytes, signal_name: str) -> int:
        """Send until it is acknowledged; how often that took."""
        tries = 1
        while True:
            try:
                if (await sender.send(body, signal=signal_name)).code == "OK":
                    break
            except aiohttp.ClientError:  # of HTTP: nobody is there, or no longer
                pass
            tries += 1
            await asyncio.sleep(0.2)
        if signal_name == "logs":
            self.records.update({payload for _, payload, _ in split_records(body).records})
        else:
            for trace_id, spans in split_request(body).traces.items():
                self.spans.update((trace_id, span[0]) for span in spans)
        return tries


@pytest.mark.timeout(120 + 30 * KILLS)
async def test_kills_under_load_of_both_signals_lose_nothing_and_change_no_verdict(tmp_path: Path) -> None:
    grpc_endpoint, http_endpoint = (f"127.0.0.1:{free_port()}" for _ in range(2))
    backend = GrpcBackend()
    await backend.start()
    settings: Any = {
        "receivers": {
            "otlp": {"protocols": {"grpc": {"endpoint": grpc_endpoint}, "http": {"endpoint": http_endpoint}}}
        },
        "processors": {"group_by_trace": {"idle_timeout": "6s"}},
        "journal": {"directory": "journal"},
        "exporters": {"otlp": {"endpoint": backend.endpoint, "tls": {"insecure": True}}},
    }
    chance, load, recovered = random.Random(KILLS), Load(), 0.0
    async with GrpcSender(grpc_endpoint) as over_grpc, HttpSender(http_endpoint) as over_http:
        sending = None
        for _ in range(KILLS):
            service = ServiceProcess(tmp_path, settings)
            await service.start()
            sending = sending or asyncio.create_task(load.run(over_grpc, over_http))
            recovered += (await service.metrics())['tracegrade_log_records_recovered_total{exporter=""}']
            await asyncio.sleep(chance.uniform(0.5, 4.0) + 10.5 * (chance.random() < 0.3))
            service.signal(signal.SIGKILL)
            await service.wait()
        service = ServiceProcess(tmp_path, settings)
        await service.start()
        await asyncio.sleep(2)
        load.is_over.set()
        assert sending is not None
        await sending
    await service.until(
        lambda: len({run["trace_id"] for run in service.results()}) >= len(load.traces) + load.runs
    )
    await asyncio.sleep(1)
    metrics = await service.metrics()
    assert 0 == await service.stop()
    await backend.stop()

    delivered = Counter(
        payload for body in backend.log_requests for _, payload, _ in split_records(body).records
    )
    assert not load.records.keys() - delivered.keys()
    spans = {
        (trace_id, span[0])
        for body in backend.requests
        for trace_id, of_trace in split_request(body).traces.items()
        for span in of_trace
    }
    assert load.spans <= spans
    verdicts: dict[str, set[tuple[int, str, str]]] = defaultdict(set)
    for run in service.results():
        evaluations: Any = run["evaluations"]
        calls: Any = run["tool_calls"]
        (honest,) = (each for each in evaluations if each["name"] == "honest-response")
        verdicts[str(run["trace_id"])].add((len(calls), honest["outcome"], honest["reason"] or ""))
    cut_short = [trace for trace, of in verdicts.items() if of != {(4, "fail", "")}]
    # Nobody knows of a run without spans whether it was whole before an outage, which a slow start is.
    may_lack = load.unanswered | (verdicts.keys() - load.traces)
    assert set(cut_short) <= may_lack, [(trace, verdicts[trace]) for trace in cut_short]
    assert all(verdicts[trace] == {(4, "not_evaluated", "interrupted")} for trace in cut_short)
    assert len(verdicts) == len(load.traces) + load.runs
    for signal_name in ("spans", "log_records"):
        assert 0 == metrics[f'tracegrade_accounting_error_{signal_name}{{exporter="otlp"}}']
    assert 0 == metrics["tracegrade_log_records_awaiting_verdict"] == metrics["tracegrade_traces_held"]
    assert recovered
    print(
        f"{KILLS} kills, {load.records.total()} log records acknowledged, {delivered.total()} delivered, "
        f"{recovered:g} recovered; {len(load.traces)} traces, {load.runs} runs, {len(cut_short)} not judged"
    )
