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
from collector.journal_file.verdicts import StoredVerdicts, decode_graded, encode_graded
from collector.otlp import EnvelopeRegistry
from collector.trace import FinishedTrace, GradedTrace, SpanBatch
from collector.trace_forms import Additions
from processors.model import (
    EvaluationResult,
    FinishReason,
    GradedRun,
    NotEvaluatedReason,
    Outcome,
    RunReference,
    Severity,
    Stage,
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
        lambda: decode_pairs(content),
        lambda: decode_notes(content),
        lambda: decode_verdict_group(content),
        lambda: decode_graded(content, _ENVELOPES.envelope),
        lambda: decode_graded(b"{" + content, _ENVELOPES.envelope),
        lambda: decode_graded(b"A" + content, _ENVELOPES.envelope),
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
    removed=st.lists(_place, max_size=3),
    left=st.lists(_place, max_size=3),
    delivered=st.lists(st.tuples(st.binary(max_size=20), st.text(st.characters(codec="utf-8")))),
)


@given(_notes)
def test_notes_are_read_as_they_were_written(notes: Notes) -> None:
    assert notes == decode_notes(b"".join(encode_notes(notes)))


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


@pytest.mark.parametrize(
    "content",
    [
        b'{"runs":[]}',
        b'{"runs":[],"reason":"whim"}',
        b'{"runs":[[5]],"reason":"root"}',
        b"[]",
        b"5",
        b"{}",
        b"A",
    ],
)
def test_a_record_of_the_format_before_that_is_not_whole_is_damage(content: bytes) -> None:
    with pytest.raises(DamagedRecord):
        decode_graded(content, _ENVELOPES.envelope)


def test_verdicts_and_additions_of_the_format_before_are_read() -> None:
    verdicts = (
        b'{"reason":"root","was_quiet":true,"interrupted":false,"backfill":false,"unix_nano":7,'
        b'"instance":"host:1","quarantined":true,"runs":[[{"name":"a","evaluator":"e","version":"2",'
        b'"outcome":"not_evaluated","threshold":0.5,"severity":"page","criteria_hash":"c","score":1.0,'
        b'"explanation":"x","details":{"a":18446744073709551616},"reason":"over_limit","error_type":"E",'
        b'"stage":"shadow","muted_until":9,"tool_call_id":"t","tool_span_id":"0102030405060708",'
        b'"conversation_runs":["00000000000000000000000000000001-0102030405060708",'
        b'"00000000000000000000000000000002"]}],[]]}'
    )
    span_id = bytes(range(1, 9))
    pairs = [(span_id, b"behind"), (b"resource", b"scope"), (span_id + b"\0\0\0\0", b"a log record")]
    head = b"A\1" + b"".join(number.to_bytes(4, "little") for number in (1, 1, 1))

    stored = decode_graded(verdicts, _ENVELOPES.envelope)
    added = decode_graded(head + b"".join(encode_pairs(pairs)), _ENVELOPES.envelope)

    assert stored == StoredVerdicts(
        reason=FinishReason.ROOT,
        was_quiet=True,
        quarantined=True,
        unix_nano=7,
        instance="host:1",
        results=[
            [
                EvaluationResult(
                    name="a",
                    evaluator="e",
                    evaluator_version="2",
                    outcome=Outcome.NOT_EVALUATED,
                    score=1.0,
                    explanation="x",
                    details={"a": 2**64},
                    reason=NotEvaluatedReason.OVER_LIMIT,
                    error_type="E",
                    pass_threshold=0.5,
                    severity=Severity.PAGE,
                    criteria_hash="c",
                    stage=Stage.SHADOW,
                    muted_until_unix_nano=9,
                    tool_call_id="t",
                    tool_span_id=span_id,
                    conversation_runs=(
                        RunReference((1).to_bytes(16), span_id),
                        RunReference((2).to_bytes(16), None),
                    ),
                )
            ],
            [],
        ],
    )
    resource = _ENVELOPES.envelope(b"resource", b"scope")
    assert added == Additions([(span_id, b"behind")], [(span_id, b"a log record", resource)], [], True)
