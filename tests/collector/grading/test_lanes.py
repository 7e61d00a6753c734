"""One trace is graded alike in every lane: in the loop, in a thread, and in processes."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.clock import SystemClock
from collector.conversations import Conversations
from collector.criteria import CriteriaStore, EvaluationConfig
from collector.grading import Form, Grader, GradingPool, GradingStage, ThreadLane, WorkerSettings
from collector.grading.grader import Graded
from collector.grading.lanes import Supply
from collector.journal import StoredVerdicts
from collector.results_config import ResultsConfig
from collector.task_supervisor import TaskSupervisor
from collector.telemetry import Metrics
from collector.trace import FinishedTrace, GradedTrace
from processors.annotation import format_run, run_from_json
from processors.model import AgentRun, FinishReason, decode_json
from tests.support.agent_spans import TRACE_ID, agent, envelope, span, span_id, tool

NOW = 1_900_000_000_000_000_000
CRITERIA = """
agents:
  shop:
    evaluations:
      - evaluator: tool-precedence
        scope: conversation
        criteria: {before: [[verify, refund]]}
      - evaluator: tool-call-count
        scope: conversation
        criteria: {tool_calls_count: {refund: ["<=", 1]}}
      - {evaluator: tool-permission, criteria: {deny: [delete]}}
  desk:
    evaluations:
      - evaluator: tool-constraints
        name: reviewed
        scope: trace
        criteria: {constraints: [{precedence: [{tool: review, agent: reviewer}, publish]}]}
  clerk:
    evaluations: [{evaluator: tool-permission, criteria: {deny: [delete]}}]
"""
TURNS = [("clerk", "verify"), ("shop", "refund"), ("shop", "look"), ("shop", "refund"), ("clerk", "delete")]
"""The first is of an agent without criteria over conversations, and yet belongs to the conversation."""
FORM = Form(lines=True, details=True, resource_attributes=())


class _StandingClock(SystemClock):
    def unix_nano(self) -> int:
        return NOW


class _WatchedPool(GradingPool):
    """Counts the traces that it was given and how often grading one needed something first."""

    graded = supplied = 0

    async def grade(self, trace: FinishedTrace, supply: Supply) -> Graded:
        async def counted(needed):  # type: ignore[no-untyped-def]
            self.supplied += 1
            return await supply(needed)

        self.graded += 1
        return await super().grade(trace, counted)


def _turn(number: int, name: str, called: str) -> FinishedTrace:
    spans = [
        tool(2, 1, called, at=(number * 10 + 1, number * 10 + 2)),
        agent(1, None, name, (number * 10, number * 10 + 5), **{"gen_ai.conversation.id": "one"}),
    ]
    trace_id = number.to_bytes(16)
    moved = [(span[0], span[1].replace(TRACE_ID, trace_id), span[2]) for span in spans]
    return FinishedTrace(trace_id=trace_id, spans=moved, reason=FinishReason.ROOT)


def _of_desk(number: int, names: Sequence[str], reason: FinishReason = FinishReason.ROOT) -> FinishedTrace:
    """A trace of the service `desk` in which agents, one after the other, do what they are named for."""
    of = envelope("desk")
    spans = [span(1, None, "POST /articles", at=(0, 100), of=of)]
    for place, name in enumerate(names, 1):
        own, start = 10 * place, 10 * place
        spans += [
            (key, payload, of)
            for key, payload, _ in (
                agent(own, 1, name, (start, start + 5)),
                tool(
                    own + 1,
                    own,
                    {"reviewer": "review", "publisher": "publish"}[name],
                    at=(start + 1, start + 2),
                ),
            )
        ]
    trace_id = number.to_bytes(16)
    moved = [(each[0], each[1].replace(TRACE_ID, trace_id), each[2]) for each in spans]
    return FinishedTrace(trace_id=trace_id, spans=moved, reason=reason)


def _read_run(line: bytes) -> AgentRun:
    return run_from_json(decode_json(line), "test")


@asynccontextmanager
async def _stage(lane: str, folder: Path) -> AsyncIterator[GradingStage]:
    file = folder / "criteria.yaml"
    file.write_text(CRITERIA)
    store, clock, metrics = CriteriaStore([file], environment={}), _StandingClock(), Metrics()
    grader = Grader(criteria=lambda: store.current, clock=clock, instance="here")
    settings = WorkerSettings(
        config=EvaluationConfig(),
        instance="here",
        missing_parents="grade",
        uses_workers=False,
        results=ResultsConfig(),
        writes_scores=False,
        form=FORM,
    )
    pool = _WatchedPool(
        settings,
        processes=1,
        criteria=lambda: store.texts,
        read_run=_read_run,
        metrics=metrics,
        clock=clock,
    )
    stage = GradingStage(
        grader=grader,
        metrics=metrics,
        clock=clock,
        conversations=Conversations(),
        pool=pool if lane == "processes" else None,
        thread=ThreadLane(grader.for_thread(), None, FORM, _read_run),
    )
    tasks = TaskSupervisor(on_failure=lambda: None)
    stage.start(tasks)
    try:
        yield stage
    finally:
        await stage.shutdown()
        await tasks.cancel()
        assert not tasks.failures


def _shown(graded: Sequence[GradedTrace]) -> list[tuple[object, ...]]:
    """All that leaves: bytes of spans, lines of runs, results."""
    return [
        ([span[1] for span in trace.spans], [(format_run(run), list(run.results)) for run in trace.runs])
        for trace in graded
    ]


@pytest.mark.parametrize("lane", ["thread", "processes"])
async def test_conversations_are_seen_in_every_lane_as_in_the_loop(
    lane: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = [_turn(number, *turn) for number, turn in enumerate(TURNS, 1)]
    async with _stage("loop", tmp_path) as stage:
        expected = [await stage.grade(turn) for turn in turns]
    if lane == "thread":
        monkeypatch.setattr("collector.grading.stage.is_large", lambda trace: True)

    async with _stage(lane, tmp_path) as stage:
        found = [await stage.grade(turn) for turn in turns]

    outcomes = [[result.outcome.value for run in trace.runs for result in run.results] for trace in expected]
    assert [["pass"], ["pass"] * 3, ["pass"] * 3, ["pass", "fail", "pass"], ["fail"]] == outcomes
    assert [2, 3, 4] == [len(trace.runs[0].results[0].conversation_runs) for trace in expected[1:4]]
    assert _shown(expected) == _shown(found)
    assert all(run.line for trace in found for run in trace.runs)  # graded elsewhere than in the loop
    if isinstance(stage.pool, _WatchedPool):
        # Only what a conversation decides takes a second pass.
        assert (len(TURNS), 3) == (stage.pool.graded, stage.pool.supplied)


@pytest.mark.parametrize("lane", ["thread", "processes"])
async def test_a_trace_is_graded_as_a_whole_in_every_lane_as_in_the_loop(
    lane: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on = replace(_of_desk(4, ["publisher"]), continues=True)
    traces = [
        _of_desk(1, ["reviewer", "publisher"]),
        _of_desk(2, ["publisher", "reviewer"]),
        _of_desk(3, ["publisher"], FinishReason.MAX_AGE),
        goes_on,
    ]
    async with _stage("loop", tmp_path) as stage:
        expected = [await stage.grade(trace) for trace in traces]
        again = [stage.regrade(trace) for trace in traces]
    if lane == "thread":
        monkeypatch.setattr("collector.grading.stage.is_large", lambda trace: True)

    async with _stage(lane, tmp_path) as stage:
        found = [await stage.grade(trace) for trace in traces]

    standing = [trace.runs[-1].run for trace in expected]
    results = [trace.runs[-1].results[0] for trace in expected]
    assert ["pass", "fail", "not_evaluated", "not_evaluated"] == [result.outcome for result in results]
    assert ["incomplete_trace", "interrupted"] == [result.reason for result in results[2:]]
    assert {("desk", span_id(1))} == {(run.agent.name, run.carrier_span_id) for run in standing}
    assert _shown(expected) == _shown(found)
    assert _shown(expected) == _shown([trace for trace in again if trace is not None])
    assert [b"tracegrade.scope" in trace.spans[0][1] for trace in expected] == [True] * 4
    # The root's span is of no agent: its event names whose verdict it is.
    event = Span.FromString(expected[0].spans[0][1]).events[0]
    assert "desk" in [each.value.string_value for each in event.attributes if each.key == "gen_ai.agent.name"]


async def test_verdicts_over_a_trace_are_restored_as_they_were(tmp_path: Path) -> None:
    trace = _of_desk(1, ["publisher", "reviewer"])
    async with _stage("loop", tmp_path) as stage:
        graded = await stage.grade(trace)
        stored = StoredVerdicts(
            reason=trace.reason,
            results=[list(run.results) for run in graded.runs],
            unix_nano=NOW,
            instance="here",
        )
        restored = await stage.restore(trace, stored)

    assert _shown([graded]) == _shown([restored])
