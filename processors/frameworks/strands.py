"""Strands Agents: GenAI conventions whose values are content blocks, in events or in attributes."""

import re
from collections.abc import Mapping

from processors.model import ABSENT, CallCategory, decode_result, json_value, text_value
from processors.shapes.attribute_reading import first_result, first_text, operation_name
from processors.shapes.dialect import AgentReading, AwaitedCall, Dialect, SpanRole, ToolReading
from processors.shapes.known_names import FINAL_ANSWER_DESCRIPTIONS
from processors.shapes.members import failure, objects_at, text_at
from processors.shapes.messages import CallRequest, last_text, read_messages
from processors.shapes.result_envelope import BLOCKS, open_result
from processors.spans import Span

_STATUS = "gen_ai.tool.status"
_OLDER_STATUS = "tool.status"
_OUTPUT = "gen_ai.output.messages"
_INTERRUPTS = "[{'id': 'v1:"
"""How the printed interrupts begin that stand in place of the answer of a run that waits."""
_INTERRUPTED_CALL = re.compile(r"v1:(?:tool_call|before_tool_call|middleware_execute_tool):(.+):[^:]+")
"""The id of an interrupt in a call, with the call's id; those between two calls have none."""


def _role(span: Span) -> SpanRole | None:
    attributes = span.attributes
    if _STATUS in attributes or (_OLDER_STATUS in attributes and "gen_ai.tool.name" in attributes):
        return SpanRole.TOOL
    return SpanRole.AGENT if operation_name(attributes) == "invoke_agent" else None


def _tool(span: Span) -> ToolReading:
    attributes = span.attributes
    error = None
    if attributes.get(_STATUS) == "error":
        error = failure()
    elif attributes.get(_OLDER_STATUS) == "error":
        error = failure(_result_in_event(span))
    description = attributes.text("gen_ai.tool.description") or ""
    gives_answer = description.startswith(FINAL_ANSWER_DESCRIPTIONS)
    return ToolReading(
        category=CallCategory.FINAL_ANSWER if gives_answer else CallCategory.FUNCTION,
        result=first_result(attributes, ("gen_ai.tool.call.result",), BLOCKS).result,
        error=error,
    )


def _agent(span: Span) -> AgentReading:
    answer = _answer(span)
    interrupted = (answer is not None and answer.startswith(_INTERRUPTS)) or any(
        event.attributes.text("finish_reason") == "interrupt" for event in span.events
    )
    return AgentReading(
        session=first_text(span.attributes, ("session.id",)),
        output=ABSENT if interrupted else text_value(answer),
        awaited=_awaited(answer) if interrupted else {},
    )


def _awaited(interrupts: str | None) -> Mapping[str, AwaitedCall]:
    """The calls that wait for an answer to one of `interrupts`; the model's answer has their tools.

    Where the interrupts cannot be read, because they were cut off for one, it is no known call that waits.
    """
    awaited: dict[str, AwaitedCall] = {}
    for interrupt in objects_at(decode_result(interrupts).value):
        call = _INTERRUPTED_CALL.fullmatch(text_at(interrupt, "id"))
        if call is not None:
            awaited[call[1]] = AwaitedCall(CallRequest(name="", call_id=call[1]), "interrupt")
    return awaited or {"": AwaitedCall(CallRequest(name="", call_id=""), "interrupt")}


def _result_in_event(span: Span) -> str:
    """The text that the model was given as the call's result: versions before 1 have the error only there."""
    for event in span.events:
        if event.name == "gen_ai.choice":
            return open_result(decode_result(event.attributes.get("message")), BLOCKS).result.text or ""
    return ""


def _answer(span: Span) -> str | None:
    """The agent's answer, without the line end that printing the result puts behind it."""
    # OpenInference's processor moves the answer out of the event, and may leave the line end.
    converted = span.attributes.text("output.value")
    answer = converted if converted is not None and converted.endswith("\n") else None
    for event in span.events:
        if event.name == "gen_ai.choice":
            answer = event.attributes.text("message") or answer
        elif event.name == "gen_ai.client.inference.operation.details" and _OUTPUT in event.attributes:
            answer = (
                last_text(read_messages(json_value(event.attributes.get(_OUTPUT)), "assistant"), "assistant")
                or answer
            )
    return None if answer is None else answer.removesuffix("\n")


DIALECT = Dialect(
    "strands", (_STATUS, _OLDER_STATUS, "gen_ai.event.start_time"), _role, _tool, _agent, rank=8
)
