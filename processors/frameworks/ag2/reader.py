"""AG2: `ag2.span.type`, beside the GenAI conventions that say all but one thing."""

from typing import Final

from processors.frameworks.dialect import AgentReading, Conversation, SpanRole, ToolReading
from processors.frameworks.framework import Framework
from processors.spans.span import Span

TYPE_KEY: Final = "ag2.span.type"
"""The attribute that tells what AG2 made a span for; `rewrite.py` joins the turns among them."""


class _AG2:
    name: Final = "ag2"
    rank: Final = 20
    keys: Final = (TYPE_KEY,)
    frameworks: Final = (
        Framework(
            name="AG2",
            versions="1.2 (`TelemetryMiddleware`), 0.14 (`autogen.opentelemetry`)",
            reads="`execute_tool` and `invoke_agent`; before version 1 every reply is an `invoke_agent` "
            "span: the replies of an agent between which its calls were executed are one run, and the calls "
            "belong to it, whichever agent executed them",
            capture="nothing; `capture_content=False` of `TelemetryMiddleware` leaves content out; before "
            "version 1 also `instrument_llm_wrapper(capture_messages=True)`",
            unknown="the agent's name where `TelemetryMiddleware` was given none: the service's name stands "
            "in; input and answer with content off; results beyond 8,192 characters",
        ),
    )

    def role(self, span: Span) -> SpanRole | None:
        return SpanRole.OTHER if span.attributes.get(TYPE_KEY) == "agent" else None

    def tool(self, span: Span) -> ToolReading:
        return ToolReading()

    def agent(self, span: Span) -> AgentReading:
        return AgentReading()

    def conversation(self, span: Span) -> Conversation:
        return Conversation()


DIALECT = _AG2()
