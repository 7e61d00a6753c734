"""Log records that arrived before any span of their trace: they wait for it, within bounds.

A trace may never come: its spans were not sampled, or never exported.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from collector.trace import SPAN_OVERHEAD_BYTES, Origin
from processors.spans import RawRecord

MAX_TRACES = 10_000
"""Traces whose records wait, at most."""
TRACE_BYTES = 512
"""Counted for every such trace in addition to its records."""


class _Waiting(NamedTuple):
    records: dict[bytes, RawRecord]
    """By their bytes, so that a repeat is known."""
    since: float
    origins: list[Origin]
    """Where they were read from, if they can be read again."""


@dataclass
class WaitingRecords:
    """The records of traces without any span, the trace that waits longest first; `held_bytes` of all."""

    max_bytes: int
    held_bytes: int = field(default=0, init=False)
    count: int = field(default=0, init=False)
    """How many records wait."""
    _traces: OrderedDict[bytes, _Waiting] = field(default_factory=OrderedDict, init=False)

    def __contains__(self, key: bytes) -> bool:
        return key in self._traces

    def add(self, key: bytes, records: Sequence[RawRecord], now: float, origin: Origin | None = None) -> None:
        """Let records wait for the trace `key`; a repeat of one that waits is left out."""
        waiting = self._traces.get(key)
        if waiting is None:
            waiting = self._traces[key] = _Waiting({}, now, [])
            self.held_bytes += TRACE_BYTES
        if origin is not None:
            waiting.origins.append(origin)
        for record in records:
            if record[1] not in waiting.records:
                waiting.records[record[1]] = record
                self.held_bytes += len(record[1]) + SPAN_OVERHEAD_BYTES
                self.count += 1

    def take(self, key: bytes) -> tuple[Sequence[RawRecord], Sequence[Origin]]:
        """The records that wait for the trace, which do no longer, and where they were read from."""
        waiting = self._traces.pop(key, None)
        if waiting is None:
            return (), ()
        self.count -= len(waiting.records)
        self.held_bytes -= TRACE_BYTES + sum(map(len, waiting.records))
        self.held_bytes -= SPAN_OVERHEAD_BYTES * len(waiting.records)
        return list(waiting.records.values()), waiting.origins

    def expired(self, before: float) -> Iterator[bytes]:
        """Traces that have been waited for since `before`, for the caller to take."""
        while self._traces and next(iter(self._traces.values())).since <= before:
            yield next(iter(self._traces))

    def excess(self) -> Iterator[bytes]:
        """Traces beyond the bounds, the oldest first, for the caller to take."""
        while len(self._traces) > MAX_TRACES or self.held_bytes > self.max_bytes:
            yield next(iter(self._traces))

    def oldest(self) -> bytes | None:
        """The trace that has been waited for longest; None if there is none."""
        return next(iter(self._traces), None)
