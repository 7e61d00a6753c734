"""The `when` key of an evaluation: its shape, its mistakes, and the selector that it stands for."""

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from pydantic import Field, JsonValue

from processors.comparison.expected_value import Expected, compile_expected, expected_value_problems
from processors.criteria.criteria_template import has_references
from processors.criteria.selector import NO_CONDITION, Selector
from processors.documents.evaluator_model import EvaluatorModel
from processors.model.json_value import JsonObject

Path: TypeAlias = tuple[str | int, ...]


class WhenEntry(EvaluatorModel):
    """Which runs an evaluation applies to: all conditions have to hold. Matchers may stand in each.

    Runs that are not selected give no result.
    """

    input: JsonValue = Field(
        default=None,
        description="The run's input: of an object the members that have to be there, else all of it.",
        examples=[{"action": "get_forecast"}, {"$regex": "(?i)forecast"}],
    )
    session: JsonValue = Field(
        default=None, description="The run's session (conversation).", examples=[{"$glob": "load-test-*"}]
    )
    resource_attributes: dict[str, JsonValue] = Field(
        default_factory=dict,
        description="Resource attributes that have to be there, by name.",
        examples=[{"deployment.environment.name": {"$in": ["staging", "production"]}}],
    )
    span_attributes: dict[str, JsonValue] = Field(
        default_factory=dict,
        description="Attributes of the agent's own span that have to be there, by name.",
        examples=[{"user.tier": "gold"}],
    )


def when_problems(written: JsonObject) -> Iterator[tuple[Path, str]]:
    """The place in `written` and the message of every mistake that the shape does not tell."""
    if not written:
        yield (), f"expected at least one condition: {', '.join(WhenEntry.model_fields)}"
    for key, value in written.items():
        for path, condition in _conditions(key, value):
            yield from expected_value_problems(condition, path)
            if has_references(condition):
                yield path, "$input cannot stand in `when`: it is what runs are selected by"


def selector_of(entry: WhenEntry) -> Selector:
    """The selector that `entry`, in which there are no mistakes, stands for."""
    written = entry.model_fields_set
    return Selector(
        input=compile_expected(entry.input) if "input" in written else NO_CONDITION,
        session=compile_expected(entry.session) if "session" in written else NO_CONDITION,
        resource_attributes=_compiled_members(entry.resource_attributes),
        span_attributes=_compiled_members(entry.span_attributes),
    )


def _conditions(key: str, value: JsonValue) -> Iterator[tuple[Path, JsonValue]]:
    if key in ("input", "session") or not isinstance(value, dict):
        yield (key,), value
    else:
        yield from (((key, name), member) for name, member in value.items())


def _compiled_members(members: Mapping[str, JsonValue]) -> dict[str, Expected]:
    return {key: compile_expected(value) for key, value in members.items()}
