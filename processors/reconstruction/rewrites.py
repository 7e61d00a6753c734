"""The rules that apply to some traces only: those for single frameworks, and those that any may need.

Each checks first, at little cost, whether it applies to a trace. Rules for single frameworks are in their
files; the order of all of them is that of `rewrites`.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cache

from processors.carriers import discover_rewrites
from processors.model import CallCategory
from processors.reconstruction.calls import (
    is_servers_view,
    may_be_one_call,
    name_one_tool,
    names_behind_servers,
    report_at,
)
from processors.reconstruction.second_reports import (
    Answer,
    agree,
    answer_of,
    give_calls_beside,
    give_to_runs,
    in_several_envelopes,
    merge_second_runs,
    names_of,
    omit_second_turns,
)
from processors.shapes import (
    CarrierKind,
    Outline,
    Rewrite,
    RewriteStage,
    RunScope,
    SpanRole,
    Trace,
    is_call_id,
)
from processors.spans import KIND_CLIENT, KIND_SERVER, MinimumTree, SpanTree

_LOOK_BACK = 64
"""Spans around one in time that are tried for it: keeps hostile traces linear."""


@cache
def rewrites(stage: RewriteStage) -> Sequence[Rewrite]:
    """The rules of a stage, in order: those that any framework may need, then those of single ones."""
    common: Sequence[Rewrite]
    if stage == "agents":
        common = omit_wrappers, merge_echoes, omit_servers_views, report_turns_once
    else:
        common = merge_second_runs, give_calls_beside, give_requested_calls, omit_second_turns
    return *common, *discover_rewrites(stage)


def omit_wrappers(trace: Trace, outline: Outline) -> None:
    """Leave out agents that only wrap others: no name of its own, runs below, no calls."""
    if not any(run.parent is not None for run in outline.runs):
        return
    named = {
        run for run in outline.runs if any(reading.agent.name for reading in trace.readings_at(run.layers))
    }
    around_named = {run.parent for run in named}
    for run in outline.runs:
        parent = run.parent
        if parent is not None and parent.is_wrapper:
            run.parent = parent.parent
            if run.requested_by < 0:
                run.requested_by = parent.requested_by
        run.is_wrapper = run in around_named and not run.has_calls and run not in named
    outline.runs = [run for run in outline.runs if not run.is_wrapper]


def merge_echoes(trace: Trace, outline: Outline) -> None:
    """Count an agent's empty span around a run of the same agent as a report of that run.

    Such a span has nothing below it, and within its time lies a run of the same agent under the same parent.
    """
    if len(outline.runs) < 2:
        return
    tree, with_children = trace.tree, set(trace.tree.parents)
    if with_children.issuperset(run.carrier for run in outline.runs):
        return
    siblings: dict[tuple[int, str], list[RunScope]] = {}
    for run in outline.runs:  # those under one parent in order of start
        parent = tree.parents[run.carrier]
        if run.carrier in with_children and parent >= 0:
            for name in names_of(run, trace):
                siblings.setdefault((parent, name), []).append(run)
    ends = {key: MinimumTree([tree.ends[run.carrier] for run in runs]) for key, runs in siblings.items()}
    left: list[RunScope] = []
    for run in outline.runs:
        carrier = run.carrier
        key = tree.parents[carrier], trace.agent_name(carrier)
        at = -1
        if carrier not in with_children and key[1] and key in siblings:
            starts = siblings[key]
            first = bisect_left(starts, tree.starts[carrier], key=lambda run: tree.starts[run.carrier])
            at = ends[key].first(first, tree.ends[carrier])
        if at < 0:
            left.append(run)
        else:
            siblings[key][at].layers.append(carrier)
    outline.runs = left


def omit_servers_views(trace: Trace, outline: Outline) -> None:
    """Leave out the calls as a tool server saw them that a caller's span reports: one span, one view.

    A server or a gateway may know the trace, but not the call it serves. Its view is of the caller's span
    around it in time; where none is, because their clocks differ or the caller's span is but an instant, of
    the next one of the tool in order. What the server reports of the same call below its view goes with it.
    """
    if not _may_have_servers(trace, outline):
        return
    calls, call_above = outline.calls, outline.call_above
    views = [
        position for position in sorted(calls) if position not in call_above and _is_view(position, trace)
    ]
    if not views:
        return
    reports = {position: report_at(position, trace) for position in calls}
    waiting: dict[str, list[int]] = {}
    for position in sorted(set(calls).difference(views), reverse=True):
        report = reports[position]
        if not report.reading.is_part:
            for called in {report.name, *names_behind_servers(report.name)}:
                waiting.setdefault(called, []).append(position)
    reported: set[int] = set()
    used: set[int] = set()
    for is_near, is_alike in ((_is_around, True), (_may_be_around, True), (_is_around, False)):
        for view in views:
            callers = [] if view in reported else waiting.get(reports[view].name, [])
            for place in range(len(callers) - 1, max(len(callers) - 1 - _LOOK_BACK, -1), -1):
                caller = callers[place]
                if (
                    caller not in used
                    and is_near(caller, view, trace.tree)
                    and (not is_alike or may_be_one_call(reports[caller], reports[view]))
                ):
                    used.add(callers.pop(place))
                    reported.add(view)
                    break
    for position in calls:
        above = call_above.get(position, -1)
        if (
            above in reported
            and name_one_tool(reports[above].name, reports[position].name)
            and may_be_one_call(reports[above], reports[position])
        ):
            reported.add(position)
    outline.calls = [position for position in calls if position not in reported]


def _may_have_servers(trace: Trace, outline: Outline) -> bool:
    views = trace.tree.views
    for position in outline.calls:
        if views[position].kind in (KIND_SERVER, KIND_CLIENT):
            return True
    return trace.is_read_by("traceloop")  # whose views are of no kind


def _is_view(position: int, trace: Trace) -> bool:
    """Whether a call is as a server saw it, or a gateway that passed it on."""
    tree = trace.tree
    if is_servers_view(position, tree):
        return True
    parent = tree.parents[position]
    return (
        tree.views[position].kind == KIND_CLIENT
        and parent >= 0
        and tree.views[parent].kind == KIND_SERVER
        and trace.tool(position).category is CallCategory.MCP
    )


def _is_around(caller: int, view: int, tree: SpanTree) -> bool:
    return tree.starts[caller] <= tree.starts[view] and tree.ends[view] <= tree.ends[caller]


def _may_be_around(caller: int, view: int, tree: SpanTree) -> bool:
    """Whether the call at `caller` may be that of `view`, though not around it in time."""
    has_own_clock = tree.views[caller].envelope.resource != tree.views[view].envelope.resource
    is_longer = tree.ends[view] - tree.starts[view] > tree.ends[caller] - tree.starts[caller]
    return has_own_clock or is_longer


def give_requested_calls(trace: Trace, outline: Outline) -> None:
    """Give a call that hangs at what is around an agent to the agent whose model requested it, by its id.

    Where the context is lost on the way into a tool, the call's span has no parent, or hangs at a request, at
    a workflow or at the agent further up.
    """
    holders = _outside_of_agents(trace.tree, outline.runs) if len(outline.runs) > 1 else {}
    if not holders:
        return
    requesting: dict[str, set[tuple[RunScope, str]]] = {}
    for run in outline.runs:
        for turn in trace.readings_at(run.models):
            for request in (each for message in turn.conversation.output for each in message.requests):
                if is_call_id(request.call_id):
                    requested = requesting.setdefault(request.call_id, set())
                    if len(requested) <= _LOOK_BACK:  # what so many request shows nothing
                        requested.add((run, request.name))
    moved: dict[int, RunScope] = {}
    for position, holder in holders.items():
        if position in outline.call_above:
            continue
        call = trace.tool(position)
        requesters = {
            run
            for run, name in requesting.get(call.call_id, ())
            if name_one_tool(name, call.name or call.inferred_name)
        }
        if len(requesters) != 1:
            continue
        (requester,) = requesters
        if requester.kind is CarrierKind.AGENT and (
            holder.kind is not CarrierKind.AGENT or holder in _around(requester)
        ):
            moved[position] = requester
    if moved:
        for position in outline.calls:  # parents before what lies in them
            above = moved.get(outline.call_above.get(position, -1))
            if above is not None:
                moved[position] = above
        give_to_runs(moved, list(dict.fromkeys(holders.values())), outline)


def _outside_of_agents(tree: SpanTree, runs: Sequence[RunScope]) -> dict[int, RunScope]:
    """The calls that no agent is around, and those of an agent that began while one below it ran."""
    started = {run.requested_by for run in runs}
    in_order: dict[RunScope, list[int]] = {}
    calls: dict[int, RunScope] = {}
    for run in runs:
        if run.kind is not CarrierKind.AGENT:
            calls.update(dict.fromkeys(run.tools, run))
            continue
        if not run.models:
            continue
        for around in _around(run):
            tools = in_order.get(around) or in_order.setdefault(around, sorted(around.tools))
            first = bisect_left(tools, run.carrier)  # positions are in order of start
            for position in tools[first : first + _LOOK_BACK]:
                if tree.starts[position] > tree.ends[run.carrier]:
                    break
                if position not in started:
                    calls[position] = around
    return calls


def _around(run: RunScope) -> list[RunScope]:
    """The runs that `run` is part of, innermost first."""
    around: list[RunScope] = []
    while run.parent is not None and len(around) < _LOOK_BACK:
        run = run.parent
        around.append(run)
    return around


def report_turns_once(trace: Trace, outline: Outline) -> None:
    """Leave out turns that only wrap another, and those that a model call around them reports already.

    Where a framework's instrumentation does not make its spans current, the span of the model's client lies
    next to the framework's own span of that call or further up, and not below it.
    """
    if not (outline.wrappers or in_several_envelopes(outline.turns, trace)):
        return
    turns = [position for position in outline.turns if position not in outline.wrappers]
    if len({trace.tree.views[position].envelope.scope_name for position in turns}) > 1:
        models = [
            position
            for position, reading in enumerate(trace.readings)
            if reading is not None and reading.role is SpanRole.MODEL
        ]
        repeated = _reported_around(models, trace)
        turns = [position for position in turns if position not in repeated]
    outline.turns = turns


def _reported_around(models: Iterable[int], trace: Trace) -> set[int]:
    """The model spans, in order of start, that another one around them in time reports.

    That comes from another instrumentation scope, the repeated one hangs at the same span or further up, and
    does not report another answer. Where its parent is not known, it must report the same answer.
    """
    tree = trace.tree
    parents, starts, ends, views = tree.parents, tree.starts, tree.ends, tree.views
    first, last = _numbered(tree)
    answers: dict[int, Answer] = {}
    repeated: set[int] = set()
    under_way: list[int] = []
    for position in models:
        while under_way and ends[under_way[-1]] < starts[position]:
            under_way.pop()
        parent = parents[position]
        scope = views[position].envelope.scope_name
        for around in reversed(under_way[-_LOOK_BACK:]):
            if ends[around] < ends[position] or views[around].envelope.scope_name == scope:
                continue
            if parent >= 0 and not first[parent] < first[around] <= last[parent]:
                continue
            for reported in (around, position):
                if reported not in answers:
                    answers[reported] = answer_of(trace.readings[reported])
            same = agree(answers[around], answers[position])
            is_beside = parent >= 0 or tree.parent_ids[position] == tree.parent_ids[around]
            if same or (same is None and is_beside):
                repeated.add(position)
                break
        under_way.append(position)
    return repeated


def _numbered(tree: SpanTree) -> tuple[list[int], list[int]]:
    """Numbers for all spans, such that those below a span have its own plus one up to its last one."""
    count = len(tree)
    size = [1] * count
    for position in reversed(tree.top_down):
        if tree.parents[position] >= 0:
            size[tree.parents[position]] += size[position]
    first = [0] * count
    free = [0] * (count + 1)  # the last one is that of roots, whose parent is -1
    for position in tree.top_down:
        parent = tree.parents[position]
        first[position] = free[parent]
        free[parent] += size[position]
        free[position] = first[position] + 1
    return first, [begin + below - 1 for begin, below in zip(first, size, strict=True)]
