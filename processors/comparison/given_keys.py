"""Criteria of which one key, or any, has to be given."""

from typing import Self

from pydantic import model_validator

from processors.documents import EvaluatorModel


class AnyKeyCriteria(EvaluatorModel):
    """Criteria of which at least one key is given; a default is not."""

    @model_validator(mode="after")
    def _any_key_is_given(self) -> Self:
        if not _given(self):
            raise ValueError(f"expected at least one of {', '.join(type(self).model_fields)}")
        return self


class OneKeyCriteria(EvaluatorModel):
    """Criteria of which exactly one key is given; null is not."""

    @model_validator(mode="after")
    def _one_key_is_given(self) -> Self:
        given = _given(self)
        if len(given) != 1:
            result = f"found {' and '.join(given)}" if given else "found none of them"
            raise ValueError(f"expected exactly one of {', '.join(type(self).model_fields)}; {result}")
        return self


def _given(criteria: EvaluatorModel) -> list[str]:
    fields = type(criteria).model_fields.items()
    return [
        name
        for name, field in fields
        if getattr(criteria, name) != field.get_default(call_default_factory=True)
    ]
