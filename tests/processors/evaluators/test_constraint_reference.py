"""`tool-constraints` against a naive evaluator: every pair, and every world that unknown values allow."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import Any

import pytest

from processors.comparison import constraint_relations
from processors.criteria import Evaluation
from processors.evaluate import evaluate_run
from processors.evaluators.tool_constraints import (
    ToolConstraints,
    ToolConstraintsConfig,
    ToolConstraintsCriteria,
)
from processors.model import (
    AgentRun,
    Decision,
    NotEvaluated,
    Outcome,
    RunFacts,
    Score,
    ToolCall,
    ToolError,
    ValueState,
)
from tests.strategies import run_with

_SECOND = 1_000_000_000
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
    "in": lambda left, right: left in right,
    "contains": lambda left, right: right in left,
}


@dataclass(frozen=True)
class _Event:
    """A call: `None` in place of a value means that telemetry does not show it."""

    tool: str
    start: int
    key: int | None = 0
    amount: int | None = 0
    total: int | None = 0
    failed: bool = False
    decision: str | None = None
    group: int | None = None
    turn: int | None = 0
    """Of 0 no model requested it."""

    def call(self) -> ToolCall:
        known = self.key is not None and self.amount is not None
        result: Any = {"total": self.total, "list": [self.total, 9]}
        return ToolCall(
            name=self.tool,
            arguments={"key": self.key, "amount": self.amount} if known else None,
            arguments_text="{}" if known else None,
            arguments_state=ValueState.PRESENT if known else ValueState.ABSENT,
            result=None if self.total is None or self.failed else result,
            result_state=ValueState.ABSENT if self.total is None or self.failed else ValueState.PRESENT,
            error=ToolError(type="x", message="") if self.failed else None,
            decision=None if self.decision is None else Decision(self.decision),
            start_unix_nano=self.start * _SECOND,
            end_unix_nano=self.start * _SECOND + _SECOND // 2,
            parallel_group=self.group,
        )

    def worlds(self) -> Iterator["_Event"]:
        """Every event that this one may be."""
        arguments = (
            product(range(2), range(4)) if None in (self.key, self.amount) else [(self.key, self.amount)]
        )
        totals = range(4) if self.total is None else [self.total]
        turns = range(3) if self.turn is None else [self.turn]
        for (key, amount), total, turn in product(arguments, totals, turns):
            yield replace(self, key=key, amount=amount, total=total, turn=turn)


_Target = dict[str, Any]


def _is(target: _Target, event: _Event) -> bool:
    return (
        target["tool"] in ("*", event.tool)
        and ("status" not in target or (target["status"] == "failed") == event.failed)
        and ("args" not in target or target["args"]["amount"] == event.amount)
        and ("result" not in target or (not event.failed and target["result"]["total"] == event.total))
        and ("decision" not in target or target["decision"] == (event.decision or "none"))
    )


def _identity(target: _Target) -> _Target:
    return {key: value for key, value in target.items() if key not in ("result", "decision")}


def _value(text: str, event: _Event) -> Any:
    name = text.partition(".")[2]
    if name == "args.amount":
        return event.amount
    if name == "turn":
        return event.turn or None
    if event.failed:
        return None
    return [event.total, 9] if name == "result.list" else event.total


@dataclass(frozen=True)
class _Constraint:
    template: str
    targets: tuple[_Target, ...]
    rest: dict[str, Any]

    def written(self) -> dict[str, Any]:
        return {self.template: [*self.targets], **self.rest}

    def holds(self, events: Sequence[_Event]) -> bool | None:
        """Of events whose values are all known; None: it does not apply."""
        first, second = self.targets
        negative = self.template.startswith("not_")
        sides: dict[str, tuple[int, ...]] = {
            "precedence": (1,),
            "succession": (0, 1),
            "chain_precedence": (1,),
        }
        own = sides.get(self.template.removeprefix("alternate_"), (0,))
        applies = False
        for side in own:
            active, other = (second, first) if side else (first, second)
            for at, event in enumerate(events):
                if _is(active, event):
                    applies = True
                    partners = [
                        place for place in self._reachable(events, at, side) if _is(other, events[place])
                    ]
                    fitting = [place for place in partners if self._fits(events, at, place, side)]
                    if bool(fitting) is negative:
                        return False
        return True if applies else None

    def _reachable(self, events: Sequence[_Event], at: int, side: int) -> list[int]:
        order = range(at - 1, -1, -1) if side else range(at + 1, len(events))
        if self.template == "responded_existence":
            return [place for place in range(len(events)) if place != at]
        if "chain" in self.template:
            return [*order][:1]
        reachable = []
        for place in order:
            reachable.append(place)
            if self.template.startswith("alternate"):
                active = self.targets[side]
                if _is(active, events[place]) and self._is_related(events[at], events[place]):
                    break
            elif self.rest.get("nearest"):
                kind = _identity(self.targets[1 - side])
                if _is(kind, events[place]) and self._is_related(events[at], events[place]):
                    return [place]
        return [] if self.rest.get("nearest") else reachable

    def _is_related(self, one: _Event, other: _Event) -> bool:
        return "same" not in self.rest or one.key == other.key

    def _fits(self, events: Sequence[_Event], at: int, place: int, side: int) -> bool:
        first, second = (events[place], events[at]) if side else (events[at], events[place])
        if not self._is_related(first, second):
            return False
        if "within" in self.rest:
            gap = abs(second.start - first.start) - 0.5
            if gap > int(self.rest["within"][:-1]):
                return False
        if "where" not in self.rest:
            return True
        left, name, right = self.rest["where"].split()
        values = [_value(text, first if text.startswith("first") else second) for text in (left, right)]
        return None not in values and _OPERATORS[name](*values)


def _random_target(draw: random.Random) -> _Target:
    target: _Target = {"tool": draw.choice("aabb*")}
    if draw.random() < 0.2:
        target["status"] = draw.choice(["succeeded", "failed"])
    if draw.random() < 0.2:
        target["args"] = {"amount": draw.randrange(4)}
    if draw.random() < 0.25:
        target["result"] = {"total": draw.randrange(4)}
    if draw.random() < 0.1:
        target["decision"] = draw.choice(["none", "approved"])
    return target


@dataclass(frozen=True)
class _OfAll:
    """A constraint on a value of all events of a kind."""

    template: str
    target: _Target
    rest: dict[str, Any]
    value: str = "args.amount"

    @property
    def targets(self) -> tuple[_Target, ...]:
        return (self.target,)

    def written(self) -> dict[str, Any]:
        if self.template == "count":
            return {"count": self.target, **self.rest}
        return {self.template: self.value, "of": self.target, **self.rest}

    def holds(self, events: Sequence[_Event]) -> bool:
        """Of events whose values are all known."""
        groups: dict[Any, list[int]] = {} if "per" in self.rest else {None: []}
        for event in events:
            if _is(self.target, event):
                keys = {"args.key": event.key, "args.amount": event.amount, "turn": event.turn or None}
                key = keys.get(self.rest.get("per", ""))
                value = keys[self.value]
                if (value is None and self.template != "count") or ("per" in self.rest and key is None):
                    continue
                groups.setdefault(key, []).append(value or 0)
        return all(map(self._holds_for, groups.values()))

    def _holds_for(self, amounts: list[int]) -> bool:
        if self.template in ("constant", "unique"):
            return len(set(amounts)) <= (1 if self.template == "constant" else 9) and (
                self.template == "constant" or len(set(amounts)) == len(amounts)
            )
        total = len(amounts) if self.template == "count" else sum(amounts)
        return bool(self.rest.get("min", 0) <= total <= self.rest.get("max", 99))


def _random_of_all(draw: random.Random) -> _OfAll:
    template = draw.choice(["constant", "unique", "sum", "count"])
    rest: dict[str, Any] = {}
    if draw.random() < 0.5:
        rest["per"] = draw.choice(["args.key", "args.amount", "turn"])
    if template in ("sum", "count"):
        if draw.random() < 0.7:
            rest["max"] = draw.randrange(2, 5)
        if draw.random() < 0.4 or "max" not in rest:
            rest["min"] = draw.randrange(0, 3)
    value = "turn" if template in ("constant", "unique") and draw.random() < 0.4 else "args.amount"
    return _OfAll(template, _random_target(draw), rest, value)


_TEMPLATES = (
    "response", "precedence", "succession", "not_response", "not_response", "responded_existence",
    "alternate_response", "alternate_precedence", "chain_response", "chain_precedence", "not_chain_response",
)  # fmt: skip
_WHERE = (
    "first.args.amount {} second.result.total",
    "second.args.amount {} first.result.total",
    "first.args.amount {} second.args.amount",
    "first.turn {} second.turn",
)


def _random_constraint(draw: random.Random) -> _Constraint | _OfAll:
    if draw.random() < 0.25:
        return _random_of_all(draw)
    template = draw.choice(_TEMPLATES)
    targets = _random_target(draw), _random_target(draw)
    rest: dict[str, Any] = {}
    if draw.random() < 0.3:
        rest["same"] = "key"
    if draw.random() < 0.6:
        rest["where"] = draw.choice(_WHERE).format(draw.choice(["==", "!=", "<", "<=", ">", ">="]))
        if draw.random() < 0.15:
            rest["where"] = draw.choice(
                ["first.args.amount in second.result.list", "first.result.list contains second.args.amount"]
            )
    if draw.random() < 0.3:
        rest["within"] = f"{draw.randrange(1, 4)}s"
    if template in ("response", "precedence", "succession") and draw.random() < 0.4:
        rest["nearest"] = True
    return _Constraint(template, targets, rest)


def _random_events(draw: random.Random, unknown: float) -> list[_Event]:
    events = []
    start = 1
    for _ in range(draw.randrange(0, 7)):
        start += draw.randrange(1, 4)
        event = _Event(
            draw.choice("aabbc"), start, draw.randrange(2), draw.randrange(4), draw.randrange(4),
            failed=draw.random() < 0.15, decision="approved" if draw.random() < 0.2 else None,
            turn=draw.randrange(3),
        )  # fmt: skip
        if draw.random() < unknown:
            event = replace(event, key=None, amount=None)
        if draw.random() < unknown:
            event = replace(event, total=None)
        if draw.random() < unknown / 2:
            event = replace(event, turn=None)
        events.append(event)
    return events


def _evaluator(constraint: _Constraint | _OfAll) -> ToolConstraints:
    return ToolConstraints(
        ToolConstraintsConfig(),
        ToolConstraintsCriteria.model_validate({"constraints": [constraint.written()]}),
    )


def _run(events: Sequence[_Event], **fields: Any) -> AgentRun:
    return run_with([event.call() for event in events], call_turns=[event.turn for event in events], **fields)


def _expected(constraint: _Constraint | _OfAll, events: Sequence[_Event]) -> float:
    return 0.0 if constraint.holds(events) is False else 1.0


def _check_known(seed: int) -> None:
    draw = random.Random(seed)
    constraint, events = _random_constraint(draw), _random_events(draw, 0.0)
    if any(target.get("decision") == "approved" for target in constraint.targets):
        events = [replace(event, decision=event.decision or "approved") for event in events]

    answer = _evaluator(constraint).evaluate(_run(events), RunFacts())

    assert isinstance(answer, Score), (constraint, events, answer)
    assert _expected(constraint, events) == answer.value, (constraint, events)


def _check_unknown(seed: int) -> bool:
    """Whether the evaluator reached a verdict where the worlds agree."""
    draw = random.Random(seed)
    constraint, events = _random_constraint(draw), _random_events(draw, 0.15)
    if any("decision" in target for target in constraint.targets):
        return True
    worlds = islice(product(*(event.worlds() for event in events)), 5000)
    verdicts = {_expected(constraint, world) for world in worlds}

    answer = _evaluator(constraint).evaluate(_run(events), RunFacts())

    if isinstance(answer, NotEvaluated):
        assert answer.text
        return len(verdicts) == 2
    assert verdicts == {answer.value}, (constraint, events)
    return True


def _check_two(seed: int) -> bool:
    """Whether the outcome of two constraints is reached where the worlds agree."""
    draw = random.Random(seed)
    constraints = [_random_constraint(draw), _random_constraint(draw)]
    events = _random_events(draw, 0.15)
    if any("decision" in target for constraint in constraints for target in constraint.targets):
        return True
    worlds = [*islice(product(*(event.worlds() for event in events)), 5000)]
    verdicts = {all(constraint.holds(world) is not False for constraint in constraints) for world in worlds}

    evaluator = ToolConstraints(
        ToolConstraintsConfig(),
        ToolConstraintsCriteria.model_validate({"constraints": [each.written() for each in constraints]}),
    )
    (result,) = evaluate_run(_run(events), [Evaluation(name="two", evaluator=evaluator)])

    if result.outcome is Outcome.NOT_EVALUATED:
        return len(verdicts) == 2
    assert verdicts == {result.outcome is Outcome.PASS}, (constraints, events, result)
    return True


def _check_prefix(seed: int) -> None:
    """What is settled of a part of a run, in which values are not there yet, is so of the whole."""
    draw = random.Random(seed)
    constraint, events = _random_constraint(draw), _random_events(draw, 0.0)
    whole = _expected(constraint, events)
    part = [event for event in events if draw.random() < 0.7]
    part = [replace(event, total=None) if draw.random() < 0.3 else event for event in part]

    lowest, highest = _evaluator(constraint).attainable(_run(part, complete=False))

    assert lowest <= whole <= highest, (constraint, events, part)


@pytest.fixture(autouse=True, params=[1, 8])
def _indexed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values are looked up also where there are few."""
    monkeypatch.setattr(constraint_relations, "_INDEXED", request.param)


@pytest.mark.parametrize("check", [_check_known, _check_unknown, _check_two, _check_prefix])
def test_a_sample_of_runs_agrees_with_the_naive_evaluator(
    check: Callable[[int], Any],
) -> None:
    for seed in range(500):
        check(seed)


def test_few_verdicts_are_left_open_where_every_world_agrees() -> None:
    assert sum(map(_check_unknown, range(500))) > 0.9 * 500
    assert sum(map(_check_two, range(500))) > 0.9 * 500


@pytest.mark.slow
@pytest.mark.parametrize("check", [_check_known, _check_unknown, _check_two, _check_prefix])
def test_a_hundred_thousand_runs_agree_with_the_naive_evaluator(check: Callable[[int], Any]) -> None:
    for seed in range(17_500):
        check(seed)
