"""Runs rebuilt from spans and log records together."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import (
    AnyValue,
    ArrayValue,
    InstrumentationScope,
    KeyValue,
    KeyValueList,
)
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ScopeLogs
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

from processors.model import AgentRun, Decision, FinishReason
from processors.reconstruction import reconstruct, span_reader
from processors.records import join_records, read_record_head, run_of_records
from processors.shapes import ContentSpans, SpanRole
from processors.spans import Envelope, RawRecord, RawSpan, Span
from tests.processors.frameworks.test_recordings import in_any_order, told
from tests.support.both_signals import NAMES, TraceInBothSignals, expected_runs, traces_in

TRACE_ID = b"t" * 16
DETAILS = "gen_ai.client.inference.operation.details"
INPUT, OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"
QUICK = [name for name in NAMES if name != "codex"]
"""Those that are read in a moment: Codex makes 813 spans."""


def rebuilt(spans: Sequence[RawSpan], trace_id: bytes = TRACE_ID) -> list[AgentRun]:
    return reconstruct(spans, trace_id=trace_id, reason=FinishReason.ROOT)


def runs_of(traces: Mapping[bytes, TraceInBothSignals]) -> list[AgentRun]:
    return [
        run
        for trace_id, trace in sorted(traces.items())
        for run in rebuilt(
            join_records(trace.spans, trace.records)
            if trace.spans
            else run_of_records(trace.records, trace_id),
            trace_id,
        )
    ]


@pytest.mark.parametrize("name", NAMES)
def test_runs_are_what_the_program_did(name: str) -> None:
    assert in_any_order(expected_runs(name)) == in_any_order([told(run) for run in runs_of(traces_in(name))])


def test_what_is_left_of_a_turn_of_codex_stands_for_it_where_the_program_exited_first() -> None:
    lost = {"session_task.turn", "codex.turn_input", "op.dispatch.turn_input"}
    traces = traces_in("codex").items()
    ((trace_id, trace),) = ((key, trace) for key, trace in traces if trace.spans and trace.records)
    named = {span_id: SpanMessage.FromString(payload).name for span_id, payload, _ in trace.spans}
    spans = [span for span in trace.spans if named[span[0]] not in lost]
    assert len(trace.spans) - len(lost) == len(spans)

    (whole,) = rebuilt(join_records(trace.spans, trace.records), trace_id)
    (run,) = rebuilt(join_records(spans, trace.records), trace_id)

    assert None is not whole.input == run.input
    assert "" != whole.session == run.session
    assert [call.arguments for call in whole.tool_calls] == [call.arguments for call in run.tool_calls]
    assert run.span_id is not None
    assert "session_task.run" == named[run.span_id]


@pytest.mark.parametrize("name", QUICK)
@given(random=st.randoms(use_true_random=False))
@settings(max_examples=10)
def test_runs_do_not_depend_on_the_order_of_arrival(name: str, random: Random) -> None:
    traces = traces_in(name)
    expected = runs_of(traces)
    shuffled: dict[bytes, TraceInBothSignals] = {}
    for trace_id, trace in traces.items():
        spans = trace.spans + random.sample(trace.spans, random.randint(0, len(trace.spans)))
        records = trace.records + random.sample(trace.records, random.randint(0, len(trace.records)))
        random.shuffle(spans)
        random.shuffle(records)
        shuffled[trace_id] = TraceInBothSignals(spans, records)

    assert expected == runs_of(shuffled)


def without(spans: Iterable[RawSpan], *keys: str) -> list[RawSpan]:
    """The spans as they are where content goes to log records alone."""
    left: list[RawSpan] = []
    for span_id, payload, envelope in spans:
        span = SpanMessage.FromString(payload)
        attributes = [attribute for attribute in span.attributes if attribute.key not in keys]
        del span.attributes[:]
        span.attributes.extend(attributes)
        left.append((span_id, span.SerializeToString(), envelope))
    return left


def test_where_content_goes_makes_no_difference() -> None:
    ((trace_id, trace),) = traces_in("genai_openai_on_spans_too").items()
    bare = without(trace.spans, INPUT, OUTPUT, "gen_ai.system_instructions", "gen_ai.tool.definitions")

    span_and_event = rebuilt(join_records(trace.spans, trace.records), trace_id)
    span_only = rebuilt(trace.spans, trace_id)
    event_only = rebuilt(join_records(bare, trace.records), trace_id)

    assert 4 == len(span_only[0].tool_calls)
    assert span_and_event == span_only == event_only
    assert rebuilt(bare, trace_id) != span_only


def test_records_of_other_programs_leave_the_spans_as_they_are() -> None:
    ((_, trace),) = traces_in("adot_strands").items()
    line = record_of("", {"code.function": "send"}, body=text("event gen_ai."))

    assert trace.spans is join_records(trace.spans, [])
    assert trace.spans is join_records(trace.spans, [line])


def text(value: str) -> AnyValue:
    return AnyValue(string_value=value)


def value_of(value: Any) -> AnyValue:
    if isinstance(value, dict):
        pairs = [KeyValue(key=key, value=value_of(member)) for key, member in value.items()]
        return AnyValue(kvlist_value=KeyValueList(values=pairs))
    if isinstance(value, list):
        return AnyValue(array_value=ArrayValue(values=map(value_of, value)))
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    return AnyValue() if value is None else text(value)


def envelope(scope: str) -> Envelope:
    return Envelope(b"", ScopeLogs(scope=InstrumentationScope(name=scope)).SerializeToString())


def record_of(
    name: str,
    attributes: Mapping[str, Any] | None = None,
    *,
    span_id: bytes = b"model001",
    body: AnyValue | None = None,
    time: int = 1,
    scope: str = "scope",
    traced: bool = True,
) -> RawRecord:
    record = LogRecord(event_name=name, body=body, observed_time_unix_nano=time)
    if traced:
        record.trace_id, record.span_id = TRACE_ID, span_id
    for key, value in (attributes or {}).items():
        record.attributes.append(KeyValue(key=key, value=value_of(value)))
    return span_id, record.SerializeToString(), envelope(scope)


def span_of(
    span_id: bytes,
    name: str,
    attributes: Mapping[str, Any],
    *,
    parent: bytes = b"",
    start: int = 1,
    scope: str = "scope",
) -> RawSpan:
    span = SpanMessage(
        trace_id=TRACE_ID,
        span_id=span_id,
        parent_span_id=parent,
        name=name,
        start_time_unix_nano=start,
        end_time_unix_nano=start + 1,
    )
    for key, value in attributes.items():
        span.attributes.append(KeyValue(key=key, value=value_of(value)))
    return span_id, span.SerializeToString(), envelope(scope)


def agent(**attributes: Any) -> RawSpan:
    named = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper", **attributes}
    return span_of(b"agent001", "invoke_agent helper", named)


def turn(attributes: Mapping[str, Any] | None = None, *, number: int = 1, **options: Any) -> RawSpan:
    named = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", **(attributes or {})}
    return span_of(b"model%03d" % number, "chat m", named, parent=b"agent001", start=10 * number, **options)


def answer(content: str) -> list[dict[str, Any]]:
    return [{"role": "assistant", "parts": [{"type": "text", "content": content}], "finish_reason": "stop"}]


def call(name: str, arguments: Any, call_id: str | None = None) -> list[dict[str, Any]]:
    part = {"type": "tool_call", "name": name, "arguments": arguments}
    return [{"role": "assistant", "parts": [part if call_id is None else {**part, "id": call_id}]}]


def output(spans: Sequence[RawSpan], *records: RawRecord) -> Any:
    (run,) = rebuilt(join_records(spans, records))
    return run.output


@pytest.mark.parametrize(
    "own",
    [
        None,
        json.dumps(answer("It is warm in Oslo."))[:60],
        "[REDACTED]",
        json.dumps(answer("It is [REDACTED] in Oslo.")),
        json.dumps([{"role": "assistant", "parts": []}]),
    ],
    ids=["absent", "cut", "masked", "masked in part", "empty"],
)
def test_the_record_counts_where_the_span_is_not_whole(own: str | None) -> None:
    spans = [agent(), turn({} if own is None else {OUTPUT: own})]

    assert "It is warm in Oslo." == output(spans, record_of(DETAILS, {OUTPUT: answer("It is warm in Oslo.")}))


@pytest.mark.parametrize(
    "attributes",
    [
        {OUTPUT: json.dumps(answer("From the span."))},
        {
            "llm.request.type": "chat",
            "gen_ai.completion.0.role": "assistant",
            "gen_ai.completion.0.content": "From the span.",
        },
    ],
    ids=["conventions", "Traceloop"],
)
def test_the_span_counts_where_it_is_whole(attributes: Mapping[str, str]) -> None:
    spans = [agent(), turn(attributes)]

    assert "From the span." == output(spans, record_of(DETAILS, {OUTPUT: answer("From the record.")}))


def test_a_long_history_is_read_whole() -> None:
    texts = [f"{number} {'x' * 1000}" for number in range(300)]
    history = [{"role": "user", "parts": [{"type": "text", "content": content}]} for content in texts]
    arguments: dict[str, Any] = {"n": 2**40, "ratio": 0.5, "on": True, "none": None, "deep": [{"a": []}]}
    arguments["text"] = "y" * 300_000
    record = record_of(DETAILS, {INPUT: history, OUTPUT: call("look_up", arguments, "c1")})

    (run,) = rebuilt(join_records([agent(), turn(), turn(number=2)], [record]))

    assert texts == [message.content for message in run.messages]
    assert [arguments] == [made.arguments for made in run.tool_calls]


def test_a_record_without_content_hides_nothing() -> None:
    masked = json.dumps(answer("It is [REDACTED] in Oslo."))
    spans = [agent(), turn({OUTPUT: masked})]
    bare = record_of(DETAILS, {OUTPUT: [{"role": "assistant", "parts": []}]})

    assert "It is [REDACTED] in Oslo." == output(spans, bare, record_of(DETAILS, {}))


def test_a_record_of_a_span_that_is_not_here_adds_nothing() -> None:
    spans = [agent(), turn()]
    elsewhere = record_of(DETAILS, {OUTPUT: answer("Elsewhere.")}, span_id=b"unknown1")

    assert rebuilt(spans) == rebuilt(join_records(spans, [elsewhere]))


def test_a_step_around_one_turn_passes_on_its_records() -> None:
    step = span_of(b"step0001", "step", {"traceloop.span.kind": "task"}, parent=b"agent001", start=5)
    model = span_of(
        b"model001",
        "chat m",
        {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"},
        parent=b"step0001",
        start=6,
    )

    record = record_of(DETAILS, {OUTPUT: answer("Warm.")}, span_id=b"step0001")

    assert "Warm." == output([agent(), step, model], record)


@pytest.mark.parametrize("index", ["gen_ai.message.index", "CHAT_MESSAGE_INDEX", None])
def test_messages_of_a_turn_are_in_the_order_of_index_else_of_time_else_of_arrival(index: str | None) -> None:
    texts = ["first", "second", "third"]
    for times in ((1, 2, 3), (7, 7, 7)) if index is None else ((3, 2, 1),):
        records = [
            record_of(
                "gen_ai.user.message",
                {} if index is None else {index: place},
                body=value_of({"content": content}),
                time=time,
            )
            for place, (content, time) in enumerate(zip(texts, times, strict=True))
        ]
        if len(set(times)) > 1:
            records.reverse()
        (run,) = rebuilt(join_records([agent(), turn()], records))
        assert texts == [message.content for message in run.messages]


@pytest.mark.parametrize(
    "body",
    [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Warm."}},
        {"message": "Warm."},
        {"content": "Warm."},
        "Warm.",
        '{"message": {"role": "assistant", "content": "Warm."}, "finish_reason": "stop"}',
    ],
)
def test_a_choice_is_read_from_a_map_or_its_json(body: Any) -> None:
    choice = record_of("gen_ai.choice", body=value_of(body))

    assert "Warm." == output([agent(), turn()], choice)


def adk(spans: Sequence[RawSpan], records: Sequence[RawRecord]) -> list[tuple[Any, Any]]:
    (run,) = rebuilt(join_records(spans, records))
    return [(call.arguments, call.result) for call in run.tool_calls]


def test_deep_traces_take_no_more_than_a_look_at_each_span() -> None:
    depth = 3_000
    spans = [agent()]
    for number in range(depth):
        above = spans[-1][0]
        spans.append(span_of(b"%08d" % number, "step", {"gen_ai.operation.name": "chat"}, parent=above))
    content = ContentSpans(spans, span_reader().read)
    looks = 0

    def counted(span: Span, *roles: SpanRole) -> bool:
        nonlocal looks
        looks += 1
        return ContentSpans.has_role(content, span, *roles)

    content.has_role = counted  # type: ignore[method-assign]
    above_all = [content.ancestor(span, SpanRole.AGENT) for span in content.with_role(SpanRole.MODEL)]

    assert depth == len(above_all)
    assert {b"agent001"} == {span.span_id for span in above_all if span is not None}
    assert looks <= 3 * depth


def adk_tool(number: int, start: int, name: str = "look_up") -> RawSpan:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.id": f"adk-{number}",
    }
    return span_of(b"tool%04d" % number, f"execute_tool {name}", attributes, parent=b"agent001", start=start)


def adk_records(*turns: tuple[Sequence[Any], Sequence[Any]]) -> list[RawRecord]:
    """Model turns, each with the calls and results in its history, and the calls that it requests."""
    return [
        record_of(
            DETAILS,
            {INPUT: [*history], OUTPUT: [{"role": "assistant", "parts": [*requested]}]},
            span_id=b"model%03d" % number,
            time=number,
            scope="gcp.vertex.agent",
        )
        for number, (history, requested) in enumerate(turns, start=1)
    ]


def requested(number: int, arguments: Any) -> dict[str, Any]:
    return {"type": "tool_call", "id": f"look_up_{number}", "name": "look_up", "arguments": arguments}


def response(number: int, value: Any) -> dict[str, Any]:
    return {"type": "tool_call_response", "id": f"look_up_{number}", "response": value}


def test_ids_that_adk_invented_match_by_tool_and_order() -> None:
    spans = [
        agent(),
        turn(),
        adk_tool(1, 11),
        adk_tool(2, 12),
        turn(number=2),
        adk_tool(3, 21),
        turn(number=3),
    ]
    first = [{"role": "assistant", "parts": [requested(0, {"k": 1}), requested(1, {"k": 2})]}]
    answered = [{"role": "user", "parts": [response(0, {"v": 1}), response(1, {"v": 2})]}]
    second = [{"role": "assistant", "parts": [requested(0, {"k": 3})]}]
    last = [{"role": "user", "parts": [response(0, {"v": 3})]}]

    joined = adk(
        spans,
        adk_records(
            ([], first[0]["parts"]),
            ([*first, *answered], second[0]["parts"]),
            ([*first, *answered, *second, *last], []),
        ),
    )

    assert [({"k": 1}, {"v": 1}), ({"k": 2}, {"v": 2}), ({"k": 3}, {"v": 3})] == joined


def test_whose_result_is_whose_is_not_guessed_for_equal_calls_side_by_side() -> None:
    spans = [agent(), turn(), adk_tool(1, 11), adk_tool(2, 12), turn(number=2)]
    first = [{"role": "assistant", "parts": [requested(0, {"k": 1}), requested(1, {"k": 1})]}]
    answered = [{"role": "user", "parts": [response(0, {"v": 1}), response(1, {"v": 2})]}]

    joined = adk(spans, adk_records(([], first[0]["parts"]), ([*first, *answered], [])))

    assert [({"k": 1}, None), ({"k": 1}, None)] == joined


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        ([("a", "look_up"), ("b", "search")], ["1", "2"]),
        ([("a", "look_up"), ("b", "look_up")], [None, None]),
    ],
)
def test_results_without_ids_belong_to_the_calls_before_them_unless_of_one_tool(
    requests: Sequence[tuple[str, str]], expected: Sequence[str | None]
) -> None:
    scope = "opentelemetry.instrumentation.langchain"
    calls = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": {}}}
        for call_id, name in requests
    ]
    tools = [
        span_of(
            call_id.encode() * 8,
            f"execute_tool {name}",
            {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": name,
                "gen_ai.tool.call.id": call_id,
                "gen_ai.tool.call.arguments": "{}",
            },
            parent=b"agent001",
            start=11,
        )
        for call_id, name in requests
    ]
    records = [
        record_of("gen_ai.choice", body=value_of({"message": {}, "tool_calls": calls}), scope=scope),
        record_of(
            "gen_ai.assistant.message",
            body=value_of({"content": "", "tool_calls": calls}),
            span_id=b"model002",
            scope=scope,
        ),
        *(
            record_of(
                "gen_ai.tool.message",
                body=value_of({"content": str(place)}),
                span_id=b"model002",
                time=1 + place,
                scope=scope,
            )
            for place in (1, 2)
        ),
    ]

    (run,) = rebuilt(join_records([agent(), turn(), *tools, turn(number=2)], records))

    assert expected == [call.result_text for call in run.tool_calls]


TRACELOOP = "opentelemetry.instrumentation.langchain"


def moved(span_id: bytes, scope: str, given: Sequence[Any], answered: Sequence[Any]) -> RawRecord:
    """What ADOT moves off a span: the values of its attributes with a role each."""
    body = {
        "input": {"messages": [{"role": "user", "content": content} for content in given]},
        "output": {"messages": [{"role": "assistant", "content": content} for content in answered]},
    }
    return record_of(scope, {"event.name": scope}, span_id=span_id, body=value_of(body), scope=scope)


def test_messages_that_adot_moved_in_one_value_are_messages_again() -> None:
    asked = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "How warm?"}]}])
    model = turn(scope=TRACELOOP)

    (run,) = rebuilt(
        join_records(
            [agent(), model], [moved(b"model001", TRACELOOP, [asked], [json.dumps(answer("Warm."))])]
        )
    )

    assert ["How warm?", "Warm."] == [message.content for message in run.messages]


def test_values_that_adot_moved_off_a_tool_of_traceloop_are_its_own_again() -> None:
    tool = span_of(
        b"tool0001",
        "look_up.tool",
        {"traceloop.span.kind": "tool", "traceloop.entity.name": "look_up"},
        parent=b"agent001",
        start=5,
        scope=TRACELOOP,
    )

    (run,) = rebuilt(
        join_records(
            [agent(), tool], [moved(b"tool0001", TRACELOOP, ['{"city": "Oslo"}'], ['{"warm": true}'])]
        )
    )

    (made,) = run.tool_calls
    assert ({"city": "Oslo"}, {"warm": True}) == (made.arguments, made.result)


@pytest.mark.parametrize(
    ("contents", "expected"),
    [
        (["Be brief.", "How warm?", '{"warm": true}'], ["Be brief.", "How warm?", '{"warm": true}']),
        (["Be brief.", "How warm?"], []),
    ],
    ids=["one for each message with text", "one too few"],
)
def test_contents_that_adot_moved_off_openinference_go_to_the_messages_that_had_one(
    contents: list[str], expected: list[str]
) -> None:
    scope = "openinference.instrumentation.langchain"
    roles = ("system", "user", "assistant", "tool")
    attributes = {
        "openinference.span.kind": "LLM",
        "llm.input_messages.2.message.tool_calls.0.tool_call.function.name": "look_up",
        "llm.input_messages.2.message.tool_calls.0.tool_call.id": "c1",
        "llm.input_messages.3.message.tool_call_id": "c1",
        **{f"llm.input_messages.{place}.message.role": role for place, role in enumerate(roles)},
    }
    model = span_of(b"model001", "ChatOpenAI", attributes, parent=b"agent001", start=5, scope=scope)

    (joined,) = (
        Span(payload)
        for span_id, payload, _ in join_records(
            [agent(), model], [moved(b"model001", scope, ["the whole input", *contents], [])]
        )
        if span_id == b"model001"
    )

    assert "the whole input" == joined.attributes.get("input.value")
    keys = [f"llm.input_messages.{place}.message.content" for place in range(len(roles))]
    assert expected == [joined.attributes.get(key) for key in keys if key in joined.attributes]


CLAUDE_CODE = "com.anthropic.claude_code.events"


def claude_code(name: str, sequence: int, **attributes: Any) -> RawRecord:
    named = {"event.name": name, "session.id": "s", "prompt.id": "p", **attributes}
    return record_of("", named, time=sequence * 10**9, scope=CLAUDE_CODE, traced=False)


def test_records_of_a_prompt_without_a_trace_make_a_run() -> None:
    records = [
        claude_code("user_prompt", 1, prompt="How warm is it?"),
        claude_code(
            "tool_result", 3, tool_name="Bash", tool_use_id="t1", tool_input='{"command": "date"}',
            success="false", error="Shell command failed", error_type="ShellError", duration_ms="1500",
        ),
        claude_code("api_request", 4, model="claude", input_tokens=3, output_tokens=4),
        claude_code("assistant_response", 5, response="Nobody knows."),
    ]  # fmt: skip
    heads = [read_record_head(payload, of) for _, payload, of in records]
    (run_id,) = {head.run_id for head in heads if head is not None}

    (run,) = rebuilt(run_of_records([*records[::-1], *records], run_id), run_id)

    assert 16 == len(run_id)
    assert ("How warm is it?", "Nobody knows.", "s") == (run.input, run.output, run.session)
    (made,) = run.tool_calls
    assert ("Bash", "t1", {"command": "date"}) == (made.name, made.call_id, made.arguments)
    assert made.error is not None
    assert ("ShellError", "Shell command failed") == (made.error.type, made.error.message)
    assert (1_500_000_000, 3_000_000_000) == (made.start_unix_nano, made.end_unix_nano)
    assert run.usage is not None
    assert 7 == run.usage.total_tokens


def decided(*names: str, call_id: str = "c1", **attributes: Any) -> list[RawRecord]:
    """Records of a conversation without a trace; the same attributes are on all of them."""
    ids = {"session.id": "s", "prompt.id": "p", "prompt_id": "p", "conversation.id": "s"}
    of_call = {"tool_use_id": call_id, "call_id": call_id, "tool_name": "Bash", "function_name": "Bash"}
    return [
        record_of(
            "",
            {"event.name": name, "prompt": "Tidy up.", "request_text": "[]", **ids, **of_call, **attributes},
            time=10**9 * (place + 1),
            scope=CLAUDE_CODE if "." not in name else "scope",
            traced=False,
        )
        for place, name in enumerate(names)
    ]


QWEN_RECORDS = tuple(
    f"qwen-code.{event}" for event in ("user_prompt", "api_request", "tool_call", "api_response")
)


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        (
            decided("user_prompt", "tool_decision", decision="reject", source="user_reject"),
            (Decision.DENIED, "user_reject", False),
        ),
        (
            decided("user_prompt", "tool_decision", "tool_result", decision="accept", source="config"),
            (Decision.APPROVED, "config", True),
        ),
        (
            decided("codex.user_prompt", "codex.tool_decision", "codex.tool_result", decision="abort"),
            (Decision.DENIED, "abort", False),
        ),
        (
            decided("codex.user_prompt", "codex.tool_decision", decision="approved_for_session", source="U"),
            (Decision.APPROVED, "U", True),
        ),
        (
            decided(*QWEN_RECORDS, decision="reject", success=False, error="Cancelled"),
            (Decision.DENIED, "reject", False),
        ),
        (decided(*QWEN_RECORDS, decision="auto_accept"), (Decision.APPROVED, "auto_accept", True)),
        (decided(*QWEN_RECORDS, decision=None), (None, "", True)),
        (decided(*QWEN_RECORDS, decision="thought about"), (None, "", True)),
    ],
)  # fmt: skip
def test_a_decision_is_a_fact_of_its_call(
    records: list[RawRecord], expected: tuple[Decision | None, str, bool]
) -> None:
    (run,) = rebuilt(run_of_records(records, TRACE_ID))

    (made,) = run.tool_calls
    assert expected == (made.decision, made.decision_source, made.executed)
    assert made.error is None


def of_call(attributes: Mapping[str, Any]) -> RawSpan:
    return span_of(b"tool0001", "call", attributes, parent=b"agent001")


@pytest.mark.parametrize(
    ("tool", "record", "decision"),
    [
        ("dispatch", {"event.name": "codex.tool_decision", "decision": "denied"}, Decision.DENIED),
        ("dispatch", {"event.name": "codex.tool_decision", "decision": "approved"}, Decision.APPROVED),
        ("execute", {"event.name": "qwen-code.tool_call", "decision": "reject"}, Decision.DENIED),
    ],
)
def test_a_decision_in_a_record_goes_to_the_call_with_its_id(
    tool: str, record: Mapping[str, Any], decision: Decision
) -> None:
    of_codex = {"codex.tool.phase": "dispatch", "tool_name": "shell", "call_id": "c1"}
    of_qwen = {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "shell", "gen_ai.tool.call.id": "c1",
    }  # fmt: skip
    spans = [agent(), of_call(of_codex if tool == "dispatch" else of_qwen)]
    records = [record_of("", {**record, "call_id": "c1", "source": "user"}, span_id=b"agent001")]

    (run,) = rebuilt(join_records(spans, records))

    (made,) = run.tool_calls
    assert (decision, "user") == (made.decision, made.decision_source)
    assert made.executed is (decision is Decision.APPROVED)


@pytest.mark.parametrize(
    ("decisions", "expected"),
    [(("approved", "denied"), Decision.DENIED), (("denied", "approved_for_session"), Decision.APPROVED)],
)
def test_the_last_of_several_decisions_about_a_call_counts(
    decisions: Sequence[str], expected: Decision
) -> None:
    spans = [
        agent(),
        of_call({"codex.tool.phase": "dispatch", "tool_name": "x", "call_id": "c"}),
    ]
    records = [
        record_of("", {"event.name": "codex.tool_decision", "call_id": "c", "decision": word}, time=place + 1)
        for place, word in enumerate(decisions)
    ]

    (run,) = rebuilt(join_records(spans, records))

    assert [expected] == [made.decision for made in run.tool_calls]


GEMINI_RECORDS = tuple(f"gemini_cli.{event.partition('.')[2]}" for event in QWEN_RECORDS)


@pytest.mark.parametrize("typed_in", [False, True])
def test_calls_in_pieces_of_a_run_are_in_the_run_that_all_its_records_report(typed_in: bool) -> None:
    def piece(place: int) -> bytes:
        return TRACE_ID if typed_in else bytes([place]) * 16

    records = [
        record_of("", {"event.name": name, "session.id": "s", "prompt_id": "p", "function_name": "look_up"},
            span_id=b"batch001", time=place + 1)
        for place, name in enumerate(GEMINI_RECORDS)
    ]  # fmt: skip
    traced = []
    for place, (span_id, payload, of) in enumerate(records):
        record = LogRecord.FromString(payload)
        record.trace_id = piece(place)
        traced.append((span_id, record.SerializeToString(), of))
    heads = [read_record_head(payload, of) for _, payload, of in traced]
    above = {"gen_ai.operation.name": "user_prompt", "gen_ai.agent.name": "gemini-cli"}
    call = {"gen_ai.operation.name": "tool_call", "gen_ai.tool.name": "look_up"}
    spans = [
        *([span_of(b"prompt01", "user_prompt", above)] if typed_in else []),
        span_of(b"batch001", "schedule_tool_calls", {"gen_ai.operation.name": "schedule_tool_calls"},
                parent=b"prompt01" if typed_in else b""),
        span_of(b"tool0001", "tool_call", call, parent=b"batch001"),
    ]  # fmt: skip

    assert 1 == len({head.run_id for head in heads if head is not None and head.trace_id})
    assert [["look_up"]] * typed_in == [
        [made.name for made in run.tool_calls] for run in rebuilt(join_records(spans, [traced[2]]))
    ]
    assert [["look_up"]] * (not typed_in) == [
        [made.name for made in run.tool_calls] for run in rebuilt(run_of_records(traced, TRACE_ID))
    ]


def test_a_streamed_reply_is_one_with_the_ids_of_the_next_request() -> None:
    def piece(number: int) -> Any:
        requested = {"name": "Bash", "args": {"n": number}, "id": f"Bash__c{number}"}
        return {"candidates": [{"content": {"role": "model", "parts": [{"functionCall": requested}]}}]}

    def history(number: int) -> Any:
        requested = {"name": "Bash", "args": {"n": number}, "id": f"c{number}"}
        returned = {"id": f"c{number}", "response": {"output": number}}
        return [
            {"role": "model", "parts": [{"functionCall": requested}]},
            {"role": "user", "parts": [{"functionResponse": returned}]},
        ]

    requests = json.dumps([part for number in (2, 1) for part in history(number)])
    replies = json.dumps([piece(2), piece(1)])
    prompt, request, call, reply = GEMINI_RECORDS
    records = [
        *decided(prompt, request, reply, call_id="", response_text=replies, request_text=requests),
        *decided(*[call] * 3, call_id="", function_args='{"n": 1}')[2:],
        *decided(*[call] * 4, call_id="", function_args='{"n": 2}')[3:],
    ]

    (run,) = rebuilt(run_of_records(records, TRACE_ID))

    assert [("c2", {"output": 2}), ("c1", {"output": 1})] == [
        (made.call_id, made.result) for made in run.tool_calls
    ]


def test_equal_calls_of_one_turn_stay_without_the_ids_that_only_the_history_has() -> None:
    def history(*turns: Sequence[str]) -> str:
        return json.dumps(
            [
                {"role": "model", "parts": [{"functionCall": {"name": "Bash", "id": one}} for one in turn]}
                for turn in turns
            ]
        )

    def call_ids(*turns: Sequence[str]) -> list[str | None]:
        names = [*QWEN_RECORDS[:2], *[QWEN_RECORDS[2]] * 2, QWEN_RECORDS[3]]
        records = decided(*names, call_id="", function_args="{}", request_text=history(*turns))
        return [made.call_id for run in rebuilt(run_of_records(records, TRACE_ID)) for made in run.tool_calls]

    assert ["a", "b"] == call_ids(["a"], ["b"])
    assert [None, None] == call_ids(["a", "b"])


@pytest.mark.parametrize(
    "records",
    [
        [claude_code("user_prompt", 1, prompt="How warm is it?")],
        [claude_code("api_request", 1, model="claude")],
        [],
    ],
    ids=["a prompt alone", "without the prompt", "nothing"],
)
def test_records_that_do_not_show_a_run_make_none(records: list[RawRecord]) -> None:
    assert [] == [*run_of_records(records, TRACE_ID)]


@pytest.mark.parametrize("missing", ["session.id", "prompt.id"])
def test_records_of_no_known_prompt_belong_to_no_run(missing: str) -> None:
    _, payload, of = claude_code("user_prompt", 1, **{missing: ""})

    head = read_record_head(payload, of)

    assert head is not None
    assert b"" == head.run_id == head.trace_id


values = st.recursive(
    st.none() | st.integers(-9, 9) | st.sampled_from(["", "x", "tool", "[", '{"role": "tool"}', "look_up_0"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            [
                "role", "parts", "content", "id", "name", "type", "message", "tool_calls", "input", "output",
                "messages", "response", "arguments", "function",
            ]
        ),
        inner,
        max_size=4,
    ),
    max_leaves=20,
)  # fmt: skip


@given(
    name=st.sampled_from(
        [
            DETAILS, "gen_ai.choice", "gen_ai.tool.message", "gen_ai.content.prompt", "tool_result", "scope",
            "assistant_response", "codex.tool_result", "qwen-code.api_response", "gemini_cli.tool_call",
        ]
    ),
    scope=st.sampled_from(
        [
            "scope", "gcp.vertex.agent", "opentelemetry.instrumentation.langchain",
            "com.anthropic.claude_code.events", "openinference.x",
        ]
    ),
    body=values,
    attribute=values,
    span_id=st.sampled_from([b"model001", b"agent001", b"tool0001", b"", b"unknown1"]),
)  # fmt: skip
def test_any_content_is_joined_or_left_out(
    name: str, scope: str, body: Any, attribute: Any, span_id: bytes
) -> None:
    keys = (INPUT, OUTPUT, "response", "prompt", "output", "arguments", "function_args", "tool_input")
    attributes = {"event.name": scope if name == "scope" else name, **dict.fromkeys(keys, attribute)}
    record = record_of("", attributes, span_id=span_id, body=value_of(body), scope=scope)
    spans = [agent(), turn(), adk_tool(1, 12), turn(number=2)]

    joined = join_records(spans, [record])

    assert {span[0] for span in spans} == {span[0] for span in joined}
    assert "helper" in {run.agent.name for run in rebuilt(joined)}


@given(
    name=st.sampled_from(["tool_result", "api_request", "assistant_response", "user_prompt"]),
    key=st.sampled_from(["duration_ms", "tool_input", "tool_name", "input_tokens", "response", "success"]),
    value=st.sampled_from([None, -1, 2**62, math.inf, "x", "\u0663", [], {}, ["a"], "-1", "1e400"]),
    qwen=st.booleans(),
)
def test_any_records_without_a_trace_make_a_run_or_none(name: str, key: str, value: Any, qwen: bool) -> None:
    if qwen:
        keys = {
            "session.id": "s",
            "prompt_id": "p",
            "request_text": value,
            "function_args": value,
            key: value,
        }
        records = [
            record_of("", {"event.name": f"qwen-code.{event}", **keys}, traced=False)
            for event in ("user_prompt", "api_request", "tool_call", "api_response")
        ]
    else:
        records = [claude_code("user_prompt", 1), claude_code(name, 2, **{key: value})]

    assert len(rebuilt(run_of_records(records, TRACE_ID))) <= 1
