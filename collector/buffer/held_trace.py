"""One trace while it is held: its spans by id, and what they show of its shape.

Heads of spans are read when the trace is looked at, each once, not when a span arrives: most traces are
looked at only once, after they fell quiet.
"""

from collections.abc import Callable, Set
from dataclasses import dataclass, field
from itertools import islice
from math import inf

from collector.trace import Origin
from processors.spans import (
    KIND_CLIENT,
    KIND_CONSUMER,
    KIND_PRODUCER,
    KIND_SERVER,
    NATIVE,
    Envelope,
    LogRecord,
    RawRecord,
    RawSpan,
    cached_for_small,
    contains_any,
    parent_is_remote,
    read_span_head,
)

TRACE_OVERHEAD_BYTES = 1280
"""Counted for every held trace in addition to its spans: the trace, its entries in indexes and deadlines."""


@dataclass(slots=True)
class EarlyReports:
    """What was reported of a trace while it goes on, and as of when and how many spans and log records."""

    looked_at: float
    count: int
    known: set[tuple[bytes | str | None, str]] = field(default_factory=set)
    """Runs, by key or name, with the evaluations that they fail; None stands for all runs."""


_MCP_METHOD = b"\x0fmcp.method.name"
"""The key of an attribute as encoded (length, text). Quoted in a message it would only add patience."""
_OUTGOING = (b"http.", b"rpc.")
"""How keys of attributes begin that a client of another process has. In a message they only add patience."""
_KINDS_BETWEEN_SERVICES = frozenset({KIND_SERVER, KIND_CLIENT, KIND_CONSUMER})
_NONE: frozenset[bytes] = frozenset()
_NEVER = 1 << 64


@dataclass(slots=True, eq=False)
class HeldTrace:
    """The spans of one trace that is not finished, by id, and the shape that they show.

    Times of arrival are those of the finish clock but for `first_monotonic`. The shape is that of the spans
    at the last `read_shape`.
    """

    key: bytes
    trace_id: bytes
    tenant: str = ""
    first_arrival: float = 0.0
    first_monotonic: float = 0.0
    last_arrival: float = field(init=False)
    last_unix_nano: int = 0
    spans: dict[bytes, RawSpan] = field(default_factory=dict)
    log_records: dict[bytes, RawRecord] | None = None
    """Copies of its agents' log records by their bytes, so that a repeat is known. Without any span they make
    a run by themselves."""
    held_bytes: int = 0
    checked_at: float = inf
    is_missing_refused_spans: bool = False
    """Whether spans of it were refused and have not come back."""
    whole_unix_nano: int | None = None
    """Since when all of its spans are there, if that was before the process was down. Of a run that log
    records alone report: when the last one arrived, if none has since."""
    was_graded: Callable[[bytes], bool] | None = None
    """Where the trace goes on after a part of it was graded: which spans were in that part."""
    is_judged: bool = False
    """Whether it was checked, since its last span arrived, if the trace `is_settled`."""
    is_settled: bool = False
    """Whether its spans show that every run in it is over."""
    times_judged: int = 0
    records: list[int] | None = None
    """Those that its spans were read from."""
    origins: list[Origin] | None = None
    """Those that its log records were read from."""
    early: EarlyReports | None = None
    """What was reported of it while it goes on, from the first time that it was looked at."""
    arrivals: list[tuple[int, float]] | None = None
    """How many spans there were after each arrival, where that is needed."""
    services: frozenset[str] = field(init=False)
    is_distributed: bool = field(init=False)
    """Whether several services, or a SERVER, CONSUMER or MCP client span, were seen."""
    may_continue_elsewhere: bool = field(init=False)
    """Whether a client or producer span was seen from which another process may go on with the trace."""
    earliest_start: int = field(init=False)
    latest_end: int = field(init=False)
    _missing_parents: Set[bytes] = field(init=False)
    _remote_parents: Set[bytes] = field(init=False)
    _read_count: int = field(init=False)
    _read_records: int = 0
    _has_root: bool = field(init=False)

    def __post_init__(self) -> None:
        self.last_arrival = self.first_arrival
        self._forget_shape()

    @property
    def has_root(self) -> bool:
        """Whether a span without a parent is there.

        Where the trace goes on, a span right below the graded part is one as well; but others can arrive
        before the run's own, and so there is none as long as the parent of any span is missing.
        """
        return self._has_root and (self.was_graded is None or not self._missing_parents)

    @property
    def has_remote_root(self) -> bool:
        """Whether a span is there whose parent is remote and absent."""
        return bool(self._remote_parents)

    @property
    def is_missing_parents(self) -> bool:
        """Whether a span is there whose parent is absent and not known to be remote."""
        return bool(self._missing_parents)

    def settle_repeat(self, held: RawSpan, arrived: RawSpan) -> tuple[RawSpan, str]:
        """Decide between two spans with one id: the one that is dropped, and why.

        `duplicate` where the bytes of the spans are equal, else `conflict`. The span with the later end
        is kept, then the longer, then the one whose bytes compare greater, then its resource and scope
        likewise; so which is kept does not depend on their order.
        """
        if held[1] == arrived[1]:
            reason = "duplicate"
            if held[2] is arrived[2]:
                return arrived, reason
        else:
            reason = "conflict"
        if _rank(arrived) <= _rank(held):
            return arrived, reason
        self.spans[arrived[0]] = arrived
        self._forget_shape()
        return held, reason

    def root_arrival(self) -> float | None:
        """When its first root arrived; None where arrivals are not kept or there is no root."""
        if self.arrivals is None:
            return None
        for place, (_, payload, _) in enumerate(self.spans.values()):
            if not read_span_head(payload)[0]:
                return next((at for count, at in self.arrivals if place < count), None)
        return None

    def read_shape(self, most: int | None = None) -> bool:
        """Read the heads of spans that arrived since the last time, at most `most`; whether those are all."""
        spans = self.spans
        if self._read_count == len(spans):
            return bool(spans) or self._read_shape_of_records()
        until = len(spans) if most is None else min(len(spans), self._read_count + most)
        missing = {parent for parent in self._missing_parents if parent not in spans}
        remote = {parent for parent in self._remote_parents if parent not in spans}
        shown: set[frozenset[str]] = set()
        earliest_start, latest_end = self.earliest_start, self.latest_end
        envelope = resource = None
        for _, payload, envelope_of_span in islice(spans.values(), self._read_count, until):
            parent, kind, start, end = read_span_head(payload)
            if start < earliest_start:
                earliest_start = start
            if end > latest_end:
                latest_end = end
            if not parent:
                self._has_root = True
            elif parent in spans:
                pass
            elif self.was_graded is not None and self.was_graded(parent):
                self._has_root = True
            else:
                (remote if parent_is_remote(payload) else missing).add(parent)
            if kind in _KINDS_BETWEEN_SERVICES and (kind != KIND_CLIENT or _has_mcp_method(payload)):
                self.is_distributed = True
            if kind == KIND_PRODUCER or (kind == KIND_CLIENT and contains_any(payload, *_OUTGOING)):
                self.may_continue_elsewhere = True
            if envelope_of_span is not envelope:
                envelope = envelope_of_span
                if envelope.resource != resource:
                    resource = envelope.resource
                    shown.add(_services(resource))
        self._read_count = until
        self._missing_parents = missing or _NONE
        self._remote_parents = remote or _NONE
        self.earliest_start, self.latest_end = earliest_start, latest_end
        if self.services or len(shown) > 1:
            self.services = self.services.union(*shown)
            self.is_distributed = self.is_distributed or len(self.services) > 1
        else:
            self.services = shown.pop()
        return until == len(spans)

    def _read_shape_of_records(self) -> bool:
        """Times and services of a run that log records alone report; True: all were read."""
        records = self.log_records or {}
        for _, payload, envelope in islice(records.values(), self._read_records, None):
            if at := LogRecord(payload, envelope).unix_nano:
                self.earliest_start, self.latest_end = min(self.earliest_start, at), max(self.latest_end, at)
            self.services |= _services(envelope.resource)
        self._read_records = len(records)
        return True

    def _forget_shape(self) -> None:
        self._read_count = 0
        self._missing_parents = self._remote_parents = _NONE
        self.services = frozenset()
        self._has_root = self.is_distributed = self.may_continue_elsewhere = False
        self.earliest_start = _NEVER
        self.latest_end = 0


def _has_mcp_method(payload: bytes) -> bool:
    """Whether the key is in there; to look for its one byte that is no text first is ten times faster."""
    if NATIVE is not None:
        return NATIVE.contains_any(payload, _MCP_METHOD)
    place = payload.find(_MCP_METHOD[:1])
    return place >= 0 and payload.find(_MCP_METHOD, place) >= 0


@cached_for_small(1024)
def _services(resource: bytes) -> frozenset[str]:
    return frozenset({Envelope(resource, b"").service_name})


def _rank(span: RawSpan) -> tuple[int, int, bytes, bytes, bytes]:
    _, payload, envelope = span
    return read_span_head(payload)[3], len(payload), payload, envelope.resource, envelope.scope
