"""The events of one run, in their order, as the templates of constraints look at them."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple

from processors.comparison.alignment import parallel_segments
from processors.comparison.captured_value import readable_arguments
from processors.comparison.event_target import Target, message_places, messages_are_known, returned_nothing
from processors.comparison.event_values import NONE, UNKNOWN, EventValue, Read
from processors.comparison.json_paths import JsonPath
from processors.comparison.value_equality import equality_key
from processors.model import (
    MAX_ASSIGNMENT_ATTEMPTS,
    MAX_MATCHED_CHARACTERS,
    AgentRun,
    JsonObject,
    JsonValue,
    OverLimitError,
    ValueState,
    contains_mask,
    has_masked_key,
    late,
)

_MAX_EVENTS: Final = 10_000
"""Calls, once for each kind they are of, that one evaluation looks at. Each costs about two microseconds."""
_MAX_PAIRS: Final = 20_000
"""Pairs of events that one evaluation compares by their values. Each costs about two microseconds."""


class Event(NamedTuple):
    """An event of a kind: its place in the run and in the sequence, what `same` picks, whether it is sure.

    `at` is a place in `AgentRun.calls`; those of `messages`, then the answer, are counted on from there.

    `alone`: nothing is known to have run in parallel. `held_back`: it is pending or was denied.
    """

    at: int
    step: int
    alone: bool
    key: Any
    sure: bool = True
    held_back: bool = False


def turn_of(run: AgentRun, at: int) -> Read:
    """The number of the model turn that requested the call at a place; NONE: no model did."""
    turn = run.call_turns[at] if at < len(run.call_turns) else None
    return UNKNOWN if turn is None else turn or NONE


def event_name(run: AgentRun, at: int) -> str:
    """The event at a place as findings count them: `call 2, refund`, `message 1, user` or `the answer`.

    A call of another agent names it: `call 2, refund of clerk`.
    """
    if at < len(run.calls):
        call = run.calls[at]
        return f"call {at + 1}, {call.name}" + (f" of {call.agent}" if call.agent else "")
    at -= len(run.calls)
    return f"message {at + 1}, {run.messages[at].role}" if at < len(run.messages) else "the answer"


class EventSequence:
    """Events with their places in the run, and their steps: calls that ran side by side share one."""

    def __init__(self, run: AgentRun, places: Sequence[int], may_change: bool, beside: bool) -> None:
        self._run = run
        self._calls = [run.calls[at] for at in places]
        self._places = places
        self._may_change = may_change
        self.length = len(places)
        self.beside = beside
        self._attempts = MAX_ASSIGNMENT_ATTEMPTS
        self._budget = MAX_MATCHED_CHARACTERS
        self._events_left = _MAX_EVENTS
        self._events: dict[tuple[int, tuple[JsonPath, ...]], list[Event]] = {}
        self._mixed: dict[frozenset[str], _Steps] = {}
        self._pairs_left = _MAX_PAIRS
        self._values: dict[tuple[int, int], Read] = {}

    def value(self, value: EventValue, at: int) -> Read:
        """What the event at a place has there."""
        key = id(value), at
        if key not in self._values:
            run = self._run
            if value.part == "turn":
                read = UNKNOWN if self._may_change else turn_of(run, at)
            elif at < len(run.calls):
                call = run.calls[at]
                text = call.arguments_text if value.part == "args" else call.result_text
                self._spend(len(text or "") + 1 if value.part in ("args", "result") else 1)
                read = value.of_call(call, run.agent.name, may_change=self._may_change)
            else:
                at -= len(run.calls)
                read = value.of_text(run.messages[at].content if at < len(run.messages) else run.output)
            self._values[key] = read
        return self._values[key]

    def request(self, at: int) -> tuple[Read, str] | None:
        """By what the model's request of a call is known: its turn and its id; None: by nothing."""
        call = self._run.calls[at]
        return (turn_of(self._run, at), call.call_id) if call.call_id else None

    def are_near(self, first: int, second: int, seconds: float) -> bool | None:
        """Whether no more than `seconds` are between two calls; None where their times are not known."""
        one, other = self._run.calls[first], self._run.calls[second]
        starts, ends = (one.start_unix_nano, other.start_unix_nano), (one.end_unix_nano, other.end_unix_nano)
        if self._may_change or not all((*starts, *ends)):
            return None
        return max(starts) - min(ends) <= seconds * 1e9

    def count_pairs(self, number: int) -> None:
        """Note that pairs of events are compared."""
        self._pairs_left -= number
        if self._pairs_left < 0:
            raise OverLimitError

    def name(self, at: int) -> str:
        """The event at a place, as explanations name it."""
        return event_name(self._run, at)

    @late
    def _steps(self) -> list[tuple[int, bool]]:
        """For each call its step, and whether it is alone there."""
        segments = parallel_segments(self._calls)
        return [(step, len(segment) == 1) for step, segment in enumerate(segments) for _ in segment]

    def _steps_with(self, roles: frozenset[str]) -> "_Steps":
        """The steps where messages of `roles` stand among the calls."""
        if not roles:
            return _Steps(self._steps, {})
        if roles not in self._mixed:
            run = self._run
            waiting = [
                (after, at)
                for at, (message, after) in enumerate(zip(run.messages, message_places(run), strict=True))
                if message.role in roles
            ][::-1]
            of_calls: list[tuple[int, bool]] = []
            of_messages: dict[int, int] = {}
            step = 0
            for segment in parallel_segments(self._calls):
                while waiting and waiting[-1][0] <= self._places[segment.start]:
                    of_messages[waiting.pop()[1]] = step
                    step += 1
                of_calls += [(step, len(segment) == 1)] * len(segment)
                step += 1
            for _, at in reversed(waiting):
                of_messages[at] = step
                step += 1
            of_messages[len(run.messages)] = step  # the answer
            self._mixed[roles] = _Steps(of_calls, of_messages)
        return self._mixed[roles]

    def lacks(self, kind: Target) -> bool:
        """Whether there may be events of this kind that telemetry does not show, or not where they stand."""
        if kind.kind == "call":
            return False
        if self._may_change:
            return True
        if kind.role is None:
            return self._run.output_state is not ValueState.PRESENT
        return not messages_are_known(self._run, kind.role)

    def lacks_messages(self, roles: frozenset[str]) -> bool:
        """Whether there may be messages of `roles` that telemetry does not show, or not where they stand."""
        return any(not messages_are_known(self._run, role) for role in roles - {"answer"})

    @late
    def _names(self) -> frozenset[str]:
        """The tools that were called."""
        return frozenset(call.name for call in self._calls)

    def at_end(self, end: Literal["init", "last"]) -> list[tuple[int, str]]:
        """Place and tool of the calls of the first, or of the last, step."""
        own, _ = self._steps[0 if end == "init" else -1]
        calls = zip(self._places, self._calls, self._steps, strict=True)
        return [(at, call.name) for at, call, (step, _) in calls if step == own]

    def events(
        self, kind: Target, paths: tuple[JsonPath, ...] = (), roles: frozenset[str] = frozenset()
    ) -> list[Event]:
        """The events of a kind, in order; those that may be of it, with values that are not known, too.

        Their steps are those among the calls and the messages of `roles`.
        """
        events = self._events.get((id(kind), paths))
        if events is not None:
            return events
        events = self._events[id(kind), paths] = []
        if kind.kind != "call":
            return self._add_texts(kind, events, roles)
        names = {name for name in self._names if name in kind.tools}
        if not names:
            return events
        agent, may_change = self._run.agent.name, self._may_change
        steps = self._steps_with(roles).of_calls if roles else self._steps
        for at, call, (step, alone) in zip(self._places, self._calls, steps, strict=True):
            if call.name not in names:
                continue
            fit = kind.facts_fit(call, agent, may_change=may_change) if kind.has_facts else True
            if fit is False:
                continue
            self._events_left -= 1
            if self._events_left < 0:
                raise OverLimitError
            sure, key = fit is True, ()
            if kind.cost or paths:
                arguments = readable_arguments(call)
                self._spend((len(call.arguments_text or "") + 1) * (kind.cost + len(paths)))
                fit = None
                if arguments is not None:
                    fit = kind.arguments_fit(arguments)
                    if fit is False:
                        continue
                sure = sure and (fit is True or not kind.cost)
                key = _key(arguments, paths)
            if kind.result_cost:
                if not returned_nothing(call):
                    self._spend((len(call.result_text or "") + 1) * kind.result_cost)
                fit = kind.result_fits(call, may_change=may_change)
                if fit is False:
                    continue
                sure = sure and fit is True
            events.append(Event(at, step, alone, key, sure, call.is_held_back))
        if roles:  # between a text and calls side by side that are all meant stands nothing else
            sizes, own = (
                Counter(step for step, _ in steps),
                Counter(each.step for each in events if each.sure),
            )
            events[:] = [each._replace(alone=own[each.step] == sizes[each.step]) for each in events]
        return events

    def _add_texts(self, kind: Target, events: list[Event], roles: frozenset[str]) -> list[Event]:
        """Add the messages of a kind, or the answer."""
        run = self._run
        steps = self._steps_with(roles or frozenset(("user", "assistant"))).of_messages
        texts: list[tuple[int, JsonValue, bool]] = []
        if kind.kind == "message":
            texts = [
                (at, message.content, not run.calls or message.after is not None)
                for at, message in enumerate(run.messages)
                if message.role == kind.role
            ]
        elif run.output_state is ValueState.PRESENT:
            texts = [(len(run.messages), run.output, True)]
        for at, content, has_place in texts:
            self._events_left -= 1
            if self._events_left < 0:
                raise OverLimitError
            self._spend(len(content) + 1 if isinstance(content, str) else 1)
            fit = kind.text_fits(content)
            if fit is not False:
                sure = fit is True and has_place and not self._may_change
                events.append(Event(len(run.calls) + at, steps[at], True, (), sure))
        return events

    def _spend(self, characters: int) -> None:
        self._attempts -= 1
        self._budget -= characters
        if self._attempts < 0 or self._budget < 0:
            raise OverLimitError


class _Steps(NamedTuple):
    """Of each call the step and whether it is alone there; of messages and the answer the step by place."""

    of_calls: list[tuple[int, bool]]
    of_messages: dict[int, int]


def _key(arguments: JsonObject | None, paths: tuple[JsonPath, ...]) -> Any:
    """The values at `paths`, in a form that compares; `NONE`: one is missing; `UNKNOWN`: not known."""
    if arguments is None:
        return UNKNOWN if paths else ()
    keys = []
    for path in paths:
        values = path.values(arguments)
        if not values:
            return UNKNOWN if has_masked_key(arguments) else NONE
        if any(map(contains_mask, values)):
            return UNKNOWN
        keys.append(equality_key(values))
    return tuple(keys)
