"""The example Collectors: every part is defined and used, and they and tracegrade find each other."""

from pathlib import Path

import pytest

from collector.config_fields import parse_duration
from collector.receivers.kafka.config import KafkaReceiverConfig
from processors.model import JsonObject
from tests.support.check_tools import DEPLOY, assert_clean, find_tool, run_tool
from tests.support.collector_config import listening_ports, problems
from tests.support.deploy_files import port, read_yaml, section, validated

FOLDER = DEPLOY / "otelcol"
COLLECTORS = sorted(FOLDER.glob("*.collector.yaml"))
SERVICES = sorted(FOLDER.glob("*.tracegrade.yaml"))


def _read(name: str) -> JsonObject:
    return read_yaml(FOLDER / name)


def _grpc_port(file: str) -> int:
    grpc = validated(FOLDER / file).receivers.otlp.protocols.grpc
    assert grpc is not None
    return port(grpc.endpoint)


def test_all_yaml_is_clean() -> None:
    assert_clean(run_tool(find_tool("yamllint"), "--strict", "-c", DEPLOY / ".yamllint.yaml", FOLDER))


@pytest.mark.parametrize("path", COLLECTORS, ids=lambda path: path.name)
def test_a_collector_uses_what_it_defines_and_defines_what_it_uses(path: Path) -> None:
    assert [] == problems(read_yaml(path))


def test_the_check_of_a_collector_sees_mistakes() -> None:
    config = _read("tee.collector.yaml")
    pipelines = section(config, "service", "pipelines")
    pipelines["traces"] = {"receivers": ["otlp"], "processors": ["batch"], "exporters": ["otlp/tracegrad"]}

    assert {
        "traces: memory_limiter is not the first processor",
        "exporters.otlp/tracegrad is not defined",
        "exporters.otlp/tracegrade is not used",
    } == set(problems(config))


@pytest.mark.parametrize("path", SERVICES, ids=lambda path: path.name)
def test_tracegrade_takes_its_half_of_an_example(path: Path) -> None:
    validated(path)


@pytest.mark.parametrize("example", ["behind", "tee"])
def test_the_collector_sends_where_tracegrade_listens(example: str) -> None:
    exporter = section(_read(f"{example}.collector.yaml"), "exporters", "otlp/tracegrade")

    assert f"tracegrade:{_grpc_port(f'{example}.tracegrade.yaml')}" == exporter["endpoint"]


@pytest.mark.parametrize("example", ["in-front", "sample", "tee"])
def test_tracegrade_sends_where_the_collector_listens(example: str) -> None:
    endpoint: str = (
        validated(FOLDER / f"{example}.tracegrade.yaml").exporters["otlp"].model_dump()["endpoint"]
    )

    assert endpoint.startswith("collector:")
    assert port(endpoint) in listening_ports(_read(f"{example}.collector.yaml"))


def test_verdicts_that_come_back_do_not_go_to_tracegrade_again() -> None:
    pipelines = section(_read("tee.collector.yaml"), "service", "pipelines")
    verdicts = section(pipelines, "logs/verdicts")

    assert ["otlp/verdicts"] == verdicts["receivers"]
    assert ["otlp/backend"] == verdicts["exporters"]
    assert ["otlp"] == section(pipelines, "traces")["receivers"]
    config = validated(FOLDER / "tee.tracegrade.yaml")
    assert ("verdicts_only", ("log",)) == (config.results.mode, config.results.emit)


def test_every_replica_gets_whole_traces_or_knows_that_it_may_not() -> None:
    balancing = section(_read("replicas.collector.yaml"), "exporters", "loadbalancing")
    resolver = section(balancing, "resolver", "dns")

    cluster = validated(FOLDER / "replicas.tracegrade.yaml").cluster

    assert "traceID" == balancing["routing_key"]
    assert _grpc_port("replicas.tracegrade.yaml") == resolver["port"]
    assert cluster is not None
    assert resolver["hostname"] == cluster.peers_dns
    assert parse_duration(str(resolver["interval"])) < cluster.resolver_interval


def test_what_a_collector_writes_to_kafka_is_what_tracegrade_reads() -> None:
    collector = _read("kafka.collector.yaml")
    exporter = section(collector, "exporters", "kafka")
    producer, queue = section(exporter, "producer"), section(exporter, "sending_queue")

    config = validated(FOLDER / "kafka.tracegrade.yaml")
    reader = KafkaReceiverConfig.model_validate(config.receivers.model_dump()["kafka"])

    assert [*reader.brokers] == exporter["brokers"]
    assert {"topic": reader.topic, "encoding": "otlp_proto"} == exporter["traces"]
    assert (True, "fnv1a") == (exporter["partition_traces_by_id"], reader.partitioner)
    assert config.journal is None
    # Acknowledged by all replicas, for ever tried again, and on disk until then.
    assert -1 == producer["required_acks"]
    assert "0s" == section(exporter, "retry_on_failure")["max_elapsed_time"]
    assert queue["storage"] in section(collector, "extensions")
    assert ["memory_limiter"] == section(collector, "service", "pipelines", "traces")["processors"]
    largest_batch, largest_record = section(queue, "batch")["max_size"], producer["max_message_bytes"]
    assert isinstance(largest_batch, int)
    assert isinstance(largest_record, int)
    assert largest_batch < largest_record <= reader.max_record_bytes
