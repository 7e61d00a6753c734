"""What rules need to know of criteria: what is always evaluated, what never alerts, what has an objective."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from collector.tools.alerting.name_pattern import NamePattern
from collector.tools.alerting.objectives import ObjectivesFile
from collector.tools.alerting.series_selector import Pair
from processors.criteria.agent_criteria import CriteriaSet, Evaluation
from processors.documents.problems import Problem, did_you_mean
from processors.documents.yaml import LocatedYaml
from processors.model.evaluation_result import Severity, Stage


@dataclass(frozen=True, slots=True)
class CriteriaCoverage:
    """The evaluations of agents named exactly.

    `unconditional` give a result for every run of their agent. `quiet` never alert but on a change of their
    rate, with the reason.
    """

    unconditional: Sequence[Pair] = ()
    quiet: Mapping[Pair, str] = field(default_factory=dict)


def criteria_coverage(criteria: CriteriaSet | None) -> CriteriaCoverage:
    """What is known of `criteria`; nothing without them."""
    unconditional: list[Pair] = []
    quiet: dict[Pair, str] = {}
    for agent in criteria.exact_names() if criteria else ():
        for evaluation in criteria.evaluations_for(agent) if criteria else ():
            reason = _why_quiet(evaluation)
            if reason:
                quiet[agent, evaluation.name] = reason
            elif evaluation.when is None and evaluation.sample >= 1:
                unconditional.append((agent, evaluation.name))
    return CriteriaCoverage(unconditional, quiet)


def objective_problems(
    objectives: ObjectivesFile, document: LocatedYaml, criteria: CriteriaSet
) -> list[Problem]:
    """Objectives for what no criteria evaluate, as problems of their file."""
    problems = []
    for name, agent in objectives.agents.items():
        known = _evaluation_names(NamePattern(name), criteria)
        path = ("agents", name)
        if not known:
            message = f"no criteria apply to this agent{did_you_mean(name, criteria.exact_names())}"
            problems.append(document.problem(path, message))
            continue
        for evaluation in agent.evaluations:
            if not any(NamePattern(evaluation).matches(one) for one in known):
                message = f"no criteria give this evaluation to the agent{did_you_mean(evaluation, known)}"
                problems.append(document.problem((*path, "evaluations", evaluation), message))
    return problems


def _why_quiet(evaluation: Evaluation) -> str:
    if evaluation.stage is Stage.SHADOW:
        return "in shadow"
    return "advisory" if evaluation.severity is Severity.ADVISORY else ""


def _evaluation_names(agent: NamePattern, criteria: CriteriaSet) -> list[str]:
    """What criteria could evaluate of the agents that `agent` means; of globs in them, everything counts."""
    if agent.is_exact:
        return [evaluation.name for evaluation in criteria.evaluations_for(agent.text)]
    return list(
        dict.fromkeys(
            evaluation.name
            for one in criteria.agents
            if not one.is_exact or agent.matches(one.pattern)
            for evaluation in one.evaluations
            if evaluation.enabled
        )
    )
