"""A span as evaluation sees it: a decoded view over the bytes that were received."""

from typing import TypeAlias

from processors.spans.attributes import Attributes, decode_key_values, encoded_values
from processors.spans.envelope import NO_ENVELOPE, Envelope
from processors.spans.partial_messages import has_unknown_fields, parse_event, parse_span
from processors.spans.protobuf_wire import fields

RawSpan: TypeAlias = tuple[bytes, bytes, Envelope]
"""(span id, bytes of the Span message, envelope): what is held, forwarded and appended to."""

RawRecord: TypeAlias = RawSpan
"""(span id, bytes of the LogRecord message, envelope), as for a span: what is held and forwarded.

The envelope holds the bytes of a ResourceLogs message without its scope_logs, and of a ScopeLogs message
without its records: both have the tags of those around spans. The span id is empty where a record names none.
"""

NO_PARENT = bytes(8)
"""The id that some senders give the parent where there is none."""

STATUS_ERROR = 2

KIND_SERVER, KIND_CLIENT, KIND_PRODUCER, KIND_CONSUMER = 2, 3, 4, 5

_ATTRIBUTES, _LINKS = 0x4A, 0x6A
_ATTRIBUTES_OF_EVENTS = 0x1A
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

    Attribute values and events are decoded when they are read. `parent_span_id` is empty for a span
    without a parent, an id of zeros included. Missing texts are empty, missing numbers 0, as in protobuf.
    `message` is what the protobuf runtime read, for this package alone, and `by_key` the AnyValue messages
    of its attributes, for loops over many spans. Views by the reader in Rust have all of these but `message`.
    """

    __slots__ = ("_attributes", "_events", "by_key", "envelope", "message", "raw")

    def __init__(self, raw: bytes, envelope: Envelope = NO_ENVELOPE) -> None:
        """Read the serialised Span message `raw`.

        Raises:
            google.protobuf.message.DecodeError: `raw` is no such message.
        """
        self.raw = raw
        self.envelope = envelope
        self.message = message = parse_span(raw)
        self.by_key = message.attributes
        if has_unknown_fields(message):
            self.by_key = encoded_values(raw, _ATTRIBUTES, 0, len(raw))
        self._attributes: Attributes | None = None
        self._events: list[SpanEvent] | None = None

    @property
    def attributes(self) -> Attributes:
        """The attributes."""
        if self._attributes is None:  # of most spans nobody asks
            self._attributes = Attributes(self.by_key)
        return self._attributes

    @property
    def trace_id(self) -> bytes:
        """The id of the trace."""
        return self.message.trace_id

    @property
    def span_id(self) -> bytes:
        """The id of the span."""
        return self.message.span_id

    @property
    def parent_span_id(self) -> bytes:
        """The id of the parent, or nothing."""
        parent = self.message.parent_span_id
        return parent if parent != NO_PARENT else b""

    @property
    def name(self) -> str:
        """The name of the operation."""
        return self.message.name

    @property
    def kind(self) -> int:
        """One of the `KIND_` numbers, 1 for an internal span, 0 where it is not told."""
        return self.message.kind

    @property
    def start_unix_nano(self) -> int:
        """When the span began."""
        return self.message.start_time_unix_nano

    @property
    def end_unix_nano(self) -> int:
        """When the span ended."""
        return self.message.end_time_unix_nano

    @property
    def dropped_attributes_count(self) -> int:
        """How many attributes the sender left out."""
        return self.message.dropped_attributes_count

    @property
    def flags(self) -> int:
        """Flags of the trace context, and of how the parent was reached."""
        return self.message.flags

    @property
    def has_events(self) -> bool:
        """True if the span carries any event."""
        return bool(self.message.events if self._events is None else self._events)

    @property
    def event_count(self) -> int:
        """How many events the span carries, left out ones included."""
        return len(self.message.events)

    def leave_out_events(self) -> None:
        """Be as a span without events from now on, whatever it carries."""
        self._events = []

    @property
    def events(self) -> list[SpanEvent]:
        """The events in the order they were recorded."""
        if self._events is None:
            self._events = [decode_event(encoded) for encoded in self.message.events]
        return self._events

    @property
    def has_links(self) -> bool:
        """True if the span links to another one; read from its bytes each time."""
        return any(tag == _LINKS for tag, _, _, _ in fields(self.raw, 0, len(self.raw)))

    @property
    def status_code(self) -> int:
        """0 unset, 1 ok, 2 error."""
        return self.message.status.code

    @property
    def status_message(self) -> str:
        """The description of the status, or the empty text."""
        return self.message.status.message.decode()

    @property
    def parent_is_remote(self) -> bool:
        """True when the sender said that the parent lives in another process.

        False also when the sender did not say (`flags` without bit 8): older SDKs leave it open.
        """
        flags = self.message.flags
        return bool(flags & _HAS_IS_REMOTE and flags & _IS_REMOTE)


def decode_event(encoded: bytes) -> SpanEvent:
    """The event in a serialised Event message."""
    message = parse_event(encoded)
    if has_unknown_fields(message):
        attributes = decode_key_values(encoded, _ATTRIBUTES_OF_EVENTS)
    else:
        attributes = Attributes(message.attributes)
    return SpanEvent(message.name, message.time_unix_nano, attributes)
