"""Rules about the order of calls: what precedes, follows and excludes what, as templates of DECLARE."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from processors.learning.observed_run import ObservedRun
from processors.learning.rule import Rule, tolerated
from processors.model import JsonObject, JsonValue

MIN_RUNS = 10
"""Runs that a rule has to be seen in."""

_MAX_TOOLS = 25
_MAX_CONSTRAINTS = 60
_EXPECTED_TOGETHER = 5.0
"""Runs in which two tools would meet by chance; none then means that they exclude each other."""

_GUARDS = ("succeeded", "called")
"""What has to come before, the stronger demand first."""
_RESPONSES = ("succeeded", "called", "after_success")
"""What has to follow: a success, a call, and a call where the first one succeeded."""


@dataclass(slots=True)
class SeenTool:
    """Where a tool was called in one run, in steps."""

    first: int
    last: int
    first_success: int | None = None
    last_success: int | None = None
    count: int = 0
    successes: int = 0
    failures: list[int] = field(default_factory=list)


@dataclass(slots=True)
class _Pair:
    """What is known of a second tool in the runs that call a first one; the numbers count runs.

    `not_before` and `not_after` are those that break a demand on the second one; `late` those in which it is
    called after the first call of the first one.
    """

    together: int = 0
    late: int = 0
    not_before: Counter[str] = field(default_factory=Counter)
    not_after: Counter[str] = field(default_factory=Counter)


def seen_tools(run: ObservedRun) -> dict[str, SeenTool]:
    """The tools of `run` with the steps in which they were called."""
    found: dict[str, SeenTool] = {}
    for call in run.calls:
        tool = found.get(call.tool)
        if tool is None:
            tool = found[call.tool] = SeenTool(call.step, call.step)
        tool.last = call.step
        tool.count += 1
        if call.took_effect:
            tool.successes += 1
            tool.last_success = call.step
            if tool.first_success is None:
                tool.first_success = call.step
        else:
            tool.failures.append(call.step)
    return found


class _Order:
    """How often tools are called together and in which order."""

    def __init__(self, seen: Sequence[Mapping[str, SeenTool]], used: Counter[str]) -> None:
        self.total = len(seen)
        self.used = used
        self.tools = [tool for tool, _ in used.most_common(_MAX_TOOLS)]
        self.succeeded = Counter(tool for run in seen for tool, of_run in run.items() if of_run.successes)
        self.pairs = {(one, other): _Pair() for one in self.tools for other in self.tools if one != other}
        for run in seen:
            for one in self.tools:
                first = run.get(one)
                if first is not None:
                    for other in self.tools:
                        if other != one:
                            _count(self.pairs[one, other], first, run.get(other))

    def before(self) -> dict[tuple[str, str], tuple[str, int]]:
        """The pairs of which the first comes before the second: how, and in how many runs it does not."""
        found = {}
        for (one, other), pair in self.pairs.items():
            form = min(_GUARDS, key=lambda form: pair.not_before[form])
            if self.used[one] >= MIN_RUNS and pair.not_before[form] <= tolerated(self.used[one]):
                found[other, one] = form, pair.not_before[form]
        return found

    def after(self) -> dict[tuple[str, str], tuple[str, int]]:
        """The pairs of which the second follows the first: how, and in how many runs it does not."""
        found = {}
        for (one, other), pair in self.pairs.items():
            form = min(_RESPONSES, key=lambda form: pair.not_after[form])
            runs = self.succeeded[one] if form == "after_success" else self.used[one]
            if runs >= MIN_RUNS and pair.not_after[form] <= tolerated(runs):
                found[one, other] = form, pair.not_after[form]
        return found

    def comes_first(self, one: str, other: str) -> bool:
        """Whether `one` is never called after `other`, in runs that call both."""
        pair = self.pairs[other, one]
        return pair.together > 0 and not pair.late

    def is_in_between(self, one: str, other: str) -> bool:
        """Whether a third tool, there whenever one of both is, stands after `one` and before `other`."""
        return any(
            third not in (one, other)
            and self.pairs[one, other].together
            and (
                self.pairs[one, third].together == self.used[one]
                or self.pairs[other, third].together == self.used[other]
            )
            and self.comes_first(one, third)
            and self.comes_first(third, other)
            and not (self.comes_first(third, one) and self.comes_first(other, third))
            for third in self.tools
        )


def _count(pair: _Pair, first: SeenTool, second: SeenTool | None) -> None:
    if second is None:
        pair.not_before.update(_GUARDS)
        pair.not_after.update(_RESPONSES if first.successes else ("succeeded", "called"))
        return
    pair.together += 1
    pair.late += second.last > first.first
    if second.first > first.first:
        pair.not_before["called"] += 1
    if second.first_success is None or second.first_success > first.first:
        pair.not_before["succeeded"] += 1
    if second.last < first.last:
        pair.not_after["called"] += 1
    if second.last_success is None or second.last_success < first.last:
        pair.not_after["succeeded"] += 1
    if first.last_success is not None and second.last < first.last_success:
        pair.not_after["after_success"] += 1


def order_rules(
    seen: Sequence[Mapping[str, SeenTool]], used: Counter[str], names: Mapping[str, str]
) -> Iterator[Rule]:
    """The constraints that runs keep; `used` are the runs of each tool, `names` the tools as written."""
    order = _Order(seen, used)
    rules = [*_precedences(order, names), *_responses(order, names)]
    for (other, one), pair in order.pairs.items():
        if (
            pair.together >= MIN_RUNS
            and order.comes_first(one, other)
            and not order.is_in_between(one, other)
        ):
            rules.append(
                _rule(
                    ("not_response", other, one),
                    f"{names[one]} is never called after {names[other]}",
                    order.pairs[other, one].together,
                    order.total,
                    [names[other], names[one]],
                )
            )
        if one < other:
            rules += _choices(order, one, other, names)
    rules.sort(key=lambda rule: (-rule.weight, -rule.runs, rule.key))
    yield from rules[:_MAX_CONSTRAINTS]


def _rule(
    key: tuple[str, ...],
    statement: str,
    runs: int,
    of: int,
    pair: list[JsonValue],
    weight: float = 1.0,
    broken: int = 0,
) -> Rule:
    return Rule(
        key=("order", *key),
        statement=statement,
        runs=runs,
        kept=runs - broken,
        of=of,
        part=constraint(key[0], pair),
        weight=weight,
    )


def constraint(template: str, tools: JsonValue) -> JsonObject:
    """What a rule adds to the constraints on the order of calls."""
    return {"criteria": {"constraints": [{template: tools}]}}


def _succeeded(tool: str) -> JsonObject:
    return {"tool": tool, "status": "succeeded"}


def _precedences(order: _Order, names: Mapping[str, str]) -> Iterator[Rule]:
    before = order.before()
    for (one, other), (form, broken) in before.items():
        alike = {pair for pair, (of_pair, _) in before.items() if of_pair in ("succeeded", form)}
        if _is_implied(one, other, alike):
            continue
        is_success = form == "succeeded"
        guard: JsonValue = _succeeded(names[one]) if is_success else names[one]
        yield _rule(
            ("precedence", one, other),
            f"{names[one]} {'succeeds' if is_success else 'is called'} before {names[other]}",
            order.used[other],
            order.total,
            [guard, names[other]],
            2.0,
            broken,
        )


def _responses(order: _Order, names: Mapping[str, str]) -> Iterator[Rule]:
    after = order.after()
    for (one, other), (form, broken) in after.items():
        if _is_implied(one, other, {pair for pair, (of_pair, _) in after.items() if of_pair == form}):
            continue
        is_after_success = form == "after_success"
        condition = "success of " if is_after_success else ""
        follows = "succeeds" if form == "succeeded" else "is called"
        yield _rule(
            ("response", one, other),
            f"after {condition}{names[one]} {names[other]} {follows}",
            order.succeeded[one] if is_after_success else order.used[one],
            order.total,
            [
                _succeeded(names[one]) if is_after_success else names[one],
                _succeeded(names[other]) if form == "succeeded" else names[other],
            ],
            2.0,
            broken,
        )


def _is_implied(one: str, other: str, pairs: set[tuple[str, str]]) -> bool:
    """Whether a chain over a third tool says the same."""
    thirds = {second for first, second in pairs if first == one} & {
        first for first, second in pairs if second == other
    }
    # Tools that stand for each other, always called side by side, must not explain each other away.
    return any((third, one) not in pairs and (other, third) not in pairs for third in thirds)


def _choices(order: _Order, one: str, other: str, names: Mapping[str, str]) -> Iterator[Rule]:
    used, total, together = order.used, order.total, order.pairs[one, other].together
    pair: list[JsonValue] = [names[one], names[other]]
    excludes = not together and used[one] * used[other] / total >= _EXPECTED_TOGETHER
    fewest = min(used[one], used[other])
    is_choice = (
        fewest >= MIN_RUNS
        and max(used[one], used[other]) < total - tolerated(total)
        and used[one] + used[other] - together == total
    )
    if is_choice and excludes:
        told = f"either {names[one]} or {names[other]} is called, never both"
        yield _rule(("exclusive_choice", one, other), told, total, total, pair, 3.0)
    elif is_choice:
        told = f"{names[one]} or {names[other]} is called"
        yield _rule(("choice", one, other), told, total, total, pair, 3.0)
    elif excludes and fewest >= MIN_RUNS:
        told = f"{names[one]} and {names[other]} are never called in one run"
        yield _rule(("not_co_existence", one, other), told, used[one] + used[other], total, pair)
