"""Prompt programs, emitters of events, teams and streamed runs of this convention's instrumentors."""

import pytest

from processors.model import CallCategory, JsonObject, JsonValue, ValueState
from processors.spans import STATUS_ERROR, RawSpan
from tests.support.agent_spans import envelope, runs_of, span

ANSWERED: dict[str, JsonValue] = {"output.value": "Cold.", "input.value": "Weather?"}


def of_kind(kind: str, **more: JsonValue) -> JsonObject:
    return {"openinference.span.kind": kind, **{key.replace("__", "."): value for key, value in more.items()}}


def react_run(number: int, parent: int | None, answer: str, at: int = 0) -> list[RawSpan]:
    run = of_kind("CHAIN", input__value='{"input_args": {"question": "Weather?"}}', output__value=answer)
    get = of_kind("TOOL", input__value='{"kwargs": {"city": "Oslo"}}', output__value='{"t": 25}')
    finish = of_kind("TOOL", input__value='{"kwargs": {}}', output__value="Completed.")
    return [
        span(number, parent, "ReAct.forward", run, at=(at, at + 40)),
        span(number + 1, number, "get.__call__", get, at=(at + 10, at + 11)),
        span(number + 2, number, "finish.__call__", finish, at=(at + 20, at + 21)),
    ]


def test_a_tool_of_a_prompt_program_is_called_as_its_span_without_the_method() -> None:
    (run,) = runs_of(react_run(1, None, '{"trajectory": {}, "reasoning": "r", "answer": "Cold."}'))

    get, finish = run.tool_calls
    assert ("get", {"city": "Oslo"}, {"t": 25}) == (get.name, get.arguments, get.result)
    assert (CallCategory.FUNCTION, CallCategory.FINAL_ANSWER) == (get.category, finish.category)
    assert ("Weather?", "Cold.") == (run.input, run.output)


def test_an_answer_of_several_fields_is_an_object_without_the_way_to_it() -> None:
    (run,) = runs_of(react_run(1, None, '{"trajectory": {"thought_0": "x"}, "city": "Oslo", "t": 25}'))

    assert {"city": "Oslo", "t": 25} == run.output


def test_two_prompt_programs_below_one_span_are_two_runs() -> None:
    answer = '{"trajectory": {}, "answer": "Cold."}'

    runs = runs_of(
        [span(1, None, "request", at=(0, 100)), *react_run(2, 1, answer), *react_run(5, 1, answer, 50)]
    )

    assert ["demo", "demo"] == [run.agent.name for run in runs]
    assert [2, 2] == [len(run.tool_calls) for run in runs]


def test_the_input_of_an_emitted_call_is_its_arguments_and_an_event_is_no_agent() -> None:
    of = envelope(scope="openinference.instrumentation.beeai")
    call = of_kind("TOOL", tool__name="get", input__value='{"input": {"city": "Oslo"}, "options": null}')
    event = of_kind("AGENT", input__value='{"delta": "Cold."}', metadata__path="agent.final_answer")

    (run,) = runs_of(
        [
            span(1, None, "weather", of_kind("AGENT", agent__name="weather"), of=of),
            span(2, 1, "get", call, at=(10, 11), of=of),
            span(3, 1, "final_answer", event, at=(20, 21), of=of),
        ]
    )

    (get,) = run.tool_calls
    assert {"city": "Oslo"} == get.arguments


def test_a_tool_of_another_framework_may_take_input_and_options() -> None:
    call = of_kind("TOOL", tool__name="get", input__value='{"input": {"city": "Oslo"}, "options": null}')

    (run,) = runs_of([span(1, None, "a", of_kind("AGENT", agent__name="a")), span(2, 1, "get", call)])

    assert {"input": {"city": "Oslo"}, "options": None} == run.tool_calls[0].arguments


def test_an_id_drawn_for_a_nameless_agent_is_no_name() -> None:
    (run,) = runs_of(
        [span(1, None, "Agent.run", of_kind("AGENT", graph__node__id="87c98d26185391b7", **ANSWERED))]
    )

    assert "demo" == run.agent.name


@pytest.mark.parametrize("name", ["delegate_task_to_member", "Delegate work to coworker"])
def test_work_given_to_another_agent_is_an_agents_call(name: str) -> None:
    call = of_kind("TOOL", tool__name=name, input__value='{"task": "x"}')

    (run,) = runs_of([span(1, None, "a", of_kind("AGENT", agent__name="a")), span(2, 1, name, call)])

    assert CallCategory.AGENT is run.tool_calls[0].category


def test_the_question_of_a_kickoff_is_the_input() -> None:
    fields = of_kind("AGENT", graph__node__id="planner", input__value='{"messages": "Weather?"}')

    (run,) = runs_of([span(1, None, "planner.kickoff", fields)])

    assert "Weather?" == run.input


@pytest.mark.parametrize(
    ("printed", "answer"),
    [
        (
            "ToolCall(name='get', arguments={}, id='c1')"
            "ActionStep(step_number=1)FinalAnswerStep(output='It\\'s cold.')",
            "It's cold.",
        ),
        ("ToolCall(name='get', arguments={}, id='c1')FinalAnswerStep(output={'t': 25})", {"t": 25}),
        ("RunResult(output='Cold.', state='success', steps=[{'task': 'x'}])", "Cold."),
        ("A text about FinalAnswerStep(output='x')", "A text about FinalAnswerStep(output='x')"),
    ],
)
def test_the_answer_is_taken_out_of_printed_steps(printed: str, answer: JsonValue) -> None:
    (run,) = runs_of(
        [span(1, None, "planner.run", of_kind("AGENT", agent__name="planner", output__value=printed))]
    )

    assert answer == run.output


def test_a_generator_is_no_result() -> None:
    call = of_kind(
        "TOOL", tool__name="get", output__value="<generator object get.<locals>.run at 0x56282d606b30>"
    )

    (run,) = runs_of([span(1, None, "a", of_kind("AGENT", agent__name="a")), span(2, 1, "get", call)])

    assert ValueState.ABSENT is run.tool_calls[0].result_state


@pytest.mark.parametrize(
    "printed",
    [
        "content='{\"t\": 25}' metadata=None images=None videos=None audios=None files=None",
        "ToolResult(content='{\"t\": 25}', metadata={'a': 'b'}, images=None, audios=None, files=None)",
    ],
)
def test_a_printed_tool_result_is_opened(printed: str) -> None:
    call = of_kind("TOOL", tool__name="get", output__value=printed)

    (run,) = runs_of([span(1, None, "a", of_kind("AGENT", agent__name="a")), span(2, 1, "get", call)])

    assert {"t": 25} == run.tool_calls[0].result


def test_the_error_that_an_emitter_writes_as_a_failed_runs_output_is_no_answer() -> None:
    of = envelope(scope="openinference.instrumentation.beeai")
    run = of_kind("AGENT", agent__name="weather", output__value="ChatModelError: no model")

    model = of_kind("LLM", output__value="ChatModelError: no model")

    (failed,) = runs_of(
        [
            span(1, None, "weather", run, of=of, status=(STATUS_ERROR, "")),
            span(2, 1, "OpenAIChatModel", model, at=(10, 20), of=of, status=(STATUS_ERROR, "")),
        ]
    )

    assert ValueState.ABSENT is failed.output_state


def delegation(
    number: int, given: str, at: tuple[int, int], name: str = "Delegate work to coworker"
) -> RawSpan:
    call = of_kind("TOOL", tool__name=name, input__value=given, output__value="80 %")
    return span(number, 1, f"{name}.run", call, at=at)


@pytest.mark.parametrize(
    ("name", "asks"), [("Delegate work to coworker", "task"), ("Ask question to coworker", "question")]
)
def test_what_lies_below_a_delegation_is_done_by_the_coworker(name: str, asks: str) -> None:
    get = of_kind("TOOL", tool__name="get", input__value='{"city": "Oslo"}', output__value="80")
    spans = [
        span(1, None, "boss.task._execute_core", of_kind("AGENT", graph__node__id="boss"), at=(0, 100)),
        delegation(2, f'{{"{asks}": "How humid?", "context": "none", "coworker": "humid"}}', (10, 50), name),
        span(3, 2, "get.run", get, at=(20, 30)),
    ]

    boss, humid = runs_of(spans)

    assert [(name, CallCategory.AGENT)] == [(call.name, call.category) for call in boss.tool_calls]
    assert ("humid", "boss", "How humid?", "80 %") == (
        humid.agent.name,
        humid.parent_agent,
        humid.input,
        humid.output,
    )
    assert ["get"] == [call.name for call in humid.tool_calls]


def test_a_delegation_that_hides_to_whom_names_no_agent() -> None:
    get = of_kind("TOOL", tool__name="get", input__value="__REDACTED__")
    spans = [
        span(1, None, "boss.task._execute_core", of_kind("AGENT", graph__node__id="boss"), at=(0, 100)),
        delegation(2, "__REDACTED__", (10, 50)),
        span(3, 2, "get.run", get, at=(20, 30)),
    ]

    assert ["boss"] == [run.agent.name for run in runs_of(spans)]
