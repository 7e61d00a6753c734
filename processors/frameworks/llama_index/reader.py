"""LlamaIndex's own `llama-index-observability-otel`: a span for each method, its events beside it.

Steps tell the event that they were given as Python prints it, cut at some 200 characters; requests to models
tell all in their events. So what is cut off in a step comes from the model's messages.
"""

import re
from collections.abc import Mapping
from typing import Final

from processors.frameworks.dialect import AgentReading, Conversation, SpanRole, ToolReading
from processors.frameworks.llama_index.workflows import (
    AGENT_STEP,
    AGENT_WORKFLOW_SPANS,
    REQUEST_PREPARATION,
    agent_in_printed_step,
)
from processors.frameworks.shapes.attribute_reading import first_text
from processors.frameworks.shapes.available_tools import read_tool_definitions
from processors.frameworks.shapes.messages import ChatMessage, read_messages
from processors.frameworks.shapes.model_usage import UsageReading, usage_in_object
from processors.frameworks.shapes.printed_messages import QUOTED, printed_text
from processors.model import (
    ABSENT,
    DecodedValue,
    JsonValue,
    ValueState,
    decode_arguments,
    decode_result,
    json_value,
)
from processors.spans import Attributes, Span

_GIVEN = "llamaindex.step.input_summary"
_CALL_STEP = ".call_tool"
_RUN = ".run"
_TOOL_METHODS = (".acall", ".call")
_MODEL_METHODS = (".achat", ".chat", ".astream_chat", ".stream_chat")
_START, _END = "LLMChatStartEvent", "LLMChatEndEvent"
_NAME = re.compile(r"ToolCall\(tool_name='([^'\\]+)', tool_kwargs=")
_CALL_ID = re.compile(r", tool_id='([^'\\]*)'\)$")
_RESULT = re.compile(
    rf"tool_output=ToolOutput\(blocks=\[TextBlock\(block_type='text', text={QUOTED}\)\], tool_name="
)
_USAGE = ("prompt_tokens", "completion_tokens")


class _LlamaIndex:
    name: Final = "llama_index"
    rank: Final = 8
    keys: Final = (_GIVEN, "llamaindex.run_id")
    scopes: Final = ("llamaindex.opentelemetry.tracer",)

    def role(self, span: Span) -> SpanRole | None:
        if span.envelope.scope_name not in self.scopes:
            return None
        name = span.name
        if name.endswith(_CALL_STEP):
            is_call = (span.attributes.text(_GIVEN) or "").startswith("ToolCall(")
            return SpanRole.TOOL if is_call else SpanRole.OTHER
        if name.endswith(_TOOL_METHODS):
            return SpanRole.TOOL
        if name.endswith(AGENT_STEP):
            told = agent_in_printed_step(span.attributes.text(_GIVEN) or "")
            return SpanRole.STEP if told else SpanRole.OTHER
        if name.endswith(_RUN):
            return SpanRole.AGENT if name in AGENT_WORKFLOW_SPANS else SpanRole.WORKFLOW
        if name.endswith(_MODEL_METHODS) and not name.endswith(REQUEST_PREPARATION):
            # A wrapper has the name of the method that it wraps, and no events.
            return SpanRole.MODEL if span.has_events else SpanRole.OTHER
        return SpanRole.OTHER

    def tool(self, span: Span) -> ToolReading:
        if not span.name.endswith(_CALL_STEP):
            return ToolReading(is_part=True)
        given = span.attributes.text(_GIVEN) or ""
        named, ended = _NAME.match(given), _CALL_ID.search(given)
        arguments = ABSENT
        if named is not None and ended is not None:
            arguments = decode_arguments(given[named.end() : ended.start()])
        return ToolReading(
            name="" if named is None else named[1],
            call_id="" if ended is None else ended[1],
            arguments=arguments if arguments.state is ValueState.PRESENT else ABSENT,
            result=_result(_event(span, "step.output")),
        )

    def agent(self, span: Span) -> AgentReading:
        if not span.name.endswith(AGENT_STEP):
            return AgentReading()
        return AgentReading(name=agent_in_printed_step(span.attributes.text(_GIVEN) or ""))

    def conversation(self, span: Span) -> Conversation:
        if not span.name.endswith(_MODEL_METHODS):
            return Conversation()
        start, end = _event(span, _START), _event(span, _END)
        return Conversation(lambda: _asked(start if start else end), lambda: _answered(end)).offering(
            lambda: _offered(start)
        )

    def tells_usage(self, span: Span) -> bool:
        return span.envelope.scope_name in self.scopes and span.name.endswith(_MODEL_METHODS)

    def usage(self, span: Span) -> UsageReading:
        start, end = _event(span, _START), _event(span, _END)
        tokens: dict[str, JsonValue] = {}
        for key in _USAGE:
            for place in ("response.raw.usage.", "response.additional_kwargs."):
                told = decode_result(json_value(end.get(place + key))).value
                if isinstance(told, int):
                    tokens[key] = told
                    break
        model = first_text(end, ("response.raw.model",)) or first_text(start, ("model_dict.model_name",))
        return UsageReading(model=model, usage=usage_in_object(tokens))


def _event(span: Span, name: str) -> Attributes:
    """What the first event of this name tells."""
    for event in span.events if span.has_events else ():
        if event.name == name:
            return event.attributes
    return Attributes({})


def _result(output: Attributes) -> DecodedValue:
    """The result in a printed event; absent where that was cut off."""
    text = printed_text(_RESULT.search(output.text("output") or ""))
    return ABSENT if text is None else decode_result(text)


def _asked(event: Attributes) -> list[ChatMessage]:
    told = decode_result(json_value(event.get("messages"))).value
    messages = told if isinstance(told, list) else []
    return read_messages([_message(message) for message in messages if isinstance(message, dict)], "user")


def _answered(event: Attributes) -> list[ChatMessage]:
    message: dict[str, JsonValue] = {
        "role": json_value(event.get("response.message.role")),
        "blocks": decode_result(json_value(event.get("response.message.blocks"))).value,
    }
    return read_messages([_message(message)], "assistant") if "response.message.blocks" in event else []


def _offered(event: Attributes) -> Mapping[str, JsonValue]:
    return read_tool_definitions(event.get("additional_kwargs.tools"))


def _message(message: dict[str, JsonValue]) -> JsonValue:
    """A message of LlamaIndex, whose content is blocks, in the common shape."""
    blocks = message.get("blocks")
    parts: list[JsonValue] = []
    for block in blocks if isinstance(blocks, list) else ():
        if not isinstance(block, dict):
            continue
        if block.get("block_type") == "text":
            parts.append({"type": "text", "text": block.get("text")})
        elif block.get("block_type") == "tool_call":
            parts.append(
                {
                    "type": "tool_call",
                    "id": block.get("tool_call_id"),
                    "name": block.get("tool_name"),
                    "arguments": block.get("tool_kwargs"),
                }
            )
    more = message.get("additional_kwargs")
    call_id = more.get("tool_call_id") if isinstance(more, dict) else None
    return {"role": message.get("role"), "content": parts, "tool_call_id": call_id}


DIALECT = _LlamaIndex()
