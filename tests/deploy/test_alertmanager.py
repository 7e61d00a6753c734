"""Who hears of which alert, as Alertmanager's own tools and a real one see it."""

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml

from tests.support.alertmanager_server import AlertmanagerServer, calling_webhook
from tests.support.webhook_receiver import WebhookReceiver

CONFIG = Path(__file__).parents[2] / "deploy" / "alertmanager" / "alertmanager.yaml"
JOB = {"job": "tracegrade"}
AGENT = {**JOB, "gen_ai_agent_name": "weather_agent", "gen_ai_evaluation_name": "forecast-order"}


def amtool(*arguments: str) -> str:
    done = subprocess.run(["amtool", *arguments], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.requires_program("amtool")
def test_alertmanager_accepts_its_configuration() -> None:
    amtool("check-config", str(CONFIG))


@pytest.mark.requires_program("amtool")
@pytest.mark.parametrize(
    ("labels", "receiver"),
    [
        (("severity=page",), "page"),
        (("severity=ticket",), "ticket"),
        (("severity=page", "owner=team-weather"), "team-weather-page"),
        (("severity=ticket", "owner=team-weather"), "team-weather-ticket"),
        (("severity=page", "owner=team-without-a-route"), "page"),
        (("severity=ticket", "owner=team-without-a-route"), "ticket"),
        (("alertname=SomethingElse",), "ticket"),
    ],
)
def test_an_alert_goes_to_its_owner_as_loud_as_it_is(labels: tuple[str, ...], receiver: str) -> None:
    found = amtool("config", "routes", "test", f"--config.file={CONFIG}", *labels)

    assert receiver == found.strip()


def test_alerts_are_told_by_name_and_agent() -> None:
    route = yaml.safe_load(CONFIG.read_text())["route"]

    assert ["alertname", "gen_ai_agent_name"] == route["group_by"]
    assert not any("group_by" in child for child in route["routes"])


def alert(name: str, severity: str, **labels: str) -> dict[str, str]:
    return {"alertname": name, "severity": severity, **labels}


REGRESSION = alert("AgentEvaluationScoreRegression", "ticket", **AGENT)


@pytest.mark.requires_program("prometheus-alertmanager")
@pytest.mark.parametrize(
    ("firing", "kept_back"),
    [
        pytest.param([REGRESSION], [], id="alone"),
        pytest.param([alert("AgentFleetRegression", "page", **JOB), REGRESSION], [REGRESSION], id="fleet"),
        pytest.param(
            [alert("AgentFleetRegression", "page", job="another"), REGRESSION], [], id="another-fleet"
        ),
        pytest.param(
            [
                alert("AgentFleetRegression", "page", **JOB),
                alert("AgentEvaluationsSilent", "ticket", **AGENT),
            ],
            [],
            id="a-fleet-does-not-stand-for-silence",
        ),
        pytest.param(
            [alert("TracegradeGradingUnhealthy", "page", cause="evaluators break", **JOB), REGRESSION],
            [REGRESSION],
            id="unhealthy",
        ),
        pytest.param(
            [alert("TracegradeSelfCheckFailing", "page", instance="a", **JOB), REGRESSION],
            [REGRESSION],
            id="self-check",
        ),
        pytest.param(
            [alert("TracegradeDown", "page", scope="service", **JOB), REGRESSION], [REGRESSION], id="down"
        ),
        pytest.param(
            [alert("TracegradeDown", "ticket", scope="instance", instance="a", **JOB), REGRESSION],
            [],
            id="one-process-down",
        ),
        pytest.param(
            [alert("AgentEvaluationObjectiveBurn", "page", **AGENT), REGRESSION],
            [REGRESSION],
            id="the-agent-pages-already",
        ),
        pytest.param(
            [
                alert("AgentEvaluationObjectiveBurn", "page", **{**AGENT, "gen_ai_agent_name": "other"}),
                REGRESSION,
            ],
            [],
            id="another-agent-pages",
        ),
        pytest.param(
            [
                alert("TracegradeGradingUnhealthy", "page", cause="evaluators break", **JOB),
                alert("TracegradeSpansDropped", "ticket", instance="a", **JOB),
            ],
            [],
            id="alerts-of-the-service-stay",
        ),
    ],
)
async def test_one_cause_is_told_once(
    tmp_path: Path, firing: list[dict[str, str]], kept_back: list[dict[str, str]]
) -> None:
    async with (
        WebhookReceiver() as told,
        AlertmanagerServer(
            tmp_path, calling_webhook(yaml.safe_load(CONFIG.read_text()), told.url)
        ) as alertmanager,
    ):
        async with alertmanager.session.post(
            f"{alertmanager.url}/api/v2/alerts", json=[{"labels": labels} for labels in firing]
        ) as response:
            assert 200 == response.status, await response.text()
        for labels in without(firing, kept_back):
            await told.until(labels["alertname"], "firing")
        held = await alertmanager.alerts()

    inhibited = [found["labels"] for found in held if found["status"]["inhibitedBy"]]  # type: ignore[index,call-overload]  # its API
    assert texts(kept_back) == texts(inhibited)
    assert texts(without(firing, kept_back)) == texts(found.labels for found in told.alerts)


def without(alerts: Iterable[dict[str, str]], others: list[dict[str, str]]) -> list[dict[str, str]]:
    return [labels for labels in alerts if labels not in others]


def texts(alerts: Iterable[object]) -> list[str]:
    return sorted(json.dumps(labels, sort_keys=True) for labels in alerts)
