"""Runs with an answer, written short: what the user said, the tools returned, the agent answered."""

from processors.model import (
    AgentRun,
    JsonValue,
    ToolCall,
    ToolError,
    ValueState,
    decode_arguments,
    decode_result,
)
from tests.strategies import run_with


def call(
    result: JsonValue = None, *, name: str = "tool", error: str | None = None, **arguments: JsonValue
) -> ToolCall:
    """A call as telemetry tells it; `error` is the type of its error."""
    decoded_arguments = decode_arguments(dict(arguments))
    decoded = decode_result(result)
    return ToolCall(
        name=name,
        arguments=decoded_arguments.value,
        arguments_text=decoded_arguments.text,
        arguments_state=decoded_arguments.state,
        result=decoded.value,
        result_text=decoded.text,
        result_state=decoded.state,
        error=None if error is None else ToolError(type=error, message=""),
    )


def answered(output: JsonValue, *calls: ToolCall, user: JsonValue = "Go on") -> AgentRun:
    """A run in which `user` asked, the calls were made, and the agent said `output`."""
    return run_with(
        list(calls),
        input=user,
        input_state=ValueState.PRESENT,
        output=output,
        output_state=ValueState.PRESENT,
    )
