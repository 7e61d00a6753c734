"""Calls as a tool server saw them, where a caller in the same trace tells of them already."""

from collections.abc import Sequence

from processors.reconstruction.call_merging import names_behind_servers
from processors.reconstruction.span_reading import SpanReading
from processors.spans.span import KIND_SERVER
from processors.spans.span_tree import SpanTree

_LOOK_BACK = 64
"""Callers that are tried for a view: keeps hostile traces linear."""


def servers_views(
    calls: Sequence[int],
    tool_above: Sequence[int],
    tree: SpanTree,
    readings: Sequence[SpanReading | None],
) -> set[int]:
    """Calls as a tool server saw them that a caller's span around them in time tells already.

    A server in the agent's process knows the trace, but not the call it serves. One span, one view.
    """
    views = [
        position
        for position in calls
        if tree.views[position].kind == KIND_SERVER and tool_above[position] < 0
    ]
    waiting: dict[str, list[int]] = {}
    for position in sorted(set(calls).difference(views), reverse=True) if views else ():
        reading = readings[position]
        if reading is not None and not reading.tool.is_part:
            name = reading.tool.name or reading.tool.inferred_name
            for called in {name, *names_behind_servers(name)}:
                waiting.setdefault(called, []).append(position)
    told: set[int] = set()
    used: set[int] = set()
    for view in sorted(views):
        reading = readings[view]
        name = "" if reading is None else reading.tool.name or reading.tool.inferred_name
        callers = waiting.get(name, [])
        for place in range(len(callers) - 1, max(len(callers) - 1 - _LOOK_BACK, -1), -1):
            caller = callers[place]
            is_around = tree.starts[caller] <= tree.starts[view] and tree.ends[view] <= tree.ends[caller]
            if caller not in used and is_around:
                used.add(caller)
                told.add(view)
                del callers[place]
                break
    return told
