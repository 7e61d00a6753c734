"""Which spans of a graph are the run of an agent, by the metadata that the graph hands down to all below it.

A graph's own span, a node, a function in it and a part of a chain look alike: each bears the node that it
is in. The run of a graph within another begins at the place that its node has in the outer one, and what it
puts out is a whole conversation; a step puts out what it adds.
"""

import re
from collections.abc import Callable, Mapping

from processors.model import REDACTION_MARKERS, JsonObject, json_text
from processors.spans import AttributeValue

STEP_NAMES = frozenset(
    {"agent", "call_agent", "call_model", "route_to_active_agent", "should_continue", "tools_condition"}
)
"""Steps of ready-made graphs that an instrumentation takes for agents."""

AGENT_CALLER = "call_agent"
"""The step that runs the agent after which its node is named."""

SCOPES = frozenset({"openlit.instrumentation.langchain", "opentelemetry.instrumentation.genai.langchain"})
"""Scopes of the instrumentations that do so."""

UNNAMED_GRAPHS = frozenset({"LangGraph"})
"""Names of graphs without one of their own."""

TOOL_NODES = frozenset({"tools"})
"""Names of the nodes that execute calls; a graph without a name is not called by theirs."""

NODE = "langgraph_node"
PLACE = "langgraph_checkpoint_ns"
PLACE_AROUND = "checkpoint_ns"
TRIGGERS = "langgraph_triggers"
AGENT = "lc_agent_name"
"""Keys in the metadata of a graph's spans: the node, its place, the place of the graph it is in, what set the
node off, and the agent."""

START = "__start__"
"""What sets off the first step; alone it does so only for a function that is a graph's entry point."""

INTEGRATION = "langgraph"
"""The value of `ls_integration` in the metadata of a graph's spans."""

PASSED_ON = "ParentCommand"
"""The exception by which an agent in a graph passes the conversation on to another one."""

_MESSAGES = '"messages":'
_BEGINNING = 100
_LONGEST = 64 * 1024
_KIND_OF_FIRST = re.compile(
    r'"(?:type|role)":\s?"(?P<kind>human|user|system|ai|assistant|tool)"|"(?P<name>Human|System|AI|Tool)Message'
)
_OPENING = frozenset({"human", "user", "system", "Human", "System"})


def agent_of(
    name: str,
    text: Callable[[str], str],
    output: Callable[[], str | None],
    *,
    has_places: bool = True,
    passed_on: Callable[[], bool] = lambda: False,
) -> str | None:
    """The name of the agent whose run a span within a graph is.

    The empty text stands for the run of a graph without a name; None for a step, and for what is in no graph,
    as the outermost graph is.

    Args:
        name: The span's own name.
        text: Returns the text under a key of the span's metadata; the empty text for nothing.
        output: Reads what the span put out, None where that was not captured.
        has_places: False where every node bears its own place as the place of the graph that it is in.
        passed_on: Whether the span ended by passing the conversation on to another agent, which graphs
            with places show in another way.

    What is not looked at is no part of what the answer is remembered by, so long values come last.
    """
    if name and text(AGENT) == name:
        return name
    node = text(NODE)
    if not node:
        return None
    if name in UNNAMED_GRAPHS:
        return "" if node in TOOL_NODES else node
    if not has_places:
        is_node = node == name
        if is_chain_part(name) or (is_node and (name == START or text(AGENT))):
            return None
        gave_way = is_node and name not in TOOL_NODES and passed_on()
        in_call = node in TOOL_NODES and not is_node and _is_hidden(output())
        return name if gave_way or in_call or is_conversation(output()) else None
    around = text(PLACE_AROUND)
    if not around:
        triggers = text(TRIGGERS) if node == name != START else ""
        return name if triggers.strip("[]\"' ") == START else None
    if is_chain_part(name):
        return None
    begins_here = text(PLACE) == around
    if begins_here and (node == name or _is_hidden(output())):
        return name
    return name if is_conversation(output()) else None


def words_of_agent(name: str) -> tuple[str, str]:
    """What the metadata of a graph's spans contain, written as JSON, where `name` is that of the agent."""
    return f'"{AGENT}": "{name}"', f'"{AGENT}":"{name}"'


WORDS_OF_INNER_RUN = (f'"{PLACE_AROUND}"', START)
"""One of these is in the metadata of a run of a graph within another, where graphs have places."""


def _is_hidden(output: str | None) -> bool:
    return output is None or output in REDACTION_MARKERS


def texts_of(metadata: "Mapping[str, AttributeValue] | JsonObject", prefix: str = "") -> Callable[[str], str]:
    """Returns the value of `metadata` under `prefix` and a key, as text; what is no text as JSON."""

    def text(key: str) -> str:
        value = metadata.get(prefix + key)
        return value if isinstance(value, str) else "" if value is None else json_text(value)

    return text


def is_graph(metadata: JsonObject) -> bool:
    """Whether these are the metadata of the run of a graph that is in no other."""
    return metadata.get("ls_integration") == INTEGRATION and NODE not in metadata


def is_chain_part(name: str) -> bool:
    """Whether `name` is a class that chains are put together from: no agent, whatever it holds."""
    return (
        name == "Prompt"
        or name.startswith("Runnable")
        or name.endswith(("OutputParser", "PromptTemplate", "ToolsParser"))
    )


def is_conversation(output: str | None) -> bool:
    """Whether the messages in `output` begin with one by a user or the system."""
    at = -1 if output is None else output.find(_MESSAGES, 0, _BEGINNING)
    if output is None or at < 0 or "[" in output[:at]:  # in a list they are what a step passes on
        return False
    first = _KIND_OF_FIRST.search(output, at + len(_MESSAGES), _LONGEST)
    return first is not None and (first["kind"] or first["name"]) in _OPENING
