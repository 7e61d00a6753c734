"""Which spans are agent runs, and which calls and model turns belong to which run.

A run has an invocation span of an agent; where no agent is told, a workflow or the local root of calls
stands for it; calls without any of these form a run of their own. A span whose parent was lost belongs to
the run that encloses it in time.
"""

from collections.abc import Sequence

from processors.frameworks.dialect import SpanRole
from processors.frameworks.shapes.placeholder_names import is_placeholder_agent
from processors.reconstruction.agent_stays import divide_by_agent
from processors.reconstruction.agent_turns import join_turns
from processors.reconstruction.call_merging import service_of_caller
from processors.reconstruction.resumed_runs import join_resumed
from processors.reconstruction.run_scope import CarrierKind, RunScope, Scopes
from processors.reconstruction.servers_views import servers_views
from processors.reconstruction.span_reading import SpanReading
from processors.reconstruction.turns_told_once import turns_told_once
from processors.spans.span import KIND_SERVER
from processors.spans.span_tree import SpanTree
from processors.spans.spans_side_by_side import SpansSideBySide

_LOOK_BACK = 64
"""Enclosing runs that are tried for a span without a parent: keeps hostile traces linear."""


def find_scopes(
    tree: SpanTree, readings: Sequence[SpanReading | None], *, lost_means_filtered: bool = True
) -> Scopes:
    """Find the runs of a trace, in order of start.

    Runs without any call are listed for agents and workflows; a local root or nothing at all stands for
    a run only where there are calls or model turns.

    Args:
        tree: The spans.
        readings: What dialects read in each.
        lost_means_filtered: Whether a parent that is not here was left out on its way, so that its child
            belongs to the run around it in time. Otherwise the parent may be a run of its own that has
            yet to come, and nothing is said of whose the child is.
    """
    return _Finder(tree, readings).find(lost_means_filtered)


class _Finder:
    def __init__(self, tree: SpanTree, readings: Sequence[SpanReading | None]) -> None:
        count = len(tree)
        self._tree = tree
        self._readings = readings
        self._scope: list[RunScope | None] = [None] * count
        self._workflow = [-1] * count
        self._tool = [-1] * count
        self._model = [-1] * count
        self._top = [-1] * count
        self._tool_above = [-1] * count
        self._has_workflows = False
        self._agents: list[RunScope] = []
        self._calls: list[int] = []
        self._turns: list[int] = []
        self._wrappers: set[int] = set()
        self._workflows_with_agents: set[int] = set()
        self._enclosing: dict[int, RunScope | None] = {}
        self._lost_parents: dict[bytes, int] = {}
        self._first_container: dict[tuple[CarrierKind, int], RunScope] = {}
        self._agent_call: dict[int, int] = {}
        self._run_of_call: dict[int, RunScope] = {}

    def find(self, lost_means_filtered: bool) -> Scopes:
        self._descend()
        kept = join_resumed(self._without_echoes(self._without_transparent()), self._tree, self._readings)
        if lost_means_filtered:
            self._find_enclosing(kept)
        for scope in kept:
            if scope.parent is None:
                scope.parent = self._enclosing.get(self._top[scope.carrier])
        containers: dict[tuple[CarrierKind, int, str], RunScope] = {}
        told_by_callers = servers_views(self._calls, self._tool_above, self._tree, self._readings)
        for position in self._calls:
            if position in told_by_callers:
                continue
            home = self._scope[position] or self._container(position, containers)
            if home is not None:
                home.tools.append(position)
                if self._tree.misses_parent[self._top[position]]:
                    home.has_lost_parents = True
        for position in turns_told_once(self._turns, self._wrappers, self._tree, self._readings):
            home = self._scope[position] or self._container(position, containers)
            if home is not None:
                home.models.append(position)
        for scope in kept:
            if scope.parent is None and scope.asked_by >= 0:
                scope.parent = self._run_of_caller(scope.asked_by, containers)
        if self._has_workflows:
            for position, reading in enumerate(self._readings):
                if reading is not None and reading.role is SpanRole.WORKFLOW and self._stands_alone(position):
                    self._container_at(CarrierKind.WORKFLOW, position, "", containers)
        runs = [*kept, *containers.values()]
        for scope in runs:
            if scope.kind is not CarrierKind.NOTHING and self._tree.misses_parent[self._top[scope.carrier]]:
                scope.has_lost_parents = True
        runs = divide_by_agent(join_turns(runs, self._tree, self._readings), self._tree, self._readings)
        if len(runs) > 1:
            runs.sort(
                key=lambda scope: (scope.carrier, scope.kind is not CarrierKind.AGENT, scope.agent_name)
            )
        return Scopes(runs, self._tool_above, frozenset(run.asked_by for run in runs if run.asked_by >= 0))

    def _descend(self) -> None:
        """Hand down from parent to child: the run, the workflow, the call and the model turn one is in."""
        readings, parents = self._readings, self._tree.parents
        scopes, workflows, tools = self._scope, self._workflow, self._tool
        models, tops = self._model, self._top
        for position in self._tree.top_down:
            parent = parents[position]
            if parent >= 0:
                scope, workflow = scopes[parent], workflows[parent]
                tool, model = tools[parent], models[parent]
                tops[position] = tops[parent]
            else:
                scope, workflow, tool, model = None, -1, -1, -1
                tops[position] = position
            reading = readings[position]
            if reading is not None:
                role = reading.role
                if role is SpanRole.MODEL and tool == parent >= 0 and self._is_of_other_agent(tool, reading):
                    self._agent_call.setdefault(tool, tool)
                if parent in self._agent_call and role in (SpanRole.TOOL, SpanRole.MODEL):
                    if role is SpanRole.TOOL and reading.tool.is_part:
                        self._agent_call[position] = self._agent_call[parent]
                    else:
                        scope, tool, model = self._run_below(self._agent_call[parent]), -1, -1
                if role is SpanRole.TOOL:
                    if not reading.tool.is_synthetic:
                        self._tool_above[position] = tool
                        self._calls.append(position)
                        tool, model = position, -1
                        if reading.tool.runs_agent:
                            self._agent_call[position] = position
                elif role is SpanRole.AGENT:
                    # What a model or a node that executes calls contains is an agent of its own.
                    if scope is not None and tool < 0 > model and self._is_same_agent(scope, reading):
                        scope.layers.append(position)
                    else:
                        if scope is None and workflow >= 0:
                            self._workflows_with_agents.add(workflow)
                        scope = RunScope(CarrierKind.AGENT, position, [position], scope, tool)
                        self._agents.append(scope)
                        tool = model = -1
                elif role is SpanRole.MODEL:
                    is_wrapped = tool < 0 <= model and self._only_wraps(model, position)
                    if is_wrapped:
                        self._wrappers.add(model)
                    if tool < 0 and (model < 0 or is_wrapped):
                        self._turns.append(position)
                        model = position
                elif role is SpanRole.STEP:
                    if scope is not None and tool < 0:
                        scope.steps.append(position)
                elif role is SpanRole.WORKFLOW:
                    self._has_workflows = True
                    if scope is None and workflow < 0:
                        workflow = position
            scopes[position] = scope
            workflows[position] = workflow
            tools[position] = tool
            models[position] = model

    def _is_of_other_agent(self, call: int, turn: SpanReading) -> bool:
        """Whether a model's turn right below a call names an agent, and another than made the call."""
        name = turn.agent_of_turn
        if not name or call in self._agent_call:
            return False
        scope, parents = self._scope[call], self._tree.parents
        if scope is not None:
            callers = self._names_of(scope)
        else:
            turns = self._turns[-_LOOK_BACK:]
            asked = (self._readings[turn] for turn in turns if parents[turn] == parents[call])
            callers = {reading.agent_of_turn for reading in asked if reading is not None}
        return name not in callers and any(callers)

    def _run_below(self, call: int) -> RunScope:
        """The run of the agent that the call at `call` started, for which that call stands itself."""
        run = self._run_of_call.get(call)
        if run is None:
            run = RunScope(CarrierKind.AGENT, call, [call], self._scope[call], call)
            self._run_of_call[call] = run
            self._agents.append(run)
        return run

    def _only_wraps(self, outer: int, inner: int) -> bool:
        """Whether only the model call at `inner` bears the messages of the turn at `outer` above it."""
        wrapper, wrapped = self._readings[outer], self._readings[inner]
        if wrapper is None or wrapped is None:
            return False
        around, within = wrapper.conversation, wrapped.conversation
        return not (around.input or around.output) and bool(within.input or within.output)

    def _is_same_agent(self, scope: RunScope, reading: SpanReading) -> bool:
        """Whether `reading` reports the same invocation as the agent span around it."""
        inner = reading.agent.name or reading.agent.inferred_name
        if not inner:
            return True
        return inner in self._names_of(scope)

    def _names_of(self, scope: RunScope) -> set[str]:
        """What the layers of `scope` call the agent, each layer looked at once."""
        layers, names = scope.layers, scope.names
        while scope.named_layers < len(layers):
            layer = self._readings[layers[scope.named_layers]]
            scope.named_layers += 1
            if layer is not None:
                names.add(layer.agent.name)
                names.add(layer.agent.inferred_name)
        return names

    def _without_transparent(self) -> list[RunScope]:
        """The agents without those that only wrap others: no name of its own, runs below, no calls."""
        if len(self._agents) < 2:
            return self._agents
        with_calls = {id(scope) for position in self._calls if (scope := self._scope[position]) is not None}
        wrappers = {
            id(scope.parent) for scope in self._agents if scope.parent is not None and self._is_named(scope)
        }
        dropped: dict[int, RunScope] = {}
        kept: list[RunScope] = []
        for scope in self._agents:
            parent = scope.parent
            if parent is not None and id(parent) in dropped:
                scope.parent = parent.parent
                if scope.asked_by < 0:
                    scope.asked_by = parent.asked_by
            if id(scope) in wrappers and id(scope) not in with_calls and not self._is_named(scope):
                dropped[id(scope)] = scope
            else:
                kept.append(scope)
        if dropped:
            for position, scope in enumerate(self._scope):
                if scope is not None and id(scope) in dropped:
                    self._scope[position] = scope.parent
        return kept

    def _without_echoes(self, agents: list[RunScope]) -> list[RunScope]:
        """The agents without spans that only repeat the run beside them.

        Such a span has nothing below it, and within its time lies a run of the same agent under the same
        parent: its fields count for that run.
        """
        tree = self._tree
        if len(agents) < 2:
            return agents
        with_children = set(tree.parents)
        if all(scope.carrier in with_children for scope in agents):
            return agents
        beside: dict[tuple[int, str], SpansSideBySide] = {}
        run_at = {scope.carrier: scope for scope in agents}
        for scope in agents:
            parent = tree.parents[scope.carrier]
            if scope.carrier in with_children and parent >= 0:
                for name in self._names_of(scope):
                    beside.setdefault((parent, name), SpansSideBySide(tree)).add(scope.carrier)
        kept: list[RunScope] = []
        for scope in agents:
            run = None
            reading = self._readings[scope.carrier]
            if scope.carrier not in with_children and reading is not None:
                name = reading.agent.name or reading.agent.inferred_name
                runs = beside.get((tree.parents[scope.carrier], name)) if name else None
                run = None if runs is None else run_at.get(runs.first_within(scope.carrier))
            if run is None:
                kept.append(scope)
            else:
                run.layers.append(scope.carrier)
        return kept

    def _is_named(self, scope: RunScope) -> bool:
        return any(
            reading.agent.name for layer in scope.layers if (reading := self._readings[layer]) is not None
        )

    def _find_enclosing(self, agents: Sequence[RunScope]) -> None:
        """For every local root whose parent was lost, the innermost agent run around it in time.

        The run's own local root comes before it in the tree, so that no two roots enclose each other.
        """
        tree = self._tree
        if not agents or True not in tree.misses_parent:
            return
        lost = [position for position, misses in enumerate(tree.misses_parent) if misses]
        waiting = sorted(agents, key=lambda scope: scope.carrier)
        open_runs: list[RunScope] = []
        taken = 0
        for position in lost:  # in order of start
            while taken < len(waiting) and tree.starts[waiting[taken].carrier] <= tree.starts[position]:
                open_runs.append(waiting[taken])
                taken += 1
            while open_runs and tree.ends[open_runs[-1].carrier] < tree.starts[position]:
                open_runs.pop()
            found = None
            for scope in reversed(open_runs[-_LOOK_BACK:]):
                if tree.ends[scope.carrier] >= tree.ends[position] and self._top[scope.carrier] < position:
                    found = scope
                    break
            self._enclosing[position] = found

    def _container(
        self, position: int, containers: dict[tuple[CarrierKind, int, str], RunScope]
    ) -> RunScope | None:
        """The run of a call or a turn that has no agent above it."""
        tree = self._tree
        top = self._top[position]
        if tree.misses_parent[top]:
            enclosing = self._enclosing.get(top)
            if enclosing is not None:
                enclosing.has_lost_parents = True
                return enclosing
        reading, top_reading = self._readings[position], self._readings[top]
        is_call = reading is not None and reading.role is SpanRole.TOOL
        kind, carrier = CarrierKind.LOCAL_ROOT, top
        if self._workflow[position] >= 0:
            kind, carrier = CarrierKind.WORKFLOW, self._workflow[position]
        elif top_reading is not None and _is_part_of_run(top_reading):
            if is_call and tree.views[top].kind == KIND_SERVER:
                return None  # a tool server's own view of a call whose caller is not here
            # What names one lost parent surely is of one run; more than that nobody can tell.
            parent = tree.parent_ids[top] if tree.misses_parent[top] else b""
            kind, carrier = (
                CarrierKind.NOTHING,
                self._lost_parents.setdefault(parent, -1 - len(self._lost_parents)),
            )
        name = ""
        if is_call and reading is not None and not is_placeholder_agent(reading.tool.agent_name):
            name = reading.tool.agent_name
        if not is_call:
            there = self._first_container.get((kind, carrier))
            if there is not None:
                return there
        if kind is CarrierKind.NOTHING and not name:
            name = service_of_caller(position, self._tool_above, tree)
        return self._container_at(kind, carrier, name, containers, position)

    def _run_of_caller(
        self, position: int, containers: dict[tuple[CarrierKind, int, str], RunScope]
    ) -> RunScope | None:
        """The run without an agent's span to which the call at `position` belongs; none if only calls do."""
        home = self._container(position, containers)
        return None if home is None or home.kind is CarrierKind.NOTHING else home

    def _container_at(
        self,
        kind: CarrierKind,
        carrier: int,
        name: str,
        containers: dict[tuple[CarrierKind, int, str], RunScope],
        first: int = -1,
    ) -> RunScope:
        scope = containers.get((kind, carrier, name))
        if scope is None:
            is_whole = kind is not CarrierKind.NOTHING and not self._tree.misses_parent[self._top[carrier]]
            standing = first if kind is CarrierKind.NOTHING else carrier
            scope = RunScope(
                kind, standing, [] if kind is CarrierKind.NOTHING else [carrier], agent_name=name
            )
            scope.is_whole = is_whole or kind is CarrierKind.WORKFLOW
            containers[(kind, carrier, name)] = scope
            self._first_container.setdefault((kind, carrier), scope)
        return scope

    def _stands_alone(self, position: int) -> bool:
        """Whether a workflow is the outermost one and holds no agent."""
        return (
            self._workflow[position] == position
            and self._scope[position] is None
            and position not in self._workflows_with_agents
        )


def _is_part_of_run(reading: SpanReading) -> bool:
    """Whether a span is a call or a turn, so that what called for it is missing if it has no parent."""
    if reading.role is SpanRole.TOOL:
        return not reading.tool.is_synthetic
    return reading.role is SpanRole.MODEL
