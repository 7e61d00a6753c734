"""What an agent answered, as evaluators compare it: where in it, with numbers as floats, as one text."""

import re
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field

from processors.documents import EvaluatorModel
from processors.model import (
    MAX_DEPTH,
    MAX_DETAIL_CHARACTERS,
    MAX_OUTPUT_CHARACTERS,
    MAX_OUTPUT_VALUES,
    AgentRun,
    Decision,
    EvaluationError,
    JsonObject,
    JsonValue,
    NotEvaluated,
    ValueState,
    has_mask,
    has_masked_key,
    parse_json,
)

WHOLE_OUTPUT = "*"

_STEP = re.compile(r"\[([0-9]+)\]|([^.\[\]]+)")


class OutputPathError(EvaluationError):
    """A value has nothing at the path that criteria name."""


class OutputPath:
    """Where in an output a value stands.

    A path is read from left to right: characters other than `.`, `[` and `]` are the key of an object,
    digits in brackets the position in a list, counted from 0. Further dots mean nothing (`a..b` is `a.b`),
    so a key that has a dot or a bracket in it cannot be reached. `*` is the whole output.
    """

    def __init__(self, text: str) -> None:
        """Read a path; raises ValueError when there is no key and no position in it."""
        self.text = text
        self._steps: list[str | int] = []
        if text == WHOLE_OUTPUT:
            return
        for index, key in _STEP.findall(text):
            self._steps.append(int(index) if index else key)
        if not self._steps:
            raise ValueError(f'expected "{WHOLE_OUTPUT}" or a path such as "answer" or "items[0].name"')

    @property
    def is_whole(self) -> bool:
        """True for `*`."""
        return not self._steps

    @property
    def is_one_key(self) -> bool:
        """True when the path is a single key, written as it stands in the object."""
        return self._steps == [self.text]

    def resolve(self, output: JsonValue) -> JsonValue:
        """The value at this path; raises OutputPathError where there is none.

        Where a mask stands in place of what leads to it, that mask is its value.
        """
        value = output
        for step in self._steps:
            if isinstance(value, str) and has_mask(value):
                return value
            if isinstance(step, str):
                if not isinstance(value, dict):
                    raise self._refusal(f'an object with "{step}"', value)
                if step not in value and has_masked_key(value):
                    return next(filter(has_mask, value))
                if step not in value:
                    raise OutputPathError(f'no "{self.text}": there is no key "{step}"')
                value = value[step]
            else:
                if not isinstance(value, list):
                    raise self._refusal(f"a list with entry [{step}]", value)
                if step >= len(value):
                    raise OutputPathError(f'no "{self.text}": the list has no entry [{step}]')
                value = value[step]
        return value

    def _refusal(self, expected: str, value: JsonValue) -> OutputPathError:
        return OutputPathError(f'no "{self.text}": expected {expected}, found {kind_of(value)}')


def kind_of(value: JsonValue) -> str:
    """What kind of value this is, for messages: "an object", "a list", "a text", ..."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, str):
        return "a text"
    if isinstance(value, dict):
        return "an object"
    return "a list" if isinstance(value, list) else "a number"


_SHOWN_CHARACTERS = 400


class OutputNumberError(EvaluationError):
    """An output contains a number beyond the range of floats."""


def with_floats(value: JsonValue) -> JsonValue:
    """`value` with every integer as a float, at every depth; booleans stay booleans.

    So 5 and 5.0 are the same number and the same text (`5.0`). Raises OutputNumberError for an integer beyond
    the range of floats.
    """
    if isinstance(value, dict):
        return {key: with_floats(member) for key, member in value.items()}
    if isinstance(value, list):
        return [with_floats(member) for member in value]
    if isinstance(value, int) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            raise OutputNumberError("a number is too large to be compared") from None
    return value


def python_text(value: JsonValue) -> str:
    """`value` as Python prints it: `{'city': 'Oslo', 'temperature': 21.5}`; a text as it stands."""
    return value if isinstance(value, str) else str(value)


def is_too_large(value: JsonValue) -> bool:
    """Whether `value` has more members, longer texts or a greater depth than is compared."""
    if isinstance(value, str):
        return len(value) > MAX_OUTPUT_CHARACTERS
    level: list[JsonValue] = [value]
    values = characters = 0
    for _ in range(MAX_DEPTH + 1):
        inner: list[JsonValue] = []
        for item in level:
            if isinstance(item, dict):
                inner.extend(item.values())
                characters += sum(map(len, item))
            elif isinstance(item, list):
                inner.extend(item)
            elif isinstance(item, str):
                characters += len(item)
        values += len(inner)
        if values > MAX_OUTPUT_VALUES or characters > MAX_OUTPUT_CHARACTERS:
            return True
        if not inner:
            return False
        level = inner
    return True


def output_detail(value: JsonValue) -> JsonValue:
    """`value` as details hold it: a long text, or the Python text of a large value, is cut."""
    text = python_text(value)
    return value if len(text) <= MAX_DETAIL_CHARACTERS else text[: MAX_DETAIL_CHARACTERS - 1] + "…"


def output_line(value: JsonValue) -> str:
    """`value` as a line of the explanation shows it, short enough for another one in the same line."""
    text = python_text(value)
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"


MASKED_OUTPUT = NotEvaluated.not_captured("output: redacted in part")
"""The answer where the part that decides is masked."""


def known_output(run: AgentRun) -> str | JsonObject | NotEvaluated:
    """The final output of `run`, or why it cannot be graded.

    An output that was not captured, was hidden or cut off is unknown. One that was captured and is neither
    a text nor an object is nothing that evaluators of the output apply to, and no answer is due from a run
    that ended while a call of it is pending.
    """
    for call in run.calls:
        if call.decision is Decision.PENDING:
            return NotEvaluated.not_applicable(f"output: {call.name} is pending")
    if run.output_state is not ValueState.PRESENT:
        # Of an output, only the length keeps it from being read.
        if run.output_state is ValueState.UNPARSED:
            return NotEvaluated.over_limit("output: too long to be read")
        if run.output_state is ValueState.ABSENT and run.error is not None:
            return NotEvaluated.not_applicable("output: the run ended with an error")
        return NotEvaluated.not_captured(f"output: {run.output_state}")
    output = run.output
    if isinstance(output, (str, dict)):
        return output
    return NotEvaluated.not_applicable(f"output: expected a text or an object, found {kind_of(output)}")


def _valid_paths(written: str | tuple[str, ...]) -> str | tuple[str, ...]:
    for text in (written,) if isinstance(written, str) else written:
        OutputPath(text)
    return written


OutputKey: TypeAlias = Annotated[str | tuple[str, ...], AfterValidator(_valid_paths)]
"""One path into an output, or several."""


class OutputConfig(EvaluatorModel):
    """What of an output is compared."""

    target_output_key: OutputKey = Field(default=WHOLE_OUTPUT, examples=["answer", ["city", "temperature"]])
    """What to compare: `*` is all of the output, `answer.city` or `items[0].name` a value in it, a list of
    such paths an object of these values."""
    line_by_line_evaluator: bool = False
    """Grade each line and take the mean; without effect where several paths are compared."""
    line_delimiter: str = "\n"
    """What stands between two lines."""


class OutputTarget:
    """The value in an output that a configuration names, with its numbers as floats."""

    def __init__(self, key: str | tuple[str, ...]) -> None:
        self.path = OutputPath(key) if isinstance(key, str) else None
        """The path, or None where several values are named."""
        self._several = [OutputPath(path) for path in key] if isinstance(key, tuple) else []

    def in_run(self, run: AgentRun) -> "JsonValue | NotEvaluated":
        """The value in the output of `run`; raises EvaluationError when it is not there."""
        output = known_output(run)
        if isinstance(output, NotEvaluated):
            return output
        value = self._resolve(output)
        if is_too_large(value):
            return NotEvaluated.over_limit("output: too large to be compared")
        return with_floats(value)

    def in_expected(self, expected: str | JsonObject) -> JsonValue:
        """The value in an expected output, as written; a text is read as JSON where a path leads into it.

        Raises ValueError where it is not there, or is too large to be compared.
        """
        value: JsonValue = expected
        if isinstance(expected, str) and not (self.path and self.path.is_whole):
            try:
                value = parse_json(expected)
            except ValueError:
                raise ValueError(
                    "expected_output: expected an object, or its JSON text, that has target_output_key"
                ) from None
        try:
            resolved = self._resolve(value)
        except OutputPathError as error:
            raise ValueError(f"expected_output: {error}") from None
        if is_too_large(resolved):
            raise ValueError("expected_output: too large to be compared")
        return resolved

    def _resolve(self, value: JsonValue) -> JsonValue:
        if self.path is not None:
            return self.path.resolve(value)
        if not isinstance(value, dict):
            raise OutputPathError(f"several values: expected an object, found {kind_of(value)}")
        return {path.text: path.resolve(value) for path in self._several}
