"""What changed about an agent, its tools, its classes: the lower half of the dashboard *One agent*."""

from deploy.grafana.generator.panels import (
    SHARE_OF_PASSES,
    Column,
    Query,
    table,
    time_series,
)
from deploy.grafana.generator.promql import (
    AGENT,
    EVALUATION,
    EVALUATIONS,
    MIN_VERDICTS,
    ONE_AGENT,
    VERSION,
    VERSIONS,
    mean_score,
    pass_rate,
    recorded,
    select,
    total,
    verdicts,
    with_verdicts,
)
from processors.model import JsonObject

_PICKED = (ONE_AGENT, EVALUATIONS, VERSIONS)
_LEGEND = f"{{{{{EVALUATION}}}}}"
_VERSION_LEGEND = f"{{{{{VERSION}}}}}"
_CRITERIA = (AGENT, EVALUATION, "evaluator", "evaluator_version", "criteria_hash")
_STATUS_COLORS = {"ok": "green", "error": "red", "not_executed": "orange"}
_TOOL_CALLS = "tracegrade_tool_calls_total"


def changes() -> list[JsonObject]:
    """Versions of the agent, its criteria, and what is muted."""
    info = select("tracegrade_evaluation_info", ONE_AGENT, EVALUATIONS)
    muted = select("tracegrade_evaluation_muted_until_timestamp_seconds", ONE_AGENT, EVALUATIONS)
    by = (EVALUATION, VERSION)
    facts = ("evaluator", "evaluator_version", "criteria_hash")
    mean = recorded("agent_version:gen_ai_evaluation_score:mean1h", *_PICKED)
    volume = recorded("agent_version:gen_ai_evaluation_results:increase1h", *_PICKED)
    return [
        time_series(
            "Runs by version",
            "Runs of the agent between two points, by the version that it sends; without a name: it sends "
            "none.",
            [
                Query(
                    total(
                        select("tracegrade_agent_runs_total", ONE_AGENT, VERSIONS),
                        VERSION,
                        window="$__rate_interval",
                    ),
                    _VERSION_LEGEND,
                )
            ],
            bars=True,
        ),
        time_series(
            "Mean score by version",
            "Mean score of the last hour by evaluation and version (recording rule), where there are at "
            f"least {MIN_VERDICTS} verdicts; a line that is not there has not enough data.",
            [Query(f"{mean} and {volume} >= {MIN_VERDICTS}", f"{_LEGEND}, {_VERSION_LEGEND}")],
            unit="percentunit",
            maximum=1,
            runbook="AgentVersionWorseThanPrevious",
        ),
        table(
            "Versions",
            "One row for each evaluation and version with verdicts in the time range.",
            [
                Query(with_verdicts(mean_score(*_PICKED, by=by), *_PICKED, by=by), "mean score"),
                Query(with_verdicts(pass_rate(*_PICKED, by=by), *_PICKED, by=by), "pass rate"),
                Query(f"{verdicts(*_PICKED, by=by)} > 0", "verdicts"),
            ],
            [
                Column(EVALUATION, "Evaluation"),
                Column(VERSION, "Version"),
                Column("mean score", "Mean score", "percentunit", SHARE_OF_PASSES),
                Column("pass rate", "Pass rate", "percentunit", SHARE_OF_PASSES),
                Column("verdicts", "Verdicts"),
            ],
            sort_by="Evaluation",
            descending=False,
            width=12,
        ),
        table(
            "Changed criteria",
            "Evaluations in force now that were not in force, in this form, at the beginning of the time "
            "range: new ones, and those whose criteria or evaluator changed.",
            [
                Query(
                    f"count by ({', '.join(_CRITERIA)}) ({info})"
                    f" unless count by ({', '.join(_CRITERIA)}) ({info} offset $__range)",
                    "count",
                )
            ],
            [
                Column(EVALUATION, "Evaluation"),
                Column("evaluator", "Evaluator"),
                Column("evaluator_version", "Its version"),
                Column("criteria_hash", "Criteria"),
            ],
            sort_by="Evaluation",
            descending=False,
            width=12,
        ),
        table(
            "In force",
            "The evaluations of this agent, with how urgent a failure is and whose it is.",
            [Query(f"max by ({EVALUATION}, {', '.join(facts)}, severity, owner, contact) ({info})", "count")],
            [
                Column(EVALUATION, "Evaluation"),
                Column("evaluator", "Evaluator"),
                Column("evaluator_version", "Its version"),
                Column("criteria_hash", "Criteria"),
                Column("severity", "Severity"),
                Column("owner", "Owner"),
                Column("contact", "Contact"),
            ],
            sort_by="Evaluation",
            descending=False,
            width=16,
        ),
        table(
            "Muted",
            "Evaluations whose failures alert nobody until the time shown. Their results are in all panels.",
            [Query(f"1000 * max by ({EVALUATION}) ({muted})", "until")],
            [Column(EVALUATION, "Evaluation"), Column("until", "Until", "dateTimeAsIso")],
            sort_by="Until",
            descending=False,
            width=8,
        ),
    ]


def tools() -> list[JsonObject]:
    """Which tools it calls, and how that ends."""
    calls = select(_TOOL_CALLS, ONE_AGENT)
    failed = select(_TOOL_CALLS, ONE_AGENT, 'status="error"')
    tool = "gen_ai_tool_name"
    return [
        time_series(
            "Tool calls by status",
            "Tool calls between two points. Not executed: the model asked for the call, and no span or "
            "result of it came.",
            [Query(total(calls, "status", window="$__rate_interval"), "{{status}}")],
            bars=True,
            colors=_STATUS_COLORS,
            width=8,
        ),
        time_series(
            "Tool calls by tool and status",
            "Tool calls between two points, the tools with most calls in the time range.",
            [
                Query(
                    f"{total(calls, tool, 'status', window='$__rate_interval')}"
                    f" and on ({tool}) topk(10, {total(calls, tool, at=' @ end()')})",
                    f"{{{{{tool}}}}}, {{{{status}}}}",
                )
            ],
            bars=True,
            width=8,
        ),
        table(
            "Errors by tool",
            "Calls of each tool in the time range, and the share of them that ended in an error.",
            [
                Query(total(calls, tool), "calls"),
                Query(f"{total(failed, tool)} / ({total(calls, tool)} > 0)", "share of errors"),
                Query(total(select(_TOOL_CALLS, ONE_AGENT, 'status="not_executed"'), tool), "not executed"),
            ],
            [
                Column(tool, "Tool"),
                Column("calls", "Calls"),
                Column(
                    "share of errors",
                    "Errors",
                    "percentunit",
                    (("text", None), ("orange", 0.05), ("red", 0.2)),
                ),
                Column("not executed", "Not executed"),
            ],
            sort_by="Errors",
            width=8,
            height=8,
        ),
    ]


def others() -> list[JsonObject]:
    """Classes that it confused, and results that say nothing of it."""
    classified = select("tracegrade_classifications_total", *_PICKED)
    return [
        table(
            "Classifications",
            "Results of classification evaluations in the time range, by the class that was expected and "
            "the one that the agent named. Rows where the two differ are its mistakes.",
            [
                Query(f"{total(classified, EVALUATION, 'expected', 'predicted')} > 0", "results"),
            ],
            [
                Column(EVALUATION, "Evaluation"),
                Column("expected", "Expected"),
                Column("predicted", "Predicted"),
                Column("results", "Results"),
            ],
            sort_by="Results",
            width=12,
            height=8,
        ),
        time_series(
            "Share of results without a verdict",
            "Not evaluated, and broken evaluators (error), divided by all results of the last hour "
            "(recording rules; all versions). Neither says anything of the agent.",
            [
                Query(
                    recorded(
                        "agent:tracegrade_not_evaluated_per_result:ratio_rate1h", ONE_AGENT, EVALUATIONS
                    ),
                    f"{_LEGEND}, not evaluated",
                ),
                Query(
                    recorded(
                        "agent:gen_ai_evaluation_errors_per_result:ratio_rate1h", ONE_AGENT, EVALUATIONS
                    ),
                    f"{_LEGEND}, error",
                ),
            ],
            unit="percentunit",
            maximum=1,
            runbook="AgentEvaluationErrors",
        ),
    ]
