"""LiteLLM's callback beside a span of the application."""

import json

import pytest

from processors.model import JsonObject
from processors.spans import RawSpan
from tests.support.agent_spans import agent, envelope, runs_of, span

CALLBACK = envelope(scope="litellm")
WRITTEN: JsonObject = {
    "litellm.call_id": "7b5f",
    "llm.request.type": "completion",
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "m",
}
ASKS = (
    "{'content': None, 'role': 'assistant', 'tool_calls': [{'id': 'c1', 'type': 'function', 'function': %s}]}"
)
CALL = """{'name': 'get', 'arguments': '{"city": "Oslo"}'}"""
QUESTION = "{'role': 'user', 'content': 'Weather?'}"
RESULT = "{'role': 'tool', 'tool_call_id': 'c1', 'content': '11'}"


def request(number: int, at: tuple[int, int], **fields: str) -> RawSpan:
    told: JsonObject = {f"llm.{key.replace('__', '.')}": value for key, value in fields.items()}
    return span(number, 1, "raw_gen_ai_request", told, at=at, of=CALLBACK)


def of_openai() -> list[RawSpan]:
    asks = ASKS % CALL
    return [
        request(
            2,
            (10, 20),
            openai__messages=f"[{QUESTION}]",
            openai__choices=f"[{{'finish_reason': 'tool_calls', 'index': 0, 'message': {asks}}}]",
        ),
        request(
            3,
            (30, 40),
            openai__messages=f"[{QUESTION}, {asks}, {RESULT}]",
            openai__choices="[{'index': 0, 'message': {'content': 'Cold.', 'role': 'assistant'}}]",
        ),
    ]


def of_anthropic() -> list[RawSpan]:
    asks = "{'type': 'tool_use', 'id': 'c1', 'name': 'get', 'input': {'city': 'Oslo'}}"
    result = "{'role': 'user', 'content': [{'type': 'tool_result', 'tool_use_id': 'c1', 'content': '11'}]}"
    return [
        request(
            2,
            (10, 20),
            anthropic__messages=f"[{QUESTION}]",
            anthropic__system="Be brief.",
            anthropic__role="assistant",
            anthropic__content=f"[{asks}]",
        ),
        request(
            3,
            (30, 40),
            anthropic__messages=f"[{QUESTION}, {{'role': 'assistant', 'content': [{asks}]}}, {result}]",
            anthropic__role="assistant",
            anthropic__content="[{'type': 'text', 'text': 'Cold.'}]",
        ),
    ]


@pytest.mark.parametrize("requests", [of_openai(), of_anthropic()], ids=["OpenAI", "Anthropic"])
def test_below_a_span_of_the_application_its_requests_are_the_turns(requests: list[RawSpan]) -> None:
    (run,) = runs_of([span(1, None, "POST /chat", WRITTEN), *requests])

    assert [("get", {"city": "Oslo"}, 11, "c1")] == [
        (call.name, call.arguments, call.result, call.call_id) for call in run.tool_calls
    ]
    assert ("demo", "Weather?", "Cold.") == (run.agent.name, run.input, run.output)


def test_an_agents_span_that_was_written_on_is_still_its_run() -> None:
    fields = {**WRITTEN, "gen_ai.agent.name": "weather"}

    (run,) = runs_of([span(1, None, "invoke_agent weather", fields), *of_openai()])

    assert ("weather", ["get"], True) == (
        run.agent.name,
        [call.name for call in run.tool_calls],
        run.complete,
    )


@pytest.mark.parametrize("operation", ["chat", "responses"])
def test_without_requests_nobody_knows_what_an_agent_that_was_written_on_called(operation: str) -> None:
    fields = {**WRITTEN, "gen_ai.agent.name": "weather", "gen_ai.operation.name": operation}

    (run,) = runs_of([span(1, None, "invoke_agent weather", fields)])

    assert ("content_not_captured", False) == (run.incomplete_reason, run.complete)


def test_the_callbacks_own_span_is_the_turn_and_its_request_is_no_second_one() -> None:
    answer = '[{"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "get"}]}]'
    own = {**WRITTEN, "gen_ai.output.messages": answer}
    asks = f"[{{'index': 0, 'message': {ASKS % CALL}}}]"
    spans = [
        agent(9, None, "weather"),
        span(1, 9, "litellm_request", own, at=(5, 30), of=CALLBACK),
        request(2, (5, 30), openai__messages=f"[{QUESTION}]", openai__choices=asks),
    ]

    (run,) = runs_of(spans)

    assert [("get", "c1")] == [(call.name, call.call_id) for call in run.tool_calls]


def test_a_request_for_embeddings_is_no_turn() -> None:
    assert [] == runs_of([request(2, (10, 20), openai__input="['Oslo']", openai__data="[]")])


def proxied(number: int, start: int, *messages: str, parent: int = 90) -> list[RawSpan]:
    """A request that a client of the proxy made under its own span, which is not here."""
    requested = {"type": "tool_call", "id": f"c{number}", "name": "get", "arguments": {}}
    listed = [
        {"role": "assistant" if place % 2 else "user", "content": text} for place, text in enumerate(messages)
    ]
    return [
        span(number, parent, "Received Proxy Server Request", at=(start, start + 9), of=CALLBACK),
        span(
            number + 1,
            number,
            "litellm_request",
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.input.messages": json.dumps(listed),
                "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [requested]}]),
            },
            at=(start + 1, start + 8),
            of=CALLBACK,
        ),
    ]


@pytest.mark.parametrize(
    ("second", "runs"),
    [
        (proxied(4, 20, "Weather?", "", "11"), 1),
        (proxied(4, 20, "Something else?", "", "11"), 2),  # another loop under the same span
        (proxied(4, 20, "Weather?"), 2),  # again, from the beginning
        (proxied(4, 20, "Weather?", "", "11", parent=91), 2),
    ],
)
def test_requests_to_a_proxy_that_go_on_with_the_one_before_are_one_run(
    second: list[RawSpan], runs: int
) -> None:
    assert [len(run.model_calls) for run in runs_of([*proxied(2, 1, "Weather?"), *second])] == [
        2 // runs
    ] * runs
