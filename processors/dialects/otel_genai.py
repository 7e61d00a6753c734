"""OpenTelemetry GenAI semantic conventions, in all generations that are still sent.

Messages travel as attributes (1.37 and newer), as one event per message (before 1.37), or in an
`operation.details` event; arguments and results likewise. MCP client and server spans are of the same
family, and so are the names that emitters used before a standard place existed.
"""

from collections.abc import Iterable
from typing import Final

from processors.agent_run import CallCategory, ToolError, ValueState
from processors.attribute_reading import better, first_arguments, first_result, first_text
from processors.attributes import Attributes
from processors.chat_envelope import decode_output
from processors.dialect import AgentReading, Conversation, SpanRole, ToolReading
from processors.messages import ChatMessage, last_text, read_message, read_messages
from processors.placeholder_names import (
    AGENT_TOOL_TYPES,
    FINAL_ANSWER_TOOL_NAMES,
    HANDOFF_TOOL_PREFIXES,
    RETRIEVAL_TOOL_TYPES,
    SYNTHETIC_TOOL_NAMES,
)
from processors.result_envelope import BLOCKS, OUTPUT, open_result
from processors.span import Span
from processors.values import ABSENT, DecodedValue, decode_arguments, decode_result, json_value

_OPERATION = "gen_ai.operation.name"
_MODEL_OPERATIONS = frozenset({"chat", "generate_content", "text_completion"})
_HANDOFF_OPERATIONS = frozenset({"agent_handoff", "handoff"})
_ROLES = {
    "execute_tool": SpanRole.TOOL,
    "invoke_agent": SpanRole.AGENT,
    "invoke_workflow": SpanRole.WORKFLOW,
    **dict.fromkeys(_MODEL_OPERATIONS, SpanRole.MODEL),
    **dict.fromkeys(_HANDOFF_OPERATIONS, SpanRole.TOOL),
}

_TOOL_NAMES = ("gen_ai.tool.name", "mcp.tool.name")
_ARGUMENTS = (
    "gen_ai.tool.call.arguments",
    "gcp.vertex.agent.tool_call_args",
    "tool_arguments",
    "mcp.tool.arguments",
    "gen_ai.tool.input",
    "gen_ai.tool.args",
)
_RESULTS = (
    "gen_ai.tool.call.result",
    "gcp.vertex.agent.tool_response",
    "tool_response",
    "mcp.tool.result",
    "gen_ai.tool.output",
    "gen_ai.tool.result",
)
_TOOL_SPAN_PREFIXES = (
    "execute_tool ",
    "MCP send tools/call ",
    "tools/call ",
    "running tool: ",
    "running tool ",
)
_AGENT_SPAN_PREFIXES = ("invoke_agent ", "invoke_workflow ")
_DETAILS_EVENT = "gen_ai.client.inference.operation.details"
_MESSAGE_EVENTS = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
_ALL_MESSAGES = "pydantic_ai.all_messages"
_NEW_MESSAGE_INDEX = "pydantic_ai.new_message_index"


class _OtelGenAI:
    name: Final = "otel_genai"
    rank: Final = 10
    keys: Final = (_OPERATION, "gen_ai.tool.name", "mcp.method.name", "gen_ai.request.model")

    def role(self, span: Span) -> SpanRole | None:
        attributes = span.attributes
        operation = attributes.get(_OPERATION)
        if isinstance(operation, str) and operation in _ROLES:
            return _ROLES[operation]
        if "mcp.method.name" in attributes:
            return SpanRole.TOOL if attributes.get("mcp.method.name") == "tools/call" else SpanRole.OTHER
        if operation is not None:
            return SpanRole.OTHER
        return SpanRole.TOOL if "gen_ai.tool.name" in attributes else SpanRole.MODEL

    def tool(self, span: Span) -> ToolReading:
        attributes = span.attributes
        operation = attributes.text(_OPERATION)
        name = first_text(attributes, _TOOL_NAMES)
        arguments = first_arguments(attributes, _ARGUMENTS)
        opened = first_result(attributes, _RESULTS)
        result, call_id = opened.result, first_text(attributes, ("gen_ai.tool.call.id",))
        error = opened.error
        if span.has_events and (
            arguments.state is not ValueState.PRESENT or result.state is not ValueState.PRESENT or not call_id
        ):
            from_events, result_event, event_id = _tool_events(span)
            arguments = better(arguments, from_events)
            result = better(result, result_event)
            call_id = call_id or event_id
        if operation == "execute_tool":
            if arguments.state is ValueState.ABSENT and "gen_ai.prompt" in attributes:
                arguments = decode_arguments(attributes.get("gen_ai.prompt"))
            if result.state is ValueState.ABSENT and "gen_ai.completion" in attributes:
                result = first_result(attributes, ("gen_ai.completion",), OUTPUT).result
        if (
            attributes.get("gen_ai.tool.status") == "error"
            or attributes.get("gen_ai.task.status") == "failure"
        ):
            error = error or ToolError(type="", message=first_text(attributes, ("gen_ai.tool.error",)))
        return ToolReading(
            name=name,
            inferred_name="" if name else _name_of(span, _TOOL_SPAN_PREFIXES) or span.name,
            call_id=call_id or opened.call_id,
            arguments=arguments,
            result=result,
            error=error,
            category=_category(attributes, name, operation),
            agent_name=first_text(attributes, ("gen_ai.agent.name",)),
            is_synthetic=name in SYNTHETIC_TOOL_NAMES,
        )

    def agent(self, span: Span) -> AgentReading:
        attributes = span.attributes
        name = first_text(attributes, ("gen_ai.agent.name",))
        inferred = "" if name else _name_of(span, _AGENT_SPAN_PREFIXES)
        if inferred and inferred == attributes.get("gen_ai.request.model"):
            inferred = ""
        conversation = self.conversation(span)
        asked = last_text(conversation.input, "user")
        answered = last_text(conversation.output, "assistant")
        output = _text_value(answered)
        if answered is None and "final_result" in attributes:
            output = decode_output(attributes.get("final_result"))
        return AgentReading(
            name=name or first_text(attributes, ("gen_ai.workflow.name",)),
            inferred_name=inferred,
            id=first_text(attributes, ("gen_ai.agent.id",)),
            version=first_text(attributes, ("gen_ai.agent.version",)),
            session=first_text(attributes, ("gen_ai.conversation.id",)),
            input=_text_value(asked),
            output=output,
        )

    def conversation(self, span: Span) -> Conversation:
        attributes = span.attributes
        if "gen_ai.input.messages" in attributes or "gen_ai.output.messages" in attributes:
            return _of_attributes(attributes)
        if _ALL_MESSAGES in attributes:
            messages = read_messages(attributes.get(_ALL_MESSAGES))
            start = attributes.get(_NEW_MESSAGE_INDEX)
            return _split_history(messages, start if isinstance(start, int) and start >= 0 else 0)
        return _of_events(span) if span.has_events else Conversation()


def _of_attributes(attributes: Attributes) -> Conversation:
    """The messages in the attributes of a span, or of the event that holds the same ones."""

    def asked() -> list[ChatMessage]:
        instructions = attributes.get("gen_ai.system_instructions")
        messages = read_messages(instructions, "system") if instructions else []
        return [*messages, *read_messages(attributes.get("gen_ai.input.messages"), "user")]

    return Conversation(asked, lambda: read_messages(attributes.get("gen_ai.output.messages"), "assistant"))


def _split_history(messages: list[ChatMessage], start: int) -> Conversation:
    """A whole history as input up to the run's last request by the user, and what came after it."""
    position = start
    while position < len(messages) and messages[position].role in ("system", "user"):
        if messages[position].responses:
            break
        position += 1
    return Conversation(lambda: messages[:position], lambda: messages[position:])


def _of_events(span: Span) -> Conversation:
    asked: list[ChatMessage] = []
    answered: list[ChatMessage] = []
    for event in span.events:
        if event.name == _DETAILS_EVENT:
            return _of_attributes(event.attributes)
        role = _MESSAGE_EVENTS.get(event.name)
        if role is not None:
            _add_event(asked, {"role": role, **event.attributes})
        elif event.name == "gen_ai.choice":
            _add_event(answered, {"role": "assistant", **event.attributes})
    return Conversation(lambda: asked, lambda: answered)


def _add_event(messages: list[ChatMessage], body: object) -> None:
    fields = json_value(body)  # type: ignore[arg-type]  # a mapping of attribute values
    if not isinstance(fields, dict):
        return
    for key in ("message", "content", "tool_calls"):
        if isinstance(fields.get(key), str):
            decoded = decode_result(fields[key])
            if isinstance(decoded.value, (dict, list)):
                fields[key] = decoded.value
    inner = fields.pop("message", None)
    if isinstance(inner, dict):
        fields.update(inner)
    elif inner is not None:
        fields["content"] = inner
    message = read_message(fields, "assistant")
    if message is not None:
        messages.append(message)


def _tool_events(span: Span) -> tuple[DecodedValue, DecodedValue, str]:
    """Arguments, result and call id as the events of a tool span tell them."""
    arguments = result = ABSENT
    call_id = ""
    for event in span.events:
        attributes = event.attributes
        if event.name == "gen_ai.tool.message":
            if "content" in attributes:
                arguments = decode_arguments(attributes.get("content"))
            call_id = call_id or first_text(attributes, ("id",))
        elif event.name == "gen_ai.choice":
            for key in ("message", "content"):
                if key in attributes:
                    result = open_result(decode_result(attributes.get(key)), BLOCKS).result
                    break
            call_id = call_id or first_text(attributes, ("id",))
        elif event.name == _DETAILS_EVENT:
            for message in read_messages(attributes.get("gen_ai.input.messages"), "assistant"):
                for request in message.requests:
                    if request.has_arguments:
                        arguments = decode_arguments(request.arguments)
                    call_id = call_id or request.call_id
            for message in read_messages(attributes.get("gen_ai.output.messages"), "tool"):
                for response in message.responses:
                    result = open_result(decode_result(response.content), BLOCKS).result
    return arguments, result, call_id


def _category(attributes: Attributes, name: str, operation: str | None) -> CallCategory:
    if operation in _HANDOFF_OPERATIONS or name.startswith(HANDOFF_TOOL_PREFIXES):
        return CallCategory.HANDOFF
    if name in FINAL_ANSWER_TOOL_NAMES:
        return CallCategory.FINAL_ANSWER
    if "mcp.method.name" in attributes or "mcp.tool.name" in attributes:
        return CallCategory.MCP
    if "gen_ai.tool.type" not in attributes:
        return CallCategory.FUNCTION
    tool_type = attributes.text("gen_ai.tool.type")
    if tool_type in AGENT_TOOL_TYPES:
        return CallCategory.AGENT
    return CallCategory.RETRIEVAL if tool_type in RETRIEVAL_TOOL_TYPES else CallCategory.FUNCTION


def _name_of(span: Span, prefixes: Iterable[str]) -> str:
    for prefix in prefixes:
        if span.name.startswith(prefix):
            return span.name[len(prefix) :].strip()
    return ""


def _text_value(text: str | None) -> DecodedValue:
    return ABSENT if text is None else DecodedValue(text, text, ValueState.PRESENT)


DIALECT = _OtelGenAI()
