"""The metrics table as a scrape sees it: copied at one moment, then written in steps.

What must be consistent is copied at once, which is quick. Turning the copy into text costs more and may be
interrupted: the table may change meanwhile.
"""

import re
from collections.abc import Callable, Iterator

from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    exposition,
)
from prometheus_client.core import Metric
from prometheus_client.openmetrics import exposition as openmetrics_exposition
from prometheus_client.registry import Collector

from collector.telemetry.content_negotiation import prefers_openmetrics
from collector.telemetry.exposition import HistogramWriter, NumberWriter
from collector.telemetry.families import counter_family, gauge_family, histogram_family
from collector.telemetry.instruments import Counter, Gauge, Histogram, Labels
from collector.telemetry.metrics import Metrics

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"

_openmetrics_text: Callable[[Collector], bytes] = openmetrics_exposition.generate_latest
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_RESERVED_SUFFIXES = ("_total", "_created", "_bucket", "_count", "_sum")


class MetricsRegistry(Collector):
    """One `Metrics` table and the metrics of process, platform and garbage collector.

    Raises:
        ValueError: A name in the table breaks the naming rules or is there twice.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        _check_names(metrics)
        self._runtime = CollectorRegistry()
        ProcessCollector(registry=self._runtime)
        PlatformCollector(registry=self._runtime)
        GCCollector(registry=self._runtime)
        self._writers: dict[bool, _Writers] = {}

    def collect(self) -> Iterator[Metric]:
        """The families of the table as they stand now."""
        for instrument in self._metrics.instruments():
            if isinstance(instrument, Counter):
                yield counter_family(instrument)
            elif isinstance(instrument, Gauge):
                yield gauge_family(instrument)
            else:
                yield histogram_family(instrument)

    def snapshot(self) -> "MetricsSnapshot":
        """A copy of everything a scrape shows, taken at once; to be called where the table is written."""
        return MetricsSnapshot(_Copy(self._metrics), self._writers_of, self._runtime)

    def _writers_of(self, openmetrics: bool) -> "_Writers":
        writers = self._writers.get(openmetrics)
        if writers is None:
            writers = self._writers[openmetrics] = _Writers(self._metrics, openmetrics)
        return writers


class MetricsSnapshot:
    """The table at one moment. The texts of snapshots of one registry are written by one thread."""

    def __init__(
        self, copy: "_Copy", writers: Callable[[bool], "_Writers"], runtime: CollectorRegistry
    ) -> None:
        self._copy = copy
        self._writers = writers
        self._runtime = runtime

    def blocks(self, accept: str = "") -> Iterator[str]:
        """The text in the format that an Accept header prefers, in blocks of about half a millisecond.

        Exemplars are in OpenMetrics only. Whatever the header asks for beside it gets the text format 0.0.4.
        """
        is_openmetrics = prefers_openmetrics(accept)
        yield from self._writers(is_openmetrics).blocks(self._copy)
        if is_openmetrics:
            yield _openmetrics_text(self._runtime).decode()
        else:
            yield exposition.generate_latest(self._runtime).decode()

    def content_type(self, accept: str = "") -> str:
        """The name of the format that an Accept header prefers."""
        return OPENMETRICS if prefers_openmetrics(accept) else TEXT

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """All `blocks` at once, and their content type."""
        return "".join(self.blocks(accept)).encode(errors="replace"), self.content_type(accept)


_Rows = tuple[list[Labels], list[bytes]]
_Numbers = tuple[list[Labels], list[float]]


class _Copy:
    """What the table holds at one moment: series and packed rows of histograms, series and values of others.

    Exemplars are not copied, they belong to no moment.
    """

    def __init__(self, metrics: Metrics) -> None:
        self.histograms: dict[str, _Rows] = {}
        self.others: dict[str, _Numbers] = {}
        for instrument in metrics.instruments():
            values = instrument.values
            if isinstance(instrument, Histogram):
                rows = [row.tobytes() for row in instrument.values.values()]
                self.histograms[instrument.name] = list(values), rows
            elif isinstance(instrument, Gauge) and instrument.functions:
                read = {labels: function() for labels, function in instrument.functions.items()}
                read = {**instrument.values, **read}
                self.others[instrument.name] = list(read), list(read.values())
            else:
                self.others[instrument.name] = list(values), list(instrument.values.values())


class _Writers:
    """The writers of all instruments in one format."""

    def __init__(self, metrics: Metrics, openmetrics: bool) -> None:
        self._writers = {
            instrument.name: HistogramWriter(instrument, openmetrics=openmetrics)
            if isinstance(instrument, Histogram)
            else NumberWriter(instrument, openmetrics=openmetrics)
            for instrument in metrics.instruments()
        }

    def blocks(self, copy: _Copy) -> Iterator[str]:
        for name, writer in self._writers.items():
            if isinstance(writer, HistogramWriter):
                yield from writer.blocks(*copy.histograms[name])
            else:
                yield from writer.blocks(*copy.others[name])


def _check_names(metrics: Metrics) -> None:
    names: set[str] = set()
    for instrument in metrics.instruments():
        if instrument.name in names:
            raise ValueError(f"metric {instrument.name}: the name is in the table twice")
        names.add(instrument.name)
        for name in (instrument.name, *instrument.labels):
            if not _NAME.fullmatch(name):
                raise ValueError(f"metric {instrument.name}: {name!r} must match {_NAME.pattern}")
        if instrument.name.endswith(_RESERVED_SUFFIXES):
            raise ValueError(f"metric {instrument.name}: the suffix is added when it is rendered")
        if instrument.unit and not instrument.name.endswith(f"_{instrument.unit}"):
            raise ValueError(f"metric {instrument.name}: the name must end in its unit {instrument.unit}")
