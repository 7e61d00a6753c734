"""The shape of a criteria file. What an evaluator's own `config` and `criteria` hold is its own matter."""

from typing import Annotated, Literal, TypeAlias

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, JsonValue, StringConstraints

from processors.evaluation_result import Severity
from processors.lenient_bool import LenientBool

Text: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class EvaluationEntry(BaseModel):
    """One evaluation of an agent."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    evaluator: Text = Field(description="Id of the evaluator, such as `tool-call-order`.")
    name: Text | None = Field(
        default=None,
        description="Name of the evaluation in results and metrics, unique for the agent; the evaluator's "
        "id if left out.",
        examples=["forecast-order"],
    )
    config: dict[str, JsonValue] | None = Field(default=None, description="How the evaluator grades.")
    criteria: dict[str, JsonValue] | None = Field(
        default=None,
        description="What the evaluator expects; left out, `config.default_evaluation_criteria` counts.",
    )
    pass_threshold: float = Field(
        default=1.0,
        ge=0,
        le=1,
        validation_alias=AliasChoices("passThreshold", "pass_threshold"),
        description="The score from which on the evaluation passes.",
    )
    severity: Severity = Field(
        default=Severity.TICKET,
        description="What a failure asks of people: wake someone, file a ticket, or only watch the rate.",
    )
    enabled: LenientBool = Field(
        default=True,
        description="False switches off the evaluation of this name that a less specific pattern gives.",
    )


class AgentEntry(BaseModel):
    """The criteria of one agent or pattern."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    evaluations: list[EvaluationEntry] = Field(description="What to evaluate in every run of the agent.")


class CriteriaFile(BaseModel):
    """A criteria file: what tracegrade expects of agents, by their names."""

    model_config = ConfigDict(extra="forbid", frozen=True, title="tracegrade criteria")

    agents: dict[Text, AgentEntry] = Field(
        description="By the agent's name, or a pattern with `*`, `?` and `[abc]`; `*` alone is every agent. "
        "All patterns that match apply; the most specific one wins where evaluations share a name.",
    )
    tenant: str = Field(
        default="", max_length=200, description="Whose agents these are; empty: agents without a tenant."
    )
    version: Literal[1] = Field(default=1, description="Version of this file format.")
