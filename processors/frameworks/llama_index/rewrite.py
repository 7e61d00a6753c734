"""LlamaIndex: the agents of one workflow share its run, and the workflow's steps tell their names.

Such agents take turns: a step that names an agent begins after all that the agent before it did, and before
anything that this one does. So the times of the steps divide the run exactly.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final

from processors.frameworks.dialect import SpanRole
from processors.frameworks.rewriting import CarrierKind, Found, Rewrite, RunScope, Trace


def _has_steps(trace: Trace, found: Found) -> bool:
    return trace.has(SpanRole.STEP)


def _divide_by_agent(trace: Trace, found: Found) -> Found:
    """The runs, where those that no span of their own names bear the name that their steps tell.

    Where steps tell several names, every stay of an agent becomes a run; the stay's first step stands for it.
    A run stays whole and nameless where a step tells no name, where steps belong to different workflows, or
    where two agents' steps began at once.
    """
    stays_of: dict[int, _Stays] = {}
    for scope in found.runs:
        if not scope.steps or scope.agent_name or any(map(trace.agent_name, scope.layers)):
            continue
        turns = _takeovers(scope, trace)
        if len(turns) == 1:
            scope.agent_name = turns[0][1]
        elif turns and _can_be_divided(scope, [at for at, _ in turns], trace):
            stays_of[id(scope)] = _Stays(scope, turns, trace)
    divided: list[RunScope] = []
    for scope in found.runs:
        own = stays_of.get(id(scope))
        divided += [scope] if own is None else own.runs
    for run in divided:
        around = stays_of.get(id(run.parent))
        if around is not None:
            run.parent = around.of_call(run.asked_by if run.asked_by >= 0 else run.carrier)
    return found._replace(runs=divided)


def _takeovers(scope: RunScope, trace: Trace) -> list[tuple[int, str]]:
    """The first step of every stay with the agent's name, in order; nothing where a step tells none."""
    found: list[tuple[int, str]] = []
    for at in sorted(scope.steps):
        reading = trace.readings[at]
        name = "" if reading is None else reading.agent.name
        if not name:
            return []
        if not found or found[-1][1] != name:
            found.append((at, name))
    return found


def _can_be_divided(scope: RunScope, takeovers: Sequence[int], trace: Trace) -> bool:
    """Whether the steps are those of the run's one workflow, and no two of the agents began at once."""
    if scope.kind is not CarrierKind.AGENT or len(scope.layers) > 1:
        return False
    starts = {trace.tree.starts[at] for at in takeovers}
    return len(starts) == len(takeovers) and all(
        trace.tree.parents[at] == scope.carrier for at in scope.steps
    )


class _Stays:
    """The runs that one run is divided into, in order."""

    def __init__(self, scope: RunScope, takeovers: Sequence[tuple[int, str]], trace: Trace) -> None:
        self._trace = trace
        self._starts = [trace.tree.starts[at] for at, _ in takeovers]
        self.runs: list[RunScope] = []
        for at, name in takeovers:
            stay = RunScope(CarrierKind.AGENT, at, scope.layers, scope.parent, scope.asked_by, name)
            stay.is_whole, stay.has_lost_parents = scope.is_whole, scope.has_lost_parents
            if self.runs:
                self.runs[-1].followed_by = at
            self.runs.append(stay)
        for position in scope.tools:
            self.of_call(position).tools.append(position)
        for position in scope.models:
            self._of_turn(position).models.append(position)

    def of_call(self, position: int) -> RunScope:
        """The stay that the call at `position` is part of.

        An agent's model answers before its first call, so a call that began together with a stay belongs to
        the stay before: clocks of senders are coarse.
        """
        return self.runs[max(bisect_left(self._starts, self._trace.tree.starts[position]) - 1, 0)]

    def _of_turn(self, position: int) -> RunScope:
        return self.runs[max(bisect_right(self._starts, self._trace.tree.starts[position]) - 1, 0)]


REWRITE: Final = Rewrite(
    framework="LlamaIndex",
    what="divides the run of a workflow among the agents whose names its steps tell",
    stage="runs",
    applies=_has_steps,
    rewrite=_divide_by_agent,
)
