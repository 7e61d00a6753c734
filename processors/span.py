"""A span as evaluation sees it: a decoded view over the bytes that were received."""

import struct
from typing import TypeAlias

from processors.attributes import NO_ATTRIBUTES, Attributes, decode_key_values, index_key_value
from processors.envelope import NO_ENVELOPE, Envelope
from processors.protobuf_wire import fields, read_varint, skip_field

RawSpan: TypeAlias = tuple[bytes, bytes, Envelope]
"""(span id, bytes of the Span message, envelope): what is held, forwarded and appended to."""

_FIXED64 = struct.Struct("<Q")
_FIXED32 = struct.Struct("<I")

# trace_id (1), span_id (2), then tag and length of parent_span_id (4) or name (5)
_IDS = struct.Struct("<H16sH8sBB")
# kind (6), start_time_unix_nano (7), end_time_unix_nano (8)
_TIMES = struct.Struct("<BBBQBQ")
_SHORTEST = _IDS.size + 10 + _TIMES.size
_NO_PARENT = bytes(8)

_MAX_KEYS = 8192
_KEYS: dict[bytes, str] = {}
"""Keys seen before, so that each is decoded and hashed once; bounded, since keys come from outside."""

STATUS_ERROR = 2

KIND_SERVER, KIND_CLIENT, KIND_PRODUCER, KIND_CONSUMER = 2, 3, 4, 5

_HAS_IS_REMOTE = 0x100
_IS_REMOTE = 0x200


class SpanEvent:
    """One event of a span."""

    __slots__ = ("attributes", "name", "time_unix_nano")

    def __init__(self, name: str, time_unix_nano: int, attributes: Attributes) -> None:
        self.name = name
        self.time_unix_nano = time_unix_nano
        self.attributes = attributes


class Span:
    """The fields of one OTLP span.

    The bytes are walked once, when the view is made; attribute values and events are decoded when they
    are read. `parent_span_id` is empty for a span without a parent, an id of zeros included. Missing
    texts are empty, missing numbers 0, as in protobuf.
    """

    __slots__ = (
        "_event_slices",
        "_events",
        "_status",
        "attributes",
        "dropped_attributes_count",
        "end_unix_nano",
        "envelope",
        "flags",
        "kind",
        "name",
        "parent_span_id",
        "raw",
        "span_id",
        "start_unix_nano",
        "trace_id",
    )

    def __init__(self, raw: bytes, envelope: Envelope = NO_ENVELOPE) -> None:
        self.raw = raw
        self.envelope = envelope
        self.flags = self.dropped_attributes_count = 0
        self._status: tuple[int, int] | None = None
        self._events: list[SpanEvent] | None = None
        self._event_slices: list[tuple[int, int]] = []
        slices: dict[str, tuple[int, int]] = {}
        position, end = self._read_head(), len(raw)
        while position < end:
            if raw[position] == 0x4A:  # nearly every field here is an attribute with a short key
                length = raw[position + 1]
                position += 2
                if length >= 0x80:
                    length, position = read_varint(raw, position - 1)
                stop = position + length
                if length > 2 and raw[position] == 0x0A and raw[position + 1] < 0x80:
                    key_end = position + 2 + raw[position + 1]
                    if key_end < stop and raw[key_end] == 0x12:
                        encoded = raw[position + 2 : key_end]
                        slices[_KEYS.get(encoded) or _key(encoded)] = (key_end, stop)
                        position = stop
                        continue
                index_key_value(raw, position, stop, slices)
                position = stop
            else:
                position = self._read_field(position)
        self.attributes = Attributes(raw, slices) if slices else NO_ATTRIBUTES

    def _read_head(self) -> int:
        """Read what stands before the attributes in the order that senders write; where it ends."""
        raw = self.raw
        if len(raw) >= _SHORTEST:
            trace_id_tag, trace_id, span_id_tag, span_id, tag, length = _IDS.unpack_from(raw)
            if trace_id_tag == 0x100A and span_id_tag == 0x0812:
                parent = b""
                name_start = 30
                if tag == 0x22 and length == 8:
                    parent = raw[30:38]
                    tag, length = raw[38], raw[39]
                    name_start = 40
                name_end = name_start + length
                if tag == 0x2A and length < 0x80 and name_end + _TIMES.size <= len(raw):
                    kind_tag, kind, start_tag, start, end_tag, end = _TIMES.unpack_from(raw, name_end)
                    if kind_tag == 0x30 and kind < 0x80 and start_tag == 0x39 and end_tag == 0x41:
                        self.trace_id = trace_id
                        self.span_id = span_id
                        self.parent_span_id = parent if parent != _NO_PARENT else b""
                        self.name = raw[name_start:name_end].decode()
                        self.kind = kind
                        self.start_unix_nano = start
                        self.end_unix_nano = end
                        attributes_start: int = name_end + _TIMES.size
                        return attributes_start
        self.trace_id = self.span_id = self.parent_span_id = b""
        self.name = ""
        self.kind = self.start_unix_nano = self.end_unix_nano = 0
        return 0

    def _read_field(self, position: int) -> int:
        """Read one field other than an attribute; where it ends."""
        raw = self.raw
        tag, position = read_varint(raw, position)
        wire_type = tag & 7
        if wire_type == 2:
            length, position = read_varint(raw, position)
            stop = position + length
            if tag == 0x0A:
                self.trace_id = raw[position:stop]
            elif tag == 0x12:
                self.span_id = raw[position:stop]
            elif tag == 0x22:
                parent = raw[position:stop]
                self.parent_span_id = parent if parent != _NO_PARENT else b""
            elif tag == 0x2A:
                self.name = raw[position:stop].decode()
            elif tag == 0x5A:
                self._event_slices.append((position, stop))
            elif tag == 0x7A:
                self._status = (position, stop)
            return stop
        if wire_type == 1:
            if tag == 0x39:
                self.start_unix_nano = _FIXED64.unpack_from(raw, position)[0]
            elif tag == 0x41:
                self.end_unix_nano = _FIXED64.unpack_from(raw, position)[0]
            return position + 8
        if wire_type == 0:
            value, position = read_varint(raw, position)
            if tag == 0x30:
                self.kind = value
            elif tag == 0x50:
                self.dropped_attributes_count = value
            return position
        if tag == 0x85:
            self.flags = _FIXED32.unpack_from(raw, position)[0]
        return skip_field(raw, position, wire_type)

    @property
    def has_events(self) -> bool:
        """True if the span carries any event."""
        return bool(self._event_slices)

    @property
    def events(self) -> list[SpanEvent]:
        """The events in the order they were recorded."""
        if self._events is None:
            self._events = [_event(self.raw, start, stop) for start, stop in self._event_slices]
        return self._events

    @property
    def status_code(self) -> int:
        """0 unset, 1 ok, 2 error."""
        if self._status is not None:
            for tag, _, start, _ in fields(self.raw, *self._status):
                if tag == 0x18:
                    return read_varint(self.raw, start)[0]
        return 0

    @property
    def status_message(self) -> str:
        """The description of the status, or the empty text."""
        if self._status is not None:
            for tag, _, start, stop in fields(self.raw, *self._status):
                if tag == 0x12:
                    return self.raw[start:stop].decode()
        return ""

    @property
    def parent_is_remote(self) -> bool:
        """True when the sender said that the parent lives in another process.

        False also when the sender did not say (`flags` without bit 8): older SDKs leave it open.
        """
        return bool(self.flags & _HAS_IS_REMOTE and self.flags & _IS_REMOTE)


def _key(encoded: bytes) -> str:
    key = encoded.decode()
    if len(_KEYS) < _MAX_KEYS:
        _KEYS[encoded] = key
    return key


def _event(raw: bytes, start: int, end: int) -> SpanEvent:
    name = ""
    time_unix_nano = 0
    for tag, _, value_start, stop in fields(raw, start, end):
        if tag == 0x12:
            name = raw[value_start:stop].decode()
        elif tag == 0x09:
            time_unix_nano = _FIXED64.unpack_from(raw, value_start)[0]
    return SpanEvent(name, time_unix_nano, decode_key_values(raw, 0x1A, start, end))
