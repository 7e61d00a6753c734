"""AgentScope: GenAI conventions, with results as Python prints the framework's own objects.

Whether a call failed is only in there: the span of a tool that raised has the status OK.
"""

import re

from msgspec.structs import replace

from processors.model import decode_result
from processors.shapes.attribute_reading import first_value, operation_name
from processors.shapes.dialect import Conversation, Dialect, SpanRole, ToolReading
from processors.shapes.members import failure, list_at
from processors.shapes.messages import CallResponse, ChatMessage
from processors.shapes.printed_messages import QUOTED, printed_text
from processors.shapes.span_event_messages import messages_in_attributes
from processors.spans import Attributes, Span

_SCOPE = "agentscope"
_RESULT = "gen_ai.tool.call.result"
_MESSAGES = "gen_ai.input.messages"
_RESPONSE = "ToolResponse(content=["
_STATE = "], state=<ToolResultState."
_BLOCK = re.compile(
    rf"TextBlock\(type='text', text={QUOTED}, id='[^']*'(?:, \w+=(?:None|'[^']*'))*\)(?:, )?", re.DOTALL
)


def _role(span: Span) -> SpanRole | None:
    scope = span.envelope.scope_name
    if scope != _SCOPE and (scope or not _holds_printed_objects(span.attributes)):
        return None
    operation = operation_name(span.attributes)
    if operation == "execute_tool":
        return SpanRole.TOOL
    return SpanRole.MODEL if operation == "chat" else None


def _holds_printed_objects(attributes: Attributes) -> bool:
    """Whether the framework shows although the name of the scope was left out on the way."""
    result, messages = attributes.text(_RESULT) or "", attributes.text(_MESSAGES) or ""
    return result.startswith('"' + _RESPONSE) or "TextBlock(type='text', text=" in messages


def _tool(span: Span) -> ToolReading:
    printed = first_value(span.attributes, (_RESULT,))
    if not isinstance(printed, str) or not printed.startswith(_RESPONSE):
        return ToolReading()
    text, end = _text_of_blocks(printed, len(_RESPONSE))
    if text is None or not printed.startswith(_STATE, end):
        return ToolReading()
    succeeded = printed.startswith("SUCCESS", end + len(_STATE))
    return ToolReading(result=decode_result(text), error=None if succeeded else failure(text))


def _conversation(span: Span) -> Conversation:
    attributes = span.attributes
    return Conversation(
        lambda: (
            [_opened(message) for message in messages_in_attributes(attributes).input]
            if _MESSAGES in attributes
            else ()
        )
    )


def _opened(message: ChatMessage) -> ChatMessage:
    message.responses = [_opened_response(response) for response in message.responses]
    return message


def _opened_response(response: CallResponse) -> CallResponse:
    """The result of a call, of which a message holds the printed blocks as a list."""
    blocks = list_at(decode_result(response.content).value)
    texts = [_text_of_blocks(block, 0)[0] if isinstance(block, str) else None for block in blocks]
    known = [text for text in texts if text is not None]
    return replace(response, content="\n".join(known)) if blocks and len(known) == len(texts) else response


def _text_of_blocks(printed: str, start: int) -> tuple[str | None, int]:
    """The text of the printed blocks from `start` on, None where none holds text; where they end."""
    texts: list[str] = []
    while (block := _BLOCK.match(printed, start)) is not None:
        text = printed_text(block)
        if text is None:
            return None, start
        texts.append(text)
        start = block.end()
    return "\n".join(texts) if texts else None, start


DIALECT = Dialect(
    "agentscope", (_RESULT, _MESSAGES), _role, _tool, conversation=_conversation, rank=9, scopes=(_SCOPE,)
)
