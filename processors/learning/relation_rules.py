"""Rules over the values of several calls: what follows from results, what agrees, limits and sums."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from processors.learning.argument_rules import MIN_VALUES_RUNS
from processors.learning.observed_run import (
    Held,
    HeldAt,
    ObservedRun,
    Shape,
    checkable,
    shape_text,
)
from processors.learning.order_rules import MIN_RUNS, constraint, seen_tools, with_status
from processors.learning.rule import Rule, tolerated
from processors.learning.run_rules import SPARE, nice
from processors.model import JsonValue, json_text

_MAX_CONDITIONS = 6
"""Different values of a result that what follows can depend on."""
_MAX_RULES = 40
_DIFFERENT_VALUES = 3
"""Different values that must agree: one that never changes does not show what it agrees with."""
_EXPECTED = 5.0
"""Runs in which a call would follow by chance; none then means that the result forbids it."""
_EXPECTED_ABOVE = 10
"""Runs that would exceed a limit if their numbers had nothing to do with it."""

Conditions: TypeAlias = Mapping[HeldAt, Sequence[str | bool]]
Limit: TypeAlias = tuple[HeldAt, HeldAt]
"""A number in arguments, and the number in an earlier result that it never exceeds."""


class LargestSum(NamedTuple):
    """Of the numbers at one place of a tool's calls, in all runs: the largest sum, and the largest number."""

    total: float
    largest: float
    calls: int
    """The most calls in one run."""
    runs: int
    """Runs with several calls."""


def relation_rules(runs: Sequence[ObservedRun], names: Mapping[str, str]) -> Iterator[Rule]:
    """The rules over several calls that all `runs` keep; `names` are the tools as they are written."""
    rules = sorted(_result_rules(runs, names), key=lambda rule: (-rule.weight, -rule.runs, rule.key))
    yield from rules[:_MAX_RULES]
    yield from _agreement_rules(runs, names)
    for (argument, result), number in number_limits(runs).items():
        where = f"second.{_path(argument)} <= first.{_path(result)}"
        statement = f"{_label(argument, names)} is at most {_label(result, names)} before it"
        part = constraint("precedence", [names[result[1]], names[argument[1]]], where=where)
        key = ("relations", "limit", argument[1], *argument[2], result[1], *result[2])
        yield Rule(key, statement, part, number, len(runs), weight=2.0)
    for place, most in largest_sums(runs).items():
        limit = nice(most.total * SPARE)
        if most.runs >= MIN_VALUES_RUNS and limit < most.largest * most.calls:
            name = names[place[1]]
            statement = f"{shape_text(place[2])} of all {name} adds up to at most {limit:g}"
            part = constraint("sum", _path(place), of=with_status(name, "succeeded"), max=limit)
            yield Rule(("relations", "sum", place[1], *place[2]), statement, part, most.runs, len(runs))


def _path(place: HeldAt) -> str:
    part, _, shape = place
    text = shape_text(shape)
    return f"{part}{'' if not text or text.startswith('[') else '.'}{text}"


def result_conditions(runs: Sequence[ObservedRun]) -> Conditions:
    """The places in results that hold one of few values, with these: what follows can depend on them."""
    seen: dict[HeldAt, Counter[str | bool]] = {}
    others: set[HeldAt] = set()
    for run in runs:
        for place, held in run.held.items():
            if place[0] == "result" and place not in others:
                values = {one.value for one in held if isinstance(one.value, str | bool)}
                counted = seen.setdefault(place, Counter())
                counted.update(values)
                if len(values) < len({one.value for one in held}) or len(counted) > _MAX_CONDITIONS:
                    others.add(place)
    return {
        place: sorted(values, key=str)
        for place, values in seen.items()
        if place not in others and len(values) > 1 and min(values.values()) > 1
    }


@dataclass(slots=True)
class _Followed:
    """In the runs with one result: how many there are, and the tools that were called after it in how many.

    `after_first` is after the first such result, `after_last` after the last one.
    """

    runs: int = 0
    after_first: Counter[str] = field(default_factory=Counter)
    after_last: Counter[str] = field(default_factory=Counter)


def _result_rules(runs: Sequence[ObservedRun], names: Mapping[str, str]) -> Iterator[Rule]:
    conditions = result_conditions(runs)
    followed: dict[tuple[HeldAt, str | bool], _Followed] = {}
    for run in runs:
        steps = {tool: seen.steps for tool, seen in seen_tools(run).items()}
        for place in conditions.keys() & run.held.keys():
            at: dict[Any, list[int]] = {}
            for held in run.held[place]:
                at.setdefault(held.value, []).append(held.step)
            for value, of_value in at.items():
                known = followed.setdefault((place, value), _Followed())
                known.runs += 1
                known.after_first.update(tool for tool, own in steps.items() if own[-1] > min(of_value))
                known.after_last.update(tool for tool, own in steps.items() if own[-1] > max(of_value))
    for place, values in conditions.items():
        for value in values:
            own = followed[place, value]
            rest = [followed[place, other] for other in values if other != value]
            if own.runs < MIN_RUNS:
                continue
            for tool in names:
                elsewhere = sum(other.after_first[tool] for other in rest) / sum(other.runs for other in rest)
                after_last = own.after_last[tool]
                broken = own.runs - after_last
                if not own.after_first[tool] and own.runs * elsewhere >= _EXPECTED:
                    yield _result_rule("not_response", place, value, tool, own.runs, len(runs), names)
                elif broken <= tolerated(own.runs) and elsewhere <= 0.5:
                    yield _result_rule(
                        "response", place, value, tool, own.runs, len(runs), names, weight=2.0, broken=broken
                    )


def _result_rule(
    template: str,
    place: HeldAt,
    value: str | bool,
    tool: str,
    runs: int,
    of: int,
    names: Mapping[str, str],
    *,
    weight: float = 1.0,
    broken: int = 0,
) -> Rule:
    _, returning, shape = place
    result: JsonValue = value
    for step in reversed(shape):
        result = {step: result}
    returned = f"{shape_text(shape)}: {json_text(value)}" if shape else json_text(value)
    verb = "is never called" if template == "not_response" else "is called"
    statement = f"after {names[returning]} returned {returned} {names[tool]} {verb}"
    part = constraint(template, [{"tool": names[returning], "result": result}, names[tool]])
    key = ("results", template, returning, *shape, json_text(value), tool)
    return Rule(key, statement, part, runs, of, weight, broken=broken)


def _agreement_rules(runs: Sequence[ObservedRun], names: Mapping[str, str]) -> Iterator[Rule]:
    """Arguments that agree with those of other tools."""
    agreeing: dict[HeldAt, set[HeldAt]] = {}
    seen_in: Counter[HeldAt] = Counter()
    values: dict[HeldAt, set[Any]] = {}
    shared: Counter[Shape] = Counter()
    differing: set[Shape] = set()
    for run in runs:
        of_run = {
            place: {(isinstance(one.value, str), one.value) for one in held}
            for place, held in run.held.items()
            if place[0] == "args" and all(checkable(one.value) for one in held)
        }
        holders: dict[Any, set[HeldAt]] = {}
        by_shape: dict[Shape, list[HeldAt]] = {}
        for place, own in of_run.items():
            by_shape.setdefault(place[2], []).append(place)
            for value in own:
                holders.setdefault(value, set()).add(place)
        for place, own in of_run.items():
            seen_in[place] += 1
            if len(values.setdefault(place, set())) < _DIFFERENT_VALUES:
                values[place] |= own
            others = set.intersection(*(holders[value] for value in own))
            agreeing[place] = agreeing[place] & others if place in agreeing else others
        for shape, places in by_shape.items():
            shared[shape] += len(places) > 1
            if len(set.union(*(of_run[place] for place in places))) > 1:
                differing.add(shape)
    constants = {
        shape
        for shape, number in shared.items()
        if number >= MIN_VALUES_RUNS and shape not in differing and _changes(shape, values)
    }
    for shape in constants:
        statement = f"{shape_text(shape)} is the same in all calls of a run"
        part = constraint("constant", f"args.{shape_text(shape)}")
        yield Rule(("relations", "constant", *shape), statement, part, shared[shape], len(runs), weight=2.0)
    stated: set[tuple[HeldAt, HeldAt]] = set()
    for place, others in agreeing.items():
        candidates = [
            other
            for other in others
            if other[1] != place[1] and (other[2] != place[2] or place[2] not in constants)
        ]
        if not candidates or seen_in[place] < MIN_VALUES_RUNS or len(values[place]) < _DIFFERENT_VALUES:
            continue
        other = min(candidates, key=lambda one: (-seen_in[one], one))
        if (other, place) in stated:
            continue
        stated.add((place, other))
        one, two, template, then = place, other, "responded_existence", "of the same run"
        for later, earlier in ((place, other), (other, place)):
            if earlier in agreeing[later] and _has_partners(later, earlier, runs, before=True):
                one, two, template, then = earlier, later, "precedence", "before it"
                if later in agreeing[earlier] and _has_partners(earlier, later, runs, before=False):
                    template, then = "succession", "before it, and the other way round"
                break
        demanding, required = (one, two) if template == "responded_existence" else (two, one)
        statement = f"{_label(demanding, names)} is {_label(required, names)} {then}"
        where = f"first.{_path(one)} == second.{_path(two)}"
        part = constraint(template, [names[one[1]], names[two[1]]], where=where)
        key = ("relations", "equal", place[1], *place[2], other[1], *other[2])
        yield Rule(key, statement, part, seen_in[demanding], len(runs), weight=2.0)


def _label(place: HeldAt, names: Mapping[str, str]) -> str:
    return f"{names[place[1]]}.{shape_text(place[2])}"


def _has_partners(place: HeldAt, other: HeldAt, runs: Sequence[ObservedRun], *, before: bool) -> bool:
    """Whether each value at `place` stands at `other` too, in a call before it, or in one after it."""
    sign = 1 if before else -1
    for run in runs:
        steps: dict[Any, list[int]] = {}
        for one in run.held.get(other, ()):
            steps.setdefault(one.value, []).append(sign * one.step)
        if any(
            min(steps.get(one.value, [sign * one.step])) >= sign * one.step for one in run.held.get(place, ())
        ):
            return False
    return True


def _changes(shape: Shape, values: Mapping[HeldAt, set[Any]]) -> bool:
    return any(place[2] == shape and len(held) >= _DIFFERENT_VALUES for place, held in values.items())


def number_limits(runs: Sequence[ObservedRun]) -> Mapping[Limit, int]:
    """The limits that all `runs` keep and that numbers would exceed by chance, with the runs that show them.

    A number that always is that of the result is no limit but its source.
    """
    # What limits an argument has to be there in every run with it: the first run names all candidates.
    known: dict[HeldAt, dict[HeldAt, int]] = {}
    by_chance: Counter[Limit] = Counter()
    below: set[Limit] = set()
    before: dict[HeldAt, float] = {}
    for run in runs:
        numbers = {place: own for place, held in run.held.items() if (own := _numbers(held)) is not None}
        returned = {place: own for place, own in numbers.items() if place[0] == "result"}
        for argument, own in numbers.items():
            if argument[0] == "result":
                continue
            if argument not in known:
                known[argument] = {result: 0 for result in returned if result[1] != argument[1]}
            for result in [*known[argument]]:
                earlier = [
                    max(
                        (one.value for one in returned.get(result, ()) if one.step < number.step),
                        default=None,
                    )
                    for number in own
                ]
                if any(
                    most is None or number.value > most for number, most in zip(own, earlier, strict=True)
                ):
                    del known[argument][result]
                    continue
                known[argument][result] += 1
                if any(number.value != most for number, most in zip(own, earlier, strict=True)):
                    below.add((argument, result))
                if result in before:
                    by_chance[argument, result] += any(number.value > before[result] for number in own)
        before.update({place: max(one.value for one in own) for place, own in returned.items()})
    return {
        (argument, result): number
        for argument, results in known.items()
        for result, number in results.items()
        if (argument, result) in below
        and number >= MIN_VALUES_RUNS
        and by_chance[argument, result] >= _EXPECTED_ABOVE
    }


class _Number(NamedTuple):
    step: int
    took_effect: bool
    value: float


def _numbers(held: Sequence[Held]) -> list[_Number] | None:
    """`held` where all of it are numbers."""
    numbers = [
        _Number(one.step, one.took_effect, one.value)
        for one in held
        if isinstance(one.value, int | float) and not isinstance(one.value, bool)
    ]
    return numbers if len(numbers) == len(held) else None


def largest_sums(runs: Sequence[ObservedRun]) -> Mapping[HeldAt, LargestSum]:
    """What the numbers in arguments of calls that took effect add up to, where each such call has one."""
    most: dict[HeldAt, LargestSum] = {}
    others: set[HeldAt] = set()
    for run in runs:
        effective = Counter(call.tool for call in run.calls if call.took_effect)
        for place, held in run.held.items():
            if place[0] == "result" or place in others:
                continue
            numbers = _numbers(held)
            own = [number.value for number in numbers or () if number.took_effect]
            if numbers is None or len(own) != effective[place[1]] or min(own, default=0) < 0:
                others.add(place)
            elif own:
                known = most.get(place, LargestSum(0, 0, 0, 0))
                most[place] = LargestSum(
                    max(known.total, sum(own)),
                    max(known.largest, *own),
                    max(known.calls, len(own)),
                    known.runs + (len(own) > 1),
                )
    return {place: known for place, known in most.items() if place not in others}
