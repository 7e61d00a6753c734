"""Evaluator `tool-permission`: whether only permitted tools were called."""

import math

from pydantic import Field, model_validator

from processors.comparison.tool_call_config import ToolSelectionConfig
from processors.comparison.tool_patterns import ToolPatterns
from processors.documents.evaluator_model import EvaluatorModel
from processors.model.agent_run import AgentRun, ToolCall
from processors.model.evaluation_result import NotEvaluated, Score
from processors.model.evaluator import Evaluator, EvaluatorExample, RunFacts
from processors.model.json_value import JsonValue

_SHOWN_TOOLS = 20


class ToolPermissionCriteria(EvaluatorModel):
    """What may and may not be called; at least one of the two."""

    allow: list[str] | None = Field(
        default=None,
        description="Tools that may be called, `*` and `?` allowed; left out, all that are not denied. "
        "An empty list allows none.",
        examples=[["search_*", "get_order"]],
    )
    deny: list[str] = Field(
        default_factory=list,
        description="Tools that must not be called, `*` and `?` allowed, whatever `allow` says.",
        examples=[["delete_*"]],
    )

    @model_validator(mode="after")
    def _says_something(self) -> "ToolPermissionCriteria":
        if self.allow is None and not self.deny:
            raise ValueError('expected "allow", "deny" or both')
        return self


class ToolPermission(Evaluator):
    """The share of calls that went to permitted tools.

    score = 1 - calls that were not permitted / calls. A call is not permitted when its tool is denied, or
    when there is a list of allowed tools and it is not on it; deny wins. Failed calls count as calls.

    A run without calls scores 1, also where nothing is allowed.

    Example: deny [delete_*] over the calls search, delete_account
    scores 0.5.
    """

    id = "tool-permission"
    Config = ToolSelectionConfig
    Criteria = ToolPermissionCriteria
    example = EvaluatorExample(
        run="tool_calls: [{name: search}, {name: delete_account}]",
        evaluation="criteria: {deny: [delete_*]}",
    )

    def __init__(self, config: ToolSelectionConfig, criteria: ToolPermissionCriteria) -> None:
        self._categories = config.categories()
        self._allowed = None if criteria.allow is None else ToolPatterns(criteria.allow)
        self._denied = ToolPatterns(criteria.deny)
        self._named = ToolPatterns([*(criteria.allow or ()), *criteria.deny])
        self._rule: dict[str, JsonValue] = {
            "allow": None if criteria.allow is None else [*criteria.allow],
            "deny": [*criteria.deny],
        }

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; always a score."""
        calls = self._named.select(run, self._categories)
        refused = self._refused(calls)
        names = [call.name for call in refused]
        details: dict[str, JsonValue] = {**self._rule, "calls": len(calls), "not_permitted": [*names]}
        if not refused:
            return Score(1.0, details, ("all calls were permitted" if calls else "no call was made",))
        shown = ", ".join(list(dict.fromkeys(names))[:_SHOWN_TOOLS])
        return Score(
            (len(calls) - len(refused)) / len(calls),
            details,
            (f"not permitted: {shown}", f"{len(refused)} of {len(calls)} calls"),
        )

    def attainable(self, run: AgentRun) -> tuple[float, float]:
        """Further calls may be refused or permitted in any number, but what was refused stays called."""
        refused = self._refused(self._named.select(run, self._categories))
        return 0.0, math.nextafter(1.0, 0.0) if refused else 1.0

    def _refused(self, calls: list[ToolCall]) -> list[ToolCall]:
        return [
            call
            for call in calls
            if call.name in self._denied or (self._allowed is not None and call.name not in self._allowed)
        ]
