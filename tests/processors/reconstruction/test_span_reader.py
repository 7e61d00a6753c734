"""Spans that look alike are of one shape; what was not looked at makes no difference, what was does."""

import json
from collections.abc import Sequence

import pytest

from processors.carriers import discover_dialects
from processors.model.json_values import JsonValue
from processors.reconstruction import reading as span_reader
from processors.reconstruction.reading import SpanReader
from processors.shapes.dialect import Dialect, SpanRole
from processors.shapes.rewriting import Shape
from processors.spans.span import Span
from tests.processors.reconstruction.test_reconstruction_corpus import SCENARIOS, traces_of
from tests.support.agent_spans import agent, envelope, model, runs_of, span, tool

CALL: dict[str, JsonValue] = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get"}


def view(name: str, attributes: dict[str, JsonValue], scope: str = "") -> Span:
    return Span(span(1, None, name, attributes)[1], envelope(scope=scope))


def told(reader: SpanReader, read: Span) -> tuple[SpanRole, list[str]] | None:
    reading = reader.read(read)
    return None if reading is None else (reading.role, [dialect.name for dialect in reading.shape.dialects])


def all_told(reader: SpanReader, spans: Sequence[Span]) -> list[tuple[SpanRole, list[str]] | None]:
    return [told(reader, read) for read in spans]


def test_a_reader_that_remembers_says_of_all_recordings_what_one_that_remembers_nothing_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spans = [
        Span(raw, of)
        for scenario in SCENARIOS
        for recorded in traces_of(scenario).values()
        for _, raw, of in recorded
    ]
    reader = SpanReader(discover_dialects())
    first, again = all_told(reader, spans), all_told(reader, spans)
    monkeypatch.setattr(span_reader, "_MAX_NODES", 0)

    assert all_told(SpanReader(discover_dialects()), spans) == first == again


def test_roles_of_recorded_spans_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A role that looks at long values, or at all keys, is never remembered: each span asks all dialects."""
    spans = [
        Span(raw, of)
        for scenario in SCENARIOS
        for recorded in traces_of(scenario).values()
        for _, raw, of in recorded
    ]
    reader = SpanReader(discover_dialects())
    for _ in range(3):
        reader.read_all(spans)
    requests: list[Span] = []
    query = SpanReader._query

    def counted(self: SpanReader, read: Span, present: frozenset[str]) -> Shape | None:
        requests.append(read)
        return query(self, read, present)

    monkeypatch.setattr(SpanReader, "_query", counted)

    reader.read_all(spans)

    assert len(requests) < len(spans) / 8


def test_what_decides_is_told_apart_and_what_does_not_is_one_shape() -> None:
    reader = SpanReader(discover_dialects())
    call, same = view("a", CALL), view("b", {**CALL, "my.own": 1})
    readings = [reader.read(read) for read in (call, same, call, same)]

    assert readings[2] is not None
    assert readings[3] is not None
    assert readings[2].shape is readings[3].shape
    assert (SpanRole.MODEL, ["otel_genai"]) == told(reader, view("a", {"gen_ai.operation.name": "chat"}))
    assert told(reader, view("a", {})) is None


def test_words_in_a_long_text_distinguish_spans_without_further_queries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def role(read: Span) -> SpanRole:
        return SpanRole.AGENT if read.attributes.mentions("k", "word", "other") else SpanRole.MODEL

    texts: list[dict[str, JsonValue]] = [
        {"k": f"{number}{'x' * 1000}{word}"} for number in range(300) for word in ("", "word", "other")
    ]
    reader = SpanReader([Dialect("d", ("k",), role, rank=1)])
    assert [SpanRole.MODEL, SpanRole.AGENT, SpanRole.AGENT] == [
        reading.role for reading in reader.read_all([view("a", one) for one in texts[:3]]) if reading
    ]
    monkeypatch.setattr(SpanReader, "_query", None)

    readings = reader.read_all([view("a", one) for one in texts])

    assert [SpanRole.MODEL, SpanRole.AGENT, SpanRole.AGENT] * 300 == [one.role for one in readings if one]


def test_a_graphs_spans_are_read_like_those_before_whatever_their_metadata_and_output(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def spans(number: int) -> list[Span]:
        in_graph = {"lc_agent_name": "helper", "langgraph_checkpoint_ns": f"model:{number:0100}"}
        step = {**in_graph, "langgraph_node": "model", "langgraph_triggers": ["branch:to:model"]}
        output = f"{number:0100}"
        return [
            view("helper", {"openinference.span.kind": "AGENT", "metadata": json.dumps(in_graph)}),
            view("model", {"openinference.span.kind": "CHAIN", "metadata": json.dumps(step)}),
            view(
                "execute_task model",
                {
                    "traceloop.span.kind": "task",
                    "traceloop.entity.name": "model",
                    "traceloop.entity.output": output,
                    "traceloop.association.properties.langgraph_node": "model",
                },
            ),
            view("claude_code.tool", {"span.type": "tool", "tool_input": output}),
        ]

    reader = SpanReader(discover_dialects())
    for number in range(3):  # the first ones show which keys are looked at
        first = all_told(reader, spans(number))
    assert [SpanRole.AGENT, SpanRole.OTHER, SpanRole.OTHER, SpanRole.TOOL] == [
        role for role, _ in filter(None, first)
    ]
    monkeypatch.setattr(SpanReader, "_query", None)

    assert first == all_told(reader, spans(3))


@pytest.mark.parametrize("first", [True, False])
def test_keys_that_hold_zeros_are_not_taken_for_several_others(first: bool) -> None:
    reader = SpanReader(discover_dialects())
    call = view("a", CALL)
    alike = view("a", {"gen_ai.operation.name\0gen_ai.tool.name": "execute_tool"})
    spans = [call, alike, call, alike] if first else [alike, call, alike, call]

    read = [told(reader, each) for each in spans]

    expected: list[tuple[SpanRole, list[str]] | None] = [(SpanRole.TOOL, ["otel_genai"]), None]
    assert (expected if first else expected[::-1]) * 2 == read


def test_answers_without_end_are_understood_and_not_remembered() -> None:
    reader = SpanReader(discover_dialects())
    spans = [view("a", {"gen_ai.operation.name": f"{number}" * 40}) for number in range(10, 400)]
    few = [view("a", {"gen_ai.operation.name": str(number)}) for number in range(400)]

    assert {(SpanRole.OTHER, ("otel_genai",))} == {
        (role, tuple(names)) for role, names in filter(None, all_told(reader, [*spans, *few]))
    }
    assert (SpanRole.TOOL, ["otel_genai"]) == told(reader, view("a", CALL))


def test_a_plan_reads_of_every_recorded_call_what_the_dialect_reads() -> None:
    reader = SpanReader(discover_dialects())
    planned = 0
    for scenario in SCENARIOS:
        for recorded in traces_of(scenario).values():
            for reading in filter(None, (reader.read(Span(raw, of)) for _, raw, of in recorded)):
                if reading.shape.read_tool is not None:
                    (dialect,) = reading.shape.dialects
                    assert dialect.tool(reading.span) == reading.shape.read_tool(reading.span)
                    planned += 1

    assert planned > 100


PROVIDERS = [{"type": "server_tool_call", "id": "s1", "name": "code", "server_tool_call": {"type": "code"}}]
ASKS = [{"type": "tool_call", "id": "c1", "name": "get", "arguments": {}}]


@pytest.mark.parametrize(
    ("answer", "history", "names"),
    [
        ([{"type": "text", "content": "server_tool"}, *ASKS], [], ["get"]),
        ([{"type": "text", "content": "mcp_call"}], [], ["get"]),
        ([*ASKS, *PROVIDERS], [], ["get", "code"]),
        ([{"type": "text", "content": "Let me see."}, *ASKS, *PROVIDERS], [], ["get", "code"]),
        ([{"type": "text", "content": ""}], [*ASKS, *PROVIDERS], ["get", "code"]),
    ],
    ids=["a text is the word", "nothing but the word", "asked", "said and asked", "told by the next turn"],
)
def test_calls_at_the_provider_are_found_wherever_they_are_told(
    answer: JsonValue, history: JsonValue, names: list[str]
) -> None:
    def messages(parts: JsonValue) -> str:
        return json.dumps([{"role": "assistant", "parts": parts}] if parts else [])

    spans = [
        agent(1, None, "helper", (0, 100)),
        model(2, 1, (1, 10), **{"gen_ai.output.messages": messages(answer)}),
        tool(3, 1, "get", (11, 12), "c1"),
        model(
            4,
            1,
            (20, 30),
            **{
                "gen_ai.input.messages": messages(history),
                "gen_ai.output.messages": messages([{"type": "text", "content": "Done."}]),
            },
        ),
    ]

    (run,) = runs_of(spans)

    assert sorted(names) == sorted(call.name for call in run.tool_calls)
