"""Model calls that a framework's instrumentation and one of the model's client both tell of."""

import json

import pytest

from processors.model.json_values import JsonValue
from processors.spans.span import RawSpan
from tests.support.agent_spans import REMOTE_PARENT, agent, envelope, model, runs_of, span, tool

CLIENT = envelope(scope="client")


def answer(call_id: str = "", text: str = "") -> JsonValue:
    parts: JsonValue = [{"type": "tool_call", "id": call_id, "name": "get"}]
    if text:
        parts = [{"type": "text", "content": text}]
    return json.dumps([{"role": "assistant", "parts": parts}])


def of_client(
    number: int, parent: int | None, at: tuple[int, int], told: JsonValue = None, flags: int = 0
) -> RawSpan:
    fields: dict[str, JsonValue] = {"gen_ai.operation.name": "chat"}
    if told is not None:
        fields["gen_ai.output.messages"] = told
    return span(number, parent, "chat m", fields, at=at, of=CLIENT, flags=flags)


def an_agent_under_a_request(*beside: RawSpan, parent: int | None = None) -> list[RawSpan]:
    """An agent that calls `get` once, within a request's span; its spans were not current."""
    return [
        span(1, parent, "POST /chat", at=(0, 100)),
        agent(2, 1, "weather", (10, 90)),
        span(3, 2, "node", at=(11, 30)),
        model(4, 3, (12, 28), **{"gen_ai.output.messages": answer("c1")}),
        tool(5, 2, "get", (31, 40), "c1"),
        model(6, 2, (50, 80), **{"gen_ai.output.messages": answer(text="It rains.")}),
        *beside,
    ]


@pytest.mark.parametrize("told", [answer("c1"), None], ids=["with content", "without content"])
def test_a_clients_view_of_a_model_call_of_an_agent_is_no_run_of_its_own(told: JsonValue) -> None:
    spans = an_agent_under_a_request(of_client(7, 1, (14, 26), told), of_client(8, 1, (55, 78)))

    runs = runs_of(spans)

    assert [("weather", ["get"])] == [
        (run.agent.name, [call.name for call in run.tool_calls]) for run in runs
    ]


def test_the_view_of_a_client_adds_nothing_to_the_agent_whose_span_was_current() -> None:
    spans = [
        agent(1, None, "planner", (0, 100)),
        agent(2, 1, "weather", (10, 90)),
        model(3, 2, (12, 28), **{"gen_ai.output.messages": answer("c1")}),
        tool(4, 2, "get", (31, 40), "c1"),
        of_client(5, 1, (14, 26), answer("c1")),
    ]

    planner, weather = runs_of(spans)

    assert ([], ["get"]) == (
        [call.name for call in planner.tool_calls],
        [call.name for call in weather.tool_calls],
    )


@pytest.mark.parametrize(
    "beside",
    [
        of_client(7, 1, (14, 26), answer("c9")),
        of_client(7, 1, (14, 45), answer("c1")),
        of_client(7, 1, (41, 45), answer("c1")),
    ],
    ids=["another call was asked for", "that ended later", "at another time"],
)
def test_a_model_call_that_no_other_tells_of_is_told(beside: RawSpan) -> None:
    runs = runs_of([*an_agent_under_a_request(), beside])

    assert ["demo", "weather"] == [run.agent.name for run in runs]


def test_a_model_call_of_the_same_instrumentation_within_the_time_of_another_is_told() -> None:
    also = model(7, 1, (14, 26), **{"gen_ai.output.messages": answer("c1")})

    runs = runs_of([*an_agent_under_a_request(), also])

    assert 2 == len(runs)


@pytest.mark.parametrize(("told", "number_of_runs"), [(answer("c1"), 1), (answer("c9"), 2)])
def test_where_the_parent_of_a_client_is_not_known_its_answer_decides(
    told: JsonValue, number_of_runs: int
) -> None:
    spans = an_agent_under_a_request(of_client(7, 99, (14, 26), told, REMOTE_PARENT))

    assert number_of_runs == len(runs_of(spans))


@pytest.mark.parametrize(
    ("asked", "output"), [("Weather?", "It rains."), ("What else?", None)], ids=["the same", "another"]
)
def test_an_answer_that_only_the_clients_span_below_tells_is_the_turns(
    asked: str, output: str | None
) -> None:
    def question(text: str) -> JsonValue:
        return json.dumps([{"role": "user", "parts": [{"type": "text", "content": text}]}])

    below: dict[str, JsonValue] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": question(asked),
        "gen_ai.output.messages": answer(text="It rains."),
    }
    spans = [
        agent(1, None, "weather", (0, 100)),
        model(2, 1, (10, 90), **{"gen_ai.input.messages": question("Weather?")}),
        span(3, 2, "chat m", below, at=(20, 80), of=CLIENT),
    ]

    assert [output] == [run.output for run in runs_of(spans)]
