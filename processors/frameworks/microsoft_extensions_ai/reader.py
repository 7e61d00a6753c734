"""Microsoft.Extensions.AI, the chat clients of .NET, on which its Agent Framework stands too.

Turns and calls follow the GenAI conventions. Only the span around the turns and calls of one request to a
chat client does not: it is known by its name, and bears at most how many tokens that took.
"""

from typing import Final

from processors.frameworks.dialect import AgentReading, Conversation, SpanRole, ToolReading
from processors.frameworks.framework import Framework
from processors.spans.span import Span

_SCOPE = "Experimental.Microsoft.Extensions.AI"
_LOOP = "orchestrate_tools"


class _MicrosoftExtensionsAI:
    name: Final = "microsoft_extensions_ai"
    rank: Final = 20
    keys: Final = ()  # known by its scope alone
    scopes: Final = (_SCOPE,)
    frameworks: Final = (
        Framework(
            name="Microsoft.Extensions.AI and Agent Framework (.NET)",
            versions="10 and 1 (read from their sources)",
            reads="`execute_tool` and `invoke_agent`; without an agent each `orchestrate_tools` span is a "
            "run; where the instrumentation stands outside of the function invocation, calls from messages",
            capture="`EnableSensitiveData = true`, or "
            "`OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true`",
            unknown="the agent's name where it has none, and for chat clients without an agent: the "
            "service's name stands in; calls, where the instrumentation stands outside and content is off",
        ),
    )

    def role(self, span: Span) -> SpanRole | None:
        return SpanRole.WORKFLOW if span.envelope.scope_name == _SCOPE and span.name == _LOOP else None

    def tool(self, span: Span) -> ToolReading:
        return ToolReading()

    def agent(self, span: Span) -> AgentReading:
        return AgentReading()

    def conversation(self, span: Span) -> Conversation:
        return Conversation()


DIALECT = _MicrosoftExtensionsAI()
