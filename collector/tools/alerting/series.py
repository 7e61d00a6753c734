"""Recording rules: the series that alerts and dashboards look at.

Windows up to an hour are computed from what is scraped, longer ones from what was recorded over shorter
ones: a range of days over scraped series costs Prometheus a hundred times as much. Ratios are made of sums,
never averaged. Processes and versions of an agent are summed up.

Expressions leave open what `Blanks` fills in. Those that hold names which users wrote are filled in here.
"""

from collections.abc import Mapping, Sequence
from textwrap import dedent

from collector.tools.alerting.objectives import BaselinesFile, PlacedObjective
from collector.tools.alerting.selectors import Pair, pair_matchers, pattern_matchers
from collector.tools.alerting.windows import WINDOWS, Blanks

Rule = Mapping[str, str | Mapping[str, str]]
"""A rule as Prometheus names its parts: `record` or `alert`, `expr`, `for`, `labels`, `annotations`."""

AGENT = "job, gen_ai_agent_name"
EVALUATION = f"{AGENT}, gen_ai_evaluation_name"
"""The labels that name one evaluation of one agent, for `on` and `by`."""

VERSION = "gen_ai_agent_version"
_OF_PROCESSES = "instance, pod, service_version"
_UNVERSIONED = f"{_OF_PROCESSES}, {VERSION}"
"""The labels that are summed over: of processes, and of versions."""

RESULTS = "gen_ai_evaluation_results_total"
SHADOW = "tracegrade_shadow_evaluation_results_total"
INFO = "tracegrade_evaluation_info"
_LABEL = "gen_ai_evaluation_score_label"
_SCORES = "gen_ai_evaluation_score"

OUTCOMES = "agent:gen_ai_evaluation_outcomes:increase1h"
"""Results of any outcome in the last hour, those without a verdict included."""
NOT_EVALUATED = "agent:tracegrade_not_evaluated_per_result:ratio_rate1h"
ERRORS = "agent:gen_ai_evaluation_errors_per_result:ratio_rate1h"
RUNS = "agent:tracegrade_agent_runs:increase1h"
SHADOW_RESULTS = "agent:tracegrade_shadow_evaluation_results:increase1h"
SHADOW_FAILURE_RATIO = "agent:tracegrade_shadow_evaluation_failures_per_result:ratio_rate1h"

ROUTING = "agent:tracegrade_evaluation_routing:info"
"""1 for every evaluation, with `severity`, `owner`, `contact`: one series, also while processes disagree."""
MUTED = "agent:tracegrade_evaluation_muted:info"
"""1 for evaluations that criteria mute now."""
CHANGED = "agent:tracegrade_evaluation_definitions:count1h"
"""There for evaluations with more than one criteria hash or evaluator version within the last hour."""
OBJECTIVE = "agent:gen_ai_evaluation_objective:ratio"
"""The share of runs that is to pass; with `severity` where the objective names one."""
UNCONDITIONAL = "agent:tracegrade_evaluation_unconditional:info"
"""As `ROUTING`, for the evaluations alone that give a result for every run of their agent."""

BASELINE = "agent:gen_ai_evaluation_score:baseline"
"""The pinned mean score of an evaluation of an agent."""
PREVIOUS = "agent:gen_ai_evaluation_score:previous_version_mean7d"
PREVIOUS_RESULTS = "agent:gen_ai_evaluation_results:previous_version_increase7d"
ACTIVE_AGENTS = "job:tracegrade_active_agents:count1h"
REGRESSING_AGENTS = "job:tracegrade_regressing_agents:count"

_FAILURES = "agent:gen_ai_evaluation_failures:increase"
_SCORE_SUM = "agent:gen_ai_evaluation_score_sum:increase1h"
_VERSION_SUM = "agent_version:gen_ai_evaluation_score_sum:increase1h"
_FIRST = "agent_version:gen_ai_evaluation_results:first_timestamp_seconds"
_FROM_5M, _FROM_1H = ("2h", "6h"), ("1d", "3d")
VERSION_WINDOWS = ("1h", "7d")


def mean(window: str, of: str = "agent") -> str:
    """The series with the mean score of agents, or of versions (`agent_version`), over a window."""
    return f"{of}:gen_ai_evaluation_score:mean{window}"


def results(window: str, of: str = "agent") -> str:
    """The series with how many results with a verdict there were in a window."""
    return f"{of}:gen_ai_evaluation_results:increase{window}"


def failure_ratio(window: str) -> str:
    """The series with the share of failures in the results with a verdict."""
    return f"agent:gen_ai_evaluation_failures_per_result:ratio_rate{window}"


def baseline_drop(window: str) -> str:
    """The series with how far the mean score over a window is below the baseline."""
    return f"agent:gen_ai_evaluation_score:baseline_drop{window}"


def week_drop(window: str) -> str:
    """The series with how far it is below that of the same time last week."""
    return f"agent:gen_ai_evaluation_score:week_drop{window}"


def version_drop(window: str) -> str:
    """The series with how far that of the newest version is below that of the version before it."""
    return f"agent_version:gen_ai_evaluation_score:version_drop{window}"


def standard_error(window: str) -> str:
    """The series with the largest standard error that the mean score over a window can have."""
    return f"agent:gen_ai_evaluation_score:standard_error{window}"


def variance(score: str, count: str) -> str:
    """The largest variance that the mean `score` of `count` scores in [0, 1] can have."""
    return f"clamp_min({score} * (1 - {score}), 0) / {count}"


def changed_within(window: str, offset: str = "0s") -> str:
    """What selects the evaluations whose definition changed since the beginning of a window.

    `offset` says how long ago the window ends. The series is there for an hour after a change, so it is
    looked back for an hour less.
    """
    if window == "1h" and offset == "0s":
        return CHANGED
    return f"present_over_time({CHANGED}[<{window}+{offset}-1h>])"


def promql(text: str) -> str:
    """A PromQL expression out of an indented literal: without common indentation and empty lines."""
    return "\n".join(line.rstrip() for line in dedent(text).splitlines() if line.strip())


def recorded(
    blanks: Blanks,
    windows: Mapping[str, Sequence[Pair]],
    objectives: Sequence[PlacedObjective],
    unconditional: Sequence[Pair],
    baselines: BaselinesFile | None,
    min_samples: int,
) -> list[Rule]:
    """All rules about agents, in an order in which each sees what those before it recorded.

    Args:
        blanks: Fills in durations and thresholds.
        windows: The windows over which mean scores are looked at, with the pairs that need it.
        objectives: The more specific before the less.
        unconditional: The evaluations that give a result for every run of their agent.
        baselines: The scores of a release, if there are any.
        min_samples: So many results a pinned score must have.
    """
    longer = [window for window in WINDOWS[1:] if windows.get(window)]
    rules = _filled(blanks, {**_of_agents(), **({_SCORE_SUM: _summed("sum")} if longer else {})})
    for window in longer:
        span = blanks.fill(f"[<{window}>:<1h>]")
        selections = [f"{{{matchers}}}{span}" for matchers in pair_matchers(windows[window])]
        counts = [f"sum_over_time({results('1h')}{selection})" for selection in selections]
        means = [
            f"sum_over_time({_SCORE_SUM}{selection}) / ({count} > 0)"
            for selection, count in zip(selections, counts, strict=True)
        ]
        rules.append(_rule(mean(window), _any_of(means)))
        if window not in (*_FROM_5M, *_FROM_1H):
            rules.append(_rule(results(window), _any_of(counts)))
    rules += _filled(blanks, _OF_EVALUATIONS)
    if objectives:
        rules.append(_rule(OBJECTIVE, _any_of(list(map(_target, objectives)), f" on ({EVALUATION})")))
    if unconditional:
        routed = [f"{ROUTING}{{{matchers}}}" for matchers in pair_matchers(unconditional)]
        rules.append(_rule(UNCONDITIONAL, _any_of(routed)))
    rules += [
        {
            **_rule(BASELINE, f"vector({score.mean!r})"),
            "labels": {
                "gen_ai_agent_name": agent,
                "gen_ai_evaluation_name": evaluation,
                "release": baselines.release,
            },
        }
        for agent, evaluations in (sorted(baselines.agents.items()) if baselines else ())
        for evaluation, score in sorted(evaluations.items())
        if baselines and score.samples >= min_samples
    ]
    for window in (WINDOWS[0], *longer):
        rules += _filled(blanks, _drops(window))
    return rules + _filled(blanks, _of_versions())


def fleet_rules(blanks: Blanks, single: str) -> list[Rule]:
    """How many agents gave results within an hour, and of how many one of the alerts `single` fires.

    Alerts that are pending count too: the fleet's alert is to fire before those that it stands for.
    """
    firing = f'ALERTS{{alertname=~"{single}",alertstate=~"pending|firing"}}'
    return _filled(
        blanks,
        {
            ACTIVE_AGENTS: f"count by (job) (group by ({AGENT}) ({results('1h')} > 0))",
            REGRESSING_AGENTS: f"count by (job) (\n  group by ({AGENT}) ({firing})\n)",
        },
    )


def _rule(record: str, expression: str) -> dict[str, str | Mapping[str, str]]:
    return {"record": record, "expr": expression}


def _filled(blanks: Blanks, expressions: Mapping[str, str]) -> list[Rule]:
    return [_rule(record, blanks.fill(promql(text))) for record, text in expressions.items()]


def _any_of(expressions: Sequence[str], on: str = "") -> str:
    """The series of each of `expressions`; of those that agree in the labels of `on` (all), the first one."""
    return f"\nor{on}\n".join(f"  {expression}" for expression in expressions)


def _increase(window: str, outcomes: str = "", counter: str = RESULTS) -> str:
    """How much the results of some outcomes, divided by `|`, or of all grew within a window."""
    operator = "=~" if "|" in outcomes else "="
    matcher = f'{{{_LABEL}{operator}"{outcomes}"}}' if outcomes else ""
    return f"sum without ({_UNVERSIONED}, {_LABEL}) (increase({counter}{matcher}[<{window}>]))"


def _summed(part: str, function: str = "increase", without: str = _UNVERSIONED, matcher: str = "") -> str:
    """The sum or the count of scores in an hour, as a rate or an increase."""
    return f"sum without ({without}) ({function}({_SCORES}_{part}{matcher}[<1h>]))"


def _mean_of_scraped(without: str, matcher: str = "") -> str:
    total, count = (_summed(part, "rate", without, matcher) for part in ("sum", "count"))
    return f"  {total}\n/\n  ({count} > 0)"


def _of_agents() -> dict[str, str]:
    """Scores, results and failures of agents over the windows that everyone has."""
    rules = {mean("1h"): _mean_of_scraped(_UNVERSIONED)}
    for window in ("5m", "1h"):
        rules[results(window)] = _increase(window, "pass|fail")
        rules[_FAILURES + window] = _increase(window, "fail")
        rules[failure_ratio(window)] = f"{_FAILURES}{window} / ({results(window)} > 0)"
    rules[failure_ratio("30m")] = f"  {_increase('30m', 'fail')}\n/\n  ({_increase('30m', 'pass|fail')} > 0)"
    for base, several in (("5m", _FROM_5M), ("1h", _FROM_1H)):
        for window in several:
            span = f"[<{window}>:<{base}>]"
            rules[results(window)] = f"sum_over_time({results(base)}{span})"
            failures = f"sum_over_time({_FAILURES}{base}{span})"
            rules[failure_ratio(window)] = f"{failures} / ({results(window)} > 0)"
    return rules | {
        OUTCOMES: _increase("1h"),
        NOT_EVALUATED: f"{_increase('1h', 'not_evaluated')} / ({OUTCOMES} > 0)",
        ERRORS: f"{_increase('1h', 'error')} / ({OUTCOMES} > 0)",
        SHADOW_RESULTS: _increase("1h", "pass|fail", SHADOW),
        SHADOW_FAILURE_RATIO: f"{_increase('1h', 'fail', SHADOW)} / ({SHADOW_RESULTS} > 0)",
        RUNS: f"sum without ({_UNVERSIONED}) (increase(tracegrade_agent_runs_total[<1h>]))",
    }


_OF_EVALUATIONS = {
    ROUTING: f"""
          topk by ({EVALUATION}) (1, count by ({EVALUATION}, severity, owner, contact) ({INFO})) ^ 0
        or on ({EVALUATION})
          label_replace(group by ({EVALUATION}) ({RESULTS}), "severity", "ticket", "", "")
        or on ({EVALUATION})
          label_replace(group by ({EVALUATION}) ({SHADOW}), "severity", "ticket", "", "")
        """,
    MUTED: f"group by ({EVALUATION}) (tracegrade_evaluation_muted_until_timestamp_seconds > time())",
    CHANGED: f"count by ({EVALUATION}) (count by ({EVALUATION}, evaluator, evaluator_version, criteria_hash) "
    f"(last_over_time({INFO}[<1h>]))) > 1",
}
"""What is in force of each evaluation: who is told and how loudly, is it muted, did its definition change."""


def _target(placed: PlacedObjective) -> str:
    matchers = pattern_matchers(placed.agent, placed.evaluation)
    selector = f"{RESULTS}{{{matchers}}}" if matchers else RESULTS
    target = f"group by ({EVALUATION}) ({selector}) * {placed.objective.target!r}"
    if placed.objective.severity:
        target = f'label_replace({target}, "severity", "{placed.objective.severity}", "", "")'
    return target


def _drops(window: str) -> dict[str, str]:
    """How far scores fell over a window, and the standard error of that."""
    return {
        baseline_drop(window): f"""
              {BASELINE}
            - on (gen_ai_agent_name, gen_ai_evaluation_name) group_right (release)
              {mean(window)}
            """,
        week_drop(window): f"({mean(window)} offset <7d>) - {mean(window)}",
        standard_error(window): f"sqrt({variance(mean(window), results(window))})",
    }


def _of_versions() -> dict[str, str]:
    """Scores by version, which version came when, and how far the newest fell below the one before it.

    The newest version is the one whose first result is the latest. The version before it is, of those whose
    first result is older, the one whose first result is the latest and that has enough results within a week;
    a version that hardly ran is passed over. When a version gave its first result is a series that is
    recorded out of itself: `last_over_time(first[7d]) or timestamp(results > 0)` keeps the first moment for
    as long as the version is there, and for a week after. Where two versions were first seen at the same
    moment, for example when Prometheus was started, neither is before the other.

    The newest version is looked at over an hour and over up to a week since it came, so that agents with
    little traffic are compared too; the version before it over a week.
    """
    of, some = "agent_version", f'{{{VERSION}!=""}}'
    hour, week = results("1h", of), results("7d", of)
    latest = f"ignoring ({VERSION}) group_left () max without ({VERSION}) ({_FIRST})"

    def of_previous(series: str) -> str:
        """`series` of the version before the newest, whose name is the label `previous_version`."""
        return f"""
            max without ({VERSION}) (
              label_replace(
                  {series}
                and
                topk without ({VERSION}) (
                  1,
                    {_FIRST} < {latest}
                  and
                    {week} >= <min_results>
                ),
                "previous_version", "$1", "{VERSION}", "(.*)"
              )
            )
            """

    drops = {
        version_drop(window): f"""
              {PREVIOUS}
            - ignoring ({VERSION}, previous_version) group_right (previous_version)
              (
                  {mean(window, of)}
                and
                  {_FIRST} == {latest}
              )
            """
        for window in VERSION_WINDOWS
    }
    return {
        mean("1h", of): _mean_of_scraped(_OF_PROCESSES, some),
        hour: _summed("count", "increase", _OF_PROCESSES, some),
        _VERSION_SUM: _summed("sum", "increase", _OF_PROCESSES, some),
        week: f"sum_over_time({hour}[<7d>:<1h>])",
        mean("7d", of): f"sum_over_time({_VERSION_SUM}[<7d>:<1h>]) / ({week} > 0)",
        _FIRST: f"""
              (
                  last_over_time({_FIRST}[<7d>])
                or
                  timestamp({hour} > 0)
              )
            and
              {hour}
            """,
        PREVIOUS: of_previous(mean("7d", of)),
        PREVIOUS_RESULTS: of_previous(week),
        **drops,
    }
