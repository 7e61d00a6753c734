"""OpenInference: `openinference.span.kind` with flattened messages and input and output values.

What its instrumentors have in common; where they differ, the shape of the values tells.
"""

from typing import Final

from processors.agent_run import CallCategory, ValueState
from processors.attribute_reading import better, first_result, first_text
from processors.attributes import Attributes
from processors.available_tools import read_tool_definitions
from processors.dialect import AgentReading, Conversation, SpanRole, ToolReading
from processors.frameworks_openinference import OPENINFERENCE_FRAMEWORKS
from processors.json_value import JsonObject, JsonValue
from processors.messages import ChatMessage, add_request, flattened_messages, last_text, read_messages
from processors.placeholder_names import (
    AGENT_WORKFLOW_SPANS,
    FINAL_ANSWER_TOOL_NAMES,
    GENERIC_CHAIN_NAMES,
    HANDOFF_TOOL_NAMES,
    HANDOFF_TOOL_PREFIXES,
    SYNTHETIC_TOOL_NAMES,
)
from processors.printed_messages import agent_in_printed_step, is_printed_result
from processors.recorded_call import given_keywords
from processors.recorded_run import recorded_input, recorded_output
from processors.result_envelope import CONTENT, RESPONSE
from processors.span import Span
from processors.values import (
    ABSENT,
    DecodedValue,
    decode_arguments,
    json_text,
    json_value,
    parse_json,
    text_value,
)

_KIND = "openinference.span.kind"
_TOOL_NAMES = "smolagents.tools_names"
_MANAGED_AGENTS = "smolagents.managed_agents."
_RESULT_ENVELOPES = CONTENT | RESPONSE
_AGENT_SPAN_PREFIXES = ("invoke_agent ",)
_AGENT_SPAN_SUFFIXES = (".run", "._execute_core", ".kickoff", ".on_messages_stream", ".agent")
_RUN = ".run"
_AGENT_STEP = ".setup_agent"
_AGENT_STEPS = '"setup_agent": {'
_GRAPH_METADATA = ("langgraph_node", "ls_integration", "lc_agent_name")
_POSITIONAL_KEYS = ({"args", "kwargs"}, {"args", "kwargs", "sanitize_inputs_outputs"})


class _OpenInference:
    name: Final = "openinference"
    rank: Final = 50
    keys: Final = (_KIND,)
    frameworks: Final = OPENINFERENCE_FRAMEWORKS

    def role(self, span: Span) -> SpanRole | None:
        attributes = span.attributes
        kind = attributes.get(_KIND)
        if kind == "TOOL" or attributes.text("tool.name"):
            return SpanRole.TOOL
        if kind == "LLM":
            return SpanRole.AGENT if span.name.startswith(_AGENT_SPAN_PREFIXES) else SpanRole.MODEL
        if kind == "AGENT":
            return SpanRole.OTHER if _is_graph_node(span) else SpanRole.AGENT
        if kind == "CHAIN":
            if _graph_agent(span) == span.name or _is_agent_workflow(span):
                return SpanRole.AGENT
            if span.name.endswith(_AGENT_STEP):
                return SpanRole.STEP
        return SpanRole.OTHER

    def tool(self, span: Span) -> ToolReading:
        attributes = span.attributes
        name = first_text(attributes, ("tool.name",))
        opened = first_result(attributes, ("output.value",), _RESULT_ENVELOPES)
        arguments = _arguments(span)
        return ToolReading(
            name=name,
            inferred_name="" if name else span.name,
            call_id=first_text(attributes, _call_id_keys(attributes)) or opened.call_id,
            arguments=arguments,
            arguments_are_doubtful=_names_may_be_lost(span),
            result=opened.result,
            error=opened.error,
            category=_category(span, name),
            agent_name=first_text(attributes, ("tool.agent_role",)),
            is_synthetic=_is_true(attributes.get("tool.synthesized")) or name in SYNTHETIC_TOOL_NAMES,
        )

    def agent(self, span: Span) -> AgentReading:
        attributes = span.attributes
        name = first_text(attributes, ("agent.name", "graph.node.name", "graph.node.id")) or _graph_agent(
            span
        )
        if not name and span.name.endswith(_AGENT_STEP):
            given, made = attributes.text("input.value") or "", attributes.text("output.value") or ""
            name = agent_in_printed_step(given) or agent_in_printed_step(made)  # long ones are cut off
        metadata = _metadata(span) if "metadata" in attributes else {}
        session = first_text(attributes, ("session.id",))
        for key in ("session_id", "conversation_id", "thread_id"):
            value = metadata.get(key)
            if not session and isinstance(value, str):
                session = value
        return AgentReading(
            name=name,
            inferred_name="" if name else _name_in_span_name(span),
            id=first_text(attributes, ("agno.agent.id", "agentId")),
            session=session,
            input=self._asked(span),
            output=recorded_output(attributes),
        )

    def _asked(self, span: Span) -> DecodedValue:
        if span.attributes.get(_KIND) == "LLM":  # a run that bears its model's last request as its input
            return text_value(last_text(self.conversation(span).input, "user"))
        return recorded_input(span.attributes)

    def conversation(self, span: Span) -> Conversation:
        attributes = span.attributes
        if attributes.get(_KIND) != "LLM":
            return Conversation(read_output=lambda: _requests_of_node(span)).offering(
                lambda: read_tool_definitions(_named_tools(attributes))
            )
        return Conversation(
            lambda: read_messages(flattened_messages(attributes, "llm.input_messages."), "user"),
            lambda: read_messages(flattened_messages(attributes, "llm.output_messages."), "assistant"),
        ).offering(lambda: read_tool_definitions(_listed_tools(attributes)))


def _listed_tools(attributes: Attributes) -> list[JsonValue]:
    """The tools in `llm.tools.0.tool.json_schema` and so on: each a definition with its schema."""
    listed = flattened_messages(attributes, "llm.tools.")
    tools = [entry.get("tool") for entry in listed if isinstance(entry, dict)]
    return [tool.get("json_schema") for tool in tools if isinstance(tool, dict)]


def _named_tools(attributes: Attributes) -> list[JsonValue]:
    """The names of an agent's tools and of the agents that it may call, where its own span lists them."""
    if _TOOL_NAMES not in attributes:
        return []
    managed = flattened_messages(attributes, _MANAGED_AGENTS)
    agents = [entry.get("name") for entry in managed if isinstance(entry, dict)]
    return [json_value(attributes.get(_TOOL_NAMES)), agents]


def _call_id_keys(attributes: Attributes) -> tuple[str, ...]:
    """`tool.id` names the call, except where a decorated function names the tool by it."""
    return ("tool_call.id",) if "span_type" in attributes else ("tool.id", "tool_call.id")


def _arguments(span: Span) -> DecodedValue:
    attributes = span.attributes
    decoded = decode_arguments(attributes.get("input.value")) if "input.value" in attributes else ABSENT
    parameters = (
        decode_arguments(attributes.get("tool.parameters")) if "tool.parameters" in attributes else ABSENT
    )
    schema: JsonObject = {}
    if isinstance(parameters.value, dict):
        schema = _properties(parameters.value)
        if schema:
            parameters = ABSENT
    if decoded.state is ValueState.PRESENT and isinstance(decoded.value, dict):
        return _out_of_call_envelope(decoded, decoded.value, list(schema))
    if decoded.state is ValueState.UNPARSED and len(schema) == 1:
        named: JsonObject = {next(iter(schema)): decoded.value}
        return DecodedValue(named, json_text(named), ValueState.PRESENT)
    return better(decoded, parameters)


def _properties(parameters: JsonObject) -> JsonObject:
    """The parameters by name where `tool.parameters` holds the schema, nothing where it holds arguments."""
    properties = parameters.get("properties")
    if isinstance(properties, dict):
        return properties
    described = [
        isinstance(member, dict) and ("type" in member or "title" in member) for member in parameters.values()
    ]
    return parameters if described and all(described) else {}


def _out_of_call_envelope(decoded: DecodedValue, value: JsonObject, parameters: list[str]) -> DecodedValue:
    """Arguments recorded as a Python call: positional ones get the names of the parameters, if known."""
    keywords = value.get("kwargs")
    if not isinstance(keywords, dict):
        return decoded
    if value.keys() == {"kwargs"} and "kwargs" not in parameters:
        keywords = given_keywords(keywords, parameters)
        return DecodedValue(keywords, json_text(keywords), ValueState.PRESENT)
    positional = value.get("args")
    if value.keys() not in _POSITIONAL_KEYS or not isinstance(positional, list):
        return decoded
    arguments: JsonObject
    if len(positional) <= len(parameters):
        arguments = {**dict(zip(parameters, positional, strict=False)), **keywords}
    else:
        arguments = {"$args": positional, **keywords}
    return DecodedValue(arguments, json_text(arguments), ValueState.PRESENT)


def _names_may_be_lost(span: Span) -> bool:
    """Whether `input.value` may be the one argument itself, without its name.

    LangChain hands a tool with a single text argument the bare text, and says no media type then.
    """
    attributes = span.attributes
    return (
        "input.mime_type" not in attributes
        and "metadata" in attributes
        and _metadata_mentions(span, _GRAPH_METADATA)
    )


def _requests_of_node(span: Span) -> list[ChatMessage]:
    """The calls that a graph's tool node was given to execute."""
    given = span.attributes.get("input.value")
    if not isinstance(given, str) or '"tool_call"' not in given:
        return []
    try:
        value = parse_json(given)
    except ValueError:
        return []
    listed = value if isinstance(value, list) else [value.get("tool_call")] if isinstance(value, dict) else []
    calls = [item for item in listed if isinstance(item, dict) and item.get("type") == "tool_call"]
    if not calls or len(calls) != len(listed):
        return []
    message = ChatMessage("assistant")
    for call in calls:
        add_request(message, call)
    return [message]


def _category(span: Span, name: str) -> CallCategory:
    kind = span.attributes.get(_KIND)
    called = name or span.name
    if called in HANDOFF_TOOL_NAMES or called.startswith(HANDOFF_TOOL_PREFIXES):
        return CallCategory.HANDOFF
    if called in FINAL_ANSWER_TOOL_NAMES:
        return CallCategory.FINAL_ANSWER
    return CallCategory.RETRIEVAL if kind == "RETRIEVER" else CallCategory.FUNCTION


def _is_graph_node(span: Span) -> bool:
    """Whether an AGENT span is one step of a graph that merely has "agent" in its name."""
    if not _metadata_mentions(span, ("langgraph_node",)):
        return False
    metadata = _metadata(span)
    return metadata.get("langgraph_node") == span.name and metadata.get("lc_agent_name") != span.name


def _is_agent_workflow(span: Span) -> bool:
    """Whether a CHAIN span is an agent's run as a workflow: by its class, else by what it was given."""
    if span.name in AGENT_WORKFLOW_SPANS:
        return True
    if not span.name.endswith(_RUN):
        return False
    given, made = span.attributes.text("input.value") or "", span.attributes.text("output.value") or ""
    return _AGENT_STEPS in given or is_printed_result(made)


def _graph_agent(span: Span) -> str:
    if not _metadata_mentions(span, ("lc_agent_name",)):
        return ""
    name = _metadata(span).get("lc_agent_name")
    return name if isinstance(name, str) else ""


def _metadata_mentions(span: Span, words: tuple[str, ...]) -> bool:
    metadata = span.attributes.get("metadata")
    return isinstance(metadata, str) and any(word in metadata for word in words)


def _metadata(span: Span) -> JsonObject:
    decoded = decode_arguments(span.attributes.get("metadata"))
    return decoded.value if isinstance(decoded.value, dict) else {}


def _name_in_span_name(span: Span) -> str:
    name = span.name
    if span.attributes.get(_KIND) == "CHAIN":
        return "" if "." in name or name in GENERIC_CHAIN_NAMES else name
    for prefix in _AGENT_SPAN_PREFIXES:
        name = name.removeprefix(prefix)
    if name.startswith("agent_run [") and name.endswith("]"):
        return name[len("agent_run [") : -1]
    role, _, task = name.partition(".")
    if task.endswith(".execute"):
        return role
    for suffix in _AGENT_SPAN_SUFFIXES:
        name = name.removesuffix(suffix)
    return name


def _is_true(flag: object) -> bool:
    if isinstance(flag, str):
        return flag.strip().lower() in ("true", "1", "yes")
    return bool(flag)


DIALECT = _OpenInference()
