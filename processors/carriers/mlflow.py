"""MLflow tracing in its native form: `mlflow.*` attributes whose values are all JSON, texts in quotes.

Where it writes the GenAI conventions instead, it names no agent but in the metadata of a graph's run.
"""

from processors.frameworks import langgraph, llama_index
from processors.model import ABSENT, CallCategory, DecodedValue, JsonObject, decode_arguments, value_of
from processors.shapes.attribute_reading import first_arguments, first_result, first_text, given_keywords
from processors.shapes.chat_envelope import decode_output, first_input
from processors.shapes.dialect import AgentReading, Conversation, Dialect, SpanRole, ToolReading, roles
from processors.shapes.known_names import GENERIC_CHAIN_NAMES, HANDOFF_TOOL_NAMES, HANDOFF_TOOL_PREFIXES
from processors.shapes.members import object_at, text_at, value_at
from processors.shapes.messages import read_messages, read_model_response
from processors.spans import Attributes, AttributeValue, Span

_TYPE = "mlflow.spanType"
_INPUTS = "mlflow.spanInputs"
_OUTPUTS = "mlflow.spanOutputs"
_METADATA = "metadata"
_TOOL_NAME = "name"
_HANDOFF = "Handoff"
_HANDOFF_RECEIVER = {"to_agent"}
_TYPE_OF_OUTPUT = {"output_type"}
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
    return SpanRole.WORKFLOW if role is SpanRole.AGENT and _only_holds_runs(span) else role


def _tool(span: Span) -> ToolReading:
    attributes = span.attributes
    if span.name == _HANDOFF:
        receiver = _receiver(attributes)
        if receiver:
            return ToolReading(name=f"handoff to {receiver}", category=CallCategory.HANDOFF)
    opened = first_result(attributes, (_OUTPUTS,))
    name = _name_of_shown_tool(attributes)
    return ToolReading(
        name=name,
        inferred_name=span.name,
        call_id=opened.call_id,
        arguments=_arguments(attributes),
        result=opened.result,
        error=opened.error,
        category=CallCategory.HANDOFF if _is_handoff(name, span.name) else CallCategory.FUNCTION,
    )


def _agent(span: Span) -> AgentReading:
    attributes = span.attributes
    if _TYPE not in attributes:
        return AgentReading(name=_agent_of_graph(attributes), session=_session(attributes))
    role = _role(span)
    if role is SpanRole.STEP:
        return AgentReading(name=_agent_of_step(attributes))
    in_graph = _run_in_graph(span)
    is_nameless = in_graph is not None or span.name in GENERIC_CHAIN_NAMES or _is_agent_workflow(span)
    name = span.name if role is SpanRole.AGENT and not _is_agent_workflow(span) else ""
    return AgentReading(
        name=name if in_graph is None else in_graph,
        inferred_name="" if is_nameless else span.name,
        session=_session(attributes),
        input=first_input(attributes, (_INPUTS,)),
        output=_made(attributes),
    )


def _conversation(span: Span) -> Conversation:
    attributes = span.attributes
    if _role(span) is not SpanRole.MODEL:
        return Conversation()
    return Conversation(
        lambda: read_messages(attributes.get(_INPUTS), "user"),
        lambda: read_model_response(_answered(attributes)),
    )


def _only_holds_runs(span: Span) -> bool:
    """Whether an agent's span only runs agents, or holds several runs together: what is given nothing."""
    attributes = span.attributes
    if span.name in _RUNNER_SPANS:
        return True
    return attributes.get(_INPUTS) == _EMPTY and attributes.get(_OUTPUTS) in (None, _EMPTY)


def _made(attributes: Attributes) -> DecodedValue:
    """What the run answered; of some runs there is only of which type the answer is."""
    if _OUTPUTS not in attributes:
        return ABSENT
    answer = decode_output(attributes.get(_OUTPUTS))
    return ABSENT if object_at(answer.value).keys() == _TYPE_OF_OUTPUT else answer


def _receiver(attributes: Attributes) -> str:
    """The agent that a handoff passes the conversation on to, or the empty text."""
    outputs = object_at(first_arguments(attributes, (_OUTPUTS,)).value)
    return text_at(outputs, "to_agent") if outputs.keys() == _HANDOFF_RECEIVER else ""


def _answered(attributes: Attributes) -> AttributeValue:
    """What a model answered; of a stream there is only the object."""
    outputs = attributes.get(_OUTPUTS)
    return None if isinstance(outputs, str) and outputs.startswith(_STREAMS) else outputs


def _is_graph(attributes: Attributes) -> bool:
    """Whether a span of the GenAI conventions is a graph's run: its nodes have no messages of their own."""
    if attributes.get(_OPERATION) != "CHAIN":
        return False
    return "gen_ai.input.messages" in attributes or not _metadata(attributes, langgraph.NODE)


def _is_agent_workflow(span: Span) -> bool:
    """Whether a chain is an agent's run as a workflow, known by its class or by what it made."""
    if span.attributes.get(_TYPE) not in ("CHAIN", '"CHAIN"') or not span.name.endswith(".run"):
        return False
    return span.name in llama_index.AGENT_WORKFLOW_SPANS or llama_index.AGENT_IN_STEP in (
        span.attributes.text(_OUTPUTS) or ""
    )


def _agent_of_step(attributes: Attributes) -> str:
    """The agent in the event that a step was given."""
    return text_at(decode_arguments(attributes.get(_INPUTS)).value, "ev", "current_agent_name")


def _name_of_shown_tool(attributes: Attributes) -> str:
    """The tool's name where its span describes it as the model was shown it; else the span's name is it."""
    if _TOOL_NAME not in attributes or "description" not in attributes:
        return ""
    return first_text(attributes, (_TOOL_NAME,)).strip('"')


def _is_handoff(name: str, span_name: str) -> bool:
    return name in HANDOFF_TOOL_NAMES or (name or span_name).startswith(HANDOFF_TOOL_PREFIXES)


def _arguments(attributes: Attributes) -> DecodedValue:
    """The arguments, outside the record of the call where the tool tells its own name and parameters."""
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
    metadata = attributes.text(_METADATA)
    if metadata is None or word not in metadata:
        return {}
    return object_at(decode_arguments(metadata).value)


def _run_in_graph(span: Span) -> str | None:
    """The agent whose run a graph's span is, None for a step of a graph and for what is in none."""
    attributes = span.attributes
    metadata = _metadata(attributes, langgraph.NODE) or _metadata(attributes, langgraph.AGENT)
    return (
        langgraph.agent_of(span.name, langgraph.texts_of(metadata), attributes.text(_OUTPUTS))
        if metadata
        else None
    )


def _is_outermost_graph(attributes: Attributes) -> bool:
    return langgraph.is_graph(_metadata(attributes, langgraph.INTEGRATION))


def _agent_of_graph(attributes: Attributes) -> str:
    return text_at(_metadata(attributes, langgraph.AGENT), langgraph.AGENT)


def _session(attributes: Attributes) -> str:
    metadata = _metadata(attributes, "_id")
    return text_at(metadata, "session_id") or text_at(metadata, "thread_id")


DIALECT = Dialect("mlflow", (_TYPE, _METADATA), _role, _tool, _agent, _conversation, rank=60)
