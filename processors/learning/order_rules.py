"""Rules about the order of calls: what precedes, follows and excludes what, as templates of DECLARE."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
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
    """The steps of one run in which a tool was called, in order: all, the successes, and the others."""

    steps: list[int] = field(default_factory=list)
    successes: list[int] = field(default_factory=list)
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
    by_name: dict[str, SeenTool] = {}
    for call in run.calls:
        tool = by_name.setdefault(call.tool, SeenTool())
        tool.steps.append(call.step)
        (tool.successes if call.took_effect else tool.failures).append(call.step)
    return by_name


class _Order:
    """How often tools are called together and in which order, and the rules about that."""

    def __init__(
        self, seen: Sequence[Mapping[str, SeenTool]], used: Counter[str], names: Mapping[str, str]
    ) -> None:
        self.total = len(seen)
        self.used = used
        self.names = names
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

    def rules(self) -> Iterator[Rule]:
        """The constraints that runs keep."""
        yield from self._precedences()
        yield from self._responses()
        for (other, one), pair in self.pairs.items():
            is_last = pair.together >= MIN_RUNS and self.comes_first(one, other)
            if is_last and not self.is_in_between(one, other):
                statement = f"{self.names[one]} is never called after {self.names[other]}"
                yield self._rule("not_response", other, one, statement, pair.together)
            if one < other:
                yield from self._choices(one, other)

    def _rule(
        self,
        template: str,
        one: str,
        other: str,
        statement: str,
        runs: int,
        weight: float = 1.0,
        *,
        broken: int = 0,
        succeeded: Collection[str] = (),
    ) -> Rule:
        """The constraint `template` on two tools; of those in `succeeded` only calls that succeeded count."""
        pair: list[JsonValue] = [
            with_status(self.names[tool], "succeeded") if tool in succeeded else self.names[tool]
            for tool in (one, other)
        ]
        key = ("order", template, one, other)
        return Rule(key, statement, constraint(template, pair), runs, self.total, weight, broken=broken)

    def _precedences(self) -> Iterator[Rule]:
        """Pairs of which the first comes before the second, with few exceptions."""
        before: dict[tuple[str, str], tuple[str, int]] = {}
        for (one, other), pair in self.pairs.items():
            form = min(_GUARDS, key=lambda form: pair.not_before[form])
            if self.used[one] >= MIN_RUNS and pair.not_before[form] <= tolerated(self.used[one]):
                before[other, one] = form, pair.not_before[form]
        for (one, other), (form, broken) in before.items():
            if _is_implied(
                one, other, {pair for pair, (of, _) in before.items() if of in ("succeeded", form)}
            ):
                continue
            verb, succeeded = ("succeeds", (one,)) if form == "succeeded" else ("is called", ())
            yield self._rule(
                "precedence", one, other,
                f"{self.names[one]} {verb} before {self.names[other]}",
                self.used[other], 2.0, broken=broken, succeeded=succeeded,
            )  # fmt: skip

    def _responses(self) -> Iterator[Rule]:
        """Pairs of which the second follows the first, with few exceptions."""
        after: dict[tuple[str, str], tuple[str, int, int]] = {}
        for (one, other), pair in self.pairs.items():
            form = min(_RESPONSES, key=lambda form: pair.not_after[form])
            runs = self.succeeded[one] if form == "after_success" else self.used[one]
            if runs >= MIN_RUNS and pair.not_after[form] <= tolerated(runs):
                after[one, other] = form, runs, pair.not_after[form]
        for (one, other), (form, runs, broken) in after.items():
            if _is_implied(one, other, {pair for pair, (of, _, _) in after.items() if of == form}):
                continue
            condition = "success of " if form == "after_success" else ""
            follows = "succeeds" if form == "succeeded" else "is called"
            yield self._rule(
                "response", one, other,
                f"after {condition}{self.names[one]} {self.names[other]} {follows}",
                runs, 2.0, broken=broken,
                succeeded={"after_success": (one,), "succeeded": (other,)}.get(form, ()),
            )  # fmt: skip

    def _choices(self, one: str, other: str) -> Iterator[Rule]:
        used, total, together = self.used, self.total, self.pairs[one, other].together
        first, second = self.names[one], self.names[other]
        excludes = not together and used[one] * used[other] / total >= _EXPECTED_TOGETHER
        fewest = min(used[one], used[other])
        is_choice = (
            fewest >= MIN_RUNS
            and max(used[one], used[other]) < total - tolerated(total)
            and used[one] + used[other] - together == total
        )
        if is_choice and excludes:
            statement = f"either {first} or {second} is called, never both"
            yield self._rule("exclusive_choice", one, other, statement, total, 3.0)
        elif is_choice:
            yield self._rule("choice", one, other, f"{first} or {second} is called", total, 3.0)
        elif excludes and fewest >= MIN_RUNS:
            statement = f"{first} and {second} are never called in one run"
            yield self._rule("not_co_existence", one, other, statement, used[one] + used[other])

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
    pair.late += second.steps[-1] > first.steps[0]
    pair.not_before["called"] += second.steps[0] > first.steps[0]
    pair.not_before["succeeded"] += not second.successes or second.successes[0] > first.steps[0]
    pair.not_after["called"] += second.steps[-1] < first.steps[-1]
    pair.not_after["succeeded"] += not second.successes or second.successes[-1] < first.steps[-1]
    pair.not_after["after_success"] += bool(first.successes) and second.steps[-1] < first.successes[-1]


def order_rules(
    seen: Sequence[Mapping[str, SeenTool]], used: Counter[str], names: Mapping[str, str]
) -> list[Rule]:
    """The constraints that runs keep; `used` are the runs of each tool, `names` the tools as written."""
    rules = sorted(_Order(seen, used, names).rules(), key=lambda rule: (-rule.weight, -rule.runs, rule.key))
    return rules[:_MAX_CONSTRAINTS]


def constraint(template: str, tools: JsonValue, **more: JsonValue) -> JsonObject:
    """What a rule adds to the constraints on calls; `more` are further keys of the constraint."""
    return {"criteria": {"constraints": [{template: tools, **more}]}}


def with_status(tool: str, status: str) -> JsonObject:
    """The calls of a tool that ended so, as constraints name them."""
    return {"tool": tool, "status": status}


def _is_implied(one: str, other: str, pairs: Collection[tuple[str, str]]) -> bool:
    """Whether a chain over a third tool implies the same."""
    thirds = {second for first, second in pairs if first == one} & {
        first for first, second in pairs if second == other
    }
    # Tools that stand for each other, always called side by side, must not explain each other away.
    return any((third, one) not in pairs and (other, third) not in pairs for third in thirds)
