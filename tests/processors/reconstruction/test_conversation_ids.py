"""Which conversation a run belongs to, wherever the trace names it."""

import pytest
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

from processors.model import JsonValue
from processors.spans import Envelope, RawSpan
from tests.support.agent_spans import agent, key_values, model, runs_of, span, tool

ABOVE: dict[str, dict[str, JsonValue]] = {
    "a request's span": {"http.request.method": "POST", "gen_ai.conversation.id": "conv"},
    "a request's span of langfuse": {"langfuse.session.id": "conv"},
    "a request's span with a session": {"session.id": "conv"},
    "openinference chain": {"openinference.span.kind": "CHAIN", "session.id": "conv"},
    "openinference metadata": {"openinference.span.kind": "CHAIN", "metadata": '{"thread_id": "conv"}'},
    "langfuse trace": {"langfuse.observation.type": "span", "session.id": "conv"},
    "traceloop workflow": {
        "traceloop.span.kind": "workflow",
        "traceloop.association.properties.session_id": "conv",
    },
    "genai workflow": {"gen_ai.operation.name": "invoke_workflow", "gen_ai.conversation.id": "conv"},
}


def with_resource(spans: list[RawSpan], **attributes: str) -> list[RawSpan]:
    """The spans, sent under a resource with these attributes."""
    resource = ResourceSpans(resource=Resource(attributes=key_values(attributes))).SerializeToString()
    return [(number, raw, Envelope(resource, of.scope)) for number, raw, of in spans]


def sessions_of(*spans: RawSpan) -> list[str | None]:
    return [run.session for run in runs_of(spans)]


@pytest.mark.parametrize("where", ABOVE)
def test_an_id_above_a_run_is_the_runs(where: str) -> None:
    spans = [
        span(1, None, "root", ABOVE[where], at=(0, 100)),
        span(2, 1, "between", at=(0, 90)),
        agent(3, 2, "a", (1, 40)),
        tool(4, 3, "get", at=(2, 3)),
        agent(5, 2, "b", (41, 80)),
    ]

    assert ["conv", "conv"] == sessions_of(*spans)


def test_a_runs_own_id_goes_before_one_above_it() -> None:
    spans = [
        span(1, None, "root", {"session.id": "visit"}, at=(0, 100)),
        agent(2, 1, "a", (1, 40), **{"gen_ai.conversation.id": "own"}),
        agent(3, 1, "b", (41, 80)),
    ]

    assert ["own", "visit"] == sessions_of(*spans)


@pytest.mark.parametrize("key", ["gen_ai.conversation.id", "session.id", "langfuse.session.id"])
def test_the_one_id_of_turns_is_the_runs(key: str) -> None:
    spans = [
        span(1, None, "root", {"session.id": "visit"}, at=(0, 100)),
        agent(2, 1, "a", (1, 90)),
        model(3, 2, (2, 10), **{key: "conv"}),
        tool(4, 2, "get", at=(11, 20), **{key: "conv"}),
        model(5, 2, (21, 30)),
    ]

    assert ["conv"] == sessions_of(*spans)


def test_turns_of_two_conversations_name_none() -> None:
    spans = [
        span(1, None, "root", {"session.id": "visit"}, at=(0, 100)),
        agent(2, 1, "a", (1, 90)),
        model(3, 2, (2, 10), **{"gen_ai.conversation.id": "one"}),
        model(4, 2, (21, 30), **{"gen_ai.conversation.id": "two"}),
    ]

    assert [None] == sessions_of(*spans)


@pytest.mark.parametrize("key", ["gen_ai.conversation.id", "session.id"])
def test_an_id_that_the_collector_moved_to_the_resource_is_the_runs(key: str) -> None:
    spans = [agent(1, None, "a"), tool(2, 1, "get"), agent(3, 1, "b", (10, 20))]

    assert ["conv", "conv"] == sessions_of(*with_resource(spans, **{key: "conv"}))


def test_any_span_goes_before_the_resource() -> None:
    spans = [
        span(1, None, "root", at=(0, 100)),
        agent(2, 1, "a", (1, 90)),
        agent(3, 2, "b", (10, 20), **{"gen_ai.conversation.id": "inner"}),
    ]

    assert ["visit", "inner"] == sessions_of(*with_resource(spans, **{"session.id": "visit"}))


def test_a_run_that_only_a_local_root_stands_for_has_its_id() -> None:
    spans = [span(1, None, "POST /chat", {"session.id": "conv"}, at=(0, 100)), tool(2, 1, "get", at=(1, 2))]

    assert ["conv"] == sessions_of(*spans)
