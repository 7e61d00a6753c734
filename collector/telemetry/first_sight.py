"""Series that are shown at 0 before they take their first increment.

Prometheus computes rates from differences: what a series held when it was scraped for the first time is
lost to every rate. So increments of a series that just appeared wait until a scrape has shown it at 0, or
for 15 s, so that a service nobody scrapes does not hold them for ever. They are held, never dropped.

A series that was taken away and comes back before a scrape missed it waits for the scrape, however long: to
whoever scrapes it never went away, and only its value of 0 says that it began anew.
"""

from collector.clock import Clock
from collector.telemetry.instruments import Counter, Exemplar, Histogram, Labels

HOLD_SECONDS = 15.0


class FirstSightCounter:
    """Adds to `counter`, holding back what a new series takes at first."""

    def __init__(self, counter: Counter, clock: Clock) -> None:
        self._counter = counter
        self._waiting = _Waiting(clock)
        self._held: dict[Labels, float] = {}

    def appear(self, labels: Labels) -> None:
        """Show the series at 0, if it is not there, and hold what it takes from now on."""
        if labels not in self._counter.values:
            self._counter.values[labels] = 0
            self._held[labels] = 0
            self._waiting.add(labels)

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
        if self._held:
            for labels in self._waiting.taken_out(everything=everything):
                self._counter.values[labels] += self._held.pop(labels)

    def show(self) -> None:
        """A scrape shows everything as it stands: which series are there, and which are gone."""
        self._waiting.gone.clear()

    def total(self, labels: Labels) -> float | None:
        """What the series counts, or None while some of it may be held."""
        return None if labels in self._held else self._counter.values.get(labels, 0)

    def remove(self, labels: Labels) -> int:
        """Let a series disappear of which nothing is held; the number of series that were there."""
        if self._counter.values.pop(labels, None) is None:
            return 0
        self._waiting.gone.add(labels)
        return 1


class FirstSightHistogram:
    """Observes into `histogram`, holding back what a new series takes at first."""

    def __init__(self, histogram: Histogram, clock: Clock) -> None:
        self._histogram = histogram
        self._waiting = _Waiting(clock)
        self._held = Histogram(histogram.name, histogram.help, histogram.buckets, histogram.labels)

    def appear(self, labels: Labels) -> None:
        """Show the series at 0, if it is not there, and hold what it takes from now on."""
        if labels not in self._histogram.values:
            self._histogram.row(*labels)
            self._held.row(*labels)
            self._waiting.add(labels)

    def observe(self, exemplar: Exemplar, labels: Labels) -> None:
        """Count the exemplar's value, now or when the series has been seen."""
        if labels not in self._histogram.values:
            self.appear(labels)
        held = self._held
        histogram = held if held.values and labels in held.values else self._histogram
        histogram.observe_span(exemplar, labels)

    def release(self, *, everything: bool) -> None:
        """Apply what was held for 15 s, or everything."""
        if self._held.values:
            for labels in self._waiting.taken_out(everything=everything):
                self._apply(labels)

    def show(self) -> None:
        """A scrape shows everything as it stands: which series are there, and which are gone."""
        self._waiting.gone.clear()

    def remove(self, labels: Labels) -> int:
        """Let a series disappear of which nothing is held; the number of series that were there."""
        if labels not in self._histogram.values:
            return 0
        self._histogram.remove(*labels)
        self._waiting.gone.add(labels)
        return 1

    def _apply(self, labels: Labels) -> None:
        row = self._histogram.values[labels]
        for position, count in enumerate(self._held.values.pop(labels)):
            row[position] += count
        exemplars = self._held.exemplars.pop(labels, None)
        if exemplars:
            self._histogram.exemplars.setdefault(labels, {}).update(exemplars)


class _Waiting:
    """Which new series wait, and since when; `gone` are those taken away since the last scrape."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: dict[Labels, float] = {}
        self._for_scrape: list[Labels] = []
        self.gone: set[Labels] = set()

    def add(self, labels: Labels) -> None:
        """Let a series wait that just appeared."""
        if labels in self.gone:
            self._for_scrape.append(labels)
        else:
            self._since[labels] = self._clock.monotonic()

    def taken_out(self, *, everything: bool) -> list[Labels]:
        """The series that wait no longer, or all of them; they are forgotten here."""
        if everything:
            due = [*self._since, *self._for_scrape]
            self._since.clear()
            self._for_scrape.clear()
            return due
        due_until = self._clock.monotonic() - HOLD_SECONDS
        due = []
        for labels, first_seen in self._since.items():
            if first_seen > due_until:
                break
            due.append(labels)
        for labels in due:
            del self._since[labels]
        return due
