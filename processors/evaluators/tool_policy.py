"""Evaluators of the tools that may or must be called, whatever the calls returned.

`tool-permission`, `tool-known`, `tool-call-budget`, `tool-precedence` and `single-tool-use`.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Annotated

from pydantic import Field, model_validator

from processors.comparison import (
    CallConstraint,
    CallConstraints,
    IncludeFailed,
    Target,
    ToolPatterns,
    ToolSelectionConfig,
    share_of,
    took_effect,
    without_failed,
)
from processors.documents import AnyKeyCriteria, EvaluatorModel
from processors.model import (
    AgentRun,
    CallCategory,
    Evaluator,
    JsonValue,
    NotEvaluated,
    RunFacts,
    Score,
    ToolCall,
    canonical_tool_name,
)

_SHOWN_TOOLS = 20


class ToolPermissionCriteria(AnyKeyCriteria):
    """What may and may not be called; at least one of the two."""

    allow: list[str] | None = Field(default=None, examples=[["search_*", "get_order"]])
    """Tools that may be called, `*` and `?` allowed; left out, all that are not denied. An empty list allows
    none."""
    deny: list[str] = Field(default_factory=list, examples=[["delete_*"]])
    """Tools that must not be called, `*` and `?` allowed; takes precedence over `allow`."""


class ToolPermission(Evaluator):
    """The share of calls that went to permitted tools.

    score = 1 - calls that were not permitted / calls. A call is not permitted when its tool is denied, or
    when there is a list of allowed tools and it is not on it; deny wins.

    A run without calls scores 1, also where nothing is allowed.
    """

    id = "tool-permission"
    over_calls = True
    can_fail_early = True
    quotes_content = False

    def __init__(self, config: ToolSelectionConfig, criteria: ToolPermissionCriteria) -> None:
        self._rule: dict[str, JsonValue] = {
            "allow": None if criteria.allow is None else [*criteria.allow],
            "deny": [*criteria.deny],
        }
        self._categories = config.categories()
        self._allowed = None if criteria.allow is None else ToolPatterns(criteria.allow)
        self._denied = ToolPatterns(criteria.deny)
        self._named = ToolPatterns([*(criteria.allow or ()), *criteria.deny])

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; always a score."""
        calls = self._named.select(run, self._categories)
        names = self._refused(calls)
        details: dict[str, JsonValue] = {**self._rule, "calls": len(calls), "not_permitted": [*names]}
        if not names:
            return Score(1.0, details, ("all calls were permitted" if calls else "no call was made",))
        lines = f"not permitted: {_listed(names)}", f"{len(names)} of {len(calls)} calls"
        return Score((len(calls) - len(names)) / len(calls), details, lines)

    def attainable(self, run: AgentRun) -> tuple[float, float]:
        """Further calls may be refused or permitted in any number, but what was refused stays called."""
        refused = self._refused(self._named.select(run, self._categories))
        return 0.0, math.nextafter(1.0, 0.0) if refused else 1.0

    def _refused(self, calls: Sequence[ToolCall]) -> list[str]:
        allowed, denied = self._allowed, self._denied
        return [
            call.name
            for call in calls
            if call.name in denied or (allowed is not None and call.name not in allowed)
        ]


class ToolKnownConfig(ToolSelectionConfig):
    """Settings of `tool-known`."""

    also_known: tuple[str, ...] = Field(default=(), examples=[["web_search"]])
    """Tools that exist although telemetry does not list them, `*` and `?` allowed."""


class ToolKnown(Evaluator):
    """The share of calls whose tool is among those that the run could call: it was not invented.

    score = calls of available tools / calls. The available tools are those that telemetry lists for the run
    (`gen_ai.tool.definitions` and its kin), and those in `also_known`. Where it lists none, the evaluation is
    not applicable. Calls that were only requested count: most frameworks do not even try to run a tool that
    does not exist. What the model's provider ran was available there, whatever telemetry lists.

    There is nothing to expect. A run without calls scores 1.
    """

    id = "tool-known"
    version = "2"
    quotes_content = False

    def __init__(self, config: ToolKnownConfig, criteria: None = None) -> None:
        self._categories = config.categories()
        self._also_known = ToolPatterns(config.also_known)

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; not applicable where telemetry lists no tools."""
        tools = run.available_tools
        if not tools:
            return NotEvaluated.not_applicable("the trace does not list the tools of this run")
        known = set(map(canonical_tool_name, tools))
        calls = run.evaluated_calls(self._categories)
        names = [
            call.name
            for call in calls
            if call.category is not CallCategory.SERVER
            and canonical_tool_name(call.name) not in known
            and call.name not in self._also_known
        ]
        details: dict[str, JsonValue] = {"available": [*tools], "calls": len(calls), "unknown": [*names]}
        if not names:
            return Score(
                1.0, details, ("all calls went to available tools" if calls else "no call was made",)
            )
        lines = f"unknown tools: {_listed(names)}", f"available: {_listed(tools)}"
        return Score((len(calls) - len(names)) / len(calls), details, lines)


class ToolCallBudgetConfig(ToolSelectionConfig):
    """Settings of `tool-call-budget`."""

    include_failed: IncludeFailed = True


class ToolBudget(EvaluatorModel):
    """How often the calls of one tool, or of several together, may be made."""

    min: Annotated[int, Field(ge=0)] | None = None
    """The fewest calls."""
    max: Annotated[int, Field(ge=0)] | None = None
    """The most calls."""

    @model_validator(mode="after")
    def _is_a_range(self) -> "ToolBudget":
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"expected min to be at most max, found {self.min} and {self.max}")
        return self


class ToolCallBudgetCriteria(AnyKeyCriteria):
    """The limits; at least one."""

    max_calls: Annotated[int, Field(ge=0)] | None = Field(default=None, examples=[20])
    """The most calls in one run, of all tools together."""
    tools: dict[str, ToolBudget] = Field(
        default_factory=dict, examples=[{"search_*": {"max": 5}, "verify_identity": {"min": 1}}]
    )
    """Limits for single tools; a name with `*` or `?` counts all that it matches together."""


class ToolCallBudget(Evaluator):
    """Whether the numbers of calls stay within all limits: 1 or 0.

    score = 1 when calls <= `max_calls` and, for each tool named, min <= calls <= max, else 0. A tool never
    called has 0 calls, and a run without calls is graded with all counts 0.
    """

    id = "tool-call-budget"
    over_calls = True
    can_fail_early = True
    quotes_content = False

    def __init__(self, config: ToolCallBudgetConfig, criteria: ToolCallBudgetCriteria) -> None:
        self._categories = config.categories()
        self._include_failed = config.include_failed
        self._named = ToolPatterns(criteria.tools)
        self._max_calls = criteria.max_calls
        upper = [criteria.max_calls, *(budget.max for budget in criteria.tools.values())]
        self.can_fail_early = bool(config.include_failed) and any(most is not None for most in upper)
        self._budgets = [
            (name, ToolPatterns([name]), budget.min or 0, budget.max)
            for name, budget in criteria.tools.items()
        ]

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; always a score."""
        counts = self._counts(run)
        total, *of_tools = counts
        exceeded: list[str] = []
        if self._max_calls is not None and total > self._max_calls:
            exceeded.append(f"all tools: {total} calls, at most {self._max_calls}")
        for (name, _, least, most), count in zip(self._budgets, of_tools, strict=True):
            if count < least:
                exceeded.append(f"{name}: {count} calls, at least {least}")
            if most is not None and count > most:
                exceeded.append(f"{name}: {count} calls, at most {most}")
        details: dict[str, JsonValue] = {
            "calls": total,
            "calls_of": {name: count for (name, *_), count in zip(self._budgets, of_tools, strict=True)},
            "exceeded": [*exceeded],
        }
        within = f"{total} call, within budget" if total == 1 else f"{total} calls, within budget"
        return Score(float(not exceeded), details, tuple(exceeded) or (within,))

    def attainable(self, run: AgentRun) -> tuple[float, float]:
        """Counts only grow: what is above its limit stays there, and what has no upper limit stays within.

        Of failed calls that do not count nothing is settled: later spans can show how a call ended.
        """
        counts = self._counts(run)
        if not self._include_failed:
            counts = [0] * len(counts)
        limits = [(0, self._max_calls), *((least, most) for _, _, least, most in self._budgets)]
        pairs = list(zip(limits, counts, strict=True))
        is_settled = all(most is None and count >= least for (least, most), count in pairs)
        is_lost = any(most is not None and count > most for (_, most), count in pairs)
        return float(is_settled), float(not is_lost)

    def _counts(self, run: AgentRun) -> list[int]:
        """The number of all calls, then for each budget that of its tools."""
        calls = self._named.select(run, self._categories)
        if not self._include_failed:
            calls = without_failed(calls)
        names = Counter([call.name for call in calls])
        budgets = self._budgets
        return [
            len(calls),
            *(sum([count for name, count in names.items() if name in tools]) for _, tools, _, _ in budgets),
        ]


class ToolPrecedenceConfig(EvaluatorModel):
    """Settings of `tool-precedence`."""

    strict: bool = False
    """Whether the guard must have run before, not in parallel: calls that ran side by side do not count as
    one before the other."""
    require_success: bool = False
    """Whether a guard that took no effect counts as never called: it ended in an error, its result reads like
    one (`processors.comparison.captured_value`), or it was never executed."""


class ToolPrecedenceCriteria(EvaluatorModel):
    """Which tool has to come before which."""

    before: list[tuple[str, str]] = Field(
        min_length=1, examples=[[["authenticate", "fetch_*"], ["fetch_account", "transfer_money"]]]
    )
    """Pairs: the tool that has to come first, and the one that must not come before it; `*` and `?`
    allowed."""


class ToolPrecedence(Evaluator):
    """The share of precedence pairs that hold, of those whose later tool was called.

    A pair [x, y] applies when y was called, and holds when the first call of x stands before the first call
    of y; a guard x that never ran, is pending or was denied is a violation, unless y waits or was refused as
    well. Calls of one parallel group may stand in any order unless `strict`. score = pairs that hold / pairs
    that apply, and 1 when none applies, so also without calls.
    The rule is the template `precedence` of `tool-constraints`.
    """

    id = "tool-precedence"
    over_calls = True
    version = "2"
    quotes_content = False

    def __init__(self, config: ToolPrecedenceConfig, criteria: ToolPrecedenceCriteria) -> None:
        for first, second in criteria.before:
            if canonical_tool_name(first) == canonical_tool_name(second):
                raise ValueError(f'"{first}" cannot come before itself: expected a pair of two tools')
        self._pairs = criteria.before
        self._require_success = config.require_success
        self._constraints = CallConstraints(
            [
                CallConstraint(
                    "precedence",
                    (
                        Target(first, status="succeeded" if config.require_success else "any"),
                        Target(second),
                    ),
                )
                for first, second in criteria.before
            ],
            frozenset(),
            strict=config.strict,
        )

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; `over_limit` beyond the cap on calls."""
        findings = self._constraints.evaluate(run)
        if isinstance(findings, NotEvaluated):
            return findings
        applicable = sum(bool(finding.applies) for finding in findings)
        violated: dict[str, JsonValue] = {}
        held = 0
        for (first, second), finding in zip(self._pairs, findings, strict=True):
            if finding.applies and finding.holds:
                held += 1
            elif finding.applies:
                violated[f"{first} before {second}"] = self._shortfall(first, second, run)
        details: dict[str, JsonValue] = {"applicable": applicable, "held": held, "violated": violated}
        if not violated:
            line = f"{held} of {held} pairs hold" if applicable else "no pair applies"
            return Score(1.0, details, (line,))
        return Score(share_of(findings), details, tuple(f"{pair}: {text}" for pair, text in violated.items()))

    def attainable(self, run: AgentRun) -> tuple[float, float]:
        """A guard, or a call that lacks one, may still come first."""
        return self._constraints.attainable(run)

    def _shortfall(self, guard: str, later: str, run: AgentRun) -> str:
        """Why `guard` did not come before `later`."""
        tools = ToolPatterns([guard])
        guards = [call for call in run.calls if call.name in tools]
        if all(call.is_held_back for call in guards):
            return f"{guard} " + (f"is {guards[0].decision}" if guards else "never ran")
        if self._require_success and not any(map(took_effect, guards)):
            return f"{guard} never succeeded"
        return f"{later} came first"


class SingleToolUseConfig(EvaluatorModel):
    """Settings of `single-tool-use`."""

    include_failed: IncludeFailed = True


class SingleToolUseCriteria(EvaluatorModel):
    """The tool to expect."""

    tool_name: str = Field(min_length=1, examples=["search_knowledge_base"])
    """Tool name (or call id)."""


class SingleToolUse(Evaluator):
    """Whether one tool was called at least once: 1 or 0; order, arguments and number do not matter.

    score = 1 when a call of the tool is there, else 0. A run without calls scores 0; there is no empty
    expectation.
    """

    id = "single-tool-use"
    over_calls = True
    quotes_content = False

    def __init__(self, config: SingleToolUseConfig, criteria: SingleToolUseCriteria) -> None:
        self._tool = criteria.tool_name
        self._name = canonical_tool_name(criteria.tool_name)
        self._include_failed = config.include_failed

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; always a score."""
        count = self._count(run)
        calls = f"{count} call" if count == 1 else f"{count} calls"
        details: dict[str, JsonValue] = {"tool": self._tool, "calls": count}
        return Score(float(count > 0), details, (f"{self._tool}: {calls}, at least 1 expected",))

    def attainable(self, run: AgentRun) -> tuple[float, float]:
        """Once called, a tool stays called; whether the call failed, later spans can show."""
        return float(bool(self._include_failed) and self._count(run) > 0), 1.0

    def _count(self, run: AgentRun) -> int:
        calls = run.calls if self._include_failed else without_failed(run.calls)
        count = 0
        for call in calls:
            count += canonical_tool_name(call.name) == self._name or call.call_id == self._tool
        return count


def _listed(names: Iterable[str]) -> str:
    return ", ".join(list(dict.fromkeys(names))[:_SHOWN_TOOLS])
