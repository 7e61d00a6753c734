"""Objectives: the share of runs that is to pass, by agent and evaluation, and when a difference matters.

This is the shape of the file that `tracegrade rules --objectives` reads, and of its JSON schema.
"""

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from collector.tools.alerting.name_pattern import NamePattern

Text: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Share: TypeAlias = Annotated[float, Field(gt=0, lt=1)]


class Objective(BaseModel):
    """What is asked of an evaluation over time."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    target: Share = Field(
        description="The share of runs that is to pass, of those that pass or fail.", examples=[0.95]
    )
    severity: Literal["page", "ticket"] | None = Field(
        default=None,
        description="What a fast burn asks of people; left out, the severity of the evaluation in its "
        "criteria. A slow burn is always a ticket, and an advisory evaluation never alerts.",
    )


class AgentObjectives(BaseModel):
    """The objectives of one agent or pattern."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    evaluations: dict[Text, Objective] = Field(
        description="By the evaluation's name, or a pattern with `*`, `?` and `[abc]`."
    )


class Thresholds(BaseModel):
    """From when on a difference matters. They hold for every agent."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    min_results: int = Field(
        default=20, ge=1, description="Fewer results in a window are not enough data for any alert on shares."
    )
    score_drop: Share = Field(
        default=0.1,
        description="How much lower a mean score must be: than the baseline, than in the same hour last "
        "week, than that of the version before.",
    )
    standard_errors: float = Field(
        default=3.0,
        ge=0,
        le=10,
        description="By how many standard errors a mean score must be lower as well, so that chance in few "
        "results alerts nobody. 0 asks for none.",
    )
    failures_in_a_row: int = Field(
        default=5, ge=2, description="So many failures without a pass are a ticket at any volume."
    )
    not_evaluated: Share = Field(
        default=0.2, description="How much the share of runs that could not be evaluated may rise."
    )
    errors: Share = Field(default=0.05, description="The share of runs in which the evaluator may break.")
    rate_change: Share = Field(
        default=0.2,
        description="How much the share of failures of an advisory evaluation, or of one in shadow, may rise "
        "above that of the same hour last week.",
    )
    fleet_share: Share = Field(
        default=0.05, description="More than this share of the active agents regressing is one cause."
    )
    fleet_agents: int = Field(
        default=10, ge=2, description="So many agents are needed for one cause at least."
    )
    occupancy: Share = Field(
        default=0.8, description="The share of the memory limit that held spans and queues may take."
    )


class ObjectivesFile(BaseModel):
    """An objectives file: what `tracegrade rules` makes alert rules for, without any PromQL."""

    model_config = ConfigDict(extra="forbid", frozen=True, title="tracegrade objectives")

    agents: dict[Text, AgentObjectives] = Field(
        default_factory=dict,
        description="By the agent's name, or a pattern. Where several apply to an evaluation, the most "
        "specific agent counts, then the most specific evaluation: a name before a pattern, then the pattern "
        "with more literal characters, then the later one.",
    )
    defaults: Objective | None = Field(
        default=Objective(target=0.95),
        description="For all other evaluations; null: they have no objective.",
    )
    thresholds: Thresholds = Thresholds()
    version: Literal[1] = Field(default=1, description="Version of this file format.")

    def placed(self) -> "list[PlacedObjective]":
        """All objectives, the more specific before the less; the first that matches counts."""
        found = [
            PlacedObjective(NamePattern(agent), NamePattern(evaluation), objective)
            for agent, objectives in self.agents.items()
            for evaluation, objective in objectives.evaluations.items()
        ]
        in_order = [one for _, one in sorted(enumerate(found), key=lambda item: _rank(*item), reverse=True)]
        if self.defaults is not None:
            in_order.append(PlacedObjective(NamePattern("*"), NamePattern("*"), self.defaults))
        return in_order


@dataclass(frozen=True, slots=True)
class PlacedObjective:
    """An objective and what it is for."""

    agent: NamePattern
    evaluation: NamePattern
    objective: Objective

    def matches(self, agent: str, evaluation: str) -> bool:
        """Whether it could be the objective of an evaluation of an agent."""
        return self.agent.matches(agent) and self.evaluation.matches(evaluation)


def _rank(index: int, placed: PlacedObjective) -> tuple[bool, int, bool, int, int]:
    agent, evaluation = placed.agent, placed.evaluation
    return (
        agent.is_exact,
        agent.literal_characters,
        evaluation.is_exact,
        evaluation.literal_characters,
        index,
    )
