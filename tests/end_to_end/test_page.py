"""The page in a real browser, over the real service, which gets its traces from the real SDK."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import aiohttp
import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from collector.cli import run_command
from collector.tools.demo import ScriptedCall, ScriptedRun, perform
from processors.model import JsonObject
from tests.support.accessibility import accessibility_findings
from tests.support.chromium import Chromium
from tests.support.service_process import ServiceProcess

pytestmark = [pytest.mark.end_to_end, pytest.mark.requires_program("chromium")]

HOSTILE = '"><script>document.title="owned"</script><img src=x onerror=alert(1)>'
CRITERIA = f"""
agents:
  support_agent:
    evaluations:
      - evaluator: tool-call-count
        name: looks-the-order-up
        criteria: {{tool_calls_count: {{lookup_order: [">=", 1]}}}}
      - evaluator: contains
        name: thanks
        criteria: {{search_text: "thank you"}}
  never_seen:
    evaluations:
      - evaluator: tool-repetition
  {json.dumps("*script*")}:
    evaluations:
      - evaluator: contains
        name: {json.dumps(HOSTILE)}
        criteria: {{search_text: {json.dumps(HOSTILE)}}}
"""
GOOD = ScriptedRun(
    "support_agent",
    "looks up and refunds",
    "Refund order A-17, please",
    (ScriptedCall("lookup_order", {"order": "A-17"}, {"paid": 42.5, "note": "x" * 500}),),
    "Refunded, thank you.",
)
BAD = ScriptedRun("support_agent", "only talks", "Refund order B-2", (), "No.")
EVIL = ScriptedRun(
    HOSTILE, HOSTILE, HOSTILE, (ScriptedCall(HOSTILE, {HOSTILE: HOSTILE}, {"a": HOSTILE * 10}),), HOSTILE
)


@pytest.fixture
async def browser() -> AsyncIterator[Chromium]:
    async with Chromium() as opened:
        yield opened
        assert [] == opened.problems
        assert {"127.0.0.1"} == {urlsplit(url).hostname for url in opened.requested if url != "about:blank"}


def _send(endpoint: str, *runs: ScriptedRun) -> None:
    provider = TracerProvider(resource=Resource({"service.name": "shop"}), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(endpoint=endpoint, insecure=True)))
    for run in runs:
        perform(run, provider.get_tracer("test"))
    provider.shutdown()


def _send_nested(endpoint: str) -> None:
    """A planner that asks a model and calls a tool, and a helper within it that asks another model."""
    provider = TracerProvider(resource=Resource({"service.name": "shop"}), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(endpoint=endpoint, insecure=True)))
    tracer = provider.get_tracer("test")

    def span(operation: str, **attributes: str) -> Any:
        named = {f"gen_ai.{name.replace('_', '.', 1)}": value for name, value in attributes.items()}
        return tracer.start_as_current_span(
            operation, attributes={"gen_ai.operation.name": operation, **named}
        )

    with span("invoke_agent", agent_name="planner"):
        for _ in range(2):
            with span("chat", request_model="large"):
                time.sleep(0.01)
            with span("execute_tool", tool_name="look_up"):
                time.sleep(0.01)
        with span("invoke_agent", agent_name="helper"), span("chat", request_model="small"):
            time.sleep(0.01)
    provider.shutdown()


async def _served(service: ServiceProcess, *runs: ScriptedRun) -> str:
    """The address of the page, when it knows of as many runs more."""
    address = f"http://{service.endpoints['page']}"
    before = (await _json(address, "/api/newest"))["newest"]
    await asyncio.to_thread(_send, service.endpoints["grpc"], *runs)
    async with asyncio.timeout(30):
        while (await _json(address, "/api/newest"))["newest"] < before + len(runs):
            await asyncio.sleep(0.1)
    return address


async def _json(address: str, path: str) -> Any:
    async with aiohttp.ClientSession() as session, session.get(address + path) as response:
        assert 200 == response.status
        return await response.json()


@asynccontextmanager
async def _service(
    folder: Path, browser: Chromium | None = None, page: JsonObject | None = None
) -> AsyncIterator[ServiceProcess]:
    """The service, which a browser has left before it is ended: what the page requests then would fail."""
    page = page or {"endpoint": "127.0.0.1:0", "trace_link": "https://traces.example.com/t/{trace_id}"}
    async with ServiceProcess(folder, {"page": page, "store": {"path": "runs.db"}}, CRITERIA) as service:
        yield service
        if browser is not None:
            await browser.open("about:blank")


async def test_every_view_is_there_without_a_run(tmp_path: Path, browser: Chromium) -> None:
    async with _service(tmp_path, browser) as service:
        address = f"http://{service.endpoints['page']}"

        await browser.open(address)
        assert "No runs yet" in await browser.text()
        await browser.open(f"{address}/find")
        assert "No stored run matches." in await browser.text()
        await browser.open(f"{address}/criteria")
        assert "not applied in this period" in await browser.text()
        browser.requested.clear()
        await browser.open(f"{address}/agent?name=nobody")
        assert "There are no stored runs of this agent." in await browser.text()
        assert ["404"] == [problem.split("status of ")[1][:3] for problem in browser.problems]
        browser.problems.clear()


async def test_a_run_is_followed_from_the_agents_to_its_verdicts(tmp_path: Path, browser: Chromium) -> None:
    async with _service(tmp_path, browser) as service:
        address = await _served(service, GOOD, BAD)

        await browser.open(address)
        agents = await browser.text()
        assert "support_agent" in agents
        assert "50 %" in agents
        assert "no tool calls recorded (1)" in agents
        assert "never_seen" in agents  # named in criteria
        await browser.evaluate("document.querySelector('tbody a').click()")
        await browser.until("location.pathname === '/agent' && document.readyState === 'complete'")
        agent = await browser.text()
        assert "looks-the-order-up" in agent
        assert "lookup_order" in agent
        await browser.evaluate("document.querySelector('tbody a.bad').click()")
        await browser.until("location.pathname === '/find' && document.readyState === 'complete'")
        assert 1 == await browser.evaluate("document.querySelectorAll('tbody tr').length")
        await browser.evaluate("document.querySelector('tbody a.id').click()")
        await browser.until("location.pathname.startsWith('/run/') && document.readyState === 'complete'")
        run = await browser.text()
        assert "Refund order B-2" in run
        assert "No tool calls recorded." in run
        assert f"{service.criteria_path}:5" in run
        source = "document.querySelector('.source pre').textContent"
        assert "evaluator: tool-call-count" in await browser.evaluate(source)
        link = await browser.evaluate("document.querySelector('.tools a').href")
        trace_id = (await browser.evaluate("location.pathname")).removeprefix("/run/")
        assert f"https://traces.example.com/t/{trace_id}" == link


async def test_what_is_copied_is_read_by_replay_and_by_the_tests_of_criteria(
    tmp_path: Path, browser: Chromium, capsys: pytest.CaptureFixture[str]
) -> None:
    async with _service(tmp_path, browser) as service:
        address = await _served(service, GOOD)
        (found,) = (await _json(address, "/api/runs"))["runs"]
        assert "otel_genai" == found["dialect"]
        await browser.open(f"{address}/run/{found['trace_id']}")
        replay, case = [
            await browser.evaluate(f"document.querySelector('textarea[id^={kind}]').value")
            for kind in ("replay", "case")
        ]
        await browser.evaluate("document.querySelector('button[data-copy]').click()")
        await browser.until("document.querySelector('.status').textContent !== ''")
        line = tmp_path / "copied.runs.jsonl"
        line.write_text(replay + "\n")
        criteria = tmp_path / "with_test.yaml"
        criteria.write_text(CRITERIA + case)

        assert 0 == run_command(["replay", "--criteria", str(service.criteria_path), str(line)])
        assert "pass" in capsys.readouterr().out
        assert 0 == run_command(["validate", str(criteria)])

        await browser.evaluate("document.querySelector('.review button[value=wrong]').click()")
        await browser.until(
            "document.readyState === 'complete' && document.body.innerText.includes('Answered: wrong')"
        )
        (review,) = (await _json(address, "/api/reviews"))["reviews"]
        assert (found["trace_id"], "wrong") == (review["trace_id"], review["answer"])
        answered = await browser.evaluate("document.querySelector('textarea[id^=case]').value")
        criteria.write_text(CRITERIA + answered)
        assert 1 <= run_command(["validate", str(criteria)])
        assert "expected fail, found pass" in capsys.readouterr().err


async def test_new_runs_appear_without_a_reload_and_leave_the_reader_in_place(
    tmp_path: Path, browser: Chromium
) -> None:
    async with _service(tmp_path, browser) as service:
        address = await _served(service, GOOD)
        await browser.open(f"{address}/find")
        await browser.evaluate("window.stays = true; document.querySelector('tbody a.id').focus()")
        focused = await browser.evaluate("document.activeElement.href")

        await _served(service, BAD)

        await browser.until("document.querySelectorAll('tbody tr').length === 2")
        assert await browser.evaluate("window.stays === true")
        assert focused == await browser.evaluate("document.activeElement.href")
        assert 1 == await browser.evaluate(_FOCUSED_ROW)  # the newer run stands above it

        await browser.evaluate("document.getElementById('pause').click()")
        await _served(service, GOOD)
        await asyncio.sleep(3)  # longer than a poll
        assert 2 == await browser.evaluate("document.querySelectorAll('tbody tr').length")
        await browser.evaluate("document.getElementById('pause').click()")
        await browser.until("document.querySelectorAll('tbody tr').length === 3")


async def test_two_runs_are_chosen_in_a_list_and_compared(tmp_path: Path, browser: Chromium) -> None:
    async with _service(tmp_path, browser) as service:
        address = await _served(service, GOOD, BAD)
        await browser.open(f"{address}/find")
        await browser.evaluate("document.querySelectorAll('tbody input').forEach((box) => box.click())")
        await _served(service, GOOD)
        await asyncio.sleep(3)  # longer than a poll: what is chosen stays
        assert 2 == await browser.evaluate("document.querySelectorAll('tbody input:checked').length")

        await browser.evaluate("document.querySelector('#compare button').click()")

        await browser.until("location.pathname === '/compare' && document.readyState === 'complete'")
        compared = await browser.text()
        assert "0 of 1 are the same in both." in compared
        assert "looks-the-order-up differs" in " ".join(compared.split())
        assert "lookup_order" in compared
        assert "\nonly " in compared or " only " in compared


async def test_hostile_content_stays_text_in_every_view(tmp_path: Path, browser: Chromium) -> None:
    async with _service(tmp_path, browser) as service:
        address = await _served(service, EVIL)
        (run,) = (await _json(address, "/api/runs"))["runs"]
        query = urlencode({"name": HOSTILE})
        search = urlencode({"text": HOSTILE, "agent": HOSTILE, "since": HOSTILE})
        await _served(service, EVIL)
        both = f"/compare?run={run['id']}&run={run['id'] + 1}"
        for path in (
            "/",
            f"/agent?{query}",
            f"/run/{run['trace_id']}",
            both,
            f"/tools?tool={query[5:]}",
            f"/find?{search}",
            "/criteria",
        ):
            await browser.open(address + path)

            assert "onerror=alert(1)" in await browser.evaluate("document.documentElement.outerHTML")
            assert await browser.evaluate("document.title.endsWith('tracegrade')")
            assert 0 == await browser.evaluate("document.querySelectorAll('main img, main script').length")
        assert ["400"] == [problem.split("status of ")[1][:3] for problem in browser.problems]  # `since`
        browser.problems.clear()


WINDOWS = [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]
"""Widths and colours in which every view is looked at."""


async def test_every_view_fits_its_window_and_is_accessible_empty_and_full(tmp_path: Path) -> None:
    async with _service(tmp_path) as service, Chromium() as browser:
        address = f"http://{service.endpoints['page']}"
        await _look(browser, address, "/", "/find", "/criteria", "/agent?name=nobody")
        await _served(service, GOOD, BAD, EVIL)
        runs = (await _json(address, "/api/runs"))["runs"]
        await asyncio.to_thread(_send_nested, service.endpoints["grpc"])
        async with asyncio.timeout(30):
            while not (helpers := (await _json(address, "/api/runs?agent=helper"))["runs"]):
                await asyncio.sleep(0.1)
        (nested,) = helpers
        await browser.open(f"{address}/run/{nested['trace_id']}")
        assert ["planner"] == await browser.evaluate(_NAMES_IN_TREE.format(":scope > li > .head a"))
        assert ["helper"] == await browser.evaluate(_NAMES_IN_TREE.format("li li .head a"))
        assert ["turn", "call", "turn", "call", "turn"] == await browser.evaluate(
            "[...document.querySelectorAll('.calls > li')].map((step) => step.id.split('-')[0])"
        )
        assert 4 == await browser.evaluate("document.querySelector('.overview').querySelectorAll('a').length")
        await _look(
            browser,
            address,
            "/",
            "/agent?name=support_agent",
            f"/agent?{urlencode({'name': HOSTILE})}",
            *(f"/run/{run['trace_id']}" for run in runs),
            f"/run/{nested['trace_id']}",
            f"/compare?{urlencode([('run', run['id']) for run in runs[1:]])}",
            f"/compare?{urlencode([('run', runs[0]['id']), ('run', runs[1]['id'])])}",
            "/failures",
            "/tools",
            "/tools?tool=lookup_order&since=2026-01-01",
            "/find",
            "/find?text=answer%3A%22thank+you%22+tool%3Alookup_order&agent=support_agent",
            "/find?agent=support_agent&version=1&since=nonsense",
            "/criteria",
        )


async def test_a_draft_is_tried_from_the_file_in_force_to_the_results_with_a_run(
    tmp_path: Path, browser: Chromium
) -> None:
    async with _service(tmp_path, browser) as service:
        address = await _served(service, GOOD, BAD, EVIL)
        await browser.open(f"{address}/draft")
        await browser.evaluate("document.querySelector('main p a').click()")
        await browser.until("document.querySelector('textarea')?.value.includes('search_text')")
        await _look(browser, address, "/draft")
        await browser.open(f"{address}/draft?file={quote(str(service.criteria_path))}")
        await _grade(browser, "[knwon, 1]")
        await browser.until("document.querySelector('main')?.innerText.includes('has mistakes')")
        assert "draft:7: " in await browser.text()
        await _look(browser, address, "/draft")
        await _grade(browser, "['=', 5]")
        await browser.until("document.querySelector('main')?.innerText.includes('What would change')")
        await _look(browser, address, "/draft")
        changes = await browser.text()
        await browser.evaluate("document.querySelector('[name=author]').value = 'anna'")
        await browser.evaluate("document.querySelector('form[action$=write] button').click()")
        await browser.until("location.pathname.startsWith('/regrade/') && document.readyState === 'complete'")
        await _look(browser, address, await browser.evaluate("location.pathname"))
        await browser.evaluate("document.querySelector('tbody a').click()")
        await browser.until("location.pathname === '/find' && document.readyState === 'complete'")
        await browser.evaluate("document.querySelector('tbody a.id').click()")
        await browser.until("location.pathname.startsWith('/run/') && document.readyState === 'complete'")
        run = await browser.text()
        await _look(browser, address, await browser.evaluate("location.pathname"))

    assert "looks-the-order-up" in changes
    assert "pass →" in changes
    assert "By other criteria, 1" in run


async def _grade(browser: Chromium, count: str) -> None:
    """Change the draft in the form as a person does, and have it graded."""
    await browser.evaluate(
        "(() => { const area = document.querySelector('textarea');"
        f"area.value = area.value.replace(/tool_calls_count:.*/, {json.dumps(_COUNT.format(count))}); }})()"
    )
    await browser.evaluate("document.querySelector('.draft button[type=submit]').click()")


_COUNT = "tool_calls_count: {{lookup_order: {}}}}}"
_NAMES_IN_TREE = (
    "[...document.querySelector('.tree ol').querySelectorAll('{}')].map((link) => link.innerText)"
)


async def _look(browser: Chromium, address: str, *paths: str) -> None:
    """Open views in every window: nothing sticks out, every text has contrast, axe-core finds nothing."""
    problems: list[str] = []
    for path in paths:
        await browser.open(address + path)
        for width, scheme in WINDOWS:
            await browser.resize(width, 800, scheme)
            found = await accessibility_findings(browser)
            if width < await browser.evaluate("document.documentElement.scrollWidth"):
                found.append("sticks out")
            found += [str(told) for told in await browser.evaluate(_CONTRASTS) if told["contrast"] < 4.5]
            problems += [f"{path} {width} {scheme}: {problem}" for problem in found]
    assert not problems, "\n".join(problems)


async def test_the_page_is_used_with_a_keyboard(tmp_path: Path, browser: Chromium) -> None:
    async with _service(tmp_path, browser) as service:
        address = await _served(service, GOOD)
        await browser.open(address)
        names = []
        for _ in range(15):
            await browser.press("Tab", 9)
            names.append(await browser.evaluate("document.activeElement.innerText.split('\\n')[0]"))
            assert await browser.evaluate("getComputedStyle(document.activeElement).outlineStyle !== 'none'")
        assert [
            "Skip to content", "tracegrade", "Agents", "Failures", "Tools", "Find", "Criteria", "Draft",
        ] == names[:8]  # fmt: skip
        assert "Pause" == names[8]
        assert ["24 hours", "7 days", "14 days", "other times"] == names[9:13]
        assert "support_agent" == names[14]

        await browser.press("Enter", 13, "\r")

        await browser.until("location.pathname === '/agent' && document.readyState === 'complete'")
        await browser.open(address)
        await browser.press("j", 74, "j")
        assert "support_agent" == await browser.evaluate("document.activeElement.textContent")
        await browser.press("?", 191, "?")
        assert await browser.evaluate("document.getElementById('keys').open")
        await browser.press("Escape", 27)
        await browser.press("/", 191, "/")
        await browser.until("location.pathname === '/find' && document.readyState === 'complete'")
        await browser.press("/", 191, "/")
        assert "text" == await browser.evaluate("document.activeElement.name")


_FOCUSED_ROW = (
    "[...document.querySelectorAll('tbody tr')].findIndex((row) => row.contains(document.activeElement))"
)


async def _status(address: str, path: str = "/", **headers: str) -> int:
    async with (
        aiohttp.ClientSession() as session,
        session.get(address + path, headers=headers, allow_redirects=False) as response,
    ):
        return response.status


async def test_other_sites_cannot_read_the_page_of_this_machine(tmp_path: Path) -> None:
    async with _service(tmp_path) as service:
        address = f"http://{service.endpoints['page']}"

        assert 200 == await _status(address)
        assert 403 == await _status(address, Host="evil.example.com")
        assert 403 == await _status(address, Host="127.0.0.1.evil.example.com")
        assert 403 == await _status(address, "/api/runs", Origin="https://evil.example.com")
        assert 403 == await _status(address, "/api/runs", Origin="null")
        assert 403 == await _status(address, "/api/runs", **{"Sec-Fetch-Site": "cross-site"})
        assert 404 == await _status(address, "/static/../page_access.py")
        assert 404 == await _status(address, "/static/%2e%2e%2fpage_access.py")


async def test_a_token_is_exchanged_for_a_cookie_that_scripts_do_not_see(
    tmp_path: Path, browser: Chromium
) -> None:
    (tmp_path / "tokens.txt").write_text("open-sesame\n")
    page: JsonObject = {"endpoint": "127.0.0.1:0", "auth": {"bearer_token_file": "tokens.txt"}}
    async with _service(tmp_path, browser, page) as service:
        address = f"http://{service.endpoints['page']}"
        assert 401 == await _status(address, "/api/runs")
        assert 401 == await _status(address, "/api/runs", Authorization="Bearer wrong")
        assert 200 == await _status(address, "/api/runs", Authorization="Bearer open-sesame")
        assert 303 == await _status(address, "/find?agent=a")
        assert 303 == await _status(address, "/find", Cookie="tracegrade_page=")
        await _look(browser, address, "/find?agent=support_agent")
        assert "Sign in" in await browser.text()
        for token, expected in (("wrong", "Unknown token."), ("open-sesame", "Find runs")):
            script = f"document.querySelector('[name=token]').value = '{token}'"
            await browser.evaluate(f"{script}; document.querySelector('main button').click()")
            await browser.until(f"document.querySelector('main')?.innerText.includes('{expected}')")
        assert "/find?agent=support_agent" == await browser.evaluate("location.pathname + location.search")
        assert "" == await browser.evaluate("document.cookie")
        (cookie,) = (await browser.call("Network.getCookies"))["cookies"]
        assert (True, "Strict") == (cookie["httpOnly"], cookie["sameSite"])
        browser.problems.clear()  # the wrong token, a 403


_CONTRASTS = """
(() => {
  const numbers = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = (colour) => colour.slice(0, 3).map((part) => part / 255)
    .map((part) => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);
  const ground = (element) => {
    for (let of = element; of; of = of.parentElement) {
      const colour = numbers(getComputedStyle(of).backgroundColor);
      if (colour.length === 3 || colour[3] > 0.99) return colour;
    }
    return [255, 255, 255];
  };
  return [...document.querySelectorAll("body *")]
    .filter((element) => [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim()))
    .filter((element) => element.getClientRects().length && !element.closest("select, .skip"))
    .map((element) => {
      const both = [light(numbers(getComputedStyle(element).color)), light(ground(element))];
      return { text: element.textContent.trim().slice(0, 40),
               contrast: (Math.max(...both) + 0.05) / (Math.min(...both) + 0.05) };
    });
})()
"""
"""The contrast of every text with its ground, as WCAG 2 counts it; 4.5 is what its level AA asks for."""
