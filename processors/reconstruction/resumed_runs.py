"""Runs of an agent that is hosted elsewhere: the caller executes its tools and brings it the results.

Each time it is called it has an invocation span of its own, beside the one before: a turn of the same run.
"""

from collections.abc import Sequence

from processors.frameworks.shapes.messages import ChatMessage
from processors.reconstruction.requested_calls import is_call_id
from processors.reconstruction.run_scope import RunScope
from processors.reconstruction.span_reading import SpanReading
from processors.spans.span_tree import SpanTree


def join_resumed(
    agents: list[RunScope], tree: SpanTree, readings: Sequence[SpanReading | None]
) -> list[RunScope]:
    """The runs, with each invocation that only brings results of calls joined to the run that asked for them.

    Both are spans of the same agent under the same parent with nothing below them. The joined run has every
    invocation as a turn, and its layers with the last one first, since that one has the answer.
    """
    if len(agents) < 2:
        return agents
    beside: dict[tuple[bytes, str], list[RunScope]] = {}
    with_children = set(tree.parents)
    for scope in sorted(agents, key=lambda scope: scope.carrier):
        parent, reading = tree.parent_ids[scope.carrier], readings[scope.carrier]
        name = "" if reading is None else reading.agent.name or reading.agent.inferred_name
        if parent and name and scope.carrier not in with_children and len(scope.layers) == 1:
            beside.setdefault((parent, name), []).append(scope)
    resumed: set[int] = set()
    for runs in beside.values():
        if len(runs) > 1:
            resumed.update(_join(runs, readings))
    return [scope for scope in agents if id(scope) not in resumed]


def _join(runs: Sequence[RunScope], readings: Sequence[SpanReading | None]) -> set[int]:
    """Join the `runs` of one agent, which are in order of start; the identities of those that were joined."""
    waiting: dict[str, RunScope] = {}
    hidden: RunScope | None = None
    joined: set[int] = set()
    for scope in runs:
        reading = readings[scope.carrier]
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
