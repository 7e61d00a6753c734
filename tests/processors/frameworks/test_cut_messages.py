"""Messages that a limit of the sender cut: what they no longer show is not graded, no verdict turns round.

The SDKs' `OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT`, a Collector's `truncate_all` and backends cut the JSON of
messages anywhere. Left out are evaluators of what messages alone tell where calls have spans, and runs count
as known without: requests that were never executed (`tool-known`), failures of calls without a span
(`tool-error-recovery`).
"""

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.otlp import split_request
from processors.criteria import CriteriaSet, Evaluation, read_criteria
from processors.evaluate import evaluate_run
from processors.model import AgentRun, FinishReason, JsonObject, JsonValue, Outcome
from processors.reconstruction import reconstruct
from processors.spans import RawSpan

DATA = Path(__file__).parents[2] / "data"
FOLDERS = sorted(
    {path.parent for root in ("corpus", "recordings") for path in (DATA / root).rglob("*.binpb")}
)
LIMITS = (8, 30, 60, 100, 128, 200, 256, 400, 600, 1000, 2000)
MESSAGES = ("message", "prompt", "completion", "choice", "output", "input", "response")
NAMES_OF_TOOLS = {"gen_ai.tool.name", "tool.name", "ai.toolCall.name"}

_Runs = Mapping[tuple[bytes, bytes | None, str], AgentRun]


@cache
def requests_in(folder: Path) -> tuple[bytes, ...]:
    return tuple(path.read_bytes() for path in sorted(folder.glob("*.binpb")))


def runs_in(requests: Iterable[bytes]) -> _Runs:
    traces: dict[bytes, list[RawSpan]] = {}
    for request in requests:
        for trace_id, spans in split_request(request).traces.items():
            traces.setdefault(trace_id, []).extend(spans)
    return {
        (trace_id, run.carrier_span_id, run.agent.name): run
        for trace_id, spans in traces.items()
        for run in reconstruct(spans, trace_id=trace_id, reason=FinishReason.ROOT)
    }


def cut(request: bytes, limit: int) -> bytes:
    """The request with the JSON of every message beyond the limit cut."""
    body = ExportTraceServiceRequest.FromString(request)
    for of_resource in body.resource_spans:
        for of_scope in of_resource.scope_spans:
            for span in of_scope.spans:
                _cut_messages(span, limit)
    return body.SerializeToString()


def _cut_messages(span: Span, limit: int) -> None:
    if any(attribute.key in NAMES_OF_TOOLS for attribute in span.attributes):
        return  # its own values have states of their own
    attributes: list[KeyValue] = [*span.attributes]
    for event in span.events:
        attributes.extend(event.attributes)
    for attribute in attributes:
        text = attribute.value.string_value
        if text[:1] in ("[", "{") and len(text) > limit and any(part in attribute.key for part in MESSAGES):
            attribute.value.string_value = text[:limit]


def evaluations_for(runs: _Runs) -> Sequence[Evaluation]:
    """What can be asked of calls and answers, with values that are right for one of the runs at least."""
    calls = [call for run in runs.values() for call in run.tool_calls]
    tools = sorted({call.name for call in calls})
    answer = next((run.output for run in runs.values() if isinstance(run.output, str) and run.output), "x")
    asked: list[JsonValue] = [{"evaluator": "tool-response-handling"}, {"evaluator": "run-error"}]
    for name in (*tools, "no_such_tool"):
        for operator, count in ((">=", 1), ("=", 0)):
            of_tool: JsonValue = {"tool_calls_count": {name: [operator, count]}}
            title = f"{name} {operator} {count}"
            asked.append({"evaluator": "tool-call-count", "name": title, "criteria": of_tool})
        asked.append({"evaluator": "tool-permission", "name": f"no {name}", "criteria": {"deny": [name]}})
    expected: list[JsonValue] = [
        {"name": call.name, "args": call.arguments} for call in calls if isinstance(call.arguments, dict)
    ]
    further: list[tuple[str, JsonObject]] = [
        ("tool-call-order", {"tool_calls_order": [*tools]}),
        ("tool-call-args", {"tool_calls": expected[:3]}),
        ("contains", {"search_text": answer[-4:]}),
        ("exact-match", {"expected_output": answer}),
    ]
    for evaluator, criteria in further:
        asked.append({"evaluator": evaluator, "criteria": criteria})
    text = json.dumps({"agents": {"*": {"evaluations": asked}}})
    return CriteriaSet(read_criteria(text, "criteria.yaml", {}).agents).evaluations_for("any")


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: f"{folder.parent.name}/{folder.name}")
def test_no_verdict_turns_round_where_messages_are_cut(folder: Path) -> None:
    requests = requests_in(folder)
    whole = runs_in(requests)
    evaluations = evaluations_for(whole)
    verdicts = {
        identity: {result.name: result.outcome for result in evaluate_run(run, evaluations)}
        for identity, run in whole.items()
    }

    for limit in random.Random(folder.name).sample(LIMITS, 2):
        for identity, run in runs_in(cut(request, limit) for request in requests).items():
            for result in evaluate_run(run, evaluations):
                before = verdicts[identity][result.name] if identity in verdicts else result.outcome
                assert {Outcome.PASS, Outcome.FAIL} != {before, result.outcome}, (limit, result.name)
