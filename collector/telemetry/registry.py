"""The metrics table as Prometheus and OpenMetrics text.

What must be consistent is copied in the loop, which is quick; turning the copy into text costs more and may
run in another thread.
"""

import gzip
import re
from collections.abc import Callable, Iterable, Iterator

from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    exposition,
)
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar as RenderedExemplar
from prometheus_client.utils import floatToGoString

from collector.telemetry.metrics import Counter, Exemplar, Gauge, Histogram, Labels, Metrics

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"

_openmetrics_text: Callable[[Collector], bytes] = openmetrics.generate_latest
_number: Callable[[float], str] = floatToGoString
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_RESERVED_SUFFIXES = ("_total", "_created", "_bucket", "_count", "_sum")
_INFO = "_info"


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

    def collect(self) -> Iterator[Metric]:
        """The families of the table as they stand now."""
        return MetricsSnapshot(self._metrics).collect()

    def snapshot(self) -> "MetricsSnapshot":
        """A copy of everything a scrape shows, taken at once; to be called where the table is written."""
        return MetricsSnapshot(self._metrics, self._runtime.collect)


class MetricsSnapshot(Collector):
    """The table at one moment; may be rendered in any thread."""

    def __init__(self, metrics: Metrics, runtime: Callable[[], Iterable[Metric]] = lambda: ()) -> None:
        self._runtime = runtime
        self._families: list[Callable[[], Metric]] = []
        for instrument in metrics.instruments():
            if isinstance(instrument, Counter):
                self._families.append(_counter(instrument, dict(instrument.values)))
            elif isinstance(instrument, Gauge):
                values = dict(instrument.values)
                values.update((labels, function()) for labels, function in instrument.functions.items())
                self._families.append(_gauge(instrument, values))
            else:
                rows = {labels: row.copy() for labels, row in instrument.values.items()}
                exemplars = {labels: found.copy() for labels, found in instrument.exemplars.items()}
                self._families.append(_histogram(instrument, rows, exemplars))

    def collect(self) -> Iterator[Metric]:
        """The families of the table in its order, then those of the runtime."""
        for family in self._families:
            yield family()
        yield from self._runtime()

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """The text in the format that an Accept header prefers, and its content type.

        Exemplars are in OpenMetrics only. Whatever the header asks for beside it gets the text format 0.0.4.
        """
        if _prefers_openmetrics(accept):
            return _openmetrics_text(self), OPENMETRICS
        return exposition.generate_latest(self), TEXT


def gzip_accepted(accept_encoding: str) -> bool:
    """Whether an Accept-Encoding header allows gzip."""
    return _quality(accept_encoding, "gzip") > 0


def compress(text: bytes) -> bytes:
    """Gzip at the speed that suits a scrape."""
    return gzip.compress(text, compresslevel=1, mtime=0)


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


def _counter(counter: Counter, values: dict[Labels, float]) -> Callable[[], Metric]:
    def family() -> Metric:
        metric = CounterMetricFamily(counter.name, counter.help, labels=counter.labels, unit=counter.unit)
        for labels, value in values.items():
            metric.add_metric(labels, value)
        return metric

    return family


def _gauge(gauge: Gauge, values: dict[Labels, float]) -> Callable[[], Metric]:
    def family() -> Metric:
        if gauge.name.endswith(_INFO):
            info = InfoMetricFamily(gauge.name.removesuffix(_INFO), gauge.help, labels=())
            for labels in values:
                info.add_metric((), dict(zip(gauge.labels, labels, strict=True)))
            return info
        metric = GaugeMetricFamily(gauge.name, gauge.help, labels=gauge.labels, unit=gauge.unit)
        for labels, value in values.items():
            metric.add_metric(labels, value)
        return metric

    return family


def _histogram(
    histogram: Histogram, rows: dict[Labels, list[float]], exemplars: dict[Labels, dict[int, Exemplar]]
) -> Callable[[], Metric]:
    def family() -> Metric:
        metric = HistogramMetricFamily(
            histogram.name, histogram.help, labels=histogram.labels, unit=histogram.unit
        )
        bounds = [*(_number(bound) for bound in histogram.buckets), "+Inf"]
        for labels, row in rows.items():
            found = exemplars.get(labels, {})
            cumulative = 0.0
            buckets: list[tuple[str, float] | tuple[str, float, RenderedExemplar]] = []
            for position, bound in enumerate(bounds):
                cumulative += row[position]
                exemplar = found.get(position)
                buckets.append(
                    (bound, cumulative) if exemplar is None else (bound, cumulative, _rendered(exemplar))
                )
            metric.add_metric(labels, buckets, row[-1])
        return metric

    return family


def _rendered(exemplar: Exemplar) -> RenderedExemplar:
    labels = {"trace_id": exemplar.trace_id.hex()}
    if exemplar.span_id:
        labels["span_id"] = exemplar.span_id.hex()
    return RenderedExemplar(labels, exemplar.value, exemplar.unix_nano / 1e9)


def _prefers_openmetrics(accept: str) -> bool:
    wanted = _quality(accept, "application/openmetrics-text")
    return wanted > 0 and wanted >= max(_quality(accept, "text/plain"), _quality(accept, "text/*"))


def _quality(header: str, token: str) -> float:
    """The highest weight that a header of alternatives gives `token`; 0 where it is not named."""
    best = 0.0
    for alternative in header.lower().split(","):
        name, *parameters = (part.strip() for part in alternative.split(";"))
        if name == token:
            best = max(best, _weight(parameters))
    return best


def _weight(parameters: list[str]) -> float:
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                return float(parameter[2:])
            except ValueError:
                return 0.0
    return 1.0
