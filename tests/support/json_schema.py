"""A small JSON Schema validator: the keywords that our schemas use, and no others."""

import re
from collections.abc import Callable
from typing import Any

_IGNORED = {"$schema", "$defs", "title", "description", "default", "examples", "format", "writeOnly"}
_TYPES: dict[str, Callable[[object], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
}
_BOUNDS: dict[str, Callable[[Any, Any], bool]] = {
    "minimum": lambda value, bound: value >= bound,
    "maximum": lambda value, bound: value <= bound,
    "exclusiveMinimum": lambda value, bound: value > bound,
    "exclusiveMaximum": lambda value, bound: value < bound,
}
_SIZES: dict[str, tuple[type[str] | type[list[Any]] | type[dict[str, Any]], Callable[[int, int], bool]]] = {
    "minLength": (str, int.__ge__),
    "maxLength": (str, int.__le__),
    "minItems": (list, int.__ge__),
    "maxItems": (list, int.__le__),
    "minProperties": (dict, int.__ge__),
    "maxProperties": (dict, int.__le__),
}


def mismatches(value: Any, schema: dict[str, Any], root: dict[str, Any]) -> list[str]:
    """Why `value` does not follow `schema`, a part of the document `root`; empty if it does.

    Raises:
        KeyError: the schema has a keyword that this validator does not know.
    """
    found: list[str] = []
    for keyword, argument in schema.items():
        if keyword not in _IGNORED:
            found += _mismatches_of(keyword, argument, value, schema, root)
    return found


def _mismatches_of(
    keyword: str, argument: Any, value: Any, schema: dict[str, Any], root: dict[str, Any]
) -> list[str]:
    if keyword == "$ref":
        return mismatches(value, root["$defs"][argument.removeprefix("#/$defs/")], root)
    if keyword == "anyOf":
        branches = [mismatches(value, branch, root) for branch in argument]
        return [] if [] in branches else [line for branch in branches for line in branch]
    if keyword == "allOf":
        return [line for branch in argument for line in mismatches(value, branch, root)]
    if keyword == "not":
        return [] if mismatches(value, argument, root) else [f"{value!r} is {argument}"]
    if keyword == "if":
        branch = "else" if mismatches(value, argument, root) else "then"
        return mismatches(value, schema.get(branch, {}), root)
    if keyword in ("then", "else"):
        return []
    if keyword == "type":
        return [] if _TYPES[argument](value) else [f"{value!r} is no {argument}"]
    if keyword == "enum":
        return [] if value in argument else [f"{value!r} is not one of {argument}"]
    if keyword == "const":
        is_same = value == argument and type(value) is type(argument)
        return [] if is_same else [f"{value!r} is not {argument!r}"]
    if keyword == "pattern":
        return [] if not isinstance(value, str) or re.search(argument, value) else [f"{value!r}: {argument}"]
    if keyword in _BOUNDS:
        is_number = _TYPES["number"](value)
        return [] if not is_number or _BOUNDS[keyword](value, argument) else [f"{value!r}: {keyword}"]
    if keyword in _SIZES:
        kind, compare = _SIZES[keyword]
        return (
            [] if not isinstance(value, kind) or compare(len(value), argument) else [f"{value!r}: {keyword}"]
        )
    if isinstance(value, list) and keyword == "items":
        positions = range(len(schema.get("prefixItems", [])), len(value))
        return [line for index in positions for line in mismatches(value[index], argument, root)]
    if isinstance(value, list) and keyword == "prefixItems":
        pairs = zip(argument, value, strict=False)
        return [line for inner, item in pairs for line in mismatches(item, inner, root)]
    if keyword in ("items", "prefixItems"):
        return []
    return _object_mismatches(keyword, argument, value, schema, root)


def _object_mismatches(
    keyword: str, argument: Any, value: Any, schema: dict[str, Any], root: dict[str, Any]
) -> list[str]:
    if keyword not in (
        "properties",
        "patternProperties",
        "additionalProperties",
        "propertyNames",
        "required",
    ):
        raise KeyError(keyword)
    if not isinstance(value, dict):
        return []
    if keyword == "propertyNames":
        return [line for key in value for line in mismatches(key, argument, root)]
    if keyword == "required":
        return [f"{key} is missing" for key in argument if key not in value]
    if keyword == "properties":
        return [
            line
            for key, inner in argument.items()
            if key in value
            for line in mismatches(value[key], inner, root)
        ]
    if keyword == "patternProperties":
        return [
            line
            for pattern, inner in argument.items()
            for key in value
            if re.search(pattern, key)
            for line in mismatches(value[key], inner, root)
        ]
    others = [
        key
        for key in value
        if key not in schema.get("properties", {})
        and not any(re.search(pattern, key) for pattern in schema.get("patternProperties", {}))
    ]
    if argument is False:
        return [f"{key} is unknown" for key in others]
    if argument is True:
        return []
    return [line for key in others for line in mismatches(value[key], argument, root)]
