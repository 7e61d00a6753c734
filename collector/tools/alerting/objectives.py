"""What rules are made from: objectives and how fast they burn, the scores of a release, volume, criteria.

`ObjectivesFile` is the shape of what `tracegrade rules --objectives` reads, and of its JSON schema.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from collector.text_file import read_text_file
from collector.tools.alerting.selectors import NamePattern, Pair
from processors.criteria import CriteriaSet
from processors.documents import (
    InvalidInput,
    LocatedYaml,
    Problem,
    StrictModel,
    did_you_mean,
    read_yaml,
    validated,
)
from processors.model import Severity, Stage

ModelT = TypeVar("ModelT", bound=BaseModel)
Text: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Share: TypeAlias = Annotated[float, Field(gt=0, lt=1)]
Volume = Mapping[Pair, float]
"""Results with a verdict in an hour, on average, by agent and evaluation."""


class Objective(StrictModel):
    """What is expected of an evaluation over time."""

    target: Share = Field(examples=[0.95])
    """The share of runs that is to pass, of those that pass or fail."""
    severity: Literal["page", "ticket"] | None = None
    """How urgent a fast burn is; left out, the severity of the evaluation in its criteria. A slow burn is
    always a ticket, and an advisory evaluation never alerts."""


class AgentObjectives(StrictModel):
    """The objectives of one agent or pattern."""

    evaluations: dict[Text, Objective]
    """By the evaluation's name, or a pattern with `*`, `?` and `[abc]`."""


class Thresholds(StrictModel):
    """From when on a difference matters. They hold for every agent."""

    min_results: int = Field(default=20, ge=1)
    """Fewer results in a window are not enough data for any alert on shares."""
    not_evaluated: Share = 0.2
    """How much the share of runs that could not be evaluated may rise."""
    errors: Share = 0.05
    """The share of runs in which the evaluator may break."""
    growth: float = Field(default=0.5, gt=0, le=100)
    """By which share the mean duration, tokens or cost of an agent's runs may grow above that of the same
    hour last week; 1 is twice as much."""


class ObjectivesFile(StrictModel):
    """An objectives file: what `tracegrade rules` makes alert rules for, without any PromQL."""

    model_config = ConfigDict(title="tracegrade objectives")

    agents: dict[Text, AgentObjectives] = Field(default_factory=dict)
    """By the agent's name, or a pattern. Where several apply to an evaluation, the most specific agent
    counts, then the most specific evaluation: a name before a pattern, then the pattern with more literal
    characters, then the later one."""
    defaults: Objective | None = Objective(target=0.95)
    """For all other evaluations; null: they have no objective."""
    thresholds: Thresholds = Thresholds()
    version: Literal[1] = 1
    """Version of this file format."""

    def placed(self) -> "list[PlacedObjective]":
        """All objectives, the more specific before the less; the first that matches counts."""
        placed_objectives = [
            PlacedObjective(NamePattern(agent), NamePattern(evaluation), objective)
            for agent, objectives in self.agents.items()
            for evaluation, objective in objectives.evaluations.items()
        ]
        placed_objectives.reverse()  # sorting is stable: of equals the later one comes first
        placed_objectives.sort(key=PlacedObjective.rank, reverse=True)
        if self.defaults is not None:
            placed_objectives.append(PlacedObjective(NamePattern("*"), NamePattern("*"), self.defaults))
        return placed_objectives


@dataclass(frozen=True, slots=True)
class PlacedObjective:
    """An objective and what it is for."""

    agent: NamePattern
    evaluation: NamePattern
    objective: Objective

    def matches(self, agent: str, evaluation: str) -> bool:
        """Whether it could be the objective of an evaluation of an agent."""
        return self.agent.matches(agent) and self.evaluation.matches(evaluation)

    def rank(self) -> tuple[bool, int, bool, int]:
        """How specific it is; the larger counts."""
        agent, evaluation = self.agent, self.evaluation
        return agent.is_exact, agent.literal_characters, evaluation.is_exact, evaluation.literal_characters


@dataclass(frozen=True, slots=True)
class BurnPair:
    """A long and a short window and by how much the budget is burnt too fast over both, for how long.

    A pair whose factor times the budget is 1 or more would need more failures than there are results: it can
    never fire. A fast pair has the severity of the objective or the evaluation, another one is always a
    ticket.
    """

    long: str
    short: str
    factor: float
    hold: str
    is_fast: bool

    def threshold(self, target: float) -> float:
        """The share of failures above which the budget of an objective burns too fast."""
        return round(self.factor * (1 - target), 10)

    def can_fire(self, target: float) -> bool:
        """Whether there can be such a share of failures."""
        return self.threshold(target) < 1


PAIRS = (
    BurnPair("1h", "5m", 14.4, "2m", is_fast=True),
    BurnPair("6h", "30m", 6.0, "15m", is_fast=True),
    BurnPair("1d", "2h", 3.0, "1h", is_fast=False),
    BurnPair("3d", "6h", 1.0, "3h", is_fast=False),
)
"""The windows and factors of multi-window burn-rate alerts for a budget of 30 days."""


class PinnedScore(StrictModel):
    """The mean score of one evaluation of one agent."""

    mean: float = Field(ge=0, le=1)
    samples: int = Field(ge=0)


class BaselinesFile(StrictModel):
    """A baselines file: the scores of a release, by agent and evaluation, from `tracegrade baseline`."""

    release: Text
    created: Text
    agents: dict[Text, dict[Text, PinnedScore]]


class VolumeFile(StrictModel):
    """A volume file: results in an hour, by agent and evaluation."""

    agents: dict[Text, dict[Text, Annotated[float, Field(ge=0, allow_inf_nan=False)]]]

    def volume(self) -> Volume:
        """What the file holds."""
        return {
            (agent, evaluation): results
            for agent, evaluations in self.agents.items()
            for evaluation, results in evaluations.items()
        }


def read_data_file(path: Path, model: type[ModelT]) -> tuple[ModelT, LocatedYaml]:
    """The content of the YAML or JSON file as `model`, and as it is written, for messages.

    Raises:
        InvalidInput: the file cannot be read or holds mistakes: all of them.
    """
    name = str(path)
    document = read_yaml(read_text_file(path), name)
    problems: list[Problem] = []
    content = validated(model, {} if document.value is None else document.value, document, problems)
    problems = document.all_problems(problems)
    if problems or content is None:
        raise InvalidInput(problems)
    return content, document


def criteria_coverage(criteria: CriteriaSet) -> tuple[list[Pair], dict[Pair, str]]:
    """Two groups of the evaluations of agents that `criteria` name exactly.

    Those that give a result for every run of their agent, and those that alert on nothing but a change of
    their rate, with the reason.
    """
    unconditional: list[Pair] = []
    quiet: dict[Pair, str] = {}
    for agent in criteria.exact_names():
        for evaluation in criteria.evaluations_for(agent):
            if evaluation.stage is Stage.SHADOW:
                quiet[agent, evaluation.name] = "in shadow"
            elif evaluation.severity is Severity.ADVISORY:
                quiet[agent, evaluation.name] = "advisory"
            elif evaluation.when is None and evaluation.sample >= 1:
                unconditional.append((agent, evaluation.name))
    return unconditional, quiet


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
