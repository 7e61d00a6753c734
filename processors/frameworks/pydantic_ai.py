"""Pydantic AI: what its formats 1 to 6 write in addition to, or instead of, the GenAI conventions.

Up to format 2 arguments and results have keys of their own; in all formats the agent's span holds the
whole history, with the place where this run begins.
"""

from collections.abc import Mapping, Sequence
from functools import cache, partial

from msgspec.structs import replace

from processors.model import ABSENT, CallCategory, DecodedValue, ValueState, json_value, text_value
from processors.shapes.attribute_reading import (
    first_arguments,
    first_json,
    first_result,
    first_text,
    first_value,
)
from processors.shapes.chat_envelope import decode_output
from processors.shapes.dialect import (
    NOTHING_AWAITED,
    AgentReading,
    AwaitedCall,
    Conversation,
    Dialect,
    SpanRole,
    ToolReading,
)
from processors.shapes.members import failure, object_at, objects_at
from processors.shapes.messages import CallRequest, ChatMessage, after_results, last_content, read_messages
from processors.shapes.span_event_messages import read_recorded_events
from processors.spans import Attributes, Span

_ALL_MESSAGES = "pydantic_ai.all_messages"
_ALL_EVENTS = "all_messages_events"
_ARGUMENTS = "tool_arguments"
_RESULT = "tool_response"
_TOOL_NAME = "gen_ai.tool.name"
_ANSWER = "final_result"
_SHOWN_AS = "logfire.msg"
_OFFERED = "model_request_parameters"
_ANSWER_TOOLS = "output_tools"
_DEFERRED = {"calls": "CallDeferred", "approvals": "ApprovalRequired"}
"""The lists in `DeferredToolRequests`, and the exception by which a tool puts a call in each."""
_TRY_AGAIN = "\n\nFix the errors and try again."
"""How the text of a request to try again ends; older releases mark it in no other way."""


def _role(span: Span) -> SpanRole | None:
    attributes = span.attributes
    if _TOOL_NAME in attributes:
        is_own = _ARGUMENTS in attributes or _RESULT in attributes or _gives_the_answer(span)
        return SpanRole.TOOL if is_own else None
    if _ALL_MESSAGES in attributes or _ALL_EVENTS in attributes:
        return SpanRole.AGENT
    if _OFFERED in attributes:
        return SpanRole.MODEL if "events" in attributes or _offers_answers(attributes) else None
    return SpanRole.AGENT if "agent_name" in attributes and "model_name" in attributes else None


def _tool(span: Span) -> ToolReading:
    attributes = span.attributes
    opened = first_result(attributes, (_RESULT,))
    text = opened.result.text or ""
    return ToolReading(
        name=first_text(attributes, (_TOOL_NAME,)),
        call_id=first_text(attributes, ("gen_ai.tool.call.id",)),
        arguments=first_arguments(attributes, (_ARGUMENTS,)),
        result=opened.result,
        error=opened.error or (failure(text.removesuffix(_TRY_AGAIN)) if text.endswith(_TRY_AGAIN) else None),
        category=CallCategory.FINAL_ANSWER if _gives_the_answer(span) else CallCategory.FUNCTION,
    )


def _agent(span: Span) -> AgentReading:
    attributes = span.attributes
    conversation = cache(partial(_conversation, span))
    awaits = "approvals" in (attributes.text(_ANSWER) or "")
    awaited = _awaited(_answer(attributes, conversation())) if awaits else NOTHING_AWAITED
    return AgentReading(
        name=first_text(attributes, ("gen_ai.agent.name", "agent_name")),
        session=first_text(attributes, ("gen_ai.conversation.id",)),
        input=lambda: last_content(conversation().input, "user"),
        output=ABSENT if awaited else lambda: _answer(attributes, conversation()),
        awaited=awaited,
    )


def _conversation(span: Span) -> Conversation:
    attributes = span.attributes
    if _ALL_MESSAGES not in attributes and _ALL_EVENTS not in attributes:
        if "events" not in attributes:
            if not _offers_answers(attributes):
                return Conversation()
            answers = json_value(attributes.get("gen_ai.output.messages"))
            return Conversation(
                read_output=lambda: _with_answers(read_messages(answers, "assistant"), attributes)
            )
        events = read_recorded_events(attributes.get("events"))
        return Conversation(
            lambda: _with_failures(events.input), lambda: _with_answers(events.output, attributes)
        )
    # A whole history: input up to the run's last request by the user, then what followed.
    messages = read_messages(first_json(attributes, (_ALL_MESSAGES, _ALL_EVENTS)))
    start = attributes.get("pydantic_ai.new_message_index")
    position = start if isinstance(start, int) and start >= 0 else 0
    while (
        position < len(messages)
        and messages[position].role in ("system", "user")
        and not messages[position].responses
    ):
        position += 1
    return Conversation(lambda: messages[:position], lambda: messages[position:])


def _answer(attributes: Attributes, conversation: Conversation) -> DecodedValue:
    """The run's result as recorded, else the model's last answer, if that requests no more calls."""
    result = attributes.get(_ANSWER)
    answered = after_results(conversation.output)
    last = answered[-1] if answered else None
    text = last.text if last is not None and last.role == "assistant" and not last.requests else ""
    if isinstance(result, str) and result != text:
        answer = decode_output(result)
        if answer.state is ValueState.PRESENT or not text:
            return answer
    return text_value(text or None)


def _awaited(output: DecodedValue) -> Mapping[str, AwaitedCall]:
    """The calls of `DeferredToolRequests`, with which a run ends that waits for decisions."""
    deferred = object_at(output.value)
    if not _DEFERRED.keys() <= deferred.keys():
        return NOTHING_AWAITED
    awaited: dict[str, AwaitedCall] = {}
    for key, source in _DEFERRED.items():
        for part in objects_at(deferred, key):
            if part.get("part_kind") == "tool-call":
                call_id, name, arguments = str(part["tool_call_id"]), str(part["tool_name"]), part.get("args")
                request = CallRequest(call_id=call_id, name=name, arguments=arguments, has_arguments=True)
                awaited[call_id] = AwaitedCall(request, source)
    return awaited


def _gives_the_answer(span: Span) -> bool:
    """Whether a call only turns the model's answer into the run's result."""
    shown_as = span.attributes.text(_SHOWN_AS) or span.name
    return shown_as.startswith("running output function")


def _with_failures(messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    """The same messages, where a result that is a request to try again is that of a failed call."""
    for message in messages:
        message.responses = [
            replace(response, failed=True)
            if isinstance(response.content, str) and response.content.endswith(_TRY_AGAIN)
            else response
            for response in message.responses
        ]
    return messages


def _offers_answers(attributes: Attributes) -> bool:
    return attributes.mentions(_OFFERED, f'"{_ANSWER_TOOLS}":[{{', f'"{_ANSWER_TOOLS}": [{{')


def _with_answers(messages: Sequence[ChatMessage], attributes: Attributes) -> Sequence[ChatMessage]:
    """The same messages, where a request of a tool for the answer is marked as one."""
    if not any(message.requests for message in messages):
        return messages
    names = [tool.get("name") for tool in objects_at(first_value(attributes, (_OFFERED,)), _ANSWER_TOOLS)]
    for message in messages:
        message.requests = [
            replace(request, gives_answer=request.name in names) for request in message.requests
        ]
    return messages


DIALECT = Dialect(
    "pydantic_ai",
    (_ARGUMENTS, _RESULT, _ALL_MESSAGES, _ALL_EVENTS, _ANSWER, _SHOWN_AS, _OFFERED),
    _role,
    _tool,
    _agent,
    _conversation,
    rank=8,
)
