"""The metrics table as Prometheus text and OpenMetrics, rendered again only where something changed.

Values are copied at one moment, which is fast. Rendering the copy takes longer and may be interrupted. Series
are rendered in blocks of neighbours, so that other work can run in between; the text of a block is reused as
long as its series and their values are the same.
"""

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from math import isfinite
from typing import Any

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector, exposition
from prometheus_client.openmetrics import exposition as openmetrics_exposition
from prometheus_client.utils import floatToGoString

from collector.telemetry import (
    AnyInstrument,
    Counter,
    Exemplar,
    Gauge,
    Histogram,
    Instrument,
    Labels,
    Metrics,
)

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"

_INFO = "_info"
"""The suffix of gauges that are always 1 and matter for their labels."""

_openmetrics_text: Callable[[CollectorRegistry], bytes] = openmetrics_exposition.generate_latest
_go_number: Callable[[float], str] = floatToGoString

_LABELS = "\0"
"""Stands for the labels of a series, in which it may be as well: it is replaced once."""

_MAX_COUNT_TEXTS = 4096

_Copy = list[tuple[list[Labels], Sequence[float] | Sequence[bytes]]]
"""The series of each instrument at one moment, with their values or packed rows, without exemplars."""


class MetricsRegistry:
    """One `Metrics` table and the metrics of process, platform and garbage collector."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._runtime = CollectorRegistry()
        ProcessCollector(registry=self._runtime)
        PlatformCollector(registry=self._runtime)
        GCCollector(registry=self._runtime)
        instruments = metrics.instruments()
        self._writers = {
            openmetrics: [_Writer(instrument, openmetrics) for instrument in instruments]
            for openmetrics in (False, True)
        }

    def snapshot(self) -> "MetricsSnapshot":
        """A copy of everything that a scrape shows; call this in the thread that updates the table."""
        shown: list[Mapping[Labels, Any]] = [instrument.shown() for instrument in self._metrics.instruments()]
        return MetricsSnapshot([(list(series), list(series.values())) for series in shown], self)


@dataclass(eq=False)
class MetricsSnapshot:
    """The table at one moment. Only one thread may render snapshots of a registry."""

    copy: _Copy
    registry: MetricsRegistry

    def blocks(self, accept: str = "") -> Iterator[bytes]:
        """The text in the format that an Accept header prefers, in blocks of about half a millisecond.

        Exemplars are in OpenMetrics only. The default is the text format 0.0.4.
        """
        openmetrics = _prefers_openmetrics(accept)
        for writer, (labels, values) in zip(self.registry._writers[openmetrics], self.copy, strict=True):
            yield from writer.blocks(labels, values)
        text = _openmetrics_text if openmetrics else exposition.generate_latest
        yield text(self.registry._runtime)

    def content_type(self, accept: str = "") -> str:
        """The media type of the format that an Accept header prefers."""
        return OPENMETRICS if _prefers_openmetrics(accept) else TEXT


def gzip_accepted(accept_encoding: str) -> bool:
    """Whether an Accept-Encoding header allows gzip."""
    return _quality(accept_encoding, "gzip") > 0


def _prefers_openmetrics(accept: str) -> bool:
    openmetrics = _quality(accept, "application/openmetrics-text")
    return openmetrics > 0 and openmetrics >= max(_quality(accept, "text/plain"), _quality(accept, "text/*"))


def _quality(header: str, token: str) -> float:
    """The highest weight of `token` in a header of alternatives; 0 if it is missing."""
    best = 0.0
    for alternative in header.lower().split(","):
        name, *parameters = (part.strip() for part in alternative.split(";"))
        if name == token:
            weight = next((part[2:] for part in parameters if part.startswith("q=")), "1")
            try:
                best = max(best, float(weight))
            except ValueError:
                continue
    return best


class _Block:
    """Neighbouring series as last rendered; heads are what is the same in their text at every scrape."""

    __slots__ = ("heads", "labels", "lines", "text", "values")

    def __init__(self, labels: list[Labels], heads: list[str]) -> None:
        self.labels = labels
        self.heads = heads
        self.values: list[Any] = [None] * len(labels)
        self.lines = [""] * len(labels)
        self.text = b""


class _Writer:
    """Renders the series of one instrument in one format."""

    def __init__(self, instrument: AnyInstrument, openmetrics: bool) -> None:
        self._instrument = instrument
        self._header = _header(instrument, openmetrics)
        self._form = (
            _HistogramForm(instrument, openmetrics)
            if isinstance(instrument, Histogram)
            else _NumberForm(instrument)
        )
        self._blocks: list[_Block] = []
        self._removals = 0

    def blocks(self, labels: Sequence[Labels], values: Sequence[Any]) -> Iterator[bytes]:
        """The text of a family with these series and values, in blocks."""
        yield self._header.encode()
        if self._removals != self._instrument.removals:  # a series with the same labels may be a new one
            self._removals = self._instrument.removals
            self._blocks.clear()
        size = self._form.per_block
        for number, start in enumerate(range(0, len(labels), size)):
            block = self._block(number, list(labels[start : start + size]))
            self._write(block, list(values[start : start + size]))
            yield block.text
        del self._blocks[-(-len(labels) // size) :]

    def _block(self, number: int, labels: list[Labels]) -> _Block:
        heads: dict[Labels, str] = {}
        if number < len(self._blocks):
            block = self._blocks[number]
            if block.labels == labels:
                return block
            heads = dict(zip(block.labels, block.heads, strict=True))
        block = _Block(labels, [heads.get(of) or self._form.head(of) for of in labels])
        self._blocks[number : number + 1] = [block]
        return block

    def _write(self, block: _Block, values: list[Any]) -> None:
        before, line = block.values, self._form.line
        if before == values:
            return
        for position, value in enumerate(values):
            if before[position] != value:
                block.lines[position] = line(block.heads[position], value, block.labels[position])
        block.values = values
        block.text = "".join(block.lines).encode(errors="replace")


class _CountTexts(dict[float, str]):
    """The texts of counts, of the first thousands that there are: the buckets of a scrape share few."""

    def __missing__(self, count: float) -> str:
        text = repr(count)
        if len(self) < _MAX_COUNT_TEXTS:
            self[count] = text
        return text


_COUNTS = _CountTexts()


class _NumberForm:
    """Renders counters and gauges: one line per series."""

    per_block = 250

    def __init__(self, instrument: Counter | Gauge) -> None:
        self._instrument = instrument
        self._sample = f"{instrument.name}_total" if isinstance(instrument, Counter) else instrument.name

    def head(self, labels: Labels) -> str:
        pairs = _pairs(self._instrument, labels)
        return f"{self._sample}{{{pairs}}} " if pairs else f"{self._sample} "

    def line(self, head: str, value: float, labels: Labels) -> str:
        return f"{head}{float(value)!r}\n" if isfinite(value) else f"{head}{_go_number(value)}\n"


class _HistogramForm:
    """Renders histograms: one line per bucket, with current exemplars in OpenMetrics."""

    per_block = 20

    def __init__(self, histogram: Histogram, openmetrics: bool) -> None:
        self._histogram = histogram
        self._exemplars = histogram.exemplars if openmetrics else {}
        bounds = [*(_go_number(bound) for bound in histogram.buckets), "+Inf"]
        name, labels = histogram.name, _LABELS if histogram.labels else ""
        of_bucket, braced = (f"{labels},", f"{{{labels}}}") if labels else ("", "")
        buckets = [f'{name}_bucket{{{of_bucket}le="{bound}"}} %s\n' for bound in bounds]
        self._form = f"{''.join(buckets)}{name}_count{braced} %s\n{name}_sum{braced} %s\n"
        self._unpack = struct.Struct(f"{len(bounds) + 1}d").unpack

    def head(self, labels: Labels) -> str:
        return _pairs(self._histogram, labels)

    def line(self, head: str, value: bytes, labels: Labels) -> str:
        *counts, total = self._unpack(value)
        texts = list(map(_COUNTS.__getitem__, accumulate(counts)))
        count = texts[-1]
        exemplars = self._exemplars.get(labels) if count != "0.0" else None  # a new series is shown at 0
        if exemplars is not None:
            for bucket, exemplar in exemplars.items():
                texts[bucket] += _suffix(exemplar)
        texts += count, repr(total) if isfinite(total) else _go_number(total)
        return (self._form % tuple(texts)).replace(_LABELS, head)


def _header(instrument: Instrument, openmetrics: bool) -> str:
    name, kind, unit = instrument.name, instrument.type, ""
    text = instrument.help.replace("\\", r"\\").replace("\n", r"\n")
    if openmetrics:
        text = text.replace('"', r"\"")
        if kind == "gauge" and name.endswith(_INFO):
            name, kind = name.removesuffix(_INFO), "info"
        elif instrument.unit:
            unit = f"# UNIT {name} {instrument.unit}\n"
    elif kind == "counter":
        name = f"{name}_total"
    return f"# HELP {name} {text}\n# TYPE {name} {kind}\n{unit}"


def _pairs(instrument: Instrument, labels: Labels) -> str:
    values = "".join(labels)
    if "" in labels or "\\" in values or "\n" in values or '"' in values:  # few have any of them
        named = instrument.named_labels(labels)
        return ",".join([f'{name}="{_escaped(value)}"' for name, value in named])
    return _form_of_pairs(instrument.labels, len(labels)) % labels


@lru_cache
def _form_of_pairs(names: Labels, count: int) -> str:
    return ",".join([f'{name}="%s"' for name in names[:count]])


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _suffix(exemplar: Exemplar) -> str:
    """An exemplar after its sample, with its time in milliseconds, as Prometheus stores it."""
    value, span = exemplar
    if span.text is None:
        span_id = f'span_id="{span.span_id.hex()}",' if span.span_id else ""
        labels = f'{span_id}trace_id="{span.trace_id.hex()}"'
        span.text = f" # {{{labels}}} ", f" {span.unix_nano / 1e9:.3f}"
    before, after = span.text
    return f"{before}{value!r}{after}"
