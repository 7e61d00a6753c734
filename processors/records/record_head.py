"""Which log records carry the content of agents, and which span they name.

Every record that is received is read so once, and most are log lines of programs, which share the endpoint.
Those are told apart by a look at their bytes: only what may have the name of an event is parsed.
"""

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from processors.carriers import discover_content_records
from processors.spans import (
    Attributes,
    Envelope,
    LogRecordMessage,
    decode_key_values,
    parse_log_record,
    read_varint,
)

_NO_TRACE_ID, _NO_SPAN_ID = bytes(16), bytes(8)

_NAME_KEYS = ("event.name", "event_name")
_IN_ATTRIBUTES, _IN_FIELD = b"event", b"gen_ai."
"""One of these is in every content record: in the key of the attribute that has its name, or in the name if
that is in the field event_name alone. A look for one costs a quarter of a microsecond."""

_KEY_VALUE_LIST_TAG = 0x32
"""Tag of a key-value list in an AnyValue; each item of the list has the tag below."""
_KEY_VALUE_TAG = 0x0A


class RecordHead(NamedTuple):
    """What a content record belongs to."""

    trace_id: bytes
    """Of 16 bytes; empty where the record names no trace."""
    span_id: bytes
    """Of 8 bytes; empty where the record names no span."""
    name: str
    """The name of the event."""


def read_record_head(payload: bytes, envelope: Envelope) -> RecordHead | None:
    """The head of the LogRecord message in `payload`; None unless it carries the content of an agent.

    The name of a record is its attribute `event.name`, else its attribute `event_name`, else its field
    event_name, where it is a name of the GenAI conventions. Severity, body text and trace id decide nothing.

    Args:
        payload: The serialised LogRecord message.
        envelope: The resource and scope that it was received in.

    Raises:
        google.protobuf.message.DecodeError: `payload` is no such message.
    """
    if _IN_ATTRIBUTES not in payload and _IN_FIELD not in payload:
        return None
    record = parse_log_record(payload)
    name = record_name(record)
    if not name:
        return None
    scope = _scopes_by_name().get(name)
    if scope is None:
        if name != envelope.scope_name or not _is_moved_content(record.body):
            return None
    elif scope and scope != envelope.scope_name:
        return None
    trace_id, span_id = record.trace_id, record.span_id
    return RecordHead(
        trace_id if len(trace_id) == 16 and trace_id != _NO_TRACE_ID else b"",
        span_id if len(span_id) == 8 and span_id != _NO_SPAN_ID else b"",
        name,
    )


def record_name(record: LogRecordMessage) -> str:
    """The name of the event that a record reports, or the empty text."""
    attributes = Attributes(record.attributes)
    for key in _NAME_KEYS:
        if name := attributes.text(key):
            return name
    return record.event_name


@cache
def _scopes_by_name() -> Mapping[str, str]:
    """For every known name the scope that it is limited to, or the empty text."""
    return {name: records.scope for records in discover_content_records() for name in records.names}


def _is_moved_content(body: bytes) -> bool:
    """Whether a body has the form in which AWS ADOT moves content from a span of any framework into a record.

    Such a record is named after the scope of the span.
    """
    if not body or body[0] != _KEY_VALUE_LIST_TAG:
        return False
    _, start = read_varint(body, 1)
    return not {"input", "output"}.isdisjoint(decode_key_values(body[start:], _KEY_VALUE_TAG))
