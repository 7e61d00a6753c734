"""The seam between log records that carry what agents say and do, and the spans that they belong to.

A file in `processors/carriers/` or `processors/frameworks/` whose emitter sends content as log records has
`RECORDS`: which records these are, and what of each goes on which span. It goes there in the form in which
spans carry such content, so that records need no reading of their own.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList

from processors.model import (
    MAX_TEXT_LENGTH,
    JsonObject,
    JsonValue,
    ValueState,
    contains_mask,
    decode_arguments,
    decode_result,
    encode_json,
    has_mask,
    json_value,
)
from processors.shapes.decisions import DECISION, DECISION_SOURCE
from processors.shapes.dialect import SpanRole
from processors.shapes.messages import ChatMessage, read_messages
from processors.shapes.reported_runs import INPUT_MESSAGES, ReportedRun, decision_in
from processors.shapes.rewriting import SpanReading
from processors.spans import LogRecord, RawSpan, Span, SpanTree, encode_field, encoded_text

_ATTRIBUTES, _EVENTS = 0x4A, 0x5A
"""Tags of these in a Span."""
_EVENT_NAME, _EVENT_ATTRIBUTES = 0x12, 0x1A
_KEY, _VALUE = 0x0A, 0x12


class ContentSpans:
    """The spans of one trace, to which content from records is added.

    What a span has takes precedence where it is whole, what is added where that is absent, cut off or masked.
    """

    def __init__(self, spans: Sequence[RawSpan], read: Callable[[Span], SpanReading | None]) -> None:
        """`read` recognises a span.

        Raises:
            google.protobuf.message.DecodeError: A span holds no Span message.
        """
        self._tree = SpanTree(spans)
        self._read = read
        self._positions = {span_id: place for place, span_id in enumerate(self._tree.span_ids)}
        self._readings: dict[int, SpanReading | None] = {}
        self._calls: dict[str, list[Span]] | None = None
        self._children: dict[int, list[Span]] | None = None
        self._ancestors: dict[SpanRole, dict[int, int]] = {}
        self._tops: list[int] | None = None
        self._added: dict[bytes, list[bytes]] = {}
        self._offered: set[tuple[bytes, str]] = set()
        self._converted: dict[bytes, JsonValue] = {}

    def span(self, span_id: bytes) -> Span | None:
        """The span with this id, if it is here."""
        place = self._positions.get(span_id)
        return None if place is None else self._tree.views[place]

    def reading(self, span: Span) -> SpanReading | None:
        """The span as it was received, as its dialects read it."""
        place = self._positions[span.span_id]
        if place not in self._readings:
            self._readings[place] = self._read(span)
        return self._readings[place]

    def has_role(self, span: Span, *roles: SpanRole) -> bool:
        """Whether the span stands for one of these."""
        reading = self.reading(span)
        return reading is not None and reading.role in roles

    def children(self, span: Span) -> Sequence[Span]:
        """The spans right below a span, in order of start."""
        if self._children is None:
            self._children = {}
            for place, parent in enumerate(self._tree.parents):
                self._children.setdefault(parent, []).append(self._tree.views[place])
        return self._children.get(self._positions[span.span_id], ())

    def with_role(self, *roles: SpanRole) -> list[Span]:
        """All spans that stand for one of these, in order of start."""
        return [span for span in self._tree.views if self.has_role(span, *roles)]

    def ancestor(self, span: Span, role: SpanRole) -> Span | None:
        """The span itself, or the nearest one above it, that stands for `role`."""
        known = self._ancestors.setdefault(role, {-1: -1})
        place = self._positions[span.span_id]
        path: list[int] = []
        while place not in known:
            path.append(place)
            if self.has_role(self._tree.views[place], role):
                known[place] = place
            else:
                place = self._tree.parents[place]
        known.update(dict.fromkeys(path, known[place]))
        return self._tree.views[known[place]] if known[place] >= 0 else None

    def top(self, span: Span) -> Span:
        """The span itself, or the topmost one above it that is here."""
        if self._tops is None:
            self._tops = list(range(len(self._tree.parents)))
            for place in self._tree.top_down:
                if (parent := self._tree.parents[place]) >= 0:
                    self._tops[place] = self._tops[parent]
        return self._tree.views[self._tops[self._positions[span.span_id]]]

    def call(self, call_id: str) -> Span | None:
        """The span of the call with this id; of several the first."""
        if self._calls is None:
            self._calls = {}
            for span in self.with_role(SpanRole.TOOL):
                reading = self.reading(span)
                if reading is not None and reading.tool.call_id:
                    self._calls.setdefault(reading.tool.call_id, []).append(span)
        spans = self._calls.get(call_id)
        return spans[0] if spans else None

    def offer(self, span: Span, key: str, value: JsonValue) -> None:
        """Add an attribute, unless the span has one of that name in full; nothing for an empty value.

        What is offered first counts, also of messages.
        """
        if value is None or value in ("", [], {}) or not self._is_first(span, key):
            return
        own = span.attributes.get(key)
        if own is None or not _is_whole(own):
            self._add_attribute(span, key, value)

    def offer_attribute(self, span: Span, key: str, record: LogRecord) -> None:
        """Add an attribute of a record as `offer` does; what many turns repeat is converted once."""
        encoded = record.attributes.encoded(key)
        if encoded is not None:
            if encoded not in self._converted:
                self._converted[encoded] = json_value(record.attributes.get(key))
            self.offer(span, key, self._converted[encoded])

    def offer_decision(self, call: Span, record: LogRecord) -> None:
        """Add what a record reports to have been decided about a call; what is offered first counts."""
        shown = decision_in(record)
        if shown is not None:
            self.offer(call, DECISION, shown.decision.value)
            self.offer(call, DECISION_SOURCE, shown.source)

    def offer_messages(self, span: Span, key: str, messages: Sequence[JsonObject]) -> None:
        """Add `INPUT_MESSAGES` or `OUTPUT_MESSAGES`, unless the span shows all of these, however written."""
        if not messages or not self._is_first(span, key):
            return
        listed: list[JsonValue] = [*messages]
        reading = self.reading(span)
        is_input = key == INPUT_MESSAGES
        own: Sequence[ChatMessage] = ()
        if reading is not None:
            own = reading.conversation.input if is_input else reading.conversation.output
        if own:  # records repeat the history: they are read only where it matters
            offered = read_messages(listed, "user" if is_input else "assistant")
            if _show_all(own) or not _show_all(offered):
                return
        self._add_attribute(span, key, listed)

    def add_event(self, span: Span, name: str, attributes: Mapping[str, JsonValue]) -> None:
        """Add an event at the end."""
        encoded = [_attribute(_EVENT_ATTRIBUTES, key, value) for key, value in attributes.items()]
        event = b"".join((encode_field(_EVENT_NAME, name.encode()), *encoded))
        self._added.setdefault(span.span_id, []).append(encode_field(_EVENTS, event))

    def joined(self) -> list[RawSpan]:
        """All spans, with what was added, in order of start; repeated ones once."""
        return [
            (view.span_id, b"".join((view.raw, *self._added.get(view.span_id, ()))), view.envelope)
            for view in self._tree.views
        ]

    def _is_first(self, span: Span, key: str) -> bool:
        """Whether nothing was offered as this attribute before: looking at a span each time takes long."""
        place = span.span_id, key
        if place in self._offered:
            return False
        self._offered.add(place)
        return True

    def _add_attribute(self, span: Span, key: str, value: JsonValue) -> None:
        self._added.setdefault(span.span_id, []).append(_attribute(_ATTRIBUTES, key, value))


@dataclass(frozen=True, slots=True)
class ContentRecords:
    """The log records in which one emitter sends content."""

    join: Callable[[Sequence[LogRecord], ContentSpans], None]
    """Adds what these records of one trace carry to its spans. They are in the order in which they happened,
    each once; where that is not known, in the order in which they arrived."""
    names: frozenset[str] = field(default_factory=frozenset)
    """Names of events."""
    scope: str = ""
    """The instrumentation scope that these names are limited to; empty: any that no other emitter has."""
    recognizes: Callable[[LogRecord], bool] | None = None
    """Recognises a record that has none of the names of any emitter."""
    session_key: str = "session.id"
    """The attribute with the session that a record belongs to."""
    prompt_key: str = ""
    """The attribute with the prompt that it belongs to in its session; empty: the session is one run."""
    run: Callable[[Sequence[LogRecord]], ReportedRun | None] | None = None
    """What the records of one prompt report that name no trace; None where they report no run."""
    of_pieces: frozenset[str] = frozenset()
    """Names of records that are of such a run whatever trace they name, as each trace holds a piece of it."""


def _attribute(tag: int, key: str, value: JsonValue) -> bytes:
    """An attribute as a field; what is no text is written as JSON, as on spans, unless that is too long."""
    text = value if isinstance(value, str) else encode_json(value).decode()
    is_long = len(text) > MAX_TEXT_LENGTH and not isinstance(value, str)
    encoded = _any_value(value).SerializeToString() if is_long else encoded_text(text)
    return encode_field(tag, encode_field(_KEY, key.encode()) + encode_field(_VALUE, encoded))


def _any_value(value: JsonValue) -> AnyValue:
    """`value` with its structure, which has no limit in length; integers beyond 64 bits as texts."""
    if isinstance(value, dict):
        pairs = [KeyValue(key=key, value=_any_value(member)) for key, member in value.items()]
        return AnyValue(kvlist_value=KeyValueList(values=pairs))
    if isinstance(value, list):
        return AnyValue(array_value=ArrayValue(values=map(_any_value, value)))
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    return AnyValue() if value is None else AnyValue(string_value=str(value))


def _is_whole(value: object) -> bool:
    if not isinstance(value, str):
        return True
    return decode_result(value).state is ValueState.PRESENT and not has_mask(value)


def _show_all(messages: Collection[ChatMessage]) -> bool:
    """Whether nothing in the messages is absent, cut off or masked, as far as they show it."""
    return bool(messages) and all(map(_shows_all, messages))


def _shows_all(message: ChatMessage) -> bool:
    if message.unreadable or has_mask(message.text):
        return False
    for request in message.requests:
        arguments = decode_arguments(request.arguments)
        if not request.name or not request.has_arguments or arguments.state is not ValueState.PRESENT:
            return False
        if contains_mask(arguments.value):
            return False
    if any(not response.has_content or contains_mask(response.content) for response in message.responses):
        return False
    return bool(message.text or message.requests or message.responses)
