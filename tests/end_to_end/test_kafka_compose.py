"""The files that `deploy/compose/kafka.compose.yaml` mounts, run by the programs of its images."""

import asyncio
import time
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from collector.otlp import join_spans
from tests.support.agent_spans import TRACE_ID, agent, tool
from tests.support.backend_server import free_port
from tests.support.backends import GrpcBackend, span_ids
from tests.support.check_tools import DEPLOY, PROJECT
from tests.support.deploy_files import placed, read_yaml, section
from tests.support.held_spans import trace_id
from tests.support.kafka_broker import ONE_BROKER, KafkaBroker
from tests.support.otel_collector import OtelCollector
from tests.support.otlp_senders import GrpcSender
from tests.support.service_process import PATIENCE_SECONDS, ServiceProcess

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow, ONE_BROKER]

FOLDER = DEPLOY / "compose"
TRACES = 20


def _request(number: int) -> bytes:
    """The export request of the trace `number`."""
    end = int(time.time() * 1000)
    spans = [agent(1, None, "shop", at=(end - 100, end)), tool(2, 1, "search", at=(end - 50, end - 40))]
    return join_spans(spans).replace(TRACE_ID, trace_id(number))


async def test_two_tracegrades_share_what_the_collector_writes(tmp_path: Path) -> None:
    services = section(read_yaml(FOLDER / "kafka.compose.yaml"), "services")
    command = section(services, "kafka-topic")["command"]
    assert isinstance(command, list)
    backend = GrpcBackend()
    listens = f"127.0.0.1:{free_port()}"
    (tmp_path / "broker").mkdir()
    async with AsyncExitStack() as running:
        broker = running.enter_context(
            KafkaBroker(tmp_path / "broker", shipped=FOLDER / "kafka/server.properties")
        )
        await backend.start()
        running.push_async_callback(backend.stop)
        broker.run_topic_tool(*(str(argument).replace("kafka:9092", broker.endpoint) for argument in command))
        places = {
            "0.0.0.0:4317": listens,
            "0.0.0.0:4318": f"127.0.0.1:{free_port()}",
            "/var/lib/otelcol": str(tmp_path / "queue"),
            "kafka:9092": broker.endpoint,
            "tempo:4317": backend.endpoint,
            "0.0.0.0:9464": "127.0.0.1:0",
        }
        settings = placed(read_yaml(FOLDER / "kafka.tracegrade.yaml"), places)
        assert isinstance(settings, dict)
        members = []
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "criteria").symlink_to(PROJECT / "config/criteria")
            members.append(await running.enter_async_context(ServiceProcess(tmp_path / name, settings)))
        config = placed(read_yaml(DEPLOY / "otelcol/kafka.collector.yaml"), places)
        assert isinstance(config, dict)
        section(config, "service")["telemetry"] = {"metrics": {"level": "none"}}
        await running.enter_async_context(OtelCollector(tmp_path, "collector", config, listens))
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                assigned = 'tracegrade_kafka_partitions{state="assigned"}'
                shares = [(await member.metrics()).get(assigned, 0) for member in members]
                if 12 == sum(shares) and all(shares):
                    break
                await asyncio.sleep(0.1)

        sender = await running.enter_async_context(GrpcSender(listens))
        for number in range(1, TRACES + 1):
            assert "OK" == (await sender.send(_request(number))).code
        async with asyncio.timeout(PATIENCE_SECONDS):
            while TRACES > sum(len(member.results()) for member in members):
                await asyncio.sleep(0.05)
            while 2 * TRACES > len(span_ids(backend.requests)):
                await asyncio.sleep(0.05)

        assert all(member.results() for member in members)
        runs = [run for member in members for run in member.results()]

    assert {trace_id(number).hex() for number in range(1, TRACES + 1)} == {run["trace_id"] for run in runs}
    assert 2 * TRACES == len(span_ids(backend.requests))
    assert "interrupted" not in str(runs)
