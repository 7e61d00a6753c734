"""A dialect made of a mapping of attribute names."""

from collections.abc import Sequence
from typing import Final

from processors.frameworks.dialect import AgentReading, Conversation, SpanRole, ToolReading
from processors.frameworks.framework import Framework
from processors.frameworks.shapes.attribute_reading import first_arguments, first_result, first_text
from processors.frameworks.shapes.chat_envelope import decode_input, decode_output
from processors.frameworks.shapes.dialect_mapping import DialectMapping
from processors.frameworks.shapes.messages import read_messages
from processors.frameworks.shapes.model_response import read_model_response
from processors.model.agent_run import ToolError
from processors.model.values import ABSENT
from processors.spans.attributes import Attributes
from processors.spans.span import Span


class MappedDialect:
    """Reads the attributes that a `DialectMapping` names, before any built-in dialect."""

    rank: Final = 0
    frameworks: Final[Sequence[Framework]] = ()

    def __init__(self, mapping: DialectMapping) -> None:
        self.name: Final = mapping.name
        self._mapping = mapping
        kind = mapping.kind
        self._kind = None if kind is None else kind.attribute
        self._roles: dict[str, SpanRole] = {}
        if kind is not None:
            for role, values in (
                (SpanRole.MODEL, kind.model),
                (SpanRole.WORKFLOW, kind.workflow),
                (SpanRole.AGENT, kind.agent),
                (SpanRole.TOOL, kind.tool),
            ):
                self._roles |= dict.fromkeys(values, role)
        self.keys: Final[Sequence[str]] = (
            (*mapping.tool.name, *mapping.agent.name) if kind is None else (kind.attribute,)
        )

    def role(self, span: Span) -> SpanRole | None:
        """What the kind says, else what the names that are there say."""
        attributes = span.attributes
        if self._kind is not None:
            return self._roles.get(first_text(attributes, (self._kind,)))
        if first_text(attributes, self._mapping.tool.name):
            return SpanRole.TOOL
        return SpanRole.AGENT if first_text(attributes, self._mapping.agent.name) else None

    def tool(self, span: Span) -> ToolReading:
        """The fields of a tool call."""
        attributes, mapping = span.attributes, self._mapping.tool
        name = first_text(attributes, mapping.name)
        opened = first_result(attributes, mapping.result)
        return ToolReading(
            name=name,
            inferred_name="" if name else span.name,
            call_id=first_text(attributes, mapping.call_id) or opened.call_id,
            arguments=first_arguments(attributes, mapping.arguments),
            result=opened.result,
            error=_error(attributes, mapping.error) or opened.error,
            agent_name=first_text(attributes, self._mapping.agent.name),
        )

    def agent(self, span: Span) -> AgentReading:
        """The fields of a run."""
        attributes, mapping = span.attributes, self._mapping.agent
        name = first_text(attributes, mapping.name)
        asked = next((key for key in mapping.input if key in attributes), None)
        answered = next((key for key in mapping.output if key in attributes), None)
        return AgentReading(
            name=name,
            inferred_name="" if name else span.name,
            id=first_text(attributes, mapping.id),
            version=first_text(attributes, mapping.version),
            session=first_text(attributes, mapping.session),
            input=ABSENT if asked is None else decode_input(attributes.get(asked)),
            output=ABSENT if answered is None else decode_output(attributes.get(answered)),
        )

    def conversation(self, span: Span) -> Conversation:
        """The messages of a model's call."""
        attributes, mapping = span.attributes, self._mapping.model
        asked = next((key for key in mapping.input if key in attributes), "")
        answered = next((key for key in mapping.output if key in attributes), "")
        return Conversation(
            lambda: read_messages(attributes.get(asked), "user"),
            lambda: read_model_response(attributes.get(answered)),
        )


def _error(attributes: Attributes, keys: Sequence[str]) -> ToolError | None:
    """The error that the first attribute of `keys` that is there tells; false and an empty text tell none."""
    for key in keys:
        value = attributes.get(key)
        if isinstance(value, str) and value:
            return None if value.lower() == "false" else ToolError(type="", message=value)
        if value is True:
            return ToolError(type="", message="")
    return None
