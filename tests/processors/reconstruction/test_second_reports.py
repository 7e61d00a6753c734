"""Runs, calls and requests that two instrumentations report, each in a tree of its own: they count once."""

import json
from pathlib import Path

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans, Span

from collector.otlp.codec import split_request
from processors.model import AgentRun, JsonValue
from processors.spans import Envelope, RawSpan
from tests.support.agent_spans import agent, envelope, runs_of, span, tool
from tests.support.corpus import CORPUS

REQUEST = b"\1" * 8
FIRST, SECOND = envelope(scope="first"), envelope(scope="second")
READ_BY_SCOPE = {
    "claude_code_sub_agent", "langchain_js_provider_strategy", "langchain_js_tool_strategy",
    "llama_index_observability", "mistral_sdk_2_conversation", "mistral_sdk_3_conversation",
    "quarkus_langchain4j",
}  # fmt: skip
"""Recordings that are read by the name of their scope, or in which a call stands for an agent."""
TREES = sorted(
    {path.parent for path in CORPUS.parent.rglob("*.binpb") if path.parent.name not in READ_BY_SCOPE}
)


def reported(number: int, parent: int | None, at: tuple[int, int], of: Envelope, name: str = "a") -> RawSpan:
    """An agent's run as an instrumentation reports it."""
    fields: dict[str, JsonValue] = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}
    return span(number, parent, "invoke_agent", fields, at=at, of=of)


def turn(
    number: int,
    parent: int,
    at: tuple[int, int],
    of: Envelope,
    answer: str = "",
    tokens: int = 10,
    response: str = "",
) -> RawSpan:
    fields: dict[str, JsonValue] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m",
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": tokens,
    }
    if response:
        fields["gen_ai.response.id"] = response
    if answer:
        parts: JsonValue = [{"type": "text", "content": answer}]
        fields["gen_ai.output.messages"] = json.dumps([{"role": "assistant", "parts": parts}])
    return span(number, parent, "chat m", fields, at=at, of=of)


def used(run: AgentRun) -> tuple[int, int]:
    assert run.usage is not None
    return run.usage.input_tokens, len(run.model_calls)


def test_a_run_that_two_instrumentations_report_is_one() -> None:
    spans = [
        span(1, None, "POST /chat", at=(0, 100)),
        reported(2, 1, (1, 98), FIRST),
        reported(3, 1, (2, 99), SECOND),
        turn(4, 3, (10, 30), SECOND, "It rains."),
        tool(5, 3, "get", at=(31, 40)),
    ]

    (run,) = runs_of(spans)

    assert ("It rains.", ["get"]) == (run.output, [call.name for call in run.tool_calls])


@pytest.mark.parametrize(
    ("response", "at", "answer", "requests"),
    [
        ("r1", (11, 29), "It rains.", 1),
        ("r1", (11, 29), "", 1),
        ("r2", (11, 29), "It rains.", 2),
        ("r1", (30, 40), "It rains.", 2),
        ("r1", (11, 29), "It snows.", 2),
    ],
    ids=["one response", "without its answer", "another", "at another time", "another answer"],
)
def test_turns_that_name_one_response_are_one_whoever_reports_them(
    response: str, at: tuple[int, int], answer: str, requests: int
) -> None:
    spans = [
        reported(2, None, (1, 98), FIRST),
        turn(4, 2, (10, 30), FIRST, "It rains.", response="r1"),
        turn(5, 2, at, FIRST, answer, response=response),
    ]

    (run,) = runs_of(spans)

    assert (100 * requests, requests) == used(run)


@pytest.mark.parametrize(
    ("at", "of", "name"),
    [((2, 99), FIRST, "a"), ((2, 60), SECOND, "a"), ((2, 99), SECOND, "b")],
    ids=["of one instrumentation", "at another time", "of another agent"],
)
def test_what_differs_stays_two(at: tuple[int, int], of: Envelope, name: str) -> None:
    spans = [
        span(1, None, "POST /chat", at=(0, 100)),
        reported(2, 1, (1, 98), FIRST),
        turn(3, 2, (10, 30), FIRST),
        reported(4, 1, at, of, name),
        turn(5, 4, (10, 30), of),
    ]

    assert [(100, 1), (100, 1)] == [used(run) for run in runs_of(spans)]


def test_agents_side_by_side_are_as_many_under_two_instrumentations() -> None:
    spans = [agent(1, None, "planner", (0, 200))]
    for number in range(3):
        at = (10 + number, 190 + number)
        spans += [
            reported(10 + number, 1, at, FIRST),
            reported(20 + number, 1, at, SECOND),
            turn(30 + number, 10 + number, (20, 180), FIRST, f"answer {number}"),
            turn(40 + number, 20 + number, (20, 180), SECOND, f"answer {number}"),
        ]

    _, *runs = runs_of(spans)

    assert [(f"answer {number}", (100, 1)) for number in range(3)] == [
        (run.output, used(run)) for run in runs
    ]


def test_runs_within_runs_are_united_with_those_around_them() -> None:
    spans = [
        span(1, None, "POST /chat", at=(0, 100)),
        *[
            told
            for base, of in ((10, FIRST), (20, SECOND))
            for told in (
                reported(base, 1, (1, 99), of, "outer"),
                reported(base + 1, base, (10, 90), of, "inner"),
                turn(base + 2, base + 1, (20, 80), of),
            )
        ],
    ]

    outer, inner = runs_of(spans)

    assert ("outer", "inner", "outer") == (outer.agent.name, inner.agent.name, inner.parent_agent)
    assert (100, 1) == used(inner)


def test_workflows_and_their_agents_are_united() -> None:
    workflow: dict[str, JsonValue] = {"gen_ai.operation.name": "invoke_workflow"}
    spans = [
        span(1, None, "POST /chat", at=(0, 100)),
        span(2, 1, "flow", workflow, at=(1, 98), of=FIRST),
        turn(3, 2, (10, 30), FIRST),
        reported(4, 1, (2, 99), SECOND),
        turn(5, 4, (10, 30), SECOND),
    ]

    (run,) = runs_of(spans)

    assert ("a", (100, 1)) == (run.agent.name, used(run))


@pytest.mark.parametrize(
    ("answers", "tokens", "requests"),
    [
        (("yes", "yes"), (10, 10), 1),
        (("", "yes"), (10, 10), 1),
        (("", ""), (10, 10), 1),
        (("yes", "no"), (10, 10), 2),
        (("", ""), (10, 11), 2),
    ],
)
def test_requests_of_two_trees_are_one_unless_something_differs(
    answers: tuple[str, str], tokens: tuple[int, int], requests: int
) -> None:
    spans = [
        agent(1, None, "a"),
        span(2, 1, "node", at=(1, 50), of=FIRST),
        span(3, 1, "node", at=(1, 50), of=SECOND),
        turn(4, 2, (10, 30), FIRST, answers[0], tokens[0]),
        turn(5, 3, (11, 31), SECOND, answers[1], tokens[1]),
    ]

    (run,) = runs_of(spans)

    assert (100 * requests, requests) == used(run)
    assert (answers[1] or None) == run.output


def test_an_agents_empty_span_has_the_calls_beside_it() -> None:
    """Sequential agents of one workflow each have what lies in their time."""
    workflow: dict[str, JsonValue] = {"traceloop.span.kind": "workflow", "traceloop.entity.name": "flow"}
    spans = [
        span(1, None, "flow", workflow, at=(0, 100)),
        reported(2, 1, (1, 40), FIRST, "a"),
        turn(3, 1, (2, 10), FIRST),
        tool(4, 1, "get", at=(11, 20)),
        reported(5, 1, (41, 90), FIRST, "b"),
        tool(6, 1, "send", at=(50, 60)),
    ]

    runs = runs_of(spans)

    assert [("a", ["get"]), ("b", ["send"])] == [
        (run.agent.name, [call.name for call in run.tool_calls]) for run in runs
    ]


def test_calls_beside_agents_that_ran_at_one_time_stay_the_workflows() -> None:
    workflow: dict[str, JsonValue] = {"traceloop.span.kind": "workflow", "traceloop.entity.name": "flow"}
    spans = [
        span(1, None, "flow", workflow, at=(0, 100)),
        reported(2, 1, (1, 90), FIRST, "a"),
        reported(3, 1, (2, 80), FIRST, "b"),
        tool(4, 1, "get", at=(11, 20)),
    ]

    assert {"flow": 1, "a": 0, "b": 0} == {run.agent.name: len(run.tool_calls) for run in runs_of(spans)}


@pytest.mark.parametrize("folder", TREES, ids=lambda folder: f"{folder.parent.name}/{folder.name}")
def test_a_trace_that_is_told_twice_is_read_as_one_that_is_told_once(folder: Path) -> None:
    traces: dict[bytes, list[RawSpan]] = {}
    for path in sorted(folder.glob("*.binpb")):
        for trace_id, spans in split_request(path.read_bytes()).traces.items():
            traces.setdefault(trace_id, []).extend(spans)
    for spans in traces.values():
        once = below_a_request(spans)

        assert facts(once) == facts([*once, *by_another_instrumentation(once)])


def below_a_request(spans: list[RawSpan]) -> list[RawSpan]:
    """The spans below one that is around them all in time."""
    moved = [(Span.FromString(raw), of) for _, raw, of in spans]
    request = Span(
        span_id=REQUEST,
        start_time_unix_nano=min(told.start_time_unix_nano for told, _ in moved),
        end_time_unix_nano=max(told.end_time_unix_nano for told, _ in moved),
    )
    for told, _ in moved:
        told.parent_span_id = told.parent_span_id or REQUEST
    return [(told.span_id, told.SerializeToString(), of) for told, of in [(request, FIRST), *moved]]


def by_another_instrumentation(spans: list[RawSpan]) -> list[RawSpan]:
    """The spans below the request once more, as another instrumentation would report them a little later."""
    ids = {span_id for span_id, _, _ in spans} - {REQUEST}
    again: list[RawSpan] = []
    for _, raw, of in spans:
        told, scope = Span.FromString(raw), ScopeSpans.FromString(of.scope)
        if told.span_id in ids:
            scope.scope.name += ".another"
            told.span_id = told.span_id[::-1]
            if told.parent_span_id in ids:
                told.parent_span_id = told.parent_span_id[::-1]
            told.start_time_unix_nano += 20
            told.end_time_unix_nano += 20
            again.append(
                (told.span_id, told.SerializeToString(), Envelope(of.resource, scope.SerializeToString()))
            )
    return again


def facts(spans: list[RawSpan]) -> list[str]:
    return sorted(
        repr(
            (
                run.agent.name,
                run.parent_agent,
                run.output,
                run.usage,
                len(run.model_calls),
                sorted(call.name for call in run.tool_calls),
            )
        )
        for run in runs_of(spans)
    )
