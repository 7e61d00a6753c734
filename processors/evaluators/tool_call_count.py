"""Evaluator `tool-call-count`: how often tools were called."""

import operator
from collections import Counter
from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import Field

from processors.comparison.tool_call_config import ToolCallConfig
from processors.documents.evaluator_model import EvaluatorModel
from processors.documents.lenient_bool import LenientBool
from processors.frameworks.shapes.late_mapping import LateMapping
from processors.model.agent_run import AgentRun, ToolCall
from processors.model.evaluation_result import NotEvaluated, Score
from processors.model.evaluator import Evaluator, EvaluatorExample, RunFacts
from processors.model.json_value import JsonObject
from processors.model.tool_name import ToolKeys, canonical_tool_name, canonical_tool_names

Operator = Literal["=", "==", "!=", ">", "<", ">=", "<="]

_OPERATORS: dict[str, Callable[[int, int], bool]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
}


class ToolCallCountConfig(ToolCallConfig):
    """Settings of `tool-call-count`."""

    include_failed: LenientBool = Field(
        default=True, description="Whether calls that ended in an error count as calls."
    )


class ToolCallCountCriteria(EvaluatorModel):
    """Numbers of calls to expect."""

    tool_calls_count: dict[str, tuple[Operator, Annotated[int, Field(ge=0)]]] = Field(
        description="For each tool name (or call id) an operator and a number of calls.",
        examples=[{"get_weather": ["=", 1], "delete_account": ["=", 0]}],
    )


class ToolCallCount(Evaluator):
    """The share of count criteria that hold; with `strict`, 1 when all hold, else 0.

    score = criteria with `calls operator count` / criteria. Failed calls count as calls unless
    `include_failed: false`; tools that no criterion names are ignored; a tool never called has 0 calls. A key
    counts the calls whose id it is or whose name it spells (`processors.model.tool_name`).

    Empty criteria score 1 without calls and 0 with calls. A run without calls is graded with all counts 0.
    Strict details show only the first criterion, in written order, that fails.

    Example: {"search": ["<=", 2], "book": ["=", 1]} over the calls search, search, search, book
    scores 0.5, and 0 when strict.
    """

    id = "tool-call-count"
    Config = ToolCallCountConfig
    Criteria = ToolCallCountCriteria
    example = EvaluatorExample(
        run="tool_calls: [{name: search}, {name: search}, {name: search}, {name: book}]",
        evaluation='criteria: {tool_calls_count: {search: ["<=", 2], book: ["=", 1]}}',
    )

    def __init__(self, config: ToolCallCountConfig, criteria: ToolCallCountCriteria) -> None:
        self._strict = config.strict
        self._include_failed = config.include_failed
        self._categories = config.categories()
        self._keys = ToolKeys(criteria.tool_calls_count)
        expected = criteria.tool_calls_count
        self._expected = list(expected.values())
        self._compared = [
            (key, _OPERATORS[symbol], count, _endings(count)) for key, (symbol, count) in expected.items()
        ]
        self._written_keys = list(expected)
        self._names = [canonical_tool_name(key) for key in expected]
        self._positions = {key: position for position, key in enumerate(expected)}
        self._expected_detail: JsonObject = {
            key: [symbol, count] for key, (symbol, count) in criteria.tool_calls_count.items()
        }

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; always a score."""
        calls = self._counted(run)
        if not self._expected:
            sides = "Either expected or" if calls else "Both expected and"
            text = f"_result: {sides} actual tool calls are empty"
            return self._score(0.0 if calls else 1.0, calls, ["_result"], (text,))
        lines: list[str] = []
        met = 0
        for (key, compare, expected, (misses, holds)), count in zip(
            self._compared, self._counts(calls), strict=True
        ):
            if compare(count, expected):
                met += 1
                lines.append(f"{key}: Actual: {count}{holds}")
            elif self._strict:
                return self._score(0.0, calls, [key], (f"{key}: Actual: {count}{misses}",))
            else:
                lines.append(f"{key}: Actual: {count}{misses}")
        return self._score(met / len(lines), calls, self._written_keys, tuple(lines))

    def attainable(self, run: AgentRun) -> tuple[float, float]:
        """Counts only grow: a criterion is settled once more calls cannot make it hold, or fail."""
        calls = self._counted(run)
        if not self._expected:
            return (0.0, 0.0) if calls else (0.0, 1.0)
        certain = possible = 0
        for (symbol, expected), count in zip(self._expected, self._counts(calls), strict=True):
            if symbol in (">", ">=", "!="):
                possible += 1
                certain += count >= expected if symbol == ">=" else count > expected
            else:
                possible += count < expected if symbol == "<" else count <= expected
        total = len(self._expected)
        if self._strict:
            return float(certain == total), float(possible == total)
        return certain / total, possible / total

    def _counted(self, run: AgentRun) -> list[ToolCall]:
        calls = self._keys.select(run, self._categories)
        return calls if self._include_failed else [call for call in calls if call.error is None]

    def _counts(self, calls: list[ToolCall]) -> list[int]:
        """The number of calls of each criterion."""
        by_name: dict[str, int] = {}
        for name in canonical_tool_names(calls):
            by_name[name] = by_name.get(name, 0) + 1
        counts = [by_name.get(name, 0) for name in self._names]
        positions = self._positions
        for call in [call for call in calls if call.call_id in positions]:
            position = positions[call.call_id or ""]
            # A call that also matches by name was counted already.
            counts[position] += canonical_tool_name(call.name) != self._names[position]
        return counts

    def _score(self, value: float, calls: list[ToolCall], keys: list[str], lines: tuple[str, ...]) -> Score:
        """`lines` say `key: text` for each of `keys`."""

        def details() -> JsonObject:
            return {
                "expected": self._expected_detail,
                "actual": {**Counter([call.name for call in calls])},
                "explained_tool_calls_count": {
                    key: line[len(key) + 2 :] for key, line in zip(keys, lines, strict=True)
                },
            }

        return Score(value, LateMapping(details), lines)


def _endings(expected: int) -> tuple[str, str]:
    """How a line ends: where its criterion does not hold, and where it does."""
    return f", Expected: {expected}, Score: 0.0", f", Expected: {expected}, Score: 1.0"
