"""The reference page of all metrics, written from the table: `python -m collector.telemetry.reference`."""

from collector.telemetry.first_sight import HOLD_SECONDS
from collector.telemetry.label_values import OVERFLOW
from collector.telemetry.metrics import Counter, Gauge, Histogram, Metrics
from collector.telemetry.score_series import MAX_AGENTS, MAX_TOOLS, MAX_TOOLS_PER_AGENT

_INTRODUCTION = f"""\
# Metrics

This page is generated from `collector/telemetry/metrics.py` by `python -m collector.telemetry.reference`.

`/metrics` on `service.telemetry.endpoint` serves the Prometheus text format, and OpenMetrics if asked for.
Exemplars, with the trace and span behind the last score in each bucket, are in OpenMetrics only.

- Label values that come from telemetry are bounded.
  Agents named exactly in criteria always have their own series.
  Other agents get the first {MAX_AGENTS:,} names seen, and all others share `{OVERFLOW}`.
  Tools have {MAX_TOOLS_PER_AGENT} names for each agent, and {MAX_TOOLS:,} over all agents not named exactly.
- Series of agents named exactly in criteria are there at 0 from the start.
  Any other `gen_ai_*` or `tracegrade_tool_calls_total` series appears at 0 first, because what a series holds
  when it is first scraped is lost to `rate()`.
  It takes its first increment after the next scrape, or after {HOLD_SECONDS:.0f} s.
- For each span exporter e, at every scrape,
  received = forwarded{{e}} + dropped{{""}} + dropped{{e}} + held{{""}} + held{{e}}.
- The metrics of the process and of Python (`process_*`, `python_*`) are those of `prometheus_client`.

| Metric | Type | Unit | Labels | Meaning |
|---|---|---|---|---|
"""


def metrics_reference() -> str:
    """The page in Markdown."""
    return _INTRODUCTION + "".join(_row(instrument) for instrument in Metrics().instruments())


def _row(instrument: Counter | Gauge | Histogram) -> str:
    suffix = "_total" if isinstance(instrument, Counter) else ""
    labels = ", ".join(f"`{label}`" for label in instrument.labels)
    meaning = instrument.help
    if isinstance(instrument, Histogram):
        meaning += f" Buckets: {', '.join(f'{bound:g}' for bound in instrument.buckets)}."
    return f"| `{instrument.name}{suffix}` | {instrument.type} | {instrument.unit} | {labels} | {meaning} |\n"


if __name__ == "__main__":
    print(metrics_reference(), end="")
