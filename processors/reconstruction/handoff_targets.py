"""To whom a conversation was passed on, where the span of the handoff was named before that was known."""

from collections.abc import Iterable, Sequence

from processors.frameworks.dialect import SpanRole
from processors.frameworks.shapes.placeholder_names import UNKNOWN_HANDOFF_TARGET
from processors.reconstruction.call_merging import MergedCall
from processors.reconstruction.span_reading import SpanReading
from processors.spans.span_tree import SpanTree

_LOOK_AHEAD = 64
"""Spans that are looked at for the agent that took over: keeps hostile traces linear."""


def name_targets(
    calls: Iterable[MergedCall], carrier: int, tree: SpanTree, readings: Sequence[SpanReading | None]
) -> None:
    """Complete the names of handoffs to nobody known: the next agent beside that at `carrier` took over."""
    for call in calls:
        if call.name.endswith(UNKNOWN_HANDOFF_TARGET):
            target = _next_agent(call.spans[0], tree.parents[carrier], tree, readings)
            if target:
                call.name = call.name.removesuffix(UNKNOWN_HANDOFF_TARGET.split()[-1]) + target


def _next_agent(handoff: int, parent: int, tree: SpanTree, readings: Sequence[SpanReading | None]) -> str:
    for position in range(handoff + 1, min(handoff + 1 + _LOOK_AHEAD, len(tree))):
        reading = readings[position]
        if reading is not None and tree.parents[position] == parent and reading.role is SpanRole.AGENT:
            return reading.agent.name
    return ""
