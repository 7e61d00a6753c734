"""Matchers: expected values that more than one actual value meets, such as `{$glob: "Lon*"}`.

Each stands in criteria as an object with one `$` key. The table holds all of those whose argument is no
expected value itself; `processors.comparison.expected_value` puts them together with the others.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import translate
from types import MappingProxyType
from typing import Final

from processors.comparison.json_schema_check import JSON_TYPES, compile_schema
from processors.documents.problems import did_you_mean
from processors.model.json_value import JsonValue
from processors.texts.linear_regex import compile_linear

_RELATIVE_TOLERANCE: Final = 1e-6
_ABSOLUTE_TOLERANCE: Final = 1e-9
_SCHEMA_COST: Final = 50


@dataclass(frozen=True, slots=True)
class Matcher:
    """A condition on one value.

    `test` says whether a value meets it. `meets_absence`: it is met where there is no value. `reads_text`:
    it speaks of texts, so that a value known as text and as what the text writes is tried as text. `cost`
    is what a character of a value costs to test, in characters that a regular expression searches.
    """

    test: Callable[[JsonValue], bool]
    meets_absence: bool = False
    reads_text: bool = False
    cost: int = 1


def _regex(argument: JsonValue) -> Matcher:
    if not isinstance(argument, str):
        raise ValueError("expected a regular expression")
    search = compile_linear(argument).search
    return Matcher(lambda value: isinstance(value, str) and search(value) is not None, reads_text=True)


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
    wanted = _number(expected)

    def test(value: JsonValue) -> bool:
        # The share is one of the expected value, so that the tolerance does not depend on what came.
        return _is_number(value) and abs(_number(value) - wanted) <= max(absolute, relative * abs(wanted))

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
    violations = compile_schema(argument).violations
    return Matcher(lambda value: not violations(value), cost=_SCHEMA_COST)


def _present(argument: JsonValue) -> Matcher:
    if argument is not True:
        raise ValueError('expected true; where there must be no value, write "$absent: true"')
    return Matcher(lambda _: True)


def _absent(argument: JsonValue) -> Matcher:
    if argument is not True:
        raise ValueError('expected true; where there must be a value, write "$present: true"')
    return Matcher(lambda _: False, meets_absence=True)


def _any(argument: JsonValue) -> Matcher:
    if argument is not True:
        raise ValueError("expected true; for one of several values, write $in")
    return Matcher(lambda _: True, meets_absence=True)


MATCHERS: Mapping[str, Callable[[JsonValue], Matcher]] = MappingProxyType({
    "$regex": _regex,
    "$glob": _glob,
    "$range": _range,
    "$approx": _approx,
    "$type": _type,
    "$schema": _schema,
    "$present": _present,
    "$absent": _absent,
    "$any": _any,
})  # fmt: skip
"""What makes each matcher out of its argument; it raises ValueError for an argument that it cannot take.

- `$regex`: a text in which the regular expression is found (RE2, linear time; anchor it with ^ and $).
- `$glob`: a text that as a whole matches `*`, `?` and `[abc]`; case counts.
- `$range`: a number from the lowest to the highest, both included; null leaves an end open.
- `$approx`: a number within a tolerance: `abs`, or `rel` as a share of the expected one; the wider counts.
- `$type`: a value of a JSON Schema type, or of one of several. 1.0 is an integer; a boolean is no number.
- `$schema`: a value that follows the JSON Schema (`json_schema_check`; its test can raise
  `SchemaTooComplexError`).
- `$present`: any value, null included. `$absent`: no value. `$any`: any value or none.
"""


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(value: JsonValue) -> int | float:
    """`value` where it is a number, else not-a-number, which compares as false with everything."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
