"""MLflow tracing in its native form: `mlflow.*` attributes whose values are all JSON, texts in quotes."""

from typing import Final

from processors.attribute_reading import first_arguments, first_result
from processors.chat_envelope import decode_input, decode_output
from processors.dialect import AgentReading, Conversation, SpanRole, ToolReading
from processors.framework import Framework
from processors.messages import read_messages
from processors.model_response import read_model_response
from processors.placeholder_names import GENERIC_CHAIN_NAMES
from processors.span import Span
from processors.values import ABSENT

_TYPE = "mlflow.spanType"
_INPUTS = "mlflow.spanInputs"
_OUTPUTS = "mlflow.spanOutputs"
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
    keys: Final = (_TYPE,)
    frameworks: Final = (
        Framework(
            name="MLflow",
            versions="3, native spans",
            reads="`mlflow.spanType` TOOL, AGENT, WORKFLOW and CHAT_MODEL; the span's name is the tool's or "
            "the agent's; values from `mlflow.spanInputs` and `mlflow.spanOutputs`",
            capture="nothing; with `MLFLOW_ENABLE_OTEL_GENAI_SEMCONV=true` the GenAI conventions are read "
            "instead",
            unknown="call ids",
        ),
    )

    def role(self, span: Span) -> SpanRole | None:
        kind = span.attributes.text(_TYPE)
        return None if kind is None else _ROLES.get(kind.strip('"'), SpanRole.OTHER)

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
        return AgentReading(
            name=span.name if self.role(span) is SpanRole.AGENT else "",
            inferred_name="" if span.name in GENERIC_CHAIN_NAMES else span.name,
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


DIALECT = _MLflow()
