"""What arguments of the generator change, as promtool sees alerts fire."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from collector.tools.alerting.objectives import BaselinesFile, ObjectivesFile
from collector.tools.alerting.rules import RuleInputs, rules_text

BELOW = "AgentEvaluationScoreBelowBaseline"
BURN = "AgentEvaluationObjectiveBurn"
SILENT = "AgentEvaluationsSilent"

pytestmark = pytest.mark.requires_program("promtool")


def labels(agent: str, evaluation: str = "order", **others: str) -> str:
    named = {"job": "tracegrade", "instance": "a", "gen_ai_agent_name": agent}
    if evaluation:
        named["gen_ai_evaluation_name"] = evaluation
    return ",".join(f"{name}={json.dumps(value)}" for name, value in (named | others).items())


def counted(series: str, an_interval: float) -> dict[str, str]:
    return {"series": series, "values": f"0+{an_interval:g}x100"}


def results(agent: str, passes: float, fails: float, evaluation: str = "order") -> list[dict[str, str]]:
    """Scores of 1 and 0, so many an interval."""
    label = "gen_ai_evaluation_score_label"
    return [
        counted(f"gen_ai_evaluation_score_sum{{{labels(agent, evaluation)}}}", passes),
        counted(f"gen_ai_evaluation_score_count{{{labels(agent, evaluation)}}}", passes + fails),
        counted(f"gen_ai_evaluation_results_total{{{labels(agent, evaluation, **{label: 'pass'})}}}", passes),
        counted(f"gen_ai_evaluation_results_total{{{labels(agent, evaluation, **{label: 'fail'})}}}", fails),
    ]


def firing(
    folder: Path, inputs: RuleInputs, series: Sequence[dict[str, str]], time: str, alert: str, interval: str
) -> set[tuple[str, str, str]]:
    """The alerts that fire at a time: (agent, evaluation, severity) by what promtool says it got."""
    (folder / "rules.yaml").write_text(rules_text(inputs))
    expression = (
        f'count by (gen_ai_agent_name, window, severity) (ALERTS{{alertname="{alert}",alertstate="firing"}})'
    )
    test: dict[str, Any] = {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": interval,
        "tests": [
            {
                "interval": interval,
                "input_series": list(series),
                "promql_expr_test": [{"expr": expression, "eval_time": time, "exp_samples": []}],
            }
        ],
    }
    (folder / "test.yaml").write_text(json.dumps(test))
    done = subprocess.run(
        ["promtool", "test", "rules", str(folder / "test.yaml")],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    got = (done.stdout + done.stderr).partition("got:")[2]
    return {
        (found["gen_ai_agent_name"], found.get("window", ""), found["severity"])
        for found in map(_labels, got.split("{")[1:])
    }


def _labels(text: str) -> dict[str, str]:
    pairs = text.partition("}")[0].split(", ")
    return {name: value.strip('"') for name, _, value in (pair.partition("=") for pair in pairs)}


PINNED = BaselinesFile.model_validate(
    {
        "release": "1",
        "created": "2026-11-01T00:00:00Z",
        "agents": {agent: {"order": {"mean": 0.95, "samples": 500}} for agent in ("rare", "busy")},
    }
)


@pytest.mark.parametrize(
    ("volume", "found"),
    [
        ({}, {("busy", "1h", "ticket")}),
        ({("rare", "order"): 6.0}, {("busy", "1h", "ticket"), ("rare", "1d", "ticket")}),
    ],
    ids=["unknown", "known"],
)
def test_a_window_that_fits_the_volume_finds_what_an_hour_is_too_short_for(
    tmp_path: Path, volume: dict[tuple[str, str], float], found: set[tuple[str, str, str]]
) -> None:
    series = [*results("rare", 0.2, 0.8), *results("busy", 2, 8)]

    assert found == firing(tmp_path, RuleInputs(baselines=PINNED, volume=volume), series, "10h", BELOW, "10m")


def test_every_agent_burns_its_own_budget(tmp_path: Path) -> None:
    objectives = ObjectivesFile.model_validate(
        {
            "agents": {
                "strict": {"evaluations": {"order": {"target": 0.99, "severity": "page"}}},
                "lenient_*": {"evaluations": {"*": {"target": 0.5}}},
                "lenient_not": {"evaluations": {"order": {"target": 0.99}}},
            },
            "defaults": None,
        }
    )
    series = [
        *results("strict", 0.8, 0.2),
        *results("lenient_one", 0.8, 0.2),
        *results("lenient_not", 0.8, 0.2),
        *results("without", 0, 1),
    ]

    found = firing(tmp_path, RuleInputs(objectives=objectives), series, "30m", BURN, "1m")

    assert {("strict", "1h/5m", "page"), ("lenient_not", "1h/5m", "ticket")} == found


def test_an_evaluation_that_applies_to_every_run_must_not_be_silent(tmp_path: Path) -> None:
    inputs = RuleInputs(unconditional=[("agent", "order"), ("agent", "args"), ("idle", "order")])
    series = [
        counted(f"tracegrade_agent_runs_total{{{labels('agent', '')}}}", 10),
        *results("agent", 10, 0),
        *(
            {
                "series": f"tracegrade_evaluation_info{{{labels(agent, name, severity='page')}}}",
                "values": "1x100",
            }
            for agent, name in (("agent", "order"), ("agent", "args"), ("idle", "order"))
        ),
    ]

    assert {("agent", "", "page")} == firing(tmp_path, inputs, series, "3h", SILENT, "10m")
    assert set() == firing(tmp_path, RuleInputs(), series, "3h", SILENT, "10m")


def test_an_alert_links_to_exactly_its_runs_on_the_page(tmp_path: Path) -> None:
    inputs = RuleInputs(page_base="https://tracegrade.test")
    (tmp_path / "rules.yaml").write_text(rules_text(inputs))
    alert = "AgentEvaluationFailingInARow"
    of_agent = labels("a&b c")
    test = {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": "30m",
        "tests": [
            {
                "interval": "30m",
                "input_series": [
                    {"series": f"{name}{{{of_agent}}}", "values": "5x400"}
                    for name in ("tracegrade_consecutive_failures", "gen_ai_evaluation_results_total")
                ],
                "alert_rule_test": [{"eval_time": "170h", "alertname": alert, "exp_alerts": []}],
            }
        ],
    }
    (tmp_path / "test.yaml").write_text(json.dumps(test))
    command = ["promtool", "test", "rules", str(tmp_path / "test.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)

    # A week before the alert was evaluated, whenever the link is opened.
    assert (
        'page_url="https://tracegrade.test/find?agent=a%26b+c&evaluation=order&outcome=fail'
        '&since=1970-01-01T02:00:00Z"' in done.stdout + done.stderr
    )
