"""Spring AI's observations."""

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from processors.model import CallCategory, JsonObject, ToolError, ValueState
from processors.spans import RawSpan
from tests.support.agent_spans import envelope, runs_of, span

SERVICE = envelope(service="travel-assistant", scope="org.springframework.boot")


def trace(more: JsonObject, status: tuple[int, str] = (0, "")) -> list[RawSpan]:
    chat: JsonObject = {"spring.ai.kind": "chat_client", "gen_ai.operation.name": "framework"}
    tool: JsonObject = {
        "spring.ai.kind": "tool_call",
        "gen_ai.operation.name": "framework",
        "gen_ai.system": "spring_ai",
        "spring.ai.tool.definition.name": "get",
        **more,
    }
    return [
        span(1, None, "http post /chat", {}, kind=Span.SPAN_KIND_SERVER, of=SERVICE),
        span(2, 1, "spring_ai chat_client", chat, at=(1, 90), of=SERVICE),
        span(3, 2, "tool_call get", tool, at=(10, 20), status=status, of=SERVICE),
    ]


def test_calls_are_read_and_the_service_stands_for_the_agent() -> None:
    (run,) = runs_of(
        trace(
            {
                "spring.ai.tool.call.id": "c1",
                "spring.ai.tool.call.arguments": '{"city": "Oslo"}',
                "spring.ai.tool.call.result": '"cold"',
            }
        )
    )

    assert "travel-assistant" == run.agent.name
    assert [("get", "c1", {"city": "Oslo"}, "cold")] == [
        (call.name, call.call_id, call.arguments, call.result) for call in run.tool_calls
    ]


def test_missing_values_stay_unknown_and_the_status_tells_a_failure() -> None:
    (run,) = runs_of(trace({}, (2, "boom")))

    (call,) = run.tool_calls
    assert (ValueState.ABSENT, ValueState.ABSENT) == (call.arguments_state, call.result_state)
    assert ToolError(type="", message="boom") == call.error


def test_every_use_of_the_client_is_a_run_of_its_own() -> None:
    chat: JsonObject = {"spring.ai.kind": "chat_client", "gen_ai.operation.name": "framework"}
    called: JsonObject = {"spring.ai.kind": "tool_call", "spring.ai.tool.definition.name": "ask"}
    spans = [
        *trace({}),
        span(4, 1, "spring_ai chat_client", {**chat, "spring.ai.chat.client.conversation.id": "s1"},
             at=(91, 99), of=SERVICE),
        span(5, 4, "tool_call ask", called, at=(92, 98), of=SERVICE),
        span(6, 5, "spring_ai chat_client", chat, at=(93, 97), of=SERVICE),
    ]  # fmt: skip

    told = [
        (run.session, run.parent_agent, [(call.name, call.category) for call in run.tool_calls])
        for run in runs_of(spans)
    ]

    assert [
        (None, None, [("get", CallCategory.FUNCTION)]),
        ("s1", None, [("ask", CallCategory.AGENT)]),
        ("s1", "travel-assistant", []),
    ] == told
