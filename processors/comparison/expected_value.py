"""Expected values of criteria: literal, or with matchers anywhere in them.

An expected value is literal unless it is an object whose only key begins with `$`. Such an object is a
matcher of the table below, or one of these three:

- `$in`: one of a list of expected values, matchers among them.
- `$literal`: the value as it is, for objects that would be read as a matcher.
- `$input`: the value at a path of the run's own input; replaced before it is compared
  (`processors.criteria.criteria_template`).

A value in which redaction masked something (`processors.model.masks`) is compared as far as it is known:
whether it fits is True, False, or None where that depends on what is masked.

What holds no matcher is compared by `processors.comparison.value_equality` and costs nothing more.
"""

import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import translate
from types import MappingProxyType
from typing import Final, TypeAlias, TypeGuard

from processors.comparison.json_paths import EVERY, JsonPath, parse_json_path
from processors.comparison.json_schema_check import JSON_TYPES, check_schema, schema_violations
from processors.comparison.value_equality import all_fit, any_fits, equal_values
from processors.documents import did_you_mean
from processors.model import JsonObject, JsonValue, has_mask, is_digest, same_text
from processors.texts.linear_regex import compile_linear

_RELATIVE_TOLERANCE: Final = 1e-6
_ABSOLUTE_TOLERANCE: Final = 1e-9
_SCHEMA_COST: Final = 50


@dataclass(frozen=True, slots=True)
class Matcher:
    """A condition on one value.

    `test` is whether a value meets it; None: something masked in it leaves that open. `meets_absence`: it
    is met where there is no value. `reads_text`: it is about texts, so that a value known as text and as
    what the text writes is tried as text. `reads_masks`: its test sees to masked texts itself. `cost` is what
    a character of a value costs to test, in characters that a regular expression searches.
    """

    test: Callable[[JsonValue], bool | None]
    meets_absence: bool = False
    reads_text: bool = False
    reads_masks: bool = False
    cost: int = 1


def _regex(argument: JsonValue) -> Matcher:
    if not isinstance(argument, str):
        raise ValueError("expected a regular expression")
    has_match = compile_linear(argument).has_match
    return Matcher(
        lambda value: has_match(value) if isinstance(value, str) else False, reads_text=True, reads_masks=True
    )


def _glob(argument: JsonValue) -> Matcher:
    if not isinstance(argument, str):
        raise ValueError("expected a pattern with *, ? and [abc]")
    match = re.compile(translate(argument)).match
    return Matcher(lambda value: isinstance(value, str) and match(value) is not None, reads_text=True)


def _range(argument: JsonValue) -> Matcher:
    if (
        not isinstance(argument, list)
        or len(argument) != 2
        or any(bound is not None and not _is_number(bound) for bound in argument)
        or argument == [None, None]
    ):
        raise ValueError("expected [lowest, highest], two numbers or null for an open end")
    low, high = (None if bound is None else _number(bound) for bound in argument)
    if low is not None and high is not None and low > high:
        raise ValueError(f"the lowest value, {low:g}, is above the highest, {high:g}")

    def test(value: JsonValue) -> bool:
        if not _is_number(value):
            return False
        number = _number(value)
        return (low is None or number >= low) and (high is None or number <= high)

    return Matcher(test)


def _approx(argument: JsonValue) -> Matcher:
    expected, relative, absolute = argument, _RELATIVE_TOLERANCE, _ABSOLUTE_TOLERANCE
    if isinstance(argument, dict):
        expected = argument.get("value")
        tolerances = {key: bound for key, bound in argument.items() if key != "value"}
        is_valid = bool(tolerances) and tolerances.keys() <= {"abs", "rel"}
        if not is_valid or not all(
            _is_number(bound) and _number(bound) >= 0 for bound in tolerances.values()
        ):
            expected = None
        else:
            relative = float(_number(tolerances.get("rel", 0)))
            absolute = float(_number(tolerances.get("abs", 0)))
    if not _is_number(expected):
        raise ValueError(
            "expected a number, or {value: number, abs: tolerance} or {value: number, rel: share}"
        )
    target = _number(expected)

    def test(value: JsonValue) -> bool:
        # A share of the expected value, so that the tolerance does not depend on the actual one.
        return _is_number(value) and abs(_number(value) - target) <= max(absolute, relative * abs(target))

    return Matcher(test)


def _type(argument: JsonValue) -> Matcher:
    names = argument if isinstance(argument, list) and argument else [argument]
    for name in names:
        if not isinstance(name, str) or name not in JSON_TYPES:
            hint = did_you_mean(name, list(JSON_TYPES)) if isinstance(name, str) else ""
            raise ValueError(f"expected one or a list of {', '.join(JSON_TYPES)}{hint}")
    tests = [JSON_TYPES[str(name)] for name in names]
    return Matcher(lambda value: any(test(value) for test in tests))


def _schema(argument: JsonValue) -> Matcher:
    check_schema(argument)

    def test(value: JsonValue) -> bool | None:
        violations = schema_violations(value, argument)
        return None if violations is None else not violations

    return Matcher(test, reads_masks=True, cost=_SCHEMA_COST)


def _constant(matcher: Matcher, otherwise: str) -> Callable[[JsonValue], Matcher]:
    """Makes `matcher` of true; `otherwise` is a hint at what else may have been meant."""

    def make(argument: JsonValue) -> Matcher:
        if argument is not True:
            raise ValueError(f"expected true; {otherwise}")
        return matcher

    return make


MATCHERS: Mapping[str, Callable[[JsonValue], Matcher]] = MappingProxyType({
    "$regex": _regex,
    "$glob": _glob,
    "$range": _range,
    "$approx": _approx,
    "$type": _type,
    "$schema": _schema,
    "$present": _constant(
        Matcher(lambda _: True, reads_masks=True), 'where there must be no value, write "$absent: true"'
    ),
    "$absent": _constant(
        Matcher(lambda _: False, meets_absence=True, reads_masks=True),
        'where there must be a value, write "$present: true"',
    ),
    "$any": _constant(
        Matcher(lambda _: True, meets_absence=True, reads_masks=True), "for one of several values, write $in"
    ),
})  # fmt: skip
"""What makes each matcher out of its argument; it raises ValueError for an argument that it cannot take.

`MATCHER_ARGUMENTS` describes them. Expressions are those of RE2 and run in linear time. Of the two
tolerances of `$approx` the wider counts. For `$type` 1.0 is an integer, and a boolean is no number. The test
of `$schema` can raise `OverLimitError`.
"""


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(value: JsonValue) -> int | float:
    """`value` where it is a number, else not-a-number, which compares as false with everything."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else math.nan


ONE_OF, LITERAL, INPUT = "$in", "$literal", "$input"

KNOWN_MATCHERS = (*MATCHERS, ONE_OF, INPUT, LITERAL)
"""All keys that make an object more than a literal."""

_NUMBER: JsonObject = {"type": "number"}
_BOUND: JsonObject = {"anyOf": [_NUMBER, {"type": "null"}]}
_TYPE_NAME: JsonObject = {"enum": list(JSON_TYPES)}
_TRUE: JsonObject = {"const": True}

MATCHER_ARGUMENTS: Mapping[str, JsonObject] = MappingProxyType({
    "$regex": {"type": "string", "description": "A text in which the regular expression is found."},
    "$glob": {"type": "string", "description": "A text that as a whole matches *, ? and [abc]."},
    "$range": {
        "description": "A number from the lowest to the highest, both included; null leaves an end open.",
        "type": "array",
        "items": _BOUND,
        "minItems": 2,
        "maxItems": 2,
    },
    "$approx": {
        "description": "A number within a tolerance: abs, or rel as a share of the expected one.",
        "anyOf": [
            _NUMBER,
            {
                "type": "object",
                "properties": {"value": _NUMBER, "abs": _NUMBER, "rel": _NUMBER},
                "required": ["value"],
                "minProperties": 2,
                "additionalProperties": False,
            },
        ],
    },
    "$type": {
        "description": "A value of this JSON type, or of one of these.",
        "anyOf": [_TYPE_NAME, {"type": "array", "items": _TYPE_NAME, "minItems": 1}],
    },
    "$schema": {
        "description": "A value that follows this JSON schema.",
        "anyOf": [{"type": "object"}, {"type": "boolean"}],
    },
    "$present": {**_TRUE, "description": "Any value, null included."},
    "$absent": {**_TRUE, "description": "No value: the key is not there."},
    "$any": {**_TRUE, "description": "Any value, or none."},
    ONE_OF: {"type": "array", "minItems": 1, "description": "One of these, matchers among them."},
    INPUT: {"type": "string", "description": "The value at this path of the run's own input."},
    LITERAL: {"description": "Exactly this, where it would be read as a matcher."},
})  # fmt: skip
"""For each matcher the JSON schema of its argument, for editors."""

Path: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class OneOf:
    """Met by whatever meets one of `members`."""

    members: "tuple[Expected, ...]"


Expected: TypeAlias = (
    "str | int | float | bool | Matcher | OneOf | Sequence[Expected] | Mapping[str, Expected] | None"
)
"""An expected value, compiled: JSON with matchers in it. Without any it is the value as it was written."""

_UNKNOWN_INPUT = Matcher(lambda _: False)
"""Stands for `$input` until the run is known."""


def is_matcher(written: JsonValue) -> TypeGuard[JsonObject]:
    """Whether `written` is an object whose only key begins with `$`."""
    return isinstance(written, dict) and len(written) == 1 and next(iter(written)).startswith("$")


def compile_expected(written: JsonValue) -> Expected:
    """`written`, ready to be compared: the same object where it has no matchers.

    Raises ValueError for a matcher that is unknown, or does not take its argument.
    """
    problems: list[tuple[Path, str]] = []
    compiled = _compiled(written, (), problems)
    if problems:
        raise ValueError("; ".join(message for _, message in problems))
    return compiled


def expected_value_problems(written: JsonValue, path: Path = ()) -> list[tuple[Path, str]]:
    """The place, below `path`, and the message of every matcher in `written` that cannot be used."""
    problems: list[tuple[Path, str]] = []
    _compiled(written, path, problems)
    return problems


def input_path(argument: JsonValue) -> JsonPath:
    """The path that the argument of a `$input` writes; raises ValueError where it is none to one value."""
    if isinstance(argument, str):
        path = parse_json_path(argument)
        if EVERY not in path.steps:
            return path
    raise ValueError('expected the path of one value of the input, such as "city" or "trip.stops[0]"')


def fits(expected: Expected, actual: JsonValue) -> bool | None:
    """Whether `actual` is what is expected: equal where that is literal, else met by its matchers.

    None where that depends on what a mask in `actual` hides. Raises OverLimitError when a `$schema`
    could not be checked within its bounds.
    """
    if isinstance(expected, Matcher):
        return _meets(expected, actual)
    if isinstance(expected, OneOf):
        return any_fits(fits(member, actual) for member in expected.members)
    if isinstance(expected, dict) and isinstance(actual, dict):
        return fits_members(expected, actual, subset=False)
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all_fit(map(fits, expected, actual))
    if isinstance(expected, str | int | float | None) and equal_values(expected, actual):
        return True
    if not isinstance(actual, str):
        return False
    if isinstance(expected, str):
        return same_text(expected, actual)
    return None if has_mask(actual) or (is_digest(actual) and expected is not None) else False


def fits_members(
    expected: Mapping[str, Expected], actual: Mapping[str, JsonValue], *, subset: bool
) -> bool | None:
    """Whether every expected member is there and fits; without `subset` also whether no other is there.

    A member whose matcher is met by absence (`$absent`, `$any`) need not be there. None as for `fits`: what
    is not there may be a member whose name is masked.
    """
    known: bool | None = True
    for key, value in expected.items():
        verdict: bool | None
        if key in actual:
            verdict = fits(value, actual[key])
        else:
            verdict = None if any(map(has_mask, actual)) else _meets_absence(value)
        if verdict is False:
            return False
        known = known and verdict
    if not subset:
        for key in actual:
            if key not in expected:
                if not has_mask(key):
                    return False
                known = None
    return known


def fits_among(expected: Expected, actual: JsonValue, *, in_lists: bool = False) -> bool | None:
    """`fits`, where objects may have further members, at every depth; `in_lists`: also those in lists."""
    if isinstance(expected, Mapping) and isinstance(actual, dict):
        nested = (Mapping, list) if in_lists else Mapping
        return all_fit(
            fits_among(member, actual[key], in_lists=in_lists)
            if key in actual and isinstance(member, nested)
            else fits_members({key: member}, actual, subset=True)
            for key, member in expected.items()
        )
    if in_lists and isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all_fit(
            fits_among(*pair, in_lists=True) for pair in zip(expected, actual, strict=True)
        )
    return fits(expected, actual)


def _meets(matcher: Matcher, actual: JsonValue) -> bool | None:
    if isinstance(actual, str) and not matcher.reads_masks:
        if has_mask(actual):
            return None
        return True if matcher.test(actual) else None if is_digest(actual) else False
    return matcher.test(actual)


def alternatives(expected: Expected) -> tuple[Expected, ...]:
    """The members of a `$in`, those of one inside another included; any other value alone."""
    if isinstance(expected, OneOf):
        return tuple(inner for member in expected.members for inner in alternatives(member))
    return (expected,)


def matching_cost(expected: Expected) -> int:
    """What a character of an actual value costs at most to compare; 0: there is no matcher."""
    return max((matcher.cost for matcher in _matchers(expected)), default=0)


def _matchers(expected: Expected) -> Iterator[Matcher]:
    if isinstance(expected, Matcher):
        yield expected
    elif isinstance(expected, OneOf):
        yield Matcher(lambda _: False, cost=max(1, len(expected.members)))
        for member in expected.members:
            yield from _matchers(member)
    elif isinstance(expected, dict):
        for member in expected.values():
            yield from _matchers(member)
    elif isinstance(expected, list):
        for member in expected:
            yield from _matchers(member)


def _meets_absence(expected: Expected) -> bool:
    if isinstance(expected, OneOf):
        return any(_meets_absence(member) for member in expected.members)
    return isinstance(expected, Matcher) and expected.meets_absence


def _compiled(written: JsonValue, path: Path, problems: list[tuple[Path, str]]) -> Expected:
    if is_matcher(written):
        ((key, argument),) = written.items()
        return _compiled_matcher(key, argument, (*path, key), problems)
    if isinstance(written, dict):
        members = {key: _compiled(value, (*path, key), problems) for key, value in written.items()}
        return written if all(members[key] is value for key, value in written.items()) else members
    if isinstance(written, list):
        items = [_compiled(value, (*path, index), problems) for index, value in enumerate(written)]
        return written if all(map(operator.is_, items, written)) else items
    return written


def _compiled_matcher(
    key: str, argument: JsonValue, path: Path, problems: list[tuple[Path, str]]
) -> Expected:
    if key == LITERAL:
        return argument
    if key == INPUT:
        try:
            input_path(argument)
        except ValueError as error:
            problems.append((path, str(error)))
        return _UNKNOWN_INPUT
    if key == ONE_OF:
        if not isinstance(argument, list) or not argument:
            problems.append((path, "expected a list of values"))
            return OneOf(())
        return OneOf(
            tuple(_compiled(member, (*path, index), problems) for index, member in enumerate(argument))
        )
    make = MATCHERS.get(key)
    if make is None:
        hint = did_you_mean(key, KNOWN_MATCHERS)
        problems.append((path, f'unknown matcher "{key[:100]}"{hint}'))
        return _UNKNOWN_INPUT
    try:
        return make(argument)
    except ValueError as error:
        problems.append((path, str(error)))
        return _UNKNOWN_INPUT
