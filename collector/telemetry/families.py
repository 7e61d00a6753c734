"""The metrics table as families of prometheus_client, for whoever collects through its interface."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.samples import Exemplar as FamilyExemplar
from prometheus_client.utils import floatToGoString

from collector.telemetry.instruments import Counter, Exemplar, Gauge, Histogram

INFO = "_info"
"""The end of the names of gauges that are 1 and mean their labels."""

_go_number: Callable[[float], str] = floatToGoString


def counter_family(counter: Counter) -> Metric:
    """The family of a counter."""
    family = CounterMetricFamily(counter.name, counter.help, labels=counter.labels, unit=counter.unit)
    for labels, value in counter.values.items():
        family.add_sample(f"{counter.name}_total", dict(counter.named_labels(labels)), value)
    return family


def gauge_family(gauge: Gauge) -> Metric:
    """The family of a gauge."""
    values = {**gauge.values, **{labels: function() for labels, function in gauge.functions.items()}}
    if gauge.name.endswith(INFO):
        info = InfoMetricFamily(gauge.name.removesuffix(INFO), gauge.help, labels=())
        for labels, value in values.items():
            info.add_sample(gauge.name, dict(gauge.named_labels(labels)), value)
        return info
    family = GaugeMetricFamily(gauge.name, gauge.help, labels=gauge.labels, unit=gauge.unit)
    for labels, value in values.items():
        family.add_sample(gauge.name, dict(gauge.named_labels(labels)), value)
    return family


def histogram_family(histogram: Histogram) -> Metric:
    """The family of a histogram, with exemplars."""
    name = histogram.name
    family = HistogramMetricFamily(name, histogram.help, labels=histogram.labels, unit=histogram.unit)
    for labels, row in histogram.values.items():
        pairs = dict(histogram.named_labels(labels))
        found = histogram.exemplars.get(labels, {})
        for bound, count, exemplar in _buckets(histogram, row, found):
            family.add_sample(f"{name}_bucket", pairs | {"le": bound}, count, exemplar=exemplar)
        family.add_sample(f"{name}_count", pairs, sum(row[:-1]))
        family.add_sample(f"{name}_sum", pairs, row[-1])
    return family


def _buckets(
    histogram: Histogram, row: Sequence[float], exemplars: Mapping[int, Exemplar]
) -> Iterator[tuple[str, float, FamilyExemplar | None]]:
    count = 0.0
    for bucket, bound in enumerate((*histogram.buckets, float("inf"))):
        count += row[bucket]
        exemplar = exemplars.get(bucket)
        yield _go_number(bound), count, None if exemplar is None else _family_exemplar(exemplar)


def _family_exemplar(exemplar: Exemplar) -> FamilyExemplar:
    labels = {"trace_id": exemplar.trace_id.hex()}
    if exemplar.span_id:
        labels["span_id"] = exemplar.span_id.hex()
    return FamilyExemplar(labels, exemplar.value, round(exemplar.unix_nano / 1e9, 3))
