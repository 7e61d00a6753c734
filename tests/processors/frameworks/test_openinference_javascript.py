"""Graphs of JavaScript: every node bears its own place as that of the graph around it."""

import json

from processors.model import JsonObject, JsonValue
from processors.spans import STATUS_ERROR, RawSpan
from tests.support.agent_spans import envelope, runs_of, span

JAVASCRIPT = envelope(scope="@arizeai/openinference-instrumentation-langchain")


def message(kind: str, **fields: JsonValue) -> JsonObject:
    return {"lc": 1, "type": "constructor", "id": ["langchain_core", "messages", kind], "kwargs": fields}


def made(*messages: JsonValue) -> str:
    return json.dumps({"messages": list(messages)})


HUMAN = message("HumanMessage", content="Weather?")
CALL: JsonObject = {"name": "get", "args": {"city": "Oslo"}, "id": "c1", "type": "tool_call"}
ASKS = message("AIMessage", content="", tool_calls=[CALL])
RESULT = message("ToolMessage", status="success", content="18", tool_call_id="c1", name="get")
ANSWER = message("AIMessage", content="It is cold.", tool_calls=[])
CONVERSATION = made(HUMAN, ASKS, RESULT, ANSWER)


def in_graph(
    number: int,
    parent: int | None,
    name: str,
    at: tuple[int, int],
    *,
    node: str = "",
    agent: str = "planner",
    kind: str = "CHAIN",
    given: str = made(HUMAN),
    output: str | None = None,
    status: tuple[int, str] = (1, ""),
    more: JsonObject | None = None,
) -> RawSpan:
    metadata: JsonObject = {"lc_agent_name": agent} if agent else {"ls_integration": "langgraph"}
    if node:
        place = f"{node}:1"
        metadata |= {"langgraph_node": node, "langgraph_checkpoint_ns": place, "checkpoint_ns": place}
    fields: JsonObject = {
        "openinference.span.kind": kind,
        "metadata": json.dumps(metadata),
        "input.value": given,
        **({} if output is None else {"output.value": output}),
        **(more or {}),
    }
    return span(number, parent, name, fields, at=at, status=status, of=JAVASCRIPT)


def model(number: int, parent: int, at: tuple[int, int], answer: JsonObject, node: str) -> RawSpan:
    told: JsonObject = {
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "",
    }
    generation = json.dumps({"generations": [[{"text": "", "message": answer}]]})
    return in_graph(number, parent, "ChatModel", at, node=node, kind="LLM", output=generation, more=told)


def tool(number: int, parent: int, at: tuple[int, int], *, node: str = "tools", agent: str = "") -> RawSpan:
    more: JsonObject = {"tool.name": "get"}
    output = json.dumps({"output": RESULT})
    return in_graph(
        number, parent, "get", at, node=node, agent=agent, kind="TOOL", given="Oslo", output=output, more=more
    )


def test_a_graph_is_one_run_and_its_nodes_are_none() -> None:
    spans = [
        in_graph(1, None, "planner", (0, 100), output=CONVERSATION),
        in_graph(2, 1, "__start__", (1, 2), node="__start__", output=made(HUMAN)),
        in_graph(3, 1, "model_request", (3, 9), node="model_request", output=made(ASKS)),
        model(4, 3, (4, 8), ASKS, "model_request"),
        in_graph(5, 1, "tools", (10, 20), node="tools", output=made(RESULT)),
        tool(6, 5, (11, 19), agent="planner"),
    ]

    (run,) = runs_of(spans)

    assert ("planner", "Weather?", "It is cold.") == (run.agent.name, run.input, run.output)
    assert [("get", "c1", {"city": "Oslo"}, 18)] == [
        (call.name, call.call_id, call.arguments, call.result) for call in run.tool_calls
    ]


def test_an_agent_that_handed_over_keeps_the_calls_it_made() -> None:
    handed_over = (STATUS_ERROR, "\n\nParentCommand\n    at RunnableCallable.invoke")
    spans = [
        in_graph(1, None, "team", (0, 100), agent="", output=CONVERSATION),
        in_graph(2, 1, "alice", (1, 50), node="alice", agent="", status=handed_over),
        in_graph(3, 2, "alice", (2, 49), node="alice", agent="", status=handed_over),
        tool(4, 3, (3, 10)),
        in_graph(5, 1, "bob", (51, 99), node="bob", agent="", output=CONVERSATION),
        in_graph(6, 5, "bob", (52, 98), node="bob", agent="", output=CONVERSATION),
        tool(7, 6, (60, 70)),
    ]

    alice, bob = runs_of(spans)

    assert [("alice", None, ["get"]), ("bob", "It is cold.", ["get"])] == [
        (run.agent.name, run.output, [call.name for call in run.tool_calls]) for run in (alice, bob)
    ]
