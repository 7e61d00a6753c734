"""Mastra: `mastra.span.type` next to the GenAI conventions, and what its exporter wrote before them (0.3)."""

from collections.abc import Mapping

from processors.model import ABSENT, CallCategory, DecodedValue, text_value
from processors.shapes.attribute_reading import after_prefix, first_arguments, first_result, first_text
from processors.shapes.chat_envelope import first_input, first_output
from processors.shapes.dialect import AgentReading, AwaitedCall, Dialect, SpanRole, ToolReading
from processors.shapes.dialect_functions import model_messages, roles
from processors.shapes.members import failure, object_at, value_at
from processors.shapes.messages import CallRequest
from processors.spans import Span

_TYPE = "mastra.span.type"
_ROLES = roles(
    agent="agent_run",
    workflow="workflow_run",
    tool=("tool_call", "mcp_tool_call", "provider_tool_call"),
    model=("model_generation", "llm_generation"),
    judge=("processor_run", "scorer_run", "classifier_evaluation"),
)
_STEP, _GENERATION = "model_step", "model_generation"
_CATEGORIES = {"mcp_tool_call": CallCategory.MCP, "provider_tool_call": CallCategory.SERVER}
_INPUTS = ("mastra.agent_run.input", "mastra.workflow_run.input", "langfuse.observation.input", "input")
_OUTPUTS = ("mastra.agent_run.output", "mastra.workflow_run.output", "langfuse.observation.output", "output")
_RUN_SPAN_PREFIXES = ("agent.", "workflow.", "invoke_agent ", "invoke_workflow ")


def _role(span: Span) -> SpanRole | None:
    kind = span.attributes.text(_TYPE)
    if kind is None:
        return None
    if _answer_key(kind) in span.attributes:
        if kind == _STEP:
            return SpanRole.MODEL  # the request below it has no calls
        if kind == _GENERATION and "gen_ai.usage.input_tokens" not in span.attributes:
            return SpanRole.OTHER  # all steps: each is a turn
    return _ROLES.get(kind.lower(), SpanRole.OTHER)


def _tool(span: Span) -> ToolReading:
    attributes = span.attributes
    opened = first_result(attributes, ("gen_ai.tool.call.result", "gen_ai.tool.output", "output"))
    failed = attributes.get("gen_ai.tool.success") in (False, "false")
    message = first_text(attributes, ("error.message",))
    error = opened.error
    result = object_at(opened.result.value)
    # Of a call that was refused for its arguments the tool did not run, and the model was given the reason.
    is_refusal = result.get("error") is True and result.keys() == {"error", "message", "validationErrors"}
    if failed or message or is_refusal:
        shown = result.get("message")
        error = failure(message or (shown if isinstance(shown, str) else opened.result.text))
    return ToolReading(
        name=first_text(attributes, ("gen_ai.tool.name", "mastra.mcp_server_request.target_name")),
        inferred_name=after_prefix(span.name, ("tool.execute ", "execute_tool ")),
        call_id=first_text(attributes, ("gen_ai.tool.call.id", "toolCallId")),
        arguments=first_arguments(attributes, ("gen_ai.tool.call.arguments", "gen_ai.tool.input", "input")),
        result=opened.result,
        error=error,
        category=_CATEGORIES.get((attributes.text(_TYPE) or "").lower(), CallCategory.FUNCTION),
    )


def _agent(span: Span) -> AgentReading:
    attributes = span.attributes
    output = first_output(attributes, _OUTPUTS)
    text = value_at(output.value, "text")
    awaited = {} if isinstance(text, str) else _awaited(output)
    return AgentReading(
        name=first_text(attributes, ("gen_ai.agent.name",)),
        inferred_name=after_prefix(span.name, _RUN_SPAN_PREFIXES)
        or first_text(attributes, ("gen_ai.agent.id", "agent.id")),
        id=first_text(attributes, ("gen_ai.agent.id", "agent.id")),
        session=first_text(attributes, ("gen_ai.conversation.id", "threadId")),
        input=first_input(attributes, _INPUTS),
        output=text_value(text) if isinstance(text, str) else ABSENT if awaited else output,
        awaited=awaited,
    )


def _answer_key(kind: str) -> str:
    """Where a span of this type has the model's answer, with the calls in it."""
    return f"mastra.{kind}.output"


def _awaited(output: DecodedValue) -> Mapping[str, AwaitedCall]:
    """The call that a suspended run waits for; its arguments are where the model requested it."""
    suspended = object_at(output.value)
    name, call_id, reason = (suspended.get(key) for key in ("toolName", "toolCallId", "reason"))
    if suspended.get("status") != "suspended" or not isinstance(name, str) or not isinstance(call_id, str):
        return {}
    request = CallRequest(call_id=call_id, name=name, arguments=None, has_arguments=False)
    return {call_id: AwaitedCall(request, reason if isinstance(reason, str) else "suspended")}


_messages = model_messages(
    ("mastra.model_step.input", "mastra.model_generation.input", "gen_ai.prompt"),
    ("mastra.model_step.output", "mastra.model_generation.output", "gen_ai.completion"),
    role=_role,
)

DIALECT = Dialect("mastra", (_TYPE,), _role, _tool, _agent, _messages, rank=20)
