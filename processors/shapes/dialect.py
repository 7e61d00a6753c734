"""The seam between telemetry conventions and the reconstruction of agent runs.

A dialect is the `DIALECT` of a `reader.py` in `processors/frameworks/`, or a row of the table there. It says
which spans it recognises and reads their fields; it decides nothing about runs, calls or order. Several
dialects may recognise one span: their readings are merged, field by field, in order of rank.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

from processors.model import ABSENT, CallCategory, DecodedValue, JsonValue, ToolError, late
from processors.shapes.messages import CallRequest, ChatMessage
from processors.shapes.model_usage import UsageReading
from processors.spans import Span


class SpanRole(IntEnum):
    """What a span stands for. Where dialects disagree the higher one counts."""

    OTHER = 0
    """Known to a dialect, but neither a call nor a run: a node, a turn, a step."""
    STEP = 1
    """A step of a run that tells the agent's name, and nothing else."""
    MODEL = 2
    JUDGE = 3
    """A guardrail, an evaluator or a scorer: what a model answers below it is no turn of the agent's."""
    WORKFLOW = 4
    AGENT = 5
    TOOL = 6


class ToolReading(NamedTuple):
    """What a dialect reads from a span that is a tool call. Empty texts mean: not said."""

    name: str = ""
    inferred_name: str = ""
    """A name taken from the span's name; any dialect's `name` goes before it."""
    call_id: str = ""
    arguments: DecodedValue = ABSENT
    arguments_are_doubtful: bool = False
    """True where what a model asked for says more about the arguments than this span does."""
    result: DecodedValue = ABSENT
    error: ToolError | None = None
    """An error told by an attribute or an envelope of the dialect; the span's own status counts anyway."""
    category: CallCategory = CallCategory.FUNCTION
    agent_name: str = ""
    lenient_values: bool = False
    is_synthetic: bool = False
    """True for a span that reports no call of its own: it is left out."""
    is_part: bool = False
    """True for a span that only tells how the call above it went; without such a call it is left out."""
    runs_agent: bool = False
    """True for a call of an agent that has no span of its own: what lies below the call is its run."""


Captured: TypeAlias = DecodedValue | Callable[[], DecodedValue]
"""A value, or what reads it: conversations are long, and mostly nobody asks."""


class AwaitedCall(NamedTuple):
    """A call that waits for somebody when its run ends, and the word of the framework for that."""

    request: CallRequest
    """Without a name where the run gives the id alone: a span or a model's answer has the rest."""
    source: str


NOTHING_AWAITED: Mapping[str, AwaitedCall] = {}


class AgentReading(NamedTuple):
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
    """The calls, by id, that the run says it waits for somebody to decide about; then it has no output."""


class Conversation:
    """The messages on a span: what went into the model, agent or node, and what came out of it.

    Each side is read when it is first asked for: histories are long, and mostly nobody asks.
    """

    def __init__(
        self,
        read_input: Callable[[], Sequence[ChatMessage]] = tuple,
        read_output: Callable[[], Sequence[ChatMessage]] = tuple,
    ) -> None:
        self._read_input = read_input
        self._read_output = read_output
        self._read_tools: Callable[[], Mapping[str, JsonValue]] = dict

    def offering(self, read_tools: Callable[[], Mapping[str, JsonValue]]) -> "Conversation":
        """The same conversation, with what reads the tools that were offered in it."""
        self._read_tools = read_tools
        return self

    def tools(self) -> Mapping[str, JsonValue]:
        """The tools that could be called, with their schemas (null: none is told); read anew each time."""
        return self._read_tools()

    @late
    def input(self) -> Sequence[ChatMessage]:
        """The messages that were given."""
        return self._read_input()

    @late
    def output(self) -> Sequence[ChatMessage]:
        """The messages that were made."""
        return self._read_output()


@runtime_checkable
class ScopeDialect(Protocol):
    """A dialect that also recognises spans without any of its attributes, by their instrumentation scope."""

    @property
    def scopes(self) -> Sequence[str]:
        """Names of the scopes; `role` is asked about their spans that no dialect's keys are on."""
        ...


@runtime_checkable
class PlannedDialect(Protocol):
    """A dialect that reads the calls on spans of one shape by a plan that is made once."""

    @property
    def answer_key(self) -> str:
        """The attribute that, where it is there, holds all of a conversation's output."""
        ...

    @property
    def tool_keys(self) -> Sequence[str]:
        """Every attribute key that its `tool` looks at."""
        ...

    def plan_tool(self, present: frozenset[str]) -> Callable[[Span], ToolReading] | None:
        """What reads calls on whose spans `present` are there of `tool_keys`; None: only `tool` can."""
        ...


@runtime_checkable
class UsageDialect(Protocol):
    """A dialect that tells models, tokens and times in a way that no other does.

    What it leaves out is read from the attributes that all conventions share (`shapes.model_usage`).
    """

    def tells_usage(self, span: Span) -> bool:
        """Whether spans like this have any of it; remembered as what `role` says is."""
        ...

    def usage(self, span: Span) -> UsageReading:
        """What the span tells of a model call, or of all of a run."""
        ...


class Dialect(Protocol):
    """Reads one telemetry convention. Its methods never raise for what a span can hold.

    All but `role` are called only for spans that it gave a role, whatever role they ended up with. What
    `role` says is remembered by what it looked at, so it must depend on the span alone.
    """

    @property
    def name(self) -> str:
        """The convention's name, for people; equal to the folder's or the row's."""
        ...

    @property
    def rank(self) -> int:
        """Readings of a lower rank go before those of a higher one."""
        ...

    @property
    def keys(self) -> Sequence[str]:
        """Attribute keys of which a span has at least one if the dialect can apply to it.

        There may be none for a `ScopeDialect` whose spans bear no dialect's keys.
        """
        ...

    def role(self, span: Span) -> SpanRole | None:
        """What the span stands for, or None where it is none of this dialect's."""
        ...

    def tool(self, span: Span) -> ToolReading:
        """The fields of a tool call."""
        ...

    def agent(self, span: Span) -> AgentReading:
        """The fields of a run."""
        ...

    def conversation(self, span: Span) -> Conversation:
        """The messages; of a node that executes calls, those calls as requests in the output."""
        ...
