"""What the runs of one agent take: the row *Time, tokens and money* of the dashboard *One agent*."""

from deploy.grafana.generator.panels import Query, time_series
from deploy.grafana.generator.promql import ONE_AGENT, VERSIONS, quantile, rate, recorded, select
from processors.model import JsonObject

_DURATION, _TOKENS, _COST = (
    f"tracegrade_agent_run_{what}" for what in ("duration_seconds", "tokens", "cost")
)
_KIND = "gen_ai_token_type"
_PICKED = (ONE_AGENT, VERSIONS)
_ALERT = "AgentRunRegression"


def amounts() -> list[JsonObject]:
    """Durations, tokens and costs of runs, and how they compare with last week."""
    return [
        time_series(
            "How long runs take",
            "The duration that half, and all but a twentieth, of the runs stay below, estimated from the "
            "buckets between two points. Each dot is one run: click it to open its trace.",
            [
                Query(quantile(0.5, _DURATION, *_PICKED), "half of the runs"),
                Query(quantile(0.95, _DURATION, *_PICKED), "19 of 20 runs", exemplar=True),
            ],
            unit="s",
            runbook=_ALERT,
            width=8,
        ),
        time_series(
            "Tokens of a run",
            "Mean tokens of the model calls of a run between two points, for runs whose telemetry tells "
            "them. Cached input counts as input, reasoning as output.",
            [
                Query(
                    f"{rate(select(f'{_TOKENS}_sum', *_PICKED), _KIND)}"
                    f" / {rate(select(f'{_TOKENS}_count', *_PICKED), _KIND)}",
                    f"{{{{{_KIND}}}}}",
                )
            ],
            runbook=_ALERT,
            width=8,
        ),
        time_series(
            "Cost of a run",
            "Mean cost of a run between two points, in the currency of the configured prices; empty where "
            "none are configured. The cost that all but a twentieth of the runs stay below is estimated from "
            "the buckets. Each dot is one run.",
            [
                Query(
                    f"{rate(select(f'{_COST}_sum', *_PICKED))} / {rate(select(f'{_COST}_count', *_PICKED))}",
                    "mean",
                ),
                Query(quantile(0.95, _COST, *_PICKED), "19 of 20 runs", exemplar=True),
            ],
            runbook=_ALERT,
            width=8,
        ),
        time_series(
            "Against the same hour last week",
            "Mean duration, tokens and cost of the hour before each moment, divided by those of the same "
            "hour last week (recording rules; all versions). From the dashed line on a ticket is raised. "
            "Nothing where either hour has too few runs.",
            [
                Query(recorded(f"agent:{_DURATION}:week_ratio1h", ONE_AGENT), "duration"),
                Query(recorded(f"agent:{_TOKENS}:week_ratio1h", ONE_AGENT), f"{{{{{_KIND}}}}} tokens"),
                Query(recorded(f"agent:{_COST}:week_ratio1h", ONE_AGENT), "cost"),
            ],
            thresholds=(("transparent", None), ("red", 1.5)),
            runbook=_ALERT,
            width=24,
        ),
    ]
