"""Rules about tools: which are called, how often, and what follows an error."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from processors.learning.observed_run import ObservedRun
from processors.learning.order_rules import (
    MIN_RUNS,
    SeenTool,
    constraint,
    order_rules,
    seen_tools,
    with_status,
)
from processors.learning.rule import Rule, tolerated
from processors.model import JsonObject, JsonValue

_OFTEN = 5
"""Runs with the largest number of calls from which on that number is the limit; else it is one more."""


def tool_rules(runs: Sequence[ObservedRun], names: Mapping[str, str]) -> Iterator[Rule]:
    """The rules that all `runs` keep; `names` are the tools as they are written."""
    seen = [seen_tools(run) for run in runs]
    used = Counter(tool for of_run in seen for tool in of_run)
    yield from _allowed(runs, used, names)
    yield from _counts(seen, used, names)
    yield from order_rules(seen, used, names)
    yield from _errors(runs, seen, names)


def _allowed(runs: Sequence[ObservedRun], used: Counter[str], names: Mapping[str, str]) -> Iterator[Rule]:
    if len(runs) < MIN_RUNS:
        return
    allowed: list[JsonValue] = [names[tool] for tool in sorted(used)]
    shown = ", ".join(map(str, allowed)) or "none"
    statement = f"no tool but these is called: {shown}"
    part: JsonObject = {"criteria": {"allow": allowed}}
    yield Rule(("tools", "allow"), statement, part, len(runs), len(runs), weight=3.0)


def _counts(
    seen: Sequence[dict[str, SeenTool]], used: Counter[str], names: Mapping[str, str]
) -> Iterator[Rule]:
    total = len(seen)
    if total < MIN_RUNS:
        return
    most = _limit([sum(len(tool.steps) for tool in run.values()) for run in seen], spare=2)
    part: JsonObject = {"criteria": {"max_calls": most}}
    yield Rule(("calls", "max_calls"), f"at most {most} calls in all", part, total, total)
    for tool, runs in used.items():
        name = names[tool]
        numbers = [len(run[tool].steps) for run in seen if tool in run]
        if runs >= MIN_RUNS:
            most = _limit(numbers)
            part = {"criteria": {"tools": {name: {"max": most}}}}
            yield Rule(("calls", "max", tool), f"{name} at most {_times(most)}", part, runs, total)
        if runs < total - tolerated(total):
            continue
        fewest = min(numbers)
        succeeded = sum(tool in run and bool(run[tool].successes) for run in seen)
        broken = total - runs
        if succeeded == runs:
            key, statement = ("order", "existence", tool), f"{name} is called, and succeeds"
            part = constraint("existence", with_status(name, "succeeded"))
            yield Rule(key, statement, part, total, total, weight=3.0, broken=broken)
            if fewest == 1:
                continue
        key, statement = ("calls", "min", tool), f"{name} at least {_times(fewest)}"
        part = {"criteria": {"tools": {name: {"min": fewest}}}}
        yield Rule(key, statement, part, total, total, weight=3.0, broken=broken)


def _limit(numbers: Sequence[int], spare: int = 1) -> int:
    """The largest number where it was seen often, else a little more."""
    most = max(numbers)
    return most if numbers.count(most) >= _OFTEN else most + spare


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _errors(
    runs: Sequence[ObservedRun], seen: Sequence[dict[str, SeenTool]], names: Mapping[str, str]
) -> Iterator[Rule]:
    """What follows a failed call: one more of the same tool, or of one that stands in for it."""
    failed = Counter(tool for run in seen for tool, of_run in run.items() if of_run.failures)
    fallbacks: dict[str, JsonValue] = {}
    is_recovered = bool(failed)
    for tool in failed:
        # Runs in which it was not called again after it failed, and what was called later there.
        open_runs = [
            {name for name, of_run in run.items() if of_run.steps[-1] > run[tool].steps[-1]}
            for run in seen
            if tool in run and run[tool].failures and run[tool].failures[-1] >= run[tool].steps[-1]
        ]
        if not open_runs:
            continue
        stand_ins = set.intersection(*open_runs)
        if len(open_runs) < MIN_RUNS or not stand_ins:
            is_recovered = False
            break
        fallbacks[tool] = [names[name] for name in sorted(stand_ins)[:1]]
    if is_recovered and failed.total() >= MIN_RUNS:
        with_failures = sum(any(of_run.failures for of_run in run.values()) for run in seen)
        written: JsonValue = {names[tool]: stand_in for tool, stand_in in fallbacks.items()}
        statement = "a failed call is tried again or replaced by another tool"
        part: JsonObject = {"config": {"fallbacks": written}} if fallbacks else {}
        yield Rule(("recovery", "every"), statement, part, with_failures, len(runs), weight=2.0)
    for tool, number in failed.items():
        if number >= MIN_RUNS and all(
            max(run[tool].successes, default=-1) > run[tool].failures[-1]
            for run in seen
            if tool in run and run[tool].failures
        ):
            name = names[tool]
            part = constraint("response", [with_status(name, "failed"), with_status(name, "succeeded")])
            statement = f"after a failed {name} one succeeds"
            yield Rule(("order", "retried", tool), statement, part, number, len(runs), weight=2.0)
