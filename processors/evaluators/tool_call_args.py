"""Evaluator `tool-call-args`: with which arguments tools were called."""

from typing import ClassVar

from pydantic import BaseModel, Field
from pydantic import JsonValue as AnyJson

from processors.agent_run import AgentRun, ToolCall
from processors.captured_value import (
    arguments_detail,
    comparable_arguments,
    detail_text,
    is_oversized,
    unknown_arguments,
)
from processors.evaluation_result import NotEvaluated, NotEvaluatedReason, Score
from processors.evaluator_model import EvaluatorModel
from processors.first_fit import Assignment, ExpectedKey, FirstFit
from processors.json_value import JsonObject, JsonValue
from processors.lenient_bool import LenientBool
from processors.limits import MAX_ASSIGNMENT_ATTEMPTS
from processors.tool_call_config import ToolCallConfig
from processors.tool_name import ToolKeys
from processors.value_equality import equal_values


class ToolCallArgsConfig(ToolCallConfig):
    """Settings of `tool-call-args`."""

    subset: LenientBool = Field(
        default=True,
        description="Whether a call may have further arguments; false: the expected ones and no other.",
    )


class ExpectedToolCall(EvaluatorModel):
    """One call to expect."""

    name: str = Field(description="Tool name (or call id).")
    args: dict[str, AnyJson] = Field(description="Expected arguments with their values.")
    id: str | None = Field(
        default=None, description="Id of the call; calls without an id are matched by name."
    )


class ToolCallArgsCriteria(EvaluatorModel):
    """Calls to expect, in any order."""

    tool_calls: list[ExpectedToolCall] = Field(
        description="Calls to expect, in any order.",
        examples=[[{"name": "get_weather", "args": {"city": "Tokyo"}}]],
    )


class ToolCallArgs:
    """The share of expected calls that were made with the expected arguments.

    score = expected calls that an own actual call fits / expected calls; with `strict`, 1 when all are
    fitted, else 0. A call fits when every expected argument is there with an equal value
    (`processors.value_equality`) and, with `subset: false`, no other. Calls are assigned first fit in
    written order (`processors.first_fit`); order and failures of calls play no part.

    No expectation scores 1 without calls and 0 with calls; a run without calls scores 0 otherwise. Unless
    everything is fitted anyway, a call of an expected tool whose arguments are not known makes the run not
    evaluated.

    Example: [{"name": "book", "args": {"seat": "4A"}}] over the call book(seat="4A", meal="none")
    scores 1, and 0 with `subset: false`.
    """

    id: ClassVar[str] = "tool-call-args"
    version: ClassVar[str] = "1"
    Config: ClassVar[type[BaseModel]] = ToolCallArgsConfig
    Criteria: ClassVar[type[BaseModel] | None] = ToolCallArgsCriteria

    def __init__(self, config: ToolCallArgsConfig, criteria: ToolCallArgsCriteria | None) -> None:
        if criteria is None:
            raise ValueError("tool-call-args needs criteria: tool_calls")
        self._strict = config.strict
        self._subset = config.subset
        self._categories = config.categories()
        keys = [ExpectedKey(call.name, call.id) for call in criteria.tool_calls]
        self._keys = ToolKeys(text for key in keys for text in key.texts())
        self._first_fit = FirstFit(keys)
        self._expected: list[JsonObject] = [call.args for call in criteria.tool_calls]
        self._expected_texts = [detail_text(str(arguments)) for arguments in self._expected]
        self._expected_detail: list[JsonValue] = [
            {"name": key.name, "args": arguments, "id": key.id}
            for key, arguments in zip(keys, self._expected, strict=True)
        ]

    def evaluate(self, run: AgentRun) -> Score | NotEvaluated:
        """Grade `run`: not evaluated where needed arguments are not known, and beyond caps."""
        calls = self._keys.select(run, self._categories)
        arguments = [comparable_arguments(call) for call in calls]
        if not calls or not self._expected:
            sides = "Either expected or" if calls or self._expected else "Both expected and"
            value = 0.0 if calls or self._expected else 1.0
            return self._score(value, calls, arguments, {"_result": f"{sides} actual tool calls are empty"})
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
        tried = {position for _, position, _ in assignment.attempts}
        texts = {position: arguments_detail(calls[position], arguments[position]) for position in tried}
        explained = self._first_fit.explain(calls, assignment.attempts, texts, self._expected_texts)
        return self._score(value, calls, arguments, explained)

    def attainable(self, run: AgentRun) -> tuple[float, float]:
        """A further call never unfits an expectation under first fit, and can fit any that is open."""
        calls = self._keys.select(run, self._categories)
        if not self._expected:
            return (0.0, 0.0) if calls else (0.0, 1.0)
        assignment = self._assign(calls, [comparable_arguments(call) for call in calls])
        if assignment.over_limit:
            return 0.0, 1.0
        if self._strict:
            return float(assignment.fitted == len(self._expected)), 1.0
        return assignment.fitted / len(self._expected), 1.0

    def _assign(self, calls: list[ToolCall], arguments: list[JsonObject | None]) -> Assignment:
        def fits(index: int, position: int) -> bool | None:
            expected = self._expected[index]
            actual = arguments[position]
            if self._subset and not expected:
                return True
            if actual is None or is_oversized(calls[position].arguments_text):
                return None
            if not self._subset and len(actual) != len(expected):
                return False
            for name, value in expected.items():
                if name not in actual or not equal_values(value, actual[name]):
                    return False
            return True

        return self._first_fit.assign(calls, fits)

    def _score(
        self,
        value: float,
        calls: list[ToolCall],
        arguments: list[JsonObject | None],
        explained: dict[str, str],
    ) -> Score:
        details: dict[str, JsonValue] = {
            "expected": self._expected_detail,
            "actual": [
                {"name": call.name, "args": known, "id": call.call_id}
                for call, known in zip(calls, arguments, strict=True)
            ],
            "explained_tool_calls_args": {**explained},
        }
        return Score(value, details, tuple([f"{key}: {text}" for key, text in explained.items()]))
