"""What differs between two gradings of a run."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from processors.model import AgentRun, EvaluationResult, JsonObject, Outcome

_SCORE_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Change:
    """The results of one evaluation of a run; `old` or `new` is None where only one set gave one."""

    trace_id: str
    span_id: str | None
    agent: str
    old: EvaluationResult | None
    new: EvaluationResult | None
    stored_id: int = 0
    """The id of the run, if it is in a store."""

    @property
    def kind(self) -> str:
        """What differs: the outcome, only the score, or whether there is a result; empty: nothing."""
        old, new = self.old, self.new
        if old is None or new is None:
            return "added" if old is None else "removed"
        if old.outcome is not new.outcome:
            return "flip"
        difference = abs((old.score or 0.0) - (new.score or 0.0))
        return "score" if difference > _SCORE_TOLERANCE else ""

    @property
    def any_result(self) -> EvaluationResult:
        """One of the results, for what both have in common."""
        result = self.old or self.new
        assert result is not None
        return result

    def to_json(self) -> JsonObject:
        """As `--format json` prints it."""
        return {
            "change": self.kind,
            "trace_id": self.trace_id,
            "span_id": self.span_id,
            "agent": self.agent,
            "evaluation": self.any_result.name,
            "old": _result_to_json(self.old),
            "new": _result_to_json(self.new),
        }

    @property
    def cause(self) -> str:
        """The cause of the result that is no pass, as the store groups failures."""
        shown = self.old if self.new is None or self.new.outcome is Outcome.PASS else self.new
        return "" if shown is None else shown.cause

    @property
    def is_decisive(self) -> bool:
        """Whether it is a flip of an evaluation whose failures may gate something."""
        sides = (self.old, self.new)
        return self.kind == "flip" and any(side is not None and side.counts for side in sides)


def changes(
    run: AgentRun, old: Sequence[EvaluationResult], new: Sequence[EvaluationResult], stored_id: int = 0
) -> Iterator[Change]:
    """The results of a run in pairs, those that are the same included."""
    before, after = (
        {(result.name, result.tool_span_id, result.tool_call_id): result for result in results}
        for results in (old, new)
    )
    span_id = None if run.span_id is None else run.span_id.hex()
    for key in {**before, **after}:
        yield Change(run.trace_id.hex(), span_id, run.agent.name, before.get(key), after.get(key), stored_id)


def _result_to_json(result: EvaluationResult | None) -> JsonObject | None:
    if result is None:
        return None
    return {
        "evaluator": result.evaluator,
        "outcome": result.outcome,
        "score": result.score,
        "explanation": result.explanation,
        "reason": result.reason,
    }
