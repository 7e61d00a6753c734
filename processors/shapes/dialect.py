"""The seam between telemetry conventions and the reconstruction of agent runs.

A dialect is the `DIALECT` of a file in `processors/carriers/` or `processors/frameworks/`, a row of the table
in `processors/frameworks/tame.py`, or described in the service file. It says which spans it recognises and
reads their fields; it decides nothing about runs, calls or order. Several dialects may recognise one span:
their readings are merged, field by field, in order of rank.

The functions at the end make the functions of a dialect from names of attributes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from processors.model import ABSENT, CallCategory, DecodedValue, JsonValue, ToolError, late
from processors.shapes.attribute_reading import (
    after_prefix,
    first_arguments,
    first_raw,
    first_result,
    first_text,
)
from processors.shapes.available_tools import read_tool_definitions, read_tool_schema
from processors.shapes.chat_envelope import first_input, first_output
from processors.shapes.messages import CallRequest, ChatMessage, read_messages, read_model_response
from processors.shapes.model_usage import UsageReading
from processors.spans import Attributes, Span

Keys: TypeAlias = Sequence[str]
"""Attributes of which the first that is there counts."""


class SpanRole(IntEnum):
    """What a span stands for. Where dialects disagree the higher one counts."""

    OTHER = 0
    """Known to a dialect, but neither a call nor a run: a node, a turn, a step."""
    STEP = 1
    """A step of a run that names the agent, and nothing else."""
    MODEL = 2
    JUDGE = 3
    """A guardrail, an evaluator or a scorer: what a model answers below it is no turn of the agent's."""
    WORKFLOW = 4
    AGENT = 5
    TOOL = 6


class ToolReading(Struct, frozen=True):
    """What a dialect reads from a span that is a tool call. Empty texts mean: unknown."""

    name: str = ""
    inferred_name: str = ""
    """A name taken from the span's name; any dialect's `name` goes before it."""
    call_id: str = ""
    arguments: DecodedValue = ABSENT
    arguments_are_doubtful: bool = False
    """True where the model's request is better evidence of the arguments than this span."""
    result: DecodedValue = ABSENT
    error: ToolError | None = None
    """An error in an attribute or an envelope of the dialect; the span's own status counts as well."""
    category: CallCategory = CallCategory.FUNCTION
    agent_name: str = ""
    lenient_values: bool = False
    is_synthetic: bool = False
    """True for a span that reports no call of its own: it is left out."""
    is_part: bool = False
    """True for a span that only reports how the call above it ended; without such a call it is left out."""
    runs_agent: bool = False
    """True for a call of an agent that has no span of its own: what lies below the call is its run."""


Captured: TypeAlias = DecodedValue | Callable[[], DecodedValue]
"""A value, or what reads it: conversations are long, and mostly unused."""


class AwaitedCall(NamedTuple):
    """A call that waits for a decision when its run ends, and the framework's word for that."""

    request: CallRequest
    """Without a name where the run gives the id alone: a span or a model's answer has the rest."""
    source: str


NOTHING_AWAITED: Mapping[str, AwaitedCall] = {}


class AgentReading(Struct, frozen=True):
    """What a dialect reads from a span that is an agent's or a workflow's run."""

    name: str = ""
    inferred_name: str = ""
    id: str = ""
    version: str = ""
    session: str = ""
    input: Captured = ABSENT
    output: Captured = ABSENT
    hides_calls: bool = False
    """True for instrumentations that make no span for a call: without any, what was called is unknown."""
    needs_no_turns: bool = False
    """True where the span alone is evidence: without a call and a model turn below it, nothing was called."""
    awaited: Mapping[str, AwaitedCall] = NOTHING_AWAITED
    """The calls, by id, for which the run reports that it waits for decisions; then it has no output."""


class Conversation:
    """The messages on a span: the input and the output of the model, agent or node.

    Each side is read when it is first used: histories are long, and mostly unused.
    """

    def __init__(
        self,
        read_input: Callable[[], Sequence[ChatMessage]] = tuple,
        read_output: Callable[[], Sequence[ChatMessage]] = tuple,
        read_tools: Callable[[], Mapping[str, JsonValue]] = dict,
    ) -> None:
        self._read_input = read_input
        self._read_output = read_output
        self.tools = read_tools
        """Reads the tools that could be called, with their schemas (null: unknown)."""

    @late
    def input(self) -> Sequence[ChatMessage]:
        """The messages that were given."""
        return self._read_input()

    @late
    def output(self) -> Sequence[ChatMessage]:
        """The messages that were produced."""
        return self._read_output()


RoleReader: TypeAlias = Callable[[Span], SpanRole | None]
ToolReader: TypeAlias = Callable[[Span], ToolReading]


@dataclass(frozen=True, slots=True, eq=False)
class Dialect:
    """Reads one telemetry convention; functions that are left out read nothing.

    The functions never raise for what a span can hold. All but `role` are called only for spans that it gave
    a role, whatever role they ended up with.
    """

    name: str
    """The convention's name, for people; equal to the file's or the row's."""
    keys: Keys
    """Attributes of which a span has at least one if the dialect can apply to it."""
    role: RoleReader
    """What the span stands for, or None where it is none of this dialect's.

    Remembered by what it looked at, so it must depend on the span alone.
    """
    tool: ToolReader = lambda _: ToolReading()
    """The fields of a tool call."""
    agent: Callable[[Span], AgentReading] = lambda _: AgentReading()
    """The fields of a run."""
    conversation: Callable[[Span], Conversation] = lambda _: Conversation()
    """The messages; of a node that executes calls, those calls as requests in the output."""
    _: KW_ONLY
    rank: int
    """Readings of a lower rank go before those of a higher one."""
    usage: Callable[[Span], UsageReading] | None = None
    """Reads the models, tokens and times that it writes in a way that no other convention does.

    What it leaves out is read from the attributes that all conventions share (`shapes.model_usage`).
    """
    has_usage: Callable[[Span], bool] = lambda _: True
    """Whether spans like this have any of that; remembered as the role is."""
    scopes: Sequence[str] = ()
    """Instrumentation scopes whose spans it may recognise without any dialect's keys on them."""
    plan_tool: Callable[[frozenset[str]], ToolReader | None] | None = None
    """What reads calls on whose spans these are there of `tool_keys`; None: only `tool` can.

    Made once for spans of one shape.
    """
    tool_keys: Keys = ()
    """Every attribute key that `tool` looks at, where there is a `plan_tool`."""
    answer_key: str = ""
    """The attribute that, where it is there, holds all of a conversation's output."""


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
            input=first_input(attributes, input),
            output=first_output(attributes, output),
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
            return read_tool_definitions(first_raw(attributes, tools))

        if role is not None and role(span) is not SpanRole.MODEL:
            return Conversation(read_tools=offered) if has_schema else Conversation()
        return Conversation(
            lambda: read_messages(first_raw(attributes, input), "user"),
            lambda: read_model_response(first_raw(attributes, output)),
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
