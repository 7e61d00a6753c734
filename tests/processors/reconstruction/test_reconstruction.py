"""Runs, calls and their order out of hand-made spans: one pitfall of real telemetry a test."""

import json

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from processors.model.agent_run import CallCategory, ToolError, ValueState
from processors.model.finish_reason import CUT_SHORT, FinishReason
from processors.model.json_values import JsonValue
from processors.reconstruction.passes import reconstruct
from processors.spans.span_tree import MAX_EVENTS
from tests.support.agent_spans import (
    REMOTE_PARENT,
    TRACE_ID,
    agent,
    envelope,
    model,
    runs_of,
    span,
    span_id,
    tool,
)

MCP = {"mcp.method.name": "tools/call"}


def requests(*calls: tuple[str, str, JsonValue]) -> str:
    parts = [
        {"type": "tool_call", "id": call_id, "name": name, "arguments": args} for call_id, name, args in calls
    ]
    return json.dumps([{"role": "assistant", "parts": parts}])


def results(*answers: tuple[str, JsonValue]) -> str:
    parts = [{"type": "tool_call_response", "id": call_id, "response": answer} for call_id, answer in answers]
    return json.dumps(
        [{"role": "user", "parts": [{"type": "text", "content": "hi"}]}, {"role": "tool", "parts": parts}]
    )


def test_one_call_reported_by_agent_client_sdk_and_server_is_one_call() -> None:
    spans = [
        agent(1, None, "a"),
        tool(2, 1, "get", at=(10, 60), result=None),
        tool(3, 2, "get", at=(11, 59), arguments=None, result='"done"', **MCP),
        span(4, 3, "MCP send tools/call get", MCP, at=(12, 58)),
        tool(5, 4, "get", at=(20, 50), arguments=None, result=None, **MCP, **{"error.type": "tool_error"}),
    ]

    (run,) = runs_of(spans)

    (call,) = run.tool_calls
    assert span_id(2) == call.span_id
    assert CallCategory.MCP is call.category
    assert ({"city": "Oslo"}, "done") == (call.arguments, call.result)
    assert ToolError(type="tool_error", message="") == call.error


@pytest.mark.parametrize("outer", ["weather__get", "mcp__weather__get", "weather.get"])
def test_a_server_prefix_does_not_make_another_tool(outer: str) -> None:
    spans = [agent(1, None, "a"), tool(2, 1, outer), tool(3, 2, "get")]

    assert [outer] == [call.name for call in runs_of(spans)[0].tool_calls]


def test_a_tool_that_calls_itself_with_another_id_is_two_calls() -> None:
    spans = [agent(1, None, "a"), tool(2, 1, "get", call_id="c1"), tool(3, 2, "get", call_id="c2")]

    assert ["c1", "c2"] == [call.call_id for call in runs_of(spans)[0].tool_calls]


def test_a_tool_of_an_inner_agent_is_not_merged_with_the_one_that_called_the_agent() -> None:
    spans = [
        agent(1, None, "a"),
        tool(2, 1, "get", at=(1, 90)),
        agent(3, 2, "b", at=(2, 80)),
        tool(4, 3, "get"),
    ]

    outer, inner = runs_of(spans)

    assert [("a", None), ("b", "a")] == [(run.agent.name, run.parent_agent) for run in (outer, inner)]
    assert [(span_id(2), CallCategory.AGENT)] == [(call.span_id, call.category) for call in outer.tool_calls]
    assert [(span_id(4), CallCategory.FUNCTION)] == [
        (call.span_id, call.category) for call in inner.tool_calls
    ]


def test_two_instrumentations_side_by_side_are_one_call_by_id() -> None:
    spans = [
        agent(1, None, "a"),
        tool(2, 1, "get", call_id="c1", result=None, at=(10, 20)),
        span(
            3,
            1,
            "get",
            {"openinference.span.kind": "TOOL", "tool.name": "get", "tool.id": "c1", "output.value": "sunny"},
            at=(11, 20),
            of=envelope(scope="second"),
        ),
    ]

    (call,) = runs_of(spans)[0].tool_calls

    assert "sunny" == call.result


def test_equal_calls_of_one_instrumentation_side_by_side_stay_two() -> None:
    spans = [agent(1, None, "a"), tool(2, 1, "get"), tool(3, 1, "get")]

    assert 2 == len(runs_of(spans)[0].tool_calls)


def test_nested_spans_of_one_agent_are_one_run() -> None:
    spans = [
        agent(1, None, "planner"),
        agent(2, 1, "planner", (0, 100), **{"gen_ai.conversation.id": "s"}),
        tool(3, 2, "get"),
    ]

    (run,) = runs_of(spans)

    assert (span_id(1), "planner", "s", 1) == (run.span_id, run.agent.name, run.session, len(run.tool_calls))


def test_a_nameless_agent_around_named_ones_is_transparent() -> None:
    kind = {"openinference.span.kind": "AGENT"}
    spans = [
        span(1, None, "Agent workflow", kind),
        span(2, 1, "billing", {**kind, "agent.name": "billing"}, at=(1, 50)),
        span(3, 1, "support", {**kind, "agent.name": "support"}, at=(50, 99)),
        tool(4, 3, "get", at=(60, 70)),
    ]

    runs = runs_of(spans)

    assert [("billing", None, 0), ("support", None, 1)] == [
        (run.agent.name, run.parent_agent, len(run.tool_calls)) for run in runs
    ]


def test_a_placeholder_is_no_name() -> None:
    spans = [
        span(
            1,
            None,
            "invoke_agent planner",
            {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "OpenAI Agent"},
        )
    ]

    assert ["demo"] == [run.agent.name for run in runs_of(spans)]


def test_two_agents_at_once_under_one_root_keep_their_calls_apart() -> None:
    spans = [
        span(1, None, "POST /ask"),
        agent(2, 1, "a", at=(1, 90)),
        agent(3, 1, "b", at=(1, 90)),
        tool(4, 2, "x", at=(10, 20)),
        tool(5, 3, "y", at=(10, 20)),
    ]

    assert {"a": ["x"], "b": ["y"]} == {
        run.agent.name: [call.name for call in run.tool_calls] for run in runs_of(spans)
    }


def test_building_an_agent_is_no_run() -> None:
    assert [] == runs_of(
        [span(1, None, "create_agent a", {"gen_ai.operation.name": "create_agent", "gen_ai.agent.name": "a"})]
    )


def test_unknown_operations_are_transparent() -> None:
    spans = [
        agent(1, None, "a"),
        span(2, 1, "step 1", {"gen_ai.operation.name": "agent_step"}),
        tool(3, 2, "get"),
    ]

    assert [1] == [len(run.tool_calls) for run in runs_of(spans)]


def test_a_trace_without_agents_and_calls_has_no_run() -> None:
    assert [] == runs_of(
        [span(1, None, "GET /", {"http.route": "/"}), span(2, 1, "SELECT", {"db.system": "x"})]
    )
    assert [] == runs_of([model(1, None, (0, 10), **{"gen_ai.output.messages": "hello"})])


def test_an_agent_without_calls_is_a_run() -> None:
    spans = [agent(1, None, "a"), model(2, 1, (1, 9), **{"gen_ai.output.messages": "hello"})]

    assert [("a", 0, True)] == [(run.agent.name, len(run.tool_calls), run.complete) for run in runs_of(spans)]


def test_a_workflow_stands_for_a_run_only_where_no_agent_does() -> None:
    workflow = span(
        1,
        None,
        "invoke_workflow w",
        {"gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": "w"},
    )

    assert ["w"] == [run.agent.name for run in runs_of([workflow, tool(2, 1, "get")])]
    assert ["a"] == [run.agent.name for run in runs_of([workflow, agent(2, 1, "a"), tool(3, 2, "get")])]


def test_a_local_root_stands_for_a_run_and_the_service_for_its_name() -> None:
    (run,) = runs_of([span(1, None, "main"), tool(2, 1, "get")])

    assert (span_id(1), "demo", True) == (run.span_id, run.agent.name, run.complete)


def test_calls_without_anything_above_them_are_a_run_that_is_not_complete() -> None:
    (run,) = runs_of([tool(2, 1, "get"), tool(3, 1, "put", at=(30, 40))])

    assert (None, "demo", False) == (run.span_id, run.agent.name, run.complete)
    assert (["get", "put"], span_id(2)) == ([call.name for call in run.tool_calls], run.carrier_span_id)


def test_the_view_of_a_tool_server_alone_is_no_run() -> None:
    lone = span(2, 9, "tools/call get", MCP, kind=Span.SPAN_KIND_SERVER, flags=REMOTE_PARENT)

    assert [] == runs_of([lone])


@pytest.mark.parametrize("reason", sorted(CUT_SHORT))
def test_no_run_of_a_trace_that_was_cut_short_is_complete(reason: FinishReason) -> None:
    (run,) = runs_of([agent(1, None, "a")], reason)

    assert not run.complete
    assert (
        "over_limit" if reason is FinishReason.OVER_LIMIT else "incomplete_trace"
    ) == run.incomplete_reason


@pytest.mark.parametrize(("further", "is_read"), [(MAX_EVENTS - 1, True), (MAX_EVENTS, False)])
def test_events_beyond_the_limit_are_not_read(further: int, is_read: bool) -> None:
    fields: dict[str, JsonValue] = {"gen_ai.operation.name": "execute_tool"}
    events = [("exception", {"exception.type": "TimeoutError"})]
    failed = span(2, 1, "execute_tool get", fields, status=(2, ""), events=events)
    identifier, raw, of = agent(1, None, "a")

    (run,) = runs_of([(identifier, raw + b"\x5a\x00" * further, of), failed])

    assert [("TimeoutError" if is_read else "", is_read)] == [
        (call.error.type if call.error else None, run.complete) for call in run.tool_calls
    ]
    assert is_read or "over_limit" == run.incomplete_reason


def test_no_run_is_complete_after_an_interruption() -> None:
    (run,) = reconstruct([agent(1, None, "a")], trace_id=TRACE_ID, reason=FinishReason.ROOT, interrupted=True)

    assert not run.complete


def test_a_call_whose_parent_was_lost_belongs_to_the_run_around_it_in_time() -> None:
    spans = [
        span(1, None, "root"),
        agent(2, 1, "early", at=(0, 50)),
        model(5, 2, (10, 20), **{"gen_ai.output.messages": "hello"}),
        agent(3, 1, "late", at=(60, 100)),
        tool(4, 99, "get", at=(70, 80)),
    ]

    graded = runs_of(spans, FinishReason.ROOT_INCOMPLETE)
    refused = reconstruct(
        spans, trace_id=TRACE_ID, reason=FinishReason.ROOT_INCOMPLETE, missing_parents="not_evaluated"
    )

    assert [("early", 0, True), ("late", 1, True)] == [
        (r.agent.name, len(r.tool_calls), r.complete) for r in graded
    ]
    assert [True, False] == [run.complete for run in refused]


def test_calls_whose_parents_were_lost_by_us_are_given_to_no_run_around_them() -> None:
    spans = [agent(1, None, "a", (0, 100)), tool(2, 98, "x"), tool(3, 98, "y"), tool(4, 99, "z")]

    cut = runs_of(spans, FinishReason.SHUTDOWN)

    assert [("a", []), ("demo", ["x", "y"]), ("demo", ["z"])] == [
        (run.agent.name, [call.name for call in run.tool_calls]) for run in cut
    ]
    assert not any(run.complete for run in cut)


def test_calls_are_ordered_by_turn_and_by_place_in_the_answer() -> None:
    asked = requests(("c1", "x", {}), ("c2", "y", {}))
    spans = [
        agent(1, None, "a"),
        model(2, 1, (0, 10), **{"gen_ai.output.messages": asked}),
        tool(3, 1, "y", at=(11, 20), call_id="c2"),
        tool(4, 1, "x", at=(12, 20), call_id="c1"),
        model(5, 1, (21, 30)),
        tool(6, 1, "z", at=(31, 40)),
    ]

    calls = runs_of(spans)[0].tool_calls

    assert [("x", 0), ("y", 0), ("z", None)] == [(call.name, call.parallel_group) for call in calls]


def test_without_turns_overlapping_calls_form_a_group() -> None:
    spans = [
        agent(1, None, "a"),
        tool(2, 1, "x", at=(1, 5)),
        tool(3, 1, "y", at=(4, 9)),
        tool(4, 1, "z", at=(9, 12)),
    ]

    assert [("x", 0), ("y", 0), ("z", None)] == [
        (call.name, call.parallel_group) for call in runs_of(spans)[0].tool_calls
    ]


def test_calls_that_no_model_asked_for_and_that_follow_each_other_form_no_group() -> None:
    answer = requests(("c1", "other", {}))
    spans = [
        agent(1, None, "a"),
        model(2, 1, (0, 5), **{"gen_ai.output.messages": answer}),
        tool(3, 1, "y", at=(10, 20)),
        tool(4, 1, "x", at=(20, 30)),
    ]

    assert [("y", None), ("x", None)] == [
        (call.name, call.parallel_group) for call in runs_of(spans)[0].tool_calls
    ]


def test_model_calls_inside_a_tool_are_no_turns_of_the_agent() -> None:
    spans = [
        agent(1, None, "a"),
        model(2, 1, (0, 10)),
        tool(3, 1, "x", at=(11, 30)),
        model(4, 3, (12, 14)),
        tool(5, 1, "y", at=(16, 30)),
    ]

    assert [0, 0] == [call.parallel_group for call in runs_of(spans)[0].tool_calls]


def test_calls_known_from_messages_alone_are_rebuilt_once() -> None:
    first = requests(("c1", "x", '{"n": 1}'), ("c2", "y", {}))
    history = results(("c1", '{"v": 2}'))
    spans = [
        agent(1, None, "a"),
        model(2, 1, (0, 10), **{"gen_ai.output.messages": first}),
        model(
            3,
            1,
            (20, 30),
            **{"gen_ai.input.messages": history, "gen_ai.output.messages": requests(("c3", "z", {}))},
        ),
    ]

    calls = runs_of(spans)[0].tool_calls

    assert [("x", {"n": 1}, {"v": 2}, True), ("y", {}, None, True), ("z", {}, None, False)] == [
        (call.name, call.arguments, call.result, call.executed) for call in calls
    ]
    assert [0, 0, None] == [call.parallel_group for call in calls]


def test_a_request_that_no_span_answers_is_a_call_that_was_never_executed() -> None:
    spans = [
        agent(1, None, "a"),
        model(2, 1, (0, 5), **{"gen_ai.output.messages": requests(("c1", "x", {}), ("c2", "unknown", {}))}),
        tool(3, 1, "x", call_id="c1"),
    ]

    (run,) = runs_of(spans)

    assert ["x"] == [call.name for call in run.tool_calls]
    assert [("x", True), ("unknown", False)] == [(call.name, call.executed) for call in run.calls]


def test_a_call_that_was_refused_stands_where_it_was_asked_for_with_what_the_model_was_told() -> None:
    refused = [
        {
            "role": "tool",
            "parts": [{"type": "tool_call_response", "id": "c2", "response": "Denied by the user."}],
        }
    ]
    spans = [
        agent(1, None, "a"),
        model(2, 1, (0, 5), **{"gen_ai.output.messages": requests(("c1", "refund", {"amount": 50}))}),
        tool(3, 1, "refund", call_id="c1", at=(6, 8)),
        model(4, 1, (9, 12), **{"gen_ai.output.messages": requests(("c2", "refund", {"amount": 5000}))}),
        model(
            5,
            1,
            (13, 15),
            **{
                "gen_ai.input.messages": json.dumps(refused),
                "gen_ai.output.messages": requests(("c3", "refund", {"amount": 90})),
            },
        ),
        tool(6, 1, "refund", call_id="c3", at=(16, 18)),
    ]

    (run,) = runs_of(spans)

    assert [("c1", True), ("c2", False), ("c3", True)] == [
        (call.call_id, call.executed) for call in run.calls
    ]
    ((before, call),) = run.requested_calls
    assert (1, {"amount": 5000}, "Denied by the user.") == (before, call.arguments, call.result)


@pytest.mark.parametrize("call_id", ["", "t7"])
def test_a_request_is_executed_where_the_calls_of_its_tool_bear_no_ids_of_requests(call_id: str) -> None:
    spans = [
        agent(1, None, "a"),
        model(2, 1, (0, 5), **{"gen_ai.output.messages": requests(("c1", "x", {}), ("c2", "x", {}))}),
        tool(3, 1, "x", call_id=call_id),
    ]

    assert [] == list(runs_of(spans)[0].requested_calls)


def test_calls_of_one_answer_of_which_one_was_not_executed_stand_in_their_order() -> None:
    answer = requests(("c1", "x", {}), ("c2", "refused", {}), ("c3", "y", {}))
    spans = [
        agent(1, None, "a"),
        model(2, 1, (0, 5), **{"gen_ai.output.messages": answer}),
        tool(3, 1, "y", call_id="c3", at=(6, 8)),
        tool(4, 1, "x", call_id="c1", at=(6, 9)),
    ]

    assert [("x", 0), ("refused", 0), ("y", 0)] == [
        (call.name, call.parallel_group) for call in runs_of(spans)[0].calls
    ]


def test_calls_at_the_provider_are_added_from_messages() -> None:
    part = {
        "type": "server_tool_call",
        "id": "s1",
        "name": "web_search",
        "server_tool_call": {"type": "x", "q": "o"},
    }
    answer = json.dumps([{"role": "assistant", "parts": [part]}])
    spans = [agent(1, None, "a"), model(2, 1, (0, 5), **{"gen_ai.output.messages": answer}), tool(3, 1, "x")]

    assert [
        ("web_search", CallCategory.SERVER, {"q": "o"}),
        ("x", CallCategory.FUNCTION, {"city": "Oslo"}),
    ] == [(call.name, call.category, call.arguments) for call in runs_of(spans)[0].tool_calls]


def test_listing_the_tools_of_a_server_at_the_provider_is_no_call() -> None:
    part = {"type": "server_tool_call", "id": "l1", "name": "mcp_list_tools", "server_tool_call": {}}
    answer = json.dumps([{"role": "assistant", "parts": [part]}])
    spans = [agent(1, None, "a"), model(2, 1, (0, 5), **{"gen_ai.output.messages": answer})]

    assert [] == runs_of(spans)[0].tool_calls


def test_missing_arguments_and_results_come_from_messages_by_id() -> None:
    spans = [
        agent(1, None, "a"),
        model(2, 1, (0, 5), **{"gen_ai.output.messages": requests(("c1", "x", {"n": 1}))}),
        tool(3, 1, "x", call_id="c1", arguments=None, result=None),
        model(4, 1, (30, 40), **{"gen_ai.input.messages": results(("c1", "fine"))}),
    ]

    (call,) = runs_of(spans)[0].tool_calls

    assert ({"n": 1}, "fine") == (call.arguments, call.result)


def test_content_that_was_not_captured_is_absent_and_not_empty() -> None:
    (run,) = runs_of([agent(1, None, "a"), tool(2, 1, "x", arguments=None, result=None)])

    (call,) = run.tool_calls
    assert (None, ValueState.ABSENT) == (call.arguments, call.arguments_state)
    assert (None, ValueState.ABSENT) == (call.result, call.result_state)
    assert (ValueState.ABSENT, ValueState.ABSENT) == (run.input_state, run.output_state)


@pytest.mark.parametrize(
    ("fields", "events", "status", "error"),
    [
        ({"error.type": "timeout"}, [], (2, "slow"), ToolError(type="timeout", message="slow")),
        ({}, [], (2, "slow"), ToolError(type="", message="slow")),
        (
            {},
            [("exception", {"exception.type": "E", "exception.message": "m"})],
            (2, "text"),
            ToolError(type="E", message="m"),
        ),
        (
            {},
            [("exception", {"exception.type": "E", "exception.message": "m"})],
            (0, ""),
            ToolError(type="E", message="m"),
        ),
        ({}, [("exception", {"exception.type": "E", "exception.message": "m"})], (1, ""), None),
        ({"gen_ai.tool.status": "error"}, [], (0, ""), ToolError(type="", message="")),
        (
            {"gen_ai.tool.call.result": '{"content": [{"type": "text", "text": "no"}], "isError": true}'},
            [],
            (0, ""),
            ToolError(type="", message="no"),
        ),
        ({"gen_ai.tool.call.result": '{"error": "no"}'}, [], (0, ""), None),
    ],
)
def test_errors_are_read_in_order_of_precedence(
    fields: dict[str, JsonValue],
    events: list[tuple[str, dict[str, JsonValue]]],
    status: tuple[int, str],
    error: ToolError | None,
) -> None:
    told = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "x", **fields}
    spans = [agent(1, None, "a"), span(2, 1, "execute_tool x", told, events=events, status=status)]

    assert [error] == [call.error for call in runs_of(spans)[0].tool_calls]


@pytest.mark.parametrize(
    ("told", "result"),
    [
        ('{"type": "text", "text": "{\\"t\\": 25}"}', {"t": 25}),
        ('{"type": "text", "text": "rain", "annotations": null, "meta": null}', "rain"),
        (
            '{"type": "text", "text": "rain", "city": "Oslo"}',
            {"type": "text", "text": "rain", "city": "Oslo"},
        ),
        ('{"type": "rain", "text": "light"}', {"type": "rain", "text": "light"}),
    ],
)
def test_the_only_content_block_of_a_tool_servers_answer_is_its_text(told: str, result: JsonValue) -> None:
    (run,) = runs_of([agent(1, None, "a"), tool(2, 1, "x", result=told)])

    assert [result] == [call.result for call in run.tool_calls]


def test_synthetic_spans_are_left_out_and_final_answers_kept_apart() -> None:
    spans = [
        agent(1, None, "a"),
        tool(2, 1, "(merged tools)"),
        tool(3, 1, "final_answer", at=(20, 30)),
        tool(4, 1, "transfer_to_billing", at=(30, 40)),
    ]

    (run,) = runs_of(spans)

    assert [CallCategory.FINAL_ANSWER, CallCategory.HANDOFF] == [call.category for call in run.tool_calls]
    assert [] == run.evaluated_calls()


def test_bogus_ids_are_no_ids() -> None:
    (run,) = runs_of([agent(1, None, "a"), tool(2, 1, "x", call_id="<not specified>")])

    assert [None] == [call.call_id for call in run.tool_calls]


def test_events_carry_arguments_results_and_messages() -> None:
    fields = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "x"}
    spans = [
        span(
            1,
            None,
            "invoke_agent a",
            {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"},
            events=[
                ("gen_ai.user.message", {"content": '[{"text": "How warm?"}]'}),
                ("gen_ai.choice", {"message": "Very.", "finish_reason": "end_turn"}),
            ],
        ),
        span(
            2,
            1,
            "execute_tool x",
            fields,
            events=[
                ("gen_ai.tool.message", {"role": "tool", "content": '{"n": 1}', "id": "c1"}),
                ("gen_ai.choice", {"message": '[{"text": "{\\"v\\": 2}"}]', "id": "c1"}),
            ],
        ),
    ]

    (run,) = runs_of(spans)

    assert ("How warm?", "Very.") == (run.input, run.output)
    assert [("c1", {"n": 1}, {"v": 2})] == [
        (call.call_id, call.arguments, call.result) for call in run.tool_calls
    ]


def test_details_events_carry_what_attributes_would() -> None:
    details = "gen_ai.client.inference.operation.details"
    spans = [
        span(
            1,
            None,
            "invoke_agent a",
            {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"},
            events=[
                (
                    details,
                    {
                        "gen_ai.input.messages": '[{"role": "user", "content": "q"}]',
                        "gen_ai.output.messages": '[{"role": "assistant", "content": "r"}]',
                    },
                )
            ],
        )
    ]

    assert [("q", "r")] == [(run.input, run.output) for run in runs_of(spans)]


def test_values_may_be_maps_instead_of_texts() -> None:
    spans = [agent(1, None, "a"), tool(2, 1, "x", arguments={"n": [1, 2.5]}, result={"ok": True})]

    (call,) = runs_of(spans)[0].tool_calls

    assert ({"n": [1, 2.5]}, '{"n": [1, 2.5]}') == (call.arguments, call.arguments_text)
    assert {"ok": True} == call.result


def test_an_object_as_input_stays_an_object_and_a_chat_becomes_text() -> None:
    kind = {"openinference.span.kind": "AGENT", "agent.name": "a"}
    as_object = span(1, None, "a", {**kind, "input.value": '{"action": "get_forecast", "city": "Oslo"}'})
    as_chat = span(1, None, "a", {**kind, "input.value": '{"messages": [{"role": "user", "content": "hi"}]}'})

    assert [{"action": "get_forecast", "city": "Oslo"}] == [run.input for run in runs_of([as_object])]
    assert ["hi"] == [run.input for run in runs_of([as_chat])]


def test_the_session_of_the_outermost_run_is_that_of_the_inner_ones() -> None:
    spans = [
        agent(1, None, "a", (0, 100), **{"gen_ai.conversation.id": "outer"}),
        agent(2, 1, "b", (0, 100), **{"gen_ai.conversation.id": "inner"}),
    ]

    assert ["outer", "outer"] == [run.session for run in runs_of(spans)]


def test_an_id_that_is_new_with_every_run_is_not_the_agents() -> None:
    per_run = agent(1, None, "a", (0, 100), **{"gen_ai.agent.id": "11ba0c43-ee17-46fa-8848-7e5e4a24c71b"})
    stable = agent(1, None, "a", (0, 100), **{"gen_ai.agent.id": "asst_1", "gen_ai.agent.version": "7"})

    assert [(None, None)] == [(run.agent.id, run.agent.version) for run in runs_of([per_run])]
    assert [("asst_1", "7")] == [(run.agent.id, run.agent.version) for run in runs_of([stable])]


def test_the_conversation_is_told_with_its_turns() -> None:
    asked = json.dumps([{"role": "system", "content": "be kind"}, {"role": "user", "content": "one"}])
    answered = json.dumps(
        [
            {"role": "assistant", "parts": [{"type": "text", "content": "first"}]},
            {"role": "user", "parts": [{"type": "text", "content": "two"}]},
            {"role": "assistant", "parts": [{"type": "text", "content": "second"}]},
        ]
    )
    (run,) = runs_of(
        [
            agent(
                1, None, "a", (0, 100), **{"gen_ai.input.messages": asked, "gen_ai.output.messages": answered}
            )
        ]
    )

    assert [("system", 0), ("user", 0), ("assistant", 0), ("user", 1), ("assistant", 1)] == [
        (message.role, message.turn) for message in run.messages
    ]


def test_a_message_only_run_with_dropped_attributes_is_not_complete() -> None:
    answer = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": requests(("c1", "x", {}))}
    spans = [agent(1, None, "a"), span(2, 1, "chat m", answer, dropped=3)]

    assert [False] == [run.complete for run in runs_of(spans)]


def test_a_call_belongs_to_the_model_turn_before_it_however_soon_the_next_one_ends() -> None:
    spans = [
        agent(1, None, "a", at=(0, 1000)),
        model(2, 1, at=(10, 20)),
        tool(3, 1, "get", at=(21, 22)),
        model(4, 1, at=(22, 22)),
        tool(5, 1, "get", at=(23, 24)),
    ]

    (run,) = runs_of(spans)

    assert [(span_id(3), None), (span_id(5), None)] == [
        (call.span_id, call.parallel_group) for call in run.tool_calls
    ]


@pytest.mark.parametrize("reason", sorted(CUT_SHORT - {FinishReason.OVER_LIMIT}))
def test_a_run_that_had_ended_is_complete_though_the_trace_around_it_was_cut_short(
    reason: FinishReason,
) -> None:
    spans = [agent(2, 1, "a", at=(0, 50)), tool(3, 2, "get", at=(10, 20))]  # span 1 still runs

    (quiet,) = reconstruct(spans, trace_id=TRACE_ID, reason=reason, was_quiet=True)
    (busy,) = reconstruct(spans, trace_id=TRACE_ID, reason=reason)

    assert (True, False) == (quiet.complete, busy.complete)
