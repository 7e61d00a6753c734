"""Recorded requests over every transport, shuffled, re-batched and repeated: the same verdicts every time."""

import asyncio
import random
from collections import Counter
from pathlib import Path

import orjson
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.otlp import join_spans, json_to_request, split_request
from processors.annotation import EVENT_NAME
from processors.model import JsonObject, JsonValue
from tests.support.corpus import recorded_requests
from tests.support.otlp_senders import GrpcSender, HttpSender, Sender
from tests.support.service_process import ServiceProcess

pytestmark = pytest.mark.end_to_end

FRAMEWORKS = ("pydantic_ai", "openinference_langchain", "openinference_openai_agents", "uipath_style")

# Shuffled over all traces, the spans of one trace come as far apart as sending everything takes.
SETTINGS: JsonObject = {
    "processors": {
        "group_by_trace": {
            "max_lateness": "1000000h",
            "root_grace": "5s",
            "multi_service_grace": "5s",
            "incomplete_grace": "5s",
            "idle_timeout": "5s",
        }
    }
}

CRITERIA = """
agents:
  "*":
    evaluations:
      - evaluator: tool-call-order
        criteria: {tool_calls_order: [get_temperature, get_weather_condition, get_humidity, get_forecast]}
      - evaluator: tool-call-count
        criteria: {tool_calls_count: {get_temperature: ["=", 1], get_forecast: [">=", 1]}}
      - evaluator: tool-call-args
        criteria: {tool_calls: [{name: get_temperature, args: {city: London}}]}
      - evaluator: tool-call-output
        criteria: {tool_outputs: [{name: get_humidity, output: {humidity: 80}}]}
      - evaluator: tool-repetition
      - evaluator: tool-error-recovery
"""


def _single_span_requests(bodies: list[bytes]) -> list[bytes]:
    return [
        join_spans([span])
        for body in bodies
        for spans in split_request(body).traces.values()
        for span in spans
    ]


def _all_requests() -> list[bytes]:
    return [body for framework in FRAMEWORKS for body in recorded_requests(framework)]


def _arrangement(name: str) -> list[bytes]:
    bodies = _all_requests()
    if name == "as recorded":
        return bodies
    if name == "shuffled":
        return random.Random(7).sample(bodies, len(bodies))
    if name == "one span a request":
        singles = _single_span_requests(bodies)
        return random.Random(8).sample(singles, len(singles))
    singles = _single_span_requests(bodies)
    return random.Random(9).sample([*bodies, *singles], len(bodies) + len(singles))


def _sender(transport: str, service: ServiceProcess) -> Sender:
    if transport == "grpc":
        return GrpcSender(service.endpoints["grpc"])
    return HttpSender(service.endpoints["http"], json=transport == "http/json")


def _verdicts(results: list[JsonObject]) -> list[JsonValue]:
    return sorted(
        (
            [run[key] for key in ("trace_id", "span_id", "agent", "tool_calls", "evaluations")]
            for run in results
        ),
        key=str,
    )


def _messages(requests: list[JsonObject]) -> list[ExportTraceServiceRequest]:
    return [
        ExportTraceServiceRequest.FromString(json_to_request(orjson.dumps(request))) for request in requests
    ]


def _facts(messages: list[ExportTraceServiceRequest]) -> list[tuple[bytes, bytes, bytes]]:
    """(resource, scope, span without our events) of every span."""
    found = []
    for message in messages:
        for resource_spans in message.resource_spans:
            for scope_spans in resource_spans.scope_spans:
                for span in scope_spans.spans:
                    kept = [event for event in span.events if event.name != EVENT_NAME]
                    del span.events[:]
                    span.events.extend(kept)
                    found.append(
                        (
                            resource_spans.resource.SerializeToString(),
                            scope_spans.scope.SerializeToString(),
                            span.SerializeToString(),
                        )
                    )
    return sorted(found)


def _sent_spans() -> list[tuple[bytes, bytes, bytes]]:
    return _facts([ExportTraceServiceRequest.FromString(body) for body in _all_requests()])


def _exported_spans(service: ServiceProcess) -> list[tuple[bytes, bytes, bytes]]:
    return _facts(_messages(service.exported_requests()))


def _exported_events(service: ServiceProcess) -> int:
    return sum(
        event.name == EVENT_NAME
        for message in _messages(service.exported_requests())
        for resource_spans in message.resource_spans
        for scope_spans in resource_spans.scope_spans
        for span in scope_spans.spans
        for event in span.events
    )


async def _send_and_stop(
    folder: Path, transport: str, arrangement: str
) -> tuple[ServiceProcess, dict[str, float]]:
    folder.mkdir()
    async with ServiceProcess(folder, SETTINGS, CRITERIA) as service:
        async with _sender(transport, service) as sender:
            for body in _arrangement(arrangement):
                answer = await sender.send(body, compress=arrangement == "shuffled")
                assert ("OK", 0) == (answer.code, answer.rejected), answer
        traces = len({trace_id for body in _all_requests() for trace_id in split_request(body).traces})
        await service.until(lambda: len({run["trace_id"] for run in service.results()}) == traces)
        await service.until(lambda: len(_exported_spans(service)) >= len(_sent_spans()))
        await service.metrics()  # shows series of agents that no criteria name at 0, as on first sight
        metrics = await service.metrics()
        assert 0 == await service.stop()
    return service, metrics


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> list[JsonObject]:
    """What the requests give when they are sent as they were recorded."""
    folder = tmp_path_factory.mktemp("recorded") / "reference"
    service, _ = asyncio.run(_send_and_stop(folder, "grpc", "as recorded"))
    return service.results()


ARRANGEMENTS = ("shuffled", "one span a request", "everything twice")
# Whole over one protocol; what the others add is in the codec, so that one arrangement of each shows it.
SAMPLED = {"http/protobuf": "everything twice", "http/json": "one span a request"}


@pytest.mark.parametrize(
    ("transport", "arrangement"),
    [
        *(("grpc", arrangement) for arrangement in ARRANGEMENTS),
        *(
            pytest.param(transport, arrangement, marks=() if arrangement == sampled else (pytest.mark.slow,))
            for transport, sampled in SAMPLED.items()
            for arrangement in ARRANGEMENTS
        ),
    ],
)
async def test_verdicts_and_spans_do_not_depend_on_how_the_requests_came(
    tmp_path: Path, reference: list[JsonObject], transport: str, arrangement: str
) -> None:
    outcomes = Counter(
        evaluation["outcome"]
        for run in reference
        if isinstance(run["evaluations"], list)
        for evaluation in run["evaluations"]
        if isinstance(evaluation, dict)
    )
    assert outcomes["pass"] > 20
    assert outcomes["fail"] > 10

    service, metrics = await _send_and_stop(tmp_path / "service", transport, arrangement)

    assert _verdicts(reference) == _verdicts(service.results())
    assert _sent_spans() == _exported_spans(service)
    assert sum(outcomes.values()) == _exported_events(service)
    assert 0 == metrics['tracegrade_accounting_error_spans{exporter="file"}']
    repeats = len(_sent_spans()) if arrangement == "everything twice" else 0
    assert repeats == metrics['tracegrade_spans_dropped_total{exporter="",reason="duplicate"}']
    assert len(_sent_spans()) + repeats == metrics["tracegrade_spans_received_total"]
    assert len(_sent_spans()) == metrics['tracegrade_spans_forwarded_total{exporter="file"}']
    assert sum(outcomes.values()) == sum(
        value for name, value in metrics.items() if name.startswith("gen_ai_evaluation_results_total")
    )
