"""What holds for every trace: order, repetition and hostility change nothing and break nothing."""

import gc
import json
import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from processors.model.agent_run import AgentRun
from processors.model.finish_reason import FinishReason
from processors.model.json_values import JsonValue
from processors.reconstruction.passes import reconstruct
from processors.spans.envelope import Envelope
from processors.spans.span import RawSpan
from processors.spans.span_tree import SpanTree
from tests.processors.reconstruction.test_reconstruction_corpus import SCENARIOS, traces_of
from tests.support.agent_spans import TRACE_ID, agent, envelope, model, runs_of, span, tool

RECORDED = [spans for scenario in SCENARIOS for spans in traces_of(scenario).values()]


def rebuilt(spans: list[RawSpan]) -> list[AgentRun]:
    return reconstruct(spans, trace_id=TRACE_ID, reason=FinishReason.ROOT)


@st.composite
def broken_traces(draw: st.DrawFn) -> list[RawSpan]:
    """A few spans of every kind with any links between them, to themselves and to spans that never came."""
    spans = []
    numbers = range(1, draw(st.integers(1, 9)) + 1)
    for number in numbers:
        parent = draw(st.none() | st.integers(1, 11))
        start = draw(st.integers(0, 20))
        at = (start, start + draw(st.integers(0, 30)))
        name = draw(st.sampled_from(("a", "b", "")))
        made = draw(
            st.sampled_from(
                (
                    agent(number, parent, name, at),
                    model(number, parent, at),
                    tool(number, parent, name, at, call_id=draw(st.sampled_from(("", "c1", "c2")))),
                    span(number, parent, name, at=at),
                    span(number, parent, name, {"openinference.span.kind": "AGENT"}, at=at),
                    span(number, parent, name, {"tool.name": name or "t"}, at=at, of=envelope(scope="other")),
                )
            )
        )
        spans.append(made)
    return spans


@given(broken_traces(), st.randoms(use_true_random=False))
@settings(max_examples=300, deadline=None)
def test_any_order_and_repetition_of_broken_traces_gives_the_same_runs(
    spans: list[RawSpan], order: random.Random
) -> None:
    shuffled = [*spans, order.choice(spans)]
    order.shuffle(shuffled)

    assert rebuilt(spans) == rebuilt(shuffled)


@given(broken_traces())
@settings(max_examples=200, deadline=None)
def test_every_span_is_in_at_most_one_call(spans: list[RawSpan]) -> None:
    ids = [call.span_id for run in rebuilt(spans) for call in run.tool_calls]

    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("number", range(len(RECORDED)))
def test_any_order_and_repetition_of_a_recording_gives_the_same_runs(number: int) -> None:
    spans = RECORDED[number]
    order = random.Random(number)
    wanted = rebuilt(spans)

    for _ in range(3):
        shuffled = [*spans, *order.sample(spans, len(spans) // 2)]
        order.shuffle(shuffled)
        assert wanted == rebuilt(shuffled)


@pytest.mark.parametrize("number", range(len(RECORDED)))
def test_names_of_scopes_decide_nothing(number: int) -> None:
    bare = [(span_id, raw, Envelope(of.resource, b"")) for span_id, raw, of in RECORDED[number]]

    assert rebuilt(RECORDED[number]) == rebuilt(bare)


@pytest.mark.parametrize("number", range(len(RECORDED)))
def test_spans_of_other_kinds_in_between_change_nothing(number: int) -> None:
    spans = RECORDED[number]
    noise = [
        span(1_000_000 + place, None, "SELECT", {"db.system": "postgresql", "db.statement": "select 1"})
        for place in range(5)
    ]

    assert rebuilt(spans) == rebuilt([*noise, *spans])


def test_rings_and_spans_that_are_their_own_parent_do_no_harm() -> None:
    ring = [tool(1, 2, "a"), tool(2, 3, "b"), agent(3, 1, "x"), tool(4, 4, "c")]

    assert {"a", "b", "c"} == {call.name for run in rebuilt(ring) for call in run.tool_calls}


@pytest.mark.parametrize(
    "spans",
    [
        pytest.param([agent(1, 98, "x", (7, 8)), agent(2, 99, "y", (7, 8))], id="same times"),
        pytest.param(
            [
                span(1, 98, "r", at=(2, 3)),
                agent(2, 1, "x", (0, 9)),
                span(3, 99, "s", at=(4, 5)),
                agent(4, 3, "y", (1, 9)),
            ],
            id="inside each other's runs",
        ),
    ],
)
def test_roots_that_lost_their_parents_do_not_enclose_each_other(spans: list[RawSpan]) -> None:
    assert [("x", None), ("y", "x")] == [(run.agent.name, run.parent_agent) for run in rebuilt(spans)]


@pytest.mark.slow
def test_ten_thousand_nested_agents_are_ten_thousand_runs() -> None:
    spans = [agent(number, number - 1 or None, f"a{number}", (number, 20_000)) for number in range(1, 10_001)]

    runs = rebuilt(spans)

    assert 10_000 == len(runs)
    assert "a9999" == runs[-1].parent_agent


@pytest.mark.parametrize("value", [["a"], {"a": 1}, 3, 2.5, True, "", "[", "x" * 300_000])
def test_attributes_of_any_type_in_any_place_do_no_harm(value: JsonValue) -> None:
    keys = {
        "gen_ai.operation.name",
        "gen_ai.tool.name",
        "gen_ai.tool.type",
        "gen_ai.tool.call.id",
        "gen_ai.agent.name",
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "gen_ai.tool.status",
        "gen_ai.system_instructions",
        "openinference.span.kind",
        "tool.name",
        "tool.id",
        "tool.parameters",
        "input.value",
        "output.value",
        "metadata",
        "agent.name",
        "error.type",
        "mcp.method.name",
        "llm.output_messages.0.message",
        "session.id",
        "pydantic_ai.all_messages",
        "pydantic_ai.new_message_index",
        "gen_ai.conversation.id",
        "tool.synthesized",
    }
    kinds: list[dict[str, JsonValue]] = [
        {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "t"},
        {"gen_ai.operation.name": "invoke_agent"},
        {"gen_ai.operation.name": "chat"},
        {"openinference.span.kind": "TOOL"},
        {"openinference.span.kind": "AGENT"},
        {"openinference.span.kind": "LLM"},
        {"openinference.span.kind": "CHAIN"},
        {"tool.name": "t"},
    ]
    for key in sorted(keys):
        spans = [span(1, None, "root")]
        events = [
            (name, {key: value, "content": value, "message": value})
            for name in ("gen_ai.choice", "exception")
        ]
        for number, kind in enumerate(kinds, start=2):
            spans.append(span(number, number - 1, "s", {**kind, key: value}, events=events, at=(number, 100)))

        runs = rebuilt(spans)

        assert all(len(run.messages) >= 0 for run in runs)


def test_deeply_nested_values_are_not_parsed() -> None:
    deep = "[" * 50_000

    (run,) = runs_of([agent(1, None, "a"), tool(2, 1, "x", arguments=deep, result=deep)])

    assert [None] == [call.arguments for call in run.tool_calls]


def _calls_alike(shape: str, count: int) -> list[RawSpan]:
    """Spans of one tool that may report the same call, and do not by the arguments or the errors of each."""
    long = json.dumps({"q": list(range(5000))})
    spans = [agent(1, None, "a", (0, 100)), tool(2, 1, "get", (1, 2), arguments=json.dumps({"q": long}))]
    for number in range(3, count):
        arguments = json.dumps({"q": json.dumps({"number": number})})
        fields: dict[str, JsonValue] = {
            "openinference.span.kind": "TOOL",
            "tool.name": "get",
            "input.value": arguments,
        }
        is_even = number % 2 == 0
        if shape == "side by side":
            scope = envelope(scope="even" if is_even else "odd")
            spans.append(span(number, 1, "get", fields, at=(1, 99), of=scope))
        elif shape == "within":
            spans.append(span(number, 2, "get", fields, at=(1, 99)))
        elif shape == "attempts":
            failed: dict[str, JsonValue] = {**fields, "input.value": "", "error.type": "X"}
            spans.append(span(number, number - 1 if is_even else 2, "get", failed, at=(1, 99)))
        else:
            kind = Span.SPAN_KIND_SERVER if is_even else Span.SPAN_KIND_INTERNAL
            spans.append(span(number, 1, "get", fields, at=(1, 99) if is_even else (1, 2), kind=kind))
    return spans


@pytest.mark.slow
@pytest.mark.parametrize(
    "shape",
    ["flat", "chain", "orphans", "messages", "side by side", "within", "attempts", "servers' views"],
)
def test_time_grows_in_step_with_the_number_of_spans(shape: str) -> None:
    def trace(count: int) -> list[RawSpan]:
        if shape not in ("flat", "chain", "orphans", "messages"):
            return _calls_alike(shape, count)
        spans = [agent(1, None, "a", (0, 10 * count))]
        for number in range(2, count):
            parent = {"flat": 1, "chain": number - 1, "orphans": 10_000_000 + number, "messages": 1}[shape]
            at = (number, number + 5)
            spans.append(
                model(number, parent, at)
                if shape == "messages"
                else tool(number, parent, f"t{number % 7}", at)
            )
        return spans

    small, large = trace(500), trace(4_000)
    seconds = []
    gc.collect()
    gc.freeze()  # what other tests left behind is not looked at again and again
    try:
        for spans in (small, large):
            best = float("inf")
            for _ in range(3):
                started = time.process_time()
                rebuilt(spans)
                best = min(best, time.process_time() - started)
            seconds.append(best)
    finally:
        gc.unfreeze()

    assert seconds[1] < 8 * seconds[0] * 3


@pytest.mark.slow
def test_a_hundred_thousand_spans_are_put_in_order() -> None:
    spans = [span(number, number // 2 or None, "s", at=(number, number)) for number in range(1, 100_001)]
    random.Random(1).shuffle(spans)

    tree = SpanTree(spans)

    assert sorted(tree.top_down) == tree.top_down
    assert 100_000 == len(tree)
