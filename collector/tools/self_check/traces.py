"""The traces of a self-check, one to pass and one to fail, and whether they were graded so.

They are spans in the OpenTelemetry GenAI conventions, of the reserved agent, and are graded by the
criteria below alone.
"""

from collections.abc import Iterator, Mapping, Sequence

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from collector.trace import FinishedTrace, GradedTrace
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

_LOOK = ("look", '{"at": "traces"}')
_REPORT = ("report", '{"to": "operator"}')
_CALLS: Mapping[Outcome, Sequence[tuple[str, str]]] = {
    Outcome.PASS: (_LOOK, _REPORT),
    Outcome.FAIL: (("report", '{"to": "nobody"}'), _LOOK),
}

_MILLISECOND = 1_000_000


def self_check_criteria() -> CriteriaSet:
    """The criteria of self-checks; they are never among those of the user."""
    return CriteriaSet(read_criteria(_CRITERIA, "self-check", {}).agents)


def self_check_request(expected: Mapping[bytes, Outcome], unix_nano: int) -> bytes:
    """A serialised export request: a trace for each id in `expected` that is to pass or fail.

    All of them began at `unix_nano`.
    """
    spans = [span for trace, outcome in expected.items() for span in _spans(trace, outcome, unix_nano)]
    resource = Resource(attributes=[_attribute("service.name", SELF_CHECK_AGENT)])
    request = ExportTraceServiceRequest(
        resource_spans=[ResourceSpans(resource=resource, scope_spans=[ScopeSpans(spans=spans)])]
    )
    return request.SerializeToString()


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
    """The agent's span, and one for each of its calls, a millisecond apart."""
    calls = _CALLS[outcome]
    end = unix_nano + (len(calls) + 1) * _MILLISECOND
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": SELF_CHECK_AGENT}
    yield _span(trace, 1, f"invoke_agent {SELF_CHECK_AGENT}", (unix_nano, end), agent)
    for number, (tool, arguments) in enumerate(calls, 1):
        start = unix_nano + number * _MILLISECOND
        call = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "gen_ai.tool.call.arguments": arguments,
            "gen_ai.tool.call.result": '{"done": true}',
        }
        yield _span(trace, 1 + number, f"execute_tool {tool}", (start, start + _MILLISECOND // 2), call)


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
