"""AWS ADOT: content that it moved off spans of any framework into log records, one for each span.

Towards an endpoint of AWS the distribution takes the content out of a span's attributes and events when it
exports the span. A record is named after the scope of its span, and its body has lists of messages as `input`
and `output`, in which only the role and the value of each attribute or event are left. What these were is
known by the instrumentation that made the span.
"""

from collections import deque
from collections.abc import Sequence

from processors.model import JsonObject, decode_result, json_value
from processors.shapes.attribute_reading import flattened_list
from processors.shapes.content_records import ContentRecords, ContentSpans
from processors.shapes.members import object_at, objects_at, text_at
from processors.shapes.reported_runs import INPUT_MESSAGES, OUTPUT_MESSAGES
from processors.shapes.span_event_messages import CHOICE, MESSAGE_EVENTS
from processors.spans import LogRecord, Span

_TRACELOOP_KIND = "traceloop.span.kind"
"""On Traceloop's spans of tasks, tools, agents and workflows, of which each value was one attribute."""
_TRACELOOP_INPUT, _TRACELOOP_OUTPUT = "traceloop.entity.input", "traceloop.entity.output"
_EVENTS = {role: name for name, role in MESSAGE_EVENTS.items()}


def _is_moved(record: LogRecord) -> bool:
    if record.name != record.envelope.scope_name:
        return False
    body = record.body
    return isinstance(body, dict) and not {"input", "output"}.isdisjoint(body)


def _join_records(records: Sequence[LogRecord], content: ContentSpans) -> None:
    first = {record.message.span_id: record for record in reversed(records)}
    for span_id, record in first.items():
        span = content.span(span_id)
        if span is None:
            continue
        body = json_value(record.body)
        given, answered = objects_at(body, "input", "messages"), objects_at(body, "output", "messages")
        scope = record.name
        if any(isinstance(message.get("content"), dict) for message in (*given, *answered)):
            _restore_events(content, span, given, answered)
        elif "openinference" in scope:
            _restore_values(content, span, "input", given)
            _restore_values(content, span, "output", answered)
        elif _TRACELOOP_KIND in span.attributes:
            for key, messages in ((_TRACELOOP_INPUT, given), (_TRACELOOP_OUTPUT, answered)):
                content.offer(span, key, messages[0].get("content") if messages else None)
        else:
            _restore_messages(content, span, INPUT_MESSAGES, given)
            _restore_messages(content, span, OUTPUT_MESSAGES, answered)


def _restore_events(
    content: ContentSpans, span: Span, given: Sequence[JsonObject], answered: Sequence[JsonObject]
) -> None:
    """Events with their attributes, as Strands writes them.

    Of the answers the last is the turn's, what is before it is history. One goes before each message with
    results, since the order between the two lists is lost.
    """
    if any(event.name == CHOICE for event in span.events):
        return
    history, last = deque(answered[:-1]), answered[-1:]
    for message in given:
        if message.get("role") == "tool" and history:
            _add_event(content, span, _EVENTS["assistant"], history.popleft())
        _add_event(content, span, _EVENTS.get(text_at(message, "role"), _EVENTS["user"]), message)
    for message in history:
        _add_event(content, span, _EVENTS["assistant"], message)
    for message in last:
        is_answer = not {"message", "finish_reason"}.isdisjoint(object_at(message, "content"))
        _add_event(content, span, CHOICE if is_answer else _EVENTS["assistant"], message)


def _add_event(content: ContentSpans, span: Span, name: str, message: JsonObject) -> None:
    attributes = message.get("content")
    content.add_event(span, name, attributes if isinstance(attributes, dict) else {"content": attributes})


def _restore_values(
    content: ContentSpans, span: Span, direction: str, messages: Sequence[JsonObject]
) -> None:
    """The value of OpenInference, which is the first, and the contents of its messages, which follow."""
    if not messages:
        return
    value, *contents = [message.get("content") for message in messages]
    content.offer(span, f"{direction}.value", value)
    prefix = f"llm.{direction}_messages."
    known = [object_at(entry, "message") for entry in objects_at(flattened_list(span.attributes, prefix))]
    places: Sequence[int] = range(len(known))
    if len(contents) != len(known):
        places = [place for place in places if "tool_calls" not in known[place]]
    if len(places) == len(contents):  # else nobody knows which message has none
        for place, text in zip(places, contents, strict=True):
            content.offer(span, f"{prefix}{place}.message.content", text)


def _restore_messages(content: ContentSpans, span: Span, key: str, messages: Sequence[JsonObject]) -> None:
    """The messages of a turn; a list of them written as JSON stands for itself."""
    restored: list[JsonObject] = []
    for message in messages:
        listed = objects_at(decode_result(message.get("content")).value)
        restored += listed if listed and all("role" in item for item in listed) else [message]
    content.offer_messages(span, key, restored)


RECORDS = ContentRecords(_join_records, recognizes=_is_moved)
