"""Upsonic: runs and calls by its own attributes."""

import json

import pytest

from processors.model import CallCategory, JsonObject, JsonValue, ValueState
from processors.spans import RawSpan
from tests.support.agent_spans import runs_of, span


def run(number: int, parent: int | None, name: str, at: tuple[int, int], answer: str) -> RawSpan:
    fields: JsonObject = {
        "upsonic.agent.name": name,
        "upsonic.input": f"Ask {name}",
        "upsonic.output": answer,
        "langfuse.observation.input": json.dumps(f"Ask {name}"),
    }
    return span(number, parent, "agent.run", fields, at=at)


def call(number: int, parent: int, name: str, at: tuple[int, int], **more: JsonValue) -> RawSpan:
    fields: JsonObject = {
        "upsonic.tool.name": name,
        "upsonic.tool.call_id": f"call_{number}",
        "langfuse.observation.input": '{"city": "Oslo"}',
        **{key.replace("__", "."): value for key, value in more.items()},
    }
    return span(number, parent, "tool.execute", fields, at=at)


def returned(value: object) -> JsonObject:
    return {
        "upsonic.tool.success": True,
        "langfuse.observation.output": json.dumps(str({"func": value})[:5000]),
    }


@pytest.mark.parametrize(
    "value", [{"t": 1.5, "ok": True, "note": None}, [1, 2], 42.5, "", 'it\'s "cold"', None]
)
def test_a_run_is_read_with_its_calls(value: JsonValue) -> None:
    spans = [
        run(1, None, "planner", (0, 100), "Cold."),
        span(2, 1, "pipeline.execute", {"upsonic.pipeline.debug": False}, at=(1, 99)),
        call(3, 2, "get", (10, 20), **returned(value)),
    ]

    (found,) = runs_of(spans)

    assert ("planner", "Ask planner", "Cold.") == (found.agent.name, found.input, found.output)
    assert [("get", "call_3", {"city": "Oslo"}, value, None)] == [
        (made.name, made.call_id, made.arguments, made.result, made.error) for made in found.tool_calls
    ]


def test_an_agent_that_is_used_as_a_tool_is_a_call_and_a_run() -> None:
    spans = [
        run(1, None, "planner", (0, 100), "Fine."),
        call(2, 1, "ask_weather", (10, 90), **returned("Cold.")),
        run(3, 2, "weather", (11, 89), "Cold."),
        call(4, 3, "get", (20, 30), **returned(1)),
    ]

    outer, inner = runs_of(spans)

    assert [("ask_weather", CallCategory.AGENT)] == [(made.name, made.category) for made in outer.tool_calls]
    assert ("weather", "planner", ["get"]) == (
        inner.agent.name,
        inner.parent_agent,
        [made.name for made in inner.tool_calls],
    )


def test_a_call_that_did_not_succeed_failed() -> None:
    spans = [run(1, None, "planner", (0, 100), "?"), call(2, 1, "get", (1, 2), upsonic__tool__success=False)]

    (found,) = runs_of(spans)

    (made,) = found.tool_calls
    assert made.error is not None
    assert ValueState.ABSENT is made.result_state


def test_a_result_that_was_cut_is_unknown() -> None:
    spans = [run(1, None, "planner", (0, 100), "?"), call(2, 1, "get", (1, 2), **returned("cold " * 2000))]

    (found,) = runs_of(spans)

    assert [ValueState.TRUNCATED] == [made.result_state for made in found.tool_calls]
