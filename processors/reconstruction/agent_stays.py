"""Which agent worked when, in a workflow whose agents share one run and whose steps tell their names.

Such agents take turns: a step that names an agent begins after all that the agent before it did, and before
anything that this one does. So the times of the steps divide the run exactly.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from processors.reconstruction.run_scope import CarrierKind, RunScope
from processors.reconstruction.span_reading import SpanReading
from processors.spans.span_tree import SpanTree


def divide_by_agent(
    runs: list[RunScope], tree: SpanTree, readings: Sequence[SpanReading | None]
) -> list[RunScope]:
    """The runs, where those that no span of their own names bear the name that their steps tell.

    Where steps tell several names, every stay of an agent becomes a run; the stay's first step stands for it.
    A run stays whole and nameless where a step tells no name, where steps belong to different workflows, or
    where two agents' steps began at once.

    Args:
        runs: The runs of a trace, with their calls and model turns.
        tree: The spans.
        readings: What dialects read in each.
    """
    stays_of: dict[int, _Stays] = {}
    for scope in runs:
        if not scope.steps or scope.agent_name or _names_itself(scope, readings):
            continue
        turns = _takeovers(scope, readings)
        if len(turns) == 1:
            scope.agent_name = turns[0][1]
        elif turns and _can_be_divided(scope, [at for at, _ in turns], tree):
            stays_of[id(scope)] = _Stays(scope, turns, tree)
    if not stays_of:
        return runs
    divided: list[RunScope] = []
    for scope in runs:
        own = stays_of.get(id(scope))
        divided += [scope] if own is None else own.runs
    for run in divided:
        around = stays_of.get(id(run.parent))
        if around is not None:
            run.parent = around.of_call(run.asked_by if run.asked_by >= 0 else run.carrier)
    return divided


def _names_itself(scope: RunScope, readings: Sequence[SpanReading | None]) -> bool:
    return any(
        reading.agent.name or reading.agent.inferred_name
        for layer in scope.layers
        if (reading := readings[layer]) is not None
    )


def _takeovers(scope: RunScope, readings: Sequence[SpanReading | None]) -> list[tuple[int, str]]:
    """The first step of every stay with the agent's name, in order; nothing where a step tells none."""
    found: list[tuple[int, str]] = []
    for at in sorted(scope.steps):
        reading = readings[at]
        name = "" if reading is None else reading.agent.name
        if not name:
            return []
        if not found or found[-1][1] != name:
            found.append((at, name))
    return found


def _can_be_divided(scope: RunScope, takeovers: Sequence[int], tree: SpanTree) -> bool:
    """Whether the steps are those of the run's one workflow, and no two of the agents began at once."""
    if scope.kind is not CarrierKind.AGENT or len(scope.layers) > 1:
        return False
    starts = {tree.starts[at] for at in takeovers}
    return len(starts) == len(takeovers) and all(tree.parents[at] == scope.carrier for at in scope.steps)


class _Stays:
    """The runs that one run is divided into, in order."""

    def __init__(self, scope: RunScope, takeovers: Sequence[tuple[int, str]], tree: SpanTree) -> None:
        self._tree = tree
        self._starts = [tree.starts[at] for at, _ in takeovers]
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
        return self.runs[max(bisect_left(self._starts, self._tree.starts[position]) - 1, 0)]

    def _of_turn(self, position: int) -> RunScope:
        return self.runs[max(bisect_right(self._starts, self._tree.starts[position]) - 1, 0)]
