"""The queries that more than one panel asks, written once.

Selections follow the variables of the dashboards. Ratios are taken from sums, never averaged, and a ratio of
too few verdicts is `NOT_ENOUGH_DATA` instead of a number that looks fine.
"""

SCRAPE = 'job=~"$job", instance=~"$instance"'
"""Which processes: in every selector of a raw metric."""
JOB = 'job=~"$job"'
"""Which processes, for series of recording rules: these have no instance."""
AGENTS = 'gen_ai_agent_name=~"$agent"'
"""For a variable of which several values, or all, can be picked."""
ONE_AGENT = 'gen_ai_agent_name="$agent"'
"""For a variable of which one value is picked: any character stands for itself."""
EVALUATIONS = 'gen_ai_evaluation_name=~"$evaluation"'
VERSIONS = 'gen_ai_agent_version=~"$version"'
"""A series without a version matches where all versions are picked."""
DECIDED = 'gen_ai_evaluation_score_label=~"pass|fail"'
"""The outcomes that carry a score: the other two say nothing of the agent."""
PASSED = 'gen_ai_evaluation_score_label="pass"'
FAILED = 'gen_ai_evaluation_score_label="fail"'
BROKEN = 'gen_ai_evaluation_score_label="error"'
NOT_EVALUATED = 'gen_ai_evaluation_score_label="not_evaluated"'

AGENT = "gen_ai_agent_name"
EVALUATION = "gen_ai_evaluation_name"
OUTCOME = "gen_ai_evaluation_score_label"
VERSION = "gen_ai_agent_version"

MIN_VERDICTS = 20
"""Fewer verdicts than this are shown as not enough data; the alerts keep silent below it, too."""
NOT_ENOUGH_DATA = 2
"""Stands for a share that is not known. No share is above 1, so it sorts behind all of them."""

RESULTS = "gen_ai_evaluation_results_total"
SCORE = "gen_ai_evaluation_score"


def select(metric: str, *matchers: str) -> str:
    """A selector of a raw metric in the picked processes."""
    return f"{metric}{{{', '.join((SCRAPE, *matchers))}}}"


def recorded(rule: str, *matchers: str) -> str:
    """A selector of a recording rule's series in the picked jobs."""
    return f"{rule}{{{', '.join((JOB, *matchers))}}}"


def total(selector: str, *by: str, window: str = "$__range", at: str = "") -> str:
    """How much a counter grew in `window`, summed by the labels `by`; `at` is a modifier of the moment."""
    return f"sum{_by(by)} (increase({selector}[{window}]{at}))"


def rate(selector: str, *by: str) -> str:
    """The growth of a counter a second, summed by the labels `by`."""
    return f"sum{_by(by)} (rate({selector}[$__rate_interval]))"


def quantile(share: float, histogram: str, *matchers: str, by: tuple[str, ...] = ()) -> str:
    """The quantile of what a histogram took since the last point."""
    buckets = rate(select(f"{histogram}_bucket", *matchers), "le", *by)
    return f"histogram_quantile({share:g}, {buckets})"


def pass_rate(
    *matchers: str, by: tuple[str, ...] = (), window: str = "$__range", results: str = RESULTS
) -> str:
    """The share of passes among passes and failures, where there are enough of them."""
    passed = total(select(results, *matchers, PASSED), *by, window=window)
    decided = verdicts(*matchers, by=by, window=window, results=results)
    return enough(f"{passed} / {decided}", decided)


def verdicts(
    *matchers: str, by: tuple[str, ...] = (), window: str = "$__range", results: str = RESULTS
) -> str:
    """How many passes and failures there were."""
    return total(select(results, *matchers, DECIDED), *by, window=window)


def mean_score(*matchers: str, by: tuple[str, ...] = (), window: str = "$__range") -> str:
    """The mean of the scores, where there are enough of them."""
    count = total(select(f"{SCORE}_count", *matchers), *by, window=window)
    scores = total(select(f"{SCORE}_sum", *matchers), *by, window=window)
    return enough(f"{scores} / {count}", count)


def against_objective(*matchers: str, by: tuple[str, ...]) -> str:
    """The pass rate less the objective, where there are enough verdicts; `matchers` without versions."""
    passed = total(select(RESULTS, *matchers, PASSED), *by)
    decided = verdicts(*matchers, by=by)
    return f"({passed} / {decided} and {decided} >= {MIN_VERDICTS}) - {objective(*matchers, by=by)}"


def objective(*matchers: str, by: tuple[str, ...]) -> str:
    """The pass rate that the alerts hold evaluations to; part of the generated rules."""
    return f"max by ({', '.join(by)}) ({recorded('agent:gen_ai_evaluation_objective:ratio', *matchers)})"


def share_of_results(outcome: str, *matchers: str, by: tuple[str, ...] = ()) -> str:
    """The share of results that the matcher `outcome` selects; nothing where there are no results."""
    every = total(select(RESULTS, *matchers), *by)
    return f"{total(select(RESULTS, *matchers, outcome), *by)} / ({every} > 0)"


def enough(expression: str, count: str) -> str:
    """`expression` where `count` is large enough, else `NOT_ENOUGH_DATA`; both have the same labels."""
    return f"(({expression}) and {count} >= {MIN_VERDICTS}) or ({count} * 0 + {NOT_ENOUGH_DATA})"


def with_verdicts(expression: str, *matchers: str, by: tuple[str, ...]) -> str:
    """`expression` where there are any verdicts."""
    return f"({expression}) and {verdicts(*matchers, by=by)} > 0"


def last_week(metric: str, *matchers: str, by: tuple[str, ...]) -> str:
    """The mean of the last hour's scores less that of the same hour a week ago, where both have enough."""

    def hour(suffix: str, offset: str = "") -> str:
        return f"sum{_by(by)} (increase({select(metric + suffix, *matchers)}[1h]{offset}))"

    now = f"{hour('_sum')} / {hour('_count')}"
    then = f"{hour('_sum', ' offset 7d')} / {hour('_count', ' offset 7d')}"
    return (
        f"({now} - {then}) and {hour('_count')} >= {MIN_VERDICTS}"
        f" and {hour('_count', ' offset 7d')} >= {MIN_VERDICTS}"
    )


def _by(labels: tuple[str, ...]) -> str:
    return f" by ({', '.join(labels)})" if labels else ""
