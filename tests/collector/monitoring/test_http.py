"""The telemetry endpoint over real HTTP."""

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from collector.clock import SystemClock
from collector.errors import StartupError
from collector.monitoring import MetricsRegistry
from collector.monitoring.http import Probes, TelemetryServer
from collector.telemetry import Metrics, Readiness, ScoreSeries, TelemetryConfig
from collector.trace import GradedTrace
from processors.model import AgentIdentity, AgentRun, EvaluationResult, GradedRun, JsonObject, Outcome
from tests.support.named_criteria import criteria_with


class Service:
    """A telemetry server with everything it shows."""

    def __init__(self, endpoint: str = "127.0.0.1:0", probes: Probes | None = None) -> None:
        self.metrics = Metrics()
        self.readiness = Readiness()
        self.series = ScoreSeries(self.metrics, SystemClock())
        self.server = TelemetryServer(
            TelemetryConfig(endpoint=endpoint),
            registry=MetricsRegistry(self.metrics),
            score_series=self.series,
            readiness=self.readiness,
            clock=SystemClock(),
            probes=probes,
        )

    def url(self, path: str) -> str:
        return f"http://{self.server.endpoint}{path}"

    async def shutdown(self) -> None:
        await self.server.shutdown(SystemClock().monotonic() + 10)

    def grade(self, agent: str) -> None:
        run = AgentRun(trace_id=bytes(range(16)), span_id=bytes(range(8)), agent=AgentIdentity(name=agent))
        result = EvaluationResult(
            name="order", evaluator="tool-call-order", evaluator_version="1", outcome=Outcome.PASS, score=1.0
        )
        self.series.record(
            GradedTrace(trace_id=run.trace_id, spans=(), runs=(GradedRun(run=run, results=(result,)),))
        )


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    service = Service()
    await service.server.start()
    yield service
    await service.shutdown()


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(auto_decompress=True) as session:
        yield session


def value_of(text: str, name: str, **labels: str) -> float:
    return sum(
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


async def test_metrics_are_served(service: Service, client: aiohttp.ClientSession) -> None:
    service.metrics.spans_received.add(5)

    async with client.get(service.url("/metrics")) as response:
        text = await response.text()

    assert 200 == response.status
    assert "text/plain; version=0.0.4; charset=utf-8" == response.headers["content-type"]
    assert 5 == value_of(text, "tracegrade_spans_received_total")


@pytest.mark.parametrize(("accepted", "encoding"), [("gzip", "gzip"), ("identity", None)])
async def test_metrics_are_compressed_for_who_accepts_it(
    service: Service, client: aiohttp.ClientSession, accepted: str, encoding: str | None
) -> None:
    async with client.get(service.url("/metrics"), headers={"accept-encoding": accepted}) as response:
        text = await response.text()

    assert encoding == response.headers.get("content-encoding")
    assert 0 == value_of(text, "tracegrade_spans_received_total")
    assert "tracegrade_spans_received_total" in text


async def test_openmetrics_is_served_to_who_asks_for_it(
    service: Service, client: aiohttp.ClientSession
) -> None:
    service.series.set_criteria(criteria_with({"weather_agent": ["order"]}))
    service.grade("weather_agent")

    for _ in range(2):  # the first shows the new series of scores at 0
        async with client.get(
            service.url("/metrics"), headers={"accept": "application/openmetrics-text"}
        ) as response:
            text = await response.text()

    assert text.endswith("# EOF\n")
    assert '# {span_id="0001020304050607",trace_id="000102030405060708090a0b0c0d0e0f"} 1.0' in text


async def test_a_new_series_is_zero_in_its_first_scrape_and_counted_in_the_second(
    service: Service, client: aiohttp.ClientSession
) -> None:
    service.grade("weather_agent")
    scrapes = []
    for method in ("HEAD", "GET", "GET"):
        async with client.request(method, service.url("/metrics")) as response:
            scrapes.append(await response.text())

    name, label = "gen_ai_evaluation_results_total", "weather_agent"
    assert "" == scrapes[0]
    assert f'{name}{{gen_ai_agent_name="{label}"' in scrapes[1]
    assert 0 == value_of(scrapes[1], name, gen_ai_agent_name=label)
    assert 1 == value_of(scrapes[2], name, gen_ai_agent_name=label)


async def test_scrapes_under_load_lose_no_count(service: Service, client: aiohttp.ClientSession) -> None:
    async def scrape() -> None:
        async with client.get(service.url("/metrics")) as response:
            totals.append(value_of(await response.text(), "gen_ai_evaluation_results_total"))

    async def load() -> None:
        for number in range(2000):
            service.grade(f"agent{number % 50}")
            if number % 20 == 0:
                await asyncio.sleep(0)

    totals: list[float] = []
    await asyncio.gather(load(), *(scrape() for _ in range(8)))
    await scrape()
    await scrape()

    assert 2000 == totals[-1]
    assert all(total <= 2000 for total in totals)


async def test_health_says_that_the_process_lives(service: Service, client: aiohttp.ClientSession) -> None:
    async with client.get(service.url("/healthz")) as response:
        body = await response.text()

    assert (200, "ok\n") == (response.status, body)


async def test_readiness_names_what_is_missing(service: Service, client: aiohttp.ClientSession) -> None:
    service.readiness.set("receivers", True)
    service.readiness.set("criteria", False, "no criteria file could be loaded")
    service.readiness.set("draining", False)

    async with client.get(service.url("/readyz")) as response:
        body = await response.text()
    async with client.get(service.url("/readyz"), headers={"accept": "application/json"}) as as_json:
        document = await as_json.json()

    assert 503 == response.status == as_json.status
    assert "not ready\ncriteria: no criteria file could be loaded\ndraining\n" == body
    assert {
        "ready": False,
        "conditions": [
            {"name": "receivers", "ready": True, "detail": ""},
            {"name": "criteria", "ready": False, "detail": "no criteria file could be loaded"},
            {"name": "draining", "ready": False, "detail": ""},
        ],
    } == document


async def test_ready_when_every_condition_holds(service: Service, client: aiohttp.ClientSession) -> None:
    service.readiness.set("receivers", False)
    service.readiness.set("receivers", True)

    async with client.get(service.url("/readyz")) as response:
        body = await response.text()

    assert (200, "ready\n") == (response.status, body)


async def test_nothing_stated_yet_is_not_ready(service: Service, client: aiohttp.ClientSession) -> None:
    async with client.get(service.url("/readyz")) as response:
        assert 503 == response.status


@pytest.mark.parametrize("path", ["/metrics", "/healthz", "/readyz"])
async def test_head_has_no_body_and_other_methods_are_refused(
    service: Service, client: aiohttp.ClientSession, path: str
) -> None:
    async with client.head(service.url(path)) as head, client.post(service.url(path)) as post:
        assert "" == await head.text()
        assert int(head.headers["content-length"]) > 0
        assert 405 == post.status
        assert "GET, HEAD" == post.headers["allow"]


async def test_other_paths_are_not_found(service: Service, client: aiohttp.ClientSession) -> None:
    async with client.get(service.url("/")) as response:
        assert 404 == response.status
        assert "/metrics" in await response.text()


async def test_a_port_in_use_is_one_line_that_names_the_setting(service: Service) -> None:
    second = Service(service.server.endpoint)

    with pytest.raises(StartupError) as raised:
        await second.server.start()

    line = str(raised.value)
    assert line.startswith(f"service.telemetry.endpoint: {service.server.endpoint}: cannot listen: ")
    assert "\n" not in line


async def test_shutdown_is_safe_before_start_and_twice() -> None:
    service = Service()

    await service.shutdown()
    await service.server.start()
    await service.shutdown()
    await service.shutdown()


class _Probes:
    def __init__(self) -> None:
        self.expected = 0

    def expect_probe(self) -> JsonObject:
        self.expected += 1
        return {"traces": {"00": "pass"}}

    def probe_verdicts(self) -> JsonObject:
        return {"00": None}


async def test_only_a_post_lets_a_probe_be_expected(client: aiohttp.ClientSession) -> None:
    probes = _Probes()
    service = Service(probes=probes)
    await service.server.start()
    async with client.get(service.url("/self-check")) as verdicts, client.head(service.url("/self-check")):
        assert {"00": None} == await verdicts.json()
        assert 0 == probes.expected
    async with client.post(service.url("/self-check")) as told, client.post(service.url("/metrics")) as other:
        assert {"traces": {"00": "pass"}} == await told.json()
        assert (1, 405) == (probes.expected, other.status)
    await service.shutdown()


async def test_without_probes_there_is_no_such_path(service: Service, client: aiohttp.ClientSession) -> None:
    async with client.post(service.url("/self-check")) as answer:
        assert 404 == answer.status


BROWSER = {"accept-language": "en"}
REBOUND = {"host": "evil.example:9464", **BROWSER}


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/metrics", REBOUND, 403),
        ("POST", "/self-check", {"origin": "http://evil.example:9464", **REBOUND}, 403),
        ("POST", "/self-check", {"origin": "https://evil.example", **BROWSER}, 403),
        ("POST", "/self-check", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}, 403),
        ("GET", "/metrics", {"host": "localhost:9464", **BROWSER}, 200),
        ("GET", "/metrics", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, 200),
        ("GET", "/metrics", {"host": "tracegrade.agents.svc:9464"}, 200),  # a scrape through a proxy
        ("POST", "/self-check", {}, 200),
    ],
)
async def test_no_site_reaches_it_by_a_browser(
    client: aiohttp.ClientSession, method: str, path: str, headers: dict[str, str], status: int
) -> None:
    service = Service(probes=_Probes())
    await service.server.start()

    async with client.request(method, service.url(path), headers=headers) as answer:
        assert status == answer.status
    await service.shutdown()


async def test_what_other_machines_reach_has_names_that_are_not_known_to_it(
    client: aiohttp.ClientSession,
) -> None:
    service = Service("0.0.0.0:0")
    await service.server.start()

    port = service.server.endpoint.rpartition(":")[2]
    async with client.get(f"http://127.0.0.1:{port}/metrics", headers=REBOUND) as answer:
        assert 200 == answer.status
    await service.shutdown()
