"""Several reports of one call are one call, and reports of several calls are as many."""

from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from processors.model.agent_run import AgentRun, ToolCall, ToolError
from processors.model.json_values import JsonObject, JsonValue
from processors.spans.span import RawSpan
from tests.support.agent_spans import agent, envelope, runs_of, span

OPENINFERENCE = envelope(scope="openinference.instrumentation.langchain")
SEMCONV = envelope(scope="opentelemetry.instrumentation.genai")
FAILED = (2, "Connection closed")
MCP_CLIENT = {"mcp.method.name": "tools/call", "gen_ai.tool.name": "get"}


def genai(
    number: int,
    parent: int,
    at: tuple[int, int],
    arguments: JsonValue = None,
    result: JsonValue = None,
    status: tuple[int, str] = (0, ""),
    call_id: str = "",
) -> RawSpan:
    """A call of `get` as the GenAI conventions tell it."""
    fields: JsonObject = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get"}
    told = {"gen_ai.tool.call.arguments": arguments, "gen_ai.tool.call.result": result}
    fields |= {key: value for key, value in told.items() if value is not None}
    fields |= {"gen_ai.tool.call.id": call_id} if call_id else {}
    return span(number, parent, "execute_tool get", fields, at=at, of=SEMCONV, status=status)


def openinference(
    number: int,
    parent: int,
    at: tuple[int, int],
    arguments: JsonValue = None,
    result: JsonValue = None,
    status: tuple[int, str] = (1, ""),
    call_id: str = "",
) -> RawSpan:
    """The same as OpenInference tells it."""
    fields: JsonObject = {"openinference.span.kind": "TOOL", "tool.name": "get"}
    told = {"input.value": arguments, "output.value": result}
    fields |= {key: value for key, value in told.items() if value is not None}
    fields |= {"tool_call.id": call_id} if call_id else {}
    return span(number, parent, "get", fields, at=at, of=OPENINFERENCE, status=status)


def attempt(
    number: int, parent: int, at: tuple[int, int], *, failed: bool = False, kind: str = "ConnectionError"
) -> RawSpan:
    """What an MCP client makes of one request to a server."""
    fields: JsonObject = {**MCP_CLIENT, **({"error.type": kind} if failed else {})}
    status = FAILED if failed else (0, "")
    return span(
        number, parent, "tools/call get", fields, at=at, kind=Span.SPAN_KIND_CLIENT, of=SEMCONV, status=status
    )


def run_with(*spans: RawSpan) -> AgentRun:
    (run,) = runs_of([agent(1, None, "a"), *spans])
    return run


def argument(call: ToolCall, name: str) -> Any:
    assert isinstance(call.arguments, dict)
    return call.arguments[name]


Report = Callable[..., RawSpan]
REPORTS = pytest.mark.parametrize("report", [genai, openinference])


@REPORTS
@pytest.mark.parametrize(
    ("outer", "inner", "count"),
    [
        (('{"q": "a"}', "Ra"), ('{"q": "b"}', "Rb"), 2),
        (('{"q": "a"}', "Ra"), ('{"q": "b"}', None), 2),
        (('{"q": "a"}', "Ra"), ('{"q": "b"}', "Ra"), 1),
        (('{"q": "a"}', "Ra"), ('{"q":"a"}', "Rb"), 1),
        (('{"q": "a"}', "Ra"), ('{"q": "a", "limit": 3}', "Rb"), 1),
        (('{"q": "a"}', "Ra"), (None, "Rb"), 1),
        (('{"days": "3"}', "Ra"), ('{"days": 3}', "Rb"), 1),
    ],
    ids=[
        "other arguments and results",
        "other arguments and no result",
        "other arguments and the same result",
        "the same arguments",
        "more arguments",
        "no arguments",
        "the same arguments written otherwise",
    ],
)
def test_a_span_in_a_call_of_the_same_tool_is_another_call_if_its_arguments_are_others(
    report: Report, outer: tuple[JsonValue, JsonValue], inner: tuple[JsonValue, JsonValue], count: int
) -> None:
    run = run_with(report(2, 1, (10, 50), *outer), report(3, 2, (20, 60), *inner))

    assert count == len(run.tool_calls)


def test_another_instrumentation_without_a_result_may_show_other_arguments_of_the_call() -> None:
    run = run_with(
        openinference(2, 1, (10, 50), '{"path": "notes"}', "text"),
        genai(3, 2, (20, 40), '{"path": "/home/notes"}'),
    )

    assert [{"path": "notes"}] == [call.arguments for call in run.tool_calls]


def test_a_tool_that_calls_itself_is_called_as_often_as_it_says() -> None:
    run = run_with(
        genai(2, 1, (10, 50), '{"n": 3}', "6"),
        genai(3, 2, (11, 49), '{"n": 2}', "2"),
        genai(4, 3, (12, 48), '{"n": 1}', "1"),
    )

    assert [3, 2, 1] == [argument(call, "n") for call in run.tool_calls]


@REPORTS
def test_the_last_of_several_attempts_decides_whether_the_call_failed(report: Report) -> None:
    call = report(2, 1, (10, 60), '{"q": "a"}', "42")

    succeeded = run_with(call, attempt(3, 2, (11, 20), failed=True), attempt(4, 2, (25, 59)))
    failed = run_with(report(2, 1, (10, 60)), attempt(3, 2, (11, 20)), attempt(4, 2, (25, 59), failed=True))

    assert [None] == [call.error for call in succeeded.tool_calls]
    assert [ToolError(type="ConnectionError", message="Connection closed")] == [
        call.error for call in failed.tool_calls
    ]


def test_the_result_is_that_of_the_last_attempt_where_the_call_itself_has_none() -> None:
    run = run_with(
        genai(2, 1, (10, 60), '{"q": "a"}'),
        genai(3, 2, (11, 20), result="try again", status=FAILED),
        genai(4, 2, (25, 59), result="42"),
    )

    assert [(42, None)] == [(call.result, call.error) for call in run.tool_calls]


def test_two_reports_of_one_attempt_are_no_two_attempts() -> None:
    run = run_with(
        genai(2, 1, (10, 60), '{"q": "a"}'),
        attempt(3, 2, (11, 50), failed=True),
        openinference(4, 2, (12, 49)),
    )

    assert ["ConnectionError"] == [call.error.type for call in run.tool_calls if call.error]


@pytest.mark.parametrize(
    ("status", "result", "kind", "fails"),
    [
        ((1, ""), "from the cache", "ConnectionError", False),
        ((0, ""), "from the cache", "ConnectionError", True),
        ((1, ""), None, "ConnectionError", True),
        ((1, ""), "Error: Connection closed", "ConnectionError", True),
        ((1, ""), "no such city", "tool_error", True),
        ((2, "x"), "from the cache", "ConnectionError", True),
    ],
    ids=[
        "that is said to be OK",
        "that says nothing",
        "without a result",
        "that answers with the error",
        "that passes a tool's error on",
        "that failed itself",
    ],
)
def test_a_failure_below_a_call_fails_it_unless_the_call_got_over_it(
    status: tuple[int, str], result: JsonValue, kind: str, fails: bool
) -> None:
    run = run_with(
        genai(2, 1, (10, 60), '{"q": "a"}', result, status), attempt(3, 2, (11, 20), failed=True, kind=kind)
    )

    assert [fails] == [call.error is not None for call in run.tool_calls]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (('{"q": "a"}', None), ('{"q":"a"}', None)),
        (('{"q": {"at": [1, 2]}}', None), ('{"q": "{\\"at\\":[1,2]}"}', None)),
        (('["a", "b"]', None), ('["a","b"]', None)),
        (('{"q": "a"}', None), (None, None)),
        ((None, None), ('{"q": "a"}', None)),
        ((None, None), (None, None)),
        (('{"q": "a"}', "R"), ('{"q": "a"}', None)),
    ],
    ids=["spacing", "an object as text", "no object", "told once", "told later", "told never", "one result"],
)
@pytest.mark.parametrize("times", [((10, 13), (11, 13)), ((10, 13), (11, 14)), ((10, 13), (12, 12))])
@pytest.mark.parametrize("status", [(0, ""), FAILED], ids=["OK", "failed"])
def test_what_two_instrumentations_tell_at_one_time_is_one_call(
    first: tuple[JsonValue, JsonValue],
    second: tuple[JsonValue, JsonValue],
    times: tuple[tuple[int, int], tuple[int, int]],
    status: tuple[int, str],
) -> None:
    run = run_with(
        openinference(2, 1, times[0], *first, status=status), genai(3, 1, times[1], *second, status=status)
    )

    assert [status == FAILED] == [call.error is not None for call in run.tool_calls]


def test_two_instrumentations_tell_of_as_many_calls_as_each_of_them() -> None:
    one, other = '{"q": "a"}', '{"q": "b"}'
    run = run_with(
        openinference(2, 1, (10, 30), one),
        openinference(3, 1, (11, 31), one),
        openinference(4, 1, (12, 32), other),
        genai(5, 1, (13, 29), one),
        genai(6, 1, (14, 30), one),
        genai(7, 1, (15, 31), other),
        genai(8, 1, (16, 30), other),
    )

    assert ["a", "a", "b", "b"] == sorted(argument(call, "q") for call in run.tool_calls)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (openinference(2, 1, (10, 20), '{"q": "a"}'), genai(3, 1, (10, 20), '{"q": "b"}')),
        (openinference(2, 1, (10, 20), '{"q": "a"}'), genai(3, 1, (21, 30), '{"q": "a"}')),
        (openinference(2, 1, (10, 20), '{"q": "a"}'), openinference(3, 1, (10, 20), '{"q": "a"}')),
        (
            openinference(2, 1, (10, 20), '{"q": "a"}', call_id="c1"),
            genai(3, 1, (10, 20), '{"q": "a"}', call_id="c2"),
        ),
    ],
    ids=["of other arguments", "at another time", "of one instrumentation", "with other ids"],
)
def test_calls_side_by_side_are_several(first: RawSpan, second: RawSpan) -> None:
    assert 2 == len(run_with(first, second).tool_calls)


@pytest.mark.parametrize(
    ("times", "arguments", "calls"),
    [((11, 19), None, 1), ((10, 20), '{"q": "a"}', 1), ((21, 30), None, 2), ((11, 19), '{"q": "b"}', 2)],
    ids=["within", "at once", "after it", "of other arguments"],
)
def test_spans_of_one_scope_in_two_conventions_are_one_call_by_id_at_one_time(
    times: tuple[int, int], arguments: str | None, calls: int
) -> None:
    second = {"openinference.span.kind": "TOOL", "tool.name": "get", "tool_call.id": "call_1"}
    run = run_with(
        genai(2, 1, (10, 20), '{"q": "a"}', "R", call_id="call_1"),
        span(
            3, 1, "get", {**second, **({"input.value": arguments} if arguments else {})}, at=times, of=SEMCONV
        ),
    )

    assert calls == len(run.tool_calls)
    assert ("a", "R") == (argument(run.tool_calls[0], "q"), run.tool_calls[0].result_text)


def test_a_retry_that_two_instrumentations_tell_is_two_calls() -> None:
    run = run_with(
        openinference(2, 1, (10, 20), '{"q": "a"}', status=FAILED),
        genai(3, 1, (11, 19), '{"q": "a"}', status=FAILED),
        openinference(4, 1, (20, 30), '{"q": "a"}', "R"),
        genai(5, 1, (21, 29), '{"q": "a"}', "R"),
    )

    assert [True, False] == [call.error is not None for call in run.tool_calls]
