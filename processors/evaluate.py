"""Grading: one agent run against the evaluations that apply to it.

This is the one place where a broken evaluator is caught: its evaluation ends in `error`, all others go on.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from processors.comparison.explanation import explanation, explanation_text
from processors.criteria.agent_criteria import Evaluation
from processors.criteria.selector import is_sampled
from processors.model.agent_run import AgentRun
from processors.model.evaluation_error import EvaluationError
from processors.model.evaluation_result import (
    EvaluationResult,
    NotEvaluated,
    NotEvaluatedReason,
    Outcome,
    Score,
    SkipReason,
)

_PASS, _FAIL = Outcome.PASS, Outcome.FAIL


class ScoreOutOfRangeError(ValueError):
    """An evaluator gave a score that is not a number in [0, 1]."""


def evaluate_run(
    run: AgentRun,
    evaluations: Sequence[Evaluation],
    *,
    unix_nano: int = 0,
    on_skip: Callable[[SkipReason], None] | None = None,
) -> list[EvaluationResult]:
    """Grade `run`: one result for each evaluation that applies to it, in their order.

    An evaluation whose `sample` does not hold the trace, or whose `when` does not select the run, gives no
    result: `on_skip` is told why. Where `when`, or a value that the criteria take from the input, cannot be
    known, the evaluation is not evaluated. `unix_nano` is the time by which mutes are in force.

    The outcome is `pass` when the score reaches the evaluation's threshold and `fail` when it does not. A
    run that is not complete passes or fails only where no further span could change that; otherwise it is
    not evaluated, for the run's `incomplete_reason`. An evaluator that raises, or gives no score in
    [0, 1], ends in `error`; what it raised is named by class only, since messages can hold content, but
    for an `EvaluationError`, which explains itself.
    """
    results: list[EvaluationResult] = []
    for evaluation in evaluations:
        if evaluation.is_plain:
            results.append(_evaluate(run, evaluation))
            continue
        answer = _evaluate_where_it_applies(run, evaluation, unix_nano)
        if isinstance(answer, EvaluationResult):
            results.append(answer)
        elif on_skip is not None:
            on_skip(answer)
    run.shared_facts.clear()
    return results


def _evaluate_where_it_applies(
    run: AgentRun, evaluation: Evaluation, unix_nano: int
) -> EvaluationResult | SkipReason:
    if evaluation.sample < 1.0 and not is_sampled(run.trace_id, evaluation.sample):
        return SkipReason.SAMPLE
    selected = True if evaluation.when is None else evaluation.when.selects(run)
    if selected is False:
        return SkipReason.WHEN
    if isinstance(selected, NotEvaluated):
        result = _not_evaluated(evaluation, selected)
    elif evaluation.template is None:
        result = _evaluate(run, evaluation)
    else:
        evaluator = evaluation.template.evaluator_for(run)
        if isinstance(evaluator, NotEvaluated):
            result = _not_evaluated(evaluation, evaluator)
        else:
            result = _evaluate(run, replace(evaluation, evaluator=evaluator))
    mute = evaluation.mute
    muted_until = 0 if mute is None or mute.until_unix_nano <= unix_nano else mute.until_unix_nano
    return replace(result, stage=evaluation.stage, muted_until_unix_nano=muted_until)


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
        is_ours = isinstance(error, EvaluationError)
        text = str(error) if is_ours else f"evaluator {evaluator.id} raised {error_type}"
        return EvaluationResult(
            name=evaluation.name,
            evaluator=evaluator.id,
            evaluator_version=evaluator.version,
            outcome=Outcome.ERROR,
            explanation=explanation_text((text,)),
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
    missing = (
        "the telemetry of this run tells no calls"
        if run.incomplete_reason == "content_not_captured"
        else "spans of this run may be missing"
    )
    return (
        f"{missing}; with them the score could be from {lowest:g} to {highest:g}, and {threshold:g} is needed"
    )


def _scored(evaluation: Evaluation, score: Score) -> EvaluationResult:
    value = float(score.value)
    if not 0.0 <= value <= 1.0:
        raise ScoreOutOfRangeError
    evaluator = evaluation.evaluator
    threshold = evaluation.pass_threshold
    return EvaluationResult(
        name=evaluation.name,
        evaluator=evaluator.id,
        evaluator_version=evaluator.version,
        outcome=_PASS if value >= threshold else _FAIL,
        score=value,
        explanation=explanation(score),
        details=score.details,
        pass_threshold=threshold,
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
