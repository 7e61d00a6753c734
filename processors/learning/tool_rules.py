"""Rules about tools: which are called, how often, in which order, and what follows an error."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from processors.learning.observed_run import ObservedRun
from processors.learning.rule import Rule
from processors.model import JsonValue

MIN_RUNS = 10
"""Runs that a rule has to be seen in."""

_MAX_TOOLS = 25
_MAX_CONSTRAINTS = 60
_EXPECTED_TOGETHER = 5.0
"""Runs in which two tools would meet by chance; none then means that they exclude each other."""
_OFTEN = 5
"""Runs with the largest number of calls from which on that number is the limit; else it is one more."""


@dataclass(slots=True)
class _Seen:
    """Where a tool was called in one run, in steps."""

    first: int
    last: int
    first_success: int | None = None
    last_success: int | None = None
    count: int = 0
    successes: int = 0
    failures: list[int] = field(default_factory=list)


def tool_rules(runs: Sequence[ObservedRun], names: Mapping[str, str]) -> Iterator[Rule]:
    """The rules that all `runs` keep; `names` are the tools as they are written."""
    seen = [_seen(run) for run in runs]
    used = Counter(tool for of_run in seen for tool in of_run)
    tools = [tool for tool, _ in used.most_common(_MAX_TOOLS)]
    yield from _allowed(runs, used, names)
    yield from _counts(seen, used, names)
    yield from _relations(seen, used, tools, names)
    yield from _errors(runs, seen, names)


def _seen(run: ObservedRun) -> dict[str, _Seen]:
    found: dict[str, _Seen] = {}
    for call in run.calls:
        tool = found.get(call.tool)
        if tool is None:
            tool = found[call.tool] = _Seen(call.step, call.step)
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


def _allowed(runs: Sequence[ObservedRun], used: Counter[str], names: Mapping[str, str]) -> Iterator[Rule]:
    if len(runs) < MIN_RUNS:
        return
    allowed: list[JsonValue] = [names[tool] for tool in sorted(used)]
    shown = ", ".join(map(str, allowed)) or "none"
    yield Rule(
        key=("tools", "allow"),
        statement=f"no tool but these is called: {shown}",
        runs=len(runs),
        of=len(runs),
        part={"criteria": {"allow": allowed}},
        weight=3.0,
    )


def _counts(seen: Sequence[dict[str, _Seen]], used: Counter[str], names: Mapping[str, str]) -> Iterator[Rule]:
    total = len(seen)
    if total < MIN_RUNS:
        return
    most = _limit([sum(tool.count for tool in run.values()) for run in seen], spare=2)
    yield Rule(
        key=("calls", "max_calls"),
        statement=f"at most {most} calls in all",
        runs=total,
        of=total,
        part={"criteria": {"max_calls": most}},
    )
    for tool, runs in used.items():
        name = names[tool]
        numbers = [run[tool].count for run in seen if tool in run]
        if runs >= MIN_RUNS:
            most = _limit(numbers)
            yield Rule(
                key=("calls", "max", tool),
                statement=f"{name} at most {_times(most)}",
                runs=runs,
                of=total,
                part={"criteria": {"tools": {name: {"max": most}}}},
            )
        if runs < total:
            continue
        fewest = min(numbers)
        if all(run[tool].successes for run in seen):
            yield Rule(
                key=("order", "existence", tool),
                statement=f"{name} is called, and succeeds",
                runs=total,
                of=total,
                part={"existence": {"tool": name, "status": "succeeded"}},
                weight=3.0,
            )
            if fewest == 1:
                continue
        yield Rule(
            key=("calls", "min", tool),
            statement=f"{name} at least {_times(fewest)}",
            runs=total,
            of=total,
            part={"criteria": {"tools": {name: {"min": fewest}}}},
            weight=3.0,
        )


def _limit(numbers: Sequence[int], spare: int = 1) -> int:
    """The largest number where it was seen often, else a little more."""
    most = max(numbers)
    return most if numbers.count(most) >= _OFTEN else most + spare


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _relations(
    seen: Sequence[dict[str, _Seen]], used: Counter[str], tools: Sequence[str], names: Mapping[str, str]
) -> Iterator[Rule]:
    total = len(seen)
    rules: list[Rule] = []
    before: dict[tuple[str, str], bool] = {}
    after: dict[tuple[str, str], str] = {}
    together: Counter[tuple[str, str]] = Counter()
    late: set[tuple[str, str]] = set()
    broken_before: dict[tuple[str, str], set[bool]] = {}
    broken_after: dict[tuple[str, str], set[str]] = {}
    wanted = set(tools)
    for run in seen:
        for one, first in run.items():
            if one not in wanted:
                continue
            for other in tools:
                if other == one:
                    continue
                pair = other, one
                second = run.get(other)
                if second is None:
                    broken_before.setdefault(pair, set()).update((True, False))
                    broken_after.setdefault((one, other), set()).update(
                        ("succeeded", "called") if first.last_success is None else _EVERY_RESPONSE
                    )
                    continue
                together[one, other] += 1
                if second.first > first.first:
                    broken_before.setdefault(pair, set()).update((True, False))
                elif second.first_success is None or second.first_success > first.first:
                    broken_before.setdefault(pair, set()).add(True)
                if second.last < first.last:
                    broken_after.setdefault((one, other), set()).update(("succeeded", "called"))
                elif second.last_success is None or second.last_success < first.last:
                    broken_after.setdefault((one, other), set()).add("succeeded")
                if first.last_success is not None and second.last < first.last_success:
                    broken_after.setdefault((one, other), set()).add("after_success")
                if second.last > first.first:  # the other one was called after the first call of this one
                    late.add((one, other))
    for one in tools:
        for other in tools:
            if one == other:
                continue
            if used[other] >= MIN_RUNS:
                broken = broken_before.get((one, other), set())
                if True not in broken:
                    before[one, other] = True
                elif False not in broken:
                    before[one, other] = False
            if used[one] >= MIN_RUNS:
                failed = broken_after.get((one, other), set())
                kind = next((kind for kind in _EVERY_RESPONSE if kind not in failed), None)
                if kind is not None:
                    after[one, other] = kind
    for (one, other), with_success in before.items():
        if _is_implied(one, other, {pair for pair, strict in before.items() if strict or not with_success}):
            continue
        guard: JsonValue = {"tool": names[one], "status": "succeeded"} if with_success else names[one]
        rules.append(
            Rule(
                key=("order", "precedence", one, other),
                statement=f"{names[one]} {'succeeds' if with_success else 'is called'} before {names[other]}",
                runs=used[other],
                of=total,
                part={"precedence": [guard, names[other]]},
                weight=2.0,
            )
        )
    for (one, other), kind in after.items():
        if _is_implied(one, other, {pair for pair, of_pair in after.items() if of_pair == kind}):
            continue
        activation: JsonValue = names[one]
        target: JsonValue = names[other]
        if kind == "after_success":
            activation = {"tool": names[one], "status": "succeeded"}
        if kind == "succeeded":
            target = {"tool": names[other], "status": "succeeded"}
        condition = "success of " if kind == "after_success" else ""
        succeeds = " succeeds" if kind == "succeeded" else " is called"
        rules.append(
            Rule(
                key=("order", "response", one, other),
                statement=f"after {condition}{names[one]} {names[other]}{succeeds}",
                runs=used[one],
                of=total,
                part={"response": [activation, target]},
                weight=2.0,
            )
        )
    for one in tools:
        for other in tools:
            if one == other:
                continue
            if (
                together[one, other] >= MIN_RUNS
                and (one, other) not in late
                and not _is_in_between(one, other, late, together, used, tools)
            ):
                rules.append(
                    Rule(
                        key=("order", "not_response", one, other),
                        statement=f"{names[other]} is never called after {names[one]}",
                        runs=together[one, other],
                        of=total,
                        part={"not_response": [names[one], names[other]]},
                    )
                )
            if one < other:
                rules += _exclusions(seen, used, together, one, other, names)
    rules.sort(key=lambda rule: (-rule.weight, -rule.runs, rule.key))
    yield from rules[:_MAX_CONSTRAINTS]


_EVERY_RESPONSE = ("succeeded", "called", "after_success")
"""The forms of a response, the strongest first."""


def _is_implied(one: str, other: str, pairs: set[tuple[str, str]]) -> bool:
    """Whether a chain over a third tool says the same."""
    thirds = {second for first, second in pairs if first == one} & {
        first for first, second in pairs if second == other
    }
    # Tools that stand for each other, always called side by side, must not explain each other away.
    return any((third, one) not in pairs and (other, third) not in pairs for third in thirds)


def _is_in_between(
    one: str,
    other: str,
    late: set[tuple[str, str]],
    together: Counter[tuple[str, str]],
    used: Counter[str],
    tools: Sequence[str],
) -> bool:
    """Whether a third tool, never after `one` and never before `other`, says that `other` comes first."""
    return any(
        third not in (one, other)
        and (together[one, third] == used[one] or together[other, third] == used[other])
        and (one, third) not in late
        and (third, other) not in late
        and not ((third, one) not in late and (other, third) not in late)
        for third in tools
    )


def _exclusions(
    seen: Sequence[dict[str, _Seen]],
    used: Counter[str],
    together: Counter[tuple[str, str]],
    one: str,
    other: str,
    names: Mapping[str, str],
) -> Iterator[Rule]:
    total = len(seen)
    pair: list[JsonValue] = [names[one], names[other]]
    excludes = not together[one, other] and used[one] * used[other] / total >= _EXPECTED_TOGETHER
    fewest = min(used[one], used[other])
    is_choice = fewest >= MIN_RUNS and max(used[one], used[other]) < total
    is_choice = is_choice and all(one in run or other in run for run in seen)
    if is_choice and excludes:
        yield Rule(
            key=("order", "exclusive_choice", one, other),
            statement=f"either {names[one]} or {names[other]} is called, never both",
            runs=total,
            of=total,
            part={"exclusive_choice": pair},
            weight=3.0,
        )
    elif is_choice:
        yield Rule(
            key=("order", "choice", one, other),
            statement=f"{names[one]} or {names[other]} is called",
            runs=total,
            of=total,
            part={"choice": pair},
            weight=3.0,
        )
    elif excludes and fewest >= MIN_RUNS:
        yield Rule(
            key=("order", "not_co_existence", one, other),
            statement=f"{names[one]} and {names[other]} are never called in one run",
            runs=used[one] + used[other],
            of=total,
            part={"not_co_existence": pair},
        )


def _errors(
    runs: Sequence[ObservedRun], seen: Sequence[dict[str, _Seen]], names: Mapping[str, str]
) -> Iterator[Rule]:
    """What follows a failed call: one more of the same tool, or of one that stands in for it."""
    failed = Counter(tool for run in seen for tool, of_run in run.items() if of_run.failures)
    fallbacks: dict[str, JsonValue] = {}
    is_recovered = bool(failed)
    for tool in failed:
        open_runs = [
            run for run in seen if tool in run and max(run[tool].failures, default=-1) >= run[tool].last
        ]
        open_runs = [run for run in open_runs if run[tool].failures]
        if not open_runs:
            continue
        stand_ins = set.intersection(
            *({name for name, of_run in run.items() if of_run.last > run[tool].last} for run in open_runs)
        )
        if len(open_runs) < MIN_RUNS or not stand_ins:
            is_recovered = False
            break
        fallbacks[tool] = [names[name] for name in sorted(stand_ins)[:1]]
    if is_recovered and sum(bool(of_run.failures) for run in seen for of_run in run.values()) >= MIN_RUNS:
        with_failures = sum(any(of_run.failures for of_run in run.values()) for run in seen)
        written: JsonValue = {names[tool]: stand_in for tool, stand_in in fallbacks.items()}
        yield Rule(
            key=("recovery", "every"),
            statement="a failed call is tried again or replaced by another tool",
            runs=with_failures,
            of=len(runs),
            part={"config": {"fallbacks": written}} if fallbacks else {},
            weight=2.0,
        )
    for tool, number in failed.items():
        if number >= MIN_RUNS and all(
            (run[tool].last_success or -1) > max(run[tool].failures)
            for run in seen
            if tool in run and run[tool].failures
        ):
            yield Rule(
                key=("order", "retried", tool),
                statement=f"after a failed {names[tool]} one succeeds",
                runs=number,
                of=len(runs),
                part={
                    "response": [
                        {"tool": names[tool], "status": "failed"},
                        {"tool": names[tool], "status": "succeeded"},
                    ]
                },
                weight=2.0,
            )
