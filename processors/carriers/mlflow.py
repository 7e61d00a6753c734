"""MLflow tracing in its native form: `mlflow.*` attributes whose values are all JSON, texts in quotes.

Where it writes the GenAI conventions instead, it names no agent but in the metadata of a graph's run.
"""

from processors.frameworks import langgraph, llama_index
from processors.model import ABSENT, CallCategory, DecodedValue, JsonObject, decode_arguments, value_of
from processors.shapes.attribute_reading import first_arguments, first_result, first_text, given_keywords
from processors.shapes.chat_envelope import first_input, first_output
from processors.shapes.dialect import AgentReading, Conversation, Dialect, SpanRole, ToolReading
from processors.shapes.dialect_functions import model_messages, roles
from processors.shapes.known_names import GENERIC_CHAIN_NAMES, handoff_or_function, transfer_or_function
from processors.shapes.members import object_at, text_at, value_at
from processors.spans import Attributes, Span

_TYPE = "mlflow.spanType"
_INPUTS = "mlflow.spanInputs"
_OUTPUTS = "mlflow.spanOutputs"
_METADATA = "metadata"
_HANDOFF = "Handoff"
_HANDOFF_RECEIVER = {"to_agent"}
_EMPTY = '""'
_OPERATION = "gen_ai.operation.name"
_STREAMS = ('"<async_generator object ', '"<generator object ')
_RUNNER_SPANS = ("AgentRunner.run", "AgentRunner.run_streamed")
"""Spans of the OpenAI Agents SDK that run agents and are none."""
_ROLES = roles(
    tool="TOOL",
    agent="AGENT",
    model=("LLM", "CHAT_MODEL"),
    workflow="WORKFLOW",
    judge=("GUARDRAIL", "EVALUATOR"),
)


def _role(span: Span) -> SpanRole | None:
    attributes = span.attributes
    kind = attributes.text(_TYPE)
    if kind is None:
        if _is_graph(attributes) and _agent_of_graph(attributes):
            return SpanRole.AGENT
        is_outermost = attributes.get(_OPERATION) == "CHAIN" and _is_outermost_graph(attributes)
        return SpanRole.WORKFLOW if is_outermost else None
    role = _ROLES.get(kind.strip('"'))
    if role is SpanRole.MODEL and span.name.endswith(llama_index.REQUEST_PREPARATION):
        return SpanRole.OTHER
    if role is None:
        if span.name.endswith(llama_index.AGENT_STEP):
            return SpanRole.STEP
        if span.name == _HANDOFF and _receiver(attributes):
            return SpanRole.TOOL
        if _is_agent_workflow(span) or _run_in_graph(span) is not None:
            return SpanRole.AGENT
        return SpanRole.WORKFLOW if _is_outermost_graph(attributes) else SpanRole.OTHER
    if role is not SpanRole.AGENT:
        return role
    # An agent's span only runs agents, or holds several runs together, where it is given nothing.
    holds_runs = span.name in _RUNNER_SPANS or (
        attributes.get(_INPUTS) == _EMPTY and attributes.get(_OUTPUTS) in (None, _EMPTY)
    )
    return SpanRole.WORKFLOW if holds_runs else role


def _tool(span: Span) -> ToolReading:
    attributes = span.attributes
    if span.name == _HANDOFF:
        receiver = _receiver(attributes)
        if receiver:
            return ToolReading(name=f"handoff to {receiver}", category=CallCategory.HANDOFF)
    opened = first_result(attributes, (_OUTPUTS,))
    # A span may describe the tool as the model was shown it; else the span's name is the tool's.
    name = first_text(attributes, ("name",)).strip('"') if "description" in attributes else ""
    return ToolReading(
        name=name,
        inferred_name=span.name,
        call_id=opened.call_id,
        arguments=_arguments(attributes),
        result=opened.result,
        error=opened.error,
        category=handoff_or_function(name) if name else transfer_or_function(span.name),
    )


def _agent(span: Span) -> AgentReading:
    attributes = span.attributes
    if _TYPE not in attributes:
        return AgentReading(name=_agent_of_graph(attributes), session=_session(attributes))
    role = _role(span)
    if role is SpanRole.STEP:
        step = decode_arguments(attributes.get(_INPUTS)).value
        return AgentReading(name=text_at(step, "ev", "current_agent_name"))
    in_graph = _run_in_graph(span)
    answer = first_output(attributes, (_OUTPUTS,))
    is_nameless = in_graph is not None or span.name in GENERIC_CHAIN_NAMES or _is_agent_workflow(span)
    name = span.name if role is SpanRole.AGENT and not _is_agent_workflow(span) else ""
    return AgentReading(
        name=name if in_graph is None else in_graph,
        inferred_name="" if is_nameless else span.name,
        session=_session(attributes),
        input=first_input(attributes, (_INPUTS,)),
        # Of some runs there is only the type of the answer.
        output=ABSENT if object_at(answer.value).keys() == {"output_type"} else answer,
    )


def _conversation(span: Span) -> Conversation:
    attributes = span.attributes
    # Of a stream there is only the object.
    is_stream = (attributes.text(_OUTPUTS) or "").startswith(_STREAMS)
    return _messages_before_stream(span) if is_stream else _messages_of_model(span)


def _receiver(attributes: Attributes) -> str:
    """The agent that a handoff passes the conversation on to, or the empty text."""
    outputs = object_at(first_arguments(attributes, (_OUTPUTS,)).value)
    return text_at(outputs, "to_agent") if outputs.keys() == _HANDOFF_RECEIVER else ""


def _is_graph(attributes: Attributes) -> bool:
    """Whether a span of the GenAI conventions is a graph's run: its nodes have no messages of their own."""
    return attributes.get(_OPERATION) == "CHAIN" and (
        "gen_ai.input.messages" in attributes or not _metadata(attributes, langgraph.NODE)
    )


def _is_agent_workflow(span: Span) -> bool:
    """Whether a chain is an agent's run as a workflow, known by its class or its output."""
    if span.attributes.get(_TYPE) not in ("CHAIN", '"CHAIN"') or not span.name.endswith(".run"):
        return False
    return span.name in llama_index.AGENT_WORKFLOW_SPANS or llama_index.AGENT_IN_STEP in (
        span.attributes.text(_OUTPUTS) or ""
    )


def _arguments(attributes: Attributes) -> DecodedValue:
    """The arguments, outside the record of the call where the tool has its own name and parameters."""
    decoded = first_arguments(attributes, (_INPUTS,))
    keywords = value_at(decoded.value, "kwargs")
    properties = value_at(first_arguments(attributes, ("parameters",)).value, "properties")
    if (
        len(object_at(decoded.value)) != 1
        or not isinstance(properties, dict)
        or not isinstance(keywords, dict)
        or "kwargs" in properties
    ):
        return decoded
    return value_of(given_keywords(keywords, properties))


def _metadata(attributes: Attributes, word: str) -> JsonObject:
    """The metadata that the framework's callbacks carry, if `word` is in them."""
    metadata = attributes.text(_METADATA) or ""
    return object_at(decode_arguments(metadata).value) if word in metadata else {}


def _run_in_graph(span: Span) -> str | None:
    """The agent whose run a graph's span is, None for a step of a graph and for what is in none."""
    attributes = span.attributes
    metadata = _metadata(attributes, langgraph.NODE) or _metadata(attributes, langgraph.AGENT)
    texts = langgraph.texts_of(metadata)
    return langgraph.agent_of(span.name, texts, lambda: attributes.text(_OUTPUTS)) if metadata else None


_messages_of_model = model_messages((_INPUTS,), (_OUTPUTS,), role=_role)
_messages_before_stream = model_messages((_INPUTS,), role=_role)


def _is_outermost_graph(attributes: Attributes) -> bool:
    return langgraph.is_graph(_metadata(attributes, langgraph.INTEGRATION))


def _agent_of_graph(attributes: Attributes) -> str:
    return text_at(_metadata(attributes, langgraph.AGENT), langgraph.AGENT)


def _session(attributes: Attributes) -> str:
    metadata = _metadata(attributes, "_id")
    return text_at(metadata, "session_id") or text_at(metadata, "thread_id")


DIALECT = Dialect("mlflow", (_TYPE, _METADATA), _role, _tool, _agent, _conversation, rank=60)
