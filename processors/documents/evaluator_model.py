"""The Pydantic base of what evaluators take from criteria files."""

from typing import Annotated, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, JsonValue, ValidationInfo, model_validator
from pydantic.alias_generators import to_camel


def _note_place(value: object, info: ValidationInfo) -> object:
    if isinstance(info.context, set) and isinstance(value, dict | list):
        info.context.add(id(value))
    return value


ExpectedJson: TypeAlias = Annotated[JsonValue, BeforeValidator(_note_place)]
"""An expected value in which matchers may stand (`processors.comparison.expected_value`).

The evaluator compiles it with `compile_expected` and compares with `fits`. In a field of any other type a
matcher is refused when criteria are loaded. A set as validation context takes the ids of such values.
"""

ExpectedObject: TypeAlias = Annotated[dict[str, JsonValue], BeforeValidator(_note_place)]
"""An expected object in which matchers may stand, or a matcher for an object as a whole."""


class EvaluatorModel(BaseModel):
    """Configuration or criteria of an evaluator.

    Keys are written in snake_case or in camelCase; where both spellings of one key are given, camelCase
    wins. Unknown keys are refused. Values are fixed once validated.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _camel_case_wins(cls, data: object) -> object:
        if not isinstance(data, dict):
            return data
        shadowed = {
            name
            for name, field in cls.model_fields.items()
            if field.alias is not None and field.alias != name and name in data and field.alias in data
        }
        return {key: value for key, value in data.items() if key not in shadowed} if shadowed else data
