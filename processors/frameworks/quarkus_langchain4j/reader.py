"""Quarkus LangChain4j: spans of AI services, which bear nothing but a name, and texts of its model turns.

Its calls follow the GenAI conventions.
"""

from typing import Final

from processors.frameworks.dialect import AgentReading, Conversation, SpanRole, ToolReading
from processors.frameworks.framework import Framework
from processors.frameworks.shapes.messages import ChatMessage
from processors.spans.span import Span

_SCOPE = "io.quarkus.opentelemetry"
_SERVICE_PREFIX = "langchain4j.aiservices."
_ANSWER = "gen_ai.completion"


class _QuarkusLangChain4j:
    name: Final = "quarkus_langchain4j"
    rank: Final = 20
    keys: Final = (_ANSWER,)
    scopes: Final = (_SCOPE,)
    frameworks: Final = (
        Framework(
            name="Quarkus LangChain4j",
            versions="1 (read from its source)",
            reads="`execute_tool` spans are calls, `langchain4j.aiservices.` spans are runs of the agent "
            "named by the AI service's class; the answer from `gen_ai.completion`",
            capture="`quarkus.langchain4j.tracing.include-tool-arguments`, `.include-tool-result` and "
            "`.include-completion`",
            unknown="what was asked: all messages of a prompt are one text; with LangChain4j's own "
            "`ObservationChatModelListener` calls, values and messages, of which it tells nothing",
        ),
    )

    def role(self, span: Span) -> SpanRole | None:
        if span.envelope.scope_name != _SCOPE:
            return None
        if _ANSWER in span.attributes:
            return SpanRole.MODEL
        return SpanRole.AGENT if span.name.startswith(_SERVICE_PREFIX) else None

    def tool(self, span: Span) -> ToolReading:
        return ToolReading()

    def agent(self, span: Span) -> AgentReading:
        service, _, _ = span.name.removeprefix(_SERVICE_PREFIX).partition(".")
        return AgentReading(name=service if span.name.startswith(_SERVICE_PREFIX) else "")

    def conversation(self, span: Span) -> Conversation:
        answer = span.attributes.text(_ANSWER)
        return Conversation(read_output=lambda: [ChatMessage("assistant", answer)] if answer else [])


DIALECT = _QuarkusLangChain4j()
