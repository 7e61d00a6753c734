"""`any_of`: one evaluation of several alternatives, of which the best counts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from processors.criteria.criteria_template import CriteriaTemplate
from processors.model import (
    AgentRun,
    EvaluationError,
    Evaluator,
    JsonValue,
    LateMapping,
    NotEvaluated,
    RunFacts,
    Scope,
    Score,
    can_grade,
)


@dataclass(frozen=True, slots=True)
class Alternative:
    """One of the evaluators of an `AnyOf`. `template` makes it where criteria take values from the run."""

    label: str
    evaluator: Evaluator
    template: CriteriaTemplate | None = None

    def evaluator_for(self, run: AgentRun) -> Evaluator | NotEvaluated:
        """The evaluator with the values of `run`, or why there is none."""
        return self.evaluator if self.template is None else self.template.evaluator_for(run)

    def answer(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated | EvaluationError:
        """What the evaluator answers."""
        evaluator = self.evaluator_for(run)
        try:
            return evaluator if isinstance(evaluator, NotEvaluated) else evaluator.evaluate(run, facts)
        except EvaluationError as error:
            return error


def _matched_calls(score: Score) -> int:
    """How many expected calls have one that stands for them, which the trajectory family reports."""
    assigned = score.details.get("assigned")
    return sum(position is not None for position in assigned) if isinstance(assigned, list) else 0


class AnyOf(Evaluator):
    """The best score of several alternatives, of equal ones that with most matched calls, else the first.

    An alternative without a score decides nothing where another one reaches `pass_threshold`; else it might
    have, and the run is not evaluated, or in error as that alternative is. It has the id of its alternatives
    where these are of one evaluator, else `any-of`.
    """

    def __init__(self, alternatives: Sequence[Alternative], pass_threshold: float) -> None:
        self._alternatives = alternatives
        self._pass_threshold = pass_threshold
        evaluators = [alternative.evaluator for alternative in alternatives]
        ids = {evaluator.id: evaluator.version for evaluator in evaluators}
        # What the contract has of a class depends here on the alternatives.
        self.id = next(iter(ids)) if len(ids) == 1 else "any-of"
        self.version = ".".join(ids.values())  # type: ignore[misc]
        self.quotes_content = any(evaluator.quotes_content for evaluator in evaluators)  # type: ignore[misc]
        self.over_calls = all(can_grade(evaluator, Scope.CONVERSATION) for evaluator in evaluators)
        self.over_traces = all(can_grade(evaluator, Scope.TRACE) for evaluator in evaluators)
        self.needs_calls = any(evaluator.needs_calls for evaluator in evaluators)

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; raises what an alternative raised where that one might decide."""
        best: tuple[str, Score] | None = None
        closest = (-1.0, 0)
        unknown: tuple[str, NotEvaluated] | None = None
        broken: EvaluationError | None = None
        for alternative in self._alternatives:
            answer = alternative.answer(run, facts)
            if isinstance(answer, NotEvaluated):
                answer = answer.settled(self._pass_threshold)
            if isinstance(answer, EvaluationError):
                broken = broken or answer
            elif isinstance(answer, NotEvaluated):
                unknown = unknown or (alternative.label, answer)
            elif (closeness := (answer.value, _matched_calls(answer))) > closest:
                best, closest = (alternative.label, answer), closeness
                if answer.value == 1.0:
                    break
        if best is None or best[1].value < self._pass_threshold:
            if broken is not None:
                raise broken
            if unknown is not None:
                label, missing = unknown
                return NotEvaluated(missing.reason, f"{label}: {missing.text}")
        assert best is not None
        label, score = best

        def details() -> dict[str, JsonValue]:
            return {"alternative": label, **score.details}

        lines = (f"best of {len(self._alternatives)}: {label}", *score.lines) if score.lines else ()
        return Score(score.value, LateMapping(details), lines)

    def attainable(self, run: AgentRun) -> tuple[float, float]:
        """The best that any alternative is sure of, and the best that any can still reach."""
        lowest = highest = 0.0
        for alternative in self._alternatives:
            evaluator = alternative.evaluator_for(run)
            low, high = (0.0, 1.0) if isinstance(evaluator, NotEvaluated) else evaluator.attainable(run)
            lowest, highest = max(lowest, low), max(highest, high)
        return lowest, highest

    def doubts(self, runs: Sequence[AgentRun]) -> Iterator[str]:
        """What the alternatives look at and no run of `runs` has."""
        for alternative in self._alternatives:
            yield from alternative.evaluator.doubts(runs)
