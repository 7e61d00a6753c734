"""From an agent that turns bad to the person who is told, with nothing mocked.

The sample agent sends its traces to tracegrade, Prometheus scrapes tracegrade and evaluates the rules that
ship, Alertmanager routes what they find as shipped, and a webhook is called. All windows of the rules are
shortened together by the option of `tracegrade rules` for it: an hour lasts six seconds, a week 17 minutes.
"""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

from processors.model import JsonObject
from tests.support.alertmanager_server import AlertmanagerServer, calling_webhook
from tests.support.backfill import PastSeries, record_blocks, write_blocks
from tests.support.prometheus_server import PrometheusServer, scrape_config
from tests.support.sample_agent import SampleAgent
from tests.support.service_process import ServiceProcess
from tests.support.webhook_receiver import WebhookReceiver

ROOT = Path(__file__).parents[2]
CRITERIA = ROOT / "config" / "criteria" / "demo.yaml"
ALERTMANAGER_CONFIG = ROOT / "deploy" / "alertmanager" / "alertmanager.yaml"

HOUR, WEEK = 6.0, 1008.0
"""In seconds, at 1/600 of their length."""

REGRESSION, BELOW_BASELINE = "AgentEvaluationScoreRegression", "AgentEvaluationScoreBelowBaseline"
DOWN = "TracegradeDown"
RAISED = f'ALERTS{{alertstate="firing",alertname!="{DOWN}"}}'
"""A scrape that a busy machine answers a second late is minutes of outage at this scale: it may be told."""

EVALUATION = "looks-before-it-forecasts"
BUCKETS = ("0.0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "0.99", "1.0", "+Inf")
GOOD_MINUTES = 5


def last_week(now: float) -> Iterator[PastSeries]:
    """Ten good runs a second, from a little before this time last week on, for five minutes."""
    start = now - WEEK - 2 * HOUR
    agent = {
        "job": "tracegrade",
        "instance": "last-week:9464",
        "gen_ai_agent_name": SampleAgent.NAME,
        "gen_ai_agent_version": "1.0.0",
    }
    none = [(start + second, 0.0) for second in range(GOOD_MINUTES * 60)]
    runs = [(at, 10.0 * second) for second, (at, _) in enumerate(none)]
    yield PastSeries("tracegrade_agent_runs_total", agent, runs, kind="counter")
    evaluation = {**agent, "gen_ai_evaluation_name": EVALUATION}
    yield PastSeries("gen_ai_evaluation_score_count", evaluation, runs)
    yield PastSeries("gen_ai_evaluation_score_sum", evaluation, runs)
    for bound in BUCKETS:
        points = runs if bound in ("1.0", "+Inf") else none
        yield PastSeries("gen_ai_evaluation_score_bucket", {**evaluation, "le": bound}, points)
    for outcome in ("pass", "fail", "error", "not_evaluated"):
        labels = {**evaluation, "gen_ai_evaluation_score_label": outcome}
        points = runs if outcome == "pass" else none
        yield PastSeries("gen_ai_evaluation_results_total", labels, points, kind="counter")


async def tracegrade_command(*arguments: str) -> None:
    """Run `tracegrade` with `arguments` as a user does; fails with what it says if it fails."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "collector.cli", *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()


async def shipped_rules_with_history(folder: Path) -> tuple[Path, list[Path]]:
    """The rules for a baseline of last week's scores, and blocks with what they would have recorded then."""
    baseline, rules, now = folder / "baseline.json", folder / "rules.yaml", time.time()
    raw = await write_blocks(list(last_week(now)), folder)
    async with PrometheusServer(folder / "of-last-week", {}, blocks=[raw]) as server:
        await tracegrade_command(
            *("baseline", "--release", "2026-10", "--prometheus", server.url),
            *("--version", "1.0.0", "--output", str(baseline)),
        )
        await tracegrade_command(
            *("rules", "--criteria", str(CRITERIA), "--baselines", str(baseline)),
            *("--time-scale", "1/600", "--output", str(rules)),
        )
        end = now - WEEK + GOOD_MINUTES * 60 - 3 * HOUR
        recorded = await record_blocks(server.url, rules, folder, start=now - WEEK, end=end)
    return rules, [raw, recorded]


@asynccontextmanager
async def prometheus_of(
    folder: Path, tracegrade: ServiceProcess, alertmanager: AlertmanagerServer
) -> AsyncIterator[PrometheusServer]:
    """A Prometheus that scrapes one, alerts the other, and remembers last week."""
    rules, blocks = await shipped_rules_with_history(folder)
    config: JsonObject = {
        "global": {"evaluation_interval": "1s"},
        "scrape_configs": [scrape_config("tracegrade", tracegrade.endpoints["telemetry"], interval="1s")],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [alertmanager.address]}]}]},
    }
    options = ("--query.lookback-delta=5s", "--rules.alert.resend-delay=1s")
    async with PrometheusServer(
        folder, config, rule_files=[rules], blocks=blocks, options=options
    ) as prometheus:
        yield prometheus


async def until_there_is_enough_to_compare(prometheus: PrometheusServer) -> None:
    """Return when scores of now and of last week could have raised alerts for three hours."""
    results = f'agent:gen_ai_evaluation_results:increase1h{{gen_ai_evaluation_name="{EVALUATION}"}}'
    for enough in (f"{results} >= 20", f"({results} offset {WEEK:.0f}s) >= 20"):
        await prometheus.until(f"count_over_time(({enough})[{3 * HOUR:.0f}s:1s]) >= {3 * HOUR:.0f}")


def shipped_routing() -> JsonObject:
    routing: JsonObject = yaml.safe_load(ALERTMANAGER_CONFIG.read_text())
    return routing


def runbook_headings() -> set[str]:
    """The anchors of the runbooks' sections."""
    lines = (ROOT / "docs" / "runbooks.md").read_text().splitlines()
    return {line.lstrip("# ").lower() for line in lines if line.startswith("#")}


def dashboard_uids() -> set[str]:
    return {
        json.loads(path.read_text())["uid"] for path in (ROOT / "deploy/grafana/dashboards").rglob("*.json")
    }


@pytest.mark.end_to_end
@pytest.mark.requires_program("prometheus")
@pytest.mark.requires_program("promtool")
@pytest.mark.requires_program("prometheus-alertmanager")
@pytest.mark.timeout(900)
@pytest.mark.slow
async def test_who_is_on_call_is_told_of_an_agent_that_turns_bad_and_of_its_recovery(tmp_path: Path) -> None:
    settings: JsonObject = {
        "processors": {"evaluation": {"criteria": [str(CRITERIA)]}},
        "service": {"telemetry": {"self_check": {"enabled": False}}},  # at this scale once a minute is never
    }
    async with (
        WebhookReceiver() as told,
        AlertmanagerServer(tmp_path, calling_webhook(shipped_routing(), told.url)) as alertmanager,
        ServiceProcess(tmp_path, settings) as tracegrade,
        prometheus_of(tmp_path, tracegrade, alertmanager) as prometheus,
        SampleAgent(tracegrade.endpoints["grpc"]) as agent,
    ):
        await until_there_is_enough_to_compare(prometheus)
        raised_by_good_traffic = await prometheus.query(f"count_over_time({RAISED}[10m])")
        told_of_good_traffic = [alert for alert in told.alerts if alert.name != DOWN]

        await agent.turn("/bad")
        firing = [
            await told.until(name, "firing", gen_ai_evaluation_name=EVALUATION)
            for name in (REGRESSION, BELOW_BASELINE)
        ]

        await agent.turn("/good")
        resolved = [
            await told.until(name, "resolved", gen_ai_evaluation_name=EVALUATION)
            for name in (REGRESSION, BELOW_BASELINE)
        ]
        exit_codes = (await agent.stop(), await tracegrade.stop())

    assert [] == [dict(series.labels) for series in raised_by_good_traffic]
    assert [] == told_of_good_traffic
    for alert in firing:
        assert SampleAgent.NAME == alert.labels["gen_ai_agent_name"]
        assert ("ticket", "ticket") == (alert.labels["severity"], alert.receiver)
        assert SampleAgent.NAME in alert.annotations["summary"]
        assert EVALUATION in alert.annotations["summary"]
        dashboard = urlsplit(alert.annotations["dashboard_url"])
        assert dashboard.path.removeprefix("/d/") in dashboard_uids()
        assert [SampleAgent.NAME] == parse_qs(dashboard.query)["var-agent"]
        runbook = urlsplit(alert.annotations["runbook_url"])
        assert alert.name.lower() == runbook.fragment
        assert runbook.fragment in runbook_headings()
    assert "2026-10" == firing[1].labels["release"]
    assert [alert.labels for alert in firing] == [alert.labels for alert in resolved]
    assert (0, 0) == exit_codes
