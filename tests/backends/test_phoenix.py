"""What arrives in a real Arize Phoenix, and in which form its users see it."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import aiohttp
import pytest

from collector.tools.demo import scripted_runs
from processors.model import JsonObject
from tests.support.corpus import recorded_requests
from tests.support.demo_traffic import demo_request, sent_keys, without_roots
from tests.support.logs_backend import LogsBackend
from tests.support.otlp_senders import GrpcSender, HttpSender
from tests.support.phoenix_server import PhoenixServer
from tests.support.service_process import ServiceProcess, deep_merge
from tests.support.stored_span import (
    StoredSpan,
    Verdicts,
    by_trace,
    graded_verdicts,
    span_keys,
    stored_verdicts,
)

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
def phoenix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PhoenixServer]:
    with PhoenixServer(tmp_path_factory.mktemp("phoenix")) as server:
        yield server


def over_http(
    phoenix: PhoenixServer, project: str, signals: Sequence[str] = ("traces", "logs")
) -> JsonObject:
    """Forwarding to a project of its own, named by a header."""
    exporter: JsonObject = {
        "endpoint": phoenix.url,
        "headers": {"x-project-name": project},
        "signals": list(signals),
    }
    return {"exporters": {"otlp_http/phoenix": exporter}}


async def test_phoenix_stores_every_span_and_every_verdict_over_http(
    phoenix: PhoenixServer, tmp_path: Path
) -> None:
    requests = recorded_requests("pydantic_ai") + recorded_requests("openinference_langchain")
    settings: JsonObject = {**RECORDED, **over_http(phoenix, "recorded")}
    sent = sent_keys(*requests)

    async with ServiceProcess(tmp_path, settings, CRITERIA) as service:
        async with GrpcSender(service.endpoints["grpc"]) as sender:
            for body in requests:
                await sender.send(body)
        stored = await phoenix.until_spans("recorded", len(sent))

    assert sent == span_keys(stored)
    verdicts = stored_verdicts(stored)
    assert 8 * EVALUATIONS == len(verdicts)
    assert graded_verdicts(service.results()) == verdicts


async def test_phoenix_takes_the_project_of_a_resource_attribute_over_grpc(
    phoenix: PhoenixServer, tmp_path: Path
) -> None:
    exporter: JsonObject = {"endpoint": f"127.0.0.1:{phoenix.grpc_port}", "tls": {"insecure": True}}
    settings: JsonObject = {"exporters": {"otlp/phoenix": exporter}}
    body = demo_request({"openinference.project.name": "named-by-the-agent"})
    sent = sent_keys(body)

    async with ServiceProcess(tmp_path, settings, CRITERIA) as service:
        async with HttpSender(service.endpoints["http"]) as sender:
            await sender.send(body)
        stored = await phoenix.until_spans("named-by-the-agent", len(sent))

    assert sent == span_keys(stored)
    assert graded_verdicts(service.results()) == stored_verdicts(stored)


async def test_phoenix_shows_what_agents_models_and_tools_of_genai_spans_are(
    phoenix: PhoenixServer, tmp_path: Path
) -> None:
    body = demo_request()

    async with ServiceProcess(tmp_path, over_http(phoenix, "kinds"), CRITERIA) as service:
        async with GrpcSender(service.endpoints["grpc"]) as sender:
            await sender.send(body)
        stored = await phoenix.until_spans("kinds", len(sent_keys(body)))

    expected = {"invoke_agent": "AGENT", "chat": "LLM", "execute_tool": "TOOL"}
    assert expected == {span.name.split()[0]: span.kind for span in stored}


async def test_openinference_annotations_are_attributes_in_phoenix_and_no_annotations_of_its_own(
    phoenix: PhoenixServer, tmp_path: Path
) -> None:
    settings: JsonObject = {**over_http(phoenix, "annotated"), "results": {"annotations": ["openinference"]}}

    async with ServiceProcess(tmp_path, settings, CRITERIA) as service:
        body = demo_request()  # of agents that run while the service is there to see all of them
        async with GrpcSender(service.endpoints["grpc"]) as sender:
            await sender.send(body)
        stored = await phoenix.until_spans("annotated", len(sent_keys(body)))

    agents = [span for span in stored if span.kind == "AGENT"]
    named = {
        str(span.attributes[f"evaluations.{index}.evaluation.name"])
        for span in agents
        for index in range(EVALUATIONS)
    }
    assert {"tool-call-order", "tool-call-count", "tool-error-recovery"} == named
    assert all("evaluations.0.evaluation.score" in span.attributes for span in agents)
    assert [] == await phoenix.annotations("annotated", [span.span_id for span in agents])


async def test_streamed_spans_come_to_phoenix_first_and_a_span_with_the_verdict_follows_in_the_same_trace(
    phoenix: PhoenixServer, tmp_path: Path
) -> None:
    body = demo_request()
    sent = sent_keys(body)
    children, roots = without_roots(body)
    settings: JsonObject = {
        **over_http(phoenix, "streamed"),
        "processors": {"group_by_trace": {"idle_timeout": "1h"}},  # nothing is graded without its root
        "results": {"mode": "stream", "emit": ["span"], "annotations": ["openinference"]},
    }

    async with (
        ServiceProcess(tmp_path, settings, CRITERIA) as service,
        GrpcSender(service.endpoints["grpc"]) as sender,
    ):
        await sender.send(children)
        stored_first = await phoenix.until_spans("streamed", len(sent_keys(children)))
        graded_first = service.results()
        await sender.send(roots)
        stored = await phoenix.until_spans("streamed", len(sent) + len(scripted_runs()))

    assert sent_keys(children) == span_keys(stored_first)
    assert [] == graded_first
    of_agents = [span for span in stored if (span.trace_id, span.span_id) in sent]
    of_verdicts = [span for span in stored if (span.trace_id, span.span_id) not in sent]
    assert sent == span_keys(of_agents)
    assert {} == stored_verdicts(of_agents)
    parents = {(span.trace_id, span.span_id) for span in of_agents if span.kind == "AGENT"}
    assert parents == {(span.trace_id, span.parent_id) for span in of_verdicts}
    assert {"EVALUATOR"} == {span.kind for span in of_verdicts}
    assert by_trace(graded_verdicts(service.results())) == by_trace(stored_verdicts(of_verdicts))


async def test_verdicts_only_adds_verdicts_to_spans_that_came_to_phoenix_another_way(
    phoenix: PhoenixServer, tmp_path: Path
) -> None:
    body = demo_request()
    sent = sent_keys(body)
    settings: JsonObject = {
        **over_http(phoenix, "teed"),
        "results": {"mode": "verdicts_only", "emit": ["span"]},
    }

    async with ServiceProcess(tmp_path, settings, CRITERIA) as service:
        async with aiohttp.ClientSession() as session:
            headers = {"content-type": "application/x-protobuf", "x-project-name": "teed"}
            async with session.post(f"{phoenix.url}/v1/traces", data=body, headers=headers) as response:
                assert 200 == response.status
        async with GrpcSender(service.endpoints["grpc"]) as sender:
            await sender.send(body)
        stored = await phoenix.until_spans("teed", len(sent) + len(scripted_runs()))

    of_verdicts = [span for span in stored if (span.trace_id, span.span_id) not in sent]
    assert sent | span_keys(of_verdicts) == span_keys(stored)
    assert {span[0] for span in sent} == {span.trace_id for span in of_verdicts}
    assert by_trace(graded_verdicts(service.results())) == by_trace(stored_verdicts(of_verdicts))


async def test_log_records_go_to_a_logs_backend_while_phoenix_gets_the_spans(
    phoenix: PhoenixServer, tmp_path: Path
) -> None:
    body = demo_request()
    sent = sent_keys(body)

    async with LogsBackend() as logs:
        to_logs: JsonObject = {"endpoint": logs.endpoint, "tls": {"insecure": True}, "signals": ["logs"]}
        streamed: JsonObject = {"exporters": {"otlp/logs": to_logs}, "results": {"mode": "stream"}}
        settings = deep_merge(over_http(phoenix, "with-logs", signals=["traces"]), streamed)
        assert isinstance(settings, dict)
        async with ServiceProcess(tmp_path, settings, CRITERIA) as service:
            async with GrpcSender(service.endpoints["grpc"]) as sender:
                await sender.send(body)
            stored = await phoenix.until_spans("with-logs", len(sent))
            await logs.until_records(len(scripted_runs()) * EVALUATIONS)

    assert sent == span_keys(stored)
    assert {} == stored_verdicts(stored)
    assert graded_verdicts(service.results()) == logs.verdicts()


def shown(annotations: Sequence[JsonObject], trace_of: dict[str, str]) -> Verdicts:
    """Annotations as verdicts; `trace_of` tells the traces of spans, which annotations do not name."""
    found = {}
    for annotation in annotations:
        span_id, told = str(annotation["span_id"]), annotation["result"]
        assert isinstance(told, dict)
        key = (trace_of[span_id], span_id, str(annotation["name"]))
        assert key not in found, f"two annotations for {key}"
        found[key] = (told["label"], told["score"], told["explanation"])
    return found


async def until_annotations(
    phoenix: PhoenixServer, project: str, span_ids: Sequence[str], count: int
) -> list[JsonObject]:
    async with asyncio.timeout(60):
        while len(found := await phoenix.annotations(project, span_ids)) < count:
            await asyncio.sleep(0.2)
    return found


async def test_verdicts_are_annotations_of_the_agents_spans_with_all_that_is_known_of_them(
    phoenix: PhoenixServer, tmp_path: Path
) -> None:
    body = demo_request({"service.version": "1.2.3"})
    settings = deep_merge(
        over_http(phoenix, "scored"),
        {"exporters": {"phoenix_annotations": {"endpoint": phoenix.url}}},
    )
    assert isinstance(settings, dict)

    async with ServiceProcess(tmp_path, settings, CRITERIA) as service:
        async with GrpcSender(service.endpoints["grpc"]) as sender:
            await sender.send(body)
        stored = await phoenix.until_spans("scored", len(sent_keys(body)))
        agents = [span.span_id for span in stored if span.kind == "AGENT"]
        count = len(scripted_runs()) * EVALUATIONS
        annotations = await until_annotations(phoenix, "scored", agents, count)
        metrics = await service.metrics()

    trace_of = {span.span_id: span.trace_id for span in stored}
    assert graded_verdicts(service.results()) == shown(annotations, trace_of)
    assert {"CODE"} == {annotation["annotator_kind"] for annotation in annotations}
    names = {
        run["trace_id"]: run["agent"]["name"] for run in service.results() if isinstance(run["agent"], dict)
    }
    for annotation in annotations:
        told = annotation["metadata"]
        assert isinstance(told, dict)
        assert (names[trace_of[str(annotation["span_id"])]], "ticket", "root") == (
            told["gen_ai.agent.name"],
            told["tracegrade.severity"],
            told["tracegrade.finish_reason"],
        )
        resource = told["resource"]
        assert isinstance(resource, dict)
        assert "1.2.3" == resource["service.version"]
    exported = 'tracegrade_results_exported_total{exporter="phoenix_annotations",form="score"}'
    assert count == metrics[exported]


async def test_scores_wait_for_their_spans_and_grading_again_overwrites_them(
    phoenix: PhoenixServer, tmp_path: Path
) -> None:
    body = demo_request()
    sent = sent_keys(body)
    alone: JsonObject = {
        "exporters": {"phoenix_annotations": {"endpoint": phoenix.url}},
        "results": {"mode": "verdicts_only", "emit": ["span"]},
    }
    count = len(scripted_runs()) * EVALUATIONS

    async def grade(folder: Path) -> ServiceProcess:
        folder.mkdir()
        async with ServiceProcess(folder, alone, CRITERIA) as service:
            async with GrpcSender(service.endpoints["grpc"]) as sender:
                await sender.send(body)
            await service.until(lambda: len(service.results()) == len(scripted_runs()))
            await service.until(lambda: "are not there yet" in "".join(service.log) or bool(stored))
            if not stored:
                await store(body)
                stored.extend(await phoenix.until_spans("waited", len(sent)))
            ids = [span.span_id for span in stored]
            annotations.append(await until_annotations(phoenix, "waited", ids, count))
            exported = 'tracegrade_results_exported_total{exporter="phoenix_annotations",form="score"}'
            async with asyncio.timeout(60):
                while (await service.metrics())[exported] < count:
                    await asyncio.sleep(0.2)
        return service

    async def store(request: bytes) -> None:
        headers = {"content-type": "application/x-protobuf", "x-project-name": "waited"}
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{phoenix.url}/v1/traces", data=request, headers=headers) as response,
        ):
            assert 200 == response.status

    stored: list[StoredSpan] = []
    annotations: list[list[JsonObject]] = []
    first = await grade(tmp_path / "first")
    await grade(tmp_path / "again")

    once, again = annotations
    assert count == len(once) == len(again)
    assert {annotation["id"] for annotation in once} == {annotation["id"] for annotation in again}
    assert graded_verdicts(first.results()) == shown(once, {span.span_id: span.trace_id for span in stored})
