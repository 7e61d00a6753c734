"""Evaluator `tool-precedence`: whether guards came before what they guard."""

from pydantic import Field

from processors.comparison.tool_patterns import ToolPatterns
from processors.documents.evaluator_model import EvaluatorModel
from processors.documents.lenient_bool import LenientBool
from processors.model.agent_run import AgentRun, ToolCall
from processors.model.evaluation_result import NotEvaluated, Score
from processors.model.evaluator import Evaluator, EvaluatorExample, RunFacts
from processors.model.json_value import JsonValue
from processors.model.tool_name import canonical_tool_name


class ToolPrecedenceConfig(EvaluatorModel):
    """Settings of `tool-precedence`."""

    strict: LenientBool = Field(
        default=False,
        description="Whether the guard must have come before, not only beside: calls that ran side by side "
        "do not count as one before the other.",
    )
    require_success: LenientBool = Field(
        default=False, description="Whether a guard that ended in an error counts as never called."
    )


class ToolPrecedenceCriteria(EvaluatorModel):
    """Which tool has to come before which."""

    before: list[tuple[str, str]] = Field(
        min_length=1,
        description="Pairs: the tool that has to come first, and the one that must not come before it; "
        "`*` and `?` allowed.",
        examples=[[["authenticate", "fetch_*"], ["fetch_account", "transfer_money"]]],
    )


class ToolPrecedence(Evaluator):
    """The share of precedence pairs that hold, of those whose later tool was called.

    A pair [x, y] applies when y was called, and holds when the first call of x stands before the first call
    of y; a guard x that never ran is a violation. Calls of one parallel group may stand in any order unless
    `strict`. score = pairs that hold / pairs that apply, and 1 when none applies, so also without calls.

    Example: [auth, fetch] over the calls fetch, auth
    scores 0, and so it does over fetch alone.
    """

    id = "tool-precedence"
    Config = ToolPrecedenceConfig
    Criteria = ToolPrecedenceCriteria
    example = EvaluatorExample(
        run="tool_calls: [{name: fetch}, {name: auth}]",
        evaluation="criteria: {before: [[auth, fetch]]}",
    )

    def __init__(self, config: ToolPrecedenceConfig, criteria: ToolPrecedenceCriteria) -> None:
        self._strict = config.strict
        self._require_success = config.require_success
        for first, second in criteria.before:
            if canonical_tool_name(first) == canonical_tool_name(second):
                raise ValueError(f'"{first}" cannot come before itself: expected a pair of two tools')
        self._pairs = [
            (first, second, ToolPatterns([first]), ToolPatterns([second]))
            for first, second in criteria.before
        ]
        self._named = ToolPatterns(name for pair in criteria.before for name in pair)

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; always a score."""
        calls = [call for call in run.tool_calls if call.name in self._named]
        explained: dict[str, str] = {}
        applicable = held = 0
        for first, second, guards, guarded in self._pairs:
            later = next((place for place, call in enumerate(calls) if call.name in guarded), None)
            if later is None:
                continue
            applicable += 1
            earlier = self._first_guard(calls, guards)
            pair = f"{first} before {second}"
            if earlier is None:
                explained[pair] = f"{first} never ran"
            elif self._stands_before(calls, earlier, later):
                held += 1
            else:
                explained[pair] = f"{second} came first"
        details: dict[str, JsonValue] = {"applicable": applicable, "held": held, "violated": {**explained}}
        if not explained:
            line = f"{held} of {applicable} pairs hold" if applicable else "no pair applies"
            return Score(1.0, details, (line,))
        return Score(held / applicable, details, tuple(f"{pair}: {text}" for pair, text in explained.items()))

    def _first_guard(self, calls: list[ToolCall], guards: ToolPatterns) -> int | None:
        for place, call in enumerate(calls):
            if call.name in guards and not (self._require_success and call.error is not None):
                return place
        return None

    def _stands_before(self, calls: list[ToolCall], earlier: int, later: int) -> bool:
        group = calls[earlier].parallel_group
        if group is not None and group == calls[later].parallel_group:
            return not self._strict
        return earlier < later
