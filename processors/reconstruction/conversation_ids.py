"""Which conversation a run belongs to: not always its own span names it.

Applications set the id where the request comes in, instrumentations on every span or on model turns alone,
and the Collector moves it to the resource.
"""

from collections.abc import Mapping

from processors.reconstruction.runs import RunReport
from processors.shapes import RunScope, Trace, conversation_id


def sessions(trace: Trace, reports: Mapping[RunScope, RunReport]) -> dict[RunScope, str]:
    """The conversation of every run; empty where nothing names one.

    Of a run that lies in no other, what is nearest counts: its own spans, then its model turns and calls,
    then the spans above it. Turns and calls that name several conversations name none, and nothing further
    out decides between them. A run in another belongs to the conversation of the outermost one that names
    any. Only where no span names one does the resource: `session.id` there may be the visit of a browser or
    the life of a process.
    """
    above = {-1: ""}
    collected: dict[RunScope, str] = {}
    for run in reports:
        chain: list[RunScope] = []
        around: RunScope | None = run
        while around is not None and around not in collected:
            chain.append(around)
            around = around.parent
        session = "" if around is None else collected[around]
        for inner in reversed(chain):
            session = session or _named_by(inner, reports[inner], trace, above)
            collected[inner] = session
    for run in reports:
        if not collected[run]:
            collected[run] = conversation_id(trace.tree.views[run.carrier].envelope.resource_attributes)
    return collected


def _named_by(run: RunScope, report: RunReport, trace: Trace, above: dict[int, str]) -> str:
    """What the spans of a run name, else those above it."""
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
    return _named_above(run.carrier, trace, above)


def _named_above(position: int, trace: Trace, above: dict[int, str]) -> str:
    """What the nearest of the span at `position` and those above it names; `above` has what is known."""
    path: list[int] = []
    while position not in above:
        path.append(position)
        position = trace.tree.parents[position]
    session = above[position]
    for step in reversed(path):
        reading = trace.readings[step]
        if reading is None or reading.shape.names_conversation:
            own = conversation_id(trace.tree.views[step].attributes)
        else:
            own = reading.agent.session
        above[step] = session = own or session
    return session
