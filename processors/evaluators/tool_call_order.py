"""Evaluator `tool-call-order`: in which order tools were called."""

from pydantic import Field

from processors.comparison.common_subsequence import common_subsequence, common_subsequence_length
from processors.comparison.parallel_order import best_fitting_order, parallel_segments
from processors.comparison.tool_call_config import ToolCallConfig
from processors.documents.evaluator_model import EvaluatorModel
from processors.frameworks.shapes.late_mapping import LateMapping
from processors.model.agent_run import AgentRun, ToolCall
from processors.model.evaluation_result import NotEvaluated, NotEvaluatedReason, Score
from processors.model.evaluator import Evaluator, EvaluatorExample, RunFacts
from processors.model.json_value import JsonObject, JsonValue
from processors.model.limits import MAX_ORDERED_CALLS
from processors.model.tool_name import ToolKeys, canonical_tool_name, canonical_tool_names


class ToolCallOrderCriteria(EvaluatorModel):
    """The order to expect."""

    tool_calls_order: list[str] = Field(
        description="Tool names (or call ids) in the expected order.",
        examples=[["get_temperature", "get_humidity", "get_forecast"]],
    )


class ToolCallOrder(Evaluator):
    """How much of the expected order the calls follow.

    score = length of the longest common subsequence of calls and expected keys / expected keys; further
    calls cost nothing. Calls of one parallel group are taken in the order that fits best. With `strict`:
    1 when calls and keys match one by one as recorded, else 0. Failed calls count as calls.

    An empty expectation scores 1 without calls and 0 with calls; a run without calls scores 0 otherwise.

    Example: [search, book, pay] over the calls search, pay, book, search scores 2/3,
    with search, book as the common subsequence.
    """

    id = "tool-call-order"
    Config = ToolCallConfig
    Criteria = ToolCallOrderCriteria
    example = EvaluatorExample(
        run="tool_calls: [{name: search}, {name: pay}, {name: book}, {name: search}]",
        evaluation="criteria: {tool_calls_order: [search, book, pay]}",
    )

    def __init__(self, config: ToolCallConfig, criteria: ToolCallOrderCriteria) -> None:
        self._strict = config.strict
        self._categories = config.categories()
        self._expected = criteria.tool_calls_order
        self._width = len(self._expected)
        self._keys = ToolKeys(self._expected)
        self._rows_by_name: dict[str, int] = {}
        self._rows_by_id: dict[str, int] = {}
        for position, key in enumerate(self._expected):
            name = canonical_tool_name(key)
            self._rows_by_name[name] = self._rows_by_name.get(name, 0) | 1 << position
            self._rows_by_id[key] = self._rows_by_id.get(key, 0) | 1 << position
        self._expected_detail: list[JsonValue] = [*self._expected]
        self._expected_line = f"expected: {self._expected}"

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; `over_limit` beyond the caps on calls and on the search over parallel groups."""
        calls = self._keys.select(run, self._categories)
        if len(calls) > MAX_ORDERED_CALLS:
            return NotEvaluated(
                NotEvaluatedReason.OVER_LIMIT, f"{len(calls)} tool calls, at most {MAX_ORDERED_CALLS}"
            )
        rows = self._rows(calls)
        if self._strict:
            if self._width == len(rows) and all(row >> key & 1 for key, row in enumerate(rows)):
                return self._score(1.0, calls, self._expected)
            return self._score(0.0, calls, [])
        if not self._width:
            return self._score(0.0 if calls else 1.0, calls, [])
        positions = common_subsequence(rows, self._width)
        if len(positions) < self._width and _is_reorderable(calls, rows):
            order = best_fitting_order(rows, parallel_segments(calls), self._width)
            if order is None:
                return NotEvaluated(
                    NotEvaluatedReason.OVER_LIMIT, "too many parallel tool calls to find the order that fits"
                )
            positions = common_subsequence([rows[position] for position in order], self._width)
        return self._score(
            len(positions) / self._width, calls, [self._expected[position] for position in positions]
        )

    def attainable(self, run: AgentRun) -> tuple[float, float]:
        """Further calls cannot shorten a common subsequence, and can complete it.

        Of a parallel group only one call is counted on, since later spans may tell its order. A strict
        order is lost once the calls there are do not all stand in it.
        """
        calls = self._keys.select(run, self._categories)
        if not self._width:
            return (0.0, 0.0) if calls else (0.0, 1.0)
        if len(calls) > MAX_ORDERED_CALLS:
            return 0.0, 1.0
        segments = parallel_segments(calls)
        rows = self._rows(calls)
        if self._strict:
            if len(calls) > self._width:
                return 0.0, 0.0
            order = best_fitting_order(rows, segments, self._width)
            if order is not None:
                rows = [rows[position] for position in order]
                return 0.0, float(common_subsequence_length(rows, self._width) == len(rows))
            return 0.0, 1.0
        first_of_each = [rows[segment[0]] for segment in segments]
        return common_subsequence_length(first_of_each, self._width) / self._width, 1.0

    def _rows(self, calls: list[ToolCall]) -> list[int]:
        """For each call the expected keys that it matches, as bits."""
        by_name, by_id = self._rows_by_name, self._rows_by_id
        rows = [by_name.get(name, 0) for name in canonical_tool_names(calls)]
        for position in [position for position, call in enumerate(calls) if call.call_id in by_id]:
            rows[position] |= by_id[calls[position].call_id or ""]
        return rows

    def _score(self, value: float, calls: list[ToolCall], lcs: list[str]) -> Score:
        actual = [call.name for call in calls]

        def details() -> JsonObject:
            return {"expected": self._expected_detail, "actual": [*actual], "lcs": [*lcs]}

        lines = (self._expected_line, f"actual: {actual}", f"lcs: {lcs}")
        return Score(value, LateMapping(details), lines)


def _is_reorderable(calls: list[ToolCall], rows: list[int]) -> bool:
    """Whether neighbouring calls of one parallel group match different keys."""
    previous = None
    matched = 0
    for call, row in zip(calls, rows, strict=True):
        group = call.parallel_group
        if group is None or group != previous:
            previous = group
            matched = row
        elif row and matched and row != matched:
            return True
        else:
            matched = matched or row
    return False
