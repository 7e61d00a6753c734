from dataclasses import replace
from typing import Literal

import pytest

from processors.criteria.agent_criteria import Evaluation, Mute
from processors.criteria.selector import Selector, is_sampled
from processors.evaluate import evaluate_run, finish, plan
from processors.evaluators.output_match import Contains, ContainsCriteria, TextConfig
from processors.evaluators.time_and_cost import NoSettings, RunError
from processors.evaluators.tool_calls import ToolCallCount, ToolCallCountConfig, ToolCallCountCriteria
from processors.model import (
    AgentRun,
    Evaluator,
    NotEvaluated,
    NotEvaluatedReason,
    Outcome,
    RunFacts,
    Score,
    Severity,
    SkipReason,
    Stage,
    ToolCall,
    ValueState,
)
from tests.strategies import run_with


class _Answering(Evaluator):
    id = "answering"
    version = "7"

    def __init__(
        self, answer: Score | NotEvaluated | Exception, attainable: tuple[float, float] = (0.0, 1.0)
    ) -> None:
        self._answer = answer
        self._attainable = attainable

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    def attainable(self, run: AgentRun) -> tuple[float, float]:
        return self._attainable


_RUN = run_with([ToolCall(name="search")])


@pytest.mark.parametrize(
    ("value", "threshold", "outcome"),
    [(0.9, 0.9, Outcome.PASS), (0.89, 0.9, Outcome.FAIL), (0.0, 0.0, Outcome.PASS), (1, 1.0, Outcome.PASS)],
)
def test_a_score_passes_from_the_threshold_on(value: float, threshold: float, outcome: Outcome) -> None:
    evaluation = Evaluation(name="n", evaluator=_Answering(Score(value)), pass_threshold=threshold)

    (result,) = evaluate_run(_RUN, [evaluation])

    assert outcome is result.outcome
    assert value == result.score
    assert isinstance(result.score, float)


def test_a_result_says_which_evaluation_it_is_of() -> None:
    evaluation = Evaluation(
        name="n",
        evaluator=_Answering(Score(1.0, {"a": 1}, ("a: 1",))),
        pass_threshold=0.5,
        severity=Severity.PAGE,
        criteria_hash="abc",
    )

    (result,) = evaluate_run(_RUN, [evaluation])

    assert ("n", "answering", "7") == (result.name, result.evaluator, result.evaluator_version)
    assert (0.5, Severity.PAGE, "abc") == (result.pass_threshold, result.severity, result.criteria_hash)
    assert ({"a": 1}, "a: 1") == (result.details, result.explanation)


def test_a_broken_evaluator_ends_in_error_without_content_and_the_others_go_on() -> None:
    broken = Evaluation(name="broken", evaluator=_Answering(KeyError("a card number")))
    sound = Evaluation(name="sound", evaluator=_Answering(Score(1.0)))

    first, second = evaluate_run(_RUN, [broken, sound])

    assert Outcome.ERROR is first.outcome
    assert first.score is None
    assert "KeyError" == first.error_type
    assert "evaluator answering raised KeyError" == first.explanation
    assert Outcome.PASS is second.outcome


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), float("inf")])
def test_a_score_that_is_none_ends_in_error(value: float) -> None:
    (result,) = evaluate_run(_RUN, [Evaluation(name="n", evaluator=_Answering(Score(value)))])

    assert (Outcome.ERROR, None, "ScoreOutOfRangeError") == (result.outcome, result.score, result.error_type)


def test_not_evaluated_keeps_its_reason_and_has_no_score() -> None:
    answer = NotEvaluated(NotEvaluatedReason.CONTENT_NOT_CAPTURED, "arguments of pay: absent")

    (result,) = evaluate_run(_RUN, [Evaluation(name="n", evaluator=_Answering(answer))])

    assert (Outcome.NOT_EVALUATED, None) == (result.outcome, result.score)
    assert (NotEvaluatedReason.CONTENT_NOT_CAPTURED, "arguments of pay: absent") == (
        result.reason,
        result.explanation,
    )


@pytest.mark.parametrize(
    ("attainable", "outcome"),
    [
        ((0.0, 1.0), Outcome.NOT_EVALUATED),
        ((0.0, 0.8), Outcome.NOT_EVALUATED),
        ((0.0, 0.79), Outcome.FAIL),
        ((0.8, 1.0), Outcome.PASS),
    ],
)
def test_an_incomplete_run_is_graded_only_where_no_further_span_could_change_the_outcome(
    attainable: tuple[float, float], outcome: Outcome
) -> None:
    value = attainable[0] if outcome is Outcome.PASS else attainable[1]
    run = run_with([], complete=False)
    evaluation = Evaluation(name="n", evaluator=_Answering(Score(value), attainable), pass_threshold=0.8)

    (result,) = evaluate_run(run, [evaluation])

    assert outcome is result.outcome


@pytest.mark.parametrize("reason", ["incomplete_trace", "over_limit"])
def test_an_undecided_run_carries_the_reason_why_it_is_incomplete(
    reason: Literal["incomplete_trace", "over_limit"],
) -> None:
    run = run_with([], complete=False, incomplete_reason=reason)

    (result,) = evaluate_run(run, [Evaluation(name="n", evaluator=_Answering(Score(1.0)))])

    assert NotEvaluatedReason(reason) is result.reason


@pytest.mark.parametrize(
    ("reason", "evaluated"),
    [("content_not_captured", ["error", "answer"]), ("incomplete_trace", [])],
)
def test_where_calls_alone_are_not_known_what_looks_at_none_is_evaluated(
    reason: Literal["content_not_captured", "incomplete_trace"], evaluated: list[str]
) -> None:
    run = run_with([], complete=False, incomplete_reason=reason, output="a", output_state=ValueState.PRESENT)
    count = ToolCallCountCriteria(tool_calls_count={"search": ("=", 0)})
    of_calls = TextConfig.model_validate(
        {"extractor": "tool_arguments", "extractor_config": {"tool_name": "search"}}
    )
    evaluations = [
        Evaluation(name="calls", evaluator=ToolCallCount(ToolCallCountConfig(), count)),
        Evaluation(name="arguments", evaluator=Contains(of_calls, ContainsCriteria(ground_truth="a"))),
        Evaluation(name="error", evaluator=RunError(NoSettings())),
        Evaluation(name="answer", evaluator=Contains(TextConfig(), ContainsCriteria(search_text="a"))),
    ]

    results = evaluate_run(run, evaluations)

    assert evaluated == [result.name for result in results if result.outcome is not Outcome.NOT_EVALUATED]


def test_a_forbidden_call_fails_an_incomplete_run() -> None:
    criteria = ToolCallCountCriteria(tool_calls_count={"search": ("=", 0)})
    evaluation = Evaluation(name="n", evaluator=ToolCallCount(ToolCallCountConfig(), criteria))

    (called,) = evaluate_run(run_with([ToolCall(name="search")], complete=False), [evaluation])
    (not_called,) = evaluate_run(run_with([], complete=False), [evaluation])

    assert Outcome.FAIL is called.outcome
    assert Outcome.NOT_EVALUATED is not_called.outcome


def test_a_run_that_is_not_selected_gives_no_result_but_a_reason() -> None:
    skipped: list[SkipReason] = []
    evaluations = [
        Evaluation(name="a", evaluator=_Answering(Score(1.0)), when=Selector(session="other")),
        Evaluation(name="b", evaluator=_Answering(Score(1.0))),
        Evaluation(name="c", evaluator=_Answering(Score(1.0)), when=Selector(session="s")),
    ]

    results = evaluate_run(run_with([], session="s"), evaluations, on_skip=skipped.append)

    assert ["b", "c"] == [result.name for result in results]
    assert [SkipReason.WHEN] == skipped
    assert ["b"] == [result.name for result in evaluate_run(_RUN, evaluations)]


def test_a_sampled_evaluation_grades_the_traces_that_are_drawn() -> None:
    evaluation = Evaluation(
        name="n", evaluator=_Answering(Score(1.0)), sample=0.3, when=Selector(session="other")
    )
    skipped: list[SkipReason] = []
    trace_ids = [number.to_bytes(16, "big") for number in range(100)]

    for trace_id in trace_ids:
        evaluate_run(replace(_RUN, trace_id=trace_id), [evaluation], on_skip=skipped.append)

    drawn = [is_sampled(trace_id, 0.3) for trace_id in trace_ids]
    assert [SkipReason.WHEN if is_drawn else SkipReason.SAMPLE for is_drawn in drawn] == skipped


def test_a_selector_that_needs_an_unknown_input_is_not_evaluated() -> None:
    evaluation = Evaluation(name="n", evaluator=_Answering(Score(1.0)), when=Selector(input={"a": 1}))
    skipped: list[SkipReason] = []

    (result,) = evaluate_run(_RUN, [evaluation], on_skip=skipped.append)

    assert NotEvaluatedReason.CONTENT_NOT_CAPTURED is result.reason
    assert [] == skipped


@pytest.mark.parametrize("answer", [Score(0.0), NotEvaluated(NotEvaluatedReason.NOT_APPLICABLE), KeyError()])
def test_a_result_in_shadow_says_so_whatever_its_outcome(answer: Score | NotEvaluated | Exception) -> None:
    (result,) = evaluate_run(_RUN, [Evaluation(name="n", evaluator=_Answering(answer), stage=Stage.SHADOW)])

    assert Stage.SHADOW is result.stage
    assert not result.counts


def test_a_mute_is_in_force_until_it_ends() -> None:
    mute = Mute(until_unix_nano=100, reason="known", by="me")
    evaluation = Evaluation(name="n", evaluator=_Answering(Score(0.0)), mute=mute)

    (muted,) = evaluate_run(_RUN, [evaluation], unix_nano=99)
    (live,) = evaluate_run(_RUN, [evaluation], unix_nano=100)

    assert (Outcome.FAIL, 100, False) == (muted.outcome, muted.muted_until_unix_nano, muted.counts)
    assert (Outcome.FAIL, 0, True) == (live.outcome, live.muted_until_unix_nano, live.counts)


def test_a_plan_asks_no_evaluator_and_knows_what_needs_none() -> None:
    class Untouchable(_Answering):
        def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
            raise AssertionError("asked")

    evaluation = Evaluation(name="n", evaluator=Untouchable(Score(1.0)))

    [(planned, answer)] = plan(_RUN, [evaluation])
    [(_, undecided)] = plan(run_with([], complete=False), [evaluation])

    assert planned is evaluation
    assert answer is None
    assert isinstance(undecided, NotEvaluated)
    assert Outcome.PASS is finish(evaluation, Score(1.0)).outcome
    assert "TimeoutError" == finish(evaluation, TimeoutError()).error_type


def test_what_evaluators_of_a_run_share_is_worked_out_once() -> None:
    worked: list[str] = []

    class Sharing(_Answering):
        def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
            facts.once("key", lambda: worked.append("x"))
            return Score(1.0)

    evaluations = [Evaluation(name=name, evaluator=Sharing(Score(1.0))) for name in "ab"]

    evaluate_run(_RUN, evaluations)
    evaluate_run(_RUN, evaluations)

    assert ["x", "x"] == worked
