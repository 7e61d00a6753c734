"""Files that people write: YAML with places, shapes, and what is wrong in them."""

from processors.documents.models import (
    MASK,
    AnyKeyCriteria,
    EvaluatorModel,
    ExpectedJson,
    ExpectedObject,
    OneKeyCriteria,
    StrictModel,
    model_problems,
    second_spelling,
    validated,
    without_user_info,
)
from processors.documents.problems import InvalidInput, Path, Problem, did_you_mean, path_text
from processors.documents.yaml import LocatedYaml, Place, expand, plain_scalar, read_yaml

__all__ = [
    "MASK", "AnyKeyCriteria", "EvaluatorModel", "ExpectedJson", "ExpectedObject", "InvalidInput",
    "LocatedYaml", "OneKeyCriteria", "Path", "Place", "Problem", "StrictModel", "did_you_mean", "expand",
    "model_problems", "path_text", "plain_scalar", "read_yaml", "second_spelling", "validated",
    "without_user_info",
]  # fmt: skip
