"""Every query of the dashboards, asked of a real Prometheus that scrapes a real service with real traffic."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from collector.tools.demo import ScriptedCall, ScriptedRun, perform, scripted_runs
from processors.model import JsonObject
from tests.support.backfill import PastSeries, write_blocks
from tests.support.dashboard_exceptions import exceptions
from tests.support.dashboards import (
    GRAFANA,
    DashboardQuery,
    annotation_queries,
    dashboards,
    fill_in,
    legend_labels,
    member,
    objects,
    panel_queries,
    panels,
    variable_queries,
)
from tests.support.prometheus_server import PrometheusServer, Series, scrape_config
from tests.support.service_process import ServiceProcess

RULES = GRAFANA.parent / "prometheus" / "rules" / "tracegrade.yaml"
AGENT, EVALUATION, VERSION = "gen_ai_agent_name", "gen_ai_evaluation_name", "gen_ai_agent_version"
NAMED, OTHER, UNGRADED = "support_agent", "weather_agent", "new_agent"
UNNAMED = "travel_agent"
"""An agent of the demonstration that the criteria of this test do not name."""
VERSIONS = ("1.4.0", "1.5.0")
WINDOWS: Mapping[str, str] = {"__range": "10m", "__rate_interval": "5s"}
ROUNDS = 6
"""For each version: 24 runs of either agent, enough for a verdict on them."""

CRITERIA = """\
owner: team-support
contact: "#support"
agents:
  weather_agent:
    evaluations:
      - evaluator: tool-call-order
        name: looks-before-it-forecasts
        criteria:
          tool_calls_order: [get_temperature, get_weather_condition, get_humidity, get_forecast]
  support_agent:
    evaluations:
      - evaluator: tool-call-count
        name: refunds-at-most-once
        severity: page
        criteria: {tool_calls_count: {refund_payment: ["<=", 1]}}
      - evaluator: tool-call-count
        name: looks-the-order-up
        mute: {until: 2100-01-01, reason: known, by: support}
        criteria: {tool_calls_count: {lookup_order: [">=", 1]}}
      - evaluator: tool-repetition
        stage: shadow
      - evaluator: multiclass-classification
        name: names-the-outcome
        config: {classes: ["Order A-17 is refunded: 42.50.", "Order A-18 is refunded."]}
        criteria: {expected_class: "Order A-17 is refunded: 42.50."}
      - evaluator: tool-args-schema
"""
"""All outcomes for one agent: passes, failures, errors (no class named) and no verdict (no schema told)."""

SETTINGS: JsonObject = {
    "cluster": {"peers": ["127.0.0.1:4317"], "resolver_interval": "1s"},
    "journal": {"directory": "journal"},
    "store": {"path": "runs.db"},
    "service": {"telemetry": {"self_check": {"enabled": True}}},
    "processors": {
        "evaluation": {"model_prices": {"*": {"input": 3, "output": 15}}},
        "group_by_trace": {"root_grace": "auto"},
    },
}

UNGRADED_RUN = ScriptedRun(
    UNGRADED,
    "nobody wrote criteria for it",
    "Hello?",
    (ScriptedCall("look_up", {"what": "it"}, {"it": 1}),),
    "Hello.",
)


class AgentVersion(SpanProcessor):
    """Gives the spans of agents a version, as a framework does that knows it."""

    def __init__(self, version: str) -> None:
        self._version = version

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        if span.name.startswith("invoke_agent"):
            span.set_attribute("gen_ai.agent.version", self._version)


def send_runs(endpoint: str, version: str) -> None:
    provider = TracerProvider(resource=Resource.create({"service.name": "agents"}))
    provider.add_span_processor(AgentVersion(version))
    provider.add_span_processor(
        BatchSpanProcessor(OTLPSpanExporter(endpoint=f"http://{endpoint}", insecure=True, timeout=30))
    )
    try:
        for _ in range(ROUNDS):
            for run in (*scripted_runs(), UNGRADED_RUN):
                perform(run, provider.get_tracer("agents"))
    finally:
        provider.shutdown()


def before(instance: str) -> list[PastSeries]:
    """Good scores at this time last week, and what recording rules made of those and of the last hours."""
    now = time.time()
    last_week = [now - 7 * 86400 + 60 * minute for minute in range(-60, 30)]
    last_hours = [now - 150 * count for count in range(190, 0, -1)]
    history = []
    for agent, evaluation in ((NAMED, "refunds-at-most-once"), (OTHER, "looks-before-it-forecasts")):
        labels = {"job": "tracegrade", AGENT: agent, EVALUATION: evaluation}
        for part in ("count", "sum"):
            raw = labels | {"instance": instance, VERSION: "1.3.0"}
            counted = [(moment, float(index)) for index, moment in enumerate(last_week)]
            history.append(PastSeries(f"gen_ai_evaluation_score_{part}", raw, counted))
        for rule, moments, value in (
            ("gen_ai_evaluation_score:mean1h", last_week, 1.0),
            ("gen_ai_evaluation_results:increase1h", [*last_week, *last_hours], 60.0),
            ("gen_ai_evaluation_failures:increase1h", last_hours, 6.0),
            ("gen_ai_evaluation_results:increase5m", last_hours, 5.0),
            ("gen_ai_evaluation_failures:increase5m", last_hours, 0.5),
        ):
            history.append(PastSeries(f"agent:{rule}", labels, [(moment, value) for moment in moments]))
    for what, types in (("duration_seconds", ("",)), ("tokens", ("input", "output")), ("cost", ("",))):
        for kind in types:
            labels = {"job": "tracegrade", AGENT: NAMED} | ({"gen_ai_token_type": kind} if kind else {})
            for rule, value in (("mean1h", 0.01), ("increase1h", 60.0)):
                taken = [(moment, value) for moment in last_week]
                history.append(PastSeries(f"agent:tracegrade_agent_run_{what}:{rule}", labels, taken))
    return history


class Answers:
    """Asks as Grafana does, with values picked for the variables and a time range."""

    def __init__(
        self, prometheus: PrometheusServer, picked: Mapping[str, str], start: float, end: float
    ) -> None:
        self._prometheus = prometheus
        self._picked = {**WINDOWS, **picked}
        self._start = start
        self._end = end

    async def to(self, query: DashboardQuery) -> list[Series]:
        expression = fill_in(query.expression, self._picked)
        if query.ref == "Anno":  # as on a dashboard that has been looking on for days
            expression = expression.replace("[5m]", "[5s]").replace("[1d] offset 5m", "[1m] offset 3s")
            expression = expression.replace("offset 5m", "offset 3s")
        if query.instant:
            return await self._prometheus.query(expression, self._end)
        return await self._prometheus.query_range(expression, start=self._start, end=self._end, step=0.5)


@pytest.mark.end_to_end
@pytest.mark.requires_program("prometheus")
@pytest.mark.requires_program("promtool")
@pytest.mark.timeout(300)
async def test_every_query_answers_for_the_agent_that_is_picked(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        service = await stack.enter_async_context(ServiceProcess(tmp_path, SETTINGS, CRITERIA))
        instance = service.endpoints["telemetry"]
        history = await write_blocks(before(instance), tmp_path)
        start = time.time()
        prometheus = await stack.enter_async_context(
            PrometheusServer(
                tmp_path,
                {"scrape_configs": [scrape_config("tracegrade", instance, interval="1s")]},
                rule_files=[RULES],
                blocks=[history],
            )
        )
        await prometheus.until("up == 1")
        for version in VERSIONS:
            await asyncio.to_thread(send_runs, service.endpoints["grpc"], version)
            runs = f'{{{AGENT}="{NAMED}", {VERSION}="{version}"}} == {4 * ROUNDS}'
            await prometheus.until(f"tracegrade_agent_runs_total{runs}")
        service.criteria_path.write_text(CRITERIA.replace('["<=", 1]', '["<=", 0]'))
        changed = f'tracegrade_evaluation_info{{{AGENT}="{NAMED}", {EVALUATION}="refunds-at-most-once"}}'
        await prometheus.until(f"count(count_over_time({changed}[10m]) >= 3) == 2")
        await prometheus.until("tracegrade_self_checks_total{outcome='success'} > 0")
        await prometheus.until(
            f"agent_version:gen_ai_evaluation_results:increase1h{{{VERSION}='1.5.0'}} >= 20"
        )
        await prometheus.until("agent:gen_ai_evaluation_results:increase1h >= 20")
        await prometheus.until(f'agent:tracegrade_agent_run_cost:week_ratio1h{{{AGENT}="{NAMED}"}}')

        # What is asked does not depend on how the scrapes after this moment go.
        await prometheus.until("count_over_time(up[6s]) >= 5 and min_over_time(up[6s]) == 1")
        end = time.time()
        everything = {"job": ".+", "instance": ".+", "evaluation": ".+", "version": ".*"}
        exactly = everything | {"agent": NAMED, "job": "tracegrade", "instance": instance}
        of_one = Answers(prometheus, exactly, start, end)
        of_ungraded = Answers(prometheus, everything | {"agent": UNGRADED}, start, end)
        of_nobody = Answers(prometheus, everything | {"agent": "nobody"}, start, end)
        problems = [
            *await problems_of_panels(of_one, of_ungraded, of_nobody),
            *await problems_of_tables(of_one, of_ungraded),
            *await problems_of_exemplars(prometheus, everything | {"agent": NAMED}, start),
            *await problems_of_variables(prometheus, everything | {"agent": NAMED}, instance),
        ]

    assert not problems, "\n".join(problems)


async def problems_of_panels(of_one: Answers, of_ungraded: Answers, of_nobody: Answers) -> list[str]:
    quiet = exceptions("quiet")
    problems, quiet_seen = [], set()
    for query in (*panel_queries(), *annotation_queries()):
        ungraded = query.panel == "Agents with runs but no verdict"
        series = await (of_ungraded if ungraded else of_one).to(query)
        where = f"{query.panel} / {query.ref}"
        if where in quiet:
            quiet_seen.add(where)
            if any(value for one in series for _, value in one.points):
                problems.append(f"{query}: {quiet[where]}, but it gives {series}")
            continue
        if not series:
            problems.append(f"{query}: no answer to {query.expression}")
            continue
        if any(value != value for one in series for _, value in one.points[-1:]) and query.instant:
            problems.append(f"{query}: not a number in {series}")
        named = {one.labels.get(AGENT, "") for one in series}
        picked = {UNGRADED if ungraded else NAMED}
        if named != picked and (named != {""} or AGENT in legend_labels(query)):
            problems.append(f"{query}: answers for {named}")
        if "$agent" in query.expression and await of_nobody.to(query):
            problems.append(f"{query}: answers for an agent that is not there")
        missing = legend_labels(query) - set().union(*(one.labels for one in series))
        if missing - {VERSION}:
            problems.append(f"{query}: the legend's {missing} are in no series")
    return [
        *problems,
        *(f"{where} is excepted as quiet, but there is no such query" for where in set(quiet) - quiet_seen),
    ]


async def problems_of_tables(of_one: Answers, of_ungraded: Answers) -> list[str]:
    problems = []
    queries = list(panel_queries())
    for dashboard in dashboards():
        for panel in (panel for panel in panels(dashboard) if panel["type"] == "table"):
            own = [one for one in queries if (one.dashboard, one.panel) == (dashboard["uid"], panel["title"])]
            asked = of_ungraded if panel["title"] == "Agents with runs but no verdict" else of_one
            fields = {"Value"} if len(own) == 1 else {f"Value #{query.ref}" for query in own}
            for query in own:
                fields |= {label for series in await asked.to(query) for label in series.labels}
            _, picking, naming = objects(panel["transformations"])
            missing = set(_texts(member(picking, "options", "include", "names"))) - fields
            if missing or set(_texts(member(naming, "options", "indexByName"))) - fields:
                problems.append(f"{dashboard['uid']} / {panel['title']}: no {missing} in {fields}")
    return problems


async def problems_of_exemplars(
    prometheus: PrometheusServer, picked: Mapping[str, str], start: float
) -> list[str]:
    problems = []
    for query in (query for query in panel_queries() if query.exemplar):
        expression = fill_in(query.expression, {**WINDOWS, **picked})
        found = objects(
            await prometheus.get(
                "query_exemplars", {"query": expression, "start": repr(start), "end": repr(time.time() + 1)}
            )
        )
        named = {member(one, "seriesLabels", AGENT) for one in found}
        traces = {
            str(member(exemplar, "labels", "trace_id"))
            for one in found
            for exemplar in objects(one["exemplars"])
        }
        if named != {NAMED} or not traces or {len(trace) for trace in traces} != {32}:
            problems.append(f"{query}: exemplars of {named} with the traces {traces}")
    return problems


async def problems_of_variables(
    prometheus: PrometheusServer, picked: Mapping[str, str], instance: str
) -> list[str]:
    wanted: dict[str, set[str]] = {
        "job": {"tracegrade"},
        "instance": {instance},
        "agent": {NAMED, OTHER},
        "evaluation": {"refunds-at-most-once", "looks-the-order-up", "names-the-outcome", "tool-args-schema"},
        "version": set(VERSIONS),
    }
    problems = []
    for variable in variable_queries():
        offered = set(await prometheus.label_values(variable.label, fill_in(variable.selector, picked)))
        of_all = variable.name == "agent" and variable.dashboard == "tracegrade-one-agent"
        also = {UNGRADED, UNNAMED} if of_all else set()
        if offered != wanted[variable.name] | also:
            problems.append(f"{variable}: offers {offered}")
    return problems


def _texts(value: object) -> Sequence[str]:
    assert isinstance(value, list | dict)
    return [str(one) for one in value]
