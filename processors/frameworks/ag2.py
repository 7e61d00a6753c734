"""AG2: `ag2.span.type`, in addition to the GenAI conventions that carry all but one thing.

Every turn of an agent is an invocation of its own: one answers with calls, the next one executes them and
answers with the results, and then it is the first one's turn again.
"""

from collections.abc import Sequence

from processors.shapes.dialect import Dialect, SpanRole
from processors.shapes.dialect_functions import Sign, by_signs
from processors.shapes.messages import is_call_id
from processors.shapes.rewriting import CarrierKind, Outline, RunScope, Trace

_TYPE = "ag2.span.type"
"""The attribute with what AG2 made a span for."""

DIALECT = Dialect("ag2", (_TYPE,), role=by_signs(Sign(SpanRole.OTHER, values=((_TYPE, "agent"),))), rank=20)


def rewrite_runs(trace: Trace, outline: Outline) -> None:
    """Join the turns of one agent between which only its calls were executed to one run.

    The calls belong to the run that requested them; a turn that did nothing but execute calls is no run.
    Only invocations under the same parent are looked at. The layers of a joined run begin with the last
    turn, since that one has the answer.
    """
    if len(outline.runs) < 2 or not trace.is_read_by("ag2"):
        return
    siblings: dict[bytes, list[RunScope]] = {}
    for scope in sorted(outline.runs, key=lambda scope: scope.carrier):
        parent = trace.tree.parent_ids[scope.carrier]
        is_turn = trace.tree.views[scope.carrier].attributes.get(_TYPE) == "agent"
        if scope.kind is CarrierKind.AGENT and parent and is_turn:
            siblings.setdefault(parent, []).append(scope)
    joined: dict[int, RunScope] = {}
    for turns in siblings.values():
        _join(turns, trace, joined)
    outline.runs = [scope for scope in outline.runs if id(scope) not in joined]
    for scope in outline.runs:
        scope.parent = joined.get(id(scope.parent), scope.parent)


def _join(turns: Sequence[RunScope], trace: Trace, joined: dict[int, RunScope]) -> None:
    """Note in `joined` to which run each of the `turns`, in order of start, is joined."""
    requested: dict[str, RunScope] = {}
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
        requester = _requester(turn, trace, requested)
        if requester is not None and not requests and not turn.models:
            requester.tools += turn.tools
            joined[id(turn)] = requester
            is_executed = requester is last
            continue
        run = turn
        if is_executed and last is not None and trace.agent(last.carrier).name == reading.agent.name != "":
            last.tools += turn.tools
            last.models += turn.models
            later.setdefault(id(last), []).append(turn.carrier)
            joined[id(turn)] = run = last
        requested.update((call_id, run) for call_id in requests if is_call_id(call_id))
        last, is_executed = run, False
    for turn in turns:
        if id(turn) in later:
            turn.layers[:0] = reversed(later[id(turn)])


def _requester(turn: RunScope, trace: Trace, requested: dict[str, RunScope]) -> RunScope | None:
    """The run that requested all the calls of `turn`, if there is one."""
    runs = [requested.get(trace.tool(position).call_id) for position in turn.tools]
    return runs[0] if runs and all(run is runs[0] for run in runs) else None
