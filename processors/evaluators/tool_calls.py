"""Evaluators of tool calls against expected ones: number, order, arguments and results.

`tool-call-count`, `tool-call-order`, `tool-call-args` and `tool-call-output`.
"""

import math
import operator
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import Field

from processors.comparison import (
    Expected,
    ExpectedCalls,
    ExpectedId,
    IncludeFailed,
    Matcher,
    OptionalCall,
    OptionalCalls,
    ToolCallConfig,
    ToolOrCallId,
    all_comparable_arguments,
    alternatives,
    arguments_detail,
    best_fitting_order,
    common_subsequence_length,
    comparable_result_text,
    comparable_result_value,
    compile_expected,
    detail_text,
    equal_values,
    fits,
    fits_members,
    is_oversized,
    lasting_alignment,
    matching_cost,
    ordered_keys,
    parallel_segments,
    unknown_arguments,
    unknown_result,
    value_written_in,
    without_failed,
)
from processors.documents import EvaluatorModel, ExpectedJson, ExpectedObject
from processors.model import (
    MAX_ASSIGNMENT_ATTEMPTS,
    MAX_EXPLANATION_CHARACTERS,
    MAX_MATCHED_CHARACTERS,
    MAX_ORDERED_CALLS,
    AgentRun,
    Evaluator,
    JsonObject,
    JsonValue,
    LateMapping,
    NotEvaluated,
    OverLimitError,
    RunFacts,
    Score,
    ToolCall,
    ToolKeys,
    canonical_tool_name,
    canonical_tool_names,
    may_be_masked,
)

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


_SCORES = ("0.0", "1.0")


class ToolCallCountConfig(ToolCallConfig):
    """Settings of `tool-call-count`."""

    include_failed: IncludeFailed = True


class ToolCallCountCriteria(EvaluatorModel):
    """Numbers of calls to expect."""

    tool_calls_count: dict[str, tuple[Operator, Annotated[int, Field(ge=0)]]] = Field(
        examples=[{"get_weather": ["=", 1], "delete_account": ["=", 0]}]
    )
    """For each tool name (or call id) an operator and a number of calls."""


class ToolCallCount(Evaluator):
    """The share of count criteria that hold; with `strict`, 1 when all hold, else 0.

    score = criteria with `calls operator count` / criteria. Tools that no criterion names are ignored; a tool
    never called has 0 calls. A key counts the calls whose id it is or whose name it spells
    (`processors.model.tool_name`).

    Empty criteria score 1 without calls and 0 with calls. A run without calls is graded with all counts 0.
    Strict details show only the first criterion, in written order, that fails.
    """

    id = "tool-call-count"
    over_calls = True
    quotes_content = False

    def __init__(self, config: ToolCallCountConfig, criteria: ToolCallCountCriteria) -> None:
        self._strict = config.strict
        self._include_failed = config.include_failed
        self._categories = config.categories()
        expected = criteria.tool_calls_count
        self._keys = ToolKeys(expected)
        self._names = [canonical_tool_name(key) for key in expected]
        self._positions = {key: position for position, key in enumerate(expected)}
        shown = {
            key: str(number) if symbol in ("=", "==") else f"{symbol} {number}"
            for key, (symbol, number) in expected.items()
        }
        # With each criterion the end of its line: where it does not hold, and where it does.
        self._expected = [
            (key, symbol, number, [f", Expected: {shown[key]}, Score: {score}" for score in _SCORES])
            for key, (symbol, number) in expected.items()
        ]
        self._expected_detail: JsonObject = {
            key: [symbol, number] for key, (symbol, number) in expected.items()
        }

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; always a score."""
        calls = self._counted(run)
        if not self._expected:
            text = _empty_text(bool(calls), "actual tool calls")
            return self._score(0.0 if calls else 1.0, calls, lambda: {"_result": text}, (f"_result: {text}",))
        counted = [
            (key, count, number, endings, _OPERATORS[symbol](count, number))
            for (key, symbol, number, endings), count in zip(self._expected, self._counts(calls), strict=True)
        ]
        met = sum([holds for *_, holds in counted])
        if self._strict and met < len(counted):
            met, counted = 0, [next(row for row in counted if not row[-1])]
        lines = [f"{key}: Actual: {count}{endings[holds]}" for key, count, _, endings, holds in counted]

        def explained() -> JsonObject:  # in the words of the reference package, without the operator
            return {
                key: f"Actual: {count}, Expected: {number}, Score: {_SCORES[holds]}"
                for key, count, number, _, holds in counted
            }

        return self._score(met / len(self._expected), calls, explained, tuple(lines))

    def attainable(self, run: AgentRun) -> tuple[float, float]:
        """Counts only grow: a criterion is settled once more calls cannot make it hold, or fail.

        Where failed calls do not count nothing is settled: later spans can show how a call ended.
        """
        if not self._include_failed:
            return 0.0, 1.0
        calls = self._counted(run)
        if not self._expected:
            return 0.0, float(not calls)
        certain = possible = 0
        for (_, symbol, number, _), count in zip(self._expected, self._counts(calls), strict=True):
            if symbol in (">", ">=", "!="):
                possible += 1
                certain += count >= number if symbol == ">=" else count > number
            else:
                possible += count < number if symbol == "<" else count <= number
        total = len(self._expected)
        if self._strict:
            return float(certain == total), float(possible == total)
        return certain / total, possible / total

    def _counted(self, run: AgentRun) -> Sequence[ToolCall]:
        calls = self._keys.select(run, self._categories)
        return calls if self._include_failed else without_failed(calls)

    def _counts(self, calls: Sequence[ToolCall]) -> list[int]:
        """The number of calls of each criterion."""
        by_name: dict[str, int] = {}
        for name in canonical_tool_names(calls):
            by_name[name] = by_name.get(name, 0) + 1
        counts = [by_name.get(name, 0) for name in self._names]
        positions = self._positions
        for call in calls:
            if call.call_id in positions:
                position = positions[call.call_id or ""]
                # A call that also matches by name was counted already.
                counts[position] += canonical_tool_name(call.name) != self._names[position]
        return counts

    def _score(
        self,
        value: float,
        calls: Sequence[ToolCall],
        explain: Callable[[], Mapping[str, JsonValue]],
        lines: tuple[str, ...],
    ) -> Score:
        def details() -> JsonObject:
            return {
                "expected": self._expected_detail,
                "actual": {**Counter([call.name for call in calls])},
                "explained_tool_calls_count": {**explain()},
            }

        return Score(value, LateMapping(details), lines)


def _empty_text(is_any: bool, what: str) -> str:
    """The explanation where calls, expected calls or both are missing."""
    return f"{'Either expected or' if is_any else 'Both expected and'} {what} are empty"


class ExpectedTool(EvaluatorModel):
    """One call to expect in an order."""

    name: ToolOrCallId
    optional: OptionalCall = False


class ToolCallOrderCriteria(EvaluatorModel):
    """The order to expect."""

    tool_calls_order: list[str | ExpectedTool] = Field(
        examples=[["get_temperature", {"name": "get_humidity", "optional": True}, "get_forecast"]]
    )
    """Tool names (or call ids) in the expected order, or objects."""


class ToolCallOrder(Evaluator):
    """How much of the expected order the calls follow.

    score = length of the longest common subsequence of calls and expected keys / expected keys; further
    calls cost nothing. Calls of one parallel group are taken in the order that fits best. With `strict`:
    1 when calls and keys match one by one as recorded, else 0. Of an order with `optional` keys the best
    score counts that it has with or without each of them.
    """

    id = "tool-call-order"
    over_calls = True
    quotes_content = False

    def __init__(self, config: ToolCallConfig, criteria: ToolCallOrderCriteria) -> None:
        self._strict = config.strict
        self._categories = config.categories()
        expected = [
            ExpectedTool(name=key) if isinstance(key, str) else key for key in criteria.tool_calls_order
        ]
        self._expected = [key.name for key in expected]
        self._width = len(expected)
        self._optional = OptionalCalls((key.optional for key in expected), in_order=True)
        self._keys = ToolKeys(self._expected)
        self._rows = ExpectedCalls([(key, None) for key in self._expected]).rows
        self._expected_detail: list[JsonValue] = [
            key.model_dump() if key.optional else key.name for key in expected
        ]
        self._shown = str([f"{key.name} (optional)" if key.optional else key.name for key in expected])

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; `over_limit` beyond the caps on calls and on the search over parallel groups."""
        calls = self._keys.select(run, self._categories)
        if len(calls) > MAX_ORDERED_CALLS:
            return NotEvaluated.over_limit(f"{len(calls)} tool calls, at most {MAX_ORDERED_CALLS}")
        actual = [call.name for call in calls]
        if actual == self._expected or not (actual or self._optional.required):  # needs no search
            return self._score(1.0, actual, actual)
        rows = self._rows(calls)
        value: float = 0.0
        best: Sequence[int] = ()
        for alternative, expected in self._optional.alternatives.items():
            if self._strict:
                keys = expected
                if len(keys) != len(rows) or not all(map(_fits_key, rows, keys)):
                    keys = ()
            else:
                own = self._optional.rows(rows, alternative)
                fitting = ordered_keys(calls, own, self._width)
                if fitting is None:
                    return NotEvaluated.over_limit("too many parallel tool calls to find the order that fits")
                keys, _ = fitting
            if len(keys) / len(expected) > value:
                value, best = len(keys) / len(expected), keys
            if value == 1.0:
                break
        return self._score(value, actual, [self._expected[key] for key in best])

    def attainable(self, run: AgentRun) -> tuple[float, float]:
        """Further calls cannot shorten a common subsequence, and can complete it.

        Only one call of a parallel group counts, since later spans may show its order. A strict order is lost
        once the calls so far do not all stand in it.
        """
        calls = self._keys.select(run, self._categories)
        if not self._width:
            return 0.0, float(not calls)
        if len(calls) > MAX_ORDERED_CALLS:
            return 0.0, 1.0
        rows = self._rows(calls)
        if self._strict:
            if len(calls) > self._width:
                return 0.0, 0.0
            order = best_fitting_order(rows, parallel_segments(calls))
            if order is not None:
                rows = [rows[position] for position in order]
                return 0.0, float(common_subsequence_length(rows, self._width) == len(rows))
            return 0.0, 1.0
        lasting = [
            lasting_alignment(calls, self._optional.rows(rows, keys), self._width) / keys.bit_count()
            for keys in self._optional.alternatives
        ]
        return max(lasting), 1.0

    def _score(self, value: float, actual: list[str], lcs: list[str]) -> Score:
        def details() -> JsonObject:
            return {"expected": self._expected_detail, "actual": [*actual], "lcs": [*lcs]}

        lines = (f"expected: {self._shown}", f"actual: {self._text(actual)}", f"lcs: {self._text(lcs)}")
        return Score(value, LateMapping(details), lines)

    def _text(self, names: list[str]) -> str:
        return self._shown if names == self._expected_detail else str(names)


def _fits_key(row: int, key: int) -> bool:
    return bool(row >> key & 1)


class ToolCallArgsConfig(ToolCallConfig):
    """Settings of `tool-call-args`."""

    subset: bool = True
    """Whether a call may have further arguments; false: the expected ones and no other."""
    calls: Literal["any", "every", "first", "last"] = "any"
    """Which calls of an expected tool have to fit: any, one that no other expectation took; every, all of
    them; first; last."""


class ExpectedToolCall(EvaluatorModel):
    """One call to expect."""

    name: ToolOrCallId
    args: ExpectedObject = Field(examples=[{"city": "London", "days": {"$range": [1, 7]}}])
    """Expected arguments with their values, matchers such as {$glob: Lon*} among them."""
    id: ExpectedId = None


class ToolCallArgsCriteria(EvaluatorModel):
    """Calls to expect, in any order."""

    tool_calls: list[ExpectedToolCall] = Field(
        examples=[[{"name": "get_weather", "args": {"city": "Tokyo"}}]]
    )
    """Calls to expect, in any order."""


class ToolCallOutputConfig(ToolCallConfig):
    """Settings of `tool-call-output`."""

    comparison: Literal["text", "json"] = "text"
    """How an expected text is compared: text, character by character; json, as the value that both texts
    write. Other expected values are always compared by value."""


class ExpectedToolOutput(EvaluatorModel):
    """One output to expect."""

    name: ToolOrCallId
    output: ExpectedJson = Field(examples=["sunny", {"temperature": {"$range": [-20, 45]}}])
    """Expected output: a text, any other JSON value, or a matcher such as {$regex: ^ok}."""
    id: ExpectedId = None


class ToolCallOutputCriteria(EvaluatorModel):
    """Outputs to expect, in any order."""

    tool_outputs: list[ExpectedToolOutput] = Field(
        examples=[[{"name": "get_weather", "output": {"temperature": 25.0}}]]
    )
    """Outputs to expect, in any order."""


@dataclass(slots=True)
class _Assignment:
    """The result of all attempts.

    `attempts` contains (expectation, call, fits) in the order tried, with `fits` None where the call's value
    is not known, or masks in it leave that open. `unknown` is the first such call. `doubtful` is the first
    call that fits an expectation and would have gone to an earlier one if it fitted that. `unmatched` is the
    expectation at which a search for the first call only ended because no call of its tool was left.
    """

    fitted: int = 0
    attempts: list[tuple[int, int, bool | None]] = field(default_factory=list)
    unknown: int | None = None
    doubtful: int | None = None
    unmatched: int | None = None


_Values: TypeAlias = Sequence[JsonObject | str | None]
"""Of each call what is compared, its arguments or the text that it returned; None where it is not known."""
_Test: TypeAlias = Callable[[int, int], bool | None]
"""Whether a call, by its position, fits the expectation of that number; None: that is not known."""


_SHOWN_ATTEMPTS = 20


def _anything(_: object) -> bool:
    return True


class _FirstFit(Evaluator):
    """What `tool-call-args` and `tool-call-output` share: expected calls take actual ones, first fit.

    Each expectation, in written order, takes the first call that is of its tool, not taken yet, and fits.
    With an id it means the calls with that id and, by name, those that have no id; without, the calls whose
    name or id is its name. Order is not compared. The assignment is greedy on purpose: it is the rule of the
    evaluation sets that these evaluators read, and every attempt appears in the details.
    """

    over_calls = True
    first_only = False
    """Only the first free call of an expectation is tried, and the search ends at the first that misfits."""
    _unknown: Callable[[ToolCall], NotEvaluated]
    """The answer where what is compared of a call is needed and not known."""
    _noun: ClassVar[str]
    _empty: ClassVar[str]
    """What is compared, and what is empty without calls, in sentences."""
    _member: ClassVar[str]
    _attempted: ClassVar[str]
    """The keys of details under which a call has its value, and under which the attempts stand."""
    _easy: Sequence[Callable[[Any], bool] | None]
    """For each expectation a quick test of a known value, or `_anything`; None: it takes a comparison."""
    _costs: Sequence[int]
    """For each expectation what a character of a call costs to compare with its matchers."""

    @abstractmethod
    def _values(self, calls: Sequence[ToolCall]) -> _Values:
        """What is compared of each call; None where it is not known."""

    @abstractmethod
    def _comparison(self, calls: Sequence[ToolCall], values: _Values) -> _Test:
        """The test of calls whose value is known."""

    def _prepare(
        self,
        config: ToolCallConfig,
        expected: Sequence[ExpectedToolCall | ExpectedToolOutput],
        values: Sequence[JsonValue],
    ) -> None:
        self._strict = config.strict
        self._categories = config.categories()
        self._keys = ToolKeys(text for call in expected for text in (call.name, call.id) if text is not None)
        self._expected_calls = [(canonical_tool_name(call.name), call.name, call.id) for call in expected]
        self._ids = frozenset(call.name if call.id is None else call.id for call in expected)
        # For each expectation the end of an attempt's line: where a call misfits, and where it fits.
        shown = [detail_text(str(value)) for value in values]
        self._endings = [
            (f", Expected: {text}, Score: 0.0", f", Expected: {text}, Score: 1.0") for text in shown
        ]
        self._detail: list[JsonValue] = [
            {"name": call.name, self._member: value, "id": call.id}
            for call, value in zip(expected, values, strict=True)
        ]

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`: not evaluated where a value that is needed is not known, and beyond caps."""
        calls = self._keys.select(run, self._categories)
        values = self._values(calls)
        expected = self._expected_calls
        if not calls or not expected:
            is_any = bool(calls or expected)
            return self._score(
                float(not is_any), calls, values, {"_result": _empty_text(is_any, self._empty)}
            )
        assignment = self._assign(calls, values)
        if assignment is None:
            return _over_limit(self._noun)
        fitted, attempts = assignment.fitted, assignment.attempts
        if assignment.doubtful is not None:
            return self._unknown(calls[assignment.doubtful])
        if fitted < len(expected):
            if assignment.unknown is not None:
                return self._unknown(calls[assignment.unknown])
            if assignment.unmatched is not None:
                text = f"No matching actual tool call found for expected {expected[assignment.unmatched][1]}"
                return self._score(0.0, calls, values, {"_result": text})
            if self.first_only:
                key, text = self._explained(calls, attempts, values).popitem()
                return self._score(0.0, calls, values, {key: text})
            if self._strict:
                fitted = 0
        first = self._explained(calls, attempts, values, MAX_EXPLANATION_CHARACTERS)
        return self._score(
            fitted / len(expected), calls, values, first, lambda: self._explained(calls, attempts, values)
        )

    def attainable(self, run: AgentRun) -> tuple[float, float]:
        """A further call never unfits an expectation under first fit, and can fit any that is open.

        Where the first call of a tool alone counts, a further one can come first and decide either way.
        """
        calls = self._keys.select(run, self._categories)
        if not self._expected_calls:
            return 0.0, float(not calls)
        assignment = None if self.first_only else self._assign(calls, self._values(calls))
        if assignment is None or assignment.doubtful is not None:
            return 0.0, 1.0
        if self._strict:
            return float(assignment.fitted == len(self._expected_calls)), 1.0
        return assignment.fitted / len(self._expected_calls), 1.0

    def _assign(self, calls: Sequence[ToolCall], values: _Values) -> _Assignment | None:
        """Try the calls of each expectation in order, passing over unknown values; None over the limits."""
        try:
            return self._assigned(calls, self._test(calls, values))
        except OverLimitError:
            return None

    def _assigned(self, calls: Sequence[ToolCall], test: _Test) -> _Assignment:
        names = canonical_tool_names(calls)
        ids = self._ids
        free_by_name: dict[str, list[int]] = {}
        by_id: dict[str, list[int]] = {}
        for position, call in enumerate(calls):
            free_by_name.setdefault(names[position], []).append(position)
            if call.call_id in ids:
                by_id.setdefault(call.call_id or "", []).append(position)

        result = _Assignment()
        used: set[int] = set()
        open_to: set[int] = set()
        for index, (name, text, call_id) in enumerate(self._expected_calls):
            candidates: Sequence[int] = free_by_name.get(name, ())
            if call_id is not None:
                unnamed = [position for position in candidates if calls[position].call_id is None]
                candidates = sorted({*unnamed, *by_id.get(call_id, ())} - used)
            elif text in by_id:
                candidates = sorted({*candidates, *by_id[text]} - used)
            if self.first_only and not candidates:
                result.unmatched = index
                return result
            for position in candidates:
                verdict = test(index, position)
                result.attempts.append((index, position, verdict))
                if verdict:
                    result.fitted += 1
                    is_easy = self._easy[index] is _anything
                    if position in open_to and not is_easy and result.doubtful is None:
                        result.doubtful = position
                    free_by_name[names[position]].remove(position)  # not read further: the loop ends here
                    if by_id:
                        used.add(position)
                    break
                if verdict is None:
                    open_to.add(position)
                    if result.unknown is None:
                        result.unknown = position
                if self.first_only:
                    return result
        return result

    def _test(self, calls: Sequence[ToolCall], values: _Values) -> _Test:
        """The test of all calls; it raises OverLimitError once it was made too often, or read too much."""
        compare: _Test | None = None
        attempts, budget = MAX_ASSIGNMENT_ATTEMPTS, MAX_MATCHED_CHARACTERS

        def fit(index: int, position: int) -> bool | None:
            nonlocal attempts, budget, compare
            attempts -= 1
            if attempts < 0:
                raise OverLimitError
            easy, value = self._easy[index], values[position]
            if easy is _anything:
                return True
            if value is None:
                return None
            text = value if isinstance(value, str) else calls[position].arguments_text
            if is_oversized(text):
                return None
            if easy is not None:
                verdict = easy(value)
                if verdict or not may_be_masked(text):
                    return verdict
            budget -= (len(text or "") + 1) * self._costs[index]
            if budget < 0:
                raise OverLimitError
            if compare is None:
                compare = self._comparison(calls, values)
            return compare(index, position)

        return fit

    def _explained(
        self,
        calls: Sequence[ToolCall],
        attempts: Iterable[tuple[int, int, bool | None]],
        values: _Values,
        room: float = math.inf,
    ) -> dict[str, str]:
        """What was compared, by `{tool}_{number of the attempt}`, of as many attempts as fill `room`."""
        explained: dict[str, str] = {}
        tries: dict[str, int] = {}
        shown: dict[int, str] = {}
        for index, position, is_fit in attempts:
            name = calls[position].name
            number = tries.get(name, 0)
            tries[name] = number + 1
            value_text = shown.get(position)
            if value_text is None:
                value_text = shown[position] = _shown(calls[position], values[position])
            text = f"Actual: {value_text}{self._endings[index][bool(is_fit)]}"
            explained[f"{name}_{number}"] = text
            room -= len(name) + len(text)
            if room < 0:
                break
        return explained

    def _score(
        self,
        value: float,
        calls: Sequence[ToolCall],
        values: _Values,
        first: Mapping[str, JsonValue],
        explained: Callable[[], Mapping[str, JsonValue]] | None = None,
    ) -> Score:
        """A score with what was compared: `first` in the explanation; in the details all, if that is more."""

        def details() -> JsonObject:
            actual: list[JsonValue] = [
                {"name": call.name, self._member: known, "id": call.call_id}
                for call, known in zip(calls, values, strict=True)
            ]
            attempts = first if explained is None else explained()
            return {"expected": self._detail, "actual": actual, self._attempted: {**attempts}}

        return Score(value, LateMapping(details), tuple([f"{key}: {text}" for key, text in first.items()]))


def _shown(call: ToolCall, value: JsonObject | str | None) -> str:
    """What is compared of `call`, as explanations show it."""
    return detail_text(value) if isinstance(value, str) else arguments_detail(call, value)


class ToolCallArgs(_FirstFit):
    """The share of expected calls that were made with the expected arguments.

    score = expected calls that an own actual call fits / expected calls; with `strict`, 1 when all are
    fitted, else 0. A call fits when every expected argument is there with an equal value
    (`processors.comparison.value_equality`), or one that meets its matcher
    (`processors.comparison.expected_value`), and, with `subset: false`, no other. Calls are assigned first
    fit in written order (`processors.evaluators.tool_calls`); order and failures of calls do not matter.

    With `calls: every` an expectation is met when all calls of its tool fit it, and with `first` or `last`
    when that one does; several expectations may then be met by the same call. Without a call of its tool it
    is not met: for calls that need not be made use `tool-constraints`.

    Unless everything is fitted anyway, a call of an expected tool whose arguments are not known makes the run
    not evaluated.
    """

    id = "tool-call-args"
    _noun, _empty = "arguments", "actual tool calls"
    _member, _attempted = "args", "explained_tool_calls_args"
    _unknown = staticmethod(unknown_arguments)

    def __init__(self, config: ToolCallArgsConfig, criteria: ToolCallArgsCriteria) -> None:
        written = [call.args for call in criteria.tool_calls]
        self._prepare(config, criteria.tool_calls, written)
        self._calls = config.calls
        self._subset = config.subset
        self._expected = [compile_expected(arguments) for arguments in written]
        self._costs = [matching_cost(expected) for expected in self._expected]
        self._easy = [
            _literal_test(arguments, config.subset) if compiled is arguments else None
            for arguments, compiled in zip(written, self._expected, strict=True)
        ]

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`: not evaluated where a value that is needed is not known, and beyond caps."""
        calls = [] if self._calls == "any" else self._keys.select(run, self._categories)
        if not calls or not self._expected_calls:
            return super().evaluate(run, facts)
        values = self._values(calls)
        attempts = self._attempts(calls, values)
        if attempts is None:
            return _over_limit(self._noun)
        places = {id(call): place for place, call in enumerate(run.calls, 1)}
        explained: dict[str, str] = {}
        met = 0
        for index, tried in enumerate(attempts):
            misfits = [position for position, verdict in tried if verdict is False]
            unknown = [position for position, verdict in tried if verdict is None]
            if unknown and not misfits:
                return self._unknown(calls[unknown[0]])
            met += bool(tried) and not misfits
            if not tried:
                explained[f"{self._expected_calls[index][1]} (no call)"] = self._endings[index][0][2:]
            for position in misfits or [position for position, _ in tried]:
                key = f"{calls[position].name} (call {places[id(calls[position])]})"
                text = f"Actual: {_shown(calls[position], values[position])}"
                text += self._endings[index][not misfits]
                explained[key] = f"{explained[key]}; {text}" if key in explained else text
        value = 0.0 if self._strict and met < len(attempts) else met / len(attempts)
        first = dict(islice(explained.items(), _SHOWN_ATTEMPTS))
        return self._score(value, calls, values, first, lambda: explained)

    def attainable(self, run: AgentRun) -> tuple[float, float]:
        """Further calls can misfit, or be the first or the last; one that misfits every stays."""
        if self._calls == "any" or not self._expected_calls:
            return super().attainable(run)
        calls = self._keys.select(run, self._categories)
        attempts = self._attempts(calls, self._values(calls)) if self._calls == "every" else None
        if attempts is None:
            return 0.0, 1.0
        lost = sum(any(verdict is False for _, verdict in tried) for tried in attempts)
        return 0.0, float(not lost) if self._strict else (len(attempts) - lost) / len(attempts)

    def _attempts(
        self, calls: Sequence[ToolCall], values: _Values
    ) -> list[list[tuple[int, bool | None]]] | None:
        """For each expectation the calls that it is about, and whether they fit; None: over the limits."""
        test = self._test(calls, values)
        names = canonical_tool_names(calls)
        attempts: list[list[tuple[int, bool | None]]] = []
        try:
            for index, (name, text, call_id) in enumerate(self._expected_calls):
                own = [
                    position
                    for position, call in enumerate(calls)
                    if (names[position] == name and (call_id is None or call.call_id is None))
                    or call.call_id == (text if call_id is None else call_id)
                ]
                own = own[:1] if self._calls == "first" else own[-1:] if self._calls == "last" else own
                attempts.append([(position, test(index, position)) for position in own])
        except OverLimitError:
            return None
        return attempts

    def _values(self, calls: Sequence[ToolCall]) -> _Values:
        return all_comparable_arguments(calls)

    def _comparison(self, calls: Sequence[ToolCall], values: _Values) -> _Test:
        def compare(index: int, position: int) -> bool | None:
            expected, actual = self._expected[index], values[position]
            if isinstance(expected, dict) and isinstance(actual, dict):
                return fits_members(expected, actual, subset=self._subset)
            return fits(expected, actual)

        return compare


def _over_limit(noun: str) -> NotEvaluated:
    return NotEvaluated.over_limit(f"more than {MAX_ASSIGNMENT_ATTEMPTS} comparisons of {noun}")


def _literal_test(expected: JsonObject, subset: bool) -> Callable[[JsonObject], bool]:
    """The test of arguments where no matcher is expected: as Python compares dicts.

    That is `equal_values`, but for booleans, which Python takes for 0 and 1.
    """
    if subset and not expected:
        return _anything
    items = expected.items()
    are_booleans = _boolean_test(expected)

    def are_in(actual: JsonObject) -> bool:
        if not items <= actual.items() or not (subset or len(actual) == len(items)):
            return False
        return are_booleans is None or are_booleans(actual)

    return are_in


def _boolean_test(expected: JsonValue) -> Callable[[Any], bool] | None:
    """Whether a value equal for Python has its booleans where `expected` has them; None: always."""
    if isinstance(expected, dict):
        tests = [(name, test) for name, value in expected.items() if (test := _boolean_test(value))]

        def are_booleans(actual: JsonObject) -> bool:
            for name, test in tests:  # noqa: SIM110  # a generator costs more than the one or two tests
                if not test(actual[name]):
                    return False
            return True

        return are_booleans if tests else None
    if isinstance(expected, list):
        return partial(equal_values, expected) if any(map(_boolean_test, expected)) else None
    if expected in (0, 1):
        is_boolean = isinstance(expected, bool)
        return lambda actual: isinstance(actual, bool) is is_boolean
    return None


class ToolCallOutput(_FirstFit):
    """The share of expected outputs that calls returned.

    score = expected outputs that an own actual call fits / expected outputs. An expected text must equal
    the output's text; any other expected value must equal the value of the output, where a text output is
    read as JSON, else as a Python literal, else stays a text, and an expected null also accepts an empty
    output. A matcher of texts (`$regex`, `$glob`) is compared with the text, any other one with the value
    (`processors.comparison.expected_value`). Calls are assigned first fit in written order
    (`processors.evaluators.tool_calls`).

    With `strict` each expectation is compared with the first free call of its tool only, and the first that
    does not fit, or has no call left, makes the score 0.

    Unless everything is fitted anyway, a call of an expected tool whose output is not known makes the run not
    evaluated.
    """

    id = "tool-call-output"
    _noun, _empty = "outputs", "actual tool calls outputs"
    _member, _attempted = "output", "explained_tool_calls_outputs"
    _unknown = staticmethod(unknown_result)

    def __init__(self, config: ToolCallOutputConfig, criteria: ToolCallOutputCriteria) -> None:
        written = [output.output for output in criteria.tool_outputs]
        self._prepare(config, criteria.tool_outputs, written)
        self.first_only = config.strict
        compiled = [compile_expected(output) for output in written]
        self._costs = [matching_cost(output) for output in compiled]
        # For each expectation its alternatives: (compared as text, expected value).
        self._expected = [
            [_as_compared(option, config.comparison) for option in alternatives(output)]
            for output in compiled
        ]
        self._easy = [
            partial(operator.eq, option)
            if len(options) == 1 and as_text and isinstance(option, str)
            else None
            for options in self._expected
            for as_text, option in options[:1]
        ]

    def _values(self, calls: Sequence[ToolCall]) -> _Values:
        return [comparable_result_text(call) for call in calls]

    def _comparison(self, calls: Sequence[ToolCall], values: _Values) -> _Test:
        read: dict[int, JsonValue] = {}

        def compare(index: int, position: int) -> bool | None:
            text = str(values[position] or "")
            known: bool | None = False
            for as_text, expected in self._expected[index]:
                if as_text:
                    verdict = fits(expected, text)
                elif expected is None and not text:
                    return True
                else:
                    if position not in read:
                        read[position] = comparable_result_value(calls[position], text)
                    verdict = fits(expected, read[position])
                if verdict:
                    return True
                known = None if verdict is None else known
            return known

        return compare


def _as_compared(expected: Expected, comparison: Literal["text", "json"]) -> tuple[bool, Expected]:
    """Whether `expected` is compared with the text of an output, and what is expected then."""
    if isinstance(expected, Matcher):
        return expected.reads_text, expected
    if not isinstance(expected, str):
        return False, expected
    return (True, expected) if comparison == "text" else (False, value_written_in(expected))
