"""Which conversation a run belongs to: not always its own span says so.

Applications set the id where the request comes in, instrumentations on every span or on model turns alone,
and the Collector moves it to the resource.
"""

from collections.abc import Mapping, Sequence

from processors.reconstruction.runs import RunReport
from processors.shapes import RunScope, Trace, conversation_id


def sessions(trace: Trace, runs: Sequence[RunScope], reported: Mapping[int, RunReport]) -> dict[int, str]:
    """The conversation of every run, by identity; empty where nothing names one.

    Of a run that lies in no other, what is nearest counts: its own spans, then its model turns and calls,
    then the spans above it. Turns and calls that name several conversations name none, and nothing further
    out decides between them. A run in another belongs to the conversation of the outermost one that names
    any. Only where no span names one does the resource: `session.id` there may be the visit of a browser or
    the life of a process.
    """
    above = _Above(trace)
    collected: dict[int, str] = {}
    for run in runs:
        chain: list[RunScope] = []
        around: RunScope | None = run
        while around is not None and id(around) not in collected:
            chain.append(around)
            around = around.parent
        session = "" if around is None else collected[id(around)]
        for inner in reversed(chain):
            session = session or _named_by(inner, reported[id(inner)], trace, above)
            collected[id(inner)] = session
    for run in runs:
        if not collected[id(run)]:
            collected[id(run)] = conversation_id(trace.tree.views[run.carrier].envelope.resource_attributes)
    return collected


def _named_by(run: RunScope, report: RunReport, trace: Trace, above: "_Above") -> str:
    """What the spans of a run say, and those above it."""
    own = report.reading.session
    if own:
        return own
    inside = {
        conversation_id(reading.span.attributes)
        for positions in (run.models, run.tools)
        for reading in trace.readings_at(positions)
        if reading.shape.names_conversation
    }
    inside.discard("")
    if inside:
        return inside.pop() if len(inside) == 1 else ""
    return above.conversation(run.carrier)


class _Above:
    """What the spans from any one up to its root say; each is looked at once."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._known: dict[int, str] = {-1: ""}

    def conversation(self, position: int) -> str:
        """The conversation that the nearest of the span at `position` and those above it names, or none."""
        parents, known = self._trace.tree.parents, self._known
        path: list[int] = []
        while position not in known:
            path.append(position)
            position = parents[position]
        session = known[position]
        for step in reversed(path):
            known[step] = session = self._named_on(step) or session
        return session

    def _named_on(self, position: int) -> str:
        reading = self._trace.readings[position]
        if reading is None:
            return conversation_id(self._trace.tree.views[position].attributes)
        if reading.shape.names_conversation:
            return conversation_id(reading.span.attributes)
        return reading.agent.session
