"""AgentOps: spans of agent SDKs and of decorated functions, by their kind."""

import pytest

from processors.model import CallCategory, JsonObject, JsonValue, ToolError, ValueState
from processors.spans import RawSpan
from tests.support.agent_spans import envelope, runs_of, span
from tests.support.mixed_traces import assert_conditions_change_nothing

EMITTER: JsonObject = {"instrumentation.name": "agentops"}


def kind(name: str, **more: JsonValue) -> JsonObject:
    fields = {key.replace("__", "."): value for key, value in more.items()}
    return {**EMITTER, "agentops.span.kind": name, **fields}


def recorded(scope: str = "") -> list[RawSpan]:
    of = envelope(scope=scope)
    asked = kind(
        "llm",
        gen_ai__prompt__0__role="user",
        gen_ai__prompt__0__content="Weather?",
        gen_ai__completion__0__tool_calls__0__id="fc_1",
        gen_ai__completion__0__tool_calls__0__type="function_call",
        gen_ai__completion__0__tool_calls__0__name="get",
        gen_ai__completion__0__tool_calls__0__arguments='{"city": "Oslo"}',
    )
    answered = kind("llm", gen_ai__completion__0__role="assistant", gen_ai__completion__0__content="Cold.")
    failed = kind(
        "tool", tool__name="get", tool__parameters="{}", error__type="AgentError", error__message="kaput"
    )
    good = kind("tool", tool__name="get", tool__parameters='{"city": "Oslo"}', tool__result='{"t": 1}')
    return [
        span(1, None, "Agent workflow", {**EMITTER, "workflow.name": "Agent workflow"}, at=(0, 100), of=of),
        span(2, 1, "planner", kind("agent", agent__name="planner"), at=(1, 90), of=of),
        span(3, 2, "turn", EMITTER, at=(2, 40), of=of),
        span(4, 3, "response", asked, at=(3, 10), of=of),
        span(5, 3, "get", failed, at=(11, 15), of=of),
        span(6, 3, "get", good, at=(20, 25), of=of),
        span(7, 3, "response", answered, at=(30, 35), of=of),
        span(
            8, 2, "handoff", {**EMITTER, "from_agent": "planner", "to_agent": "support"}, at=(41, 42), of=of
        ),
    ]


def test_a_run_is_read_with_its_calls() -> None:
    (run,) = runs_of(recorded())

    assert ("planner", "Weather?", "Cold.") == (run.agent.name, run.input, run.output)
    assert [
        ("get", {}, None, ToolError(type="AgentError", message="kaput"), CallCategory.FUNCTION),
        ("get", {"city": "Oslo"}, {"t": 1}, None, CallCategory.FUNCTION),
        ("handoff to support", None, None, None, CallCategory.HANDOFF),
    ] == [(made.name, made.arguments, made.result, made.error, made.category) for made in run.tool_calls]


def test_values_that_were_not_captured_are_not_made_up() -> None:
    spans = [
        span(1, None, "planner", kind("agent", agent__name="planner")),
        span(2, 1, "get", kind("tool", tool__name="get")),
    ]

    (run,) = runs_of(spans)

    assert [(ValueState.ABSENT, ValueState.ABSENT)] == [
        (made.arguments_state, made.result_state) for made in run.tool_calls
    ]


def test_decorated_functions_are_named_and_record_how_they_were_called() -> None:
    called = kind(
        "tool",
        operation__name="get",
        agentops__tool__input='{"args": [], "kwargs": {"city": "Oslo"}}',
        agentops__tool__output='"cold"',
    )
    spans = [
        span(1, None, "planner.agent", kind("agent", operation__name="planner")),
        span(2, 1, "get.tool", called),
        span(3, 1, "work.operation", kind("operation", operation__name="work")),
    ]

    (run,) = runs_of(spans)

    assert "planner" == run.agent.name
    assert [("get", {"city": "Oslo"}, "cold")] == [
        (made.name, made.arguments, made.result) for made in run.tool_calls
    ]


def test_what_a_decorated_run_was_asked_is_its_argument() -> None:
    asked = {
        "agentops.agent.input": '{"args": ["Weather?"], "kwargs": {}}',
        "agentops.agent.output": "Cold.",
    }

    (run,) = runs_of([span(1, None, "planner.agent", {**kind("agent", operation__name="planner"), **asked})])

    assert ("Weather?", "Cold.") == (run.input, run.output)


@pytest.mark.parametrize(
    ("kind_of_run", "entity"), [("workflow", "workflow"), ("session", "entity"), ("session", "session")]
)
def test_a_decorated_workflow_or_trace_stands_for_the_run(kind_of_run: str, entity: str) -> None:
    told = {
        f"agentops.{entity}.input": '{"args": [], "kwargs": {"question": "Weather?"}}',
        f"agentops.{entity}.output": "Cold.",
    }
    root = {**kind(kind_of_run, operation__name="forecast"), **told}
    spans = [span(1, None, f"forecast.{kind_of_run}", root), span(2, 1, "get.tool", kind("tool"))]

    (run,) = runs_of(spans)

    assert ("forecast", {"question": "Weather?"}, "Cold.") == (run.agent.name, run.input, run.output)


@pytest.mark.parametrize("root", ["default", "session"])
def test_a_session_that_nobody_named_names_no_agent(root: str) -> None:
    spans = [
        span(1, None, f"{root}.session", kind("session", operation__name=root)),
        span(2, 1, "get.tool", kind("tool")),
    ]

    (run,) = runs_of(spans)

    assert "demo" == run.agent.name


@pytest.mark.parametrize("told", [{}, {"agentops.span.kind": "AgentOpsSpanKindValues.TOOL"}])
def test_what_a_client_tells_of_the_calls_it_was_asked_for_is_no_call(told: JsonObject) -> None:
    asked: JsonObject = {
        **told,
        "tool.name": "get",
        "tool.parameters": '{"city": "Oslo"}',
        "tool.call.id": "call_1",
        "tool.call.type": "function",
    }
    made = kind("tool", operation__name="get", agentops__tool__output="cold")
    spans = [
        span(1, None, "planner.agent", kind("agent", operation__name="planner"), at=(0, 90)),
        span(2, 1, "openai.chat.completion", {"gen_ai.request.model": "m"}, at=(1, 10)),
        span(3, 2, "tool_call.get", asked, at=(9, 10)),
        span(4, 1, "get.tool", made, at=(20, 30)),
    ]

    (run,) = runs_of(spans)

    assert [("get", "cold")] == [(call.name, call.result) for call in run.tool_calls]


def test_a_receiver_that_another_instrumentation_tells_is_no_handoff() -> None:
    assert [] == runs_of([span(1, None, "send", {"to_agent": "support"})])


def test_neither_scope_names_nor_other_conventions_change_what_is_read() -> None:
    assert_conditions_change_nothing(recorded)
