"""The agents of a trace that must not be rebuilt, because processes crashed over it."""

from collections.abc import Callable, Sequence

from google.protobuf.message import DecodeError

from processors.model import AgentIdentity, AgentRun, FinishReason
from processors.reconstruction.reading import SpanReader
from processors.reconstruction.runs import agent_name_of_resource
from processors.shapes import SpanReading, SpanRole
from processors.spans import KIND_SERVER, RawSpan, Span


def _caller(span: Span) -> str:
    """The agent that made a call; none where the span is a tool server's view of it."""
    return "" if span.kind == KIND_SERVER else agent_name_of_resource(span.envelope)


_NAMES: Sequence[tuple[SpanRole, Callable[[SpanReading], str]]] = (
    (SpanRole.AGENT, lambda reading: reading.agent.name),
    (SpanRole.AGENT, lambda reading: reading.agent.inferred_name),
    (SpanRole.MODEL, lambda reading: reading.agent_of_turn),
    *[
        (role, lambda reading: agent_name_of_resource(reading.span.envelope))
        for role in (SpanRole.AGENT, SpanRole.WORKFLOW, SpanRole.MODEL)
    ],
    (SpanRole.TOOL, lambda reading: _caller(reading.span)),
)
"""Where names of agents stand: the first of these that any span has names all."""


def reported_agents(
    spans: Sequence[RawSpan], *, trace_id: bytes, reason: FinishReason, tenant: str = "", reader: SpanReader
) -> list[AgentRun]:
    """The agents that spans name, in order of start: each once, as a run of which no call is known.

    One span after the other is looked at by itself, and of its content nothing is decoded. An agent that
    `reconstruct` names by how spans lie in each other may be missing, or be called as its service is.
    """
    collected: list[dict[str, tuple[int, int, bytes]]] = [{} for _ in _NAMES]
    for span_id, raw, envelope in spans:
        try:
            reading = reader.read(Span(raw, envelope))
        except DecodeError:
            continue
        if reading is None:
            continue
        reported = reading.span.start_unix_nano, -reading.span.end_unix_nano, span_id
        for (role, name_of), first in zip(_NAMES, collected, strict=True):
            if reading.role is role and (name := name_of(reading)):
                first[name] = min(reported, first.get(name, reported))
    agents = next(filter(None, collected), {})
    return [
        AgentRun(
            trace_id=trace_id,
            span_id=span_id,
            agent=AgentIdentity(name=name),
            finish_reason=reason,
            complete=False,
            start_unix_nano=start,
            end_unix_nano=-negated_end,
            tenant=tenant,
            carrier_span_id=span_id,
        )
        for name, (start, negated_end, span_id) in sorted(agents.items(), key=lambda agent: agent[1])
    ]
