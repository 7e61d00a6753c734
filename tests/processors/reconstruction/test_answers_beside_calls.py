"""What a model says beside calls that ran at its provider, as instrumentations of all kinds record it."""

import json
from collections.abc import Callable
from typing import TypeAlias

import pytest

from processors.model.agent_run import AgentRun, CallCategory
from processors.model.json_values import JsonObject, JsonValue
from tests.support.agent_spans import agent, model, runs_of, span, tool

Form: TypeAlias = Callable[[], JsonObject]
SEARCH: JsonObject = {"query": "oslo weather"}
FOUND: list[JsonValue] = [{"type": "web_search_result", "title": "Oslo", "url": "https://example.org"}]
BEFORE, ANSWER = "I'll search.", "It is 11 degrees."


def text(content: str) -> JsonObject:
    return {"type": "text", "content": content}


def answered(*parts: JsonObject, finish_reason: str = "stop") -> JsonObject:
    message = {"role": "assistant", "parts": parts, "finish_reason": finish_reason}
    return {"gen_ai.output.messages": json.dumps([message])}


def anthropic_conventions() -> JsonObject:
    return answered(
        text(BEFORE),
        {
            "type": "server_tool_call",
            "id": "srvtoolu_1",
            "name": "web_search",
            "server_tool_call": {"type": "web_search", "input": SEARCH},
        },
        {
            "type": "server_tool_call_response",
            "id": "srvtoolu_1",
            "server_tool_call_response": {"type": "web_search", "content": FOUND},
        },
        text(ANSWER),
    )


def anthropic_blocks() -> JsonObject:
    """As OpenLLMetry passes blocks on that it does not know."""
    return answered(
        text(BEFORE),
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": SEARCH},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": FOUND},
        text(ANSWER),
        finish_reason="end_turn",
    )


def ai_sdk() -> JsonObject:
    """The text first, then the calls, then the results, whatever the order was."""
    return answered(
        text(ANSWER),
        {"type": "tool_call", "id": "ws_1", "name": "web_search", "arguments": SEARCH},
        {"type": "tool_call_response", "id": "ws_1", "response": FOUND},
    )


def pydantic_ai() -> JsonObject:
    return answered(
        text(BEFORE),
        {"type": "tool_call", "id": "p1", "name": "web_search", "arguments": SEARCH, "builtin": True},
        {"type": "tool_call_response", "id": "p1", "name": "web_search", "result": FOUND, "builtin": True},
        text(ANSWER),
    )


def openai_conventions() -> JsonObject:
    call: JsonObject = {"type": "web_search", "status": "completed", "action": SEARCH}
    return answered(
        {"type": "server_tool_call", "id": "ws_1", "name": "web_search", "server_tool_call": call},
        text(ANSWER),
    )


def openai_items() -> JsonObject:
    items = [
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": SEARCH},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": ANSWER}]},
    ]
    return {"gen_ai.output.messages": json.dumps(items)}


def openinference_anthropic() -> JsonObject:
    message = "llm.output_messages.0.message."
    return {
        "openinference.span.kind": "LLM",
        f"{message}role": "assistant",
        f"{message}contents.0.message_content.type": "text",
        f"{message}contents.0.message_content.text": ANSWER,
        f"{message}tool_calls.0.tool_call.id": "srvtoolu_1",
        f"{message}tool_calls.0.tool_call.function.name": "web_search",
        f"{message}tool_calls.0.tool_call.function.arguments": json.dumps(SEARCH),
    }


def openinference_openai() -> JsonObject:
    message = "llm.output_messages."
    return {
        "openinference.span.kind": "LLM",
        f"{message}0.message.role": "assistant",
        f"{message}0.message.tool_calls.0.tool_call.id": "ws_1",
        f"{message}0.message.tool_calls.0.tool_call.function.name": "web_search_call",
        f"{message}0.message.tool_calls.0.tool_call.function.arguments": json.dumps(SEARCH),
        f"{message}1.message.role": "assistant",
        f"{message}1.message.content": ANSWER,
    }


def ai_sdk_legacy() -> JsonObject:
    call = {"toolCallId": "ws_1", "toolName": "web_search", "input": json.dumps(SEARCH)}
    return {
        "ai.operationId": "ai.generateText.doGenerate",
        "ai.response.text": ANSWER,
        "ai.response.toolCalls": json.dumps([call]),
        "ai.response.finishReason": "stop",
    }


FORMS = [
    anthropic_conventions, anthropic_blocks, ai_sdk, pydantic_ai, openai_conventions, openai_items,
    openinference_anthropic, openinference_openai, ai_sdk_legacy,
]  # fmt: skip


def run_of(turn: JsonObject, *, beside_a_tool: bool) -> AgentRun:
    told = turn if "gen_ai.output.messages" not in turn else {"gen_ai.operation.name": "chat", **turn}
    spans = [agent(1, None, "weather"), span(2, 1, "chat", told, at=(30, 40))]
    if beside_a_tool:
        asked: JsonObject = {"type": "tool_call", "id": "c1", "name": "get", "arguments": {"city": "Oslo"}}
        spans += [
            model(3, 1, (0, 9), **answered(asked, finish_reason="tool_call")),
            tool(4, 1, "get", call_id="c1", at=(10, 20)),
        ]
    (run,) = runs_of(spans)
    return run


@pytest.mark.parametrize("beside_a_tool", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_the_text_beside_a_call_at_the_provider_is_the_answer(form: Form, beside_a_tool: bool) -> None:
    run = run_of(form(), beside_a_tool=beside_a_tool)

    assert ANSWER == run.output
    *own, search = run.tool_calls
    assert ["get"] * beside_a_tool == [call.name for call in own]
    assert ("web_search", SEARCH, True) == (search.name, search.arguments, search.executed)
    assert [] == list(run.requested_calls)


@pytest.mark.parametrize("form", [anthropic_conventions, anthropic_blocks, ai_sdk, pydantic_ai])
def test_a_result_beside_its_call_is_that_of_the_call(form: Form) -> None:
    (search,) = run_of(form(), beside_a_tool=False).tool_calls

    assert FOUND == search.result


def test_code_that_the_model_runs_is_a_call_with_its_result() -> None:
    """As Google's own parts are written by its Agent Development Kit."""
    parts = [
        {"executableCode": {"language": "PYTHON", "code": "print(1)"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_FAILED", "output": "no"}},
        {"text": ANSWER},
    ]
    turn: JsonObject = {
        "gen_ai.operation.name": "call_llm",
        "gcp.vertex.agent.llm_request": json.dumps({"contents": []}),
        "gcp.vertex.agent.llm_response": json.dumps({"content": {"role": "model", "parts": parts}}),
    }

    (run,) = runs_of([agent(1, None, "weather"), span(2, 1, "call_llm", turn, at=(10, 20))])

    (code,) = run.tool_calls
    assert ("code_execution", CallCategory.SERVER, "no", True) == (
        code.name,
        code.category,
        code.result,
        code.error is not None,
    )
    assert ANSWER == run.output


def test_what_a_connector_returned_stands_in_its_call() -> None:
    call: JsonValue = {"type": "mcp", "arguments": '{"q": 1}', "output": "two", "server_label": "docs"}
    part: JsonObject = {"type": "server_tool_call", "id": "mcp_1", "name": "look", "server_tool_call": call}

    run = run_of(answered(part, text(ANSWER)), beside_a_tool=False)

    (look,) = run.tool_calls
    assert ("look", {"q": 1}, "two") == (look.name, look.arguments, look.result)
    assert ANSWER == run.output


@pytest.mark.parametrize("finish_reason", ["tool_call", "stop"])
def test_text_before_a_call_that_the_application_has_to_make_is_no_answer(finish_reason: str) -> None:
    """Google's models end with `stop` there, too."""
    asked: JsonObject = {"type": "tool_call", "id": "c2", "name": "pay", "arguments": {}}

    run = run_of(answered(text(BEFORE), asked, finish_reason=finish_reason), beside_a_tool=True)

    assert run.output is None
    assert ["pay"] == [call.name for _, call in run.requested_calls]


def test_a_call_that_waits_beside_one_at_the_provider_leaves_no_answer() -> None:
    parts = json.loads(str(anthropic_conventions()["gen_ai.output.messages"]))[0]["parts"]
    asked: JsonObject = {"type": "tool_call", "id": "c2", "name": "pay", "arguments": {}}

    run = run_of(answered(*parts, asked, finish_reason="tool_call"), beside_a_tool=True)

    assert run.output is None
    assert ["get", "web_search"] == [call.name for call in run.tool_calls]
    assert ["pay"] == [call.name for _, call in run.requested_calls]
