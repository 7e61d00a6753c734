"""Quarkus LangChain4j: AI services are runs, though their spans bear nothing but a name."""

from processors.model import JsonObject, ToolError, ValueState
from processors.spans import RawSpan
from tests.support.agent_spans import envelope, runs_of, span

OF = envelope(service="weather-app", scope="io.quarkus.opentelemetry")


def tool(number: int, parent: int, at: tuple[int, int], **more: str) -> RawSpan:
    fields: JsonObject = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.call.id": f"c{number}",
        "gen_ai.tool.name": "get",
        "gen_ai.tool.type": "function",
        **more,
    }
    raised = () if more else [("exception", {"exception.type": "E", "exception.message": "kaput"})]
    return span(number, parent, "langchain4j.tools.get", fields, at=at, events=raised, of=OF)


def turn(number: int, parent: int, at: tuple[int, int], **more: str) -> RawSpan:
    fields: JsonObject = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", **more}
    return span(number, parent, "completion m", fields, at=at, of=OF)


def test_each_ai_service_is_a_run_with_the_calls_made_in_it() -> None:
    told = {"gen_ai.tool.call.arguments": '{"city":"Oslo"}', "gen_ai.tool.call.result": "11.5"}
    spans = [
        span(1, None, "POST /chat", {"http.request.method": "POST"}, at=(0, 100), of=OF),
        span(2, 1, "langchain4j.aiservices.Weather.chat", at=(1, 60), of=OF),
        turn(3, 2, (2, 9)),
        tool(4, 2, (10, 20)),
        tool(5, 2, (21, 30), **told),
        turn(6, 2, (31, 50), **{"gen_ai.prompt": "Be nice\nWeather?", "gen_ai.completion": "Cold."}),
        span(7, 1, "langchain4j.aiservices.Critic.judge", at=(70, 90), of=OF),
        turn(8, 7, (71, 80), **{"gen_ai.completion": "Fine."}),
    ]

    weather, critic = runs_of(spans)

    assert [("Weather", "Cold."), ("Critic", "Fine.")] == [
        (run.agent.name, run.output) for run in (weather, critic)
    ]
    assert [
        (ValueState.ABSENT, None, ToolError(type="E", message="kaput")),
        (ValueState.PRESENT, 11.5, None),
    ] == [(call.arguments_state, call.result, call.error) for call in weather.tool_calls]
    assert ValueState.ABSENT is weather.input_state


def test_spans_of_the_same_name_from_elsewhere_are_nobodys() -> None:
    assert [] == runs_of([span(1, None, "langchain4j.aiservices.Weather.chat"), span(2, 1, "GET /")])
