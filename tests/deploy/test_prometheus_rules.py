"""The rules and the Prometheus configuration that ship: sound, tested, and reading only what there is."""

import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from collector.cli import run_command
from collector.telemetry import Metrics
from collector.tools.alerting import RuleInputs, TimeScale, rules_text
from collector.tools.alerting.objectives import PAIRS, BaselinesFile, ObjectivesFile
from tests.support.metric_table import OF_THE_PROCESS, OF_THE_SCRAPE, series_names
from tests.support.promql_selectors import read

PROMETHEUS = Path(__file__).parents[2] / "deploy" / "prometheus"
RULES = PROMETHEUS / "rules" / "tracegrade.yaml"
RUNBOOKS = Path(__file__).parents[2] / "docs" / "runbooks.md"
TESTS = sorted((PROMETHEUS / "tests").glob("*.yaml"))

ALERTS = {
    "AgentEvaluationScoreBelowBaseline",
    "AgentEvaluationScoreRegression",
    "AgentEvaluationObjectiveBurn",
    "AgentVersionWorseThanPrevious",
    "AgentRunRegression",
    "AgentEvaluationsSilent",
    "AgentEvaluationErrors",
    "AgentEvaluationsNotEvaluated",
    "AgentEvaluationNeverDecides",
    "AgentEvaluationFailingInARow",
    "AgentRunaway",
    "AgentFleetRegression",
    "TracegradeSpansDropped",
    "TracegradeLogRecordsDropped",
    "TracegradeRunsNotStored",
    "TracegradeBufferNearLimit",
    "TracegradeTracesInterrupted",
    "TracegradeJournalUnhealthy",
    "TracegradeKafkaKeysUntrusted",
    "TracegradeKafkaLag",
    "TracegradeKafkaPaused",
    "TracegradeKafkaRecordsLost",
    "TracegradeTracesQuarantined",
    "TracegradePeersUncertain",
    "TracegradeVerdictsContradicted",
    "TracegradeQueueNearLimit",
    "TracegradeCriteriaReloadFailed",
    "TracegradeDown",
    "TracegradeAccountingError",
    "TracegradeSelfCheckFailing",
    "TracegradeGradingUnhealthy",
}

OF_PROMETHEUS = {
    **OF_THE_PROCESS,
    "ALERTS": {"alertname", "alertstate", "gen_ai_agent_name"},
}
"""The series that Prometheus makes, and its client, with the labels that rules may read."""

OF_DEPLOYMENTS = {"pod", "service_version"}
"""Labels that a deployment may add: by its service discovery, or as resource attributes of agents."""

BASELINE = "agent:gen_ai_evaluation_score:baseline"
"""Recorded only where a release is pinned."""


@cache
def rules() -> list[dict[str, str]]:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def alerts() -> list[dict[str, dict[str, str]]]:
    return [rule for rule in rules() if "alert" in rule]  # type: ignore[misc]  # labels are mappings


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_rules_in_the_repository_are_the_ones_that_are_generated() -> None:
    assert rules_text(RuleInputs()) == RULES.read_text(), (
        "stale: .venv/bin/tracegrade rules --output deploy/prometheus/rules/tracegrade.yaml"
    )


@pytest.mark.requires_program("promtool")
def test_prometheus_accepts_the_rules_and_finds_nothing_to_object() -> None:
    run("promtool", "check", "rules", "--lint-fatal", str(RULES))


@pytest.mark.requires_program("promtool")
def test_prometheus_accepts_its_configuration() -> None:
    run("promtool", "check", "config", str(PROMETHEUS / "prometheus.yaml"))


@pytest.mark.requires_program("promtool")
@pytest.mark.parametrize("file", TESTS, ids=lambda path: path.stem)
def test_the_alerts_fire_when_they_are_to_and_only_then(file: Path) -> None:
    run("promtool", "test", "rules", str(file))


def test_there_is_every_alert_and_no_other() -> None:
    assert {str(alert["alert"]) for alert in alerts()} == ALERTS


@pytest.mark.parametrize("alert", sorted(ALERTS))
def test_every_alert_is_tested_firing_and_quiet(alert: str) -> None:
    expectations = [
        (expectation["alertname"], bool(expectation["exp_alerts"]))
        for file in TESTS
        for test in yaml.safe_load(file.read_text())["tests"]
        for expectation in test["alert_rule_test"]
    ]

    assert (alert, True) in expectations
    assert (alert, False) in expectations


def test_every_series_that_a_rule_reads_exists() -> None:
    known = {name for instrument in Metrics().instruments() for name in series_names(instrument)}
    known |= {rule["record"] for rule in rules() if "record" in rule} | set(OF_PROMETHEUS) | {BASELINE}

    used = {
        name for rule in rules() for selector in read(rule["expr"]).selectors for name in selector.metrics
    }

    assert set() == used - known


def test_every_label_that_a_rule_matches_or_groups_by_exists() -> None:
    metrics = Metrics().instruments()
    known = OF_THE_SCRAPE | OF_DEPLOYMENTS | {"release", "previous_version"}
    known |= {label for instrument in metrics for label in instrument.labels}
    known |= set().union(*OF_PROMETHEUS.values())

    used = {label for rule in rules() for label in read(rule["expr"]).labels}
    matched = {
        label
        for rule in rules()
        for selector in read(rule["expr"]).selectors
        for label, _, _ in selector.matchers
    }

    assert set() == (used | matched) - known


def test_every_label_that_a_rule_matches_in_a_scraped_series_is_one_of_it() -> None:
    labels = {
        name: {*instrument.labels, *OF_THE_SCRAPE}
        for instrument in Metrics().instruments()
        for name in series_names(instrument)
    }

    unknown = {
        (name, label)
        for rule in rules()
        for selector in read(rule["expr"]).selectors
        for name in selector.metrics
        for label, _, _ in selector.matchers
        if name in labels and label not in labels[name]
    }

    assert set() == unknown


def test_every_recorded_series_names_its_level_and_its_operation() -> None:
    recorded = [rule["record"] for rule in rules() if "record" in rule]

    assert [] == [
        name for name in recorded if not re.fullmatch(r"(agent|agent_version|job):[a-z_]+:[a-z0-9_]+", name)
    ]


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: str(alert["alert"]))
def test_every_alert_says_how_loud_it_is_and_where_to_look(alert: dict[str, dict[str, str]]) -> None:
    name, labels, annotations = str(alert["alert"]), alert.get("labels", {}), alert["annotations"]
    expression = str(alert["expr"])

    is_watched = "watched" in labels  # of advisory evaluations and those in shadow the rate alone alerts
    assert is_watched == ("advisory" in expression)
    assert labels.get("severity") in ("page", "ticket") or re.search(r'severity=~?"[a-z|]+"', expression)
    assert {"summary", "description", "runbook_url", "dashboard_url"} == set(annotations)
    assert annotations["runbook_url"].endswith(f"/docs/runbooks.md#{name.lower()}")
    assert "/d/tracegrade-" in annotations["dashboard_url"]


def test_there_is_a_section_of_the_runbooks_for_every_alert_and_no_other() -> None:
    headings = re.findall(r"^## (.*)$", RUNBOOKS.read_text(), re.MULTILINE)

    assert sorted(ALERTS) == sorted(headings)


@pytest.mark.parametrize("alert", sorted(ALERTS))
def test_every_runbook_says_what_to_look_at_and_what_to_do(alert: str) -> None:
    section = RUNBOOKS.read_text().partition(f"\n## {alert}\n")[2].partition("\n## ")[0]

    for part in ("**What it means.**", "**Look at.**", "**Do.**", "**False alarm.**"):
        assert part in section, part


def test_every_query_of_the_runbooks_reads_series_that_exist() -> None:
    known = {name for instrument in Metrics().instruments() for name in series_names(instrument)}
    known |= {rule["record"] for rule in rules() if "record" in rule} | set(OF_PROMETHEUS) | {BASELINE}

    queries = re.findall(r"```promql\n(.*?)```", RUNBOOKS.read_text(), re.DOTALL)
    used = {
        name
        for query in queries
        for line in query.strip().split("\n")
        for selector in read(line).selectors
        for name in selector.metrics
    }

    assert len(queries) >= len(ALERTS) / 2
    assert set() == used - known


_OBJECTIVES = ObjectivesFile.model_validate(
    {
        "agents": {
            "a": {"evaluations": {"*": {"target": 0.9}, "x": {"target": 0.99, "severity": "page"}}},
            "b": {"evaluations": {"y": {"target": 0.99, "severity": "ticket"}}},
        }
    }
)
_GENERATED = {
    "as shipped": RuleInputs(),
    "with everything": RuleInputs(
        objectives=_OBJECTIVES,
        baselines=BaselinesFile.model_validate(
            {
                "release": "1.0",
                "created": "2026-01-31T08:00:00Z",
                "agents": {"a": {"x": {"mean": 0.9, "samples": 100}}},
            }
        ),
        volume={("a", "x"): 1.0, ("b", "y"): 0.2},
        unconditional=[("a", "x")],
        scale=TimeScale.parse("1/600"),
    ),
}


def generated(name: str) -> list[dict[str, Any]]:
    groups = yaml.safe_load(rules_text(_GENERATED[name]))["groups"]
    return [rule for group in groups for rule in group["rules"] if "alert" in rule]


@pytest.mark.parametrize("name", _GENERATED)
def test_alerts_on_agents_have_the_severity_of_the_criteria(name: str) -> None:
    burns = "AgentEvaluationObjectiveBurn"
    for rule in generated(name):
        labels, expression = rule.get("labels", {}), rule["expr"]
        if rule["alert"].startswith("Tracegrade") or rule["alert"] == "AgentFleetRegression":
            assert labels["severity"] in ("page", "ticket")  # about tracegrade, or about one common cause
        elif rule["alert"] == burns and labels.get("severity") is not None:
            slow = labels["window"].split("/")[0] not in _fast_windows(name)
            asked = labels["target"] == "0.99"
            assert asked or (
                slow and labels["severity"] == "ticket"
            )  # the objective says so; slow is no page
        else:
            assert "severity" not in labels, rule["alert"]
            taken = ("group_left (severity, owner, contact)", ", severity, owner, contact)")
            assert any(text in expression for text in taken), expression


def _fast_windows(name: str) -> set[str]:
    scale = _GENERATED[name].scale
    return {scale.scaled(pair.long) for pair in PAIRS if pair.is_fast}


def test_at_another_scale_alerts_on_the_service_itself_stay_as_they_are() -> None:
    def of_the_service(scale: str) -> list[dict[str, Any]]:
        groups = yaml.safe_load(rules_text(RuleInputs(scale=TimeScale.parse(scale))))["groups"]
        return [
            rule
            for group in groups
            for rule in group["rules"]
            if str(rule.get("alert", "")).startswith("Tracegrade")
        ]

    assert len(of_the_service("1")) > 10
    assert of_the_service("1") == of_the_service("1/600")
    assert rules_text(RuleInputs()) != rules_text(RuleInputs(scale=TimeScale.parse("1/600")))


def test_the_help_of_the_scale_says_what_is_to_be_shortened_with_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        run_command(["rules", "--help"])

    told = " ".join(capsys.readouterr().out.split())
    for word in ("scrape_interval", "evaluation_interval", "lookback-delta", "group_wait", "root_grace"):
        assert word in told
    assert "those on tracegrade itself keep theirs" in told
