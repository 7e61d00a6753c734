"""The way from a run's output to a score, for evaluators that hold it against an expected one.

The evaluator says how two values compare. Whether they are compared as a whole or line by line, and what the
details show, is decided here.
"""

from collections.abc import Callable
from typing import TypeAlias

from processors.comparison.output_path import OutputPath
from processors.comparison.output_target import OutputConfig, OutputTarget
from processors.comparison.output_value import output_detail, output_line, python_text
from processors.model.agent_run import AgentRun
from processors.model.evaluation_result import NotEvaluated, NotEvaluatedReason, Score
from processors.model.json_value import JsonObject, JsonValue
from processors.model.limits import MAX_COMPARED_LINES

_SHOWN_LINES = 100
_EXPLAINED_LINES = 5
_UNREACHABLE: JsonObject = {"details": "a line has nothing at target_output_key"}

Comparison: TypeAlias = Callable[[JsonValue, JsonValue], tuple[float, JsonObject] | NotEvaluated]
"""From an actual and an expected value to a score in [0, 1] and further details, or over a limit."""


class OutputComparison:
    """Grades runs by what their output holds at the configured place.

    `begin` gives the comparison for one run, so that a comparison may count its work. `expected` is the
    value to expect, ready to be compared.

    Line by line: both sides become texts, are split, and lines of nothing but white space are dropped.
    Line i of one side is held against line i of the other, a missing one counting as empty; the score is
    the mean, 0 where neither side has a line. A path that is more than one plain key means nothing in a
    line, so each line scores 0 then.
    """

    def __init__(
        self,
        config: OutputConfig,
        target: OutputTarget,
        expected: JsonValue,
        begin: Callable[[], Comparison],
        *,
        expected_label: str = "expected",
    ) -> None:
        """Prepare the comparison.

        Args:
            config: What is compared.
            target: The same, read.
            expected: The value to expect.
            begin: Gives the comparison for one run.
            expected_label: What the explanation calls the expected value.

        Raises:
            ValueError: lines are asked for without a delimiter between them.
        """
        self._target = target
        self._expected = expected
        self._expected_detail = output_detail(expected)
        self._expected_line = f"{expected_label}: {output_line(expected)}"
        self._begin = begin
        self._delimiter = config.line_delimiter
        self._path = target.path if config.line_by_line_evaluator else None
        if self._path is not None and not self._delimiter:
            raise ValueError("line_delimiter: expected at least one character")

    def evaluate(self, run: AgentRun) -> Score | NotEvaluated:
        """Grade `run`; raises EvaluationError when its output lacks what is compared."""
        actual = self._target.in_run(run)
        if isinstance(actual, NotEvaluated):
            return actual
        compare = self._begin()
        if self._path is not None:
            return self._score_lines(self._path, python_text(actual), compare)
        compared = compare(actual, self._expected)
        if isinstance(compared, NotEvaluated):
            return compared
        value, further = compared
        shown = output_detail(actual)
        details: JsonObject = {"expected": self._expected_detail, "actual": shown, **further}
        lines = [f"{key}: {found}" for key, found in further.items()]
        return Score(value, details, (self._expected_line, f"actual: {output_line(shown)}", *lines))

    def _score_lines(self, path: OutputPath, text: str, compare: Comparison) -> Score | NotEvaluated:
        actual = self._lines(text)
        expected = self._lines(python_text(self._expected))
        number = max(len(actual), len(expected))
        if number > MAX_COMPARED_LINES:
            return NotEvaluated(NotEvaluatedReason.OVER_LIMIT, f"more than {MAX_COMPARED_LINES} lines")
        reachable = path.is_whole or path.is_one_key
        total = 0.0
        results: list[JsonValue] = []
        explained: list[str] = []
        for index in range(number):
            found = actual[index] if index < len(actual) else ""
            wanted = expected[index] if index < len(expected) else ""
            value, further = 0.0, _UNREACHABLE
            if reachable:
                compared = compare(found, wanted)
                if isinstance(compared, NotEvaluated):
                    return compared
                value, further = compared
            total += value
            if value < 1.0 and len(explained) < _EXPLAINED_LINES:
                texts = f"expected: {output_line(wanted)}, actual: {output_line(found)}"
                explained.append(f"line {index + 1}: {value:g}, {texts}")
            if index < _SHOWN_LINES:
                results.append(
                    {
                        "line_number": index + 1,
                        "actual": output_detail(found),
                        "expected": output_detail(wanted),
                        "score": value,
                        **further,
                    }
                )
        details: JsonObject = {
            "line_by_line_results": results,
            "total_lines_actual": len(actual),
            "total_lines_expected": len(expected),
            "aggregation_method": "average",
        }
        if number > _SHOWN_LINES:
            details["lines_not_shown"] = number - _SHOWN_LINES
        return Score(total / number if number else 0.0, details, (f"lines: {number}", *explained))

    def _lines(self, text: str) -> list[str]:
        return [line for line in text.split(self._delimiter) if line.strip()]
