"""Whether a Prometheus server scrapes this service, has its rules, and reaches an Alertmanager. Blocking."""

import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from collector.tools.doctor.hop import Hop, Trouble, unknown, works
from collector.tools.prometheus_api import PrometheusApi, PrometheusError
from collector.tools.running_service import RunningService

_RULE_GROUPS = ("tracegrade-agents", "tracegrade-service")
_TIMEOUT_SECONDS = 5.0


def prometheus_hops(api: PrometheusApi, service: RunningService) -> Iterator[Hop]:
    """Three hops: the target, the rules, and where alerts go."""
    where = "prometheus"
    try:
        targets = _list(api.get("targets?state=active"), "activeTargets")
        groups = _list(api.get("rules?type=alert"), "groups")
        managers = _list(api.get("alertmanagers"), "activeAlertmanagers")
    except PrometheusError as error:
        yield Trouble(
            str(error), "the HTTP API of a Prometheus server",
            "Give the address of Prometheus itself, with user and password in it if it asks for them.",
        ).at(where)  # fmt: skip
        for behind in ("scraping", "rules", "alerting"):
            yield unknown(f"{where} {behind}", "Prometheus gave no answer", "Mend the hop above.")
        return
    yield _scraping(f"{where} scraping", api, targets, service)
    yield _rules(f"{where} rules", groups)
    yield _alerting(f"{where} alerting", managers)


def _scraping(where: str, api: PrometheusApi, targets: list[Any], service: RunningService) -> Hop:
    ours = [
        target
        for target in targets
        if _port(target.get("scrapeUrl", "")) == service.port and _is_ours(target, targets, service)
    ]
    if not ours:
        return Trouble(
            f"none of the {len(targets)} targets of {api.shown_url} is {service.address}",
            f"a target with port {service.port} and path /metrics",
            "Add the service to scrape_configs (deploy/prometheus has examples) and reload Prometheus.",
        ).at(where)
    target = ours[0]
    if target.get("health") == "down":
        return Trouble(
            f"Prometheus cannot scrape {target['scrapeUrl']}: {target.get('lastError')}",
            "a target that is up",
            "Let Prometheus reach service.telemetry.endpoint: 127.0.0.1 is this machine alone.",
        ).at(where)
    if target.get("health") != "up":
        return unknown(
            where, f"{target['scrapeUrl']} was not scraped yet", "Run this again after a scrape interval."
        )
    return works(where, f"{target['scrapeUrl']} is up, job {target['labels'].get('job')}")


def _is_ours(target: Any, targets: list[Any], service: RunningService) -> bool:
    """Whether it has our address, or is the only one with our port.

    Prometheus may know this machine by another name.
    """
    if target["scrapeUrl"].split("//")[-1].split("/")[0] == service.address:
        return True
    alike = [each for each in targets if _port(each.get("scrapeUrl", "")) == service.port]
    return len(alike) == 1 and urlsplit(target["scrapeUrl"]).hostname not in ("127.0.0.1", "localhost")


def _rules(where: str, groups: list[Any]) -> Hop:
    loaded = {str(group.get("name")) for group in groups}
    missing = [name for name in _RULE_GROUPS if name not in loaded]
    if missing:
        return Trouble(
            f"these groups of rules are not loaded: {', '.join(missing)}",
            f"the groups {', '.join(_RULE_GROUPS)}",
            "Name deploy/prometheus/rules/tracegrade.yaml, or what `tracegrade rules` writes, in rule_files.",
        ).at(where)
    broken = [
        f"{rule['name']}: {rule['lastError']}"
        for group in groups
        if group.get("name") in _RULE_GROUPS
        for rule in group.get("rules", ())
        if rule.get("health") == "err"
    ]
    if broken:
        return Trouble(
            f"rules that cannot be evaluated: {'; '.join(broken[:3])}",
            "rules without errors",
            "Update the rules and the service to one version.",
        ).at(where)
    return works(where, f"{', '.join(_RULE_GROUPS)} are loaded")


def _alerting(where: str, managers: list[Any]) -> Hop:
    if not managers:
        return Trouble(
            "Prometheus knows no Alertmanager: alerts reach nobody",
            "one in alerting.alertmanagers",
            "Add alerting.alertmanagers to the configuration of Prometheus (deploy/alertmanager has one).",
        ).at(where)
    answering, silent = [], []
    for manager in managers:
        parts = urlsplit(str(manager.get("url")))
        url = f"{parts.scheme}://{parts.netloc}{parts.path.partition('/api/')[0]}/-/ready"
        try:
            with urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS):
                answering.append(parts.netloc)
        except (OSError, ValueError) as error:
            silent.append(f"{parts.netloc} ({getattr(error, 'reason', None) or error})")
    if silent:
        return Trouble(
            f"no answer from the Alertmanager {', '.join(silent)}",
            "an Alertmanager that is ready",
            "Start it or correct alerting.alertmanagers; if only Prometheus reaches it, run this there.",
        ).at(where)
    return works(where, f"Alertmanager {', '.join(answering)} is ready")


def _list(data: Any, key: str) -> list[Any]:
    found = data.get(key) if isinstance(data, dict) else None
    if not isinstance(found, list):
        raise PrometheusError("this is not the answer of a Prometheus server")
    return found


def _port(url: str) -> int | None:
    parts = urlsplit(url)
    return parts.port or {"http": 80, "https": 443}.get(parts.scheme)
