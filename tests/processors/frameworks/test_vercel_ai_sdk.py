"""The AI SDK's own attributes, in the shapes of versions 4 to 6 and of the legacy telemetry of 7."""

import pytest

from processors.model import JsonObject, JsonValue, ToolError, ValueState
from processors.spans import RawSpan
from tests.support.agent_spans import envelope, runs_of, span

PROMPT = '{"system": "Be brief.", "prompt": "Weather in Oslo?"}'
HISTORY = (
    '[{"role": "user", "content": [{"type": "text", "text": "Weather in Oslo?"}]},'
    ' {"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "c1", "toolName": "get",'
    ' "input": {"city": "Oslo"}}]},'
    ' {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c1", "toolName": "get",'
    ' "output": {"type": "json", "value": {"t": 1}}}]}]'
)


def root(**more: JsonValue) -> RawSpan:
    fields: JsonObject = {
        "operation.name": "ai.generateText planner",
        "resource.name": "planner",
        "ai.operationId": "ai.generateText",
        "ai.telemetry.functionId": "planner",
        "ai.telemetry.metadata.sessionId": "s1",
        "ai.prompt": PROMPT,
        "ai.response.text": "It is cold.",
        **more,
    }
    return span(1, None, "ai.generateText", fields)


def turn(number: int, at: tuple[int, int], **more: JsonValue) -> RawSpan:
    fields: JsonObject = {
        "ai.operationId": "ai.generateText.doGenerate",
        "ai.telemetry.functionId": "planner",
        "gen_ai.system": "mock",
        "gen_ai.request.model": "m",
        **more,
    }
    return span(number, 1, "ai.generateText.doGenerate", fields, at=at)


def call(number: int, parent: int = 1, at: tuple[int, int] = (10, 20), **more: JsonValue) -> RawSpan:
    fields: JsonObject = {
        "ai.operationId": "ai.toolCall",
        "ai.toolCall.name": "get",
        "ai.toolCall.id": "c1",
        "ai.toolCall.args": '{"city": "Oslo"}',
        "ai.toolCall.result": '{"t": 1}',
        **more,
    }
    return span(number, parent, "ai.toolCall", fields, at=at)


def test_a_run_is_read_with_its_call() -> None:
    (run,) = runs_of([root(), turn(2, (1, 5)), call(3), turn(4, (30, 40))])

    assert ("planner", "Weather in Oslo?", "It is cold.", "s1") == (
        run.agent.name,
        run.input,
        run.output,
        run.session,
    )
    assert [("get", "c1", {"city": "Oslo"}, {"t": 1}, None)] == [
        (made.name, made.call_id, made.arguments, made.result, made.error) for made in run.tool_calls
    ]


@pytest.mark.parametrize(
    "prompt",
    [
        '{"messages": [{"role": "user", "content": "Weather in Oslo?"}]}',
        '{"prompt": [{"role": "user", "content": [{"type": "text", "text": "Weather in Oslo?"}]}]}',
    ],
)
def test_the_input_is_the_last_message_of_the_user(prompt: str) -> None:
    (run,) = runs_of([root(**{"ai.prompt": prompt}), call(2)])

    assert "Weather in Oslo?" == run.input


@pytest.mark.parametrize("given", ['"{\\"city\\": \\"Oslo\\"}"', '{"city": "Oslo"}'])
@pytest.mark.parametrize("key", ["input", "args"])
def test_calls_that_only_messages_tell_are_built_from_them(given: str, key: str) -> None:
    asked = f'[{{"toolCallId": "c1", "toolName": "get", "{key}": {given}}}]'

    (run,) = runs_of(
        [
            root(**{"ai.response.toolCalls": asked}),
            turn(2, (1, 5), **{"ai.response.toolCalls": asked}),
            turn(3, (30, 40), **{"ai.prompt.messages": HISTORY, "ai.response.text": "It is cold."}),
        ]
    )

    assert [("get", "c1", {"city": "Oslo"}, {"t": 1})] == [
        (made.name, made.call_id, made.arguments, made.result) for made in run.tool_calls
    ]


def test_a_call_under_the_streaming_turn_that_asked_for_it_is_the_runs() -> None:
    stream = span(2, 1, "ai.streamText.doStream", {"ai.operationId": "ai.streamText.doStream"}, at=(1, 25))

    (run,) = runs_of([root(), stream, call(3, parent=2)])

    assert ["get"] == [made.name for made in run.tool_calls]


def test_a_failed_call_tells_why() -> None:
    failed = span(
        2,
        1,
        "ai.toolCall",
        {"ai.operationId": "ai.toolCall", "ai.toolCall.name": "get"},
        status=(2, "no such city"),
        events=[("exception", {"exception.type": "Error", "exception.message": "no such city"})],
    )

    (run,) = runs_of([root(), failed])

    assert [ToolError(type="Error", message="no such city")] == [made.error for made in run.tool_calls]


def test_content_that_is_switched_off_stays_unknown() -> None:
    bare = span(
        1,
        None,
        "ai.generateText",
        {"ai.operationId": "ai.generateText", "ai.telemetry.functionId": "planner"},
    )
    called = span(2, 1, "ai.toolCall", {"ai.operationId": "ai.toolCall", "ai.toolCall.name": "get"})

    (run,) = runs_of([bare, called])

    (made,) = run.tool_calls
    assert (ValueState.ABSENT, ValueState.ABSENT) == (made.arguments_state, made.result_state)
    assert (ValueState.ABSENT, ValueState.ABSENT) == (run.input_state, run.output_state)


def test_an_agent_in_a_tool_is_a_run_of_its_own() -> None:
    inner: JsonObject = {"ai.operationId": "ai.generateText", "ai.telemetry.functionId": "helper"}

    outer, helper = runs_of(
        [
            root(),
            call(2, at=(10, 60)),
            span(3, 2, "ai.generateText", inner, at=(15, 55)),
            call(4, parent=3, at=(20, 30), **{"ai.toolCall.id": "c2"}),
        ]
    )

    assert (["agent"], "planner") == ([made.category for made in outer.tool_calls], helper.parent_agent)
    assert ["c2"] == [made.call_id for made in helper.tool_calls]


def test_the_scope_does_not_matter() -> None:
    nameless = envelope(scope="")
    spans = [(span_id, raw, nameless) for span_id, raw, _ in (root(), call(2))]

    assert ["get"] == [made.name for made in runs_of(spans)[0].tool_calls]


@pytest.mark.parametrize("operation", ["ai.generateObject", "ai.streamObject"])
def test_an_object_that_was_asked_for_is_the_output_of_a_run(operation: str) -> None:
    fields: JsonObject = {
        "ai.operationId": operation,
        "ai.telemetry.functionId": "extractor",
        "ai.prompt": PROMPT,
        "ai.response.object": '{"t": 18}',
    }

    (run,) = runs_of([span(1, None, operation, fields)])

    assert ("extractor", "Weather in Oslo?", {"t": 18}) == (run.agent.name, run.input, run.output)


def test_a_call_belongs_to_the_streamed_turn_that_its_span_is_under() -> None:
    streamed: JsonObject = {"ai.operationId": "ai.streamText.doStream"}
    called: JsonObject = {"ai.operationId": "ai.toolCall", "ai.toolCall.name": "get"}
    spans = [
        root(),
        span(2, 1, "ai.streamText.doStream", streamed, at=(1, 20)),
        span(3, 2, "ai.toolCall", called, at=(10, 15)),
        span(4, 1, "ai.streamText.doStream", streamed, at=(21, 40)),
        span(5, 4, "ai.toolCall", called, at=(30, 41)),
        span(6, 1, "ai.streamText.doStream", streamed, at=(50, 60)),
    ]

    (run,) = runs_of(spans)

    assert [None, None] == [call.parallel_group for call in run.tool_calls]


def test_what_opencode_reports_of_a_call_elsewhere_in_the_trace_is_that_call() -> None:
    execution = {"tool.name": "get", "tool.call_id": "c1", "session.id": "s1", "message.id": "m1"}
    answered = {"ai.response.toolCalls": '[{"toolCallId": "c1", "toolName": "get", "input": "{}"}]'}
    spans = [
        span(9, None, "SessionTools.resolve", {}, at=(0, 1)),
        root(),
        turn(2, (1, 5), **answered),
        call(3),
        span(4, 9, "Tool.execute", execution, at=(11, 19)),
    ]

    (run,) = runs_of(spans)

    assert [("planner", "c1", {"city": "Oslo"}, {"t": 1})] == [
        (run.agent.name, made.call_id, made.arguments, made.result) for made in run.tool_calls
    ]
