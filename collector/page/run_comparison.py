"""Two runs side by side: their calls aligned, and what differs in facts, verdicts, calls and answer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from collector.page.run_view import MAX_CALLS, ShownText, call_numbers, captured_text, run_facts
from processors.annotation import graded_run_from_json
from processors.comparison import (
    ExpectedCalls,
    common_subsequence,
    equal_values,
    leaves,
    ordered_keys,
    place_text,
)
from processors.model import JsonObject, JsonValue, ToolCall, ValueState, encode_json

_MAX_DIFFERENCES = 40
_Pair: TypeAlias = tuple[int | None, int | None]
_NOT_COMPARED = {"Started", "Span", "Graded by"}
"""Facts that differ between any two runs."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A place in two values at which they differ, and what each has there; None: nothing."""

    place: str
    left: str | None
    right: str | None


@dataclass(slots=True)
class ComparedPart:
    """What two runs have under one name; a side is None where a run lacks it.

    `differs` names what differs, and has `unknown` where a value was not captured on either side.
    """

    name: str
    left: str | None = None
    right: str | None = None
    differs: list[str] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    left_number: int | None = None
    right_number: int | None = None
    """Numbers of the calls as the view of a run counts them, from 1."""


@dataclass(frozen=True, slots=True)
class ComparedRuns:
    """The parts of two runs in order; calls that no call of the other run stands for are alone."""

    facts: list[ComparedPart]
    verdicts: list[ComparedPart]
    texts: list[ComparedPart]
    calls: list[ComparedPart]
    calls_left_out: int


def compared_runs(left: JsonObject, right: JsonObject) -> ComparedRuns:
    """Compare two run lines; `ValueError` if one cannot be read."""
    runs = [graded_run_from_json(line, "store") for line in (left, right)]
    calls = [run.run.tool_calls[:MAX_CALLS] for run in runs]
    facts = [
        {name: value for name, value in run_facts(line) if name not in _NOT_COMPARED}
        for line in (left, right)
    ]
    numbers = [call_numbers(line) for line in (left, right)]
    verdicts: list[dict[str, tuple[str, str]]] = [{}, {}]
    for side, run in zip(verdicts, runs, strict=True):
        for result in run.results:
            count = sum(1 for name in side if name == result.name or name.startswith(f"{result.name} ("))
            exemption = result.exemption if result.is_failure else ""
            why = ": ".join(filter(None, (exemption, result.reason, result.explanation)))
            side[f"{result.name} ({count + 1})" if count else result.name] = (result.outcome.value, why)
    return ComparedRuns(
        facts=[_of_names(name, facts[0].get(name), facts[1].get(name)) for name in facts[0] | facts[1]],
        verdicts=sorted(
            [
                _of_verdicts(name, *(side.get(name) for side in verdicts))
                for name in verdicts[0] | verdicts[1]
            ],
            key=lambda part: not part.differs,
        ),
        texts=[_of_values(name, left, right) for name in ("input", "output")],
        calls=[_of_calls(calls[0], calls[1], numbers, pair) for pair in aligned_calls(calls[0], calls[1])],
        calls_left_out=sum(len(run.run.tool_calls) for run in runs) - sum(map(len, calls)),
    )


def aligned_calls(left: Sequence[ToolCall], right: Sequence[ToolCall]) -> Iterator[_Pair]:
    """Positions of calls that stand for each other, in order; None where the other run has none.

    Calls of one tool with equal arguments are aligned first, then those of one tool between them. Calls that
    ran in parallel are taken in the order in which they fit best.
    """
    by_name = ExpectedCalls((call.name, None) for call in right).rows(left)
    fitting = ordered_keys(left, by_name, len(right))
    order = range(len(left)) if fitting is None else fitting[1]
    with_arguments: dict[bytes, int] = {}
    for place, call in enumerate(right):
        with_arguments[_arguments_key(call)] = with_arguments.get(_arguments_key(call), 0) | 1 << place
    equal = [
        row & with_arguments.get(_arguments_key(call), 0) for row, call in zip(by_name, left, strict=True)
    ]
    anchors = _pairs([equal[position] for position in order], 0, len(right))
    done, after = 0, 0
    for place, key in [*anchors, (len(order), len(right))]:
        rows = [by_name[position] for position in order[done:place]]
        taken = dict(_pairs(rows, after, key))
        for offset, position in enumerate(order[done:place]):
            matched = taken.get(offset)
            if matched is not None:
                yield from ((None, extra) for extra in range(after, matched))
                after = matched + 1
            yield position, matched
        yield from ((None, extra) for extra in range(after, key))
        if place < len(order):
            yield order[place], key
        done, after = place + 1, key + 1


def _pairs(rows: Sequence[int], first: int, last: int) -> list[tuple[int, int]]:
    """A longest common subsequence of `rows` and the keys from `first` to before `last`: places and keys."""
    width = max(last - first, 0)
    masked = [row >> first & ((1 << width) - 1) for row in rows]
    keys = iter(common_subsequence(masked, width))
    key = next(keys, None)
    pairs: list[tuple[int, int]] = []
    for place, row in enumerate(masked):
        if key is not None and row >> key & 1:
            pairs.append((place, first + key))
            key = next(keys, None)
    return pairs


def _arguments_key(call: ToolCall) -> bytes:
    return encode_json([call.arguments_state.value, call.arguments])


def _of_names(name: str, left: str | None, right: str | None) -> ComparedPart:
    return ComparedPart(name, left, right, [] if left == right else ["value"])


def _of_verdicts(name: str, left: tuple[str, str] | None, right: tuple[str, str] | None) -> ComparedPart:
    outcomes = [None if side is None else side[0] for side in (left, right)]
    differs = [] if outcomes[0] == outcomes[1] else ["outcome"]
    part = ComparedPart(name, outcomes[0], outcomes[1], differs)
    why = [None if side is None else side[1] or None for side in (left, right)]
    if why[0] != why[1]:
        part.differences.append(Difference("", *why))
    return part


def _of_values(key: str, left: JsonObject, right: JsonObject) -> ComparedPart:
    """The input or the output of two run lines."""
    texts = [captured_text(line, key).text for line in (left, right)]
    part = ComparedPart(key, texts[0], texts[1])
    states = [captured_text(line, key).state for line in (left, right)]
    _add_differences(part, key, left.get(key), right.get(key), states)
    return part


def _of_calls(
    left: Sequence[ToolCall], right: Sequence[ToolCall], numbers: Sequence[Sequence[int]], pair: _Pair
) -> ComparedPart:
    before, after = pair
    first = None if before is None else left[before]
    second = None if after is None else right[after]
    call = first or second
    assert call is not None  # one of them is there
    part = ComparedPart(call.name)
    part.left_number = None if before is None else numbers[0][before]
    part.right_number = None if after is None else numbers[1][after]
    if first is None or second is None:
        part.differs.append("call")
        part.left, part.right = (
            None if one is None else ShownText(_call_text(one)).short for one in (first, second)
        )
        return part
    for key in ("arguments", "result"):
        states = [str(getattr(one, f"{key}_state").value) for one in (first, second)]
        _add_differences(part, key, getattr(first, key), getattr(second, key), states)
    errors = [
        None if one.error is None else one.error.message or one.error.type or "failed"
        for one in (first, second)
    ]
    if errors[0] != errors[1]:
        part.differs.append("error")
        part.differences.append(Difference("error", *errors))
    return part


def _call_text(call: ToolCall) -> str:
    """The arguments of a call and what it came to."""
    result = "failed" if call.error is not None else call.result_text or call.result_state.value
    return f"{call.arguments_text or call.arguments_state.value} → {result}"


def _add_differences(
    part: ComparedPart, key: str, left: JsonValue, right: JsonValue, states: Sequence[str]
) -> None:
    """Add where two values differ; a state in place of one that is not wholly known."""
    if any(state != ValueState.PRESENT.value for state in states):
        if states[0] != states[1]:
            part.differs.append(key)
            part.differences.append(Difference(key, *states))
        elif (states[0] != ValueState.ABSENT.value or key != "result") and "unknown" not in part.differs:
            part.differs.append("unknown")
        return
    if equal_values(left, right):
        return
    part.differs.append(key)
    places = [{place_text(place): leaf for place, leaf in leaves(value)} for value in (left, right)]
    different = [
        place
        for place in places[0] | places[1]
        if (place in places[0]) != (place in places[1])
        or not equal_values(places[0].get(place), places[1].get(place))
    ]
    for place in different[:_MAX_DIFFERENCES]:
        sides = [ShownText(_leaf(side[place])).short if place in side else None for side in places]
        part.differences.append(Difference(f"{key}: {place}" if place else key, *sides))
    if not different:  # empty objects and lists have no leaves
        part.differences.append(Difference(key, *(ShownText(_leaf(value)).short for value in (left, right))))
    elif len(different) > _MAX_DIFFERENCES:
        part.differences.append(Difference(key, *[f"{len(different) - _MAX_DIFFERENCES} more differ"] * 2))


def _leaf(value: JsonValue) -> str:
    return value if isinstance(value, str) else encode_json(value).decode()
