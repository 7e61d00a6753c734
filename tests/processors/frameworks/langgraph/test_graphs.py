"""Agents within graphs, under every instrumentation that hands down the graph's metadata."""

import json
from collections.abc import Callable, Mapping
from typing import TypeAlias

import pytest
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span

from processors.model import CallCategory, JsonObject, JsonValue
from processors.spans import STATUS_ERROR, Envelope, RawSpan
from tests.support.agent_spans import envelope, key_values, model, runs_of, span, tool

Told: TypeAlias = Mapping[str, JsonValue]
Write: TypeAlias = Callable[[str, str, Told, JsonValue], JsonObject]

ASKED: JsonObject = {"content": "Weather?", "type": "human"}
ANSWERED: JsonObject = {"content": "Cold.", "type": "ai"}
ANNOUNCED: JsonObject = {"content": 'Returning structured response: {"t": 1}', "type": "ai"}
STATE: JsonObject = {"messages": [ASKED, ANSWERED]}
ASKS_FOR_GET = json.dumps(
    [{"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "get", "arguments": {}}]}]
)
ADDED: JsonObject = {"messages": [ANSWERED]}


def openinference(kind: str, name: str, told: Told, made: JsonValue) -> JsonObject:
    kinds = {"chain": "AGENT" if "agent" in name else "CHAIN", "tool": "TOOL"}
    fields: JsonObject = {"openinference.span.kind": kinds[kind], "metadata": json.dumps(told)}
    if kind == "tool":
        fields["tool.name"] = name
    if made is not None:
        fields["output.value"] = json.dumps(made)
    return fields


def traceloop(kind: str, name: str, told: Told, made: JsonValue) -> JsonObject:
    is_root = kind == "chain" and "langgraph_node" not in told
    fields: JsonObject = {
        "traceloop.span.kind": "workflow" if is_root else {"chain": "task"}.get(kind, kind),
        "traceloop.entity.name": name,
        **{f"traceloop.association.properties.{key}": value for key, value in told.items()},
    }
    if made is not None:
        fields["traceloop.entity.output"] = json.dumps({"outputs": made})
    return fields


def langsmith(kind: str, name: str, told: Told, made: JsonValue) -> JsonObject:
    fields: JsonObject = {
        "langsmith.span.kind": kind,
        **{f"langsmith.metadata.{key}": json_or_text(value) for key, value in told.items()},
    }
    if made is not None:
        fields["gen_ai.completion"] = json.dumps(made)
    return fields


def langfuse(kind: str, name: str, told: Told, made: JsonValue) -> JsonObject:
    fields: JsonObject = {
        "langfuse.observation.type": "agent" if kind == "chain" and "agent" in name else kind,
        **{f"langfuse.observation.metadata.{key}": json.dumps(value) for key, value in told.items()},
    }
    if made is not None:
        fields["langfuse.observation.output"] = json.dumps(made)
    return fields


def mlflow(kind: str, name: str, told: Told, made: JsonValue) -> JsonObject:
    fields: JsonObject = {"mlflow.spanType": json.dumps(kind.upper()), "metadata": json.dumps(told)}
    if made is not None:
        fields["mlflow.spanOutputs"] = json.dumps(made)
    return fields


def json_or_text(value: JsonValue) -> JsonValue:
    return value if isinstance(value, str) else json.dumps(value)


every_instrumentation = pytest.mark.parametrize(
    "write", [openinference, traceloop, langsmith, langfuse, mlflow], ids=lambda write: write.__name__
)


def at(node: str, place: str, around: str = "", **more: JsonValue) -> JsonObject:
    """The metadata of a span in a node."""
    told: JsonObject = {"langgraph_node": node, "langgraph_checkpoint_ns": place, **more}
    return {**told, "checkpoint_ns": around} if around else told


def row(
    number: int, parent: int | None, name: str, fields: JsonObject, times: tuple[int, int] = (0, 100)
) -> RawSpan:
    return span(number, parent, name, fields, at=times)


def called_by(spans: list[RawSpan]) -> list[tuple[str, list[str]]]:
    return [(run.agent.name, [call.name for call in run.tool_calls]) for run in runs_of(spans)]


@every_instrumentation
def test_a_graph_that_is_a_node_of_another_is_the_run_of_its_agent(write: Write) -> None:
    root: JsonObject = {"ls_integration": "langgraph"}
    spans = [
        row(1, None, "flow", write("chain", "flow", root, STATE)),
        row(2, 1, "boss", write("chain", "boss", at("boss", "boss:1"), ADDED), (1, 49)),
        row(3, 2, "boss", write("chain", "boss", at("boss", "boss:1", "boss:1"), STATE), (2, 48)),
        row(4, 3, "tools", write("chain", "tools", at("tools", "boss:1|tools:2", "boss:1"), None), (3, 40)),
        row(5, 4, "get", write("tool", "get", at("tools", "boss:1|tools:2", "boss:1"), "1"), (4, 30)),
        row(6, 1, "critic", write("chain", "critic", at("critic", "critic:3"), ADDED), (50, 99)),
        row(7, 6, "critic", write("chain", "critic", at("critic", "critic:3", "critic:3"), STATE), (51, 98)),
        row(8, 7, "see", write("tool", "see", at("tools", "critic:3|tools:4", "critic:3"), "2"), (60, 70)),
    ]

    runs = runs_of(spans)

    assert [("boss", ["get"]), ("critic", ["see"])] == called_by(spans)
    assert ["Cold.", "Cold."] == [run.output for run in runs]


@every_instrumentation
def test_a_graph_within_a_tool_is_named_after_itself_and_not_after_the_agent_around_it(write: Write) -> None:
    planner: JsonObject = {"lc_agent_name": "planner"}
    inner = at("tools", "tools:1", "tools:1", **planner)
    spans = [
        row(1, None, "planner", write("chain", "planner", planner, STATE)),
        row(2, 1, "ask", write("tool", "ask", inner, "Cold."), (1, 90)),
        row(3, 2, "meteo", write("chain", "meteo", inner, STATE), (2, 80)),
        row(
            4,
            3,
            "get",
            write("tool", "get", at("tools", "tools:1|tools:2", "tools:1", **planner), "1"),
            (3, 9),
        ),
    ]

    runs = runs_of(spans)

    assert [("planner", ["ask"]), ("meteo", ["get"])] == called_by(spans)
    assert "planner" == runs[1].parent_agent
    assert CallCategory.AGENT is runs[0].tool_calls[0].category


@every_instrumentation
def test_a_graph_further_down_is_known_by_the_conversation_that_it_puts_out(write: Write) -> None:
    team = at("search", "team:1|search:2", "team:1")
    spans = [
        row(1, None, "flow", write("chain", "flow", {"ls_integration": "langgraph"}, STATE)),
        row(2, 1, "team", write("chain", "team", at("team", "team:1", "team:1"), STATE), (1, 99)),
        row(3, 2, "search", write("chain", "search", team, STATE), (2, 90)),
        row(4, 3, "search", write("chain", "search", team, STATE), (3, 89)),
        row(
            5,
            4,
            "model",
            write("chain", "model", at("model", "team:1|search:2|m:3", "team:1"), ADDED),
            (4, 9),
        ),
        row(6, 4, "get", write("tool", "get", at("tools", "team:1|search:2|t:4", "team:1"), "1"), (10, 20)),
    ]

    assert [("team", []), ("search", ["get"])] == called_by(spans)


@every_instrumentation
def test_a_graph_that_nobody_named_is_called_by_its_node_or_by_the_call_that_it_is_in(write: Write) -> None:
    spans = [
        row(1, None, "flow", write("chain", "flow", {"ls_integration": "langgraph"}, STATE)),
        row(2, 1, "LangGraph", write("chain", "LangGraph", at("first", "f:1", "f:1"), STATE), (1, 40)),
        row(3, 2, "get", write("tool", "get", at("tools", "f:1|t:2", "f:1"), "1"), (2, 10)),
        row(4, 1, "ask", write("tool", "ask", at("tools", "tools:3", "tools:3"), "1"), (50, 90)),
        row(
            5, 4, "LangGraph", write("chain", "LangGraph", at("tools", "tools:3", "tools:3"), STATE), (51, 80)
        ),
        row(6, 5, "see", write("tool", "see", at("tools", "tools:3|t:4", "tools:3"), "1"), (52, 60)),
    ]

    assert {("first", ("get",)), ("ask", ("see",))} < {
        (name, tuple(calls)) for name, calls in called_by(spans)
    }


@every_instrumentation
@pytest.mark.parametrize(
    ("name", "told", "made"),
    [
        ("route_to_agent", at("model", "model:1"), "tools"),
        ("call_agent", at("planner", "planner:1"), ADDED),
        ("agent", at("agent", "agent:1"), STATE),
        ("RunnableSequence", at("agent", "agent:1", "agent:1"), ADDED),
        ("RunnableAssign<agent_scratchpad>", {}, {"input": "x"}),
        ("ToolsAgentOutputParser", {}, ["x"]),
        ("clean_state", at("pre", "pre:1", "pre:1"), {"messages": []}),
        ("agent", at("agent", "a:1|agent:2", "a:1"), ADDED),
        ("should_continue", at("agent", "a:1|agent:2", "a:1"), [{"node": "tools", "arg": STATE}]),
    ],
)
def test_a_step_of_a_graph_or_a_chain_is_no_agent(
    write: Write, name: str, told: Told, made: JsonValue
) -> None:
    spans = [
        row(1, None, "planner", write("chain", "planner", {"lc_agent_name": "planner"}, STATE)),
        row(2, 1, name, write("chain", name, told, made), (1, 90)),
        row(3, 2, "get", write("tool", "get", {}, "1"), (2, 10)),
    ]

    assert [("planner", ["get"])] == called_by(spans)


@pytest.mark.parametrize(
    "write", [openinference, traceloop, langfuse, mlflow], ids=lambda write: write.__name__
)
def test_the_function_that_is_a_graphs_entry_point_names_the_run(write: Write) -> None:
    entry = at("weather", "weather:1", langgraph_triggers=["__start__"])
    spans = [
        row(1, None, "LangGraph", write("chain", "LangGraph", {"ls_integration": "langgraph"}, "Cold.")),
        row(2, 1, "weather", write("chain", "weather", entry, "Cold."), (1, 90)),
        row(3, 2, "get", write("tool", "get", at("call_tool", "weather:1|call_tool:2"), "1"), (2, 10)),
    ]

    assert [("weather", ["get"])] == called_by(spans)


@pytest.mark.parametrize("write", [openinference, mlflow], ids=lambda write: write.__name__)
def test_outermost_graphs_in_one_request_are_runs_of_their_own(write: Write) -> None:
    root: JsonObject = {"ls_integration": "langgraph"}
    spans = [
        row(1, None, "POST /chat", {"http.route": "/chat"}),
        row(2, 1, "meteo", write("chain", "meteo", root, STATE), (1, 40)),
        row(3, 2, "get", write("tool", "get", at("tools", "tools:1", "tools:1"), "1"), (2, 10)),
        row(4, 1, "meteo", write("chain", "meteo", root, STATE), (50, 90)),
        row(5, 4, "see", write("tool", "see", at("tools", "tools:2", "tools:2"), "1"), (51, 60)),
    ]

    assert [("meteo", ["get"]), ("meteo", ["see"])] == called_by(spans)


def test_the_language_of_the_sender_tells_that_a_graph_has_places() -> None:
    python = Resource(attributes=key_values({"telemetry.sdk.language": "python"}))
    of = Envelope(ResourceSpans(resource=python).SerializeToString(), b"")
    fields = langfuse("chain", "boss", at("boss", "boss:1", "boss:1"), None)
    fields["langfuse.observation.metadata.langgraph_path"] = '["__pregel_pull","boss"]'
    spans = [
        span(1, None, "flow", langfuse("chain", "flow", {}, STATE), of=of),
        span(2, 1, "boss", fields, at=(1, 90), of=of),
        span(3, 2, "get", langfuse("tool", "get", {}, "1"), at=(2, 10), of=of),
    ]

    assert [("boss", ["get"])] == called_by(spans)


def test_an_outermost_graph_of_an_older_release_is_known_by_its_conversation() -> None:
    of = envelope(scope="openinference.instrumentation.langchain")
    chain: JsonObject = {"openinference.span.kind": "CHAIN", "output.value": json.dumps(STATE)}
    call = openinference("tool", "get", at("tools", "tools:1", "tools:1"), "1")
    spans = [
        span(1, None, "POST /chat"),
        span(2, 1, "meteo", chain, at=(1, 40), of=of),
        span(3, 2, "get", call, at=(2, 10), of=of),
    ]

    assert [("meteo", ["get"])] == called_by(spans)


@pytest.mark.parametrize(
    "scope", ["opentelemetry.instrumentation.genai.langchain", "openlit.instrumentation.langchain"]
)
@pytest.mark.parametrize(
    "name", ["agent", "call_agent", "RunnableAssign<agent_scratchpad>", "ToolsAgentOutputParser"]
)
def test_a_step_that_is_reported_as_an_agent_because_of_its_name_is_none(scope: str, name: str) -> None:
    fields: JsonObject = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}
    spans = [
        span(
            1,
            None,
            "invoke_workflow planner",
            {"gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": "planner"},
        ),
        span(2, 1, f"invoke_agent {name}", fields, at=(1, 30), of=envelope(scope=scope)),
        model(3, 2, (2, 20), **{"gen_ai.output.messages": ASKS_FOR_GET}),
        tool(4, 1, "get", (31, 40), call_id="c1"),
    ]

    assert [("planner", ["get"])] == called_by(spans)


def test_the_class_of_an_executor_is_not_its_name() -> None:
    spans = [
        row(1, None, "AgentExecutor", openinference("chain", "agent", {}, {"output": "Cold."})),
        row(2, 1, "get", openinference("tool", "get", {}, "1"), (1, 10)),
    ]

    assert [("demo", ["get"])] == called_by(spans)


def test_a_command_is_opened_to_the_message_that_the_model_gets() -> None:
    message: JsonObject = {"content": "noted", "type": "tool", "tool_call_id": "c1", "status": "success"}
    command: JsonObject = {
        "graph": None,
        "update": {"messages": [ASKED, message]},
        "resume": None,
        "goto": [],
    }
    own: JsonObject = {"graph": None, "update": {"seen": True}, "resume": None, "goto": []}
    root = openinference("chain", "planner", {"lc_agent_name": "planner"}, STATE)
    spans = [
        row(1, None, "planner", root),
        row(2, 1, "note", openinference("tool", "note", {}, command), (1, 10)),
        row(3, 1, "mark", openinference("tool", "mark", {}, own), (11, 20)),
    ]

    first, second = runs_of(spans)[0].tool_calls

    assert ("noted", "c1") == (first.result, first.call_id)
    assert own == second.result


def test_the_content_blocks_of_a_tool_servers_answer_may_have_ids() -> None:
    blocks: JsonValue = [{"type": "text", "text": '{"humidity": 81}', "id": "lc_1"}]
    message: JsonObject = {
        "type": "tool",
        "data": {"content": blocks, "tool_call_id": "c1", "status": "success"},
    }
    root = openinference("chain", "planner", {"lc_agent_name": "planner"}, STATE)

    (run,) = runs_of(
        [row(1, None, "planner", root), row(2, 1, "get", openinference("tool", "get", {}, message))]
    )

    assert {"humidity": 81} == run.tool_calls[0].result


@pytest.mark.parametrize(
    ("state", "output"),
    [
        ({"messages": [ASKED, {"content": "", "type": "ai"}], "structured_response": {"t": 1}}, {"t": 1}),
        ({"messages": [ASKED, ANSWERED], "structured_response": {"t": 1}}, "Cold."),
        ({"messages": [ASKED, {"content": "", "type": "ai"}], "structuredResponse": {"t": 1}}, {"t": 1}),
        ({"messages": [ASKED, ANNOUNCED], "structuredResponse": {"t": 1}}, {"t": 1}),
        ({"messages": [ASKED, ANNOUNCED]}, {"t": 1}),
        (
            {"messages": [ASKED, {**ANSWERED, "content": "I look."}, {"content": "Rain.", "type": "tool"}]},
            "Rain.",
        ),
        ({"messages": [ASKED, {"content": "", "type": "ai"}]}, None),
    ],
)
def test_what_a_state_ends_with_is_the_answer(state: JsonObject, output: JsonValue) -> None:
    root = openinference("chain", "planner", {"lc_agent_name": "planner"}, state)

    (run,) = runs_of([row(1, None, "planner", root)])

    assert output == run.output


def test_serialised_messages_have_the_role_of_their_class() -> None:
    def message(kind: str, text: str) -> JsonObject:
        path: JsonValue = ["langchain", "schema", "messages", kind]
        return {"lc": 1, "type": "constructor", "id": path, "kwargs": {"content": text}}

    given: JsonObject = {"messages": [message("HumanMessage", "Weather?"), message("ToolMessage", "done")]}
    root: JsonObject = {
        **traceloop(
            "chain", "planner", {"lc_agent_name": "planner"}, {"messages": [message("ToolMessage", "11")]}
        ),
        "traceloop.entity.input": json.dumps({"inputs": given, "kwargs": {}}),
    }

    (run,) = runs_of([row(1, None, "planner", root)])

    assert "Weather?" == run.input


def test_a_tool_that_waits_for_an_answer_has_not_failed() -> None:
    raised: JsonObject = {
        "exception.type": "Exception",
        "exception.message": "GraphInterrupt((Interrupt(value=1),))",
    }
    root = langsmith("chain", "planner", {"lc_agent_name": "planner"}, STATE)
    call = langsmith("tool", "confirm", {}, None)
    spans = [
        row(1, None, "planner", root),
        span(2, 1, "confirm", call, events=[("exception", raised)], status=(STATUS_ERROR, "")),
        span(3, 1, "confirm", {**call, "error.type": "GraphInterrupt"}, at=(1, 2)),
    ]

    assert [None, None] == [call.error for call in runs_of(spans)[0].tool_calls]


@pytest.mark.parametrize("write", [langsmith, langfuse, mlflow], ids=lambda write: write.__name__)
def test_a_tool_that_transfers_the_conversation_is_a_handoff(write: Write) -> None:
    root = write("chain", "planner", {"lc_agent_name": "planner"}, STATE)
    call = write("tool", "transfer_to_bob", {}, "1")

    (run,) = runs_of([row(1, None, "planner", root), row(2, 1, "transfer_to_bob", call)])

    assert [CallCategory.HANDOFF] == [call.category for call in run.tool_calls]


def test_one_request_that_was_tried_again_did_not_run_beside_itself() -> None:
    spans = [
        span(1, None, "invoke_agent a", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"}),
        model(2, 1, (1, 10), **{"gen_ai.output.messages": ASKS_FOR_GET}),
        tool(3, 1, "get", (11, 20), call_id="c1", result=None, **{"error.type": "TimeoutError"}),
        tool(4, 1, "get", (30, 40), call_id="c1"),
    ]

    first, second = runs_of(spans)[0].tool_calls

    assert (None, None) == (first.parallel_group, second.parallel_group)
    assert 0 == second.retry_of


def test_one_text_that_writes_an_object_stays_the_argument_that_the_model_gave() -> None:
    answer: JsonObject = {
        "messages": [
            {
                "type": "ai",
                "content": "",
                "tool_calls": [{"id": "c1", "name": "get", "args": {"input": '{"x": 1}'}}],
            }
        ]
    }
    made: JsonObject = {"output": {"type": "tool", "content": "1", "tool_call_id": "c1"}}
    call = {**langsmith("tool", "get", {}, made), "gen_ai.prompt": json.dumps({"input": '{"x": 1}'})}
    spans = [
        row(1, None, "planner", langsmith("chain", "planner", {"lc_agent_name": "planner"}, STATE)),
        row(2, 1, "m", langsmith("llm", "m", {}, answer), (1, 10)),
        row(3, 1, "get", call, (11, 20)),
    ]

    assert {"input": '{"x": 1}'} == runs_of(spans)[0].tool_calls[0].arguments


@pytest.mark.parametrize(("name", "agents"), [("call_agent", ["flow", "bob"]), ("tools_condition", ["flow"])])
def test_the_node_of_a_step_that_calls_an_agent_names_it(name: str, agents: list[str]) -> None:
    flow: JsonObject = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "flow"}
    step: JsonObject = {**flow, "gen_ai.agent.name": name, "metadata.langgraph_node": "bob"}
    spans = [
        span(1, None, "invoke_agent flow", flow),
        span(2, 1, f"invoke_agent {name}", step, at=(1, 30)),
        tool(3, 2, "get", (2, 20)),
    ]

    assert agents == [run.agent.name for run in runs_of(spans)]


@pytest.mark.parametrize(
    ("recorded", "result"),
    [
        ({"name": "get", "tool_call_id": "c1", "content": {"t": 1}}, {"t": 1}),
        ({"messages": [{"type": "tool", "content": "noted"}]}, "noted"),
        ({"messages": [{"subject": "Hello"}]}, {"messages": [{"subject": "Hello"}]}),
    ],
)
def test_tool_messages_are_opened_however_they_were_shortened(recorded: JsonValue, result: JsonValue) -> None:
    flow: JsonObject = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "flow"}
    call = tool(2, 1, "get", result=json.dumps(recorded))

    (run,) = runs_of([span(1, None, "invoke_agent flow", flow), call])

    assert result == run.tool_calls[0].result


def test_inputs_and_outputs_that_older_releases_send_as_bytes_are_read() -> None:
    def as_bytes(raw: RawSpan, **values: JsonValue) -> RawSpan:
        number, payload, of = raw
        told = Span.FromString(payload)
        for key, value in values.items():
            told.attributes.add(key=key.replace("ai_", "ai.")).value.bytes_value = json.dumps(value).encode()
        return number, told.SerializeToString(), of

    message: JsonObject = {"content": "1", "type": "tool", "tool_call_id": "c1"}
    root = row(1, None, "planner", langsmith("chain", "planner", {}, None))
    call = row(2, 1, "get", langsmith("tool", "get", {}, None), (1, 10))
    spans = [
        as_bytes(root, gen_ai_prompt={"messages": [ASKED]}, gen_ai_completion=STATE),
        as_bytes(call, gen_ai_prompt={"input": "{'city': 'Oslo'}"}, gen_ai_completion={"output": message}),
    ]
    (run,) = runs_of(spans)

    assert ("Weather?", "Cold.") == (run.input, run.output)
    assert [({"city": "Oslo"}, 1, "c1")] == [
        (made.arguments, made.result, made.call_id) for made in run.tool_calls
    ]
