"""Messages in log records, as GenAI instrumentations write them: put on the span of the turn that they name.

Since 1.37 of the conventions one record has all messages of a turn in its attributes; before, each message is
a record of its own with the message in its body, as a map or as JSON. Both become the attributes of a span.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from processors.model import JsonObject, decode_result, json_value
from processors.shapes.content_records import ContentSpans
from processors.shapes.dialect import SpanRole
from processors.shapes.members import objects_at
from processors.shapes.reported_runs import INPUT_MESSAGES, OUTPUT_MESSAGES
from processors.shapes.span_event_messages import CHOICE, DETAILS_EVENT, MESSAGE_EVENTS, message_object
from processors.spans import LogRecord, Span

_INDEX_KEYS = ("gen_ai.message.index", "CHAT_MESSAGE_INDEX")
"""Where a record has its place among the messages of its turn."""
_FURTHER = ("gen_ai.system_instructions", "gen_ai.tool.definitions")

MESSAGE_RECORDS = frozenset({DETAILS_EVENT, *MESSAGE_EVENTS, CHOICE})
"""Names of the records of the conventions."""


@dataclass
class RecordedTurn:
    """What the records of one model turn hold; messages as they write them."""

    span: Span
    given: list[JsonObject] = field(default_factory=list)
    answered: list[JsonObject] = field(default_factory=list)
    details: LogRecord | None = None
    """The record with the other attributes that spans have as well, if there is one."""

    def offer(self, content: ContentSpans) -> None:
        """Add it to the turn's span."""
        if self.details is not None:
            for key in _FURTHER:
                content.offer_attribute(self.span, key, self.details)
        content.offer_messages(self.span, INPUT_MESSAGES, self.given)
        content.offer_messages(self.span, OUTPUT_MESSAGES, self.answered)


def join_messages(records: Sequence[LogRecord], content: ContentSpans) -> None:
    """Add the messages in records of the conventions to the spans that the records name."""
    for turn in recorded_turns(records, content):
        turn.offer(content)


def recorded_turns(records: Sequence[LogRecord], content: ContentSpans) -> Iterator[RecordedTurn]:
    """What the records of the conventions hold; those that name no span here are left out."""
    for span, of_turn in records_by_turn(records, content):
        turn = RecordedTurn(span)
        for record in of_turn:
            if record.name == DETAILS_EVENT:
                turn.details = turn.details or record
                turn.given += _listed(record, INPUT_MESSAGES)
                turn.answered += _listed(record, OUTPUT_MESSAGES)
            elif record.name == CHOICE:
                turn.answered.append(message_in_body(record, "assistant"))
            else:
                turn.given.append(message_in_body(record, MESSAGE_EVENTS[record.name]))
        yield turn


def records_by_turn(
    records: Sequence[LogRecord], content: ContentSpans
) -> Iterator[tuple[Span, Sequence[LogRecord]]]:
    """Each model turn with its records, in the order of their messages."""
    named: dict[bytes, list[LogRecord]] = {}
    for record in records:
        named.setdefault(record.message.span_id, []).append(record)
    for span_id, of_span in named.items():
        span = content.span(span_id)
        if span is not None:
            yield _turn(span, content), sorted(of_span, key=_place)


def message_in_body(record: LogRecord, role: str) -> JsonObject:
    """The message that a record has as its body; its role is `role` unless it has its own."""
    body = json_value(record.body)
    if isinstance(body, str):
        decoded = decode_result(body).value
        body = decoded if isinstance(decoded, dict) else {"content": body} if body else {}
    return message_object(role, body if isinstance(body, dict) else {})


def _turn(span: Span, content: ContentSpans) -> Span:
    """The model turn that a record of `span` belongs to: a framework's step around it is named as well."""
    if content.has_role(span, SpanRole.MODEL, SpanRole.AGENT, SpanRole.TOOL):
        return span
    turns = [child for child in content.children(span) if content.has_role(child, SpanRole.MODEL)]
    return turns[0] if len(turns) == 1 else span


def _place(record: LogRecord) -> int:
    places = (record.attributes.get(key) for key in _INDEX_KEYS)
    return next((place for place in places if isinstance(place, int)), 0)


def _listed(record: LogRecord, key: str) -> list[JsonObject]:
    value = json_value(record.attributes.get(key))
    return objects_at(decode_result(value).value if isinstance(value, str) else value)
