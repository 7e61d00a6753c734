"""Evaluator `tool-call-budget`: whether tools were called within set numbers."""

from typing import Annotated

from pydantic import Field, model_validator

from processors.comparison.tool_call_config import ToolSelectionConfig
from processors.comparison.tool_patterns import ToolPatterns
from processors.documents.evaluator_model import EvaluatorModel
from processors.documents.lenient_bool import LenientBool
from processors.model.agent_run import AgentRun
from processors.model.evaluation_result import NotEvaluated, Score
from processors.model.evaluator import Evaluator, EvaluatorExample, RunFacts
from processors.model.json_value import JsonValue


class ToolCallBudgetConfig(ToolSelectionConfig):
    """Settings of `tool-call-budget`."""

    include_failed: LenientBool = Field(
        default=True, description="Whether calls that ended in an error count as calls."
    )


class ToolBudget(EvaluatorModel):
    """How often the calls of one tool, or of several together, may be made."""

    min: Annotated[int, Field(ge=0)] | None = Field(default=None, description="The fewest calls.")
    max: Annotated[int, Field(ge=0)] | None = Field(default=None, description="The most calls.")

    @model_validator(mode="after")
    def _is_a_range(self) -> "ToolBudget":
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"expected min to be at most max, found {self.min} and {self.max}")
        return self


class ToolCallBudgetCriteria(EvaluatorModel):
    """The limits; at least one."""

    max_calls: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="The most calls in one run, of all tools together.", examples=[20]
    )
    tools: dict[str, ToolBudget] = Field(
        default_factory=dict,
        description="Limits for single tools; a name with `*` or `?` counts all that it matches together.",
        examples=[{"search_*": {"max": 5}, "verify_identity": {"min": 1}}],
    )

    @model_validator(mode="after")
    def _says_something(self) -> "ToolCallBudgetCriteria":
        if self.max_calls is None and not self.tools:
            raise ValueError('expected "max_calls", "tools" or both')
        return self


class ToolCallBudget(Evaluator):
    """Whether the numbers of calls stay within all limits: 1 or 0.

    score = 1 when calls <= `max_calls` and, for each tool named, min <= calls <= max, else 0. Failed calls
    count as calls unless `include_failed: false`; a tool never called has 0 calls. A run without calls is
    graded with all counts 0.

    Example: {"max_calls": 3} over the calls search, search, search, book
    scores 0.
    """

    id = "tool-call-budget"
    Config = ToolCallBudgetConfig
    Criteria = ToolCallBudgetCriteria
    example = EvaluatorExample(
        run="tool_calls: [{name: search}, {name: search}, {name: search}, {name: book}]",
        evaluation="criteria: {max_calls: 3}",
    )

    def __init__(self, config: ToolCallBudgetConfig, criteria: ToolCallBudgetCriteria) -> None:
        self._categories = config.categories()
        self._include_failed = config.include_failed
        self._max_calls = criteria.max_calls
        self._named = ToolPatterns(criteria.tools)
        self._budgets = [
            (name, ToolPatterns([name]), budget.min or 0, budget.max)
            for name, budget in criteria.tools.items()
        ]

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; always a score."""
        total, counts = self._counts(run)
        exceeded: list[str] = []
        if self._max_calls is not None and total > self._max_calls:
            exceeded.append(f"all tools: {total} calls, at most {self._max_calls}")
        for (name, _, fewest, most), count in zip(self._budgets, counts, strict=True):
            if count < fewest:
                exceeded.append(f"{name}: {count} calls, at least {fewest}")
            elif most is not None and count > most:
                exceeded.append(f"{name}: {count} calls, at most {most}")
        names = [name for name, *_ in self._budgets]
        details: dict[str, JsonValue] = {
            "calls": total,
            "calls_of": dict(zip(names, counts, strict=True)),
            "exceeded": [*exceeded],
        }
        within = f"{total} call, within budget" if total == 1 else f"{total} calls, within budget"
        return Score(float(not exceeded), details, tuple(exceeded) or (within,))

    def attainable(self, run: AgentRun) -> tuple[float, float]:
        """Counts only grow: what is above its limit stays there, and what has no upper limit stays within."""
        total, counts = self._counts(run)
        if self._max_calls is not None and total > self._max_calls:
            return 0.0, 0.0
        is_settled = self._max_calls is None
        for (_, _, fewest, most), count in zip(self._budgets, counts, strict=True):
            if most is not None and count > most:
                return 0.0, 0.0
            is_settled = is_settled and most is None and count >= fewest
        return float(is_settled), 1.0

    def _counts(self, run: AgentRun) -> tuple[int, list[int]]:
        """The number of calls in all, and of each tool that has a limit."""
        calls = self._named.select(run, self._categories)
        by_name: dict[str, int] = {}
        total = 0
        for call in calls:
            if self._include_failed or call.error is None:
                by_name[call.name] = by_name.get(call.name, 0) + 1
                total += 1
        counts = [
            sum(count for name, count in by_name.items() if name in tools) for _, tools, *_ in self._budgets
        ]
        return total, counts
