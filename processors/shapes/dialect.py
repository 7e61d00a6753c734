"""The seam between telemetry conventions and the reconstruction of agent runs.

A dialect is the `DIALECT` of a file in `processors/carriers/` or `processors/frameworks/`, a row of the table
in `processors/frameworks/tame.py`, or described in the service file. It states which spans it recognises and
reads their fields; it decides nothing about runs, calls or order. Several dialects may recognise one span:
their readings are merged, field by field, in order of rank. `dialect_functions` makes its functions from
names of attributes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from processors.model import ABSENT, CallCategory, DecodedValue, JsonValue, ToolError, late
from processors.shapes.decisions import CallDecision
from processors.shapes.messages import CallRequest, ChatMessage
from processors.shapes.model_usage import UsageReading
from processors.spans import Span

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
    decision: CallDecision | None = None
    """What was decided about the call, where the dialect's own spans report that."""
    runs_agent: bool = False
    """True for a call of an agent that has no span of its own: what lies below the call is its run."""


Captured: TypeAlias = DecodedValue | Callable[[], DecodedValue]
"""A value, or what reads it: conversations are long, and mostly unused."""


def in_messages() -> DecodedValue:
    """In place of an agent's input or output: the last text of the user or the assistant in its messages.

    The conversation that the same dialect reads of the span holds them.
    """
    return ABSENT


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
