"""What `tracegrade baseline` pins, from a Prometheus server and from recorded traffic."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp.web
import pytest
import pytest_asyncio

from collector.cli import run_command
from collector.commands.baseline import pin
from collector.tools.alerting.objectives import PinnedScore
from tests.support.backfill import PastSeries, write_blocks
from tests.support.prometheus_server import PrometheusServer

HOUR = 3600.0
DAYS = 3


def past_scores(agent: str, evaluation: str, mean: float, an_hour: int, **labels: str) -> list[PastSeries]:
    """Sum and count of a score histogram that grew by `an_hour` scores every hour until now."""
    hours = DAYS * 24
    start = time.time() - hours * HOUR
    of = {
        "job": "tracegrade",
        "gen_ai_agent_name": agent,
        "gen_ai_evaluation_name": evaluation,
        **labels,
    }
    counts = [(start + hour * HOUR, float(hour * an_hour)) for hour in range(hours + 1)]
    return [
        PastSeries("gen_ai_evaluation_score_count", of, counts),
        PastSeries("gen_ai_evaluation_score_sum", of, [(at, count * mean) for at, count in counts]),
    ]


async def command(*arguments: str) -> int:
    """`tracegrade baseline` with `arguments`, while the loop goes on; its exit code."""
    return await asyncio.to_thread(run_command, ["baseline", "--release", "r1", *arguments])


@pytest_asyncio.fixture
async def prometheus(tmp_path: Path) -> AsyncIterator[PrometheusServer]:
    series = [
        *past_scores("weather_agent", "order", 0.9, 10, gen_ai_agent_version="1.0", instance="a"),
        *past_scores("weather_agent", "order", 0.7, 10, gen_ai_agent_version="1.0", instance="b"),
        *past_scores("weather_agent", "order", 0.2, 30, gen_ai_agent_version="1.1", instance="a"),
        *past_scores("weather_agent", "rare", 0.5, 0, gen_ai_agent_version="1.0", instance="a"),
        *past_scores("support_agent", "refunds", 1.0, 1, instance="a", env="staging"),
        *past_scores("__overflow__", "order", 0.1, 50, instance="a"),
    ]
    blocks = await write_blocks(series, tmp_path)
    async with PrometheusServer(tmp_path, {}, blocks=[blocks]) as server:
        yield server


@pytest.mark.requires_program("prometheus")
@pytest.mark.requires_program("promtool")
async def test_means_on_a_server_are_over_all_scores_of_the_window(
    prometheus: PrometheusServer, capsys: pytest.CaptureFixture[str]
) -> None:
    code = await command("--prometheus", prometheus.url)

    printed = capsys.readouterr()
    assert 0 == code
    pinned = json.loads(printed.out)
    assert "r1" == pinned["release"]
    assert ["support_agent", "weather_agent"] == list(pinned["agents"])
    assert ["order"] == list(pinned["agents"]["weather_agent"])
    order = pinned["agents"]["weather_agent"]["order"]
    assert pytest.approx((10 * 0.9 + 10 * 0.7 + 30 * 0.2) / 50) == order["mean"]
    assert pytest.approx(50 * 24 * DAYS, rel=0.05) == order["samples"]
    assert {"mean": 1.0, "samples": pytest.approx(24 * DAYS, rel=0.05)} == pinned["agents"]["support_agent"][
        "refunds"
    ]


@pytest.mark.requires_program("prometheus")
@pytest.mark.requires_program("promtool")
async def test_version_window_and_labels_choose_what_counts(
    prometheus: PrometheusServer, capsys: pytest.CaptureFixture[str]
) -> None:
    codes = [
        await command("--prometheus", prometheus.url, *arguments)
        for arguments in (
            ("--version", "1.0", "--window", "1d"),
            ("--version", "1.0", "--window", "1d", "--label", "instance=b"),
            ("--label", "env=staging"),
        )
    ]

    decoder, text = json.JSONDecoder(), capsys.readouterr().out.strip()
    found = []
    while text:
        document, end = decoder.raw_decode(text)
        found.append(document["agents"])
        text = text[end:].strip()
    of_version, of_instance, of_environment = found
    assert [0, 0, 0] == codes
    assert pytest.approx(0.8) == of_version["weather_agent"]["order"]["mean"]
    assert pytest.approx(20 * 24, rel=0.1) == of_version["weather_agent"]["order"]["samples"]
    assert pytest.approx(0.7) == of_instance["weather_agent"]["order"]["mean"]
    assert ["support_agent"] == list(of_environment)


@pytest.mark.requires_program("prometheus")
@pytest.mark.requires_program("promtool")
async def test_evaluations_with_too_few_scores_are_named_and_left_out(
    prometheus: PrometheusServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "baseline.json"
    output.write_text("old")

    code = await command("--prometheus", prometheus.url, "--min-samples", "1000", "--output", str(output))

    printed = capsys.readouterr()
    assert 0 == code
    assert "" == printed.out
    assert ["weather_agent"] == list(json.loads(output.read_text())["agents"])
    assert "support_agent: refunds: 7" in printed.err
    assert "1 scores pinned, 1 left out" in printed.err
    assert [output] == list(tmp_path.glob("baseline*"))


@pytest.mark.requires_program("prometheus")
@pytest.mark.requires_program("promtool")
async def test_without_a_score_nothing_is_written(
    prometheus: PrometheusServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "baseline.json"
    of_server = ("--prometheus", prometheus.url, "--output", str(output))

    unknown = await command(*of_server, "--version", "7")
    few = await command(*of_server, "--min-samples", "1000000")

    assert (2, 2) == (unknown, few)
    printed = capsys.readouterr().err
    assert "no scores of version 7: nothing was written" in printed
    assert "no evaluation has enough scores: nothing was written" in printed
    assert not output.exists()


@pytest.mark.requires_program("prometheus")
@pytest.mark.requires_program("promtool")
async def test_what_the_server_refuses_is_told_in_its_own_words(
    prometheus: PrometheusServer, capsys: pytest.CaptureFixture[str]
) -> None:
    code = await command("--prometheus", prometheus.url, "--window", "9999999999w")

    assert 2 == code
    assert f"{prometheus.url}: status 400: " in capsys.readouterr().err


async def test_a_server_that_does_not_answer_is_named_without_credentials(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = await command("--prometheus", "http://me:secret@127.0.0.1:1/prometheus")

    printed = capsys.readouterr().err
    assert 2 == code
    assert "http://127.0.0.1:1/prometheus: no answer: " in printed
    assert "secret" not in printed


async def test_a_server_that_is_no_prometheus_is_told_and_gets_the_credentials(
    capsys: pytest.CaptureFixture[str],
) -> None:
    seen = []

    async def answer(request: aiohttp.web.Request) -> aiohttp.web.Response:
        seen.append((request.path, request.headers["Authorization"]))
        return aiohttp.web.Response(text="<html>")

    application = aiohttp.web.Application()
    application.router.add_post("/{path:.*}", answer)
    runner = aiohttp.web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await aiohttp.web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]

    code = await command("--prometheus", f"http://me:p%40ss@127.0.0.1:{port}/prometheus/")
    await runner.cleanup()

    assert 2 == code
    assert "this is not the answer of a Prometheus server" in capsys.readouterr().err
    assert [("/prometheus/api/v1/query", "Basic bWU6cEBzcw==")] == seen


def recorded(folder: Path, *runs: dict[str, Any]) -> list[str]:
    """Arguments that replay `runs` by criteria with a live and a shadow evaluation."""
    entry = {"evaluator": "tool-call-count", "criteria": {"tool_calls_count": {"refund": ["=", 0]}}}
    evaluations = [{**entry, "name": "never"}, {**entry, "name": "maybe", "stage": "shadow"}]
    criteria = folder / "criteria.json"
    criteria.write_text(json.dumps({"agents": {"a": {"evaluations": evaluations}}}))
    traffic = folder / "a.runs.jsonl"
    traffic.write_text("".join(json.dumps(run) + "\n" for run in runs))
    return [str(traffic), "--criteria", str(criteria)]


def run_of(version: str, *tools: str) -> dict[str, Any]:
    return {
        "agent": {"name": "a", "version": version},
        "tool_calls": [{"name": tool} for tool in tools],
    }


async def test_means_of_recorded_traffic_leave_out_what_is_in_shadow(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    traffic = recorded(tmp_path, run_of("1", "refund"), run_of("1", "look"), run_of("2", "look"))

    all_versions = await command(*traffic, "--min-samples", "3")
    of_all = json.loads(capsys.readouterr().out)["agents"]
    of_one = await command(*traffic, "--min-samples", "2", "--version", "1")
    one_version = json.loads(capsys.readouterr().out)["agents"]

    assert (0, 0) == (all_versions, of_one)
    assert {"a": {"never": {"mean": 0.666667, "samples": 3}}} == of_all
    assert {"a": {"never": {"mean": 0.5, "samples": 2}}} == one_version


async def test_a_file_that_cannot_be_written_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "nowhere" / "baseline.json"

    code = await command(*recorded(tmp_path, run_of("1")), "--min-samples", "1", "--output", str(output))

    assert 2 == code
    assert f"cannot write {output}: No such file or directory" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "expected either --prometheus URL or recorded traffic in PATH"),
        (("x.jsonl", "--prometheus", "http://h"), "expected either --prometheus URL or recorded traffic"),
        (("x.jsonl", "--window", "1d"), "--window cannot be used with PATH"),
        (("--prometheus", "http://h", "--criteria", "c"), "--criteria cannot be used with --prometheus"),
        (("--prometheus", "file:///etc/passwd"), "no URL of a Prometheus server"),
        (("--prometheus", "http://h:port"), "no URL of a Prometheus server"),
        (("no-such-file.jsonl",), "no-such-file.jsonl"),
    ],
)
async def test_arguments_that_name_no_source_of_scores_are_refused(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = await command(*arguments)

    assert 2 == code
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "argument",
    [
        "--window=7",
        "--window=0s",
        "--window=1d]",
        "--label=job",
        "--label=a-b=c",
        "--min-samples=0",
        "--release=",
    ],
)
def test_malformed_arguments_are_refused(argument: str) -> None:
    with pytest.raises(SystemExit) as refused:
        run_command(["baseline", "--release", "r1", "--prometheus", "http://127.0.0.1:1", argument])

    assert 2 == refused.value.code


def test_a_baseline_is_dated_in_utc_and_ordered_by_name() -> None:
    half, whole = PinnedScore(mean=0.123456789, samples=20), PinnedScore(mean=1, samples=20)
    scores = {("b", "y"): half, ("b", "x"): whole, ("a", "z"): whole}

    baseline, _ = pin(scores, release="r", unix_nano=1_769_817_600_999_999_999)

    read = json.loads(baseline.model_dump_json())
    assert "2026-01-31T00:00:00Z" == read["created"]
    assert ["a", "b"] == list(read["agents"])
    assert {"x": {"mean": 1.0, "samples": 20}, "y": {"mean": 0.123457, "samples": 20}} == read["agents"]["b"]
    assert ["x", "y"] == list(read["agents"]["b"])


def test_names_that_the_file_cannot_hold_are_left_out() -> None:
    score = PinnedScore(mean=1, samples=20)

    baseline, left_out = pin(
        {("", "e"): score, ("a" * 201, "e"): score, ("b", "e"): score}, release="r", unix_nano=0
    )

    assert ["b"] == list(baseline.agents)
    assert 2 == len(left_out)
