"""Whether the runs of a trace are evidently over: every requested call has come, and so has the answer.

A span that ends after the root of its trace is exported later than it, by up to a batch delay. Messages show
whether such a span can be under way: a model turn that requested a call whose span has not come, or a last
turn without an answer. To what is settled only calls that no model requested can be added.
"""

from collections.abc import Sequence

from processors.reconstruction.passes import Scopes, find_scopes, read_trace
from processors.reconstruction.reading import SpanReader
from processors.shapes import CarrierKind, SpanRole
from processors.spans import RawSpan

_INVOCATIONS = frozenset({CarrierKind.AGENT, CarrierKind.WORKFLOW})


def settled_scopes(spans: Sequence[RawSpan], reader: SpanReader) -> Scopes | None:
    """The runs in the spans of one trace, for `reconstruct`, if there is one and each is evidently over.

    A run is over when its invocation has a span, each of its model turns has a readable answer, the last one
    requests nothing, and every call that was requested has its span. A workflow without turns and calls of
    its own is over when the runs in it are.
    """
    trace = read_trace(spans, reader)
    if not trace.has(SpanRole.MODEL):
        return None
    scopes = find_scopes(trace)
    runs = scopes.known.runs
    parents = {run.parent for run in runs}
    for run in runs:
        is_frame = run.kind is CarrierKind.WORKFLOW and not run.models and not run.tools and run in parents
        if not is_frame and not (run.kind in _INVOCATIONS and scopes.calls(run).all_arrived()):
            return None
    return scopes if runs else None
