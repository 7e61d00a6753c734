"""The tools that a run could call, by name with their JSON schemas (null where unknown).

Every provider describes tools in a shape of its own, and telemetry repeats that: as values, as JSON, or as a
list of JSON texts.
"""

from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache

from processors.model import JsonObject, JsonValue, is_digest, is_mask, json_value, parse_json
from processors.shapes.members import object_at, text_at
from processors.spans import Attributes, AttributeValue

MAX_TOOLS = 1000
"""Tools of one list beyond this number are not read."""

_NAME_KEYS = ("name", "toolName", "tool_name")
_SCHEMA_KEYS = (
    "parameters", "input_schema", "inputSchema", "parameters_json_schema", "parametersJsonSchema",
    "json_schema", "args_schema", "arguments",
)  # fmt: skip
_LIST_KEYS = (
    "tools", "functionDeclarations", "function_declarations", "function_tools", "output_tools",
    "builtin_tools",
)  # fmt: skip
_WRAPPERS = ("function", "toolSpec", "tool_spec", "tool")
_PROVIDERS_TOOLS = (
    "apply_patch", "code_interpreter", "computer", "file_search", "image_generation", "local_shell", "shell",
    "web_search",
)  # fmt: skip
"""Types of tools that OpenAI knows and that bear no name; some have a version after it."""
_SCHEMA_WORDS = frozenset({"type", "properties", "$ref", "anyOf", "allOf", "oneOf", "required", "$schema"})
_GEMINI_TYPES = {name.upper(): name for name in ("object", "array", "string", "number", "integer", "boolean")}
_ZOD_WRAPPERS = frozenset({"optional", "default", "prefault", "readonly", "nullable"})
_ZOD_KINDS_REQUIRED = frozenset({"string", "number", "boolean", "array", "object", "enum", "record", "date"})
_DEEPEST_WRAPPING = 4
_LONGEST_LIST, _LONGEST_TOOL = 64 * 1024, 4096
"""Characters of a text that is remembered: of all tools, or of one in a list."""


def read_tool_definitions(value: "AttributeValue | JsonValue") -> Mapping[str, JsonValue]:
    """The tools that `value` describes, in order, in whatever shape; what is not recognised is left out.

    A list of names alone, or a text of them with commas between, gives tools without a schema. Of two tools
    with one name the first with a schema counts. Never raises. Each turn of every run repeats the same texts,
    so what they hold is remembered and shared.
    """
    if isinstance(value, str):
        return _read_text(value, 0)
    collected: dict[str, JsonValue] = {}
    _read(json_value(value), collected, 0)
    return collected


def _read_text(text: str, depth: int) -> Mapping[str, JsonValue]:
    if len(text) <= _LONGEST_TOOL:
        return _tool_in(text, depth)
    return _list_in(text, depth) if len(text) <= _LONGEST_LIST else _tools_in(text, depth)


def _tools_in(text: str, depth: int) -> Mapping[str, JsonValue]:
    collected: dict[str, JsonValue] = {}
    text = text.strip()
    if text[:1] in ("[", "{"):
        with suppress(ValueError):
            _read(parse_json(text), collected, depth + 1)
    else:
        names = (part.strip() for part in text.split(","))
        collected.update({name: None for name in names if name and not (is_mask(name) or is_digest(name))})
    return collected


_list_in, _tool_in = lru_cache(maxsize=64)(_tools_in), lru_cache(maxsize=512)(_tools_in)


def read_tool_schema(attributes: Attributes, name_key: str, schema_key: str) -> Mapping[str, JsonValue]:
    """The one tool whose name and schema stand in two attributes, as on the span of a call; none without."""
    if schema_key not in attributes:
        return {}
    return read_tool_definitions(
        {"name": json_value(attributes.get(name_key)), "parameters": json_value(attributes.get(schema_key))}
    )


def merge_tools(collected: dict[str, JsonValue], more: Mapping[str, JsonValue]) -> None:
    """Add `more` to `collected`; a schema fills in for one that is not known."""
    for name, schema in more.items():
        if collected.get(name) is None:
            collected[name] = schema


def _read(value: JsonValue, collected: dict[str, JsonValue], depth: int) -> None:
    if depth > _DEEPEST_WRAPPING or len(collected) >= MAX_TOOLS:
        return
    if isinstance(value, str):
        merge_tools(collected, _read_text(value, depth))
    elif isinstance(value, list):
        for item in value[:MAX_TOOLS]:
            _read(item, collected, depth + 1)
    elif isinstance(value, dict):
        _read_object(value, collected, depth)


def _read_object(value: JsonObject, collected: dict[str, JsonValue], depth: int) -> None:
    for key in _WRAPPERS:
        inner = value.get(key)
        if isinstance(inner, dict):
            _read_object(inner, collected, depth + 1)
            return
    kind = text_at(value, "type")
    name = next(filter(None, (text_at(value, key) for key in _NAME_KEYS)), "") or next(
        (tool for tool in _PROVIDERS_TOOLS if kind == tool or kind.startswith(f"{tool}_")), ""
    )
    if name:
        merge_tools(collected, {name: _schema(value)})
        return
    for key in _LIST_KEYS:
        inner = value.get(key)
        if isinstance(inner, (list, str)):
            _read(inner, collected, depth + 1)


def _schema(tool: JsonObject) -> JsonValue:
    for key in _SCHEMA_KEYS:
        schema = tool.get(key)
        if isinstance(schema, str) and schema.lstrip()[:1] == "{":
            try:
                schema = parse_json(schema)
            except ValueError:
                continue
        if isinstance(schema, dict):
            inner = schema.get("json")
            if schema.keys() == {"json"} and isinstance(inner, dict):  # Bedrock
                schema = inner
            if isinstance(schema.get("def"), dict):
                return _of_zod(schema)
            if schema.get("type") in _GEMINI_TYPES:
                return _of_gemini(schema)
            return schema if not schema or not _SCHEMA_WORDS.isdisjoint(schema) else None
    return None


def _of_gemini(schema: JsonValue) -> JsonValue:
    """A schema of Google's API, whose types are in capitals, as a JSON schema."""
    if isinstance(schema, list):
        return [_of_gemini(member) for member in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _GEMINI_TYPES[member]
        if key == "type" and isinstance(member, str) and member in _GEMINI_TYPES
        else member
        if key in ("enum", "default", "example", "required")
        else _of_gemini(member)
        for key, member in schema.items()
    }


def _of_zod(schema: JsonValue) -> JsonObject:
    """What a Zod schema that was written out as it is in memory demands, as a JSON schema."""
    definition = object_at(schema, "def")
    kind = definition.get("type")
    if kind in _ZOD_WRAPPERS:
        return _of_zod(definition.get("innerType")) if kind != "nullable" else {}
    if kind in ("string", "number", "boolean"):
        return {"type": kind}
    if kind == "array":
        return {"type": "array", "items": _of_zod(definition.get("element"))}
    shape = definition.get("shape")
    if kind != "object" or not isinstance(shape, dict):
        return {}
    return {
        "type": "object",
        "properties": {name: _of_zod(member) for name, member in shape.items()},
        "required": [
            name for name, member in shape.items() if text_at(member, "def", "type") in _ZOD_KINDS_REQUIRED
        ],
    }
