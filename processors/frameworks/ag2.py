"""AG2: `ag2.span.type`, in addition to the GenAI conventions that carry all but one thing.

Every turn of an agent is an invocation of its own: one answers with calls, the next one executes them and
answers with the results, and then it is the first one's turn again.
"""

from collections.abc import Sequence
from typing import Final

from processors.shapes.dialect import Dialect, Sign, SpanRole, by_signs
from processors.shapes.messages import is_call_id
from processors.shapes.rewriting import CarrierKind, Found, Rewrite, RunScope, Trace

TYPE_KEY: Final = "ag2.span.type"
"""The attribute that tells what AG2 made a span for."""

DIALECT: Final = Dialect(
    "ag2", (TYPE_KEY,), role=by_signs(Sign(SpanRole.OTHER, values=((TYPE_KEY, "agent"),))), rank=20
)


def _has_turns(trace: Trace, found: Found) -> bool:
    return len(found.runs) > 1 and trace.is_told_by("ag2")


def _join_turns(trace: Trace, found: Found) -> Found:
    """The runs, with the turns of one agent between which only its calls were executed joined to one run.

    The calls belong to the run that asked for them; a turn that did nothing but execute calls is no run.
    Only invocations under the same parent are looked at. The layers of a joined run begin with the last
    turn, since that one has the answer.
    """
    beside: dict[bytes, list[RunScope]] = {}
    for scope in sorted(found.runs, key=lambda scope: scope.carrier):
        parent = trace.tree.parent_ids[scope.carrier]
        if scope.kind is CarrierKind.AGENT and parent and _is_turn(scope, trace):
            beside.setdefault(parent, []).append(scope)
    joined: dict[int, RunScope] = {}
    for turns in beside.values():
        _join(turns, trace, joined)
    kept = [scope for scope in found.runs if id(scope) not in joined]
    for scope in kept:
        scope.parent = joined.get(id(scope.parent), scope.parent)
    return found._replace(runs=kept)


def _is_turn(scope: RunScope, trace: Trace) -> bool:
    return trace.tree.views[scope.carrier].attributes.get(TYPE_KEY) == "agent"


def _join(turns: Sequence[RunScope], trace: Trace, joined: dict[int, RunScope]) -> None:
    """Note in `joined` to which run each of the `turns`, in order of start, is joined."""
    asked: dict[str, RunScope] = {}
    last: RunScope | None = None
    is_executed = False
    later: dict[int, list[int]] = {}
    for turn in turns:
        reading = trace.readings[turn.carrier]
        if reading is None:
            continue
        requests = [
            request.call_id for message in reading.conversation.output for request in message.requests
        ]
        asked_by = _asked_by(turn, trace, asked)
        if asked_by is not None and not requests and not turn.models:
            asked_by.tools += turn.tools
            joined[id(turn)] = asked_by
            is_executed = asked_by is last
            continue
        run = turn
        if is_executed and last is not None and _name(last, trace) == reading.agent.name != "":
            last.tools += turn.tools
            last.models += turn.models
            later.setdefault(id(last), []).append(turn.carrier)
            joined[id(turn)] = run = last
        asked.update((call_id, run) for call_id in requests if is_call_id(call_id))
        last, is_executed = run, False
    for turn in turns:
        if id(turn) in later:
            turn.layers[:0] = reversed(later[id(turn)])


def _asked_by(turn: RunScope, trace: Trace, asked: dict[str, RunScope]) -> RunScope | None:
    """The run that asked for all the calls of `turn`, if there is one."""
    runs = [
        None if (reading := trace.readings[position]) is None else asked.get(reading.tool.call_id)
        for position in turn.tools
    ]
    return runs[0] if runs and all(run is runs[0] for run in runs) else None


def _name(run: RunScope, trace: Trace) -> str:
    reading = trace.readings[run.carrier]
    return "" if reading is None else reading.agent.name


REWRITE: Final = Rewrite(
    framework="AG2",
    what="joins the turns of an agent between which another executed its calls",
    stage="runs",
    applies=_has_turns,
    rewrite=_join_turns,
)
