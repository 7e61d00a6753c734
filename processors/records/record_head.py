"""Which log records carry the content of agents, and which span they name.

Every record that is received is read so once, and most are log lines of programs, which share the endpoint.
Those are recognised by a look at their bytes: only what may have the name of an event is parsed.
"""

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from processors.carriers import discover_content_records
from processors.shapes import ContentRecords, derived_id
from processors.spans import Envelope, LogRecord, contains_any

_NO_TRACE_ID, _NO_SPAN_ID = bytes(16), bytes(8)

_IN_ATTRIBUTES, _IN_FIELD = b"\n\nevent", b"gen_ai."
"""One of these is in every content record: in the key of the attribute that has its name, with the tag and
length of either key, or in the name if that is in the field event_name alone. The word `event` by itself is
in many a log line; a look for either costs an eighth of a microsecond a record."""


class RecordHead(NamedTuple):
    """What a content record belongs to."""

    trace_id: bytes
    """Of 16 bytes; empty where the record names no trace."""
    span_id: bytes
    """Of 8 bytes; empty where the record names no span."""
    name: str
    """The name of the event."""
    run_id: bytes = b""
    """Of 16 bytes, in place of the trace id for all records of the prompt that it belongs to, where these may
    make a run (`run_of_records`): a record that names no trace, or one that holds only a piece of the run.
    Empty where it belongs to none."""


def may_have_content(request: bytes) -> bool:
    """Whether any of the log records in a serialised request may carry the content of an agent.

    It is read in one go for all of them: most requests have log lines of programs alone.
    """
    return contains_any(request, _IN_ATTRIBUTES, _IN_FIELD)


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
    record = LogRecord(payload, envelope)
    emitter = emitter_of(record)
    if emitter is None:
        return None
    trace_id, span_id = record.message.trace_id, record.message.span_id
    if len(trace_id) != 16 or trace_id == _NO_TRACE_ID:
        return RecordHead(b"", b"", record.name, _run_id(record, emitter))
    run_id = _run_id(record, emitter) if record.name in emitter.of_pieces else b""
    if len(span_id) != 8 or span_id == _NO_SPAN_ID:
        span_id = b""
    return RecordHead(trace_id, span_id, record.name, run_id)


def _run_id(record: LogRecord, emitter: ContentRecords) -> bytes:
    keys = [key for key in (emitter.session_key, emitter.prompt_key) if key]
    ids = [record.attributes.text(key) or "" for key in keys]
    return derived_id(*ids) if emitter.run is not None and all(ids) else b""


def emitter_of(record: LogRecord) -> ContentRecords | None:
    """The emitter whose content record it is; None: it is no content record."""
    if not record.name:
        return None
    by_scope = _emitters_by_name().get(record.name)
    if by_scope is not None:
        return by_scope.get(record.envelope.scope_name) or by_scope.get("")
    return next(
        (other for other in discover_content_records() if other.recognizes and other.recognizes(record)), None
    )


@cache
def _emitters_by_name() -> Mapping[str, Mapping[str, ContentRecords]]:
    """For each name of an event the emitters by their scope; of any scope under the empty text."""
    emitters: dict[str, dict[str, ContentRecords]] = {}
    for emitter in discover_content_records():
        for name in emitter.names:
            emitters.setdefault(name, {})[emitter.scope] = emitter
    return emitters
