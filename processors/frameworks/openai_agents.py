"""OpenAI Agents SDK under Traceloop: a handoff's span is named before it is known who takes over."""

from processors.shapes.dialect import SpanRole
from processors.shapes.known_names import UNKNOWN_HANDOFF_TARGET
from processors.shapes.rewriting import Outline, RunScope, Trace

_LOOK_AHEAD = 64
"""Spans that are looked at for the agent that took over: keeps hostile traces linear."""


def rewrite_runs(trace: Trace, outline: Outline) -> None:
    """Name handoffs to unknown agents: the next agent next to the run's took over."""
    if not trace.is_read_by("traceloop"):
        return
    for run in outline.runs:
        for position in run.tools:
            name = trace.tool(position).name or trace.tool(position).inferred_name
            if name.endswith(UNKNOWN_HANDOFF_TARGET):
                target = _next_agent(position, run, trace)
                if target:
                    run.renamed[position] = name.removesuffix(UNKNOWN_HANDOFF_TARGET.split()[-1]) + target


def _next_agent(handoff: int, run: RunScope, trace: Trace) -> str:
    parents = trace.tree.parents
    following = range(handoff + 1, min(handoff + 1 + _LOOK_AHEAD, len(parents)))
    siblings = [position for position in following if parents[position] == parents[run.carrier]]
    agents = [reading.agent for reading in trace.readings_at(siblings) if reading.role is SpanRole.AGENT]
    return agents[0].name if agents else ""
