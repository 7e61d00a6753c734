"""One span as all dialects together read it."""

from collections.abc import Sequence
from typing import TypeAlias

from processors.frameworks.dialect import (
    AgentReading,
    Conversation,
    Dialect,
    ScopeDialect,
    SpanRole,
    ToolReading,
    ValueDialect,
)
from processors.frameworks.shapes.attribute_reading import better, merged_error
from processors.frameworks.shapes.late_value import CapturedValue, LateValue, decoded
from processors.frameworks.shapes.placeholder_names import AGENT_NAME_OF_TURN, is_placeholder_agent
from processors.model.agent_run import CallCategory, ValueState
from processors.model.values import ABSENT, DecodedValue
from processors.spans.attributes import encoded_text
from processors.spans.span import Span

_MAX_KEY_SETS = 1024

_Candidates: TypeAlias = Sequence[tuple[Dialect, str, frozenset[bytes]]]
"""Dialects, each with the attribute that it depends on and the encoded values of which it must have one."""


class SpanReading:
    """A span that some dialect recognises. Fields are read when they are asked for, and once."""

    __slots__ = ("_agent", "_conversation", "_dialects", "_tool", "role", "span")

    def __init__(self, span: Span, role: SpanRole, dialects: Sequence[Dialect]) -> None:
        self.span = span
        self.role = role
        self._dialects = dialects
        self._tool: ToolReading | None = None
        self._agent: AgentReading | None = None
        self._conversation: Conversation | None = None

    @property
    def dialects(self) -> Sequence[Dialect]:
        """The dialects that recognise the span, in order of rank."""
        return self._dialects

    @property
    def tool(self) -> ToolReading:
        """The fields of a tool call, of all dialects."""
        if self._tool is None:
            merged = self._dialects[0].tool(self.span)
            for dialect in self._dialects[1:]:
                merged = merged_tool(merged, dialect.tool(self.span))
            self._tool = merged
        return self._tool

    @property
    def agent(self) -> AgentReading:
        """The fields of a run, of all dialects. A placeholder is no name."""
        if self._agent is None:
            merged = _without_placeholders(self._dialects[0].agent(self.span))
            for dialect in self._dialects[1:]:
                merged = merged_agent(merged, _without_placeholders(dialect.agent(self.span)))
            self._agent = merged
        return self._agent

    @property
    def agent_of_turn(self) -> str:
        """The agent for which a model answered, where the model's span tells it; a placeholder is no name."""
        name = self.span.attributes.text(AGENT_NAME_OF_TURN) or ""
        return "" if is_placeholder_agent(name) else name

    @property
    def conversation(self) -> Conversation:
        """The messages of the first dialect that has any; input and output are chosen apart."""
        if self._conversation is None:
            merged = self._dialects[0].conversation(self.span)
            for dialect in self._dialects[1:]:
                merged = _merged_conversation(merged, dialect.conversation(self.span))
            self._conversation = merged
        return self._conversation


def _merged_conversation(first: Conversation, second: Conversation) -> Conversation:
    merged = Conversation(lambda: first.input or second.input, lambda: first.output or second.output)
    return merged.offering(lambda: first.tools() or second.tools())


class SpanReader:
    """Reads spans with a set of dialects."""

    def __init__(self, dialects: Sequence[Dialect]) -> None:
        """`dialects` in order of rank."""
        self._dialects = dialects
        self._keys = frozenset(key for dialect in dialects for key in dialect.keys)
        self._candidates: dict[frozenset[str], _Candidates] = {}
        self._of_scope = {
            scope: dialect
            for dialect in reversed(dialects)
            if isinstance(dialect, ScopeDialect)
            for scope in dialect.scopes
        }

    def read(self, span: Span) -> SpanReading | None:
        """The span as its dialects read it, or None if none recognises it."""
        attributes = span.attributes
        keys = attributes.among(self._keys)
        if not keys:
            return self._read_bare(span)
        candidates = self._candidates.get(keys)
        if candidates is None:
            candidates = self._candidates_of(keys)
        role: SpanRole | None = None
        found: list[Dialect] = []
        for dialect, key, values in candidates:
            if values and attributes.encoded(key) not in values:
                continue
            told = dialect.role(span)
            if told is not None:
                found.append(dialect)
                if role is None or told > role:
                    role = told
        return None if role is None else SpanReading(span, role, found)

    def _read_bare(self, span: Span) -> SpanReading | None:
        """A span that has no dialect's attributes, and may be known by what made it."""
        dialect = self._of_scope.get(span.envelope.scope_name)
        role = None if dialect is None else dialect.role(span)
        return None if dialect is None or role is None else SpanReading(span, role, [dialect])

    def _candidates_of(self, keys: frozenset[str]) -> "_Candidates":
        """The dialects that one of `keys` speaks of; remembered, since few sets of keys occur."""
        candidates = [
            (dialect, *_condition(dialect)) for dialect in self._dialects if not keys.isdisjoint(dialect.keys)
        ]
        if len(self._candidates) < _MAX_KEY_SETS:
            self._candidates[keys] = candidates
        return candidates


def _condition(dialect: Dialect) -> tuple[str, frozenset[bytes]]:
    if not isinstance(dialect, ValueDialect):
        return "", frozenset()
    return dialect.only_key, frozenset(map(encoded_text, dialect.only_values))


def merged_tool(first: ToolReading, second: ToolReading) -> ToolReading:
    """One call out of two reports of it: what the first leaves out is taken from the second."""
    return ToolReading(
        name=first.name or second.name,
        inferred_name=first.inferred_name or second.inferred_name,
        call_id=first.call_id or second.call_id,
        arguments=better(first.arguments, second.arguments),
        arguments_are_doubtful=(
            first.arguments_are_doubtful
            if first.arguments.state is ValueState.PRESENT
            else second.arguments_are_doubtful
        ),
        result=better(first.result, second.result),
        error=merged_error(first.error, second.error),
        category=first.category if first.category is not CallCategory.FUNCTION else second.category,
        agent_name=first.agent_name or second.agent_name,
        lenient_values=first.lenient_values and second.lenient_values,
        is_synthetic=first.is_synthetic or second.is_synthetic,
        is_part=first.is_part and second.is_part,
        runs_agent=first.runs_agent or second.runs_agent,
    )


def merged_agent(first: AgentReading, second: AgentReading) -> AgentReading:
    """One run out of two reports of it: what the first leaves out is taken from the second."""
    return AgentReading(
        name=first.name or second.name,
        inferred_name=first.inferred_name or second.inferred_name,
        id=first.id or second.id,
        version=first.version or second.version,
        session=first.session or second.session,
        input=_late_better(first.input, second.input),
        output=_late_better(first.output, second.output),
        hides_calls=first.hides_calls or second.hides_calls,
        is_turn=first.is_turn or second.is_turn,
    )


def _late_better(first: CapturedValue, second: CapturedValue) -> CapturedValue:
    """`better`, but for what is not there at all without looking at either yet."""
    if second is ABSENT:
        return first
    return second if first is ABSENT else _LateBetter(first, second)


class _LateBetter(LateValue):
    """The better of two values, found when somebody looks; a run of many turns chains thousands of these."""

    __slots__ = ("_first", "_second")

    def __init__(self, first: CapturedValue, second: CapturedValue) -> None:
        super().__init__(self._choose)
        self._first = first
        self._second = second

    def _choose(self) -> DecodedValue:
        first: CapturedValue = self
        behind: list[CapturedValue] = []
        while isinstance(first, _LateBetter):
            behind.append(first._second)
            first = first._first
        found = decoded(first)
        while behind and found.state is not ValueState.PRESENT:
            found = decoded(better(found, behind.pop()))
        return found


def _without_placeholders(reading: AgentReading) -> AgentReading:
    name = "" if is_placeholder_agent(reading.name) else reading.name
    inferred = "" if is_placeholder_agent(reading.inferred_name) else reading.inferred_name
    agent_id = "" if is_placeholder_agent(reading.id) else reading.id
    if name == reading.name and inferred == reading.inferred_name and agent_id == reading.id:
        return reading
    return reading._replace(name=name, inferred_name=inferred, id=agent_id)
