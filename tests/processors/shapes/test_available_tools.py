import json
from typing import Any

import pytest

from processors.shapes.available_tools import (
    MAX_TOOLS,
    merge_tools,
    read_tool_definitions,
)

_SCHEMA: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}}
_SHAPES: dict[str, Any] = {
    "OpenTelemetry": [{"type": "function", "name": "weather", "parameters": _SCHEMA}],
    "OpenAI": [{"type": "function", "function": {"name": "weather", "parameters": _SCHEMA}}],
    "Anthropic": [{"name": "weather", "description": "d", "input_schema": _SCHEMA}],
    "MCP": {"tools": [{"name": "weather", "inputSchema": _SCHEMA}]},
    "Bedrock": [{"toolSpec": {"name": "weather", "inputSchema": {"json": _SCHEMA}}}],
    "Gemini": [{"functionDeclarations": [{"name": "weather", "parameters": _SCHEMA}]}],
    "Pydantic AI": {"function_tools": [{"name": "weather", "parameters_json_schema": _SCHEMA}]},
    "texts": [json.dumps({"type": "function", "name": "weather", "inputSchema": _SCHEMA})],
    "schema as text": [{"name": "weather", "parameters": json.dumps(_SCHEMA)}],
}


@pytest.mark.parametrize("shape", _SHAPES)
def test_every_provider_s_shape_is_read_as_value_and_as_text(shape: str) -> None:
    definitions = _SHAPES[shape]

    assert {"weather": _SCHEMA} == read_tool_definitions(definitions)
    assert {"weather": _SCHEMA} == read_tool_definitions(json.dumps(definitions))


def test_names_alone_are_tools_without_a_schema() -> None:
    names: list[Any] = ["a", "b"]
    without_schema: list[Any] = [{"name": "a", "parameters": {"city": "a text"}}]

    assert {"a": None, "b": None} == read_tool_definitions(names)
    assert {"a": None} == read_tool_definitions(without_schema)


def test_tools_that_a_provider_knows_are_called_by_their_type() -> None:
    listed: list[Any] = [{"type": "web_search_preview"}, {"type": "shell"}, {"type": "function"}]

    assert {"web_search": None, "shell": None} == read_tool_definitions(listed)


@pytest.mark.parametrize("value", [None, 5, "", "{", "[1, 2]", {"a": 1}, [[[[[[["a"]]]]]]]])
def test_what_is_no_definition_is_left_out(value: Any) -> None:
    assert {} == read_tool_definitions(value)


def test_a_schema_fills_in_for_one_that_is_not_known() -> None:
    found: dict[str, Any] = {"a": None, "b": {"type": "object"}}

    merge_tools(found, {"a": _SCHEMA, "b": _SCHEMA, "c": None})

    assert {"a": _SCHEMA, "b": {"type": "object"}, "c": None} == found


def test_the_number_of_tools_is_bounded() -> None:
    names: list[Any] = [f"tool_{number}" for number in range(3 * MAX_TOOLS)]

    assert MAX_TOOLS == len(read_tool_definitions(names))
