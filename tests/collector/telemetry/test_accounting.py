"""What came in equals what went out, was dropped or is held."""

from collector.monitoring import MetricsRegistry
from collector.telemetry import Metrics
from collector.telemetry.signals import accounting_error, publish_accounting_errors
from tests.support.metric_table import rendered


def balanced() -> Metrics:
    metrics = Metrics()
    metrics.spans_received.add(100)
    metrics.spans_dropped.add(7, "duplicate", "")
    metrics.spans_dropped.add(3, "conflict", "")
    metrics.spans_held.read_from(lambda: 20, "")
    metrics.spans_forwarded.add(50, "otlp")
    metrics.spans_dropped.add(5, "queue_full", "otlp")
    metrics.spans_held.read_from(lambda: 15, "otlp")
    metrics.spans_forwarded.add(70, "file")
    return metrics


def test_spans_that_are_all_accounted_for_leave_no_error() -> None:
    metrics = balanced()

    assert (0, 0) == (accounting_error(metrics, "otlp"), accounting_error(metrics, "file"))


def test_a_lost_span_and_a_span_counted_twice_show_for_their_exporter_alone() -> None:
    metrics = balanced()
    metrics.spans_forwarded.add(1, "otlp")
    metrics.spans_forwarded.add(-1, "file")

    assert (-1, 1) == (accounting_error(metrics, "otlp"), accounting_error(metrics, "file"))


def test_every_scrape_shows_the_error_of_each_exporter() -> None:
    metrics = balanced()
    publish_accounting_errors(metrics, ["otlp", "file"])
    metrics.spans_received.add(2)

    text = rendered(MetricsRegistry(metrics).snapshot())

    assert b'tracegrade_accounting_error_spans{exporter="otlp"} 2.0\n' in text
    assert b'tracegrade_accounting_error_spans{exporter="file"} 2.0\n' in text
