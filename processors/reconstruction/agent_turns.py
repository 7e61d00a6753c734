"""Runs of agents of which every turn is an invocation of its own, while another agent executes what they ask.

In a conversation of agents one answers with calls, the next one executes them and answers with the results,
and then it is the first one's turn again.
"""

from collections.abc import Sequence

from processors.reconstruction.requested_calls import is_call_id
from processors.reconstruction.run_scope import CarrierKind, RunScope
from processors.reconstruction.span_reading import SpanReading
from processors.spans.span_tree import SpanTree


def join_turns(
    runs: list[RunScope], tree: SpanTree, readings: Sequence[SpanReading | None]
) -> list[RunScope]:
    """The runs, with the turns of one agent between which only its calls were executed joined to one run.

    The calls belong to the run that asked for them; a turn that did nothing but execute calls is no run.
    Only invocations that are turns (`AgentReading.is_turn`) under the same parent are looked at. The layers
    of a joined run begin with the last turn, since that one has the answer.

    Args:
        runs: The runs of a trace, with their calls and model turns.
        tree: The spans.
        readings: What dialects read in each.
    """
    if len(runs) < 2:
        return runs
    beside: dict[bytes, list[RunScope]] = {}
    for scope in sorted(runs, key=lambda scope: scope.carrier):
        reading, parent = readings[scope.carrier], tree.parent_ids[scope.carrier]
        if scope.kind is CarrierKind.AGENT and parent and reading is not None and reading.agent.is_turn:
            beside.setdefault(parent, []).append(scope)
    joined: dict[int, RunScope] = {}
    for turns in beside.values():
        _join(turns, readings, joined)
    if not joined:
        return runs
    kept = [scope for scope in runs if id(scope) not in joined]
    for scope in kept:
        scope.parent = joined.get(id(scope.parent), scope.parent)
    return kept


def _join(
    turns: Sequence[RunScope], readings: Sequence[SpanReading | None], joined: dict[int, RunScope]
) -> None:
    """Note in `joined` to which run each of the `turns`, in order of start, is joined."""
    asked: dict[str, RunScope] = {}
    last: RunScope | None = None
    is_executed = False
    later: dict[int, list[int]] = {}
    for turn in turns:
        reading = readings[turn.carrier]
        if reading is None:
            continue
        requests = [
            request.call_id for message in reading.conversation.output for request in message.requests
        ]
        asked_by = _asked_by(turn, readings, asked)
        if asked_by is not None and not requests and not turn.models:
            asked_by.tools += turn.tools
            joined[id(turn)] = asked_by
            is_executed = asked_by is last
            continue
        run = turn
        if is_executed and last is not None and _name(last, readings) == reading.agent.name != "":
            last.tools += turn.tools
            last.models += turn.models
            later.setdefault(id(last), []).append(turn.carrier)
            joined[id(turn)] = run = last
        asked.update((call_id, run) for call_id in requests if is_call_id(call_id))
        last, is_executed = run, False
    for turn in turns:
        if id(turn) in later:
            turn.layers[:0] = reversed(later[id(turn)])


def _asked_by(
    turn: RunScope, readings: Sequence[SpanReading | None], asked: dict[str, RunScope]
) -> RunScope | None:
    """The run that asked for all the calls of `turn`, if there is one."""
    runs = [
        None if (reading := readings[position]) is None else asked.get(reading.tool.call_id)
        for position in turn.tools
    ]
    return runs[0] if runs and all(run is runs[0] for run in runs) else None


def _name(run: RunScope, readings: Sequence[SpanReading | None]) -> str:
    reading = readings[run.carrier]
    return "" if reading is None else reading.agent.name
