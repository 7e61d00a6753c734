"""A conversation as one run: the calls of all its runs, in order of start, as evaluators see calls."""

import re
from collections.abc import Collection, Hashable, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from processors.model.agent_run import AgentRun, IncompleteReason, ToolCall, ValueState
from processors.model.tool_name import canonical_tool_name

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


class ConversationView(NamedTuple):
    """What an evaluation over a conversation looks at.

    `run` is the run that is graded with the calls of all `runs`; `gap` is why it is not complete, empty if
    it is.
    """

    run: AgentRun
    runs: tuple[RunReference, ...]
    gap: str


def reference_of(run: AgentRun) -> RunReference:
    """What names `run`."""
    return RunReference(run.trace_id, run.span_id)


def over_conversation(run: AgentRun) -> ConversationView:
    """`run` with the calls of all runs that are known of its conversation, its own included.

    A call that one run requested and a later one executed is one call (`superseded`), and the executed one
    stays.

    The order is that of the starts of runs, and where runs overlap, of calls; within a run calls keep their
    order. Runs of unknown start are first, in the order given. The order in which runs with known starts
    arrived does not matter.
    """
    known = run.conversation
    others = () if known is None else known.runs
    runs = sorted((*others, run), key=_place)
    tool_calls, requested = _merged(runs)
    reason, gap = _incompleteness(run, runs)
    view = run.with_calls(
        tool_calls, requested, complete=not gap, incomplete_reason=reason or run.incomplete_reason
    )
    return ConversationView(view, tuple(map(reference_of, runs)), gap)


def _incompleteness(run: AgentRun, runs: Sequence[AgentRun]) -> tuple[IncompleteReason | None, str]:
    """Why calls of the conversation may be missing: the reason, and a text for people; none: they are not."""
    if run.session is None:
        return "content_not_captured", "the telemetry names no conversation"
    for each in runs:
        if not each.complete:
            whose = "this run" if each is run else f"the run {reference_of(each)} of the conversation"
            what = "calls" if each.has_all_spans else "spans"
            return each.incomplete_reason, f"{what} of {whose} may be missing"
    gap = _UNKNOWN if run.conversation is None else run.conversation.gap
    return ("interrupted", f"runs of the conversation may be missing: {gap}") if gap else (None, "")


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


def _merged(runs: Sequence[AgentRun]) -> tuple[list[ToolCall], list[tuple[int, ToolCall]]]:
    """`tool_calls` and `requested_calls` of all runs; groups and attempts stay within their run."""
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
    agents = [run.agent.name for run in runs] if len({run.agent.name for run in runs}) > 1 else None
    for _, number, _, at, call in placed:
        if agents is not None and not call.agent:
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
    waiting = list(run.requested_calls)[::-1]
    for at, call in enumerate([*run.tool_calls, None]):
        while waiting and (call is None or waiting[-1][0] <= at):
            yield _Placed(start, number, place, None, waiting.pop()[1])
            place += 1
        if call is not None:
            start = max(start, call.start_unix_nano)
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
