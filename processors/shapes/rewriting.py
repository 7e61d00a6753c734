"""The seam between reconstruction and what single frameworks need done to their runs.

A file in `processors/frameworks/` may define `rewrite_agents` or `rewrite_runs`. They are given the trace as
it was read, which they leave as it is, and the outline of what was found in it so far, which they change.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from typing import Final, Literal, TypeAlias

from msgspec.structs import replace

from processors.model import ABSENT, CallCategory, DecodedValue, TokenUsage, ValueState, json_text, late
from processors.shapes.attribute_reading import better, merged_error
from processors.shapes.decisions import interruption_of
from processors.shapes.dialect import (
    NOTHING_AWAITED,
    AgentReading,
    Captured,
    Conversation,
    Dialect,
    SpanRole,
    ToolReading,
    in_messages,
)
from processors.shapes.known_names import AGENT_NAME_OF_TURN, is_placeholder_agent
from processors.shapes.messages import ChatMessage, Role, last_content
from processors.shapes.model_usage import NO_USAGE, UsagePlan, UsageReading, merged_usage
from processors.spans import STATUS_ERROR, Attributes, Span, SpanTree, text_in

_FINISH_REASONS: Final = frozenset(
    {
        "gen_ai.response.finish_reasons", "gen_ai.response.finish_reason", "ai.response.finishReason",
        "llm.finish_reason", "llm.response.finish_reason", "llm.response.stop_reason",
        "gen_ai.completion.0.finish_reason", "llm.completions.0.finish_reason",
        "anthropic.message.stop_reason", "stop_reason",
    }
)  # fmt: skip
_REQUEST_WORDS: Final = frozenset({"functioncall", "toolcall", "toolcalls", "toolexecution", "tooluse"})
_REQUESTS_NOTHING: Final = frozenset({"contentfilter", "endturn", "refusal", "stop", "stopsequence"})
"""An answer that was cut at its longest (`length`) leaves it unknown."""
_CLASS: Final = "finishreason"
"""The class of an enumeration that was written with its member."""
_PROVIDERS: Final = ("gen_ai.provider.name", "gen_ai.system")
_STOPS_ANYHOW: Final = ("gemini", "google", "gcp", "vertex", "ollama")
"""Providers that end with `stop` where calls are requested, too."""
_WORD: Final = re.compile(r"[A-Za-z]+(?:[_-][A-Za-z]+)*")


_NO_TOOL, _NO_AGENT = ToolReading(), AgentReading()


@dataclass(slots=True, eq=False)
class Shape:
    """What spans that look alike to the dialects stand for, and who reads them."""

    role: SpanRole
    dialects: Sequence[Dialect]
    """The dialects that recognise the spans, in order of rank."""
    read_tool: Callable[[Span], ToolReading] | None = None
    """What reads the fields of a call where that is planned, else all `dialects` do."""
    answer_key: str = ""
    """The attribute in which all that was answered stands, if it is there."""
    usage_plan: UsagePlan | None = None
    """What reads the model, its tokens and its time where they stand in attributes that all share."""
    usage_readers: Sequence[Callable[[Span], UsageReading]] = ()
    """What reads these where dialects write them in a way of their own; it goes before the common one."""
    names_conversation: bool = False
    """Whether one of `CONVERSATION_KEYS` is there."""


class _Conversations:
    """The messages that each dialect reads of a span.

    It does not know the reading that holds it: what refers to itself is freed by the garbage collector alone,
    long after its trace has left.
    """

    def __init__(self, span: Span, dialects: Sequence[Dialect]) -> None:
        self._span = span
        self._dialects = dialects

    @late
    def each(self) -> Sequence[Conversation]:
        """By the place of the dialect."""
        return [dialect.conversation(self._span) for dialect in self._dialects]

    def last(self, place: int, role: Role) -> DecodedValue:
        """The last text of a role in the messages that the dialect at `place` reads."""
        conversation = self.each[place]
        return last_content(conversation.input if role == "user" else conversation.output, role)


class SpanReading:
    """A span that some dialect recognises: the fields of all its dialects together."""

    __slots__ = ("__dict__", "role", "shape", "span")

    def __init__(self, span: Span, shape: Shape) -> None:
        self.span = span
        self.shape = shape
        self.role = shape.role

    @late
    def tool(self) -> ToolReading:
        """The fields of a tool call."""
        shape, span = self.shape, self.span
        if shape.read_tool is not None:
            return shape.read_tool(span)
        merged = shape.dialects[0].tool(span)
        for dialect in shape.dialects[1:]:
            merged = merged_tool(merged, dialect.tool(span))
        return merged

    @late
    def agent(self) -> AgentReading:
        """The fields of a run. A placeholder is no name."""
        readings = [_without_placeholders(dialect.agent(self.span)) for dialect in self.shape.dialects]
        for place, reading in enumerate(readings):
            given, answered = reading.input, reading.output
            if given is in_messages or answered is in_messages:
                last = self._conversations.last
                readings[place] = replace(
                    reading,
                    input=partial(last, place, "user") if given is in_messages else given,
                    output=partial(last, place, "assistant") if answered is in_messages else answered,
                )
        return merged_agents(readings)

    @property
    def agent_name(self) -> str:
        """What the span of a run calls its agent, or implies."""
        return self.agent.name or self.agent.inferred_name

    @property
    def agent_of_turn(self) -> str:
        """The agent for which a model answered, where the model's span names it; a placeholder is no name."""
        name = self.span.attributes.text(AGENT_NAME_OF_TURN) or ""
        return "" if is_placeholder_agent(name) else name

    def answer(self) -> bytes | None:
        """The text in which all of the conversation's output stands, where that is known."""
        key, encoded = self.shape.answer_key, self.span.by_key
        return text_in(encoded[key]) if key and key in encoded else None

    def requests_calls(self, *, in_loop: bool) -> bool | None:
        """Whether a model's answer requests calls, by the reason why it ended; None where that is unknown.

        A request that failed has no answer. `in_loop`: what traces the agent's run traces its turns as well.
        """
        output = self.conversation.output
        if not output and (self.span.status_code == STATUS_ERROR or not self.is_request):
            return False
        requested = _requests_calls(self.span, output)
        return (
            None if requested is False and not in_loop and _stops_anyhow(self.span.attributes) else requested
        )

    @property
    def model(self) -> str:
        """The model that answered, else the requested one; empty where neither is known."""
        shape = self.shape
        if shape.usage_readers:
            return self.usage.model
        return "" if shape.usage_plan is None else shape.usage_plan.model(self.span)

    @property
    def tokens(self) -> TokenUsage | None:
        """The tokens on the span; None unless it has input and output."""
        shape = self.shape
        if shape.usage_readers:
            return self.usage.usage
        return None if shape.usage_plan is None else shape.usage_plan.tokens(self.span)

    @property
    def is_request(self) -> bool:
        """Whether the span of a model's turn is a request to one, not only a report of its messages."""
        return not self.shape.usage_readers or self.usage.is_request

    @property
    def usage(self) -> UsageReading:
        """The model, the tokens and the time to the first output on the span; read anew each time."""
        usage = NO_USAGE
        for read in self.shape.usage_readers:
            usage = merged_usage(usage, read(self.span))
        plan = self.shape.usage_plan
        return usage if plan is None else merged_usage(usage, plan.read(self.span))

    @late
    def _conversations(self) -> "_Conversations":
        return _Conversations(self.span, self.shape.dialects)

    @late
    def conversation(self) -> Conversation:
        """The messages of the first dialect that has any; input and output are chosen apart."""
        conversations = self._conversations.each
        if len(conversations) == 1:
            return conversations[0]
        return Conversation(
            lambda: next(filter(None, (one.input for one in conversations)), ()),
            lambda: next(filter(None, (one.output for one in conversations)), ()),
            lambda: next(filter(None, (one.tools() for one in conversations)), {}),
        )


@dataclass
class Trace:
    """The spans of a trace as they were read, which no pass changes; positions in `tree` name the spans."""

    tree: SpanTree
    readings: list[SpanReading | None]
    shapes: frozenset[Shape]
    """The shapes that occur."""

    def has(self, role: SpanRole) -> bool:
        """Whether some span has this role."""
        for shape in self.shapes:  # noqa: SIM110  # at every trace: a generator costs twice as much
            if shape.role is role:
                return True
        return False

    def is_read_by(self, dialect: str) -> bool:
        """Whether the dialect of this name reads some span."""
        for shape in self.shapes:  # a generator costs twice as much, as above
            for reader in shape.dialects:
                if reader.name == dialect:
                    return True
        return False

    @late
    def interruptions(self) -> Mapping[int, str]:
        """The spans that stopped to wait for a person, and those right above one; with the exception."""
        collected: dict[int, str] = {}
        for position, reading in enumerate(self.readings):
            if reading is not None and (name := interruption_of(reading.span)):
                collected.setdefault(position, name)
                collected.setdefault(self.tree.parents[position], name)
        return collected

    def readings_at(self, positions: Sequence[int]) -> list[SpanReading]:
        """The readings of the spans at `positions` that have one."""
        readings = self.readings
        return [reading for position in positions if (reading := readings[position]) is not None]

    def agent_name(self, position: int) -> str:
        """What the span at `position` calls its agent, or implies."""
        reading = self.readings[position]
        return "" if reading is None else reading.agent_name

    def tool(self, position: int) -> ToolReading:
        """The call that the span at `position` reports; an empty one where no dialect reads the span."""
        reading = self.readings[position]
        return _NO_TOOL if reading is None else reading.tool

    def agent(self, position: int) -> AgentReading:
        """The run that the span at `position` reports, likewise."""
        reading = self.readings[position]
        return _NO_AGENT if reading is None else reading.agent


class CarrierKind(Enum):
    """What stands for a run."""

    AGENT = auto()
    WORKFLOW = auto()
    LOCAL_ROOT = auto()
    NOTHING = auto()


@dataclass(slots=True, eq=False)
class RunScope:
    """The spans of one run, as positions in the tree."""

    kind: CarrierKind
    carrier: int
    """The span that stands for the run, or its first where nothing does."""
    layers: list[int]
    """The reports of the invocation itself, outermost first."""
    parent: "RunScope | None" = None
    """The run that this one is part of."""
    requested_by: int = -1
    """The tool call of the parent run under which this run lies, or -1."""
    agent_name: str = ""
    """The agent's name in its calls or steps, where no span of its own has it."""
    tools: list[int] = field(default_factory=list)
    """The calls."""
    models: list[int] = field(default_factory=list)
    """Model calls of the run's own turns, not those by a tool or another model call."""
    steps: list[int] = field(default_factory=list)
    """Steps of the run that name the agent."""
    is_whole: bool = True
    """False where the span that stands for the run may lack what lies above it."""
    has_lost_parents: bool = False
    """True where some span of the run named a parent that never arrived."""
    followed_by: int = -1
    """The span with which another agent took over from this one within its workflow, or -1."""
    has_calls: bool = False
    """True where calls lie in it, known before they are given to runs."""
    is_wrapper: bool = False
    """True where it only wraps other runs: what lies in it belongs to `parent`."""
    renamed: dict[int, str] = field(default_factory=dict)
    """Names of calls that their spans, at these positions, lack."""


@dataclass(slots=True)
class Outline:
    """What was found in a trace so far."""

    runs: list[RunScope] = field(default_factory=list)
    """Before calls are given to runs, those of agents alone."""
    calls: list[int] = field(default_factory=list)
    """The tool calls of all runs, parents before children; the model turns likewise."""
    turns: list[int] = field(default_factory=list)
    call_above: dict[int, int] = field(default_factory=dict)
    """For every call under another call of the same run: the nearest one."""
    wrappers: set[int] = field(default_factory=set)
    """Model turns that only wrap the one below them, which bears the messages."""


RewriteStage: TypeAlias = Literal["agents", "runs"]
"""`agents`: before calls and turns are given to runs. `runs`: when all runs are known."""
Rewrite: TypeAlias = Callable[[Trace, Outline], None]
"""Changes the outline of traces that need it. It begins with one cheap question, as it sees every trace."""


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
        decision=first.decision or second.decision,
        runs_agent=first.runs_agent or second.runs_agent,
    )


def merged_agents(readings: Sequence[AgentReading]) -> AgentReading:
    """One run out of all reports of it: what one leaves out is taken from the next that has it."""
    if len(readings) == 1:
        return readings[0]

    texts = {
        field: next(filter(None, (getattr(reading, field) for reading in readings)), "")
        for field in ("name", "inferred_name", "id", "version", "session")
    }
    awaited = next((reading.awaited for reading in readings if reading.awaited), NOTHING_AWAITED)
    return AgentReading(
        **texts,
        input=_best([reading.input for reading in readings]),
        output=ABSENT if awaited else _best([reading.output for reading in readings]),
        awaited=awaited,
        hides_calls=any(reading.hides_calls for reading in readings),
        needs_no_turns=any(reading.needs_no_turns for reading in readings),
    )


def decoded(captured: Captured) -> DecodedValue:
    """The value, read now where it was not."""
    return captured() if callable(captured) else captured


def _best(values: Sequence[Captured]) -> Captured:
    """The first value that is present, else the first that is there at all; nothing is read yet."""
    known = [value for value in values if value is not ABSENT]
    if len(known) < 2:
        return known[0] if known else ABSENT

    def chosen() -> DecodedValue:
        best = ABSENT
        for value in known:
            if best.state is ValueState.PRESENT:
                break
            best = better(best, decoded(value))
        return best

    return chosen


def _without_placeholders(reading: AgentReading) -> AgentReading:
    for key in ("name", "inferred_name", "id"):
        text = getattr(reading, key)
        if text and is_placeholder_agent(text):
            reading = replace(reading, **{key: ""})
    return reading


def _requests_calls(span: Span, output: Iterable[ChatMessage]) -> bool | None:
    """Whether the answer ended for calls to be made; None where that is unknown.

    The reason is in an attribute or in the messages, as a word, a list of words or its text.
    """
    attributes = span.attributes
    reasons = [json_text(attributes.get(key)) for key in attributes.among(_FINISH_REASONS)]
    reasons.extend(message.finish_reason for message in output)
    words = {
        word.lower().replace("_", "").replace("-", "") for text in reasons for word in _WORD.findall(text)
    } - {_CLASS}
    if words & _REQUEST_WORDS:
        return True
    return False if words and words <= _REQUESTS_NOTHING else None


def _stops_anyhow(attributes: Attributes) -> bool:
    """Whether the provider's answers end with `stop` whether or not they request calls."""
    provider = next((attributes.text(key) or "" for key in _PROVIDERS if key in attributes), "").lower()
    return any(name in provider for name in _STOPS_ANYHOW)
