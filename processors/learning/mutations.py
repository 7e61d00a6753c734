"""Broken runs: good ones with one thing changed, to see what criteria catch."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
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

_Mutation: TypeAlias = Callable[[list[ToolCall], int, Sequence[str]], "list[ToolCall] | None"]

FORBIDDEN_TOOL = "tool_that_was_never_called"


@dataclass(frozen=True, slots=True)
class BrokenRun:
    """A good run with one thing changed; `kind` says what."""

    kind: str
    run: AgentRun


def broken_runs(
    run: ObservedRun, tools: Sequence[str], known: set[tuple[tuple[str, bool], ...]]
) -> Iterator[BrokenRun]:
    """One broken run of each kind that `run` allows; the same ones for the same run.

    A run whose calls are, in order and outcome, those of some good run (`known`) is not broken by calls that
    are missing, doubled, swapped or exchanged, and left out.

    Args:
        run: The good run.
        tools: The tools of the agent as they are written.
        known: The signatures of all good runs.
    """
    calls = list(run.run.tool_calls)
    if not calls:
        return
    for number, (kind, mutate) in enumerate(_MUTATIONS.items()):
        draw = sha256(f"{run.number}:{number}".encode()).digest()
        at = int.from_bytes(draw[:4], "big") % len(calls)
        for position in (*range(at, len(calls)), *range(at)):
            changed = mutate(calls, position, tools)
            if changed is None:
                continue
            broken = replace(run.run, tool_calls=_numbered(changed), requested_calls=())
            if kind in _BY_SIGNATURE and observe(broken).signature in known:
                continue
            yield BrokenRun(kind, broken)
            break


def _numbered(calls: list[ToolCall]) -> list[ToolCall]:
    """`calls` without the numbers of calls that they try again, which are no longer right."""
    return [call if call.retry_of is None else structs.replace(call, retry_of=None) for call in calls]


def _left_out(calls: list[ToolCall], at: int, tools: Sequence[str]) -> list[ToolCall]:
    return calls[:at] + calls[at + 1 :]


def _doubled(calls: list[ToolCall], at: int, tools: Sequence[str]) -> list[ToolCall]:
    again = structs.replace(calls[at], call_id=None, span_id=None, parallel_group=None)
    return [*calls[: at + 1], again, *calls[at + 1 :]]


def _swapped(calls: list[ToolCall], at: int, tools: Sequence[str]) -> list[ToolCall] | None:
    if at + 1 == len(calls):
        return None
    one, other = calls[at], calls[at + 1]
    group = one.parallel_group
    if one.name == other.name or (group is not None and group == other.parallel_group):
        return None
    first, second = structs.replace(other, parallel_group=None), structs.replace(one, parallel_group=None)
    return [*calls[:at], first, second, *calls[at + 2 :]]


def _another_tool(calls: list[ToolCall], at: int, tools: Sequence[str]) -> list[ToolCall] | None:
    name = canonical_tool_name(calls[at].name)
    others = [tool for tool in tools if canonical_tool_name(tool) != name]
    if not others:
        return None
    return [*calls[:at], structs.replace(calls[at], name=others[at % len(others)]), *calls[at + 1 :]]


def _forbidden(calls: list[ToolCall], at: int, tools: Sequence[str]) -> list[ToolCall]:
    return [*calls[:at], structs.replace(calls[at], name=FORBIDDEN_TOOL), *calls[at:]]


def _changed_arguments(calls: list[ToolCall], at: int, tools: Sequence[str]) -> list[ToolCall] | None:
    """One argument with another value of its kind, as a model makes it up."""
    arguments = calls[at].arguments
    if not isinstance(arguments, dict) or calls[at].arguments_state is not ValueState.PRESENT:
        return None
    places = [
        (place, value)
        for place, value in leaves(arguments)
        if isinstance(value, str | int | float) and value != "" and not isinstance(value, bool)
    ]
    if not places:
        return None
    place, value = places[at % len(places)]
    changed = _with(arguments, place, _other_value(value))
    call = structs.replace(calls[at], arguments=changed, arguments_text=json_text(changed))
    return [*calls[:at], call, *calls[at + 1 :]]


def _ignored_error(calls: list[ToolCall], at: int, tools: Sequence[str]) -> list[ToolCall] | None:
    """A call that worked fails, and the run goes on as if it had not."""
    if calls[at].error is not None:
        return None
    failed = structs.replace(
        calls[at],
        error=ToolError(type="TimeoutError", message="the service did not answer"),
        result=None,
        result_text=None,
        result_state=ValueState.ABSENT,
    )
    return [*calls[:at], failed, *calls[at + 1 :]]


_MUTATIONS: dict[str, _Mutation] = {
    "a call left out": _left_out,
    "a call doubled": _doubled,
    "two calls swapped": _swapped,
    "another tool": _another_tool,
    "a forbidden tool": _forbidden,
    "changed arguments": _changed_arguments,
    "an error ignored": _ignored_error,
}
_BY_SIGNATURE = frozenset({"a call left out", "a call doubled", "two calls swapped", "an error ignored"})

STRUCTURAL = ("a call left out", "two calls swapped", "a forbidden tool")
"""The kinds that break which tools are called in which order."""


def _other_value(value: str | int | float) -> JsonValue:
    if isinstance(value, str):
        turned = "".join(
            chr(ord("0") + (ord(character) - ord("0") + 3) % 10)
            if "0" <= character <= "9"
            else chr(ord("a") + (ord(character) - ord("a") + 5) % 26)
            if "a" <= character <= "z"
            else character
            for character in value
        )
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
