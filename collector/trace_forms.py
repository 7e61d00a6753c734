"""What grading adds to a trace, and its form as bytes: for the journal and between processes."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from msgspec import Struct

from collector.trace import FinishedTrace, GradedTrace
from processors.model import GradedRun, decode_value, encode_value, plain_value
from processors.spans import Envelope, RawSpan

_ValueT = TypeVar("_ValueT")


class Additions(Struct, frozen=True, omit_defaults=True, tag=True):
    """What grading added to a trace: bytes after those of its spans, and the results in forms of their own.

    With the spans themselves this is all that exporters of spans and scores get.
    """

    added: Sequence[tuple[bytes, bytes]] = ()
    """By span id."""
    log_records: Sequence[RawSpan] = ()
    evaluation_spans: Sequence[RawSpan] = ()
    backfill: bool = False

    def graded(
        self,
        trace: FinishedTrace,
        *,
        holds_spans: bool,
        runs: Sequence[GradedRun] = (),
        hidden_runs: Sequence[GradedRun] = (),
    ) -> GradedTrace:
        """The trace as it was graded; without its spans where these have left."""
        added = dict(self.added)
        spans: Sequence[RawSpan] = trace.spans if holds_spans else ()
        if added:
            spans = [
                (span[0], span[1] + added[span[0]], span[2]) if span[0] in added else span for span in spans
            ]
        return GradedTrace(
            trace_id=trace.trace_id,
            spans=spans,
            runs=runs,
            hidden_runs=hidden_runs,
            log_records=self.log_records,
            evaluation_spans=self.evaluation_spans,
            backfill=self.backfill,
            quarantined=trace.quarantined,
            tenant=trace.tenant,
        )


def additions(trace: FinishedTrace, graded: GradedTrace) -> Additions:
    """What `graded` has in addition to the spans of `trace`, and none of its runs."""
    added: list[tuple[bytes, bytes]] = []
    if graded.spans is not trace.spans and graded.spans:
        added = [
            (arrived[0], leaves[1][len(arrived[1]) :])
            for arrived, leaves in zip(trace.spans, graded.spans, strict=True)
            if leaves is not arrived
        ]
    return Additions(added, graded.log_records, graded.evaluation_spans, graded.backfill)


def encode_with_envelopes(value: object, encode_other: Callable[[Any], object] = plain_value) -> bytes:
    """The bytes of a value with spans in it: their resources and scopes precede it, each once."""
    numbers: dict[Envelope, int] = {}

    def encoded(part: object) -> object:
        return numbers.setdefault(part, len(numbers)) if isinstance(part, Envelope) else encode_other(part)

    content = encode_value(value, encoded)
    return encode_value(([(envelope.resource, envelope.scope) for envelope in numbers], content))


def decode_with_envelopes(
    content: bytes,
    kind: type[_ValueT],
    envelope: Callable[[bytes, bytes], Envelope],
    decode_other: Callable[[type, Any], object] | None = None,
) -> _ValueT:
    """The value whose bytes `encode_with_envelopes` made; `envelope` gives resources and scopes.

    Raises:
        ValueError: they are those of no `kind`.
    """
    pairs, inner = decode_value(content, tuple[list[tuple[bytes, bytes]], bytes])
    envelopes = [envelope(*pair) for pair in pairs]

    def decoded(part_kind: type, part: Any) -> object:
        if part_kind is Envelope or decode_other is None:
            return envelopes[part]
        return decode_other(part_kind, part)

    try:
        return decode_value(inner, kind, decoded)
    except IndexError as error:
        raise ValueError("a resource is missing") from error
