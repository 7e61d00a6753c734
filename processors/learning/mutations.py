"""Broken runs: good ones with one thing changed, to see what criteria catch."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from string import ascii_lowercase, digits
from typing import Any, NamedTuple, TypeAlias

from msgspec import structs

from processors.comparison import leaves
from processors.learning.observed_run import HeldAt, ObservedRun, checkable, observe, shape_of
from processors.learning.relation_rules import largest_sums, number_limits, result_conditions
from processors.model import (
    AgentRun,
    JsonObject,
    JsonValue,
    ToolCall,
    ToolError,
    ValueState,
    canonical_tool_name,
    json_text,
)

_Calls: TypeAlias = Sequence[ToolCall] | None

_MAX_VALUES = 50
_TOO_LARGE = 1.6
"""A sum is broken from so many times the largest one on that good runs have."""

FORBIDDEN_TOOL = "tool_that_was_never_called"


@dataclass(frozen=True, slots=True)
class BrokenRun:
    """A good run with one thing changed; `kind` names it."""

    kind: str
    run: AgentRun


class Population:
    """Good runs of one agent, and what breaks one of them: it is then like none of them.

    `tools` are those of the agent as written.
    """

    def __init__(self, runs: Sequence[ObservedRun], tools: Sequence[str]) -> None:
        self.tools = tools
        self.conditions = result_conditions(runs)
        self.limits = number_limits(runs)
        self.sums = largest_sums(runs)
        self._signatures = {run.signature for run in runs}
        self._outcomes = {self._outcome(run) for run in runs}
        self.values: dict[HeldAt, list[JsonValue]] = {}
        for run in runs:
            for place, held in run.held.items():
                known = self.values.setdefault(place, [])
                known += [one.value for one in held if len(known) < _MAX_VALUES and one.value not in known]

    def broken_runs(self, run: ObservedRun) -> Iterator[BrokenRun]:
        """One broken run of each kind that `run` allows; the same ones for the same run.

        A run that has the calls of a good one is not broken by calls that are missing, doubled, swapped or
        exchanged, and left out; so is one with the results of a good one after results were changed.
        """
        calls = list(run.run.tool_calls)
        if not calls:
            return
        for number, (kind, mutate) in enumerate(_MUTATIONS.items()):
            draw = sha256(f"{run.number}:{number}".encode()).digest()
            at = int.from_bytes(draw[:4], "big") % len(calls)
            for position in (*range(at, len(calls)), *range(at)):
                changed = mutate(_Place(self, run, calls, position))
                if changed is None:
                    continue
                # The numbers of calls that are tried again are no longer right.
                changed = [structs.replace(call, retry_of=None) for call in changed]
                broken = replace(run.run, tool_calls=changed, requested_calls=())
                if self._is_known(kind, broken):
                    continue
                yield BrokenRun(kind, broken)
                break

    def _is_known(self, kind: str, broken: AgentRun) -> bool:
        if kind == CHANGED_RESULT:
            return self._outcome(observe(broken)) in self._outcomes
        return kind in _BY_SIGNATURE and observe(broken).signature in self._signatures

    def _outcome(self, run: ObservedRun) -> tuple[Any, ...]:
        """The calls with the results that what follows can depend on."""
        held = [(place, one) for place in self.conditions.keys() & run.held.keys() for one in run.held[place]]
        return run.signature, tuple(sorted((one.step, *place[1:], str(one.value)) for place, one in held))


class _Place(NamedTuple):
    """One call of a good run, where something may be changed."""

    population: Population
    run: ObservedRun
    calls: Sequence[ToolCall]
    at: int

    @property
    def call(self) -> ToolCall:
        """The call."""
        return self.calls[self.at]

    @property
    def tool(self) -> str:
        """Its tool, by the canonical name."""
        return canonical_tool_name(self.call.name)

    def changed(self, *calls: ToolCall, following: int = 1) -> Sequence[ToolCall]:
        """The calls of the run with `calls` in place of this one, or of so many from it on."""
        return [*self.calls[: self.at], *calls, *self.calls[self.at + following :]]

    def with_argument(self, at: Sequence[str | int], value: JsonValue) -> ToolCall:
        """The call with another value at a place of its arguments, which has to be there."""
        arguments = _with(self.known_arguments(), at, value)
        return structs.replace(self.call, arguments=arguments, arguments_text=json_text(arguments))

    def known_arguments(self) -> JsonObject:
        """The arguments of the call; none where they are not known."""
        is_known = self.call.arguments_state is ValueState.PRESENT
        return self.call.arguments if is_known and isinstance(self.call.arguments, dict) else {}


def _doubled(place: _Place) -> _Calls:
    return place.changed(
        place.call, structs.replace(place.call, call_id=None, span_id=None, parallel_group=None)
    )


def _swapped(place: _Place) -> _Calls:
    call, later = place.call, place.calls[place.at + 1 : place.at + 2]
    if not later or call.name == later[0].name:
        return None
    if call.parallel_group is not None and call.parallel_group == later[0].parallel_group:
        return None
    return place.changed(
        structs.replace(later[0], parallel_group=None),
        structs.replace(call, parallel_group=None),
        following=2,
    )


def _another_tool(place: _Place) -> _Calls:
    others = [tool for tool in place.population.tools if canonical_tool_name(tool) != place.tool]
    if not others:
        return None
    return place.changed(structs.replace(place.call, name=others[place.at % len(others)]))


def _changed_arguments(place: _Place) -> _Calls:
    """One argument with another value of its kind, as a model makes it up."""
    places = [
        (at, value)
        for at, value in leaves(place.known_arguments())
        if isinstance(value, str | int | float) and value != "" and not isinstance(value, bool)
    ]
    if not places:
        return None
    at, value = places[place.at % len(places)]
    return place.changed(place.with_argument(at, _other_value(value)))


def _ignored_error(place: _Place) -> _Calls:
    """A call that worked fails, and the run goes on as if it had not."""
    if place.call.error is not None:
        return None
    error = ToolError(type="TimeoutError", message="the service did not answer")
    return place.changed(
        structs.replace(
            place.call, error=error, result=None, result_text=None, result_state=ValueState.ABSENT
        )
    )


def _changed_result(place: _Place) -> _Calls:
    """A call returns another of the values on which what follows depends, and the run goes on as it did."""
    result = place.call.result
    for at, values in place.population.conditions.items():
        if at[1] == place.tool and isinstance(result, dict):
            known = [value for own, value in leaves(result) if own == at[2]]
            others = [value for value in values if known and value != known[0]]
            if others:
                changed = _with(result, at[2], others[place.at % len(others)])
                return place.changed(
                    structs.replace(place.call, result=changed, result_text=json_text(changed))
                )
    return None


def _argument_of_another_run(place: _Place) -> _Calls:
    """An argument that stands in other calls of the run too has the value that it has in another run."""
    for at, value in leaves(place.known_arguments()):
        own: HeldAt = "args", place.tool, shape_of(at)
        others = [other for other in place.population.values.get(own, ()) if other != value]
        is_related = any(
            one.value == value for other, held in place.run.held.items() if other[1] != own[1] for one in held
        )
        if others and is_related and checkable(value):
            return place.changed(place.with_argument(at, others[place.run.number % len(others)]))
    return None


def _number_above_its_limit(place: _Place) -> _Calls:
    """A number that never exceeds one in an earlier result does, by little."""
    for own, limit in place.population.limits:
        most = [one.value for one in place.run.held.get(limit, ())]
        if own[1] == place.tool and most and _has(place.known_arguments(), own[2]):
            largest = max(value for value in most if isinstance(value, int | float))
            above = largest + max(1, round(abs(largest) / 10))
            return place.changed(place.with_argument(own[2], above))
    return None


def _sum_too_large(place: _Place) -> _Calls:
    """Numbers as large as they may be, in all calls of a tool, which add up to more than they ever do."""
    for own, most in place.population.sums.items():
        if own[1] != place.tool:
            continue
        same = [
            _Place(place.population, place.run, place.calls, at)
            for at, call in enumerate(place.calls)
            if canonical_tool_name(call.name) == own[1]
        ]
        changed = {
            one.at: one.with_argument(own[2], most.largest)
            for one in same
            if _has(one.known_arguments(), own[2])
        }
        if len(changed) * most.largest > _TOO_LARGE * most.total:
            return [changed.get(at, call) for at, call in enumerate(place.calls)]
    return None


CHANGED_RESULT = "a changed result"

_MUTATIONS: dict[str, Callable[[_Place], _Calls]] = {
    "a call left out": lambda place: place.changed(),
    "a call doubled": _doubled,
    "two calls swapped": _swapped,
    "another tool": _another_tool,
    "a forbidden tool": lambda place: place.changed(
        structs.replace(place.call, name=FORBIDDEN_TOOL), place.call
    ),
    "changed arguments": _changed_arguments,
    "an error ignored": _ignored_error,
    CHANGED_RESULT: _changed_result,
    "an argument of another run": _argument_of_another_run,
    "a number above its limit": _number_above_its_limit,
    "a sum too large": _sum_too_large,
}
"""The calls of the run with something changed at a place; None where it cannot be done there."""

_BY_SIGNATURE = frozenset({"a call left out", "a call doubled", "two calls swapped", "an error ignored"})

STRUCTURAL = ("a call left out", "two calls swapped", "a forbidden tool")
"""The kinds that break which tools are called in which order."""


_TURNED = str.maketrans(
    digits + ascii_lowercase, digits[3:] + digits[:3] + ascii_lowercase[5:] + ascii_lowercase[:5]
)


def _other_value(value: str | int | float) -> JsonValue:
    if isinstance(value, str):
        turned = value.translate(_TURNED)
        return turned if turned != value else value + "x"
    return value * 3 + 17


def _has(value: JsonValue, place: Sequence[str | int]) -> bool:
    return any(list(at) == list(place) for at, _ in leaves(value))


def _with(value: JsonValue, place: Sequence[str | int], new: JsonValue) -> JsonValue:
    if not place:
        return new
    step, *rest = place
    if isinstance(value, dict):
        changed: JsonObject = {**value, str(step): _with(value[str(step)], rest, new)}
        return changed
    assert isinstance(value, list)
    assert isinstance(step, int)
    return [*value[:step], _with(value[step], rest, new), *value[step + 1 :]]
