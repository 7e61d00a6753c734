"""Runs as lines of JSON: the form of the contract, what may be left out, what is refused and how."""

import json
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from processors.annotation import (
    format_run,
    graded_run_from_json,
    run_from_json,
    run_line_schema,
    run_to_json,
)
from processors.model import (
    AgentRun,
    Decision,
    EvaluationResult,
    FinishReason,
    GradedRun,
    JsonObject,
    JsonValue,
    NotEvaluatedReason,
    Outcome,
    RunReference,
    Severity,
    Stage,
    TokenUsage,
    ToolCall,
    ToolError,
    ValueState,
    decode_json,
)
from tests.support.graded_runs import agent_runs, result, weather_run
from tests.support.json_schema import mismatches
from tests.support.values import values_of

_WHERE = "cases.runs.jsonl:3"


def _read(**keys: object) -> AgentRun:
    return run_from_json({"agent": {"name": "a"}, **keys}, _WHERE)


def _problems(entry: object) -> list[str]:
    with pytest.raises(ValueError, match=_WHERE) as raised:
        run_from_json(entry, _WHERE)
    return str(raised.value).splitlines()


def test_a_line_has_the_keys_of_the_contract_in_their_order() -> None:
    entry = json.loads(format_run(weather_run()))

    assert [
        "schema",
        "trace_id",
        "span_id",
        "agent",
        "parent_agent",
        "session",
        "start_time",
        "end_time",
        "input",
        "output",
        "finish_reason",
        "messages",
        "tool_calls",
        "evaluations",
        "duration_seconds",
    ] == list(entry)
    assert 2 == entry["schema"]
    assert {"name": "weather_agent", "id": None, "version": "1.2"} == entry["agent"]
    assert "2026-01-31T08:00:00.000000000Z" == entry["start_time"]
    assert "2026-01-31T08:00:02.500000001Z" == entry["end_time"]
    assert 2.500000001 == entry["duration_seconds"]
    assert {
        "name": "get_temperature",
        "arguments": {"city": "Oslo"},
        "arguments_text": '{"city": "Oslo"}',
        "arguments_state": "present",
        "result": {"temperature": 21.5},
        "result_text": '{"temperature": 21.5}',
        "result_state": "present",
        "error": None,
        "call_id": "call_1",
        "span_id": b"span0001".hex(),
        "category": "function",
        "parallel_group": None,
    } == entry["tool_calls"][0]
    assert {"type": "TimeoutError", "message": "took \x1b[31mtoo long"} == entry["tool_calls"][1]["error"]
    assert {
        "name": "order",
        "evaluator": "order",
        "outcome": "pass",
        "score": 1.0,
        "explanation": "expected: [a]; actual: [a]",
        "details": {"expected": ["a"]},
        "reason": None,
        "severity": "ticket",
        "pass_threshold": 1.0,
        "evaluator_version": "1",
        "criteria_hash": "",
    } == entry["evaluations"][0]
    assert "content_not_captured" == entry["evaluations"][2]["reason"]
    assert "KeyError" == entry["evaluations"][3]["error_type"]


def test_a_duration_stands_in_place_of_times_that_are_not_known() -> None:
    run = _read(duration_seconds=12.5, tool_calls=[{"name": "t", "duration_seconds": 0.25}, {"name": "u"}])

    assert 12.5 == run.duration_seconds
    assert [0.25, None] == [call.duration_seconds for call in run.tool_calls]
    assert _read().duration_seconds is None


def test_usage_and_models_follow_from_the_model_calls_unless_they_are_told() -> None:
    used = {"input_tokens": 3, "output_tokens": 4, "cached_input_tokens": 1}
    calls = [{"model": "a", "usage": used}, {"model": "b", "failed": True}, {"model": "a", "usage": used}]

    run = _read(model_calls=calls)

    assert ("a", "b") == run.models
    assert TokenUsage(6, 8, 2) == run.usage
    assert _read(model_calls=[*calls, {"model": "a"}]).usage is None
    assert TokenUsage(7, 9) == _read(model_calls=calls, usage={"input_tokens": 7, "output_tokens": 9}).usage


def test_amounts_that_cannot_be_are_refused_by_place() -> None:
    entry = {
        "agent": {"name": "a"},
        "cost": -1,
        "duration_seconds": True,
        "models": [1],
        "model_calls": [{"usage": {"input_tokens": 1, "tokens": 2}}],
    }

    shown = "\n".join(_problems(entry))
    for place in (
        "cost: expected a number from 0",
        "duration_seconds: expected a number",
        "models[0]: expected",
        "model_calls[0].usage.output_tokens: missing, expected an integer from 0",
        "model_calls[0].usage.tokens: unknown key",
    ):
        assert place in shown


@pytest.mark.parametrize("amount", [10**400, 1e308, 1e13])
def test_amounts_beyond_what_can_be_counted_are_refused_by_place(amount: float) -> None:
    shown = "\n".join(_problems({"agent": {"name": "a"}, "duration_seconds": amount}))

    assert "duration_seconds: expected a number from 0 to 1e12" in shown


@given(agent_runs())
def test_a_run_written_and_read_again_is_the_same_run(run: AgentRun) -> None:
    line = format_run(GradedRun(run=run, results=[result()]))

    assert run == run_from_json(json.loads(line), _WHERE)


@given(agent_runs())
def test_a_line_follows_the_schema(run: AgentRun) -> None:
    schema = run_line_schema()
    for graded in (GradedRun(run=run, results=()), _graded_by_a_service()):
        assert [] == mismatches(json.loads(format_run(graded)), schema, schema)


def _graded_by_a_service() -> GradedRun:
    """A run with every field of a verdict that a line can hold."""
    results = [
        result(
            outcome=outcome,
            severity=severity,
            stage=stage,
            pass_threshold=0.25,
            criteria_hash="0123456789abcdef",
            muted_until_unix_nano=until,
            reason=reason,
            error_type=error_type,
            tool_call_id=call_id,
            tool_span_id=span_id,
            details={"a": [1]},
            explanation="a: 1",
        )
        for outcome, severity, stage, until, reason, error_type, call_id, span_id in (
            (Outcome.PASS, Severity.PAGE, Stage.LIVE, 0, None, None, None, None),
            (Outcome.FAIL, Severity.ADVISORY, Stage.SHADOW, 2**63, None, None, "call_1", b"toolspan"),
            (
                Outcome.NOT_EVALUATED,
                Severity.TICKET,
                Stage.LIVE,
                0,
                NotEvaluatedReason.OVER_LIMIT,
                None,
                None,
                None,
            ),
            (Outcome.ERROR, Severity.TICKET, Stage.LIVE, 0, None, "KeyError", None, None),
        )
    ]
    run = weather_run().run
    return GradedRun(run=run, results=results, graded_unix_nano=1_769_846_403_000_000_000, instance="host:1")


def test_a_graded_run_written_and_read_again_is_the_same_with_all_its_verdicts() -> None:
    graded = _graded_by_a_service()

    assert graded == graded_run_from_json(json.loads(format_run(graded)), _WHERE)


def test_a_graded_run_of_version_1_is_read_with_what_it_tells() -> None:
    evaluation: JsonObject = {
        "name": "check",
        "evaluator": "check",
        "outcome": "fail",
        "score": 0.5,
        "explanation": "a: 1",
        "details": {"a": 1},
        "reason": None,
        "stage": "shadow",
        "muted": True,
    }
    graded = graded_run_from_json({"agent": {"name": "a"}, "evaluations": [evaluation]}, _WHERE)

    (found,) = graded.results
    assert (0, "") == (graded.graded_unix_nano, graded.instance)
    assert (Outcome.FAIL, Severity.TICKET, Stage.SHADOW) == (found.outcome, found.severity, found.stage)
    assert found.muted_until_unix_nano
    assert {"a": 1} == found.details


@pytest.mark.parametrize("version", [0, 3, "2", None, [2]])
def test_a_version_that_is_not_known_is_refused(version: object) -> None:
    assert [f"{_WHERE}: schema: expected 1 or 2, found {json.dumps(version)}"] == _problems(
        {"schema": version, "agent": {"name": "a"}}
    )


@pytest.mark.parametrize(
    ("text", "unix_nano"),
    [
        ("2026-01-31T08:00:00Z", 1_769_846_400_000_000_000),
        ("2026-01-31T10:00:00.5+02:00", 1_769_846_400_500_000_000),
        ("2026-01-31T08:00:00.000000001Z", 1_769_846_400_000_000_001),
        ("1970-01-01T00:00:00Z", 0),
    ],
)
def test_times_by_hand_are_read_to_the_nanosecond(text: str, unix_nano: int) -> None:
    run = _read(start_time=text, tool_calls=[{"name": "t", "end_time": text}])

    assert (unix_nano, unix_nano) == (run.start_unix_nano, run.tool_calls[0].end_unix_nano)


@pytest.mark.parametrize("text", ["today", "2026-01-31", "2026-13-01T00:00:00Z", "1969-12-31T23:59:59Z"])
def test_what_is_no_time_is_told(text: str) -> None:
    expected = 'expected a time from 1970 on such as "2026-01-31T08:00:00.5Z"'
    assert [f'{_WHERE}: start_time: {expected}, found "{text}"'] == _problems(
        {"agent": {"name": "a"}, "start_time": text}
    )


@given(agent_runs())
def test_a_line_is_one_line(run: AgentRun) -> None:
    assert b"\n" not in format_run(GradedRun(run=run, results=()))


def test_integers_of_any_size_and_lone_surrogates_can_be_written() -> None:
    run = weather_run().run
    odd = AgentRun(
        trace_id=run.trace_id, span_id=None, agent=run.agent, input={"a": 2**70, "b": "\ud800"}, tool_calls=()
    )

    entry = json.loads(format_run(GradedRun(run=odd, results=())))

    assert {"a": 2**70, "b": "\ud800"} == entry["input"]


def test_the_agents_name_is_enough() -> None:
    run = _read()

    assert "a" == run.agent.name
    assert (ValueState.ABSENT, ValueState.ABSENT) == (run.input_state, run.output_state)
    assert FinishReason.ROOT is run.finish_reason
    assert run.complete
    assert [] == list(run.tool_calls)


def test_missing_ids_are_valid_and_follow_from_file_and_line_alone() -> None:
    again, elsewhere = _read(tool_calls=[{"name": "t"}]), run_from_json({"agent": {"name": "a"}}, "other:3")
    run = _read(tool_calls=[{"name": "t"}])

    assert (16, 8, 8) == (len(run.trace_id), len(run.span_id or b""), len(run.tool_calls[0].span_id or b""))
    assert run == again
    assert run.trace_id != elsewhere.trace_id
    assert run.span_id != run.tool_calls[0].span_id
    assert run.span_id == run.carrier_span_id


def test_a_null_is_present_and_a_missing_key_is_absent() -> None:
    run = _read(input=None, tool_calls=[{"name": "t", "result": None}])

    assert (None, ValueState.PRESENT) == (run.input, run.input_state)
    assert ValueState.ABSENT is run.output_state
    assert ValueState.ABSENT is run.tool_calls[0].arguments_state
    assert (None, ValueState.PRESENT) == (run.tool_calls[0].result, run.tool_calls[0].result_state)


def test_texts_are_decoded_as_telemetry_is_and_kept() -> None:
    call = _read(tool_calls=[{"name": "t", "arguments": '{"a": 1}', "result": "[1, 2]"}]).tool_calls[0]

    assert ({"a": 1}, '{"a": 1}') == (call.arguments, call.arguments_text)
    assert ([1, 2], "[1, 2]") == (call.result, call.result_text)


@pytest.mark.parametrize("key", ["result", "result_text"])
def test_a_text_that_was_carried_as_json_is_read_and_kept_as_it_was_carried(key: str) -> None:
    call = _read(tool_calls=[{"name": "t", key: '"true"'}]).tool_calls[0]

    assert ("true", '"true"') == (call.result, call.result_text)


def test_a_value_with_its_text_beside_it_is_taken_as_it_stands() -> None:
    call = _read(tool_calls=[{"name": "t", "result": "12", "result_text": '"12"'}]).tool_calls[0]

    assert ("12", '"12"') == (call.result, call.result_text)


def test_a_text_alone_is_decoded() -> None:
    call = _read(tool_calls=[{"name": "t", "arguments_text": '{"a": 1}'}]).tool_calls[0]

    assert ({"a": 1}, ValueState.PRESENT) == (call.arguments, call.arguments_state)


def test_an_explicit_state_is_honoured() -> None:
    call = _read(tool_calls=[{"name": "t", "result": "cut off he", "result_state": "truncated"}]).tool_calls[
        0
    ]

    assert ValueState.TRUNCATED is call.result_state


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (None, None),
        ("boom", ToolError(type="", message="boom")),
        ({"type": "E", "message": "m"}, ToolError(type="E", message="m")),
        ({"type": "E"}, ToolError(type="E", message="")),
    ],
)
def test_an_error_is_null_a_text_or_an_object(error: object, expected: ToolError | None) -> None:
    assert expected == _read(tool_calls=[{"name": "t", "error": error}]).tool_calls[0].error


def test_a_run_cut_short_is_not_complete_unless_the_line_says_so() -> None:
    assert (False, "over_limit") == (
        _read(finish_reason="over_limit").complete,
        _read(finish_reason="over_limit").incomplete_reason,
    )
    assert _read(finish_reason="shutdown", complete=True).complete


def test_the_tools_of_a_run_are_written_and_read_with_their_schemas() -> None:
    tools: dict[str, JsonValue] = {"search": {"type": "object"}, "pay": None}
    run = _read(available_tools=tools)

    entry = run_to_json(GradedRun(run=run, results=[]))

    assert tools == run.available_tools == entry["available_tools"]


def test_a_run_whose_tools_are_not_known_does_not_mention_them() -> None:
    run = _read()

    assert run.available_tools is None
    assert _problems({"agent": {"name": "a"}, "available_tools": ["search"]})
    assert "available_tools" not in run_to_json(GradedRun(run=run, results=[]))


def test_evaluations_are_ignored() -> None:
    assert _read() == _read(evaluations=[{"anything": 1}])


def test_every_problem_of_a_line_is_named() -> None:
    entry = {
        "agnt": {"name": "a"},
        "trace_id": "00",
        "span_id": 7,
        "finish_reason": "done",
        "complete": 1,
        "messages": [{"role": "robot"}],
        "tool_calls": [{"nam": "t", "category": "z", "parallel_group": -1}, 3],
    }

    problems = _problems(entry)

    reasons = "root, root_incomplete, idle, max_age, over_limit, pressure, shutdown"
    categories = "function, mcp, server, agent, retrieval, handoff, final_answer"
    assert {
        f'{_WHERE}: agnt: unknown key; did you mean "agent"?',
        f"{_WHERE}: agent.name: missing, expected the name that criteria are keyed by",
        f'{_WHERE}: trace_id: expected 32 hexadecimal digits, not all zero, found "00"',
        f"{_WHERE}: span_id: expected 16 hexadecimal digits, not all zero, found 7",
        f'{_WHERE}: finish_reason: expected one of {reasons}, found "done"',
        f"{_WHERE}: complete: expected true or false, found 1",
        f'{_WHERE}: messages[0].role: expected system, user, assistant or tool, found "robot"',
        f'{_WHERE}: tool_calls[0].nam: unknown key; did you mean "name"?',
        f"{_WHERE}: tool_calls[0].name: missing, expected the name of the tool",
        f'{_WHERE}: tool_calls[0].category: expected one of {categories}, found "z"',
        f"{_WHERE}: tool_calls[0].parallel_group: expected an integer from 0, found -1",
        f"{_WHERE}: tool_calls[1]: expected an object, found 3",
    } == set(problems)


@pytest.mark.parametrize("entry", [None, 3, "a", [], True])
def test_a_line_must_be_an_object(entry: object) -> None:
    assert [f"{_WHERE}: expected an object that describes one agent run"] == _problems(entry)


_json = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=5),
    lambda children: (
        st.lists(children, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [*run_to_json(weather_run()), "name", "role", "arguments", "result", "error", "x\ny"]
            ),
            children,
            max_size=4,
        )
    ),
    max_leaves=15,
)


@given(_json)
def test_any_json_is_a_run_or_a_list_of_problems(entry: object) -> None:
    lines: list[str] = []
    name = "none"
    try:
        name = run_from_json(entry, _WHERE).agent.name
    except ValueError as error:
        lines = str(error).splitlines()

    assert name
    assert all(line.startswith(f"{_WHERE}: ") for line in lines)


def test_attributes_that_criteria_select_by_are_read() -> None:
    run = _read(resource_attributes={"a.b": 1}, span_attributes={"user.tier": "gold"})

    assert {"a.b": 1} == run.resource
    assert {"user.tier": "gold"} == run.span_attributes
    assert [
        f"{_WHERE}: span_attributes: expected an object of attribute names with their values, found 5"
    ] == (_problems({"agent": {"name": "a"}, "span_attributes": 5}))


_spans = st.binary(min_size=8, max_size=8).filter(any)
_LIMITED: dict[str, st.SearchStrategy[Any]] = {
    "score": st.floats(0, 1),
    "pass_threshold": st.floats(0, 1),
    "tool_span_id": _spans,
    "span_id": st.none() | _spans,
    "conversation_runs": st.tuples(st.builds(RunReference, st.binary(min_size=1), st.none() | _spans)),
    "muted_until_unix_nano": st.integers(0, 2**63),
    "parallel_group": st.integers(0, 2**63 - 1),
    "attempt": st.integers(0, 2**63 - 1),
    "retry_of": st.integers(0, 2**63 - 1),
    "decision": st.just(Decision.APPROVED),
}
"""What a line can hold of a field, where that is less than its type."""


def _changed(base: Any, data: st.DataObject, field: structs.FieldInfo) -> Any:
    value = data.draw(_LIMITED[field.name] if field.name in _LIMITED else values_of(field.type))
    return structs.replace(base, **{field.name: value})


@pytest.mark.parametrize(
    "field",
    [field for field in structs.fields(EvaluationResult) if field.name != "quotes_content"],
    ids=lambda field: str(field.name),
)
@given(data=st.data())
def test_every_field_of_a_result_is_written_and_read(field: structs.FieldInfo, data: st.DataObject) -> None:
    changed = _changed(result(), data, field)
    line = format_run(GradedRun(run=weather_run().run, results=[changed]))

    assert [changed] == graded_run_from_json(decode_json(line), _WHERE).results


@pytest.mark.parametrize("field", structs.fields(ToolCall), ids=lambda field: str(field.name))
@given(data=st.data())
def test_every_field_of_a_call_is_written_and_read(field: structs.FieldInfo, data: st.DataObject) -> None:
    changed = _changed(weather_run().run.tool_calls[0], data, field)
    line = format_run(GradedRun(run=replace(weather_run().run, tool_calls=[changed]), results=[]))

    assert [changed] == run_from_json(decode_json(line), _WHERE).tool_calls


@given(agent_runs())
def test_every_field_of_a_run_is_written_and_read_but_how_it_was_read(run: AgentRun) -> None:
    """A field that `agent_runs` does not draw yet is missing here."""
    not_drawn = {"dialect", "content", "conversation", "available_tools", "messages_state"}

    assert {field.name for field in fields(AgentRun)} == {*run.__dict__, *not_drawn}
