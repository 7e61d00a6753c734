"""The Helm chart: linted and rendered with Helm's own SDK, its manifests valid, wrong values refused."""

import json
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from collector.configuration import ServiceConfig
from collector.receivers.otlp_grpc import LIVENESS_SERVICE, READINESS_SERVICES
from processors.model import JsonObject
from tests.support.check_tools import (
    DEPLOY,
    PROJECT,
    assert_clean,
    find_checks_python,
    find_tool,
    run_tool,
)
from tests.support.deploy_files import read_manifests, read_yaml, section, validated
from tests.support.workloads import container, of_kind, pod

CHART = DEPLOY / "helm" / "tracegrade"

EVERYTHING: JsonObject = {
    "replicaCount": 3,
    "config": {
        "receivers": {"otlp": {"protocols": {"http": {"max_request_bytes": 16777216}}}},
        "exporters": {
            "debug": None,
            "otlp": {"endpoint": "tempo:4317", "headers": {"authorization": "${env:TOKEN:-none}"}},
        },
    },
    "criteria": {
        "weather.yaml": {
            "agents": {
                "weather_agent": {
                    "evaluations": [
                        {
                            "evaluator": "tool-call-count",
                            "criteria": {"tool_calls_count": {"get_forecast": ["<=", 1]}},
                        }
                    ]
                }
            }
        }
    },
    "extraEnvs": [{"name": "TOKEN", "value": "secret"}],
    "extraVolumes": [{"name": "scratch", "emptyDir": {}}],
    "extraVolumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
    "imagePullSecrets": [{"name": "registry"}],
    "priorityClassName": "high",
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
    ],
    "podAnnotations": {"a": "b"},
    "podLabels": {"c": "d"},
    "podDisruptionBudget": {"enabled": True},
    "autoscaling": {"enabled": True, "minReplicas": 3},
    "networkPolicy": {"enabled": True},
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "prometheusRule": {"enabled": True},
    "persistence": {"enabled": True, "storageClassName": "fast"},
}


def _render(values: JsonObject) -> JsonObject:
    """What Helm answers: messages of lint, and manifests by template or an error."""
    done = subprocess.run(
        [find_checks_python("helm_python"), str(PROJECT / "tests/deploy/render_chart.py")],
        input=json.dumps({"chart": str(CHART), "values": values}),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert 0 == done.returncode, done.stderr
    answer = json.loads(done.stdout)
    assert isinstance(answer, dict)
    return answer


def _text(values: JsonObject) -> str:
    """All manifests as one YAML stream, the notes left out."""
    answer = _render(values)
    assert "error" not in answer, answer["error"]
    manifests = section(answer, "manifests")
    return "\n---\n".join(str(text) for name, text in manifests.items() if name.endswith(".yaml"))


def _manifests(values: JsonObject) -> list[JsonObject]:
    return read_manifests(_text(values))


def test_helm_lint_finds_nothing_but_the_missing_icon() -> None:
    messages = _render({})["messages"]

    assert isinstance(messages, list)
    assert ["icon is recommended"] == [m["error"] for m in messages if isinstance(m, dict)]


def test_the_chart_is_of_this_version_of_the_package() -> None:
    version = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]

    chart = read_yaml(CHART / "Chart.yaml")

    assert version == chart["appVersion"]


@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["defaults", "everything"])
def test_kubernetes_knows_every_field(values: JsonObject, tmp_path: Path) -> None:
    rendered = tmp_path / "manifests.yaml"
    rendered.write_text(_text(values))

    assert_clean(run_tool(find_tool("kubernetes-validate"), "--strict", rendered))


def test_by_default_there_is_one_process_and_nothing_that_a_cluster_may_lack() -> None:
    manifests = _manifests({})

    assert ["ConfigMap", "ConfigMap", "Deployment", "Service", "ServiceAccount"] == sorted(
        str(manifest["kind"]) for manifest in manifests
    )
    (deployment,) = of_kind(manifests, "Deployment")
    assert {"type": "Recreate"} == section(deployment, "spec", "strategy")
    graded = container(manifests, "demo-tracegrade")
    assert LIVENESS_SERVICE == section(graded, "livenessProbe", "grpc")["service"]
    assert section(graded, "readinessProbe", "grpc")["service"] in READINESS_SERVICES
    confined = section(graded, "securityContext")
    assert (True, False) == (confined["readOnlyRootFilesystem"], confined["allowPrivilegeEscalation"])


def test_everything_that_can_be_switched_on_comes() -> None:
    manifests = _manifests(EVERYTHING)

    assert {
        *("ConfigMap", "StatefulSet", "Service", "ServiceAccount", "PodDisruptionBudget"),
        *("HorizontalPodAutoscaler", "NetworkPolicy", "ServiceMonitor", "PrometheusRule"),
    } == {str(manifest["kind"]) for manifest in manifests}
    (rule,) = of_kind(manifests, "PrometheusRule")
    assert read_yaml(DEPLOY / "prometheus/rules/tracegrade.yaml") == rule["spec"], "make prometheus-rule"
    (replicas,) = of_kind(manifests, "StatefulSet")
    assert "replicas" not in section(replicas, "spec")
    assert "high" == pod(manifests, "demo-tracegrade")["priorityClassName"]


@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["defaults", "everything"])
def test_the_configuration_is_one_that_tracegrade_takes(values: JsonObject, tmp_path: Path) -> None:
    for manifest in of_kind(_manifests(values), "ConfigMap"):
        folder = tmp_path / str(section(manifest, "metadata")["name"]).rpartition("-")[2]
        folder.mkdir()
        for file, text in section(manifest, "data").items():
            (folder / file).write_text(str(text))

    config = validated(tmp_path / "config/tracegrade.yaml")

    wanted = "debug" if not values else "otlp"
    assert {wanted} == set(config.exporters)


def test_probes_ask_over_http_where_grpc_speaks_tls() -> None:
    tls: JsonObject = {"cert_file": "/tls/server.pem", "key_file": "/tls/server.key"}

    manifests = _manifests({"config": {"receivers": {"otlp": {"protocols": {"grpc": {"tls": tls}}}}}})

    graded = container(manifests, "demo-tracegrade")
    assert {"path": "/readyz", "port": "metrics"} == section(graded, "readinessProbe", "httpGet")
    assert {"path": "/healthz", "port": "metrics"} == section(graded, "livenessProbe", "httpGet")


def test_a_listener_that_is_off_has_no_port() -> None:
    manifests = _manifests({"config": {"receivers": {"otlp": {"protocols": {"grpc": None}}}}})

    (service,) = of_kind(manifests, "Service")
    ports = section(service, "spec")["ports"]
    assert isinstance(ports, list)
    assert {"otlp-http", "metrics"} == {port["name"] for port in ports if isinstance(port, dict)}


def test_a_changed_configuration_restarts_the_pods_and_changed_criteria_do_not() -> None:
    def annotations(values: JsonObject) -> JsonObject:
        (deployment,) = of_kind(_manifests(values), "Deployment")
        return section(deployment, "spec", "template", "metadata", "annotations")

    plain = annotations({})

    assert plain == annotations({"criteria": EVERYTHING["criteria"]})
    assert plain != annotations({"config": {"service": {"shutdown_timeout": "20s"}}})


def test_the_notes_name_the_endpoint_and_warn_of_several_replicas() -> None:
    alone, several = (
        str(section(_render(values), "manifests")["tracegrade/templates/NOTES.txt"])
        for values in ({}, EVERYTHING)
    )

    assert "OTEL_EXPORTER_OTLP_ENDPOINT=http://demo-tracegrade.prod:4317" in alone
    assert "No trace backend is configured" in alone
    assert "loadbalancing" not in alone
    assert "No trace backend is configured" not in several
    assert "hostname: demo-tracegrade-replicas, port: 4317" in several


def _cluster(values: JsonObject) -> object:
    """What the configuration of the pods says of the replicas."""
    for manifest in of_kind(_manifests(values), "ConfigMap"):
        if "tracegrade.yaml" in section(manifest, "data"):
            return yaml.safe_load(str(section(manifest, "data")["tracegrade.yaml"])).get("cluster")
    raise AssertionError("no configuration")


def test_replicas_watch_the_name_that_they_share_unless_told_otherwise() -> None:
    listed: JsonObject = {"peers": ["one:4317", "two:4317"]}

    assert None is _cluster({})
    assert {"peers_dns": "demo-tracegrade-replicas", "resolver_interval": "10s"} == _cluster(EVERYTHING)
    assert listed == _cluster({"replicaCount": 2, "config": {"cluster": listed}})
    read: JsonObject = {"receivers": {"kafka": {"brokers": ["kafka:9092"]}}}
    assert None is _cluster({"replicaCount": 2, "config": read})  # hand-overs of partitions split no trace


def _journal(values: JsonObject) -> object:
    """What the configuration of the pods says of the journal."""
    for manifest in of_kind(_manifests(values), "ConfigMap"):
        if "tracegrade.yaml" in section(manifest, "data"):
            return yaml.safe_load(str(section(manifest, "data")["tracegrade.yaml"])).get("journal")
    raise AssertionError("no configuration")


def test_a_journal_is_on_a_volume_of_the_pod_that_stays() -> None:
    one: JsonObject = {"persistence": {"enabled": True}}
    several: JsonObject = {"replicaCount": 2, **one}

    alone, replicas = _manifests(one), _manifests(several)

    (claim,) = of_kind(alone, "PersistentVolumeClaim")
    name = section(claim, "metadata")["name"]
    assert {"name": "state", "persistentVolumeClaim": {"claimName": name}} in _list(
        pod(alone, "demo-tracegrade"), "volumes"
    )
    assert [] == of_kind(replicas, "PersistentVolumeClaim")
    (stateful,) = of_kind(replicas, "StatefulSet")
    (template,) = _list(section(stateful, "spec"), "volumeClaimTemplates")
    assert isinstance(template, dict)
    assert "state" == section(template, "metadata")["name"]
    assert section(claim, "spec") == section(template, "spec")
    assert "state" not in {volume["name"] for volume in _list(pod(replicas, "demo-tracegrade"), "volumes")}
    for manifests in (alone, replicas):
        mounts = _list(container(manifests, "demo-tracegrade"), "volumeMounts")
        assert {"name": "state", "mountPath": "/var/lib/tracegrade"} in mounts


def _list(parent: JsonObject, key: str) -> list[JsonObject]:
    found = parent[key]
    assert isinstance(found, list)
    return [part for part in found if isinstance(part, dict)]


def test_replicas_drain_their_journal_unless_told_otherwise() -> None:
    on: JsonObject = {"enabled": True}
    kept: JsonObject = {"on_shutdown": "keep", "max_bytes": 1073741824}
    directory = "/var/lib/tracegrade/journal"

    assert None is _journal({})
    assert {"directory": directory} == _journal({"persistence": on})
    assert {"directory": directory, "on_shutdown": "drain"} == _journal(
        {"replicaCount": 2, "persistence": on}
    )
    assert {"directory": directory, **kept} == _journal(
        {"replicaCount": 2, "persistence": on, "config": {"journal": kept}}
    )


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"replicaCuont": 2}, "replicaCuont"),
        ({"replicaCount": 0}, "replicaCount"),
        ({"image": {"tag": "latest"}}, "tag"),
        ({"image": {"digest": "sha256:abc"}}, "digest"),
        ({"config": {"recievers": {}}}, "recievers"),
        ({"criteria": {"weather.txt": {}}}, "weather.txt"),
        ({"serviceMonitor": {"interval": "often"}}, "interval"),
        ({"config": {"processors": {"memory_limiter": {"limit_mib": 1500}}}}, "more than 80 % of"),
        ({"terminationGracePeriodSeconds": 30}, "not more than config.service.shutdown_timeout (30 s)"),
        (
            {"config": {"service": {"shutdown_timeout": "1m30s"}}},
            "not more than config.service.shutdown_timeout (90 s)",
        ),
        ({"config": {"service": {"telemetry": {"endpoint": "127.0.0.1:9464"}}}}, "inside the pod only"),
        ({"persistence": {"enabled": True, "size": "6Gi"}}, "persistence.size (6Gi) is less than"),
        ({"persistence": {"size": "a lot"}}, "size"),
        (
            {"persistence": {"enabled": True}, "config": {"journal": {"directory": "/tmp/journal"}}},
            "is not on the volume",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_a_value_that_does_not_fit_is_refused_by_name(values: JsonObject, told: str) -> None:
    answer = _render(values)

    assert told in str(answer.get("error"))


def test_the_chart_passes_every_part_of_the_configuration_on() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())

    assert set(ServiceConfig.model_fields) == set(schema["properties"]["config"]["properties"])


def test_every_value_is_described() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())

    assert {"global"} == set(schema["properties"]) - set(values)
    assert all("description" in described for described in schema["properties"].values())
