"""The input of a run as criteria read it: a text, or the object that it writes."""

from processors.model import (
    AgentRun,
    JsonObject,
    JsonValue,
    NotEvaluated,
    NotEvaluatedReason,
    ValueState,
    parse_json,
)


def unknown_input(run: AgentRun, what: str) -> NotEvaluated | None:
    """Why `what` (the part of the criteria that needs it) is not known; None where the input is known.

    Of a run that is not complete the input may still arrive; otherwise it was not captured.
    """
    if run.input_state is ValueState.PRESENT:
        return None
    if not run.complete:
        return NotEvaluated(
            NotEvaluatedReason(run.incomplete_reason),
            f"{what}: spans of this run may be missing, and with them its input",
        )
    return NotEvaluated.not_captured(f"{what}: the input of the run is {run.input_state}")


def input_object(value: JsonValue) -> JsonObject | None:
    """`value` where it is an object or a text that writes one as JSON, else None."""
    if isinstance(value, str) and value.lstrip()[:1] == "{":
        try:
            value = parse_json(value)
        except ValueError:
            return None
    return value if isinstance(value, dict) else None
