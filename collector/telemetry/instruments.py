"""The kinds of metrics. Counting is adding to a plain number; everything that costs is left to the scrape."""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

Labels = tuple[str, ...]
"""Label values of one series, in the order of the instrument's labels.

Optional labels come last. One whose value is empty is left out of the series, and empty values at the end
are left off the tuple, so that a series has one tuple only.
"""


class Exemplar(NamedTuple):
    """The span behind one observation; `span_id` is empty where only the trace is known."""

    value: float
    trace_id: bytes
    span_id: bytes
    unix_nano: int


class Instrument:
    """A named metric with a fixed list of labels, of which the last `optional_labels` may be left out."""

    __slots__ = ("help", "labels", "name", "optional_labels", "type", "unit")

    def __init__(
        self,
        kind: Literal["counter", "gauge", "histogram"],
        name: str,
        help_text: str,
        labels: Labels,
        unit: str,
        optional_labels: Labels,
    ) -> None:
        self.type = kind
        self.name = name
        self.help = help_text
        self.labels = labels + optional_labels
        self.optional_labels = optional_labels
        self.unit = unit

    def named_labels(self, labels: Labels) -> list[tuple[str, str]]:
        """The labels that the series with these values has, with their names."""
        required = len(self.labels) - len(self.optional_labels)
        return [
            (name, value)
            for position, (name, value) in enumerate(zip(self.labels, labels, strict=False))
            if value or position < required
        ]


class Counter(Instrument):
    """A sum that only grows. Label values are given in the order of `labels`."""

    __slots__ = ("values",)

    def __init__(
        self,
        name: str,
        help_text: str,
        labels: Labels = (),
        unit: str = "",
        optional_labels: Labels = (),
    ) -> None:
        super().__init__("counter", name, help_text, labels, unit, optional_labels)
        self.values: dict[Labels, float] = {} if self.labels else {(): 0}

    def add(self, amount: float, *labels: str) -> None:
        """Add `amount`, not negative; 0 makes the series appear."""
        self.values[labels] = self.values.get(labels, 0) + amount

    def value(self, *labels: str) -> float:
        """The sum so far, 0 for a series never touched."""
        return self.values.get(labels, 0)


class Gauge(Instrument):
    """A value that is set, or read from a function at the time of a scrape."""

    __slots__ = ("functions", "values")

    def __init__(
        self,
        name: str,
        help_text: str,
        labels: Labels = (),
        unit: str = "",
        optional_labels: Labels = (),
    ) -> None:
        super().__init__("gauge", name, help_text, labels, unit, optional_labels)
        self.values: dict[Labels, float] = {}
        self.functions: dict[Labels, Callable[[], float]] = {}

    def set(self, value: float, *labels: str) -> None:
        """Set the value of a series."""
        self.values[labels] = value

    def read_from(self, function: Callable[[], float], *labels: str) -> None:
        """Let every scrape ask `function` for the value of a series."""
        self.functions[labels] = function

    def remove(self, *labels: str) -> None:
        """Let a series disappear, if it is there."""
        self.values.pop(labels, None)
        self.functions.pop(labels, None)

    def value(self, *labels: str) -> float:
        """The value as a scrape would see it, 0 for a series never touched."""
        function = self.functions.get(labels)
        return self.values.get(labels, 0) if function is None else function()


class Histogram(Instrument):
    """Observations in buckets; `values` holds [count per bucket and above the last..., sum] for each series.

    Rows are arrays because a scrape copies all of them at once. `exemplars` holds the last exemplar for each
    of the same buckets; it changes only together with the row.
    """

    __slots__ = ("buckets", "exemplars", "removals", "values")

    def __init__(
        self,
        name: str,
        help_text: str,
        buckets: Sequence[float],
        labels: Labels = (),
        unit: str = "",
        optional_labels: Labels = (),
    ) -> None:
        super().__init__("histogram", name, help_text, labels, unit, optional_labels)
        self.buckets = tuple(buckets)
        self.values: dict[Labels, array[float]] = {}
        self.exemplars: dict[Labels, dict[int, Exemplar]] = {}
        self.removals = 0
        if not self.labels:
            self.row()

    def observe(self, value: float, *labels: str) -> None:
        """Count one observation."""
        row = self.row(*labels)
        row[bisect_left(self.buckets, value)] += 1
        row[-1] += value

    def observe_span(self, exemplar: Exemplar, labels: Labels) -> None:
        """Count the value of `exemplar`, and name the span behind it.

        An exemplar whose ids are not 16 and 8 bytes (or no span id) is counted without a name: a scrape must
        never fail.
        """
        row = self.values.get(labels)
        if row is None:
            row = self.row(*labels)
        value, trace_id, span_id, _ = exemplar
        bucket = bisect_left(self.buckets, value)
        row[bucket] += 1
        row[-1] += value
        if len(trace_id) == 16 and len(span_id) in (0, 8):
            last = self.exemplars.get(labels)
            if last is None:
                last = self.exemplars[labels] = {}
            last[bucket] = exemplar

    def row(self, *labels: str) -> "array[float]":
        """The counts of a series (made at 0 if need be)."""
        row = self.values.get(labels)
        if row is None:
            row = self.values[labels] = array("d", bytes(8 * (len(self.buckets) + 2)))
        return row

    def remove(self, *labels: str) -> None:
        """Let a series disappear, if it is there."""
        if self.values.pop(labels, None) is not None:
            self.removals += 1
        self.exemplars.pop(labels, None)
