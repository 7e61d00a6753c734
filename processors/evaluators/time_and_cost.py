"""Evaluators of a run as a whole: how it ended, what it took, and which models it requested.

`run-error`, `run-duration`, `tool-duration`, `token-budget`, `cost-budget` and `model-allowed`. What
telemetry does not contain is never taken for little: without it there is no verdict.
"""

import math
from collections.abc import Sequence
from typing import Annotated, TypeAlias

from pydantic import Field

from processors.comparison import ToolPatterns, ToolSelectionConfig
from processors.documents import AnyKeyCriteria, EvaluatorModel
from processors.model import (
    AgentRun,
    Evaluator,
    JsonValue,
    NotEvaluated,
    RunFacts,
    Score,
    TokenUsage,
    ToolCall,
    name_pattern,
    sum_of_usage,
)

_SHOWN = 20
_BELOW_ONE = math.nextafter(1.0, 0.0)
_Seconds: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Tokens: TypeAlias = Annotated[int, Field(ge=0)]


class NoSettings(EvaluatorModel):
    """These evaluators have no settings."""


class RunError(Evaluator):
    """Whether the run ended without an error: 1 or 0.

    score = 0 when the agent's own span shows that it failed, by its status, an `error.type` or an exception,
    else 1. Calls that failed do not count, unless the agent ended with their error; a run that stops to wait
    for a person or for the result of a call has not failed.
    """

    id = "run-error"
    needs_calls = False

    def __init__(self, config: NoSettings, criteria: None = None) -> None:
        pass

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score:
        """Grade `run`; always a score."""
        if run.error is None:
            return Score(1.0, {"error_type": None}, ("the run ended without an error",))
        line = ": ".join(filter(None, (run.error.type or "error", run.error.message)))
        return Score(0.0, {"error_type": run.error.type}, (line,))

    def attainable(self, run: AgentRun) -> tuple[float, float]:
        """Further spans do not undo an error on the agent's own span."""
        return 0.0, float(run.error is None)


class RunDurationCriteria(AnyKeyCriteria):
    """The limits; at least one."""

    max_seconds: _Seconds | None = Field(default=None, examples=[30])
    """The longest that a run may take, in seconds."""
    max_time_to_first_output_seconds: _Seconds | None = Field(default=None, examples=[2.5])
    """The longest that it may take until a model gives its first output, in seconds. Only telemetry of
    streamed answers contains it."""


class RunDuration(Evaluator):
    """Whether a run took no longer than it may: 1 or 0.

    score = 1 when duration <= `max_seconds` and time to first output <= `max_time_to_first_output_seconds`,
    as far as they are given, else 0. The duration is that of the agent's own span, waiting for people
    included. What telemetry does not contain gives no verdict, unless the other limit is exceeded.
    """

    id = "run-duration"
    needs_calls = False

    def __init__(self, config: NoSettings, criteria: RunDurationCriteria) -> None:
        self._max_seconds = criteria.max_seconds
        self._max_first = criteria.max_time_to_first_output_seconds

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; not evaluated where telemetry does not contain the time that is limited."""
        details: dict[str, JsonValue] = {}
        exceeded: list[str] = []
        within: list[str] = []
        missing: list[str] = []
        for label, seconds, most in (
            ("duration", run.duration_seconds, self._max_seconds),
            ("time to first output", run.time_to_first_output_seconds, self._max_first),
        ):
            if most is None:
                continue
            details[f"{label.replace(' ', '_')}_seconds"] = seconds
            if seconds is None:
                missing.append(label)
            else:
                lines = exceeded if seconds > most else within
                lines.append(f"{label}: {_time(seconds)}, at most {_time(most)}")
        if missing and not exceeded:
            return _not_captured(f"its {missing[0]}")
        return Score(float(not exceeded), details, tuple(exceeded or within))

    def attainable(self, run: AgentRun) -> tuple[float, float]:
        """The agent's own span does not get shorter by further spans."""
        seconds = None if run.span_id is None else run.duration_seconds
        most = self._max_seconds
        return 0.0, float(most is None or seconds is None or seconds <= most)


class ToolDurationCriteria(AnyKeyCriteria):
    """The limits; at least one."""

    max_seconds: _Seconds | None = Field(default=None, examples=[5])
    """The longest that any call may take, in seconds."""
    tools: dict[str, _Seconds] = Field(default_factory=dict, examples=[{"search_*": 2, "book_flight": 30}])
    """The longest that a call of a tool may take, in seconds, instead of `max_seconds`; `*` and `?` allowed.
    Of several names that fit, the first counts."""


class ToolDuration(Evaluator):
    """The share of calls that took no longer than they may.

    score = 1 - calls that took longer than their limit / calls that have a limit. Calls that a model only
    requested do not count. A call with a limit whose times telemetry does not contain gives no verdict,
    unless the run fails even if that call was quick.

    A run without such calls scores 1.
    """

    id = "tool-duration"

    def __init__(self, config: ToolSelectionConfig, criteria: ToolDurationCriteria) -> None:
        self._categories = config.categories()
        self._max_seconds = criteria.max_seconds
        self._named = ToolPatterns(criteria.tools)
        self._of_tools = [(ToolPatterns([name]), seconds) for name, seconds in criteria.tools.items()]

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; not evaluated where telemetry does not contain how long a call took."""
        limited = self._limited(run)
        slow: list[tuple[str, float, float]] = []
        missing: NotEvaluated | None = None
        for call, most in limited:
            seconds = call.duration_seconds
            if seconds is None:
                missing = missing or _not_captured(f"how long {call.name} took")
            elif seconds > most:
                slow.append((call.name, seconds, most))
        shown: list[JsonValue] = [
            {"name": name, "duration_seconds": seconds, "max_seconds": most}
            for name, seconds, most in slow[:_SHOWN]
        ]
        details: dict[str, JsonValue] = {"calls": len(limited), "slow": len(slow), "slow_calls": shown}
        if not slow:
            line = "all calls stayed within their time" if limited else "no call with a limit was made"
            return missing or Score(1.0, details, (line,))
        lines = [f"{name}: {_time(seconds)}, at most {_time(most)}" for name, seconds, most in slow[:_SHOWN]]
        value = (len(limited) - len(slow)) / len(limited)
        score = Score(value, details, (*lines, f"{len(slow)} of {len(limited)} calls"))
        return score if missing is None else missing.unless(score)

    def attainable(self, run: AgentRun) -> tuple[float, float]:
        """Further calls may be slow or fast in any number, but what was slow stays so."""
        is_slow = any((call.duration_seconds or 0.0) > most for call, most in self._limited(run))
        return 0.0, _BELOW_ONE if is_slow else 1.0

    def _limited(self, run: AgentRun) -> list[tuple[ToolCall, float]]:
        """The calls that ran and have a limit, with how long they may take."""
        return [
            (call, most)
            for call in self._named.select(run, self._categories)
            if call.executed and (most := self._limit(call.name)) is not None
        ]

    def _limit(self, name: str) -> float | None:
        return next((seconds for tools, seconds in self._of_tools if name in tools), self._max_seconds)


class TokenBudgetCriteria(AnyKeyCriteria):
    """The limits; at least one."""

    max_total_tokens: _Tokens | None = Field(default=None, examples=[50000])
    """The most tokens of input and output together."""
    max_input_tokens: _Tokens | None = None
    """The most tokens of input, cached ones included."""
    max_output_tokens: _Tokens | None = None
    """The most tokens of output, reasoning included."""


class TokenBudget(Evaluator):
    """Whether the tokens of all model calls of a run stay within all limits: 1 or 0.

    score = 1 when input + output <= `max_total_tokens`, input <= `max_input_tokens` and output <=
    `max_output_tokens`, as far as they are given, else 0. Model calls that tools made count; those of agents
    within the run are theirs. Where not every model call has its tokens, the total on the agent's own span
    counts; without one there is no verdict, unless the known tokens exceed a limit already.
    """

    id = "token-budget"
    needs_calls = False
    over_models = True
    can_fail_early = True

    def __init__(self, config: NoSettings, criteria: TokenBudgetCriteria) -> None:
        self._limits = (
            ("tokens", criteria.max_total_tokens),
            ("input tokens", criteria.max_input_tokens),
            ("output tokens", criteria.max_output_tokens),
        )

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; not evaluated where telemetry does not contain its tokens."""
        usage = run.usage
        counted = _usage_of_calls(run) if usage is None else usage
        lines = self._lines(counted)
        exceeded = [line for line, is_exceeded in lines if is_exceeded]
        if usage is None and not exceeded:
            return _not_captured("the tokens of all model calls")
        details: dict[str, JsonValue] = {
            "input_tokens": counted.input_tokens,
            "output_tokens": counted.output_tokens,
            "exceeded": [*exceeded],
        }
        return Score(float(not exceeded), details, tuple(exceeded or (line for line, _ in lines)))

    def attainable(self, run: AgentRun) -> tuple[float, float]:
        """The tokens of model calls only grow; a total on the agent's span may be replaced by its parts."""
        return 0.0, float(not any(is_exceeded for _, is_exceeded in self._lines(_usage_of_calls(run))))

    def _lines(self, usage: TokenUsage) -> list[tuple[str, bool]]:
        """For each limit its line, and whether it is exceeded."""
        counts = usage.total_tokens, usage.input_tokens, usage.output_tokens
        return [
            (f"{count} {label}, at most {most}", count > most)
            for count, (label, most) in zip(counts, self._limits, strict=True)
            if most is not None
        ]


class CostBudgetCriteria(EvaluatorModel):
    """The limit."""

    max_cost: Annotated[float, Field(ge=0, allow_inf_nan=False)] = Field(examples=[0.05])
    """The most that a run may cost, in the currency of the configured prices."""


class CostBudget(Evaluator):
    """Whether the model calls of a run cost no more than they may: 1 or 0.

    score = 1 when cost <= `max_cost`, else 0. The cost is what the tokens of all model calls cost by the
    `model_prices` of the service file; no prices are built in. Where tokens are not known there is no
    verdict, and where a model has no price the evaluation is not applicable.
    """

    id = "cost-budget"
    needs_calls = False
    over_models = True
    can_fail_early = True

    def __init__(self, config: NoSettings, criteria: CostBudgetCriteria) -> None:
        self._max_cost = criteria.max_cost

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; not evaluated where its tokens are not known or a model has no price."""
        cost = run.cost
        if cost is None:
            if run.usage is None:
                return _not_captured("the tokens of all model calls")
            models = ", ".join(run.models[:_SHOWN])
            whose = f"one of the models {models}" if len(run.models) > 1 else models or "an unnamed model"
            return NotEvaluated.not_applicable(f"no price is configured for {whose}")
        line = f"cost: {cost:.6g}, at most {self._max_cost:.6g}"
        details: dict[str, JsonValue] = {"cost": cost, "max_cost": self._max_cost}
        return Score(float(cost <= self._max_cost), details, (line,))

    def attainable(self, run: AgentRun) -> tuple[float, float]:
        """What model calls cost only grows; a total on the agent's span may be replaced by its parts."""
        if not run.model_calls or any(call.usage is None and not call.failed for call in run.model_calls):
            return 0.0, 1.0
        return 0.0, float(run.cost is None or run.cost <= self._max_cost)


class ModelAllowedCriteria(AnyKeyCriteria):
    """Which models may and may not be requested; at least one of the two."""

    allow: list[str] | None = Field(default=None, examples=[["small-model*"]])
    """Models that may be requested, `*` and `?` allowed; left out, all that are not denied."""
    deny: list[str] = Field(default_factory=list, examples=[["*-preview"]])
    """Models that must not be requested, `*` and `?` allowed; takes precedence over `allow`."""


class ModelAllowed(Evaluator):
    """The share of model calls that a permitted model answered.

    score = 1 - model calls of models that are not permitted / model calls. A model is not permitted when it
    is denied, or when there is a list of allowed models and it is not on it; deny wins. Names are compared as
    telemetry has them, upper and lower case included: that of the model that answered, else that of the
    requested one. Where the model of a call is not known and no other is refused, or no model is known at
    all, there is no verdict.
    """

    id = "model-allowed"
    needs_calls = False
    over_models = True

    def __init__(self, config: NoSettings, criteria: ModelAllowedCriteria) -> None:
        self._allowed = None if criteria.allow is None else [name_pattern(name) for name in criteria.allow]
        self._denied = [name_pattern(name) for name in criteria.deny]

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; not evaluated where telemetry does not contain which models answered."""
        models = self._models(run)
        refused = self._refused(models)
        if not refused and (not models or None in models):
            return _not_captured("the model of every model call")
        names = list(dict.fromkeys(refused))
        details: dict[str, JsonValue] = {
            "models": [*dict.fromkeys(model for model in models if model is not None)],
            "model_calls": len(models),
            "not_permitted": [*names],
        }
        if not refused:
            return Score(1.0, details, ("all models were permitted",))
        lines = f"not permitted: {', '.join(names[:_SHOWN])}", f"{len(refused)} of {len(models)} model calls"
        return Score((len(models) - len(refused)) / len(models), details, lines)

    def attainable(self, run: AgentRun) -> tuple[float, float]:
        """Further models may be permitted or not, but what was refused stays requested."""
        return 0.0, _BELOW_ONE if self._refused(self._models(run)) else 1.0

    @staticmethod
    def _models(run: AgentRun) -> Sequence[str | None]:
        return [call.model for call in run.model_calls] or run.models

    def _refused(self, models: Sequence[str | None]) -> list[str]:
        return [model for model in models if model is not None and not self._is_permitted(model)]

    def _is_permitted(self, model: str) -> bool:
        if any(pattern.fullmatch(model) for pattern in self._denied):
            return False
        return self._allowed is None or any(pattern.fullmatch(model) for pattern in self._allowed)


def _usage_of_calls(run: AgentRun) -> TokenUsage:
    return sum_of_usage(call.usage for call in run.model_calls if call.usage is not None)


def _not_captured(what: str) -> NotEvaluated:
    return NotEvaluated.not_captured(f"telemetry does not contain {what}")


def _time(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds < 1000 else f"{seconds:.0f} s"
