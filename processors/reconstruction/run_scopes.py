"""Which spans are agent runs, and which calls and model turns belong to which run.

A run has an invocation span of an agent; where no agent is reported, a workflow or the local root of calls
stands for it; calls without any of these form a run of their own. A span whose parent was lost belongs to
the run that encloses it in time.
"""

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

from processors.model import CallCategory, late
from processors.reconstruction.calls import is_servers_view, service_of_caller
from processors.shapes import (
    CarrierKind,
    Outline,
    RunScope,
    SpanReading,
    SpanRole,
    Trace,
    is_placeholder_agent,
    last_text,
)
from processors.spans import KIND_CONSUMER, KIND_SERVER

_LOOK_BACK = 64
"""Enclosing runs that are tried for a span without a parent: keeps hostile traces linear."""
_REQUESTS = frozenset({KIND_SERVER, KIND_CONSUMER})
_SERVED_OVER_MCP = "/mcp"
"""What stands in the name of an HTTP server's span that got a request over MCP."""

_TOOL, _AGENT, _MODEL, _JUDGE, _STEP, _WORKFLOW = (
    SpanRole.TOOL,
    SpanRole.AGENT,
    SpanRole.MODEL,
    SpanRole.JUDGE,
    SpanRole.STEP,
    SpanRole.WORKFLOW,
)


class Place(NamedTuple):
    """What a span lies in: handed down from parent to child, the same value while nothing changes."""

    top: int
    """The local root."""
    run: RunScope | None = None
    workflow: int = -1
    call: int = -1
    turn: int = -1
    """The model turn, or the judge: neither a turn nor a report of the agent's own run lies in it."""


_place: Final[Callable[[tuple[int, RunScope | None, int, int, int]], Place]] = partial(tuple.__new__, Place)
"""The place with all these fields: costs half of what calling the class does."""


@dataclass(slots=True)
class Descent(Outline):
    """What one way down the tree found."""

    places: list[Place] = field(default_factory=list)
    """The place of every span, itself included."""
    workflows_with_agents: set[int] = field(default_factory=set)
    agent_call: dict[int, int] = field(default_factory=dict)
    """Calls that started an agent without a span, and their parts, with that call."""
    run_of_call: dict[int, RunScope] = field(default_factory=dict)
    """The runs of such agents, by that call."""
    names: dict[int, tuple[int, set[str]]] = field(default_factory=dict)
    """What the first so many layers of the run of an agent's span call the agent."""


def descend(trace: Trace) -> Descent:
    """Hand down from parent to child: the run, the workflow, the call and the model turn one is in."""
    readings, parents = trace.readings, trace.tree.parents
    start = Place(-1)
    places = [start] * len(readings)
    state = Descent(places=places)
    agent_call = state.agent_call
    for position in trace.tree.top_down:
        parent = parents[position]
        place = places[parent] if parent >= 0 else Place(position)
        reading = readings[position]
        if reading is not None:
            role = reading.role
            if role is _MODEL:
                if place.call == parent >= 0 and _is_of_other_agent(trace, state, parent, reading):
                    agent_call[parent] = parent
                if parent in agent_call:
                    place = _place((place.top, _run_below(state, parent), place.workflow, -1, -1))
                top, run, workflow, call, turn = place
                is_wrapped = call < 0 <= turn and _only_wraps(readings[turn], reading)
                if is_wrapped:
                    state.wrappers.add(turn)
                if call < 0 and (turn < 0 or is_wrapped):
                    state.turns.append(position)
                    place = _place((top, run, workflow, call, position))
            elif role is _TOOL:
                fields = reading.tool
                if parent in agent_call:
                    if fields.is_part:
                        agent_call[position] = agent_call[parent]
                    else:
                        place = _place((place.top, _run_below(state, parent), place.workflow, -1, -1))
                if not fields.is_synthetic:
                    top, run, workflow, call, _ = place
                    if run is not None:
                        run.has_calls = True
                    if call >= 0:
                        state.call_above[position] = call
                    state.calls.append(position)
                    place = _place((top, run, workflow, position, -1))
                    if fields.runs_agent:
                        agent_call[position] = position
            elif role is _AGENT:
                top, run, workflow, call, turn = place
                # What a model, a judge or a node that executes calls contains is an agent of its own.
                if run is not None and call < 0 > turn and _is_same_agent(trace, state, run, reading):
                    run.layers.append(position)
                else:
                    if run is None and workflow >= 0:
                        state.workflows_with_agents.add(workflow)
                    run = RunScope(CarrierKind.AGENT, position, [position], run, call)
                    state.runs.append(run)
                    place = _place((top, run, workflow, -1, -1))
            elif role is _JUDGE:
                place = place._replace(turn=position)
            elif role is _STEP:
                if place.run is not None and place.call < 0:
                    place.run.steps.append(position)
            elif role is _WORKFLOW and place.run is None and place.workflow < 0:
                place = place._replace(workflow=position)
        places[position] = place
    return state


def _is_of_other_agent(trace: Trace, state: Descent, call: int, turn: SpanReading) -> bool:
    """Whether a model's turn right below a call names another agent than the caller."""
    name = turn.agent_of_turn
    if not name or call in state.agent_call:
        return False
    run, parents = state.places[call].run, trace.tree.parents
    if run is not None:
        callers = _names_of(trace, state, run)
    else:
        beside = [turn for turn in state.turns[-_LOOK_BACK:] if parents[turn] == parents[call]]
        callers = {reading.agent_of_turn for reading in trace.readings_at(beside)}
    return name not in callers and any(callers)


def _run_below(state: Descent, position: int) -> RunScope:
    """The run of the agent that the call at `position` started, for which that call stands itself."""
    call = state.agent_call[position]
    run = state.run_of_call.get(call)
    if run is None:
        run = state.run_of_call[call] = RunScope(
            CarrierKind.AGENT, call, [call], state.places[call].run, call
        )
        state.runs.append(run)
    return run


def _only_wraps(outer: SpanReading | None, inner: SpanReading) -> bool:
    """Whether only the model call `inner` bears the messages of the turn `outer` above it."""
    if outer is None or outer.role is not _MODEL:
        return False
    around, within = outer.conversation, inner.conversation
    if around.output:
        return False
    if around.input:  # its answer may stand below it alone
        return bool(within.output) and last_text(around.input, "user") == last_text(within.input, "user")
    return bool(within.input or within.output)


def _is_same_agent(trace: Trace, state: Descent, run: RunScope, reading: SpanReading) -> bool:
    """Whether `reading` reports the same invocation as the agent span around it."""
    inner = reading.agent_name
    return not inner or inner in _names_of(trace, state, run)


def _names_of(trace: Trace, state: Descent, run: RunScope) -> set[str]:
    """What the layers of `run` call the agent, each layer looked at once."""
    seen, names = state.names.get(run.carrier, (0, set()))
    if seen < len(run.layers):
        for reported in trace.readings_at(run.layers[seen:]):
            names |= {reported.agent.name, reported.agent.inferred_name}
        state.names[run.carrier] = len(run.layers), names
    return names


def give_out(trace: Trace, descent: Descent, *, lost_means_filtered: bool, joins_siblings: bool) -> None:
    """Give every call and every turn to its run, and every run that lies in another one its parent.

    The runs for which something else than an agent stands are added.
    """
    tree, places = trace.tree, descent.places
    agents = descent.runs
    containers = _Containers(trace, descent, joins_siblings)
    is_any_lost = True in tree.misses_parent
    if lost_means_filtered and is_any_lost:
        containers.enclosing = _enclosing(trace, descent, agents)
    for run in agents:
        if run.parent is None and containers.enclosing:
            run.parent = containers.enclosing.get(places[run.carrier].top)
    for position in descent.calls:
        home = _home(places[position]) or containers.container(position)
        if home is not None:
            home.tools.append(position)
            if is_any_lost and tree.misses_parent[places[position].top]:
                home.has_lost_parents = True
    for position in descent.turns:
        home = _home(places[position]) or containers.container(position)
        if home is not None:
            home.models.append(position)
    for run in agents:
        if run.parent is None and run.requested_by >= 0:
            around = containers.container(run.requested_by)  # none if only calls are around it
            run.parent = None if around is None or around.kind is CarrierKind.NOTHING else around
    if trace.has(_WORKFLOW):
        for position, reading in enumerate(trace.readings):
            if reading is not None and reading.role is _WORKFLOW and containers.stands_alone(position):
                # The run that it stands for, by whatever agent its calls name it.
                containers.first(CarrierKind.WORKFLOW, position)
    descent.runs = [*agents, *containers.runs.values()]
    for run in descent.runs:
        if run.kind is not CarrierKind.NOTHING and tree.misses_parent[places[run.carrier].top]:
            run.has_lost_parents = True


def _home(place: Place) -> RunScope | None:
    """The run that a call or a turn lies in."""
    run = place.run
    while run is not None and run.is_wrapper:
        run = run.parent
    return run


def _enclosing(trace: Trace, descent: Descent, agents: Sequence[RunScope]) -> dict[int, RunScope | None]:
    """For every local root whose parent was lost, the innermost agent run around it in time.

    The run's own local root comes before it in the tree, so that no two roots enclose each other.
    """
    tree = trace.tree
    enclosing: dict[int, RunScope | None] = {}
    waiting = sorted(agents, key=lambda run: run.carrier)
    open_runs: list[RunScope] = []
    taken = 0
    lost = [position for position, misses in enumerate(tree.misses_parent) if misses]
    for position in lost if agents else ():  # in order of start
        while taken < len(waiting) and tree.starts[waiting[taken].carrier] <= tree.starts[position]:
            open_runs.append(waiting[taken])
            taken += 1
        while open_runs and tree.ends[open_runs[-1].carrier] < tree.starts[position]:
            open_runs.pop()
        result = None
        for run in reversed(open_runs[-_LOOK_BACK:]):
            if tree.ends[run.carrier] >= tree.ends[position] and descent.places[run.carrier].top < position:
                result = run
                break
        enclosing[position] = result
    return enclosing


class _Containers:
    """The runs of calls and turns that have no agent above them, each created for its first one."""

    def __init__(self, trace: Trace, descent: Descent, joins_siblings: bool) -> None:
        self._trace = trace
        self._joins_siblings = joins_siblings
        self._descent = descent
        self._lost_parents: dict[bytes, int] = {}
        self._first: dict[tuple[CarrierKind, int], RunScope] = {}
        self.runs: dict[tuple[CarrierKind, int, str], RunScope] = {}
        self.enclosing: dict[int, RunScope | None] = {}
        """The agent's run around each local root whose parent was lost."""

    def container(self, position: int) -> RunScope | None:
        """The run of a call or a turn that has no agent above it."""
        tree, readings = self._trace.tree, self._trace.readings
        place = self._descent.places[position]
        top = place.top
        if tree.misses_parent[top]:
            enclosing = self.enclosing.get(top)
            if enclosing is not None:
                enclosing.has_lost_parents = True
                return enclosing
        reading, top_reading = readings[position], readings[top]
        is_call = reading is not None and reading.role is _TOOL
        kind, carrier = CarrierKind.LOCAL_ROOT, top
        if place.workflow >= 0:
            kind, carrier = CarrierKind.WORKFLOW, place.workflow
        elif is_call and self._is_served(position):
            return None  # its caller is not here
        elif (top_reading is not None and _is_part_of_run(top_reading)) or self._is_sibling(top):
            # What names one lost parent surely is of one run; more than that no one can know.
            parent = tree.parent_ids[top] if tree.misses_parent[top] else b""
            kind = CarrierKind.NOTHING
            carrier = self._lost_parents.setdefault(parent, -1 - len(self._lost_parents))
        name = self._trace.tool(position).agent_name if is_call else ""
        if is_placeholder_agent(name) or (
            kind is CarrierKind.WORKFLOW and self._trace.agent(carrier).name  # whoever calls in it
        ):
            name = ""
        if not is_call and (kind, carrier) in self._first:
            return self._first[kind, carrier]
        if kind is CarrierKind.NOTHING and not name:
            name = service_of_caller(position, self._descent.call_above, tree)
        return self._named(kind, carrier, name, position)

    def _is_sibling(self, top: int) -> bool:
        """Whether a local root is part of what its lost parent stands for.

        A request to another service is not, and steps may be of several agents.
        """
        tree, reading = self._trace.tree, self._trace.readings[top]
        if not self._joins_siblings or (reading is not None and reading.role is _STEP):
            return False
        return tree.misses_parent[top] and tree.views[top].kind not in _REQUESTS

    def _is_served(self, position: int) -> bool:
        """Whether a call is, or lies in, a tool server's own view of a call, and no model answers next to it.

        A gateway's call passes on one that a server got: that links to its caller, or got the request itself.
        """
        tree, places = self._trace.tree, self._descent.places
        while (above := self._descent.call_above.get(position, -1)) >= 0:
            position = above
        top = places[position].top
        if not is_servers_view(position, tree):
            is_gateway = (
                tree.views[top].kind == KIND_SERVER
                and self._trace.tool(position).category is CallCategory.MCP
                and (tree.views[position].has_links or _SERVED_OVER_MCP in tree.views[top].name)
            )
            if not is_gateway:
                return False
        return top not in self._tops_of_turns

    @late
    def _tops_of_turns(self) -> Set[int]:
        return {self._descent.places[turn].top for turn in self._descent.turns}

    def first(self, kind: CarrierKind, carrier: int) -> RunScope:
        """The run for which the span at `carrier` stands; the first of several."""
        return self._first.get((kind, carrier)) or self._named(kind, carrier, "", carrier)

    def _named(self, kind: CarrierKind, carrier: int, name: str, position: int) -> RunScope:
        """The run of the agent `name` for which the span at `carrier` stands; `position` if nothing does."""
        run = self.runs.get((kind, carrier, name))
        if run is None:
            if kind is CarrierKind.NOTHING:
                run = RunScope(kind, position, [], agent_name=name, is_whole=False)
            else:
                is_whole = not self._trace.tree.misses_parent[self._descent.places[carrier].top]
                run = RunScope(kind, carrier, [carrier], agent_name=name)
                run.is_whole = is_whole or kind is CarrierKind.WORKFLOW
            self.runs[kind, carrier, name] = run
            self._first.setdefault((kind, carrier), run)
        return run

    def stands_alone(self, position: int) -> bool:
        """Whether a workflow is the outermost one and holds no agent."""
        place = self._descent.places[position]
        has_agents = position in self._descent.workflows_with_agents
        return place.workflow == position and _home(place) is None and not has_agents


def _is_part_of_run(reading: SpanReading) -> bool:
    """Whether a span is a call or a turn, so that what called for it is missing if it has no parent."""
    return reading.role is _MODEL or (reading.role is _TOOL and not reading.tool.is_synthetic)
