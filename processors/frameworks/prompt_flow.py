"""Prompt flow: `framework` is `promptflow`, `span_type` is what a function was traced as."""

from processors.shapes.attribute_reading import first_json, first_object
from processors.shapes.available_tools import read_tool_definitions
from processors.shapes.dialect import AgentReading, Conversation, Dialect, SpanRole
from processors.shapes.dialect_functions import Sign, agent_fields, by_signs
from processors.shapes.messages import read_messages, read_model_response
from processors.spans import Span

_INPUT = ("inputs",)
_OUTPUT = "output"
_IS_OURS = ("framework", "promptflow")

_role = by_signs(
    Sign(SpanRole.MODEL, values=(_IS_OURS, ("span_type", "LLM"))), Sign(SpanRole.OTHER, values=(_IS_OURS,))
)
_fields_of_agent = agent_fields(input=_INPUT, output=(_OUTPUT,))


def _agent(span: Span) -> AgentReading:
    return AgentReading() if _role(span) is SpanRole.MODEL else _fields_of_agent(span)


def _conversation(span: Span) -> Conversation:
    attributes = span.attributes
    if _role(span) is not SpanRole.MODEL:
        return Conversation()
    return Conversation(
        lambda: read_messages(first_object(attributes, _INPUT).get("messages"), "user"),
        lambda: read_model_response(first_json(attributes, ("llm.generated_message", _OUTPUT))),
        lambda: read_tool_definitions(first_object(attributes, _INPUT).get("tools")),
    )


DIALECT = Dialect("prompt_flow", ("framework",), _role, agent=_agent, conversation=_conversation, rank=60)
