"""The records of the journal: requests as they arrived, verdicts and notes on traces, each with a checksum.

A record is the CRC-32 of its place (table and key) and its content (four bytes, little-endian), and its
content: LMDB has no checksums of its own. A record holds all that was gathered for one transaction, since
every call of LMDB releases the interpreter.
"""

import struct
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple, TypeAlias, TypeVar

from msgspec import Struct

from collector.errors import MalformedRequest
from collector.otlp import EnvelopeRegistry, join_spans, records_by_trace, split_records, split_request
from collector.trace import SpanBatch
from processors.model import decode_value
from processors.spans import RawSpan

try:
    from isal.isal_zlib import crc32  # the same number in an eighth of the time
except ImportError:  # platforms without it
    from zlib import crc32

FORMAT_VERSION = 6
"""Of the whole journal. A journal of any other is not opened."""

_CHECKSUM = struct.Struct("<I")
_ENTRY = struct.Struct("<QBIHI")
_RUN_ID_BYTES, _SPAN_ID_BYTES = 16, 8

_ValueT = TypeVar("_ValueT")


class BatchKind(IntEnum):
    """What spans wait for."""

    HELD = 0
    """The verdict on their trace."""
    STREAMED = 1
    """Nothing, and a copy of them for the verdict."""
    LATE = 2
    """Nothing: their trace was finished before they arrived."""
    RECORDS = 3
    """Nothing: they are log records, all of one request in one batch without a trace id."""

    TRACE_RECORDS = 4
    """Nothing, and copies of them for the verdict on the trace that they name: agents' log records."""

    RUN_RECORDS = 5
    """Nothing, and copies of them for the verdict on the run that they make: those that name no trace."""

    @property
    def are_records(self) -> bool:
        """Whether they are log records."""
        return self >= BatchKind.RECORDS

    @property
    def leaves_at_once(self) -> bool:
        """Whether nothing more is to become of it once it was delivered."""
        return self is BatchKind.LATE or self is BatchKind.RECORDS


class DamagedRecord(ValueError):
    """A record is not what was written."""


Place: TypeAlias = tuple[int, int]
"""Of a batch: the number of its segment, and its index in that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalledBatch:
    """Spans of one trace, or the log records, out of one request, as and when they were admitted."""

    batch: SpanBatch
    arrived_unix_nano: int
    kind: BatchKind


class Notes(Struct, kw_only=True, array_like=True):
    """Which batches are no longer needed, which have left, and which exporters have received a trace."""

    removed: list[Place] = []
    left: list[Place] = []
    delivered: list[tuple[bytes, str]] = []


class VerdictGroup(NamedTuple):
    """The keys of traces, each with how it was graded, and a number above those of all their segments."""

    bound: int
    traces: list[tuple[bytes, bytes]]


class FinishedRecord(NamedTuple):
    """A finished trace, its span ids and, if it can go on, when its last span ended."""

    key: bytes
    joined_ids: bytes
    latest_end: int = 0

    @property
    def span_ids(self) -> Sequence[bytes]:
        """The ids of its spans."""
        ids, size = self.joined_ids, _SPAN_ID_BYTES
        return [ids[start : start + size] for start in range(0, len(ids), size)]


def seal(place: bytes, parts: Sequence[bytes]) -> bytearray:
    """The record at `place` whose content is all `parts`, joined."""
    record = bytearray().join((bytes(_CHECKSUM.size), *parts))
    # One call for all: each may have to wait until another thread releases the interpreter.
    _CHECKSUM.pack_into(record, 0, crc32(memoryview(record)[_CHECKSUM.size :], crc32(place)))
    return record


def unseal(place: bytes, record: bytes) -> bytes:
    """The content of the record at `place`.

    Raises:
        DamagedRecord: the checksum is another.
    """
    content = record[_CHECKSUM.size :]
    if len(record) < _CHECKSUM.size or _CHECKSUM.unpack_from(record)[0] != crc32(content, crc32(place)):
        raise DamagedRecord("the checksum of a record is wrong")
    return content


def number_key(number: int) -> bytes:
    """The key of a numbered record; keys sort as their numbers do."""
    return number.to_bytes(8, "big")


def trace_key(trace_id: bytes, tenant: str) -> bytes:
    """The key of a trace: its id, and its tenant if it has one."""
    return trace_id + tenant.encode() if tenant else trace_id


def request_of(batches: Iterable[SpanBatch]) -> bytes:
    """A request with these spans; split again it gives the same batches in the same order.

    Records of a run, which one is to request by itself, follow its id: they do not have it.
    """
    parts: list[bytes] = []
    for batch in batches:
        if batch.is_run:
            parts.append(batch.trace_id)
        parts += [join_spans(group) for _, group in groupby(batch.spans, key=itemgetter(2))]
    return b"".join(parts)


def encode_entry(
    body: bytes, *, arrived_unix_nano: int, kind: BatchKind, first: int, tenant: str
) -> tuple[bytes, bytes, bytes]:
    """A request as part of a segment; its traces have the indexes from `first` on, in their order."""
    of = tenant.encode()
    return _ENTRY.pack(arrived_unix_nano, kind, first, len(of), len(body)), of, body


def decode_segment(content: bytes, envelopes: EnvelopeRegistry) -> Iterator[tuple[int, JournalledBatch]]:
    """The batches of a segment with their indexes, in order of admission.

    Raises:
        DamagedRecord: the content is not of that form.
    """
    position = 0
    while position < len(content):
        try:
            arrived, kind, first, tenant_length, length = _ENTRY.unpack_from(content, position)
            position += _ENTRY.size
            tenant = content[position : position + tenant_length].decode()
            position += tenant_length
            body = content[position : position + length]
            position += length
            batch_kind = BatchKind(kind)
            traces: Mapping[bytes, Sequence[RawSpan]]
            if batch_kind is BatchKind.RECORDS:
                traces = {b"": split_records(body, envelopes).records}
            elif batch_kind is BatchKind.TRACE_RECORDS:
                traces = records_by_trace(split_records(body, envelopes).records)
            elif batch_kind is BatchKind.RUN_RECORDS:
                traces = {body[:_RUN_ID_BYTES]: split_records(body[_RUN_ID_BYTES:], envelopes).records}
            else:
                traces = split_request(body, envelopes).traces
        except (struct.error, ValueError, MalformedRequest) as error:
            raise DamagedRecord(f"a record of spans cannot be read: {error}") from error
        if position > len(content):
            raise DamagedRecord("a record of spans ends before it should")
        for index, (trace_id, spans) in enumerate(traces.items(), first):
            yield (
                index,
                JournalledBatch(
                    batch=SpanBatch(trace_id, spans, tenant, batch_kind is BatchKind.RUN_RECORDS),
                    arrived_unix_nano=arrived,
                    kind=batch_kind,
                ),
            )


def segment_without(content: bytes, removed: Collection[int]) -> list[bytes]:
    """The parts of a segment without the batches that are `gone`; the others keep their indexes.

    Raises:
        DamagedRecord: the content is not of that form.
    """
    parts: list[bytes] = []
    for index, journalled in decode_segment(content, EnvelopeRegistry()):
        if index not in removed:
            parts += encode_entry(
                request_of([journalled.batch]),
                arrived_unix_nano=journalled.arrived_unix_nano,
                kind=journalled.kind,
                first=index,
                tenant=journalled.batch.tenant,
            )
    return parts


def decode_record(content: bytes, kind: type[_ValueT]) -> _ValueT:
    """The value that `encode_value` wrote as the content of a record.

    Raises:
        DamagedRecord: the content is not of that form.
    """
    try:
        return decode_value(content, kind)
    except ValueError as error:
        raise DamagedRecord(f"a record cannot be read: {error}") from error
