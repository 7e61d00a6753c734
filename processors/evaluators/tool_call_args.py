"""Evaluator `tool-call-args`: with which arguments tools were called."""

from collections.abc import Callable
from functools import cache

from pydantic import Field

from processors.comparison.captured_value import (
    all_comparable_arguments,
    arguments_detail,
    detail_text,
    is_oversized,
    unknown_arguments,
)
from processors.comparison.expected_value import Expected, compile_expected, fits, fits_members, matching_cost
from processors.comparison.first_fit import Assignment, ExpectedKey, FirstFit, explained_endings
from processors.comparison.json_schema_check import SchemaTooComplexError
from processors.comparison.tool_call_config import ToolCallConfig
from processors.comparison.value_equality import equal_values
from processors.documents.evaluator_model import EvaluatorModel, ExpectedObject
from processors.documents.lenient_bool import LenientBool
from processors.frameworks.shapes.late_mapping import LateMapping
from processors.model.agent_run import AgentRun, ToolCall
from processors.model.evaluation_result import NotEvaluated, NotEvaluatedReason, Score
from processors.model.evaluator import Evaluator, EvaluatorExample, RunFacts
from processors.model.json_value import JsonObject, JsonValue
from processors.model.limits import MAX_ASSIGNMENT_ATTEMPTS, MAX_MATCHED_CHARACTERS
from processors.model.tool_name import ToolKeys


class ToolCallArgsConfig(ToolCallConfig):
    """Settings of `tool-call-args`."""

    subset: LenientBool = Field(
        default=True,
        description="Whether a call may have further arguments; false: the expected ones and no other.",
    )


class ExpectedToolCall(EvaluatorModel):
    """One call to expect."""

    name: str = Field(description="Tool name (or call id).")
    args: ExpectedObject = Field(
        description="Expected arguments with their values, matchers such as {$glob: Lon*} among them.",
        examples=[{"city": "London", "days": {"$range": [1, 7]}}],
    )
    id: str | None = Field(
        default=None, description="Id of the call; calls without an id are matched by name."
    )


class ToolCallArgsCriteria(EvaluatorModel):
    """Calls to expect, in any order."""

    tool_calls: list[ExpectedToolCall] = Field(
        description="Calls to expect, in any order.",
        examples=[[{"name": "get_weather", "args": {"city": "Tokyo"}}]],
    )


class ToolCallArgs(Evaluator):
    """The share of expected calls that were made with the expected arguments.

    score = expected calls that an own actual call fits / expected calls; with `strict`, 1 when all are
    fitted, else 0. A call fits when every expected argument is there with an equal value
    (`processors.comparison.value_equality`), or one that meets its matcher
    (`processors.comparison.expected_value`), and, with `subset: false`, no other. Calls are assigned first
    fit in written order (`processors.comparison.first_fit`); order and failures of calls play no part.

    No expectation scores 1 without calls and 0 with calls; a run without calls scores 0 otherwise. Unless
    everything is fitted anyway, a call of an expected tool whose arguments are not known makes the run not
    evaluated.

    Example: [{"name": "book", "args": {"seat": "4A"}}] over the call book(seat="4A", meal="none")
    scores 1, and 0 with `subset: false`.
    """

    id = "tool-call-args"
    Config = ToolCallArgsConfig
    Criteria = ToolCallArgsCriteria
    example = EvaluatorExample(
        run="tool_calls: [{name: book, arguments: {seat: 4A, meal: none}}]",
        evaluation="criteria: {tool_calls: [{name: book, args: {seat: 4A}}]}",
    )

    def __init__(self, config: ToolCallArgsConfig, criteria: ToolCallArgsCriteria) -> None:
        self._strict = config.strict
        self._subset = config.subset
        self._categories = config.categories()
        keys = [ExpectedKey(call.name, call.id) for call in criteria.tool_calls]
        self._keys = ToolKeys(text for key in keys for text in key.texts())
        self._first_fit = FirstFit(keys)
        self._expected: list[JsonObject] = [call.args for call in criteria.tool_calls]
        # Expected arguments that hold matchers, with what a character of a call costs to compare.
        self._matching: list[tuple[Expected, int] | None] = [
            (compiled, matching_cost(compiled))
            if (compiled := compile_expected(arguments)) is not arguments
            else None
            for arguments in self._expected
        ]
        self._plain = [
            _PlainMembers(arguments) if matching is None and _is_plain(arguments) else None
            for arguments, matching in zip(self._expected, self._matching, strict=True)
        ]
        self._endings = explained_endings(detail_text(str(arguments)) for arguments in self._expected)
        self._expected_detail: list[JsonValue] = [
            {"name": key.name, "args": arguments, "id": key.id}
            for key, arguments in zip(keys, self._expected, strict=True)
        ]

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`: not evaluated where needed arguments are not known, and beyond caps."""
        calls = self._keys.select(run, self._categories)
        arguments = all_comparable_arguments(calls)
        if not calls or not self._expected:
            sides = "Either expected or" if calls or self._expected else "Both expected and"
            value = 0.0 if calls or self._expected else 1.0
            text = f"{sides} actual tool calls are empty"
            return self._score(value, calls, arguments, lambda: {"_result": text}, (f"_result: {text}",))
        assignment = self._assign(calls, arguments)
        if assignment.over_limit:
            return NotEvaluated(
                NotEvaluatedReason.OVER_LIMIT, f"more than {MAX_ASSIGNMENT_ATTEMPTS} comparisons of arguments"
            )
        if assignment.fitted == len(self._expected):
            value = 1.0
        elif assignment.unknown is not None:
            return unknown_arguments(calls[assignment.unknown])
        else:
            value = 0.0 if self._strict else assignment.fitted / len(self._expected)
        attempts, endings, first_fit = assignment.attempts, self._endings, self._first_fit

        def text_of(position: int) -> str:
            return arguments_detail(calls[position], arguments[position])

        return self._score(
            value,
            calls,
            arguments,
            lambda: first_fit.explain(calls, attempts, cache(text_of), endings),
            first_fit.explained_lines(calls, attempts, text_of, endings),
        )

    def attainable(self, run: AgentRun) -> tuple[float, float]:
        """A further call never unfits an expectation under first fit, and can fit any that is open."""
        calls = self._keys.select(run, self._categories)
        if not self._expected:
            return (0.0, 0.0) if calls else (0.0, 1.0)
        assignment = self._assign(calls, all_comparable_arguments(calls))
        if assignment.over_limit:
            return 0.0, 1.0
        if self._strict:
            return float(assignment.fitted == len(self._expected)), 1.0
        return assignment.fitted / len(self._expected), 1.0

    def _assign(self, calls: list[ToolCall], arguments: list[JsonObject | None]) -> Assignment:
        budget = MAX_MATCHED_CHARACTERS
        subset, all_plain = self._subset, self._plain

        def is_fit(index: int, position: int) -> bool | None:
            nonlocal budget
            expected = self._expected[index]
            if subset and not expected:
                return True
            actual = arguments[position]
            if actual is None or is_oversized(calls[position].arguments_text):
                return None
            plain = all_plain[index]
            if plain is not None:
                return (subset or len(actual) == len(expected)) and plain.are_in(actual)
            matching = self._matching[index]
            if matching is not None:
                budget -= (len(calls[position].arguments_text or "") + 1) * matching[1]
                return self._fits(matching[0], actual) if budget >= 0 else None
            if not subset and len(actual) != len(expected):
                return False
            return all(
                name in actual and equal_values(value, actual[name]) for name, value in expected.items()
            )

        try:
            assignment = self._first_fit.assign(calls, is_fit)
        except SchemaTooComplexError:
            return Assignment(over_limit=True)
        assignment.over_limit = assignment.over_limit or budget < 0
        return assignment

    def _fits(self, expected: Expected, actual: JsonObject) -> bool:
        if isinstance(expected, dict):
            return fits_members(expected, actual, subset=self._subset)
        return fits(expected, actual)

    def _score(
        self,
        value: float,
        calls: list[ToolCall],
        arguments: list[JsonObject | None],
        explain: Callable[[], dict[str, str]],
        lines: tuple[str, ...],
    ) -> Score:
        def details() -> JsonObject:
            return {
                "expected": self._expected_detail,
                "actual": [
                    {"name": call.name, "args": known, "id": call.call_id}
                    for call, known in zip(calls, arguments, strict=True)
                ],
                "explained_tool_calls_args": {**explain()},
            }

        return Score(value, LateMapping(details), lines)


class _PlainMembers:
    """Members without objects, lists and null, found the way that Python finds members of a dict.

    Values are then equal (`processors.comparison.value_equality`) exactly where Python says so, but for
    booleans, which Python takes for 0 and 1.
    """

    __slots__ = ("_are_booleans", "_items")

    def __init__(self, members: JsonObject) -> None:
        self._items = members.items()
        self._are_booleans = [
            (name, isinstance(value, bool)) for name, value in members.items() if value in (0, 1)
        ]

    def are_in(self, actual: JsonObject) -> bool:
        """Whether `actual` has all of them."""
        if not self._items <= actual.items():
            return False
        return not self._are_booleans or all(
            (type(actual[name]) is bool) is is_boolean for name, is_boolean in self._are_booleans
        )


def _is_plain(members: JsonObject) -> bool:
    return all(isinstance(value, str | int | float) for value in members.values())
