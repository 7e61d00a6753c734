"""OpenInference: `openinference.span.kind` with flattened messages and input and output values.

What its instrumentors have in common; where they differ, the shape of the values tells.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from processors.frameworks.claude_code import called_sub_agent
from processors.frameworks.haystack import PRINTED_CHAT, printed_chat
from processors.frameworks.langgraph import (
    GRAPH_AGENT,
    GRAPH_INTEGRATION,
    GRAPH_NODE,
    PASSED_ON,
    UNNAMED_GRAPHS,
    agent_of_graph,
    is_chain_part,
    is_conversation,
    is_graph,
    told_by,
)
from processors.frameworks.llama_index import (
    AGENT_STEP,
    AGENT_WORKFLOW_SPANS,
    REQUEST_PREPARATION,
    agent_in_printed_step,
    answer_in_printed_result,
    is_printed_result,
)
from processors.model import (
    ABSENT,
    CallCategory,
    DecodedValue,
    JsonObject,
    JsonValue,
    ValueState,
    decode_arguments,
    decode_result,
    json_text,
    json_value,
    parse_json,
    text_value,
    value_of,
)
from processors.shapes.attribute_reading import (
    better,
    first_result,
    first_text,
    first_value,
    flattened_list,
    given_keywords,
    is_true,
)
from processors.shapes.available_tools import read_tool_definitions
from processors.shapes.chat_envelope import decode_input, decode_output
from processors.shapes.dialect import AgentReading, Conversation, Dialect, SpanRole, ToolReading
from processors.shapes.messages import (
    CallResponse,
    ChatMessage,
    add_request,
    last_content,
    read_messages,
    read_model_response,
)
from processors.shapes.model_usage import NO_USAGE, UsageReading, usage_in_object
from processors.shapes.placeholder_names import (
    DELEGATION_TOOL_NAMES,
    FINAL_ANSWER_TOOL_NAMES,
    GENERIC_CHAIN_NAMES,
    HANDOFF_TOOL_NAMES,
    HANDOFF_TOOL_PREFIXES,
    SYNTHETIC_TOOL_NAMES,
)
from processors.shapes.printed_messages import answer_in_printed_steps, last_printed_message
from processors.shapes.result_envelope import CONTENT, RESPONSE
from processors.spans import STATUS_ERROR, Attributes, Span

_KIND = "openinference.span.kind"
_JUDGES = ("GUARDRAIL", "EVALUATOR")
_OTHER_STEP, _OLDER_STEP, _ACTIVITY = "nat.event_type", "aiq.event_type", "workflow.activity"
_CALLS_OF_CLIENT = "message.tool_calls."
_TOOL_NAMES = "smolagents.tools_names"
_MANAGED_AGENTS = "smolagents.managed_agents."
_RESULT_ENVELOPES = CONTENT | RESPONSE
_AGENT_SPAN_PREFIXES = ("invoke_agent ",)
_AGENT_STEPS = '"setup_agent": {'
_JAVASCRIPT_GRAPH_SCOPE = "@arizeai/openinference-instrumentation-langchain"
_INSTRUMENTATION: Final = "openinference"
"""What stands in the name of every scope of the project's instrumentations. Spans of others are written by
hand, as UiPath's are: of agents and tools, not of models."""
_EMITTER_SCOPE = "openinference.instrumentation.beeai"
_SUB_AGENT_SPAN = "ClaudeAgentSDK."
_COMPONENTS_SCOPE = "openinference.instrumentation.haystack"
_COMPONENT_ROLES = {"Agent.run": SpanRole.AGENT, "ToolInvoker.run": SpanRole.MODEL}
_TOOL_CALLS = '"tool_calls"'
_GRAPH_METADATA = (GRAPH_NODE, "ls_integration", GRAPH_AGENT)
_OPTIONS_OF_CALLS = frozenset({"sanitize_inputs_outputs", "tool_name"})
_INPUT = "input.value"
_OUTPUT = "output.value"
_MESSAGES = "messages"
_TOTAL = "token_usage"
_STEERING_KEYS = {"agent", "context", "tools"}
_WORKFLOW_KEYS = {"init_state", "start_event"}
_WORKFLOW_BEGINS = '{"init_state": {'
_TRAJECTORY, _REASONING = "trajectory", "reasoning"
_STREAMS = ("<generator object ", "<async_generator object ")
_REPORT_KEYS = {"description", "expected_output", "raw"}
_WHO = "coworker"
_WHAT = ("task", "question")


class _DelegatedWork(NamedTuple):
    """The name of the agent that is asked, and what it is asked; empty where that is not told."""

    agent: str
    asked: str


def _role(span: Span) -> SpanRole | None:
    attributes = span.attributes
    if _OTHER_STEP in attributes or _OLDER_STEP in attributes or _ACTIVITY in attributes:
        return None  # a convention of its own that adds the kind
    kind = attributes.get(_KIND)
    if kind == "TOOL" or attributes.text("tool.name"):
        return SpanRole.TOOL
    if kind in _JUDGES:
        return SpanRole.JUDGE
    if kind == "LLM":
        if span.name.endswith(REQUEST_PREPARATION):
            return SpanRole.OTHER
        return SpanRole.AGENT if span.name.startswith(_AGENT_SPAN_PREFIXES) else SpanRole.MODEL
    if kind in ("AGENT", "CHAIN"):
        if kind == "CHAIN" and span.envelope.scope_name == _COMPONENTS_SCOPE:
            return _COMPONENT_ROLES.get(span.name, SpanRole.OTHER)
        if _run_in_graph(span) is not None:
            return SpanRole.AGENT
        if kind == "AGENT":
            is_step = is_chain_part(span.name) or _metadata_mentions(span, (GRAPH_NODE,))
            return SpanRole.OTHER if is_step or "metadata.path" in attributes else SpanRole.AGENT
        if _is_agent_workflow(span):
            return SpanRole.AGENT
        if span.name.endswith(AGENT_STEP):
            return SpanRole.STEP
        if _is_outermost_graph(span):
            return SpanRole.WORKFLOW
    return SpanRole.OTHER


def _tool(span: Span) -> ToolReading:
    attributes = span.attributes
    name = first_text(attributes, ("tool.name",))
    opened = first_result(attributes, ("output.value",), _RESULT_ENVELOPES)
    arguments = _arguments(span)
    return ToolReading(
        name=name,
        inferred_name="" if name else span.name.removesuffix(".__call__"),
        call_id=first_text(attributes, _call_id_keys(attributes)) or opened.call_id,
        arguments=arguments,
        arguments_are_doubtful=_names_may_be_lost(span),
        result=opened.result,
        error=opened.error,
        category=_category(span, name),
        agent_name=first_text(attributes, ("tool.agent_role",)),
        is_synthetic=is_true(attributes.get("tool.synthesized")) or name in SYNTHETIC_TOOL_NAMES,
        runs_agent=_delegated_work(name, arguments.value) is not None,
    )


def _agent(span: Span) -> AgentReading:
    attributes = span.attributes
    name = first_text(attributes, ("agent.name", "graph.node.name", "graph.node.id"))
    if not name:
        in_graph = _run_in_graph(span)
        name = _graph_agent(span) if in_graph is None else in_graph
    called = first_text(attributes, ("tool.name",))
    given_to = _delegated_work(called, _arguments(span).value) if called else None
    name = name if given_to is None else given_to.agent
    if span.name == f"{_SUB_AGENT_SPAN}{name}":  # called as the tool that started it
        return AgentReading(inferred_name=name)
    if not name and span.name.endswith(AGENT_STEP):
        given, made = attributes.text("input.value") or "", attributes.text("output.value") or ""
        name = agent_in_printed_step(given) or agent_in_printed_step(made)  # long ones are cut off
    metadata = _metadata(span) if "metadata" in attributes else {}
    session = first_text(attributes, ("session.id",))
    for key in ("session_id", "conversation_id", "thread_id"):
        value = metadata.get(key)
        if not session and isinstance(value, str):
            session = value
    return AgentReading(
        name=name,
        inferred_name="" if name else _name_in_span_name(span),
        id=first_text(attributes, ("agno.agent.id", "agentId")),
        session=session,
        input=_asked(span) if given_to is None else text_value(given_to.asked or None),
        output=ABSENT if _answers_with_error(span) else _recorded_output(attributes),
        hides_calls=_may_hide_calls(span),
        needs_no_turns=_INSTRUMENTATION not in span.envelope.scope_name,
    )


def _asked(span: Span) -> DecodedValue:
    if span.attributes.get(_KIND) == "LLM":  # a run that bears its model's last request as its input
        return last_content(_conversation(span).input, "user")
    return _recorded_input(span.attributes)


def _conversation(span: Span) -> Conversation:
    attributes = span.attributes
    if span.envelope.scope_name == _COMPONENTS_SCOPE:
        return _conversation_of_component(span)
    if attributes.get(_KIND) != "LLM":
        return Conversation(
            read_output=lambda: _requests_of_node(span),
            read_tools=lambda: read_tool_definitions(_named_tools(attributes)),
        )
    return Conversation(
        lambda: read_messages(flattened_list(attributes, "llm.input_messages."), "user"),
        lambda: () if _answers_with_error(span) else _answered(attributes),
        lambda: read_tool_definitions(_listed_tools(attributes)),
    )


def _tells_usage(span: Span) -> bool:
    return span.attributes.get(_KIND) == "CHAIN" and span.envelope.scope_name == _COMPONENTS_SCOPE


def _usage(span: Span) -> UsageReading:
    if _COMPONENT_ROLES.get(span.name) is not SpanRole.AGENT:
        return UsageReading(is_request=False)
    made = first_value(span.attributes, (_OUTPUT,))
    return UsageReading(usage=usage_in_object(made.get(_TOTAL))) if isinstance(made, dict) else NO_USAGE


def _may_hide_calls(span: Span) -> bool:
    """Whether the run is that of a component whose calls only its messages tell, and these are not there."""
    is_component = span.envelope.scope_name == _COMPONENTS_SCOPE
    return is_component and PRINTED_CHAT not in (span.attributes.text(_OUTPUT) or "")


def _conversation_of_component(span: Span) -> Conversation:
    """What went into a component and came out of it; the results that one of them made are its input."""
    attributes = span.attributes
    if _COMPONENT_ROLES.get(span.name) is SpanRole.MODEL:
        return Conversation(lambda: _printed_in(attributes, _OUTPUT))
    if _COMPONENT_ROLES.get(span.name) is SpanRole.AGENT:  # what it made begins with what it was given

        def made() -> list[ChatMessage]:
            messages = _printed_in(attributes, _OUTPUT, _MESSAGES)
            return messages[len(_printed_in(attributes, _INPUT, _MESSAGES)) :]

        return Conversation(lambda: _printed_in(attributes, _INPUT, _MESSAGES), made)
    return Conversation(
        lambda: _printed_in(attributes, _INPUT, _MESSAGES), lambda: _printed_in(attributes, _OUTPUT)
    )


def _printed_in(attributes: Attributes, key: str, member: str = "") -> list[ChatMessage]:
    """The printed messages in a value, or in one of its members."""
    if PRINTED_CHAT not in (attributes.text(key) or ""):
        return []
    told = first_value(attributes, (key,))
    return printed_chat(told.get(member) if member and isinstance(told, dict) else told)


def _answered(attributes: Attributes) -> Sequence[ChatMessage]:
    """What a model answered: its messages, else the provider's response that stands for them.

    Messages may leave out the calls that are in the response.
    """
    messages = read_messages(flattened_list(attributes, "llm.output_messages."), "assistant")
    if _CALLS_OF_CLIENT + "0.tool_call.function.name" in attributes:
        return [*_calls_of_client(attributes), *messages]
    if "output.value" not in attributes or any(message.requests for message in messages):
        return messages
    if messages and _TOOL_CALLS not in (attributes.text("output.value") or ""):
        return messages
    made = decode_result(attributes.get("output.value"))
    if made.state is not ValueState.PRESENT:
        return messages
    told = [message for message in read_model_response(made.value) if message.text or message.requests]
    return told or messages


def _calls_of_client(attributes: Attributes) -> list[ChatMessage]:
    """The calls that the model's client made by itself before the answer, with results if they are told."""
    made = first_value(attributes, ("output.value",))
    history = made.get("automatic_function_calling_history") if isinstance(made, dict) else None
    asked = first_value(attributes, ("input.value",))
    contents = asked.get("contents") if isinstance(asked, dict) else None
    if isinstance(history, list) and isinstance(contents, list):
        messages = read_messages(history[len(contents) :], "assistant")
        for called in messages:
            called.responses = [_out_of_client(response) for response in called.responses]
        return messages
    message = ChatMessage("assistant")
    for call in flattened_list(attributes, _CALLS_OF_CLIENT):
        if isinstance(call, dict):
            add_request(message, call)
    return [message]


def _out_of_client(response: CallResponse) -> CallResponse:
    """What a function returned or why it failed, without what the client put around it."""
    content = response.content
    if isinstance(content, dict) and content.keys() in ({"result"}, {"error"}):
        ((outcome, value),) = content.items()
        return replace(response, content=value, failed=outcome == "error")
    return response


def _answers_with_error(span: Span) -> bool:
    return span.envelope.scope_name == _EMITTER_SCOPE and span.status_code == STATUS_ERROR


def _listed_tools(attributes: Attributes) -> list[JsonValue]:
    """The tools in `llm.tools.0.tool.json_schema` and so on: each a definition with its schema."""
    listed = flattened_list(attributes, "llm.tools.")
    tools = [entry.get("tool") for entry in listed if isinstance(entry, dict)]
    return [tool.get("json_schema") for tool in tools if isinstance(tool, dict)]


def _named_tools(attributes: Attributes) -> list[JsonValue]:
    """The names of an agent's tools and of the agents that it may call, where its own span lists them."""
    if _TOOL_NAMES not in attributes:
        return []
    managed = flattened_list(attributes, _MANAGED_AGENTS)
    agents = [entry.get("name") for entry in managed if isinstance(entry, dict)]
    return [json_value(attributes.get(_TOOL_NAMES)), agents]


def _call_id_keys(attributes: Attributes) -> tuple[str, ...]:
    """`tool.id` names the call, except where a decorated function names the tool by it."""
    return ("tool_call.id",) if "span_type" in attributes else ("tool.id", "tool_call.id")


def _arguments(span: Span) -> DecodedValue:
    attributes = span.attributes
    decoded = decode_arguments(attributes.get("input.value")) if "input.value" in attributes else ABSENT
    if span.envelope.scope_name == _EMITTER_SCOPE:
        return _input_of_emitted_call(decoded)
    parameters = (
        decode_arguments(attributes.get("tool.parameters")) if "tool.parameters" in attributes else ABSENT
    )
    schema: JsonObject = {}
    if isinstance(parameters.value, dict):
        schema = _parameters_in_schema(parameters.value)
        if schema or (parameters.value.get("properties") == {} and parameters.value.get("type") == "object"):
            parameters = ABSENT
    if decoded.state is ValueState.PRESENT and isinstance(decoded.value, dict):
        return _out_of_call_envelope(decoded, decoded.value, list(schema))
    if decoded.state is ValueState.UNPARSED and len(schema) == 1:
        named: JsonObject = {next(iter(schema)): decoded.value}
        return value_of(named)
    return better(decoded, parameters)


def _out_of_call_envelope(decoded: DecodedValue, value: JsonObject, parameters: list[str]) -> DecodedValue:
    """Arguments recorded as a Python call: positional ones get the names of the parameters, if known."""
    keywords = value.get("kwargs")
    if not isinstance(keywords, dict):
        return decoded
    if value.keys() == {"kwargs"} and "kwargs" not in parameters:
        keywords = given_keywords(keywords, parameters)
        return value_of(keywords)
    positional = value.get("args")
    if not isinstance(positional, list) or not value.keys() - {"args", "kwargs"} <= _OPTIONS_OF_CALLS:
        return decoded
    arguments: JsonObject
    if len(positional) <= len(parameters):
        arguments = {**dict(zip(parameters, positional, strict=False)), **keywords}
    else:
        arguments = {"$args": positional, **keywords}
    return value_of(arguments)


def _names_may_be_lost(span: Span) -> bool:
    """Whether `input.value` may be the one argument itself, without its name.

    LangChain hands a tool with a single text argument the bare text, which may itself write an object.
    """
    return _metadata_mentions(span, _GRAPH_METADATA)


def _requests_of_node(span: Span) -> list[ChatMessage]:
    """The calls that a graph's tool node was given to execute."""
    given = span.attributes.get("input.value")
    if not isinstance(given, str) or '"tool_call"' not in given:
        return []
    try:
        value = parse_json(given)
    except ValueError:
        return []
    listed = value if isinstance(value, list) else [value.get("tool_call")] if isinstance(value, dict) else []
    calls = [item for item in listed if isinstance(item, dict) and item.get("type") == "tool_call"]
    if not calls or len(calls) != len(listed):
        return []
    message = ChatMessage("assistant")
    for call in calls:
        add_request(message, call)
    return [message]


def _category(span: Span, name: str) -> CallCategory:
    kind = span.attributes.get(_KIND)
    called = name or span.name
    if called in HANDOFF_TOOL_NAMES or called.startswith(HANDOFF_TOOL_PREFIXES):
        return CallCategory.HANDOFF
    if called in FINAL_ANSWER_TOOL_NAMES:
        return CallCategory.FINAL_ANSWER
    if called in DELEGATION_TOOL_NAMES or called_sub_agent(called, span.attributes.text(_INPUT)):
        return CallCategory.AGENT
    return CallCategory.RETRIEVAL if kind == "RETRIEVER" else CallCategory.FUNCTION


def _run_in_graph(span: Span) -> str | None:
    """The agent whose run a graph's span is, None for a step of a graph and for what is in none."""
    if not _metadata_mentions(span, (GRAPH_NODE, GRAPH_AGENT)):
        return None
    return agent_of_graph(
        span.name,
        told_by(_metadata(span)),
        span.attributes.text("output.value"),
        has_places=span.envelope.scope_name != _JAVASCRIPT_GRAPH_SCOPE,
        passed_on=PASSED_ON in span.status_message,
    )


def _is_outermost_graph(span: Span) -> bool:
    """Whether the span is the run of a graph that is in no other."""
    if span.name in UNNAMED_GRAPHS:
        return True
    if _metadata_mentions(span, (GRAPH_NODE,)):
        return False
    if _metadata_mentions(span, (GRAPH_INTEGRATION,)):
        return is_graph(_metadata(span))
    return span.envelope.scope_name == "openinference.instrumentation.langchain" and is_conversation(
        span.attributes.text("output.value")
    )


def _is_agent_workflow(span: Span) -> bool:
    """Whether a CHAIN span is an agent's run as a workflow: by its class, else by what it was given."""
    if span.name in AGENT_WORKFLOW_SPANS:
        return True
    if not span.name.endswith(".run"):
        return False
    given, made = span.attributes.text("input.value") or "", span.attributes.text("output.value") or ""
    return _AGENT_STEPS in given or is_printed_result(made)


def _graph_agent(span: Span) -> str:
    if not _metadata_mentions(span, (GRAPH_AGENT,)):
        return ""
    name = _metadata(span).get(GRAPH_AGENT)
    return name if isinstance(name, str) else ""


def _metadata_mentions(span: Span, words: tuple[str, ...]) -> bool:
    metadata = span.attributes.get("metadata")
    return isinstance(metadata, str) and any(word in metadata for word in words)


def _metadata(span: Span) -> JsonObject:
    decoded = decode_arguments(span.attributes.get("metadata"))
    return decoded.value if isinstance(decoded.value, dict) else {}


def _name_in_span_name(span: Span) -> str:
    name = span.name
    if span.attributes.get(_KIND) == "CHAIN":
        return "" if "." in name or name in GENERIC_CHAIN_NAMES else name
    for prefix in _AGENT_SPAN_PREFIXES:
        name = name.removeprefix(prefix)
    if name.startswith("agent_run [") and name.endswith("]"):
        return name[len("agent_run [") : -1]
    role, _, task = name.partition(".")
    if task.endswith(".execute"):
        return role
    for suffix in (".run", "._execute_core", ".kickoff", ".on_messages_stream", ".agent"):
        name = name.removesuffix(suffix)
    return name


def _delegated_work(tool: str, arguments: JsonValue) -> _DelegatedWork | None:
    """What a call of `tool` gives to whom; None if it is no such call or does not tell to whom."""
    if tool not in DELEGATION_TOOL_NAMES or not isinstance(arguments, dict):
        return None
    agent = arguments.get(_WHO)
    if not isinstance(agent, str) or not agent:
        return None
    asked = next((told for key in _WHAT if isinstance(told := arguments.get(key), str)), "")
    return _DelegatedWork(agent, asked)


def _input_of_emitted_call(decoded: DecodedValue) -> DecodedValue:
    """The arguments out of the record of a call as an event: `{"input": {...}, "options": ...}`."""
    value = decoded.value
    if decoded.state is not ValueState.PRESENT or not isinstance(value, dict):
        return decoded
    given = value.get("input")
    if value.keys() != {"input", "options"} or not isinstance(given, dict):
        return decoded
    return value_of(given)


def _parameters_in_schema(parameters: JsonObject) -> JsonObject:
    """The parameters by name where these are a schema, nothing where they are arguments."""
    properties = parameters.get("properties")
    if isinstance(properties, dict):
        return properties
    described = [
        isinstance(member, dict) and ("type" in member or "title" in member) for member in parameters.values()
    ]
    return parameters if described and all(described) else {}


def _recorded_input(attributes: Attributes) -> DecodedValue:
    """What the run was asked, as far as its own span tells it."""
    task = attributes.text("task_description")
    if task is not None:
        return text_value(task)
    if _INPUT not in attributes:
        return ABSENT
    raw = attributes.get(_INPUT)
    decoded = decode_input(raw)
    value = decoded.value
    if decoded.state is ValueState.TRUNCATED and isinstance(raw, str) and raw.startswith(_WORKFLOW_BEGINS):
        return ABSENT
    if decoded.state is not ValueState.PRESENT or not isinstance(value, dict):
        return decoded
    if value.keys() >= _WORKFLOW_KEYS:
        return ABSENT
    if value.keys() == _STEERING_KEYS:
        report = _report(attributes)
        return ABSENT if report is None else _if_text(report["description"])
    printed = _printed_in(attributes, _INPUT)
    if printed:
        return last_content(printed, "user")
    messages = value.get("messages")
    if isinstance(messages, list):
        text = last_printed_message(messages)
        return decoded if text is None else text_value(text)
    return decoded


def _recorded_output(attributes: Attributes) -> DecodedValue:
    """What the run answered, as far as its own span tells it: of a stream there may be only the object."""
    if _OUTPUT not in attributes:
        return ABSENT
    raw = attributes.get(_OUTPUT)
    if isinstance(raw, str) and raw.startswith(_STREAMS):
        return ABSENT
    if isinstance(raw, str) and is_printed_result(raw):
        return text_value(answer_in_printed_result(raw))
    answer = answer_in_printed_steps(raw) if isinstance(raw, str) else None
    if answer is not None:
        return decode_output(answer if isinstance(answer, (str, dict, list)) else json_text(answer))
    report = _report(attributes)
    if report is not None:
        return _if_text(report["raw"])
    printed = _printed_in(attributes, _OUTPUT)
    if printed:
        return last_content(printed, "assistant")
    decoded = decode_output(raw)
    return _answer_beside_trajectory(decoded) if isinstance(decoded.value, dict) else decoded


def _answer_beside_trajectory(decoded: DecodedValue) -> DecodedValue:
    """The fields that a program of prompts was to answer, without the way to them; one alone as it is."""
    value = decoded.value
    if not isinstance(value, dict) or not isinstance(value.get(_TRAJECTORY), dict):
        return decoded
    answer = {key: field for key, field in value.items() if key not in (_TRAJECTORY, _REASONING)}
    return decode_output(next(iter(answer.values())) if len(answer) == 1 else answer)


def _report(attributes: Attributes) -> JsonObject | None:
    """The report of a finished task, which repeats the task."""
    raw = attributes.get(_OUTPUT)
    if not isinstance(raw, str) or '"expected_output"' not in raw:
        return None
    value = decode_result(raw).value
    return value if isinstance(value, dict) and value.keys() >= _REPORT_KEYS else None


def _if_text(value: JsonValue) -> DecodedValue:
    return text_value(value if isinstance(value, str) else None)


DIALECT: Final = Dialect(
    "openinference",
    (_KIND,),
    _role,
    _tool,
    _agent,
    _conversation,
    rank=50,
    has_usage=_tells_usage,
    usage=_usage,
)
