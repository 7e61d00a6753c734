"""Evaluator `tool-call-output`: what tools returned."""

from collections.abc import Callable
from typing import Literal

from pydantic import Field

from processors.comparison.captured_value import (
    comparable_result_text,
    comparable_result_value,
    detail_text,
    is_oversized,
    unknown_result,
    value_written_in,
)
from processors.comparison.expected_value import Expected, alternatives, compile_expected, fits, matching_cost
from processors.comparison.first_fit import Assignment, ExpectedKey, FirstFit, explained_endings
from processors.comparison.json_schema_check import SchemaTooComplexError
from processors.comparison.matchers import Matcher
from processors.comparison.tool_call_config import ToolCallConfig
from processors.comparison.value_equality import equal_values
from processors.documents.evaluator_model import EvaluatorModel, ExpectedJson
from processors.frameworks.shapes.late_mapping import LateMapping
from processors.model.agent_run import AgentRun, ToolCall
from processors.model.evaluation_result import NotEvaluated, NotEvaluatedReason, Score
from processors.model.evaluator import Evaluator, EvaluatorExample, RunFacts
from processors.model.json_value import JsonObject, JsonValue
from processors.model.limits import MAX_ASSIGNMENT_ATTEMPTS, MAX_MATCHED_CHARACTERS
from processors.model.tool_name import ToolKeys


class ToolCallOutputConfig(ToolCallConfig):
    """Settings of `tool-call-output`."""

    comparison: Literal["text", "json"] = Field(
        default="text",
        description="How an expected text is compared: text, character by character; json, as the value that "
        "both texts write. Other expected values are always compared by value.",
    )


class ExpectedToolOutput(EvaluatorModel):
    """One output to expect."""

    name: str = Field(description="Tool name (or call id).")
    output: ExpectedJson = Field(
        description="Expected output: a text, any other JSON value, or a matcher such as {$regex: ^ok}.",
        examples=["sunny", {"temperature": {"$range": [-20, 45]}}],
    )
    id: str | None = Field(
        default=None, description="Id of the call; calls without an id are matched by name."
    )


class ToolCallOutputCriteria(EvaluatorModel):
    """Outputs to expect, in any order."""

    tool_outputs: list[ExpectedToolOutput] = Field(
        description="Outputs to expect, in any order.",
        examples=[[{"name": "get_weather", "output": {"temperature": 25.0}}]],
    )


class ToolCallOutput(Evaluator):
    """The share of expected outputs that calls returned.

    score = expected outputs that an own actual call fits / expected outputs. An expected text must equal
    the output's text; any other expected value must equal the value of the output, where a text output is
    read as JSON, else as a Python literal, else stays a text, and an expected null also accepts an empty
    output. A matcher of texts (`$regex`, `$glob`) is held against the text, any other one against the value
    (`processors.comparison.expected_value`). Calls are assigned first fit in written order
    (`processors.comparison.first_fit`).

    With `strict` each expectation is held against the first free call of its tool only, and the first that
    does not fit, or finds no call, makes the score 0.

    No expectation scores 1 without calls and 0 with calls; a run without calls scores 0 otherwise. Unless
    everything is fitted anyway, a call of an expected tool whose output is not known makes the run not
    evaluated.

    Example: [{"name": "add", "output": "5"}] over add returning 4, then add returning 5,
    scores 1, and 0 when strict.
    """

    id = "tool-call-output"
    Config = ToolCallOutputConfig
    Criteria = ToolCallOutputCriteria
    example = EvaluatorExample(
        run="tool_calls: [{name: add, result: 4}, {name: add, result: 5}]",
        evaluation='criteria: {tool_outputs: [{name: add, output: "5"}]}',
    )

    def __init__(self, config: ToolCallOutputConfig, criteria: ToolCallOutputCriteria) -> None:
        self._strict = config.strict
        self._categories = config.categories()
        keys = [ExpectedKey(output.name, output.id) for output in criteria.tool_outputs]
        self._keys = ToolKeys(text for key in keys for text in key.texts())
        self._first_fit = FirstFit(keys)
        self._names = [key.name for key in keys]
        outputs: list[JsonValue] = [output.output for output in criteria.tool_outputs]
        self._endings = explained_endings(detail_text(str(output)) for output in outputs)
        self._expected_detail: list[JsonValue] = [
            {"name": key.name, "output": output, "id": key.id}
            for key, output in zip(keys, outputs, strict=True)
        ]
        compiled = [compile_expected(output) for output in outputs]
        # For each expectation its alternatives: (compared as text, expected value).
        self._expected: list[list[tuple[bool, Expected]]] = [
            [_as_compared(option, config.comparison) for option in alternatives(output)]
            for output in compiled
        ]
        self._costs = [matching_cost(output) for output in compiled]
        self._plain_texts = [_plain_text(options) for options in self._expected]

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`: not evaluated where a needed output is not known, and beyond caps."""
        calls = self._keys.select(run, self._categories)
        texts = [comparable_result_text(call) for call in calls]
        if not calls or not self._expected:
            sides = "Either expected or" if calls or self._expected else "Both expected and"
            value = 0.0 if calls or self._expected else 1.0
            return self._unassigned(value, calls, texts, f"{sides} actual tool calls outputs are empty")
        assignment = self._assign(calls, texts)
        if assignment.over_limit:
            return NotEvaluated(
                NotEvaluatedReason.OVER_LIMIT, f"more than {MAX_ASSIGNMENT_ATTEMPTS} comparisons of outputs"
            )
        attempts = assignment.attempts
        fitted = assignment.fitted
        if fitted < len(self._expected):
            if assignment.unknown is not None:
                return unknown_result(calls[assignment.unknown])
            if assignment.unmatched is not None:
                wanted = self._names[assignment.unmatched]
                return self._unassigned(
                    0.0, calls, texts, f"No matching actual tool call found for expected {wanted}"
                )

        def text_of(position: int) -> str:
            text = texts[position]
            return "not captured" if text is None else detail_text(text)

        first_fit, endings = self._first_fit, self._endings
        if self._strict and fitted < len(endings):
            key, line = first_fit.explain(calls, attempts, text_of, endings).popitem()
            return self._score(0.0, calls, texts, lambda: {key: line}, (f"{key}: {line}",))
        lines = first_fit.explained_lines(calls, attempts, text_of, endings)
        return self._score(
            fitted / len(endings),
            calls,
            texts,
            lambda: first_fit.explain(calls, attempts, text_of, endings),
            lines,
        )

    def attainable(self, run: AgentRun) -> tuple[float, float]:
        """A further call never unfits an expectation under first fit, and can fit any that is open.

        When strict, a further call can come first and decide either way.
        """
        calls = self._keys.select(run, self._categories)
        if not self._expected:
            return (0.0, 0.0) if calls else (0.0, 1.0)
        if self._strict:
            return 0.0, 1.0
        assignment = self._assign(calls, [comparable_result_text(call) for call in calls])
        if assignment.over_limit:
            return 0.0, 1.0
        return assignment.fitted / len(self._expected), 1.0

    def _assign(self, calls: list[ToolCall], texts: list[str | None]) -> Assignment:
        values: dict[int, JsonValue] = {}
        budget = MAX_MATCHED_CHARACTERS
        plain_texts = self._plain_texts

        def is_fit(index: int, position: int) -> bool | None:
            nonlocal budget
            text = texts[position]
            if text is None or is_oversized(text):
                return None
            plain = plain_texts[index]
            if plain is not None:
                return text == plain
            cost = self._costs[index]
            if cost:
                budget -= (len(text) + 1) * cost
                if budget < 0:
                    return None
            for as_text, expected in self._expected[index]:
                if as_text:
                    if expected.test(text) if isinstance(expected, Matcher) else text == expected:
                        return True
                    continue
                if expected is None and not text:
                    return True
                if position not in values:
                    values[position] = comparable_result_value(calls[position], text)
                value = values[position]
                if cost:
                    if fits(expected, value):
                        return True
                elif equal_values(expected, value):  # type: ignore[arg-type]  # without matchers it is JSON
                    return True
            return False

        try:
            assignment = self._first_fit.assign(calls, is_fit, first_only=self._strict)
        except SchemaTooComplexError:
            return Assignment(over_limit=True)
        assignment.over_limit = assignment.over_limit or budget < 0
        return assignment

    def _unassigned(self, value: float, calls: list[ToolCall], texts: list[str | None], text: str) -> Score:
        return self._score(value, calls, texts, lambda: {"_result": text}, (f"_result: {text}",))

    def _score(
        self,
        value: float,
        calls: list[ToolCall],
        texts: list[str | None],
        explain: Callable[[], dict[str, str]],
        lines: tuple[str, ...],
    ) -> Score:
        def details() -> JsonObject:
            return {
                "expected": self._expected_detail,
                "actual": [
                    {"name": call.name, "output": text, "id": call.call_id}
                    for call, text in zip(calls, texts, strict=True)
                ],
                "explained_tool_calls_outputs": {**explain()},
            }

        return Score(value, LateMapping(details), lines)


def _plain_text(options: list[tuple[bool, Expected]]) -> str | None:
    """The expected text where there is one alternative, a text to be compared as text."""
    if len(options) != 1:
        return None
    [(as_text, expected)] = options
    return expected if as_text and isinstance(expected, str) else None


def _as_compared(expected: Expected, comparison: Literal["text", "json"]) -> tuple[bool, Expected]:
    """Whether `expected` is held against the text of an output, and what is expected then."""
    if isinstance(expected, Matcher):
        return expected.reads_text, expected
    if not isinstance(expected, str):
        return False, expected
    return (True, expected) if comparison == "text" else (False, value_written_in(expected))
