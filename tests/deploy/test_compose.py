"""The Compose files: their form, the files they mount, and that their services find each other."""

import tomllib
from pathlib import Path

import pytest

from processors.model import JsonObject
from tests.support.check_tools import DEPLOY, PROJECT, assert_clean, find_tool, run_tool
from tests.support.collector_config import listening_ports
from tests.support.deploy_files import host, port, read_yaml, section, validated

FOLDER = DEPLOY / "compose"
COMPOSE = read_yaml(FOLDER / "compose.yaml")
SERVICES = {name: section(COMPOSE, "services", name) for name in section(COMPOSE, "services")}

KAFKA = read_yaml(FOLDER / "kafka.compose.yaml")
OF_KAFKA = {name: section(KAFKA, "services", name) for name in section(KAFKA, "services")}
ALL = {**SERVICES, **{f"kafka: {name}": settings for name, settings in OF_KAFKA.items()}}
"""The services of both files."""

NOT_CHECKED = {
    "tempo": "its image holds no program that could ask it",
    "collector": "its image holds no program that could ask it",
}
"""Services without a health check, with the reason."""

ONE_SHOT = {"kafka-topic"}
"""Services that do one thing and end."""


def _name(service: str) -> str:
    return service.removeprefix("kafka: ")


def _published(service: str) -> set[int]:
    return {port(address) for address in _texts(service, "ports")}


def _texts(service: str, key: str) -> list[str]:
    values = ALL[service].get(key, [])
    assert isinstance(values, list)
    return [str(value) for value in values]


def _mounts(service: str) -> dict[str, Path]:
    """What is mounted from this checkout, by the path in the container."""
    mounts = {}
    for volume in _texts(service, "volumes"):
        source, target, *_ = volume.split(":")
        if source.startswith("."):
            mounts[target] = (FOLDER / source).resolve()
    return mounts


@pytest.mark.parametrize("file", ["compose.yaml", "kafka.compose.yaml"])
def test_the_file_follows_the_compose_specification(file: str) -> None:
    program = find_tool("check-jsonschema")

    assert_clean(run_tool(program, "--builtin-schema", "vendor.compose-spec", FOLDER / file))


def test_all_yaml_is_clean() -> None:
    assert_clean(run_tool(find_tool("yamllint"), "--strict", "-c", DEPLOY / ".yamllint.yaml", FOLDER))


@pytest.mark.parametrize("service", ALL)
def test_a_service_may_do_no_more_than_it_must(service: str) -> None:
    settings = ALL[service]

    assert settings["read_only"] is True
    assert ["ALL"] == settings["cap_drop"]
    assert ["no-new-privileges:true"] == settings["security_opt"]
    assert all(address.startswith("127.0.0.1:") for address in _texts(service, "ports"))


@pytest.mark.parametrize("service", ALL)
def test_an_image_has_a_version(service: str) -> None:
    image, _, tag = str(ALL[service]["image"]).rpartition(":")

    assert image
    assert tag[-1].isdigit()


def test_the_image_built_here_is_called_after_the_version_of_the_package() -> None:
    version = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]

    built_or_used = {
        str(service["image"]) for service in ALL.values() if "tracegrade" in str(service["image"])
    }
    assert {f"tracegrade:{version}"} == built_or_used


@pytest.mark.parametrize(
    "service", [service for service in ALL if _name(service) not in {*NOT_CHECKED, *ONE_SHOT}]
)
def test_a_service_says_how_its_health_is_checked(service: str) -> None:
    check = ALL[service]["healthcheck"]

    assert isinstance(check, dict)
    assert isinstance(check["test"], list)
    assert "CMD" == check["test"][0]


@pytest.mark.parametrize("service", ALL)
def test_a_service_waits_until_those_it_needs_are_healthy_or_done(service: str) -> None:
    needed = ALL[service].get("depends_on", {})

    assert isinstance(needed, dict)
    assert set(needed) <= set(SERVICES if service in SERVICES else OF_KAFKA)
    for name, condition in needed.items():
        expected = "service_started" if name in NOT_CHECKED else "service_healthy"
        if name in ONE_SHOT:
            expected = "service_completed_successfully"
        assert {"condition": expected} == condition


@pytest.mark.parametrize(
    ("service", "source"), [(service, source) for service in ALL for source in _mounts(service).values()]
)
def test_what_is_mounted_is_in_the_checkout(service: str, source: Path) -> None:
    assert source.exists()
    assert source.is_relative_to(PROJECT)


@pytest.mark.parametrize("file", [COMPOSE, KAFKA], ids=["compose", "kafka"])
def test_a_named_volume_is_declared_and_used(file: JsonObject) -> None:
    used = {
        volume.partition(":")[0]
        for service in (SERVICES if file is COMPOSE else ALL.keys() - SERVICES.keys())
        for volume in _texts(service, "volumes")
        if not volume.startswith(".")
    }

    assert used == set(section(file, "volumes"))


@pytest.mark.parametrize(
    ("service", "option"),
    [("prometheus", "--config.file="), ("alertmanager", "--config.file="), ("tempo", "-config.file=")],
)
def test_the_file_that_a_service_reads_is_mounted(service: str, option: str) -> None:
    (named,) = [text.removeprefix(option) for text in _texts(service, "command") if text.startswith(option)]

    (found,) = [
        source / Path(named).relative_to(target)
        for target, source in _mounts(service).items()
        if Path(named).is_relative_to(target)
    ]
    assert found.is_file()


def test_the_services_find_each_other(tmp_path: Path) -> None:
    for target, source in _mounts("tracegrade").items():
        place = tmp_path / target.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(source)

    config = validated(tmp_path / "etc/tracegrade/tracegrade.yaml")

    protocols = config.receivers.otlp.protocols
    assert protocols.grpc is not None
    assert protocols.http is not None
    listening = {
        port(protocols.grpc.endpoint),
        port(protocols.http.endpoint),
        port(config.telemetry_endpoint()),
    }
    assert listening == _published("tracegrade")
    backend: str = config.exporters["otlp"].model_dump()["endpoint"]
    tempo = read_yaml(FOLDER / "tempo.yaml")
    receiver = section(tempo, "distributor", "receivers", "otlp", "protocols", "grpc")
    assert ("tempo", port(str(receiver["endpoint"]))) == (host(backend), port(backend))
    agent = SERVICES["sample-agent"]["environment"]
    assert isinstance(agent, dict)
    assert f"http://tracegrade:{port(protocols.grpc.endpoint)}" == agent["OTEL_EXPORTER_OTLP_ENDPOINT"]


def test_prometheus_scrapes_tracegrade_and_tells_alertmanager() -> None:
    config = read_yaml(DEPLOY / "prometheus" / "prometheus.yaml")

    text = str(config)
    assert "'tracegrade:9464'" in text
    assert "'alertmanager:9093'" in text
    assert {9464} < _published("tracegrade")
    assert {9093} == _published("alertmanager")


def test_grafana_finds_prometheus_and_tempo() -> None:
    (file,) = (DEPLOY / "grafana/provisioning/datasources").glob("*.yaml")
    sources = read_yaml(file)["datasources"]
    assert isinstance(sources, list)

    urls = {source["uid"]: source["url"] for source in sources if isinstance(source, dict)}

    assert {"prometheus": "http://prometheus:9090", "tempo": "http://tempo:3200"} == urls
    assert {9090} == _published("prometheus")
    assert {3200} == _published("tempo")


def test_the_first_dashboard_is_there() -> None:
    environment = SERVICES["grafana"]["environment"]
    assert isinstance(environment, dict)
    shown = Path(str(environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]))

    assert (_mounts("grafana")[str(shown.parent)] / shown.name).is_file()


def test_there_is_time_to_deliver_what_is_held_when_it_stops() -> None:
    config = read_yaml(FOLDER / "tracegrade.yaml")

    assert "30s" == section(config, "service")["shutdown_timeout"]
    assert "40s" == SERVICES["tracegrade"]["stop_grace_period"]


def test_the_journal_is_on_a_volume_that_its_user_may_write_to() -> None:
    config = read_yaml(FOLDER / "tracegrade.yaml")
    directory = str(section(config, "journal")["directory"])
    image = (PROJECT / "Dockerfile").read_text()

    (mounted,) = [
        volume.partition(":")[2] for volume in _texts("tracegrade", "volumes") if not volume.startswith(".")
    ]

    assert Path(mounted) in Path(directory).parents
    # A named volume takes over the owner of the folder that the image has there.
    assert f"install -d -m 0700 -o 10001 -g 10001 {mounted}\n" in image
    assert "USER 10001:10001" in image


def test_the_tracegrades_behind_kafka_are_as_the_one_without_it_but_for_where_spans_come_from(
    tmp_path: Path,
) -> None:
    alone, grouped = read_yaml(FOLDER / "tracegrade.yaml"), read_yaml(FOLDER / "kafka.tracegrade.yaml")
    example = read_yaml(DEPLOY / "otelcol/kafka.tracegrade.yaml")
    (tmp_path / "criteria").symlink_to(PROJECT / "config/criteria")
    (tmp_path / "tracegrade.yaml").symlink_to(FOLDER / "kafka.tracegrade.yaml")
    validated(tmp_path / "tracegrade.yaml")

    del alone["journal"]
    assert grouped["receivers"] == example["receivers"]
    assert {**alone, "receivers": None} == {**grouped, "receivers": None}


def test_the_collector_finds_the_broker_and_both_have_the_topic() -> None:
    collector = read_yaml(_mounts("kafka: collector")["/etc/otelcol/config.yaml"])
    exporter = section(collector, "exporters", "kafka")
    topic = _texts("kafka: kafka-topic", "command")
    properties = (_mounts("kafka: kafka")["/mnt/shared/config"] / "server.properties").read_text()

    brokers = exporter["brokers"]
    assert isinstance(brokers, list)
    (broker,) = brokers
    assert f"advertised.listeners=PLAINTEXT://{broker}\n" in properties
    assert f"--bootstrap-server={broker}" in topic
    assert f"--topic={section(exporter, 'traces')['topic']}" in topic
    (largest,) = [int(text.rpartition("=")[2]) for text in topic if "max.message.bytes" in text]
    sent = section(exporter, "producer")["max_message_bytes"]
    assert isinstance(sent, int)
    assert sent < largest
    assert listening_ports(collector) == _published("kafka: collector")
    agent = section(OF_KAFKA["sample-agent"], "environment")
    assert "http://collector:4317" == agent["OTEL_EXPORTER_OTLP_ENDPOINT"]


def test_what_the_broker_writes_is_on_a_volume_or_in_memory() -> None:
    properties = (FOLDER / "kafka/server.properties").read_text()
    (volume,) = [text for text in _texts("kafka: kafka", "volumes") if not text.startswith(".")]

    assert f"log.dirs={volume.partition(':')[2]}/" in properties
    written = [text.partition(":")[0] for text in _texts("kafka: kafka", "tmpfs")]
    assert ["/opt/kafka/config", "/opt/kafka/logs", "/tmp"] == written
