"""Evaluators `trajectory-*`: the calls of a run compared with the expected calls.

One mechanism finds which calls can stand for which expected ones, and how many expected calls are matched, in
their order or in any. Each evaluator is a row of a table: which of the two, what the score makes of the
matches, and whether further calls lower it. `trajectory-exact` alone has a rule of its own.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, TypeAlias

from pydantic import Field

from processors.comparison import (
    Expected,
    ExpectedCalls,
    ExpectedId,
    IncludeFailed,
    OptionalCall,
    OptionalCalls,
    ToolOrCallId,
    ToolSelectionConfig,
    all_fit,
    argument_names,
    call_label,
    comparable_arguments,
    compile_expected,
    fits,
    fits_among,
    fits_members,
    keys_of,
    lasting_alignment,
    mask_of,
    matching_cost,
    matching_size,
    maximum_matching,
    ordered_keys,
    parallel_segments,
    readable_arguments,
    unknown_arguments,
    without_failed,
)
from processors.documents import EvaluatorModel, ExpectedJson
from processors.model import (
    MAX_ASSIGNMENT_ATTEMPTS,
    MAX_ORDERED_CALLS,
    AgentRun,
    Evaluator,
    JsonObject,
    JsonValue,
    NotEvaluated,
    OverLimitError,
    RunFacts,
    Score,
    ToolCall,
    ToolKeys,
    has_mask,
)

_SHOWN_CALLS = 20
_SHOWN_ARGUMENTS = 80
_SHOWN_REFUSALS = 5
_COMPARED_CHARACTERS = 1000
"""Characters of arguments with matchers that count as one comparison."""

ArgumentMode: TypeAlias = Literal["exact", "partial", "partial_deep", "subset", "ignore"]
"""How expected and actual arguments are compared, always in the direction "actual satisfies expected":

- `exact`: the expected arguments and no other.
- `partial`: every expected argument with an equal value; the call may have further ones.
- `partial_deep`: as `partial`, at every depth of objects; lists have equal length.
- `subset`: every argument of the call is expected with an equal value; none is demanded.
- `ignore`: any arguments.
"""


class TrajectoryConfig(ToolSelectionConfig):
    """Settings of the `trajectory-*` evaluators."""

    args_match: ArgumentMode = "exact"
    """How the arguments of expected calls that name any are compared: exact, these and no other; partial,
    these and maybe others; partial_deep, partial at every depth; subset, none but these; ignore, not at
    all."""
    ignore_args: tuple[str, ...] = Field(default=(), examples=[["request_id", "*_at"]])
    """Names of arguments, as globs, that are left out on both sides."""
    include_failed: IncludeFailed = True


class ExpectedCall(EvaluatorModel):
    """One call to expect."""

    name: ToolOrCallId
    args: dict[str, ExpectedJson] | None = None
    """Expected arguments with their values, matchers such as {$glob: Lon*} among them; left out, any will
    do."""
    id: ExpectedId = None
    args_match: ArgumentMode | None = None
    """How the arguments of this call are compared, if not as configured."""
    occurrence: Literal["any", "first", "last", "all"] | int = "any"
    """Which calls of the tool may stand for this one: any; the first; the last; a position from 0; or all,
    any of them once all of them fit."""
    optional: OptionalCall = False


class TrajectoryCriteria(EvaluatorModel):
    """The calls to expect."""

    tool_calls: list[str | ExpectedCall] = Field(
        examples=[["search_flights", {"name": "book_flight", "args": {"seat": "4A"}}]]
    )
    """The calls to expect, in order: tool names, or objects with arguments."""


_Share: TypeAlias = Literal["all", "precision", "recall", "f1"]
_SHARES: Mapping[_Share, Callable[[int, int, int], float]] = {
    "all": lambda matched, calls, expected: float(matched == expected),
    "precision": lambda matched, calls, expected: matched / calls,
    "recall": lambda matched, calls, expected: matched / expected,
    "f1": lambda matched, calls, expected: 2 * matched / (calls + expected),
}
"""What scores are made of: the numbers of matches, of calls and of expected calls."""


@dataclass(slots=True)
class _CallRows:
    """The calls of a run, and for each the expected calls that it can stand for, as bits.

    `certain` holds what is known; `possible` also what holds if arguments that are not known fit. `unknown`
    is the first call whose arguments made a difference.
    """

    calls: Sequence[ToolCall]
    certain: list[int]
    possible: list[int]
    unknown: ToolCall | None = None


class _Alignment(NamedTuple):
    """The score, and for each expected call the position of the call that stands for it, or -1."""

    value: float
    assigned: Sequence[int]


class _Trajectory(Evaluator):
    """What the evaluators share; raises ValueError for a matcher that cannot be used.

    An expected call that is `optional` makes two alternatives, with it and without it, and the best score of
    all of them is the score. Where order does not count that is a matching that serves what is required
    first: an optional call that it serves raises every score, and one that it does not lowers them.
    """

    over_calls = True
    in_order: ClassVar[bool] = False
    """Whether matches are those of a longest common subsequence, else those of a maximum matching."""
    further_calls_cost: ClassVar[bool] = False
    """Whether calls that match nothing lower the score."""
    share: ClassVar[_Share] = "all"
    """What the score makes of the number of matches."""

    def __init__(self, config: TrajectoryConfig, criteria: TrajectoryCriteria) -> None:
        expected = [
            ExpectedCall(name=call) if isinstance(call, str) else call for call in criteria.tool_calls
        ]
        self._share = _SHARES[self.share]
        self._width = len(expected)
        self._optional = OptionalCalls((call.optional for call in expected), in_order=self.in_order)
        self._categories = config.categories()
        self._include_failed = config.include_failed
        self._keys = ToolKeys(text for call in expected for text in (call.name, call.id) if text is not None)
        self._matches = [
            _ArgumentMatch(call.args, call.args_match or config.args_match, config.ignore_args)
            for call in expected
        ]
        self._demanding = mask_of(
            key for key, match in enumerate(self._matches) if not match.accepts_anything
        )
        self._occurrences = [call.occurrence for call in expected]
        self._selective = mask_of(key for key, call in enumerate(expected) if call.occurrence != "any")
        self._row = ExpectedCalls([(call.name, call.id) for call in expected]).row
        self._labels = [
            call.name if call.args is None else call_label(call.name, call.args) for call in expected
        ]
        self._detail: list[JsonValue] = [
            {
                "name": call.name,
                "args": call.args,
                "id": call.id,
                **({"optional": True} if call.optional else {}),
            }
            for call in expected
        ]
        shown = [
            f"{label} (optional)" if call.optional else label
            for label, call in zip(self._labels, expected, strict=True)
        ]
        self._line = f"expected: {_listed(shown)}"

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; not evaluated where unknown arguments decide, and beyond caps."""
        rows = self._rows(run)
        if isinstance(rows, NotEvaluated):
            return rows
        calls = rows.calls
        if not calls or not self._width:
            value = 0.0 if calls or self._optional.required else 1.0
            return self._score(_Alignment(value, [-1] * self._width), calls, run)
        alignment = self._measure(calls, rows.certain)
        if alignment is None:
            return NotEvaluated.over_limit("too many parallel tool calls to find the order that fits")
        if rows.unknown is not None:
            best = self._measure(calls, rows.possible)
            if best is None or best.value != alignment.value:
                return unknown_arguments(rows.unknown)
        return self._score(alignment, calls, run)

    def attainable(self, run: AgentRun) -> tuple[float, float]:
        """What further calls can do, which may match whatever is still open, or nothing.

        Where they cost nothing, a match stays one, and all that is open can be matched. Where they cost, any
        number of them may match nothing; at best each matches what is still open (no order aligns more calls
        than a matching does). Further calls can change which one is the first or the last of its tool, so an
        expectation with an `occurrence` counts for nothing in what lasts, and for any call of its tool in
        what is possible.
        """
        rows = self._rows(run, by_occurrence=False)
        if isinstance(rows, NotEvaluated):
            return 0.0, 1.0
        return self._bounds(rows.calls, [row & ~self._selective for row in rows.certain], rows.possible)

    def _bounds(
        self, calls: Sequence[ToolCall], certain: Sequence[int], possible: Sequence[int]
    ) -> tuple[float, float]:
        width = self._width
        if not width:
            return 0.0, float(not calls)
        if self.further_calls_cost:
            still_open = width - matching_size(possible, width)
            return 0.0, self._share(width, len(calls) + still_open, width)
        if not self.in_order:
            return self._matched(calls, certain).value, 1.0
        lasting = [
            self._value(
                lasting_alignment(calls, self._optional.rows(certain, keys), width), calls, keys.bit_count()
            )
            for keys in self._optional.alternatives
        ]
        return max(lasting), 1.0

    def _measure(self, calls: Sequence[ToolCall], rows: Sequence[int]) -> _Alignment | None:
        """The score of `calls`, at least one, with their `rows`; None when the search was given up."""
        if not self.in_order:
            return self._matched(calls, rows)
        best: _Alignment | None = None
        for keys in self._optional.alternatives:
            assigned = self._aligned(calls, self._optional.rows(rows, keys))
            if assigned is None:
                return None
            value = self._share(self._width - assigned.count(-1), len(calls), keys.bit_count())
            if best is None or value > best.value:
                best = _Alignment(value, assigned)
            if value == 1.0:
                break
        return best

    def _matched(self, calls: Sequence[ToolCall], rows: Sequence[int]) -> _Alignment:
        assigned = maximum_matching(rows, self._width, self._optional.required_first)
        matched = self._width - assigned.count(-1)
        return _Alignment(self._value(matched, calls, self._optional.counted(assigned)), assigned)

    def _value(self, matched: int, calls: Sequence[ToolCall], expected: int) -> float:
        """The score; 0 where nothing is expected, or nothing was called."""
        return self._share(matched, len(calls), expected) if expected and calls else 0.0

    def _aligned(self, calls: Sequence[ToolCall], rows: Sequence[int]) -> list[int] | None:
        """For each expected call the position of its call in order, or -1; None: the search was given up."""
        fitting = ordered_keys(calls, rows, self._width)
        if fitting is None:
            return None
        keys, order = fitting
        assigned = [-1] * self._width
        following = iter(order)
        for key in keys:
            for position in following:
                if rows[position] >> key & 1:
                    assigned[key] = position
                    break
        return assigned

    def _rows(self, run: AgentRun, *, by_occurrence: bool = True) -> _CallRows | NotEvaluated:
        """Which calls can stand for which expected ones; `by_occurrence`: as the run stands."""
        calls = self._keys.select(run, self._categories)
        if not self._include_failed:
            calls = without_failed(calls)
        if len(calls) > MAX_ORDERED_CALLS:
            return NotEvaluated.over_limit(f"{len(calls)} tool calls, at most {MAX_ORDERED_CALLS}")
        compared = self._compare(calls)
        if isinstance(compared, NotEvaluated) or not (self._selective and by_occurrence):
            return compared
        of_tool: dict[int, list[int]] = {}
        for position, call in enumerate(calls):
            for key in keys_of(self._row(call) & self._selective):
                of_tool.setdefault(key, []).append(position)
        for key, positions in of_tool.items():
            for rows in (compared.certain, compared.possible):
                _select_occurrence(1 << key, self._occurrences[key], positions, rows)
        return compared

    def _compare(self, calls: Sequence[ToolCall]) -> _CallRows | NotEvaluated:
        compared = _CallRows(calls, [], [])
        attempts = 0
        for call in calls:
            row = self._row(call)
            demanding = row & self._demanding
            row &= ~demanding
            doubtful = 0
            arguments = readable_arguments(call) if demanding else None
            if arguments is None:
                doubtful = demanding
            else:
                for key in keys_of(demanding):
                    match = self._matches[key]
                    attempts += 1 + match.cost * len(call.arguments_text or "") // _COMPARED_CHARACTERS
                    if attempts > MAX_ASSIGNMENT_ATTEMPTS:
                        return _over_limit()
                    try:
                        verdict = match.accepts(arguments)
                    except OverLimitError:
                        return _over_limit()
                    if verdict:
                        row |= 1 << key
                    elif verdict is None:
                        doubtful |= 1 << key
            if doubtful:
                compared.unknown = compared.unknown or call
            compared.certain.append(row)
            compared.possible.append(row | doubtful)
        return compared

    def _score(self, alignment: _Alignment, calls: Sequence[ToolCall], run: AgentRun) -> Score:
        assigned = alignment.assigned
        taken = {position for position in assigned if position >= 0}
        actual = [call.name for call in calls]
        missing = [self._labels[key] for key in self._missing(assigned)] if -1 in assigned else []
        unexpected = [name for position, name in enumerate(actual) if position not in taken]
        lines = [
            self._line,
            f"actual: {_listed(actual)}",
            f"matched: {len(taken)} of {self._optional.counted(assigned)} expected, "
            f"{len(taken)} of {len(actual)} actual",
        ]
        if missing:
            lines.append(f"missing: {_listed(missing)}")
        if unexpected:
            lines.append(f"unexpected: {_listed(unexpected)}")
        if missing and unexpected:
            lines += self._refusals(assigned, taken, calls, run)
        details: dict[str, JsonValue] = {
            "expected": self._detail,
            "actual": [*actual],
            "assigned": [None if position < 0 else position for position in assigned],
        }
        return Score(alignment.value, details, tuple(lines))

    def _missing(self, assigned: Sequence[int]) -> list[int]:
        required = self._optional.required
        return [key for key, position in enumerate(assigned) if position < 0 and required >> key & 1]

    def _refusals(
        self, assigned: Sequence[int], taken: set[int], calls: Sequence[ToolCall], run: AgentRun
    ) -> list[str]:
        """For the first expected calls that are missing: why a call of the tool does not stand for one."""
        free = [position for position in range(len(calls)) if position not in taken]
        lines: list[str] = []
        for key in self._missing(assigned)[:_SHOWN_REFUSALS]:
            refused = next((at for at in free if self._row(calls[at]) >> key & 1), None)
            if refused is None:
                continue
            free.remove(refused)
            call = calls[refused]
            place = next(number for number, other in enumerate(run.calls, 1) if other is call)
            lines.append(f"call {place}, {call.name}: {self._refusal(key, call)}")
        return lines

    def _refusal(self, key: int, call: ToolCall) -> str:
        """The rule by which `call`, which is of the tool, does not stand for the expected call `key`."""
        match = self._matches[key]
        if not match.accepts_anything:
            arguments = comparable_arguments(call)
            reason = "" if arguments is None else match.refusal(arguments)
            if reason:
                return reason
        occurrence = self._occurrences[key]
        return "not in the expected order" if occurrence == "any" else f"occurrence: {occurrence}"


class TrajectoryExact(_Trajectory):
    """Whether the calls and the expected calls match one by one: 1 or 0.

    score = 1 when there are as many calls as expected ones and each stands for the one at its place, else 0.
    """

    id = "trajectory-exact"
    in_order = True

    def _bounds(
        self, calls: Sequence[ToolCall], certain: Sequence[int], possible: Sequence[int]
    ) -> tuple[float, float]:
        """A further call can always be one too many; 1 is lost once some call has no expected one left."""
        count = len(calls)
        return 0.0, float(count <= self._width and matching_size(possible, self._width) == count)

    def _measure(self, calls: Sequence[ToolCall], rows: Sequence[int]) -> _Alignment:
        width = self._width
        for keys in self._optional.alternatives.values():
            if len(calls) == len(keys) and self._is_exact(calls, rows, keys):
                if len(keys) == width:
                    return _Alignment(1.0, keys)
                places = dict(zip(keys, range(width), strict=False))
                return _Alignment(1.0, [places.get(key, -1) for key in range(width)])
        # What the longest common subsequence leaves over shows best where the two differ.
        aligned = self._aligned(calls, rows)
        return _Alignment(0.0, [-1] * self._width if aligned is None else aligned)

    def _is_exact(self, calls: Sequence[ToolCall], rows: Sequence[int], keys: Sequence[int]) -> bool:
        """Whether every call, or every group of parallel calls, fits those of `keys` at its own places."""
        if all(row >> key & 1 for key, row in zip(keys, rows, strict=True)):
            return True
        return all(
            matching_size([rows[at] & mask_of(keys[own.start : own.stop]) for at in own], self._width)
            == len(own)
            for own in parallel_segments(calls)
        )


class TrajectoryInOrder(_Trajectory):
    """Whether the expected calls are a subsequence of the calls: 1 or 0; calls in between cost nothing.

    score = 1 when every expected call has a call of its own and these stand in the expected order, else 0.
    """

    id = "trajectory-in-order"
    in_order = True


class TrajectoryAnyOrder(_Trajectory):
    """Whether every expected call has a call of its own: 1 or 0; further calls and order do not matter.

    score = 1 when a maximum matching of calls and expected calls serves all expected ones, else 0.
    """

    id = "trajectory-any-order"


class TrajectoryPrecision(_Trajectory):
    """The share of the calls that were expected: the one of these metrics that only extra calls lower.

    score = matched / calls, where matched is the size of a maximum matching: every call stands for one
    expected call at most, so repeated calls have to be expected as often. Order does not matter.
    """

    id = "trajectory-precision"
    further_calls_cost = True
    share = "precision"


class TrajectoryRecall(_Trajectory):
    """The share of the expected calls that were made; further calls cost nothing.

    score = matched / expected calls, matched as in `trajectory-precision`. Order does not matter.
    """

    id = "trajectory-recall"
    share = "recall"


class TrajectoryF1(_Trajectory):
    """The F1 of calls and expected calls as multisets: missing and extra calls both lower it.

    score = 2 * precision * recall / (precision + recall) = 2 * matched / (calls + expected calls), matched as
    in `trajectory-precision`. Order does not matter.
    """

    id = "trajectory-f1"
    further_calls_cost = True
    share = "f1"


class TrajectoryOrderF1(_Trajectory):
    """The F1 of calls and expected calls in order: by their longest common subsequence.

    With l the length of that subsequence, precision = l / calls, recall = l / expected calls, and
    score = 2 * precision * recall / (precision + recall) = 2 * l / (calls + expected calls).
    """

    id = "trajectory-order-f1"
    in_order = True
    further_calls_cost = True
    share = "f1"


class _ArgumentMatch:
    """The arguments of one expected call, ready to be compared; values may contain matchers.

    Arguments that one of the globs in `ignored` matches are removed from both sides.
    """

    __slots__ = ("_expected", "_ignored", "_mode", "accepts_anything", "cost")

    def __init__(
        self,
        expected: JsonObject | None,
        mode: ArgumentMode,
        ignored: tuple[str, ...] = (),
    ) -> None:
        self._ignored = argument_names(ignored)
        compiled: dict[str, Expected] = {
            name: compile_expected(value)
            for name, value in (expected or {}).items()
            if self._ignored is None or self._ignored.match(name) is None
        }
        self._expected = compiled
        self._mode = mode
        self.accepts_anything = (
            expected is None or mode == "ignore" or (mode in ("partial", "partial_deep") and not compiled)
        )
        """True where the arguments of the call need not be known."""
        self.cost = max(map(matching_cost, compiled.values()), default=0)
        """What a character of the arguments costs at most to compare (`matching_cost`)."""

    def accepts(self, arguments: JsonObject) -> bool | None:
        """Whether `arguments` satisfy the expected ones; None where masks in them leave that open."""
        if self.accepts_anything:
            return True
        expected = self._expected
        if self._mode == "partial":
            return fits_members(expected, arguments, subset=True)
        if self._mode == "partial_deep":
            return fits_among(expected, arguments, in_lists=True)
        actual = self._counted(arguments)
        if self._mode == "subset":
            return all_fit(
                fits(expected[name], value) if name in expected else None if has_mask(name) else False
                for name, value in actual.items()
            )
        return fits_members(expected, actual, subset=False)

    def refusal(self, arguments: JsonObject) -> str:
        """The rule that `arguments` break, with the names of those that do; empty: none is known."""
        try:
            broken = [*self._broken(arguments)]
        except OverLimitError:
            broken = []
        names = ", ".join(broken[:_SHOWN_REFUSALS])
        return f"args_match: {self._mode}: {names[:_SHOWN_ARGUMENTS]}" if broken else ""

    def _broken(self, arguments: JsonObject) -> Iterator[str]:
        """What is wrong with each argument that is."""
        mode, expected = self._mode, self._expected
        actual = arguments if mode.startswith("partial") else self._counted(arguments)
        for name, value in expected.items():
            if name not in actual and mode == "subset":
                continue
            only: dict[str, Expected] = {name: value}
            member = {name: actual[name]} if name in actual else {}
            is_fit = (
                fits_among(only, member, in_lists=True)
                if mode == "partial_deep"
                else fits_members(only, member, subset=True)
            )
            if is_fit is False:
                yield f"another {name}" if member else f"missing {name}"
        if mode in ("exact", "subset"):
            yield from (f"unexpected {name}" for name in actual if name not in expected)

    def _counted(self, arguments: JsonObject) -> JsonObject:
        """The arguments without those that are ignored."""
        ignored = self._ignored
        if ignored is None:
            return arguments
        return {name: value for name, value in arguments.items() if ignored.match(name) is None}


def _select_occurrence(bit: int, occurrence: str | int, positions: Sequence[int], rows: list[int]) -> None:
    """Take `bit` from the rows of those calls, of all at `positions`, that the occurrence leaves out."""
    if occurrence == "all":
        chosen = positions if all(rows[position] & bit for position in positions) else ()
    else:
        index = {"first": 0, "last": -1}[occurrence] if isinstance(occurrence, str) else occurrence
        chosen = [positions[index]] if -len(positions) <= index < len(positions) else ()
    for position in {*positions}.difference(chosen):
        rows[position] &= ~bit


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN_CALLS])
    rest = len(names) - _SHOWN_CALLS
    return f"[{shown}, and {rest} more]" if rest > 0 else f"[{shown}]"


def _over_limit() -> NotEvaluated:
    return NotEvaluated.over_limit(f"more than {MAX_ASSIGNMENT_ATTEMPTS} comparisons of arguments")
