"""Selectors: which runs an evaluation applies to (`when`)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from processors.comparison.expected_value import Expected, Matcher, fits, fits_members
from processors.comparison.json_schema_check import SchemaTooComplexError
from processors.comparison.run_input import input_object, unknown_input
from processors.model.agent_run import AgentRun
from processors.model.evaluation_result import NotEvaluated, NotEvaluatedReason
from processors.model.json_value import JsonValue

NO_CONDITION = Matcher(lambda _: True, meets_absence=True)
"""A condition that was left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """Conditions on a run, all of which have to hold.

    `input`: of an object those members are looked at that the condition names; a text that writes an object
    counts as one. Any other condition is held against the input as a whole. `session` is held against the
    session, of which there may be none. Of attributes (of the resource, and of the span that carries the
    run's results) those are looked at that are named.
    """

    input: Expected = NO_CONDITION
    session: Expected = NO_CONDITION
    resource_attributes: Mapping[str, Expected] = field(default_factory=dict)
    span_attributes: Mapping[str, Expected] = field(default_factory=dict)

    def selects(self, run: AgentRun) -> bool | NotEvaluated:
        """Whether the evaluation applies to `run`, or why that cannot be told.

        It cannot where every other condition holds and the input is not known.
        """
        try:
            if self.resource_attributes and not _have(run.resource, self.resource_attributes):
                return False
            if self.session is not NO_CONDITION and not _have(_session(run), {"session": self.session}):
                return False
            if self.span_attributes and not _have(run.span_attributes, self.span_attributes):
                return False
            if self.input is NO_CONDITION:
                return True
            return unknown_input(run, "`when`") or _fits_input(self.input, run.input)
        except SchemaTooComplexError:
            return NotEvaluated(NotEvaluatedReason.OVER_LIMIT, "`when`: a $schema takes too long to check")


def _have(actual: Mapping[str, JsonValue], expected: Mapping[str, Expected]) -> bool:
    return fits_members(expected, actual, subset=True)


def _session(run: AgentRun) -> dict[str, JsonValue]:
    return {} if run.session is None else {"session": run.session}


def _fits_input(expected: Expected, actual: JsonValue) -> bool:
    if isinstance(expected, dict):
        members = input_object(actual)
        return members is not None and _have(members, expected)
    return fits(expected, actual)
