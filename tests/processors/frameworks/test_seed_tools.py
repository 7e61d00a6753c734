"""The `tool.name` form against what the reference package extracts from the same spans."""

import json
from typing import Any

import pytest

from processors.carriers.seed_tools import decode_seed_arguments, decode_seed_output
from processors.model import ToolCall, ValueState
from tests.support.agent_spans import runs_of, span
from tests.support.parity import Case, load_cases

CASES = [case for name in ("tool_call_args", "tool_call_output") for case in load_cases(name)]


def calls_of(case: Case) -> dict[int, ToolCall]:
    """The calls of a case, by the place of their span among the case's, sent below an agent span."""
    spans = [span(1, None, case["id"], {"openinference.span.kind": "AGENT", "agent.name": case["id"]})]
    for number, told in enumerate(case["spans"], start=2):
        spans.append(span(number, 1, told["name"], told["attributes"], at=(number, number)))
    run = runs_of(spans)[0]
    return {int.from_bytes(call.span_id or b"", "big") - 2: call for call in run.tool_calls}


def taken_by_reference(case: Case) -> list[int]:
    """The places of the spans that the reference takes for tool calls."""
    attributes = [told["attributes"] for told in case["spans"]]
    return [
        place
        for place, fields in enumerate(attributes)
        if fields.get("tool.name") and not fields.get("tool.synthesized")
    ]


def loses_output(output: Any) -> bool:
    """Whether the reference makes the empty text of an output that is not empty."""
    if isinstance(output, str):
        try:
            output = json.loads(output)
        except ValueError:
            return False
        return isinstance(output, dict) and not output.get("content")
    return not output.get("content") if isinstance(output, dict) else not output


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_calls_are_those_that_the_reference_extracts(case: Case) -> None:
    calls = calls_of(case)
    places = taken_by_reference(case)

    assert set(places) <= calls.keys()
    for place, wanted in zip(places, case["tool_calls"] or (), strict=bool(case["tool_calls"])):
        call = calls[place]
        output = case["spans"][place]["attributes"].get("output.value")
        assert wanted["name"] == call.name
        assert (wanted["id"] or None) == call.call_id
        assert wanted["args"] in (None, call.arguments or {})
        if not loses_output(output):
            assert wanted["output"] == (call.result_text or "")


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ('{"content": null}', ""),
        ('{"content": 0}', "0"),
        ('{"content": []}', "[]"),
        ('{"result": 1}', '{"result": 1}'),
        ({"result": 1}, "{'result': 1}"),
        ("plain", "plain"),
        ('"quoted"', '"quoted"'),
    ],
)
def test_outputs_without_content_stay_what_they_are(raw: Any, text: str) -> None:
    assert text == decode_seed_output(raw).text


@pytest.mark.parametrize(
    "raw", ["[1]" * 2, "not json", "{1: 2}", "{[1]: 2}", "[" * 5000, "{'a': " * 200, 3, True]
)
def test_unreadable_arguments_are_an_empty_object_and_flagged(raw: Any) -> None:
    decoded = decode_seed_arguments(raw)

    assert {} == decoded.value
    assert ValueState.UNPARSED is decoded.state


@pytest.mark.parametrize(
    ("flag", "calls"), [("false", 1), ("no", 1), ("", 1), ("true", 0), ("1", 0), (True, 0), (0, 1)]
)
def test_only_a_clear_yes_marks_a_call_as_synthesized(flag: Any, calls: int) -> None:
    spans = [
        span(1, None, "a", {"openinference.span.kind": "AGENT", "agent.name": "a"}),
        span(2, 1, "t", {"tool.name": "t", "tool.synthesized": flag}),
    ]

    assert calls == len(runs_of(spans)[0].tool_calls)


def test_absent_values_are_absent_and_marked_lenient() -> None:
    spans = [
        span(1, None, "a", {"openinference.span.kind": "AGENT", "agent.name": "a"}),
        span(2, 1, "t", {"tool.name": "t"}),
    ]

    call = runs_of(spans)[0].tool_calls[0]

    assert call.lenient_values
    assert (ValueState.ABSENT, ValueState.ABSENT) == (call.arguments_state, call.result_state)


def test_calls_that_share_an_id_stay_apart_in_one_scope() -> None:
    fields = {"tool.name": "t", "tool.id": "t-tool", "input.value": "{}"}
    spans = [
        span(1, None, "a", {"openinference.span.kind": "AGENT", "agent.name": "a"}),
        span(2, 1, "t", fields, at=(1, 9)),
        span(3, 1, "t", fields, at=(1, 9)),
    ]

    assert ["t-tool", "t-tool"] == [call.call_id for call in runs_of(spans)[0].tool_calls]
