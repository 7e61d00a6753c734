"""Broken runs: good ones with one thing changed, to see what criteria catch."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from string import ascii_lowercase, digits
from typing import TypeAlias

from msgspec import structs

from processors.comparison import leaves
from processors.learning.observed_run import ObservedRun, observe
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

FORBIDDEN_TOOL = "tool_that_was_never_called"


@dataclass(frozen=True, slots=True)
class BrokenRun:
    """A good run with one thing changed; `kind` names it."""

    kind: str
    run: AgentRun


def broken_runs(
    run: ObservedRun, tools: Sequence[str], known: set[tuple[tuple[str, bool], ...]]
) -> Iterator[BrokenRun]:
    """One broken run of each kind that `run` allows; the same ones for the same run.

    `tools` are those of the agent as written, `known` the signatures of all good runs: a run that has one of
    these is not broken by calls that are missing, doubled, swapped or exchanged, and left out.
    """
    calls = list(run.run.tool_calls)
    if not calls:
        return
    for number, (kind, mutate) in enumerate(_MUTATIONS.items()):
        draw = sha256(f"{run.number}:{number}".encode()).digest()
        at = int.from_bytes(draw[:4], "big") % len(calls)
        for position in (*range(at, len(calls)), *range(at)):
            changed = mutate(calls[position], calls[position + 1 :], tools, position)
            if changed is None:
                continue
            # The numbers of calls that are tried again are no longer right.
            changed = [structs.replace(call, retry_of=None) for call in (*calls[:position], *changed)]
            broken = replace(run.run, tool_calls=changed, requested_calls=())
            if kind in _BY_SIGNATURE and observe(broken).signature in known:
                continue
            yield BrokenRun(kind, broken)
            break


def _swapped(call: ToolCall, later: Sequence[ToolCall], tools: Sequence[str], at: int) -> _Calls:
    if not later or call.name == later[0].name:
        return None
    if call.parallel_group is not None and call.parallel_group == later[0].parallel_group:
        return None
    return [
        structs.replace(later[0], parallel_group=None),
        structs.replace(call, parallel_group=None),
        *later[1:],
    ]


def _another_tool(call: ToolCall, later: Sequence[ToolCall], tools: Sequence[str], at: int) -> _Calls:
    name = canonical_tool_name(call.name)
    others = [tool for tool in tools if canonical_tool_name(tool) != name]
    return [structs.replace(call, name=others[at % len(others)]), *later] if others else None


def _changed_arguments(call: ToolCall, later: Sequence[ToolCall], tools: Sequence[str], at: int) -> _Calls:
    """One argument with another value of its kind, as a model makes it up."""
    if not isinstance(call.arguments, dict) or call.arguments_state is not ValueState.PRESENT:
        return None
    places = [
        (place, value)
        for place, value in leaves(call.arguments)
        if isinstance(value, str | int | float) and value != "" and not isinstance(value, bool)
    ]
    if not places:
        return None
    place, value = places[at % len(places)]
    changed = _with(call.arguments, place, _other_value(value))
    return [structs.replace(call, arguments=changed, arguments_text=json_text(changed)), *later]


def _ignored_error(call: ToolCall, later: Sequence[ToolCall], tools: Sequence[str], at: int) -> _Calls:
    """A call that worked fails, and the run goes on as if it had not."""
    if call.error is not None:
        return None
    error = ToolError(type="TimeoutError", message="the service did not answer")
    failed = structs.replace(call, error=error, result=None, result_text=None, result_state=ValueState.ABSENT)
    return [failed, *later]


_MUTATIONS: dict[str, Callable[[ToolCall, Sequence[ToolCall], Sequence[str], int], _Calls]] = {
    "a call left out": lambda call, later, tools, at: later,
    "a call doubled": lambda call, later, tools, at: [
        call,
        structs.replace(call, call_id=None, span_id=None, parallel_group=None),
        *later,
    ],
    "two calls swapped": _swapped,
    "another tool": _another_tool,
    "a forbidden tool": lambda call, later, tools, at: [
        structs.replace(call, name=FORBIDDEN_TOOL),
        call,
        *later,
    ],
    "changed arguments": _changed_arguments,
    "an error ignored": _ignored_error,
}
"""What becomes of the call at a position and of those after it; None where it cannot be done there."""

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
