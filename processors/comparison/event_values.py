"""Values of events, and comparisons between two events: `refund.args.amount <= get_order.result.total`.

A value is known, is not there, or is unknown; two values compare as true, false or, where one of them is
unknown or they are of kinds that do not compare, None. docs/constraints.md has the tables.
"""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from itertools import accumulate
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from processors.comparison.captured_value import (
    comparable_result_text,
    comparable_result_value,
    readable_arguments,
    unknown_arguments,
    unknown_result,
)
from processors.comparison.event_target import Target, known_result, returned_nothing
from processors.comparison.json_paths import EVERY, JsonPath, parse_json_path
from processors.comparison.value_equality import any_fits, known_equality
from processors.documents import did_you_mean
from processors.model import (
    JsonValue,
    NotEvaluated,
    ToolCall,
    canonical_tool_name,
    contains_mask,
    has_masked_key,
    json_text,
)


class NoValue(Enum):
    """In place of a value: it is not known, or known not to be there."""

    UNKNOWN = 0
    NONE = 1


UNKNOWN: Final = NoValue.UNKNOWN
NONE: Final = NoValue.NONE

Read: TypeAlias = JsonValue | NoValue
"""What was read of an event."""

_OF_CALLS = re.compile(r"(?:(?P<side>.+?)\.)??(?P<part>args|result)(?P<path>[.\[].*)?")
_PLAIN = re.compile(r"(?:(?P<side>.+)\.)?(?P<part>agent|duration|text|turn)")
_ANSWER = re.compile(r"(?P<part>answer)(?P<path>[.\[].*)?")
_OPERATOR = re.compile(r"\s+(<=|>=|==|!=|<|>|in|contains)\s+")
_NUMBER = re.compile(r"[-+]?\d{1,30}(?:\.\d{1,30})?")
_DATE = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?", re.ASCII
)
_SHOWN_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class EventValue:
    """A value that events of a kind have, such as `args.amount`, `result.total`, `agent` or `text`."""

    written: str
    part: Literal["args", "result", "agent", "duration", "turn", "text", "answer"]
    path: JsonPath

    def of_call(self, call: ToolCall, agent: str, *, may_change: bool = False) -> Read:
        """The value of `call`; of a path with `[*]` the list of those that it picks.

        `agent` is whose run it is. `may_change`: a result that is not there yet may come, and times change.
        """
        if self.part == "agent":
            return call.agent or agent
        if self.part == "turn":  # only the run knows
            return UNKNOWN
        if self.part == "duration":
            seconds = call.duration_seconds
            return UNKNOWN if may_change or seconds is None else seconds
        if self.part == "args":
            arguments = readable_arguments(call)
            return UNKNOWN if arguments is None else self._picked(arguments)
        if returned_nothing(call):
            return UNKNOWN if may_change else NONE
        known = known_result(call, may_change=may_change)
        return UNKNOWN if known is None else self._picked(known[1])

    def root_of(self, call: ToolCall) -> JsonValue:
        """The arguments, or what `call` returned; None where that is not known or no object."""
        if self.part == "args":
            return readable_arguments(call)
        text = None if returned_nothing(call) or self.part != "result" else comparable_result_text(call)
        return None if text is None else comparable_result_value(call, text)

    def of_text(self, content: JsonValue) -> Read:
        """The value of a message with this text, or of the answer."""
        return self._picked(content)

    def unknown_of(self, call: ToolCall) -> NotEvaluated:
        """Why the value of `call` is not known."""
        if self.part == "args":
            return unknown_arguments(call)
        return (
            unknown_result(call)
            if self.part == "result"
            else NotEvaluated.not_captured(f"{self.part} of {call.name}: absent")
        )

    def _picked(self, root: JsonValue) -> Read:
        values = self.path.values(root)
        if not values and EVERY not in self.path.steps:
            return UNKNOWN if has_masked_key(root) else NONE
        value: JsonValue = values if EVERY in self.path.steps else values[0]
        return UNKNOWN if contains_mask(value) else value


def parse_event_value(text: str) -> EventValue:
    """The value of one event that `text` writes; raises ValueError where it is none."""
    side, value = _parsed(text)
    if side:
        raise ValueError(f'"{text}": expected a value of one event, such as args.amount')
    return value


class Comparison(NamedTuple):
    """A comparison between a value of one event and one of another; `sides` are theirs, 0 and 1."""

    written: str
    name: str
    values: tuple[EventValue, EventValue]
    sides: tuple[int, int]

    def value_of(self, side: int) -> EventValue:
        """The value that an event of a side has in it."""
        return self.values[self.sides.index(side)]

    def holds(self, first: Read, second: Read) -> bool | None:
        """Whether it holds for the values of an event of the first and one of the second side.

        None where one is unknown, or they do not compare. What has no value compares with nothing.
        """
        if first is NONE or second is NONE:
            return False
        left, right = (first, second) if self.sides == (0, 1) else (second, first)
        if isinstance(left, NoValue) or isinstance(right, NoValue):
            return None
        return _OPERATORS[self.name](left, right)

    def shown(self, first: Read, second: Read) -> str:
        """Both values with the operator, for people."""
        left, right = (first, second) if self.sides == (0, 1) else (second, first)
        return f"{shown_value(left)} {self.name} {shown_value(right)}"


def parse_comparison(text: str, kinds: Sequence[Target]) -> Comparison:
    """The comparison of events of two kinds that `text` writes; raises ValueError where it is none.

    A side is named as its tool is written, `message` or the role, `answer`; or `first` and `second`.
    """
    problem = ""
    for match in _OPERATOR.finditer(text):
        try:
            operands = [_parsed(part.strip()) for part in (text[: match.start()], text[match.end() :])]
        except ValueError as error:
            problem = str(error)
            continue
        name = match[1]
        sides = [_side(value, side, kinds) for side, value in operands]
        if sides[0] == sides[1]:
            raise ValueError(f'"{text}" compares an event with itself: expected a value of each of the two')
        for at, (_, value) in enumerate(operands):
            if EVERY in value.path.steps and name != ("contains", "in")[at]:
                raise ValueError(
                    f'"{value.written}": [*] picks a list, which only stands where one is searched'
                )
        return Comparison(text, name, (operands[0][1], operands[1][1]), (sides[0], sides[1]))
    raise ValueError(
        problem
        or f'"{text}" is no comparison: expected two values with {", ".join(_OPERATORS)} between them, '
        "such as refund.args.amount <= get_order.result.total"
    )


def _parsed(text: str) -> tuple[str, EventValue]:
    for form in (_ANSWER, _PLAIN, _OF_CALLS):
        match = form.fullmatch(text)
        if match is not None:
            groups = match.groupdict()
            path = (groups.get("path") or "").removeprefix(".")
            side = groups.get("side") or ("answer" if form is _ANSWER else "")
            return side, EventValue(text, match["part"], parse_json_path(path))  # type: ignore[arg-type]
    raise ValueError(
        f'"{text}" is no value of an event: expected args or result with a path, agent, duration, turn, text '
        "or answer"
    )


def _side(value: EventValue, side: str, kinds: Sequence[Target]) -> int:
    names: list[list[str]] = [["first"], ["second"]]
    for at, target in enumerate(kinds):
        if target.kind == "call":
            names[at].append(target.tool)
        else:
            names[at] += ["message", target.role] if target.role else ["answer"]
    matching = [
        at
        for at, known in enumerate(names)
        if side in known or canonical_tool_name(side) in map(canonical_tool_name, known)
    ]
    if len(matching) == 2:
        raise ValueError(f'"{value.written}": "{side}" is both events: expected first or second in its place')
    if not matching:
        known = [name for each in reversed(names) for name in each[::-1]]
        hint = did_you_mean(side, known) or f"; known: {', '.join(known)}"
        raise ValueError(f'"{value.written}": unknown event "{side}"{hint}')
    kind = kinds[matching[0]].kind
    is_possible = {
        "call": value.part not in ("text", "answer"),
        "message": value.part == "text",
        "answer": value.part == "answer",
    }
    if not is_possible[kind]:
        has = {
            "call": "args, result, agent, duration and turn",
            "message": "text",
            "answer": "answer and its members",
        }
        raise ValueError(f'"{value.written}": expected {has[kind]}, which is what such an event has')
    return matching[0]


class ValueIndex:
    """The values of one side that a comparison is made with, so that a partner is found without trying each.

    Only numbers, texts that are neither numbers nor dates, and lists of these are looked up, and not whether
    a text is part of another; `usable` is false for all others.
    """

    __slots__ = ("_largest", "_last", "_name", "_smallest", "_type", "usable")

    def __init__(self, comparison: Comparison, side: int, values: Sequence[Read]) -> None:
        name = comparison.name
        if name in ("in", "contains"):
            are_lists = (name == "contains") == (comparison.sides[0] == side)
            name = "in list" if are_lists else "in"
            listed = [value if isinstance(value, list) else [None] for value in values]
            members = listed if are_lists else [[value] for value in values]
        else:
            name = name if comparison.sides[0] == side else _MIRRORED[name]
            members = [[value] for value in values]
        keys = [[_index_key(member) for member in each] for each in members]
        kinds = {type(key) for each in keys for key in each}
        self._name = name
        self._type = next(iter(kinds), float)
        self._last: dict[float | str | NoValue, int] = {
            key: place for place, each in enumerate(keys) for key in each
        }
        """The last place of each value."""
        self._smallest: list[Any] = []
        self._largest: list[Any] = []
        self.usable = NoValue not in kinds and (
            name in ("in", "in list") or (len(kinds) == 1 and (kinds == {float} or name in ("==", "!=")))
        )
        if self.usable and name not in ("in", "in list", "=="):
            backwards: list[Any] = [key for (key,) in reversed(keys)]
            self._smallest = [*accumulate(backwards, min)][::-1]
            self._largest = [*accumulate(backwards, max)][::-1]

    def has_partner(self, value: Read, begin: int) -> bool | None:
        """Whether one of the values from the place `begin` on compares with `value`; None: try each."""
        if not self.usable:
            return None
        if self._name == "in":
            if not isinstance(value, list):
                return None
            keys = [_index_key(member) for member in value]
            return None if UNKNOWN in keys else any(self._last.get(key, -1) >= begin for key in keys)
        key = _index_key(value)
        if isinstance(key, NoValue):
            return None
        if self._name == "in list":
            return self._last.get(key, -1) >= begin
        if type(key) is not self._type:
            return None
        if self._name == "==":
            return self._last.get(key, -1) >= begin
        if begin >= len(self._smallest):
            return False
        low, high = self._smallest[begin], self._largest[begin]
        if self._name == "!=":
            return bool(low != key or high != key)
        return _TESTS[self._name](low if self._name in ("<", "<=") else high, key)


def _index_key(value: object) -> float | str | NoValue:
    """The value as a number, or as a text that compares as such; UNKNOWN where it is neither."""
    number = number_of(value) if isinstance(value, int | float | str) else None
    if number is not None:
        return float(number) if abs(number) < _EXACT else UNKNOWN
    return value if isinstance(value, str) and _moment(value) is None else UNKNOWN


_EXACT = 2.0**53
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_TESTS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def number_of(value: JsonValue) -> float | None:
    """The number that `value` is, or that it writes as a text; None: it is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        return float(value)
    return None


def _pair(left: JsonValue, right: JsonValue) -> tuple[float, float] | tuple[str, str] | None:
    """Both as what compares: numbers, moments, or texts; None: they do not compare."""
    if isinstance(left, str) and isinstance(right, str):
        first, second = _moment(left), _moment(right)
        if first is not None and second is not None:
            return first, second
    numbers = number_of(left), number_of(right)
    if numbers[0] is not None and numbers[1] is not None:
        return numbers[0], numbers[1]
    return (left, right) if isinstance(left, str) and isinstance(right, str) else None


def _moment(text: str) -> float | None:
    """The moment, or the beginning of the day in UTC, that a text of ISO 8601 writes, in seconds."""
    if _DATE.fullmatch(text) is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def _ordered(test: Callable[[Any, Any], bool]) -> Callable[[JsonValue, JsonValue], bool | None]:
    def compared(left: JsonValue, right: JsonValue) -> bool | None:
        pair = _pair(left, right)
        return None if pair is None else test(*pair)

    return compared


def _equal(left: JsonValue, right: JsonValue) -> bool | None:
    if isinstance(left, str) or isinstance(right, str):
        pair = _pair(left, right)
        if pair is not None and not isinstance(pair[0], str):
            return pair[0] == pair[1]
    return known_equality(left, right)


def _unequal(left: JsonValue, right: JsonValue) -> bool | None:
    equal = _equal(left, right)
    return None if equal is None else not equal


def _in(left: JsonValue, right: JsonValue) -> bool | None:
    if isinstance(right, list):
        return any_fits(_equal(left, member) for member in right)
    if isinstance(left, str) and isinstance(right, str | dict):
        return left in right
    if isinstance(right, str) and number_of(left) is not None:
        return True if _writes(right, json_text(left)) else None  # it may be written in another way
    return None


def _writes(text: str, number: str) -> bool:
    """Whether `number` stands in `text`, and not within a longer one."""
    return re.search(rf"(?<![\d.,]){re.escape(number)}(?![.,]?\d)", text) is not None


_OPERATORS: Mapping[str, Callable[[JsonValue, JsonValue], bool | None]] = {
    "==": _equal,
    "!=": _unequal,
    **{name: _ordered(test) for name, test in _TESTS.items()},
    "in": _in,
    "contains": lambda left, right: _in(right, left),
}


def shown_value(value: Read) -> str:
    """`value` for people, cut where it is long."""
    if value is NONE:
        return "no value"
    if isinstance(value, NoValue):
        return "an unknown value"
    text = json_text(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"
