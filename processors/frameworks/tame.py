"""One row for each convention that only names its attributes and spans differently: adding one is a row.

What each reads, and which versions it was built from, is in `tame.md`.
"""

from processors.shapes.attribute_reading import first_text
from processors.shapes.dialect import Conversation, Dialect, SpanRole
from processors.shapes.dialect_functions import (
    Sign,
    agent_fields,
    by_signs,
    model_messages,
    name_after,
    tool_fields,
)
from processors.shapes.known_names import MISTRAL_SCOPE
from processors.shapes.messages import assistant_messages
from processors.spans import Span


def _service_of_quarkus(span: Span) -> str:
    return name_after("langchain4j.aiservices.")(span).partition(".")[0]


TABLE = (
    Dialect(  # Langfuse attributes, with agents and failures written in another way
        name="agent_sdk_go",
        rank=20,
        keys=("langfuse.observation.metadata.agent_name", "tool.error"),
        role=by_signs(
            Sign(
                SpanRole.AGENT,
                present=("langfuse.observation.metadata.agent_name",),
                names=("agent.Run", "agent.RunStream"),
            ),
            Sign(SpanRole.TOOL, present=("tool.error", "tool.result")),
        ),
        tool=tool_fields(error=("tool.error",)),
        agent=agent_fields(
            name=("langfuse.observation.metadata.agent_name",), session=("langfuse.session.id",)
        ),
    ),
    Dialect(  # runs before 0.7; all else is in the GenAI conventions, or read as spans by hand are
        name="koog",
        rank=20,
        keys=("gen_ai.agent.id",),
        role=by_signs(
            Sign(
                SpanRole.AGENT,
                present=("gen_ai.agent.id",),
                values=(("gen_ai.operation.name", "invoke_agent"),),
                prefixes=("run.",),
            )
        ),
        agent=agent_fields(name=("gen_ai.agent.id",)),
    ),
    Dialect(  # the span around the turns and calls of one request, which bears no attribute at all
        name="microsoft_extensions_ai",
        rank=20,
        keys=(),
        scopes=("Experimental.Microsoft.Extensions.AI",),
        role=by_signs(
            Sign(
                SpanRole.WORKFLOW, names=("orchestrate_tools",), scope="Experimental.Microsoft.Extensions.AI"
            )
        ),
    ),
    Dialect(  # the span around the requests and calls of one run of a conversation, without attributes
        name="mistral",
        rank=20,
        keys=(),
        scopes=(MISTRAL_SCOPE,),
        role=by_signs(Sign(SpanRole.WORKFLOW, names=("conversation",), scope=MISTRAL_SCOPE)),
    ),
    Dialect(  # AI services, whose spans bear nothing but a name, and the texts of model turns
        name="quarkus_langchain4j",
        rank=20,
        keys=("gen_ai.completion",),
        scopes=("io.quarkus.opentelemetry",),
        role=by_signs(
            Sign(SpanRole.MODEL, present=("gen_ai.completion",), scope="io.quarkus.opentelemetry"),
            Sign(SpanRole.AGENT, prefixes=("langchain4j.aiservices.",), scope="io.quarkus.opentelemetry"),
        ),
        agent=agent_fields(name=_service_of_quarkus),
        conversation=lambda span: Conversation(
            read_output=lambda: assistant_messages(first_text(span.attributes, ("gen_ai.completion",)))
        ),
    ),
    Dialect(
        name="spring_ai",
        rank=5,
        keys=("spring.ai.tool.definition.name", "spring.ai.kind"),
        role=by_signs(
            Sign(SpanRole.TOOL, present=("spring.ai.tool.definition.name",)),
            Sign(SpanRole.AGENT, values=(("spring.ai.kind", "chat_client"),)),
            Sign(SpanRole.OTHER),
        ),
        tool=tool_fields(
            name=("spring.ai.tool.definition.name",),
            call_id=("spring.ai.tool.call.id",),
            arguments=("spring.ai.tool.call.arguments",),
            result=("spring.ai.tool.call.result",),
        ),
        agent=agent_fields(session=("spring.ai.chat.client.conversation.id",)),
        conversation=model_messages(
            tools=("spring.ai.chat.client.tool.names",),
            schema=("spring.ai.tool.definition.name", "spring.ai.tool.definition.schema"),
        ),
    ),
    Dialect(  # GenAI conventions, with tools offered and tools not found written in a way of its own
        name="trpc_agent_go",
        rank=9,
        keys=("trpc.go.agent.event_id", "gen_ai.request.tool.definitions"),
        role=by_signs(
            Sign(SpanRole.MODEL, present=("gen_ai.request.tool.definitions",)),
            Sign(SpanRole.TOOL, values=(("gen_ai.tool.name", "<not found>"),)),
        ),
        tool=tool_fields(name=name_after("execute_tool ")),
        conversation=model_messages(tools=("gen_ai.request.tool.definitions",)),
    ),
)
