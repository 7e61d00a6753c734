"""Measurements of the service: readiness, accounting of spans, delays."""

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple, NoReturn

from collector.clock import Clock
from collector.telemetry.metrics import Metrics
from collector.trace import GradedTrace, Signal

BEFORE_FAN_OUT = ""
"""The exporter label of spans that have not reached the exporters yet."""

SAMPLE_INTERVAL_SECONDS = 0.25


class Condition(NamedTuple):
    """A condition of readiness; `detail` explains why it does not hold."""

    is_ready: bool
    detail: str = ""


class Readiness:
    """Conditions before the service may receive traffic, by name in the order in which they were first set.

    It is ready when every condition holds, and not before the first was set.
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


def accounting_error(metrics: Metrics, exporter: str, signal: Signal = "traces") -> float:
    """Spans (or log records) received and not accounted for by an exporter e of these: 0 unless a bug.

    None is lost silently: received + recovered{""} + recovered{e} = forwarded{e} + dropped{""}
    + dropped{e} + held{""} + held{e} + revoked. This holds between two steps of the data path, so call it in
    the loop.
    """
    books = metrics.books(signal)
    dropped = sum(
        count for (_, at), count in books.dropped.values.items() if at in (BEFORE_FAN_OUT, exporter)
    )
    held = books.held.value(BEFORE_FAN_OUT) + books.held.value(exporter)
    recovered = books.recovered.value(BEFORE_FAN_OUT) + books.recovered.value(exporter)
    revoked = 0 if books.revoked is None else books.revoked.value()
    left = books.forwarded.value(exporter) + dropped + revoked
    return books.received.value() + recovered - left - held


def publish_accounting_errors(metrics: Metrics, exporters: Iterable[str], signal: Signal = "traces") -> None:
    """Let every scrape show the accounting error of each exporter of spans, or of log records."""
    gauge = metrics.accounting_error if signal == "traces" else metrics.log_records_accounting_error
    for exporter in exporters:
        gauge.read_from(partial(accounting_error, metrics, exporter, signal), exporter)


async def measure_loop_lag(metrics: Metrics, clock: Clock) -> NoReturn:
    """Observe every 250 ms how late a timer of the event loop fires, until cancelled.

    Every request, answer and verdict is delayed by as much.
    """
    while True:
        due = clock.monotonic() + SAMPLE_INTERVAL_SECONDS
        await clock.sleep(SAMPLE_INTERVAL_SECONDS)
        metrics.event_loop_lag_seconds.observe(max(0.0, clock.monotonic() - due))


def observe_verdict_delays(metrics: Metrics, graded: GradedTrace, unix_nano: int) -> None:
    """Observe for each run with results how long ago it ended, except for backfill.

    A run ends with the last of its own span and its tool calls, by the clock of the sender: the delay of a
    run that ends in the future is 0 s.
    """
    if graded.backfill:
        return
    for graded_run in graded.runs:
        end = graded_run.run.last_end_unix_nano
        if end and graded_run.results:
            metrics.verdict_delay_seconds.observe(max(0, unix_nano - end) / 1e9)
