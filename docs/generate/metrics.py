"""The reference page of all metrics, generated from their table."""

from collector.stability import level_of
from collector.telemetry import OVERFLOW, Counter, Gauge, Histogram, Limits, Metrics

_RESOURCE_ATTRIBUTES = "resource attributes"
_INTRODUCTION = f"""\
# Metrics

This page is generated from `collector/telemetry/metrics.py` by `make reference`.

`/metrics` on `service.telemetry.endpoint` serves the Prometheus text format, and OpenMetrics on request.
Exemplars, with the trace and span behind the last score in each bucket, are in OpenMetrics only.

- Label values that come from telemetry are bounded.
  Agents named exactly in criteria always have their own series.
  Other agents get the first {Limits.AGENTS:,} names seen, and all others share `{OVERFLOW}`.
  Tools have {Limits.TOOLS_PER_AGENT} names for each agent, and {Limits.TOOLS:,} over all agents not \
named exactly.
  An agent has {Limits.VERSIONS} versions, a resource attribute {Limits.RESOURCE_VALUES} values.
  Sets of agent, version and resource attributes are at most {Limits.LABEL_SETS:,}, not counting those \
without.
  Evaluations distinguish {Limits.CLASSES} classes, of at most {Limits.CLASS_LENGTH} characters,
  and all together {Limits.CLASS_SERIES:,} pairs of them.
- Labels in brackets are left out of a series where their value is empty.
  `[resource attributes]` are those that `exporters.prometheus.resource_attributes` lists,
  each a label of its own with `_` for what is no letter or digit: `service.version` is `service_version`.
- Counters of agents named exactly in criteria are there at 0 from the start.
  Any other series with the name of an agent appears at 0 first, because what a series holds
  when it is first scraped is lost to `rate()`.
  It takes its first increment after the next scrape, or after {Limits.HOLD_SECONDS:.0f} s.
- A series with the name of an agent in which nothing was counted for `exporters.prometheus.series_expiry`
  (a day, if nothing else is written) is taken away, and its label values make room for others.
  The series of agents named exactly in criteria stay; those of their versions, resource attributes, tools
  and classes do not.
- For each span exporter e, at every scrape,
  received = forwarded{{e}} + dropped{{""}} + dropped{{e}} + held{{""}} + held{{e}}.
- The metrics of the process and of Python (`process_*`, `python_*`) are those of `prometheus_client`.

| Metric | Type | Unit | Labels | Stability | Meaning |
|---|---|---|---|---|---|
"""


def metrics_reference() -> str:
    """The page in Markdown."""
    metrics = Metrics((_RESOURCE_ATTRIBUTES,))
    return _INTRODUCTION + "".join(_row(instrument) for instrument in metrics.instruments())


def _row(instrument: Counter | Gauge | Histogram) -> str:
    suffix = "_total" if isinstance(instrument, Counter) else ""
    labels = ", ".join(
        f"`[{label}]`" if label in instrument.optional_labels else f"`{label}`" for label in instrument.labels
    )
    meaning = instrument.help
    if isinstance(instrument, Histogram):
        meaning += f" Buckets: {', '.join(f'{bound:g}' for bound in instrument.buckets)}."
    level = level_of("metric", instrument.name)
    cells = f"`{instrument.name}{suffix}`", instrument.type, instrument.unit, labels, level, meaning
    return f"| {' | '.join(map(str, cells))} |\n"
