"""Spans of a finished trace to the agent runs in it: what every agent did, in which order, to what effect.

The result depends on the set of spans alone, not on the order they came in or how they were batched.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache, partial
from typing import Literal

from processors.frameworks.dialect import AgentReading, Dialect
from processors.frameworks.discovery import discover_dialects
from processors.frameworks.shapes.attribute_reading import better
from processors.frameworks.shapes.available_tools import merge_tools
from processors.frameworks.shapes.late_mapping import LateMapping
from processors.frameworks.shapes.late_sequence import LateSequence
from processors.frameworks.shapes.late_value import CapturedValue
from processors.frameworks.shapes.messages import ChatMessage, after_results, last_text
from processors.frameworks.shapes.placeholder_names import (
    AGENT_NAME_RESOURCE_ATTRIBUTES,
    is_placeholder_agent,
)
from processors.frameworks.shapes.span_attributes import span_attributes
from processors.frameworks.shapes.transcript import in_turns
from processors.model.agent_run import (
    AgentIdentity,
    AgentRun,
    CallCategory,
    IncompleteReason,
    Message,
    ToolCall,
    ValueState,
)
from processors.model.finish_reason import CUT_SHORT, FinishReason
from processors.model.json_value import JsonValue
from processors.model.values import ABSENT, DecodedValue, json_value, text_value
from processors.reconstruction.rebuilt_run import RebuiltRun
from processors.reconstruction.run_calls import RunCalls
from processors.reconstruction.run_scope import CarrierKind, RunScope, Scopes
from processors.reconstruction.run_scopes import find_scopes
from processors.reconstruction.span_reading import SpanReader, SpanReading, merged_agent
from processors.spans.envelope import Envelope
from processors.spans.small_bytes_cache import cached_for_small
from processors.spans.span import RawSpan
from processors.spans.span_tree import SpanTree

_UUID = re.compile(r"[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}")
_NOTHING_READ = AgentReading()


def reconstruct(
    spans: Sequence[RawSpan],
    *,
    trace_id: bytes,
    reason: FinishReason,
    was_quiet: bool = False,
    interrupted: bool = False,
    missing_parents: Literal["grade", "not_evaluated"] = "grade",
    tenant: str = "",
    reader: SpanReader | None = None,
) -> list[AgentRun]:
    """The agent runs in the spans of one trace, in order of start; none where no agent or call is told.

    Args:
        spans: All spans of the trace, in any order; repeated ones count once.
        trace_id: Goes into the runs.
        reason: Why the trace was taken as finished; runs of a trace that was cut short are not complete,
        was_quiet: unless no span had come for its grace by then.
        interrupted: Spans may have been lost on our side: no run is complete.
        missing_parents: Whether runs with spans whose parent never came may be complete.
        tenant: Goes into the runs.
        reader: Reads the spans; by default with the built-in dialects.
    """
    if reader is None:
        reader = span_reader()
    tree = SpanTree(spans)
    readings = [reader.read(view) for view in tree.views]
    if not any(readings):
        return []
    may_lack_spans = interrupted or (reason in CUT_SHORT and not was_quiet)
    scopes = find_scopes(tree, readings, lost_means_filtered=not may_lack_spans)
    told = {id(scope): _Run(scope, scopes, tree, readings) for scope in scopes.runs}
    sessions = _sessions(scopes.runs, told)
    runs: list[AgentRun] = []
    for scope in scopes.runs:
        run = told[id(scope)]
        calls = run.made = run.calls.build()
        if not calls and scope.kind in (CarrierKind.LOCAL_ROOT, CarrierKind.NOTHING):
            continue
        parent = scope.parent
        hides_calls = not calls and run.reading.hides_calls
        is_complete = (
            scope.is_whole
            and scope.kind is not CarrierKind.NOTHING
            and not may_lack_spans
            and not tree.lacks_events
            and not (missing_parents == "not_evaluated" and scope.has_lost_parents)
            and not (run.calls.from_messages and run.lost_attributes())
            and not hides_calls
        )
        envelope = tree.views[scope.carrier].envelope
        rebuilt = RebuiltRun(
            trace_id=trace_id,
            span_id=None if scope.kind is CarrierKind.NOTHING else tree.span_ids[scope.carrier],
            agent=AgentIdentity(
                name=run.agent_name(),
                id=_stable_id(run.reading.id),
                version=run.reading.version or envelope.resource_attributes.text("service.version"),
            ),
            tool_calls=calls,
            parent_agent=None if parent is None else told[id(parent)].agent_name(),
            session=sessions[id(scope)] or None,
            messages=LateSequence(run.messages),
            messages_state=ValueState.ABSENT,
            finish_reason=reason,
            complete=is_complete,
            incomplete_reason=_incomplete_reason(reason, interrupted, tree.lacks_events, hides_calls),
            start_unix_nano=run.start(),
            end_unix_nano=run.end(calls),
            tenant=tenant,
            resource=_resource(envelope.resource),
            span_attributes=LateMapping(partial(span_attributes, tree.views[scope.carrier].raw)),
            carrier_span_id=tree.span_ids[scope.carrier],
            available_tools=LateMapping(run.tools),
            requested_tools=LateSequence(run.calls.never_made),
        )
        rebuilt.defer(run.input, run.output)
        runs.append(rebuilt)
    return runs


class _Run:
    """What one scope's spans say about the run as a whole."""

    def __init__(
        self, scope: RunScope, scopes: Scopes, tree: SpanTree, readings: Sequence[SpanReading | None]
    ) -> None:
        self._scope = scope
        self._tree = tree
        self._readings = readings
        self.calls = RunCalls(scope, scopes, tree, readings)
        self.made: Sequence[ToolCall] = ()
        reading = _NOTHING_READ
        for layer in scope.layers:
            told = readings[layer]
            if told is not None:
                reading = told.agent if reading is _NOTHING_READ else merged_agent(reading, told.agent)
        self.reading = reading

    def agent_name(self) -> str:
        """What the spans of the invocation say, then what its calls, steps or turns say, then the resource.

        An agent that runs as a tool of its own service is called as that tool is, not as the whole service.
        """
        name = (
            self.reading.name or self._scope.agent_name or self._name_in_turns() or self.reading.inferred_name
        )
        if name:
            return name
        envelope = self._tree.views[self._scope.carrier].envelope
        name = self._name_of_call(envelope.resource)
        if name:
            return name
        for key in AGENT_NAME_RESOURCE_ATTRIBUTES:
            told = envelope.resource_attributes.text(key) or ""
            if not is_placeholder_agent(told) and not told.startswith("unknown_service"):
                return told
        return ""

    def _name_in_turns(self) -> str:
        """The one name that model turns tell of their agent."""
        turns = (self._readings[position] for position in self._scope.models)
        names = {name for turn in turns if turn is not None and (name := turn.agent_of_turn)}
        return names.pop() if len(names) == 1 else ""

    def _name_of_call(self, resource: bytes) -> str:
        asked_by = self._scope.asked_by
        reading = self._readings[asked_by] if asked_by >= 0 else None
        if reading is None or self._tree.views[asked_by].envelope.resource != resource:
            return ""
        return reading.tool.name or reading.tool.inferred_name

    def input(self) -> CapturedValue:
        """The run's own input, else the first model turn's last user message."""
        told = self.reading.input
        if told.state is not ValueState.ABSENT:
            return _value_only(told)
        for position in sorted(self._scope.models):
            reading = self._readings[position]
            if reading is not None and reading.conversation.input:
                return better(told, text_value(last_text(reading.conversation.input, "user")))
        return told

    def output(self) -> CapturedValue:
        """The run's own output, else a last turn's text if it asks for no call, else the answer as data."""
        if self._scope.followed_by >= 0:
            return ABSENT  # handed over; the answer is that of the last agent
        told = self.reading.output
        if told.state is not ValueState.ABSENT:
            return _value_only(told)
        for position in self.calls.turns[-1:]:
            reading = self._readings[position]
            if reading is not None:
                answered = after_results(reading.conversation.output)
                if not any(message.requests for message in answered):
                    told = text_value(last_text(answered, "assistant"))
        return _given_to_answer_tool(self.made) if told.state is ValueState.ABSENT else told

    def messages(self) -> Sequence[Message]:
        """The conversation, in turns."""
        return in_turns(self._chat())

    def _chat(self) -> Sequence[ChatMessage]:
        """The conversation: the invocation's own, else that of the last model turn with its history."""
        if self._scope.layers and self._scope.layers[0] in self._scope.models:
            return [*self._told_in_turns()]
        for layer in self._scope.layers:
            reading = self._readings[layer]
            if reading is not None and reading.conversation.input and reading.conversation.output:
                return [*reading.conversation.input, *reading.conversation.output]
        for position in reversed(self.calls.turns):
            reading = self._readings[position]
            if reading is not None and (reading.conversation.input or reading.conversation.output):
                return [*reading.conversation.input, *reading.conversation.output]
        return ()

    def _told_in_turns(self) -> Iterator[ChatMessage]:
        """What each turn adds, where every turn is an invocation that brings only what is new."""
        for position in self.calls.turns:
            reading = self._readings[position]
            if reading is not None:
                yield from reading.conversation.input
                yield from reading.conversation.output

    def tools(self) -> dict[str, JsonValue]:
        """The tools that the invocation or any model turn of it was offered."""
        found: dict[str, JsonValue] = {}
        for position in (*self._scope.layers, *self.calls.turns):
            reading = self._readings[position]
            if reading is not None:
                merge_tools(found, reading.conversation.tools())
        return found

    def lost_attributes(self) -> bool:
        """Whether the sender dropped attributes of a model turn, and with them perhaps calls."""
        return any(
            reading.span.dropped_attributes_count
            for position in self._scope.models
            if (reading := self._readings[position]) is not None
        )

    def start(self) -> int:
        return self._tree.starts[self._scope.carrier]

    def end(self, calls: Sequence[ToolCall]) -> int:
        if self._scope.kind is CarrierKind.NOTHING:
            return max((call.end_unix_nano for call in calls), default=0)
        if self._scope.followed_by >= 0:
            return self._tree.starts[self._scope.followed_by]
        return self._tree.ends[self._scope.layers[0]]


def _sessions(scopes: Sequence[RunScope], told: dict[int, _Run]) -> dict[int, str]:
    """The session of every run: that of the outermost run around it that tells one."""
    sessions: dict[int, str] = {}
    for scope in scopes:
        chain: list[RunScope] = []
        above: RunScope | None = scope
        while above is not None and id(above) not in sessions:
            chain.append(above)
            above = above.parent
        session = "" if above is None else sessions[id(above)]
        for inner in reversed(chain):
            session = session or told[id(inner)].reading.session
            sessions[id(inner)] = session
    return sessions


def _incomplete_reason(
    reason: FinishReason, interrupted: bool, lacks_events: bool, hides_calls: bool
) -> IncompleteReason:
    if reason is FinishReason.OVER_LIMIT or lacks_events:
        return "over_limit"
    if interrupted:
        return "interrupted"
    return "content_not_captured" if hides_calls and reason not in CUT_SHORT else "incomplete_trace"


def _given_to_answer_tool(made: Sequence[ToolCall]) -> CapturedValue:
    """What a model gave to the tool through which it answers, if it asked for nothing after that."""
    for call in reversed(made):
        if call.category is CallCategory.FINAL_ANSWER and call.error is None and call.arguments != {}:
            return _value_only(DecodedValue(call.arguments, call.arguments_text, call.arguments_state))
        if call.parallel_group is None or call.parallel_group != made[-1].parallel_group:
            break
    return ABSENT


def _value_only(told: CapturedValue) -> CapturedValue:
    return told if told.state is ValueState.PRESENT else DecodedValue(None, told.text, told.state)


def _stable_id(agent_id: str) -> str | None:
    """The agent's id, unless it is one that every run gets anew."""
    return None if not agent_id or _UUID.search(agent_id) else agent_id


def span_reader(own: Sequence[Dialect] = ()) -> SpanReader:
    """What reads spans with the dialects `own` first, then with all that are built in."""
    return SpanReader([*own, *discover_dialects()]) if own else _built_in_reader()


@cache
def _built_in_reader() -> SpanReader:
    return SpanReader(discover_dialects())


@cached_for_small(256)
def _resource(resource: bytes) -> dict[str, JsonValue]:
    attributes = Envelope(resource, b"").resource_attributes
    return {key: json_value(attributes.get(key)) for key in attributes}
