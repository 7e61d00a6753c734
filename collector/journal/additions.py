"""What grading added to a trace: bytes behind those of its spans, and the results in forms of their own.

With the spans themselves this is all that exporters of spans and scores get, so that nothing need be rebuilt
after a restart, and little be written before.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from collector.journal.records import DamagedRecord, decode_pairs, encode_pair
from collector.otlp import EnvelopeRegistry
from collector.trace import FinishedTrace, GradedTrace
from processors.spans import RawSpan

MARK = b"A"
"""The first byte, which sets it apart from verdicts."""

_HEAD = struct.Struct("<cBIII")
_ID = struct.Struct("<8sI")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAdditions:
    """What `encode_additions` wrote: bytes by span id, and records as `GradedTrace` has them."""

    backfill: bool
    added: dict[bytes, bytes]
    log_records: Sequence[RawSpan]
    evaluation_spans: Sequence[RawSpan]

    def graded(self, trace: FinishedTrace, *, holds_spans: bool) -> GradedTrace:
        """The trace as it was graded; without its spans where these have left."""
        added = self.added
        return GradedTrace(
            trace_id=trace.trace_id,
            spans=[(span[0], span[1] + added.get(span[0], b""), span[2]) for span in trace.spans]
            if holds_spans
            else (),
            log_records=self.log_records,
            evaluation_spans=self.evaluation_spans,
            backfill=self.backfill,
            tenant=trace.tenant,
        )


def encode_additions(trace: FinishedTrace, graded: GradedTrace) -> bytes:
    """The content of the record: what `graded` has beside the spans of `trace`, and none of its runs."""
    pairs: list[bytes] = []
    if graded.spans is not trace.spans and graded.spans:
        for came, leaves in zip(trace.spans, graded.spans, strict=True):
            if leaves is not came:
                pairs += encode_pair(came[0], leaves[1][len(came[1]) :])
    added = len(pairs) // 4
    results = (*graded.log_records, *graded.evaluation_spans)
    numbers: dict[object, int] = {}
    for _, _, envelope in results:
        if envelope not in numbers:
            numbers[envelope] = len(numbers)
            pairs += encode_pair(envelope.resource, envelope.scope)
    for span_id, payload, envelope in results:
        pairs += encode_pair(_ID.pack(span_id, numbers[envelope]), payload)
    head = _HEAD.pack(MARK, graded.backfill, added, len(numbers), len(graded.log_records))
    return b"".join([head, *pairs])


def decode_additions(content: bytes) -> StoredAdditions:
    """What `encode_additions` wrote.

    Raises:
        DamagedRecord: the content is not of that form.
    """
    try:
        _, backfill, added, envelope_count, log_count = _HEAD.unpack_from(content)
        pairs = decode_pairs(content, _HEAD.size)
        registry = EnvelopeRegistry()
        envelopes = [registry.envelope(*pair) for pair in pairs[added : added + envelope_count]]
        results: list[RawSpan] = []
        for place, payload in pairs[added + envelope_count :]:
            span_id, number = _ID.unpack(place)
            results.append((span_id, payload, envelopes[number]))
    except (struct.error, IndexError) as error:
        raise DamagedRecord(f"a record of what was added to a trace cannot be read: {error}") from error
    return StoredAdditions(
        backfill=bool(backfill),
        added=dict(pairs[:added]),
        log_records=results[:log_count],
        evaluation_spans=results[log_count:],
    )
