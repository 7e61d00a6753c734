"""Which text evaluators of texts grade: something in the final output, or what an extractor finds.

One evaluator id serves evaluation sets of several origins. The key in its criteria says which rules hold, and
so which settings mean something.
"""

from collections.abc import Collection

from pydantic import Field, model_validator

from processors.comparison.letta_grading import ExtractorSettings
from processors.comparison.output_target import OutputConfig
from processors.documents.evaluator_model import EvaluatorModel
from processors.documents.lenient_bool import LenientBool

OUTPUT_SETTINGS = frozenset(
    {"target_output_key", "line_by_line_evaluator", "line_delimiter", "case_sensitive", "negated"}
)
"""The settings that belong to criteria on a value in the final output."""
EXTRACTOR_SETTINGS = frozenset({"extractor", "extractor_config"})
"""The settings that belong to a ground truth."""


class TextConfig(OutputConfig, ExtractorSettings):
    """Settings of evaluators that compare texts."""

    case_sensitive: LenientBool = Field(default=False, description="Whether case counts.")
    negated: LenientBool = Field(default=False, description="Whether the opposite is expected.")

    def refuse_unused(self, key: str, used: Collection[str]) -> None:
        """Raises ValueError, for people, when a setting that is not among `used` was changed.

        `key` is the key of the criteria with which it would have no effect.
        """
        for name, field in type(self).model_fields.items():
            if name not in used and getattr(self, name) != field.get_default(call_default_factory=True):
                raise ValueError(f"config.{name} has no effect with {key}")
        if EXTRACTOR_SETTINGS.isdisjoint(used) and self.extractor_is_given:
            raise ValueError(
                f"config.extractor has no effect with {key}, which is held against the final output"
            )


class OneKeyCriteria(EvaluatorModel):
    """Criteria of which exactly one key is given."""

    @model_validator(mode="after")
    def _one_key_is_given(self) -> "OneKeyCriteria":
        given = self.given()
        if len(given) != 1:
            found = f"found {' and '.join(given)}" if given else "found none of them"
            raise ValueError(f"expected exactly one of {', '.join(type(self).model_fields)}; {found}")
        return self

    def given(self) -> list[str]:
        """The keys that are given; null is not."""
        return [name for name in type(self).model_fields if getattr(self, name) is not None]
