"""Which events of a run are meant: calls by what is known of them, messages and the answer by their text.

`TargetEntry` is how criteria write it, `Target` what it means. Whether an event is meant has three values:
None where that depends on what is not known. docs/constraints.md has the tables.
"""

from collections.abc import Mapping
from copy import copy
from typing import Literal, TypeAlias

from pydantic import Field, model_validator

from processors.comparison.captured_value import (
    call_label,
    comparable_result_text,
    comparable_result_value,
    is_oversized,
    looks_failed,
    readable_arguments,
    took_effect,
    unknown_arguments,
    unknown_result,
)
from processors.comparison.expected_value import (
    Expected,
    Matcher,
    alternatives,
    compile_expected,
    fits,
    fits_among,
    fits_members,
    matching_cost,
)
from processors.comparison.tool_selection import ToolPatterns
from processors.comparison.value_equality import all_fit, any_fits
from processors.documents import EvaluatorModel, ExpectedJson, ExpectedObject
from processors.model import (
    AgentRun,
    Decision,
    JsonObject,
    JsonValue,
    NotEvaluated,
    ToolCall,
    ValueState,
    json_text,
    may_be_masked,
)

CallStatus: TypeAlias = Literal["any", "succeeded", "failed"]
"""Which calls are meant: all; those that took effect (`took_effect`); those that did not."""

CallDecision: TypeAlias = Literal["approved", "denied", "pending", "none"]
"""What was decided about a call; none: telemetry shows no decision."""

_ANY_TEXT: JsonValue = {"$any": True}
_ANYTHING: Expected = compile_expected(_ANY_TEXT)
_OF_ANY_VALUE = frozenset({"result", "agent", "duration", "answer"})
_KEYS = ("tool", "args", "result", "status", "decision", "agent", "duration", "message", "answer")


class MessageEntry(EvaluatorModel):
    """A kind of messages."""

    role: Literal["user", "assistant"]
    """Whose message it is. Of the assistant's those count that have text, beside calls or not."""
    text: ExpectedJson = Field(default=_ANY_TEXT, examples=[{"$regex": "(?i)\\byes\\b"}])
    """Its text; matchers may stand here."""


class TargetEntry(EvaluatorModel):
    """A kind of events: calls, unless it is `message` or `answer`. All that is written has to hold."""

    tool: str | None = Field(default=None, min_length=1)
    """Name of the tool, `*` and `?` allowed; left out, any."""
    args: ExpectedObject | None = Field(default=None, examples=[{"amount": {"$range": [100, None]}}])
    """Arguments that the call has among others; matchers may stand in them."""
    result: ExpectedJson = Field(default=None, examples=[{"status": "pending"}, {"$regex": "(?i)fraud"}])
    """What the call returned: of an object the members that it has among others, at every depth, else all of
    it. Texts and matchers for texts are compared with the result as text."""
    status: CallStatus = "any"
    """Which calls are meant: any; succeeded, those that took effect; failed, those that ended in an error,
    whose result reads like one, or that were never executed."""
    decision: CallDecision | None = None
    """What a person or a policy decided about the call; none: telemetry shows no decision. Where it shows
    none, whether the call was approved is not known."""
    agent: ExpectedJson = Field(default=None, examples=["planner", {"$glob": "*-reviewer"}])
    """Name of the agent that made the call."""
    duration: ExpectedJson = Field(default=None, examples=[{"$range": [30, None]}])
    """How long the call took, in seconds."""
    message: MessageEntry | None = None
    """A message of the conversation in place of a call."""
    answer: ExpectedJson = Field(default=None, examples=[{"$regex": "5-7 days"}])
    """The run's output in place of a call; it stands after everything else."""

    @model_validator(mode="after")
    def _is_one_kind(self) -> "TargetEntry":
        given = [name for name in _KEYS if name in self.model_fields_set and not self._is_default(name)]
        texts = [name for name in given if name in ("message", "answer")]
        if not given:
            raise ValueError("expected a tool, a message or the answer")
        if texts and len(given) > 1:
            other = next(name for name in given if name != texts[-1])
            raise ValueError(f"{texts[-1]}: expected no {other} with it")
        return self

    def _is_default(self, name: str) -> bool:
        """Whether a key holds its default; null is a value for those that expect any."""
        return name not in _OF_ANY_VALUE and getattr(self, name) == type(self).model_fields[name].default

    def compiled(self) -> "Target":
        """What it means; raises ValueError for a matcher that is none."""
        given = self.model_fields_set
        facts: dict[str, JsonValue] = {
            name: getattr(self, name) for name in ("agent", "duration") if name in given
        }
        return Target(
            self.tool or "*",
            self.args,
            self.status,
            decision=self.decision,
            result=(self.result,) if "result" in given else (),
            facts=facts,
            role=None if self.message is None else self.message.role,
            text=self._texts(),
        )

    def _texts(self) -> tuple[JsonValue, ...]:
        if self.message is not None:
            return (self.message.text,)
        return (self.answer,) if "answer" in self.model_fields_set else ()


OneTarget: TypeAlias = str | TargetEntry
"""A kind of events as criteria write it: the name of a tool, or an object."""


def target_of(written: OneTarget) -> "Target":
    """What `written` means; raises ValueError for a matcher that is none."""
    return Target(written) if isinstance(written, str) else written.compiled()


class Target:
    """A kind of events.

    `kind` is `call`, `message` or `answer`. Raises ValueError when a matcher cannot be used. `result` and
    `text` hold what is expected, or nothing; `facts` what is expected of `agent` and `duration`.
    """

    __slots__ = (
        "_arguments", "_decision", "_facts", "_result", "_status", "_text", "cost", "has_facts", "kind",
        "label", "result_cost", "role", "tool", "tools",
    )  # fmt: skip

    def __init__(
        self,
        tool: str,
        arguments: JsonObject | None = None,
        status: CallStatus = "any",
        *,
        decision: CallDecision | None = None,
        result: tuple[JsonValue, ...] = (),
        facts: Mapping[str, JsonValue] | None = None,
        role: Literal["user", "assistant"] | None = None,
        text: tuple[JsonValue, ...] = (),
    ) -> None:
        self.kind: Literal["call", "message", "answer"] = (
            "message" if role is not None else "answer" if text else "call"
        )
        self.tool = tool
        self.tools = ToolPatterns([tool] if self.kind == "call" else ())
        self._arguments: Expected = compile_expected(arguments) if arguments else None
        self.cost = 0 if self._arguments is None else 1 + matching_cost(self._arguments)
        """What a character of the arguments costs to compare; 0: they need not be known."""
        self._status = status
        self._decision = decision
        self._result: Expected = compile_expected(result[0]) if result else _ANYTHING
        self.result_cost = 1 + matching_cost(self._result) if result else 0
        """What a character of the result costs to compare; 0: it need not be known."""
        self._facts = {name: compile_expected(value) for name, value in (facts or {}).items()}
        self.has_facts = status != "any" or decision is not None or bool(self._facts)
        """Whether `facts_fit` is to be looked at."""
        self.role = role
        self._text: Expected = compile_expected(text[0]) if text else _ANYTHING
        self.label = self._label(arguments, result, facts or {}, text)

    def _label(
        self,
        arguments: JsonObject | None,
        result: tuple[JsonValue, ...],
        facts: Mapping[str, JsonValue],
        text: tuple[JsonValue, ...],
    ) -> str:
        if self.kind != "call":
            name = "answer" if self.role is None else f"{self.role} message"
            return name if text[0] == _ANY_TEXT else f"{name} {_short(text[0])}"
        parts = [call_label(self.tool, arguments) if arguments else self.tool]
        parts += [self._status] if self._status != "any" else []
        if self._decision is not None:
            parts.append("without a decision" if self._decision == "none" else self._decision)
        parts += [f"that returned {_short(each)}" for each in result]
        parts += [f"with {name} {_short(value)}" for name, value in facts.items()]
        return " ".join(parts)

    @property
    def identity(self) -> "Target":
        """The kind of events that these are of, whatever they returned or say, and was decided about them."""
        other = copy(self)
        other._decision = None
        other._result, other.result_cost = _ANYTHING, 0
        other._facts = {name: value for name, value in self._facts.items() if name != "duration"}
        other._text = _ANYTHING
        other.label = self.tool if self.kind == "call" else f"{self.role} message" if self.role else "answer"
        return other

    def facts_fit(self, call: ToolCall, agent: str, *, may_change: bool) -> bool | None:
        """Whether all but tool, arguments and result of `call` is as required.

        None where that is not known or, if `may_change`, further spans could change it. `agent` is whose
        run it is.
        """
        verdict = self._status_fits(call, may_change)
        if self._decision is not None and verdict is not False:
            verdict = all_fit((verdict, self._decision_fits(call, may_change)))
        for name, expected in self._facts.items():
            if verdict is not False:
                verdict = all_fit((verdict, _fact_fits(name, expected, call, agent, may_change)))
        return verdict

    def arguments_fit(self, arguments: JsonObject) -> bool | None:
        """Whether `arguments` hold the expected ones; None where masks in them leave that open."""
        if isinstance(self._arguments, Mapping):
            return fits_members(self._arguments, arguments, subset=True)
        return self._arguments is None or fits(self._arguments, arguments)

    def result_fits(self, call: ToolCall, *, may_change: bool) -> bool | None:
        """Whether `call` returned what is expected; what was not executed, or raised, returned nothing.

        None where the result is not known, or masks in it leave that open, and while it `may_change`.
        """
        if returned_nothing(call):
            return None if may_change else False
        known = known_result(call, may_change=may_change)
        if known is None:
            return None
        text, value = known
        return any_fits(
            fits(expected, text) if _is_about_text(expected) else fits_among(expected, value)
            for expected in alternatives(self._result)
        )

    def text_fits(self, content: JsonValue) -> bool | None:
        """Whether the text of a message, or the answer, is as expected; None where masks leave that open."""
        return any_fits(fits_among(expected, content) for expected in alternatives(self._text))

    @property
    def members(self) -> list[tuple[Literal["args", "result"], str]]:
        """The names of the arguments, and of the members of a result, that a call has to have."""
        parts: tuple[tuple[Literal["args", "result"], Expected], ...] = (
            ("args", self._arguments),
            ("result", self._result),
        )
        return [
            (part, name)
            for part, expected in parts
            if isinstance(expected, Mapping)
            for name, member in expected.items()
            if not (isinstance(member, Matcher) and member.meets_absence)
        ]

    def missing_fact(self, call: ToolCall, agent: str) -> NotEvaluated | None:
        """What is not known of `call`, of which it is open whether it is meant; None: nothing."""
        arguments = readable_arguments(call)
        if self.cost and (arguments is None or self.arguments_fit(arguments) is None):
            return unknown_arguments(call)
        if self.result_cost and self.result_fits(call, may_change=False) is None:
            return unknown_result(call)
        if self._decision is not None and self._decision_fits(call, may_change=False) is None:
            return NotEvaluated.not_captured(f"decision of {call.name}: telemetry shows none")
        for name, expected in self._facts.items():
            if _fact_fits(name, expected, call, agent, may_change=False) is None:
                return NotEvaluated.not_captured(f"{name} of {call.name}: absent")
        return unknown_arguments(call) if self.cost and may_be_masked(call.arguments_text) else None

    def _status_fits(self, call: ToolCall, may_change: bool) -> bool | None:
        if self._status == "any":
            return True
        if may_change and not (call.executed and looks_failed(call)):
            return None
        return took_effect(call) == (self._status == "succeeded")

    def _decision_fits(self, call: ToolCall, may_change: bool) -> bool | None:
        decision, expected = call.decision, self._decision
        if may_change and decision in (None, Decision.PENDING):
            return None
        if decision is not None:
            return decision.value == expected
        if expected == "none":
            return True
        # What was executed was neither denied nor does it wait, whatever telemetry shows.
        return False if call.executed and expected != "approved" else None


def returned_nothing(call: ToolCall) -> bool:
    """Whether there is known to be no result: `call` was not executed, or ended in an error without one."""
    if not call.executed or call.is_held_back:
        return True
    return call.error is not None and call.result_state is ValueState.ABSENT


def known_result(call: ToolCall, *, may_change: bool) -> tuple[str, JsonValue] | None:
    """What `call` returned, as text and as value; None where that is not known, or may still come."""
    text = comparable_result_text(call)
    if text is None or is_oversized(call.result_text):
        return None
    if may_change and call.result_state is ValueState.ABSENT:
        return None
    return text, comparable_result_value(call, text)


def messages_are_known(run: AgentRun, role: str) -> bool:
    """Whether `run.messages` shows every message of `role`, with its place among the calls.

    Those of users are known where any is and each has its place: nobody writes unnoticed while the agent
    works. Those of the assistant are where the messages show the calls between them too.
    """
    if run.messages_state not in (ValueState.PRESENT, ValueState.ABSENT):
        return False
    messages = run.messages
    if run.messages_state is ValueState.ABSENT and not any(message.role == role for message in messages):
        return False
    return not run.calls or all(
        message.after is not None for message in messages if role != "user" or message.role == "user"
    )


def message_places(run: AgentRun) -> list[int]:
    """For each of `run.messages` how many of `run.calls` precede it; all where its place is not known."""
    count = len(run.calls)
    places: list[int] = []
    least = 0
    for message in run.messages:
        least = count if message.after is None else max(least, min(message.after, count))
        places.append(least)
    return places


def _fact_fits(name: str, expected: Expected, call: ToolCall, agent: str, may_change: bool) -> bool | None:
    value: JsonValue
    if name == "agent":
        value = call.agent or agent
    elif may_change:
        return None
    else:
        value = call.duration_seconds
        if value is None:
            return None
    return fits(expected, value)


def _is_about_text(expected: Expected) -> bool:
    return isinstance(expected, str) or (isinstance(expected, Matcher) and expected.reads_text)


def _short(value: JsonValue) -> str:
    text = json_text(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
