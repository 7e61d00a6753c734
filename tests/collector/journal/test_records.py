"""What is written to the journal is read back, and nothing else is."""

import zlib
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.buffer import settled_spans
from collector.journal_file.records import (
    BatchKind,
    DamagedRecord,
    FinishedRecord,
    JournalledBatch,
    Notes,
    VerdictGroup,
    decode_record,
    decode_segment,
    encode_entry,
    request_of,
    seal,
    segment_without,
    unseal,
)
from collector.journal_file.verdicts import StoredVerdicts, decode_graded, encode_graded
from collector.otlp import EnvelopeRegistry
from collector.trace import FinishedTrace, GradedTrace, SpanBatch
from collector.trace_forms import Additions
from processors.model import (
    EvaluationResult,
    FinishReason,
    GradedRun,
    encode_value,
)
from tests.support.deliveries import ENVELOPE
from tests.support.graded_runs import result, weather_run
from tests.support.values import values_of

_texts = st.text(st.characters(codec="utf-8"), max_size=8)
_ENVELOPES = EnvelopeRegistry()
_KNOWN = [_ENVELOPES.envelope(ENVELOPE.resource, ENVELOPE.scope), _ENVELOPES.envelope(b"", b"")]
_ids = st.binary(min_size=8, max_size=8).filter(any)
_place = st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1))
_pairs = st.lists(st.tuples(st.binary(max_size=20), st.binary(max_size=20)), max_size=4)


@st.composite
def _batches(draw: st.DrawFn) -> JournalledBatch:
    kind = draw(st.sampled_from(BatchKind))
    trace_id = draw(st.binary(min_size=16, max_size=16).filter(any))
    if kind.are_records:
        is_run = kind is BatchKind.RUN_RECORDS
        trace_id = b"" if kind is BatchKind.RECORDS else trace_id
        named = b"" if is_run else trace_id
        records = [
            (b"", LogRecord(trace_id=named, time_unix_nano=number).SerializeToString(), envelope)
            for number, envelope in enumerate(
                draw(st.lists(st.sampled_from(_KNOWN), min_size=1, max_size=5)), 1
            )
        ]
        return JournalledBatch(
            batch=SpanBatch(trace_id, records, is_run=is_run),
            arrived_unix_nano=draw(st.integers(0, 2**64 - 1)),
            kind=kind,
        )
    spans = [
        (span_id, Span(trace_id=trace_id, span_id=span_id, name=draw(_texts)).SerializeToString(), envelope)
        for span_id, envelope in draw(
            st.lists(st.tuples(_ids, st.sampled_from(_KNOWN)), min_size=1, max_size=5)
        )
    ]
    return JournalledBatch(
        batch=SpanBatch(trace_id, spans, draw(_texts)),
        arrived_unix_nano=draw(st.integers(0, 2**64 - 1)),
        kind=kind,
    )


def _segment(batches: list[JournalledBatch]) -> bytes:
    """A segment in which each of the batches came in a request of its own."""
    return b"".join(
        part
        for index, journalled in enumerate(batches)
        for part in encode_entry(
            request_of([journalled.batch]),
            arrived_unix_nano=journalled.arrived_unix_nano,
            kind=journalled.kind,
            first=index,
            tenant=journalled.batch.tenant,
        )
    )


def test_the_checksum_is_the_same_whatever_library_took_it() -> None:
    content = bytes(range(256)) * 100
    checksum = zlib.crc32(b"key" + content).to_bytes(4, "little")
    assert checksum + content == seal(b"key", [content[:300], b"", content[300:]])


@given(st.lists(_batches(), max_size=3))
def test_a_segment_is_read_as_it_was_written_each_batch_in_its_order(batches: list[JournalledBatch]) -> None:
    assert list(enumerate(batches)) == list(decode_segment(_segment(batches), _ENVELOPES))


@given(st.lists(_batches(), max_size=4), st.sets(st.integers(0, 3)))
def test_of_a_sparse_segment_what_is_needed_stays_where_it_was(
    batches: list[JournalledBatch], gone: set[int]
) -> None:
    smaller = b"".join(segment_without(_segment(batches), gone))

    assert [(index, each) for index, each in enumerate(batches) if index not in gone] == list(
        decode_segment(smaller, _ENVELOPES)
    )


@given(_batches(), st.data())
def test_of_a_changed_record_nothing_is_read(journalled: JournalledBatch, data: st.DataObject) -> None:
    key, sealed = b"\0\7", bytes(seal(b"\0\7", [_segment([journalled]), b"more"]))
    record = bytearray(key + sealed)
    record[data.draw(st.integers(0, len(record) - 1))] ^= 1 << data.draw(st.integers(0, 7))

    assert unseal(key, sealed)
    with pytest.raises(DamagedRecord):
        unseal(bytes(record[:2]), bytes(record[2:]))


@given(st.binary(max_size=80))
def test_bytes_that_are_no_record_are_told_and_never_raise_anything_else(content: bytes) -> None:
    for decode in (
        lambda: list(decode_segment(content, _ENVELOPES)),
        lambda: decode_record(content, list[FinishedRecord]),
        lambda: decode_record(content, dict[bytes, int]),
        lambda: decode_record(content, Notes),
        lambda: decode_record(content, VerdictGroup),
        lambda: decode_graded(content, _ENVELOPES.envelope),
        lambda: unseal(b"", content),
    ):
        with suppress(DamagedRecord):
            decode()


@given(_pairs, st.integers(0, 2**64 - 1))
def test_groups_of_verdicts_are_read_as_they_were_written(
    pairs: list[tuple[bytes, bytes]], bound: int
) -> None:
    assert (bound, pairs) == decode_record(encode_value(VerdictGroup(bound, pairs)), VerdictGroup)


@given(st.lists(st.tuples(st.binary(max_size=20), st.lists(_ids), st.integers(0, 2**64 - 1))))
def test_finished_traces_are_read_as_they_were_written(traces: list[tuple[bytes, list[bytes], int]]) -> None:
    written = [FinishedRecord(key, b"".join(span_ids), end) for key, span_ids, end in traces]

    read = decode_record(encode_value(written), list[FinishedRecord])

    assert traces == [(each.key, each.span_ids, each.latest_end) for each in read]


_notes = st.builds(
    Notes,
    removed=st.lists(_place, max_size=3),
    left=st.lists(_place, max_size=3),
    delivered=st.lists(st.tuples(st.binary(max_size=20), st.text(st.characters(codec="utf-8")))),
)


@given(_notes)
def test_notes_are_read_as_they_were_written(notes: Notes) -> None:
    assert notes == decode_record(encode_value(notes), Notes)


@given(
    _batches().filter(lambda each: not each.kind.are_records),
    st.binary(min_size=1, max_size=30),
    st.booleans(),
)
def test_what_was_added_to_a_trace_is_added_again(
    journalled: JournalledBatch, added: bytes, backfill: bool
) -> None:
    spans = settled_spans([journalled.batch])
    last_id, payload, envelope = spans[-1]
    graded = GradedTrace(
        trace_id=bytes(16),
        spans=[*spans[:-1], (last_id, payload + added, envelope)],
        log_records=[(last_id, b"log", envelope)],
        evaluation_spans=[(last_id, b"span", envelope)],
        backfill=backfill,
    )
    trace = FinishedTrace(trace_id=bytes(16), spans=spans, reason=FinishReason.ROOT)

    stored = decode_graded(encode_graded(trace, graded), _ENVELOPES.envelope)
    assert isinstance(stored, Additions)
    again = stored.graded(trace, holds_spans=True)

    assert list(graded.spans) == list(again.spans)
    for one, other in (
        (graded.log_records, again.log_records),
        (graded.evaluation_spans, again.evaluation_spans),
    ):
        assert [span[:2] for span in one] == [span[:2] for span in other]
        assert [(span[2].resource, span[2].scope) for span in one] == [
            (span[2].resource, span[2].scope) for span in other
        ]
    assert backfill == again.backfill


@given(
    st.lists(st.lists(values_of(EvaluationResult), max_size=2), min_size=1, max_size=2),
    st.sampled_from(FinishReason),
    st.booleans(),
    st.booleans(),
)
def test_verdicts_are_read_as_they_were_written(
    results: list[list[EvaluationResult]], reason: FinishReason, was_quiet: bool, quarantined: bool
) -> None:
    trace = FinishedTrace(trace_id=bytes(16), spans=(), reason=reason, was_quiet=was_quiet)
    runs = [
        GradedRun(run=weather_run().run, results=found, graded_unix_nano=7, instance="host:1")
        for found in results
    ]

    graded = GradedTrace(trace_id=bytes(16), spans=(), runs=runs, quarantined=quarantined)
    stored = decode_graded(encode_graded(trace, graded), _ENVELOPES.envelope)

    assert isinstance(stored, StoredVerdicts)
    assert (reason, was_quiet, quarantined) == (stored.reason, stored.was_quiet, stored.quarantined)
    assert results == [list(found) for found in stored.results]
    assert (7, "host:1") == (stored.unix_nano, stored.instance)


def test_results_of_which_one_has_no_form_are_not_written() -> None:
    graded = GradedTrace(
        trace_id=bytes(16),
        spans=(),
        runs=[GradedRun(run=weather_run().run, results=[result(details={"a": object()})])],
    )
    trace = FinishedTrace(trace_id=bytes(16), spans=(), reason=FinishReason.IDLE)

    stored = decode_graded(encode_graded(trace, graded), _ENVELOPES.envelope)

    assert isinstance(stored, StoredVerdicts)
    assert (FinishReason.IDLE, []) == (stored.reason, list(stored.results))
