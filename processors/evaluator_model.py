"""The Pydantic base of what evaluators take from criteria files."""

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic.alias_generators import to_camel


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
