"""Hypothesis strategies: JSON values, tool calls, agent runs, and instances of any evaluator."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from processors.model import (
    AgentIdentity,
    AgentRun,
    CallCategory,
    Evaluator,
    JsonValue,
    Message,
    ModelCall,
    TokenUsage,
    ToolCall,
    ToolError,
    ValueState,
    json_text,
    sum_of_usage,
)

TOOL_NAMES = ("search", "get weather", "get_weather", "get.weather", "天気", "transfer_to_b", "!!!")
CALL_IDS = ("c-1", "c-2", "search")

texts = st.sampled_from((*TOOL_NAMES, *CALL_IDS, "", "1", "{'a': 1}", '{"a": 1}', "error: no", "a"))
"""Texts that often are a tool's name, a call's id, a value in another notation or a key of an object."""

json_values: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from((0.5, 1.0, -0.0)) | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)
"""Small JSON values, equal ones often among them."""

_messages = st.builds(
    Message, role=st.sampled_from(("user", "assistant", "tool")), content=texts, turn=st.integers(0, 1)
)

_schemas = st.sampled_from((None, {"type": "object", "required": ["a"]}, {"additionalProperties": False}))

argument_objects = st.dictionaries(st.sampled_from("ab"), json_values, max_size=2)


@st.composite
def tool_calls(draw: st.DrawFn) -> ToolCall:
    """A call in any state of knowledge."""
    lenient = draw(st.booleans())
    arguments_state = draw(st.sampled_from((ValueState.PRESENT, ValueState.PRESENT, *ValueState)))
    result_state = draw(st.sampled_from((ValueState.PRESENT, ValueState.PRESENT, *ValueState)))
    arguments: JsonValue = draw(st.one_of(argument_objects, argument_objects, json_values))
    result = draw(json_values)
    known_arguments = arguments_state is ValueState.PRESENT
    known_result = result_state is ValueState.PRESENT
    return ToolCall(
        name=draw(st.sampled_from(TOOL_NAMES)),
        call_id=draw(st.none() | st.sampled_from(CALL_IDS)),
        category=draw(st.sampled_from((CallCategory.FUNCTION, CallCategory.MCP, CallCategory.HANDOFF))),
        arguments=arguments if known_arguments else None,
        arguments_text=json_text(arguments) if arguments_state is not ValueState.ABSENT else None,
        arguments_state=arguments_state,
        result=result if known_result else None,
        result_text=json_text(result) if result_state is not ValueState.ABSENT else None,
        result_state=result_state,
        error=draw(st.none() | st.just(ToolError(type="TimeoutError", message=""))),
        lenient_values=lenient,
        parallel_group=draw(st.none() | st.integers(0, 1)),
        start_unix_nano=1,
        end_unix_nano=draw(st.sampled_from((0, 1, 500_000_001, 60_000_000_001))),
        executed=draw(st.sampled_from((True, True, True, False))),
    )


_model_calls = st.builds(
    ModelCall,
    model=st.none() | st.sampled_from(("small-model-1", "other")),
    usage=st.none() | st.builds(TokenUsage, st.integers(0, 4), st.integers(0, 60_000)),
    failed=st.booleans(),
)


@st.composite
def agent_runs(draw: st.DrawFn, max_calls: int = 6) -> AgentRun:
    """A complete run with calls of few tools, a conversation, and an output in any state of knowledge."""
    calls = draw(st.lists(tool_calls(), max_size=max_calls))
    messages = draw(st.lists(_messages, max_size=3))
    state = draw(st.sampled_from((ValueState.PRESENT, ValueState.PRESENT, *ValueState)))
    output: JsonValue = draw(st.one_of(argument_objects, texts, json_values))
    model_calls = draw(st.lists(_model_calls, max_size=3))
    return run_with(
        calls,
        **of_model_calls(model_calls),
        start_unix_nano=1,
        end_unix_nano=draw(st.sampled_from((0, 1, 60_000_000_001))),
        time_to_first_output_seconds=draw(st.none() | st.sampled_from((0.0, 5.0))),
        output=output if state is ValueState.PRESENT else None,
        output_state=state,
        error=draw(st.none() | st.just(ToolError(type="RuntimeError", message="broken"))),
        messages=messages,
        messages_state=draw(st.sampled_from((ValueState.PRESENT, ValueState.ABSENT))),
        available_tools=draw(st.none() | st.dictionaries(st.sampled_from(TOOL_NAMES), _schemas, max_size=3)),
    )


def of_model_calls(calls: Sequence[ModelCall]) -> dict[str, Any]:
    """The fields of a run that made these model calls; a token costs 0.1."""
    told = [call.usage for call in calls if call.usage is not None]
    usage = sum_of_usage(told) if told and all(call.usage or call.failed for call in calls) else None
    return {
        "model_calls": tuple(calls),
        "models": tuple(dict.fromkeys(call.model for call in calls if call.model)),
        "usage": usage,
        "cost": None if usage is None else usage.total_tokens / 10,
    }


def run_with(calls: list[ToolCall], **fields: Any) -> AgentRun:
    """A run of agent `weather` with `calls`."""
    return AgentRun(
        trace_id=bytes(range(16)),
        span_id=bytes(range(8)),
        agent=AgentIdentity(name="weather"),
        tool_calls=calls,
        **fields,
    )


@st.composite
def evaluators(draw: st.DrawFn, kind: type[Evaluator]) -> Evaluator:
    """An instance of `kind` with any configuration and criteria that its models let through."""
    config = draw(models(kind.Config))
    criteria = None if kind.Criteria is None else draw(models(kind.Criteria))
    try:
        return kind(config, criteria)
    except ValueError:
        assume(False)
        raise


@cache
def models(model: type[BaseModel]) -> st.SearchStrategy[BaseModel]:
    """Instances of `model`, out of its JSON schema."""
    schema = model.model_json_schema()

    def validated(written: object) -> BaseModel:
        try:
            return model.model_validate(written)
        except ValidationError:
            assume(False)
            raise

    return _values_of(schema, schema.get("$defs", {})).map(validated)


def _values_of(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    values = _typed_values(schema, definitions)
    # Examples fit each other where values of two fields have to.
    return st.sampled_from(schema["examples"]) | values if "examples" in schema else values


def _typed_values(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    if "$ref" in schema:
        return _values_of(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "const" in schema:
        return st.just(schema["const"])
    if "oneOf" in schema and all(option.keys() == {"required"} for option in schema["oneOf"]):
        return st.sampled_from(schema["oneOf"]).flatmap(
            lambda option: _typed_values(_with_one_key(schema, option["required"]), definitions)
        )
    for variants in ("anyOf", "oneOf"):
        if variants in schema:
            return st.one_of([_values_of(option, definitions) for option in schema[variants]])
    match schema.get("type"):
        case "object" if "properties" in schema:
            required = set(schema.get("required", ()))
            members = {key: _values_of(value, definitions) for key, value in schema["properties"].items()}
            return st.fixed_dictionaries(
                {key: value for key, value in members.items() if key in required},
                optional={key: value for key, value in members.items() if key not in required},
            )
        case "object":
            inner = schema.get("additionalProperties")
            values = _values_of(inner, definitions) if isinstance(inner, dict) else json_values
            return st.dictionaries(texts, values, max_size=4)
        case "array" if "prefixItems" in schema:
            return st.tuples(*(_values_of(item, definitions) for item in schema["prefixItems"]))
        case "array":
            return st.lists(_values_of(schema.get("items", {}), definitions), max_size=4)
        case "boolean":
            return st.booleans()
        case "integer":
            lowest = schema.get("minimum", -1)
            return st.integers(lowest, lowest + 4)
        case "number":
            return st.floats(schema.get("minimum", 0.0), schema.get("maximum", 1.0))
        case "string":
            return texts
        case "null":
            return st.none()
        case _:
            return json_values


def _with_one_key(schema: Mapping[str, Any], required: list[str]) -> dict[str, Any]:
    """The object `schema` with those of its keys of which one is needed reduced to `required`."""
    others = {key for option in schema["oneOf"] for key in option["required"]} - {*required}
    members = {key: value for key, value in schema["properties"].items() if key not in others}
    return {"type": "object", "properties": members, "required": [*schema.get("required", ()), *required]}
