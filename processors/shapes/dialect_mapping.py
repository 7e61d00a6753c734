"""Conventions of the user's own: a mapping of attribute names in the service file, read as a dialect."""

from typing import Annotated, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)

from processors.shapes.attribute_reading import first_text
from processors.shapes.dialect import Dialect, RoleReader, SpanRole
from processors.shapes.dialect_functions import (
    agent_fields,
    by_kind,
    model_messages,
    roles,
    tool_fields,
    whole_name,
)
from processors.shapes.model_usage import usage_under
from processors.spans import Span

AttributeKey: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=200)]


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


AttributeKeys: TypeAlias = Annotated[
    tuple[AttributeKey, ...],
    BeforeValidator(_as_list),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "minLength": 1},
                {"type": "array", "items": {"type": "string", "minLength": 1}},
            ]
        }
    ),
]
"""One attribute key, or several of which the first that is there counts."""


class _Mapping(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class KindMapping(_Mapping):
    """Which attribute holds the kind of a span, and its values."""

    attribute: AttributeKey = Field(description="The attribute that holds the kind of a span.")
    tool: AttributeKeys = Field(default=(), description="Its values for a tool call.")
    agent: AttributeKeys = Field(default=(), description="Its values for an agent's run.")
    workflow: AttributeKeys = Field(default=(), description="Its values for a workflow that may hold agents.")
    model: AttributeKeys = Field(default=(), description="Its values for a call of a model.")


class ToolMapping(_Mapping):
    """Attributes of a tool call."""

    name: AttributeKeys = Field(default=(), description="The tool's name; by default the span's name.")
    call_id: AttributeKeys = Field(default=(), description="The id that the model gave the call.")
    arguments: AttributeKeys = Field(default=(), description="The arguments: a mapping, or JSON.")
    result: AttributeKeys = Field(default=(), description="The result: any value, JSON or text.")
    error: AttributeKeys = Field(
        default=(),
        description="Present only if the call failed: a message, or true. The span's status counts as well.",
    )


class AgentMapping(_Mapping):
    """Attributes of an agent's run."""

    name: AttributeKeys = Field(default=(), description="The agent's name; by default the span's name.")
    id: AttributeKeys = Field(default=(), description="The agent's id.")
    version: AttributeKeys = Field(default=(), description="The agent's version.")
    session: AttributeKeys = Field(default=(), description="The conversation the run belongs to.")
    input: AttributeKeys = Field(default=(), description="The request to the agent.")
    output: AttributeKeys = Field(default=(), description="The agent's answer.")


class ModelMapping(_Mapping):
    """Attributes of a model's call; its messages are in any provider's shape, as JSON."""

    input: AttributeKeys = Field(default=(), description="The messages that the model was given.")
    output: AttributeKeys = Field(default=(), description="The messages that the model returned.")
    name: AttributeKeys = Field(default=(), description="The name of the model.")
    input_tokens: AttributeKeys = Field(
        default=(), description="The number of input tokens, including those read from a cache."
    )
    output_tokens: AttributeKeys = Field(default=(), description="The number of output tokens.")
    cached_input_tokens: AttributeKeys = Field(
        default=(), description="The number of input tokens that were read from a cache."
    )


class DialectMapping(_Mapping):
    """A convention of your own: which attributes of your spans hold what.

    It counts before the built-in ones. Without `kind`, a span with the attribute `tool.name` is a call, and
    any other with the attribute `agent.name` is a run.
    """

    name: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=60)] = Field(
        description="The name of this convention in explanations: lower case letters, digits, underscores."
    )
    kind: KindMapping | None = Field(
        default=None, description="How a span shows its kind. If left out, by the names below."
    )
    tool: ToolMapping = ToolMapping()
    agent: AgentMapping = AgentMapping()
    model: ModelMapping = ModelMapping()

    @model_validator(mode="after")
    def _check_recognition(self) -> "DialectMapping":
        if self.kind is None and not self.tool.name and not self.agent.name:
            raise ValueError("expected kind, tool.name or agent.name: nothing else identifies the spans")
        return self

    def dialect(self) -> Dialect:
        """What reads the attributes that are named here, before any built-in dialect."""
        tool, agent, kind = self.tool, self.agent, self.kind
        model = self.model
        return Dialect(
            name=self.name,
            rank=0,
            keys=(*tool.name, *agent.name) if kind is None else (kind.attribute,),
            role=self._role_reader(),
            tool=tool_fields(**dict(tool), inferred_name=whole_name, agent_name=agent.name),
            agent=agent_fields(**dict(agent), inferred_name=whole_name),
            conversation=model_messages(model.input, model.output),
            usage=usage_under(model.name, model.input_tokens, model.output_tokens, model.cached_input_tokens),
        )

    def _role_reader(self) -> RoleReader:
        kind = self.kind
        if kind is None:
            return self._role_by_names
        kinds = roles(model=kind.model, workflow=kind.workflow, agent=kind.agent, tool=kind.tool)
        return by_kind((kind.attribute,), kinds, None)

    def _role_by_names(self, span: Span) -> SpanRole | None:
        if first_text(span.attributes, self.tool.name):
            return SpanRole.TOOL
        return SpanRole.AGENT if first_text(span.attributes, self.agent.name) else None
