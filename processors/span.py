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
    are read. `parent_span_id` is empty for a span without a parent. Missing texts are empty, missing
    numbers 0, as in protobuf.
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
        self.trace_id = self.span_id = self.parent_span_id = b""
        self.name = ""
        self.kind = self.start_unix_nano = self.end_unix_nano = 0
        self.flags = self.dropped_attributes_count = 0
        self._status: tuple[int, int] | None = None
        self._events: list[SpanEvent] | None = None
        slices: dict[str, tuple[int, int]] = {}
        events: list[tuple[int, int]] = []

        position, end = 0, len(raw)
        while position < end:
            tag = raw[position]
            position += 1
            if tag >= 0x80:
                tag, position = read_varint(raw, position - 1)
            wire_type = tag & 7
            if wire_type == 2:
                length = raw[position]
                position += 1
                if length >= 0x80:
                    length, position = read_varint(raw, position - 1)
                stop = position + length
                if tag == 0x4A:
                    index_key_value(raw, position, stop, slices)
                elif tag == 0x0A:
                    self.trace_id = raw[position:stop]
                elif tag == 0x12:
                    self.span_id = raw[position:stop]
                elif tag == 0x22:
                    self.parent_span_id = raw[position:stop]
                elif tag == 0x2A:
                    self.name = raw[position:stop].decode()
                elif tag == 0x5A:
                    events.append((position, stop))
                elif tag == 0x7A:
                    self._status = (position, stop)
                position = stop
            elif wire_type == 1:
                if tag == 0x39:
                    self.start_unix_nano = _FIXED64.unpack_from(raw, position)[0]
                elif tag == 0x41:
                    self.end_unix_nano = _FIXED64.unpack_from(raw, position)[0]
                position += 8
            elif wire_type == 0:
                value, position = read_varint(raw, position)
                if tag == 0x30:
                    self.kind = value
                elif tag == 0x50:
                    self.dropped_attributes_count = value
            elif tag == 0x85:
                self.flags = _FIXED32.unpack_from(raw, position)[0]
                position += 4
            else:
                position = skip_field(raw, position, wire_type)
        self.attributes = Attributes(raw, slices) if slices else NO_ATTRIBUTES
        self._event_slices = events

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


def _event(raw: bytes, start: int, end: int) -> SpanEvent:
    name = ""
    time_unix_nano = 0
    for tag, _, value_start, stop in fields(raw, start, end):
        if tag == 0x12:
            name = raw[value_start:stop].decode()
        elif tag == 0x09:
            time_unix_nano = _FIXED64.unpack_from(raw, value_start)[0]
    return SpanEvent(name, time_unix_nano, decode_key_values(raw, 0x1A, start, end))
