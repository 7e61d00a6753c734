"""What arrives in a real MLflow tracking server, and in which form its users see it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from collector.tools.demo import scripted_runs
from processors.model import JsonObject
from tests.support.corpus import recorded_requests
from tests.support.demo_traffic import demo_request, sent_keys
from tests.support.mlflow_server import MlflowServer
from tests.support.otlp_senders import GrpcSender
from tests.support.service_process import ServiceProcess, deep_merge
from tests.support.stored_span import Verdicts, by_trace, graded_verdicts, span_keys, stored_verdicts

pytestmark = [
    pytest.mark.backends,
    pytest.mark.end_to_end,
    pytest.mark.timeout(480),
]

CRITERIA = """
agents:
  "*":
    evaluations:
      - evaluator: tool-call-order
        criteria: {tool_calls_order: [get_temperature, get_weather_condition, get_humidity, get_forecast]}
      - evaluator: tool-call-count
        criteria: {tool_calls_count: {get_temperature: ["=", 1], get_forecast: [">=", 1]}}
      - evaluator: tool-error-recovery
"""
EVALUATIONS = 3
RECORDED: JsonObject = {"processors": {"group_by_trace": {"max_lateness": "1000000h"}}}


@pytest.fixture(scope="module")
def mlflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlflowServer]:
    with MlflowServer(tmp_path_factory.mktemp("mlflow")) as server:
        yield server


def forwarding(mlflow: MlflowServer, experiment: str) -> JsonObject:
    headers: JsonObject = {"x-mlflow-experiment-id": experiment}
    return {"exporters": {"otlp_http/mlflow": {"endpoint": mlflow.url, "headers": headers}}}


async def test_mlflow_stores_every_span_and_every_verdict(mlflow: MlflowServer, tmp_path: Path) -> None:
    requests = recorded_requests("pydantic_ai") + recorded_requests("openinference_langchain")
    experiment = await mlflow.create_experiment("recorded")
    sent = sent_keys(*requests)

    async with ServiceProcess(tmp_path, {**RECORDED, **forwarding(mlflow, experiment)}, CRITERIA) as service:
        async with GrpcSender(service.endpoints["grpc"]) as sender:
            for body in requests:
                await sender.send(body)
        stored = await mlflow.until_spans(experiment, len(sent))

    assert sent == span_keys(stored)
    verdicts = stored_verdicts(stored)
    assert 8 * EVALUATIONS == len(verdicts)
    assert graded_verdicts(service.results()) == verdicts


async def test_mlflow_shows_types_of_genai_spans_and_no_assessments(
    mlflow: MlflowServer, tmp_path: Path
) -> None:
    body = demo_request()
    experiment = await mlflow.create_experiment("kinds")
    annotated: JsonObject = {"results": {"annotations": ["openinference"]}}

    async with ServiceProcess(tmp_path, {**forwarding(mlflow, experiment), **annotated}, CRITERIA) as service:
        async with GrpcSender(service.endpoints["grpc"]) as sender:
            await sender.send(body)
        stored = await mlflow.until_spans(experiment, len(sent_keys(body)))
        traces = await mlflow.traces(experiment)

    expected = {"invoke_agent": "AGENT", "chat": "CHAT_MODEL", "execute_tool": "TOOL"}
    assert expected == {span.name.split()[0]: span.kind for span in stored}
    agents = [span for span in stored if span.kind == "AGENT"]
    assert all("evaluations.0.evaluation.name" in span.attributes for span in agents)
    assert len(scripted_runs()) == len(traces)
    assert not any(trace.get("assessments") for trace in traces)


async def test_streamed_spans_come_to_mlflow_with_a_span_of_verdicts_in_the_same_trace(
    mlflow: MlflowServer, tmp_path: Path
) -> None:
    body = demo_request()
    sent = sent_keys(body)
    experiment = await mlflow.create_experiment("streamed")
    streamed: JsonObject = {"results": {"mode": "stream", "emit": ["span"], "annotations": ["openinference"]}}

    async with ServiceProcess(tmp_path, {**forwarding(mlflow, experiment), **streamed}, CRITERIA) as service:
        async with GrpcSender(service.endpoints["grpc"]) as sender:
            await sender.send(body)
        stored = await mlflow.until_spans(experiment, len(sent) + len(scripted_runs()))

    of_agents = [span for span in stored if (span.trace_id, span.span_id) in sent]
    of_verdicts = [span for span in stored if (span.trace_id, span.span_id) not in sent]
    assert sent == span_keys(of_agents)
    assert {} == stored_verdicts(of_agents)
    parents = {(span.trace_id, span.span_id) for span in of_agents if span.kind == "AGENT"}
    assert parents == {(span.trace_id, span.parent_id) for span in of_verdicts}
    assert {"EVALUATOR"} == {span.kind for span in of_verdicts}
    assert by_trace(graded_verdicts(service.results())) == by_trace(stored_verdicts(of_verdicts))


async def test_verdicts_only_adds_verdicts_to_spans_that_came_to_mlflow_another_way(
    mlflow: MlflowServer, tmp_path: Path
) -> None:
    body = demo_request()
    sent = sent_keys(body)
    experiment = await mlflow.create_experiment("teed")
    verdicts_only: JsonObject = {"results": {"mode": "verdicts_only", "emit": ["span"]}}

    async with ServiceProcess(
        tmp_path, {**forwarding(mlflow, experiment), **verdicts_only}, CRITERIA
    ) as service:
        headers = {"content-type": "application/x-protobuf", "x-mlflow-experiment-id": experiment}
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{mlflow.url}/v1/traces", data=body, headers=headers) as response,
        ):
            assert 200 == response.status
        async with GrpcSender(service.endpoints["grpc"]) as sender:
            await sender.send(body)
        stored = await mlflow.until_spans(experiment, len(sent) + len(scripted_runs()))

    of_verdicts = [span for span in stored if (span.trace_id, span.span_id) not in sent]
    assert sent | span_keys(of_verdicts) == span_keys(stored)
    assert {trace_id for trace_id, _ in sent} == {span.trace_id for span in of_verdicts}
    assert by_trace(graded_verdicts(service.results())) == by_trace(stored_verdicts(of_verdicts))


async def until_assessments(mlflow: MlflowServer, experiment: str, count: int) -> list[JsonObject]:
    async with asyncio.timeout(60):
        while True:
            found = [
                assessment
                for trace in await mlflow.traces(experiment)
                for assessment in await mlflow.assessments(str(trace["trace_id"]))
            ]
            if len(found) >= count:
                return found
            await asyncio.sleep(0.2)


def shown(assessments: list[JsonObject]) -> Verdicts:
    """Assessments as verdicts."""
    found = {}
    for assessment in assessments:
        feedback, told = assessment["feedback"], assessment["metadata"]
        assert isinstance(feedback, dict)
        assert isinstance(told, dict)
        trace_id = str(assessment["trace_id"]).removeprefix("tr-")
        key = (trace_id, str(assessment["span_id"]), str(assessment["assessment_name"]))
        assert key not in found, f"two assessments for {key}"
        found[key] = (told["tracegrade.outcome"], feedback["value"], assessment.get("rationale", ""))
    return found


async def test_verdicts_are_assessments_of_the_traces_and_grading_again_overwrites_them(
    mlflow: MlflowServer, tmp_path: Path
) -> None:
    body = demo_request({"service.version": "1.2.3"})
    experiment = await mlflow.create_experiment("scored")
    scores: JsonObject = {"exporters": {"mlflow_assessments": {"endpoint": mlflow.url}}}
    count = len(scripted_runs()) * EVALUATIONS
    exported = 'tracegrade_results_exported_total{exporter="mlflow_assessments",form="score"}'
    seen: list[list[JsonObject]] = []

    alone: JsonObject = {**scores, "results": {"mode": "verdicts_only", "emit": ["span"]}}
    for name, settings in (("first", deep_merge(forwarding(mlflow, experiment), scores)), ("again", alone)):
        assert isinstance(settings, dict)
        (tmp_path / name).mkdir()
        async with ServiceProcess(tmp_path / name, settings, CRITERIA) as service:
            async with GrpcSender(service.endpoints["grpc"]) as sender:
                await sender.send(body)
            async with asyncio.timeout(60):
                while (await service.metrics()).get(exported, 0) < count:
                    await asyncio.sleep(0.2)
            seen.append(await until_assessments(mlflow, experiment, count))

    once, again = seen
    assert graded_verdicts(service.results()) == shown(once) == shown(again)
    assert {item["assessment_id"] for item in once} == {item["assessment_id"] for item in again}
    assert {"CODE"} == {
        str(item["source"]["source_type"]) for item in once if isinstance(item["source"], dict)
    }
    told = once[0]["metadata"]
    assert isinstance(told, dict)
    assert "ticket" == told["tracegrade.severity"]
    assert '"service.version": "1.2.3"' in str(told["resource"])
    assert told["gen_ai.agent.name"] in {run.agent for run in scripted_runs()}
