"""Agents of Amazon Bedrock in OpenInference's spans: parameters as a list, collaborators in span names."""

from typing import Final

from processors.model import ABSENT, DecodedValue, JsonObject, JsonValue, decode_result, value_of
from processors.shapes.dialect import AgentReading, Dialect, SpanRole, ToolReading
from processors.spans import Span

_PARAMETERS = "tool.parameters"
_KIND = "openinference.span.kind"
_COLLABORATOR = "agent_collaborator["
_PARAMETER_KEYS = {"name", "type", "value"}
_NO_TEXTS = frozenset({"array", "boolean", "integer", "number", "object"})


def _role(span: Span) -> SpanRole | None:
    if span.envelope.scope_name != "openinference.instrumentation.bedrock":
        return None
    kind = span.attributes.get(_KIND)
    return SpanRole.TOOL if kind == "TOOL" else SpanRole.AGENT if kind == "AGENT" else None


def _tool(span: Span) -> ToolReading:
    if _PARAMETERS not in span.attributes:
        return ToolReading()
    return ToolReading(arguments=_by_name(decode_result(span.attributes.get(_PARAMETERS)).value))


def _agent(span: Span) -> AgentReading:
    if not span.name.startswith(_COLLABORATOR):  # named, as otherwise it would only be what holds others
        service = span.envelope.service_name
        return AgentReading(name="" if service.startswith("unknown_service") else service)
    return AgentReading(name=span.name[len(_COLLABORATOR) :].removesuffix("]"))


def _by_name(parameters: JsonValue) -> DecodedValue:
    """The arguments in a list of `{"name", "type", "value"}`, whose values are all texts; else absent."""
    if not isinstance(parameters, list):
        return ABSENT
    arguments: JsonObject = {}
    for parameter in parameters:
        if not isinstance(parameter, dict) or not parameter.keys() <= _PARAMETER_KEYS:
            return ABSENT
        name, value = parameter.get("name"), parameter.get("value")
        if not isinstance(name, str):
            return ABSENT
        is_text = parameter.get("type") not in _NO_TEXTS or not isinstance(value, str)
        arguments[name] = value if is_text else decode_result(value).value
    return value_of(arguments)


DIALECT: Final = Dialect("bedrock_agents", (_KIND,), _role, _tool, _agent, rank=25)
