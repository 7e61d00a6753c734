"""What is allowed to be held fits the container, or the service says which number to change."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from collector.configuration import ServiceConfig, load_configuration, parse_configuration
from collector.memory_plan import plan_memory
from processors.documents import InvalidInput

_MIB = 1024 * 1024
_PROJECT = Path(__file__).parents[2]


def _config(limit_mib: int | None = None, in_flight_mib: int | None = None) -> str:
    parts = []
    if limit_mib is not None:
        parts.append(f"processors: {{memory_limiter: {{limit_mib: {limit_mib}}}}}")
    if in_flight_mib is not None:
        parts.append(f"receivers: {{otlp: {{max_bytes_in_flight: {in_flight_mib * _MIB}}}}}")
    return "\n".join(parts) or "{}"


@pytest.mark.parametrize(
    ("limit_mib", "in_flight_mib", "container_mib"),
    [(1024, 256, 1600), (1024, None, 2048), (512, 128, 800), (16, 64, 101)],
)
def test_what_fits_is_taken(limit_mib: int, in_flight_mib: int | None, container_mib: int) -> None:
    plan = plan_memory(parse_configuration(_config(limit_mib, in_flight_mib), "t", {}), container_mib * _MIB)

    assert limit_mib * _MIB == plan.held_bytes
    assert plan.held_bytes + plan.in_flight_bytes <= 0.8 * container_mib * _MIB


@pytest.mark.parametrize("container_mib", [128, 512, 1024, 2048, 100_000])
def test_limits_that_nobody_wrote_fit_any_container(container_mib: int) -> None:
    plan = plan_memory(parse_configuration("{}", "t", {}), container_mib * _MIB)

    assert 0 < plan.held_bytes <= 2048 * _MIB
    assert 0 < plan.in_flight_bytes <= 256 * _MIB
    assert plan.held_bytes + plan.in_flight_bytes <= 0.8 * container_mib * _MIB


def test_without_a_container_there_is_nothing_to_fit() -> None:
    assert 64 << 30 == plan_memory(parse_configuration(_config(65_536), "t", {}), None).held_bytes


@pytest.mark.parametrize(
    ("limit_mib", "in_flight_mib", "change"),
    [(1500, 256, "lower limit_mib to 1382, or"), (100, 2000, "lower receivers.otlp.max_bytes_in_flight and")],
)
def test_what_does_not_fit_is_refused_with_the_number_to_change(
    limit_mib: int, in_flight_mib: int, change: str
) -> None:
    config = parse_configuration(_config(limit_mib, in_flight_mib), "t", {})
    with pytest.raises(InvalidInput, match=re.escape(change)) as raised:
        plan_memory(config, 2048 * _MIB)

    [needed] = re.findall(r"give the container (\d+) MiB", str(raised.value))
    assert plan_memory(config, (int(needed) + 1) * _MIB)
    if found := re.search(r"limit_mib to (\d+)", str(raised.value)):
        mended = parse_configuration(_config(int(found[1]), in_flight_mib), "t", {})
        assert plan_memory(mended, 2048 * _MIB)


_PAGE = "page: {endpoint: 127.0.0.1:0}"


@pytest.mark.parametrize(
    ("text", "container_mib", "store_mib"),
    [
        ("{}", 2048, 0),  # without a page nobody keeps runs in memory
        (_PAGE, 2048, 64),
        (_PAGE, None, 64),
        (_PAGE, 512, 32),
        (_PAGE, 128, 8),
        (_PAGE + "\nstore: {max_mib: 100}", 512, 100),
        (_PAGE + "\nstore: {path: /tmp/runs.db}", 512, 0),
        (_PAGE + "\nstore: off", 512, 0),
    ],
)
def test_runs_that_are_kept_in_memory_have_room_beside_all_else(
    text: str, container_mib: int | None, store_mib: int
) -> None:
    container = None if container_mib is None else container_mib * _MIB

    plan = plan_memory(parse_configuration(text, "t", {}), container)

    assert store_mib * _MIB == plan.store_bytes
    if container is not None:
        assert plan.held_bytes + plan.in_flight_bytes + plan.store_bytes <= 0.8 * container


def test_a_store_in_memory_that_does_not_fit_is_named_with_what_it_takes() -> None:
    text = _config(1382, 256) + "\n"
    assert plan_memory(parse_configuration(text, "t", {}), 2048 * _MIB)
    config = parse_configuration(text + _PAGE + "\nstore: {max_mib: 64}", "t", {})

    with pytest.raises(InvalidInput, match=r"store\.max_mib \(64 MiB.*lower limit_mib to 1318, or") as raised:
        plan_memory(config, 2048 * _MIB)

    [needed] = re.findall(r"give the container (\d+) MiB", str(raised.value))
    assert plan_memory(config, int(needed) * _MIB)


def test_the_shipped_manifests_fit_their_own_limits() -> None:
    base = _PROJECT / "deploy" / "kubernetes" / "base"
    [deployment] = [
        document
        for document in yaml.safe_load_all((base / "deployment.yaml").read_text())
        if document["kind"] in ("Deployment", "StatefulSet")
    ]
    limit = deployment["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"]
    text = (base / "config" / "tracegrade.yaml").read_text()
    written = yaml.safe_load(text)
    values = yaml.safe_load((_PROJECT / "deploy" / "helm" / "tracegrade" / "values.yaml").read_text())

    assert plan_memory(_limits_of(written), _bytes(limit))
    assert plan_memory(_limits_of(values["config"]), _bytes(values["resources"]["limits"]["memory"]))
    assert load_configuration(None, {})


def _limits_of(written: Any) -> ServiceConfig:
    kept: Any = {"processors": {"memory_limiter": written["processors"]["memory_limiter"]}}
    if in_flight := written["receivers"]["otlp"].get("max_bytes_in_flight"):
        kept["receivers"] = {"otlp": {"max_bytes_in_flight": in_flight}}
    return parse_configuration(yaml.safe_dump(kept), "t", {})


def _bytes(text: str) -> int:
    units = {"Mi": _MIB, "Gi": 1024 * _MIB}
    return int(text[:-2]) * units[text[-2:]]
