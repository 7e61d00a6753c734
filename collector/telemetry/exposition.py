"""The metrics table as Prometheus text and OpenMetrics, written again only where something changed.

Series are written in blocks of neighbours. The text of a block is kept as long as its series and their values
are the same; whoever has many blocks to take does other things between them.
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from math import isfinite

from prometheus_client.utils import floatToGoString

from collector.telemetry.families import INFO
from collector.telemetry.instruments import Counter, Exemplar, Gauge, Histogram, Instrument, Labels

_NUMBERS_PER_BLOCK = 250
_HISTOGRAMS_PER_BLOCK = 20
_go_number: Callable[[float], str] = floatToGoString


class _NumberBlock:
    """Neighbouring series of a counter or gauge, as they were written last."""

    __slots__ = ("labels", "lines", "starts", "text", "values")

    def __init__(self, labels: list[Labels], starts: list[str]) -> None:
        self.labels = labels
        self.starts = starts
        self.lines = [""] * len(labels)
        self.values: list[float | None] = [None] * len(labels)
        self.text = ""


class NumberWriter:
    """Writes the series of one counter or gauge."""

    def __init__(self, instrument: Counter | Gauge, *, openmetrics: bool) -> None:
        self._instrument = instrument
        self._header = _header(instrument, openmetrics)
        self._sample = f"{instrument.name}_total" if isinstance(instrument, Counter) else instrument.name
        self._blocks: list[_NumberBlock] = []

    def blocks(self, labels: Sequence[Labels], values: Sequence[float]) -> Iterator[str]:
        """The text of the family whose series have these values, in blocks that take half a millisecond."""
        yield self._header
        for number, start in enumerate(range(0, len(labels), _NUMBERS_PER_BLOCK)):
            block = self._block(number, list(labels[start : start + _NUMBERS_PER_BLOCK]))
            _write_numbers(block, list(values[start : start + _NUMBERS_PER_BLOCK]))
            yield block.text
        del self._blocks[-(-len(labels) // _NUMBERS_PER_BLOCK) :]

    def _block(self, number: int, labels: list[Labels]) -> _NumberBlock:
        if number < len(self._blocks):
            block = self._blocks[number]
            if block.labels == labels:
                return block
            known = dict(zip(block.labels, block.starts, strict=True))
            self._blocks[number] = block = _NumberBlock(
                labels, [known.get(found) or self._start(found) for found in labels]
            )
            return block
        block = _NumberBlock(labels, [self._start(found) for found in labels])
        self._blocks.append(block)
        return block

    def _start(self, labels: Labels) -> str:
        pairs = _pairs(self._instrument, labels)
        return f"{self._sample}{{{pairs}}} " if pairs else f"{self._sample} "


def _write_numbers(block: _NumberBlock, values: list[float]) -> None:
    known = block.values
    if known == values:
        return
    lines, starts = block.lines, block.starts
    for position, value in enumerate(values):
        if known[position] != value:
            lines[position] = f"{starts[position]}{_number(value)}\n"
    block.values = [*values]
    block.text = "".join(lines)


class _HistogramBlock:
    """Neighbouring series of a histogram, as they were written last."""

    __slots__ = ("labels", "rows", "suffixes", "templates", "text", "texts")

    def __init__(self, labels: list[Labels], templates: list[str]) -> None:
        self.labels = labels
        self.templates = templates
        self.rows: list[bytes] = [b""] * len(labels)
        self.texts = [""] * len(labels)
        self.suffixes: list[dict[int, tuple[Exemplar, str]]] = [{} for _ in labels]
        self.text = ""


class HistogramWriter:
    """Writes the series of one histogram; exemplars in OpenMetrics only, as they are when it writes."""

    def __init__(self, histogram: Histogram, *, openmetrics: bool) -> None:
        self._histogram = histogram
        self._header = _header(histogram, openmetrics)
        self._exemplars = histogram.exemplars if openmetrics else {}
        self._bounds = [*(_go_number(bound) for bound in histogram.buckets), "+Inf"]
        self._no_suffixes = [""] * len(self._bounds)
        self._unpack = struct.Struct(f"{len(self._bounds) + 1}d").unpack
        self._blocks: list[_HistogramBlock] = []
        self._removals = 0

    def blocks(self, labels: Sequence[Labels], rows: Sequence[bytes]) -> Iterator[str]:
        """The text of the family whose series have these packed rows, in blocks of half a millisecond."""
        yield self._header
        if self._removals != self._histogram.removals:  # a series of the same labels may be another one now
            self._removals = self._histogram.removals
            self._blocks.clear()
        for number, start in enumerate(range(0, len(labels), _HISTOGRAMS_PER_BLOCK)):
            block = self._block(number, list(labels[start : start + _HISTOGRAMS_PER_BLOCK]))
            self._write(block, list(rows[start : start + _HISTOGRAMS_PER_BLOCK]))
            yield block.text
        del self._blocks[-(-len(labels) // _HISTOGRAMS_PER_BLOCK) :]

    def _block(self, number: int, labels: list[Labels]) -> _HistogramBlock:
        if number < len(self._blocks):
            block = self._blocks[number]
            if block.labels == labels:
                return block
            known = dict(zip(block.labels, block.templates, strict=True))
            self._blocks[number] = block = _HistogramBlock(
                labels, [known.get(found) or self._template(found) for found in labels]
            )
            return block
        block = _HistogramBlock(labels, [self._template(found) for found in labels])
        self._blocks.append(block)
        return block

    def _write(self, block: _HistogramBlock, rows: list[bytes]) -> None:
        known = block.rows
        if known == rows:
            return
        for position, row in enumerate(rows):
            if known[position] != row:
                *counts, total = self._unpack(row)
                counts = list(accumulate(counts))
                numbers: list[object] = [None] * (2 * len(counts))
                numbers[0::2] = counts
                numbers[1::2] = self._suffixes(block, position)
                numbers += (counts[-1], _number(total))
                block.texts[position] = block.templates[position] % tuple(numbers)
        block.rows = rows
        block.text = "".join(block.texts)

    def _suffixes(self, block: _HistogramBlock, position: int) -> list[str]:
        """The exemplars of a series as text, by bucket. They change only together with its row."""
        exemplars = self._exemplars.get(block.labels[position])
        if not exemplars:
            return self._no_suffixes
        known = block.suffixes[position]
        suffixes = self._no_suffixes.copy()
        for bucket, exemplar in exemplars.items():
            written = known.get(bucket)
            if written is None or written[0] is not exemplar:
                written = known[bucket] = (exemplar, _suffix(exemplar))
            suffixes[bucket] = written[1]
        return suffixes

    def _template(self, labels: Labels) -> str:
        """The lines of a series, with `%d.0%s` for the count of a bucket and its exemplar."""
        name = self._histogram.name
        pairs = _pairs(self._histogram, labels).replace("%", "%%")
        start = f"{pairs}," if pairs else ""
        braced = f"{{{pairs}}}" if pairs else ""
        buckets = [f'{name}_bucket{{{start}le="{bound}"}} %d.0%s\n' for bound in self._bounds]
        return "".join(buckets) + f"{name}_count{braced} %d.0\n{name}_sum{braced} %s\n"


def _header(instrument: Instrument, openmetrics: bool) -> str:
    name, kind = instrument.name, instrument.type
    text = instrument.help.replace("\\", r"\\").replace("\n", r"\n")
    if not openmetrics:
        if kind == "counter":
            name = f"{name}_total"
        return f"# HELP {name} {text}\n# TYPE {name} {kind}\n"
    text = text.replace('"', r"\"")
    if kind == "gauge" and name.endswith(INFO):
        name = name.removesuffix(INFO)
        return f"# HELP {name} {text}\n# TYPE {name} info\n"
    unit = f"# UNIT {name} {instrument.unit}\n" if instrument.unit else ""
    return f"# HELP {name} {text}\n# TYPE {name} {kind}\n{unit}"


def _pairs(instrument: Instrument, labels: Labels) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in instrument.named_labels(labels))


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _number(value: float) -> str:
    return repr(float(value)) if isfinite(value) else _go_number(value)


def _suffix(exemplar: Exemplar) -> str:
    """An exemplar behind its sample, its time to the millisecond, as Prometheus keeps it."""
    value, trace_id, span_id, unix_nano = exemplar
    span = f'span_id="{span_id.hex()}",' if span_id else ""
    return f' # {{{span}trace_id="{trace_id.hex()}"}} {value!r} {unix_nano / 1e9:.3f}'
