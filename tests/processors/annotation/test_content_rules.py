"""What of a graded run may leave: by mode, without matches of patterns, never a part of a secret."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.annotation import REDACTED_TEXT, ContentRules, format_run, run_to_json
from processors.model import (
    AgentRun,
    EvaluationResult,
    GradedRun,
    Message,
    Outcome,
    ToolCall,
    ToolError,
    ValueState,
)
from processors.spans import Envelope
from tests.support.agent_spans import envelope
from tests.support.graded_runs import agent_runs, result, weather_run

_EMAIL = r"[\w.]+@[\w.]+\w"


def _graded(explanation: str = "", details: Any = None, **run: Any) -> GradedRun:
    made = EvaluationResult(
        name="e", evaluator="contains", evaluator_version="1", outcome=Outcome.FAIL, score=0.0,
        explanation=explanation, details=details or {},
    )  # fmt: skip
    base = weather_run().run
    fields_of = {
        name: value for name, value in base.__dict__.items() if name in ("trace_id", "span_id", "agent")
    }
    return GradedRun(run=AgentRun(**{**fields_of, **run}), results=[made])


def _shown_explanation(rules: ContentRules, graded: GradedRun) -> str:
    return rules.shown(graded).results[0].explanation


def test_full_without_patterns_is_the_run_itself() -> None:
    graded = weather_run()

    assert graded is ContentRules().shown(graded)
    assert ContentRules().shows_all


def test_every_field_is_known_to_be_content_or_not() -> None:
    """Whoever adds a field decides here whether `ContentRules` has to hide it."""
    content = {
        AgentRun: "input input_state output output_state messages messages_state span_attributes "
        "available_tools requested_calls content tool_calls error conversation",
        ToolCall: "arguments arguments_text arguments_state result result_text result_state error",
        EvaluationResult: "explanation details",
    }
    names_and_ids = {
        AgentRun: "trace_id span_id agent parent_agent session finish_reason complete incomplete_reason "
        "start_unix_nano end_unix_nano tenant resource dialect carrier_span_id model_calls models usage "
        "time_to_first_output_seconds cost stands_for_trace call_turns",
        ToolCall: "name call_id span_id category lenient_values parallel_group start_unix_nano end_unix_nano "
        "executed decision decision_source attempt retry_of agent",
        EvaluationResult: "name evaluator evaluator_version outcome score reason error_type pass_threshold "
        "severity criteria_hash stage muted_until_unix_nano tool_call_id tool_span_id conversation_runs "
        "quotes_content scope",
    }

    for kind in content:
        known = {*content[kind].split(), *names_and_ids[kind].split()}
        assert known == set(kind.__annotations__)


def test_none_leaves_names_states_and_outcomes() -> None:
    shown: Any = run_to_json(ContentRules("none").shown(weather_run()))

    assert ["get_temperature", "get_forecast", "send_mail"] == [call["name"] for call in shown["tool_calls"]]
    assert "Oslo" not in json.dumps(shown)
    for call in shown["tool_calls"]:
        assert call["arguments"] is call["arguments_text"] is None
    assert ["redacted", "redacted", "absent"] == [call["arguments_state"] for call in shown["tool_calls"]]
    assert (None, "redacted", [], "redacted") == (
        shown["input"],
        shown["input_state"],
        shown["messages"],
        shown["messages_state"],
    )
    assert all(not found["explanation"] and not found["details"] for found in shown["evaluations"])


def test_what_was_not_captured_stays_absent() -> None:
    run = ContentRules("none").shown(_graded(tool_calls=[ToolCall("a")])).run

    assert (ValueState.ABSENT, ValueState.ABSENT) == (run.input_state, run.tool_calls[0].arguments_state)


@pytest.mark.parametrize(
    "arguments",
    [
        {"to": "ann@corp.org"},
        {"ann@corp.org": 1},
        {"a": [{"b": "write to ann@corp.org now"}]},
        ["ann@corp.org"],
        "ann@corp.org",
    ],
)
def test_a_match_is_hidden_wherever_it_stands_and_the_value_is_not_compared_any_more(
    arguments: Any,
) -> None:
    call = ToolCall("a", arguments=arguments, arguments_text=json.dumps(arguments).replace("@", "\\u0040"),
                    arguments_state=ValueState.PRESENT)  # fmt: skip
    shown = ContentRules(redact=[_EMAIL]).shown(_graded(tool_calls=[call])).run.tool_calls[0]

    assert "ann" not in str(shown)
    assert REDACTED_TEXT in str(shown.arguments)
    assert ValueState.REDACTED is shown.arguments_state


def test_a_match_across_the_members_of_a_value_hides_the_value() -> None:
    value: Any = {"password": "hunter2", "user": "ann"}
    call = ToolCall(
        "a", arguments=value, arguments_text=json.dumps(value), arguments_state=ValueState.PRESENT
    )
    graded = _graded(details={"actual": value, "expected": "x"}, tool_calls=[call])
    shown = ContentRules(redact=[r'"password": "[^"]*"']).shown(graded)

    assert "hunter2" not in str(shown.run.tool_calls[0])
    assert '"user": "ann"' in str(shown.run.tool_calls[0].arguments_text)
    assert "hunter2" not in str(shown.results[0].details)


def test_numbers_match_as_their_text() -> None:
    call = ToolCall("a", result={"card": 4111111111111111, "n": 3}, result_state=ValueState.PRESENT)
    shown = ContentRules(redact=["4111[0-9]{12}"]).shown(_graded(tool_calls=[call])).run.tool_calls[0]

    assert {"card": REDACTED_TEXT, "n": 3} == shown.result


@pytest.mark.parametrize("cut", range(3, 12))
def test_a_secret_that_was_cut_off_is_not_shown_in_part(cut: int) -> None:
    secret = "ann@corp.org"
    explanation = (
        f"actual: write to {secret[:cut]}…; expected: nothing of {secret[:cut]}… and all of {secret}"
    )
    graded = _graded(explanation, {"actual": f"to {secret[:cut]}…"}, input=f"mail {secret}")
    shown = ContentRules(redact=[_EMAIL]).shown(graded)

    assert "ann" not in shown.results[0].explanation
    assert f"actual: write to {REDACTED_TEXT}…" in shown.results[0].explanation
    assert {"actual": f"to {REDACTED_TEXT}…"} == dict(shown.results[0].details)


def test_a_conversation_with_a_match_is_not_concluded_from() -> None:
    messages = [Message(role="user", content="I am ann@corp.org"), Message(role="assistant", content="Hello")]
    rules = ContentRules(redact=[_EMAIL])

    assert not rules.shown(_graded(messages=messages)).run.answers_are_known()
    assert rules.shown(_graded(messages=messages[1:])).run.answers_are_known()


def test_errors_names_and_sessions_are_redacted_too() -> None:
    call = ToolCall(
        "mail-ann@corp.org",
        call_id="ann@corp.org",
        error=ToolError(type="ann@corp.org", message="no ann@corp.org"),
    )
    shown = ContentRules(redact=[_EMAIL]).shown(
        _graded(tool_calls=[call], session="ann@corp.org", resource={"user": "ann@corp.org"})
    )

    assert "corp" not in format_run(shown).decode()


def test_resource_and_scope_of_records_are_without_matches_and_stay_one_object() -> None:
    rules = ContentRules(redact=["secret-[a-z]+"])
    first, second, plain = envelope("secret-shop"), envelope("secret-shop"), envelope("shop")
    shown = rules.shown_records([(b"1", b"x", first), (b"2", b"y", second), (b"3", b"z", plain)])

    assert [REDACTED_TEXT, REDACTED_TEXT, "shop"] == [of.service_name for _, _, of in shown]
    assert shown[0][2] is shown[1][2]
    assert plain is shown[2][2]
    hidden = rules.shown_records([(b"1", b"x", Envelope(first.resource, envelope(scope="secret-x").scope))])[
        0
    ][2]
    assert REDACTED_TEXT == hidden.scope_name


def test_a_text_that_would_take_too_long_is_hidden_whole() -> None:
    text = "a" * 60_000

    assert REDACTED_TEXT == ContentRules(redact=["a"]).text(text)


@given(agent_runs(), st.sampled_from(["full", "none"]))
def test_every_run_can_be_shown_and_written(run: AgentRun, mode: Any) -> None:
    graded = GradedRun(run=run, results=[result()])

    for rules in (ContentRules(mode), ContentRules(mode, ["[aeiou]", r"\d+"])):
        assert json.loads(format_run(rules.shown(graded)))["agent"]["name"] == run.agent.name
