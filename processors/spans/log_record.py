"""A log record as evaluation sees it: a decoded view over the bytes that were received."""

from processors.spans.attributes import Attributes, AttributeValue, decode_any_value, decode_key_values
from processors.spans.envelope import NO_ENVELOPE, Envelope
from processors.spans.partial_messages import LogRecordMessage, has_unknown_fields, parse_log_record

_NAME_KEYS = ("event.name", "event_name")
_ATTRIBUTES = 0x32


class LogRecord:
    """The fields of one OTLP log record. Ids are as received, valid or not; attributes decode when read."""

    __slots__ = ("attributes", "envelope", "message", "name", "raw")

    def __init__(self, raw: bytes, envelope: Envelope = NO_ENVELOPE) -> None:
        """Read the serialised LogRecord message `raw`.

        Raises:
            google.protobuf.message.DecodeError: `raw` is no such message.
        """
        self.raw = raw
        self.envelope = envelope
        self.message: LogRecordMessage = parse_log_record(raw)
        self.attributes = (
            decode_key_values(raw, _ATTRIBUTES)
            if has_unknown_fields(self.message)
            else Attributes(self.message.attributes)
        )
        self.name = next(filter(None, map(self.attributes.text, _NAME_KEYS)), None) or self.message.event_name
        """The event that it reports: its attribute `event.name`, else `event_name`, else the field of that
        name; or the empty text."""

    @property
    def body(self) -> AttributeValue:
        """The body, decoded anew each time; None where there is none."""
        return decode_any_value(self.message.body)

    @property
    def unix_nano(self) -> int:
        """When it happened, else when it was recorded; 0 where neither is known."""
        return self.message.time_unix_nano or self.message.observed_time_unix_nano
