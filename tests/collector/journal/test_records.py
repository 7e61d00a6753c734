"""What is written to the journal is read back, and nothing else is."""

import zlib
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.buffer.trace_buffer import settled_spans
from collector.journal.additions import decode_additions, encode_additions
from collector.journal.records import (
    BatchKind,
    DamagedRecord,
    JournalledBatch,
    Notes,
    decode_notes,
    decode_pairs,
    decode_segment,
    decode_verdict_group,
    encode_entry,
    encode_notes,
    encode_pairs,
    encode_verdict_group,
    request_of,
    seal,
    segment_without,
    unseal,
)
from collector.journal.verdicts import decode_verdicts, encode_verdicts
from collector.otlp.envelope_registry import EnvelopeRegistry
from collector.trace import FinishedTrace, GradedTrace, SpanBatch
from processors.model.evaluation_result import (
    EvaluationResult,
    NotEvaluatedReason,
    Outcome,
    Severity,
    Stage,
)
from processors.model.finish_reason import FinishReason
from processors.model.graded_run import GradedRun
from tests.support.deliveries import ENVELOPE
from tests.support.graded_runs import weather_run

_texts = st.text(st.characters(codec="utf-8"), max_size=8)
_ENVELOPES = EnvelopeRegistry()
_KNOWN = [_ENVELOPES.envelope(ENVELOPE.resource, ENVELOPE.scope), _ENVELOPES.envelope(b"", b"")]
_ids = st.binary(min_size=8, max_size=8).filter(any)
_place = st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1))
_pairs = st.lists(st.tuples(st.binary(max_size=20), st.binary(max_size=20)), max_size=4)


@st.composite
def _batches(draw: st.DrawFn) -> JournalledBatch:
    trace_id = draw(st.binary(min_size=16, max_size=16).filter(any))
    spans = [
        (span_id, Span(trace_id=trace_id, span_id=span_id, name=draw(_texts)).SerializeToString(), envelope)
        for span_id, envelope in draw(
            st.lists(st.tuples(_ids, st.sampled_from(_KNOWN)), min_size=1, max_size=5)
        )
    ]
    return JournalledBatch(
        batch=SpanBatch(trace_id, spans, draw(_texts)),
        arrived_unix_nano=draw(st.integers(0, 2**64 - 1)),
        kind=draw(st.sampled_from(BatchKind)),
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
        lambda: decode_pairs(content),
        lambda: decode_notes(content),
        lambda: decode_verdict_group(content),
        lambda: decode_verdicts(content),
        lambda: decode_additions(b"A" + content),
        lambda: unseal(b"", content),
    ):
        with suppress(DamagedRecord):
            decode()


@given(_pairs, st.integers(0, 2**64 - 1))
def test_pairs_and_groups_of_verdicts_are_read_as_they_were_written(
    pairs: list[tuple[bytes, bytes]], bound: int
) -> None:
    assert pairs == decode_pairs(b"".join(encode_pairs(pairs)))
    assert (bound, pairs) == decode_verdict_group(b"".join(encode_verdict_group(bound, encode_pairs(pairs))))


_notes = st.builds(
    Notes,
    gone=st.lists(_place, max_size=3),
    left=st.lists(_place, max_size=3),
    delivered=st.lists(st.tuples(st.binary(max_size=20), st.text(st.characters(codec="utf-8")))),
)


@given(_notes)
def test_notes_are_read_as_they_were_written(notes: Notes) -> None:
    assert notes == decode_notes(b"".join(encode_notes(notes)))


@given(_batches(), st.binary(min_size=1, max_size=30), st.booleans())
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

    again = decode_additions(encode_additions(trace, graded)).graded(trace, holds_spans=True)

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


_results = st.builds(
    EvaluationResult,
    name=_texts,
    evaluator=_texts,
    evaluator_version=_texts,
    outcome=st.sampled_from(Outcome),
    score=st.none() | st.floats(0, 1),
    explanation=_texts,
    details=st.dictionaries(_texts, st.none() | st.integers() | _texts | st.lists(_texts)),
    reason=st.none() | st.sampled_from(NotEvaluatedReason),
    error_type=st.none() | _texts,
    pass_threshold=st.floats(0, 1),
    severity=st.sampled_from(Severity),
    criteria_hash=_texts,
    stage=st.sampled_from(Stage),
    muted_until_unix_nano=st.integers(0, 2**63),
    tool_call_id=st.none() | _texts,
    tool_span_id=st.none() | st.binary(min_size=8, max_size=8),
)


@given(
    st.lists(st.lists(_results, max_size=2), max_size=2),
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
    stored = decode_verdicts(encode_verdicts(trace, graded))

    assert (reason, was_quiet, quarantined) == (stored.reason, stored.was_quiet, stored.quarantined)
    assert results == [list(found) for found in stored.results]
    if runs:
        assert (7, "host:1") == (stored.unix_nano, stored.instance)
