from typing import Any

import pytest

from processors.comparison.json_schema_check import (
    MAX_VIOLATIONS,
    UnresolvedReferenceError,
    check_schema,
    schema_problems,
    schema_violations,
)
from processors.model import JsonValue, OverLimitError

_ADDRESS: dict[str, Any] = {
    "$defs": {"zip": {"type": "string", "pattern": "^[0-9]{4}$"}},
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 1},
        "zip": {"$ref": "#/$defs/zip"},
        "kind": {"enum": ["home", "work"]},
        "floors": {"type": "array", "items": {"type": "integer", "minimum": 0}},
    },
    "required": ["city"],
    "additionalProperties": False,
}


def _messages(value: Any, schema: Any) -> list[str]:
    found = schema_violations(value, schema)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("value", "schema", "violations"),
    [
        ({"city": "[REDACTED]"}, {"properties": {"city": {"enum": ["Oslo"]}}}, None),
        ({"city": "[REDACTED]"}, {"properties": {"city": {"type": "integer"}}}, None),
        ({"city": "[REDACTED]"}, {"properties": {"city": {}}}, []),
        ({"city": "[REDACTED]"}, {"required": ["city"]}, []),
        ({"city": "[REDACTED]"}, {"required": ["day"]}, ["day: missing"]),
        ({"****": 1}, {"required": ["day"]}, None),
        ({"a": "****", "b": 1}, {"properties": {"a": {"const": 1}, "b": {"type": "string"}}}, ["b"]),
        ({"a": "****"}, {"anyOf": [{"properties": {"a": {"const": 1}}}, {"required": ["b"]}]}, None),
        ({"a": "****"}, {"not": {"properties": {"a": {"const": 1}}}}, None),
        (["****", 1], {"contains": {"type": "boolean"}}, None),
        (["****", 1, 1], {"uniqueItems": True}, ["an entry is repeated"]),
    ],
)
def test_what_a_mask_hides_breaks_no_schema_and_meets_none(
    value: Any, schema: Any, violations: list[str] | None
) -> None:
    found = schema_violations(value, schema)

    if violations and found:
        found = [message[: len(wanted)] for message, wanted in zip(found, violations, strict=True)]
    assert violations == found


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"city": "Oslo", "zip": "0150", "kind": "home", "floors": [0, 2]}, []),
        ({}, ["city: missing"]),
        ({"city": 5}, ["city: expected string, found integer"]),
        ({"city": ""}, ["city: fewer than 1 characters"]),
        ({"city": "Oslo", "zip": "150"}, ["zip: does not match the pattern"]),
        ({"city": "Oslo", "kind": "HOME"}, ["kind: not one of the allowed values"]),
        ({"city": "Oslo", "floors": [1, -1]}, ["floors[1]: less than 0"]),
        ({"city": "Oslo", "planet": 1}, ["planet: unknown"]),
        ([], ["expected object, found array"]),
    ],
)
def test_violations_name_the_place_and_what_was_expected(value: Any, expected: list[str]) -> None:
    assert expected == _messages(value, _ADDRESS)


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "integer"}, [1, 1.0, -3], [1.5, True, "1", None]),
        ({"type": "number"}, [1, 1.5], [True, "1"]),
        ({"type": ["string", "null"]}, ["a", None], [1]),
        ({"type": "STRING"}, ["a"], [1]),
        ({"type": "string", "nullable": True}, ["a", None], [1]),
        ({"const": {"a": [1]}}, [{"a": [1.0]}], [{"a": [True]}]),
        ({"enum": [1, "x"]}, [1, "x"], [True, "X"]),
        ({"minimum": 1, "maximum": 3}, [1, 3], [0, 4]),
        ({"exclusiveMinimum": 1, "exclusiveMaximum": 3}, [2], [1, 3]),
        ({"minimum": 1, "exclusiveMinimum": True}, [2], [1]),
        ({"multipleOf": 0.1}, [0.3, 1], [0.35]),
        ({"multipleOf": 3}, [9, 10**400 * 3], [10]),
        ({"minLength": 2, "maxLength": 3}, ["ab", "天気予"], ["a", "abcd"]),
        ({"pattern": "b+"}, ["abbc", 5], ["ac"]),
        ({"minItems": 1, "maxItems": 2, "uniqueItems": True}, [[1], [1, True]], [[], [1, 1.0], [1, 2, 3]]),
        ({"prefixItems": [{"type": "string"}], "items": False}, [["a"], []], [[1], ["a", "b"]]),
        ({"items": [{"type": "string"}], "additionalItems": False}, [["a"]], [["a", 1]]),
        ({"contains": {"const": 1}}, [[0, 1]], [[0]]),
        ({"minProperties": 1, "maxProperties": 1}, [{"a": 1}], [{}, {"a": 1, "b": 2}]),
        ({"patternProperties": {"^x": {"type": "integer"}}, "additionalProperties": {"type": "string"}},
         [{"x1": 1, "y": "a"}], [{"x1": "a"}, {"y": 1}]),
        ({"propertyNames": {"pattern": "^[a-z]+$"}}, [{"ab": 1}], [{"A": 1}]),
        ({"dependentRequired": {"card": ["name"]}}, [{}, {"card": 1, "name": 2}], [{"card": 1}]),
        ({"dependentSchemas": {"card": {"required": ["name"]}}}, [{}], [{"card": 1}]),
        ({"allOf": [{"type": "integer"}, {"minimum": 2}]}, [2], [1, "2"]),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, [1, "a"], [None]),
        ({"oneOf": [{"type": "integer"}, {"minimum": 2}]}, [1, 2.5], [3]),
        ({"not": {"type": "null"}}, [1], [None]),
        ({"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"minimum": 5}}, ["ab", 5], ["a", 4]),
        (True, [1, None], []),
        (False, [], [1, None]),
        ({}, [1, None, {"a": []}], []),
        ({"format": "email", "x-unknown": 1}, ["no mail"], []),
    ],
)  # fmt: skip
def test_keywords_mean_what_json_schema_says(schema: Any, good: list[Any], bad: list[Any]) -> None:
    for value in good:
        assert [] == _messages(value, schema)
    for value in bad:
        assert [] != _messages(value, schema)


def test_a_value_is_never_quoted() -> None:
    schema = {"properties": {"pin": {"type": "integer", "enum": [1], "maximum": 5, "pattern": "x"}}}

    text = " ".join(_messages({"pin": "hunter2"}, schema))

    assert "hunter2" not in text
    assert "pin" in text


def test_what_cannot_be_resolved_or_run_asserts_nothing() -> None:
    assert [] == _messages(1, {"$ref": "#/nowhere"})
    assert [] == _messages(1, {"$ref": "https://example.com/schema"})
    assert [] == _messages("a", {"pattern": "(?=b)"})
    assert [] == _messages("a", {"type": "text"})


@pytest.mark.parametrize(
    "reference", ["#/nowhere", "#/$defs/zip/other", "#zip", "https://example.com/schema"]
)
def test_a_reference_that_leads_nowhere_is_an_error_where_that_is_asked_for_and_it_bears_on_the_value(
    reference: str,
) -> None:
    schema: JsonValue = {
        "$defs": {"zip": {"type": "string"}},
        "properties": {"zip": {"anyOf": [{"type": "null"}, {"$ref": reference}]}},
    }

    with pytest.raises(UnresolvedReferenceError, match=reference.replace("$", r"\$")):
        schema_violations({"zip": "0150"}, schema, resolve=True)
    assert [] == schema_violations({"city": "Oslo"}, schema, resolve=True)
    assert [] == schema_violations({"zip": "0150"}, schema)


def test_a_schema_that_refers_to_itself_is_followed_as_deep_as_the_value_goes() -> None:
    tree = {
        "type": "object",
        "properties": {"left": {"$ref": "#"}, "size": {"type": "integer"}},
        "additionalProperties": False,
    }

    assert [] == _messages({"left": {"left": {"size": 1}}}, tree)
    assert ["left.left.size: expected integer, found string"] == _messages(
        {"left": {"left": {"size": "1"}}}, tree
    )


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        (1, {"$ref": "#"}),
        (list(range(20_000)), {"items": {"type": "integer"}}),
        ([1] * 2000, {"items": {"enum": list(range(1000))}}),
        ({str(key): 1 for key in range(200)}, {"patternProperties": {f"a{n}": {} for n in range(100)}}),
    ],
)
def test_work_is_bounded(value: Any, schema: Any) -> None:
    with pytest.raises(OverLimitError):
        schema_violations(value, schema)


def test_the_list_of_violations_is_bounded() -> None:
    assert MAX_VIOLATIONS == len(_messages(["x"] * 100, {"items": {"type": "integer"}}))


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        (5, "expected a JSON schema: an object, true or false"),
        ({"type": "text"}, "type: expected one of object, array, string"),
        ({"properties": {"a": {"type": ["integer", "none"]}}}, "properties.a.type: expected one of"),
        ({"pattern": "(?=a)"}, "pattern: expected a regular expression"),
        ({"items": {"minimum": "1"}}, "items.minimum: expected a number"),
        ({"required": "city"}, "required: expected a list of texts"),
        ({"enum": "a"}, "enum: expected a list"),
        ({"$ref": "other.json"}, "$ref: expected a reference inside the schema"),
        ({"anyOf": [{}, 1]}, "anyOf[1]: expected a JSON schema"),
        ({"properties": []}, "properties: expected a JSON schema"),
        (
            {"properties": {"a": {"maxmum": 9}}},
            "properties.a.maxmum: expected a keyword of JSON Schema; did you",
        ),
        ({"amount": {"maximum": 100}}, 'expected keywords of JSON Schema, found amount; did you mean "prop'),
    ],
)
def test_mistakes_in_a_schema_are_found_with_their_path(schema: Any, problem: str) -> None:
    (found,) = schema_problems(schema)

    assert found.startswith(problem)
    with pytest.raises(ValueError, match="expected"):
        check_schema(schema)


def test_a_sound_schema_has_no_problems() -> None:
    assert [] == schema_problems(_ADDRESS)
    assert [] == schema_problems({"required": True, "x-anything": 1, "type": "STRING"})
    assert [] == schema_problems({"properties": {"maxmum": {"type": "number"}, "amount": {}}})
    assert [] == schema_problems({"colour": "red", "title": "A word of one's own beside a known one"})
