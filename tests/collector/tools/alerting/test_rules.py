"""The generator: what goes into a rule file, at which scale, and that Prometheus takes it."""

import json
import re
import subprocess
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.tools.alerting.objectives import BaselinesFile, ObjectivesFile
from collector.tools.alerting.rules import RuleInputs, never_firing, rules_text
from collector.tools.alerting.windows import TimeScale
from tests.support.promql_selectors import read

BURN = "AgentEvaluationObjectiveBurn"
DURATION = re.compile(r"\b(?:\d+(?:ms|[dhms]))+\b")


def rules(inputs: RuleInputs) -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(rules_text(inputs))["groups"] for rule in group["rules"]]


def alerts(inputs: RuleInputs, name: str) -> list[dict[str, Any]]:
    return [rule for rule in rules(inputs) if rule.get("alert") == name]


def objectives(*targets: tuple[float, str | None]) -> ObjectivesFile:
    return ObjectivesFile.model_validate(
        {
            "agents": {
                f"agent-{index}": {"evaluations": {"order": {"target": target, "severity": severity}}}
                for index, (target, severity) in enumerate(targets)
            }
        }
    )


FULL = RuleInputs(
    objectives=objectives((0.99, "page"), (0.9, None), (0.99, None)),
    baselines=BaselinesFile.model_validate(
        {
            "release": "2026-11-01",
            "created": "2026-11-01T00:00:00Z",
            "agents": {"a": {"order": {"mean": 0.93, "samples": 1200}, "rare": {"mean": 0.5, "samples": 3}}},
        }
    ),
    volume={("a", "order"): 3.0, ("b", "order"): 3.0, ("b", "args"): 0.3, ("c", "order"): 0.01},
    unconditional=[("a", "order"), ("b", "args")],
)


def with_scale(inputs: RuleInputs, scale: TimeScale) -> RuleInputs:
    return RuleInputs(
        objectives=inputs.objectives,
        baselines=inputs.baselines,
        volume=inputs.volume,
        unconditional=inputs.unconditional,
        scale=scale,
    )


@pytest.mark.requires_program("promtool")
@pytest.mark.parametrize("scale", ["1", "1/600"])
def test_prometheus_takes_what_every_argument_adds(tmp_path: Path, scale: str) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(rules_text(with_scale(FULL, TimeScale.parse(scale))))

    done = subprocess.run(
        ["promtool", "check", "rules", "--lint-fatal", str(file)], capture_output=True, text=True, check=False
    )

    assert 0 == done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("inputs", [RuleInputs(), FULL], ids=["shipped", "full"])
def test_the_scale_changes_durations_of_rules_on_agents_and_nothing_else(inputs: RuleInputs) -> None:
    whole, part = rules(inputs), rules(with_scale(inputs, TimeScale(Fraction(1, 600))))

    assert [rule.get("record") for rule in whole] == [rule.get("record") for rule in part]
    for one, other in zip(whole, part, strict=True):
        assert without_durations(one) == without_durations(other)
        of_the_service = str(one.get("alert", "")).startswith("Tracegrade")
        assert durations_in(one, 1 if of_the_service else 600) == durations_in(other, 1)


def windows_of(rule: dict[str, Any]) -> list[str]:
    """The durations in brackets, after `offset` and in `for`: names of series hold some as well."""
    expression = rule["expr"]
    found = re.findall(r"offset (\w+)", expression)
    for bracket in re.findall(r"\[([^\]]+)\]", expression):
        found += bracket.split(":")
    return [*found, *([rule["for"]] if "for" in rule else [])]


def durations_in(rule: dict[str, Any], divisor: int) -> list[float]:
    return [round(milliseconds(window) / divisor, 3) for window in windows_of(rule)]


def milliseconds(duration: str) -> float:
    units = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
    return sum(int(number) * units[unit] for number, unit in re.findall(r"(\d+)(ms|[dhms])", duration))


def without_durations(rule: dict[str, Any]) -> str:
    text = re.sub(r"(timestamp_seconds) > [0-9.]+", r"\1 > T", json.dumps(rule, sort_keys=True))
    return DURATION.sub("T", text)


def test_only_pairs_that_can_fire_become_rules() -> None:
    for rule in alerts(FULL, BURN):
        target = float(rule["labels"]["target"])
        thresholds = {float(found) for found in re.findall(r"ratio_rate\w+ > ([0-9.]+)", rule["expr"])}

        assert 1 == len(thresholds)
        assert max(thresholds) < 1, (target, rule["labels"]["window"])

    by_target = {
        target: {
            rule["labels"]["window"] for rule in alerts(FULL, BURN) if rule["labels"]["target"] == target
        }
        for target in ("0.99", "0.9")
    }
    assert {"1h/5m", "6h/30m", "1d/2h", "3d/6h"} == by_target["0.99"]
    assert {"6h/30m", "1d/2h", "3d/6h"} == by_target["0.9"]
    assert any("1h and 5m can never fire for agent-1: order" in line for line in never_firing(FULL))


def test_a_fast_burn_is_as_loud_as_its_objective_says_and_a_slow_one_a_ticket() -> None:
    loud = {
        (rule["labels"]["window"], rule["labels"].get("severity"))
        for rule in alerts(FULL, BURN)
        if rule["labels"]["target"] == "0.99"
    }

    assert {
        ("1h/5m", "page"),
        ("1h/5m", None),
        ("6h/30m", "page"),
        ("6h/30m", None),
        ("1d/2h", "ticket"),
        ("3d/6h", "ticket"),
    } == loud


def test_volume_adds_windows_for_those_alone_who_need_them() -> None:
    recorded = {rule["record"]: rule["expr"] for rule in rules(FULL) if "record" in rule}
    windows = {rule["labels"]["window"] for rule in alerts(FULL, "AgentEvaluationScoreBelowBaseline")}

    assert {"1h", "1d", "7d"} == windows
    assert (
        'gen_ai_agent_name=~"a|b",gen_ai_evaluation_name="order"'
        in recorded["agent:gen_ai_evaluation_score:mean1d"]
    )
    assert (
        'gen_ai_agent_name="b",gen_ai_evaluation_name="args"'
        in recorded["agent:gen_ai_evaluation_score:mean7d"]
    )
    assert any("score alerts can hardly fire for c: order" in line for line in never_firing(FULL))


def test_only_scores_of_enough_results_are_pinned() -> None:
    pinned = [rule for rule in rules(FULL) if rule.get("record") == "agent:gen_ai_evaluation_score:baseline"]

    assert [
        {
            "record": "agent:gen_ai_evaluation_score:baseline",
            "expr": "vector(0.93)",
            "labels": {"gen_ai_agent_name": "a", "gen_ai_evaluation_name": "order", "release": "2026-11-01"},
        }
    ] == pinned


def test_thresholds_are_those_of_the_file() -> None:
    file = ObjectivesFile.model_validate(
        {"thresholds": {"min_results": 7, "not_evaluated": 0.03, "errors": 0.125, "growth": 2}}
    )

    (regression, *_) = alerts(RuleInputs(objectives=file), "AgentEvaluationScoreRegression")
    (not_evaluated,) = alerts(RuleInputs(objectives=file), "AgentEvaluationsNotEvaluated")
    (errors,) = alerts(RuleInputs(objectives=file), "AgentEvaluationErrors")
    (growth, *_) = alerts(RuleInputs(objectives=file), "AgentRunRegression")

    assert 2 == regression["expr"].count(">= 7\n")
    assert 2 == not_evaluated["expr"].count("> 0.03\n")
    assert "> 0.125\n" in errors["expr"]
    assert "> 1 + 2)" in growth["expr"]


NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)


@settings(max_examples=30)
@given(st.lists(st.tuples(NAMES, NAMES), min_size=1, max_size=4, unique=True))
def test_any_name_can_stand_in_objectives_baselines_and_volume(pairs: list[tuple[str, str]]) -> None:
    inputs = RuleInputs(
        objectives=ObjectivesFile.model_validate(
            {"agents": {agent: {"evaluations": {name: {"target": 0.9}}} for agent, name in pairs}}
        ),
        baselines=BaselinesFile.model_validate(
            {
                "release": pairs[0][0],
                "created": "now",
                "agents": {agent: {name: {"mean": 0.5, "samples": 100}} for agent, name in pairs},
            }
        ),
        volume=dict.fromkeys(pairs, 1.0),
        unconditional=pairs,
    )

    found = rules(inputs)

    for rule in found:
        read(rule["expr"])
    pinned = {
        (rule["labels"]["gen_ai_agent_name"], rule["labels"]["gen_ai_evaluation_name"])
        for rule in found
        if rule.get("record") == "agent:gen_ai_evaluation_score:baseline"
    }
    assert set(dict(pairs).items()) == pinned


def test_what_is_advisory_or_in_shadow_is_a_line_for_each_of_both() -> None:
    quiet = {(f"agent-{agent}", f"check-{name}"): "advisory" for agent in range(20) for name in range(14)}
    lines = never_firing(RuleInputs(quiet={**quiet, ("agent-1", "trial"): "in shadow"}))

    assert [
        "only a change of the rate can alert on evaluations that are advisory: check-0 (20 agents), ",
        "only a change of the rate can alert on evaluations that are in shadow: trial (agent-1)",
    ] == [lines[0][:91], lines[1]]
    assert lines[0].endswith("2 more")
