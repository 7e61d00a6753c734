"""Log records put back on the spans that they belong to."""

from collections.abc import Callable, Iterator, Sequence

from processors.carriers import discover_content_records
from processors.reconstruction import span_reader
from processors.records.record_head import emitter_of
from processors.shapes import ContentSpans, ReportedRun, SpanReading, spans_of
from processors.spans import LogRecord, RawRecord, RawSpan, Span


def join_records(
    spans: Sequence[RawSpan],
    records: Sequence[RawRecord],
    read: Callable[[Span], SpanReading | None] | None = None,
) -> Sequence[RawSpan]:
    """The spans of a trace as readers of spans take them, with the content of its log records.

    A record belongs to the span that it names, else to the call whose id it carries, else to one by order and
    name within its run: each emitter's file decides. It adds what that span lacks, has cut off or masked. A
    record that belongs to no span here adds nothing, nor does one that is no content record or was repeated.
    The result depends on which spans and records there are, not on the order in which the two arrived; only
    records that happened at the same time count in the order that they have here.

    Args:
        spans: All spans of one trace, in any order; they are not changed.
        records: Log records that name the trace.
        read: Recognises a span; by default the built-in dialects do.

    Raises:
        google.protobuf.message.DecodeError: A span or a record is no such message.
    """
    by_emitter = _by_emitter(records)
    if not by_emitter:
        return spans
    content = ContentSpans(spans, span_reader().read if read is None else read)
    for emitter in discover_content_records():
        if reported := by_emitter.get(id(emitter)):
            emitter.join(reported, content)
    return content.joined()


def run_of_records(records: Sequence[RawRecord], run_id: bytes) -> Sequence[RawSpan]:
    """The spans that stand for the run which the records of one prompt report; none if they report no run.

    Args:
        records: Log records with this `RecordHead.run_id`, in any order; repeated ones count once.
        run_id: Becomes the trace id.

    Raises:
        google.protobuf.message.DecodeError: A record is no such message.
    """
    return next((spans_of(run, reported, run_id) for run, reported in _reported_runs(records)), ())


def report_end(records: Sequence[RawRecord]) -> bool:
    """Whether the records of one prompt report a run, and that it is over; takes them as `run_of_records`."""
    return next((run.is_over for run, _ in _reported_runs(records)), False)


def _reported_runs(records: Sequence[RawRecord]) -> Iterator[tuple[ReportedRun, Sequence[LogRecord]]]:
    by_emitter = _by_emitter(records)
    for emitter in discover_content_records():
        if (reported := by_emitter.get(id(emitter))) and emitter.run is not None:
            run = emitter.run(reported)
            if run is not None:
                yield run, reported


def trace_with_records(
    spans: Sequence[RawSpan],
    records: Sequence[RawRecord],
    trace_id: bytes,
    read: Callable[[Span], SpanReading | None] | None = None,
) -> Sequence[RawSpan]:
    """What runs are rebuilt from: `join_records`, or without any span `run_of_records`."""
    return join_records(spans, records, read) if spans else run_of_records(records, trace_id)


def _by_emitter(records: Sequence[RawRecord]) -> dict[int, list[LogRecord]]:
    """The content records of each emitter, by its identity: each once, in the order of their times."""
    by_emitter: dict[int, list[LogRecord]] = {}
    seen: set[bytes] = set()
    for _, raw, envelope in records:
        if raw not in seen:
            seen.add(raw)
            record = LogRecord(raw, envelope)
            emitter = emitter_of(record)
            if emitter is not None:
                by_emitter.setdefault(id(emitter), []).append(record)
    for reported in by_emitter.values():
        reported.sort(key=lambda record: record.unix_nano)
    return by_emitter
