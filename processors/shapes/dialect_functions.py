"""Makes the functions of a dialect from names of attributes and spans."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from processors.model import CallCategory, JsonValue, ToolError
from processors.shapes.attribute_reading import (
    after_prefix,
    first_arguments,
    first_json,
    first_result,
    first_text,
)
from processors.shapes.available_tools import read_tool_definitions, read_tool_schema
from processors.shapes.chat_envelope import first_input, first_output
from processors.shapes.dialect import AgentReading, Conversation, Keys, RoleReader, SpanRole, ToolReading
from processors.shapes.messages import read_messages, read_model_response
from processors.spans import Attributes, Span


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


def roles(**kinds: str | Sequence[str]) -> Mapping[str, SpanRole]:
    """The role of each kind of span: `roles(tool="TOOL", model=("LLM", "CHAT"))` has one of `TOOL`."""
    return {
        kind: SpanRole[role.upper()]
        for role, listed in kinds.items()
        for kind in ((listed,) if isinstance(listed, str) else listed)
    }


def by_kind(
    keys: Keys,
    roles: Mapping[str, SpanRole],
    other: SpanRole | None = SpanRole.OTHER,
    *,
    ignore_case: bool = False,
) -> RoleReader:
    """The role in an attribute; `other` for a kind that `roles` leaves out, none without a kind."""

    def role(span: Span) -> SpanRole | None:
        kind = first_text(span.attributes, keys)
        return roles.get(kind.lower() if ignore_case else kind, other) if kind else None

    return role


def whole_name(span: Span) -> str:
    """The span's name."""
    return span.name


def name_after(*prefixes: str) -> Callable[[Span], str]:
    """What stands in a span's name behind the first of `prefixes` with which it begins, else nothing."""
    return lambda span: after_prefix(span.name, prefixes)


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
            input=lambda: first_input(attributes, input),
            output=lambda: first_output(attributes, output),
        )

    return read


def model_messages(
    input: Keys = (),
    output: Keys = (),
    *,
    tools: Keys = (),
    schema: tuple[str, str] | None = None,
    role: RoleReader | None = None,
) -> Callable[[Span], Conversation]:
    """Reads what a model was given and answered; with `role` only of spans that stand for a model's call.

    `schema`: the keys of a tool's name and its schema on spans of calls.
    """

    def read(span: Span) -> Conversation:
        attributes = span.attributes
        has_schema = schema is not None and schema[1] in attributes

        def offered() -> Mapping[str, JsonValue]:
            if schema is not None and has_schema:
                return read_tool_schema(attributes, *schema)
            return read_tool_definitions(first_json(attributes, tools))

        if role is not None and role(span) is not SpanRole.MODEL:
            return Conversation(read_tools=offered) if has_schema else Conversation()
        return Conversation(
            lambda: read_messages(first_json(attributes, input), "user"),
            lambda: read_model_response(first_json(attributes, output)),
            offered,
        )

    return read


def _error(attributes: Attributes, keys: Keys) -> ToolError | None:
    """The error in the first attribute of `keys` that is there; false and an empty text are none."""
    for key in keys:
        value = attributes.get(key)
        if isinstance(value, str) and value:
            return None if value.lower() == "false" else ToolError(type="", message=value)
        if value is True:
            return ToolError(type="", message="")
    return None
