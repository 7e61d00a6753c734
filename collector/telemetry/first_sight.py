"""Series that are shown at 0 before they take their first increment.

Prometheus computes rates from differences: what a series held when it was scraped for the first time is
lost to every rate. So increments of a series that just appeared wait until a scrape has shown it at 0, or
for 15 s, so that a service nobody scrapes does not hold them for ever. They are held, never dropped.
"""

from collector.clock import Clock
from collector.telemetry.instruments import Counter, Exemplar, Histogram, Labels

HOLD_SECONDS = 15.0


class FirstSightCounter:
    """Adds to `counter`, holding back what a new series takes at first."""

    def __init__(self, counter: Counter, clock: Clock) -> None:
        self._counter = counter
        self._clock = clock
        self._since: dict[Labels, float] = {}
        self._held: dict[Labels, float] = {}

    def appear(self, labels: Labels) -> None:
        """Show the series at 0, if it is not there, and hold what it takes from now on."""
        if labels not in self._counter.values:
            self._counter.values[labels] = 0
            self._held[labels] = 0
            self._since[labels] = self._clock.monotonic()

    def add(self, amount: float, labels: Labels) -> None:
        """Add `amount`, not negative, now or when the series has been seen."""
        values = self._counter.values
        value = values.get(labels)
        if value is None:
            self.appear(labels)
        if self._held and labels in self._held:
            self._held[labels] += amount
        else:
            values[labels] = (value or 0) + amount

    def release(self, *, everything: bool) -> None:
        """Apply what was held for 15 s, or everything."""
        if self._since:
            for labels in _taken_out(self._since, self._clock, everything):
                self._counter.values[labels] += self._held.pop(labels)

    def total(self, labels: Labels) -> float | None:
        """What the series counts, or None while some of it may be held."""
        return None if labels in self._held else self._counter.values.get(labels, 0)

    def remove(self, labels: Labels) -> int:
        """Let a series disappear of which nothing is held; the number of series that were there."""
        return 0 if self._counter.values.pop(labels, None) is None else 1


class FirstSightHistogram:
    """Observes into `histogram`, holding back what a new series takes at first."""

    def __init__(self, histogram: Histogram, clock: Clock) -> None:
        self._histogram = histogram
        self._clock = clock
        self._since: dict[Labels, float] = {}
        self._held = Histogram(histogram.name, histogram.help, histogram.buckets, histogram.labels)

    def appear(self, labels: Labels) -> None:
        """Show the series at 0, if it is not there, and hold what it takes from now on."""
        if labels not in self._histogram.values:
            self._histogram.row(*labels)
            self._held.row(*labels)
            self._since[labels] = self._clock.monotonic()

    def observe(self, exemplar: Exemplar, labels: Labels) -> None:
        """Count the exemplar's value, now or when the series has been seen."""
        if labels not in self._histogram.values:
            self.appear(labels)
        held = self._held
        histogram = held if held.values and labels in held.values else self._histogram
        histogram.observe_span(exemplar, labels)

    def release(self, *, everything: bool) -> None:
        """Apply what was held for 15 s, or everything."""
        if self._since:
            for labels in _taken_out(self._since, self._clock, everything):
                self._apply(labels)

    def remove(self, labels: Labels) -> int:
        """Let a series disappear of which nothing is held; the number of series that were there."""
        was_there = labels in self._histogram.values
        self._histogram.remove(*labels)
        return int(was_there)

    def _apply(self, labels: Labels) -> None:
        row = self._histogram.values[labels]
        for position, count in enumerate(self._held.values.pop(labels)):
            row[position] += count
        exemplars = self._held.exemplars.pop(labels, None)
        if exemplars:
            self._histogram.exemplars.setdefault(labels, {}).update(exemplars)


def _taken_out(since: dict[Labels, float], clock: Clock, everything: bool) -> list[Labels]:
    """Take the series out of `since`, the oldest first, that wait no longer."""
    due_until = clock.monotonic() - HOLD_SECONDS
    due: list[Labels] = []
    for labels, first_seen in since.items():
        if not everything and first_seen > due_until:
            break
        due.append(labels)
    for labels in due:
        del since[labels]
    return due
