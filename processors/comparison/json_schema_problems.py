"""The words of JSON Schema, and what is wrong with a schema that a person wrote."""

from collections.abc import Callable, Mapping
from functools import lru_cache

import re2

from processors.model.json_value import JsonObject, JsonValue

JSON_TYPES: Mapping[str, Callable[[JsonValue], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "integer": lambda value: (
        not isinstance(value, bool)
        and (isinstance(value, int) or (isinstance(value, float) and value.is_integer()))
    ),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
}
"""The types of JSON Schema; a whole number is an integer however it is written."""

_MAX_PATTERN_LENGTH = 1000
_SUBSCHEMAS = (
    "additionalProperties", "items", "contains", "propertyNames", "not", "if", "then", "else",
)  # fmt: skip
_SUBSCHEMA_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_SUBSCHEMA_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_NUMBERS = (
    "minimum", "maximum", "multipleOf", "minLength", "maxLength", "minItems", "maxItems", "minProperties",
    "maxProperties",
)  # fmt: skip


def schema_problems(schema: JsonValue, path: str = "") -> list[str]:
    """What is wrong with a schema that a person wrote: one `path: what was expected` for each mistake.

    Types that do not exist, patterns that are no linear-time regular expression, and schemas, lists and
    limits of the wrong kind. Words that are not known are no mistake, as in JSON Schema itself.
    """
    if isinstance(schema, bool):
        return []
    if not isinstance(schema, dict):
        return [_at(path, "expected a JSON schema: an object, true or false")]
    found: list[str] = []
    types = schema.get("type")
    for name in types if isinstance(types, list) else [] if types is None else [types]:
        if not isinstance(name, str) or name.lower() not in JSON_TYPES:
            found.append(_at(_join(path, "type"), f"expected one of {', '.join(JSON_TYPES)}"))
    patterns = schema.get("patternProperties")
    written = list(patterns) if isinstance(patterns, dict) else []
    for pattern in [*written, schema.get("pattern")]:
        if pattern is not None and (not isinstance(pattern, str) or linear_pattern(pattern) is None):
            found.append(_at(_join(path, "pattern"), "expected a regular expression in the syntax of RE2"))
    for key in _NUMBERS:
        if key in schema and not JSON_TYPES["number"](schema[key]):
            found.append(_at(_join(path, key), "expected a number"))
    required = schema.get("required")
    if isinstance(required, bool):
        required = None  # draft 3, and still written: it asserts nothing
    if required is not None and not (
        isinstance(required, list) and all(isinstance(name, str) for name in required)
    ):
        found.append(_at(_join(path, "required"), "expected a list of texts"))
    if "enum" in schema and not isinstance(schema["enum"], list):
        found.append(_at(_join(path, "enum"), "expected a list"))
    reference = schema.get("$ref")
    if reference is not None and not (isinstance(reference, str) and reference.startswith("#")):
        found.append(_at(_join(path, "$ref"), "expected a reference inside the schema: #/..."))
    for inner_path, inner in _subschemas(schema, path):
        found += schema_problems(inner, inner_path)
    return found


@lru_cache(maxsize=1024)
def linear_pattern(written: str) -> "re2._Regexp | None":
    """The regular expression in `written`, searched for anywhere, or None where RE2 cannot run it."""
    if len(written) > _MAX_PATTERN_LENGTH:
        return None
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(written, options)
    except re2.error:
        return None


def _subschemas(schema: JsonObject, path: str) -> list[tuple[str, JsonValue]]:
    found: list[tuple[str, JsonValue]] = []
    for key in _SUBSCHEMAS:
        inner = schema.get(key)
        if key == "items" and isinstance(inner, list):
            found += [(f"{path}.items[{index}]".lstrip("."), item) for index, item in enumerate(inner)]
        elif inner is not None:
            found.append((_join(path, key), inner))
    for key in _SUBSCHEMA_LISTS:
        listed = schema.get(key)
        if isinstance(listed, list):
            found += [(f"{_join(path, key)}[{index}]", item) for index, item in enumerate(listed)]
        elif listed is not None:
            found.append((_join(path, key), listed))
    for key in _SUBSCHEMA_MAPS:
        named = schema.get(key)
        if isinstance(named, dict):
            found += [(_join(_join(path, key), name), item) for name, item in named.items()]
        elif named is not None:
            found.append((_join(path, key), named))
    return found


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _at(path: str, message: str) -> str:
    return f"{path}: {message}" if path else message
