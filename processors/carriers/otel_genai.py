"""OpenTelemetry GenAI semantic conventions, in all generations that are still sent.

Messages travel as attributes (1.37 and newer), as one event per message (before 1.37), or in an
`operation.details` event; arguments and results likewise. MCP client and server spans are of the same
family, and so are the names that emitters used before a standard place existed.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from processors.frameworks import langgraph, litellm
from processors.model import (
    ABSENT,
    CallCategory,
    DecodedValue,
    ValueState,
    decode_result,
    plain_object,
)
from processors.shapes import known_names
from processors.shapes.attribute_reading import (
    OPERATION,
    after_prefix,
    better,
    first_arguments,
    first_result,
    first_text,
    operation_name,
)
from processors.shapes.available_tools import read_tool_definitions, read_tool_schema
from processors.shapes.content_records import ContentRecords
from processors.shapes.dialect import (
    AgentReading,
    AwaitedCall,
    Conversation,
    Dialect,
    SpanRole,
    ToolReading,
    in_messages,
)
from processors.shapes.dialect_functions import roles
from processors.shapes.members import failure, list_at, object_at, objects_at
from processors.shapes.messages import CallRequest
from processors.shapes.record_messages import MESSAGE_RECORDS, join_messages
from processors.shapes.result_envelope import OUTPUT, is_bare, open_result
from processors.shapes.span_event_messages import call_in_events, messages_in_attributes, messages_in_events
from processors.spans import Attributes, Span, encoded_text, short_text

_ACTIVITY = "workflow.activity"
"""On spans that a durable workflow makes around its activities: what runs within has spans of its own."""
_MODEL_OPERATIONS = (
    "chat", "chat.completions", "chat.streaming_completions", "completion", "generate_content", "message",
    "responses", "text.completions", "text.streaming_completions", "text_completion", "text_completions",
)  # fmt: skip
_MODEL_NAMES = ("gen_ai.request.model", "gen_ai.response.model")
_HANDOFF_OPERATIONS = ("agent_handoff", "handoff")
_GUARDRAIL_OPERATIONS = ("apply_guardrail", "guard", "guardrail")
_OUTPUT_MESSAGES = "gen_ai.output.messages"
_APPROVAL = "function_approval_request"
_STRUCTURED_OUTPUT = "execute_structured_output"
_ROLES = roles(
    tool=("execute_tool", *_HANDOFF_OPERATIONS),
    agent=("invoke_agent", _STRUCTURED_OUTPUT),
    workflow="invoke_workflow",
    model=_MODEL_OPERATIONS,
    judge=_GUARDRAIL_OPERATIONS,
)

_TOOL_NAMES = ("gen_ai.tool.name", "mcp.tool.name")
_ARGUMENTS = ("gen_ai.tool.call.arguments", "mcp.tool.arguments", "gen_ai.tool.input", "gen_ai.tool.args")
_RESULTS = ("gen_ai.tool.call.result", "mcp.tool.result", "gen_ai.tool.output", "gen_ai.tool.result")
_AGENT_NAME = ("gen_ai.agent.name",)
_HANDOFF_SOURCE = "gen_ai.agent.source"
_CUT_RESULT = "ag2.tool.call.result.truncated"
_GRAPH_NODE = "metadata.langgraph_node"
_FLOW_PROVIDER = "crewai"
_AGENTS_ALONE = "opentelemetry.instrumentation.genai.smolagents"
"""Makes no span of a call, and none of a model that is reached over its provider's client."""
_TOOL_KEYS = frozenset(
    {
        *_TOOL_NAMES, *_ARGUMENTS, *_RESULTS, _CUT_RESULT, _HANDOFF_SOURCE, "gen_ai.agent.name",
        "gen_ai.completion", "gen_ai.prompt", "gen_ai.task.status", "gen_ai.tool.call.id",
        "gen_ai.tool.status", "gen_ai.tool.type", "langsmith.span.kind", "mcp.method.name",
    }
)  # fmt: skip
_KEYS_OF_OTHER_CALLS = _TOOL_KEYS.difference(
    _ARGUMENTS, _RESULTS, {"gen_ai.tool.name", "gen_ai.tool.call.id", "gen_ai.tool.type", "gen_ai.agent.name"}
)
"""Keys that bring in what only `tool` can read."""
_EXECUTE_TOOL = encoded_text("execute_tool")
_PRESENT = ValueState.PRESENT
_TOOL_SPAN_PREFIXES = (
    "execute_tool ", "MCP send tools/call ", "tools/call ", "running tool: ", "running tool ",
)  # fmt: skip
_AGENT_SPAN_PREFIXES = ("invoke_agent ", "invoke_workflow ")
_TOOL_DEFINITIONS = (
    "gen_ai.tool.definitions",
    "model_request_parameters",
    "gen_ai.agent.tools",
    "spring.ai.model.request.tool.names",
)
_TOOL_SCHEMA = "gen_ai.tool.json_schema"


class _Plan(NamedTuple):
    """Which of the attributes that a tool span may have are there, in the order in which they are tried."""

    names: Sequence[str]
    arguments: Sequence[str]
    results: Sequence[str]


_MAX_NAMED = 256
"""Bytes of an encoded name with its type that are looked up."""


@lru_cache(maxsize=1024)
def _plan(present: frozenset[str]) -> _Plan:
    return _Plan(
        *(tuple(key for key in keys if key in present) for keys in (_TOOL_NAMES, _ARGUMENTS, _RESULTS))
    )


def _role(span: Span) -> SpanRole | None:
    attributes = span.attributes
    operation = operation_name(attributes)
    if operation in _ROLES:
        if _ACTIVITY in attributes:
            return None
        if operation == "invoke_agent":
            return _role_of_agent(span)
        if operation == "invoke_workflow" and "gen_ai.agno.team.agents" in attributes:
            return SpanRole.AGENT
        if _ROLES[operation] is SpanRole.MODEL and litellm.is_borrowed(span):
            return _role_of_borrowed(span)
        return _ROLES[operation]
    if "mcp.method.name" in attributes:
        return SpanRole.TOOL if attributes.get("mcp.method.name") == "tools/call" else SpanRole.OTHER
    if OPERATION in attributes:
        if litellm.is_borrowed(span):
            return _role_of_borrowed(span)
        # Emitters may name operations as they like; what shows a model's answer is a request to it.
        is_answer = _OUTPUT_MESSAGES in attributes and any(key in attributes for key in _MODEL_NAMES)
        return SpanRole.MODEL if is_answer else SpanRole.OTHER
    if "gen_ai.tool.name" not in attributes:
        return SpanRole.MODEL
    return SpanRole.OTHER if known_names.is_around_call(span) else SpanRole.TOOL


def _plan_tool(present: frozenset[str]) -> Callable[[Span], ToolReading] | None:
    """For calls of a function that carry its name, and each value under one key."""
    plan = _plan(present)
    if (
        not present.isdisjoint(_KEYS_OF_OTHER_CALLS)
        or not present >= {OPERATION, "gen_ai.tool.name"}
        or len(plan.arguments) > 1
        or len(plan.results) > 1
    ):
        return None
    (arguments_key,), (result_key,) = plan.arguments or ("",), plan.results or ("",)
    has_id, has_type = "gen_ai.tool.call.id" in present, "gen_ai.tool.type" in present
    has_agent = "gen_ai.agent.name" in present

    def read(span: Span) -> ToolReading:
        encoded = span.by_key
        named = encoded["gen_ai.tool.name"]
        typed = encoded["gen_ai.tool.type"] if has_type else b""
        if len(named) + len(typed) > _MAX_NAMED:
            return _tool(span)
        name, category, is_synthetic = _known_by_name(named, typed)
        call_id = short_text(encoded["gen_ai.tool.call.id"]) if has_id else ""
        arguments = plain_object(encoded[arguments_key] if arguments_key else None)
        if arguments is None:
            arguments = first_arguments(span.attributes, plan.arguments)
        result = plain_object(encoded[result_key] if result_key else None)
        if result is None or not isinstance(result.value, dict) or not is_bare(result.value):
            opened = first_result(span.attributes, plan.results) if result is None else open_result(result)
            result, result_id, error = opened
        else:
            result_id, error = "", None
        if not name or (has_id and not call_id) or encoded[OPERATION] != _EXECUTE_TOOL:
            return _tool(span)
        is_whole = call_id and arguments.state is _PRESENT and result.state is _PRESENT
        if not is_whole and span.has_events:
            return _tool(span)
        agent_name = short_text(encoded["gen_ai.agent.name"]) if has_agent else ""
        if has_agent and not agent_name:
            agent_name = first_text(span.attributes, _AGENT_NAME)
        return ToolReading(
            name=name,
            call_id=call_id or result_id,
            arguments=arguments,
            result=result,
            error=error,
            category=category,
            agent_name=agent_name,
            is_synthetic=is_synthetic,
        )

    return read


def _tool(span: Span) -> ToolReading:
    attributes = span.attributes
    present = attributes.among(_TOOL_KEYS)
    operation = operation_name(attributes)
    plan = _plan(present)
    name = first_text(attributes, plan.names)
    if not name and (operation in _HANDOFF_OPERATIONS or _HANDOFF_SOURCE in present):
        name = _handoff(attributes)
    arguments = first_arguments(attributes, plan.arguments)
    opened = first_result(attributes, plan.results)
    result, error = opened.result, opened.error
    if _CUT_RESULT in present and result.state is ValueState.PRESENT:
        result = DecodedValue(None, result.text, ValueState.TRUNCATED)
    call_id = first_text(attributes, ("gen_ai.tool.call.id",))
    is_whole = call_id and arguments.state is _PRESENT and result.state is _PRESENT
    if not is_whole and span.has_events:
        event_arguments, event_result, event_id = call_in_events(span)
        arguments, result = better(arguments, event_arguments), better(result, event_result)
        call_id = call_id or event_id
    if operation == "execute_tool" and "langsmith.span.kind" not in present:
        if arguments.state is ValueState.ABSENT:
            arguments = first_arguments(attributes, ("gen_ai.prompt",))
        if result.state is ValueState.ABSENT:
            result = first_result(attributes, ("gen_ai.completion",), OUTPUT).result
    has_failed = attributes.get("gen_ai.tool.status") == "error"
    if has_failed or attributes.get("gen_ai.task.status") == "failure":
        error = error or failure(first_text(attributes, ("gen_ai.tool.error",)))
    is_run = operation == "invoke_agent" and _HANDOFF_SOURCE not in present and _bears_its_call(attributes)
    return ToolReading(
        name=name,
        inferred_name="" if name else after_prefix(span.name, _TOOL_SPAN_PREFIXES) or span.name,
        call_id=call_id or opened.call_id,
        arguments=arguments,
        result=result,
        error=error,
        category=CallCategory.AGENT if is_run else _category(attributes, present, name, operation),
        agent_name="" if is_run else first_text(attributes, _AGENT_NAME),
        is_synthetic=name in known_names.SYNTHETIC_TOOL_NAMES,
        runs_agent=is_run,
    )


def _agent(span: Span) -> AgentReading:
    attributes = span.attributes
    name = _agent_that_is_called(span) or first_text(attributes, _AGENT_NAME)
    inferred = "" if name else after_prefix(span.name, _AGENT_SPAN_PREFIXES)
    if inferred and inferred == attributes.get("gen_ai.request.model"):
        inferred = ""
    return AgentReading(
        name or first_text(attributes, ("gen_ai.workflow.name",)),
        inferred,
        id=first_text(attributes, ("gen_ai.agent.id",)),
        version=first_text(attributes, ("gen_ai.agent.version",)),
        session=first_text(attributes, ("gen_ai.conversation.id",)),
        input=in_messages,
        output=_data_in_choice(span) if operation_name(attributes) == _STRUCTURED_OUTPUT else in_messages,
        hides_calls=_hides_calls(span) or litellm.is_borrowed(span),
        awaited=_awaited(span),
    )


def _conversation(span: Span) -> Conversation:
    attributes = span.attributes
    if "gen_ai.input.messages" in attributes or _OUTPUT_MESSAGES in attributes:
        conversation = messages_in_attributes(attributes)
    else:
        conversation = messages_in_events(span) if span.has_events else Conversation()
    if any(key in attributes for key in _TOOL_DEFINITIONS):
        conversation.tools = lambda: next(
            filter(None, (read_tool_definitions(attributes.get(key)) for key in _TOOL_DEFINITIONS)), {}
        )
    elif _TOOL_SCHEMA in attributes:
        conversation.tools = lambda: read_tool_schema(attributes, "gen_ai.tool.name", _TOOL_SCHEMA)
    return conversation


def _awaited(span: Span) -> Mapping[str, AwaitedCall]:
    """The calls for which an agent of Microsoft Agent Framework requests approval in its answer."""
    if _APPROVAL.encode() not in span.by_key.get(_OUTPUT_MESSAGES, b""):
        return {}
    awaited: dict[str, AwaitedCall] = {}
    for message in list_at(decode_result(span.attributes.get(_OUTPUT_MESSAGES)).value):
        for part in objects_at(message, "parts"):
            call = object_at(part, "function_call")
            if part.get("type") == _APPROVAL and call.get("call_id"):
                name, call_id = str(call.get("name", "")), str(call["call_id"])
                request = CallRequest(name, call_id, call.get("arguments"), "arguments" in call)
                awaited[call_id] = AwaitedCall(request, _APPROVAL)
    return awaited


def _role_of_agent(span: Span) -> SpanRole:
    """What an `invoke_agent` span stands for: not always the run of an agent."""
    attributes = span.attributes
    if span.envelope.scope_name in langgraph.SCOPES or _GRAPH_NODE in attributes:
        name = attributes.text("gen_ai.agent.name") or ""
        if (name in langgraph.STEP_NAMES or langgraph.is_chain_part(name)) and not _agent_that_is_called(
            span
        ):
            return SpanRole.OTHER
    if span.envelope.scope_name == known_names.MISTRAL_SCOPE:
        return SpanRole.MODEL
    if _HANDOFF_SOURCE in attributes or _bears_its_call(attributes):
        return SpanRole.TOOL
    if "gen_ai.guardrail.triggered" in attributes:
        return SpanRole.JUDGE
    # Each step of a flow is reported as an agent without a name, and an agent itself runs as a flow.
    if attributes.get("gen_ai.provider.name") == _FLOW_PROVIDER and "gen_ai.agent.name" not in attributes:
        return SpanRole.OTHER
    # A node of a graph is reported as an agent whose id is its name; the run is the graph's.
    is_node = attributes.get("gen_ai.provider.name") == "langgraph" and "gen_ai.agent.id" in attributes
    if is_node and attributes.get("gen_ai.agent.id") == attributes.get("gen_ai.agent.name"):
        return SpanRole.OTHER
    return SpanRole.AGENT


def _bears_its_call(attributes: Attributes) -> bool:
    """Whether a run's span also reports the call that started the run, for which there is no other span."""
    return "gen_ai.tool.call.id" in attributes and "gen_ai.tool.name" in attributes


def _data_in_choice(span: Span) -> DecodedValue:
    """The answer as data, in place of a message."""
    for event in span.events if span.has_events else ():
        if event.name == "gen_ai.choice" and event.attributes.get("message") is not None:
            return decode_result(event.attributes.get("message"))
    return ABSENT


def _role_of_borrowed(span: Span) -> SpanRole | None:
    """What a span was before model calls were written on it, by its name."""
    return SpanRole.AGENT if span.name.startswith(_AGENT_SPAN_PREFIXES) else None


def _hides_calls(span: Span) -> bool:
    """Whether calls of the run may have no span, or are reported without their names."""
    if span.attributes.get("gen_ai.provider.name") == _FLOW_PROVIDER:
        return True
    if span.envelope.scope_name == _AGENTS_ALONE:
        return True
    answer = span.by_key.get(_OUTPUT_MESSAGES, b"")
    return b'"tool_call"' in answer and b'"name"' not in answer


def _agent_that_is_called(span: Span) -> str:
    """The agent that a step of a graph runs without a span of its own: the node is named after it."""
    if _GRAPH_NODE not in span.by_key or span.attributes.get("gen_ai.agent.name") != langgraph.AGENT_CALLER:
        return ""
    return span.attributes.text(_GRAPH_NODE) or ""


def _handoff(attributes: Attributes) -> str:
    """The name of the call that passes the conversation on, if its receiver is known."""
    keys = _AGENT_NAME if _HANDOFF_SOURCE in attributes else ("gen_ai.handoff.to_agent",)
    receiver = first_text(attributes, keys)
    return f"handoff to {receiver}" if receiver else ""


def _category(attributes: Attributes, present: frozenset[str], name: str, operation: str) -> CallCategory:
    if operation in _HANDOFF_OPERATIONS or _HANDOFF_SOURCE in present:
        return CallCategory.HANDOFF
    if "mcp.method.name" not in present and "mcp.tool.name" not in present:
        return _category_of_function(name, attributes.text("gen_ai.tool.type") or "")
    if name.startswith(known_names.HANDOFF_TOOL_PREFIXES):
        return CallCategory.HANDOFF
    return CallCategory.FINAL_ANSWER if name in known_names.FINAL_ANSWER_TOOL_NAMES else CallCategory.MCP


def _category_of_function(name: str, tool_type: str) -> CallCategory:
    category = known_names.category_by_name(name)
    if category is not CallCategory.FUNCTION:
        return category
    if tool_type in known_names.AGENT_TOOL_TYPES:
        return CallCategory.AGENT
    return CallCategory.RETRIEVAL if tool_type in known_names.RETRIEVAL_TOOL_TYPES else category


@lru_cache(maxsize=1024)
def _known_by_name(name: bytes, tool_type: bytes) -> tuple[str, CallCategory, bool]:
    """Of a function, by its encoded name and type: its name, its category, and whether it is made up.

    Both are to be short, since they are remembered.
    """
    text = short_text(name)
    return text, _category_of_function(text, short_text(tool_type)), text in known_names.SYNTHETIC_TOOL_NAMES


DIALECT = Dialect(
    "otel_genai",
    (OPERATION, "gen_ai.tool.name", "mcp.method.name", "gen_ai.request.model"),
    _role,
    _tool,
    _agent,
    _conversation,
    rank=10,
    plan_tool=_plan_tool,
    tool_keys=(OPERATION, *_TOOL_KEYS),
    answer_key=_OUTPUT_MESSAGES,
)

RECORDS = ContentRecords(join_messages, MESSAGE_RECORDS)
