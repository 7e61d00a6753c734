"""AgentScope: results as Python prints the framework's own objects; see also its recordings in the corpus."""

import json

import pytest

from processors.model import JsonObject, JsonValue, ToolError, ValueState
from processors.spans import RawSpan
from tests.support.agent_spans import agent, envelope, runs_of, span

AGENTSCOPE = envelope(scope="agentscope")


def block(text: str, more: str = ", created_at='2026-11-22T18:19:41', finished_at=None") -> str:
    return f"TextBlock(type='text', text={text!r}, id='b6'{more})"


def response(*blocks: str, state: str = "SUCCESS") -> str:
    printed = f"<ToolResultState.{state}: '{state.lower()}'>"
    return json.dumps(f"ToolResponse(content=[{', '.join(blocks)}], state={printed}, metadata={{}}, id='c1')")


def recorded(number: int, parent: int | None, operation: str, attributes: JsonObject) -> RawSpan:
    own: JsonObject = {"gen_ai.operation.name": operation, **attributes}
    return span(number, parent, f"{operation} x", own, at=(number, number + 1), of=AGENTSCOPE)


def called(result: str) -> list[RawSpan]:
    fields: JsonObject = {
        "gen_ai.tool.name": "get",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.call.arguments": '{"city": "Oslo"}',
        "gen_ai.tool.call.result": result,
    }
    return [agent(1, None, "weather", (0, 9)), recorded(2, 1, "execute_tool", fields)]


@pytest.mark.parametrize(
    ("result", "value"),
    [
        (response(block('{"t": 4}')), {"t": 4}),
        (response(block('it\'s "cold"\n'), block("), ], state=")), 'it\'s "cold"\n\n), ], state='),
        (response(block("cold", more="")), "cold"),
    ],
)
def test_a_result_comes_out_of_its_printed_object(result: str, value: JsonValue) -> None:
    (call,) = runs_of(called(result))[0].tool_calls

    assert (value, None) == (call.result, call.error)


def test_a_failure_is_told_by_the_printed_state() -> None:
    (call,) = runs_of(called(response(block("no station"), state="ERROR")))[0].tool_calls

    assert ToolError(type="", message="no station") == call.error


@pytest.mark.parametrize(
    "result", [response("DataBlock(type='data')"), json.dumps("ToolResponse(content=["), '"plain"', "{}"]
)
def test_what_is_no_printed_text_stays_as_it_is(result: str) -> None:
    (call,) = runs_of(called(result))[0].tool_calls

    assert (json.loads(result), None) == (call.result, call.error)


def test_a_call_without_a_span_has_its_result_from_the_next_turns_history() -> None:
    asks: JsonValue = {"type": "tool_call", "id": "c1", "name": "no_such_tool", "arguments": {"x": 1}}
    told: JsonValue = {
        "type": "tool_call_response", "id": "c1", "response": json.dumps([block("there is no such tool")]),
    }  # fmt: skip
    first: JsonObject = {"gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [asks]}])}
    second: JsonObject = {
        "gen_ai.input.messages": json.dumps([{"role": "assistant", "parts": [asks, told]}]),
        "gen_ai.output.messages": json.dumps(
            [{"role": "assistant", "parts": [{"type": "text", "content": "Sorry."}]}]
        ),
    }
    spans = [agent(1, None, "weather", (0, 9)), recorded(2, 1, "chat", first), recorded(4, 1, "chat", second)]

    (call,) = runs_of(spans)[0].tool_calls

    assert ("no_such_tool", {"x": 1}, ValueState.PRESENT) == (call.name, call.arguments, call.result_state)
    assert "there is no such tool" == call.result
