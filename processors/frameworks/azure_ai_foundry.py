"""Azure AI Foundry: an agent is hosted elsewhere; the caller executes its tools and brings it the results.

Each time it is called it has an invocation span of its own, next to the one before: a turn of the same run.
"""

from collections.abc import Sequence

from processors.shapes.messages import ChatMessage, is_call_id
from processors.shapes.rewriting import Outline, RunScope, Trace


def rewrite_agents(trace: Trace, outline: Outline) -> None:
    """Join each invocation that only brings results of calls to the run that requested them.

    Both are spans of the same agent under the same parent with nothing below them. The joined run has every
    invocation as a turn, and its layers with the last one first, since that one has the answer.
    """
    if len(outline.runs) < 2:
        return
    siblings: dict[tuple[bytes, str], list[RunScope]] = {}
    with_children = set(trace.tree.parents)
    for scope in sorted(outline.runs, key=lambda scope: scope.carrier):
        parent, name = trace.tree.parent_ids[scope.carrier], trace.agent_name(scope.carrier)
        if parent and name and scope.carrier not in with_children and len(scope.layers) == 1:
            siblings.setdefault((parent, name), []).append(scope)
    resumed: set[int] = set()
    for runs in siblings.values():
        if len(runs) > 1:
            resumed.update(_join(runs, trace))
    outline.runs = [scope for scope in outline.runs if id(scope) not in resumed]


def _join(runs: Sequence[RunScope], trace: Trace) -> set[int]:
    """Join the `runs` of one agent, which are in order of start; the identities of those that were joined."""
    waiting: dict[str, RunScope] = {}
    hidden: RunScope | None = None
    joined: set[int] = set()
    for scope in runs:
        reading = trace.readings[scope.carrier]
        if reading is None:
            continue
        conversation = reading.conversation
        run = _requester(conversation.input, waiting, hidden) or scope
        if run is not scope:
            run.models += [scope.carrier] if run.models else [run.carrier, scope.carrier]
            run.layers.append(scope.carrier)
            joined.add(id(scope))
        hidden = run if reading.agent.hides_calls else None
        for message in conversation.output:
            for request in message.requests:
                if is_call_id(request.call_id):
                    waiting[request.call_id] = run
    for scope in runs:
        if id(scope) not in joined:
            scope.layers.reverse()  # the last invocation first
    return joined


def _requester(
    messages: Sequence[ChatMessage], waiting: dict[str, RunScope], hidden: RunScope | None
) -> RunScope | None:
    """The run that requested the results which are all that `messages` bring, if there is one.

    Results that no known call requested are of the run `hidden`, whose calls are not shown.
    """
    requester: RunScope | None = None
    for message in messages:
        if message.requests or (message.role == "user" and message.text):
            return None
        for response in message.responses:
            run = waiting.get(response.call_id, hidden)
            if run is None or requester not in (None, run):
                return None
            requester = run
    return requester
