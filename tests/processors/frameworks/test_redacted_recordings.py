"""Requests from which a Collector or the sender took values: held against what was done, nothing fails."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from processors.evaluators.output_match import Contains, ExactMatch
from processors.evaluators.tool_args import ToolArgsSchema
from processors.evaluators.tool_calls import ToolCallArgs, ToolCallCount, ToolCallOutput
from processors.evaluators.tool_policy import ToolKnown
from processors.evaluators.trajectory import TrajectoryExact
from processors.model import Evaluator, NotEvaluated, RunFacts, Score
from tests.processors.frameworks.test_recordings import RECORDINGS, runs_in

NAMES = [
    "koog_without_content", "redacted_attributes_pydantic_ai", "redacted_numbers_langchain",
    "redacted_tool_list_koog", "redacted_values_pydantic_ai",
]  # fmt: skip


def made(kind: type[Evaluator], criteria: dict[str, Any] | None = None) -> Evaluator:
    return kind(
        kind.Config.model_validate({}),
        None if kind.Criteria is None or criteria is None else kind.Criteria.model_validate(criteria),
    )


def truths(did: dict[str, Any]) -> Iterator[Evaluator]:
    calls = did["calls"]
    expected = [{"name": call["name"], "args": call["arguments"]} for call in calls]
    counts = {call["name"]: ["=", 1] for call in calls}
    outputs = [{"name": call["name"], "output": call["result"]} for call in calls]
    yield made(ToolCallCount, {"tool_calls_count": counts})
    yield made(ToolCallArgs, {"tool_calls": expected})
    yield made(TrajectoryExact, {"tool_calls": expected})
    yield made(ToolCallOutput, {"tool_outputs": outputs})
    yield made(ExactMatch, {"expected_output": did["output"]})
    yield made(Contains, {"search_text": "Tokyo"})
    yield made(Contains, {"search_text": "65%"})
    yield made(ToolKnown)
    yield made(ToolArgsSchema)


@pytest.mark.parametrize("name", NAMES)
def test_what_was_done_never_fails(name: str) -> None:
    (run,) = runs_in(name)
    told_by = "redacted_tool_list_koog" if name == "koog_without_content" else name  # the same program
    did = json.loads((RECORDINGS / told_by / "recording.json").read_text("utf-8"))["did"]

    graded = {evaluator.id: evaluator.evaluate(run, RunFacts()) for evaluator in truths(did)}

    assert [] == [key for key, one in graded.items() if isinstance(one, Score) and one.value < 1.0]
    assert isinstance(graded["tool-call-count"], Score)


@pytest.mark.parametrize("name", ["redacted_numbers_langchain", "redacted_values_pydantic_ai"])
def test_what_is_known_beside_a_mask_is_graded(name: str) -> None:
    (run,) = runs_in(name)
    call = run.tool_calls[0]
    wrong = {"name": call.name, "output": {"temperature": {"$any": True}, "unit": "kelvin"}}
    right = {"name": call.name, "output": {"temperature": {"$any": True}, "unit": "celsius"}}

    scores = [
        made(ToolCallOutput, {"tool_outputs": [output]}).evaluate(run, RunFacts())
        for output in (wrong, right)
    ]

    assert [0.0, 1.0] == [score.value for score in scores if isinstance(score, Score)]


@pytest.mark.parametrize("name", ["koog_without_content", "redacted_tool_list_koog"])
def test_a_hidden_list_of_tools_names_no_tool(name: str) -> None:
    (run,) = runs_in(name)

    assert not run.available_tools
    assert isinstance(made(ToolKnown).evaluate(run, RunFacts()), NotEvaluated)
