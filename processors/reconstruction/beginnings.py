"""The runs of a trace that goes on, as far as no later span can undo what they show.

Spans leave their process when they end, so the span of an agent that goes on is missing, and every further
span can move, join or fill in what is here. Left is what held for each beginning of each recorded trace, in
whatever order its spans came (`tests/processors/test_early_verdicts.py`).
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from processors.model import AgentRun, FinishReason, PriceTable
from processors.reconstruction.passes import reconstruct
from processors.reconstruction.reading import SpanReader
from processors.reconstruction.runs import RunReport
from processors.shapes import CarrierKind
from processors.spans import RawSpan


class OpenRun(NamedTuple):
    """What is certain of one run: it made these calls, and maybe others.

    `key` is the id of the agent's own span, also before that is here: the one that its spans name as their
    parent. `is_named`: the run's name is the agent's. Otherwise the agent's span may bring another one.
    """

    run: AgentRun
    key: bytes
    is_named: bool


def open_runs(
    spans: Sequence[RawSpan],
    *,
    trace_id: bytes,
    tenant: str = "",
    reader: SpanReader | None = None,
    prices: PriceTable | None = None,
) -> Iterator[OpenRun]:
    """The runs of a trace of which more spans may come.

    A run is there if its agent's own span is, with a name, or if calls and a model's turn, or spans around
    these, name one parent that is not here: one agent's loop, and no second report of one call. An agent's
    span beside them may get them, and then there is none. It has the calls alone that have a span of their
    own and were executed. What a model requested may be another agent's, or never run.
    """
    runs = reconstruct(
        spans,
        trace_id=trace_id,
        reason=FinishReason.MAX_AGE,
        tenant=tenant,
        reader=reader,
        prices=prices,
        joins_siblings=True,
    )
    reports = [run.content for run in runs if isinstance(run.content, RunReport)]
    beside_agents = {
        report.trace.tree.parent_ids[report.run.carrier]
        for report in reports
        if report.run.kind is CarrierKind.AGENT
    }
    for run, report in zip(runs, reports, strict=True):
        key, name = _identity(report)
        is_certain = report.run.kind is CarrierKind.AGENT or key not in beside_agents
        if key and is_certain:
            executed = [call for call in run.tool_calls if call.executed and call.span_id]
            known = run.with_calls(executed, (), complete=False, incomplete_reason="incomplete_trace")
            yield OpenRun(known.named(name) if name else known, key, bool(name))


def _identity(report: RunReport) -> tuple[bytes, str]:
    """The key of a run and the agent's name, as far as these are certain."""
    run, tree = report.run, report.trace.tree
    if run.kind is CarrierKind.AGENT:
        name = report.reading.name
        return tree.span_ids[run.carrier] if name else b"", name
    if run.kind is not CarrierKind.NOTHING or not run.models:
        return b"", ""
    return _parent(report), report.name_in_turns


def _parent(report: RunReport) -> bytes:
    """The id of the parent that is not here of the outermost span around a run; empty where that has none."""
    tree, top = report.trace.tree, report.run.carrier
    while tree.parents[top] >= 0:
        top = tree.parents[top]
    return tree.parent_ids[top]
