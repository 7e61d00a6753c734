"""Which evaluations the runs of one trace are graded by, and which run stands for the trace."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from processors.criteria.agent_criteria import CriteriaSet, Evaluation
from processors.model import AgentIdentity, AgentRun, LocalRoot, Scope


class Applied(NamedTuple):
    """A run, and the evaluations that it is to be graded by."""

    run: AgentRun
    evaluations: Sequence[Evaluation]


def applied_criteria(runs: Sequence[AgentRun], criteria: CriteriaSet) -> list[Applied]:
    """The evaluations of each of `runs`, which are all of one trace, in their order.

    An evaluation over the trace is made once: for the first run, by start, that no other one called and whose
    agent it is for. What is for none of them but for the workflow around them, or else for the service, is
    made for a run that stands for the trace, which is added at the end unless `runs` has one.
    """
    applied = [Applied(run, criteria.evaluations_for(run.agent.name, run.tenant)) for run in runs]
    if not criteria.looks_at_traces or not runs:
        return applied
    outermost = sorted(
        (place for place, run in enumerate(runs) if run.parent_agent is None or run.stands_for_trace),
        key=lambda place: (runs[place].stands_for_trace, runs[place].start_unix_nano),
    )
    placed: set[int] = set()
    of_trace: dict[int, list[Evaluation]] = {}
    for place in outermost:
        of_trace[place] = _over_trace(applied[place].evaluations, placed)
    for place, (run, evaluations) in enumerate(applied):
        chosen = set(map(id, of_trace.get(place, ())))
        of_run = not run.stands_for_trace
        applied[place] = Applied(
            run,
            [one for one in evaluations if id(one) in chosen or (of_run and one.scope is not Scope.TRACE)],
        )
    if not any(run.stands_for_trace for run in runs):
        for standing in _standing_runs(runs[outermost[0] if outermost else 0], runs):
            evaluations = _over_trace(criteria.evaluations_for(standing.agent.name, standing.tenant), placed)
            if evaluations:
                return [*applied, Applied(standing, evaluations)]
    return applied


def _over_trace(evaluations: Sequence[Evaluation], placed: set[int]) -> list[Evaluation]:
    """Those over the trace that were not `placed` before; now they are."""
    chosen = [one for one in evaluations if one.scope is Scope.TRACE and id(one) not in placed]
    placed.update(map(id, chosen))
    return chosen


def _standing_runs(first: AgentRun, runs: Sequence[AgentRun]) -> Iterator[AgentRun]:
    """A run that stands for the trace by the name of its workflow, and one by that of its service."""
    root = first.local_root or LocalRoot(
        span_id=first.carrier_span_id,
        resource=first.resource,
        start_unix_nano=first.start_unix_nano,
        end_unix_nano=first.end_unix_nano,
    )
    version = root.resource.get("service.version")
    for name in (root.workflow, root.resource.get("service.name")):
        if isinstance(name, str) and name:
            yield AgentRun(
                trace_id=first.trace_id,
                span_id=root.span_id,
                carrier_span_id=root.span_id,
                agent=AgentIdentity(name=name, version=version if isinstance(version, str) else None),
                session=first.session,
                finish_reason=first.finish_reason,
                complete=all(run.complete for run in runs),
                incomplete_reason=first.incomplete_reason,
                start_unix_nano=root.start_unix_nano,
                end_unix_nano=root.end_unix_nano,
                tenant=first.tenant,
                resource=root.resource,
                stands_for_trace=True,
            )
