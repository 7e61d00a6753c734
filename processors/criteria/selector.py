"""Which runs an evaluation applies to: `when`, the conditions on a run, and `sample`, the share of traces."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

from pydantic import Field, JsonValue, field_validator
from typing_extensions import TypeAliasType

from processors.comparison import (
    Expected,
    Matcher,
    OneTarget,
    Target,
    all_fit,
    compile_expected,
    expected_value_problems,
    fits,
    fits_members,
    occurs,
    target_of,
)
from processors.criteria.criteria_template import has_references, input_object, unknown_input
from processors.documents import EvaluatorModel, Path
from processors.model import AgentRun, JsonObject, NotEvaluated, NotEvaluatedReason, OverLimitError

NO_CONDITION = Matcher(lambda _: True, meets_absence=True, reads_masks=True)
"""A condition that was left out."""
_NO_REFERENCE = "$input cannot stand in `when`: it is what runs are selected by"
_MASKED = NotEvaluated.not_captured("`when`: redaction masked what it is compared with")


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """Conditions on a run, all of which have to hold.

    `input`: of an object those members are looked at that the condition names; a text that writes an object
    counts as one. Any other condition is compared with the input as a whole. `session` is compared with
    the session, of which there may be none. Of attributes (of the resource, and of the span that carries the
    run's results) those are looked at that are named. Of each kind in `called` an event has to be in the run.
    """

    input: Expected = NO_CONDITION
    session: Expected = NO_CONDITION
    resource_attributes: Mapping[str, Expected] = field(default_factory=dict)
    span_attributes: Mapping[str, Expected] = field(default_factory=dict)
    called: tuple[Target, ...] = ()

    def selects(self, run: AgentRun) -> bool | NotEvaluated:
        """Whether the evaluation applies to `run`, or why that is not known.

        It is not where every other condition holds and what one depends on is not known; nor, of a run that
        is not complete, where a call that is looked for may still come.
        """
        unknown: NotEvaluated | None = None
        try:
            for answer in self._answers(run):
                if answer is False:
                    return False
                if isinstance(answer, NotEvaluated):
                    unknown = unknown or answer
            return True if unknown is None else unknown
        except OverLimitError:
            return NotEvaluated.over_limit("`when`: a $schema takes too long to check")

    def _answers(self, run: AgentRun) -> Iterator[bool | NotEvaluated]:
        """Whether each condition holds, or why that is not known; those that cost least first."""
        held = all_fit(self._held(run))
        yield _MASKED if held is None else held
        if self.input is not NO_CONDITION:
            unknown = unknown_input(run, "`when`")
            held = None if unknown is not None else _fits_input(self.input, run.input)
            yield (unknown or _MASKED) if held is None else held
        for target in self.called:
            occurred = occurs(target, run)
            if isinstance(occurred, NotEvaluated):
                yield NotEvaluated(occurred.reason, f"`when`: {occurred.text}")
            elif occurred or run.complete:
                yield occurred
            else:
                reason = NotEvaluatedReason(run.incomplete_reason)
                yield NotEvaluated(reason, f"`when`: {target.label} may be among what is missing of this run")

    def _held(self, run: AgentRun) -> Iterator[bool | None]:
        """Whether each condition but that on the input holds."""
        if self.resource_attributes:
            yield _members_fit(run.resource, self.resource_attributes)
        if self.session is not NO_CONDITION:
            session: dict[str, JsonValue] = {} if run.session is None else {"session": run.session}
            yield _members_fit(session, {"session": self.session})
        if self.span_attributes:
            yield _members_fit(run.span_attributes, self.span_attributes)


Condition = TypeAliasType("Condition", JsonValue)
"""A value in which matchers may stand, all but `$input`."""


class WhenEntry(EvaluatorModel):
    """Which runs an evaluation applies to: all conditions have to hold. Matchers may stand in each.

    Runs that are not selected give no result.
    """

    input: Condition = Field(default=None, examples=[{"action": "get_forecast"}, {"$regex": "(?i)forecast"}])
    """The run's input: of an object the members that have to be there, else all of it."""
    session: Condition = Field(default=None, examples=[{"$glob": "load-test-*"}])
    """The run's session (conversation)."""
    resource_attributes: dict[str, Condition] = Field(
        default_factory=dict, examples=[{"deployment.environment.name": {"$in": ["staging", "production"]}}]
    )
    """Resource attributes that have to be there, by name."""
    span_attributes: dict[str, Condition] = Field(default_factory=dict, examples=[{"user.tier": "gold"}])
    """Attributes of the agent's own span that have to be there, by name."""
    called: OneTarget | list[OneTarget] = Field(
        default_factory=list, examples=["refund", {"tool": "refund", "status": "succeeded"}]
    )
    """What has to have happened in the run: a target as in `tool-constraints`, or several, all of which have
    to be there. A call may be required to have failed, or to have returned something."""

    @field_validator("called")
    @classmethod
    def _check_targets(cls, called: OneTarget | list[OneTarget]) -> OneTarget | list[OneTarget]:
        for target in _listed(called):
            target_of(target)
            if not isinstance(target, str) and has_references(target.model_dump(mode="json")):
                raise ValueError(_NO_REFERENCE)
        return called


def when_problems(written: JsonObject) -> Iterator[tuple[Path, str]]:
    """The place in `written` and the message of every mistake that the shape does not show."""
    if not written:
        yield (), f"expected at least one condition: {', '.join(WhenEntry.model_fields)}"
    for key, value in written.items():
        conditions: dict[Path, JsonValue] = {(key,): value}
        if key == "called":
            continue
        if key not in ("input", "session") and isinstance(value, dict):
            conditions = {(key, name): member for name, member in value.items()}
        for path, condition in conditions.items():
            yield from expected_value_problems(condition, path)
            if has_references(condition):
                yield path, _NO_REFERENCE


def selector_of(entry: WhenEntry) -> Selector:
    """The selector that `entry`, in which there are no mistakes, stands for."""
    written = entry.model_fields_set
    return Selector(
        input=compile_expected(entry.input) if "input" in written else NO_CONDITION,
        session=compile_expected(entry.session) if "session" in written else NO_CONDITION,
        resource_attributes={key: compile_expected(one) for key, one in entry.resource_attributes.items()},
        span_attributes={key: compile_expected(one) for key, one in entry.span_attributes.items()},
        called=tuple(map(target_of, _listed(entry.called))),
    )


def _listed(called: OneTarget | list[OneTarget]) -> list[OneTarget]:
    return called if isinstance(called, list) else [called]


def is_sampled(trace_id: bytes, rate: float) -> bool:
    """Whether a share of `rate` of all traces, from 0 to 1, holds this one.

    Decided by a hash of the trace id alone: every evaluation, process and replay draws the same traces for
    one rate, and a higher rate draws those of a lower one and more.
    """
    return int.from_bytes(blake2b(trace_id, digest_size=8).digest()) < rate * (1 << 64)


def _members_fit(actual: Mapping[str, JsonValue], expected: Mapping[str, Expected]) -> bool | None:
    return fits_members(expected, actual, subset=True)


def _fits_input(expected: Expected, actual: JsonValue) -> bool | None:
    if isinstance(expected, dict):
        members = input_object(actual)
        if members is not None:
            return _members_fit(members, expected)
    return fits(expected, actual)
