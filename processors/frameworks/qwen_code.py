"""Qwen Code: its spans are in the GenAI conventions and hold no content, which is in log records."""

from collections.abc import Sequence

from processors.shapes.content_records import OUTPUT_MESSAGES, ContentRecords, ContentSpans
from processors.spans import LogRecord


def _join_records(records: Sequence[LogRecord], content: ContentSpans) -> None:
    """Arguments go to the call with the record's id, the text of a reply to the turn that it names."""
    for record in records:
        attributes = record.attributes
        if record.name == "qwen-code.tool_call":
            call = content.call(attributes.text("call_id") or "")
            if call is not None:
                content.offer(call, "gen_ai.tool.call.arguments", attributes.text("function_args"))
        elif record.name == "qwen-code.api_response":
            span, text = content.span(record.message.span_id), attributes.text("response_text")
            if span is not None and text:
                content.offer_messages(span, OUTPUT_MESSAGES, [{"role": "assistant", "content": text}])


RECORDS = ContentRecords(
    _join_records,
    frozenset(
        {"qwen-code.user_prompt", "qwen-code.tool_call", "qwen-code.api_request", "qwen-code.api_response"}
    ),
)
