"""Conventions of the user's own, as the service file describes them."""

import pytest
from pydantic import ValidationError

from processors.model.agent_run import AgentRun, ToolError, ValueState
from processors.model.finish_reason import FinishReason
from processors.model.json_values import JsonObject, JsonValue
from processors.reconstruction.passes import reconstruct, span_reader
from processors.shapes.dialect_mapping import DialectMapping
from processors.spans.span import RawSpan
from tests.support.agent_spans import TRACE_ID, runs_of, span

MAPPING: JsonObject = {
    "name": "acme",
    "kind": {"attribute": "acme.kind", "tool": "T", "agent": ["A", "root"], "model": "M", "workflow": "W"},
    "tool": {
        "name": "acme.tool",
        "call_id": "acme.id",
        "arguments": ["acme.args", "acme.in"],
        "result": "acme.out",
        "error": "acme.error",
    },
    "agent": {
        "name": "acme.agent",
        "version": "acme.version",
        "session": "acme.session",
        "input": "acme.question",
        "output": "acme.answer",
    },
    "model": {"input": "acme.prompt", "output": "acme.completion"},
}
AGENT: JsonObject = {
    "acme.kind": "A",
    "acme.agent": "planner",
    "acme.version": "1.2",
    "acme.session": "s1",
    "acme.question": "Weather?",
    "acme.answer": "It is cold.",
}
TOOL: JsonObject = {
    "acme.kind": "T",
    "acme.tool": "get",
    "acme.id": "c1",
    "acme.in": '{"city": "Oslo"}',
    "acme.out": '{"t": 1}',
}


def read(spans: list[RawSpan], mapping: JsonObject = MAPPING) -> list[AgentRun]:
    reader = span_reader([DialectMapping.model_validate(mapping).dialect()])
    return reconstruct(spans, trace_id=TRACE_ID, reason=FinishReason.ROOT, reader=reader)


def test_a_run_is_read_with_its_call() -> None:
    spans = [span(1, None, "a span", AGENT), span(2, 1, "another span", TOOL)]

    (run,) = read(spans)

    assert ("planner", "1.2", "s1", "Weather?", "It is cold.") == (
        run.agent.name,
        run.agent.version,
        run.session,
        run.input,
        run.output,
    )
    assert [("get", "c1", {"city": "Oslo"}, {"t": 1}, None)] == [
        (call.name, call.call_id, call.arguments, call.result, call.error) for call in run.tool_calls
    ]
    assert [] == runs_of(spans)


def test_without_a_kind_the_names_tell_what_a_span_stands_for() -> None:
    mapping = {key: value for key, value in MAPPING.items() if key != "kind"}
    spans = [
        span(1, None, "run", {"acme.agent": "planner"}),
        span(2, 1, "call", {"acme.tool": "get", "acme.agent": "planner"}),
        span(3, 1, "neither", {"acme.out": "x"}),
    ]

    (run,) = read(spans, mapping)

    assert ("planner", ["get"]) == (run.agent.name, [call.name for call in run.tool_calls])


def test_names_that_are_not_mapped_are_the_spans() -> None:
    mapping: JsonObject = {
        "name": "acme",
        "kind": {"attribute": "acme.kind", "tool": "T", "agent": "A"},
    }

    (run,) = read(
        [span(1, None, "planner", {"acme.kind": "A"}), span(2, 1, "get", {"acme.kind": "T"})], mapping
    )

    (call,) = run.tool_calls
    assert ("planner", "get") == (run.agent.name, call.name)
    assert (ValueState.ABSENT, ValueState.ABSENT) == (call.arguments_state, call.result_state)


@pytest.mark.parametrize(
    ("told", "error"),
    [
        ("boom", ToolError(type="", message="boom")),
        (True, ToolError(type="", message="")),
        (False, None),
        ("false", None),
        ("", None),
    ],
)
def test_what_is_there_only_for_failures_tells_a_failure(told: JsonValue, error: ToolError | None) -> None:
    spans = [span(1, None, "a", AGENT), span(2, 1, "get", {**TOOL, "acme.error": told})]

    assert [error] == [call.error for call in read(spans)[0].tool_calls]


def test_calls_that_only_a_model_tells_are_built_from_its_messages() -> None:
    model: JsonObject = {
        "acme.kind": "M",
        "acme.completion": '{"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "get",'
        ' "arguments": "{\\"city\\": \\"Oslo\\"}"}}]}',
    }

    (run,) = read([span(1, None, "a", AGENT), span(2, 1, "llm", model, at=(1, 5))])

    assert [("get", {"city": "Oslo"})] == [(call.name, call.arguments) for call in run.tool_calls]


def test_it_counts_before_the_built_in_dialects() -> None:
    both: JsonObject = {**TOOL, "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "generic"}

    (run,) = read([span(1, None, "a", AGENT), span(2, 1, "get", both)])

    assert ["get"] == [call.name for call in run.tool_calls]


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"name": "acme"}, "expected kind, tool.name or agent.name"),
        ({"name": "Acme!", "tool": {"name": "t"}}, "pattern"),
        ({"name": "acme", "tool": {"nam": "t"}}, "Extra inputs"),
        ({"name": "acme", "kind": {"tool": "T"}}, "Field required"),
        ({"name": "acme", "tool": {"name": [""]}}, "at least 1 character"),
    ],
)
def test_a_mapping_that_means_nothing_is_refused(mapping: JsonObject, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        DialectMapping.model_validate(mapping)
