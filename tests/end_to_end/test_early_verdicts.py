"""Failures are reported while a trace goes on: in time, once, and as the final verdict is."""

import asyncio
import json
import random
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import aiohttp
import pytest

from collector.otlp import join_spans
from processors.model import JsonObject
from processors.spans import RawSpan
from tests.support.agent_spans import TRACE_ID, agent, model, tool
from tests.support.otlp_senders import GrpcSender
from tests.support.service_process import PATIENCE_SECONDS, ServiceProcess

pytestmark = pytest.mark.end_to_end

CRITERIA = """
agents:
  "*":
    evaluations:
      - {evaluator: tool-repetition, name: loops, early: true, config: {threshold: 5}}
      - {evaluator: tool-call-budget, name: budget, early: true, criteria: {max_calls: 6}}
      - {evaluator: tool-call-count, name: paid, criteria: {tool_calls_count: {pay: ["=", 1]}}}
"""
LONG: JsonObject = {
    "processors": {"group_by_trace": {"idle_timeout": "60s", "incomplete_grace": "30s"}},
    "results": {"emit": ["span_event", "log"]},
    "exporters": {"file": {"logs_path": "logs.jsonl"}},
    "store": {},
    "page": {"endpoint": "127.0.0.1:0"},
}
IN_TIME_SECONDS = 2.0


class _Run:
    """A run of an agent that searches again and again; its own span is sent last."""

    def __init__(self, number: int, *, name: str = "shop", is_named: bool = True) -> None:
        self.trace_id = number.to_bytes(16, "big")
        self.name = name
        self._of_turn: JsonObject = {"gen_ai.agent.name": name} if is_named else {}
        self._start = time.time()
        self._count = 1

    def spans(self, count: int, tool_name: str = "search") -> list[RawSpan]:
        """A turn and `count` calls of it with equal arguments."""
        now = int(time.time() * 1000)
        first = self._count + 1
        self._count += 1 + count
        spans = [model(first, 1, (now, now + 1), **self._of_turn)]
        spans += [tool(first + each, 1, tool_name, at=(now, now + 1)) for each in range(1, count + 1)]
        return self._own(spans)

    def end(self) -> list[RawSpan]:
        """The agent's own span."""
        return self._own([agent(1, None, self.name, at=(int(self._start * 1000), int(time.time() * 1000)))])

    def _own(self, spans: Sequence[RawSpan]) -> list[RawSpan]:
        return [(span_id, payload.replace(TRACE_ID, self.trace_id), of) for span_id, payload, of in spans]


async def _send(service: ServiceProcess, *spans: RawSpan) -> float:
    async with GrpcSender(service.endpoints["grpc"]) as sender:
        assert "OK" == (await sender.send(join_spans(spans))).code
    return time.monotonic()


async def _early(service: ServiceProcess) -> dict[str, float]:
    """Early failures by agent and evaluation."""
    await service.metrics()  # which shows new series at 0
    prefix = "tracegrade_early_failures_total"
    counted = {key: value for key, value in (await service.metrics()).items() if key.startswith(prefix)}
    return {key.removeprefix(prefix): value for key, value in counted.items() if value}


async def _running(service: ServiceProcess) -> list[str]:
    """The evaluations that the page shows as failed while the run goes on, latest first."""
    address = f"http://{service.endpoints['page']}/api/agents"
    async with aiohttp.ClientSession() as session, session.get(address) as response:
        return [failure["evaluation"] for failure in (await response.json())["running"]]


def _of(agent_name: str, evaluation: str) -> str:
    return f'{{gen_ai_agent_name="{agent_name}",gen_ai_evaluation_name="{evaluation}"}}'


def _verdicts(service: ServiceProcess) -> dict[int, dict[str, str]]:
    return {
        int(str(run["trace_id"]), 16): {
            str(each["name"]): str(each["outcome"]) for each in run["evaluations"] if isinstance(each, dict)
        }
        for run in service.results()
        if isinstance(run["evaluations"], list)
    }


def _log_records(folder: Path) -> list[JsonObject]:
    path = folder / "logs.jsonl"
    return [
        record
        for line in (path.read_text().splitlines() if path.exists() else ())
        for of_resource in json.loads(line)["resourceLogs"]
        for of_scope in of_resource["scopeLogs"]
        for record in of_scope["logRecords"]
    ]


def _lines(service: ServiceProcess) -> list[str]:
    return [line for line in service.log if "goes on fails an evaluation" in line]


@pytest.mark.parametrize("is_named", [True, False])
async def test_a_loop_is_reported_while_it_goes_on_once_and_fails_in_the_end(
    tmp_path: Path, is_named: bool
) -> None:
    async with ServiceProcess(tmp_path, LONG, CRITERIA) as service:
        run = _Run(1, is_named=is_named)
        await _send(service, *run.spans(3))
        await asyncio.sleep(1.5)
        assert await _early(service) == {}

        decided = await _send(service, *run.spans(2))
        while not _lines(service):
            assert time.monotonic() < decided + PATIENCE_SECONDS  # how soon: the test under load
            await asyncio.sleep(0.02)
        assert run.trace_id.hex() in _lines(service)[0]
        assert _verdicts(service) == {}

        for _ in range(3):  # it goes on, and then exceeds the budget too
            await _send(service, *run.spans(1))
            await asyncio.sleep(0.8)
        named = "shop" if is_named else "demo"  # the agent's name, or that of the service
        expected = {_of(named, "loops"): 1.0, _of(named, "budget"): 1.0}
        assert await _early(service) == expected
        assert await _running(service) == ["budget", "loops"]
        assert _verdicts(service) == {}

        await _send(service, *run.end())
        await service.until(lambda: len(service.results()) == 1)
        await asyncio.sleep(0.5)
        assert await _running(service) == []
        assert _verdicts(service) == {1: {"loops": "fail", "budget": "fail", "paid": "fail"}}
        assert await _early(service) == expected
        assert len(_lines(service)) == 2
        await service.until(lambda: len(_log_records(tmp_path)) == 5)
        early, final = "tracegrade.evaluation.early_failure", "gen_ai.evaluation.result"
        records = _log_records(tmp_path)
        assert [early, early, final, final, final] == [record["eventName"] for record in records]
        assert "identical calls" in str(records[0])


async def test_after_a_restart_nothing_is_reported_again(tmp_path: Path) -> None:
    live: JsonObject = {**LONG, "journal": {"directory": "journal", "fsync": "always"}}
    run, fresh = _Run(1), _Run(2, name="other")
    async with ServiceProcess(tmp_path, live, CRITERIA) as service:
        await _send(service, *run.spans(5))
        await service.until(lambda: bool(_lines(service)))
        service.signal(signal.SIGKILL)
        await service.wait()

    async with ServiceProcess(tmp_path, live, CRITERIA) as service:
        await _send(service, *run.spans(1))
        await _send(service, *fresh.spans(5))
        await service.until(lambda: bool(_lines(service)))
        await asyncio.sleep(1.5)
        assert await _early(service) == {_of("other", "loops"): 1.0}
        await _send(service, *run.end(), *fresh.end())
        await service.until(lambda: len(service.results()) == 2)
        assert [found["loops"] for found in _verdicts(service).values()] == ["fail", "fail"]


@pytest.mark.slow
async def test_under_load_and_with_late_spans_no_report_is_late_twice_or_wrong(tmp_path: Path) -> None:
    """Ten loops among runs that end well, of which some are long and their spans come in any order."""
    chance = random.Random(4)
    loops = [_Run(number, name=f"loop-{number}") for number in range(1, 11)]
    good = [_Run(100 + number, name=f"good-{number}") for number in range(10)]
    others = 1000
    decided: dict[str, float] = {}
    began = time.monotonic()

    async with (
        ServiceProcess(tmp_path, LONG, CRITERIA) as service,
        GrpcSender(service.endpoints["grpc"]) as sender,
    ):

        async def send(spans: Sequence[RawSpan]) -> None:
            assert (await sender.send(join_spans(spans))).code == "OK"

        async def load(until: asyncio.Event) -> None:
            nonlocal others
            while not until.is_set():
                batch: list[RawSpan] = []
                for _ in range(20):
                    others += 1
                    short = _Run(others, name="short")
                    batch += [*short.spans(1, "pay"), *short.end()]
                await send(batch)
                await asyncio.sleep(0.1)

        async def loop(run: _Run) -> None:
            await asyncio.sleep(chance.uniform(0, 3))
            late = run.spans(2)
            await send(run.spans(2))
            await asyncio.sleep(chance.uniform(0.5, 2))
            await send(run.spans(1))
            await send(chance.sample(late, len(late)))
            decided[run.trace_id.hex()] = time.time()
            await asyncio.sleep(3)
            await send(run.spans(4))
            await asyncio.sleep(2)
            await send(run.end())

        async def end_well(run: _Run) -> None:
            parts = [run.spans(1, f"tool-{place}") for place in range(5)]
            for part in chance.sample(parts, len(parts)):
                await send(part)
                await asyncio.sleep(chance.uniform(0.2, 1.5))
            await send(run.end())

        done = asyncio.Event()
        loading = asyncio.create_task(load(done))
        await asyncio.gather(*map(loop, loops), *map(end_well, good))
        done.set()
        await loading
        await service.until(lambda: len(service.results()) == others - 1000 + len(loops) + len(good))
        early, metrics = await _early(service), await service.metrics()
        verdicts = _verdicts(service)
        early_name = "tracegrade.evaluation.early_failure"
        reported = [
            record
            for record in _log_records(tmp_path)
            if record["eventName"] == early_name and "identical calls" in str(record)
        ]

    expected = {_of(run.name, check): 1.0 for run in loops for check in ("loops", "budget")}
    assert early == expected
    failed = {number for number, checks in verdicts.items() if checks["loops"] == "fail"}
    assert failed == set(range(1, 11))
    assert all(verdicts[number]["budget"] == "fail" for number in failed)
    assert sorted(str(record["traceId"]) for record in reported) == sorted(decided)
    delays = [int(str(record["timeUnixNano"])) / 1e9 - decided[str(record["traceId"])] for record in reported]
    assert max(delays) < IN_TIME_SECONDS, delays
    assert metrics["tracegrade_early_look_seconds_total"] < (time.monotonic() - began) / 20
