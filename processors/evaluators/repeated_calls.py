"""Evaluators of calls that are made again: without need, after a failure, or after a success.

`tool-repetition`, `tool-error-recovery` and `duplicate-side-effect`.
"""

import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pydantic import Field

from processors.comparison import (
    ToolPatterns,
    ToolSelectionConfig,
    argument_names,
    comparable_arguments,
    equality_key,
    known_equality,
    looks_failed,
    may_have_taken_effect,
    readable_arguments,
    took_effect,
    unknown_arguments,
    without_invented,
)
from processors.documents import EvaluatorModel
from processors.model import (
    MAX_ASSIGNMENT_ATTEMPTS,
    AgentRun,
    Evaluator,
    JsonObject,
    JsonValue,
    NotEvaluated,
    RunFacts,
    Score,
    ToolCall,
    canonical_tool_name,
    canonical_tool_names,
    contains_mask,
    has_mask,
    may_be_masked,
)
from processors.response_handling import ErrorClass, ErrorClassifier

_SHOWN_TOOLS = 20
_LONGEST_CYCLE = 10
_NUMBER = re.compile(r"[+-]?[0-9]{1,15}(\.[0-9]{1,15})?")
_PUNCTUATION = " .,;:!?\"'`"
_MASK = "[REDACTED]"
_IDEMPOTENCY = ("idempotency_key", "idempotencyKey")


class ToolRepetitionConfig(ToolSelectionConfig):
    """Settings of `tool-repetition`."""

    threshold: int = Field(default=3, ge=2)
    """Identical calls from which the score is 0.5; from twice as many it is 0."""
    ignore_args: tuple[str, ...] = Field(default=(), examples=[["request_id", "*_at"]])
    """Names of arguments, as globs, that do not make a call another one."""
    normalize: bool = False
    """Whether texts in arguments are equal that differ only in case, in blanks, in punctuation at their ends,
    or in how they write a number."""
    window: int | None = Field(default=None, ge=2, examples=[10])
    """Among how many calls in a row, of whatever tools, identical calls are counted; left out, in all of the
    run."""
    cycle_threshold: int | None = Field(default=None, ge=2, examples=[3])
    """Rounds of a cycle, the same two to ten calls again and again (A, B, A, B), from which the score is 0.5;
    from twice as many it is 0. Left out, cycles do not count as such."""


class ToolRepetition(Evaluator):
    """How far the most repeated call, same tool and same arguments, stays below the threshold.

    With k the largest number of identical calls and t the threshold: score = 1 when k < t, 0.5 when
    t <= k < 2t, else 0. Arguments are equal by value, those in `ignore_args` left out; other calls in between
    do not matter. The rule is the repetition part of DeepEval's agent loop detection.

    With `window` k is the largest number among so many calls in a row. With `cycle_threshold` the rounds of
    the longest cycle are scored alike, and the lower score counts: calls in a cycle follow each other
    directly, are not all identical, and are counted as recorded where they ran side by side.

    There is nothing to expect. A run without calls scores 1 (k is 0).
    """

    id = "tool-repetition"
    over_calls = True
    can_fail_early = True
    quotes_content = False

    def __init__(self, config: ToolRepetitionConfig, criteria: None = None) -> None:
        self._threshold = config.threshold
        self._identifying = _without(config.ignore_args, normalize=config.normalize)
        self._window = config.window
        self._cycle_threshold = config.cycle_threshold
        # A later span can stand between calls that were in a row.
        self.can_fail_early = config.window is None and config.cycle_threshold is None
        self._categories = config.categories()

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; `content_not_captured` where arguments that are not known decide."""
        count, tool, doubtful, unread = self._largest_group(run)
        value, possible = self._value(count), self._value(doubtful)
        details: JsonObject = {"threshold": self._threshold, "identical_calls": count, "tool": tool or None}
        lines: list[str] = []
        if count >= 2:
            within = "" if self._window is None else f" among {self._window} calls"
            lines.append(f"{tool}: {count} identical calls{within}, threshold {self._threshold}")
        if self._cycle_threshold is not None:
            cycle, most, unread_in_cycle = self._cycles(run)
            value = min(value, self._value(cycle.rounds, self._cycle_threshold))
            possible = min(possible, self._value(most, self._cycle_threshold))
            unread = unread or unread_in_cycle
            details |= {
                "cycle_threshold": self._cycle_threshold,
                "rounds": cycle.rounds,
                "cycle": [*cycle.tools],
            }
            if cycle.rounds >= 2:
                lines.append(
                    f"{', '.join(cycle.tools)}: {cycle.rounds} rounds from call {cycle.start + 1} on, "
                    f"cycle_threshold {self._cycle_threshold}"
                )
        if unread is not None and possible != value:
            return unknown_arguments(unread)
        return Score(value, details, tuple(lines) or ("no call was repeated",))

    def attainable(self, run: AgentRun) -> tuple[float, float]:
        """Further calls can only repeat more; but they can stand between those of a window or a cycle."""
        return 0.0, 1.0 if self._window is not None else self._value(self._largest_group(run)[0])

    def _value(self, count: int, threshold: int | None = None) -> float:
        threshold = threshold or self._threshold
        if count < threshold:
            return 1.0
        return 0.5 if count < 2 * threshold else 0.0

    def _cycles(self, run: AgentRun) -> tuple["_Cycle", int, ToolCall | None]:
        """The cycle with the most rounds.

        Then how many rounds there could be if arguments that are not known were those that fit, and the first
        call that has such arguments.
        """
        calls = run.evaluated_calls(self._categories)
        tools = canonical_tool_names(calls)
        keys: list[Hashable] = []
        unread: ToolCall | None = None
        for call in calls:
            arguments = readable_arguments(call)
            known = None if arguments is None else self._identifying(arguments)
            if known is None or (may_be_masked(call.arguments_text) and contains_mask(known)):
                unread = unread or call
                keys.append(None)
            else:
                keys.append(equality_key(known))

        def are_same(one: int, other: int) -> bool:
            return tools[one] == tools[other] and keys[one] == keys[other] is not None

        def may_be_same(one: int, other: int) -> bool:
            is_open = keys[one] is None or keys[other] is None
            return tools[one] == tools[other] and (is_open or keys[one] == keys[other])

        certain = _most_rounds(calls, are_same, are_same)
        if unread is None:
            return certain, certain.rounds, None
        return certain, _most_rounds(calls, may_be_same, are_same).rounds, unread

    def _most(self, calls: Sequence[ToolCall], places: Mapping[int, int]) -> int:
        """The largest number of `calls` in one window."""
        if self._window is None:
            return len(calls)
        most, first = 0, 0
        for last, call in enumerate(calls):
            while places[id(call)] - places[id(calls[first])] >= self._window:
                first += 1
            most = max(most, last - first + 1)
        return most

    def _largest_group(self, run: AgentRun) -> tuple[int, str, int, ToolCall | None]:
        """The largest group of identical calls: its size and its tool.

        Then how large a group could be if the calls of a tool whose arguments are not known were all
        identical, and the first such call, if there is any.
        """
        seen = run.evaluated_calls(self._categories)
        tools = _by_tool(seen)
        if len(tools) == len(seen):  # no tool was called twice, and arguments decide nothing
            return (1, seen[0].name, 1, None) if seen else (0, "", 0, None)
        places = {} if self._window is None else {id(call): place for place, call in enumerate(seen)}
        count, doubtful, tool = 0, 0, ""
        doubted: ToolCall | None = None
        for calls in tools:
            if len(calls) <= count:
                continue
            groups, unread, masked = _by_arguments(calls, self._identifying)
            most = max([self._most(group, places) for group in groups.values()], default=0)
            largest = most or 1  # a call is identical with itself, also where its arguments are not known
            doubted = doubted or next(iter([*unread, *(call for call, _ in masked)]), None)
            if masked:
                readable = [call for call in calls if readable_arguments(call) is not None]
                alike = _alike(readable, masked, self._identifying)
                most = max(most, *[self._most(group, places) for _, group in alike])
            doubtful = max(doubtful, most + len(unread))
            if largest > count:
                count, tool = largest, calls[0].name
        return count, tool, doubtful, doubted


class _Cycle(NamedTuple):
    """A cycle of calls: how often it was gone through, where it began, and its tools."""

    rounds: int = 1
    start: int = 0
    tools: tuple[str, ...] = ()


def _most_rounds(
    calls: Sequence[ToolCall],
    may_be_same: Callable[[int, int], bool],
    are_same: Callable[[int, int], bool],
) -> _Cycle:
    """The cycle with the most rounds, of several the shortest; none of calls that are all the same."""
    best = _Cycle()
    same_from: list[int] = []  # for each call where those began that are the same as it, one after another
    for at in range(len(calls)):
        same_from.append(same_from[-1] if at and are_same(at, at - 1) else at)
    for length in range(2, min(_LONGEST_CYCLE, len(calls) // 2) + 1):
        repeated = 0
        for at in range(length, len(calls)):
            repeated = repeated + 1 if may_be_same(at, at - length) else 0
            rounds = 1 + repeated // length
            start = at + 1 - rounds * length
            if rounds > best.rounds and same_from[at] > start:
                best = _Cycle(rounds, start, tuple(call.name for call in calls[start : start + length]))
    return best


class ToolErrorRecoveryConfig(ToolSelectionConfig):
    """Settings of `tool-error-recovery`."""

    fallbacks: dict[str, tuple[str, ...]] = Field(
        default_factory=dict, examples=[{"search_web": ["search_archive"]}]
    )
    """For each tool the tools that may stand in for it after a failed call."""
    errors: tuple[ErrorClass, ...] = Field(
        default=tuple(ErrorClass), min_length=1, examples=[["retryable"], ["retryable", "argument"]]
    )
    """The classes of errors after which a call is to be followed, by the words in the error. A permanent
    error, or a refusal in other words (unknown), mostly is to be reported instead."""


class ToolErrorRecovery(Evaluator):
    """The share of failed calls that a later call of the same tool, or of a declared fallback, followed.

    score = failed calls with a later call of their tool or of one of its `fallbacks` / failed calls. A
    call failed when it `looks_failed` (`processors.comparison.captured_value`) and its error is of one of the
    classes in `errors`. The later call need not
    succeed: if it fails, it is a failed call itself. A call of the same parallel group is not later. Requests
    for tools that the run did not have are no failed calls here: `tool-known` reports them.

    There is nothing to expect. A run without failed calls, or without calls, scores 1: nothing is left
    unrecovered.
    """

    id = "tool-error-recovery"
    over_calls = True
    quotes_content = False

    def __init__(self, config: ToolErrorRecoveryConfig, criteria: None = None) -> None:
        self._categories = config.categories()
        self._fallbacks: dict[str, tuple[str, ...]] = {}
        for tool, fallbacks in config.fallbacks.items():
            name = canonical_tool_name(tool)
            self._fallbacks[name] = (*self._fallbacks.get(name, ()), *map(canonical_tool_name, fallbacks))
        self._classes = tuple(dict.fromkeys(config.errors))
        self._classifier = ErrorClassifier()

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; always a score."""
        calls = without_invented(run, run.evaluated_calls(self._categories))
        of_any_class = [position for position, call in enumerate(calls) if looks_failed(call)]
        failed = [position for position in of_any_class if self._counts(calls[position])]
        if not failed:
            line = "no call failed"
            if of_any_class:
                line = f"failed: {len(of_any_class)}, none with an error that is {' or '.join(self._classes)}"
            return Score(1.0, {"failed": 0, "recovered": 0, "not_recovered": []}, (line,))
        last = {canonical_tool_name(call.name): position for position, call in enumerate(calls)}
        unrecovered = []
        for position in failed:
            call = calls[position]
            name = canonical_tool_name(call.name)
            for tool in (name, *self._fallbacks.get(name, ())):
                later = last.get(tool, -1)
                group = calls[later].parallel_group
                if later > position and (group is None or group != call.parallel_group):
                    break
            else:
                unrecovered.append(call.name)
        recovered = len(failed) - len(unrecovered)
        not_recovered = list(dict.fromkeys(unrecovered))[:_SHOWN_TOOLS]
        details: JsonObject = {
            "failed": len(failed),
            "recovered": recovered,
            "not_recovered": [*not_recovered],
        }
        lines = [f"failed: {len(failed)}", f"recovered: {recovered}"]
        if not_recovered:
            lines.append(f"not recovered: {', '.join(not_recovered)}")
        return Score(recovered / len(failed), details, tuple(lines))

    def _counts(self, call: ToolCall) -> bool:
        if len(self._classes) == len(ErrorClass):
            return True
        failure = self._classifier.failure_of(call)
        return failure is not None and failure.error_class in self._classes


class DuplicateSideEffectConfig(EvaluatorModel):
    """Settings of `duplicate-side-effect`."""

    ignore_args: tuple[str, ...] = Field(default=(), examples=[["request_id", "idempotency_key"]])
    """Names of arguments, as globs, that do not make a call another one."""


class DuplicateSideEffectCriteria(EvaluatorModel):
    """The tools that change something."""

    tools: list[str] = Field(min_length=1, examples=[["send_*", "transfer_money"]])
    """Tools whose call must not be repeated once it succeeded, `*` and `?` allowed."""


class DuplicateSideEffect(Evaluator):
    """Whether no call with a side effect was made again, with the same arguments, after it succeeded: 1 or 0.

    score = 0 when a call of one of the `tools` follows one of the same tool with equal arguments
    (`processors.comparison.value_equality`) that took effect, else 1. After a failed call a repetition is a
    retry. Of calls that ran side by side only those that took effect repeat each other. Calls that were
    requested and never executed do not count.

    A call that ended in a time-out or a status of 5xx may have taken effect nevertheless: its repetition does
    not change the score and is shown as advisory, unless both calls have the same `idempotency_key`.

    A run without calls scores 1.
    """

    id = "duplicate-side-effect"
    over_calls = True
    quotes_content = False
    version = "2"

    def __init__(self, config: DuplicateSideEffectConfig, criteria: DuplicateSideEffectCriteria) -> None:
        self._tools = ToolPatterns(criteria.tools)
        self._identifying = _without(config.ignore_args)

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; `content_not_captured` where arguments that are not known decide."""
        repeated, unclear, undecided = self._repeated(run)
        if not repeated and undecided is not None:
            return unknown_arguments(undecided)
        details: JsonObject = {
            "repeated": len(repeated),
            "tools": [*dict.fromkeys(call.name for call in repeated)],
            "repeated_after_unclear_failure": len(unclear),
        }
        lines = [
            *_lines(repeated, "further with the same arguments after a success"),
            *_lines(unclear, "further after a time-out or 5xx that may have taken effect (advisory)"),
        ]
        return Score(0.0 if repeated else 1.0, details, tuple(lines) or ("no side effect was repeated",))

    def attainable(self, run: AgentRun) -> tuple[float, float]:
        """A repetition stays one, and a further call can always be one."""
        repeated, _, _ = self._repeated(run)
        return 0.0, 0.0 if repeated else 1.0

    def _repeated(self, run: AgentRun) -> tuple[list[ToolCall], list[ToolCall], ToolCall | None]:
        """The calls that repeat a success, and those that repeat what may have been one.

        Then a call whose unknown arguments may make another one of the first kind.
        """
        repeated: list[ToolCall] = []
        unclear: list[ToolCall] = []
        undecided: ToolCall | None = None
        for calls in _by_tool([call for call in run.calls if call.executed and call.name in self._tools]):
            groups, unread, masked = _by_arguments(calls, self._identifying)
            for group in groups.values():
                repeated += _after_success(group)
                unclear += _after_unclear_failure(group)
            doubts = [*_alike(calls, masked, self._identifying)] if masked else []
            for call, alike in [*doubts, *((call, calls) for call in unread[:1])]:
                if _after_success(alike):
                    undecided = undecided or call
        return repeated, unclear, undecided


def _without(ignored_names: Sequence[str], *, normalize: bool = False) -> Callable[[JsonObject], JsonObject]:
    """What identifies a call: its arguments without those whose names match one of the globs.

    With `normalize` its texts are as `_normalized` makes them.
    """
    ignored = argument_names(ignored_names)
    if ignored is None and not normalize:
        return lambda arguments: arguments

    def identifying(arguments: JsonObject) -> JsonObject:
        return {
            name: _normalized(value) if normalize else value
            for name, value in arguments.items()
            if ignored is None or ignored.match(name) is None
        }

    return identifying


def _normalized(value: JsonValue) -> JsonValue:
    """`value` with texts in small letters, with single blanks, and without punctuation at their ends.

    One that writes a number becomes this number. Of one with a mask in it nothing is known.
    """
    if isinstance(value, dict):
        return {name: _normalized(member) for name, member in value.items()}
    if isinstance(value, list):
        return [*map(_normalized, value)]
    if not isinstance(value, str):
        return value
    if has_mask(value):
        return _MASK
    text = " ".join(value.casefold().split())
    if _NUMBER.fullmatch(text):
        return float(text)
    return text.strip(_PUNCTUATION) or text


def _by_tool(calls: Sequence[ToolCall]) -> list[list[ToolCall]]:
    by_tool: dict[str, list[ToolCall]] = {}
    for name, call in zip(canonical_tool_names(calls), calls, strict=True):
        by_tool.setdefault(name, []).append(call)
    return [*by_tool.values()]


def _by_arguments(
    calls: Sequence[ToolCall], identifying: Callable[[JsonObject], JsonObject]
) -> tuple[dict[Hashable, list[ToolCall]], list[ToolCall], list[tuple[ToolCall, JsonObject]]]:
    """Calls of one tool in groups with equal arguments.

    Then those whose arguments are not known, and those in whose arguments something is masked, with what
    identifies them.
    """
    groups: dict[Hashable, list[ToolCall]] = {}
    unread: list[ToolCall] = []
    masked: list[tuple[ToolCall, JsonObject]] = []
    for call in calls:
        arguments = readable_arguments(call)
        if arguments is None:
            unread.append(call)
            continue
        arguments = identifying(arguments)
        if may_be_masked(call.arguments_text) and contains_mask(arguments):
            masked.append((call, arguments))
        else:
            # A single call is compared with none.
            groups.setdefault(equality_key(arguments) if len(calls) > 1 else None, []).append(call)
    return groups, unread, masked


def _alike(
    calls: Sequence[ToolCall],
    masked: Sequence[tuple[ToolCall, JsonObject]],
    identifying: Callable[[JsonObject], JsonObject],
) -> Iterator[tuple[ToolCall, Sequence[ToolCall]]]:
    """Each of `masked`, with those of `calls`, itself among them, that may have the same arguments.

    Masked arguments neither equal others nor differ from them but in what is known. Beyond what is compared,
    all may be alike; so may a call whose arguments are not known.
    """
    if len(masked) * len(calls) > MAX_ASSIGNMENT_ATTEMPTS:
        yield masked[0][0], calls
        return
    known = [
        (call, None if arguments is None else identifying(arguments))
        for call, arguments in zip(calls, map(readable_arguments, calls), strict=True)
    ]
    for own, arguments in masked:
        yield (
            own,
            [call for call, other in known if other is None or known_equality(arguments, other) is not False],
        )


def _after_success(calls: Sequence[ToolCall]) -> list[ToolCall]:
    """The calls that follow the first one that took effect, or took effect in parallel with it."""
    first = next((position for position, call in enumerate(calls) if took_effect(call)), None)
    if first is None:
        return []
    group = calls[first].parallel_group
    return [
        call
        for call in calls[first + 1 :]
        if group is None or call.parallel_group != group or took_effect(call)
    ]


def _after_unclear_failure(calls: Sequence[ToolCall]) -> list[ToolCall]:
    """The calls up to the first success that follow one that may have taken effect.

    With the same idempotency key the tool takes a repetition for the same call.
    """
    first = next((position for position, call in enumerate(calls) if may_have_taken_effect(call)), None)
    if first is None:
        return []
    done = next((position for position, call in enumerate(calls) if took_effect(call)), len(calls))
    failed = calls[first]
    key, group = _idempotency_key(failed), failed.parallel_group
    return [
        call
        for call in calls[first + 1 : done + 1]
        if (group is None or call.parallel_group != group) and (key is None or key != _idempotency_key(call))
    ]


def _idempotency_key(call: ToolCall) -> Hashable | None:
    arguments = comparable_arguments(call) or {}
    return next((equality_key(arguments[name]) for name in _IDEMPOTENCY if name in arguments), None)


def _lines(calls: Sequence[ToolCall], what: str) -> list[str]:
    """How many calls of each tool did `what`."""
    names = [call.name for call in calls]
    return [f"{name}: {names.count(name)} {what}" for name in list(dict.fromkeys(names))[:_SHOWN_TOOLS]]
