"""Files that people write: YAML with places, shapes, and what is wrong in them."""

from processors.documents.durations import (
    DURATION_PATTERN,
    Duration,
    PositiveDuration,
    format_duration,
    parse_duration,
    seconds_of,
)
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
    "DURATION_PATTERN", "MASK", "AnyKeyCriteria", "Duration", "EvaluatorModel", "ExpectedJson",
    "ExpectedObject", "InvalidInput", "LocatedYaml", "OneKeyCriteria", "Path", "Place", "PositiveDuration",
    "Problem", "StrictModel", "did_you_mean", "expand", "format_duration", "model_problems", "parse_duration",
    "path_text", "plain_scalar", "read_yaml", "second_spelling", "seconds_of", "validated",
    "without_user_info",
]  # fmt: skip
