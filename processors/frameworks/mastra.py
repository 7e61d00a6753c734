"""Mastra: `mastra.span.type` beside the GenAI conventions, and what its exporter wrote before those (0.3)."""

from collections.abc import Mapping
from typing import Final

from processors.model import ABSENT, CallCategory, DecodedValue, ToolError, text_value
from processors.shapes.attribute_reading import first_arguments, first_result, first_text
from processors.shapes.chat_envelope import decode_input, decode_output
from processors.shapes.dialect import (
    NOTHING_AWAITED,
    AgentReading,
    AwaitedCall,
    Conversation,
    Dialect,
    SpanRole,
    ToolReading,
)
from processors.shapes.messages import CallRequest, read_messages, read_model_response
from processors.spans import Attributes, Span

_TYPE = "mastra.span.type"
_ROLES = {
    "agent_run": SpanRole.AGENT,
    "workflow_run": SpanRole.WORKFLOW,
    "tool_call": SpanRole.TOOL,
    "mcp_tool_call": SpanRole.TOOL,
    "provider_tool_call": SpanRole.TOOL,
    "model_generation": SpanRole.MODEL,
    "llm_generation": SpanRole.MODEL,
    **dict.fromkeys(("processor_run", "scorer_run", "classifier_evaluation"), SpanRole.JUDGE),
}
_STEP, _GENERATION = "model_step", "model_generation"
_TOKENS = "gen_ai.usage.input_tokens"
_CATEGORIES = {"mcp_tool_call": CallCategory.MCP, "provider_tool_call": CallCategory.SERVER}
_INPUTS = ("mastra.agent_run.input", "mastra.workflow_run.input", "langfuse.observation.input", "input")
_OUTPUTS = ("mastra.agent_run.output", "mastra.workflow_run.output", "langfuse.observation.output", "output")
_REFUSAL_KEYS = {"error", "message", "validationErrors"}
_RUN_SPAN_PREFIXES = ("agent.", "workflow.", "invoke_agent ", "invoke_workflow ")
_TOOL_SPAN_PREFIXES = ("tool.execute ", "execute_tool ")


def _role(span: Span) -> SpanRole | None:
    kind = span.attributes.text(_TYPE)
    if kind is None:
        return None
    if _answer_key(kind) in span.attributes:
        if kind == _STEP:
            return SpanRole.MODEL  # the request below it tells no calls
        if kind == _GENERATION and _TOKENS not in span.attributes:
            return SpanRole.OTHER  # all steps: each is a turn
    return _ROLES.get(kind.lower(), SpanRole.OTHER)


def _tool(span: Span) -> ToolReading:
    attributes = span.attributes
    opened = first_result(attributes, ("gen_ai.tool.call.result", "gen_ai.tool.output", "output"))
    failed = attributes.get("gen_ai.tool.success") in (False, "false")
    message = first_text(attributes, ("error.message",))
    error = opened.error
    if failed or message or _is_refusal(opened.result):
        error = ToolError(type="", message=message or _told(opened.result))
    return ToolReading(
        name=first_text(attributes, ("gen_ai.tool.name", "mastra.mcp_server_request.target_name")),
        inferred_name=_name_in(span.name, _TOOL_SPAN_PREFIXES),
        call_id=first_text(attributes, ("gen_ai.tool.call.id", "toolCallId")),
        arguments=first_arguments(attributes, ("gen_ai.tool.call.arguments", "gen_ai.tool.input", "input")),
        result=opened.result,
        error=error,
        category=_CATEGORIES.get((attributes.text(_TYPE) or "").lower(), CallCategory.FUNCTION),
    )


def _agent(span: Span) -> AgentReading:
    attributes = span.attributes
    output = _first(attributes, _OUTPUTS, is_output=True)
    awaited = _awaited(output)
    return AgentReading(
        name=first_text(attributes, ("gen_ai.agent.name",)),
        inferred_name=_name_in(span.name, _RUN_SPAN_PREFIXES)
        or first_text(attributes, ("gen_ai.agent.id", "agent.id")),
        id=first_text(attributes, ("gen_ai.agent.id", "agent.id")),
        session=first_text(attributes, ("gen_ai.conversation.id", "threadId")),
        input=_first(attributes, _INPUTS, is_output=False),
        output=ABSENT if awaited else output,
        awaited=awaited,
    )


def _conversation(span: Span) -> Conversation:
    attributes = span.attributes
    if _role(span) is not SpanRole.MODEL:
        return Conversation()
    kind = attributes.text(_TYPE) or ""
    if _answer_key(kind) in attributes:
        return Conversation(
            lambda: read_messages(attributes.get(f"mastra.{kind}.input"), "user"),
            lambda: read_model_response(attributes.get(_answer_key(kind))),
        )
    return Conversation(
        lambda: read_messages(attributes.get("gen_ai.prompt"), "user"),
        lambda: read_model_response(attributes.get("gen_ai.completion")),
    )


def _answer_key(kind: str) -> str:
    """Where a span of this type tells what the model answered, with the calls that it asked for."""
    return f"mastra.{kind}.output"


def _awaited(output: DecodedValue) -> Mapping[str, AwaitedCall]:
    """The call that a run which was suspended waits for; its arguments stand where the model asked for it."""
    told = output.value
    if not isinstance(told, dict) or told.get("status") != "suspended":
        return NOTHING_AWAITED
    name, call_id, reason = (told.get(key) for key in ("toolName", "toolCallId", "reason"))
    if not isinstance(name, str) or not isinstance(call_id, str):
        return NOTHING_AWAITED
    request = CallRequest(call_id=call_id, name=name, arguments=None, has_arguments=False)
    return {call_id: AwaitedCall(request, reason if isinstance(reason, str) else "suspended")}


def _is_refusal(result: DecodedValue) -> bool:
    """Whether the call was refused for its arguments: the tool did not run, and the model was told why."""
    value = result.value
    return isinstance(value, dict) and value.get("error") is True and value.keys() == _REFUSAL_KEYS


def _told(result: DecodedValue) -> str:
    """What a result says of the failure that it stands for."""
    message = result.value.get("message") if isinstance(result.value, dict) else None
    return message if isinstance(message, str) else result.text or ""


def _first(attributes: Attributes, keys: tuple[str, ...], *, is_output: bool) -> DecodedValue:
    for key in keys:
        if key in attributes:
            decoded = (decode_output if is_output else decode_input)(attributes.get(key))
            value = decoded.value
            if is_output and isinstance(value, dict):
                text = value.get("text")
                if isinstance(text, str):
                    return text_value(text)
            return decoded
    return ABSENT


def _name_in(span_name: str, prefixes: tuple[str, ...]) -> str:
    for prefix in prefixes:
        if span_name.startswith(prefix):
            return span_name[len(prefix) :].strip()
    return ""


DIALECT: Final = Dialect("mastra", (_TYPE,), _role, _tool, _agent, _conversation, rank=20)
