"""Drafts of criteria on the page: graded apart, one at a time, bounded, and seen by those who may."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from collector.clock import SystemClock
from collector.criteria import CriteriaStore, DraftSettings, EvaluationConfig
from collector.exporters import exporter_types, score_exporters
from collector.page import PageConfig, PageServer, Views
from collector.store import Regrades, RunQueries
from processors.criteria import CriteriaSet
from tests.support.score_backend import Call, ScoreBackend, takes_all
from tests.support.service_in_loop import ServiceInLoop
from tests.support.stored_runs import filled, graded_run

LIVE = """agents:
  weather_agent: {evaluations: [{evaluator: contains, name: order, criteria: {search_text: Oslo}}]}
"""
DRAFT = """
agents:
  weather_agent:
    evaluations:
      - evaluator: contains
        name: args
        criteria: {search_text: nowhere}
      - evaluator: tool-call-count
        name: refunds
        criteria: {tool_calls_count: {refund: [">=", 1]}}
"""
JSON = {"content-type": "application/json"}


@asynccontextmanager
async def served(
    folder: Path,
    queries: RunQueries,
    criteria: str = LIVE,
    exporters: Mapping[str, str] | None = None,
    **config: Any,
) -> AsyncIterator[str]:
    """The address of a page over a store and these criteria in force, with exporters to endpoints."""
    (folder / "live.yaml").write_text(criteria)
    store = CriteriaStore([folder / "live.yaml"], environment={"SECRET": "hush"})
    page = PageConfig.model_validate({"endpoint": "127.0.0.1:0", **config})
    server = PageServer(
        page,
        Views(queries, lambda: store.current, SystemClock()),
        draft_order=lambda *draft: DraftSettings(store.texts, EvaluationConfig()).order(*draft),
        draft_files=lambda: store.texts.files,
        score_exporters=score_exporters(
            {
                name: exporter_types()[name].config_model.model_validate({"endpoint": endpoint})
                for name, endpoint in (exporters or {}).items()
            }
        ),
    )
    await server.start()
    try:
        yield f"http://{server.endpoint}"
    finally:
        await server.shutdown(SystemClock().monotonic() + 5)


def recent(count: int, path: Path | None = None) -> RunQueries:
    now = SystemClock().unix_nano()
    runs = [replace(graded_run(number), graded_unix_nano=now) for number in range(1, count + 1)]
    return filled(runs, path)


async def posted(session: aiohttp.ClientSession, address: str, **values: str) -> tuple[int, str]:
    async with session.post(address, json=values) as response:
        return response.status, await response.text()


async def shown(session: aiohttp.ClientSession, address: str, **query: str) -> str:
    async with session.get(address, params=query) as response:
        return await response.text()


async def ended(session: aiohttp.ClientSession, page: str) -> Any:
    """What became of the draft."""
    async with asyncio.timeout(60):
        while True:
            async with session.get(f"{page}/api/draft") as response:
                state = await response.json()
            if not state["running"]:
                return state
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("in_file", [True, False], ids=["file", "memory"])
async def test_a_draft_is_graded_and_its_results_are_written_beside_live_ones(
    tmp_path: Path, in_file: bool
) -> None:
    queries = recent(250, tmp_path / "runs.db" if in_file else None)
    before = queries.evaluation_counts(), queries.agents(), queries.causes()
    own = {"origin": ""}
    async with served(tmp_path, queries) as page, aiohttp.ClientSession() as session:
        own["origin"] = page
        values = {"criteria": DRAFT, "replaced": "*", "since": "7d"}
        assert 202 == (await posted(session, f"{page}/api/draft", **values))[0]
        state = await ended(session, page)
        assert ("", []) == (state["failure"], state["problems"])
        regrade = state["regrade"]
        address = f"{page}/regrade/{regrade['id']}"
        draft = await shown(session, f"{page}/draft")
        assert "By other criteria" not in await shown(session, f"{page}/run/{7:032x}")
        form = {"name": "stricter <b>", "author": "anna"}
        async with session.post(f"{address}/write", data=form, headers=own) as response:
            written = await response.text()
            assert address == str(response.url)
        run = await shown(session, f"{page}/run/{7:032x}")
        (number,) = [one["number"] for one in regrade["changes"] if one["old"] == "pass"]
        found = await shown(session, f"{page}/find", regrade=f"{regrade['id']}.{number}")
        async with session.get(f"{page}/api/regrades") as response:
            assert ["stricter <b>"] == [one["name"] for one in (await response.json())["regrades"]]
        assert before == (queries.evaluation_counts(), queries.agents(), queries.causes())
        async with session.post(f"{address}/remove", headers=own, data={"name": ""}) as response:
            assert "/draft" == response.url.path

    assert (250, 250, "", []) == (state["graded"], state["total"], state["failure"], state["problems"])
    changes = {("args", "pass", "fail"): 225, ("args", "fail", "fail"): 25, ("refunds", "", "fail"): 250}
    assert changes == {
        (one["evaluation"], one["old"], one["new"]): one["count"] for one in regrade["changes"]
    }
    assert (250, 0, 250) == (regrade["runs"], regrade["same"], regrade["removed"])
    assert [] == Regrades(queries).each()
    assert "Write the results" in draft
    assert 'href="/find?regrade=1.' in draft
    assert "stricter &lt;b&gt;" in written
    assert "By other criteria, 1" in run
    assert "Not counted anywhere." in run
    assert "225 runs match" in found


async def test_a_draft_takes_the_place_of_a_file_in_force_or_is_added(tmp_path: Path) -> None:
    name = str(tmp_path / "live.yaml")
    async with served(tmp_path, recent(3)) as page, aiohttp.ClientSession() as session:
        form = await shown(session, f"{page}/draft", file=name)
        await posted(session, f"{page}/api/draft", criteria=DRAFT, replaced=name)
        replaced = await ended(session, page)
        await posted(session, f"{page}/api/draft", criteria=DRAFT)
        added = await ended(session, page)
        await posted(session, f"{page}/api/draft", criteria=LIVE)
        conflicting = await ended(session, page)

    assert "search_text: Oslo" in form
    assert f'<option value="{name}" selected>' in form
    assert 3 == replaced["regrade"]["removed"]
    assert 0 == added["regrade"]["removed"]
    (problem,) = conflicting["problems"]
    assert problem.startswith("draft:2: ")
    assert '"order" of this agent is also in' in problem


async def test_mistakes_are_stated_with_their_lines_and_drafts_have_no_environment(tmp_path: Path) -> None:
    draft = "agents:\n  a:\n    evaluations:\n      - evaluator: tool-knwon\n        name: ${env:SECRET}\n"
    async with served(tmp_path, recent(1)) as page, aiohttp.ClientSession() as session:
        await posted(session, f"{page}/api/draft", criteria=draft, replaced="*")
        state = await ended(session, page)
        view = await shown(session, f"{page}/draft")
        for text in ("agents: [", "a: &a [*a, *a]", "- 1", "{" * 5_000, "\0"):
            assert 202 == (await posted(session, f"{page}/api/draft", criteria=text))[0]
            after = await ended(session, page)
            assert after["problems"] or after["failure"]
            assert None is after["regrade"]

    assert any(text.startswith("draft:4: ") for text in state["problems"]), state
    assert "hush" not in view
    assert any("SECRET" in text for text in state["problems"])
    assert "<code>4:       - evaluator: tool-knwon</code>" in view
    assert None is state["regrade"]


async def test_one_draft_is_graded_at_a_time_and_can_be_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries = recent(1_500)
    async with served(tmp_path, queries) as page, aiohttp.ClientSession() as session:
        address = f"{page}/api/draft"
        assert 202 == (await posted(session, address, criteria=DRAFT))[0]
        assert 409 == (await posted(session, address, criteria=DRAFT))[0]
        await asyncio.sleep(0.5)
        assert 200 == (await posted(session, f"{address}/cancel"))[0]
        state = await ended(session, page)
        assert ("It was cancelled.", None) == (state["failure"], state["regrade"])
        assert [] == Regrades(queries).each(written=False)
        monkeypatch.setattr("collector.page.drafts._LONGEST_SECONDS", 0.2)
        assert 202 == (await posted(session, address, criteria=DRAFT))[0]
        assert "longer than 15 minutes" in (await ended(session, page))["failure"]
        monkeypatch.setattr("collector.page.drafts._LONGEST_SECONDS", 60)
        assert 202 == (await posted(session, address, criteria=DRAFT))[0]
        await asyncio.sleep(0.5)  # the page is shut down while it is graded


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "criteria: expected the text of a criteria file"),
        ({"criteria": "a" * 300_000}, "criteria: expected at most 262144 characters"),
        ({"criteria": "a", "replaced": "/etc/passwd"}, "replaced: expected the name of a criteria file"),
        ({"criteria": "a", "since": "soon"}, "since: expected a duration"),
    ],
)
async def test_what_is_no_draft_is_refused(tmp_path: Path, fields: Mapping[str, str], message: str) -> None:
    async with served(tmp_path, recent(1)) as page, aiohttp.ClientSession() as session:

        async def answer(path: str, **arguments: Any) -> tuple[int, str]:
            async with session.post(page + path, **arguments) as response:
                return response.status, await response.text()

        form = {**fields, "agent": "<b>"}
        evil = {"origin": "https://evil.example"}
        status, text = await answer("/api/draft", json=fields)
        assert (400, True) == (status, message in text)
        status, text = await answer("/draft", data=form, headers={"origin": page})
        assert (400, True) == (status, message in text)
        assert 403 == (await answer("/draft", data=form))[0]
        assert 403 == (await answer("/draft", data=form, headers=evil))[0]
        assert 415 == (await answer("/api/draft", data=form))[0]
        assert 413 == (await answer("/api/draft", data=BytesIO(b" " * 2_000_000), headers=JSON))[0]
        assert 404 == (await answer("/api/regrade/1/write", json={}))[0]
        for path in ("/regrade/1", "/regrade/99999999999999999999"):
            async with session.get(page + path) as response:
                assert 404 == response.status


async def test_a_tenant_grades_and_sees_its_own_runs_alone(tmp_path: Path) -> None:
    now = SystemClock().unix_nano()
    queries = filled(
        [
            replace(graded_run(number, tenant=tenant), graded_unix_nano=now)
            for number, tenant in ((1, "blue"), (2, "green"), (3, "blue"))
        ]
    )
    for name in ("all", "blue", "green"):
        (tmp_path / name).write_text(f"token-of-{name}\n")
    tokens: dict[str, Any] = {
        "auth": {"bearer_token_file": str(tmp_path / "all")},
        "tenant_auth": {name: {"bearer_token_file": str(tmp_path / name)} for name in ("blue", "green")},
    }
    of = {name: {"authorization": f"Bearer token-of-{name}"} for name in ("all", "blue", "green")}
    draft = f"tenant: blue\n{DRAFT}"
    name = str(tmp_path / "live.yaml")
    async with (
        served(tmp_path, queries, f"tenant: green\n{LIVE}", **tokens) as page,
        aiohttp.ClientSession(headers=of["blue"]) as blue,
        aiohttp.ClientSession(headers=of["green"]) as green,
        aiohttp.ClientSession(headers=of["all"]) as everyone,
        aiohttp.ClientSession() as nobody,
    ):
        address = f"{page}/api/draft"
        assert 401 == (await posted(nobody, address, criteria=draft))[0]
        assert 400 == (await posted(blue, address, criteria=draft, replaced=name))[0]
        assert 202 == (await posted(blue, address, criteria=draft))[0]
        state = await ended(blue, page)
        regrade = state["regrade"]["id"]
        assert (2, 2) == (state["total"], state["regrade"]["runs"])
        for other in (green, everyone):
            assert "Write the results" not in await shown(other, f"{page}/draft")
        assert "Oslo" not in await shown(blue, f"{page}/draft", file=name)
        assert 404 == (await posted(green, f"{page}/api/regrade/{regrade}/write"))[0]
        assert 404 == (await posted(green, f"{page}/api/regrade/{regrade}/remove"))[0]
        assert 200 == (await posted(blue, f"{page}/api/regrade/{regrade}/write", name="ours"))[0]
        assert "ours" not in await shown(green, f"{page}/regrade/{regrade}")
        assert "ours" in await shown(everyone, f"{page}/regrade/{regrade}")
        # What another tenant has in force is neither used nor named.
        assert 202 == (await posted(blue, address, criteria=f"tenant: green\n{LIVE}"))[0]
        assert [] == (await ended(blue, page))["problems"]


async def written_to(
    session: aiohttp.ClientSession, page: str, regrade: int, *exporters: str
) -> tuple[int, str]:
    """The answer to the choice of exporters for the results of a draft."""
    body = {"exporters": list(exporters)}
    async with session.post(f"{page}/api/regrade/{regrade}/write", json=body) as response:
        return response.status, await response.text()


async def test_the_verdicts_of_a_draft_are_written_to_exporters_of_scores(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    exporters = ("phoenix_annotations", "mlflow_assessments")
    async with (
        ScoreBackend(takes_all) as phoenix,
        ScoreBackend(takes_all) as mlflow,
        served(
            tmp_path,
            recent(120),
            exporters=dict(zip(exporters, (phoenix.endpoint, mlflow.endpoint), strict=True)),
        ) as page,
        aiohttp.ClientSession() as session,
    ):
        await posted(session, f"{page}/api/draft", criteria=DRAFT, replaced="*")
        graded = await ended(session, page)
        regrade = graded["regrade"]["id"]
        view = await shown(session, f"{page}/draft")
        form = [("name", "stricter"), ("author", "anna"), ("exporters", exporters[0])]
        with caplog.at_level(logging.INFO):
            write = f"{page}/regrade/{regrade}/write"
            async with session.post(write, data=form, headers={"origin": page}) as response:
                assert "/draft" == response.url.path
        first = (await ended(session, page))["scores"]
        assert [] == mlflow.calls
        written = await shown(session, f"{page}/draft")
        unknown = next(span for call in phoenix.calls for span in spans_of(call))
        phoenix.answer = lambda call: (404, {"detail": unknown}) if unknown in spans_of(call) else (200, {})
        assert 200 == (await written_to(session, page, regrade, *exporters))[0]
        second = (await ended(session, page))["scores"]
        again = await shown(session, f"{page}/draft")
        mlflow.answer = lambda call: (401, {})
        assert 200 == (await written_to(session, page, regrade, "mlflow_assessments"))[0]
        third = (await ended(session, page))["scores"]
        refused = await shown(session, f"{page}/draft")
        async with session.get(f"{page}/api/regrades") as response:
            (one,) = (await response.json())["regrades"]

    for name in exporters:
        assert f'<input type="checkbox" name="exporters" value="{name}">' in view
    assert None is graded["scores"]
    everything = {"graded": 120, "total": 120, "failure": ""}
    assert {**everything, "exporters": {"phoenix_annotations": {"accepted": 240, "rejected": 0}}} == first
    assert "240 verdicts written to phoenix_annotations." in written
    assert [("phoenix_annotations", "stricter", "anna")] == [
        (record.exporters, record.regrade_name, record.author)  # type: ignore[attr-defined]
        for record in caplog.records
        if hasattr(record, "exporters")
    ]
    assert "stricter" == one["name"]
    rejected = {"accepted": 0, "rejected": 240}  # all of these runs have one span
    accepted = {"accepted": 240, "rejected": 0}
    assert {"phoenix_annotations": rejected, "mlflow_assessments": accepted} == second["exporters"]
    assert "0 verdicts written to phoenix_annotations, 240 not accepted" in again
    assert third["failure"].startswith("Not accepted: mlflow_assessments: ")
    assert {"mlflow_assessments": {"accepted": 0, "rejected": 0}} == third["exporters"]
    assert "Not all verdicts were written to exporters. Not accepted: mlflow_assessments: " in refused


def spans_of(call: Call) -> list[Any]:
    """The spans that a call to Phoenix annotates."""
    entries: Any = call.body["data"]
    return [entry["span_id"] for entry in entries]


async def test_the_writing_of_verdicts_can_be_cancelled(tmp_path: Path) -> None:
    async with (
        ScoreBackend(lambda call: (503, {})) as backend,
        served(tmp_path, recent(3), exporters={"mlflow_assessments": backend.endpoint}) as page,
        aiohttp.ClientSession() as session,
    ):
        await posted(session, f"{page}/api/draft", criteria=DRAFT, replaced="*")
        regrade = (await ended(session, page))["regrade"]["id"]
        assert 200 == (await written_to(session, page, regrade, "mlflow_assessments"))[0]
        async with asyncio.timeout(30):
            while not backend.calls:
                await asyncio.sleep(0.05)
        assert "are written to mlflow_assessments" in await shown(session, f"{page}/draft")
        assert 409 == (await posted(session, f"{page}/api/draft", criteria=DRAFT))[0]
        assert 409 == (await written_to(session, page, regrade, "mlflow_assessments"))[0]
        assert 200 == (await posted(session, f"{page}/api/draft/cancel"))[0]
        state = await ended(session, page)

    assert "It was cancelled." == state["scores"]["failure"]
    assert ("", 3) == (state["failure"], state["regrade"]["runs"])
    assert state["regrade"]["is_written"]


async def test_verdicts_that_must_not_be_written_to_exporters_are_refused(tmp_path: Path) -> None:
    for name in ("all", "blue"):
        (tmp_path / name).write_text(f"token-of-{name}\n")
    tokens: dict[str, Any] = {
        "auth": {"bearer_token_file": str(tmp_path / "all")},
        "tenant_auth": {"blue": {"bearer_token_file": str(tmp_path / "blue")}},
    }
    of = {name: {"authorization": f"Bearer token-of-{name}"} for name in ("all", "blue")}
    conversation = (
        "agents: {'*': {evaluations: [{evaluator: tool-precedence, name: first, scope: conversation, "
        "criteria: {before: [[verify, refund]]}}]}}"
    )
    async with (
        ScoreBackend(takes_all) as backend,
        served(tmp_path, recent(2), exporters={"phoenix_annotations": backend.endpoint}, **tokens) as page,
        aiohttp.ClientSession(headers=of["all"]) as everyone,
        aiohttp.ClientSession(headers=of["blue"]) as blue,
    ):

        async def graded(session: aiohttp.ClientSession, **values: str) -> int:
            assert 202 == (await posted(session, f"{page}/api/draft", **values))[0]
            return int((await ended(session, page))["regrade"]["id"])

        of_blue = await graded(blue, criteria=f"tenant: blue\n{DRAFT}")
        assert 'name="exporters"' not in await shown(blue, f"{page}/draft")
        status, text = await written_to(blue, page, of_blue, "phoenix_annotations")
        assert (400, True) == (status, "expected some of: none" in text)
        status, text = await written_to(everyone, page, of_blue, "phoenix_annotations")
        assert (409, True) == (status, "only the last draft that you graded" in text)
        regrade = await graded(everyone, criteria=conversation, replaced="*")
        status, text = await written_to(everyone, page, regrade, "phoenix_annotations")
        assert (409, True) == (status, "over conversations" in text)
        view = await shown(everyone, f"{page}/draft")
        assert "Verdicts over conversations are not written" in view
        assert 'name="exporters"' not in view
        regrade = await graded(everyone, criteria=DRAFT)
        assert 400 == (await written_to(everyone, page, regrade, "otlp_http"))[0]
        assert 409 == (await written_to(everyone, page, regrade + 1, "phoenix_annotations"))[0]
        wrong: Any
        for wrong in (3, [{}]):
            body = {"exporters": wrong}
            async with everyone.post(f"{page}/api/regrade/{regrade}/write", json=body) as response:
                assert 400 == response.status
        assert [] == backend.calls


async def test_verdicts_of_other_criteria_than_those_graded_are_not_written(tmp_path: Path) -> None:
    queries = recent(2)
    (tmp_path / "live.yaml").write_text(LIVE)
    store = CriteriaStore([tmp_path / "live.yaml"], environment={})
    exporters = exporter_types()["phoenix_annotations"]
    async with ScoreBackend(takes_all) as backend, aiohttp.ClientSession() as session:
        server = PageServer(
            PageConfig(endpoint="127.0.0.1:0"),
            Views(queries, lambda: store.current, SystemClock()),
            draft_order=lambda *draft: DraftSettings(store.texts, EvaluationConfig()).order(*draft),
            score_exporters=score_exporters(
                {exporters.type_name: exporters.config_model.model_validate({"endpoint": backend.endpoint})}
            ),
        )
        await server.start()
        page = f"http://{server.endpoint}"
        await posted(session, f"{page}/api/draft", criteria=DRAFT)
        regrade = (await ended(session, page))["regrade"]["id"]
        (tmp_path / "live.yaml").write_text(LIVE.replace("Oslo", "Rome"))
        store = CriteriaStore([tmp_path / "live.yaml"], environment={})
        assert 200 == (await written_to(session, page, regrade, "phoenix_annotations"))[0]
        state = await ended(session, page)
        await server.shutdown(SystemClock().monotonic() + 5)

    assert "The criteria in force have changed" in state["scores"]["failure"]
    assert [] == backend.calls


async def test_verdicts_that_are_written_change_no_live_series(tmp_path: Path) -> None:
    filled(
        [replace(graded_run(n), graded_unix_nano=SystemClock().unix_nano()) for n in range(1, 6)],
        tmp_path / "runs.db",
    )
    (tmp_path / "live.yaml").write_text(LIVE)
    async with ScoreBackend(takes_all) as backend, aiohttp.ClientSession() as session:
        configuration = {
            "receivers": {"otlp": {"protocols": {"http": {"endpoint": "127.0.0.1:0"}}}},
            "exporters": {"phoenix_annotations": {"endpoint": backend.endpoint}},
            "processors": {"evaluation": {"criteria": [str(tmp_path / "live.yaml")]}},
            "store": {"path": str(tmp_path / "runs.db")},
            "page": {"endpoint": "127.0.0.1:0"},
            "service": {"telemetry": {"endpoint": "127.0.0.1:0"}},
        }
        async with ServiceInLoop(json.dumps(configuration), SystemClock().unix_nano()) as service:
            page = f"http://{service.endpoints['page']}"
            await posted(session, f"{page}/api/draft", criteria=DRAFT, replaced="*")
            regrade = (await ended(session, page))["regrade"]["id"]
            before = await service.metrics()
            assert 200 == (await written_to(session, page, regrade, "phoenix_annotations"))[0]
            state = await ended(session, page)
            after = await service.metrics()

    assert 10 == state["scores"]["exporters"]["phoenix_annotations"]["accepted"]
    assert 10 == sum(len(spans_of(call)) for call in backend.calls if call.method == "POST")
    of_the_process = ("process_", "python_", "tracegrade_event_loop", "tracegrade_store")
    live = {name: value for name, value in before.items() if not name.startswith(of_the_process)}
    assert any("phoenix_annotations" in name for name in live)
    assert live == {name: after[name] for name in live}
    assert before.keys() == after.keys()


async def test_without_a_store_there_is_no_draft(tmp_path: Path) -> None:
    server = PageServer(
        PageConfig(endpoint="127.0.0.1:0"),
        Views(None, CriteriaSet, SystemClock()),
        draft_order=lambda *draft: b"",
    )
    await server.start()
    async with aiohttp.ClientSession() as session:
        status, text = await posted(session, f"http://{server.endpoint}/api/draft", criteria=DRAFT)
        view = await shown(session, f"http://{server.endpoint}/draft")
    await server.shutdown(SystemClock().monotonic() + 5)

    assert (503, True) == (status, "store: off" in text)
    assert "store: off" in view
