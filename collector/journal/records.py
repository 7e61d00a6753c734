"""What stands in the journal: spans as they came, verdicts, and a checksum before each record.

A record is its CRC-32 (four bytes, little-endian) and its content. LMDB has no checksums of its own.
"""

import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from collector.trace import SpanBatch
from processors.spans import Envelope, RawSpan

FORMAT_VERSION = 1
"""Of the whole journal; a journal of a newer version is not opened."""

_CHECKSUM = struct.Struct("<I")
_BATCH = struct.Struct("<QB16sHI")
_SPAN = struct.Struct("<8sII")
_LENGTH = struct.Struct("<I")


class BatchKind(IntEnum):
    """What spans wait for."""

    HELD = 0
    """The verdict on their trace."""
    STREAMED = 1
    """Nothing, and a copy of them for the verdict."""
    LATE = 2
    """Nothing: their trace was finished before they came."""


class DamagedRecord(ValueError):
    """A record is not what was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalledBatch:
    """Spans of one trace out of one request, as and when they were admitted."""

    batch: SpanBatch
    arrived_unix_nano: int
    kind: BatchKind

    def held_under(self, number: int) -> bytes:
        """What the batch of that number is held under: the key of its trace, or its own for late spans."""
        if self.kind is BatchKind.LATE:
            return number_key(number)
        return trace_key(self.batch.trace_id, self.batch.tenant)


def seal(content: bytes) -> bytes:
    """A record with that content."""
    return _CHECKSUM.pack(zlib.crc32(content)) + content


def unseal(record: bytes) -> bytes:
    """The content of a record.

    Raises:
        DamagedRecord: the checksum is another.
    """
    content = record[_CHECKSUM.size :]
    if len(record) < _CHECKSUM.size or _CHECKSUM.unpack_from(record)[0] != zlib.crc32(content):
        raise DamagedRecord("the checksum of a record is wrong")
    return content


def number_key(number: int) -> bytes:
    """The key of a numbered record; keys sort as their numbers do."""
    return number.to_bytes(8, "big")


def trace_key(trace_id: bytes, tenant: str) -> bytes:
    """What a trace is known by: its id, and its tenant if it has one."""
    return trace_id + tenant.encode() if tenant else trace_id


def encode_batch(journalled: JournalledBatch, envelope_number: Callable[[Envelope], int]) -> bytes:
    """The content of the record of a batch; envelopes stand in it by number."""
    batch = journalled.batch
    tenant = batch.tenant.encode()
    parts = [
        _BATCH.pack(
            journalled.arrived_unix_nano, journalled.kind, batch.trace_id, len(tenant), len(batch.spans)
        ),
        tenant,
    ]
    for span_id, payload, envelope in batch.spans:
        parts.append(_SPAN.pack(span_id, envelope_number(envelope), len(payload)))
        parts.append(payload)
    return b"".join(parts)


def decode_batch(content: bytes, envelope: Callable[[int], Envelope]) -> JournalledBatch:
    """The batch that `encode_batch` wrote.

    Raises:
        DamagedRecord: the content is not of that form.
    """
    try:
        arrived, kind, trace_id, tenant_length, count = _BATCH.unpack_from(content)
        position = _BATCH.size + tenant_length
        tenant = content[_BATCH.size : position].decode()
        spans: list[RawSpan] = []
        for _ in range(count):
            span_id, number, length = _SPAN.unpack_from(content, position)
            position += _SPAN.size
            spans.append((span_id, content[position : position + length], envelope(number)))
            position += length
        batch_kind = BatchKind(kind)
    except (struct.error, KeyError, ValueError) as error:
        raise DamagedRecord(f"a record of spans cannot be read: {error}") from error
    if position != len(content):
        raise DamagedRecord("a record of spans ends elsewhere than it should")
    return JournalledBatch(
        batch=SpanBatch(trace_id, spans, tenant),
        arrived_unix_nano=arrived,
        kind=batch_kind,
    )


def envelopes_of(spans: Sequence[RawSpan]) -> set[Envelope]:
    """The different resources and scopes of `spans`."""
    return {envelope for _, _, envelope in spans}


def encode_envelope(envelope: Envelope) -> bytes:
    """The content of the record of a resource and a scope."""
    return _LENGTH.pack(len(envelope.resource)) + envelope.resource + envelope.scope


def decode_envelope(content: bytes) -> tuple[bytes, bytes]:
    """The bytes of a resource and of a scope.

    Raises:
        DamagedRecord: the content is not of that form.
    """
    if len(content) < _LENGTH.size:
        raise DamagedRecord("a record of a resource is too short")
    end = _LENGTH.size + _LENGTH.unpack_from(content)[0]
    return content[_LENGTH.size : end], content[end:]


def encode_finished(key: bytes, span_ids: bytes) -> bytes:
    """The content of the record of a finished trace: its key, and the ids of its spans, eight bytes each."""
    return _LENGTH.pack(len(key)) + key + span_ids


def decode_finished(content: bytes) -> tuple[bytes, bytes]:
    """The key and the span ids that `encode_finished` wrote.

    Raises:
        DamagedRecord: the content is not of that form.
    """
    if len(content) < _LENGTH.size:
        raise DamagedRecord("a record of a finished trace is too short")
    end = _LENGTH.size + _LENGTH.unpack_from(content)[0]
    return content[_LENGTH.size : end], content[end:]
