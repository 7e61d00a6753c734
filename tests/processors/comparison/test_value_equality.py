import pytest
from hypothesis import given

from processors.comparison import equal_values, equality_key
from processors.model import JsonValue
from tests.strategies import json_values


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        (True, True, True),
        (0.0, -0.0, True),
        (9007199254740993, 9007199254740992.0, False),
        ("1", 1, False),
        (None, "null", False),
        (None, False, False),
        ([], {}, False),
        ([1, 2], [2, 1], False),
        ([True], [1], False),
        ({"a": 1, "b": 2}, {"b": 2.0, "a": 1}, True),
        ({"a": {"f": True}}, {"a": {"f": 1}}, False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ("é", "e\u0301", False),
    ],
)
def test_values_compare_by_value_with_booleans_apart(left: JsonValue, right: JsonValue, equal: bool) -> None:
    assert equal is equal_values(left, right)
    assert equal is equal_values(right, left)


@given(json_values, json_values)
def test_keys_are_equal_exactly_where_values_are(left: JsonValue, right: JsonValue) -> None:
    assert equal_values(left, right) is (equality_key(left) == equality_key(right))
