"""Agents of Amazon Bedrock in OpenInference's spans: parameters as a list, collaborators in span names."""

from processors.model import ABSENT, DecodedValue, JsonObject, decode_result, value_of
from processors.shapes.attribute_reading import first_decoded
from processors.shapes.dialect import AgentReading, Dialect, SpanRole, ToolReading
from processors.shapes.dialect_functions import by_kind, roles
from processors.spans import AttributeValue, Span

_KIND = "openinference.span.kind"
_COLLABORATOR = "agent_collaborator["
_NO_TEXTS = frozenset({"array", "boolean", "integer", "number", "object"})

_role_of_kind = by_kind((_KIND,), roles(tool="TOOL", agent="AGENT"), None)


def _role(span: Span) -> SpanRole | None:
    is_own = span.envelope.scope_name == "openinference.instrumentation.bedrock"
    return _role_of_kind(span) if is_own else None


def _tool(span: Span) -> ToolReading:
    return ToolReading(arguments=first_decoded(span.attributes, ("tool.parameters",), _by_name))


def _agent(span: Span) -> AgentReading:
    if not span.name.startswith(_COLLABORATOR):  # named, as otherwise it would only be what holds others
        service = span.envelope.service_name
        return AgentReading(name="" if service.startswith("unknown_service") else service)
    return AgentReading(name=span.name[len(_COLLABORATOR) :].removesuffix("]"))


def _by_name(raw: AttributeValue) -> DecodedValue:
    """The arguments in a list of `{"name", "type", "value"}`, whose values are all texts; else absent."""
    parameters = decode_result(raw).value
    if not isinstance(parameters, list):
        return ABSENT
    arguments: JsonObject = {}
    for parameter in parameters:
        if not isinstance(parameter, dict) or not parameter.keys() <= {"name", "type", "value"}:
            return ABSENT
        name, value = parameter.get("name"), parameter.get("value")
        if not isinstance(name, str):
            return ABSENT
        is_text = parameter.get("type") not in _NO_TEXTS or not isinstance(value, str)
        arguments[name] = value if is_text else decode_result(value).value
    return value_of(arguments)


DIALECT = Dialect("bedrock_agents", (_KIND,), _role, _tool, _agent, rank=25)
