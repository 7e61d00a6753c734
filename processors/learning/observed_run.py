"""What criteria can be learned from in one run, taken apart once."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from typing import Any, Literal, NamedTuple, TypeAlias

from processors.comparison import (
    Place,
    comparable_result_text,
    comparable_result_value,
    is_oversized,
    leaves,
    parallel_segments,
    place_text,
    readable_arguments,
    took_effect,
)
from processors.model import AgentRun, JsonObject, JsonValue, ToolCall, canonical_tool_name, late

MAX_LEAVES = 500
"""Values of one result that are looked at."""

Shape: TypeAlias = tuple[str, ...]
"""A place in a value with `[*]` for positions in lists."""

ToolPlace: TypeAlias = tuple[str, Shape]
"""A tool, and a place in its arguments or in its result."""

HeldAt: TypeAlias = tuple[Literal["args", "result"], str, Shape]
"""A place in the arguments of a tool, or in what it returned, outside of lists."""


class Held(NamedTuple):
    """A value in one call: the step of the call, whether it took effect, and the value."""

    step: int
    took_effect: bool
    value: str | int | float | bool


Flows: TypeAlias = dict[ToolPlace, list[tuple[Any, frozenset[ToolPlace]]]]
"""For each argument its values, each with the places in earlier results where it stood."""

EVERY_ITEM = "[*]"


@dataclass(frozen=True, slots=True)
class ObservedCall:
    """One call: its tool, its step (calls side by side share one), whether it took effect, its arguments."""

    tool: str
    step: int
    took_effect: bool
    arguments: JsonObject | None
    call: ToolCall

    def result_leaves(self) -> Iterator[tuple[Place, str | int | float | bool]]:
        """The values in the result with their places; none where it is not known."""
        text = comparable_result_text(self.call)
        if text is None or is_oversized(text):
            return
        for place, value in islice(leaves(comparable_result_value(self.call, text)), MAX_LEAVES):
            if isinstance(value, str | int | float):
                yield place, value


@dataclass
class ObservedRun:
    """One good run. `number` is drawn from its ids: it is the same wherever the run stands among others."""

    run: AgentRun
    number: int
    calls: Sequence[ObservedCall]
    ungrounded: frozenset[ToolPlace] | None = None
    """Arguments without a source in what the agent was shown; None: that is not known."""

    @property
    def signature(self) -> tuple[tuple[str, bool], ...]:
        """The tools in order, and whether each call took effect; calls side by side by name."""
        ordered = sorted(self.calls, key=lambda call: (call.step, call.tool))
        return tuple((call.tool, call.took_effect) for call in ordered)

    @late
    def flows(self) -> Flows:
        """Where the values of arguments come from."""
        return _flows(self.calls)

    @late
    def held(self) -> Mapping[HeldAt, Sequence[Held]]:
        """The values in arguments and results."""
        held: dict[HeldAt, list[Held]] = {}
        for call in self.calls:
            of_arguments = [
                (place, value)
                for place, value in leaves(call.arguments or {})
                if isinstance(value, str | int | float)
            ]
            parts: tuple[tuple[Literal["args", "result"], Any], ...] = (
                ("args", of_arguments),
                ("result", call.result_leaves()),
            )
            for part, values in parts:
                for place, value in values:
                    if not any(isinstance(step, int) for step in place):
                        at = part, call.tool, shape_of(place)
                        held.setdefault(at, []).append(Held(call.step, call.took_effect, value))
        return held


def observe(run: AgentRun) -> ObservedRun:
    """`run`, taken apart."""
    calls = run.evaluated_calls()
    steps = [step for step, segment in enumerate(parallel_segments(calls)) for _ in segment]
    observed = [
        ObservedCall(
            canonical_tool_name(call.name),
            step,
            took_effect(call),
            readable_arguments(call),
            call,
        )
        for call, step in zip(calls, steps, strict=True)
    ]
    ids = run.trace_id + (run.span_id or b"")
    return ObservedRun(run, int.from_bytes(sha256(ids).digest()[:8], "big"), observed)


def shape_of(place: Place) -> Shape:
    """`place` with `[*]` for positions."""
    return tuple(EVERY_ITEM if isinstance(step, int) else step for step in place)


def shape_text(shape: Shape) -> str:
    """`shape` as criteria write paths."""
    text = ""
    for step in shape:
        if step == EVERY_ITEM:
            text += step
            continue
        written = place_text((step,))
        text += written if not text or written.startswith("[") else f".{written}"
    return text


def checkable(value: JsonValue) -> bool:
    """Whether the source of `value` can be recognised: a text, or a number that is no small count."""
    if isinstance(value, str):
        return bool(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return not (isinstance(value, int) and 0 <= value <= 10)


def _flows(calls: Sequence[ObservedCall]) -> Flows:
    flows: Flows = {}
    returned_at: dict[Any, set[ToolPlace]] = {}
    waiting: list[ObservedCall] = []
    for call in calls:
        while waiting and waiting[0].step < call.step:
            earlier = waiting.pop(0)
            for result_place, returned in earlier.result_leaves():
                if checkable(returned):
                    key = isinstance(returned, str), returned
                    returned_at.setdefault(key, set()).add((earlier.tool, shape_of(result_place)))
        for place, value in leaves(call.arguments or {}):
            if checkable(value):
                sources = frozenset(returned_at.get((isinstance(value, str), value), ()))
                flows.setdefault((call.tool, shape_of(place)), []).append((value, sources))
        waiting.append(call)
    return flows
