"""Expected values of criteria: literal, or with matchers anywhere in them.

An expected value is literal unless it is an object whose only key begins with `$`. Such an object is a
matcher (`processors.comparison.matchers`), or one of these three:

- `$in`: one of a list of expected values, matchers among them.
- `$literal`: the value as it is, for objects that would be read as a matcher.
- `$input`: the value at a path of the run's own input; replaced before it is compared
  (`processors.criteria.criteria_template`).

What holds no matcher is compared by `processors.comparison.value_equality` and costs nothing more.
"""

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeGuard

from processors.comparison.json_paths import EVERY, JsonPath, parse_json_path
from processors.comparison.matchers import MATCHERS, Matcher
from processors.comparison.value_equality import equal_values
from processors.documents.problems import did_you_mean
from processors.model.json_value import JsonObject, JsonValue

ONE_OF, LITERAL, INPUT = "$in", "$literal", "$input"

KNOWN_MATCHERS = (*MATCHERS, ONE_OF, INPUT, LITERAL)
"""All keys that make an object more than a literal."""

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
    """`written`, ready to be compared. A value without matchers comes back as the same object.

    Raises:
        ValueError: a matcher is unknown, or its argument is none that it takes.
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


def fits(expected: Expected, actual: JsonValue) -> bool:
    """Whether `actual` is what is expected: equal where that is literal, else met by its matchers.

    Raises:
        SchemaTooComplexError: a `$schema` could not be checked within its bounds.
    """
    if isinstance(expected, Matcher):
        return expected.test(actual)
    if isinstance(expected, OneOf):
        return any(fits(member, actual) for member in expected.members)
    if isinstance(expected, dict):
        return isinstance(actual, dict) and fits_members(expected, actual, subset=False)
    if isinstance(expected, list):
        return (
            isinstance(actual, list)
            and len(expected) == len(actual)
            and all(fits(*pair) for pair in zip(expected, actual, strict=True))
        )
    return isinstance(expected, str | int | float | None) and equal_values(expected, actual)


def fits_members(expected: Mapping[str, Expected], actual: Mapping[str, JsonValue], *, subset: bool) -> bool:
    """Whether every expected member is there and fits; without `subset` also whether no other is there.

    A member whose matcher is met by absence (`$absent`, `$any`) need not be there.
    """
    for key, value in expected.items():
        if key in actual:
            if not fits(value, actual[key]):
                return False
        elif not _meets_absence(value):
            return False
    return subset or all(key in expected for key in actual)


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
