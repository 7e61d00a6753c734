"""The scores of a release, pinned by `tracegrade baseline`, as the rules compare later scores with them."""

from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from collector.tools.alerting.rule_file import RecordingRule

BASELINE = "agent:gen_ai_evaluation_score:baseline"
"""The series with the pinned mean score of an evaluation of an agent."""

Text: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class PinnedScore(BaseModel):
    """The mean score of one evaluation of one agent."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    mean: float = Field(ge=0, le=1)
    samples: int = Field(ge=0)


class BaselinesFile(BaseModel):
    """A baselines file: the scores of a release, by agent and evaluation."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    release: Text
    created: Text
    agents: dict[Text, dict[Text, PinnedScore]]


def baseline_rules(baselines: BaselinesFile, min_samples: int) -> list[RecordingRule]:
    """A series for every score that is pinned from at least `min_samples` results."""
    return [
        RecordingRule(
            BASELINE,
            f"vector({score.mean!r})",
            {
                "gen_ai_agent_name": agent,
                "gen_ai_evaluation_name": evaluation,
                "release": baselines.release,
            },
        )
        for agent, evaluations in sorted(baselines.agents.items())
        for evaluation, score in sorted(evaluations.items())
        if score.samples >= min_samples
    ]
