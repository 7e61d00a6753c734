"""The shipped configurations of the Collector, run by a real one: a broken one would start without a word."""

import asyncio
import time
from pathlib import Path

import pytest

from collector.otlp import join_spans, split_request
from processors.model import JsonObject, JsonValue
from processors.spans import RawSpan
from tests.support.agent_spans import TRACE_ID, agent, tool
from tests.support.backend_server import free_port
from tests.support.backends import GrpcBackend, log_records, span_ids
from tests.support.check_tools import DEPLOY
from tests.support.deploy_files import placed, read_yaml, section
from tests.support.kafka_broker import ONE_BROKER, KafkaBroker
from tests.support.otel_collector import REQUIRES_COLLECTOR, OtelCollector
from tests.support.otlp_senders import GrpcSender
from tests.support.service_process import PATIENCE_SECONDS, ServiceProcess

pytestmark = [pytest.mark.end_to_end, REQUIRES_COLLECTOR]

CRITERIA = """
agents:
  shop:
    evaluations:
      - evaluator: tool-call-count
        criteria: {tool_calls_count: {search: ["=", 1]}}
"""
BACKEND = "BACKEND_OTLP_ENDPOINT"
DECISION_SECONDS = 1.0


def _read_placed(name: str, places: dict[str, str]) -> JsonObject:
    config = placed(read_yaml(DEPLOY / "otelcol" / f"{name}.yaml"), places)
    assert isinstance(config, dict)
    return config


def _example(name: str, places: dict[str, str]) -> JsonObject:
    config = _read_placed(f"{name}.collector", places)
    section(config, "service")["telemetry"] = {"metrics": {"level": "none"}}  # its own port may be taken
    return config


def _address() -> str:
    return f"127.0.0.1:{free_port()}"


def _trace() -> list[RawSpan]:
    end = int(time.time() * 1000)
    return [
        agent(1, None, "shop", at=(end - 100, end)),
        tool(2, 1, "search", at=(end - 50, end - 40)),
    ]


async def _send(endpoint: str, spans: list[RawSpan]) -> None:
    async with GrpcSender(endpoint) as sender:
        assert "OK" == (await sender.send(join_spans(spans))).code


def _verdicts(service: ServiceProcess) -> list[JsonValue]:
    return [
        evaluation["outcome"]
        for run in service.results()
        if isinstance(run["evaluations"], list)
        for evaluation in run["evaluations"]
        if isinstance(evaluation, dict)
    ]


async def test_behind_a_collector_a_trace_is_graded(tmp_path: Path) -> None:
    async with ServiceProcess(tmp_path, criteria=CRITERIA) as service:
        listens = _address()
        places = {
            "0.0.0.0:4317": listens,
            "0.0.0.0:4318": _address(),
            "tracegrade:4317": service.endpoints["grpc"],
        }
        async with OtelCollector(tmp_path, "collector", _example("behind", places), listens):
            await _send(listens, _trace())
            await service.until(lambda: bool(service.results()))

        assert ["pass"] == _verdicts(service)


async def test_a_collector_that_samples_by_verdict_retains_failed_traces(tmp_path: Path) -> None:
    backend = GrpcBackend()
    await backend.start()
    listens, failed = _address(), bytes(reversed(TRACE_ID))
    settings: JsonObject = {"exporters": {"otlp": {"endpoint": listens, "tls": {"insecure": True}}}}
    example = _example("sample", {"0.0.0.0:4317": listens})
    section(example, "exporters", "otlp/backend")["tls"] = {"insecure": True}
    sampling = section(example, "processors", "tail_sampling")
    sampling["decision_wait"] = "1s"
    policies = sampling["policies"]
    assert isinstance(policies, list)
    sampling["policies"] = policies[:1]  # what it retains by chance is not seen here
    async with (
        ServiceProcess(tmp_path, settings, CRITERIA) as service,
        OtelCollector(tmp_path, "collector", example, listens, environment={BACKEND: backend.endpoint}),
    ):
        await _send(service.endpoints["grpc"], _trace())
        end = int(time.time() * 1000)
        again = tool(3, 1, "search", at=(end - 40, end - 30))  # called twice: the trace fails
        await _send(
            service.endpoints["grpc"],
            [
                (span_id, payload.replace(TRACE_ID, failed), around)
                for span_id, payload, around in (*_trace(), again)
            ],
        )
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not backend.requests:
                await asyncio.sleep(0.05)
        await asyncio.sleep(2 * DECISION_SECONDS)
    await backend.stop()

    assert ["fail", "pass"] == sorted(map(str, _verdicts(service)))
    assert [failed] * 3 == [
        trace_id
        for request in backend.requests
        for trace_id, spans in split_request(request).traces.items()
        for _ in spans
    ]


async def test_beside_a_collector_spans_and_verdicts_reach_the_backend(tmp_path: Path) -> None:
    backend = GrpcBackend()
    await backend.start()
    listens, verdicts_listen = _address(), _address()
    settings: JsonObject = {
        "results": {"mode": "verdicts_only", "emit": ["log"]},
        "exporters": {
            "otlp": {"endpoint": verdicts_listen, "tls": {"insecure": True}},
            "file": {"logs_path": "verdicts.logs.jsonl"},
        },
    }
    async with ServiceProcess(tmp_path, settings, CRITERIA) as service:
        places = {
            "0.0.0.0:4317": listens,
            "0.0.0.0:4318": _address(),
            "0.0.0.0:14317": verdicts_listen,
            "tracegrade:4317": service.endpoints["grpc"],
        }
        example = _example("tee", places)
        section(example, "exporters", "otlp/backend")["tls"] = {"insecure": True}
        environment = {BACKEND: backend.endpoint}
        async with OtelCollector(tmp_path, "collector", example, listens, environment=environment):
            await _send(listens, _trace())
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not (backend.log_requests and backend.requests):
                    await asyncio.sleep(0.05)
    await backend.stop()

    assert 2 == len(span_ids(backend.requests))
    (told,) = log_records(backend.log_requests)
    assert "gen_ai.evaluation.result" == told[2].event_name


async def test_a_balancing_collector_that_is_killed_delivers_what_waited_for_a_replica(
    tmp_path: Path,
) -> None:
    listens, replica_port = _address(), free_port()
    places = {
        "0.0.0.0:4317": listens,
        "0.0.0.0:4318": _address(),
        "tracegrade-replicas": "localhost",
        "/var/lib/otelcol": str(tmp_path / "queue"),
    }
    example = _example("replicas", places)
    section(example, "exporters", "loadbalancing", "resolver", "dns")["port"] = str(replica_port)
    environment = {"GODEBUG": "netdns=go"}

    async with OtelCollector(tmp_path, "killed", example, listens, environment=environment) as collector:
        await _send(listens, _trace())  # there is no replica yet
        await asyncio.sleep(1)
        await collector.kill()
    settings: JsonObject = {
        "receivers": {"otlp": {"protocols": {"grpc": {"endpoint": f"127.0.0.1:{replica_port}"}}}},
        "processors": {"group_by_trace": {"max_lateness": "1h"}},
    }
    async with (
        ServiceProcess(tmp_path, settings, CRITERIA) as service,
        OtelCollector(tmp_path, "restarted", example, listens, environment=environment),
    ):
        await service.until(lambda: bool(service.results()))

        assert 1 == len(service.results())


@pytest.mark.slow
@ONE_BROKER
async def test_what_collectors_write_to_kafka_is_graded_also_if_no_broker_was_there_at_first(
    broker: KafkaBroker, tmp_path: Path
) -> None:
    backend = GrpcBackend()
    await backend.start()
    listens, topic = _address(), broker.create_topic(3)
    places = {
        "0.0.0.0:4317": listens,
        "0.0.0.0:4318": _address(),
        "/var/lib/otelcol": str(tmp_path / "queue"),
        "otlp_spans": topic,
        "kafka:9092": broker.endpoint,
        "tempo:4317": backend.endpoint,
        "0.0.0.0:9464": "127.0.0.1:0",
    }
    without_broker = _example("kafka", {**places, "kafka:9092": _address()})

    async with OtelCollector(tmp_path, "killed", without_broker, listens) as collector:
        await _send(listens, _trace())  # what it acknowledges is on disk
        await collector.kill()
    async with (
        ServiceProcess(tmp_path, _read_placed("kafka.tracegrade", places), CRITERIA) as service,
        OtelCollector(tmp_path, "restarted", _example("kafka", places), listens),
    ):
        await service.until(lambda: bool(service.results()))
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not backend.requests:
                await asyncio.sleep(0.05)

        assert ["pass"] == _verdicts(service)
    await backend.stop()

    (key, _), *more = broker.records(topic)
    assert (TRACE_ID.hex().encode(), []) == (key, more)  # one trace, one record
    assert 2 == len(span_ids(backend.requests))
