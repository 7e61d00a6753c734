"""From the spans of one run to the `AgentRun` that evaluators see."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from processors.model import (
    ABSENT,
    AgentIdentity,
    AgentRun,
    CallCategory,
    DecodedValue,
    FinishReason,
    IncompleteReason,
    JsonValue,
    LocalRoot,
    Message,
    ModelCall,
    PriceTable,
    TokenUsage,
    ToolCall,
    ToolError,
    ValueState,
    decode_arguments,
    inserted,
    json_value,
    late,
)
from processors.reconstruction.calls import RunCalls, category_of, error_of
from processors.reconstruction.model_calls import TraceModels
from processors.shapes import (
    AGENT_NAME_RESOURCE_ATTRIBUTES,
    AgentReading,
    CarrierKind,
    ChatMessage,
    RunScope,
    SpanReading,
    SpanRole,
    ToolReading,
    Trace,
    after_results,
    better,
    decoded,
    in_turns,
    is_placeholder_agent,
    last_content,
    merge_tools,
    merged_agents,
    span_attributes,
)
from processors.spans import Envelope, cached_for_small

_UUID = re.compile(r"[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}")
_SHORTEST_UUID = 32
_NOTHING_READ = AgentReading()
_NO_TOOL = ToolReading()


class Ending(NamedTuple):
    """What is the same for all runs of a trace: whose it is, and how it ended."""

    trace_id: bytes
    tenant: str
    reason: FinishReason
    is_interrupted: bool
    """Whether spans may have been lost on our side."""
    may_lack_spans: bool
    refuses_lost_parents: bool
    """Whether runs with spans whose parent never came count as not complete."""


def agent_name_of_resource(envelope: Envelope) -> str:
    """What the resource calls the agent, if no span does; empty where it is called nothing in particular."""
    for key in AGENT_NAME_RESOURCE_ATTRIBUTES:
        reported = envelope.resource_attributes.text(key) or ""
        if not is_placeholder_agent(reported) and not reported.startswith("unknown_service"):
            return reported
    return ""


class RunReport:
    """What the spans of one run report of it.

    It is the content of the `AgentRun`: evaluators seldom look at those fields of it, which are read late.
    """

    messages_state = ValueState.ABSENT

    def __init__(
        self, run: RunScope, trace: Trace, calls: RunCalls, models: TraceModels, prices: PriceTable | None
    ) -> None:
        self.run = run
        self.trace = trace
        self.calls = calls
        self.executed: Sequence[ToolCall] = calls.build()
        self._turns = calls.turns
        self._models = models
        self._prices = prices
        reported = [reading.agent for reading in trace.readings_at(run.layers)]
        self.reading = merged_agents(reported) if reported else _NOTHING_READ

    @late
    def agent_name(self) -> str:
        """What the spans of the invocation report, else its calls, steps or turns, else the resource.

        An agent that runs as a tool of its own service is called as that tool is, not as the whole service.
        """
        run, reading = self.run, self.reading
        name = reading.name or run.agent_name or self.name_in_turns or reading.inferred_name
        if name:
            return name
        envelope = self.trace.tree.views[run.carrier].envelope
        return self._name_of_call(envelope.resource) or agent_name_of_resource(envelope)

    @property
    def name_in_turns(self) -> str:
        """The one name that model turns report of their agent; empty where there is none, or several."""
        names = {name for turn in self.trace.readings_at(self.run.models) if (name := turn.agent_of_turn)}
        return names.pop() if len(names) == 1 else ""

    def _name_of_call(self, resource: bytes) -> str:
        requested_by = self.run.requested_by
        if requested_by < 0 or self.trace.tree.views[requested_by].envelope.resource != resource:
            return ""
        call = self.trace.tool(requested_by)
        return call.name or call.inferred_name

    def lost_attributes(self) -> bool:
        """Whether the sender dropped attributes of a model turn, and with them perhaps calls."""
        return any(turn.span.dropped_attributes_count for turn in self.trace.readings_at(self.run.models))

    def release_spans(self) -> None:
        """Discard the spans one by one."""
        for views in (self.trace.readings, self.trace.tree.views):
            while views:
                views.pop()

    input = property(lambda self: self._requested.value)
    input_state = property(lambda self: self._requested.state)
    output = property(lambda self: self._answered.value)
    output_state = property(lambda self: self._answered.state)

    @late
    def error(self) -> ToolError | None:
        """Why the run failed by its outermost span."""
        for reading in self.trace.readings_at(self.run.layers[:1]):
            return error_of(reading.span, _NO_TOOL)
        return None

    @late
    def messages(self) -> Sequence[Message]:
        """The conversation, in turns; none where a part of it was cut off: that may be an answer."""
        given, answered = self._chat()
        chat = [*given, *answered]
        if any(message.unreadable for message in chat):
            return ()
        return in_turns(chat, self._places(given, chat))

    @late
    def span_attributes(self) -> Mapping[str, JsonValue]:
        """The attributes of the span that stands for the run."""
        return span_attributes(self.trace.tree.views[self.run.carrier])

    @late
    def available_tools(self) -> Mapping[str, JsonValue]:
        """The tools offered in the invocation or any model turn; some schemas stand on calls only."""
        collected: dict[str, JsonValue] = {}
        for reading in self.trace.readings_at((*self.run.layers, *self._turns)):
            merge_tools(collected, reading.conversation.tools())
        if None in collected.values():
            for reading in self.trace.readings_at(self.run.tools):
                reported = reading.conversation.tools()
                merge_tools(collected, {name: reported[name] for name in reported.keys() & collected.keys()})
        return collected

    @late
    def requested_calls(self) -> Sequence[tuple[int, ToolCall]]:
        """The calls that models requested and that were never executed."""
        return self.calls.requested_among(self.executed)

    @late
    def call_turns(self) -> Sequence[int | None]:
        """The model turn that requested each call, executed or not."""
        return self.calls.turns_of(inserted(self.executed, self.requested_calls))

    @late
    def local_root(self) -> LocalRoot:
        """The outermost span around the run."""
        tree, readings = self.trace.tree, self.trace.readings
        workflow, root = "", self.run.carrier
        above = root
        while above >= 0:
            root, reading = above, readings[above]
            if reading is not None and reading.role is SpanRole.WORKFLOW:
                workflow = reading.agent.name or reading.agent.inferred_name or workflow
            above = tree.parents[above]
        resource = _resource(tree.views[root].envelope.resource)
        return LocalRoot(
            span_id=tree.span_ids[root],
            workflow=workflow,
            resource=resource,
            start_unix_nano=tree.starts[root],
            end_unix_nano=tree.ends[root],
        )

    @late
    def model_calls(self) -> Sequence[ModelCall]:
        """The requests to models."""
        return self._models.calls(self.run)

    @late
    def models(self) -> Sequence[str]:
        """The models that answered, else those in the invocation's own spans."""
        reported = dict.fromkeys(call.model for call in self.model_calls if call.model)
        if not self.model_calls:
            reported = dict.fromkeys(
                reported.model for reported in self._models.reported_by_layers(self.run) if reported.model
            )
        return tuple(reported)

    @late
    def usage(self) -> TokenUsage | None:
        """The tokens of all requests."""
        return self._models.usage(self.run)

    @late
    def time_to_first_output_seconds(self) -> float | None:
        """The time from the start of the run to the first output of any request."""
        return self._models.time_to_first_output(self.run, self.model_calls)

    @late
    def cost(self) -> float | None:
        """What the tokens cost."""
        if self._prices is None:
            return None
        return self._prices.cost(self.model_calls, self.usage, self.models)

    @late
    def _requested(self) -> DecodedValue:
        """The run's own input, else the first model turn's last user message."""
        reported = decoded(self.reading.input)
        if reported.state is not ValueState.ABSENT:
            return _value_only(reported)
        for reading in self.trace.readings_at(sorted(self.run.models)):
            if reading.conversation.input:
                return better(reported, last_content(reading.conversation.input, "user"))
        return reported

    @late
    def _answered(self) -> DecodedValue:
        """The run's own output, else what the last turn answered: text without a request, or data."""
        if self.run.followed_by >= 0:
            return ABSENT  # handed over; the answer is that of the last agent
        reported = decoded(self.reading.output)
        if reported.state is not ValueState.ABSENT:
            return _value_only(reported)
        for reading in self.trace.readings_at(self._turns[-1:]):
            answered = after_results(reading.conversation.output)
            requests = [request for message in answered for request in message.requests]
            if not requests:
                reported = last_content(answered, "assistant")
            elif self.error is None and category_of(requests[-1]) is CallCategory.FINAL_ANSWER:
                reported = _value_only(decode_arguments(requests[-1].arguments))
        return _given_to_answer_tool(self.executed) if reported.state is ValueState.ABSENT else reported

    def _chat(self) -> tuple[Sequence[ChatMessage], Sequence[ChatMessage]]:
        """What the run was given, and the rest: the invocation's own, else the last model turn's history."""
        layers, turns = self.run.layers, self.trace.readings_at(self._turns)
        if layers and layers[0] in self.run.models:
            # Every turn is an invocation, which brings only what is new.
            return (), [message for turn in turns for message in _messages_of(turn)]
        for reading in self.trace.readings_at(layers):
            if reading.conversation.input and reading.conversation.output:
                return reading.conversation.input, reading.conversation.output
        return (), next(filter(None, map(_messages_of, reversed(turns))), ())

    def _places(self, given: Sequence[ChatMessage], chat: Sequence[ChatMessage]) -> list[int | None]:
        """For each message of `chat`, which begins with what was `given`, how many calls precede it.

        Known of all where they show every call, by its id, but of one with text before and after its calls;
        else of what the run was given, if the calls that it shows are the first ones: others follow it.
        """
        ids = [call.call_id or "" for call in self.executed]
        for before, call in reversed(self.requested_calls):
            ids.insert(before, call.call_id or "")
        position = {call_id: at for at, call_id in enumerate(ids) if call_id}
        is_known = len(position) == len(ids)
        places: list[int | None] = []
        place = 0
        shown: set[int] = set()
        for message in chat:
            own = [position[each.call_id] for each in message.requests if each.call_id in position]
            places.append(None if own and message.closing else min(own, default=place))
            place = max([place, *(at + 1 for at in own)])
            shown.update(own)
        if len(shown) == len(ids):
            return places
        are_first = len(shown) == place and (is_known or not any(message.requests for message in given))
        answered = {each.call_id for message in chat[len(given) :] for each in message.requests}
        if not are_first or not answered.isdisjoint(position):
            return [None] * len(chat)
        return [*places[: len(given)], *[None] * (len(chat) - len(given))]


def _messages_of(reading: SpanReading) -> Sequence[ChatMessage]:
    return [*reading.conversation.input, *reading.conversation.output]


def rebuilt_run(
    report: RunReport, reports: Mapping[RunScope, RunReport], session: str, ending: Ending
) -> AgentRun:
    """The run, with its calls in order of execution; `reports` has all runs of the trace."""
    run, tree, reading, calls = report.run, report.trace.tree, report.reading, report.executed
    is_nothing = run.kind is CarrierKind.NOTHING
    has_all_spans = (
        run.is_whole
        and not is_nothing
        and not ending.may_lack_spans
        and not tree.lacks_events
        and not (ending.refuses_lost_parents and run.has_lost_parents)
        and not (report.calls.from_messages and report.lost_attributes())
    )
    needs_turns = not reading.needs_no_turns
    hides_calls = (not calls and reading.hides_calls) or report.calls.may_be_hidden(needs_turns)
    carrier_id = tree.span_ids[run.carrier]
    envelope = tree.views[run.carrier].envelope
    readers = report.trace.readings_at((run.carrier, *run.models[:1]))
    if is_nothing:
        end = max((call.end_unix_nano for call in calls), default=0)
    else:
        end = tree.starts[run.followed_by] if run.followed_by >= 0 else tree.ends[run.layers[0]]
    return AgentRun(
        trace_id=ending.trace_id,
        span_id=None if is_nothing else carrier_id,
        agent=AgentIdentity(
            name=report.agent_name,
            id=_stable_id(reading.id),
            version=reading.version or envelope.resource_attributes.text("service.version"),
        ),
        tool_calls=calls,
        parent_agent=None if run.parent is None else reports[run.parent].agent_name,
        session=session or None,
        finish_reason=ending.reason,
        complete=has_all_spans and not hides_calls,
        incomplete_reason=_incomplete_reason(ending, tree.lacks_events, has_all_spans and hides_calls),
        start_unix_nano=tree.starts[run.carrier],
        end_unix_nano=end,
        tenant=ending.tenant,
        resource=_resource(envelope.resource),
        dialect=readers[0].shape.dialects[0].name if readers else "",
        carrier_span_id=carrier_id,
        content=report,
    )


def _incomplete_reason(ending: Ending, lacks_events: bool, only_hides_calls: bool) -> IncompleteReason:
    if ending.reason is FinishReason.OVER_LIMIT or lacks_events:
        return "over_limit"
    if ending.is_interrupted:
        return "interrupted"
    return "content_not_captured" if only_hides_calls else "incomplete_trace"


def _given_to_answer_tool(executed: Sequence[ToolCall]) -> DecodedValue:
    """What a model gave to the tool through which it answers, if it requested nothing after that."""
    for call in reversed(executed):
        if call.category is CallCategory.FINAL_ANSWER and call.error is None and call.arguments != {}:
            return _value_only(DecodedValue(call.arguments, call.arguments_text, call.arguments_state))
        if call.parallel_group is None or call.parallel_group != executed[-1].parallel_group:
            break
    return ABSENT


def _value_only(reported: DecodedValue) -> DecodedValue:
    return (
        reported
        if reported.state is ValueState.PRESENT
        else DecodedValue(None, reported.text, reported.state)
    )


def _stable_id(agent_id: str) -> str | None:
    """The agent's id, unless it is one that every run gets anew."""
    return None if not agent_id or (len(agent_id) >= _SHORTEST_UUID and _UUID.search(agent_id)) else agent_id


@cached_for_small(256)
def _resource(resource: bytes) -> dict[str, JsonValue]:
    attributes = Envelope(resource, b"").resource_attributes
    return {key: json_value(attributes.get(key)) for key in attributes}


def release_spans(runs: Iterable[AgentRun]) -> None:
    """Discard what `runs` are read from, span by span; nothing may be read from them any more.

    The last holder of a large trace would else release all of it in one step, which no other thread can
    interrupt.
    """
    for run in runs:
        if isinstance(run.content, RunReport):
            run.content.release_spans()
