"""Traceloop OpenLLMetry: `traceloop.*` attributes, and flattened `gen_ai.prompt` and `gen_ai.completion`.

Its instrumentations put a framework's own envelope around arguments and results, also where they write
the GenAI conventions; so this reading goes before that of the conventions.
"""

import re
from collections import Counter, deque
from collections.abc import Sequence
from typing import NamedTuple

from processors.frameworks import langgraph, litellm, llama_index
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
    text_value,
    value_of,
)
from processors.shapes import known_names
from processors.shapes.attribute_reading import (
    arguments_of_recorded_call,
    first_decoded,
    first_json,
    first_object,
    first_text,
    flattened_list,
)
from processors.shapes.available_tools import read_tool_definitions
from processors.shapes.chat_envelope import decode_input, decode_output, first_output
from processors.shapes.content_records import ContentRecords, ContentSpans
from processors.shapes.dialect import AgentReading, Conversation, Dialect, SpanRole, ToolReading
from processors.shapes.dialect_functions import roles
from processors.shapes.members import failure, list_at, object_at, objects_at, text_at, value_at
from processors.shapes.messages import read_messages
from processors.shapes.printed_messages import printed_value
from processors.shapes.record_messages import MESSAGE_RECORDS, recorded_turns
from processors.shapes.result_envelope import OUTPUT, OpenedResult, open_result
from processors.spans import Attributes, LogRecord, Span

_KIND = "traceloop.span.kind"
_NAME = "traceloop.entity.name"
_INPUT = "traceloop.entity.input"
_OUTPUT = "traceloop.entity.output"
_PROPERTY = "traceloop.association.properties."
_GRAPH_AGENT = _PROPERTY + langgraph.AGENT
_GRAPH_NODE = _PROPERTY + langgraph.NODE
_SESSIONS = tuple(_PROPERTY + key for key in ("session_id", "thread_id", "conversation_id"))
_STEP_TOOL = "tool.name"
_TASK_AGENT = "crewai.task.agent"
_TEAM = "agno.team.name"
_ARGUMENTS = ("gen_ai.tool.call.arguments", "tool.arguments", _INPUT)
_RESULTS = ("gen_ai.tool.call.result", _OUTPUT)
_PROMPTS = "gen_ai.prompt."
_COMPLETIONS = "gen_ai.completion."
_WITHOUT_GENAI = {_PROMPTS: "llm.prompts.", _COMPLETIONS: "llm.completions."}
_ROLES = roles(tool=("tool", "handoff"), agent="agent", workflow="workflow", model="chat")
_STEP_RESULT_KEYS = {"tool_name", "tool_id", "tool_output"}
_GRAPH_CALL_KEYS = {"input_str", "tags", "metadata", "inputs", "kwargs"}
# The printed outcome of a call: `status='success' result={...} error=None updated_session_state=None ...`
_PRINTED_OUTCOME = re.compile(
    r"status='(?P<status>\w+)' result=(?P<result>.*) error=(?P<error>.*?)(?: updated_session_state=.*)?",
    re.DOTALL,
)


class _OpenedCall(NamedTuple):
    """Arguments outside their envelope, and what it holds of the call."""

    arguments: DecodedValue
    call_id: str = ""
    category: CallCategory = CallCategory.FUNCTION


def _role(span: Span) -> SpanRole | None:
    attributes = span.attributes
    kind = attributes.text(_KIND)
    if kind is None:
        return None if "runinfo.component" in attributes or litellm.is_borrowed(span) else SpanRole.MODEL
    if _STEP_TOOL in attributes:
        return SpanRole.TOOL
    if kind != "tool" and (_run_in_graph(attributes) is not None or _TASK_AGENT in attributes):
        return SpanRole.AGENT
    if kind == "workflow" and (_TEAM in attributes or _is_agent_workflow(span)):
        return SpanRole.AGENT
    workflow = attributes.text("traceloop.workflow.name") or ""
    if span.envelope.scope_name == "@traceloop/instrumentation-langchain" and langgraph.is_chain_part(
        workflow
    ):
        return SpanRole.OTHER
    if kind == "task" and attributes.mentions(_OUTPUT, llama_index.AGENT_IN_STEP):
        return SpanRole.STEP
    return _ROLES.get(kind, SpanRole.OTHER)


def _tool(span: Span) -> ToolReading:
    attributes = span.attributes
    name = first_text(attributes, ("gen_ai.tool.name", _STEP_TOOL, _NAME))
    is_named_by_class = name in known_names.TOOL_CLASSES
    if is_named_by_class:
        message = first_object(attributes, (_OUTPUT,))
        name = (text_at(message, "kwargs", "name") if "lc" in message else "") or name
    call = _arguments(attributes)
    opened = _result(attributes, call.category)
    category = known_names.category_by_name(name)
    if attributes.get(_KIND) == "handoff" or name in known_names.HANDOFF_TOOL_NAMES:
        category = CallCategory.HANDOFF
    elif category is CallCategory.FUNCTION:
        category = call.category
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
        inferred_name="" if inferred in known_names.GENERIC_CHAIN_NAMES else inferred,
        session=first_text(attributes, ("gen_ai.conversation.id", *_SESSIONS)),
        input=lambda: _given(attributes),
        output=lambda: _answered(attributes),
        hides_calls=_TASK_AGENT in attributes,
    )


def _conversation(span: Span) -> Conversation:
    attributes = span.attributes
    if attributes.text(_KIND) is not None:
        return Conversation(read_tools=lambda: read_tool_definitions(attributes.get("crewai.agent.tools")))
    return Conversation(
        lambda: read_messages(_messages(attributes, _PROMPTS), "user"),
        lambda: read_messages(_messages(attributes, _COMPLETIONS), "assistant"),
        lambda: read_tool_definitions(flattened_list(attributes, "llm.request.functions.")),
    )


def _messages(attributes: Attributes, prefix: str) -> list[JsonValue]:
    """The flattened messages, with the content blocks that were written as one text."""
    messages = flattened_list(attributes, prefix) or flattened_list(attributes, _WITHOUT_GENAI[prefix])
    for message in messages:
        content = text_at(message, "content")
        blocks = decode_result(content).value if content.startswith('[{"type": "') else None
        is_content = isinstance(blocks, list) and all("type" in object_at(block) for block in blocks)
        if isinstance(message, dict) and is_content:
            message["content"] = blocks
    return messages


def _is_agent_workflow(span: Span) -> bool:
    """Whether the span is an agent's run as a workflow, named after the kind of agent only."""
    return f"{_bare_name(span.name)}.run" in llama_index.AGENT_WORKFLOW_SPANS


def _agent_of_step(attributes: Attributes) -> str:
    """The agent in the output of a workflow's step, or in the run's result."""
    output = decode_result(attributes.get(_OUTPUT)).value
    result = value_at(output, "result")
    return text_at(result if isinstance(result, dict) else output, "current_agent_name")


def _run_in_graph(attributes: Attributes) -> str | None:
    """The agent whose run a graph's span is, None for a step of a graph and for what is in none."""
    if _GRAPH_AGENT not in attributes and _GRAPH_NODE not in attributes:
        return None
    return langgraph.agent_of(
        attributes.text(_NAME) or "",
        langgraph.texts_of(attributes, _PROPERTY),
        lambda: attributes.text(_OUTPUT),
    )


def _arguments(attributes: Attributes) -> _OpenedCall:
    key = next((key for key in _ARGUMENTS if key in attributes), None)
    if key is None:
        leaves_out_none = attributes.get("gen_ai.system") == "agno" and _OUTPUT in attributes
        return _OpenedCall(value_of({}) if leaves_out_none else ABSENT)
    decoded = decode_arguments(attributes.get(key))
    value = object_at(decoded.value)
    if "input_str" in value and len(value) > 1 and value.keys() <= _GRAPH_CALL_KEYS:
        inputs = value.get("inputs")
        arguments = value_of(inputs) if isinstance(inputs, dict) else decode_arguments(value["input_str"])
        return _OpenedCall(arguments, text_at(value, "kwargs", "tool_call_id"))
    if value.keys() == {"tool_name", "arguments"}:
        return _OpenedCall(decode_arguments(value["arguments"]), category=CallCategory.MCP)
    return _OpenedCall(arguments_of_recorded_call(decoded))


def _only_argument(arguments: DecodedValue) -> DecodedValue:
    """The arguments as the text that a callback was handed."""
    given = list_at(arguments.value, "args") if len(object_at(arguments.value)) == 1 else []
    return decode_arguments(given[0]) if len(given) == 1 else arguments


def _result(attributes: Attributes, category: CallCategory) -> OpenedResult:
    raw = first_json(attributes, _RESULTS)
    printed = _PRINTED_OUTCOME.fullmatch(raw) if isinstance(raw, str) else None
    if printed:
        return _printed_result(printed)
    decoded = first_decoded(attributes, _RESULTS, decode_result)
    return _opened_by_server(decoded) if category is CallCategory.MCP else _opened(decoded)


def _opened_by_server(decoded: DecodedValue) -> OpenedResult:
    """What a tool server answered: its text, or a list of its content blocks."""
    value = decoded.value
    if isinstance(value, dict) and "result" in value and value.keys() <= {"result", "is_error"}:
        result = decode_result(value["result"])
        return OpenedResult(result, "", failure(result.text) if value.get("is_error") is True else None)
    blocks = objects_at(value)
    if blocks and len(blocks) == len(list_at(value)) and all(map(_is_text_block, blocks)):
        return OpenedResult(decode_result("\n".join(str(block["content"]) for block in blocks)))
    return open_result(decoded)


def _is_text_block(block: JsonObject) -> bool:
    return block.keys() == {"type", "content"} and block["type"] == "text"


def _opened(decoded: DecodedValue) -> OpenedResult:
    value = object_at(decoded.value)
    if value.keys() >= _STEP_RESULT_KEYS:
        opened = open_result(decode_result(value["tool_output"]))
        return opened._replace(call_id=text_at(value, "tool_id"))
    if value.keys() == {"output", "kwargs"}:
        decoded = decode_result(value["output"])
    return open_result(decoded, OUTPUT)


def _printed_result(printed: re.Match[str]) -> OpenedResult:
    """The result in a printed outcome, which shows failures that the span's status does not."""
    error = failure(_literal_text(printed["error"])) if printed["status"] == "failure" else None
    if printed["result"] == "None":
        nothing = DecodedValue(None, "None", ValueState.PRESENT)
        return OpenedResult(nothing if error is None else ABSENT, "", error)
    return open_result(decode_result(_literal_text(printed["result"])))._replace(error=error)


def _literal_text(text: str) -> str:
    """The text inside the quotes of a printed text; what is no text is returned as it is."""
    value = printed_value(text) if text[:1] in ("'", '"') else None
    return value if isinstance(value, str) else text


def _error_in_status(span: Span) -> ToolError | None:
    """The error in a printed dictionary that is the description of the status."""
    description = span.status_message
    reported = printed_value(description) if description.startswith("{'message':") else None
    message = value_at(reported, "data", "error")
    return failure(message) if isinstance(message, str) else None


def _given(attributes: Attributes) -> DecodedValue:
    """What a run was given: the one argument of a function, or the input of a graph."""
    if _INPUT not in attributes:
        return text_value(attributes.text("crewai.task.description")) if _TASK_AGENT in attributes else ABSENT
    decoded = decode_arguments(attributes.get(_INPUT))
    value = decoded.value
    if not isinstance(value, dict):
        return decode_input(attributes.get(_INPUT))
    if "inputs" in value and "kwargs" in value:
        return decode_input(value["inputs"])
    call = object_at(arguments_of_recorded_call(decoded).value)
    positional = list_at(call, "$args")
    return decode_input(positional[0] if len(positional) == len(call) == 1 else call)


def _answered(attributes: Attributes) -> DecodedValue:
    outputs = first_object(attributes, (_OUTPUT,))
    return decode_output(outputs["outputs"]) if "outputs" in outputs else first_output(attributes, (_OUTPUT,))


def _bare_name(name: str) -> str:
    for prefix in ("execute_tool ", "invoke_agent ", "execute_task "):
        name = name.removeprefix(prefix)
    for suffix in (".tool", ".agent", ".workflow", ".team", ".task", ".handoff"):
        name = name.removesuffix(suffix)
    return name


DIALECT = Dialect(
    "traceloop",
    (_KIND, "llm.request.type", "gen_ai.prompt.0.role", "gen_ai.completion.0.role"),
    _role,
    _tool,
    _agent,
    _conversation,
    rank=5,
)


def _join_records(records: Sequence[LogRecord], content: ContentSpans) -> None:
    for turn in recorded_turns(records, content):
        _name_results(turn.given)
        turn.offer(content)


def _name_results(messages: Sequence[JsonObject]) -> None:
    """Give messages of tools the id, which they lack, of the call that they answer.

    They follow the calls in order. Whose result is whose is unknown for several calls of one tool in a turn.
    """
    waiting: deque[JsonObject] = deque()
    for message in messages:
        if message.get("role") != "tool":
            waiting = deque(objects_at(message, "tool_calls"))
            times = Counter(text_at(call, "function", "name") for call in waiting)
        elif waiting:
            call = waiting.popleft()
            if times[text_at(call, "function", "name")] == 1 and "id" in call:
                message.setdefault("id", call["id"])


RECORDS = ContentRecords(_join_records, MESSAGE_RECORDS, scope="opentelemetry.instrumentation.langchain")
