"""What runs may take: time, tokens, money and models; what is not told is never taken for little."""

from typing import Any

import pytest

from processors.criteria import Evaluation
from processors.evaluate import evaluate_run
from processors.evaluators.time_and_cost import (
    CostBudget,
    ModelAllowed,
    RunDuration,
    TokenBudget,
    ToolDuration,
)
from processors.model import AgentRun, EvaluationResult, Evaluator, ModelCall, Outcome, TokenUsage, ToolCall
from tests.strategies import of_model_calls, run_with

SECOND = 10**9


def grade(kind: type[Evaluator], run: AgentRun, **criteria: Any) -> EvaluationResult:
    assert kind.Criteria is not None
    evaluator = kind(kind.Config(), kind.Criteria.model_validate(criteria))
    (result,) = evaluate_run(run, [Evaluation(name="check", evaluator=evaluator)])
    return result


def lasting(seconds: float, **fields: Any) -> AgentRun:
    return run_with([], start_unix_nano=SECOND, end_unix_nano=SECOND + round(seconds * SECOND), **fields)


def call(name: str, seconds: float | None, **fields: Any) -> ToolCall:
    times = (0, 0) if seconds is None else (SECOND, SECOND + round(seconds * SECOND))
    return ToolCall(name=name, start_unix_nano=times[0], end_unix_nano=times[1], **fields)


def asked(*calls: ModelCall, **fields: Any) -> AgentRun:
    return run_with([], **of_model_calls(calls), **fields)


def request(given: int, made: int, model: str | None = "m") -> ModelCall:
    return ModelCall(model=model, usage=TokenUsage(given, made))


UNTOLD = ModelCall(model="m")


@pytest.mark.parametrize(
    ("run", "criteria", "outcome", "said"),
    [
        (lasting(10), {"maxSeconds": 10}, "pass", "duration: 10 s, at most 10 s"),
        (lasting(10.5), {"max_seconds": 10}, "fail", "duration: 10.5 s, at most 10 s"),
        (run_with([]), {"max_seconds": 10}, "not_evaluated", "does not contain its duration"),
        (
            lasting(1, time_to_first_output_seconds=0.5),
            {"max_time_to_first_output_seconds": 0.2},
            "fail",
            "time to first output: 0.5 s, at most 0.2 s",
        ),
        (
            lasting(1),
            {"max_seconds": 5, "max_time_to_first_output_seconds": 1},
            "not_evaluated",
            "does not contain its time to first output",
        ),
        (lasting(9), {"max_seconds": 5, "max_time_to_first_output_seconds": 1}, "fail", "duration: 9 s"),
    ],
)
def test_run_duration(run: AgentRun, criteria: dict[str, Any], outcome: str, said: str) -> None:
    result = grade(RunDuration, run, **criteria)

    assert outcome == result.outcome
    assert said in result.explanation


def test_a_run_that_was_cut_short_fails_once_it_took_too_long_and_never_passes() -> None:
    assert Outcome.FAIL is grade(RunDuration, lasting(9, complete=False), max_seconds=5).outcome
    assert Outcome.NOT_EVALUATED is grade(RunDuration, lasting(1, complete=False), max_seconds=5).outcome


@pytest.mark.parametrize(
    ("calls", "criteria", "score"),
    [
        ([call("search", 1), call("book", 7)], {"max_seconds": 5}, 0.5),
        ([call("search", 1), call("book", 7)], {"max_seconds": 5, "tools": {"book": 10}}, 1.0),
        ([call("search_web", 3), call("book", 7)], {"tools": {"search_*": 2}}, 0.0),
        ([call("book", None, executed=False)], {"max_seconds": 5}, 1.0),
        ([], {"max_seconds": 5}, 1.0),
    ],
)
def test_tool_duration(calls: list[ToolCall], criteria: dict[str, Any], score: float) -> None:
    assert score == grade(ToolDuration, run_with(calls), **criteria).score


def test_a_slow_call_is_not_hidden_by_one_whose_times_are_unknown() -> None:
    result = grade(ToolDuration, run_with([call("search", 5), call("book", None)]), max_seconds=1)

    assert (Outcome.FAIL, 0.5) == (result.outcome, result.score)
    assert result.explanation.endswith("not known: telemetry does not contain how long book took")


def test_a_call_whose_times_are_not_told_gives_no_verdict_if_it_has_a_limit() -> None:
    run = run_with([call("search", 1), call("book", None)])

    result = grade(ToolDuration, run, max_seconds=5)

    assert "content_not_captured" == result.reason
    assert "how long book took" in result.explanation
    assert 1.0 == grade(ToolDuration, run, tools={"search": 5}).score


@pytest.mark.parametrize(
    ("run", "criteria", "outcome", "said"),
    [
        (asked(request(600, 50), request(400, 50)), {"max_total_tokens": 1100}, "pass", "1100 tokens"),
        (asked(request(600, 50)), {"max_total_tokens": 600}, "fail", "650 tokens, at most 600"),
        (asked(request(600, 50)), {"max_input_tokens": 599}, "fail", "600 input tokens, at most 599"),
        (asked(request(600, 50)), {"max_output_tokens": 49}, "fail", "50 output tokens, at most 49"),
        (asked(request(600, 50), UNTOLD), {"max_total_tokens": 900}, "not_evaluated", "does not contain"),
        (asked(request(600, 50), UNTOLD), {"max_total_tokens": 600}, "fail", "650 tokens, at most 600"),
        (run_with([]), {"max_total_tokens": 600}, "not_evaluated", "does not contain"),
        (run_with([], usage=TokenUsage(1, 2)), {"max_total_tokens": 3}, "pass", "3 tokens, at most 3"),
        (asked(request(600, 50), complete=False), {"max_total_tokens": 600}, "fail", "650 tokens"),
        (
            asked(request(600, 50), complete=False),
            {"max_total_tokens": 900},
            "not_evaluated",
            "may be missing",
        ),
    ],
)
def test_token_budget(run: AgentRun, criteria: dict[str, Any], outcome: str, said: str) -> None:
    result = grade(TokenBudget, run, **criteria)

    assert outcome == result.outcome
    assert said in result.explanation


@pytest.mark.parametrize(
    ("run", "outcome", "reason", "said"),
    [
        (run_with([], cost=0.05), "pass", None, "cost: 0.05, at most 0.05"),
        (run_with([], cost=0.051), "fail", None, "cost: 0.051, at most 0.05"),
        (run_with([]), "not_evaluated", "content_not_captured", "does not contain the tokens"),
        (
            run_with([], usage=TokenUsage(1, 2), models=("m",)),
            "not_evaluated",
            "not_applicable",
            "no price is configured for m",
        ),
        (asked(request(1, 0), complete=False), "fail", None, "cost: 0.1, at most 0.05"),
        (run_with([], cost=1.0, complete=False), "not_evaluated", "incomplete_trace", "may be missing"),
    ],
)
def test_cost_budget(run: AgentRun, outcome: str, reason: str | None, said: str) -> None:
    result = grade(CostBudget, run, max_cost=0.05)

    assert (outcome, reason) == (result.outcome, result.reason)
    assert said in result.explanation


@pytest.mark.parametrize(
    ("models", "criteria", "score"),
    [
        (["small-1", "small-2"], {"allow": ["small-*"]}, 1.0),
        (["small-1", "large"], {"allow": ["small-*"]}, 0.5),
        (["small-1", "small-preview"], {"allow": ["small-*"], "deny": ["*-preview"]}, 0.5),
        (["Small-1"], {"allow": ["small-*"]}, 0.0),
        (["large", None], {"deny": ["large"]}, 0.5),
        (["small-1", None], {"allow": ["small-*"]}, None),
        ([], {"allow": ["small-*"]}, None),
    ],
)
def test_model_allowed(models: list[str | None], criteria: dict[str, Any], score: float | None) -> None:
    run = asked(*[request(1, 1, model) for model in models])

    result = grade(ModelAllowed, run, **criteria)

    assert score == result.score
    if score is None:
        assert "content_not_captured" == result.reason


@pytest.mark.parametrize("kind", [RunDuration, ToolDuration, TokenBudget, ModelAllowed])
def test_criteria_that_limit_nothing_are_refused(kind: type[Evaluator]) -> None:
    assert kind.Criteria is not None
    with pytest.raises(ValueError, match="expected"):
        kind.Criteria.model_validate({})
