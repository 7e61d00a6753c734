"""The few fields of a span that say where it stands in its trace, read without decoding the rest.

Every held span is read so once, so the layout that senders write (fields in the order of their numbers) is
taken apart at fixed offsets; any other is left to the protobuf runtime.
"""

import struct
from typing import TypeAlias

from processors.spans.partial_messages import parse_span

SpanHead: TypeAlias = tuple[bytes, int, int, int]
"""(parent span id, kind, start, end): no parent is empty, times are Unix nanoseconds."""

# trace_id (1), span_id (2), parent_span_id (4) of 8 bytes, then tag and length of name (5)
_IDS = struct.Struct("<H16xH8xH8sBB")
_TRACE_ID_TAG, _SPAN_ID_TAG, _PARENT_TAG, _NAME_TAG = 0x100A, 0x0812, 0x0822, 0x2A
# kind (6), start_time_unix_nano (7), end_time_unix_nano (8)
_TIMES = struct.Struct("<BBBQBQ")
_KIND_TAG, _START_TAG, _END_TAG = 0x30, 0x39, 0x41
_SHORTEST = _IDS.size + _TIMES.size

_NO_PARENT = bytes(8)
_REMOTE_PARENT = 0x300
"""Bits 8 (it is known whether the parent is remote) and 9 (it is) of `Span.flags`."""


def read_span_head(payload: bytes) -> SpanHead:
    """The head of the Span message in `payload`, its fields in any order.

    A parent id of zeros is no parent. Missing numbers are 0. Which of two occurrences of one field
    counts is open; no encoder writes a field of these twice.

    Raises:
        google.protobuf.message.DecodeError: `payload` is no such message.
    """
    size = len(payload)
    if size >= _SHORTEST:
        trace_id_tag, span_id_tag, parent_tag, parent, name_tag, name_length = _IDS.unpack_from(payload)
        if (
            trace_id_tag == _TRACE_ID_TAG
            and span_id_tag == _SPAN_ID_TAG
            and parent_tag == _PARENT_TAG
            and name_tag == _NAME_TAG
            and name_length < 0x80
            and name_length + _SHORTEST <= size
        ):
            kind_tag, kind, start_tag, start, end_tag, end = _TIMES.unpack_from(
                payload, _IDS.size + name_length
            )
            if kind_tag == _KIND_TAG and start_tag == _START_TAG and end_tag == _END_TAG and kind < 0x80:
                return (b"" if parent == _NO_PARENT else parent), kind, start, end
    span = parse_span(payload)
    parent = span.parent_span_id
    parent = b"" if parent == _NO_PARENT else parent
    return parent, span.kind, span.start_time_unix_nano, span.end_time_unix_nano


def parent_is_remote(payload: bytes) -> bool:
    """Whether the Span message in `payload` says that its parent lives in another process.

    False also when the sender did not say (bit 8 of the flags is clear): older SDKs leave it open.
    """
    return parse_span(payload).flags & _REMOTE_PARENT == _REMOTE_PARENT
