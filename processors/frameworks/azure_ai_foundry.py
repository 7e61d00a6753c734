"""Azure AI Foundry: an agent is hosted elsewhere; the caller executes its tools and brings it the results.

Each time it is called it has an invocation span of its own, beside the one before: a turn of the same run.
"""

from collections.abc import Sequence
from typing import Final

from processors.shapes.messages import ChatMessage, is_call_id
from processors.shapes.rewriting import Found, Rewrite, RunScope, Trace


def _may_be_resumed(trace: Trace, found: Found) -> bool:
    return len(found.runs) > 1


def _join_resumed(trace: Trace, found: Found) -> Found:
    """The runs, with each invocation that only brings results of calls joined to the run that asked for them.

    Both are spans of the same agent under the same parent with nothing below them. The joined run has every
    invocation as a turn, and its layers with the last one first, since that one has the answer.
    """
    beside: dict[tuple[bytes, str], list[RunScope]] = {}
    with_children = set(trace.tree.parents)
    for scope in sorted(found.runs, key=lambda scope: scope.carrier):
        parent, name = trace.tree.parent_ids[scope.carrier], trace.agent_name(scope.carrier)
        if parent and name and scope.carrier not in with_children and len(scope.layers) == 1:
            beside.setdefault((parent, name), []).append(scope)
    resumed: set[int] = set()
    for runs in beside.values():
        if len(runs) > 1:
            resumed.update(_join(runs, trace))
    return found._replace(runs=[scope for scope in found.runs if id(scope) not in resumed])


def _join(runs: Sequence[RunScope], trace: Trace) -> set[int]:
    """Join the `runs` of one agent, which are in order of start; the identities of those that were joined."""
    waiting: dict[str, RunScope] = {}
    hidden: RunScope | None = None
    joined: set[int] = set()
    for scope in runs:
        reading = trace.readings[scope.carrier]
        if reading is None:
            continue
        told = reading.conversation
        asked = _asked_by(told.input, waiting, hidden)
        run = scope
        if asked is not None:
            if not asked.models:
                asked.models.append(asked.carrier)
            asked.models.append(scope.carrier)
            asked.layers.append(scope.carrier)
            joined.add(id(scope))
            run = asked
        hidden = run if reading.agent.hides_calls else None
        for message in told.output:
            for request in message.requests:
                if is_call_id(request.call_id):
                    waiting[request.call_id] = run
    for scope in runs:
        if id(scope) not in joined:
            scope.layers.reverse()  # the last invocation first
    return joined


def _asked_by(
    messages: Sequence[ChatMessage], waiting: dict[str, RunScope], hidden: RunScope | None
) -> RunScope | None:
    """The run that asked for the results which are all that `messages` bring, if there is one.

    Results that no known call asked for are of the run `hidden`, whose calls are not told.
    """
    asked: RunScope | None = None
    for message in messages:
        if message.requests or (message.role == "user" and message.text):
            return None
        for response in message.responses:
            run = waiting.get(response.call_id, hidden)
            if run is None or asked not in (None, run):
                return None
            asked = run
    return asked


REWRITE: Final = Rewrite(
    framework="Azure AI Foundry",
    what="joins the requests to a hosted agent that bring results to the run that asked for them",
    stage="agents",
    applies=_may_be_resumed,
    rewrite=_join_resumed,
)
