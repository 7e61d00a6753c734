"""Evaluators that compare a text or value of the run with an expected one.

`exact-match`, `contains`, `regex-match`, `ascii-printable-only` and `json-similarity`. The key in the
criteria decides what is compared: a value in the final output, the output as a text, or the text that an
extractor takes from the run. A setting that this key does not read is refused.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, model_validator
from pydantic import JsonValue as AnyJson

from processors.comparison import (
    MASKED_OUTPUT,
    Expected,
    Extraction,
    ExtractorSettings,
    OutputConfig,
    OutputPath,
    OutputTarget,
    compile_expected,
    fits,
    kind_of,
    known_output,
    matching_cost,
    output_detail,
    output_line,
    python_text,
    with_floats,
)
from processors.documents import EvaluatorModel, ExpectedObject, OneKeyCriteria
from processors.model import (
    MAX_COMPARED_LINES,
    MAX_EDIT_STEPS,
    MAX_MATCHED_CHARACTERS,
    MAX_SEARCHED_CHARACTERS,
    AgentRun,
    Evaluator,
    JsonObject,
    JsonValue,
    NotEvaluated,
    OverLimitError,
    RunFacts,
    Score,
    contains_text,
    has_mask,
    has_masked_key,
    is_digest,
    known_parts,
    same_text,
)
from processors.texts.edit_distance import edit_distance, edit_steps
from processors.texts.linear_regex import LinearPattern, compile_linear

_NO_DETAILS: JsonObject = {}
_SHOWN_LINES = 100
_EXPLAINED_LINES = 5
_UNREACHABLE: JsonObject = {"details": "a line has nothing at target_output_key"}
_PRINTABLE = frozenset(map(chr, range(32, 127))) | {"\n", "\r"}
_MAX_OFFENDERS = 5
_MASKED_TEXT = NotEvaluated.not_captured("the text: redacted in part")
_ZERO = 1e-12

_Comparison: TypeAlias = Callable[[JsonValue, JsonValue], tuple[float, JsonObject] | NotEvaluated]
"""From an actual and an expected value to a score in [0, 1] and further details, or over a limit."""

_Judge: TypeAlias = Callable[[str], tuple[bool, str] | NotEvaluated]
"""Whether a text passes, and why."""

_OUTPUT_SETTINGS = frozenset(OutputConfig.model_fields) | {"case_sensitive", "negated"}
"""The settings of criteria on a value in the final output."""
_EXTRACTOR_SETTINGS = frozenset(ExtractorSettings.model_fields)
"""The settings of a ground truth."""


class TextConfig(OutputConfig, ExtractorSettings):
    """Settings of evaluators that compare texts."""

    case_sensitive: bool = False
    """Whether case counts."""
    negated: bool = False
    """Whether the opposite is expected."""

    def refuse_unused(self, key: str, used: Collection[str]) -> None:
        """Raises ValueError when a setting was changed that is not among `used`, those that `key` reads."""
        for name, setting in type(self).model_fields.items():
            if name not in used and getattr(self, name) != setting.get_default(call_default_factory=True):
                raise ValueError(f"config.{name} has no effect with {key}")
        if _EXTRACTOR_SETTINGS.isdisjoint(used) and self.extractor_is_given:
            raise ValueError(
                f"config.extractor has no effect with {key}, which is compared with the final output"
            )


class _Grading(Evaluator):
    """Evaluators whose criteria decide once how runs are graded."""

    needs_calls = False
    _grade: Callable[[AgentRun], Score | NotEvaluated]

    def _grade_extracted(
        self,
        judge: Callable[[str], _Judge],
        ground_truth: str | list[str] | None,
        settings: ExtractorSettings,
    ) -> None:
        """Grade the text that an extractor takes: 1 when it passes, else 0; an empty text fails.

        With a list of truths, turn i alone is graded against truth i and the score is the mean; a turn that
        is missing fails.
        """
        extraction = settings.extraction()
        self.needs_calls = extraction.reads_calls
        truths = ground_truth if isinstance(ground_truth, list) else [ground_truth]
        if not truths:
            raise ValueError("ground_truth: expected at least one text, found an empty list")
        if isinstance(ground_truth, list) and extraction.reads_calls:
            raise ValueError(
                "ground_truth: expected one text, since tool calls belong to no turn; found a list"
            )
        if "" in truths:
            raise ValueError("ground_truth: expected a text that is not empty")
        judges = [judge(truth or "") for truth in truths]
        self._grade = partial(_score_extracted, extraction, judges, isinstance(ground_truth, list))

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; raises EvaluationError when its output lacks what is compared."""
        return self._grade(run)


class AveragedAggregator(EvaluatorModel):
    """Precision or recall over all classes."""

    type: Literal["precision", "recall"]
    averaging: Literal["macro", "micro"]
    """How the metrics of the classes become one."""


class FScoreAggregator(EvaluatorModel):
    """F-score over all classes."""

    type: Literal["fscore"]
    averaging: Literal["macro", "micro"]
    """How the metrics of the classes become one."""
    f_value: float = Field(default=1.0, gt=0, le=1000)
    """Beta: above 1 recall weighs more, below 1 precision."""


class ConfusionMatrixAggregator(EvaluatorModel):
    """The table of predicted against expected classes."""

    type: Literal["confusion_matrix"]


Aggregator: TypeAlias = Annotated[
    AveragedAggregator | FScoreAggregator | ConfusionMatrixAggregator, Field(discriminator="type")
]


class ExactMatchConfig(TextConfig):
    """Settings of `exact-match`."""

    classes: tuple[str, ...] | None = None
    """All classes for aggregators; case does not count."""
    aggregators: tuple[Aggregator, ...] | None = Field(
        default=None, examples=[[{"type": "fscore", "averaging": "macro"}]]
    )
    """Metrics over many results, where outputs name classes. They do not change the score."""

    @model_validator(mode="after")
    def _aggregators_can_be_computed(self) -> Self:
        if self.aggregators:
            classes = self.classes or ()
            if not classes:
                raise ValueError("classes: aggregators need the list of all classes")
            for name in classes:
                if not name or name != name.strip():
                    raise ValueError(f'classes: "{name[:100]}" is blank or begins or ends with white space')
            if len({name.lower() for name in classes}) != len(classes):
                raise ValueError("classes: two of them differ in case only, and case does not count")
            for name in ("line_by_line_evaluator", "case_sensitive", "negated"):
                if getattr(self, name):
                    raise ValueError(f"aggregators: cannot be computed from results with {name}")
        return self


class ExactMatchCriteria(OneKeyCriteria):
    """What to expect; exactly one of the keys."""

    expected_output: ExpectedObject | str | None = Field(
        default=None, examples=[{"city": "Oslo", "temperature": 21.5}]
    )
    """The final output to expect: a text, or an object, matchers such as {$range: [0, 30]} among its
    values."""
    ground_truth: str | list[str] | None = Field(default=None, examples=["4"])
    """The text that `config.extractor` should find, surrounding white space ignored; a list: one for each
    turn."""
    expected: str | None = None
    """The final output to expect, a text that is compared as it stands."""


class ExactMatch(_Grading):
    """Whether a text or value of the run equals the expected one.

    score = 1 when it does, else 0. With `expected_output`, what `target_output_key` names in the output is
    compared: as texts, without regard to case unless `case_sensitive`, where either side is a text (any
    other value becomes the text that Python prints), else by value. Integers count as floats, and true is
    1. `negated` reverses the result. `line_by_line_evaluator` takes the mean over lines
    (`processors.evaluators.output_match`). An expected object that contains matchers is compared as in
    `processors.comparison.expected_value`: case counts there, and a boolean is no number.

    With `expected` the output must be that text, character by character. With `ground_truth` the text that
    the extractor takes is compared, both sides trimmed (`processors.evaluators.output_match`).

    There is no empty expectation: an empty expected text equals the empty output.
    """

    id = "exact-match"

    def __init__(self, config: ExactMatchConfig, criteria: ExactMatchCriteria) -> None:
        self._config = config
        if criteria.expected_output is not None:
            config.refuse_unused("expected_output", _OUTPUT_SETTINGS | {"classes", "aggregators"})
            self._grade = self._of_output(criteria.expected_output)
        elif criteria.ground_truth is not None:
            config.refuse_unused("ground_truth", _EXTRACTOR_SETTINGS)
            self._grade_extracted(_equals, criteria.ground_truth, config)
        else:
            config.refuse_unused("expected", ())
            self._grade = partial(_compare_text, criteria.expected or "")

    def _of_output(self, written: JsonObject | str) -> Callable[[AgentRun], Score | NotEvaluated]:
        config = self._config
        target = OutputTarget(config.target_output_key)
        expected = target.in_expected(written)
        compiled = expected if isinstance(written, str) else compile_expected(expected)
        compare: _Comparison = self._compare
        if compiled is expected:
            expected = with_floats(expected)
        else:
            if config.line_by_line_evaluator and target.path is not None:
                raise ValueError("expected_output: a matcher stands for a value, not for lines")
            compare = partial(self._match, compiled, matching_cost(compiled))
        label = "not expected" if config.negated else "expected"
        return _OutputComparison(config, target, expected, lambda: compare, label).evaluate

    def _match(
        self, matching: Expected, cost: int, actual: JsonValue, _: JsonValue
    ) -> tuple[float, JsonObject] | NotEvaluated:
        try:
            if cost * len(python_text(actual)) <= MAX_MATCHED_CHARACTERS:
                return _verdict(fits(matching, actual), self._config.negated)
        except OverLimitError:
            pass
        return NotEvaluated.over_limit("output: takes too much work to match")

    def _compare(self, actual: JsonValue, expected: JsonValue) -> tuple[float, JsonObject] | NotEvaluated:
        equal: bool | None
        if isinstance(actual, str) or isinstance(expected, str):
            fold = not self._config.case_sensitive
            equal = same_text(python_text(expected), python_text(actual), fold=fold)
        else:
            equal = True if actual == expected else fits(expected, actual)
        return _verdict(equal, self._config.negated)


def _compare_text(expected: str, run: AgentRun) -> Score | NotEvaluated:
    output = _known_text(run)
    if isinstance(output, NotEvaluated):
        return output
    equal = same_text(expected, output)
    if equal is None:
        return MASKED_OUTPUT
    return Score(
        float(equal),
        {"expected": output_detail(expected), "actual": output_detail(output)},
        (f"expected: {output_line(expected)}", f"actual: {output_line(output)}"),
    )


class ContainsCriteria(OneKeyCriteria):
    """What to look for; exactly one of the keys."""

    search_text: str | None = Field(default=None, examples=["21.5 degrees"])
    """The text to look for in the final output."""
    ground_truth: str | list[str] | None = Field(default=None, examples=["New York"])
    """The text to look for in what `config.extractor` finds, case ignored; a list: one for each turn."""


class Contains(_Grading):
    """Whether a text of the run contains the expected one.

    score = 1 when it does, else 0. With `search_text`, the text of what `target_output_key` names in the
    output is searched, without regard to case unless `case_sensitive`; an object or list is searched as the
    text that Python prints, with integers as floats. `negated` reverses the result.
    `line_by_line_evaluator` looks for all of `search_text` in each line and takes the mean
    (`processors.evaluators.output_match`).

    With `ground_truth` the text that the extractor takes is searched, without regard to case
    (`processors.evaluators.output_match`).

    An empty `search_text` is in every text, so it scores 1 over any output.
    """

    id = "contains"

    def __init__(self, config: TextConfig, criteria: ContainsCriteria) -> None:
        text, fold = criteria.search_text, not config.case_sensitive
        if text is None:
            config.refuse_unused("ground_truth", _EXTRACTOR_SETTINGS)
            self._grade_extracted(_contains, criteria.ground_truth, config)
            return
        config.refuse_unused("search_text", _OUTPUT_SETTINGS)

        def compare(actual: JsonValue, _: JsonValue) -> tuple[float, JsonObject] | NotEvaluated:
            return _verdict(contains_text(python_text(actual), text, fold=fold), config.negated)

        label = "not to contain" if config.negated else "to contain"
        target = OutputTarget(config.target_output_key)
        self._grade = _OutputComparison(config, target, text, lambda: compare, label).evaluate


class RegexMatchCriteria(OneKeyCriteria):
    """What to find: exactly one of the two."""

    ground_truth: str | list[str] | None = Field(default=None, examples=[r"ORD-\d{6}"])
    """Regular expression to find in the extracted text; a list: one for each turn."""
    pattern: str | None = Field(default=None, examples=[r"^\d+$"])
    """Regular expression to find in the final output, which has to be a text."""


class RegexMatch(_Grading):
    r"""Whether a regular expression is found anywhere in a text.

    With `ground_truth` the text is what the extractor takes from the run, by default the last answer; an
    empty text scores 0. With a list, expression i is searched in turn i alone and the score is the mean.
    With `pattern` the text is the final output, which may be empty. score = 1 when the expression is found,
    else 0. There is no empty expectation.

    Expressions are written as for Python's `re`, without look-around and references to groups
    (`processors.texts.linear_regex`); case counts unless they contain `(?i)`.
    """

    id = "regex-match"

    def __init__(self, config: ExtractorSettings, criteria: RegexMatchCriteria) -> None:
        if criteria.pattern is None:
            self._grade_extracted(_matches, criteria.ground_truth, config)
        elif config.extractor_is_given:
            raise ValueError("pattern reads the final output: an extractor goes with ground_truth only")
        else:
            self._grade = partial(_search_output, compile_linear(criteria.pattern))


def _search_output(pattern: LinearPattern, run: AgentRun) -> Score | NotEvaluated:
    output = _known_text(run)
    if isinstance(output, NotEvaluated):
        return output
    if len(output) > MAX_SEARCHED_CHARACTERS:
        text = f"output: more than {MAX_SEARCHED_CHARACTERS} characters"
        return NotEvaluated.over_limit(text)
    if pattern.has_match(output) is None:
        return MASKED_OUTPUT
    matches = pattern.all_matches(output)
    if matches == []:
        return Score(0.0, {"matches": 0}, (f"No substrings matched the regex pattern {pattern.pattern}",))
    count = None if matches is None else len(matches)
    number = "too many to count" if count is None else f"{count}"
    line = f"There are {number} matches for the regex: {pattern.pattern}"
    return Score(1.0, {"matches": count}, (line,))


class AsciiPrintableOnly(_Grading):
    """Whether the extracted text has printable ASCII characters and line ends only.

    score = 1 when every character but line feeds and carriage returns is one of the 95 from space to tilde,
    else 0; a tab is none of them. The text is what the extractor takes from the run, by default the last
    answer. There is nothing to expect. An empty text, such as that of a run without messages, scores 0.
    """

    id = "ascii-printable-only"

    def __init__(self, config: ExtractorSettings, criteria: None = None) -> None:
        self._grade_extracted(lambda _: _is_printable, None, config)


class JsonSimilarityConfig(OutputConfig):
    """Settings of `json-similarity`."""

    max_text_length: int = Field(default=10_000, ge=0)
    """Texts with more characters are similar only if they are equal."""


class JsonSimilarityCriteria(EvaluatorModel):
    """The output to expect."""

    expected_output: dict[str, AnyJson] | str = Field(examples=[{"city": "Oslo", "temperature": 21.5}])
    """The output to expect, an object or a text."""


class JsonSimilarity(_Grading):
    """The share of the leaves of the expected output that the actual output meets.

    score = sum of how far each expected leaf is met / number of expected leaves
    (`processors.evaluators.output_match`); integers count as floats. What the output holds beyond the
    expected is free.

    An expected output without leaves, such as `{}`, scores 1 against anything. An output whose texts take
    more work to compare than is spent on one run is not evaluated.
    """

    id = "json-similarity"

    def __init__(self, config: JsonSimilarityConfig, criteria: JsonSimilarityCriteria) -> None:
        self._max_text_length = config.max_text_length
        target = OutputTarget(config.target_output_key)
        expected = with_floats(target.in_expected(criteria.expected_output))
        self._grade = _OutputComparison(config, target, expected, self._begin).evaluate

    def _begin(self) -> _Comparison:
        similarity = _LeafSimilarity(self._max_text_length)

        def compare(actual: JsonValue, expected: JsonValue) -> tuple[float, JsonObject] | NotEvaluated:
            unmeasured_before = similarity.unmeasured
            met, total = similarity.met(expected, actual), _leaves(expected)
            if similarity.is_over_limit:
                return NotEvaluated.over_limit(
                    f"output: texts take more than {MAX_EDIT_STEPS} steps to compare"
                )
            if similarity.is_masked:
                return MASKED_OUTPUT
            further: JsonObject = {"matched_leaves": met, "total_leaves": total}
            unmeasured = similarity.unmeasured - unmeasured_before
            if unmeasured:
                further["texts_compared_for_equality_only"] = unmeasured
            return min(1.0, met / total) if total else 1.0, further

        return compare


def _verdict(held: bool | None, negated: bool) -> tuple[float, JsonObject] | NotEvaluated:
    return MASKED_OUTPUT if held is None else (float(held != negated), _NO_DETAILS)


def _known_text(run: AgentRun) -> str | NotEvaluated:
    output = known_output(run)
    if isinstance(output, str | NotEvaluated):
        return output
    text = f"output: expected a text, found {kind_of(output)}"
    return NotEvaluated.not_applicable(text)


def _score_extracted(
    extraction: Extraction, judges: Sequence[_Judge], per_turn: bool, run: AgentRun
) -> Score | NotEvaluated:
    passes: list[bool] = []
    submissions: list[str] = []
    rationale = ""
    for index, judge in enumerate(judges):
        turn = index if per_turn else None
        submission = extraction.text(run, turn)
        if isinstance(submission, NotEvaluated):
            return submission
        verdict = judge(submission) if submission else (False, _no_match(run, turn))
        if isinstance(verdict, NotEvaluated):
            return verdict
        passed, rationale = verdict
        passes.append(passed)
        submissions.append(f"[Turn {turn}] {submission}" if per_turn else submission)
    if per_turn:
        marks = " ".join(["✓" if passed else "✗" for passed in passes])
        rationale = f"{sum(passes)}/{len(passes)} passed: {marks}"
    details: JsonObject = {"submission": " | ".join(submissions), "rationale": rationale}
    return Score(sum(passes) / len(passes), details, (rationale,))


def _no_match(run: AgentRun, turn: int | None) -> str:
    messages = any(turn is None or message.turn == turn for message in run.messages)
    if messages or (turn is None and run.calls):
        return "Empty submission - extractor found no content"
    return "Empty trajectory - agent produced no messages"


def _equals(truth: str) -> _Judge:
    trimmed = truth.strip()
    return lambda text: _judged("Exact match", same_text(trimmed, text.strip()))


def _contains(truth: str) -> _Judge:
    return lambda text: _judged("Contains ground_truth", contains_text(text, truth, fold=True))


def _matches(truth: str) -> _Judge:
    try:
        pattern = compile_linear(truth)
    except ValueError as refusal:
        raise ValueError(f"ground_truth: {refusal}") from None

    def judge(text: str) -> tuple[bool, str] | NotEvaluated:
        if len(text) > MAX_SEARCHED_CHARACTERS:
            return NotEvaluated.over_limit(f"the text has more than {MAX_SEARCHED_CHARACTERS} characters")
        return _judged("Regex match", pattern.has_match(text))

    return judge


def _judged(what: str, passed: bool | None) -> tuple[bool, str] | NotEvaluated:
    return _MASKED_TEXT if passed is None else (passed, f"{what}: {passed}")


def _is_printable(submission: str) -> tuple[bool, str] | NotEvaluated:
    offenders = sorted(set("".join(known_parts(submission))) - _PRINTABLE)
    if not offenders:
        if has_mask(submission):
            return _MASKED_TEXT
        return True, "All characters printable ASCII (ignoring newlines)"
    listed = ", ".join(map(repr, offenders[:_MAX_OFFENDERS]))
    more = f" (+{len(offenders) - _MAX_OFFENDERS} more)" if len(offenders) > _MAX_OFFENDERS else ""
    return False, f"Found non-printable ASCII characters: {listed}{more}"


class _OutputComparison:
    """Grades runs by what their output contains at the configured place.

    `begin` gives the comparison for one run, so that it may count its work.

    Line by line, line i of one side is compared with line i of the other, blank ones left out and a missing
    one counting as empty; the score is the mean, 0 without lines. A path that is more than one plain key
    means nothing in a line, so each line scores 0 then.
    """

    def __init__(
        self,
        config: OutputConfig,
        target: OutputTarget,
        expected: JsonValue,
        begin: Callable[[], _Comparison],
        label: str = "expected",
    ) -> None:
        self._target = target
        self._expected = expected
        self._expected_detail = output_detail(expected)
        self._expected_line = f"{label}: {output_line(expected)}"
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
        lines = [f"{key}: {member}" for key, member in further.items()]
        return Score(value, details, (self._expected_line, f"actual: {output_line(shown)}", *lines))

    def _score_lines(self, path: OutputPath, text: str, compare: _Comparison) -> Score | NotEvaluated:
        if has_mask(text):
            return MASKED_OUTPUT  # a mask may hide lines
        actual = self._lines(text)
        expected = self._lines(python_text(self._expected))
        number = max(len(actual), len(expected))
        if number > MAX_COMPARED_LINES:
            return NotEvaluated.over_limit(f"more than {MAX_COMPARED_LINES} lines")
        reachable = path.is_whole or path.is_one_key
        total = 0.0
        results: list[JsonValue] = []
        explained: list[str] = []
        for index, (line, expected_line) in enumerate(zip_longest(actual, expected, fillvalue="")):
            value, further = 0.0, _UNREACHABLE
            if reachable:
                compared = compare(line, expected_line)
                if isinstance(compared, NotEvaluated):
                    return compared
                value, further = compared
            total += value
            if value < 1.0 and len(explained) < _EXPLAINED_LINES:
                texts = f"expected: {output_line(expected_line)}, actual: {output_line(line)}"
                explained.append(f"line {index + 1}: {value:g}, {texts}")
            if index < _SHOWN_LINES:
                results.append(
                    {
                        "line_number": index + 1,
                        "actual": output_detail(line),
                        "expected": output_detail(expected_line),
                        "score": value,
                        **further,
                    }
                )
        details: JsonObject = {
            "line_by_line_results": results,
            "total_lines_actual": len(actual),
            "total_lines_expected": len(expected),
            "aggregation_method": "average",
            **({"lines_not_shown": number - _SHOWN_LINES} if number > _SHOWN_LINES else {}),
        }
        return Score(total / number if number else 0.0, details, (f"lines: {number}", *explained))

    def _lines(self, text: str) -> list[str]:
        return [line for line in text.split(self._delimiter) if line.strip()]


@dataclass(slots=True)
class _LeafSimilarity:
    """Compares values and counts the work that it takes.

    Longer texts than `max_text_length` are only compared for equality; `unmeasured` counts the pairs of
    different texts to which that happened. Once `is_over_limit` holds, similarities mean nothing.
    """

    max_text_length: int
    unmeasured: int = 0
    is_masked: bool = field(default=False, init=False)
    """Whether a mask stood where something is expected."""
    _steps: int = field(default=0, init=False)

    @property
    def is_over_limit(self) -> bool:
        """Whether the texts of all comparisons so far take more work than one run may."""
        return self._steps > MAX_EDIT_STEPS

    def met(self, expected: JsonValue, actual: JsonValue) -> float:
        """How many leaves of `expected` are met, each from 0 to 1.

        A leaf is a number, a text, a boolean or null; what is no leaf is an object or a list. Numbers are
        floats, and are met by 1 - |expected - actual| / |expected|, at least 0 (an expected 0 only by 0).
        Texts are met by 1 - edit distance / length of the longer one; booleans and null by themselves only.
        Objects are compared key by key and lists entry by entry, as far as something is expected: what is
        missing, or of another type, meets none of its leaves, and what is there beyond it costs nothing.
        """
        if isinstance(actual, str) and expected != actual and (has_mask(actual) or is_digest(actual)):
            self.is_masked = True
            return 0.0
        if isinstance(expected, dict):
            known = actual if isinstance(actual, dict) else {}
            self.is_masked = self.is_masked or (has_masked_key(known) and not expected.keys() <= known.keys())
            return sum((self.met(value, known[key]) for key, value in expected.items() if key in known), 0.0)
        if isinstance(expected, list):
            return sum(map(self.met, expected, actual), 0.0) if isinstance(actual, list) else 0.0
        if type(expected) is not type(actual):
            return 0.0
        if isinstance(expected, str) and isinstance(actual, str):
            return self._text(expected, actual)
        if isinstance(expected, float) and isinstance(actual, float):
            if abs(expected) <= _ZERO:
                return float(abs(actual) <= _ZERO)
            return max(0.0, 1.0 - abs(expected - actual) / abs(expected))
        return float(expected == actual)

    def _text(self, expected: str, actual: str) -> float:
        if expected == actual:
            return 1.0
        longer = max(len(expected), len(actual))
        if longer > self.max_text_length:
            self.unmeasured += 1
            return 0.0
        self._steps += edit_steps(expected, actual)
        if self.is_over_limit:
            return 0.0
        return 1.0 - edit_distance(expected, actual) / longer


def _leaves(value: JsonValue) -> int:
    """The number of leaves in `value`; an empty object or list has none."""
    if isinstance(value, dict):
        return sum(map(_leaves, value.values()))
    return sum(map(_leaves, value)) if isinstance(value, list) else 1
