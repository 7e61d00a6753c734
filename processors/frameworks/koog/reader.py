"""Koog before 0.7, whose spans of runs are named after the run and not after the agent.

All else follows the GenAI conventions, or is read as spans by hand are.
"""

from typing import Final

from processors.frameworks.dialect import AgentReading, Conversation, SpanRole, ToolReading
from processors.frameworks.framework import Framework
from processors.frameworks.shapes.attribute_reading import first_text
from processors.spans.span import Span

_AGENT_ID = "gen_ai.agent.id"
_OPERATION = "gen_ai.operation.name"
_RUN_SPAN = "run."


class _Koog:
    name: Final = "koog"
    rank: Final = 20
    keys: Final = (_AGENT_ID,)
    frameworks: Final = (
        Framework(
            name="Koog",
            versions="1.1, its OpenTelemetry feature; calls and runs of 0.5",
            reads="`execute_tool` and `invoke_agent`, in 0.5 `tool.` and `run.` spans; the agent's name is "
            "its id; what is hidden is redacted",
            capture="`setVerbose(true)`",
            unknown="the name of an agent without an id: the service's name stands in; that a tool does not "
            "exist, whose call has a span like any other; which agent asked for an agent's tool, whose run "
            "is a trace of its own; in 0.5 what was asked and answered",
        ),
    )

    def role(self, span: Span) -> SpanRole | None:
        is_run = span.name.startswith(_RUN_SPAN) and span.attributes.get(_OPERATION) == "invoke_agent"
        return SpanRole.AGENT if is_run and _AGENT_ID in span.attributes else None

    def tool(self, span: Span) -> ToolReading:
        return ToolReading()

    def agent(self, span: Span) -> AgentReading:
        return AgentReading(name=first_text(span.attributes, (_AGENT_ID,)))

    def conversation(self, span: Span) -> Conversation:
        return Conversation()


DIALECT = _Koog()
