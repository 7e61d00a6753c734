"""A small trace whose agent was graded, and its results: for tests of the forms in which verdicts leave."""

from opentelemetry.proto.common.v1.common_pb2 import KeyValue

from processors.model import (
    AgentIdentity,
    AgentRun,
    EvaluationResult,
    FinishReason,
    NotEvaluatedReason,
    Outcome,
    Severity,
)
from tests.support.agent_spans import MILLISECOND, TRACE_ID, agent, span_id, tool

SPANS = [tool(2, 1, "get_weather", (10, 20)), agent(1, None, "planner", (0, 100))]
"""The spans of the trace: the agent's comes behind its tool's, as it does when they are sent."""

RUN = AgentRun(
    trace_id=TRACE_ID,
    span_id=span_id(1),
    carrier_span_id=span_id(1),
    agent=AgentIdentity(name="planner"),
    finish_reason=FinishReason.ROOT_INCOMPLETE,
    end_unix_nano=100 * MILLISECOND,
)

PASSED = EvaluationResult(
    name="order",
    evaluator="tool-call-order",
    evaluator_version="1",
    outcome=Outcome.PASS,
    score=1.0,
    explanation="lcs: a, b",
    pass_threshold=0.9,
    severity=Severity.PAGE,
    criteria_hash="abc",
)
FAILED_CALL = EvaluationResult(
    name="args",
    evaluator="tool-call-args",
    evaluator_version="2",
    outcome=Outcome.FAIL,
    score=0.25,
    tool_call_id="call_1",
    tool_span_id=span_id(2),
)
BROKEN = EvaluationResult(
    name="own", evaluator="own", evaluator_version="1", outcome=Outcome.ERROR, error_type="KeyError"
)
NOT_EVALUATED = EvaluationResult(
    name="output",
    evaluator="tool-call-output",
    evaluator_version="1",
    outcome=Outcome.NOT_EVALUATED,
    reason=NotEvaluatedReason.INCOMPLETE_TRACE,
)
WITHOUT_CRITERIA = EvaluationResult(
    name="none",
    evaluator="none",
    evaluator_version="1",
    outcome=Outcome.NOT_EVALUATED,
    reason=NotEvaluatedReason.NO_CRITERIA,
)


def attributes_of(attributes: "list[KeyValue]") -> dict[str, object]:
    """Attributes of any OTLP message as Python values."""
    return {item.key: getattr(item.value, item.value.WhichOneof("value") or "") for item in attributes}
