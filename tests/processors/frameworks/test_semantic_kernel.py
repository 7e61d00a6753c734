"""Semantic Kernel: functions that are no calls, printed contents, and what agents as plugins leave behind."""

import json

from processors.model import CallCategory, JsonObject, JsonValue, ValueState
from processors.spans import RawSpan
from tests.support.agent_spans import agent, envelope, model, runs_of, span

FUNCTIONS = envelope(scope="semantic_kernel.functions.kernel_function")


def function(
    number: int,
    parent: int | None,
    name: str,
    call_id: str = "",
    arguments: str | None = None,
    result: str | None = None,
    at: tuple[int, int] = (10, 20),
) -> RawSpan:
    fields: JsonObject = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        **({"gen_ai.tool.call.id": call_id} if call_id else {}),
        **({"gen_ai.tool.call.arguments": arguments} if arguments is not None else {}),
        **({"gen_ai.tool.call.result": result} if result is not None else {}),
    }
    return span(number, parent, f"execute_tool {name}", fields, at=at, of=FUNCTIONS)


def printed(text: str) -> str:
    inner = f"TextContent(type='text', text={text!r}, annotations=None, meta=None)"
    return (
        f"TextContent(inner_content={inner}, ai_model_id=None, metadata={{}}, content_type='text', "
        f"text={text!r}, encoding=None)"
    )


def test_a_prompt_that_the_program_runs_is_the_run_and_not_a_call_of_it() -> None:
    answer = (
        "[ChatMessageContent(inner_content=ChatCompletion(id='1'), ai_model_id='m', content_type='message', "
        "role=<AuthorRole.ASSISTANT: 'assistant'>, name=None, "
        f"items=[{printed('It is cold.')}], encoding=None)]"
    )
    spans = [
        function(1, None, "nanoFIFmqYyQEsgH", arguments="{}", result=answer, at=(0, 100)),
        span(2, 1, "AutoFunctionInvocationLoop", {"sk.available_functions": "weather-get"}, at=(1, 99)),
        model(3, 2, (2, 8)),
        function(4, 2, "weather-get", "c1", '{"city": "Oslo"}', "11.5"),
        model(5, 2, (30, 90)),
    ]

    (run,) = runs_of(spans)

    assert ("demo", "It is cold.", True) == (run.agent.name, run.output, run.complete)
    assert [("weather-get", {"city": "Oslo"}, 11.5)] == [
        (call.name, call.arguments, call.result) for call in run.tool_calls
    ]


def test_without_sensitive_data_a_prompt_is_no_call_either() -> None:
    spans = [
        function(1, None, "nanoFIFmqYyQEsgH", at=(0, 100)),
        model(2, 1, (2, 8)),
        function(3, 1, "weather-get", "c1"),
    ]

    (run,) = runs_of(spans)

    assert (None, ValueState.ABSENT) == (run.output, run.output_state)
    assert ["weather-get"] == [call.name for call in run.tool_calls]


def test_a_function_of_a_plugin_is_a_call_though_nobody_gave_it_an_id() -> None:
    (run,) = runs_of([agent(1, None, "planner"), function(2, 1, "weather-get")])

    assert ["weather-get"] == [call.name for call in run.tool_calls]


def test_the_texts_in_what_a_tool_server_answered_are_the_result() -> None:
    spans = [
        agent(1, None, "planner"),
        function(2, 1, "weather-get", "c1", result=f"[{printed(json.dumps({'humidity': 81}))}]"),
        function(3, 1, "weather-say", "c2", result=f"[{printed('it' + chr(39) + 's')}, {printed('cold')}]"),
        function(4, 1, "weather-none", "c3", result="[TextContent(cut"),
    ]

    (run,) = runs_of(spans)

    assert [{"humidity": 81}, "it's\ncold"] == [call.result for call in run.tool_calls[:2]]


def test_the_option_of_an_agent_used_as_a_plugin_is_no_argument_of_what_runs_in_it() -> None:
    def arguments(**told: JsonValue) -> str:
        return json.dumps(told)

    spans = [
        agent(1, None, "planner", (0, 100)),
        function(
            2, 1, "asked-asked", "c1", arguments(messages="Weather?", instructions_override=None), at=(5, 90)
        ),
        agent(3, 2, "asked", (6, 80)),
        function(4, 3, "weather-get", "c2", arguments(instructions_override=None, city="Oslo")),
    ]

    planner, asked = runs_of(spans)

    assert [{"messages": "Weather?", "instructions_override": None}] == [
        call.arguments for call in planner.tool_calls
    ]
    assert [({"city": "Oslo"}, '{"city": "Oslo"}')] == [
        (call.arguments, call.arguments_text) for call in asked.tool_calls
    ]


def test_handoffs_and_the_end_of_the_task_are_functions_of_their_own_plugin() -> None:
    spans = [
        agent(1, None, "planner"),
        function(2, 1, "Handoff-transfer_to_weather_agent", "c1"),
        function(3, 1, "Handoff-complete_task", "c2", at=(30, 40)),
    ]

    assert [CallCategory.HANDOFF, CallCategory.FINAL_ANSWER] == [
        call.category for call in runs_of(spans)[0].tool_calls
    ]


def test_a_prompt_of_the_dotnet_kernel_is_known_by_the_name_that_is_drawn_for_it() -> None:
    of = envelope(service="demo", scope="Microsoft.SemanticKernel")
    prompt: JsonObject = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "InvokePromptAsync_0f8fad5bd9cb469fa16570867728950e",
        "gen_ai.tool.call.arguments": "{}",
        "gen_ai.tool.call.result": "It is cold.",
    }
    called: JsonObject = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get",
        "gen_ai.tool.call.arguments": '{"city":"Oslo"}',
        "gen_ai.tool.call.result": "11.5",
    }

    (run,) = runs_of(
        [
            span(1, None, "execute_tool InvokePromptAsync_0f8", prompt, of=of),
            model(2, 1, (2, 8)),
            span(3, 1, "execute_tool get", called, at=(10, 20), of=of),
            model(4, 1, (30, 40)),
        ]
    )

    assert ("demo", "It is cold.") == (run.agent.name, run.output)
    assert [("get", {"city": "Oslo"}, 11.5)] == [
        (call.name, call.arguments, call.result) for call in run.tool_calls
    ]
