"""The Compose file: its form, the files it mounts, and that its services find each other."""

import tomllib
from pathlib import Path

import pytest

from tests.support.check_tools import DEPLOY, PROJECT, assert_clean, find_tool, run_tool
from tests.support.deploy_files import host, port, read_yaml, section, validated

FOLDER = DEPLOY / "compose"
COMPOSE = read_yaml(FOLDER / "compose.yaml")
SERVICES = {name: section(COMPOSE, "services", name) for name in section(COMPOSE, "services")}

NOT_CHECKED = {"tempo": "its image holds no program that could ask it"}
"""Services without a health check, with the reason."""


def _published(service: str) -> set[int]:
    return {port(address) for address in _texts(service, "ports")}


def _texts(service: str, key: str) -> list[str]:
    values = SERVICES[service].get(key, [])
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


def test_the_file_follows_the_compose_specification() -> None:
    program = find_tool("check-jsonschema")

    assert_clean(run_tool(program, "--builtin-schema", "vendor.compose-spec", FOLDER / "compose.yaml"))


def test_all_yaml_is_clean() -> None:
    assert_clean(run_tool(find_tool("yamllint"), "--strict", "-c", DEPLOY / ".yamllint.yaml", FOLDER))


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_may_do_no_more_than_it_must(service: str) -> None:
    settings = SERVICES[service]

    assert settings["read_only"] is True
    assert ["ALL"] == settings["cap_drop"]
    assert ["no-new-privileges:true"] == settings["security_opt"]
    assert all(address.startswith("127.0.0.1:") for address in _texts(service, "ports"))


@pytest.mark.parametrize("service", SERVICES)
def test_an_image_has_a_version(service: str) -> None:
    image, _, tag = str(SERVICES[service]["image"]).rpartition(":")

    assert image
    assert tag[-1].isdigit()


def test_the_image_built_here_is_called_after_the_version_of_the_package() -> None:
    version = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]

    assert f"tracegrade:{version}" == SERVICES["tracegrade"]["image"] == SERVICES["sample-agent"]["image"]


@pytest.mark.parametrize("service", sorted(set(SERVICES) - set(NOT_CHECKED)))
def test_a_service_says_how_its_health_is_checked(service: str) -> None:
    check = SERVICES[service]["healthcheck"]

    assert isinstance(check, dict)
    assert isinstance(check["test"], list)
    assert "CMD" == check["test"][0]


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_waits_until_those_it_needs_are_healthy(service: str) -> None:
    needed = SERVICES[service].get("depends_on", {})

    assert isinstance(needed, dict)
    assert set(needed) <= set(SERVICES)
    for name, condition in needed.items():
        expected = "service_started" if name in NOT_CHECKED else "service_healthy"
        assert {"condition": expected} == condition


@pytest.mark.parametrize(
    ("service", "source"), [(service, source) for service in SERVICES for source in _mounts(service).values()]
)
def test_what_is_mounted_is_in_the_checkout(service: str, source: Path) -> None:
    assert source.exists()
    assert source.is_relative_to(PROJECT)


def test_a_named_volume_is_declared_and_used() -> None:
    used = {
        volume.partition(":")[0]
        for service in SERVICES
        for volume in _texts(service, "volumes")
        if not volume.startswith(".")
    }

    assert used == set(section(COMPOSE, "volumes"))


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
