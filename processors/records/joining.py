"""Log records put back on the spans that they belong to."""

from collections.abc import Callable, Sequence

from processors.carriers import discover_content_records
from processors.reconstruction import span_reader
from processors.records.record_head import emitter_of
from processors.shapes import ContentRecords, ContentSpans, SpanReading
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
    by_emitter: dict[int, list[LogRecord]] = {}
    seen: set[bytes] = set()
    for _, raw, envelope in records:
        if raw in seen:
            continue
        seen.add(raw)
        record = LogRecord(raw, envelope)
        emitter = emitter_of(record)
        if emitter is not None:
            by_emitter.setdefault(id(emitter), []).append(record)
    if not by_emitter:
        return spans
    content = ContentSpans(spans, span_reader().read if read is None else read)
    emitters: Sequence[ContentRecords] = discover_content_records()
    for emitter in emitters:
        if reported := by_emitter.get(id(emitter)):
            emitter.join(sorted(reported, key=lambda record: record.unix_nano), content)
    return content.joined()
