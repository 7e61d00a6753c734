"""No span is lost silently: what came in must equal what went out, was dropped or is held.

For every span exporter e: received = forwarded{e} + dropped{""} + dropped{e} + held{""} + held{e}.
"""

from collections.abc import Iterable
from functools import partial

from collector.telemetry.metrics import Metrics

BEFORE_FAN_OUT = ""
"""The exporter label of spans that have not reached the exporters yet."""


def accounting_error(metrics: Metrics, exporter: str) -> float:
    """Spans received and not accounted for by `exporter`: 0 unless the service is wrong.

    Means something only between two steps of the data path, so call it in the loop.
    """
    dropped = sum(
        spans for (_, at), spans in metrics.spans_dropped.values.items() if at in (BEFORE_FAN_OUT, exporter)
    )
    held = metrics.spans_held.value(BEFORE_FAN_OUT) + metrics.spans_held.value(exporter)
    return metrics.spans_received.value() - metrics.spans_forwarded.value(exporter) - dropped - held


def accounting_errors(metrics: Metrics, span_exporters: Iterable[str]) -> dict[str, float]:
    """`accounting_error` by exporter."""
    return {exporter: accounting_error(metrics, exporter) for exporter in span_exporters}


def publish_accounting_errors(metrics: Metrics, span_exporters: Iterable[str]) -> None:
    """Let every scrape show the accounting error of each exporter."""
    for exporter in span_exporters:
        metrics.accounting_error.read_from(partial(accounting_error, metrics, exporter), exporter)
