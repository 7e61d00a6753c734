"""Whether a Prometheus server scrapes this service, has its rules, and reaches an Alertmanager. Blocking."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from collector.tools.doctor.hop import Hop
from collector.tools.http_client import NoAnswerError, send_request
from collector.tools.prometheus_api import PrometheusApi, PrometheusError
from collector.tools.running_service import RunningService

_RULE_GROUPS = ("tracegrade-agents", "tracegrade-service")


def prometheus_hops(api: PrometheusApi, service: RunningService) -> Iterator[Hop]:
    """Three hops: the target, the rules, and where alerts go."""
    try:
        targets = api.get("targets?state=active", "activeTargets")
        groups = api.get("rules?type=alert", "groups")
        managers = api.get("alertmanagers", "activeAlertmanagers")
    except PrometheusError as error:
        advice = "Give the address of Prometheus itself, with user and password in it if it needs them."
        yield Hop("prometheus", str(error), "the HTTP API of a Prometheus server", advice)
        for behind in ("scraping", "rules", "alerting"):
            yield Hop(f"prometheus {behind}", "Prometheus gave no answer", advice="Repair the hop above.")
        return
    yield _scraping("prometheus scraping", api, targets, service)
    yield _rules("prometheus rules", groups)
    yield _alerting("prometheus alerting", managers)


def _scraping(where: str, api: PrometheusApi, targets: list[Any], service: RunningService) -> Hop:
    alike = [target for target in targets if _port(target.get("scrapeUrl", "")) == service.port]
    ours = [target for target in alike if urlsplit(target["scrapeUrl"]).netloc == service.address]
    # Prometheus may know this machine by another name.
    if len(alike) == 1 and urlsplit(alike[0]["scrapeUrl"]).hostname not in ("127.0.0.1", "localhost"):
        ours = alike
    if not ours:
        return Hop(
            where,
            f"none of the {len(targets)} targets of {api.shown_url} is {service.address}",
            f"a target with port {service.port} and path /metrics",
            "Add the service to scrape_configs (deploy/prometheus has examples) and reload Prometheus.",
        )
    target = ours[0]
    url, health = target["scrapeUrl"], target.get("health")
    if health == "down":
        return Hop(
            where,
            f"Prometheus cannot scrape {url}: {target.get('lastError')}",
            "a target that is up",
            "Let Prometheus reach service.telemetry.endpoint: 127.0.0.1 is this machine alone.",
        )
    if health != "up":
        return Hop(where, f"{url} was not scraped yet", advice="Run this again after a scrape interval.")
    return Hop(where, f"{url} is up, job {target['labels'].get('job')}")


def _rules(where: str, groups: list[Any]) -> Hop:
    loaded = {str(group.get("name")) for group in groups}
    if missing := [name for name in _RULE_GROUPS if name not in loaded]:
        return Hop(
            where,
            f"these groups of rules are not loaded: {', '.join(missing)}",
            f"the groups {', '.join(_RULE_GROUPS)}",
            "Name deploy/prometheus/rules/tracegrade.yaml, or what `tracegrade rules` writes, in rule_files.",
        )
    errors = [
        f"{rule['name']}: {rule['lastError']}"
        for group in groups
        if group.get("name") in _RULE_GROUPS
        for rule in group.get("rules", ())
        if rule.get("health") == "err"
    ]
    if errors:
        problem = f"rules that cannot be evaluated: {'; '.join(errors[:3])}"
        return Hop(where, problem, "rules without errors", "Update rules and service to one version.")
    return Hop(where, f"{', '.join(_RULE_GROUPS)} are loaded")


def _alerting(where: str, managers: list[Any]) -> Hop:
    if not managers:
        return Hop(
            where,
            "Prometheus knows no Alertmanager: alerts reach no one",
            "one in alerting.alertmanagers",
            "Add alerting.alertmanagers to the configuration of Prometheus (deploy/alertmanager has one).",
        )
    names, silent = [], []
    for manager in managers:
        parts = urlsplit(str(manager.get("url")))
        names.append(parts.netloc)
        url = f"{parts.scheme}://{parts.netloc}{parts.path.partition('/api/')[0]}/-/ready"
        try:
            status, _ = send_request(url, uses_proxy=True)
            problem = "" if status < 400 else f"status {status}"
        except NoAnswerError as error:
            problem = str(error)
        if problem:
            silent.append(f"{parts.netloc} ({problem})")
    if silent:
        return Hop(
            where,
            f"no answer from the Alertmanager {', '.join(silent)}",
            "an Alertmanager that is ready",
            "Start it or correct alerting.alertmanagers; if only Prometheus reaches it, run this there.",
        )
    return Hop(where, f"Alertmanager {', '.join(names)} is ready")


def _port(url: str) -> int | None:
    parts = urlsplit(url)
    return parts.port or {"http": 80, "https": 443}.get(parts.scheme)
