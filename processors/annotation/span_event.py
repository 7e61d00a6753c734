"""Evaluation results written onto spans without decoding them: events, and attributes on request.

The event is `gen_ai.evaluation.result` of the OpenTelemetry GenAI semantic conventions.
"""

import struct
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import TypeAlias

from processors.annotation.openinference import encode_annotations, first_free_index
from processors.annotation.result_attributes import (
    EVENT_ATTRIBUTE,
    EVENT_NAME,
    encode_result_attributes,
    encode_run_attributes,
    makes_event,
)
from processors.model import AgentRun, EvaluationResult
from processors.spans import RawSpan, Span, contains_any, encode_field

GradedRuns: TypeAlias = Collection[tuple[AgentRun, Sequence[EvaluationResult]]]
"""Agent runs with their results."""

_EVENT_NAME_BYTES = EVENT_NAME.encode()
_EVENT_NAME_FIELD = encode_field(0x12, _EVENT_NAME_BYTES)
_EVENTS_TAG, _LONG_EVENTS_TAG = 0x5A, 0xDA
"""One of them is the first byte of every event of a Span message: a varint may be longer than it must."""
_FIXED64 = struct.Struct("<Q")
_ID_OF_SPAN = itemgetter(0)


def append_results(
    spans: Sequence[RawSpan],
    graded: GradedRuns,
    *,
    time_unix_nano: int,
    instance: str,
    events: bool = True,
    openinference: bool = False,
) -> Sequence[RawSpan]:
    """The spans with every result on the span that carries it; every other byte is unchanged.

    A verdict on a single call goes to that call's span, every other one to the run's carrier span. Where
    that span is not among `spans` the first span carries it, so no verdict is lost.

    Args:
        spans: All spans of the trace.
        graded: The runs in it.
        time_unix_nano: When the verdicts were reached.
        instance: Who reached them.
        events: Whether each result becomes an event.
        openinference: Whether each result becomes evaluation attributes of OpenInference.
    """
    carried = results_by_carrier(spans, graded)
    if not carried:
        return spans
    annotated = list(spans)
    for place, span in enumerate(spans):
        if span[0] not in carried:
            continue
        results = carried.pop(span[0])
        parts = [span[1]]
        if openinference:
            parts.append(encode_annotations(results, first_free_index(span[1])))
        if events:
            parts += [evaluation_event(result, run, time_unix_nano, instance) for run, result in results]
        annotated[place] = span[0], b"".join(parts), span[2]
    return annotated


def results_by_carrier(
    spans: Sequence[RawSpan], graded: GradedRuns
) -> dict[bytes, list[tuple[AgentRun, EvaluationResult]]]:
    """The results by the span that carries them, as in `append_results`; empty if there is no span."""
    carried: dict[bytes, list[tuple[AgentRun, EvaluationResult]]] = {}
    for run, results in graded:
        carrier_of_run = run.carrier_span_id or b""
        for result in results:
            if result.reason is None or makes_event(result):
                carrier = result.tool_span_id or carrier_of_run
                if carrier in carried:
                    carried[carrier].append((run, result))
                else:
                    carried[carrier] = [(run, result)]
    if not carried or not spans:
        return {}
    lost = carried.keys() - map(_ID_OF_SPAN, spans)
    for carrier in [carrier for carrier in carried if carrier in lost] if lost else ():
        carried.setdefault(spans[0][0], []).extend(carried.pop(carrier))
    return carried


def evaluation_event(result: EvaluationResult, run: AgentRun, time_unix_nano: int, instance: str) -> bytes:
    """One result as the encoded `events` field of a Span message."""
    attributes = encode_result_attributes(result, run, instance, EVENT_ATTRIBUTE)
    if run.stands_for_trace:  # its span is no agent's
        attributes += encode_run_attributes(run, EVENT_ATTRIBUTE)
    return encode_field(_EVENTS_TAG, _event_at(time_unix_nano) + attributes)


@lru_cache(maxsize=1)
def _event_at(time_unix_nano: int) -> bytes:
    """What precedes the attributes of an event, the same for all results of a trace."""
    return b"\x09" + _FIXED64.pack(time_unix_nano) + _EVENT_NAME_FIELD


def count_results(spans: Iterable[RawSpan]) -> int:
    """How many evaluation events the spans already carry."""
    count = 0
    for _, payload, _ in spans:
        # Looking for a byte costs a tenth of looking for a text, and most spans have no event.
        if (_EVENTS_TAG in payload or _LONG_EVENTS_TAG in payload) and contains_any(
            payload, _EVENT_NAME_BYTES
        ):
            count += sum(event.name == EVENT_NAME for event in Span(payload).events)
    return count
