"""Evaluation results as spans of their own: for backends that take traces only, where spans do not wait.

A graded run gets one small span, a child of the agent's own, with an event for each result. It is at the
end of the run and has no length, so that no trace looks longer than the agent worked; its events carry the
time of the verdict.
"""

import struct
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

from processors.annotation.openinference import encode_annotations
from processors.annotation.result_attributes import (
    SPAN_ATTRIBUTE,
    encode_key,
    encode_run_attributes,
    encode_text_attribute,
    makes_event,
)
from processors.annotation.span_event import GradedRuns, evaluation_event
from processors.spans import Envelope, RawSpan, encode_field

SCOPE_NAME = "tracegrade"

_TIMES = struct.Struct("<BQBQ")
_START_TAG, _END_TAG = 0x39, 0x41
_INTERNAL_KIND = b"\x30\x01"
_SCOPE = encode_field(0x0A, encode_field(0x0A, SCOPE_NAME.encode()))
_INSTANCE = encode_key("tracegrade.instance")
_EVALUATOR_KIND = encode_text_attribute(SPAN_ATTRIBUTE, encode_key("openinference.span.kind"), "EVALUATOR")
_ID_PURPOSE = b"tracegrade span"


def evaluation_spans(
    spans: Sequence[RawSpan],
    graded: GradedRuns,
    *,
    time_unix_nano: int,
    instance: str,
    openinference: bool = False,
) -> list[RawSpan]:
    """One span for each run that has a result, under the resource of the agent's span.

    Its id depends on the run alone: who grades a trace twice sends the same span twice. No dialect reads
    such a span as a call or a run.

    Args:
        spans: All spans of the trace.
        graded: The runs in it.
        time_unix_nano: When the verdicts were reached.
        instance: Who reached them.
        openinference: Whether the span carries evaluation attributes of OpenInference as well.
    """
    envelopes: dict[bytes, Envelope] = {}
    built: list[RawSpan] = []
    seen: dict[bytes, int] = {}
    for run, all_results in graded:
        results = [result for result in all_results if makes_event(result)]
        if not results or not spans:
            continue
        if not envelopes:
            envelopes = {span_id: envelope for span_id, _, envelope in spans}
        parent = run.carrier_span_id or b""
        if parent not in envelopes:
            parent = spans[0][0]
        key = b"".join((run.trace_id, parent, run.agent.name.encode("utf-8", "replace")))
        seen[key] = ordinal = seen.get(key, -1) + 1
        span_id = _span_id(key, ordinal)
        end = run.end_unix_nano or time_unix_nano
        name = f"evaluate {run.agent.name}" if run.agent.name else "evaluate"
        parts = [
            encode_field(0x0A, run.trace_id),
            encode_field(0x12, span_id),
            encode_field(0x22, parent),
            encode_field(0x2A, name.encode("utf-8", "replace")),
            _INTERNAL_KIND,
            _TIMES.pack(_START_TAG, end, _END_TAG, end),
            encode_text_attribute(SPAN_ATTRIBUTE, _INSTANCE, instance),
            encode_run_attributes(run, SPAN_ATTRIBUTE),
        ]
        if openinference:
            parts += _EVALUATOR_KIND, encode_annotations((run, result) for result in results)
        parts += [evaluation_event(result, run, time_unix_nano, instance) for result in results]
        built.append((span_id, b"".join(parts), _own_envelope(envelopes[parent].resource)))
    return built


def _span_id(key: bytes, ordinal: int) -> bytes:
    digest = blake2b(key + ordinal.to_bytes(4, "big"), digest_size=8, person=_ID_PURPOSE).digest()
    return digest if any(digest) else b"\x01" * 8


@lru_cache(maxsize=256)
def _own_envelope(resource: bytes) -> Envelope:
    """The resource of the agent and our own scope; one object for equal bytes."""
    return Envelope(resource, _SCOPE)
