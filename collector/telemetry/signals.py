"""What the service measures of itself: is it ready, is every span accounted for, how late are its answers."""

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple, NoReturn

from collector.clock import Clock
from collector.telemetry.metrics import Metrics
from collector.trace import GradedTrace

BEFORE_FAN_OUT = ""
"""The exporter label of spans that have not reached the exporters yet."""

SAMPLE_INTERVAL_SECONDS = 0.25


class Condition(NamedTuple):
    """One thing that must hold; `detail` says for people why it does not."""

    is_ready: bool
    detail: str = ""


class Readiness:
    """What must hold before the service may be sent traffic, by name in the order in which it was first set.

    It is ready when every condition holds, and not so before the first was set.
    """

    def __init__(self) -> None:
        self.conditions: dict[str, Condition] = {}

    def set(self, name: str, ready: bool, detail: str = "") -> None:
        """State whether `name` holds."""
        self.conditions[name] = Condition(ready, detail)

    @property
    def is_ready(self) -> bool:
        """Whether every condition holds."""
        return bool(self.conditions) and all(condition.is_ready for condition in self.conditions.values())


def accounting_error(metrics: Metrics, exporter: str) -> float:
    """Spans received and not accounted for by a span exporter e: 0 unless the service is wrong.

    No span is lost silently: received + recovered{""} + recovered{e} = forwarded{e} + dropped{""}
    + dropped{e} + held{""} + held{e} + revoked. That means something only between two steps of the data
    path, so call it in the loop.
    """
    dropped = sum(
        spans for (_, at), spans in metrics.spans_dropped.values.items() if at in (BEFORE_FAN_OUT, exporter)
    )
    held = metrics.spans_held.value(BEFORE_FAN_OUT) + metrics.spans_held.value(exporter)
    recovered = metrics.spans_recovered.value(BEFORE_FAN_OUT) + metrics.spans_recovered.value(exporter)
    gone = metrics.spans_forwarded.value(exporter) + dropped + metrics.spans_revoked.value()
    return metrics.spans_received.value() + recovered - gone - held


def publish_accounting_errors(metrics: Metrics, span_exporters: Iterable[str]) -> None:
    """Let every scrape show the accounting error of each exporter."""
    for exporter in span_exporters:
        metrics.accounting_error.read_from(partial(accounting_error, metrics, exporter), exporter)


async def measure_loop_lag(metrics: Metrics, clock: Clock) -> NoReturn:
    """Observe every 250 ms how late a timer of the event loop fired, until cancelled.

    Every request, answer and verdict waits as long as well.
    """
    while True:
        due = clock.monotonic() + SAMPLE_INTERVAL_SECONDS
        await clock.sleep(SAMPLE_INTERVAL_SECONDS)
        metrics.event_loop_lag_seconds.observe(max(0.0, clock.monotonic() - due))


def observe_verdict_delays(metrics: Metrics, graded: GradedTrace, unix_nano: int) -> None:
    """Observe for each run with results how long ago it ended; nothing for backfill.

    A run ends with the last of its own span and its tool calls. That time is the sender's word: a run that
    ends in the future by it has waited 0 s.
    """
    if graded.backfill:
        return
    for graded_run in graded.runs:
        end = graded_run.run.last_end_unix_nano
        if end and graded_run.results:
            metrics.verdict_delay_seconds.observe(max(0, unix_nano - end) / 1e9)
