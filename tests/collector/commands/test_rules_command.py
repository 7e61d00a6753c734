"""`tracegrade rules` as people call it."""

import json
from pathlib import Path

import pytest
import yaml

from collector.cli import run_command
from collector.criteria import default_file
from collector.tools.alerting.objectives import Thresholds
from collector.tools.alerting.rules import RuleInputs, rules_text

CRITERIA = str(default_file("criteria/weather.example.yaml"))
OBJECTIVES = default_file("objectives.example.yaml")


def write(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def test_without_arguments_it_writes_what_ships(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == run_command(["rules"])

    assert rules_text(RuleInputs()) == capsys.readouterr().out


def test_everything_that_can_be_given_is_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    baselines = {
        "release": "2026-11-01",
        "created": "2026-11-01T00:00:00Z",
        "agents": {"weather_agent": {"forecast-order": {"mean": 0.93, "samples": 1200}}},
    }
    output = tmp_path / "rules.yaml"
    code = run_command(
        [
            *("rules", "--criteria", CRITERIA, "--objectives", str(OBJECTIVES)),
            *("--baselines", write(tmp_path, "baselines.json", json.dumps(baselines))),
            *("--volume", write(tmp_path, "volume.yaml", "agents: {weather_agent: {forecast-order: 3}}")),
            *("--runbook-base", "https://runbooks.test/", "--dashboard-base", "https://grafana.test"),
            *("--output", str(output)),
        ]
    )

    text, told = output.read_text(), capsys.readouterr()
    assert 0 == code
    assert "" == told.out
    assert yaml.safe_load(text)
    for part in (
        "vector(0.93)",
        "* 0.99",
        "mean1d",
        'scope: "evaluation"',
        '"https://runbooks.test#agentevaluationerrors"',
        "https://grafana.test/d/tracegrade-one-agent?",
    ):
        assert part in text, part
    assert "can never fire for weather_agent: one-look-each" in told.err
    assert "in shadow: humidity-is-plausible (weather_agent)" in told.err
    assert "over 1h and 5m can hardly fire for weather_agent: forecast-order" in told.err


def test_links_to_the_page_are_those_of_the_service_file_unless_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write(tmp_path, "tracegrade.yaml", "page: {public_url: 'https://page.test/'}\n")

    assert 0 == run_command(["rules"])
    assert "page_url" not in capsys.readouterr().out
    assert 0 == run_command(["rules", "--config", config])
    assert '"https://page.test/find?agent=' in capsys.readouterr().out
    assert 0 == run_command(["rules", "--config", config, "--page-base", "https://other.test"])
    assert "https://page.test" not in capsys.readouterr().out


def test_the_example_says_the_defaults() -> None:
    written = yaml.safe_load(OBJECTIVES.read_text())["thresholds"]

    assert Thresholds().model_dump() == written


def test_all_problems_of_all_files_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    objectives = write(tmp_path, "objectives.yaml", "agents:\n  a:\n    evaluations:\n      b: {targt: 2}\n")
    baselines = write(
        tmp_path, "baselines.yaml", "release: x\ncreated: y\nagents: {a: {b: {mean: 2, samples: 1}}}"
    )
    volume = write(tmp_path, "volume.yaml", "agents: {a: {b: -1}}")

    code = run_command(["rules", "--objectives", objectives, "--baselines", baselines, "--volume", volume])

    told = capsys.readouterr()
    assert 2 == code
    assert "" == told.out
    assert f'{objectives}:4: agents.a.evaluations.b.targt: unknown key; did you mean "target"?' in told.err
    assert f'{objectives}:4: agents.a.evaluations.b: missing key "target"' in told.err
    assert f"{baselines}:3: agents.a.b.mean: expected a number of at most 1" in told.err
    assert f"{volume}:1: agents.a.b: expected a number of at least 0" in told.err


def test_objectives_for_what_no_criteria_evaluate_are_problems(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    objectives = write(
        tmp_path,
        "objectives.yaml",
        "agents:\n"
        "  weather_agnt:\n    evaluations:\n      '*': {target: 0.9}\n"
        "  wether_agent: {evaluations: {}}\n"
        "  weather_agent:\n    evaluations:\n      forecast-oder: {target: 0.9}\n"
        "      'tool-*': {target: 0.9}\n",
    )

    code = run_command(["rules", "--criteria", CRITERIA, "--objectives", objectives])

    lines = capsys.readouterr().err.splitlines()
    assert 2 == code
    assert [
        f"{objectives}:5: agents.wether_agent: no criteria apply to this agent; "
        'did you mean "weather_agent"?',
        f"{objectives}:8: agents.weather_agent.evaluations.forecast-oder: no criteria give this evaluation "
        'to the agent; did you mean "forecast-order"?',
    ] == lines


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--time-scale", "2"], "expected a fraction such as 1/600"),
        (["--runbook-base", "ftp://x"], "expected http://"),
        (["--volume", "x", "--prometheus", "http://x"], "not allowed with"),
    ],
)
def test_arguments_that_cannot_be_are_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        run_command(["rules", *arguments])

    assert 2 == stopped.value.code
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--objectives", "--baselines", "--volume", "--criteria"])
def test_a_file_that_is_not_there_is_named(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == run_command(["rules", option, "no-such-file.yaml"])

    assert "no-such-file.yaml: " in capsys.readouterr().err


def test_a_server_that_does_not_answer_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == run_command(["rules", "--prometheus", "http://127.0.0.1:9"])

    assert "http://127.0.0.1:9: no answer" in capsys.readouterr().err


def test_an_output_that_cannot_be_written_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 2 == run_command(["rules", "--output", str(tmp_path / "no" / "such")])

    assert "cannot write" in capsys.readouterr().err
