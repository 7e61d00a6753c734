"""Which evaluations are in force for the agents that are known: one series each, with what they are."""

from collections.abc import Iterable

from collector.telemetry.instruments import Gauge, Labels
from processors.criteria.agent_criteria import AgentCriteria, Evaluation
from processors.model.evaluation_result import Stage


class EvaluationInfo:
    """Shows live evaluations in `gauge`. A changed evaluation is a new series, and its old one goes."""

    def __init__(self, gauge: Gauge) -> None:
        self._gauge = gauge
        self._shown: dict[str, frozenset[Labels]] = {}

    def show(self, agent: str, evaluations: Iterable[tuple[AgentCriteria, Evaluation]]) -> None:
        """Make `evaluations`, each with the criteria it is from, the ones that are shown of `agent`."""
        shown = frozenset(
            _labels(agent, source, evaluation)
            for source, evaluation in evaluations
            if evaluation.stage is Stage.LIVE
        )
        for labels in self._shown.pop(agent, frozenset()) - shown:
            self._gauge.remove(*labels)
        for labels in shown:
            self._gauge.set(1, *labels)
        if shown:
            self._shown[agent] = shown

    def remove(self, agent: str) -> None:
        """Show nothing of `agent` any more."""
        self.show(agent, ())

    @property
    def agents(self) -> list[str]:
        """The agents of which something is shown."""
        return list(self._shown)


def _labels(agent: str, source: AgentCriteria, evaluation: Evaluation) -> Labels:
    required = (
        agent,
        evaluation.name,
        evaluation.evaluator.id,
        evaluation.evaluator.version,
        evaluation.criteria_hash,
        evaluation.severity.value,
    )
    if source.contact:
        return *required, source.owner, source.contact
    return (*required, source.owner) if source.owner else required
