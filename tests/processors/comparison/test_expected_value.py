"""Expected values: literal ones, every matcher, and how they stand inside each other."""

import pytest
from hypothesis import given

from processors.comparison import (
    compile_expected,
    equal_values,
    expected_value_problems,
    fits,
    fits_members,
    matching_cost,
)
from processors.model import JsonValue, OverLimitError
from tests.strategies import json_values


@given(left=json_values, right=json_values)
def test_without_matchers_a_value_is_compared_as_it_stands(left: JsonValue, right: JsonValue) -> None:
    compiled = compile_expected(left)

    assert left is compiled
    assert equal_values(left, right) == fits(compiled, right)
    assert 0 == matching_cost(compiled)


@pytest.mark.parametrize(
    ("expected", "fitting", "other"),
    [
        ({"$regex": "^Lon"}, ["London", "Lon\n"], ["in London", "", None, 5]),
        ({"$regex": "don"}, ["London"], ["Lodz"]),
        ({"$glob": "Lon*"}, ["London", "Lon", "Lon\ndon"], ["in London", "london", None, 1]),
        ({"$glob": "a[bc]?"}, ["abx", "ac\n"], ["abxx", "adx"]),
        ({"$in": ["a", 1, None]}, ["a", 1, 1.0, None], ["b", True, "1", []]),
        ({"$in": [{"$glob": "a*"}, {"x": {"$range": [1, 2]}}]}, ["ab", {"x": 2}], ["b", {"x": 3}]),
        ({"$range": [1, 2]}, [1, 1.5, 2], [0.99, 2.01, True, "1", None]),
        ({"$range": [None, 2]}, [-(10**400), 2], [10**400, 2.1]),
        ({"$range": [0, None]}, [0, 1e308], [-1]),
        ({"$approx": 0.3}, [0.1 + 0.2], [0.31, "0.3", None]),
        ({"$approx": 0}, [0, 1e-10, -0.0], [1e-6, False]),
        ({"$approx": {"value": 20, "abs": 0.5}}, [19.5, 20.5], [20.6]),
        ({"$approx": {"value": -200, "rel": 0.01}}, [-198, -202], [-197]),
        ({"$approx": {"value": 100, "abs": 5, "rel": 0.01}}, [105], [106]),
        ({"$type": "string"}, ["", "a"], [None, 1]),
        ({"$type": "number"}, [1, 1.5], [True, "1"]),
        ({"$type": "integer"}, [1, 2.0], [1.5, True]),
        ({"$type": ["object", "null"]}, [{}, None], [[], 0]),
        ({"$schema": {"type": "array", "items": {"type": "integer"}}}, [[], [1]], [["1"], {}]),
        ({"$present": True}, [None, 0, "a"], []),
        ({"$any": True}, [None, 0, "a"], []),
        ({"$absent": True}, [], [None, 0, "a"]),
        ({"$literal": {"$regex": "^Lon"}}, [{"$regex": "^Lon"}], ["London"]),
        ({"$literal": "a"}, ["a"], [{"$literal": "a"}]),
        ({"a": {"$literal": [{"$any": True}]}}, [{"a": [{"$any": True}]}], [{"a": [1]}]),
        ([{"$type": "integer"}, "x"], [[5, "x"]], [[5], [5, "x", 1], ["5", "x"], {}]),
        ({"a": {"$glob": "*"}, "b": 1}, [{"a": "", "b": 1}], [{"a": ""}, {"a": "", "b": 1, "c": 1}]),
        ({"a": {"$absent": True}, "b": {"$any": True}}, [{}, {"b": 5}], [{"a": None}, {"c": 1}]),
        ({"a": {"$in": [1, {"$absent": True}]}}, [{}, {"a": 1}], [{"a": 2}]),
        ({"$regex": "a", "b": 1}, [{"$regex": "a", "b": 1}], ["a"]),
        ({"price": {"$in": [5]}, "$x": 1}, [{"price": 5, "$x": 1}], [{"price": 5}]),
        ({"$input": "city"}, [], ["city", None, {"$input": "city"}]),
    ],
)
def test_a_matcher_is_met_by_these_values_and_by_no_others(
    expected: JsonValue, fitting: list[JsonValue], other: list[JsonValue]
) -> None:
    compiled = compile_expected(expected)

    assert [value for value in (*fitting, *other) if fits(compiled, value)] == fitting


def test_members_that_are_not_expected_count_unless_a_subset_is_enough() -> None:
    expected = {"city": compile_expected({"$glob": "L*"}), "days": compile_expected({"$absent": True})}

    assert fits_members(expected, {"city": "London", "unit": "C"}, subset=True)
    assert not fits_members(expected, {"city": "London", "unit": "C"}, subset=False)
    assert not fits_members(expected, {"city": "London", "days": 1}, subset=True)
    assert not fits_members(expected, {}, subset=True)


@pytest.mark.parametrize(
    ("written", "problems"),
    [
        ({"$rgex": "x"}, [("$rgex", 'unknown matcher "$rgex"; did you mean "$regex"?')]),
        ({"$": "x"}, [("$", 'unknown matcher "$"')]),
        ({"$regex": 5}, [("$regex", "expected a regular expression")]),
        ({"$glob": None}, [("$glob", "expected a pattern with *, ? and [abc]")]),
        ({"$in": "ab"}, [("$in", "expected a list of values")]),
        ({"$in": []}, [("$in", "expected a list of values")]),
        ({"$in": [1, {"$rnge": 1}]}, [("$in.1.$rnge", 'unknown matcher "$rnge"; did you mean "$range"?')]),
        ({"$range": [2, 1]}, [("$range", "the lowest value, 2, is above the highest, 1")]),
        (
            [{"$range": [None, None]}, {"$range": 1}, {"$range": [True, 2]}],
            [
                (f"{index}.$range", "expected [lowest, highest], two numbers or null for an open end")
                for index in range(3)
            ],
        ),
        (
            [{"$approx": "1"}, {"$approx": {"value": 1}}, {"$approx": {"value": 1, "abs": -1}}],
            [
                (
                    f"{index}.$approx",
                    "expected a number, or {value: number, abs: tolerance} or {value: number, rel: share}",
                )
                for index in range(3)
            ],
        ),
        (
            {"$type": "strng"},
            [
                (
                    "$type",
                    "expected one or a list of object, array, string, number, integer, boolean, null; "
                    'did you mean "string"?',
                )
            ],
        ),
        (
            {"$present": False},
            [("$present", 'expected true; where there must be no value, write "$absent: true"')],
        ),
        ({"$absent": 1}, [("$absent", 'expected true; where there must be a value, write "$present: true"')]),
        ({"$any": [1, 2]}, [("$any", "expected true; for one of several values, write $in")]),
        (
            {"a": [{"b": {"$input": 1}}]},
            [
                (
                    "a.0.b.$input",
                    'expected the path of one value of the input, such as "city" or "trip.stops[0]"',
                )
            ],
        ),
    ],
)  # fmt: skip
def test_a_matcher_that_cannot_be_used_is_told_with_its_place(
    written: JsonValue, problems: list[tuple[str, str]]
) -> None:
    found = [(".".join(map(str, path)), message) for path, message in expected_value_problems(written)]

    assert problems == found
    with pytest.raises(ValueError, match=r"expected|unknown|above"):
        compile_expected(written)


@pytest.mark.parametrize("written", [{"$regex": "("}, {"$regex": "(?=a)b"}, {"$schema": {"type": "strng"}}])
def test_what_cannot_be_compiled_is_refused(written: JsonValue) -> None:
    (problem,) = expected_value_problems(written)

    assert tuple(written) == problem[0]  # type: ignore[arg-type]  # an object


def test_a_literal_is_not_looked_into() -> None:
    assert [] == expected_value_problems({"$literal": {"$nonsense": {"$regex": "("}}})
    assert [] == expected_value_problems({"$schema": {"$ref": "#/$defs/a", "$defs": {"a": True}}})


def test_a_schema_that_takes_too_long_says_so() -> None:
    expected = compile_expected({"$schema": {"items": {"type": "integer"}}})

    with pytest.raises(OverLimitError):
        fits(expected, [1] * 20_000)


def test_the_cost_is_that_of_the_dearest_matcher() -> None:
    cheap: JsonValue = {"$regex": "a"}
    dear: JsonValue = {"$schema": {"type": "string"}}

    assert 1 == matching_cost(compile_expected({"a": [cheap]}))
    assert matching_cost(compile_expected(dear)) == matching_cost(compile_expected([cheap, {"b": dear}])) > 1
    assert 3 == matching_cost(compile_expected({"$in": [cheap, "b", "c"]}))
