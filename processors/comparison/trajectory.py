"""Expected calls held against the calls of a run: who can stand for whom, and how a comparison is reported.

What the `trajectory-*` evaluators share. Each of them adds its measure: how good an assignment of calls to
expectations is.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from processors.comparison.argument_match import ArgumentMatch
from processors.comparison.captured_value import comparable_arguments, is_oversized, unknown_arguments
from processors.comparison.expected_calls import ExpectedCall, TrajectoryConfig, TrajectoryCriteria
from processors.comparison.json_schema_check import SchemaTooComplexError
from processors.model.agent_run import AgentRun, ToolCall
from processors.model.evaluation_result import NotEvaluated, NotEvaluatedReason, Score
from processors.model.json_value import JsonObject, JsonValue
from processors.model.limits import MAX_ASSIGNMENT_ATTEMPTS, MAX_ORDERED_CALLS
from processors.model.tool_name import ToolKeys, canonical_tool_name
from processors.model.values import json_text

_SHOWN_CALLS = 20
_SHOWN_ARGUMENTS = 80
_COMPARED_CHARACTERS = 1000
"""Characters of arguments with matchers that count as one comparison."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """What a measure found: its value, and for each expected call the position of its call, or -1."""

    value: float
    assigned: Sequence[int]


Measure = Callable[[Sequence[ToolCall], Sequence[int], int], Alignment | None]
"""Grades calls with their rows (see `common_subsequence`) against a number of expected calls.

There is at least one expected call. None: the search for the best order was given up. A measure never gives
less for rows with more bits.
"""


@dataclass(frozen=True, slots=True)
class CallRows:
    """The calls of a run, and for each the expected calls that it can stand for, as bits.

    `certain` holds what is known; `possible` also what holds if arguments that are not known fit. `unknown`
    is the first call whose arguments made a difference.
    """

    calls: list[ToolCall]
    certain: list[int]
    possible: list[int]
    unknown: ToolCall | None


class Trajectory:
    """The expected calls of one evaluation.

    Raises:
        ValueError: a matcher in the expected arguments cannot be used.
    """

    def __init__(self, config: TrajectoryConfig, criteria: TrajectoryCriteria) -> None:
        expected = [
            ExpectedCall(name=call) if isinstance(call, str) else call for call in criteria.tool_calls
        ]
        self.width = len(expected)
        self._categories = config.categories()
        self._include_failed = config.include_failed
        self._keys = ToolKeys(text for call in expected for text in (call.name, call.id) if text is not None)
        defaults = {canonical_tool_name(name): values for name, values in config.default_args.items()}
        self._matches = [
            ArgumentMatch(
                call.args,
                call.args_match or config.args_match,
                config.ignore_args,
                defaults.get(canonical_tool_name(call.name)),
            )
            for call in expected
        ]
        self._demanding = _mask(key for key, match in enumerate(self._matches) if not match.accepts_anything)
        self._with_id = _mask(key for key, call in enumerate(expected) if call.id is not None)
        self._occurrences = [call.occurrence for call in expected]
        self._selective = _mask(key for key, call in enumerate(expected) if call.occurrence != "any")
        self._by_name: dict[str, int] = {}
        self._by_id: dict[str, int] = {}
        for key, call in enumerate(expected):
            name, call_id = canonical_tool_name(call.name), call.name if call.id is None else call.id
            self._by_name[name] = self._by_name.get(name, 0) | 1 << key
            self._by_id[call_id] = self._by_id.get(call_id, 0) | 1 << key
        self._labels = [_label(call) for call in expected]
        self._detail: list[JsonValue] = [
            {"name": call.name, "args": call.args, "id": call.id} for call in expected
        ]
        self._line = f"expected: {_listed(self._labels)}"

    def calls(self, run: AgentRun) -> list[ToolCall]:
        """The calls of `run` that are compared, in order."""
        calls = self._keys.select(run, self._categories)
        return calls if self._include_failed else [call for call in calls if call.error is None]

    def grade(self, run: AgentRun, measure: Measure) -> Score | NotEvaluated:
        """The value that `measure` gives; not evaluated where unknown arguments decide, and beyond caps.

        An empty expectation means that nothing may be called: 1 without calls, 0 with calls. A run without
        calls scores 0 otherwise.
        """
        found = self.rows(run)
        if isinstance(found, NotEvaluated):
            return found
        calls, rows = found.calls, found.certain
        if not calls or not self.width:
            value = 0.0 if calls or self.width else 1.0
            return self._score(Alignment(value, [-1] * self.width), calls)
        alignment = measure(calls, rows, self.width)
        if alignment is None:
            return NotEvaluated(
                NotEvaluatedReason.OVER_LIMIT, "too many parallel tool calls to find the order that fits"
            )
        if found.unknown is not None:
            best = measure(calls, found.possible, self.width)
            if best is None or best.value != alignment.value:
                return unknown_arguments(found.unknown)
        return self._score(alignment, calls)

    def rows(self, run: AgentRun) -> CallRows | NotEvaluated:
        """Who can stand for whom, as the run stands."""
        calls = self.calls(run)
        if len(calls) > MAX_ORDERED_CALLS:
            return NotEvaluated(
                NotEvaluatedReason.OVER_LIMIT, f"{len(calls)} tool calls, at most {MAX_ORDERED_CALLS}"
            )
        found = self._compare(calls)
        if isinstance(found, NotEvaluated) or not self._selective:
            return found
        of_tool: dict[int, list[int]] = {}
        for position, call in enumerate(calls):
            for key in _keys(self._candidates(call) & self._selective):
                of_tool.setdefault(key, []).append(position)
        for key, positions in of_tool.items():
            _select_occurrence(1 << key, self._occurrences[key], positions, found.certain)
            _select_occurrence(1 << key, self._occurrences[key], positions, found.possible)
        return found

    def open_rows(self, run: AgentRun) -> CallRows | None:
        """Bounds of who can stand for whom, whatever further calls come; None beyond caps.

        Further calls can change which one is the first or the last of its tool, so an expectation with an
        `occurrence` counts for nothing in `certain`, and for any call of its tool in `possible`.
        """
        calls = self.calls(run)
        found = self._compare(calls) if len(calls) <= MAX_ORDERED_CALLS else None
        if found is None or isinstance(found, NotEvaluated):
            return None
        lasting = ~self._selective
        return CallRows(calls, [row & lasting for row in found.certain], found.possible, found.unknown)

    def _compare(self, calls: list[ToolCall]) -> CallRows | NotEvaluated:
        certain: list[int] = []
        possible: list[int] = []
        unknown: ToolCall | None = None
        attempts = 0
        matches = self._matches
        arguments: JsonObject | None = None
        for call in calls:
            row = self._candidates(call)
            demanding = row & self._demanding
            doubtful = 0
            if demanding:
                row &= ~demanding
                arguments = None if is_oversized(call.arguments_text) else comparable_arguments(call)
                if arguments is None:
                    unknown = unknown or call
                    doubtful, demanding = demanding, 0
            for key in _keys(demanding):
                match = matches[key]
                attempts += 1 + match.cost * len(call.arguments_text or "") // _COMPARED_CHARACTERS
                if attempts > MAX_ASSIGNMENT_ATTEMPTS:
                    return _over_limit()
                try:
                    if arguments is not None and match.accepts(arguments):
                        row |= 1 << key
                except SchemaTooComplexError:
                    return _over_limit()
            certain.append(row)
            possible.append(row | doubtful)
        return CallRows(calls, certain, possible, unknown)

    def _candidates(self, call: ToolCall) -> int:
        """The expected calls that mean `call`, by its id or its name, as bits."""
        by_name = self._by_name.get(canonical_tool_name(call.name), 0)
        if call.call_id is None:
            return by_name
        return by_name & ~self._with_id | self._by_id.get(call.call_id, 0)

    def _score(self, alignment: Alignment, calls: Sequence[ToolCall]) -> Score:
        assigned = alignment.assigned
        taken = {position for position in assigned if position >= 0}
        actual = [call.name for call in calls]
        missing = [label for label, position in zip(self._labels, assigned, strict=True) if position < 0]
        unexpected = [name for position, name in enumerate(actual) if position not in taken]
        lines = [
            self._line,
            f"actual: {_listed(actual)}",
            f"matched: {len(taken)} of {self.width} expected, {len(taken)} of {len(actual)} actual",
        ]
        if missing:
            lines.append(f"missing: {_listed(missing)}")
        if unexpected:
            lines.append(f"unexpected: {_listed(unexpected)}")
        details: dict[str, JsonValue] = {
            "expected": self._detail,
            "actual": [*actual],
            "assigned": [None if position < 0 else position for position in assigned],
        }
        return Score(alignment.value, details, tuple(lines))


def _mask(keys: Iterable[int]) -> int:
    mask = 0
    for key in keys:
        mask |= 1 << key
    return mask


def _keys(row: int) -> Iterator[int]:
    while row:
        lowest = row & -row
        yield lowest.bit_length() - 1
        row ^= lowest


def _select_occurrence(bit: int, occurrence: str | int, positions: Sequence[int], rows: list[int]) -> None:
    """Take `bit` from the rows of those calls, of all at `positions`, that the occurrence leaves out."""
    if occurrence == "any":
        return
    if occurrence == "all":
        kept = positions if all(rows[position] & bit for position in positions) else ()
    else:
        index = {"first": 0, "last": -1}[occurrence] if isinstance(occurrence, str) else occurrence
        kept = [positions[index]] if -len(positions) <= index < len(positions) else ()
    chosen = frozenset(kept)
    for position in positions:
        if position not in chosen:
            rows[position] &= ~bit


def _label(call: ExpectedCall) -> str:
    if call.args is None:
        return call.name
    text = json_text(call.args)[1:-1]
    return f"{call.name}({text if len(text) <= _SHOWN_ARGUMENTS else text[: _SHOWN_ARGUMENTS - 1] + '…'})"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN_CALLS])
    rest = len(names) - _SHOWN_CALLS
    return f"[{shown}, and {rest} more]" if rest > 0 else f"[{shown}]"


def _over_limit() -> NotEvaluated:
    return NotEvaluated(
        NotEvaluatedReason.OVER_LIMIT, f"more than {MAX_ASSIGNMENT_ATTEMPTS} comparisons of arguments"
    )
