"""The rules that apply to some traces only: those for single frameworks, and those that any may need.

Each asks one question of a trace before it does any work. Rules for single frameworks stand in the folders of
their families; the order of all of them is that of `rewrites`.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Final, Literal

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
    CALLS_BESIDE,
    SECOND_RUNS,
    SECOND_TURNS,
    Answer,
    agree,
    answer_of,
    turns_of_two_scopes,
)
from processors.shapes import (
    Outline,
    Rewrite,
    RunScope,
    SpanRole,
    Trace,
)
from processors.spans import KIND_CLIENT, KIND_SERVER, MinimumTree, SpanTree

_LOOK_BACK = 64
"""Spans around one in time that are tried for it: keeps hostile traces linear."""


@cache
def rewrites(stage: Literal["agents", "runs"]) -> Sequence[Rewrite]:
    """The rules of a stage, in order: those that any framework may need, then those of the families."""
    common = (
        _WRAPPERS,
        _ECHOES,
        _SERVERS_VIEWS,
        _TURNS_REPORTED_ONCE,
        SECOND_RUNS,
        CALLS_BESIDE,
        SECOND_TURNS,
    )
    ordered = (*common, *discover_rewrites())
    return tuple(rule for rule in ordered if rule.stage == stage)


# Wrappers: agents that only wrap others.


def _is_nested(trace: Trace, outline: Outline) -> bool:
    return len(outline.runs) > 1 and any(run.parent is not None for run in outline.runs)


def _without_wrappers(trace: Trace, outline: Outline) -> Outline:
    """The agents without those that only wrap others: no name of its own, runs below, no calls."""
    named = {
        id(run)
        for run in outline.runs
        if any(reading.agent.name for reading in trace.readings_at(run.layers))
    }
    around_named = {id(run.parent) for run in outline.runs if run.parent is not None and id(run) in named}
    kept: list[RunScope] = []
    for run in outline.runs:
        parent = run.parent
        if parent is not None and parent.is_wrapper:
            run.parent = parent.parent
            if run.requested_by < 0:
                run.requested_by = parent.requested_by
        if id(run) in around_named and not run.has_calls and id(run) not in named:
            run.is_wrapper = True
        else:
            kept.append(run)
    return outline._replace(runs=kept)


_WRAPPERS: Final = Rewrite(
    framework="any",
    what="leaves out agents that only wrap others and have no name of their own",
    stage="agents",
    applies=_is_nested,
    rewrite=_without_wrappers,
)


# Echoes: spans that only repeat the run beside them.


def _may_echo(trace: Trace, outline: Outline) -> bool:
    if len(outline.runs) < 2:
        return False
    with_children = set(trace.tree.parents)
    return any(run.carrier not in with_children for run in outline.runs)


def _without_echoes(trace: Trace, outline: Outline) -> Outline:
    """The agents without spans that only repeat the run beside them.

    Such a span has nothing below it, and within its time lies a run of the same agent under the same
    parent: its fields count for that run.
    """
    tree = trace.tree
    with_children = set(tree.parents)
    beside: dict[tuple[int, str], _SideBySide] = {}
    run_at = {run.carrier: run for run in outline.runs}
    for run in outline.runs:
        parent = tree.parents[run.carrier]
        if run.carrier in with_children and parent >= 0:
            reported = trace.readings_at(run.layers)
            for name in {
                name for layer in reported for name in (layer.agent.name, layer.agent.inferred_name)
            }:
                beside.setdefault((parent, name), _SideBySide(tree)).add(run.carrier)
    kept: list[RunScope] = []
    for run in outline.runs:
        repeated = None
        if run.carrier not in with_children:
            name = trace.agent_name(run.carrier)
            runs = beside.get((tree.parents[run.carrier], name)) if name else None
            repeated = None if runs is None else run_at.get(runs.first_within(run.carrier))
        if repeated is None:
            kept.append(run)
        else:
            repeated.layers.append(run.carrier)
    return outline._replace(runs=kept)


class _SideBySide:
    """Spans below one parent in order of start, searched in the time of the logarithm of their number."""

    def __init__(self, tree: SpanTree) -> None:
        self._tree = tree
        self._positions: list[int] = []
        self._starts: list[int] = []
        self._ends: MinimumTree | None = None

    def add(self, position: int) -> None:
        """Take in a span, which must not begin before those that are there; before the first search only."""
        self._positions.append(position)
        self._starts.append(self._tree.starts[position])

    def first_within(self, position: int) -> int:
        """The first span that began and ended within the time of the one at `position`, or -1."""
        ends = self._tree.ends
        if self._ends is None:
            self._ends = MinimumTree([ends[held] for held in self._positions])
        place = self._ends.first(bisect_left(self._starts, self._tree.starts[position]), ends[position])
        return -1 if place < 0 else self._positions[place]


_ECHOES: Final = Rewrite(
    framework="any",
    what="counts an agent's empty span around a run of the same agent as a report of that run",
    stage="agents",
    applies=_may_echo,
    rewrite=_without_echoes,
)


# Servers' views: calls as a tool server saw them, where a caller in the same trace tells of them already.


def _has_servers(trace: Trace, outline: Outline) -> bool:
    views = trace.tree.views
    for position in outline.calls:
        if views[position].message.kind in (KIND_SERVER, KIND_CLIENT):
            return True
    return trace.is_read_by("traceloop")  # whose views are of no kind


def _without_servers_views(trace: Trace, outline: Outline) -> Outline:
    """The calls without those as a server saw them that a caller tells already: one span, one view.

    A server or a gateway may know the trace, but not the call it serves. Its view is of the caller's span
    around it in time; where none is, because their clocks differ or the caller's span is but an instant, of
    the next one of the tool in order. What the server reports of the same call below its view goes with it.
    """
    views = [
        position
        for position in sorted(outline.calls)
        if position not in outline.call_above and _is_view(position, trace)
    ]
    if not views:
        return outline
    reports = {position: report_at(position, trace) for position in outline.calls}
    waiting: dict[str, list[int]] = {}
    for position in sorted(set(outline.calls).difference(views), reverse=True):
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
    for position in outline.calls:
        above = outline.call_above.get(position, -1)
        if (
            above in reported
            and name_one_tool(reports[above].name, reports[position].name)
            and may_be_one_call(reports[above], reports[position])
        ):
            reported.add(position)
    return outline._replace(calls=[position for position in outline.calls if position not in reported])


def _is_view(position: int, trace: Trace) -> bool:
    """Whether a call is as a server saw it, or a gateway that passed it on."""
    tree = trace.tree
    if is_servers_view(position, tree):
        return True
    parent, reading = tree.parents[position], trace.readings[position]
    return (
        reading is not None
        and tree.views[position].kind == KIND_CLIENT
        and parent >= 0
        and tree.views[parent].kind == KIND_SERVER
        and reading.tool.category is CallCategory.MCP
    )


def _is_around(caller: int, view: int, tree: SpanTree) -> bool:
    return tree.starts[caller] <= tree.starts[view] and tree.ends[view] <= tree.ends[caller]


def _may_be_around(caller: int, view: int, tree: SpanTree) -> bool:
    """Whether the call at `caller` may be that of `view`, though not around it in time."""
    has_own_clock = tree.views[caller].envelope.resource != tree.views[view].envelope.resource
    is_longer = tree.ends[view] - tree.starts[view] > tree.ends[caller] - tree.starts[caller]
    return has_own_clock or is_longer


_SERVERS_VIEWS: Final = Rewrite(
    framework="MCP servers",
    what="leaves out a server's view of a call that the caller's span reports",
    stage="agents",
    applies=_has_servers,
    rewrite=_without_servers_views,
)


# Turns told once: where a framework's instrumentation does not make its spans current, the span of the
# model's client does not lie below the framework's own span of that model call, but beside it or further up.


def _has_two_scopes(trace: Trace, outline: Outline) -> bool:
    return turns_of_two_scopes(trace, outline) or bool(outline.wrappers)


def _turns_reported_once(trace: Trace, outline: Outline) -> Outline:
    """The turns that are no wrappers of others and that no model call around them tells already.

    A span tells of the same call as another if it comes from another instrumentation scope, lies within the
    other's time, hangs at the same span or further up, and does not say that something else was answered.
    Where its parent is not known, it must say that the same was answered.
    """
    own = [position for position in outline.turns if position not in outline.wrappers]
    if len({trace.tree.views[position].envelope.scope_name for position in own}) > 1:
        models = [
            position
            for position, reading in enumerate(trace.readings)
            if reading is not None and reading.role is SpanRole.MODEL
        ]
        reported_twice = _reported_twice(models, trace)
        own = [position for position in own if position not in reported_twice]
    return outline._replace(turns=own)


def _reported_twice(models: Iterable[int], trace: Trace) -> set[int]:
    tree = trace.tree
    parents, starts, ends, views = tree.parents, tree.starts, tree.ends, tree.views
    first, last = _numbered(tree)
    answers: dict[int, Answer] = {}
    collected: set[int] = set()
    under_way: list[int] = []
    for position in models:  # in order of start
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
                collected.add(position)
                break
        under_way.append(position)
    return collected


def _numbered(tree: SpanTree) -> tuple[list[int], list[int]]:
    """Numbers for all spans, such that those below a span have its own plus one up to its last one."""
    count = len(tree)
    size = [1] * count
    for position in reversed(tree.top_down):
        parent = tree.parents[position]
        if parent >= 0:
            size[parent] += size[position]
    first = [0] * count
    free = [0] * count
    next_root = 0
    for position in tree.top_down:
        parent = tree.parents[position]
        if parent >= 0:
            first[position] = free[parent]
            free[parent] += size[position]
        else:
            first[position] = next_root
            next_root += size[position]
        free[position] = first[position] + 1
    return first, [begin + below - 1 for begin, below in zip(first, size, strict=True)]


_TURNS_REPORTED_ONCE: Final = Rewrite(
    framework="any, beside an instrumentation of the model's client",
    what="leaves out the second report of a model call",
    stage="agents",
    applies=_has_two_scopes,
    rewrite=_turns_reported_once,
)
