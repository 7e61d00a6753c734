"""The metric table, as whoever reads series sees it: names and labels of series."""

from collector.monitoring.exposition import MetricsSnapshot
from collector.telemetry import Counter, Gauge, Histogram, Metrics

OF_THE_PROCESS = {
    "up": set[str](),
    "process_resident_memory_bytes": set[str](),
    "process_cpu_seconds_total": set[str](),
    "process_start_time_seconds": set[str](),
}
"""What Prometheus itself and its Python client add."""
OF_THE_SCRAPE = {"job", "instance"}
"""The labels that Prometheus puts on everything it scrapes."""

_AGENT = {"gen_ai_agent_name", "gen_ai_evaluation_name"}
_FAILURES = "agent:gen_ai_evaluation_failures_per_result:ratio_rate"
RECORDED = {
    "agent:gen_ai_evaluation_score:mean1h": _AGENT,
    "agent:gen_ai_evaluation_results:increase1h": _AGENT,
    **{f"{_FAILURES}{window}": _AGENT for window in ("5m", "30m", "1h", "2h", "6h", "1d", "3d")},
    "agent:gen_ai_evaluation_objective:ratio": _AGENT,
    "agent:tracegrade_not_evaluated_per_result:ratio_rate1h": _AGENT,
    "agent:gen_ai_evaluation_errors_per_result:ratio_rate1h": _AGENT,
    "agent:tracegrade_agent_runs:increase1h": {"gen_ai_agent_name"},
    **{
        f"agent:tracegrade_agent_run_{what}:week_ratio1h": {"gen_ai_agent_name", *labels}
        for what, labels in (("duration_seconds", ()), ("tokens", ("gen_ai_token_type",)), ("cost", ()))
    },
    "agent_version:gen_ai_evaluation_score:mean1h": _AGENT | {"gen_ai_agent_version"},
    "agent_version:gen_ai_evaluation_results:increase1h": _AGENT | {"gen_ai_agent_version"},
}
"""The recording rules with their labels; they have no instance."""


def series_names(instrument: Counter | Gauge | Histogram) -> list[str]:
    """The names under which the series of an instrument appear."""
    if isinstance(instrument, Counter):
        return [f"{instrument.name}_total"]
    if isinstance(instrument, Histogram):
        return [f"{instrument.name}_{part}" for part in ("bucket", "sum", "count")]
    return [instrument.name]


def known_series() -> dict[str, set[str]]:
    """The labels of every series that there can be, by name."""
    known = {name: labels | OF_THE_SCRAPE for name, labels in OF_THE_PROCESS.items()}
    known |= {name: labels | {"job"} for name, labels in RECORDED.items()}
    for instrument in Metrics().instruments():
        for name in series_names(instrument):
            labels = {*instrument.labels, *OF_THE_SCRAPE}
            known[name] = labels | {"le"} if name.endswith("_bucket") else labels
    return known


def rendered(snapshot: MetricsSnapshot, accept: str = "") -> bytes:
    """The whole text of a scrape."""
    return b"".join(snapshot.blocks(accept))
