"""Spans of a finished trace to the agent runs in it: what every agent did, in which order, to what effect.

Here the passes stand in order; each makes plain values out of those before it. The result depends on the set
of spans alone, not on the order they came in or how they were batched.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

from processors.carriers import discover_dialects
from processors.model import CUT_SHORT, AgentRun, FinishReason, PriceTable
from processors.reconstruction.calls import RunCalls, TraceRuns
from processors.reconstruction.conversation_ids import sessions
from processors.reconstruction.model_calls import TraceModels
from processors.reconstruction.reading import SpanReader
from processors.reconstruction.rewrites import rewrites
from processors.reconstruction.run_scopes import descend, give_out
from processors.reconstruction.runs import Ending, RunReport, rebuilt_run
from processors.shapes import CarrierKind, Dialect, RunScope, Trace
from processors.spans import RawSpan, SpanTree


@dataclass(frozen=True, slots=True, eq=False)
class Scopes:
    """The runs of a trace, and what was read of their calls so far."""

    known: TraceRuns
    _calls: dict[RunScope, RunCalls] = field(default_factory=dict)

    def calls(self, run: RunScope) -> RunCalls:
        """What builds the calls of a run; one for each run."""
        if run not in self._calls:
            self._calls[run] = RunCalls(run, self.known)
        return self._calls[run]


def reconstruct(
    spans: Sequence[RawSpan],
    *,
    trace_id: bytes,
    reason: FinishReason,
    was_quiet: bool = False,
    interrupted: bool = False,
    missing_parents: Literal["grade", "not_evaluated"] = "grade",
    tenant: str = "",
    reader: SpanReader | None = None,
    prices: PriceTable | None = None,
    scopes: Scopes | None = None,
    joins_siblings: bool = False,
) -> list[AgentRun]:
    """The agent runs in the spans of one trace, in order of start; none where no agent or call is reported.

    Args:
        spans: All spans of the trace, in any order; repeated ones count once.
        trace_id: Goes into the runs.
        reason: Why the trace was taken as finished; runs of a trace that was cut short are not complete,
        was_quiet: unless no span had come for its grace by then.
        interrupted: Spans may have been lost on our side: no run is complete.
        missing_parents: Whether runs with spans whose parent never came may be complete.
        tenant: Goes into the runs.
        reader: Reads the spans; by default with the built-in dialects.
        prices: What models cost; without it no run has a cost.
        scopes: The runs of exactly these spans where they were read before: see `settled_scopes`.
        joins_siblings: Whether spans that name one parent, which is not here, are of one run.
    """
    may_lack_spans = interrupted or (reason in CUT_SHORT and not was_quiet)
    if scopes is not None and not may_lack_spans:
        trace = scopes.known.trace
    else:
        trace = read_trace(spans, span_reader() if reader is None else reader)
        if not trace.shapes:
            return []
        scopes = find_scopes(trace, lost_means_filtered=not may_lack_spans, joins_siblings=joins_siblings)
    models = TraceModels(trace, scopes.known.runs)
    reports = {run: RunReport(run, trace, scopes.calls(run), models, prices) for run in scopes.known.runs}
    session_of = sessions(trace, reports)
    refuses_lost = missing_parents == "not_evaluated"
    ending = Ending(trace_id, tenant, reason, interrupted, may_lack_spans, refuses_lost)
    return [
        rebuilt_run(report, reports, session_of[run], ending)
        for run, report in reports.items()
        if report.executed or run.kind not in (CarrierKind.LOCAL_ROOT, CarrierKind.NOTHING)
    ]


def read_trace(spans: Sequence[RawSpan], reader: SpanReader) -> Trace:
    """Parse, sort and link the spans, and read of each what it stands for."""
    tree = SpanTree(spans)
    readings = reader.read_all(tree.views)
    return Trace(tree, readings, frozenset([reading.shape for reading in readings if reading is not None]))


def find_scopes(trace: Trace, *, lost_means_filtered: bool = True, joins_siblings: bool = False) -> Scopes:
    """Find the runs of a trace.

    Runs without any call are listed for agents and workflows; a local root or nothing at all stands for
    a run only where there are calls or model turns.

    Args:
        trace: The spans.
        lost_means_filtered: Whether a parent that is not here was left out on its way, so that its child
            belongs to the run around it in time. Otherwise the parent may be a run of its own that has
            yet to come, and it stays open whose the child is.
        joins_siblings: Whether spans that name one parent, which is not here, are of one run. Otherwise that
            is known of calls and turns alone.
    """
    descent = descend(trace)
    for rewrite in rewrites("agents"):
        rewrite(trace, descent)
    give_out(trace, descent, lost_means_filtered=lost_means_filtered, joins_siblings=joins_siblings)
    for rewrite in rewrites("runs"):
        rewrite(trace, descent)
    runs = descent.runs
    if len(runs) > 1:
        runs = sorted(runs, key=lambda run: (run.carrier, run.kind is not CarrierKind.AGENT, run.agent_name))
    nested: dict[RunScope, list[RunScope]] = {}
    agent_calls: set[int] = set()
    for run in runs:
        if run.requested_by >= 0:
            agent_calls.add(run.requested_by)
        elif run.parent is not None:
            nested.setdefault(run.parent, []).append(run)
    return Scopes(TraceRuns(trace, runs, descent.call_above, agent_calls, nested))


def span_reader(own: Sequence[Dialect] = (), *, shared: bool = True) -> SpanReader:
    """What reads spans with the dialects `own` first, then with all that are built in.

    One that is `shared` with other callers for the built-in ones alone is for one thread.
    """
    return _built_in_reader() if shared and not own else SpanReader([*own, *discover_dialects()])


@cache
def _built_in_reader() -> SpanReader:
    return SpanReader(discover_dialects())
