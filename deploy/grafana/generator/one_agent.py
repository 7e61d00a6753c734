"""The dashboard *One agent*: what it does wrong, since which version or criteria, with which tool."""

from deploy.grafana.generator.dashboard import (
    ONE_AGENT_UID,
    agent_annotations,
    dashboard,
    many,
    one,
    process_variables,
)
from deploy.grafana.generator.one_agent_amounts import amounts
from deploy.grafana.generator.one_agent_changes import changes, others, tools
from deploy.grafana.generator.panels import (
    SHARE_OF_PASSES,
    SHARE_OF_TROUBLE,
    Column,
    Query,
    heatmap,
    stat,
    state_timeline,
    table,
    text,
    time_series,
)
from deploy.grafana.generator.promql import (
    AGENT,
    BROKEN,
    EVALUATION,
    EVALUATIONS,
    FAILED,
    MIN_VERDICTS,
    NOT_EVALUATED,
    ONE_AGENT,
    RESULTS,
    SCORE,
    VERSION,
    VERSIONS,
    enough,
    mean_score,
    objective,
    pass_rate,
    quantile,
    recorded,
    select,
    share_of_results,
    total,
    verdicts,
)
from processors.model import JsonObject

_PICKED = (ONE_AGENT, EVALUATIONS, VERSIONS)
_LEGEND = f"{{{{{EVALUATION}}}}}"
_TOOL_CALLS = "tracegrade_tool_calls_total"

_GRADED_OR_RUNNING = '__name__=~"gen_ai_evaluation_results_total|tracegrade_agent_runs_total"'

_GOOD = f"""\
**Good:** all evaluations pass as before, tools rarely fail, and no evaluation fails in a row.

**When not:** *Evaluations* shows which one fails; the bars below since when. Lines across all panels mark a
new version of the agent (blue) and changed criteria (purple): a score that falls at a purple line may be
the criteria's doing. Click a dot in *Lowest tenth of scores* or *Scores* to open the trace of a run that
scored so.

**Grey is not green:** with fewer than {MIN_VERDICTS} verdicts there is *not enough data*.
"""


def one_agent() -> JsonObject:
    """One agent, everything that is known about it."""
    return dashboard(
        ONE_AGENT_UID,
        "One agent",
        "One agent: its evaluations, versions, tools, and what changed.",
        variables=[
            *process_variables(),
            one("agent", "Agent", select("", _GRADED_OR_RUNNING), AGENT),
            many("evaluation", "Evaluation", select(RESULTS, ONE_AGENT), EVALUATION),
            many("version", "Version", select(RESULTS, ONE_AGENT), VERSION, all_value=".*"),
        ],
        annotations=agent_annotations(ONE_AGENT),
        since="now-24h",
        rows=[
            ("", [text("What good looks like", _GOOD), *_numbers()]),
            ("Which evaluation, since when", _evaluations()),
            ("What changed", changes()),
            ("Time, tokens and money", amounts()),
            ("Tools", tools()),
            ("Classes, and what has no verdict", others()),
        ],
    )


def _numbers() -> list[JsonObject]:
    calls = select(_TOOL_CALLS, ONE_AGENT)
    failed_calls = select(_TOOL_CALLS, ONE_AGENT, 'status="error"')
    return [
        stat(
            "Pass rate",
            "Passes divided by passes and failures of the picked evaluations, over the time range. "
            f"Fewer than {MIN_VERDICTS} verdicts are not enough data.",
            pass_rate(*_PICKED),
            unit="percentunit",
            thresholds=SHARE_OF_PASSES,
            runbook="AgentEvaluationObjectiveBurn",
        ),
        stat(
            "Mean score",
            "Sum of scores divided by their number (passes and failures), over the time range. "
            f"Fewer than {MIN_VERDICTS} verdicts are not enough data.",
            mean_score(*_PICKED),
            unit="percentunit",
            thresholds=SHARE_OF_PASSES,
            runbook="AgentEvaluationScoreBelowBaseline",
        ),
        stat(
            "Runs",
            "Runs of the agent seen in live traces over the time range, graded or not.",
            total(select("tracegrade_agent_runs_total", ONE_AGENT, VERSIONS)),
            decimals=0,
        ),
        stat(
            "Longest row of failures",
            "Failures since the last pass, of the evaluation where these are most. Results without a verdict "
            "neither add to them nor end them.",
            f"max({select('tracegrade_consecutive_failures', ONE_AGENT, EVALUATIONS)})",
            thresholds=(("green", None), ("orange", 3), ("red", 5)),
            runbook="AgentEvaluationFailingInARow",
        ),
        stat(
            "Not evaluated",
            "Results without a verdict divided by all results, over the time range. They are in no score.",
            share_of_results(NOT_EVALUATED, *_PICKED),
            unit="percentunit",
            thresholds=SHARE_OF_TROUBLE,
            runbook="AgentEvaluationNeverDecides",
        ),
        stat(
            "Failed tool calls",
            "Tool calls with an error divided by all tool calls, over the time range.",
            f"{total(failed_calls)} / ({total(calls)} > 0)",
            unit="percentunit",
            thresholds=(("green", None), ("orange", 0.05), ("red", 0.2)),
        ),
    ]


def _evaluations() -> list[JsonObject]:
    streaks = select("tracegrade_consecutive_failures", ONE_AGENT, EVALUATIONS)
    failing = recorded("agent:gen_ai_evaluation_failures_per_result:ratio_rate1h", ONE_AGENT, EVALUATIONS)
    volume = recorded("agent:gen_ai_evaluation_results:increase1h", ONE_AGENT, EVALUATIONS)
    early = select("tracegrade_early_failures_total", ONE_AGENT, EVALUATIONS)
    by = (EVALUATION,)
    return [
        table(
            "Evaluations",
            "One row for each evaluation, over the time range. Pass rate: passes / (passes + failures). "
            "Objective: the pass rate that the alerts hold it to. Mean score: sum / number of scores. In a "
            "row: failures since the last pass.",
            [
                Query(pass_rate(*_PICKED, by=by), "pass rate"),
                Query(mean_score(*_PICKED, by=by), "mean score"),
                Query(objective(ONE_AGENT, EVALUATIONS, by=by), "objective"),
                Query(verdicts(*_PICKED, by=by), "verdicts"),
                Query(total(select(RESULTS, *_PICKED, FAILED), *by), "failed"),
                Query(total(select(RESULTS, *_PICKED, BROKEN), *by), "errors"),
                Query(total(select(RESULTS, *_PICKED, NOT_EVALUATED), *by), "not evaluated"),
                Query(f"max by ({EVALUATION}) ({streaks})", "in a row"),
            ],
            [
                Column(EVALUATION, "Evaluation"),
                Column("pass rate", "Pass rate", "percentunit", SHARE_OF_PASSES),
                Column("mean score", "Mean score", "percentunit", SHARE_OF_PASSES),
                Column("objective", "Objective", "percentunit"),
                Column("verdicts", "Verdicts"),
                Column("failed", "Failed"),
                Column("errors", "Errors", thresholds=(("text", None), ("purple", 1))),
                Column("not evaluated", "Not evaluated", thresholds=(("text", None), ("blue", 1))),
                Column("in a row", "In a row", thresholds=(("text", None), ("red", 5))),
            ],
            sort_by="Failed",
            runbook="AgentEvaluationScoreRegression",
        ),
        time_series(
            "Failures by evaluation",
            "Failed evaluations between two points.",
            [Query(total(select(RESULTS, *_PICKED, FAILED), EVALUATION, window="$__rate_interval"), _LEGEND)],
            bars=True,
            width=8,
        ),
        time_series(
            "Lowest tenth of scores",
            "The score that a tenth of the runs stays below, estimated from the buckets between two points. "
            "Each dot is one run: click it to open its trace.",
            [Query(quantile(0.1, SCORE, *_PICKED, by=by), _LEGEND, exemplar=True)],
            unit="percentunit",
            maximum=1,
            width=8,
        ),
        time_series(
            "Failures in a row",
            "Failures since the last pass, by evaluation. Results without a verdict neither add to them nor "
            "end them. From the dashed line on a ticket is raised, at any volume.",
            [Query(f"max by ({EVALUATION}) ({streaks})", _LEGEND)],
            thresholds=(("transparent", None), ("red", 5)),
            runbook="AgentEvaluationFailingInARow",
            width=8,
        ),
        state_timeline(
            "Pass rate of the last hour",
            "1 - failures / (passes + failures) of the hour before each moment (recording rule; all "
            f"versions). Grey: fewer than {MIN_VERDICTS} verdicts in that hour.",
            Query(enough(f"1 - {failing}", volume), _LEGEND),
            height=7,
        ),
        time_series(
            "Failures while running",
            "Failures of evaluations that are early, between two points: certain before the run was over.",
            [Query(total(early, EVALUATION, window="$__rate_interval"), _LEGEND)],
            bars=True,
            runbook="AgentRunaway",
            width=24,
            height=6,
        ),
        time_series(
            "Share of failures over 1 h, 6 h and 3 d",
            "Failures divided by passes and failures in the window before each moment (recording rules; "
            "all versions). The objective's alerts compare two such windows with the failures that the "
            "objective allows.",
            [
                Query(
                    recorded(
                        f"agent:gen_ai_evaluation_failures_per_result:ratio_rate{window}",
                        ONE_AGENT,
                        EVALUATIONS,
                    ),
                    f"{_LEGEND}, {window}",
                )
                for window in ("1h", "6h", "3d")
            ]
            + [Query(f"1 - {objective(ONE_AGENT, EVALUATIONS, by=by)}", f"{_LEGEND}, allowed")],
            unit="percentunit",
            maximum=1,
            runbook="AgentEvaluationObjectiveBurn",
        ),
        heatmap(
            "Scores",
            "How many scores fell into each bucket between two points. Each dot is one run: click it to "
            "open its trace.",
            Query(
                total(select(f"{SCORE}_bucket", *_PICKED), "le", window="$__rate_interval"),
                "{{le}}",
                exemplar=True,
            ),
        ),
    ]
