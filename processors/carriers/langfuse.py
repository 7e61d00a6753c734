"""Langfuse: `langfuse.observation.*`, as its SDKs and decorators write them."""

from processors.frameworks import langgraph
from processors.shapes.attribute_reading import (
    arguments_of_recorded_call,
    first_arguments,
    first_decoded,
    first_result,
    first_text,
)
from processors.shapes.chat_envelope import first_output, input_of_recorded_call
from processors.shapes.dialect import AgentReading, Dialect, SpanRole, ToolReading
from processors.shapes.dialect_functions import model_messages, roles
from processors.shapes.known_names import GENERIC_CHAIN_NAMES, transfer_or_function
from processors.shapes.members import failure
from processors.spans import Attributes, Span

_TYPE = "langfuse.observation.type"
_INPUT = "langfuse.observation.input"
_OUTPUT = "langfuse.observation.output"
_STATUS = "langfuse.observation.status_message"
_METADATA = "langfuse.observation.metadata."
_GRAPH_AGENT = _METADATA + langgraph.AGENT
_GRAPH_NODE = _METADATA + langgraph.NODE
_GRAPH_SESSIONS = tuple(_METADATA + key for key in ("session_id", "thread_id"))
_ROLES = roles(tool="tool", agent="agent", model="generation", judge=("guardrail", "evaluator"))


def _role(span: Span) -> SpanRole | None:
    kind = span.attributes.text(_TYPE)
    if kind is None:
        return None
    role = _ROLES.get(kind.lower())
    if role is not None and role is not SpanRole.AGENT:
        return role
    if _run_in_graph(span) is not None:
        return SpanRole.AGENT
    # The callback takes every chain for an agent whose name has the word in it.
    is_step = _GRAPH_NODE in span.attributes or langgraph.is_chain_part(span.name)
    return SpanRole.OTHER if role is None or is_step else role


def _tool(span: Span) -> ToolReading:
    attributes = span.attributes
    opened = first_result(attributes, (_OUTPUT,))
    has_failed = attributes.get("langfuse.observation.level") == "ERROR"
    return ToolReading(
        inferred_name=span.name,
        category=transfer_or_function(span.name),
        call_id=opened.call_id,
        arguments=arguments_of_recorded_call(first_arguments(attributes, (_INPUT,))),
        result=opened.result,
        error=failure(attributes.text(_STATUS)) if has_failed else opened.error,
    )


def _agent(span: Span) -> AgentReading:
    attributes = span.attributes
    in_graph = _run_in_graph(span)
    is_agent = _role(span) is SpanRole.AGENT
    return AgentReading(
        name=in_graph if in_graph is not None else span.name if is_agent else "",
        inferred_name="" if in_graph is not None or span.name in GENERIC_CHAIN_NAMES else span.name,
        session=first_text(attributes, ("session.id", "langfuse.session.id"))
        or _in_metadata(attributes, _GRAPH_SESSIONS),
        input=first_decoded(attributes, (_INPUT, "langfuse.trace.input"), input_of_recorded_call),
        output=first_output(attributes, (_OUTPUT, "langfuse.trace.output")),
    )


def _run_in_graph(span: Span) -> str | None:
    """The agent whose run a graph's span is, None for a step of a graph and for what is in none."""
    attributes = span.attributes
    if _GRAPH_AGENT not in attributes and _GRAPH_NODE not in attributes:
        return None
    language = span.envelope.resource_attributes.text("telemetry.sdk.language")
    is_python = language == "python"
    if not language:  # JavaScript leaves no blank between the members of a list
        is_python = ", " in (attributes.text(_METADATA + "langgraph_path") or ", ")
    return langgraph.agent_of(
        span.name,
        lambda key: _in_metadata(attributes, (_METADATA + key,)),
        lambda: attributes.text(_OUTPUT),
        has_places=is_python,
        passed_on=lambda: langgraph.PASSED_ON in (attributes.text(_STATUS) or ""),
    )


def _in_metadata(attributes: Attributes, keys: tuple[str, ...]) -> str:
    """The first text of `keys` in an observation's metadata, where texts are JSON."""
    text = first_text(attributes, keys)
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text


DIALECT = Dialect(
    "langfuse", (_TYPE,), _role, _tool, _agent, model_messages((_INPUT,), (_OUTPUT,), role=_role), rank=60
)
