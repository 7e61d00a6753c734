"""Files that people write: YAML with places, shapes, and what is wrong in them."""

from processors.documents.models import (
    MASK,
    EvaluatorModel,
    ExpectedJson,
    ExpectedObject,
    StrictModel,
    model_problems,
    second_spelling,
    validated,
    without_user_info,
)
from processors.documents.problems import Path, Problem, ProblemsFound, did_you_mean, path_text
from processors.documents.yaml import LocatedYaml, Place, expand, plain_scalar, read_yaml

__all__ = [
    "MASK", "EvaluatorModel", "ExpectedJson", "ExpectedObject", "LocatedYaml", "Path", "Place", "Problem",
    "ProblemsFound", "StrictModel", "did_you_mean", "expand", "model_problems", "path_text", "plain_scalar",
    "read_yaml", "second_spelling", "validated", "without_user_info",
]  # fmt: skip
