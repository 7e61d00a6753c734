"""Recording rules: scores, results and failures of agents over the windows that alerts and dashboards use.

Windows up to an hour are computed from what is scraped, longer ones from what was recorded over shorter
ones: a range of days over scraped series costs Prometheus a hundred times as much. Ratios are made of sums,
never averaged. Processes and versions of an agent are summed up.
"""

from collections.abc import Mapping, Sequence

from collector.tools.alerting.rule_file import RecordingRule, any_of, promql
from collector.tools.alerting.series_selector import Pair, pair_matchers
from collector.tools.alerting.time_scale import TimeScale
from collector.tools.alerting.volume import WINDOWS

EVALUATION = "job, gen_ai_agent_name, gen_ai_evaluation_name"
"""The labels that name one evaluation of one agent, for `on` and `by`."""

UNVERSIONED = "instance, pod, service_version, gen_ai_agent_version"
"""The labels that are summed over: of processes, and of versions."""

_LABEL = "gen_ai_evaluation_score_label"
_RESULTS = "gen_ai_evaluation_results_total"
_SHADOW_RESULTS = "tracegrade_shadow_evaluation_results_total"
_FROM_5M, _FROM_1H = ("2h", "6h"), ("1d", "3d")


def mean(window: str) -> str:
    """The series with the mean score over one of the windows of `WINDOWS`."""
    return f"agent:gen_ai_evaluation_score:mean{window}"


def results(window: str) -> str:
    """The series with how many results with a verdict there were in a window."""
    return f"agent:gen_ai_evaluation_results:increase{window}"


def failure_ratio(window: str) -> str:
    """The series with the share of failures in the results with a verdict."""
    return f"agent:gen_ai_evaluation_failures_per_result:ratio_rate{window}"


OUTCOMES = "agent:gen_ai_evaluation_outcomes:increase1h"
"""Results of any outcome in the last hour, those without a verdict included."""
NOT_EVALUATED = "agent:tracegrade_not_evaluated_per_result:ratio_rate1h"
ERRORS = "agent:gen_ai_evaluation_errors_per_result:ratio_rate1h"
RUNS = "agent:tracegrade_agent_runs:increase1h"
SHADOW_RESULTS = "agent:tracegrade_shadow_evaluation_results:increase1h"
SHADOW_FAILURE_RATIO = "agent:tracegrade_shadow_evaluation_failures_per_result:ratio_rate1h"

_FAILURES = "agent:gen_ai_evaluation_failures:increase"


def agent_series(scale: TimeScale, windows: Mapping[str, Sequence[Pair]]) -> list[RecordingRule]:
    """The recording rules of all agents, and for each window but the first those of its pairs."""
    hour = scale.scaled("1h")
    rules = [RecordingRule(mean("1h"), _mean_of_scraped(hour))]
    for window in ("5m", "1h"):
        rules += [
            RecordingRule(results(window), _increase(scale.scaled(window), "pass|fail")),
            RecordingRule(_FAILURES + window, _increase(scale.scaled(window), "fail")),
            RecordingRule(failure_ratio(window), f"{_FAILURES}{window} / ({results(window)} > 0)"),
        ]
    rules.append(RecordingRule(failure_ratio("30m"), _ratio_of_scraped(scale.scaled("30m"))))
    for base, several in (("5m", _FROM_5M), ("1h", _FROM_1H)):
        for window in several:
            rules += _summed(scale, window, base)
    rules += [
        RecordingRule(OUTCOMES, _increase(hour)),
        RecordingRule(NOT_EVALUATED, f"{_increase(hour, 'not_evaluated')} / ({OUTCOMES} > 0)"),
        RecordingRule(ERRORS, f"{_increase(hour, 'error')} / ({OUTCOMES} > 0)"),
        RecordingRule(SHADOW_RESULTS, _increase(hour, "pass|fail", _SHADOW_RESULTS)),
        RecordingRule(
            SHADOW_FAILURE_RATIO, f"{_increase(hour, 'fail', _SHADOW_RESULTS)} / ({SHADOW_RESULTS} > 0)"
        ),
        RecordingRule(RUNS, f"sum without ({UNVERSIONED}) (increase(tracegrade_agent_runs_total[{hour}]))"),
    ]
    return rules + _windows(scale, windows)


def _summed(scale: TimeScale, window: str, base: str) -> list[RecordingRule]:
    """The results and the share of failures of a longer window, out of those recorded over a shorter one."""
    span = f"[{scale.scaled(window)}:{scale.scaled(base)}]"
    ratio = f"sum_over_time({_FAILURES}{base}{span}) / ({results(window)} > 0)"
    return [
        RecordingRule(results(window), f"sum_over_time({results(base)}{span})"),
        RecordingRule(failure_ratio(window), ratio),
    ]


def _windows(scale: TimeScale, windows: Mapping[str, Sequence[Pair]]) -> list[RecordingRule]:
    """Means over longer windows, for the pairs alone that need them."""
    longer = [window for window in WINDOWS[1:] if windows.get(window)]
    if not longer:
        return []
    scores = "agent:gen_ai_evaluation_score_sum:increase1h"
    step = scale.scaled("1h")
    rules = [
        RecordingRule(scores, f"sum without ({UNVERSIONED}) (increase(gen_ai_evaluation_score_sum[{step}]))")
    ]
    for window in longer:
        span = f"[{scale.scaled(window)}:{step}]"
        selections = [f"{{{matchers}}}{span}" for matchers in pair_matchers(windows[window])]
        counts = [f"sum_over_time({results('1h')}{selection})" for selection in selections]
        ratios = [
            f"sum_over_time({scores}{selection}) / ({count} > 0)"
            for selection, count in zip(selections, counts, strict=True)
        ]
        rules.append(RecordingRule(mean(window), any_of(ratios)))
        if window not in (*_FROM_5M, *_FROM_1H):
            rules.append(RecordingRule(results(window), any_of(counts)))
    return rules


def _mean_of_scraped(window: str) -> str:
    return promql(
        f"""
          sum without ({UNVERSIONED}) (rate(gen_ai_evaluation_score_sum[{window}]))
        /
          (sum without ({UNVERSIONED}) (rate(gen_ai_evaluation_score_count[{window}])) > 0)
        """
    )


def _increase(window: str, outcomes: str = "", counter: str = _RESULTS) -> str:
    """How much the results of some outcomes, divided by `|`, or of all grew within a window."""
    operator = "=~" if "|" in outcomes else "="
    matcher = f'{{{_LABEL}{operator}"{outcomes}"}}' if outcomes else ""
    return f"sum without ({UNVERSIONED}, {_LABEL}) (increase({counter}{matcher}[{window}]))"


def _ratio_of_scraped(window: str) -> str:
    return promql(
        f"""
          {_increase(window, "fail")}
        /
          ({_increase(window, "pass|fail")} > 0)
        """
    )
