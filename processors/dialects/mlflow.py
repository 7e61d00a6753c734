"""MLflow tracing in its native form: `mlflow.*` attributes whose values are all JSON, texts in quotes.

Where it writes the GenAI conventions instead, it names no agent but in the metadata of a graph's run.
"""

from typing import Final

from processors.attribute_reading import first_arguments, first_result
from processors.attributes import Attributes
from processors.chat_envelope import decode_input, decode_output
from processors.dialect import AgentReading, Conversation, SpanRole, ToolReading
from processors.framework import Framework
from processors.json_value import JsonObject
from processors.messages import read_messages
from processors.model_response import read_model_response
from processors.placeholder_names import GENERIC_CHAIN_NAMES
from processors.span import Span
from processors.values import ABSENT, decode_arguments

_TYPE = "mlflow.spanType"
_INPUTS = "mlflow.spanInputs"
_OUTPUTS = "mlflow.spanOutputs"
_METADATA = "metadata"
_SESSIONS = ("session_id", "thread_id")
_ROLES = {
    "TOOL": SpanRole.TOOL,
    "AGENT": SpanRole.AGENT,
    "LLM": SpanRole.MODEL,
    "CHAT_MODEL": SpanRole.MODEL,
    "WORKFLOW": SpanRole.WORKFLOW,
}


class _MLflow:
    name: Final = "mlflow"
    rank: Final = 60
    keys: Final = (_TYPE, _METADATA)
    frameworks: Final = (
        Framework(
            name="MLflow",
            versions="3, native spans",
            reads="`mlflow.spanType` TOOL, AGENT, WORKFLOW and CHAT_MODEL; the span's name is the tool's or "
            "the agent's; values from `mlflow.spanInputs` and `mlflow.spanOutputs`; a LangChain graph is "
            "the run of the agent that its metadata name",
            capture="nothing; with `MLFLOW_ENABLE_OTEL_GENAI_SEMCONV=true` the GenAI conventions are read "
            "instead",
            unknown="call ids (but for LangChain)",
        ),
    )

    def role(self, span: Span) -> SpanRole | None:
        attributes = span.attributes
        kind = attributes.text(_TYPE)
        if kind is None:
            return SpanRole.AGENT if _is_graph(attributes) and _agent_of_graph(attributes) else None
        role = _ROLES.get(kind.strip('"'))
        if role is None:
            return SpanRole.AGENT if _agent_of_graph(attributes) == span.name else SpanRole.OTHER
        return role

    def tool(self, span: Span) -> ToolReading:
        opened = first_result(span.attributes, (_OUTPUTS,))
        return ToolReading(
            inferred_name=span.name,
            call_id=opened.call_id,
            arguments=first_arguments(span.attributes, (_INPUTS,)),
            result=opened.result,
            error=opened.error,
        )

    def agent(self, span: Span) -> AgentReading:
        attributes = span.attributes
        if _TYPE not in attributes:
            return AgentReading(name=_agent_of_graph(attributes), session=_session(attributes))
        return AgentReading(
            name=span.name if self.role(span) is SpanRole.AGENT else "",
            inferred_name="" if span.name in GENERIC_CHAIN_NAMES else span.name,
            session=_session(attributes),
            input=decode_input(attributes.get(_INPUTS)) if _INPUTS in attributes else ABSENT,
            output=decode_output(attributes.get(_OUTPUTS)) if _OUTPUTS in attributes else ABSENT,
        )

    def conversation(self, span: Span) -> Conversation:
        attributes = span.attributes
        if self.role(span) is not SpanRole.MODEL:
            return Conversation()
        return Conversation(
            lambda: read_messages(attributes.get(_INPUTS), "user"),
            lambda: read_model_response(attributes.get(_OUTPUTS)),
        )


def _is_graph(attributes: Attributes) -> bool:
    """Whether a span of the GenAI conventions is a graph's run: its nodes have no messages of their own."""
    return attributes.get("gen_ai.operation.name") == "CHAIN" and "gen_ai.input.messages" in attributes


def _metadata(attributes: Attributes, word: str) -> JsonObject:
    """The metadata that the framework's callbacks carry, if `word` is in them."""
    metadata = attributes.text(_METADATA)
    if metadata is None or word not in metadata:
        return {}
    decoded = decode_arguments(metadata).value
    return decoded if isinstance(decoded, dict) else {}


def _agent_of_graph(attributes: Attributes) -> str:
    name = _metadata(attributes, "lc_agent_name").get("lc_agent_name")
    return name if isinstance(name, str) else ""


def _session(attributes: Attributes) -> str:
    metadata = _metadata(attributes, "_id")
    told = [value for key in _SESSIONS if isinstance(value := metadata.get(key), str)]
    return told[0] if told else ""


DIALECT = _MLflow()
