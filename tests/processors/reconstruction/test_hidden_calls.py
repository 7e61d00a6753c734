"""What a run called is known only by evidence: spans of calls, or what its model turns show."""

import json

import pytest

from processors.model.agent_run import AgentRun, ValueState
from processors.model.finish_reason import FinishReason
from processors.model.json_values import JsonObject, JsonValue
from processors.reconstruction.passes import reconstruct
from processors.spans.span import RawSpan
from tests.support.agent_spans import TRACE_ID, agent, envelope, model, runs_of, span, tool

OUTPUT, INPUT, REASONS = "gen_ai.output.messages", "gen_ai.input.messages", "gen_ai.response.finish_reasons"
QUESTION: JsonObject = {"role": "user", "parts": [{"type": "text", "content": "How warm?"}]}
ANSWER: JsonObject = {"role": "assistant", "parts": [{"type": "text", "content": "Mild."}]}
CALL: JsonObject = {
    "role": "assistant",
    "parts": [{"type": "tool_call", "id": "c1", "name": "get", "arguments": {"city": "Oslo"}}],
}
RESULT: JsonObject = {
    "role": "tool",
    "parts": [{"type": "tool_call_response", "id": "c1", "response": {"celsius": 11}}],
}
TOLD_NOTHING = (False, "content_not_captured")


def messages(*told: JsonValue) -> str:
    return json.dumps(list(told))


def of_openinference(*turns: JsonObject) -> list[RawSpan]:
    """An agent's run as an instrumentation of OpenInference writes it, with one model span for each turn."""
    scope = envelope(scope="openinference.instrumentation.any")
    fields: JsonObject = {"openinference.span.kind": "AGENT", "agent.name": "a"}
    return [
        span(1, None, "run", fields, of=scope),
        *[
            span(
                number,
                1,
                "llm",
                {"openinference.span.kind": "LLM", **turn},
                at=(number, number + 1),
                of=scope,
            )
            for number, turn in enumerate(turns, 2)
        ],
    ]


def of_genai(*turns: JsonObject, **more: JsonValue) -> list[RawSpan]:
    """An agent's run by the GenAI conventions, with one model span for each turn."""
    spans = [model(number, 1, (number, number + 1), **turn) for number, turn in enumerate(turns, 2)]
    return [agent(1, None, "a", (0, 100), **more), *spans]


def known(spans: list[RawSpan]) -> tuple[bool, str] | bool:
    """True where the run's calls are known whole, else that they are not, and why."""
    (run,) = runs_of(spans)
    return run.complete or (run.complete, run.incomplete_reason)


def called(run: AgentRun) -> list[tuple[str, JsonValue]]:
    return [(call.name, call.result) for call in run.tool_calls]


@pytest.mark.parametrize("spans", [of_genai(), of_openinference()], ids=["GenAI", "OpenInference"])
def test_a_run_with_neither_a_turn_nor_a_call_is_not_known_to_have_called_nothing(
    spans: list[RawSpan],
) -> None:
    assert TOLD_NOTHING == known(spans)
    assert True is known([*spans, tool(9, 1, "get")])


def test_a_workflow_with_neither_a_turn_nor_a_call_is_not_known_either() -> None:
    fields: JsonObject = {"gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": "w"}

    assert TOLD_NOTHING == known([span(1, None, "invoke_workflow w", fields)])


def test_what_an_agents_own_span_says_it_answered_is_evidence() -> None:
    assert True is known(of_genai(**{OUTPUT: messages(ANSWER)}))
    assert TOLD_NOTHING == known(of_genai(**{OUTPUT: messages(ANSWER)[:-20]}))
    assert TOLD_NOTHING == known(of_genai(**{OUTPUT: "[REDACTED]"}))


def test_agents_and_tools_written_by_hand_need_no_turns() -> None:
    assert True is known([span(1, None, "run", {"openinference.span.kind": "AGENT", "agent.name": "a"})])


@pytest.mark.parametrize(
    "spans",
    [
        of_genai({OUTPUT: messages(ANSWER)}),
        of_openinference({"llm.output_messages.0.message.content": "Mild."}),
    ],
    ids=["GenAI", "OpenInference"],
)
def test_a_turn_whose_answer_is_there_shows_that_nothing_was_called(spans: list[RawSpan]) -> None:
    assert True is known(spans)


@pytest.mark.parametrize(
    "spans",
    [
        of_genai({}),
        of_genai({OUTPUT: "__REDACTED__"}),
        of_genai({OUTPUT: messages(CALL)[:90]}),
        of_genai({OUTPUT: messages(CALL)[:90] + "...[truncated]"}),
        of_genai({OUTPUT: messages({"role": "assistant", "parts": []})}),
        of_openinference({"llm.model_name": "m"}),
        of_openinference({"llm.output_messages.0.message.role": "assistant"}),
    ],
    ids=["absent", "masked", "cut", "cut and marked", "empty", "hidden", "hidden content"],
)
def test_a_turn_that_shows_no_answer_may_hide_calls_where_none_has_a_span(spans: list[RawSpan]) -> None:
    assert TOLD_NOTHING == known(spans)
    assert True is known([*spans, tool(9, 1, "get", at=(3, 4))])


@pytest.mark.parametrize(
    ("told", "is_known"),
    [
        ({REASONS: ["stop"]}, True),
        ({REASONS: '["STOP"]'}, True),
        ({REASONS: "[end_turn]"}, True),
        ({"gen_ai.response.finish_reason": "FinishReason.STOP"}, True),
        ({"ai.response.finishReason": "stop"}, True),
        ({REASONS: ["tool_calls"]}, TOLD_NOTHING),
        ({REASONS: ["stop", "tool-calls"]}, TOLD_NOTHING),
        ({REASONS: ["length"]}, TOLD_NOTHING),
        ({REASONS: ["tool_calls"], OUTPUT: messages(ANSWER)}, TOLD_NOTHING),
        ({OUTPUT: messages({**ANSWER, "finish_reason": "tool_call"})}, TOLD_NOTHING),
        ({REASONS: ["stop"], OUTPUT: messages(ANSWER)[:30]}, True),
    ],
)
def test_the_reason_for_which_an_answer_ended_says_whether_it_asks_for_calls(
    told: JsonObject, is_known: object
) -> None:
    assert is_known == known(of_genai(told))


def test_providers_that_stop_with_calls_too_show_nothing_by_that_but_in_an_agents_own_loop() -> None:
    told: JsonObject = {
        "gen_ai.operation.name": "generate_content",
        "gen_ai.provider.name": "gcp.gemini",
        REASONS: ["stop"],
    }
    of_client = span(2, 1, "generate_content m", told, at=(1, 9), of=envelope(scope="of the client"))
    of_agent = span(2, 1, "generate_content m", told, at=(1, 9))

    assert TOLD_NOTHING == known([agent(1, None, "a"), of_client])
    assert True is known([agent(1, None, "a"), of_agent])


def test_a_request_that_failed_hides_no_call() -> None:
    failed = span(2, 1, "chat m", {"gen_ai.operation.name": "chat"}, at=(1, 9), status=(2, "overloaded"))

    assert True is known([agent(1, None, "a"), failed])


@pytest.mark.parametrize(
    "answer", [{}, {OUTPUT: messages(CALL)[:60]}, {OUTPUT: "[REDACTED]"}], ids=["absent", "cut", "masked"]
)
def test_what_an_answer_does_not_show_is_read_from_the_next_turns_history(answer: JsonObject) -> None:
    last: JsonObject = {INPUT: messages(QUESTION, CALL, RESULT), OUTPUT: messages(ANSWER)}

    (run,) = runs_of(of_genai({INPUT: messages(QUESTION), **answer}, last))

    assert ([("get", {"celsius": 11})], "Mild.", True) == (called(run), run.output, run.complete)


def test_a_history_that_repeats_an_answer_without_calls_shows_that_none_was_asked_for() -> None:
    again: JsonObject = {"role": "user", "parts": [{"type": "text", "content": "And now?"}]}
    last: JsonObject = {INPUT: messages(QUESTION, ANSWER, again), OUTPUT: messages(ANSWER)}

    assert True is known(of_genai({INPUT: messages(QUESTION)}, last))


def test_a_history_shows_nothing_where_what_is_new_in_it_cannot_be_told() -> None:
    last: JsonObject = {INPUT: messages(QUESTION, CALL, RESULT)[:-9], OUTPUT: messages(ANSWER)}

    assert TOLD_NOTHING == known(of_genai({INPUT: messages(QUESTION)}, last))
    assert TOLD_NOTHING == known(of_genai({}, {INPUT: messages(RESULT), OUTPUT: messages(ANSWER)}))


def test_calls_that_are_known_stay_known_beside_an_answer_that_is_cut() -> None:
    (run,) = runs_of(
        of_genai(
            {INPUT: messages(QUESTION), OUTPUT: messages(CALL)},
            {INPUT: messages(QUESTION, CALL, RESULT), OUTPUT: messages(CALL)[:80]},
        )
    )

    assert ([("get", {"celsius": 11})], *TOLD_NOTHING) == (called(run), run.complete, run.incomplete_reason)


def test_the_remains_of_a_cut_answer_are_no_output_and_no_message() -> None:
    (run,) = runs_of(of_genai({INPUT: messages(QUESTION), OUTPUT: messages(ANSWER)[:50]}))

    assert (ValueState.TRUNCATED, None) == (run.output_state, run.output)
    assert "How warm?" == run.input
    assert not run.answers_are_known()


@pytest.mark.parametrize("text", ['{"city": "Oslo"} is the place.', "[Note] It is mild.", "{}, nothing."])
def test_an_answer_that_begins_like_data_is_a_text(text: str) -> None:
    (run,) = runs_of(of_genai({OUTPUT: text}))

    assert (text, True) == (run.output, run.complete)


def test_a_trace_that_was_cut_short_is_so_before_anything_was_not_captured() -> None:
    (run,) = reconstruct(of_genai(), trace_id=TRACE_ID, reason=FinishReason.PRESSURE)

    assert (False, "incomplete_trace") == (run.complete, run.incomplete_reason)
