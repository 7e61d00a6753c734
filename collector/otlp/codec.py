"""Export requests as bytes: split into spans by trace, or into log records, and joined again, undecoded.

A span remains the bytes of its Span message; its resource and scope, including schema URLs and unknown
fields, remain the bytes of the messages around it. So does a log record: the messages around both number
their fields alike. The protobuf runtime validates every request, but after the walk: it takes a hundred bytes
and more for each empty message, and the walk refuses floods of those.
"""

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from threading import Lock
from typing import NamedTuple, TypeVar
from weakref import WeakValueDictionary, finalize

from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.errors import MalformedRequest
from collector.otlp.json_codec import HAS_INVALID_IDS
from collector.trace import UnsplitRecords
from processors.spans import (
    END_GROUP,
    LENGTH_DELIMITED,
    NATIVE,
    START_GROUP,
    Envelope,
    RawRecord,
    RawSpan,
    encode_varint,
    parse_log_record,
    parse_span,
    read_varint,
    skip_field,
)

_NO_TRACE_ID = bytes(16)
_NO_SPAN_ID = bytes(8)

# ExportTraceServiceRequest.resource_spans, ResourceSpans.scope_spans, ScopeSpans.spans; and
# ExportLogsServiceRequest.resource_logs, ResourceLogs.scope_logs, ScopeLogs.log_records
_RESOURCES, _SCOPES, _ITEMS = 0x0A, 0x12, 0x12

# trace_id (1), span_id (2), tag and length of parent_span_id (4)
_IDS = struct.Struct("<H16sH8sH")
_TRACE_ID_TAG, _SPAN_ID_TAG, _PARENT_TAG = 0x100A, 0x0812, 0x0822

_SHORTEST_SPAN, _SHORTEST_RECORD = 28, 9
"""Bytes of a span that has nothing but its ids, and of a log record that has nothing but a time."""
_FRAMING = 2
"""Bytes that each of the messages around such a one adds."""

_MAX_EMPTY = 10_000
"""Messages too short to contain a span or record, and needless fields, that one request may have. Each takes
a hundred times the memory of its own bytes, and no sender has a reason to send any."""


_MAX_SCOPES = 1_000
"""More resources and scopes than any usual request has."""

_USUAL_FIELDS = 8
"""More fields than any resource or scope has in addition to its spans."""

_CUT_SHORT = "a message in it does not end where it should"

_PART_BYTES = 1 << 20
"""Longer requests are validated in parts of about this size, since no other thread can run meanwhile."""

OVERHEAD_BYTES = 1024
"""Counted for every resource and scope in addition to their own bytes: objects and index entries."""


_SplitT = TypeVar("_SplitT")


class EnvelopeRegistry:
    """Shares one `Envelope` between all spans with the same resource and scope, and measures them."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[tuple[bytes, bytes], Envelope] = WeakValueDictionary()
        self._bytes = 0
        self._adding = Lock()  # large requests are split in a thread

    def envelope(self, resource: bytes, scope: bytes) -> Envelope:
        """The envelope for the bytes around `spans` in a ResourceSpans and in a ScopeSpans."""
        key = (resource, scope)
        known = self._known.get(key)
        if known is None:
            with self._adding:
                known = self._known.get(key)
                if known is None:
                    known = self._known[key] = Envelope(resource, scope)
                    size = len(resource) + len(scope) + OVERHEAD_BYTES
                    finalize(known, self._count, -size).atexit = False
                    self._count(size)
        return known

    def bytes_held(self) -> int:
        """Bytes of all envelopes in use."""
        return self._bytes

    def _count(self, size: int) -> None:
        """Called by any thread that releases an envelope; calls nothing, so that no other thread can run."""
        self._bytes += size


_OF_THIS_PROCESS = EnvelopeRegistry()


class SplitRequest(NamedTuple):
    """The spans of one request by trace id, each trace's in the order of the request.

    `rejected` counts spans with an invalid id: a trace id that is not 16 bytes or all
    zero, a span id that is not 8 bytes or all zero, a parent span id that is neither empty nor 8 bytes.
    """

    traces: dict[bytes, list[RawSpan]]
    accepted: int
    rejected: int

    def rejection(self) -> str:
        """Why spans were rejected; empty if none was."""
        if not self.rejected:
            return ""
        return (
            f"{self.rejected} of {self.accepted + self.rejected} spans rejected: a trace id must be 16 bytes "
            "and a span id 8 bytes (in OTLP/JSON as hex, not base64), neither all zero; a parent span id "
            "must be empty or 8 bytes."
        )


class SplitRecords(NamedTuple):
    """The log records of one request in their order; their span ids are not read.

    `rejected` counts those with an id that is not hex in OTLP/JSON. Any other id is for readers of records to
    judge: a record need not belong to a span.
    """

    records: Sequence[RawRecord]
    rejected: int

    def rejection(self) -> str:
        """Why records were rejected; empty if none was."""
        if not self.rejected:
            return ""
        return (
            f"{self.rejected} of {len(self.records) + self.rejected} log records rejected: in OTLP/JSON a "
            "trace id and a span id must be hex, not base64."
        )


def split_request(body: bytes, envelopes: EnvelopeRegistry = _OF_THIS_PROCESS) -> SplitRequest:
    """Split a serialised ExportTraceServiceRequest; resources and scopes of its spans come from `envelopes`.

    Raises:
        MalformedRequest: `body` is not such a message, or more than 10,000 of those in it are empty.
    """
    if NATIVE is not None and (split := NATIVE.split_spans(body, envelopes.envelope)) is not None:
        return SplitRequest(*split, rejected=0)
    return _validated(body, ExportTraceServiceRequest, lambda: _walk(body, envelopes))


def split_records(body: bytes, envelopes: EnvelopeRegistry = _OF_THIS_PROCESS) -> SplitRecords:
    """Split a serialised ExportLogsServiceRequest, as `split_request` does; raises as it does."""
    if NATIVE is not None and not body.endswith(HAS_INVALID_IDS):
        records = NATIVE.split_records(body, envelopes.envelope)
        if records is not None:
            return SplitRecords(records, 0)
    return _validated(body, ExportLogsServiceRequest, lambda: _walk_records(body, envelopes))


def count_records(body: bytes, envelopes: EnvelopeRegistry = _OF_THIS_PROCESS) -> SplitRecords:
    """As `split_records`, but of a short request the records are split only when they are needed."""
    if len(body) > _PART_BYTES or body.endswith(HAS_INVALID_IDS):
        return split_records(body, envelopes)
    if NATIVE is not None and (native_count := NATIVE.count_records(body)) is not None:
        return _unsplit(body, native_count, envelopes)
    try:
        request = ExportLogsServiceRequest.FromString(body)
    except DecodeError as error:
        raise MalformedRequest(f"The request is not a valid ExportLogsServiceRequest: {error}.") from error
    count = messages = 0
    for resource in request.resource_logs:
        for scope in resource.scope_logs:
            messages += 1
            count += len(scope.log_records)
        messages += 1
        if messages > _MAX_SCOPES:
            break
    if messages > _MAX_SCOPES or count > _MAX_EMPTY:
        return split_records(body, envelopes)  # which refuses floods of empty messages
    return _unsplit(body, count, envelopes)


def _unsplit(body: bytes, count: int, envelopes: EnvelopeRegistry) -> SplitRecords:
    return SplitRecords(UnsplitRecords(body, count, lambda body: split_records(body, envelopes).records), 0)


def _validated(body: bytes, kind: type[Message], walk: Callable[[], _SplitT]) -> _SplitT:
    """What `walk` returns for a `body` that turns out to be a `kind`; raises `MalformedRequest`."""
    try:
        split = walk()
        if len(body) <= _PART_BYTES:
            kind.FromString(body)
        else:
            _validate_in_parts(body, kind)
    except DecodeError as error:
        raise MalformedRequest(f"The request is not a valid {kind.__name__}: {error}.") from error
    except (IndexError, ValueError) as error:
        raise MalformedRequest(f"The request is not a valid {kind.__name__}: {_CUT_SHORT}.") from error
    return split


def _scopes(
    body: bytes, envelopes: EnvelopeRegistry, shortest: int
) -> Iterator[tuple[Envelope, list[tuple[int, int]]]]:
    """Each scope of a request, and where its spans or records are, which have `shortest` bytes or more.

    Raises:
        MalformedRequest: the request consists of empty messages.
        IndexError, ValueError: a message extends beyond its end.
    """
    room = _MAX_EMPTY
    _, resources, room = _separate(body, 0, len(body), _RESOURCES, shortest + 2 * _FRAMING, room)
    for start, stop in resources:
        resource, scopes, room = _separate(body, start, stop, _SCOPES, shortest + _FRAMING, room)
        for scope_start, scope_stop in scopes:
            scope, items, room = _separate(body, scope_start, scope_stop, _ITEMS, shortest, room)
            yield envelopes.envelope(resource, scope), items


def _walk_records(body: bytes, envelopes: EnvelopeRegistry) -> SplitRecords:
    """Split `body`, which may be any bytes: unless it turns out to be a request, discard the result.

    Raises:
        MalformedRequest: it consists of empty messages.
        DecodeError: a record is invalid.
        IndexError, ValueError: a message extends beyond its end.
    """
    records: list[RawRecord] = []
    for envelope, ranges in _scopes(body, envelopes, _SHORTEST_RECORD):
        records += [(b"", body[start:stop], envelope) for start, stop in ranges]
    if body.endswith(HAS_INVALID_IDS):
        valid = [record for record in records if _has_ids(record[1])]
        return SplitRecords(valid, len(records) - len(valid))
    return SplitRecords(records, 0)


def records_by_trace(records: Iterable[RawRecord]) -> dict[bytes, list[RawRecord]]:
    """Log records by trace id in the order of first sight; it is empty for those without a valid one."""
    traces: dict[bytes, list[RawRecord]] = {}
    for record in records:
        trace_id = parse_log_record(record[1]).trace_id
        is_valid = len(trace_id) == len(_NO_TRACE_ID) and trace_id != _NO_TRACE_ID
        traces.setdefault(trace_id if is_valid else b"", []).append(record)
    return traces


def _has_ids(payload: bytes) -> bool:
    """Whether no id of a record is one that was not hex."""
    record = parse_log_record(payload)
    return len(record.trace_id) != 1 and len(record.span_id) != 1


def _walk(body: bytes, envelopes: EnvelopeRegistry) -> SplitRequest:
    """Split `body`, which may be any bytes: unless it turns out to be a request, discard the result.

    Raises:
        MalformedRequest: it consists of empty messages.
        DecodeError: a span is invalid.
        IndexError, ValueError: a message extends beyond its end.
    """
    traces: dict[bytes, list[RawSpan]] = {}
    accepted = rejected = 0
    read_ids, ids_size = _IDS.unpack_from, _IDS.size
    for envelope, ranges in _scopes(body, envelopes, _SHORTEST_SPAN):
        for start, stop in ranges:
            payload = body[start:stop]
            # Every known sender writes the ids first; anything else is parsed.
            if stop - start >= ids_size:
                trace_id_tag, trace_id, span_id_tag, span_id, parent_tag = read_ids(payload)
            else:
                parent_tag = 0
            if parent_tag != _PARENT_TAG or trace_id_tag != _TRACE_ID_TAG or span_id_tag != _SPAN_ID_TAG:
                span = parse_span(payload)
                trace_id, span_id = span.trace_id, span.span_id
                if len(trace_id) != 16 or len(span_id) != 8 or len(span.parent_span_id) not in (0, 8):
                    rejected += 1
                    continue
            if trace_id == _NO_TRACE_ID or span_id == _NO_SPAN_ID:
                rejected += 1
                continue
            accepted += 1
            known = traces.get(trace_id)
            if known is None:
                traces[trace_id] = [(span_id, payload, envelope)]
            else:
                known.append((span_id, payload, envelope))
    return SplitRequest(traces, accepted, rejected)


def _validate_in_parts(body: bytes, kind: type[Message]) -> None:
    """Let the runtime validate a request that could be walked, in parts; raises `DecodeError`."""
    validate = kind.FromString
    others, resources, _ = _separate(body, 0, len(body), _RESOURCES, 0, _MAX_EMPTY)
    validate(others)
    for start, stop in resources:
        resource, scopes, _ = _separate(body, start, stop, _SCOPES, 0, _MAX_EMPTY)
        validate(_field(_RESOURCES, resource))
        for scope_start, scope_stop in scopes:
            _, items, _ = _separate(body, scope_start, scope_stop, _ITEMS, 0, _MAX_EMPTY)
            part_start = scope_start
            for _, item_stop in items:
                if item_stop - part_start >= _PART_BYTES:
                    validate(_in_scope(body[part_start:item_stop]))
                    part_start = item_stop
            validate(_in_scope(body[part_start:scope_stop]))


def _in_scope(fields: bytes) -> bytes:
    """A request with these fields of a scope, at the same depth."""
    return _field(_RESOURCES, _field(_SCOPES, fields))


def _field(tag: int, value: bytes) -> bytes:
    return b"".join((bytes([tag]), encode_varint(len(value)), value))


def join_spans(spans: Iterable[RawSpan]) -> bytes:
    """One ExportTraceServiceRequest with `spans`, regrouped by resource and scope.

    Of log records it is an ExportLogsServiceRequest, whose fields have the same numbers. Groups are in order
    of their first span, spans in their order within a group. Resources and scopes are merged only where their
    bytes are equal.
    """
    if NATIVE is not None:
        return NATIVE.join_spans(spans)
    resources: dict[bytes, dict[Envelope, list[bytes]]] = {}
    last: Envelope | None = None
    payloads: list[bytes] = []
    for _, payload, envelope in spans:
        if envelope is not last:
            last = envelope
            payloads = resources.setdefault(envelope.resource, {}).setdefault(envelope, [])
        payloads.append(payload)
    parts: list[bytes] = []
    for resource, scopes in resources.items():
        inner: list[bytes] = [resource]
        inner_length = len(resource)
        for envelope, group in scopes.items():
            framed: list[bytes] = [envelope.scope]
            framed_length = len(envelope.scope)
            for payload in group:
                header = _span_header(len(payload))
                framed.append(header)
                framed.append(payload)
                framed_length += len(header) + len(payload)
            header = b"\x12" + encode_varint(framed_length)
            inner.append(header)
            inner.extend(framed)
            inner_length += len(header) + framed_length
        parts.append(b"\x0a" + encode_varint(inner_length))
        parts.extend(inner)
    return b"".join(parts)


@lru_cache(4096)
def _span_header(length: int) -> bytes:
    """The tag and length in front of a span of `length` bytes."""
    return b"\x12" + encode_varint(length)


def _separate(
    body: bytes, position: int, end: int, repeated_tag: int, shortest: int, room: int
) -> tuple[bytes, list[tuple[int, int]], int]:
    """The bytes of a message without its fields of `repeated_tag`, and the ranges of the values of those.

    Values shorter than `shortest` and needless other fields use up `room`, of which the rest is returned.
    Ranges are within the message, in order, whatever its bytes are.

    Raises:
        MalformedRequest: there is no room left.
        IndexError, ValueError: the bytes extend beyond the end.
    """
    repeated: list[tuple[int, int]] = []
    others: list[bytes] = []
    while position < end:
        start = position
        tag = body[position]
        position += 1
        if tag >= 0x80:
            tag, position = read_varint(body, start)
        if tag & 7 == LENGTH_DELIMITED:
            length = body[position]
            position += 1
            if length >= 0x80:
                following = body[position]
                if following < 0x80:
                    length = length & 0x7F | following << 7
                    position += 1
                else:
                    length, position = read_varint(body, position - 1)
            position += length
            if tag == repeated_tag:
                repeated.append((position - length, position))
                if length < shortest:
                    room = _less_room(room)
                continue
        elif tag & 7 == START_GROUP:
            position, room = _group_end(body, position, room)
        else:
            position = skip_field(body, position, tag & 7)
        others.append(body[start:position])
        if len(others) > _USUAL_FIELDS:
            room = _less_room(room)
    if position > end:
        raise ValueError(_CUT_SHORT)
    return b"".join(others), repeated, room


def _group_end(body: bytes, position: int, room: int) -> tuple[int, int]:
    """The end of the group whose fields start at `position`, and the remaining room."""
    depth = 1
    while depth:
        tag, position = read_varint(body, position)
        if tag & 7 == START_GROUP:
            depth += 1
        elif tag & 7 == END_GROUP:
            depth -= 1
        else:
            position = skip_field(body, position, tag & 7)
        room = _less_room(room)
    return position, room


def _less_room(room: int) -> int:
    if not room:
        raise MalformedRequest(f"The request has more than {_MAX_EMPTY} empty or needless messages in it.")
    return room - 1
