"""Whole runs as the instrumentors of this convention write them for one framework each."""

import json
from collections.abc import Callable

import pytest

from processors.model import CallCategory, JsonObject, JsonValue, ToolError, ValueState
from processors.spans import STATUS_ERROR, RawSpan
from tests.support.agent_spans import MILLISECOND, envelope, runs_of, span
from tests.support.mixed_traces import assert_conditions_change_nothing

CITY_SCHEMA = (
    '{"city": {"type": "string", "description": "c"}, "days": {"type": "integer", "description": "d"}}'
)
REPORT: JsonObject = {
    "description": "Weather?",
    "expected_output": "a sentence",
    "raw": "Cold.",
    "agent": "planner",
    "messages": [{"role": "assistant", "content": "Thought: x\nObservation: cold"}],
}


def kind(name: str, **more: JsonValue) -> JsonObject:
    return {
        "openinference.span.kind": name,
        **{key.replace("__", "."): value for key, value in more.items()},
    }


def tool(number: int, parent: int, name: str, fields: JsonObject, at: int, scope: str) -> RawSpan:
    return span(number, parent, name, kind("TOOL", **fields), at=(at, at + 1), of=envelope(scope=scope))


def crew(scope: str = "") -> list[RawSpan]:
    """The default mode: the agent's span has its framework's objects as input and output."""
    of = envelope(scope=scope)
    steering = json.dumps({"agent": {"role": "planner"}, "context": "", "tools": ["name='get'"]})
    run = kind("AGENT", graph__node__id="planner", input__value=steering, output__value=json.dumps(REPORT))
    fields: JsonObject = {
        "tool__name": "get",
        "input__value": '{"city": "Oslo"}',
        "output__value": "{'t': 25.0, 'ok': True}",
        "tool__agent_role": "planner",
    }
    return [
        span(1, None, "crew.kickoff", kind("CHAIN", output__value=json.dumps(REPORT)), at=(0, 100), of=of),
        span(2, 1, "planner._execute_core", run, at=(1, 99), of=of),
        tool(3, 2, "get.run", fields, 10, scope),
    ]


def listened_crew(scope: str = "") -> list[RawSpan]:
    """The event listener's mode: texts, with a media type that says no more."""
    of = envelope(scope=scope)
    asked = "Weather?\n\nThis is the expected criteria for your final answer: a sentence"
    run = kind(
        "AGENT",
        graph__node__id="planner",
        input__value=asked,
        output__value="Cold.",
        task_description="Weather?",
    )
    fields: JsonObject = {
        "tool__name": "get",
        "input__value": '{"city": "Oslo"}',
        "input__mime_type": "text/plain",
        "output__value": "{'t': 25.0, 'ok': True}",
    }
    return [
        span(2, None, "planner.Weather?.execute", run, at=(1, 99), of=of),
        tool(3, 2, "get.run", fields, 10, scope),
    ]


def agno(scope: str = "") -> list[RawSpan]:
    of = envelope(scope=scope)
    run = kind(
        "AGENT", agent__name="planner", input__value="Weather?", output__value="Cold.", session__id="s1"
    )
    fields: JsonObject = {
        "tool__name": "get",
        "tool__parameters": '{"city": "Oslo"}',
        "input__value": '{"city": "Oslo"}',
        "output__value": "{'t': 25.0, 'ok': True}",
        "output__mime_type": "text/plain",
    }
    return [
        span(2, None, "planner.run", {**run, "agno.agent.id": "planner"}, at=(1, 99), of=of),
        tool(3, 2, "get", fields, 10, scope),
    ]


def smolagents(scope: str = "") -> list[RawSpan]:
    of = envelope(scope=scope)
    run = kind("AGENT", input__value='{"task": "Weather?", "stream": false}', output__value="Cold.")
    fields: JsonObject = {
        "tool__name": "get",
        "tool__parameters": CITY_SCHEMA,
        "input__value": '{"args": ["Oslo"], "sanitize_inputs_outputs": false, "kwargs": {}}',
        "output__value": '{"t": 25.0, "ok": true}',
    }
    answer: JsonObject = {"tool__name": "final_answer", "input__value": '{"args": ["Cold."], "kwargs": {}}'}
    return [
        span(1, None, "planner.run", run, at=(1, 99), of=of),
        span(2, 1, "Step 1", kind("CHAIN"), at=(2, 98), of=of),
        tool(3, 2, "SimpleTool", fields, 10, scope),
        tool(4, 2, "FinalAnswerTool", answer, 20, scope),
    ]


def autogen(scope: str = "") -> list[RawSpan]:
    """Each call twice: the instrumentor's span around the framework's own, which tells id and error."""
    of = envelope(scope=scope)
    printed = "id='1' source='user' models_usage=None metadata={} content='Weather?' type='TextMessage'"
    asked = json.dumps({"messages": [printed], "cancellation_token": "<CancellationToken object at 0x1>"})
    run = kind("AGENT", graph__node__id="planner", graph__node__parent_id="start", input__value=asked)
    fields: JsonObject = {
        "tool__name": "get",
        "tool__parameters": '{"city": "Oslo"}',
        "input__value": '{"city": "Oslo"}',
        "output__value": "{'t': 25.0, 'ok': True}",
    }
    native: JsonObject = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get"}
    failed: JsonObject = {**native, "gen_ai.tool.call.id": "c2", "error.type": "ValueError"}
    exception = ("exception", {"exception.type": "ValueError", "exception.message": "kaput"})
    invoked: JsonObject = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "planner"}
    return [
        span(1, None, "invoke_agent planner", invoked, at=(0, 100), of=of),
        span(2, 1, "planner.on_messages_stream", run, at=(1, 99), of=of),
        tool(3, 2, "planner.get", fields, 10, scope),
        span(4, 3, "execute_tool get", {**native, "gen_ai.tool.call.id": "c1"}, at=(10, 11), of=of),
        tool(5, 2, "planner.get", {**fields, "output__value": "kaput"}, 20, scope),
        span(6, 5, "execute_tool get", failed, at=(20, 21), events=[exception, exception],
             status=(STATUS_ERROR, "ValueError: kaput"), of=of),
    ]  # fmt: skip


def llama_index(scope: str = "") -> list[RawSpan]:
    of = envelope(scope=scope)
    started = json.dumps({"init_state": {"is_running": False}, "start_event": "AgentWorkflowStartEvent()"})
    stopped = (
        "StopEvent(result=AgentOutput(response=ChatMessage(role=<MessageRole.ASSISTANT: 'assistant'>, "
        "additional_kwargs={}, blocks=[TextBlock(block_type='text', text='Cold.')]), structured..."
    )
    output = {"blocks": [], "tool_name": "get", "raw_input": {}, "raw_output": {"t": 25.0, "ok": True}}
    fields: JsonObject = {
        "tool__name": "get",
        "tool__parameters": '{"properties": {"city": {"type": "string"}}, "type": "object"}',
        "input__value": '{"kwargs": {"city": "Oslo"}}',
        "output__value": json.dumps({**output, "is_error": False}),
    }
    turn = kind("LLM", llm__input_messages__0__message__role="user")
    turn["llm.input_messages.0.message.content"] = "Weather?"
    return [
        span(1, None, "FunctionAgent.run", kind("CHAIN", input__value=started, output__value=stopped),
             at=(0, 100), of=of),
        span(2, 1, "MockLLM.astream_chat", turn, at=(1, 5), of=of),
        span(3, 1, "BaseWorkflowAgent.call_tool", kind("CHAIN", input__value='{"ev": "ToolCall()"}'),
             at=(9, 20), of=of),
        tool(4, 3, "FunctionTool.acall", fields, 10, scope),
        span(5, 1, "BaseWorkflowAgent.aggregate_tool_results", kind("CHAIN"), at=(30, 31), of=of),
    ]  # fmt: skip


def claude(scope: str = "") -> list[RawSpan]:
    """The sub-agent's run lies under the call that started it, and has that tool's name."""
    of = envelope(scope=scope)
    fields: JsonObject = {
        "tool__name": "get",
        "tool__id": "toolu_1",
        "tool__parameters": '{"city": "Oslo"}',
        "input__value": '{"city": "Oslo"}',
        "output__value": '{"t": 25.0, "ok": true}',
    }
    task: JsonObject = {"tool__name": "Task", "tool__id": "toolu_2", "input__value": '{"prompt": "pay"}'}
    run = kind(
        "AGENT", agent__name="planner", input__value="Weather?", output__value="Cold.", session__id="s1"
    )
    return [
        span(1, None, "ClaudeAgentSDK.query", run, at=(0, 100), of=of),
        tool(3, 1, "get", fields, 10, scope),
        span(4, 1, "Task", kind("TOOL", **task), at=(20, 40), of=of),
        span(5, 4, "Task", kind("AGENT", agent__name="Task"), at=(21, 39), of=of),
        tool(6, 5, "inner", {"tool__name": "inner", "tool__id": "toolu_3"}, 22, scope),
    ]


INSTRUMENTORS = [crew, listened_crew, agno, smolagents, autogen, llama_index, claude]


@pytest.mark.parametrize("spans", INSTRUMENTORS, ids=lambda spans: str(spans.__name__))
def test_the_run_and_its_first_call_are_what_they_were(spans: Callable[[], list[RawSpan]]) -> None:
    run = runs_of(spans())[0]

    assert ("demo" if spans is llama_index else "planner", "Weather?") == (run.agent.name, run.input)
    assert (None if spans is autogen else "Cold.") == run.output
    call = run.tool_calls[0]
    assert ("get", {"city": "Oslo"}, {"t": 25.0, "ok": True}, None) == (
        call.name,
        call.arguments,
        call.result,
        call.error,
    )


@pytest.mark.parametrize("spans", INSTRUMENTORS, ids=lambda spans: str(spans.__name__))
def test_neither_scope_names_nor_other_conventions_change_what_is_read(
    spans: Callable[[str], list[RawSpan]],
) -> None:
    assert_conditions_change_nothing(spans)


def test_a_call_that_two_instrumentations_report_is_an_error_if_one_says_so() -> None:
    first, second = runs_of(autogen())[0].tool_calls

    assert ("c1", None) == (first.call_id, first.error)
    assert ("c2", ToolError(type="ValueError", message="kaput")) == (second.call_id, second.error)


def test_the_tool_that_gives_the_answer_is_no_function() -> None:
    _, answer = runs_of(smolagents())[0].tool_calls

    assert CallCategory.FINAL_ANSWER is answer.category


def test_a_sub_agents_calls_are_its_own() -> None:
    outer, inner = runs_of(claude())

    assert ["toolu_1", "toolu_2"] == [call.call_id for call in outer.tool_calls]
    assert CallCategory.AGENT is outer.tool_calls[1].category
    assert ("Task", "planner", ["inner"]) == (
        inner.agent.name,
        inner.parent_agent,
        [call.name for call in inner.tool_calls],
    )


def sub_agent_call(number: int, name: str, at: int) -> RawSpan:
    given = json.dumps({"prompt": "go", "subagent_type": name})
    return tool(number, 1, "Agent", {"tool__name": "Agent", "input__value": given}, at, "")


def in_background(number: int, at: int) -> list[RawSpan]:
    return [
        span(number, 1, "ClaudeAgentSDK.Subagent", kind("AGENT"), at=(at, 90)),
        tool(number + 1, number, "get", {"tool__name": "get"}, at + 1, ""),
    ]


@pytest.mark.parametrize(
    ("calls", "names"),
    [
        (("explorer", "explorer"), ["explorer", "explorer"]),
        (("explorer", "writer"), ["ClaudeAgentSDK.Subagent", "ClaudeAgentSDK.Subagent"]),
        (("explorer", "__REDACTED__"), ["explorer", "ClaudeAgentSDK.Subagent"]),
    ],
)
def test_a_sub_agent_in_the_background_has_the_name_that_only_its_call_can_tell(
    calls: tuple[str, str], names: list[str]
) -> None:
    spans = [
        span(1, None, "ClaudeAgentSDK.query", kind("AGENT"), at=(0, 100)),
        *(sub_agent_call(2 + number, name, 10 + number) for number, name in enumerate(calls)),
        *in_background(10, 20),
        *in_background(20, 30),
    ]

    outer, *inner = runs_of(spans)

    assert CallCategory.AGENT is outer.tool_calls[0].category
    assert [(name, "demo", ["get"]) for name in names] == [
        (run.agent.name, run.parent_agent, [call.name for call in run.tool_calls]) for run in inner
    ]


@pytest.mark.timeout(30)
def test_many_sub_agents_and_calls_are_read_in_linear_time() -> None:
    calls = [sub_agent_call(10 + number, f"agent {number}", 1) for number in range(4000)]
    runs = [
        span(5000 + number, 1, "ClaudeAgentSDK.Subagent", kind("AGENT"), at=(9, 90)) for number in range(4000)
    ]

    spans = [span(1, None, "ClaudeAgentSDK.query", kind("AGENT"), at=(0, 100)), *calls, *runs]

    assert 4001 == len(runs_of(spans))


def test_a_sub_agent_below_its_call_has_the_name_that_the_call_tells() -> None:
    given = '{"prompt": "go", "subagent_type": "explorer"}'
    task = kind("TOOL", tool__name="Task", input__value=given)
    spans = [
        span(1, None, "ClaudeAgentSDK.query", kind("AGENT"), at=(0, 100)),
        span(2, 1, "Task", task, at=(10, 50)),
        span(3, 2, "ClaudeAgentSDK.Task", kind("AGENT", agent__name="Task"), at=(11, 49)),
    ]

    assert ["demo", "explorer"] == [run.agent.name for run in runs_of(spans)]


def test_what_is_hidden_is_redacted_and_not_made_up() -> None:
    hidden = "__REDACTED__"
    fields: JsonObject = {"tool__name": "get", "input__value": hidden, "output__value": hidden}
    run = kind("AGENT", agent__name="planner", input__value=hidden, output__value=hidden)

    (told,) = runs_of([span(1, None, "planner.run", run), tool(2, 1, "get", fields, 5, "")])

    assert (ValueState.REDACTED, None, ValueState.REDACTED, None) == (
        told.input_state,
        told.input,
        told.output_state,
        told.output,
    )
    assert [(ValueState.REDACTED, None, ValueState.REDACTED, None)] == [
        (call.arguments_state, call.arguments, call.result_state, call.result) for call in told.tool_calls
    ]


def test_an_answer_that_was_cut_off_in_print_is_unknown() -> None:
    run = kind(
        "CHAIN", output__value="StopEvent(result=AgentOutput(response=ChatMessage(blocks=[TextBlock(..."
    )

    (told,) = runs_of(
        [span(1, None, "FunctionAgent.run", run), tool(2, 1, "get", {"tool__name": "get"}, 5, "")]
    )

    assert ValueState.ABSENT is told.output_state


def test_an_agent_that_manages_others_may_call_them_as_its_tools() -> None:
    run = kind("AGENT", smolagents__tools_names=["get"], smolagents__managed_agents__0__name="humid")

    (told,) = runs_of([span(1, None, "boss.run", run)])

    assert told.available_tools is not None
    assert {"get": None, "humid": None} == dict(told.available_tools)


def workflow(first: int, parent: int | None, agents: list[str], at: tuple[int, int]) -> list[RawSpan]:
    """An agent's run as a workflow of steps, whose model spans lie twice in each other."""
    given = '{"init_state": {"config": {"steps": {"setup_agent": {"num_workers": 4}}}}, "start_event": "E()"}'
    spans = [span(first, parent, "WeatherAgent.run", kind("CHAIN", input__value=given), at=at)]
    for place, agent in enumerate(agents):
        event = {"ctx": "<Context>", "ev": f"AgentInput(input=[], current_agent_name='{agent}')"}
        step = kind("CHAIN", input__value=json.dumps(event))
        within = (at[0] + 1 + place, at[1] - 1)
        spans.append(span(first + 1 + place, first, "AgentWorkflow.setup_agent", step, at=within))
    wrapper = kind("LLM", input__value="{}", output__value="{}")
    turn = kind(
        "LLM",
        llm__input_messages__0__message__role="user",
        llm__input_messages__0__message__content="Weather?",
        llm__output_messages__0__message__role="assistant",
        llm__output_messages__0__message__content="Cold.",
    )
    return [
        *spans,
        span(first + 5, first, "OpenAILike._prepare_chat_with_tools", wrapper, at=(at[0] + 4, at[0] + 5)),
        span(first + 6, first, "OpenAILike.achat", wrapper, at=(at[1] - 5, at[1] - 2)),
        span(first + 7, first + 6, "OpenAILike.achat", turn, at=(at[1] - 5, at[1] - 3)),
    ]


def test_a_workflow_without_calls_is_a_run_of_the_agent_that_its_steps_name() -> None:
    (run,) = runs_of(workflow(1, None, ["planner", "planner"], (0, 90)))

    assert ("planner", "Weather?", "Cold.") == (run.agent.name, run.input, run.output)


def test_a_workflow_below_a_call_is_a_run_of_its_own() -> None:
    asking = tool(20, 1, "FunctionTool.acall", {"tool__name": "ask"}, 20, "")
    inner = workflow(30, 20, ["humid"], (20, 21))

    outer_run, inner_run = runs_of([*workflow(1, None, ["boss"], (0, 90)), asking, *inner])

    assert ("boss", ["ask"]) == (outer_run.agent.name, [call.name for call in outer_run.tool_calls])
    assert ("humid", "boss") == (inner_run.agent.name, inner_run.parent_agent)


def handing_over(first: int = 1, parent: int | None = None) -> list[RawSpan]:
    """A workflow in which one agent hands over to another, which hands back."""
    given = '{"init_state": {"config": {"steps": {"setup_agent": {"num_workers": 4}}}}, "start_event": "E()"}'
    stopped = (
        "StopEvent(result=AgentOutput(response=ChatMessage(role=<MessageRole.ASSISTANT: 'assistant'>, "
        "additional_kwargs={}, blocks=[TextBlock(block_type='text', text='All done.')]), structured..."
    )
    spans = [
        span(first, parent, "AgentWorkflow.run", kind("CHAIN", input__value=given, output__value=stopped),
             at=(500, 600)),
    ]  # fmt: skip
    stays = [("triage", ["look_up", "handoff"]), ("billing", ["refund", "handoff"]), ("triage", ["close"])]
    for number, (agent, tools) in enumerate(stays):
        at, place = 510 + 30 * number, first + 1 + 10 * number
        event = f"AgentInput(input=[ChatMessage(blocks=[])], current_agent_name='{agent}')"
        step = kind("CHAIN", input__value=json.dumps({"ctx": "<Context>", "ev": event}))
        spans.append(span(place, first, "AgentWorkflow.setup_agent", step, at=(at, at + 1)))
        turn = kind("LLM", llm__input_messages__0__message__role="user")
        turn["llm.input_messages.0.message.content"] = "Refund o1"
        turn["llm.output_messages.0.message.content"] = f"I am {agent}."
        spans.append(
            span(place + 1, first, "AgentWorkflow.run_agent_step", kind("CHAIN"), at=(at + 2, at + 9))
        )
        spans.append(span(place + 2, place + 1, "MockLLM.achat", turn, at=(at + 3, at + 8)))
        for nth, name in enumerate(tools):
            spans.append(
                tool(place + 3 + nth, first, "FunctionTool.acall", {"tool__name": name}, at + 10 + nth, "")
            )
    return spans


def told_by(spans: list[RawSpan]) -> list[tuple[str, list[str]]]:
    return [(run.agent.name, [call.name for call in run.tool_calls]) for run in runs_of(spans)]


def test_a_workflow_whose_steering_is_cut_off_was_asked_what_its_first_turn_was() -> None:
    steering = '{"init_state": {"is_running": false, "config": {"steps": {' + '"x": {}, ' * 100
    _, *steps = handing_over()
    run = span(1, None, "AgentWorkflow.run", kind("CHAIN", input__value=steering), at=(500, 600))

    assert {"Refund o1"} == {run.input for run in runs_of([run, *steps])}


def test_agents_that_hand_over_within_a_workflow_are_runs_of_their_own() -> None:
    runs = runs_of(handing_over())

    assert [
        ("triage", ["look_up", "handoff"], "Refund o1", None, True),
        ("billing", ["refund", "handoff"], "Refund o1", None, True),
        ("triage", ["close"], "Refund o1", "All done.", True),
    ] == [
        (run.agent.name, [call.name for call in run.tool_calls], run.input, run.output, run.complete)
        for run in runs
    ]
    assert [None, None, None] == [run.parent_agent for run in runs]
    assert CallCategory.HANDOFF is runs[0].tool_calls[1].category


def test_results_of_agents_that_hand_over_stand_on_the_steps_with_which_they_took_over() -> None:
    runs = runs_of(handing_over())

    assert [(2, 510, 540), (12, 540, 570), (22, 570, 600)] == [
        (
            int.from_bytes(run.carrier_span_id or b""),
            run.start_unix_nano // MILLISECOND,
            run.end_unix_nano // MILLISECOND,
        )
        for run in runs
    ]


def test_who_made_a_call_does_not_depend_on_the_order_in_which_spans_came() -> None:
    spans = handing_over()

    assert told_by(spans) == told_by(spans[::-1])
    assert told_by(spans) == told_by([*spans[1::2], *spans[::2]])


def test_a_workflow_below_a_call_has_the_agent_that_made_the_call_as_its_parent() -> None:
    asking = span(60, 40, "FunctionTool.acall", kind("TOOL", tool__name="ask"), at=(450, 650))
    outer = workflow(40, None, ["boss"], (0, 900))
    inner = workflow(70, 15, ["humid"], (551, 552))

    runs = runs_of([*outer, asking, *handing_over(1, 60), *inner])

    assert {
        ("boss", None),
        ("triage", "boss"),
        ("billing", "boss"),
        ("humid", "billing"),
    } == {(run.agent.name, run.parent_agent) for run in runs}


def test_a_call_as_old_as_the_step_of_the_next_agent_is_the_one_that_handed_over() -> None:
    late = tool(50, 1, "FunctionTool.acall", {"tool__name": "late"}, 540, "")

    assert ["look_up", "handoff", "late"] == told_by([*handing_over(), late])[0][1]


@pytest.mark.parametrize(
    ("ev", "parent", "at"),
    [
        ("AgentInput(input=[ChatMessage(blocks=[TextBlock(text='a long...", 1, (545, 546)),
        ("AgentInput(input=[], current_agent_name='billing')", 3, (545, 546)),
        ("AgentInput(input=[], current_agent_name='other')", 1, (540, 541)),
    ],
    ids=["a step without a name", "a step of another workflow", "two agents at once"],
)
def test_a_workflow_whose_agents_cannot_be_told_apart_bears_no_agents_name(
    ev: str, parent: int, at: tuple[int, int]
) -> None:
    step = kind("CHAIN", input__value=json.dumps({"ctx": "<Context>", "ev": ev}))
    spans = [*handing_over(), span(50, parent, "AgentWorkflow.setup_agent", step, at=at)]

    assert [("demo", ["look_up", "handoff", "refund", "handoff", "close"])] == told_by(spans)


def test_a_step_whose_event_is_cut_off_is_named_by_what_it_made() -> None:
    cut = kind("CHAIN", input__value='{"ctx": "<Context>", "ev": "AgentInput(input=[ChatMes')
    made = {**cut, "output.value": "AgentSetup(input=[13 items], current_agent_name='audit')"}
    spans = [*handing_over(), span(50, 1, "AgentWorkflow.setup_agent", made, at=(590, 591))]

    assert ["triage", "billing", "triage", "audit"] == [name for name, _ in told_by(spans)]


@pytest.mark.parametrize("schema", ['{"city": {"type": "string"}}', "{}"], ids=["a parameter", "none"])
def test_an_object_that_the_framework_hands_a_tool_is_no_argument(schema: str) -> None:
    asked: JsonObject = {"city": "Oslo"} if "city" in schema else {}
    given = {"kwargs": {**asked, "ctx": "<workflows.context.context.Context object at 0x7fe681146fd0>"}}
    fields: JsonObject = {
        "tool__name": "get",
        "tool__parameters": f'{{"properties": {schema}, "type": "object"}}',
        "input__value": json.dumps(given),
    }

    (run,) = runs_of(
        [*workflow(1, None, ["boss"], (0, 90)), tool(20, 1, "FunctionTool.acall", fields, 20, "")]
    )

    assert asked == run.tool_calls[0].arguments


def test_a_workflow_whose_content_is_hidden_is_known_by_its_class() -> None:
    hidden = kind("CHAIN", input__value="__REDACTED__", output__value="__REDACTED__")

    (run,) = runs_of([span(1, None, "FunctionAgent.run", hidden)])

    assert ("demo", ()) == (run.agent.name, tuple(run.tool_calls))
