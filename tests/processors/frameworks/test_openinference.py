"""What instrumentors of this convention do differently, one quirk a test."""

import json

import pytest

from processors.model import CallCategory, JsonObject, JsonValue, ToolCall, ToolError
from tests.support.agent_spans import runs_of, span

AGENT: JsonObject = {"openinference.span.kind": "AGENT", "agent.name": "a"}
SCHEMA = '{"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}'


def call_of(**fields: JsonValue) -> ToolCall:
    told = {
        "openinference.span.kind": "TOOL",
        "tool.name": "get",
        **{k.replace("_", ".", 1): v for k, v in fields.items()},
    }
    (call,) = runs_of([span(1, None, "a", AGENT), span(2, 1, "get", told)])[0].tool_calls
    return call


@pytest.mark.parametrize(
    ("given", "parameters", "arguments"),
    [
        ('{"city": "Oslo"}', None, {"city": "Oslo"}),
        (
            '{"args": ["Oslo", 2], "sanitize_inputs_outputs": true, "kwargs": {}}',
            SCHEMA,
            {"city": "Oslo", "days": 2},
        ),
        ('{"args": ["Oslo"], "kwargs": {"days": 2}}', SCHEMA, {"city": "Oslo", "days": 2}),
        ('{"args": ["Oslo"], "kwargs": {}}', None, {"$args": ["Oslo"]}),
        ('{"kwargs": {"city": "Oslo"}}', SCHEMA, {"city": "Oslo"}),
        ('{"tool_name": "get", "args": [], "kwargs": {"city": "Oslo"}}', None, {"city": "Oslo"}),
        (
            '{"tool_name": "get", "kwargs": {"city": "Oslo"}}',
            None,
            {"tool_name": "get", "kwargs": {"city": "Oslo"}},
        ),
        ("Oslo", '{"type": "object", "properties": {"city": {"type": "string"}}}', {"city": "Oslo"}),
        ("Oslo", '{"city": "Oslo"}', {"city": "Oslo"}),
        (None, '{"city": "Oslo"}', {"city": "Oslo"}),
        (None, SCHEMA, None),
        (None, '{"properties": {}, "type": "object"}', None),
        ("__REDACTED__", '{"properties": {}, "type": "object"}', None),
    ],
)
def test_arguments_come_out_of_every_form_of_call(
    given: str | None, parameters: str | None, arguments: JsonValue
) -> None:
    fields = {"input_value": given, "tool_parameters": parameters}

    call = call_of(**{key: value for key, value in fields.items() if value is not None})

    assert arguments == call.arguments


@pytest.mark.parametrize(
    ("output", "result", "text"),
    [
        ('{"content": {"t": 25.0, "ok": true}}', {"t": 25.0, "ok": True}, "{'t': 25.0, 'ok': True}"),
        ('{"type": "tool", "data": {"content": "{\\"t\\": 1}", "tool_call_id": "c1"}}', {"t": 1}, '{"t": 1}'),
        ('{"id": "c1", "name": "get", "response": {"t": 1}}', {"t": 1}, '{"t": 1}'),
        (
            '{"blocks": [], "tool_name": "get", "raw_input": {}, "raw_output": "warm", "is_error": false}',
            "warm",
            "warm",
        ),
        ('{"content": [{"type": "text", "text": "warm"}]}', "warm", "warm"),
        ("{'t': 1}", {"t": 1}, "{'t': 1}"),
        ('{"result": 1}', {"result": 1}, '{"result": 1}'),
    ],
)
def test_results_come_out_of_their_envelopes(output: str, result: JsonValue, text: str) -> None:
    call = call_of(output_value=output)

    assert (result, text, None) == (call.result, call.result_text, call.error)


def test_a_tool_message_tells_the_id_and_a_handled_error() -> None:
    call = call_of(
        output_value='{"type": "tool", "data": {"content": "no", "tool_call_id": "c1", "status": "error"}}'
    )

    assert ("c1", ToolError(type="", message="no")) == (call.call_id, call.error)


def test_a_printed_result_that_says_that_it_is_an_error_is_one() -> None:
    printed = "content=[TextContent(type='text', text='kaput')] structuredContent=None isError="

    assert call_of(output_value=f"{printed}True").error is not None
    assert call_of(output_value=f"{printed}False").error is None


def test_a_name_makes_a_tool_whatever_the_kind() -> None:
    fields: JsonObject = {"openinference.span.kind": "AGENT", "tool.name": "ask_agent"}

    (run,) = runs_of([span(1, None, "a", AGENT), span(2, 1, "ask_agent", fields)])

    assert ["ask_agent"] == [call.name for call in run.tool_calls]


def test_a_tool_without_a_name_that_hands_over_is_a_handoff() -> None:
    (run,) = runs_of(
        [span(1, None, "a", AGENT), span(2, 1, "handoff to billing", {"openinference.span.kind": "TOOL"})]
    )

    assert [CallCategory.HANDOFF] == [call.category for call in run.tool_calls]


def test_a_graph_node_that_is_called_agent_is_no_agent() -> None:
    node: JsonObject = {
        "openinference.span.kind": "AGENT",
        "metadata": '{"langgraph_node": "agent", "langgraph_step": 1}',
    }
    graph: JsonObject = {"openinference.span.kind": "CHAIN"}
    tool: JsonObject = {"openinference.span.kind": "TOOL", "tool.name": "get"}
    spans = [span(1, None, "LangGraph", graph), span(2, 1, "agent", node), span(3, 1, "get", tool)]

    assert [("demo", 1)] == [(run.agent.name, len(run.tool_calls)) for run in runs_of(spans)]


@pytest.mark.parametrize(
    ("name", "fields", "agent"),
    [
        ("planner.run", {}, "planner"),
        ("Researcher._execute_core", {"graph.node.id": "Researcher"}, "Researcher"),
        ("agent_run [planner]", {}, "planner"),
        ("LangGraph", {"metadata": '{"lc_agent_name": "planner"}'}, "planner"),
    ],
)
def test_agents_are_named_where_the_instrumentor_says_it(name: str, fields: JsonObject, agent: str) -> None:
    spans = [span(1, None, name, {"openinference.span.kind": "AGENT", **fields})]

    assert [agent] == [run.agent.name for run in runs_of(spans)]


def test_the_bare_argument_of_a_node_gets_its_name_from_the_nodes_input() -> None:
    metadata = '{"langgraph_node": "tools", "lc_agent_name": "a"}'
    node: JsonObject = {
        "openinference.span.kind": "CHAIN",
        "input.value": '[{"name":"get","args":{"payload": "{\\"k\\": 1}"},"id":"c1","type":"tool_call"}]',
        "metadata": metadata,
    }
    tool: JsonObject = {
        "openinference.span.kind": "TOOL",
        "tool.name": "get",
        "input.value": '{"k": 1}',
        "metadata": metadata,
    }

    (run,) = runs_of([span(1, None, "a", AGENT), span(2, 1, "tools", node), span(3, 2, "get", tool)])

    assert [("c1", {"payload": '{"k": 1}'})] == [(call.call_id, call.arguments) for call in run.tool_calls]


RESPONSE = (
    '{"object": "response", "output": [{"type": "reasoning", "id": "rs_1", "summary": []}, '
    '{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Rain."}]}]}'
)


@pytest.mark.parametrize(
    ("output", "answer"),
    [
        (f"[{RESPONSE}]", "Rain."),
        (RESPONSE, "Rain."),
        ('{"choices": [{"message": {"role": "assistant", "content": "Rain."}}]}', "Rain."),
        ("Rain.", "Rain."),
        ("__REDACTED__", None),
    ],
)
def test_a_model_span_without_messages_answers_what_its_response_says(
    output: str, answer: str | None
) -> None:
    model = {"openinference.span.kind": "LLM", "output.value": output}

    (run,) = runs_of([span(1, None, "a", AGENT), span(2, 1, "response", model, at=(10, 20))])

    assert answer == run.output


def content(role: str, **part: JsonValue) -> JsonObject:
    return {"role": role, "parts": [part]}


def test_calls_that_a_models_client_made_by_itself_are_read_from_its_response() -> None:
    asked: JsonObject = {"name": "get", "args": {"city": "Oslo"}}
    question = content("user", text="Weather?")
    history: list[JsonValue] = [
        question,
        content("model", function_call=asked),
        content("user", function_response={"name": "get", "response": {"error": "offline"}}),
        content("model", function_call=asked),
        content("user", function_response={"name": "get", "response": {"result": {"t": 1}}}),
    ]
    model: JsonObject = {
        "openinference.span.kind": "LLM",
        "input.value": json.dumps({"contents": [question]}),
        "output.value": json.dumps({"candidates": [], "automatic_function_calling_history": history}),
        "llm.output_messages.0.message.role": "model",
        "llm.output_messages.0.message.content": "Cold.",
        "message.tool_calls.0.tool_call.function.name": "get",
        "message.tool_calls.0.tool_call.function.arguments": '{"city": "Oslo"}',
    }

    (run,) = runs_of([span(1, None, "a", AGENT), span(2, 1, "GenerateContent", model, at=(10, 20))])

    failed = ToolError(type="", message="offline")
    assert "Cold." == run.output
    assert [("get", {"city": "Oslo"}, "offline", failed), ("get", {"city": "Oslo"}, {"t": 1}, None)] == [
        (made.name, made.arguments, made.result, made.error) for made in run.tool_calls
    ]
    assert [None, None] == [made.parallel_group for made in run.tool_calls]


def test_calls_that_a_models_client_made_by_itself_are_known_without_its_response() -> None:
    model: JsonObject = {
        "openinference.span.kind": "LLM",
        "message.tool_calls.0.tool_call.function.name": "get",
        "message.tool_calls.1.tool_call.function.name": "find",
    }

    (run,) = runs_of([span(1, None, "a", AGENT), span(2, 1, "GenerateContent", model, at=(10, 20))])

    assert ["get", "find"] == [made.name for made in run.tool_calls]


def test_the_name_of_a_root_span_that_only_names_the_package_is_no_agents_name() -> None:
    spans = [
        span(1, None, "ClaudeAgentSDK.query", {"openinference.span.kind": "AGENT"}),
        span(2, 1, "get", {"openinference.span.kind": "TOOL", "tool.name": "get"}),
    ]

    assert ["demo"] == [run.agent.name for run in runs_of(spans)]


@pytest.mark.parametrize("printed", ["generator", "async_generator"])
def test_a_stream_that_was_printed_is_no_answer(printed: str) -> None:
    told: JsonObject = {**AGENT, "output.value": f"<{printed} object plan.<locals>.run at 0x7f3f6e739d20>"}

    (run,) = runs_of([span(1, None, "plan", told)])

    assert run.output is None


def test_a_search_at_the_models_provider_is_a_call_there_under_the_tools_own_name() -> None:
    asked = "llm.output_messages.0.message."
    fields: JsonObject = {
        "openinference.span.kind": "LLM",
        f"{asked}role": "assistant",
        f"{asked}tool_calls.0.tool_call.id": "ws_1",
        f"{asked}tool_calls.0.tool_call.function.name": "web_search_call",
    }

    (run,) = runs_of([span(1, None, "main"), span(2, 1, "Response", fields, at=(10, 20))])

    assert [("web_search", CallCategory.SERVER)] == [(made.name, made.category) for made in run.tool_calls]
