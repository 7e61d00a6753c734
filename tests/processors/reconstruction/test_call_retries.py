"""Calls that try again what failed before are marked, whatever else happens between."""

from collections.abc import Sequence

import pytest

from processors.evaluators.tool_calls import ToolCallCount, ToolCallCountConfig, ToolCallCountCriteria
from processors.model.agent_run import AgentRun, ToolCall, ToolError
from processors.model.evaluation_result import Score
from processors.model.evaluator import RunFacts
from processors.reconstruction.calls import mark_retries
from tests.support.agent_spans import agent, runs_of, tool

_FAILURE = ToolError(type="Timeout", message="")


def _calls(letters: str, group: int | None = None) -> list[ToolCall]:
    """One call a letter, of the tool of that name; capital letters failed."""
    return [
        ToolCall(name=letter.lower(), error=_FAILURE if letter.isupper() else None, parallel_group=group)
        for letter in letters
    ]


def _attempts(calls: Sequence[ToolCall]) -> list[tuple[int, int | None]]:
    return [(call.attempt, call.retry_of) for call in mark_retries(calls)]


@pytest.mark.parametrize(
    ("letters", "expected"),
    [
        ("aa", [(1, None), (1, None)]),
        ("Aa", [(1, None), (2, 0)]),
        ("AbAa", [(1, None), (1, None), (2, 0), (3, 2)]),
        ("Aaa", [(1, None), (2, 0), (1, None)]),
        ("AB", [(1, None), (1, None)]),
    ],
)
def test_a_call_after_a_failed_one_of_its_tool_is_a_retry(
    letters: str, expected: list[tuple[int, int | None]]
) -> None:
    assert expected == _attempts(_calls(letters))


def test_calls_side_by_side_are_no_retries_of_each_other() -> None:
    assert [(1, None), (1, None)] == _attempts(_calls("Aa", group=0))


def test_reconstruction_marks_retries_in_order_of_execution() -> None:
    failed = tool(3, 1, "search", (10, 20), **{"error.type": "Timeout"})
    (run,) = runs_of([tool(4, 1, "search", (30, 40)), failed, agent(1, None, "helper")])

    assert [(1, None), (2, 0)] == [(call.attempt, call.retry_of) for call in run.tool_calls]


@pytest.mark.parametrize(("include_failed", "expected"), [(True, 0.0), (False, 1.0)])
def test_counts_leave_failed_attempts_out_if_told_to(include_failed: bool, expected: float) -> None:
    (run,) = runs_of(
        [
            agent(1, None, "helper"),
            tool(3, 1, "search", (10, 20), **{"error.type": "Timeout"}),
            tool(4, 1, "search", (30, 40)),
        ]
    )
    assert isinstance(run, AgentRun)
    criteria = ToolCallCountCriteria(tool_calls_count={"search": ("=", 1)})

    answer = ToolCallCount(ToolCallCountConfig(include_failed=include_failed), criteria).evaluate(
        run, RunFacts()
    )

    assert isinstance(answer, Score)
    assert expected == answer.value
