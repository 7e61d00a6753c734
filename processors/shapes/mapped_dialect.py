"""Dialects put together from the names of attributes, and from functions where a name does not say enough.

One mechanism for the table of conventions, for families of which a part is as plain as that, and for the
conventions that users describe in the service file.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from processors.model import CallCategory, ToolError
from processors.shapes.attribute_reading import first_arguments, first_result, first_text
from processors.shapes.available_tools import read_tool_definitions, read_tool_schema
from processors.shapes.chat_envelope import first_input, first_output
from processors.shapes.dialect import AgentReading, Conversation, SpanRole, ToolReading
from processors.shapes.messages import read_messages
from processors.shapes.model_response import read_model_response
from processors.shapes.model_usage import UsageReading
from processors.spans import Attributes, Span

Keys: TypeAlias = Sequence[str]
"""Attributes of which the first that is there counts."""
RoleReader: TypeAlias = Callable[[Span], SpanRole | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedDialect:
    """A `Dialect` of functions; those that are left out read nothing."""

    name: str
    rank: int
    keys: Keys = ()
    scopes: Sequence[str] = ()
    role: RoleReader
    tool: Callable[[Span], ToolReading] = lambda _: ToolReading()
    agent: Callable[[Span], AgentReading] = lambda _: AgentReading()
    conversation: Callable[[Span], Conversation] = lambda _: Conversation()


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedUsageDialect(MappedDialect):
    """The same for a convention that tells models and tokens under names of its own."""

    usage: Callable[[Span], UsageReading]
    tells_usage: Callable[[Span], bool] = lambda _: True


class Sign(NamedTuple):
    """What a span stands for if all that is given here holds of it."""

    role: SpanRole | None
    present: Keys = ()
    """Attributes that are all there."""
    values: Sequence[tuple[str, str]] = ()
    """Attributes that have these values."""
    names: Sequence[str] = ()
    """The span's name is one of them."""
    prefixes: tuple[str, ...] = ()
    """The span's name begins with one of them."""
    scope: str = ""


def by_signs(*signs: Sign) -> RoleReader:
    """The role of the first sign that a span bears; none where it bears none."""

    def role(span: Span) -> SpanRole | None:
        return next((sign.role for sign in signs if _bears(span, sign)), None)

    return role


def _bears(span: Span, sign: Sign) -> bool:
    attributes = span.attributes
    return (
        all(key in attributes for key in sign.present)
        and all(attributes.get(key) == value for key, value in sign.values)
        and (not sign.names or span.name in sign.names)
        and (not sign.prefixes or span.name.startswith(sign.prefixes))
        and (not sign.scope or span.envelope.scope_name == sign.scope)
    )


def by_kind(keys: Keys, roles: Mapping[str, SpanRole], other: SpanRole | None = SpanRole.OTHER) -> RoleReader:
    """The role that an attribute tells; `other` for a kind that `roles` leaves out, none without a kind."""

    def role(span: Span) -> SpanRole | None:
        kind = first_text(span.attributes, keys)
        return roles.get(kind, other) if kind else None

    return role


def whole_name(span: Span) -> str:
    """The span's name."""
    return span.name


def name_after(*prefixes: str) -> Callable[[Span], str]:
    """What stands in a span's name behind the first of `prefixes` with which it begins, else nothing."""

    def name(span: Span) -> str:
        for prefix in prefixes:
            if span.name.startswith(prefix):
                return span.name[len(prefix) :].strip()
        return ""

    return name


def tool_fields(
    *,
    name: Keys | Callable[[Span], str] = (),
    inferred_name: Callable[[Span], str] | None = None,
    call_id: Keys = (),
    arguments: Keys = (),
    result: Keys = (),
    error: Keys = (),
    agent_name: Keys = (),
    category: Callable[[str], CallCategory] | None = None,
) -> Callable[[Span], ToolReading]:
    """Reads a call out of attributes: `error` is there only if it failed, as a message or as true."""

    def read(span: Span) -> ToolReading:
        attributes = span.attributes
        called = name(span) if callable(name) else first_text(attributes, name)
        inferred = "" if inferred_name is None else inferred_name(span)
        opened = first_result(attributes, result)
        return ToolReading(
            name=called,
            inferred_name=inferred,
            call_id=first_text(attributes, call_id) or opened.call_id,
            arguments=first_arguments(attributes, arguments),
            result=opened.result,
            error=_error(attributes, error) or opened.error,
            category=CallCategory.FUNCTION if category is None else category(called or inferred),
            agent_name=first_text(attributes, agent_name),
        )

    return read


def agent_fields(
    *,
    name: Keys | Callable[[Span], str] = (),
    inferred_name: Callable[[Span], str] | None = None,
    id: Keys = (),
    version: Keys = (),
    session: Keys = (),
    input: Keys = (),
    output: Keys = (),
) -> Callable[[Span], AgentReading]:
    """Reads a run out of attributes."""

    def read(span: Span) -> AgentReading:
        attributes = span.attributes
        return AgentReading(
            name=name(span) if callable(name) else first_text(attributes, name),
            inferred_name="" if inferred_name is None else inferred_name(span),
            id=first_text(attributes, id),
            version=first_text(attributes, version),
            session=first_text(attributes, session),
            input=first_input(attributes, input),
            output=first_output(attributes, output),
        )

    return read


def model_messages(
    input: Keys = (), output: Keys = (), *, tools: Keys = (), role: RoleReader | None = None
) -> Callable[[Span], Conversation]:
    """Reads what a model was asked and answered; with `role` only of spans that stand for a model's call."""

    def read(span: Span) -> Conversation:
        if role is not None and role(span) is not SpanRole.MODEL:
            return Conversation()
        attributes = span.attributes
        asked = next((key for key in input if key in attributes), "")
        answered = next((key for key in output if key in attributes), "")
        conversation = Conversation(
            lambda: read_messages(attributes.get(asked), "user"),
            lambda: read_model_response(attributes.get(answered)),
        )
        offered = next((key for key in tools if key in attributes), None)
        if offered is None:
            return conversation
        return conversation.offering(lambda: read_tool_definitions(attributes.get(offered)))

    return read


def told_tools(
    messages: Callable[[Span], Conversation], *, name: str, schema: str
) -> Callable[[Span], Conversation]:
    """Reads what `messages` does, and on spans of calls the called tool's own schema."""

    def read(span: Span) -> Conversation:
        conversation = messages(span)
        if schema not in span.attributes:
            return conversation
        return conversation.offering(lambda: read_tool_schema(span.attributes, name, schema))

    return read


def _error(attributes: Attributes, keys: Keys) -> ToolError | None:
    """The error that the first attribute of `keys` that is there tells; false and an empty text tell none."""
    for key in keys:
        value = attributes.get(key)
        if isinstance(value, str) and value:
            return None if value.lower() == "false" else ToolError(type="", message=value)
        if value is True:
            return ToolError(type="", message="")
    return None
