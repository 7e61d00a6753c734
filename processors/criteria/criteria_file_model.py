"""The shape of a criteria file. What an evaluator's own `config` and `criteria` hold is its own matter."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)

from processors.criteria.selector import WhenEntry
from processors.documents import EvaluatorModel, StrictModel
from processors.model import Scope, Severity, Stage, unix_nano_of

Text: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=200)]


def _read_time(value: object) -> int:
    if isinstance(value, str):
        moment = value.replace(" ", "T")
        try:
            return unix_nano_of(moment if "T" in moment else f"{moment}T00:00:00Z")
        except ValueError:
            pass
    raise ValueError(
        'expected a date such as "2026-01-31", or a time with its offset: "2026-01-31T12:00:00Z"'
    )


Time: TypeAlias = Annotated[
    int,
    BeforeValidator(_read_time),
    WithJsonSchema({"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}"}),
]
"""A time of RFC 3339, or a date, which is 00:00 UTC at its start, in nanoseconds since 1970."""


class MuteEntry(EvaluatorModel):
    """Failures are known for now: until a date they are recorded, but neither alert nor gate anything."""

    until: Time = Field(examples=["2026-01-31"])
    """When the mute ends: a date (00:00 UTC at its start, so that day is not muted), or a time."""
    reason: Text
    """Why failures are muted."""
    by: Text = Field(examples=["jane@example.com"])
    """Who muted it."""


class AlternativeEntry(EvaluatorModel):
    """One of several ways to pass."""

    evaluator: Text | None = None
    """Id of its evaluator; left out, that of the evaluation counts, and its `config` where this has none."""
    name: Text | None = Field(default=None, examples=["by-train"])
    """How explanations name it; its number if left out."""
    config: dict[str, JsonValue] | None = None
    """How the evaluator grades."""
    criteria: dict[str, JsonValue] | None = None
    """What the evaluator expects."""


def _evaluator_or_alternatives(schema: dict[str, Any]) -> None:
    schema["anyOf"] = [{"required": [key]} for key in ("evaluator", "any_of", "anyOf")]


class EvaluationEntry(EvaluatorModel):
    """One evaluation of an agent: an evaluator, or several alternatives."""

    model_config = ConfigDict(json_schema_extra=_evaluator_or_alternatives)

    evaluator: Text | None = None
    """Id of the evaluator, such as `tool-call-order`. With `any_of`, that of the alternatives that name
    none."""
    name: Text | None = Field(default=None, examples=["forecast-order"])
    """Name of the evaluation in results and metrics, unique for the agent; the evaluator's id if left out."""
    config: dict[str, JsonValue] | None = None
    """How the evaluator grades."""
    criteria: dict[str, JsonValue] | None = None
    """What the evaluator expects; left out, `config.default_evaluation_criteria` counts. An expected value is
    literal unless it is an object with one `$` key: $regex, $glob, $in, $range, $approx, $type, $schema,
    $present, $absent, $any, $input (the value at a path of the run's input), $literal."""
    any_of: list[AlternativeEntry] | None = Field(
        default=None,
        min_length=2,
        examples=[
            [
                {"criteria": {"tool_calls": ["search_trains", "book"]}},
                {"criteria": {"tool_calls": ["search_flights", "book"]}, "name": "by-air"},
            ]
        ],
    )
    """Alternatives of which the best score counts, in place of `criteria`: other criteria for the
    `evaluator`, or evaluators of their own."""
    when: WhenEntry | None = Field(default=None, examples=[{"input": {"action": "get_forecast"}}])
    """Which runs this applies to; left out, all runs of the agent."""
    sample: float = Field(default=1.0, gt=0, le=1, examples=[0.1])
    """The share of traces that are graded, drawn by trace id: every evaluation with this share, in every
    process, grades the same ones."""
    pass_threshold: float = Field(default=1.0, ge=0, le=1)
    """The score from which on the evaluation passes."""
    severity: Severity = Severity.TICKET
    """What a failure requires of people: wake someone, file a ticket, or only watch the rate."""
    stage: Stage = Stage.LIVE
    """`shadow` tries an evaluation out: its results have series of their own, and neither alert anyone nor
    decide an exit code."""
    scope: Scope = Scope.RUN
    """`conversation` shows the evaluator the calls of all runs so far with the same conversation
    (`gen_ai.conversation.id`), in order of start, as if one run had made them; for evaluators that look at
    calls alone. The verdict is on the run that is graded. `trace` shows it those of all agents in the trace,
    and what their models used, once: on the run of the agent that no other one called, or on the local root,
    by the name of its workflow or service."""
    early: bool = False
    """Reports a failure that no later span can undo while the run goes on: in a log line and in
    `tracegrade_early_failures_total`. The verdict comes as ever, when the trace is finished. For evaluators
    of which calls and tokens can only be too many, without `when`, `$input`, `scope` and `stage`."""
    mute: MuteEntry | None = None
    """Keeps known failures from alerting and from deciding an exit code."""
    enabled: bool = True
    """False switches off the evaluation of this name that a less specific pattern gives."""

    @model_validator(mode="after")
    def _is_one_evaluator_or_several(self) -> "EvaluationEntry":
        if self.evaluator is None and (self.any_of is None or self.name is None):
            raise ValueError(f'missing key "{"evaluator" if self.any_of is None else "name"}"')
        if self.any_of is not None:
            inherits = [entry for entry in self.any_of if entry.evaluator is None]
            for key, is_used in (
                ("criteria", False),
                ("evaluator", inherits),
                ("config", any(entry.config is None for entry in inherits)),
            ):
                if getattr(self, key) is not None and not is_used:
                    raise ValueError(f"{key}: every entry of any_of has its own")
        return self


class AgentEntry(StrictModel):
    """The criteria of one agent or pattern."""

    evaluations: list[EvaluationEntry]
    """What to evaluate in every run of the agent."""


ExpectedOutcome: TypeAlias = Literal["pass", "fail", "error", "not_evaluated", "skipped"]


class ExpectedResultEntry(EvaluatorModel):
    """The result that a test expects of one evaluation."""

    outcome: ExpectedOutcome
    """How the evaluation ends; `skipped` where it does not apply to the run."""
    score: float | None = Field(default=None, ge=0, le=1)
    """The score, to nine digits."""
    reason: str | None = Field(
        default=None, examples=["content_not_captured", "incomplete_trace", "not_applicable"]
    )
    """Why it was not evaluated."""


def _as_result(written: "ExpectedOutcome | ExpectedResultEntry") -> ExpectedResultEntry:
    return ExpectedResultEntry(outcome=written) if isinstance(written, str) else written


class CriteriaTestEntry(EvaluatorModel):
    """A test of criteria: a run, and how its evaluations are to end. `tracegrade validate` runs it."""

    name: Text = Field(examples=["a refund without a look-up fails"])
    """What is tested."""
    run: dict[str, JsonValue] | None = Field(
        default=None,
        examples=[{"agent": {"name": "weather_agent"}, "tool_calls": [{"name": "get_forecast"}]}],
    )
    """An agent run in the form of a line of a `*.runs.jsonl` file."""
    runs: list[dict[str, JsonValue]] | None = Field(
        default=None,
        min_length=1,
        examples=[[{"agent": {"name": "planner"}}, {"agent": {"name": "writer"}, "parent_agent": "planner"}]],
    )
    """The runs of one trace, in order of start, in the same form; for evaluations with `scope: trace`."""
    earlier: list[dict[str, JsonValue]] | None = Field(
        default=None,
        examples=[[{"agent": {"name": "weather_agent"}, "tool_calls": [{"name": "get_forecast"}]}]],
    )
    """Other runs that are known when `run` is graded, oldest first, in the same form. Those that name no
    `session` are in one conversation with a `run` that names none."""
    trace: Text | None = Field(default=None, examples=["traces/refund.otlp.json"])
    """A file or folder of recorded traffic, as `tracegrade replay` reads it; relative to this file."""
    agent: Text | None = None
    """Whose runs of the trace are looked at; left out, all of them."""
    expect: dict[Text, Annotated[ExpectedOutcome | ExpectedResultEntry, AfterValidator(_as_result)]] = Field(
        min_length=1,
        examples=[{"forecast-order": "pass", "forecast-args": {"outcome": "fail", "score": 0.5}}],
    )
    """For each evaluation, by name, its outcome, or its outcome with score or reason."""


class CriteriaFile(StrictModel):
    """A criteria file: what tracegrade expects of agents, by their names."""

    model_config = ConfigDict(title="tracegrade criteria")

    agents: dict[Text, AgentEntry]
    """By the agent's name, or a pattern with `*`, `?` and `[abc]`; `*` alone is every agent. All patterns
    that match apply; the most specific one wins where evaluations share a name."""
    tenant: str = Field(default="", max_length=200)
    """Whose agents these are; empty: agents without a tenant."""
    owner: Text | None = Field(default=None, examples=["team-weather"])
    """Who answers for these criteria."""
    contact: Text | None = Field(default=None, examples=["#team-weather", "oncall@example.com"])
    """Where to reach the owner."""
    tests: list[CriteriaTestEntry] = Field(default_factory=list)
    """Tests of these criteria; `tracegrade validate` runs them."""
    version: Literal[1] = 1
    """Version of this file format."""
