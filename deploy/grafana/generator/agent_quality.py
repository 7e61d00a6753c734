"""The dashboard *Agent quality*: which agents got worse, by which evaluation, version, since when."""

from deploy.grafana.generator.dashboard import (
    AGENT_QUALITY,
    TO_ONE_AGENT,
    agent_annotations,
    dashboard,
    many,
    process_variables,
)
from deploy.grafana.generator.panels import (
    COUNT_OF_TROUBLE,
    SHARE_OF_PASSES,
    SHARE_OF_TROUBLE,
    Column,
    Query,
    heatmap,
    link,
    stat,
    state_timeline,
    table,
    text,
    time_series,
)
from deploy.grafana.generator.promql import (
    AGENT,
    AGENTS,
    BROKEN,
    DECIDED,
    EVALUATION,
    EVALUATIONS,
    FAILED,
    MIN_VERDICTS,
    NOT_EVALUATED,
    OUTCOME,
    RESULTS,
    SCORE,
    VERSION,
    VERSIONS,
    against_objective,
    enough,
    last_week,
    mean_score,
    pass_rate,
    quantile,
    recorded,
    select,
    share_of_results,
    total,
    verdicts,
    with_verdicts,
)
from processors.model import JsonObject

_PICKED = (AGENTS, EVALUATIONS, VERSIONS)
_PAIR = (AGENT, EVALUATION)
_NAMED = f"{{{{{AGENT}}}}}: {{{{{EVALUATION}}}}}"
_WORST = 20

_GOOD = f"""\
**Good:** every evaluation passes as often as it did last week, nothing fails in a row, and almost nothing
is *not evaluated* or in *error*. Those two say nothing of the agent (look at *Service health*), so no score
contains them.

**Grey is not green:** with fewer than {MIN_VERDICTS} verdicts there is *not enough data*: nobody knows how
the agent does.

**When it is not:** pick the worst row of the table, open its agent, see since when and in which version it
fails, and click an exemplar (a dot) to open a trace of it.
"""

_OPEN_LABEL = link("Open this agent", f"{TO_ONE_AGENT}${{__field.labels.{AGENT}:percentencode}}")
_AGENT_COLUMN = Column(
    AGENT, "Agent", link=f"{TO_ONE_AGENT}${{__value.raw:percentencode}}", link_title="Open this agent"
)
_EVALUATION_COLUMN = Column(EVALUATION, "Evaluation")
_OUTCOME_COLORS = {"pass": "green", "fail": "red", "error": "purple", "not_evaluated": "blue"}


def agent_quality() -> JsonObject:
    """All agents, worst first."""
    return dashboard(
        AGENT_QUALITY,
        "Agent quality",
        "Scores and pass rates of all agents: who got worse, by which evaluation, since when.",
        variables=[
            *process_variables(),
            many("agent", "Agent", select(RESULTS), AGENT),
            many("evaluation", "Evaluation", select(RESULTS, AGENTS), EVALUATION),
            many("version", "Version", select(RESULTS, AGENTS), VERSION, all_value=".*"),
        ],
        annotations=agent_annotations(AGENTS),
        since="now-24h",
        rows=[
            ("", [text("What good looks like", _GOOD), *_numbers()]),
            ("Where it is worst", _worst()),
            ("Verdicts and scores", _scores()),
            ("Against the past", _past()),
            ("Not in the scores", _left_out()),
        ],
    )


def _numbers() -> list[JsonObject]:
    runs = select("tracegrade_agent_runs_total", AGENTS, VERSIONS)
    streaks = select("tracegrade_consecutive_failures", AGENTS, EVALUATIONS)
    counts = verdicts(*_PICKED, by=_PAIR)
    return [
        stat(
            "Pass rate",
            "Passes divided by passes and failures, of everything picked, over the time range. "
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
            "Agent runs",
            "Runs of the picked agents seen in live traces over the time range, graded or not.",
            total(runs),
            decimals=0,
        ),
        stat(
            "Evaluations without enough data",
            f"Pairs of agent and evaluation with fewer than {MIN_VERDICTS} verdicts over the time range. "
            "Nothing is known about them: take a longer range.",
            f"count({counts} < {MIN_VERDICTS}) or 0 * count({counts})",
        ),
        stat(
            "Not evaluated",
            "Results without a verdict divided by all results, over the time range. "
            "They are neither good nor bad and are in no score; Service health has the reasons.",
            share_of_results(NOT_EVALUATED, *_PICKED),
            unit="percentunit",
            thresholds=SHARE_OF_TROUBLE,
            runbook="AgentEvaluationsNotEvaluated",
        ),
        stat(
            "Failing five times in a row",
            "Evaluations whose last five live verdicts, or more, were all failures, whatever the volume.",
            f"count({streaks} >= 5) or 0 * count({streaks})",
            thresholds=COUNT_OF_TROUBLE,
            runbook="AgentEvaluationFailingInARow",
        ),
    ]


def _worst() -> list[JsonObject]:
    failing = recorded("agent:gen_ai_evaluation_failures_per_result:ratio_rate1h", AGENTS, EVALUATIONS)
    volume = recorded("agent:gen_ai_evaluation_results:increase1h", AGENTS, EVALUATIONS)
    worst = f"topk({_WORST}, {total(select(RESULTS, *_PICKED, FAILED), *_PAIR, at=' @ end()')})"
    return [
        table(
            "Evaluations, most failures first",
            "One row for each agent and evaluation, over the time range. Pass rate: passes / (passes + "
            "failures). Mean score: sum / number of scores. Against objective: pass rate of all versions "
            "less the one that alerts hold it to. Against last week: mean score of the last hour less that "
            f"of the same hour a week ago. Both need {MIN_VERDICTS} verdicts. In a row: failures since the "
            "last pass.",
            [
                Query(pass_rate(*_PICKED, by=_PAIR), "pass rate"),
                Query(mean_score(*_PICKED, by=_PAIR), "mean score"),
                Query(against_objective(AGENTS, EVALUATIONS, by=_PAIR), "against objective"),
                Query(last_week(SCORE, *_PICKED, by=_PAIR), "against last week"),
                Query(verdicts(*_PICKED, by=_PAIR), "verdicts"),
                Query(total(select(RESULTS, *_PICKED, FAILED), *_PAIR), "failed"),
                Query(total(select(RESULTS, *_PICKED, BROKEN), *_PAIR), "errors"),
                Query(total(select(RESULTS, *_PICKED, NOT_EVALUATED), *_PAIR), "not evaluated"),
                Query(
                    f"max by ({AGENT}, {EVALUATION})"
                    f" ({select('tracegrade_consecutive_failures', AGENTS, EVALUATIONS)})",
                    "in a row",
                ),
            ],
            [
                _AGENT_COLUMN,
                _EVALUATION_COLUMN,
                Column("pass rate", "Pass rate", "percentunit", SHARE_OF_PASSES),
                Column("mean score", "Mean score", "percentunit", SHARE_OF_PASSES),
                Column(
                    "against objective",
                    "Against objective",
                    "percentunit",
                    (("red", None), ("text", 0)),
                ),
                Column(
                    "against last week",
                    "Against last week",
                    "percentunit",
                    (("red", None), ("orange", -0.1), ("text", -0.03)),
                ),
                Column("verdicts", "Verdicts"),
                Column("failed", "Failed"),
                Column("errors", "Errors", thresholds=(("text", None), ("purple", 1))),
                Column("not evaluated", "Not evaluated", thresholds=(("text", None), ("blue", 1))),
                Column("in a row", "In a row", thresholds=(("text", None), ("red", 5))),
            ],
            sort_by="Failed",
            runbook="AgentEvaluationScoreRegression",
            height=11,
        ),
        state_timeline(
            f"Pass rate of the last hour, the {_WORST} with most failures",
            "1 - failures / (passes + failures) of the hour before each moment (recording rule; all "
            f"versions). Grey: fewer than {MIN_VERDICTS} verdicts in that hour.",
            Query(
                f"({enough(f'1 - {failing}', volume)}) and on ({AGENT}, {EVALUATION}) {worst}",
                _NAMED,
            ),
            links=[_OPEN_LABEL],
            runbook="AgentFleetRegression",
        ),
    ]


def _scores() -> list[JsonObject]:
    failed = select(RESULTS, *_PICKED, FAILED)
    return [
        time_series(
            "Verdicts by outcome",
            "Results between two points, by outcome. Not evaluated and error are neither good nor bad.",
            [
                Query(
                    total(select(RESULTS, *_PICKED), OUTCOME, window="$__rate_interval"), f"{{{{{OUTCOME}}}}}"
                )
            ],
            bars=True,
            colors=_OUTCOME_COLORS,
            runbook="AgentEvaluationErrors",
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
        time_series(
            "Lowest tenth of scores, by agent",
            "The score that a tenth of the runs stays below, estimated from the buckets between two "
            "points. Each dot is one run: click it to open its trace.",
            [Query(quantile(0.1, SCORE, *_PICKED, by=(AGENT,)), f"{{{{{AGENT}}}}}", exemplar=True)],
            unit="percentunit",
            maximum=1,
            links=[_OPEN_LABEL],
        ),
        time_series(
            "Failures by agent",
            "Failed evaluations between two points, the ten agents with most of them over the time range.",
            [
                Query(
                    f"{total(failed, AGENT, window='$__rate_interval')}"
                    f" and on ({AGENT}) topk(10, {total(failed, AGENT, at=' @ end()')})",
                    f"{{{{{AGENT}}}}}",
                )
            ],
            bars=True,
            links=[_OPEN_LABEL],
        ),
    ]


def _past() -> list[JsonObject]:
    mean = recorded("agent:gen_ai_evaluation_score:mean1h", AGENTS, EVALUATIONS)
    volume = recorded("agent:gen_ai_evaluation_results:increase1h", AGENTS, EVALUATIONS)
    versioned = (*_PICKED, f'{VERSION}!=""')
    by_version = (*_PAIR, VERSION)
    return [
        time_series(
            "Mean score against the same hour last week, ten largest drops",
            "Mean score of the last hour less that of the same hour a week ago (recording rule; all "
            f"versions), where both hours have at least {MIN_VERDICTS} verdicts; a line that is not there "
            "has not enough data. Below the dashed line the regression alert is on its way.",
            [
                Query(
                    f"bottomk(10, ({mean} - {mean} offset 7d) and {volume} >= {MIN_VERDICTS}"
                    f" and {volume} offset 7d >= {MIN_VERDICTS})",
                    _NAMED,
                )
            ],
            unit="percentunit",
            minimum=None,
            thresholds=(("transparent", None), ("red", -0.1)),
            links=[_OPEN_LABEL],
            runbook="AgentEvaluationScoreRegression",
            width=10,
            height=9,
        ),
        table(
            "Versions",
            "One row for each agent, evaluation and version with verdicts in the time range. Agents that "
            "send no version are not in it. Compare rows of one evaluation only where both have enough "
            "data.",
            [
                Query(
                    with_verdicts(mean_score(*versioned, by=by_version), *versioned, by=by_version),
                    "mean score",
                ),
                Query(
                    with_verdicts(pass_rate(*versioned, by=by_version), *versioned, by=by_version),
                    "pass rate",
                ),
                Query(f"{verdicts(*versioned, by=by_version)} > 0", "verdicts"),
            ],
            [
                _AGENT_COLUMN,
                _EVALUATION_COLUMN,
                Column(VERSION, "Version"),
                Column("mean score", "Mean score", "percentunit", SHARE_OF_PASSES),
                Column("pass rate", "Pass rate", "percentunit", SHARE_OF_PASSES),
                Column("verdicts", "Verdicts"),
            ],
            sort_by="Mean score",
            descending=False,
            runbook="AgentVersionWorseThanPrevious",
            width=14,
        ),
    ]


def _left_out() -> list[JsonObject]:
    runs = total(select("tracegrade_agent_runs_total", AGENTS), AGENT)
    judged = total(select(RESULTS, AGENTS, DECIDED), AGENT)
    ungraded = select("tracegrade_agents_without_criteria", AGENTS)
    uncaptured = select("tracegrade_agents_without_content", AGENTS)
    shadow = "tracegrade_shadow_evaluation_results_total"
    shadow_score = "tracegrade_shadow_evaluation_score"
    muted = select("tracegrade_evaluation_muted_until_timestamp_seconds", AGENTS, EVALUATIONS)
    return [
        table(
            "Agents with runs but no verdict",
            "Agents that ran in the time range and got neither a pass nor a failure: no evaluation applies "
            "to them (1 under No criteria), content was not captured (1 under No content), or nothing could "
            "be evaluated. An agent is not fine because it is not graded.",
            [
                Query(f"({runs} > 0) unless ({judged} > 0)", "runs"),
                Query(f"max by ({AGENT}) ({ungraded}) and on ({AGENT}) ({runs} > 0)", "no criteria"),
                Query(
                    f"max by ({AGENT}) ({uncaptured}) and on ({AGENT}) (({runs} > 0) unless ({judged} > 0))",
                    "no content",
                ),
            ],
            [
                _AGENT_COLUMN,
                Column("runs", "Runs"),
                Column("no criteria", "No criteria", thresholds=(("text", None), ("orange", 1))),
                Column("no content", "No content", thresholds=(("text", None), ("orange", 1))),
            ],
            sort_by="Runs",
            runbook="AgentEvaluationsSilent",
            width=6,
            height=8,
        ),
        table(
            "In shadow",
            "Evaluations on trial: they are in no other panel, and nobody is alerted. Pass rate and "
            "verdicts as above, mean score over the time range whatever the number.",
            [
                Query(pass_rate(*_PICKED, by=_PAIR, results=shadow), "pass rate"),
                Query(
                    f"{total(select(f'{shadow_score}_sum', *_PICKED), *_PAIR)}"
                    f" / {total(select(f'{shadow_score}_count', *_PICKED), *_PAIR)}",
                    "mean score",
                ),
                Query(verdicts(*_PICKED, by=_PAIR, results=shadow), "verdicts"),
            ],
            [
                _AGENT_COLUMN,
                _EVALUATION_COLUMN,
                Column("pass rate", "Pass rate", "percentunit", SHARE_OF_PASSES),
                Column("mean score", "Mean score", "percentunit"),
                Column("verdicts", "Verdicts"),
            ],
            sort_by="Verdicts",
            width=10,
            height=8,
        ),
        table(
            "Muted",
            "Evaluations whose failures alert nobody until the time shown. Their results are in all panels.",
            [Query(f"1000 * max by ({AGENT}, {EVALUATION}) ({muted})", "until")],
            [_AGENT_COLUMN, _EVALUATION_COLUMN, Column("until", "Until", "dateTimeAsIso")],
            sort_by="Until",
            descending=False,
            width=8,
            height=8,
        ),
    ]
