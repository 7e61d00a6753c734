"""Runs on the command line: out of the file of a store, and from the page of a running service."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from collector.cli import run_command
from collector.clock import SystemClock
from collector.page import PageServer, Views
from collector.page.page_config import PageConfig
from collector.store.run_database import open_store_file
from collector.store.run_queries import RunQueries
from processors.annotation.run_line import run_to_json
from processors.criteria.agent_criteria import CriteriaSet
from tests.support.stored_runs import filled, graded_run

TRACE = f"{20:032x}"


@pytest.fixture
async def sources(tmp_path: Path) -> AsyncIterator[list[list[str]]]:
    """The arguments that name the same runs: their file, a service file, and a page that asks for a token."""
    path = tmp_path / "runs.db"
    filled([graded_run(number) for number in range(1, 31)], path)
    (tmp_path / "tracegrade.yaml").write_text("store: {path: runs.db}")
    (tmp_path / "tokens.txt").write_text("sesame\n")
    config = PageConfig.model_validate(
        {"endpoint": "127.0.0.1:0", "auth": {"bearer_token_file": tmp_path / "tokens.txt"}}
    )
    clock = SystemClock()
    server = PageServer(config, Views(RunQueries(open_store_file(path)), lambda: CriteriaSet(), clock))
    await server.start()
    yield [
        ["--store", str(path)],
        ["--config", str(tmp_path / "tracegrade.yaml")],
        ["--endpoint", server.endpoint, "--token-file", str(tmp_path / "tokens.txt")],
    ]
    await server.shutdown(clock.monotonic() + 5)


@pytest.mark.parametrize("source", range(3), ids=["file", "configuration", "service"])
async def test_runs_are_found_and_shown(
    sources: list[list[str]], source: int, capsys: pytest.CaptureFixture[str]
) -> None:
    async def printed(*arguments: str, code: int = 0) -> str:
        assert code == await asyncio.to_thread(run_command, [*arguments, *sources[source]])
        return capsys.readouterr().out

    agents = await printed("agents")
    assert "weather_agent" in agents
    assert "30" in agents
    found = await printed("runs", "--evaluation", "args", "--outcome", "fail")
    assert [f"{number:032x}" for number in (30, 20, 10)] == [
        line.split()[-1] for line in found.splitlines()[1:]
    ]
    as_json = await printed("runs", "--text", "number20", "--json")
    assert [run_to_json(graded_run(20))] == [json.loads(line) for line in as_json.splitlines()]
    assert "" == await printed("runs", "--since", "1h")
    shown = await printed("show", TRACE.upper())
    assert "FAIL" in shown
    assert "get_temperature" in shown
    assert as_json == await printed("show", TRACE, "--json")
    assert "" == await printed("show", "00", code=1)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["runs"], "expected --store, --endpoint, or --config with store.path"),
        (["agents", "--store", "nowhere.db"], "nowhere.db: no such file"),
        (["agents", "--endpoint", "127.0.0.1:1"], "no answer from http://127.0.0.1:1"),
    ],
)
def test_what_cannot_be_read_is_told_in_a_line(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 2 == run_command(arguments)

    assert expected in capsys.readouterr().err


async def test_a_token_is_needed_where_the_page_asks_for_one(
    sources: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert 2 == await asyncio.to_thread(run_command, ["agents", *sources[2][:2]])

    assert "401" in capsys.readouterr().err
