"""Grading: one agent run against the evaluations that apply to it.

This is the one place where a broken evaluator is caught: its evaluation ends in `error`, all others go on.
"""

from collections.abc import Sequence

from processors.agent_run import AgentRun
from processors.criteria import Evaluation
from processors.evaluation_result import (
    EvaluationResult,
    NotEvaluated,
    NotEvaluatedReason,
    Outcome,
    Score,
)
from processors.explanation import explanation, explanation_text


class ScoreOutOfRangeError(ValueError):
    """An evaluator gave a score that is not a number in [0, 1]."""


def evaluate_run(run: AgentRun, evaluations: Sequence[Evaluation]) -> list[EvaluationResult]:
    """Grade `run`: one result for each evaluation, in their order.

    The outcome is `pass` when the score reaches the evaluation's threshold and `fail` when it does not. A
    run that is not complete passes or fails only where no further span could change that; otherwise it is
    not evaluated, for the run's `incomplete_reason`. An evaluator that raises, or gives no score in
    [0, 1], ends in `error`; what it raised is named by class only, since messages can hold content.
    """
    return [_evaluate(run, evaluation) for evaluation in evaluations]


def _evaluate(run: AgentRun, evaluation: Evaluation) -> EvaluationResult:
    evaluator = evaluation.evaluator
    try:
        if not run.complete and (open_text := _undecided(run, evaluation)) is not None:
            reason = NotEvaluatedReason(run.incomplete_reason)
            return _not_evaluated(evaluation, NotEvaluated(reason, open_text))
        answer = evaluator.evaluate(run)
        if isinstance(answer, NotEvaluated):
            return _not_evaluated(evaluation, answer)
        return _scored(evaluation, answer)
    except Exception as error:
        error_type = type(error).__name__
        return EvaluationResult(
            name=evaluation.name,
            evaluator=evaluator.id,
            evaluator_version=evaluator.version,
            outcome=Outcome.ERROR,
            explanation=explanation_text((f"evaluator {evaluator.id} raised {error_type}",)),
            error_type=error_type,
            pass_threshold=evaluation.pass_threshold,
            severity=evaluation.severity,
            criteria_hash=evaluation.criteria_hash,
        )


def _undecided(run: AgentRun, evaluation: Evaluation) -> str | None:
    """Why further spans could still change the outcome of a run that is not complete, or None."""
    lowest, highest = evaluation.evaluator.attainable(run)
    threshold = evaluation.pass_threshold
    if lowest >= threshold or highest < threshold:
        return None
    return (
        f"spans of this run may be missing; with them the score could be from {lowest:g} to {highest:g}, "
        f"and {threshold:g} is needed"
    )


def _scored(evaluation: Evaluation, score: Score) -> EvaluationResult:
    value = float(score.value)
    if not 0.0 <= value <= 1.0:
        raise ScoreOutOfRangeError
    return EvaluationResult(
        name=evaluation.name,
        evaluator=evaluation.evaluator.id,
        evaluator_version=evaluation.evaluator.version,
        outcome=Outcome.PASS if value >= evaluation.pass_threshold else Outcome.FAIL,
        score=value,
        explanation=explanation(score),
        details=score.details,
        pass_threshold=evaluation.pass_threshold,
        severity=evaluation.severity,
        criteria_hash=evaluation.criteria_hash,
    )


def _not_evaluated(evaluation: Evaluation, answer: NotEvaluated) -> EvaluationResult:
    return EvaluationResult(
        name=evaluation.name,
        evaluator=evaluation.evaluator.id,
        evaluator_version=evaluation.evaluator.version,
        outcome=Outcome.NOT_EVALUATED,
        explanation=explanation_text((answer.text,)),
        reason=answer.reason,
        pass_threshold=evaluation.pass_threshold,
        severity=evaluation.severity,
        criteria_hash=evaluation.criteria_hash,
    )
