"""The views: what each path of the page shows, as HTML for people and as JSON for the command line."""

import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from dataclasses import fields as dataclass_fields
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from collector.clock import Clock
from collector.config_fields import parse_moment
from collector.errors import TracegradeError
from collector.framework_pages import content_settings
from collector.page.charts import axis, most_runs, run_bars, score_line, trend
from collector.page.page_access import HAS_SESSION, VISITOR, Visitor
from collector.page.run_comparison import compared_runs
from collector.page.run_view import DIRECTION_MARKS, agent_tree, cost_text, seconds_text, shown_run
from collector.store import (
    FILTER_FIELDS,
    HOUR_MILLISECONDS,
    MAX_COUNT,
    MOMENTS,
    SEARCH_FIELDS,
    AgentSummary,
    Counts,
    InvalidReview,
    InvalidSearch,
    NewReview,
    Precision,
    RegradeRefused,
    Regrades,
    Review,
    Reviews,
    RunFilter,
    RunQueries,
    RunSummary,
    StoreUnusable,
    ToolSummary,
    read_filter,
    unknown_name,
)
from collector.trace import RunningFailure
from processors.criteria import CriteriaSet, Evaluation
from processors.documents import did_you_mean
from processors.model import JsonObject, Outcome

_PAGE_OF_RUNS = 50
_MAX_RUNS = 1_000
_MAX_CAUSES = 200
_MAX_TOOLS = 200
_CAUSES_OF_AGENT = 10
_MAX_RUNNING = 100
_DIGITS = 18
_MAX_TRACE = 32
_COMPARED = 2
_DAY_HOURS = 24
_LONGEST_HOURS = 14 * _DAY_HOURS
_MOST_HOURS = 10 * 366 * _DAY_HOURS
_RANGES = {"24h": _DAY_HOURS, "7d": 7 * _DAY_HOURS, "14d": _LONGEST_HOURS}
"""Time ranges that views offer, in hours."""
_MAX_SNIPPET_LINES = 40
_MAX_RUNS_OF_TRACE = 100

_STATUSES: Mapping[type[TracegradeError], int] = {InvalidSearch: 400, InvalidReview: 400, RegradeRefused: 409}
"""Of errors that state what a visitor can correct."""
FAILURES = (HTTPException, sqlite3.Error, StoreUnusable, *_STATUSES)
"""What `Views.error` shows."""
_MARKS = re.compile(f"[{DIRECTION_MARKS}]")
_TEXT_NODE = re.compile(">[^<]+")
_RULES_PAGE = "https://github.com/tracegrade/tracegrade/blob/main/docs/response-handling.md"
_MISSING_WORDS: Mapping[str, str] = {
    "no_criteria": "no criteria applied",
    "no_calls": "no tool calls recorded",
    "content_not_captured": "content not captured",
    "passed_without_a_check": "passed, no alerting check evaluated",
}


@dataclass(eq=False)
class Views:
    """Every view as a function from a request to its response, run in a thread.

    `waits` returns the learned wait of each service, where waits are learned.
    """

    queries: RunQueries | None
    criteria_in_force: Callable[[], CriteriaSet]
    clock: Clock
    trace_link: str | None = None
    waits: Callable[[], Mapping[str, float]] | None = None
    criteria_problems: Callable[[], Sequence[object]] = tuple
    """What is wrong with criteria files that were refused; what they stated before is in force."""
    running: Callable[[], Sequence[RunningFailure]] = tuple
    """Failures of runs that go on, latest first."""

    def __post_init__(self) -> None:
        self._templates = Environment(
            loader=FileSystemLoader(Path(__file__).parent / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters |= {
            "moment": _moment,
            "percent": _percent,
            "number": _number,
            "seconds": seconds_text,
            "query": _query,
            "code": _code,
            "cut": _cut,
            "cost": cost_text,
            "content_settings": lambda dialect: [*content_settings().get(dialect, ())],
        }
        self._templates.globals |= {
            "missing_words": _MISSING_WORDS,
            "now": self.clock.unix_nano,
            "rules_page": _RULES_PAGE,
        }

    def agents(self, request: Request) -> Response:
        """Every agent: its runs, their outcomes, the evaluations in force, what is missing."""
        hours = self._hours(request)
        queries = self.visible(request)
        result = [agent for agent in queries.agents(hours) if agent.runs.count]
        criteria = self.criteria_in_force()
        checks: dict[str, Counts] = {}
        for (_, name, _), counts in queries.evaluation_counts(hours).items():
            checks.setdefault(name, Counts()).add_all(counts)
        costs: dict[str, Counts] = {}
        for (name, _), usage in queries.usage(hours=hours).items():
            costs.setdefault(name, Counts()).add_all(usage.get("cost", Counts()))
        shown = _shown(hours, (hour for agent in result for hour in agent.hours))
        releases = queries.releases()
        rows = [
            {
                "agent": agent,
                "chart": run_bars(agent.hours, shown, releases.get(agent.name, {})),
                "trend": trend(agent.hours, shown),
                "checks": checks.get(agent.name, Counts()),
                "cost": costs.get(agent.name, Counts()),
                "owners": _owners(criteria, agent),
                "evaluations": len(_in_force(criteria, agent)),
            }
            for agent in sorted(result, key=_attention)
        ]
        seen = {agent.name for agent in result}
        tenant = _tenant(request)
        silent = [name for name in criteria.exact_names(tenant or "") if name not in seen]
        # Services belong to no tenant in particular: a visitor with a tenant is not shown any.
        waits = None if self.waits is None or tenant is not None else sorted(self.waits().items())
        return self.page(
            request,
            "agents.html",
            "Agents",
            rows=rows,
            silent=silent,
            waits=waits,
            axis=axis(shown),
            running=self._running(request),
            hours=hours,
        )

    def agent(self, request: Request) -> Response:
        """One agent: its evaluations over time and by release, its tools, its failures."""
        name = request.query_params.get("name", "")
        hours = self._hours(request)
        queries = self.visible(request)
        summary = next((agent for agent in queries.agents(hours) if agent.name == name), None)
        if summary is None:
            raise HTTPException(404, "There are no stored runs of this agent.")
        shown = _shown(hours, summary.hours)
        versions = queries.versions(name, hours)
        releases = queries.releases(name).get(name, {})
        applied = {evaluation.name: evaluation for evaluation in _in_force(self.criteria_in_force(), summary)}
        return self.page(
            request,
            "agent.html",
            name,
            summary=summary,
            chart=run_bars(summary.hours, shown, releases),
            axis=axis(shown),
            most=most_runs(summary.hours, shown),
            usage={version: usage for (_, version), usage in queries.usage(name, hours).items()},
            releases=releases,
            versions=versions,
            shown_versions=list(versions)[:4],
            evaluations=[
                (criterion, score_line(criterion.hours, shown, releases), applied.get(criterion.name))
                for criterion in queries.evaluations(name, hours)
            ],
            tools=queries.tools(agent=name, hours=hours),
            causes=queries.causes(name, hours)[:_CAUSES_OF_AGENT],
            newest=queries.find(RunFilter(agent=name), 15),
            hours=hours,
        )

    def run(self, request: Request) -> Response:
        """The runs of a trace, each with its calls and verdicts."""
        trace_id = request.path_params["trace_id"].lower()
        queries = self.visible(request)
        result = queries.runs_of_trace(trace_id)[:_MAX_RUNS_OF_TRACE]
        if not result:
            beginning = queries.find(RunFilter(trace=trace_id), _PAGE_OF_RUNS)
            if len({run.trace_id for run in beginning}) > 1:
                return RedirectResponse(f"/find?{_query({'trace': trace_id})}", 303)
            if beginning:
                return RedirectResponse(f"/run/{beginning[0].trace_id}", 303)
            raise HTTPException(404, "There are no stored runs of this trace.")
        criteria = self.criteria_in_force()
        reviews = Reviews(self.visible(request)).of_trace(trace_id)
        runs = []
        for summary, line in result:
            written = {
                evaluation.name: (evaluation, _snippet(evaluation.source))
                for _, evaluation in criteria.sources_for(summary.agent, summary.tenant)
            }
            testable = {
                evaluation.name
                for agent, evaluation in criteria.sources_for(summary.agent, summary.tenant)
                if not agent.is_builtin
            }
            regrades = Regrades(queries).of_run(summary.id)
            runs.append((summary, shown_run(line, testable, reviews), written, regrades))
        link = None if self.trace_link is None else self.trace_link.replace("{trace_id}", quote(trace_id))
        return self.page(
            request,
            "run.html",
            f"Run of {result[0][0].agent}",
            runs=runs,
            tree=agent_tree([line for _, line in result]),
            trace_id=trace_id,
            link=link,
            reviews=reviews,
        )

    def compare(self, request: Request) -> Response:
        """Two runs side by side."""
        runs = self._compared(request)
        parts = compared_runs(runs[0][1], runs[1][1])
        return self.page(request, "compare.html", "Two runs", runs=[run for run, _ in runs], parts_of=parts)

    def api_compare(self, request: Request) -> Response:
        """What `compare` shows."""
        runs = self._compared(request)
        parts = asdict(compared_runs(runs[0][1], runs[1][1]))
        return JSONResponse({"runs": [asdict(run) for run, _ in runs], **parts})

    def _compared(self, request: Request) -> list[tuple[RunSummary, JsonObject]]:
        """The two runs of a query, the earlier first; to one alone, the last of its agent that passed."""
        queries = self.visible(request)
        chosen: list[tuple[RunSummary, JsonObject]] = []
        for name, value in request.query_params.multi_items():
            if name == "run" and _is_number(value):
                matching = queries.find(RunFilter(after=int(value) - 1, before=int(value) + 1), 1)
            elif name == "trace" and value:
                matching = queries.find(RunFilter(trace=value[:_MAX_TRACE]), 1, oldest_first=True)
            else:
                raise HTTPException(400, "expected run=ID or trace=TRACE_ID, twice")
            if not matching:
                raise HTTPException(404, f"There is no stored run {value[:_MAX_TRACE]}.")
            chosen += _with_lines(queries, matching)
        if len(chosen) == 1:
            (run, _), *_ = chosen
            passed = RunFilter(agent=run.agent, tenant=run.tenant, outcome=Outcome.PASS, before=run.id)
            chosen = [*_with_lines(queries, queries.find(passed, 1)), *chosen]
            if len(chosen) == 1:
                raise HTTPException(404, "No earlier run of this agent passed: choose two runs in Find.")
        if len(chosen) != _COMPARED:
            raise HTTPException(400, f"expected two runs, got {len(chosen)}")
        return sorted(chosen, key=lambda run: run[0].id)

    def failures(self, request: Request) -> Response:
        """Failures by their cause: how many, since when and since which release."""
        hours = self._hours(request)
        causes = self.visible(request).causes(request.query_params.get("agent", ""), hours)
        more = max(len(causes) - _MAX_CAUSES, 0)
        shown = causes[:_MAX_CAUSES]
        return self.page(request, "failures.html", "Failures", hours=hours, causes=shown, more=more)

    def tools(self, request: Request) -> Response:
        """The tools that agents call: how often, how often they fail, and how long they take."""
        tools, by_release = self._tools(request)
        return self.page(
            request,
            "tools.html",
            "Tools",
            tools=tools[:_MAX_TOOLS],
            more=max(len(tools) - _MAX_TOOLS, 0),
            by_release=by_release,
            hours=self._hours(request),
        )

    def api_tools(self, request: Request) -> Response:
        """What `tools` shows; those of one tool or agent by agent and release."""
        tools, _ = self._tools(request)
        return JSONResponse({"tools": [tool.to_json() for tool in tools]})

    def _tools(self, request: Request) -> tuple[list[ToolSummary], bool]:
        """The tools of a query, and whether they are apart by agent and release."""
        chosen = {name: request.query_params.get(name, "") for name in ("agent", "tool")}
        by_release, hours = any(chosen.values()), self._hours(request)
        return self.visible(request).tools(**chosen, by_release=by_release, hours=hours), by_release

    def find(self, request: Request) -> Response:
        """The runs that match the query."""
        run_filter, fields, problem = self._filter(request)
        queries = self.visible(request)
        names = queries.names()
        runs, count = ([], 0) if problem else queries.find_and_count(run_filter, _PAGE_OF_RUNS + 1)
        more = len(runs) > _PAGE_OF_RUNS
        runs = runs[:_PAGE_OF_RUNS]
        return self.page(
            request,
            "find.html",
            "Find",
            400 if problem else 200,
            names=names,
            runs=runs,
            count=f"{MAX_COUNT:,} or more" if count == MAX_COUNT else f"{count:,}",
            is_continued=bool(run_filter.before),
            asked=fields,
            terms=[(name, value, _query({**fields, name: ""})) for name, value in fields.items()],
            problem=problem or ("" if runs else unknown_name(run_filter, names)),
            older=_query({**fields, "before": runs[-1].id}) if more else None,
            search_fields=SEARCH_FIELDS,
        )

    def criteria(self, request: Request) -> Response:
        """What is in force, from which file, how often it applied and failed."""
        criteria = self.criteria_in_force()
        tenant = _tenant(request)
        shown = criteria
        if tenant is not None:
            agents = [agent for agent in criteria.agents if agent.is_builtin or agent.tenant == tenant]
            shown = CriteriaSet(agents)
        hours = self._hours(request)
        applied = self.visible(request).evaluation_counts(hours)
        counts: dict[tuple[str, str], Counts] = {}
        for run_tenant, agent_name in {(run_tenant, agent_name) for run_tenant, agent_name, _ in applied}:
            for _, evaluation in criteria.sources_for(agent_name, run_tenant):
                if (result := applied.get((run_tenant, agent_name, evaluation.name))) is not None:
                    counts.setdefault((evaluation.source, evaluation.name), Counts()).add_all(result)
        precision: dict[tuple[str, str], dict[str, Precision]] = {}
        for of, answers in Reviews(self.visible(request)).precision().items():
            for _, evaluation in criteria.sources_for(of.agent, of.tenant):
                if evaluation.name == of.evaluation:
                    by_rule = precision.setdefault((evaluation.source, evaluation.name), {})
                    by_rule.setdefault(of.rule, Precision()).add_all(answers)
        groups = []
        for agent in shown.agents:
            # What replaces an entry for an agent with the pattern as its name does so for all agents of it.
            of_pattern = criteria.sources_for(agent.pattern, tenant or agent.tenant)
            sources = {one.name: one.source for _, one in of_pattern if "[" not in agent.pattern}
            rows = [
                (one, counts.get((one.source, one.name)), sources.get(one.name)) for one in agent.evaluations
            ]
            groups.append((agent, rows))
        return self.page(
            request,
            "criteria.html",
            "Criteria",
            groups=groups,
            precision=precision,
            described=shown.describe(),
            problems=self._refused_criteria(request),
            hours=hours,
        )

    def review(self, request: Request, fields: Mapping[str, Any], credential: str) -> Review:
        """Store the review in `fields`; raises `InvalidReview` if it is none."""
        names = [field.name for field in dataclass_fields(NewReview)]
        values = {name: str(fields.get(name) or "") for name in names}
        return Reviews(self.visible(request)).add(NewReview(**values), credential, self.now())

    def api_reviews(self, request: Request) -> Response:
        """The reviews that match the query, newest first, and what they show of each evaluation and rule."""
        query = request.query_params
        filters: dict[str, Any] = {
            name: query.get(name, "") for name in ("agent", "evaluation", "answer", "trace")
        }
        filters["since"] = self._moment(request, "since", 0)
        filters["before"] = _id_before(request, "review")
        reviews = Reviews(self.visible(request))
        matching = islice(reviews.each(**filters), _MAX_RUNS)
        return JSONResponse(
            {
                "reviews": [asdict(review) for review in matching],
                "precision": [
                    {**of._asdict(), **asdict(answers)} for of, answers in reviews.precision().items()
                ],
            }
        )

    def login(self, request: Request, to: str, was_wrong: bool) -> Response:
        """The form for a token."""
        status = 403 if was_wrong else 200
        return self.page(request, "login.html", "Sign in", status, to=to, was_wrong=was_wrong)

    def api_newest(self, request: Request) -> Response:
        """The id of the newest run, which changes with every one."""
        return JSONResponse({"newest": self.visible(request).newest()})

    def api_agents(self, request: Request) -> Response:
        """A summary of every agent."""
        criteria = self.criteria_in_force()
        agents = self.visible(request).agents()
        rows = [{**agent.to_json(), "evaluations": len(_in_force(criteria, agent))} for agent in agents]
        running = [
            {
                "trace_id": failure.trace_id.hex(),
                "agent": failure.agent,
                "evaluation": failure.evaluation,
                "severity": failure.severity,
                "explanation": failure.explanation,
                "milliseconds": failure.unix_nano // 1_000_000,
            }
            for failure in self._running(request)
        ]
        return JSONResponse({"agents": rows, "names": self.visible(request).names(), "running": running})

    def api_runs(self, request: Request) -> Response:
        """The runs that match the query, newest first; `limit` of them."""
        run_filter, _, problem = self._filter(request)
        known = (*FILTER_FIELDS, *MOMENTS, "before", "limit")
        for name in request.query_params:
            if name not in known:
                problem = f"{name}: unknown parameter{did_you_mean(name, known)}; known: {', '.join(known)}"
        limit = request.query_params.get("limit", str(_PAGE_OF_RUNS))
        if not _is_number(limit) or not 1 <= int(limit) <= _MAX_RUNS:
            problem = f"limit: expected a whole number from 1 to {_MAX_RUNS}, got {limit[:100]!r}"
        if problem:
            raise HTTPException(400, problem)
        queries = self.visible(request)
        if run_filter.before:  # counted once, not for each page of a long list
            return JSONResponse({"runs": [asdict(run) for run in queries.find(run_filter, int(limit))]})
        runs, count = queries.find_and_count(run_filter, int(limit))
        return JSONResponse({"runs": [asdict(run) for run in runs], "count": count, "max_count": MAX_COUNT})

    def api_run(self, request: Request) -> Response:
        """The lines of the runs of a trace."""
        result = self.visible(request).runs_of_trace(request.path_params["trace_id"].lower())
        return JSONResponse({"runs": [line for _, line in result[:_MAX_RUNS_OF_TRACE]]})

    def error(self, request: Request, error: Exception) -> Response:
        """An error as a page, or as JSON under `/api/`."""
        if isinstance(error, HTTPException):
            status, detail = error.status_code, error.detail
        elif isinstance(error, TracegradeError) and (known := _STATUSES.get(type(error))):
            status, detail = known, str(error)
        else:
            status, detail = 503, f"The run store cannot be read: {error}"
        if request.url.path.startswith("/api/"):
            return JSONResponse({"error": detail}, status)
        return self.page(request, "error.html", "Cannot be shown", status, detail=detail)

    def _running(self, request: Request) -> list[RunningFailure]:
        """The failures of runs that go on, as far as the visitor may see them."""
        tenant = _tenant(request)
        visible = (failure for failure in self.running() if tenant in (None, failure.tenant))
        return list(islice(visible, _MAX_RUNNING))

    def visible(self, request: Request) -> RunQueries:
        """Reads the runs that the visitor may see."""
        if self.queries is None:
            raise StoreUnusable("it is disabled (store: off)")
        tenant = _tenant(request)
        return self.queries if tenant is None else self.queries.of_tenant(tenant)

    def _filter(self, request: Request) -> tuple[RunFilter, dict[str, str], str]:
        """The filter of a query, its form fields, and the problem with it."""
        values = {name: request.query_params.get(name, "").strip() for name in (*FILTER_FIELDS, *MOMENTS)}
        fields = {name: value for name, value in values.items() if value}
        try:
            return replace(read_filter(fields, self.now()), before=_id_before(request, "run")), fields, ""
        except InvalidSearch as error:
            return RunFilter(), fields, str(error)

    def _hours(self, request: Request) -> range:
        """The hours of charts and counts: the last two weeks, unless `since` or `until` state others."""
        now = self.now()
        defaults = zip(MOMENTS, (now - _LONGEST_HOURS * HOUR_MILLISECONDS, now), strict=True)
        bounds = [self._moment(request, name, default) for name, default in defaults]
        first, last = (bound // HOUR_MILLISECONDS for bound in bounds)
        if request.query_params.get("since", "") in ("", *_RANGES):
            first += 1  # a whole number of hours ends with the present one
        # A day ends where the next begins.
        last += bounds[1] % HOUR_MILLISECONDS != 0
        if not 0 < last - first <= _MOST_HOURS:
            raise HTTPException(
                400, "since, until: expected a time of at least an hour and at most ten years"
            )
        return range(first, last)

    def _moment(self, request: Request, name: str, default: int) -> int:
        """A time of the query in Unix milliseconds; raises `InvalidSearch`."""
        try:
            text = request.query_params.get(name, "")
            return parse_moment(text, self.now()) if text else default
        except ValueError as error:
            raise InvalidSearch(f"{name}: {error}") from None

    def now(self) -> int:
        """The present in Unix milliseconds."""
        return self.clock.unix_nano() // 1_000_000

    def page(
        self,
        request: Request,
        template: str,
        title: str,
        status: int = 200,
        hours: range | None = None,
        **values: Any,
    ) -> HTMLResponse:
        """A view out of its template; `hours` are those that its numbers count, which links to runs name."""
        bounds = (
            ()
            if hours is None
            else (hours.start, hours.stop)[: 2 if request.query_params.get("until") else 1]
        )
        moments = [_moment(hour * HOUR_MILLISECONDS, 16).replace(" ", "T") for hour in bounds]
        html = self._templates.get_template(template).render(
            title=title,
            path=request.url.path,
            ranges=_RANGES,
            counted=dict(zip(MOMENTS, moments, strict=False)),
            times={name: request.query_params.get(name, "") for name in MOMENTS},
            asked_name=request.query_params.get("name", ""),
            asked_agent=request.query_params.get("agent", ""),
            asked_tool=request.query_params.get("tool", ""),
            newest_run=self._newest_or_0(request) if status == 200 else 0,
            not_stored=self._not_stored(request) if status == 200 else {},
            refused_criteria=self._refused_criteria(request) if status == 200 else (),
            has_session=request.scope.get(HAS_SESSION, False),
            **values,
        )
        return HTMLResponse(_neutralised(html).encode(errors="replace"), status)

    def _newest_or_0(self, request: Request) -> int:
        if VISITOR not in request.scope:  # the sign-in form
            return 0
        try:
            return self.visible(request).newest()
        except StoreUnusable:
            return 0

    def _refused_criteria(self, request: Request) -> list[str]:
        """What is wrong with criteria files; their messages may name what belongs to another tenant."""
        is_for_all = VISITOR in request.scope and _tenant(request) is None
        return list(map(str, self.criteria_problems())) if is_for_all else []

    def _not_stored(self, request: Request) -> Mapping[str, int]:
        """Runs that no count has, by agent."""
        if VISITOR not in request.scope or self.queries is None:
            return {}
        last = self.now() // HOUR_MILLISECONDS
        return self.visible(request).not_stored(range(last - _LONGEST_HOURS + 1, last + 1))


def _with_lines(queries: RunQueries, runs: Sequence[RunSummary]) -> list[tuple[RunSummary, JsonObject]]:
    """Runs with their lines, without those that were removed meanwhile."""
    lines = queries.lines([run.id for run in runs])
    return [(run, line) for run in runs if (line := lines[run.id]) is not None]


def _is_number(text: str) -> bool:
    """Whether it is a whole number that SQLite can hold."""
    return text.isascii() and text.isdecimal() and len(text) < _DIGITS


def _id_before(request: Request, of: str) -> int:
    """The id of a run or review before which others are listed, 0 for all; raises `InvalidSearch`."""
    before = request.query_params.get("before") or "0"
    if not _is_number(before):
        raise InvalidSearch(f"before: expected the id of a {of}, got {before[:100]!r}")
    return int(before)


def _tenant(request: Request) -> str | None:
    """The tenant whose runs are visible; None for every tenant."""
    visitor: Visitor = request.scope[VISITOR]
    return visitor.tenant


def _shown(hours: range, counted: Iterable[int]) -> range:
    """The hours of a chart: the last day of them, or from the first count on if that is earlier."""
    return range(max(min([hours.stop - _DAY_HOURS, *counted]), hours.start), hours.stop)


def _attention(agent: AgentSummary) -> tuple[float, int]:
    """Agents in the order in which they need attention: by the share of their runs that failed."""
    rate = agent.runs.pass_rate
    return (1.1 if rate is None else rate), -agent.last_milliseconds


def _owners(criteria: CriteriaSet, agent: AgentSummary) -> list[str]:
    """Who answers for an agent, as criteria state it."""
    owners = {
        of.owner for tenant in agent.tenants for of, _ in criteria.sources_for(agent.name, tenant) if of.owner
    }
    return sorted(owners)


def _in_force(criteria: CriteriaSet, agent: AgentSummary) -> list[Evaluation]:
    """The evaluations that apply to the runs of an agent, for each of their tenants."""
    return [
        evaluation
        for tenant in sorted(agent.tenants)
        for _, evaluation in criteria.sources_for(agent.name, tenant)
    ]


def _cut(text: object, characters: int = 120) -> str:
    """A name of any length as one that a line holds."""
    name = str(text)
    return name if len(name) <= characters else f"{name[: characters - 1]}…"


def _neutralised(html: str) -> str:
    """With marks that turn text around shown as what they are; values of attributes stay as they are."""
    if not _MARKS.search(html):
        return html
    return _TEXT_NODE.sub(lambda text: _MARKS.sub(lambda mark: f"[U+{ord(mark[0]):04X}]", text[0]), html)


def _code(text: str) -> Markup:
    """Text with code in backticks."""
    parts = [escape(part) for part in text.split("`")]
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if index % 2 else part for index, part in enumerate(parts)
    )


def _snippet(source: str) -> str:
    """The entry of a criteria file that starts at `file:line`; empty if unreadable."""
    file, _, number = source.rpartition(":")
    try:
        first, *others = Path(file).read_text(encoding="utf-8").splitlines()[int(number) - 1 :]
    except (OSError, ValueError):
        return ""
    indent = _indent(first)
    taken = [first]
    for line in others[: _MAX_SNIPPET_LINES - 1]:
        if line.strip() and _indent(line) <= indent:
            break
        taken.append(line)
    return "\n".join(line[indent:] for line in taken).rstrip()


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _query(values: Mapping[str, object]) -> str:
    """A query string, without empty values."""
    return urlencode({key: value for key, value in values.items() if value not in ("", None)})


def _moment(milliseconds: int, characters: int = 19) -> str:
    """A time in UTC; of its 19 characters, 16 are to the minute."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(milliseconds / 1000))[:characters]


def _percent(share: float | None) -> str:
    """A share in percent; never 100 % if something failed."""
    if share is None:
        return "–"
    if 0.995 <= share < 1:
        return "> 99 %"
    return "< 1 %" if 0 < share < 0.005 else f"{share * 100:.0f} %"


def _number(count: float | None) -> str:
    return "–" if count is None else f"{count:,.2f}" if isinstance(count, float) else f"{count:,}"
