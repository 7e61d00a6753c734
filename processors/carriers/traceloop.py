"""Traceloop OpenLLMetry: `traceloop.*` attributes, and flattened `gen_ai.prompt` and `gen_ai.completion`.

Its instrumentations put a framework's own envelope around arguments and results, also where they write
the GenAI conventions; so this reading goes before that of the conventions.
"""

import re
from typing import Final, NamedTuple

from processors.frameworks.langgraph import GRAPH_AGENT, GRAPH_NODE, agent_of_graph, is_chain_part, told_by
from processors.frameworks.litellm import is_borrowed
from processors.frameworks.llama_index import AGENT_IN_STEP, AGENT_WORKFLOW_SPANS
from processors.model import (
    ABSENT,
    CallCategory,
    DecodedValue,
    JsonObject,
    JsonValue,
    ToolError,
    ValueState,
    decode_arguments,
    decode_result,
    parse_python_literal,
    text_value,
    value_of,
)
from processors.shapes.attribute_reading import (
    arguments_of_recorded_call,
    first_text,
    first_value,
    flattened_list,
)
from processors.shapes.available_tools import read_tool_definitions
from processors.shapes.chat_envelope import decode_input, decode_output
from processors.shapes.dialect import AgentReading, Conversation, Dialect, SpanRole, ToolReading
from processors.shapes.messages import read_messages
from processors.shapes.placeholder_names import (
    DELEGATION_TOOL_NAMES,
    FINAL_ANSWER_TOOL_NAMES,
    GENERIC_CHAIN_NAMES,
    HANDOFF_TOOL_NAMES,
    HANDOFF_TOOL_PREFIXES,
    TOOL_CLASSES,
)
from processors.shapes.result_envelope import OUTPUT, OpenedResult, open_result
from processors.spans import Attributes, Span

_KIND = "traceloop.span.kind"
_NAME = "traceloop.entity.name"
_INPUT = "traceloop.entity.input"
_OUTPUT = "traceloop.entity.output"
_PROPERTY = "traceloop.association.properties."
_GRAPH_AGENT = _PROPERTY + GRAPH_AGENT
_GRAPH_NODE = _PROPERTY + GRAPH_NODE
_SESSIONS = tuple(_PROPERTY + key for key in ("session_id", "thread_id", "conversation_id"))
_STEP_TOOL = "tool.name"
_TASK_AGENT = "crewai.task.agent"
_LEAVES_OUT_NO_ARGUMENTS = "agno"
_TEAM = "agno.team.name"
_ARGUMENTS = ("gen_ai.tool.call.arguments", "tool.arguments", _INPUT)
_RESULTS = ("gen_ai.tool.call.result", _OUTPUT)
_BLOCKS = '[{"type": "'
_PROMPTS = "gen_ai.prompt."
_COMPLETIONS = "gen_ai.completion."
_WITHOUT_GENAI = {_PROMPTS: "llm.prompts.", _COMPLETIONS: "llm.completions."}
_FUNCTIONS = "llm.request.functions."
_ROLES = {
    "tool": SpanRole.TOOL,
    "handoff": SpanRole.TOOL,
    "agent": SpanRole.AGENT,
    "workflow": SpanRole.WORKFLOW,
    "chat": SpanRole.MODEL,
}
_STEP_RESULT_KEYS = {"tool_name", "tool_id", "tool_output"}
_JAVASCRIPT_GRAPH_SCOPE = "@traceloop/instrumentation-langchain"
_NAMED_CALL_KEYS = {"tool_name", "arguments"}
_GRAPH_CALL_KEYS = {"input_str", "tags", "metadata", "inputs", "kwargs"}
# The printed outcome of a call: `status='success' result={...} error=None updated_session_state=None ...`
_PRINTED_OUTCOME = re.compile(
    r"status='(?P<status>\w+)' result=(?P<result>.*) error=(?P<error>.*?)(?: updated_session_state=.*)?",
    re.DOTALL,
)


class _OpenedCall(NamedTuple):
    """Arguments outside their envelope, and what it tells of the call."""

    arguments: DecodedValue
    call_id: str = ""
    category: CallCategory = CallCategory.FUNCTION


def _role(span: Span) -> SpanRole | None:
    attributes = span.attributes
    kind = attributes.text(_KIND)
    if kind is None:
        return None if "runinfo.component" in attributes or is_borrowed(span) else SpanRole.MODEL
    if _STEP_TOOL in attributes:
        return SpanRole.TOOL
    if kind != "tool" and (_run_in_graph(attributes) is not None or _TASK_AGENT in attributes):
        return SpanRole.AGENT
    if kind == "workflow" and _TEAM in attributes:
        return SpanRole.AGENT
    if kind == "workflow" and _is_agent_workflow(span):
        return SpanRole.AGENT
    workflow = attributes.text("traceloop.workflow.name") or ""
    if span.envelope.scope_name == _JAVASCRIPT_GRAPH_SCOPE and is_chain_part(workflow):
        return SpanRole.OTHER
    if kind == "task" and AGENT_IN_STEP in (attributes.text(_OUTPUT) or ""):
        return SpanRole.STEP
    return _ROLES.get(kind, SpanRole.OTHER)


def _tool(span: Span) -> ToolReading:
    attributes = span.attributes
    name = first_text(attributes, ("gen_ai.tool.name", _STEP_TOOL, _NAME))
    is_named_by_class = name in TOOL_CLASSES
    if is_named_by_class:
        name = _name_in_result(attributes) or name
    call = _arguments(attributes)
    opened = _result(attributes, call.category)
    category = call.category
    is_handoff = name in HANDOFF_TOOL_NAMES or name.startswith(HANDOFF_TOOL_PREFIXES)
    if attributes.get(_KIND) == "handoff" or is_handoff:
        category = CallCategory.HANDOFF
    elif name in FINAL_ANSWER_TOOL_NAMES:
        category = CallCategory.FINAL_ANSWER
    elif name in DELEGATION_TOOL_NAMES:
        category = CallCategory.AGENT
    return ToolReading(
        name=name,
        inferred_name=_bare_name(span.name),
        call_id=call.call_id or opened.call_id,
        arguments=_only_argument(call.arguments) if is_named_by_class else call.arguments,
        result=opened.result,
        error=opened.error or _error_in_status(span),
        category=category,
        agent_name=first_text(attributes, (_GRAPH_AGENT,)),
    )


def _agent(span: Span) -> AgentReading:
    attributes = span.attributes
    kind = attributes.text(_KIND)
    name = first_text(attributes, ("gen_ai.agent.name", _TASK_AGENT, _TEAM))
    in_graph = None if name else _run_in_graph(attributes)
    if in_graph is not None:
        name = in_graph
    elif not name and kind == "agent":
        name = first_text(attributes, (_NAME,)) or _bare_name(span.name)
    if not name and kind == "task" and in_graph is None:
        name = _agent_of_step(attributes)
    inferred = ""
    if not name and kind == "workflow" and in_graph is None and not _is_agent_workflow(span):
        inferred = first_text(attributes, ("traceloop.workflow.name", _NAME)) or _bare_name(span.name)
        inferred = _bare_name(inferred)
    return AgentReading(
        name=name,
        inferred_name="" if inferred in GENERIC_CHAIN_NAMES else inferred,
        session=first_text(attributes, ("gen_ai.conversation.id", *_SESSIONS)),
        input=_asked(attributes),
        output=_answered(attributes),
        hides_calls=_TASK_AGENT in attributes,
    )


def _conversation(span: Span) -> Conversation:
    attributes = span.attributes
    if attributes.text(_KIND) is not None:
        return Conversation(read_tools=lambda: read_tool_definitions(attributes.get("crewai.agent.tools")))
    return Conversation(
        lambda: read_messages(_messages(attributes, _PROMPTS), "user"),
        lambda: read_messages(_messages(attributes, _COMPLETIONS), "assistant"),
        lambda: read_tool_definitions(flattened_list(attributes, _FUNCTIONS)),
    )


def _messages(attributes: Attributes, prefix: str) -> list[JsonValue]:
    """The flattened messages, with the content blocks that were written as one text."""
    messages = flattened_list(attributes, prefix) or flattened_list(attributes, _WITHOUT_GENAI[prefix])
    for message in messages:
        content = message.get("content") if isinstance(message, dict) else None
        if not isinstance(message, dict) or not isinstance(content, str) or not content.startswith(_BLOCKS):
            continue
        blocks = decode_result(content).value
        if isinstance(blocks, list) and all(isinstance(block, dict) and "type" in block for block in blocks):
            message["content"] = blocks
    return messages


def _is_agent_workflow(span: Span) -> bool:
    """Whether the span is an agent's run as a workflow, named after the kind of agent only."""
    return f"{_bare_name(span.name)}.run" in AGENT_WORKFLOW_SPANS


def _agent_of_step(attributes: Attributes) -> str:
    """The agent that a step of a workflow tells in what it puts out, or in the run's result."""
    told = decode_result(attributes.get(_OUTPUT)).value
    if isinstance(told, dict) and isinstance(told.get("result"), dict):
        told = told["result"]
    name = told.get("current_agent_name") if isinstance(told, dict) else None
    return name if isinstance(name, str) else ""


def _run_in_graph(attributes: Attributes) -> str | None:
    """The agent whose run a graph's span is, None for a step of a graph and for what is in none."""
    if _GRAPH_AGENT not in attributes and _GRAPH_NODE not in attributes:
        return None
    return agent_of_graph(
        attributes.text(_NAME) or "", told_by(attributes, _PROPERTY), attributes.text(_OUTPUT)
    )


def _arguments(attributes: Attributes) -> _OpenedCall:
    for key in _ARGUMENTS:
        if key in attributes:
            return _out_of_envelope(decode_arguments(attributes.get(key)))
    if attributes.get("gen_ai.system") == _LEAVES_OUT_NO_ARGUMENTS and _OUTPUT in attributes:
        return _OpenedCall(_of({}))
    return _OpenedCall(ABSENT)


def _out_of_envelope(decoded: DecodedValue) -> _OpenedCall:
    value = decoded.value
    if decoded.state is not ValueState.PRESENT or not isinstance(value, dict):
        return _OpenedCall(decoded)
    if "input_str" in value and len(value) > 1 and value.keys() <= _GRAPH_CALL_KEYS:
        options = value.get("kwargs")
        call_id = options.get("tool_call_id") if isinstance(options, dict) else None
        inputs = value.get("inputs")
        arguments = _of(inputs) if isinstance(inputs, dict) else decode_arguments(value["input_str"])
        return _OpenedCall(arguments, call_id if isinstance(call_id, str) else "")
    if value.keys() == _NAMED_CALL_KEYS:
        return _OpenedCall(decode_arguments(value["arguments"]), category=CallCategory.MCP)
    return _OpenedCall(arguments_of_recorded_call(decoded))


def _of(arguments: JsonObject) -> DecodedValue:
    return value_of(arguments)


def _only_argument(arguments: DecodedValue) -> DecodedValue:
    """The arguments as the text that a callback was handed."""
    value = arguments.value
    given = value.get("args") if isinstance(value, dict) and len(value) == 1 else None
    return decode_arguments(given[0]) if isinstance(given, list) and len(given) == 1 else arguments


def _name_in_result(attributes: Attributes) -> str:
    """The tool's name in the message that it answered with, where its span is named after its class."""
    told = first_value(attributes, (_OUTPUT,))
    fields = told.get("kwargs") if isinstance(told, dict) and "lc" in told else None
    name = fields.get("name") if isinstance(fields, dict) else None
    return name if isinstance(name, str) else ""


def _result(attributes: Attributes, category: CallCategory) -> OpenedResult:
    for key in _RESULTS:
        if key in attributes:
            raw = attributes.get(key)
            printed = _PRINTED_OUTCOME.fullmatch(raw) if isinstance(raw, str) else None
            if printed:
                return _printed_result(printed)
            decoded = decode_result(raw)
            return _opened_by_server(decoded) if category is CallCategory.MCP else _opened(decoded)
    return OpenedResult(ABSENT)


def _opened_by_server(decoded: DecodedValue) -> OpenedResult:
    """What a tool server answered: its text, or a list of its content blocks."""
    value = decoded.value
    if decoded.state is not ValueState.PRESENT:
        return OpenedResult(decoded)
    if isinstance(value, dict) and "result" in value and value.keys() <= {"result", "is_error"}:
        result = decode_result(value["result"])
        failed = value.get("is_error") is True
        return OpenedResult(result, "", ToolError(type="", message=result.text or "") if failed else None)
    if isinstance(value, list) and value and all(_is_text_block(block) for block in value):
        texts = [str(block["content"]) for block in value if isinstance(block, dict)]
        return OpenedResult(decode_result("\n".join(texts)))
    return open_result(decoded)


def _is_text_block(block: JsonValue) -> bool:
    return isinstance(block, dict) and block.keys() == {"type", "content"} and block["type"] == "text"


def _opened(decoded: DecodedValue) -> OpenedResult:
    value = decoded.value
    if isinstance(value, dict) and value.keys() >= _STEP_RESULT_KEYS:
        call_id = value["tool_id"]
        opened = open_result(decode_result(value["tool_output"]))
        return opened._replace(call_id=call_id if isinstance(call_id, str) else "")
    if (
        decoded.state is ValueState.PRESENT
        and isinstance(value, dict)
        and value.keys() == {"output", "kwargs"}
    ):
        decoded = decode_result(value["output"])
    return open_result(decoded, OUTPUT)


def _printed_result(printed: re.Match[str]) -> OpenedResult:
    """The result in a printed outcome, which tells of failures that the span's status does not."""
    error = None
    if printed["status"] == "failure":
        error = ToolError(type="", message=_literal_text(printed["error"]))
    if error is not None and printed["result"] == "None":
        return OpenedResult(ABSENT, "", error)
    if printed["result"] == "None":
        return OpenedResult(DecodedValue(None, "None", ValueState.PRESENT), "", error)
    return open_result(decode_result(_literal_text(printed["result"])))._replace(error=error)


def _literal_text(text: str) -> str:
    """The text inside the quotes of a printed text; what is no text comes back as it is."""
    if text[:1] in ("'", '"'):
        try:
            value = parse_python_literal(text)
        except ValueError:
            return text
        return value if isinstance(value, str) else text
    return text


def _error_in_status(span: Span) -> ToolError | None:
    """The error that stands in a printed dictionary as the description of the status."""
    description = span.status_message
    if not description.startswith("{'message':"):
        return None
    try:
        told = parse_python_literal(description)
    except ValueError:
        return None
    details = told.get("data") if isinstance(told, dict) else None
    message = details.get("error") if isinstance(details, dict) else None
    return ToolError(type="", message=message) if isinstance(message, str) else None


def _asked(attributes: Attributes) -> DecodedValue:
    """What a run was asked: the one argument of a function, or what a graph was given."""
    if _INPUT not in attributes:
        return text_value(attributes.text("crewai.task.description")) if _TASK_AGENT in attributes else ABSENT
    decoded = decode_arguments(attributes.get(_INPUT))
    value = decoded.value
    if decoded.state is not ValueState.PRESENT or not isinstance(value, dict):
        return decode_input(attributes.get(_INPUT))
    if "inputs" in value and "kwargs" in value:
        return decode_input(value["inputs"])
    call = arguments_of_recorded_call(decoded).value
    positional: JsonValue = call.get("$args") if isinstance(call, dict) else None
    if isinstance(call, dict) and isinstance(positional, list) and len(positional) == len(call) == 1:
        return decode_input(positional[0])
    return decode_input(call)


def _answered(attributes: Attributes) -> DecodedValue:
    if _OUTPUT not in attributes:
        return ABSENT
    decoded = decode_result(attributes.get(_OUTPUT))
    value = decoded.value
    if decoded.state is ValueState.PRESENT and isinstance(value, dict) and "outputs" in value:
        return decode_output(value["outputs"])
    return decode_output(attributes.get(_OUTPUT))


def _bare_name(name: str) -> str:
    for prefix in ("execute_tool ", "invoke_agent ", "execute_task "):
        name = name.removeprefix(prefix)
    for suffix in (".tool", ".agent", ".workflow", ".team", ".task", ".handoff"):
        name = name.removesuffix(suffix)
    return name


DIALECT: Final = Dialect(
    "traceloop",
    (_KIND, "llm.request.type", "gen_ai.prompt.0.role", "gen_ai.completion.0.role"),
    _role,
    _tool,
    _agent,
    _conversation,
    rank=5,
)
