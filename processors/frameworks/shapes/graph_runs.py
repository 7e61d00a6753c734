"""Which spans of a graph are the run of an agent, by the metadata that the graph hands down to all below it.

A graph's own span, a node, a function in it and a part of a chain look alike: each bears the node that it
is in. The run of a graph within another begins at the place that its node has in the outer one, and what it
puts out is a whole conversation; a step puts out what it adds.
"""

import re
from collections.abc import Callable

from processors.frameworks.shapes.placeholder_names import (
    CHAIN_PART_NAMES,
    CHAIN_PART_PREFIXES,
    CHAIN_PART_SUFFIXES,
    GRAPH_AGENT,
    GRAPH_NODE,
    GRAPH_PLACE,
    GRAPH_PLACE_AROUND,
    GRAPH_START,
    GRAPH_TOOL_NODES,
    GRAPH_TRIGGERS,
    UNNAMED_GRAPHS,
)
from processors.model.values import REDACTION_MARKERS

_MESSAGES = '"messages":'
_BEGINNING = 100
_LONGEST = 64 * 1024
_KIND_OF_FIRST = re.compile(
    r'"(?:type|role)":\s?"(?P<kind>human|user|system|ai|assistant|tool)"|"(?P<name>Human|System|AI|Tool)Message'
)
_OPENING = frozenset({"human", "user", "system", "Human", "System"})


def agent_of_graph(
    name: str,
    told: Callable[[str], str],
    output: str | None,
    *,
    has_places: bool = True,
    passed_on: bool = False,
) -> str | None:
    """The name of the agent whose run a span within a graph is.

    The empty text stands for the run of a graph that nobody named; None for a step, and for what is in no
    graph, as the outermost graph is.

    Args:
        name: The span's own name.
        told: What the span's metadata tell under a key; the empty text for nothing.
        output: What the span put out, None where that was not captured.
        has_places: False where every node bears its own place as the place of the graph that it is in.
        passed_on: True where the span ended by passing the conversation on to another agent, which
            graphs with places tell otherwise.
    """
    if name and told(GRAPH_AGENT) == name:
        return name
    node = told(GRAPH_NODE)
    if not node:
        return None
    if name in UNNAMED_GRAPHS:
        return "" if node in GRAPH_TOOL_NODES else node
    if not has_places:
        is_node = node == name
        if is_chain_part(name) or (is_node and (name == GRAPH_START or told(GRAPH_AGENT))):
            return None
        gave_way = passed_on and is_node and name not in GRAPH_TOOL_NODES
        in_call = node in GRAPH_TOOL_NODES and not is_node and (output is None or output in REDACTION_MARKERS)
        return name if gave_way or in_call or is_conversation(output) else None
    around = told(GRAPH_PLACE_AROUND)
    if not around:
        triggers = told(GRAPH_TRIGGERS) if node == name != GRAPH_START else ""
        return name if triggers.strip("[]\"' ") == GRAPH_START else None
    if is_chain_part(name):
        return None
    begins_here = told(GRAPH_PLACE) == around
    if begins_here and (node == name or output is None or output in REDACTION_MARKERS):
        return name
    return name if is_conversation(output) else None


def is_chain_part(name: str) -> bool:
    """Whether `name` is that of a class which chains are put together from."""
    return (
        name in CHAIN_PART_NAMES or name.startswith(CHAIN_PART_PREFIXES) or name.endswith(CHAIN_PART_SUFFIXES)
    )


def is_conversation(output: str | None) -> bool:
    """Whether the messages in `output` begin with what a user or the system said."""
    at = -1 if output is None else output.find(_MESSAGES, 0, _BEGINNING)
    if output is None or at < 0 or "[" in output[:at]:  # in a list they are what a step passes on
        return False
    first = _KIND_OF_FIRST.search(output, at + len(_MESSAGES), _LONGEST)
    return first is not None and (first["kind"] or first["name"]) in _OPENING
