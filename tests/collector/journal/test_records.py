"""What is written to the journal is read back, and nothing else is."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.journal.records import (
    BatchKind,
    DamagedRecord,
    JournalledBatch,
    decode_batch,
    decode_envelope,
    decode_finished,
    encode_batch,
    encode_envelope,
    encode_finished,
    seal,
    unseal,
)
from collector.journal.verdicts import decode_verdicts, encode_verdicts
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
from processors.spans.envelope import Envelope
from tests.support.graded_runs import weather_run

_texts = st.text(st.characters(codec="utf-8"), max_size=8)
_ENVELOPES = [Envelope(b"", b""), Envelope(b"resource", b"scope")]
_spans = st.lists(
    st.tuples(st.binary(min_size=8, max_size=8), st.binary(max_size=50), st.sampled_from(_ENVELOPES)),
    max_size=5,
)
_batches = st.builds(
    JournalledBatch,
    batch=st.builds(SpanBatch, st.binary(min_size=16, max_size=16), _spans, _texts),
    arrived_unix_nano=st.integers(0, 2**64 - 1),
    kind=st.sampled_from(BatchKind),
)


@given(_batches)
def test_a_batch_is_read_as_it_was_written(journalled: JournalledBatch) -> None:
    content = encode_batch(journalled, _ENVELOPES.index)

    assert journalled == decode_batch(content, _ENVELOPES.__getitem__)


@given(_batches, st.data())
def test_of_a_changed_record_nothing_is_read(journalled: JournalledBatch, data: st.DataObject) -> None:
    record = bytearray(seal(encode_batch(journalled, _ENVELOPES.index)))
    record[data.draw(st.integers(0, len(record) - 1))] ^= 1 << data.draw(st.integers(0, 7))

    with pytest.raises(DamagedRecord):
        unseal(bytes(record))


@given(st.binary(max_size=80))
def test_bytes_that_are_no_record_are_told_and_never_raise_anything_else(content: bytes) -> None:
    for decode in (
        lambda: decode_batch(content, _ENVELOPES.__getitem__),
        lambda: decode_envelope(content),
        lambda: decode_finished(content),
        lambda: decode_verdicts(content),
        lambda: unseal(content),
    ):
        with suppress(DamagedRecord):
            decode()


@given(st.binary(max_size=20), st.binary(max_size=20))
def test_envelopes_and_finished_traces_are_read_as_they_were_written(one: bytes, other: bytes) -> None:
    assert (one, other) == decode_envelope(encode_envelope(Envelope(one, other)))
    assert (one, other) == decode_finished(encode_finished(one, other))


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


@given(st.lists(st.lists(_results, max_size=2), max_size=2), st.sampled_from(FinishReason), st.booleans())
def test_verdicts_are_read_as_they_were_written(
    results: list[list[EvaluationResult]], reason: FinishReason, was_quiet: bool
) -> None:
    trace = FinishedTrace(trace_id=bytes(16), spans=(), reason=reason, was_quiet=was_quiet)
    runs = [
        GradedRun(run=weather_run().run, results=found, graded_unix_nano=7, instance="host:1")
        for found in results
    ]

    stored = decode_verdicts(encode_verdicts(trace, GradedTrace(trace_id=bytes(16), spans=(), runs=runs)))

    assert (reason, was_quiet) == (stored.reason, stored.was_quiet)
    assert results == [list(found) for found in stored.results]
    if runs:
        assert (7, "host:1") == (stored.unix_nano, stored.instance)
