"""Langfuse: `langfuse.observation.*`, as its SDKs and decorators write them."""

from typing import Final

from processors.agent_run import ToolError
from processors.attribute_reading import first_arguments, first_result, first_text
from processors.attributes import Attributes
from processors.chat_envelope import decode_input, decode_output
from processors.dialect import AgentReading, Conversation, SpanRole, ToolReading
from processors.framework import Framework
from processors.json_value import JsonValue
from processors.messages import read_messages
from processors.model_response import read_model_response
from processors.placeholder_names import GENERIC_CHAIN_NAMES
from processors.recorded_call import arguments_of_recorded_call
from processors.span import Span
from processors.values import ABSENT, DecodedValue, decode_arguments

_TYPE = "langfuse.observation.type"
_INPUT = "langfuse.observation.input"
_OUTPUT = "langfuse.observation.output"
_GRAPH_AGENT = "langfuse.observation.metadata.lc_agent_name"
_SESSIONS = ("session.id", "langfuse.session.id")
_GRAPH_SESSIONS = tuple(f"langfuse.observation.metadata.{key}" for key in ("session_id", "thread_id"))
_ROLES = {"tool": SpanRole.TOOL, "agent": SpanRole.AGENT, "generation": SpanRole.MODEL}


class _Langfuse:
    name: Final = "langfuse"
    rank: Final = 60
    keys: Final = (_TYPE,)
    frameworks: Final = (
        Framework(
            name="Langfuse SDK",
            versions="5 (Python), observation attributes of 3 and newer",
            reads="observations of type `tool`, `agent` and `generation`; the span's name is the tool's or "
            "the agent's; values from `langfuse.observation.input` and `.output`; with its LangChain "
            "callback, the chain that is named after its `lc_agent_name` is the agent's run",
            capture="nothing; `capture_input=False` and `capture_output=False` of `@observe` leave values "
            "out",
            unknown="call ids (but for LangChain); the names of positional arguments (they stand "
            "under `$args`)",
        ),
    )

    def role(self, span: Span) -> SpanRole | None:
        kind = span.attributes.text(_TYPE)
        if kind is None:
            return None
        role = _ROLES.get(kind.lower())
        if role is None:
            return SpanRole.AGENT if _told(span.attributes, (_GRAPH_AGENT,)) == span.name else SpanRole.OTHER
        return role

    def tool(self, span: Span) -> ToolReading:
        attributes = span.attributes
        opened = first_result(attributes, (_OUTPUT,))
        error = opened.error
        if attributes.get("langfuse.observation.level") == "ERROR":
            error = ToolError(type="", message=attributes.text("langfuse.observation.status_message") or "")
        return ToolReading(
            inferred_name=span.name,
            call_id=opened.call_id,
            arguments=arguments_of_recorded_call(first_arguments(attributes, (_INPUT,))),
            result=opened.result,
            error=error,
        )

    def agent(self, span: Span) -> AgentReading:
        attributes = span.attributes
        return AgentReading(
            name=span.name if self.role(span) is SpanRole.AGENT else "",
            inferred_name="" if span.name in GENERIC_CHAIN_NAMES else span.name,
            session=first_text(attributes, _SESSIONS) or _told(attributes, _GRAPH_SESSIONS),
            input=_asked(attributes) if _INPUT in attributes else ABSENT,
            output=decode_output(attributes.get(_OUTPUT)) if _OUTPUT in attributes else ABSENT,
        )

    def conversation(self, span: Span) -> Conversation:
        attributes = span.attributes
        if self.role(span) is not SpanRole.MODEL:
            return Conversation()
        return Conversation(
            lambda: read_messages(attributes.get(_INPUT), "user"),
            lambda: read_model_response(attributes.get(_OUTPUT)),
        )


def _told(attributes: Attributes, keys: tuple[str, ...]) -> str:
    """The first text of `keys` in an observation's metadata, where texts are JSON."""
    told = first_text(attributes, keys)
    return told[1:-1] if len(told) > 1 and told[0] == told[-1] == '"' else told


def _asked(attributes: Attributes) -> DecodedValue:
    """The input of a decorated function: its only argument where that has no name."""
    call = arguments_of_recorded_call(decode_arguments(attributes.get(_INPUT))).value
    if isinstance(call, dict):
        positional: JsonValue = call.get("$args")
        if isinstance(positional, list) and len(positional) == 1 and len(call) == 1:
            only = positional[0]
            return decode_input(only)
        if "args" not in call and "$args" not in call:
            return decode_input(call)
    return decode_input(attributes.get(_INPUT))


DIALECT = _Langfuse()
