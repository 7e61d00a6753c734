"""What of the content of a trace may leave with its verdicts: all or nothing, and never a match.

Content is what people and models wrote and what tools received and returned: inputs, outputs, messages,
arguments, results, errors, attributes of spans, and whatever an explanation or its details quote of them.
What a verdict is looked up by is not: names of agents and tools, ids, sessions, times, states, outcomes, and
the resource. Patterns to redact look at all texts but the identity of the agent.

Every form of a verdict is built from what `ContentRules.shown` returns; nothing that leaves may be built from
the run that was graded.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import starmap
from typing import Any, Literal, TypeAlias

from msgspec import structs
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans

from processors.model import (
    AgentRun,
    DecodedValue,
    EvaluationResult,
    GradedRun,
    JsonObject,
    JsonValue,
    LateMapping,
    LateObject,
    ToolCall,
    ToolError,
    ValueState,
    json_text,
    late,
)
from processors.spans import Envelope, RawSpan
from processors.texts.linear_regex import LinearPattern, compile_linear

ContentMode: TypeAlias = Literal["full", "none"]

REDACTED_TEXT = "[REDACTED]"
"""Replaces every match of a pattern."""

_MAX_REDACTION_STEPS = 1 << 30
"""Matches times length of one text; where a text needs more, all of it is redacted."""
_MAX_SECRETS = 1000
_SHORTEST_HEAD = 3
"""So many characters of a secret that was cut off are as good as a part of it."""
_MAX_ENVELOPES = 1024
_CUT = "…"
_UNREAD = (ValueState.ABSENT, ValueState.REDACTED)


class ContentRules:
    """Makes of a graded run what may be shown of it.

    A match in the text of a value hides it wherever the value occurs, and a secret that an explanation cuts
    off is not shown in part either.

    Args:
        mode: What is left of content; `none` leaves neither content nor explanations.
        redact: Patterns in the language of `compile_linear`, matches of which are hidden in both modes.

    Raises:
        ValueError: a pattern does not compile.
    """

    def __init__(self, mode: ContentMode = "full", redact: Sequence[str] = ()) -> None:
        self.mode = mode
        self._patterns: Sequence[LinearPattern] = [compile_linear(pattern) for pattern in redact]
        self._envelopes: dict[tuple[bytes, bytes], Envelope] = {}

    @property
    def shows_all(self) -> bool:
        """Whether everything is shown as it is."""
        return self.mode == "full" and not self._patterns

    def shown(self, graded: GradedRun) -> GradedRun:
        """`graded` as it may leave; what is not looked at costs nothing."""
        if self.shows_all:
            return graded
        run = graded.run
        secrets = _Secrets(run, self._patterns)
        shown = run.with_content(
            self._content(run),
            session=self.named(run.session),
            resource=run.resource if not self._patterns else self._redacted_members(run.resource),
        )
        results = [self._result(result, secrets) for result in graded.results]
        return replace(graded, run=shown, results=results)

    def shown_records(self, records: Sequence[RawSpan]) -> Sequence[RawSpan]:
        """Log records or spans of verdicts under resources and scopes without matches."""
        if not self._patterns:
            return records
        return [(key, payload, self._shown_envelope(envelope)) for key, payload, envelope in records]

    def text(self, text: str) -> str:
        """A text that is content."""
        return "" if self.mode == "none" else self.redacted(text)

    def value(self, value: JsonValue, text: str | None, state: ValueState) -> DecodedValue:
        """A captured value with its text. If it is not shown as it is, its state is the reason."""
        if state in _UNREAD and text is None:
            return DecodedValue(None, None, state)
        if self.mode == "none":
            return DecodedValue(
                None, None, ValueState.ABSENT if state is ValueState.ABSENT else ValueState.REDACTED
            )
        return self._redacted_value(value, text, state)

    def members(self, members: Mapping[str, JsonValue]) -> JsonObject:
        """Details, or the attributes of a span: every text in them is content."""
        if self.mode == "none":
            return {}
        shown = self._redacted_members(members)
        # A match that is left spans several texts.
        return {} if self._has_match(json_text(shown)) else shown

    def named(self, name: str | None) -> str | None:
        """A name or an id from telemetry."""
        return None if name is None else self.redacted(name)

    def redacted(self, text: str) -> str:
        """`text` without matches."""
        for pattern in self._patterns:
            result = pattern.replaced(text, REDACTED_TEXT, _MAX_REDACTION_STEPS)
            text = REDACTED_TEXT if result is None else result
        return text

    def call(self, call: ToolCall) -> ToolCall:
        """A call with what may be shown of it."""
        arguments = self.value(call.arguments, call.arguments_text, call.arguments_state)
        result = self.value(call.result, call.result_text, call.result_state)
        return structs.replace(
            call,
            name=self.redacted(call.name),
            call_id=self.named(call.call_id),
            arguments=arguments.value,
            arguments_text=arguments.text,
            arguments_state=arguments.state,
            result=result.value,
            result_text=result.text,
            result_state=result.state,
            error=self.error(call.error),
        )

    def error(self, error: ToolError | None) -> ToolError | None:
        """An error with what may be shown of it."""
        if error is None:
            return None
        return ToolError(type=self.text(error.type), message=self.text(error.message))

    def _content(self, run: AgentRun) -> object:
        """What may be shown of the fields of `run` that are read late."""

        def read(field: str) -> object:
            match field:
                case "input_shown" | "output_shown":
                    name = field.removesuffix("_shown")
                    return self.value(getattr(run, name), None, getattr(run, f"{name}_state"))
                case "input" | "output":
                    # The value has no text of its own: what is shown of its text takes its place.
                    shown = getattr(content, f"{field}_shown")
                    return shown.text if shown.value is None else shown.value
                case "input_state" | "output_state":
                    return getattr(content, field.replace("state", "shown")).state
                case "error":
                    return self.error(run.error)
                case "messages":
                    return [
                        structs.replace(message, content=self.text(message.content))
                        for message in (() if self.mode == "none" else run.messages)
                    ]
                case "messages_state":
                    texts = [message.content for message in run.messages]
                    hides = self.mode == "none" or list(map(self.redacted, texts)) != texts
                    return ValueState.REDACTED if hides else run.messages_state
                case "span_attributes":
                    return self.members(run.span_attributes)
                case "available_tools":
                    return run.available_tools and dict(starmap(self._tool, run.available_tools.items()))
                case "tool_calls":
                    return list(map(self.call, run.tool_calls))
                case "requested_calls":
                    return [(before, self.call(call)) for before, call in run.requested_calls]
                case "model_calls":
                    return tuple(
                        structs.replace(call, model=self.named(call.model)) for call in run.model_calls
                    )
                case "models":
                    return tuple(dict.fromkeys(map(self.redacted, run.models)))
                case "call_turns" | "usage" | "time_to_first_output_seconds" | "cost":
                    return getattr(run, field)
            raise AttributeError(field)

        content: Any = LateObject(read)
        return content

    def _tool(self, name: str, schema: JsonValue) -> tuple[str, JsonValue]:
        """A tool with its schema; one that is not shown as it is, is not shown."""
        shown = self.value(schema, None, ValueState.PRESENT)
        return self.redacted(name), shown.value if shown.state is ValueState.PRESENT else None

    def _result(self, result: EvaluationResult, secrets: "_Secrets") -> EvaluationResult:
        return structs.replace(
            result,
            explanation=self.text(secrets.without_heads(result.explanation)),
            details=LateMapping(lambda: self.members(secrets.without_heads_in(result.details))),
            tool_call_id=self.named(result.tool_call_id),
        )

    def _redacted_value(self, value: JsonValue, text: str | None, state: ValueState) -> DecodedValue:
        if not self._patterns:
            return DecodedValue(value, text, state)
        shown, shown_text = self._redacted_json(value), self.named(text)
        if (
            shown == value
            and shown_text == text
            and not (isinstance(value, (dict, list)) and self._has_match(json_text(value)))
        ):
            return DecodedValue(value, text, state)
        written = shown if isinstance(shown, str) else json_text(shown)
        if state is not ValueState.PRESENT:
            # The text was not read, or not as this: either may contain what is hidden.
            return DecodedValue(None, shown_text, state)
        if self._has_match(written):
            return DecodedValue(None, self.redacted(written), ValueState.REDACTED)
        return DecodedValue(shown, written, ValueState.REDACTED)

    def _redacted_json(self, value: JsonValue) -> JsonValue:
        """`value` without matches in its texts, keys and numbers."""
        return _mapped(value, self.redacted, numbers=True) if self._patterns else value

    def _redacted_members(self, members: Mapping[str, JsonValue]) -> JsonObject:
        return {self.redacted(key): self._redacted_json(value) for key, value in members.items()}

    def _has_match(self, text: str) -> bool:
        return any(pattern.search(text) is not None for pattern in self._patterns)

    def _shown_envelope(self, envelope: Envelope) -> Envelope:
        """`envelope` without matches; one object for equal bytes, as queues need it."""
        key = envelope.resource, envelope.scope
        result = self._envelopes.get(key)
        if result is None:
            if len(self._envelopes) >= _MAX_ENVELOPES:
                self._envelopes.clear()
            resource = _redacted_message(ResourceSpans(), envelope.resource, self.redacted)
            scope = _redacted_message(ScopeSpans(), envelope.scope, self.redacted)
            is_same = (resource, scope) == key
            result = self._envelopes[key] = envelope if is_same else Envelope(resource, scope)
        return result


class _Secrets:
    """What patterns hide in a run, looked for when a text was cut off: its head would not match any more."""

    def __init__(self, run: AgentRun, patterns: Sequence[LinearPattern]) -> None:
        self._run = run
        self._patterns = patterns

    def without_heads_in(self, details: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
        """`details` without heads in their texts."""
        if not self._patterns:
            return details
        return {key: _mapped(value, self.without_heads) for key, value in details.items()}

    def without_heads(self, text: str) -> str:
        """`text` without the first characters of a secret where it was cut off."""
        if not self._patterns or _CUT not in text:
            return text
        secrets = self._all
        if secrets is None:
            return REDACTED_TEXT
        pieces = text.split(_CUT)
        return _CUT.join((*(_without_head(piece, secrets) for piece in pieces[:-1]), pieces[-1]))

    @late
    def _all(self) -> frozenset[str] | None:
        """The matches in all content of the run; None where there are too many."""
        collected: set[str] = set()
        for text in self._texts():
            for pattern in self._patterns:
                for match in pattern.matches(text):
                    collected.add(match[0] or "")
                    if len(collected) > _MAX_SECRETS:
                        return None
        return frozenset(collected)

    def _texts(self) -> Iterator[str]:
        run = self._run
        values: list[JsonValue] = [run.input, run.output, [message.content for message in run.messages]]
        for call in run.calls:
            values += (call.name, call.arguments, call.arguments_text, call.result, call.result_text)
            if call.error is not None:
                values += (call.error.type, call.error.message)
        for value in values:
            yield from _texts_in(value)
            if isinstance(value, (dict, list)):
                yield json_text(value)


def _without_head(text: str, secrets: Iterable[str]) -> str:
    """`text` without the longest head of a secret that it ends with."""
    longest = 0
    for secret in secrets:
        for length in range(min(len(secret), len(text)), max(longest, _SHORTEST_HEAD - 1), -1):
            if text.endswith(secret[:length]):
                longest = length
                break
    return text[: len(text) - longest] + REDACTED_TEXT if longest else text


def _mapped(value: JsonValue, change: Callable[[str], str], *, numbers: bool = False) -> JsonValue:
    """`value` with `change` made to every text and key in it, with `numbers` to the texts of numbers too."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): _mapped(member, change, numbers=numbers) for key, member in value.items()}
    if isinstance(value, list):
        return [_mapped(member, change, numbers=numbers) for member in value]
    if numbers and isinstance(value, (int, float)) and not isinstance(value, bool):
        written = json_text(value)
        changed = change(written)
        return value if changed == written else changed
    return value


def _texts_in(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, member in value.items():
            yield key
            yield from _texts_in(member)
    elif isinstance(value, list):
        for member in value:
            yield from _texts_in(member)


def _redacted_message(
    message: ResourceSpans | ScopeSpans, data: bytes, redacted: Callable[[str], str]
) -> bytes:
    """The bytes of `message` without matches in its texts; unknown fields stay."""
    message.ParseFromString(data)
    is_changed = False
    for holder, name in _texts_of(message):
        text = getattr(holder, name)
        shown = redacted(text)
        if shown != text:
            setattr(holder, name, shown)
            is_changed = True
    return message.SerializeToString() if is_changed else data


def _texts_of(message: ResourceSpans | ScopeSpans) -> Iterator[tuple[InstrumentationScope | AnyValue, str]]:
    """Where the texts of a resource or scope stand: the message and the field."""
    if isinstance(message, ResourceSpans):
        values = [attribute.value for attribute in message.resource.attributes]
    else:
        yield message.scope, "name"
        yield message.scope, "version"
        values = [attribute.value for attribute in message.scope.attributes]
    while values:
        value = values.pop()
        kind = value.WhichOneof("value")
        if kind == "string_value":
            yield value, kind
        elif kind == "array_value":
            values += value.array_value.values
        elif kind == "kvlist_value":
            values += [member.value for member in value.kvlist_value.values]
