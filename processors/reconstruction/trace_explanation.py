"""Why a trace was understood as it was: which dialect read which span as what, and what became of it."""

from collections.abc import Sequence
from typing import NamedTuple

from processors.reconstruction.calls import TraceRuns, is_servers_view, merge_calls
from processors.reconstruction.passes import find_scopes, read_trace
from processors.reconstruction.reading import SpanReader
from processors.shapes import CarrierKind, RunScope, SpanReading, SpanRole, Trace
from processors.spans import RawSpan, SpanTree

_SHARED_WORKFLOW = "a workflow that agents take turns in: their runs begin at its steps"


class SpanExplanation(NamedTuple):
    """One span of a trace."""

    span_id: bytes
    name: str
    depth: int
    """How many spans of the trace stand above it."""
    dialects: Sequence[str]
    """The dialects that recognise it, in order of rank."""
    role: SpanRole | None
    meaning: str
    """What the span became, or why it was left out, for people."""
    is_left_out: bool


def explain_trace(
    spans: Sequence[RawSpan], reader: SpanReader, *, lost_means_filtered: bool = True
) -> list[SpanExplanation]:
    """Every span of a trace, parents before children and siblings in order of start.

    Args:
        spans: All spans of the trace, as `reconstruct` takes them.
        reader: What they are read with.
        lost_means_filtered: Whether spans whose parent never came belong to the run around them in time.
    """
    trace = read_trace(spans, reader)
    tree, readings = trace.tree, trace.readings
    meanings = _meanings(find_scopes(trace, lost_means_filtered=lost_means_filtered).known)
    reported: list[SpanExplanation] = []
    for position, depth in _depth_first(tree):
        reading = readings[position]
        meaning = meanings.get(position)
        reported.append(
            SpanExplanation(
                span_id=tree.span_ids[position],
                name=tree.views[position].name,
                depth=depth,
                dialects=() if reading is None else [dialect.name for dialect in reading.shape.dialects],
                role=None if reading is None else reading.role,
                meaning=meaning or _why_left_out(position, tree, reading),
                is_left_out=meaning is None,
            )
        )
    return reported


def _meanings(known: TraceRuns) -> dict[int, str]:
    """What became of the spans that something became of."""
    trace, tree = known.trace, known.trace.tree
    meanings: dict[int, str] = {}
    for scope in known.runs:
        if scope.kind in (CarrierKind.LOCAL_ROOT, CarrierKind.NOTHING) and not _has_calls(scope, trace):
            continue
        service = tree.views[scope.carrier].envelope.service_name
        name = _name_of(scope, trace) or service or "an agent without a name"
        if scope.kind is CarrierKind.AGENT:
            is_stay = scope.carrier not in scope.layers
            for layer in scope.layers:
                meanings[layer] = _SHARED_WORKFLOW if is_stay else f"another report of the run of {name}"
            meanings[scope.carrier] = f"run of {name}"
        elif scope.kind is CarrierKind.WORKFLOW:
            meanings[scope.carrier] = f"workflow that stands for the run of {name}"
        elif scope.kind is CarrierKind.LOCAL_ROOT:
            meanings[scope.carrier] = f"local root that stands for the run of {name}"
        for position in scope.models:
            meanings[position] = f"model turn of {name}"
        for call in merge_calls(scope.tools, known.call_above, trace):
            first = call.spans[0]
            carrier = f", and {meanings[first]}" if first == scope.carrier and first in meanings else ""
            meanings[first] = f"call of {call.name} by {name}{carrier}"
            for position in call.spans[1:]:
                meanings[position] = (
                    f"another report of the call of {call.name} in {tree.span_ids[first].hex()}"
                )
    return meanings


def _name_of(scope: RunScope, trace: Trace) -> str:
    for reading in trace.readings_at(scope.layers):
        name = reading.agent.name or scope.agent_name or reading.agent.inferred_name
        if name:
            return name
    return scope.agent_name


def _has_calls(scope: RunScope, trace: Trace) -> bool:
    return bool(scope.tools) or any(
        message.requests
        for reading in trace.readings_at(scope.models)
        for message in reading.conversation.output
    )


def _why_left_out(position: int, tree: SpanTree, reading: SpanReading | None) -> str:
    if reading is None:
        return "no dialect recognises it"
    if reading.role is not SpanRole.TOOL:
        return _LEFT_OUT.get(reading.role, "known, but neither a call nor a run nor a model turn")
    if reading.tool.is_synthetic:
        return "made up by its instrumentation, which reports the real calls next to it"
    if reading.tool.is_part:
        return "reports the outcome of a call that is not above it"
    if is_servers_view(position, tree):
        return "a tool server's view of a call whose caller is not in the trace"
    return "a call that belongs to no run"


_LEFT_OUT = {
    SpanRole.MODEL: "a model call in a tool, a guardrail or evaluator or another model call, "
    "or with no agent and no call around it",
    SpanRole.JUDGE: "a guardrail or evaluator: what models answer below it is no turn of the agent's",
    SpanRole.AGENT: "wraps the agents below it and has no name of its own",
    SpanRole.WORKFLOW: "a workflow around or within agents: its agents' runs are what counts",
}


def _depth_first(tree: SpanTree) -> list[tuple[int, int]]:
    """All positions with their depth, each parent right before its children."""
    children: dict[int, list[int]] = {}
    for position in range(len(tree)):
        children.setdefault(tree.parents[position], []).append(position)
    ordered: list[tuple[int, int]] = []
    waiting = [(position, 0) for position in reversed(children.get(-1, []))]
    while waiting:
        position, depth = waiting.pop()
        ordered.append((position, depth))
        waiting.extend((child, depth + 1) for child in reversed(children.get(position, [])))
    return ordered
