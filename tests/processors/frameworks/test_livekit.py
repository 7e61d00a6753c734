"""LiveKit Agents' session, turns and tools, with content under either prefix."""

import pytest

from processors.model import CallCategory, JsonObject, ToolError, ValueState
from processors.spans import RawSpan
from tests.support.agent_spans import runs_of, span

SESSION: JsonObject = {"lk.agent_name": "receptionist", "lk.agent_label": "app.Receptionist"}


def tool(prefix: str = "lk.", more: JsonObject | None = None) -> RawSpan:
    fields: JsonObject = {
        "lk.function_tool.id": "c1",
        "lk.function_tool.name": "book",
        f"{prefix}function_tool.arguments": '{"day": "Monday"}',
        f"{prefix}function_tool.output": "booked",
        "lk.function_tool.is_error": False,
        **(more or {}),
    }
    return span(4, 2, "function_tool", fields, at=(20, 30))


def turn(prefix: str = "lk.") -> RawSpan:
    fields: JsonObject = {"lk.generation_id": "g1", f"{prefix}user_input": "Book Monday."}
    return span(2, 1, "agent_turn", fields, at=(5, 90))


@pytest.mark.parametrize("prefix", ["lk.", "lk.pii."])
def test_a_session_is_read_with_its_call(prefix: str) -> None:
    (run,) = runs_of([span(1, None, "agent_session", SESSION), turn(prefix), tool(prefix)])

    assert ("receptionist", "Book Monday.") == (run.agent.name, run.input)
    assert [("book", "c1", {"day": "Monday"}, "booked", None)] == [
        (call.name, call.call_id, call.arguments, call.result, call.error) for call in run.tool_calls
    ]


def test_a_label_names_the_agent_where_nothing_else_does() -> None:
    (run,) = runs_of([span(1, None, "agent_session", {"lk.agent_label": "app.Receptionist"}), turn(), tool()])

    assert "app.Receptionist" == run.agent.name


def test_a_flag_tells_a_failure() -> None:
    failed = tool(more={"lk.function_tool.is_error": True, "lk.function_tool.output": "no such day"})

    (run,) = runs_of([span(1, None, "agent_session", SESSION), turn(), failed])

    assert [ToolError(type="", message="no such day")] == [call.error for call in run.tool_calls]


def test_missing_values_stay_unknown() -> None:
    (run,) = runs_of(
        [
            span(1, None, "agent_session", SESSION),
            span(2, 1, "function_tool", {"lk.function_tool.name": "book"}, at=(20, 30)),
        ]
    )

    (call,) = run.tool_calls
    assert (ValueState.ABSENT, ValueState.ABSENT) == (call.arguments_state, call.result_state)


def test_calls_that_only_a_model_tells_are_built_from_its_answer() -> None:
    node: JsonObject = {
        "lk.chat_ctx": '{"items": [{"type": "message", "role": "user", "content": ["Book Monday."]}]}',
        "lk.response.function_calls": '[{"type": "function_call", "call_id": "c1", "name": "book",'
        ' "arguments": "{\\"day\\": \\"Monday\\"}"}]',
    }

    (run,) = runs_of(
        [span(1, None, "agent_session", SESSION), turn(), span(3, 2, "llm_node", node, at=(6, 10))]
    )

    assert [("book", "c1", {"day": "Monday"})] == [
        (call.name, call.call_id, call.arguments) for call in run.tool_calls
    ]


def test_a_turn_that_says_it_is_an_operation_is_a_run_of_its_own() -> None:
    session: JsonObject = {
        "lk.agent_label": "triage",
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": "agent_session",
    }
    job: JsonObject = {"lk.agent_name": "receptionist"}

    def named(name: str, asked: str, answer: str) -> JsonObject:
        return {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": name,
            "lk.generation_id": "g1",
            "lk.pii.user_input": asked,
            "lk.pii.response.text": answer,
        }

    runs = runs_of(
        [
            span(9, None, "job_entrypoint", job),
            span(1, 9, "agent_session", session),
            span(2, 1, "agent_turn", named("triage", "Book Monday.", ""), at=(5, 40)),
            tool("lk.pii."),
            span(3, 1, "agent_turn", named("booking", "Tuesday?", "Booked."), at=(41, 60)),
        ]
    )

    assert [
        ("triage", "Book Monday.", None, ["book"], None),
        ("booking", "Tuesday?", "Booked.", [], None),
    ] == [
        (run.agent.name, run.input, run.output, [call.name for call in run.tool_calls], run.parent_agent)
        for run in runs
    ]


def test_the_answer_of_a_session_is_that_of_its_last_turn() -> None:
    def answered(number: int, text: str, at: tuple[int, int]) -> list[RawSpan]:
        fields: JsonObject = {"lk.generation_id": f"g{number}", "lk.response.text": text}
        node: JsonObject = {"lk.chat_ctx": '{"items": []}', "lk.response.text": text}
        return [
            span(number, 1, "agent_turn", fields, at=at),
            span(number + 1, number, "llm_node", node, at=at),
        ]

    (run,) = runs_of(
        [
            span(1, None, "agent_session", SESSION),
            *answered(10, "I look it up.", (5, 20)),
            *answered(20, "Monday is free.", (30, 40)),
        ]
    )

    assert "Monday is free." == run.output


def test_the_tools_that_a_turn_was_offered_are_known() -> None:
    node: JsonObject = {"lk.chat_ctx": '{"items": []}', "lk.function_tools": ["book", "cancel"]}

    (run,) = runs_of([span(1, None, "agent_session", SESSION), span(3, 1, "llm_node", node, at=(6, 10))])

    assert {"book": None, "cancel": None} == run.available_tools


def test_a_call_that_passes_the_conversation_on_is_a_handoff() -> None:
    (run,) = runs_of(
        [
            span(1, None, "agent_session", SESSION),
            turn(),
            tool(more={"lk.function_tool.name": "transfer_to_b"}),
        ]
    )

    assert [CallCategory.HANDOFF] == [call.category for call in run.tool_calls]
