"""Other processes grade as this one does, to the byte; and one that ends takes no trace with it."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from collector.clock import SystemClock
from collector.criteria import CriteriaStore, CriteriaTexts, EvaluationConfig
from collector.grading import Form, WorkerSettings
from collector.grading.grader import Graded, Grader, Needed, Supplied, advance
from collector.grading.grading_pool import GradingPool, Quarantined
from collector.journal_file.verdicts import encode_graded
from collector.otlp import split_request
from collector.results_config import ResultsConfig
from collector.task_supervisor import TaskSupervisor
from collector.telemetry import Metrics, ScoreSeries
from collector.trace import FinishedTrace, GradedTrace
from processors.annotation import format_run, run_from_json
from processors.criteria import CriteriaSet
from processors.model import AgentRun, FinishReason, GradedRun, decode_json
from processors.spans import RawSpan
from tests.support.agent_spans import TRACE_ID, agent, tool
from tests.support.corpus import recorded_requests

NOW = 1_900_000_000_000_000_000
CRITERIA = """
agents:
  "cl*":
    evaluations: [{evaluator: tool-call-count, criteria: {tool_calls_count: {"${env:TOOL}": ["=", 1]}}}]
"""
ALL_FORMS = ResultsConfig.model_validate(
    {"emit": ["span_event", "log", "span"], "annotations": ["openinference"]}
)
FORM = Form(lines=True, details=True, resource_attributes=("service.name",))


class _StandingClock(SystemClock):
    """The time of day stands still, so that two graders say the same one."""

    def unix_nano(self) -> int:
        return NOW


def recorded_traces() -> list[FinishedTrace]:
    spans: dict[bytes, list[RawSpan]] = {}
    for body in recorded_requests():
        for trace_id, found in split_request(body).traces.items():
            spans.setdefault(trace_id, []).extend(found)
    return [
        FinishedTrace(trace_id=trace_id, spans=found, reason=FinishReason.ROOT)
        for trace_id, found in spans.items()
    ]


def trace(number: int, calls: int) -> FinishedTrace:
    """A run with so many calls."""
    spans = [agent(1, None, "clerk"), *(tool(2 + call, 1, f"tool_{call % 9}") for call in range(calls))]
    trace_id = number.to_bytes(16)
    moved = [(span[0], span[1].replace(TRACE_ID, trace_id), span[2]) for span in spans]
    return FinishedTrace(trace_id=trace_id, spans=moved, reason=FinishReason.ROOT)


def graded_here(
    traces: Sequence[FinishedTrace], criteria: CriteriaSet, results: ResultsConfig
) -> list[GradedTrace]:
    grader = Grader(
        criteria=lambda: criteria,
        clock=_StandingClock(),
        instance="here",
        results=results,
    )
    found = [advance(grader.steps(trace)) for trace in traces]
    return [graded.trace for graded in found if isinstance(graded, Graded)]


async def supply_nothing(needed: Needed) -> Supplied:
    raise AssertionError(f"nothing is needed, but {needed}")


@asynccontextmanager
async def pool_of(
    processes: int,
    criteria: Callable[[], CriteriaTexts],
    metrics: Metrics,
    results: ResultsConfig = ALL_FORMS,
) -> AsyncIterator[GradingPool]:
    settings = WorkerSettings(
        config=EvaluationConfig(),
        instance="here",
        missing_parents="grade",
        uses_workers=False,
        results=results,
        writes_scores=False,
        form=FORM,
    )
    pool = GradingPool(
        settings,
        processes=processes,
        criteria=criteria,
        read_run=_read_run,
        metrics=metrics,
        clock=_StandingClock(),
    )
    tasks = TaskSupervisor(on_failure=lambda: None)
    pool.start(tasks)
    try:
        yield pool
    finally:
        await pool.shutdown()
        await tasks.cancel()
        assert not tasks.failures


def _read_run(line: bytes) -> AgentRun:
    return run_from_json(decode_json(line), "test")


def counted(traces: Sequence[GradedTrace]) -> dict[str, object]:
    """What all metrics of agents come to."""
    metrics = Metrics(("service_name",))
    series = ScoreSeries(metrics, _StandingClock(), resource_attributes=["service.name"])
    for graded in traces:
        series.record(graded)
    series.flush()
    instruments = (
        metrics.agent_runs,
        metrics.results,
        metrics.tool_calls,
        metrics.not_evaluated,
        metrics.classifications,
        metrics.score,
        metrics.run_duration_seconds,
        metrics.run_tokens,
    )
    return {
        instrument.name: {
            key: list(value) if not isinstance(value, int | float) else value
            for key, value in instrument.values.items()
        }
        for instrument in instruments
    }


async def test_recorded_traces_are_graded_elsewhere_as_they_are_here() -> None:
    store = CriteriaStore(None, environment={})
    traces = recorded_traces()
    here = graded_here(traces, store.current, ALL_FORMS)

    async with pool_of(2, lambda: store.texts, Metrics()) as pool:
        found = await asyncio.gather(*[pool.grade(trace, supply_nothing) for trace in traces])

    there = [graded.trace for graded in found]
    assert len(traces) == len(here) == len(there)
    for trace, one, other in zip(traces, here, there, strict=True):
        assert one.spans == other.spans
        assert [span[:2] for span in one.log_records] == [span[:2] for span in other.log_records]
        assert [span[:2] for span in one.evaluation_spans] == [span[:2] for span in other.evaluation_spans]
        assert list(map(format_run, one.runs)) == list(map(format_run, other.runs))
        assert encode_graded(trace, one) == encode_graded(trace, other)
        assert [run.run.tool_calls for run in one.runs] == [list(run.run.tool_calls) for run in other.runs]
        assert [run.verdict for run in one.runs] == [run.verdict for run in other.runs]
    assert counted(here) == counted(there)
    assert sum(len(graded.runs) for graded in here) > 50


async def test_what_may_not_be_shown_does_not_come_back_shown() -> None:
    store = CriteriaStore(None, environment={})
    results = ResultsConfig.model_validate({"content": "none", "emit": ["span_event"]})
    traces = recorded_traces()[:20]
    here = graded_here(traces, store.current, results)

    async with pool_of(1, lambda: store.texts, Metrics(), results) as pool:
        there = [(await pool.grade(trace, supply_nothing)).trace for trace in traces]

    assert [list(map(format_run, graded.runs)) for graded in here] == [
        [run.line for run in graded.runs] for graded in there
    ]
    assert [list(map(_names, graded.hidden_runs)) for graded in here] == [
        list(map(_names, graded.hidden_runs)) for graded in there
    ]
    assert all(not run.line for graded in there for run in graded.hidden_runs)


def _names(graded: GradedRun) -> tuple[str, list[tuple[str, str]]]:
    return graded.run.agent.name, [(result.name, result.outcome.value) for result in graded.results]


async def test_processes_that_are_killed_lose_nothing_and_the_trace_they_end_over_is_given_up() -> None:
    store = CriteriaStore(None, environment={})
    metrics = Metrics()
    poison = trace(1, 40_000)
    others = [trace(number, 3) for number in range(2, 400)]
    async with pool_of(1, lambda: store.texts, metrics) as pool:
        asked = [asyncio.create_task(pool.grade(other, supply_nothing)) for other in others[:200]]
        poisoned = asyncio.create_task(pool.grade(poison, supply_nothing))
        asked += [asyncio.create_task(pool.grade(other, supply_nothing)) for other in others[200:]]
        killed: set[int] = set()
        while not poisoned.done():
            # One that was killed is still named until its end is seen. Others are graded before the poison.
            fresh = pool.pids - killed
            if fresh and sum(task.done() for task in asked) >= 200:
                await SystemClock().sleep(0.3)
                for pid in fresh & pool.pids if not poisoned.done() else ():
                    os.kill(pid, signal.SIGKILL)
                    killed.add(pid)
            await SystemClock().sleep(0.02)
        found = await asyncio.gather(*asked)

    with pytest.raises(Quarantined):
        poisoned.result()
    expected = graded_here(others, store.current, ALL_FORMS)
    assert [one.spans for one in expected] == [graded.trace.spans for graded in found]
    assert 3 == len(killed) == metrics.worker_failures.value("grading_died")


async def test_a_reload_is_taken_up_between_traces(tmp_path: Path) -> None:
    file = tmp_path / "criteria.yaml"
    file.write_text(CRITERIA)
    stores = [CriteriaStore(None, environment={}), CriteriaStore([file], environment={"TOOL": "tool_1"})]
    in_force = stores[0]
    metrics = Metrics()
    async with pool_of(1, lambda: in_force.texts, metrics) as pool:
        hashes = []
        for store in (stores[0], stores[1], stores[0]):
            in_force = store
            graded = (await pool.grade(trace(5, 3), supply_nothing)).trace
            hashes.append({result.criteria_hash for run in graded.runs for result in run.results})
            (expected,) = graded_here([trace(5, 3)], store.current, ALL_FORMS)
            assert expected.spans == graded.spans

    assert hashes[0] == hashes[2]
    assert hashes[0].isdisjoint(hashes[1])
