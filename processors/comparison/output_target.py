"""What of an agent's output is compared: all of it, a value in it, or some of its keys."""

from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field

from processors.comparison.output_path import WHOLE_OUTPUT, OutputPath, OutputPathError, kind_of
from processors.comparison.output_value import is_too_large, with_floats
from processors.comparison.run_output import known_output
from processors.documents.evaluator_model import EvaluatorModel
from processors.documents.lenient_bool import LenientBool
from processors.model.agent_run import AgentRun
from processors.model.evaluation_result import NotEvaluated, NotEvaluatedReason
from processors.model.json_value import JsonObject, JsonValue
from processors.model.values import parse_json


def _valid_paths(written: str | tuple[str, ...]) -> str | tuple[str, ...]:
    for text in (written,) if isinstance(written, str) else written:
        OutputPath(text)
    return written


OutputKey: TypeAlias = Annotated[str | tuple[str, ...], AfterValidator(_valid_paths)]
"""One path into an output, or several."""


class OutputConfig(EvaluatorModel):
    """What of an output is compared."""

    target_output_key: OutputKey = Field(
        default=WHOLE_OUTPUT,
        description="What to compare: `*` is all of the output, `answer.city` or `items[0].name` a value in "
        "it, a list of such paths an object of these values.",
        examples=["answer", ["city", "temperature"]],
    )
    line_by_line_evaluator: LenientBool = Field(
        default=False,
        description="Grade each line and take the mean; without effect where several paths are compared.",
    )
    line_delimiter: str = Field(default="\n", description="What stands between two lines.")


class OutputTarget:
    """The value in an output that a configuration names, with its numbers as floats."""

    def __init__(self, key: str | tuple[str, ...]) -> None:
        self._single = OutputPath(key) if isinstance(key, str) else None
        self._several = [OutputPath(path) for path in key] if isinstance(key, tuple) else []

    @property
    def path(self) -> OutputPath | None:
        """The path, or None where several values are named."""
        return self._single

    def in_run(self, run: AgentRun) -> "JsonValue | NotEvaluated":
        """The value in the output of `run`; raises EvaluationError when it is not there."""
        output = known_output(run)
        if isinstance(output, NotEvaluated):
            return output
        value = self._resolve(output)
        if is_too_large(value):
            return NotEvaluated(NotEvaluatedReason.OVER_LIMIT, "output: too large to be compared")
        return with_floats(value)

    def in_expected(self, expected: str | JsonObject) -> JsonValue:
        """The value in an expected output, as written; a text is read as JSON where a path leads into it.

        Raises:
            ValueError: it is not there, or is too large to be compared.
        """
        value: JsonValue = expected
        if isinstance(expected, str) and not (self._single and self._single.is_whole):
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
        if self._single is not None:
            return self._single.resolve(value)
        if not isinstance(value, dict):
            raise OutputPathError(f"several values are asked of {kind_of(value)}, expected an object")
        return {path.text: path.resolve(value) for path in self._several}
