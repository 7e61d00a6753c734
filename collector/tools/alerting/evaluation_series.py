"""Recording rules: what is in force of each evaluation, as alerts need it.

Who is told and how loudly, whether it is muted, whether its definition just changed, and its objective.
"""

from collections.abc import Sequence

from collector.tools.alerting.agent_series import EVALUATION
from collector.tools.alerting.objectives import PlacedObjective
from collector.tools.alerting.rule_file import RecordingRule, any_of, promql
from collector.tools.alerting.series_selector import Pair, pair_matchers, pattern_matchers
from collector.tools.alerting.time_scale import TimeScale

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

_INFO = "tracegrade_evaluation_info"
_RESULTS = "gen_ai_evaluation_results_total"
_SHADOW_RESULTS = "tracegrade_shadow_evaluation_results_total"


def evaluation_series(
    scale: TimeScale, objectives: Sequence[PlacedObjective], unconditional: Sequence[Pair]
) -> list[RecordingRule]:
    """The recording rules; `objectives` with the more specific before the less."""
    definition = f"{EVALUATION}, evaluator, evaluator_version, criteria_hash"
    rules = [
        RecordingRule(
            ROUTING,
            promql(
                f"""
                  topk by ({EVALUATION}) (1, count by ({EVALUATION}, severity, owner, contact) ({_INFO})) ^ 0
                or on ({EVALUATION})
                  label_replace(group by ({EVALUATION}) ({_RESULTS}), "severity", "ticket", "", "")
                or on ({EVALUATION})
                  label_replace(group by ({EVALUATION}) ({_SHADOW_RESULTS}), "severity", "ticket", "", "")
                """
            ),
        ),
        RecordingRule(
            MUTED, f"group by ({EVALUATION}) (tracegrade_evaluation_muted_until_timestamp_seconds > time())"
        ),
        RecordingRule(
            CHANGED,
            f"count by ({EVALUATION}) "
            f"(count by ({definition}) (last_over_time({_INFO}[{scale.scaled('1h')}]))) > 1",
        ),
    ]
    if objectives:
        rules.append(RecordingRule(OBJECTIVE, any_of(list(map(_objective, objectives)), EVALUATION)))
    if unconditional:
        routed = [f"{ROUTING}{{{matchers}}}" for matchers in pair_matchers(unconditional)]
        rules.append(RecordingRule(UNCONDITIONAL, any_of(routed)))
    return rules


def changed_within(scale: TimeScale, window: str, offset: str = "0s") -> str:
    """What selects the evaluations whose definition changed since the beginning of a window.

    `offset` says how long ago the window ends. The series is there for an hour after a change, so it is
    looked back for an hour less.
    """
    if window == "1h" and offset == "0s":
        return CHANGED
    return f"present_over_time({CHANGED}[{scale.scaled(window, offset, less='1h')}])"


def _objective(placed: PlacedObjective) -> str:
    matchers = pattern_matchers(placed.agent, placed.evaluation)
    selector = f"{_RESULTS}{{{matchers}}}" if matchers else _RESULTS
    target = f"group by ({EVALUATION}) ({selector}) * {placed.objective.target!r}"
    if placed.objective.severity:
        target = f'label_replace({target}, "severity", "{placed.objective.severity}", "", "")'
    return target
