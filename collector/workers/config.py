"""Settings of custom evaluators: where their code is, and what their workers may use.

Only the service file names code. Criteria choose among the names given there.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Self, TypeAlias

from pydantic import AfterValidator, Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from collector.config_fields import FilePath, PositiveDuration
from processors.criteria import evaluator_types
from processors.documents import StrictModel

_NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*\Z")
_RESERVED_PREFIX = "uipath-"
_IDENTIFIERS = r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$"
_ENTRY_POINT = r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$"


class CustomEvaluatorConfig(StrictModel):
    """A custom evaluator: a function or class in a file, or one in an installed package."""

    file: FilePath | None = Field(default=None, examples=["checks/my_check.py"])
    """A Python file."""
    function: str = Field(default="grade", pattern=_IDENTIFIERS)
    """The function or class in `file`."""
    entry_point: str | None = Field(default=None, pattern=_ENTRY_POINT, examples=["my_package.checks:grade"])
    """In place of `file`: a function or class in an installed package."""

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        if (self.file is None) == (self.entry_point is None):
            raise ValueError('expected one of the keys "file" and "entry_point"')
        if self.entry_point is not None and "function" in self.model_fields_set:
            raise ValueError('"function" belongs to "file"; an entry point names its own')
        return self

    @model_serializer(mode="wrap")
    def _without_unused_function(self, serialize: SerializerFunctionWrapHandler) -> dict[str, object]:
        """What can be read back: an entry point excludes a function."""
        content: dict[str, object] = serialize(self)
        return content if self.file is not None else {"entry_point": content["entry_point"]}


def _checked_names(evaluators: Mapping[str, CustomEvaluatorConfig]) -> Mapping[str, CustomEvaluatorConfig]:
    built_in = evaluator_types()
    for name in evaluators:
        if not _NAME.match(name) or name.startswith(_RESERVED_PREFIX):
            raise ValueError(
                f'not a name for an evaluator: "{name[:100]}"; expected lower-case letters, digits and '
                f'hyphens, not starting with "{_RESERVED_PREFIX}"'
            )
        if name in built_in:
            raise ValueError(f'"{name}" is a built-in evaluator; expected a name of its own')
    return evaluators


CustomEvaluatorConfigs: TypeAlias = Annotated[
    Mapping[str, CustomEvaluatorConfig], AfterValidator(_checked_names)
]
"""Custom evaluators by the name that criteria use."""


class WorkersConfig(StrictModel):
    """Custom evaluators and the worker processes in which they run."""

    custom_evaluators: CustomEvaluatorConfigs = Field(
        default_factory=dict, examples=[{"my-check": {"file": "checks/my_check.py", "function": "grade"}}]
    )
    """Evaluators of your own, by the name that criteria use."""
    workers: int = Field(default=1, ge=1, le=64)
    """Processes in which custom evaluators run."""
    timeout: PositiveDuration = 1.0
    """How long a custom evaluator may take for one run."""
    memory_limit_mib: int = Field(default=512, ge=64)
    """Mebibytes of address space of each of these processes."""
