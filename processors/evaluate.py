"""Grading: one agent run against the evaluations that apply to it.

Two steps, so that a caller who runs evaluators elsewhere decides nothing: `plan` gives the evaluations that
apply and the answers that need no evaluator, `finish` makes the result of an answer. `evaluate_run` is both,
with the evaluators run in between. This is the one place where a broken evaluator is caught: its evaluation
ends in `error`, all others go on.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TypeAlias

from processors.criteria import Evaluation, is_sampled
from processors.model import (
    MAX_EXPLANATION_CHARACTERS,
    AgentRun,
    EvaluationError,
    EvaluationResult,
    JsonObject,
    JsonValue,
    NotEvaluated,
    NotEvaluatedReason,
    Outcome,
    RunFacts,
    RunReference,
    RunsView,
    Scope,
    Score,
    SkipReason,
    WholeTrace,
    over_conversation,
    over_trace,
)


@dataclass(frozen=True, slots=True)
class OverRuns:
    """The answer of an evaluation over a conversation or a trace, and the runs that it looked at."""

    answer: Score | NotEvaluated | Exception
    runs: tuple[RunReference, ...]


Answer: TypeAlias = Score | NotEvaluated | Exception | OverRuns
"""The outcome of an evaluation: what the evaluator returned, why it was not run, or what it raised."""

Planned: TypeAlias = tuple[Evaluation, Answer | None]
"""An evaluation that gives a result, and the answer where it is known; None: its evaluator is to be run.

Where criteria take values from the input, the evaluation has the evaluator that was created for the run.
"""

_SEPARATOR = "; "
_FEW_LINES = 16
"""Up to this number all are joined: cutting off what is too long costs less than counting."""
_NO_DETAILS: JsonObject = {}
_PASS, _FAIL = Outcome.PASS, Outcome.FAIL


class ScoreOutOfRangeError(ValueError):
    """An evaluator gave a score that is not a number in [0, 1]."""


def evaluate_run(
    run: AgentRun,
    evaluations: Sequence[Evaluation],
    *,
    unix_nano: int = 0,
    on_skip: Callable[[SkipReason], None] | None = None,
    trace: WholeTrace | None = None,
) -> list[EvaluationResult]:
    """Grade `run`: one result for each evaluation that applies to it, in their order.

    `unix_nano` is the time by which mutes are in force. For the rest see `plan` and `finish`.
    """
    facts = RunFacts()
    return [
        finish(evaluation, answer_of(evaluation, run, facts) if answer is None else answer, unix_nano)
        for evaluation, answer in plan(run, evaluations, on_skip, trace)
    ]


def refuse(
    run: AgentRun,
    evaluations: Iterable[Evaluation],
    error: EvaluationError,
    *,
    unix_nano: int = 0,
    on_skip: Callable[[SkipReason], None],
) -> list[EvaluationResult]:
    """`error` in place of every verdict on `run`, of which too little is known to run any evaluator.

    Whether `when` selects the run is not known either, so such evaluations have a result. Those whose
    `sample` does not hold the trace have none, as ever.
    """
    results: list[EvaluationResult] = []
    for evaluation in evaluations:
        if is_sampled(run.trace_id, evaluation.sample):
            results.append(finish(evaluation, error, unix_nano))
        else:
            on_skip(SkipReason.SAMPLE)
    return results


def plan(
    run: AgentRun,
    evaluations: Iterable[Evaluation],
    on_skip: Callable[[SkipReason], None] | None = None,
    trace: WholeTrace | None = None,
) -> list[Planned]:
    """The evaluations that give a result for `run`, in their order, with the answers that need no evaluator.

    An evaluation whose `sample` leaves the trace out, or whose `when` does not select the run, gives no
    result: `on_skip` is called with the reason. Where `when`, or a value that the criteria take from the
    input, is not known, the evaluation is not evaluated. A run that is not complete passes or fails only
    where no further span could change that; otherwise it is not evaluated, for the run's
    `incomplete_reason`. Evaluations over a conversation are answered here, by `run.conversation`; one that is
    not known whole is as a run that is not complete. So are those over a trace, by `trace`, which is needed
    where there are any; their `when` looks at the calls of all its runs.
    """
    planned: list[Planned] = []
    is_complete = run.complete
    over: dict[Scope, _OverRuns] = {}
    for evaluation in evaluations:
        if is_complete and evaluation.is_plain:
            planned.append((evaluation, None))
            continue
        answer: Answer | None = None
        if not evaluation.is_plain:
            scope = evaluation.scope
            if scope is not Scope.RUN and scope not in over:
                over[scope] = _OverRuns(
                    over_conversation(run)
                    if scope is Scope.CONVERSATION
                    else over_trace(run, trace or WholeTrace([run], "they were not looked up"))
                )
            applied = _applied(over[scope].view.run if scope is Scope.TRACE else run, evaluation)
            if isinstance(applied, SkipReason):
                if on_skip is not None:
                    on_skip(applied)
                continue
            if isinstance(applied, NotEvaluated):
                answer = applied
            else:
                evaluation = applied
            if scope is not Scope.RUN:
                answer = over[scope].answer(evaluation, answer)
        if answer is None and not is_complete:
            answer = _undecided(run, evaluation)
        planned.append((evaluation, answer))
    return planned


class _OverRuns:
    """A conversation or a trace, as the evaluations over it see it."""

    def __init__(self, view: RunsView) -> None:
        self.view = view
        self._facts = RunFacts()

    def answer(self, evaluation: Evaluation, known: Answer | None) -> Answer:
        """The answer of `evaluation` for all of it, unless it is known already."""
        view = self.view
        if isinstance(known, OverRuns):
            return known
        answer = known
        if answer is None and not view.run.complete:
            answer = _undecided(view.run, evaluation, view.gap)
        if answer is None:
            answer = answer_of(evaluation, view.run, self._facts)
        return OverRuns(answer, view.runs)


def answer_of(evaluation: Evaluation, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated | Exception:
    """What the evaluator of `evaluation` returns for `run`, or what it raised."""
    try:
        return evaluation.evaluator.evaluate(run, facts)
    except Exception as error:
        return error


def finish(evaluation: Evaluation, answer: Answer, unix_nano: int = 0) -> EvaluationResult:
    """The result of an evaluation that was planned.

    The outcome is `pass` when the score reaches the evaluation's threshold and `fail` when it does not. An
    answer that leaves the score open fails where the highest one it could be does not reach the threshold. An
    evaluator that raised, or gave no score in [0, 1], ends in `error`; what it raised is named by class
    only, since messages can hold content, but for an `EvaluationError`, which explains itself.
    """
    evaluator = evaluation.evaluator
    runs: tuple[RunReference, ...] = ()
    scope = evaluation.scope
    if isinstance(answer, OverRuns):
        runs = answer.runs
        answer = answer.answer
    if isinstance(answer, NotEvaluated):
        answer = answer.settled(evaluation.pass_threshold)
    score: float | None = None
    details: Mapping[str, JsonValue] = _NO_DETAILS
    reason: NotEvaluatedReason | None = None
    error_type: str | None = None
    if isinstance(answer, Score):
        try:
            score = float(answer.value)
            if not 0.0 <= score <= 1.0:
                raise ScoreOutOfRangeError
            outcome = _PASS if score >= evaluation.pass_threshold else _FAIL
            lines = answer.lines or _lines(answer.details)
            text = _explanation(chain(_looked_at(runs, scope), lines) if runs else lines)
            details = answer.details
        except Exception as error:
            score, answer = None, error
    if score is None:
        if isinstance(answer, NotEvaluated):
            outcome, reason, text = Outcome.NOT_EVALUATED, answer.reason, answer.text
        elif isinstance(answer, EvaluationError):
            outcome, error_type, text = Outcome.ERROR, answer.error_type, str(answer)
        else:
            outcome, error_type = Outcome.ERROR, type(answer).__name__
            text = f"evaluator {evaluator.id} raised {error_type}"
        text = _explanation((text,))
    mute = evaluation.mute
    return EvaluationResult(  # by position, which costs half of what names cost here
        evaluation.name,
        evaluator.id,
        evaluator.version,
        outcome,
        score,
        text,
        details,
        reason,
        error_type,
        evaluation.pass_threshold,
        evaluation.severity,
        evaluation.criteria_hash,
        evaluation.stage,
        mute.until_unix_nano if mute is not None and mute.until_unix_nano > unix_nano else 0,
        None,
        None,
        runs if scope is Scope.CONVERSATION else (),
        error_type is None and evaluator.quotes_content,
        scope,
    )


def _applied(run: AgentRun, evaluation: Evaluation) -> Evaluation | NotEvaluated | SkipReason:
    """`evaluation` as it applies to `run`, or why it does not, or cannot be known to."""
    if evaluation.sample < 1.0 and not is_sampled(run.trace_id, evaluation.sample):
        return SkipReason.SAMPLE
    selected = True if evaluation.when is None else evaluation.when.selects(run)
    if selected is False:
        return SkipReason.WHEN
    if isinstance(selected, NotEvaluated):
        return selected
    if evaluation.template is None:
        return evaluation
    evaluator = evaluation.template.evaluator_for(run)
    return evaluator if isinstance(evaluator, NotEvaluated) else replace(evaluation, evaluator=evaluator)


def _undecided(run: AgentRun, evaluation: Evaluation, missing: str = "") -> NotEvaluated | Exception | None:
    """Why further spans could still change the outcome of a run that is not complete, or None.

    `missing` names what is, if it is not spans of the run itself.
    """
    evaluator = evaluation.evaluator
    lacks_calls_alone = run.incomplete_reason == "content_not_captured"
    if lacks_calls_alone and not evaluator.needs_calls:
        return None
    try:
        lowest, highest = evaluator.attainable(run)
    except Exception as error:
        return error
    threshold = evaluation.pass_threshold
    if lowest >= threshold or highest < threshold:
        return None
    missing = missing or (
        "not all that this run called was captured: no span, and no model's answer, shows it"
        if lacks_calls_alone
        else "spans of this run may be missing"
    )
    text = (
        f"{missing}; with them the score could be from {lowest:g} to {highest:g}, and {threshold:g} is needed"
    )
    return NotEvaluated(NotEvaluatedReason(run.incomplete_reason), text)


def _looked_at(runs: Sequence[RunReference], scope: Scope) -> tuple[str, ...]:
    """The line of the explanation that shows how many runs a verdict covers."""
    count = f"{len(runs)} runs" if len(runs) > 1 else "1 run"
    return (f"over {count} of the {scope}",)


def _explanation(lines: Iterable[str]) -> str:
    """`lines` joined by `; `.

    At most 1,024 characters; what is longer is cut and ends with an ellipsis. The text can always be
    encoded as UTF-8.
    """
    if isinstance(lines, tuple) and len(lines) <= _FEW_LINES:
        text = _SEPARATOR.join(lines)
    else:
        text = _SEPARATOR.join(_beginning(lines))
    if len(text) > MAX_EXPLANATION_CHARACTERS:
        text = text[: MAX_EXPLANATION_CHARACTERS - 1] + "…"
    return text if text.isascii() else text.encode(errors="replace").decode()


def _beginning(lines: Iterable[str]) -> Iterator[str]:
    """As many of `lines` as an explanation shows."""
    length = -len(_SEPARATOR)
    for line in lines:
        yield line
        length += len(line) + len(_SEPARATOR)
        if length > MAX_EXPLANATION_CHARACTERS:
            return


def _lines(details: Mapping[str, JsonValue]) -> Iterator[str]:
    """One line for each member; the members of an object in place of the object."""
    for key, value in details.items():
        if isinstance(value, dict):
            yield from (f"{name}: {member}" for name, member in value.items())
        else:
            yield f"{key}: {value}"
