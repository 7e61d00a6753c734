"""The traces of a self-check, one to pass and one to fail, and whether they were graded so.

They are spans and log records in the OpenTelemetry GenAI conventions, of the reserved agent, and are graded
by the criteria below alone. What the calls were is on spans, their arguments are in log records.
"""

import json
from collections.abc import Iterator, Mapping, Sequence

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from collector.trace import FinishedTrace, GradedTrace, Signal
from processors.annotation import count_results
from processors.criteria import SELF_CHECK_AGENT, CriteriaSet, read_criteria
from processors.model import Outcome

_CRITERIA = """
agents:
  "*":
    evaluations:
      - evaluator: tool-call-order
        config: {strict: true}
        criteria: {tool_calls_order: [look, report]}
      - evaluator: tool-call-args
        criteria: {tool_calls: [{name: look, args: {at: traces}}, {name: report, args: {to: operator}}]}
"""
_EVALUATIONS = ("tool-call-order", "tool-call-args")

_LOOK = ("look", {"at": "traces"})
_CALLS: Mapping[Outcome, Sequence[tuple[str, Mapping[str, str]]]] = {
    Outcome.PASS: (_LOOK, ("report", {"to": "operator"})),
    Outcome.FAIL: (("report", {"to": "nobody"}), _LOOK),
}

_RESOURCE = Resource(attributes=[KeyValue(key="service.name", value=AnyValue(string_value=SELF_CHECK_AGENT))])
_MILLISECOND = 1_000_000
_TURN = 2
"""The number of the span of the model turn, which the log record of its trace names."""


def self_check_criteria() -> CriteriaSet:
    """The criteria of self-checks; they are never among those of the user."""
    return CriteriaSet(read_criteria(_CRITERIA, "self-check", {}).agents)


def self_check_requests(expected: Mapping[bytes, Outcome], unix_nano: int) -> Mapping[Signal, bytes]:
    """Serialised export requests: a trace for each id in `expected` that is to pass or fail, and its records.

    All of them began at `unix_nano`. A trace is not graded as expected without its log record, which is to be
    sent first: no time is then too short for it.
    """
    spans = [span for trace, outcome in expected.items() for span in _spans(trace, outcome, unix_nano)]
    records = [_record(trace, outcome, unix_nano) for trace, outcome in expected.items()]
    return {"logs": records_request(records), "traces": spans_request(spans)}


def spans_request(spans: Sequence[Span]) -> bytes:
    """A serialised export request with spans of the reserved agent's service."""
    of_resource = ResourceSpans(resource=_RESOURCE, scope_spans=[ScopeSpans(spans=spans)])
    return ExportTraceServiceRequest(resource_spans=[of_resource]).SerializeToString()


def records_request(records: Sequence[LogRecord]) -> bytes:
    """A serialised export request with log records of that service."""
    of_resource = ResourceLogs(resource=_RESOURCE, scope_logs=[ScopeLogs(log_records=records)])
    return ExportLogsServiceRequest(resource_logs=[of_resource]).SerializeToString()


def misgrading(trace: FinishedTrace, graded: GradedTrace, expected: Outcome) -> str | None:
    """What is wrong with the verdicts on a trace that was to be graded `expected`; None: nothing."""
    about = f"the trace to {expected.value} (finish reason {trace.reason.value})"
    agents = [graded_run.run.agent.name for graded_run in graded.runs]
    if agents != [SELF_CHECK_AGENT]:
        return f"{about} gave {len(agents)} agent runs, expected one of {SELF_CHECK_AGENT}"
    results = graded.runs[0].results
    outcomes = {result.name: result.outcome for result in results}
    for name in _EVALUATIONS:
        if outcomes.get(name) is not expected:
            outcome = "no result" if name not in outcomes else outcomes[name].value
            return f"{about} got {outcome} from {name}"
    if count_results(graded.spans) != len(results):
        return f"{about} carries other than one event for each result"
    return None


def _spans(trace: bytes, outcome: Outcome, unix_nano: int) -> Iterator[Span]:
    """The agent's span, one for its model turn, and one for each of its calls, a millisecond apart."""
    calls = _CALLS[outcome]
    end = unix_nano + (len(calls) + 2) * _MILLISECOND
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": SELF_CHECK_AGENT}
    yield _span(trace, 1, f"invoke_agent {SELF_CHECK_AGENT}", (unix_nano, end), agent)
    turn = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "none"}
    yield _span(trace, _TURN, "chat none", _times(unix_nano, 1), turn)
    for number, (tool, _) in enumerate(calls, _TURN + 1):
        call = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "gen_ai.tool.call.id": f"call-of-{tool}",
            "gen_ai.tool.call.result": '{"done": true}',
        }
        yield _span(trace, number, f"execute_tool {tool}", _times(unix_nano, number - 1), call)


def _record(trace: bytes, outcome: Outcome, unix_nano: int) -> LogRecord:
    """The answer of the model turn: the calls that it requests, with their arguments."""
    calls = [
        {"type": "tool_call", "id": f"call-of-{tool}", "name": tool, "arguments": arguments}
        for tool, arguments in _CALLS[outcome]
    ]
    answer = {"role": "assistant", "parts": calls, "finish_reason": "tool_call"}
    return LogRecord(
        event_name="gen_ai.client.inference.operation.details",
        trace_id=trace,
        span_id=_TURN.to_bytes(8, "big"),
        time_unix_nano=unix_nano,
        attributes=[_attribute("gen_ai.output.messages", json.dumps([answer]))],
    )


def _times(unix_nano: int, number: int) -> tuple[int, int]:
    start = unix_nano + number * _MILLISECOND
    return start, start + _MILLISECOND // 2


def _span(
    trace: bytes, number: int, name: str, times: tuple[int, int], attributes: Mapping[str, str]
) -> Span:
    """A span with its number as id; the first one is the parent of the others."""
    return Span(
        trace_id=trace,
        span_id=number.to_bytes(8, "big"),
        parent_span_id=b"" if number == 1 else (1).to_bytes(8, "big"),
        name=name,
        kind=Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=times[0],
        end_time_unix_nano=times[1],
        attributes=[_attribute(key, value) for key, value in attributes.items()],
    )


def _attribute(key: str, value: str) -> KeyValue:
    return KeyValue(key=key, value=AnyValue(string_value=value))
