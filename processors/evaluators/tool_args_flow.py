"""Evaluator `tool-args-flow`: whether arguments are what an earlier call returned."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from pydantic import Field

from processors.comparison import (
    JsonPath,
    ToolPatterns,
    comparable_result_text,
    comparable_result_value,
    is_oversized,
    known_equality,
    parse_json_path,
    readable_arguments,
    unknown_arguments,
    unknown_result,
)
from processors.documents import EvaluatorModel
from processors.model import (
    MAX_ASSIGNMENT_ATTEMPTS,
    AgentRun,
    Evaluator,
    EvaluatorExample,
    JsonValue,
    NotEvaluated,
    RunFacts,
    Score,
    ToolCall,
    hides_member,
    holds_mask,
    may_be_masked,
)

_SHOWN_VIOLATIONS = 20


class ToolArgsFlowConfig(EvaluatorModel):
    """Settings of `tool-args-flow`."""

    comparison: Literal["value", "text"] = Field(
        default="value",
        description='How values are compared: value, where 42 and "42" differ; text, where they are equal.',
    )


class ArgumentFlow(EvaluatorModel):
    """One argument and where its value has to come from."""

    tool: str = Field(description="The tool whose calls are checked, `*` and `?` allowed.")
    argument: str = Field(
        description="Path of the argument; of a path with `[*]` every value is checked.",
        examples=["flight_id", "passengers[*].id"],
    )
    from_tool: str = Field(description="The tool that must have returned the value, `*` and `?` allowed.")
    from_path: str = Field(
        default="",
        description="Path of the value in the result; left out, the whole result.",
        examples=["flights[*].id"],
    )
    required: bool = Field(default=True, description="Whether a call without the argument is a violation.")


class ToolArgsFlowCriteria(EvaluatorModel):
    """The flows to expect."""

    flows: list[ArgumentFlow] = Field(
        min_length=1,
        description="Arguments with the results that they have to come from.",
        examples=[
            [{"tool": "book", "argument": "flight_id", "from_tool": "search", "from_path": "flights[*].id"}]
        ],
    )


@dataclass(frozen=True, slots=True)
class _Flow:
    written: ArgumentFlow
    tools: ToolPatterns
    argument: JsonPath
    sources: ToolPatterns
    path: JsonPath


@dataclass(slots=True)
class _Checks:
    """What was found, and how many values may still be compared."""

    checked: int = 0
    violations: list[str] = field(default_factory=list)
    comparisons: int = 0


class ToolArgsFlow(Evaluator):
    """The share of arguments that have the value which an earlier call returned.

    For each flow and each call of its tool, the argument has to equal (see `value_equality`)
    a value at the path in the result of an earlier call of the source; a call of the same parallel group is
    not earlier. score = arguments that do / arguments checked. An argument that is not there counts as one
    that does not, unless `required: false`.

    A run in which no argument is checked, so also one without calls, scores 1. Where a result or argument
    that is not known could decide, the run is not evaluated. Details name the argument, never its value.

    Example: {tool: book, argument: id, from_tool: search, from_path: "[*].id"} over search returning
    [{"id": 7}] and then book(id=8) scores 0.
    """

    id = "tool-args-flow"
    over_calls = True
    Config = ToolArgsFlowConfig
    Criteria = ToolArgsFlowCriteria
    example = EvaluatorExample(
        run="""
            tool_calls:
              - {name: search, result: [{id: 7}]}
              - {name: book, arguments: {id: 8}}
        """,
        evaluation="""
            criteria:
              flows: [{tool: book, argument: id, from_tool: search, from_path: '[*].id'}]
        """,
    )

    def __init__(self, config: ToolArgsFlowConfig, criteria: ToolArgsFlowCriteria) -> None:
        self._as_text = config.comparison == "text"
        self._flows = [
            _Flow(
                flow,
                ToolPatterns([flow.tool]),
                parse_json_path(flow.argument),
                ToolPatterns([flow.from_tool]),
                parse_json_path(flow.from_path),
            )
            for flow in criteria.flows
        ]

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; not evaluated where values that are not known decide, and beyond caps."""
        calls = run.calls
        checks = _Checks()
        for flow in self._flows:
            for position, call in enumerate(calls):
                if call.name in flow.tools:
                    problem = self._check(flow, calls, position, checks)
                    if problem is not None:
                        return problem
        violations = checks.violations
        met = checks.checked - len(violations)
        shown = violations[:_SHOWN_VIOLATIONS]
        details: dict[str, JsonValue] = {"checked": checks.checked, "met": met, "violations": [*shown]}
        if not violations:
            line = f"{met} of {checks.checked} arguments come from results" if met else "nothing to check"
            return Score(1.0, details, (line,))
        return Score(met / checks.checked, details, tuple(shown))

    def _check(
        self, flow: _Flow, calls: Sequence[ToolCall], position: int, checks: _Checks
    ) -> NotEvaluated | None:
        """Check one call; what keeps the run from being evaluated, if anything does."""
        call = calls[position]
        arguments = readable_arguments(call)
        if arguments is None:
            return unknown_arguments(call)
        where = f"call {position + 1}, {call.name}.{flow.argument.text}"
        values = flow.argument.values(arguments)
        if not values:
            if hides_member(arguments):
                return unknown_arguments(call)
            if flow.written.required:
                checks.checked += 1
                checks.violations.append(f"{where}: missing")
            return None
        returned, unknown, has_source = self._returned(flow, calls, position)
        for value in values:
            checks.checked += 1
            checks.comparisons += len(returned)
            if checks.comparisons > MAX_ASSIGNMENT_ATTEMPTS:
                return NotEvaluated.over_limit(
                    f"more than {MAX_ASSIGNMENT_ATTEMPTS} comparisons of arguments with results"
                )
            verdicts = {self._equal(value, other) for other in returned}
            if True in verdicts:
                continue
            if None in verdicts or holds_mask(value):
                return unknown_arguments(call)
            if unknown is not None:
                return unknown_result(unknown)
            source = f"{flow.written.from_tool}.{flow.path.text}".rstrip(".")
            reason = f"not in any earlier {source}" if has_source else f"no earlier call of {source}"
            checks.violations.append(f"{where}: {reason}")
        return None

    def _returned(
        self, flow: _Flow, calls: Sequence[ToolCall], position: int
    ) -> tuple[list[JsonValue], ToolCall | None, bool]:
        """What earlier calls returned, a call whose result is not known, and whether there was any call."""
        group = calls[position].parallel_group
        found: list[JsonValue] = []
        unknown: ToolCall | None = None
        has_source = False
        for call in calls[:position]:
            if call.name not in flow.sources or (group is not None and call.parallel_group == group):
                continue
            has_source = True
            text = comparable_result_text(call)
            if text is None or is_oversized(text):
                if call.error is None and call.executed:
                    unknown = unknown or call
                continue
            result = comparable_result_value(call, text)
            picked = flow.path.values(result)
            if not picked and may_be_masked(text) and holds_mask(result):
                unknown = unknown or call
            found += picked
        return found, unknown, has_source

    def _equal(self, value: JsonValue, other: JsonValue) -> bool | None:
        if self._as_text and isinstance(value, (str, int, float)) and isinstance(other, (str, int, float)):
            return known_equality(str(value).strip(), str(other).strip())
        return known_equality(value, other)
