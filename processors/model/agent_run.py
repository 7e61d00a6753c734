"""What an agent did in one invocation: the input of every evaluator.

Evaluators see these values only, never spans. Field by field they follow the canonical model of tool
calls and agent runs; how each is read from telemetry is the matter of `processors.frameworks` and
`processors.reconstruction.passes`.
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Literal, TypeAlias, TypeVar, cast, dataclass_transform

from msgspec import Struct, structs

from processors.model.finish_reason import FinishReason
from processors.model.json_values import JsonValue
from processors.model.late_values import late
from processors.model.model_usage import ModelCall, TokenUsage, seconds_between

IncompleteReason: TypeAlias = Literal["incomplete_trace", "interrupted", "over_limit", "content_not_captured"]
"""Why a run is not known whole: its trace was cut short, spans of it may have been lost on our side, it was
too large, or its telemetry does not show all its calls."""


class ValueState(StrEnum):
    """What is known of a captured value.

    Only `PRESENT` values may be compared. The others differ from an empty value: a missing
    argument object is not `{}`.
    """

    PRESENT = "present"
    ABSENT = "absent"
    REDACTED = "redacted"
    TRUNCATED = "truncated"
    UNPARSED = "unparsed"


class CallCategory(StrEnum):
    """What kind of tool a call went to."""

    FUNCTION = "function"
    MCP = "mcp"
    SERVER = "server"
    AGENT = "agent"
    RETRIEVAL = "retrieval"
    HANDOFF = "handoff"
    FINAL_ANSWER = "final_answer"


class Decision(StrEnum):
    """What a person, a policy or another process decided about a call before it could run."""

    APPROVED = "approved"
    DENIED = "denied"
    PENDING = "pending"


EVALUATED_CATEGORIES: frozenset[CallCategory] = frozenset(
    {CallCategory.FUNCTION, CallCategory.MCP, CallCategory.SERVER, CallCategory.AGENT, CallCategory.RETRIEVAL}
)
"""Categories that evaluators see unless criteria name others."""


class ToolError(Struct, frozen=True, kw_only=True):
    """Why a call or run failed; `type` is a class or code, `message` a text for people, both maybe empty."""

    type: str
    message: str


class ToolCall(Struct, frozen=True):
    """One execution of one tool.

    `arguments` and `result` are decoded values and mean something only while their state is `PRESENT`
    (a present value may be null). `arguments_text` and `result_text` are the texts that the telemetry
    carried after a known envelope was unwrapped; where only a value exists, its JSON with `", "` and
    `": "` (Python `str()` for the `content` wrapper of the `tool.name` form).

    `lenient_values` marks the form in which a span is known by `tool.name` alone: there a missing
    input is graded as `{}` and a missing output as the empty text, though the states are `ABSENT`.
    """

    name: str
    call_id: str | None = None
    span_id: bytes | None = None
    category: CallCategory = CallCategory.FUNCTION
    arguments: JsonValue = None
    arguments_text: str | None = None
    arguments_state: ValueState = ValueState.ABSENT
    result: JsonValue = None
    result_text: str | None = None
    result_state: ValueState = ValueState.ABSENT
    error: ToolError | None = None
    lenient_values: bool = False
    parallel_group: int | None = None
    """Calls with one number ran in parallel; None: no call is known to have run in parallel to this one."""
    start_unix_nano: int = 0
    end_unix_nano: int = 0
    executed: bool = True
    """False where only a model's request for the call was seen and nothing shows that it ran, and where the
    call is pending or was denied. A result is then what the model received instead of one."""
    attempt: int = 1
    """1, or one more than that of the call which this one tries again."""
    retry_of: int | None = None
    """Place of that call among the run's `tool_calls`, from 0; None for a first attempt."""
    decision: Decision | None = None
    """Whether the call was approved, where telemetry shows it; None: unknown, mostly because no decision was
    needed. A pending call waits for a person or another process, a denied one was refused: neither was
    executed, and neither is a failure of the tool."""
    decision_source: str = ""
    """The word of the framework that shows the decision, such as `ApprovalRequired` or `GraphInterrupt`."""
    agent: str = ""
    """The agent that made the call, where calls of several agents are looked at; empty: the run's own."""

    @property
    def is_held_back(self) -> bool:
        """Whether the call is pending or denied: not executed, and no failure of the tool."""
        return self.decision is not None and self.decision is not Decision.APPROVED

    @property
    def duration_seconds(self) -> float | None:
        """How long the call took; None where its times are not known."""
        return seconds_between(self.start_unix_nano, self.end_unix_nano)


class Message(Struct, frozen=True, kw_only=True):
    """One message of the conversation; `turn` counts from 0.

    `after` is how many of the run's `calls` precede it. None: telemetry does not show it. Where every message
    has it there are no others between the calls.
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    turn: int = 0
    after: int | None = None


class LocalRoot(Struct, frozen=True, kw_only=True):
    """The outermost span around a run, and what the trace goes by where no agent is around all of it."""

    span_id: bytes | None
    workflow: str = ""
    """The outermost workflow around the run; empty: there is none, or it has no name."""
    resource: Mapping[str, JsonValue] = {}
    start_unix_nano: int = 0
    end_unix_nano: int = 0


class AgentIdentity(Struct, frozen=True, kw_only=True):
    """Who ran. `name` is what criteria are keyed by."""

    name: str
    id: str | None = None
    version: str | None = None


class _OfContent:
    """A field of a run that, where it was not given, is read from `content`, and without any is a default.

    A run holds only what it was given, so that this is called for nothing else.
    """

    def __init__(self, default: object) -> None:
        self._default = default
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, run: "AgentRun | None", owner: type) -> object:
        if run is None:
            return self  # what the dataclass takes for the default
        return self._default if run.content is None else getattr(run.content, self._name)


_ValueT = TypeVar("_ValueT")
_NO_ATTRIBUTES: Mapping[str, JsonValue] = {}


def _of_content(default: _ValueT) -> _ValueT:
    return cast(_ValueT, _OfContent(default))


@dataclass_transform(frozen_default=True, kw_only_default=True)
def _run_type(cls: type[_ValueT]) -> type[_ValueT]:
    run_type = dataclass(kw_only=True)(cls)  # without slots, which would take the place of `_of_content`
    names = frozenset(each.name for each in fields(cls))  # type: ignore[arg-type]  # a dataclass since above
    required = {"trace_id", "span_id", "agent"}

    def take(self: object, **given: object) -> None:
        if not required <= given.keys() <= names:
            missing, unknown = sorted(required - given.keys()), sorted(given.keys() - names)
            raise TypeError(f"{cls.__name__} lacks {missing} and has no {unknown}")
        given.setdefault("resource", _NO_ATTRIBUTES)
        self.__dict__ = given

    setattr(run_type, "__init__", take)  # noqa: B010  # storing thirty defaults costs three times as much
    return run_type


@dataclass(frozen=True, slots=True)
class Conversation:
    """What was known of a run's conversation when the run was graded.

    `runs` are the other runs in it, in no order, of which only the calls, the times and whether they are
    complete are looked at. `gap` is why there may be unknown runs; empty: there are none.
    """

    runs: Sequence["AgentRun"] = ()
    gap: str = ""


@_run_type
class AgentRun:
    """One invocation of one agent, with its tool calls in the order of execution.

    `calls` holds every category; evaluators take `evaluated_calls`. `input` and `output` are text,
    or the JSON value where the agent's own is an object; they mean something only while their state is
    `PRESENT`. Runs are equal if their fields are, whether these were given or are read from `content`.
    """

    trace_id: bytes
    span_id: bytes | None
    agent: AgentIdentity
    tool_calls: Sequence[ToolCall] = _of_content(())
    parent_agent: str | None = None
    session: str | None = None
    input: JsonValue = _of_content(None)
    input_state: ValueState = _of_content(ValueState.ABSENT)
    output: JsonValue = _of_content(None)
    output_state: ValueState = _of_content(ValueState.ABSENT)
    error: ToolError | None = _of_content(None)
    """Why the run failed, by the agent's own span: an uncaught exception, mostly. None: no failure is known.
    A run that stops to wait for an answer has not failed."""
    messages: Sequence[Message] = _of_content(())
    messages_state: ValueState = _of_content(ValueState.PRESENT)
    """`PRESENT`: `messages` is the whole conversation. `ABSENT`: it is what telemetry shows of it. `REDACTED`
    and `TRUNCATED`: texts in it were hidden or cut, or all of it was left out."""
    finish_reason: FinishReason = FinishReason.ROOT
    complete: bool = True
    """False when spans of this run may be missing: only verdicts that no further span could change count."""
    incomplete_reason: IncompleteReason = "incomplete_trace"
    """Why a run that is not `complete` is not: the reason that `not_evaluated` results carry."""
    start_unix_nano: int = 0
    end_unix_nano: int = 0
    tenant: str = ""
    resource: Mapping[str, JsonValue] = field(default_factory=dict)
    """Resource attributes of the carrier span (empty for runs not read from spans)."""
    span_attributes: Mapping[str, JsonValue] = _of_content(_NO_ATTRIBUTES)
    """Attributes of the carrier span (empty for runs not read from spans); decoded when looked at."""
    dialect: str = field(default="", compare=False)
    """The dialect that read the run: the first that recognises its carrier span, or else one of its model
    turns (empty for runs not read from spans). This is how a run was read, not what it is, and so is
    not compared."""
    carrier_span_id: bytes | None = None
    """The span that results are written to: the invocation span, else the span in its place."""
    available_tools: Mapping[str, JsonValue] | None = _of_content(None)
    """The tools that the run could call, by name, with their JSON schemas (null: unknown).
    None or empty: the tools are unknown."""
    requested_calls: Sequence[tuple[int, ToolCall]] = _of_content(())
    """Calls that a model requested and that were never executed, where spans show those that were: each with
    the number of `tool_calls` before it, in order. The tool does not exist, the call was refused, or a limit
    was reached. What runs at the provider, handoffs and final answers are left out."""
    call_turns: Sequence[int | None] = _of_content(())
    """For each of `calls` the number, from 1, of the model turn that requested it, among those that requested
    any; 0: none did, it is a program's own. None: telemetry does not show it. Empty: it shows none."""
    model_calls: Sequence[ModelCall] = _of_content(())
    """The requests to models that the run made itself or through its tools, in order of start; those of
    agents within it are theirs."""
    models: Sequence[str] = _of_content(())
    """The models that answered, each once, in order; of a run without `model_calls` what its span names."""
    usage: TokenUsage | None = _of_content(None)
    """The tokens of all `model_calls`. If some do not report theirs, the total in the agent's own span, which
    may include agents within it; None if unknown."""
    time_to_first_output_seconds: float | None = _of_content(None)
    """Time from the start of the run to the first output of a model, where a model call reports it."""
    cost: float | None = _of_content(None)
    """What `usage` costs by the configured prices, in their currency; None where tokens are not known, or
    the price of a model is not."""
    stands_for_trace: bool = False
    """Whether this is no invocation of an agent but stands for the trace, by the name of its workflow or
    service, and has the verdicts of evaluations over the trace. It holds no calls."""
    content: object = field(default=None, repr=False, compare=False)
    """Has, as attributes, those of the fields that are read late and were not given."""
    conversation: Conversation | None = field(default=None, repr=False, compare=False)
    """The other runs with the same `session`, for evaluations over a conversation. None: not looked up."""

    @property
    def has_all_spans(self) -> bool:
        """Whether only calls may be missing, which telemetry does not show, if the run is not complete."""
        return self.complete or self.incomplete_reason == "content_not_captured"

    @property
    def local_root(self) -> LocalRoot | None:
        """The outermost span around the run; None for runs not read from spans."""
        root: LocalRoot | None = getattr(self.content, "local_root", None)
        return root

    @property
    def duration_seconds(self) -> float | None:
        """How long the run took; None where its times are not known."""
        return seconds_between(self.start_unix_nano, self.end_unix_nano)

    @late
    def calls(self) -> Sequence[ToolCall]:
        """Every call that the agent made, in order: `tool_calls` with `requested_calls` at their places."""
        return inserted(self.tool_calls, self.requested_calls)

    @late
    def call_counts(self) -> Mapping[tuple[str, str], int]:
        """How many of `tool_calls` in `EVALUATED_CATEGORIES` there are, by tool and by how they ended.

        That is `ok`, `error` or `not_executed`.
        """
        counts: dict[tuple[str, str], int] = {}
        for call in self.tool_calls:
            if call.category in EVALUATED_CATEGORIES:
                ended = "error" if call.error is not None else "ok" if call.executed else "not_executed"
                counts[call.name, ended] = counts.get((call.name, ended), 0) + 1
        return counts

    @late
    def last_end_unix_nano(self) -> int:
        """When the last of the run itself and its tool calls ended, by the sender's clock; 0 if unknown."""
        end = self.end_unix_nano
        for call in self.tool_calls:
            if call.end_unix_nano > end:
                end = call.end_unix_nano
        return end

    def with_content(
        self, content: object, *, session: str | None, resource: Mapping[str, JsonValue]
    ) -> "AgentRun":
        """The same run with these values, without its conversation, and the rest read from `content`."""
        late_values = ("calls", "call_counts", "last_end_unix_nano", *_READ_LATE)
        return self._with(
            *late_values, content=content, session=session, resource=resource, conversation=None
        )

    def with_calls(
        self,
        tool_calls: Sequence[ToolCall],
        requested_calls: Sequence[tuple[int, ToolCall]],
        *,
        complete: bool,
        incomplete_reason: IncompleteReason,
    ) -> "AgentRun":
        """The same run with these calls."""
        return self._with(
            "calls",
            tool_calls=tool_calls,
            requested_calls=requested_calls,
            call_turns=(),
            complete=complete,
            incomplete_reason=incomplete_reason,
        )

    def with_models(self, content: object) -> "AgentRun":
        """The same run with the model calls, models, usage and cost of `content`, which has all else, too."""
        return self._with("model_calls", "models", "usage", "cost", content=content)

    def named(self, name: str) -> "AgentRun":
        """The same run, of an agent of this name."""
        return self._with(agent=structs.replace(self.agent, name=name))

    def in_conversation(self, conversation: Conversation) -> "AgentRun":
        """The same run with what is known of its conversation."""
        return self._with(conversation=conversation)

    def _with(self, *unknown: str, **values: object) -> "AgentRun":
        """A copy with these values, and without those that `unknown` names."""
        other = copy(self)
        for name in unknown:
            other.__dict__.pop(name, None)
        other.__dict__.update(values)
        return other

    def answers_are_known(self) -> bool:
        """Whether `messages` shows the agent's answers; if not, they were not captured, or are hidden."""
        if self.messages_state is not ValueState.ABSENT:
            return self.messages_state is ValueState.PRESENT
        return any(message.role == "assistant" for message in self.messages)

    def evaluated_calls(
        self, categories: frozenset[CallCategory] = EVALUATED_CATEGORIES
    ) -> Sequence[ToolCall]:
        """The calls that evaluators see: those of one of `categories`, in order."""
        calls = self.calls
        for call in calls:
            if call.category not in categories:
                return [call for call in calls if call.category in categories]
        return calls  # the usual case


def inserted(items: Sequence[_ValueT], others: Iterable[tuple[int, _ValueT]]) -> Sequence[_ValueT]:
    """`items` with `others`, in order, each behind as many of `items` as it names."""
    result: list[_ValueT] = []
    position = 0
    for before, other in others:
        result += items[position:before]
        position = max(position, before)
        result.append(other)
    return [*result, *items[position:]] if result else items


_READ_LATE = tuple(name for name, value in AgentRun.__dict__.items() if isinstance(value, _OfContent))
"""The fields that are read from `content`."""
