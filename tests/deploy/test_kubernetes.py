"""The Kubernetes manifests, as kustomize puts them together: valid, confined, and fitting each other."""

import json
import os
import tomllib
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml

from collector.config_fields import parse_duration
from collector.receivers.otlp_grpc import LIVENESS_SERVICE, READINESS_SERVICES
from processors.model import JsonObject
from tests.support.check_tools import DEPLOY, PROJECT, assert_clean, find_tool, run_tool
from tests.support.collector_config import listening_ports, problems
from tests.support.deploy_files import port, read_manifests, read_yaml, section, validated
from tests.support.workloads import container, memory_mebibytes, of_kind, pod

FOLDER = DEPLOY / "kubernetes"
BALANCED = ("overlays/replicas", "overlays/autoscaled")
OVERLAYS = ("base", *BALANCED, "overlays/kafka")

CLUSTER_DNS_TTL = 5.0
"""Seconds for which CoreDNS lets names of services be kept (its `kubernetes` plugin's default)."""

NOT_FOLLOWED = {
    "CKV_K8S_11": "no CPU limit: throttled grading holds every agent's spans up",
    "CKV_K8S_15": "images are pinned by version, which need not be pulled again",
    "CKV_K8S_43": "the digest of an image is known once it is released; users add it through `images`",
}
"""Rules of checkov that do not fit, with the reason."""


@cache
def _kustomized(overlay: str, components: tuple[str, ...] = ()) -> str:
    """What a user's own folder that names `overlay` comes to, as YAML."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        settings: JsonObject = {
            "namespace": "agents",
            "resources": [os.path.relpath(FOLDER / overlay, folder)],
            "components": [os.path.relpath(FOLDER / component, folder) for component in components],
        }
        (folder / "kustomization.yaml").write_text(yaml.safe_dump(settings))
        done = run_tool(find_tool("kubectl"), "kustomize", folder)
    assert_clean(done)
    return done.stdout


def _stateful(manifests: list[JsonObject], name: str = "tracegrade") -> JsonObject:
    """The one StatefulSet called `name`."""
    (found,) = [
        manifest
        for manifest in of_kind(manifests, "StatefulSet")
        if section(manifest, "metadata")["name"] == name
    ]
    return found


def _manifests(overlay: str) -> list[JsonObject]:
    return read_manifests(_kustomized(overlay))


def test_all_yaml_is_clean() -> None:
    assert_clean(run_tool(find_tool("yamllint"), "--strict", "-c", DEPLOY / ".yamllint.yaml", FOLDER))


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_kubernetes_knows_every_field(overlay: str, tmp_path: Path) -> None:
    rendered = tmp_path / "manifests.yaml"
    rendered.write_text(_kustomized(overlay))

    assert_clean(run_tool(find_tool("kubernetes-validate"), "--strict", rendered))


def test_a_misspelt_field_is_seen(tmp_path: Path) -> None:
    rendered = tmp_path / "manifests.yaml"
    rendered.write_text(_kustomized("base").replace("readinessProbe:", "readinessProb:"))

    assert 0 != run_tool(find_tool("kubernetes-validate"), "--strict", rendered).returncode


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_checkov_finds_nothing(overlay: str, tmp_path: Path) -> None:
    rendered = tmp_path / "manifests.yaml"
    rendered.write_text(_kustomized(overlay))

    done = run_tool(
        *(find_tool("checkov"), "--skip-download", "--framework", "kubernetes", "--compact", "--quiet"),
        *("--file", rendered, "--skip-check", ",".join(NOT_FOLLOWED), "--output", "json"),
        folder=tmp_path,
    )

    report = json.loads(done.stdout)
    assert 50 < report["summary"]["passed"], done.stdout + done.stderr
    assert [] == [
        (check["check_id"], check["resource"], check["check_name"])
        for check in report["results"]["failed_checks"]
    ]


def test_the_operator_gets_the_same_rules_as_prometheus() -> None:
    manifests = read_manifests(_kustomized("base", ("components/monitoring",)))

    (rule,) = of_kind(manifests, "PrometheusRule")
    (monitor,) = of_kind(manifests, "ServiceMonitor")
    assert read_yaml(DEPLOY / "prometheus/rules/tracegrade.yaml") == rule["spec"], "make prometheus-rule"
    assert "app.kubernetes.io/name" == section(monitor, "spec")["jobLabel"]
    (service,) = of_kind(manifests, "Service")
    wanted = section(monitor, "spec", "selector", "matchLabels")
    labels = section(service, "metadata", "labels")
    assert wanted.items() <= labels.items()
    assert "tracegrade" == labels["app.kubernetes.io/name"]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_probes_ask_for_names_that_the_receiver_serves(overlay: str) -> None:
    graded = container(_manifests(overlay), "tracegrade")

    asked = {
        probe: section(graded, probe, "grpc") for probe in ("startupProbe", "livenessProbe", "readinessProbe")
    }

    assert {4317} == {probe["port"] for probe in asked.values()}
    assert LIVENESS_SERVICE == asked["livenessProbe"]["service"] == asked["startupProbe"]["service"]
    assert asked["readinessProbe"]["service"] in READINESS_SERVICES


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_configuration_fits_the_pod(overlay: str, tmp_path: Path) -> None:
    manifests = _manifests(overlay)
    for folder, name in (("config", "tracegrade-config"), ("criteria", "tracegrade-criteria")):
        (files,) = [
            section(manifest, "data")
            for manifest in of_kind(manifests, "ConfigMap")
            if str(section(manifest, "metadata")["name"]).startswith(name)
        ]
        (tmp_path / folder).mkdir()
        for file, text in files.items():
            (tmp_path / folder / file).write_text(str(text))

    config = validated(tmp_path / "config/tracegrade.yaml")

    graded = container(manifests, "tracegrade")
    limit = memory_mebibytes(str(section(graded, "resources", "limits")["memory"]))
    assert config.processors.memory_limiter.limit_mib < 0.7 * limit
    grace = pod(manifests, "tracegrade")["terminationGracePeriodSeconds"]
    assert isinstance(grace, int)
    assert config.service.shutdown_timeout < grace
    protocols = config.receivers.otlp.protocols
    assert protocols.grpc is not None
    assert protocols.http is not None
    ports = graded["ports"]
    assert isinstance(ports, list)
    assert {
        "otlp-grpc": port(protocols.grpc.endpoint),
        "otlp-http": port(protocols.http.endpoint),
        "metrics": port(config.telemetry_endpoint()),
    } == {entry["name"]: entry["containerPort"] for entry in ports if isinstance(entry, dict)}
    arguments = graded["args"]
    assert isinstance(arguments, list)
    mounts = graded["volumeMounts"]
    assert isinstance(mounts, list)
    mounted = {str(mount["mountPath"]) for mount in mounts if isinstance(mount, dict)}
    assert str(Path(str(arguments[-1])).parent) in mounted
    state = set() if config.journal is None else {"/var/lib/tracegrade"}
    assert {"/etc/tracegrade/config", "/etc/tracegrade/criteria", *state} == mounted


def test_one_process_is_gone_before_the_next_one_comes() -> None:
    (deployment,) = of_kind(_manifests("base"), "Deployment")

    assert {"type": "Recreate"} == section(deployment, "spec", "strategy")
    assert 1 == section(deployment, "spec")["replicas"]


def _collector(manifests: list[JsonObject]) -> JsonObject:
    """The configuration that the Collector of an overlay runs with."""
    (text,) = [
        section(manifest, "data")["config.yaml"]
        for manifest in of_kind(manifests, "ConfigMap")
        if str(section(manifest, "metadata")["name"]).startswith("tracegrade-collector")
    ]
    config = yaml.safe_load(str(text))
    assert isinstance(config, dict)
    return config


@pytest.mark.parametrize("overlay", BALANCED)
def test_the_collector_leads_every_trace_to_one_replica(overlay: str) -> None:
    manifests = _manifests(overlay)

    config = _collector(manifests)

    assert [] == problems(config)
    assert "traceID" == section(config, "exporters", "loadbalancing")["routing_key"]
    services = {
        str(section(service, "metadata")["name"]): service for service in of_kind(manifests, "Service")
    }
    assert "collector" == section(services["tracegrade"], "spec", "selector")["app.kubernetes.io/component"]
    assert {4317, 4318} == listening_ports(config)
    headless = section(services["tracegrade-replicas"], "spec")
    assert ("None", True) == (headless["clusterIP"], headless["publishNotReadyAddresses"])
    replicas = _stateful(manifests)
    assert "tracegrade-replicas" == section(replicas, "spec")["serviceName"]
    labels = section(replicas, "spec", "template", "metadata", "labels")
    selector = headless["selector"]
    assert isinstance(selector, dict)
    assert selector.items() <= labels.items()


@pytest.mark.parametrize("overlay", BALANCED)
def test_the_replicas_watch_the_name_by_which_the_collector_finds_them(overlay: str, tmp_path: Path) -> None:
    manifests = _manifests(overlay)
    (text,) = [
        section(manifest, "data")["tracegrade.yaml"]
        for manifest in of_kind(manifests, "ConfigMap")
        if str(section(manifest, "metadata")["name"]).startswith("tracegrade-config")
    ]
    (tmp_path / "config").mkdir()
    (tmp_path / "criteria").mkdir()
    (tmp_path / "criteria/agents.yaml").write_text("agents: {}")
    (tmp_path / "config/tracegrade.yaml").write_text(str(text))

    cluster = validated(tmp_path / "config/tracegrade.yaml").cluster
    resolver = section(_collector(manifests), "exporters", "loadbalancing", "resolver", "dns")

    assert cluster is not None
    assert ("tracegrade-replicas", 4317) == (resolver["hostname"], resolver["port"])
    assert resolver["hostname"] == cluster.peers_dns
    assert parse_duration(str(resolver["interval"])) + CLUSTER_DNS_TTL <= cluster.resolver_interval


def test_replicas_are_configured_as_one_is_but_for_their_peers_and_draining() -> None:
    alone = read_yaml(FOLDER / "base/config/tracegrade.yaml")
    several = read_yaml(FOLDER / "overlays/replicas/config/tracegrade.yaml")

    del several["cluster"]
    del section(several, "journal")["on_shutdown"]

    assert alone == several


def test_replicas_take_spans_from_the_collector_only() -> None:
    policies = {
        str(section(policy, "metadata")["name"]): policy
        for policy in of_kind(_manifests("overlays/replicas"), "NetworkPolicy")
    }

    rules = section(policies["tracegrade"], "spec")["ingress"]
    assert isinstance(rules, list)
    first = rules[0]
    assert isinstance(first, dict)
    wanted = {"app.kubernetes.io/name": "tracegrade", "app.kubernetes.io/component": "collector"}
    assert [{"podSelector": {"matchLabels": wanted}}] == first["from"]


def test_the_autoscaler_alone_sets_the_number_of_replicas() -> None:
    manifests = _manifests("overlays/autoscaled")

    replicas = _stateful(manifests)
    (scaler,) = of_kind(manifests, "HorizontalPodAutoscaler")

    assert "replicas" not in section(replicas, "spec")
    target = section(scaler, "spec", "scaleTargetRef")
    assert (replicas["kind"], section(replicas, "metadata")["name"]) == (target["kind"], target["name"])


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_image_is_that_of_this_version(overlay: str) -> None:
    version = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]

    image = container(_manifests(overlay), "tracegrade")["image"]

    assert f"ghcr.io/tracegrade/tracegrade:{version}" == image


@pytest.mark.parametrize("overlay", ["base", *BALANCED])
def test_the_journal_is_on_a_volume_with_room_for_it(overlay: str, tmp_path: Path) -> None:
    manifests = _manifests(overlay)
    (config,) = [
        str(section(manifest, "data")["tracegrade.yaml"])
        for manifest in of_kind(manifests, "ConfigMap")
        if "tracegrade.yaml" in section(manifest, "data")
    ]
    (tmp_path / "tracegrade.yaml").write_text(config.replace("../criteria/*.yaml", "builtin"))

    journal = validated(tmp_path / "tracegrade.yaml").journal

    assert journal is not None
    assert Path("/var/lib/tracegrade") in journal.directory.parents
    mounts = container(manifests, "tracegrade")["volumeMounts"]
    assert isinstance(mounts, list)
    assert {"name": "state", "mountPath": "/var/lib/tracegrade"} in mounts
    claims = of_kind(manifests, "PersistentVolumeClaim")
    volumes = pod(manifests, "tracegrade")["volumes"]
    assert isinstance(volumes, list)
    shared = {"name": "state", "persistentVolumeClaim": {"claimName": "tracegrade-state"}}
    if overlay == "base":
        assert shared in volumes
    else:
        assert [] == claims
        assert 2 == len(volumes)
        templates = section(_stateful(manifests), "spec")["volumeClaimTemplates"]
        assert isinstance(templates, list)
        claims = [template for template in templates if isinstance(template, dict)]
        assert "drain" == journal.on_shutdown
    (claim,) = claims
    room = memory_mebibytes(str(section(claim, "spec", "resources", "requests")["storage"]))
    assert journal.max_bytes * 1.5 / 1024**2 + 64 <= room


@pytest.mark.parametrize("overlay", [*BALANCED, "overlays/kafka"])
def test_what_waits_in_a_collector_outlives_its_pod(overlay: str) -> None:
    manifests = _manifests(overlay)

    directory = section(_collector(manifests), "extensions", "file_storage")["directory"]

    assert {"name": "queue", "mountPath": directory} in _list(
        container(manifests, "tracegrade-collector"), "volumeMounts"
    )
    (claim,) = _list(section(_stateful(manifests, "tracegrade-collector"), "spec"), "volumeClaimTemplates")
    assert {"name": "queue"} == section(claim, "metadata")


def test_members_of_a_group_come_before_others_go_and_keep_nothing() -> None:
    manifests = _manifests("overlays/kafka")

    (deployment,) = of_kind(manifests, "Deployment")

    assert 1 < section(deployment, "spec")["replicas"]  # type: ignore[operator]
    rolling = {"maxSurge": 1, "maxUnavailable": 0}
    assert {"type": "RollingUpdate", "rollingUpdate": rolling} == section(deployment, "spec", "strategy")
    assert [] == of_kind(manifests, "PersistentVolumeClaim")
    assert {"config", "criteria"} == {
        volume["name"] for volume in _list(pod(manifests, "tracegrade"), "volumes")
    }


def test_a_group_is_configured_as_one_is_but_for_kafka_instead_of_the_journal() -> None:
    alone = read_yaml(FOLDER / "base/config/tracegrade.yaml")
    grouped = read_yaml(FOLDER / "overlays/kafka/config/tracegrade.yaml")
    example = read_yaml(DEPLOY / "otelcol/kafka.tracegrade.yaml")

    del alone["journal"]
    kafka = section(grouped, "receivers").pop("kafka")

    assert alone == grouped
    assert {**section(example, "receivers", "kafka"), "brokers": ["tracegrade-kafka:9092"]} == kafka


def test_the_collector_writes_to_kafka_as_the_example_does() -> None:
    config = _collector(_manifests("overlays/kafka"))
    example = read_yaml(DEPLOY / "otelcol/kafka.collector.yaml")

    assert [] == problems(config)
    del section(config, "extensions")["health_check"]
    del section(example, "extensions", "file_storage")["create_directory"]
    section(example, "exporters", "kafka")["brokers"] = ["tracegrade-kafka:9092"]
    section(config, "service")["extensions"] = ["file_storage"]
    assert example == config


def test_the_broker_to_try_out_is_that_of_compose() -> None:
    manifests = _manifests("overlays/kafka")
    compose = read_yaml(DEPLOY / "compose/kafka.compose.yaml")
    (properties,) = [
        str(section(manifest, "data")["server.properties"])
        for manifest in of_kind(manifests, "ConfigMap")
        if "server.properties" in section(manifest, "data")
    ]
    shipped = (DEPLOY / "compose/kafka/server.properties").read_text()
    (job,) = of_kind(manifests, "Job")
    (topic,) = _list(section(job, "spec", "template", "spec"), "containers")
    broker = container(manifests, "tracegrade-kafka")

    settings = shipped.partition("\n")[2].replace("://kafka:", "://tracegrade-kafka:")
    assert settings == properties.partition("\n")[2]
    arguments = section(compose, "services", "kafka-topic")["command"]
    assert isinstance(arguments, list)
    assert [str(text).replace("=kafka:", "=tracegrade-kafka:") for text in arguments] == topic["args"]
    image = section(compose, "services", "kafka")["image"]
    assert image == broker["image"] == topic["image"]
    mounted = {str(mount["mountPath"]) for mount in _list(broker, "volumeMounts")}
    assert {
        "/mnt/shared/config",
        "/var/lib/kafka/data",
        "/opt/kafka/config",
        "/opt/kafka/logs",
        "/tmp",
    } == mounted
    assert False is pod(manifests, "tracegrade-kafka")["enableServiceLinks"]


def _list(mapping: JsonObject, key: str) -> list[JsonObject]:
    """The mappings in a list."""
    values = mapping[key]
    assert isinstance(values, list)
    return [value for value in values if isinstance(value, dict)]
