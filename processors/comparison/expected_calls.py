"""Expected tool calls as the criteria of the `trajectory-*` evaluators write them."""

from typing import Literal

from pydantic import Field
from pydantic import JsonValue as AnyJson

from processors.comparison.argument_match import ArgumentMode
from processors.comparison.tool_call_config import ToolSelectionConfig
from processors.documents.evaluator_model import EvaluatorModel, ExpectedJson
from processors.documents.lenient_bool import LenientBool


class TrajectoryConfig(ToolSelectionConfig):
    """Settings of the `trajectory-*` evaluators."""

    args_match: ArgumentMode = Field(
        default="exact",
        description="How the arguments of expected calls that name any are compared: exact, these and no "
        "other; partial, these and maybe others; partial_deep, partial at every depth; subset, none but "
        "these; ignore, not at all.",
    )
    ignore_args: tuple[str, ...] = Field(
        default=(),
        description="Names of arguments, as globs, that are left out on both sides.",
        examples=[["request_id", "*_at"]],
    )
    default_args: dict[str, dict[str, AnyJson]] = Field(
        default_factory=dict,
        description="For each tool arguments that a call may spell out or leave out alike.",
        examples=[{"get_weather": {"unit": "celsius"}}],
    )
    include_failed: LenientBool = Field(
        default=True, description="Whether calls that ended in an error count as calls."
    )


class OrderedTrajectoryConfig(TrajectoryConfig):
    """Settings of the `trajectory-*` evaluators that look at the order of calls."""

    parallel: Literal["any_order", "as_recorded"] = Field(
        default="any_order",
        description="The order of calls that ran side by side: any_order, the one that fits best; "
        "as_recorded, the one that the trace shows.",
    )


class ExpectedCall(EvaluatorModel):
    """One call to expect."""

    name: str = Field(description="Tool name (or call id).")
    args: dict[str, ExpectedJson] | None = Field(
        default=None,
        description="Expected arguments with their values, matchers such as {$glob: Lon*} among them; left "
        "out, any will do.",
    )
    id: str | None = Field(
        default=None, description="Id of the call; calls without an id are matched by name."
    )
    args_match: ArgumentMode | None = Field(
        default=None, description="How the arguments of this call are compared, if not as configured."
    )
    occurrence: Literal["any", "first", "last", "all"] | int = Field(
        default="any",
        description="Which calls of the tool may stand for this one: any; the first; the last; a position "
        "from 0; or all, any of them once all of them fit.",
    )


class TrajectoryCriteria(EvaluatorModel):
    """The calls to expect."""

    tool_calls: list[str | ExpectedCall] = Field(
        description="The calls to expect, in order: tool names, or objects with arguments.",
        examples=[["search_flights", {"name": "book_flight", "args": {"seat": "4A"}}]],
    )
