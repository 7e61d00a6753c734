"""LangSmith's OpenTelemetry export: `langsmith.span.kind`, with whole inputs and outputs as JSON.

It names operations of the GenAI conventions too, but chains and the shapes of values are its own.
"""

from collections.abc import Callable

from processors.frameworks import langgraph
from processors.model import ABSENT, DecodedValue, ValueState, decode_arguments, decode_result, json_value
from processors.shapes.attribute_reading import first_text
from processors.shapes.chat_envelope import decode_input, decode_output
from processors.shapes.dialect import AgentReading, Conversation, Dialect, SpanRole, ToolReading
from processors.shapes.dialect_functions import roles
from processors.shapes.known_names import GENERIC_CHAIN_NAMES, transfer_or_function
from processors.shapes.members import text_at
from processors.shapes.messages import read_messages, read_model_response
from processors.shapes.result_envelope import OUTPUT, open_result
from processors.spans import Attributes, AttributeValue, Span

_KIND = "langsmith.span.kind"
_INPUTS = "gen_ai.prompt"
_OUTPUTS = "gen_ai.completion"
_METADATA = "langsmith.metadata."
_AGENT_NAME = _METADATA + langgraph.AGENT
_GRAPH_NODE = _METADATA + langgraph.NODE
_SESSIONS = tuple(_METADATA + key for key in ("session_id", "thread_id", "conversation_id"))
_NOTHING = "{}"
"""What replaces inputs and outputs that the sender hides."""
_ROLES = roles(tool="tool", model="llm", agent="agent", workflow="chain")


def _role(span: Span) -> SpanRole | None:
    attributes = span.attributes
    kind = attributes.text(_KIND)
    if kind is None:
        return None
    if kind == "chain":
        if _run_in_graph(span) is not None:
            return SpanRole.AGENT
        if langgraph.is_chain_part(span.name) or _GRAPH_NODE in attributes:
            return SpanRole.OTHER
    return _ROLES.get(kind, SpanRole.OTHER)


def _tool(span: Span) -> ToolReading:
    attributes = span.attributes
    opened = open_result(_decoded(attributes, _OUTPUTS, decode_result), OUTPUT)
    arguments, is_text_of_object = _arguments(attributes)
    return ToolReading(
        name=first_text(attributes, ("gen_ai.tool.name",)),
        inferred_name=span.name,
        call_id=first_text(attributes, ("gen_ai.tool.call.id",)) or opened.call_id,
        category=transfer_or_function(span.name),
        arguments=arguments,
        arguments_are_doubtful=is_text_of_object,
        result=opened.result,
        error=opened.error,
    )


def _agent(span: Span) -> AgentReading:
    attributes = span.attributes
    in_graph = _run_in_graph(span)
    return AgentReading(
        name=first_text(attributes, (_AGENT_NAME,)) if in_graph is None else in_graph,
        inferred_name="" if in_graph is not None or span.name in GENERIC_CHAIN_NAMES else span.name,
        session=first_text(attributes, _SESSIONS),
        input=_decoded(attributes, _INPUTS, decode_input),
        output=_decoded(attributes, _OUTPUTS, decode_output),
    )


def _conversation(span: Span) -> Conversation:
    attributes = span.attributes
    if attributes.get(_KIND) != "llm":
        return Conversation()
    return Conversation(
        lambda: read_messages(json_value(_recorded(attributes, _INPUTS)), "user"),
        lambda: read_model_response(json_value(_recorded(attributes, _OUTPUTS))),
    )


def _run_in_graph(span: Span) -> str | None:
    """The agent whose run a graph's span is, None for a step of a graph and for what is in none."""
    attributes = span.attributes
    if _AGENT_NAME not in attributes and _GRAPH_NODE not in attributes:
        return None

    def output() -> str | None:
        recorded = _recorded(attributes, _OUTPUTS)
        return recorded if isinstance(recorded, str) and recorded != _NOTHING else None

    return langgraph.agent_of(span.name, langgraph.texts_of(attributes, _METADATA), output)


def _is_shown(attributes: Attributes, key: str) -> bool:
    return key in attributes and _recorded(attributes, key) != _NOTHING


def _decoded(
    attributes: Attributes, key: str, decode: Callable[[AttributeValue], DecodedValue]
) -> DecodedValue:
    return decode(_recorded(attributes, key)) if _is_shown(attributes, key) else ABSENT


def _recorded(attributes: Attributes, key: str) -> AttributeValue:
    """The value of an attribute; older releases send the text as bytes."""
    value = attributes.get(key)
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        return value


def _arguments(attributes: Attributes) -> tuple[DecodedValue, bool]:
    """The inputs, and whether a tool was given one text that writes an object: then they are that object.

    Older frameworks give every tool its arguments as such a text; else it may be an argument named `input`.
    """
    if not _is_shown(attributes, _INPUTS) and (
        not _is_shown(attributes, _OUTPUTS)
        or _AGENT_NAME in attributes
        or "langsmith.metadata.ls_integration" in attributes
    ):
        # A graph's tool without arguments has an input; only a decorated function has none.
        return ABSENT, False
    decoded = decode_arguments(_recorded(attributes, _INPUTS)) if _INPUTS in attributes else ABSENT
    value = decoded.value
    text = text_at(value, "input")
    if not isinstance(value, dict) or len(value) != 1 or text.strip()[:1] != "{":
        return decoded, False
    inner = decode_arguments(text)
    return (inner if inner.state is ValueState.PRESENT else decoded), True


DIALECT = Dialect("langsmith", (_KIND,), _role, _tool, _agent, _conversation, rank=5)
