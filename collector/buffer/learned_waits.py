"""Waits that are learned: how long after a trace's root its last span arrives, by service.

The gap of a trace is the time from the arrival of its root to that of the last span that arrived after it,
also of one that was too late: else the shorter the wait, the shorter the gaps would seem. A gap is therefore
counted some time after its trace was finished. All times are those of the finish clock.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate

MIN_WAIT_SECONDS, MAX_WAIT_SECONDS = 0.2, 6.0
"""No learned wait is shorter or longer."""
DEFAULT_WAIT_SECONDS = 2.0
"""The wait of a service of which too few gaps were seen."""
QUANTILE = 0.9995
"""The share of gaps that the wait is to cover: of one in a thousand that may be missed half is reserved."""
MIN_GAPS = 2_000
"""How many are needed to know the quantile well enough."""
HORIZON_SECONDS = 10.0
"""How long after its finish late spans of a trace are waited for before its gap is counted."""
MAX_SERVICES = 1_000
OVERFLOW = "__overflow__"
"""Services beyond the first thousand have one wait together."""

_SHORTEST, _RATIO = 0.05, 1.1
_MOST_GAPS = 20_000
"""From this many on, all earlier counts are halved: recent gaps weigh most."""
_GAPS_BETWEEN = 100
"""How many gaps are counted before the wait is calculated again."""
_MAX_WATCHED = 20_000


def _edges() -> tuple[float, ...]:
    edges = [_SHORTEST]
    while edges[-1] < MAX_WAIT_SECONDS:
        edges.append(min(edges[-1] * _RATIO, MAX_WAIT_SECONDS))
    return tuple(edges)


_EDGES = _edges()


class GapHistogram:
    """Gaps in bins whose edges lie a tenth apart; old ones fade. `total` is how many there are."""

    def __init__(self) -> None:
        self._counts = [0.0] * (len(_EDGES) + 1)
        self.total = 0.0
        self.seen = 0

    def add(self, seconds: float) -> None:
        """Count a gap."""
        place = next((at for at, edge in enumerate(_EDGES) if seconds <= edge), len(_EDGES))
        self._counts[place] += 1
        self.total += 1
        self.seen += 1
        if self.total >= _MOST_GAPS:
            self._counts = [count / 2 for count in self._counts]
            self.total /= 2

    def quantile(self, share: float) -> float:
        """An upper bound for that share of the gaps, or the longest wait if there is none below."""
        below = zip(accumulate(self._counts), _EDGES, strict=False)
        return next((edge for count, edge in below if count >= share * self.total), MAX_WAIT_SECONDS)


class LearnedWaits:
    """The wait of each service, in seconds; `on_wait` is called with each that is calculated."""

    def __init__(self, on_wait: Callable[[str, float], None] = lambda _service, _seconds: None) -> None:
        self._histograms: dict[str, GapHistogram] = {}
        self._waits: dict[str, float] = {}
        self._on_wait = on_wait

    def wait(self, service: str) -> float:
        """How long a trace of `service` has to be quiet after its root arrived."""
        name = service if service in self._histograms else OVERFLOW
        return self._waits.get(name, DEFAULT_WAIT_SECONDS)

    def waits(self) -> Mapping[str, float]:
        """The waits that were learned, by service."""
        return dict(self._waits)

    def add(self, service: str, seconds: float) -> None:
        """Count the gap of a trace."""
        if service not in self._histograms and len(self._histograms) >= MAX_SERVICES:
            service = OVERFLOW
        histogram = self._histograms.setdefault(service, GapHistogram())
        histogram.add(seconds)
        if histogram.seen >= MIN_GAPS and histogram.seen % _GAPS_BETWEEN == 0:
            wait = self._waits[service] = max(histogram.quantile(QUANTILE), MIN_WAIT_SECONDS)
            self._on_wait(service, wait)


@dataclass(slots=True)
class _Watched:
    service: str
    root_arrival: float
    gap: float
    finished_at: float


@dataclass
class GapWatch:
    """Finished traces of one buffer, until their gaps are counted."""

    waits: LearnedWaits
    _watched: OrderedDict[bytes, _Watched] = field(default_factory=OrderedDict, init=False)

    def finish(self, key: bytes, service: str, root_arrival: float, last_arrival: float, now: float) -> None:
        """A trace is finished. While very many are watched, it is left out as if it had not been."""
        while self._watched:
            oldest = next(iter(self._watched.values()))
            if now - oldest.finished_at < HORIZON_SECONDS:
                break
            self._watched.popitem(last=False)
            self.waits.add(oldest.service, oldest.gap)
        if len(self._watched) < _MAX_WATCHED:
            self._watched[key] = _Watched(service, root_arrival, last_arrival - root_arrival, now)

    def note_late(self, key: bytes, now: float) -> None:
        """Spans arrived that belong to a finished trace."""
        watched = self._watched.get(key)
        if watched is not None:
            watched.gap = now - watched.root_arrival
