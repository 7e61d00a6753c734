"""A conversation or a trace as one run: the calls of all its runs in order of start, as evaluators see it."""

import re
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

from processors.model.agent_run import AgentRun, IncompleteReason, ToolCall, ValueState
from processors.model.late_values import LateObject
from processors.model.model_usage import ModelCall, TokenUsage, sum_of_usage
from processors.model.tool_name import canonical_tool_name

_Incompleteness: TypeAlias = tuple[IncompleteReason | None, str]
_UNKNOWN = "its other runs were not looked up"
_NUMBERED_ID = re.compile(r"\D*[0-9]{0,4}")
"""Call ids that may be numbers of calls within a turn, so that other turns give them to other calls."""
_MAX_LOOK_BACK = 16
"""How many waiting calls of one id, or of one tool, a later call is compared with."""


class RunReference(NamedTuple):
    """Names a run: its trace, and the agent's own span if there is one."""

    trace_id: bytes
    span_id: bytes | None

    def __str__(self) -> str:
        """The ids as in `traceparent`: `trace-span`, or the trace alone."""
        return self.trace_id.hex() + ("" if self.span_id is None else f"-{self.span_id.hex()}")

    @staticmethod
    def parsed(text: str) -> "RunReference":
        """The reference whose text this is.

        Raises:
            ValueError: it is none.
        """
        trace_id, _, span_id = text.partition("-")
        return RunReference(bytes.fromhex(trace_id), bytes.fromhex(span_id) if span_id else None)


class WholeTrace(NamedTuple):
    """All runs of a trace; `gap` is why there may be others, empty: there are none."""

    runs: Sequence[AgentRun]
    gap: str = ""


class RunsView(NamedTuple):
    """What an evaluation over a conversation or a trace looks at.

    `run` is the run that is graded with the calls of all `runs`; `gap` is why it is not complete, empty if
    it is.
    """

    run: AgentRun
    runs: tuple[RunReference, ...]
    gap: str


def reference_of(run: AgentRun) -> RunReference:
    """What names `run`."""
    return RunReference(run.trace_id, run.span_id)


def over_conversation(run: AgentRun) -> RunsView:
    """`run` with the calls and model calls of all runs that are known of its conversation, its own included.

    A call that one run requested and a later one executed is one call (`superseded`), and the executed one
    stays.

    The order is that of the starts of runs, and where runs overlap, of calls; within a run calls keep their
    order. Runs of unknown start are first, in the order given. The order in which runs with known starts
    arrived does not matter.
    """
    known = run.conversation
    others = () if known is None else known.runs
    runs = sorted((*others, run), key=_place)
    gap = _UNKNOWN if known is None else known.gap
    incompleteness: _Incompleteness = "content_not_captured", "the telemetry names no conversation"
    if run.session is not None:
        incompleteness = _incompleteness(run, runs, "conversation", gap)
    return _view(run, runs, incompleteness)


def over_trace(run: AgentRun, trace: WholeTrace) -> RunsView:
    """`run` with the calls and model calls of all runs of its trace, each call with the agent that made it.

    The order is that of `over_conversation`. What only single runs have, such as the input, is that of `run`,
    which may be one that stands for the trace.
    """
    runs = sorted(trace.runs, key=_place)
    # What is missing of one run besides what it called decides more, and comes first.
    by_weight = sorted(runs, key=lambda each: each.has_all_spans)
    return _view(run, runs, _incompleteness(run, by_weight, "trace", trace.gap))


def _view(run: AgentRun, runs: Sequence[AgentRun], incompleteness: _Incompleteness) -> RunsView:
    reason, gap = incompleteness
    tool_calls, requested = _merged(runs, run.agent.name)
    view = run.with_calls(
        tool_calls, requested, complete=not gap, incomplete_reason=reason or run.incomplete_reason
    )
    return RunsView(view.with_models(_sums(view, runs)), tuple(map(reference_of, runs)), gap)


def _incompleteness(run: AgentRun, runs: Iterable[AgentRun], whole: str, gap: str) -> _Incompleteness:
    """Why calls of the `whole` may be missing: the reason, and a text for people; none: they are not."""
    for each in runs:
        if not each.complete:
            whose = "this run" if each is run else f"the run {reference_of(each)} of the {whole}"
            what = "calls" if each.has_all_spans else "spans"
            return each.incomplete_reason, f"{what} of {whose} may be missing"
    return ("interrupted", f"runs of the {whole} may be missing: {gap}") if gap else (None, "")


def _sums(run: AgentRun, runs: Sequence[AgentRun]) -> LateObject:
    """The content of `run` with the model calls of all `runs` and what they used, as far as it is known."""
    callers = {each.parent_agent for each in runs}

    def read(name: str) -> object:
        match name:
            case "model_calls":
                return [call for each in runs for call in _model_calls(each)]
            case "models":
                return tuple(dict.fromkeys(model for each in runs for model in each.models))
            case "usage":
                usages = [_usage(each, each.agent.name in callers) for each in runs]
                known = [usage for usage in usages if usage is not None]
                return sum_of_usage(known) if len(known) == len(usages) else None
            case "cost":
                costs = [_cost(each, each.agent.name in callers) for each in runs]
                return None if None in costs else sum(filter(None, costs))
        return getattr(run, name)

    return LateObject(read)


def _model_calls(run: AgentRun) -> Sequence[ModelCall]:
    """The model calls of `run`; where telemetry shows none, one of which nothing but a model may be known."""
    if run.model_calls or _requested_nothing(run):
        return run.model_calls
    return [ModelCall(model=model) for model in run.models or (None,)]


def _requested_nothing(run: AgentRun) -> bool:
    """Whether `run` is known to have requested nothing of any model, as workflows around agents do not."""
    return run.complete and not (run.calls or run.model_calls or run.models or run.usage or run.cost)


def _usage(run: AgentRun, is_caller: bool) -> TokenUsage | None:
    """The tokens of `run` alone; the total on its own span may include agents that it called."""
    if _requested_nothing(run):
        return TokenUsage(0, 0)
    return None if is_caller and not _counts_each_call(run) else run.usage


def _cost(run: AgentRun, is_caller: bool) -> float | None:
    if _requested_nothing(run):
        return 0.0
    return None if is_caller and not _counts_each_call(run) else run.cost


def _counts_each_call(run: AgentRun) -> bool:
    calls = run.model_calls
    return bool(calls) and all(call.usage is not None or call.failed for call in calls)


def _place(run: AgentRun) -> tuple[int, bytes, bytes]:
    if not run.start_unix_nano:
        return 0, b"", b""
    return run.start_unix_nano, run.trace_id, run.span_id or b""


class _Placed(NamedTuple):
    """A call and its place: when it began, as far as that is in order, its run's number, and where in that.

    `at` is its index among the run's `tool_calls`; None where it was only requested.
    """

    start: int
    run: int
    place: int
    at: int | None
    call: ToolCall


def _merged(runs: Sequence[AgentRun], agent: str) -> tuple[list[ToolCall], list[tuple[int, ToolCall]]]:
    """`tool_calls` and `requested_calls` of all runs; groups and attempts stay within their run.

    Calls name their agent, unless all are of `agent`.
    """
    placed = sorted(
        (call for number, run in enumerate(runs) for call in _calls(number, run)), key=lambda call: call[:3]
    )
    resumed = superseded([call.call for call in placed])
    if resumed:
        placed = [call for at, call in enumerate(placed) if at not in resumed]
    tool_calls: list[ToolCall] = []
    requested: list[tuple[int, ToolCall]] = []
    places: dict[tuple[int, int], int] = {}
    groups: dict[tuple[int, int], int] = {}
    agents = [run.agent.name for run in runs]
    for _, number, _, at, call in placed:
        if not call.agent and agents[number] != agent:
            call = replace(call, agent=agents[number])
        group = call.parallel_group
        if group is not None:
            call = replace(call, parallel_group=groups.setdefault((number, group), len(groups)))
        if at is None:
            requested.append((len(tool_calls), call))
            continue
        if call.retry_of is not None:
            call = replace(call, retry_of=places.get((number, call.retry_of)))
        places[number, at] = len(tool_calls)
        tool_calls.append(call)
    return tool_calls, requested


def _calls(number: int, run: AgentRun) -> Iterator[_Placed]:
    start, place = run.start_unix_nano, 0
    group: int | None = None
    waiting = list(run.requested_calls)[::-1]
    for at, call in enumerate([*run.tool_calls, None]):
        while waiting and (call is None or waiting[-1][0] <= at):
            yield _Placed(start, number, place, None, waiting.pop()[1])
            place += 1
        if call is not None:
            if group is None or call.parallel_group != group:  # calls of one group stay together
                start = max(start, call.start_unix_nano)
            group = call.parallel_group
            yield _Placed(start, number, place, at, call)
            place += 1


def superseded(calls: Sequence[ToolCall]) -> Collection[int]:
    """The places of those of `calls`, in order, that a later one of them reports again.

    A call that was not executed, because it waited, and the next one with its id and its tool are one: the
    later report has its outcome. The arguments may differ, since people edit them when they approve;
    where the id may be but a number within a turn (`call_0`), they must not. A later call without an id is
    the same one if it was executed with the same arguments. An id that occurs again after its call was
    executed is that of another call.
    """
    replaced: set[int] = set()
    waiting: dict[Hashable, list[int]] = {}
    for at, call in enumerate(calls):
        if call.executed and not waiting:
            continue
        tool = canonical_tool_name(call.name)
        earlier = waiting.get((tool, call.call_id) if call.call_id else tool, [])
        while earlier and earlier[-1] in replaced:
            earlier.pop()
        for place in earlier[: -_MAX_LOOK_BACK - 1 : -1]:
            if place not in replaced and _is_one(calls[place], call):
                replaced.add(place)
                break
        if not call.executed and call.call_id:
            for key in (tool, (tool, call.call_id)):
                waiting.setdefault(key, []).append(at)
    return replaced


def _is_one(before: ToolCall, after: ToolCall) -> bool:
    if after.call_id:
        if _NUMBERED_ID.fullmatch(after.call_id) is None:
            return True
        if ValueState.ABSENT in (before.arguments_state, after.arguments_state):
            return True
    elif not after.executed:
        return False
    known = before.arguments_state is after.arguments_state is ValueState.PRESENT
    return known and before.arguments == after.arguments
