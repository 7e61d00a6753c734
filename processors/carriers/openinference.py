"""OpenInference: `openinference.span.kind` with flattened messages and input and output values.

What its instrumentors have in common; where they differ, the shape of the values shows it.
"""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from processors.frameworks import claude_code, haystack, langgraph, llama_index
from processors.model import (
    ABSENT,
    CallCategory,
    DecodedValue,
    JsonObject,
    JsonValue,
    ValueState,
    decode_result,
    is_broken_data,
    json_text,
    json_value,
    parse_json,
    text_value,
    value_of,
)
from processors.shapes import known_names
from processors.shapes.attribute_reading import (
    better,
    first_arguments,
    first_object,
    first_result,
    first_text,
    first_value,
    flattened_list,
    given_keywords,
    is_true,
)
from processors.shapes.available_tools import read_tool_definitions
from processors.shapes.chat_envelope import decode_output, first_input, first_output
from processors.shapes.dialect import (
    AgentReading,
    Captured,
    Conversation,
    Dialect,
    SpanRole,
    ToolReading,
    in_messages,
)
from processors.shapes.members import list_at, object_at, text_at, value_at
from processors.shapes.messages import (
    CallResponse,
    ChatMessage,
    assistant_messages,
    last_content,
    read_messages,
    read_model_response,
)
from processors.shapes.model_usage import UsageReading, usage_in_object
from processors.shapes.printed_messages import answer_in_printed_steps, last_printed_message
from processors.shapes.result_envelope import CONTENT, RESPONSE
from processors.spans import STATUS_ERROR, Attributes, Span, cached_for_small

_KIND = "openinference.span.kind"
_INPUT = "input.value"
_OUTPUT = "output.value"
_OTHERS = ("nat.event_type", "aiq.event_type", "workflow.activity")
"""Keys of conventions of their own that add the kind."""
_CALLS_OF_CLIENT = "message.tool_calls."
_TOOL_NAMES = "smolagents.tools_names"
_AGENT_SPAN_PREFIX = "invoke_agent "
_INSTRUMENTATION = "openinference"
"""Part of the name of every scope of the project's instrumentations. Spans of others are written by hand, as
UiPath's are: of agents and tools, not of models."""
_EMITTER_SCOPE = "openinference.instrumentation.beeai"
_COMPONENTS_SCOPE = "openinference.instrumentation.haystack"
_COMPONENT_ROLES = {"Agent.run": SpanRole.AGENT, "ToolInvoker.run": SpanRole.MODEL}
_OPTIONS_OF_CALLS = frozenset({"args", "kwargs", "sanitize_inputs_outputs", "tool_name"})
_STEERING_KEYS = {"agent", "context", "tools"}
_WORKFLOW_KEYS = {"init_state", "start_event"}
_RESPONSES = ('{"id":"r', '{"id": "r')
"""How a response of OpenAI's Responses API begins, whatever its end."""
_CALL_ITEM = '_call"'
"""How the types of calls end in OpenAI's Responses API."""
_TRAJECTORY = "trajectory"
_REPORT_KEYS = {"description", "expected_output", "raw"}


def _role(span: Span) -> SpanRole | None:
    attributes = span.attributes
    if any(key in attributes for key in _OTHERS):
        return None
    kind = attributes.get(_KIND)
    if kind == "TOOL" or attributes.text("tool.name"):
        return SpanRole.TOOL
    if kind in ("GUARDRAIL", "EVALUATOR"):
        return SpanRole.JUDGE
    if kind == "LLM":
        if span.name.endswith(llama_index.REQUEST_PREPARATION):
            return SpanRole.OTHER
        return SpanRole.AGENT if span.name.startswith(_AGENT_SPAN_PREFIX) else SpanRole.MODEL
    if kind in ("AGENT", "CHAIN"):
        if kind == "CHAIN" and span.envelope.scope_name == _COMPONENTS_SCOPE:
            return _COMPONENT_ROLES.get(span.name, SpanRole.OTHER)
        if _run_in_graph(span) is not None:
            return SpanRole.AGENT
        if kind == "AGENT":
            is_step = langgraph.is_chain_part(span.name) or _metadata_mentions(span, langgraph.NODE)
            return SpanRole.OTHER if is_step or "metadata.path" in attributes else SpanRole.AGENT
        if _is_agent_workflow(span):
            return SpanRole.AGENT
        if span.name.endswith(llama_index.AGENT_STEP):
            return SpanRole.STEP
        if _is_outermost_graph(span):
            return SpanRole.WORKFLOW
    return SpanRole.OTHER


def _tool(span: Span) -> ToolReading:
    attributes = span.attributes
    name = first_text(attributes, ("tool.name",))
    opened = first_result(attributes, (_OUTPUT,), CONTENT | RESPONSE)
    arguments = _arguments(span)
    # A decorated function names the tool by `tool.id`.
    call_ids = ("tool_call.id",) if "span_type" in attributes else ("tool.id", "tool_call.id")
    return ToolReading(
        name=name,
        inferred_name="" if name else span.name.removesuffix(".__call__"),
        call_id=first_text(attributes, call_ids) or opened.call_id,
        arguments=arguments,
        # LangChain hands a tool with a single text argument the bare text, which may itself write an object.
        arguments_are_doubtful=_metadata_mentions(span, langgraph.NODE, "ls_integration", langgraph.AGENT),
        result=opened.result,
        error=opened.error,
        category=_category(span, name or span.name),
        agent_name=first_text(attributes, ("tool.agent_role",)),
        is_synthetic=is_true(attributes.get("tool.synthesized")) or name in known_names.SYNTHETIC_TOOL_NAMES,
        runs_agent=_delegated_work(name, arguments.value) is not None,
    )


def _agent(span: Span) -> AgentReading:
    attributes = span.attributes
    name = first_text(attributes, ("agent.name", "graph.node.name", "graph.node.id"))
    if not name:
        in_graph = _run_in_graph(span)
        in_metadata = (
            text_at(_metadata(span), langgraph.AGENT) if _metadata_mentions(span, langgraph.AGENT) else ""
        )
        name = in_metadata if in_graph is None else in_graph
    called = first_text(attributes, ("tool.name",))
    delegated = _delegated_work(called, _arguments(span).value) if called else None
    if delegated is not None:
        name = delegated[0]
    if span.name == f"ClaudeAgentSDK.{name}":  # called as the tool that started it
        return AgentReading(inferred_name=name)
    if not name and span.name.endswith(llama_index.AGENT_STEP):  # long values are cut off
        name = _printed_agent(attributes, _INPUT) or _printed_agent(attributes, _OUTPUT)

    # A run may bear its model's last request as its input.
    given: Captured = in_messages if attributes.get(_KIND) == "LLM" else lambda: _recorded_input(attributes)
    if delegated is not None:
        given = text_value(delegated[1] or None)
    metadata = _metadata(span)
    sessions = (text_at(metadata, key) for key in ("session_id", "conversation_id", "thread_id"))
    is_component = span.envelope.scope_name == _COMPONENTS_SCOPE
    return AgentReading(
        name=name,
        inferred_name="" if name else _name_in_span_name(span),
        id=first_text(attributes, ("agno.agent.id", "agentId")),
        session=first_text(attributes, ("session.id",)) or next(filter(None, sessions), ""),
        input=given,
        output=ABSENT if _answers_with_error(span) else lambda: _recorded_output(attributes),
        # Only messages show the calls of a component.
        hides_calls=is_component and haystack.PRINTED_CHAT not in (attributes.text(_OUTPUT) or ""),
        needs_no_turns=_INSTRUMENTATION not in span.envelope.scope_name,
    )


def _conversation(span: Span) -> Conversation:
    attributes = span.attributes
    if span.envelope.scope_name == _COMPONENTS_SCOPE:
        return _conversation_of_component(span)
    if attributes.get(_KIND) != "LLM":
        return Conversation(
            read_output=lambda: _requests_of_node(attributes),
            read_tools=lambda: read_tool_definitions(_named_tools(attributes)),
        )
    return Conversation(
        lambda: _given(attributes),
        lambda: () if _answers_with_error(span) else _answered(attributes),
        lambda: _offered(attributes),
    )


def _has_usage(span: Span) -> bool:
    return span.attributes.get(_KIND) == "CHAIN" and span.envelope.scope_name == _COMPONENTS_SCOPE


def _usage(span: Span) -> UsageReading:
    if _COMPONENT_ROLES.get(span.name) is not SpanRole.AGENT:
        return UsageReading(is_request=False)
    return UsageReading(usage=usage_in_object(first_object(span.attributes, (_OUTPUT,)).get("token_usage")))


def _conversation_of_component(span: Span) -> Conversation:
    """What went into a component and came out of it; the results that one of them returned are its input."""
    attributes = span.attributes
    role = _COMPONENT_ROLES.get(span.name)
    if role is SpanRole.MODEL:
        return Conversation(lambda: _printed_in(attributes, _OUTPUT))

    def given() -> list[ChatMessage]:
        return _printed_in(attributes, _INPUT, "messages")

    if role is SpanRole.AGENT:  # its output begins with its input
        return Conversation(given, lambda: _printed_in(attributes, _OUTPUT, "messages")[len(given()) :])
    return Conversation(given, lambda: _printed_in(attributes, _OUTPUT))


def _printed_in(attributes: Attributes, key: str, member: str = "") -> list[ChatMessage]:
    """The printed messages in a value, or in one of its members."""
    if haystack.PRINTED_CHAT not in (attributes.text(key) or ""):
        return []
    value = first_value(attributes, (key,))
    return haystack.printed_chat(value.get(member) if member and isinstance(value, dict) else value)


def _given(attributes: Attributes) -> Sequence[ChatMessage]:
    """What a model was given: its messages, else the items of the request that hold what they leave out."""
    messages = read_messages(flattened_list(attributes, "llm.input_messages."), "user")
    if not _has_items_of_tools(attributes.text(_INPUT) or ""):
        return messages
    request = first_value(attributes, (_INPUT,))
    items = read_messages(request if isinstance(request, list) else value_at(request, "input"))
    return [*(message for message in messages if message.role == "system"), *items] if items else messages


def _offered(attributes: Attributes) -> Mapping[str, JsonValue]:
    """The tools that a model was offered; those of the provider stand in its response alone."""
    tools = [value_at(entry, "tool", "json_schema") for entry in flattened_list(attributes, "llm.tools.")]
    if tools and _has_items_of_tools(attributes.text(_OUTPUT) or ""):
        tools += list_at(first_value(attributes, (_OUTPUT,)), "tools")
    return read_tool_definitions(tools)


def _has_items_of_tools(data: str) -> bool:
    """Whether data of OpenAI's Responses API hold calls other than of functions, which messages leave out."""
    return data.count(_CALL_ITEM) > data.count("function" + _CALL_ITEM) and '"type"' in data


def _answered(attributes: Attributes) -> Sequence[ChatMessage]:
    """What a model answered: its messages, else the provider's response that stands for them.

    Messages may leave out the calls that are in the response.
    """
    messages = read_messages(flattened_list(attributes, "llm.output_messages."), "assistant")
    if _CALLS_OF_CLIENT + "0.tool_call.function.name" in attributes:
        return [*_calls_of_client(attributes), *messages]
    raw = attributes.text(_OUTPUT) or ""
    if not raw:
        return messages
    if raw.startswith(_RESPONSES) and is_broken_data(raw):
        return [ChatMessage("tool", unreadable=raw), *messages]
    if not ('"object"' in raw and '"response"' in raw and _has_items_of_tools(raw)) and (
        any(message.requests for message in messages) or (messages and '"tool_calls"' not in raw)
    ):
        return messages
    response = decode_result(attributes.get(_OUTPUT))
    if response.state is not ValueState.PRESENT:
        return messages
    read = read_model_response(response.value)
    return [message for message in read if message.text or message.requests] or messages


def _calls_of_client(attributes: Attributes) -> list[ChatMessage]:
    """The calls that the model's client made by itself before the answer, with results if there are any."""
    history = first_object(attributes, (_OUTPUT,)).get("automatic_function_calling_history")
    contents = first_object(attributes, (_INPUT,)).get("contents")
    if not isinstance(history, list) or not isinstance(contents, list):
        return assistant_messages("", flattened_list(attributes, _CALLS_OF_CLIENT)) or [
            ChatMessage("assistant")
        ]
    messages = read_messages(history[len(contents) :], "assistant")
    for message in messages:
        message.responses = [_out_of_client(response) for response in message.responses]
    return messages


def _out_of_client(response: CallResponse) -> CallResponse:
    """What a function returned or why it failed, without what the client put around it."""
    content = response.content
    if isinstance(content, dict) and content.keys() in ({"result"}, {"error"}):
        ((outcome, value),) = content.items()
        return replace(response, content=value, failed=outcome == "error")
    return response


def _answers_with_error(span: Span) -> bool:
    return span.envelope.scope_name == _EMITTER_SCOPE and span.status_code == STATUS_ERROR


def _named_tools(attributes: Attributes) -> list[JsonValue]:
    """The names of an agent's tools and of the agents that it may call, where its own span lists them."""
    if _TOOL_NAMES not in attributes:
        return []
    managed = flattened_list(attributes, "smolagents.managed_agents.")
    return [json_value(attributes.get(_TOOL_NAMES)), [value_at(entry, "name") for entry in managed]]


def _arguments(span: Span) -> DecodedValue:
    attributes = span.attributes
    decoded = first_arguments(attributes, (_INPUT,))
    if span.envelope.scope_name == _EMITTER_SCOPE:  # the record of a call as an event
        given = value_at(decoded.value, "input")
        is_record = object_at(decoded.value).keys() == {"input", "options"} and isinstance(given, dict)
        return value_of(given) if is_record else decoded
    parameters = first_arguments(attributes, ("tool.parameters",))
    described = object_at(parameters.value)
    schema = _parameters_in_schema(described)
    if schema or (described.get("properties") == {} and described.get("type") == "object"):
        parameters = ABSENT
    if isinstance(decoded.value, dict):
        return _out_of_call_envelope(decoded, decoded.value, list(schema))
    if decoded.state is ValueState.UNPARSED and len(schema) == 1:
        return value_of({next(iter(schema)): decoded.value})
    return better(decoded, parameters)


def _out_of_call_envelope(decoded: DecodedValue, value: JsonObject, parameters: list[str]) -> DecodedValue:
    """Arguments recorded as a Python call: positional ones get the names of the parameters, if known."""
    positional, keywords = value.get("args"), value.get("kwargs")
    if not isinstance(keywords, dict):
        return decoded
    if len(value) == 1 and "kwargs" not in parameters:
        return value_of(dict(given_keywords(keywords, parameters)))
    if not isinstance(positional, list) or not value.keys() <= _OPTIONS_OF_CALLS:
        return decoded
    if len(positional) <= len(parameters):
        return value_of({**dict(zip(parameters, positional, strict=False)), **keywords})
    return value_of({"$args": positional, **keywords})


def _requests_of_node(attributes: Attributes) -> list[ChatMessage]:
    """The calls that a graph's tool node was given to execute."""
    given = attributes.get(_INPUT)
    if not isinstance(given, str) or '"tool_call"' not in given:
        return []
    try:
        value = parse_json(given)
    except ValueError:
        return []
    listed = value if isinstance(value, list) else [value_at(value, "tool_call")]
    is_of_calls = all(value_at(item, "type") == "tool_call" for item in listed)
    return (assistant_messages("", listed) or [ChatMessage("assistant")]) if listed and is_of_calls else []


def _category(span: Span, called: str) -> CallCategory:
    if called in known_names.HANDOFF_TOOL_NAMES:
        return CallCategory.HANDOFF
    category = known_names.category_by_name(called)
    if category is not CallCategory.FUNCTION:
        return category
    if claude_code.called_sub_agent(called, span.attributes.text(_INPUT)):
        return CallCategory.AGENT
    return CallCategory.RETRIEVAL if span.attributes.get(_KIND) == "RETRIEVER" else category


def _run_in_graph(span: Span) -> str | None:
    """The agent whose run a graph's span is, None for a step of a graph and for what is in none."""
    if not _metadata_mentions(span, langgraph.NODE, langgraph.AGENT):
        return None
    # Most spans are known by words: metadata differ from span to span, and would each be read anew.
    name = span.name
    if name and _metadata_mentions(span, *langgraph.words_of_agent(name)):
        return name
    has_places = span.envelope.scope_name != "@arizeai/openinference-instrumentation-langchain"
    may_be_inner = not has_places or name in langgraph.UNNAMED_GRAPHS
    if not may_be_inner and not _metadata_mentions(span, *langgraph.WORDS_OF_INNER_RUN):
        return None
    return langgraph.agent_of(
        name,
        langgraph.texts_of(_metadata(span)),
        lambda: span.attributes.text(_OUTPUT),
        has_places=has_places,
        passed_on=lambda: langgraph.PASSED_ON in span.status_message,
    )


def _is_outermost_graph(span: Span) -> bool:
    """Whether the span is the run of a graph that is in no other."""
    if span.name in langgraph.UNNAMED_GRAPHS:
        return True
    if _metadata_mentions(span, langgraph.NODE):
        return False
    if _metadata_mentions(span, langgraph.INTEGRATION):
        return langgraph.is_graph(_metadata(span))
    is_chain = span.envelope.scope_name == "openinference.instrumentation.langchain"
    return is_chain and langgraph.is_conversation(span.attributes.text(_OUTPUT))


def _is_agent_workflow(span: Span) -> bool:
    """Whether a CHAIN span is an agent's run as a workflow: by its class, else by what it was given."""
    if span.name in llama_index.AGENT_WORKFLOW_SPANS:
        return True
    if not span.name.endswith(".run"):
        return False
    attributes = span.attributes
    return attributes.mentions(_INPUT, '"setup_agent": {') or llama_index.is_printed_result(
        attributes.text(_OUTPUT) or ""
    )


def _metadata_mentions(span: Span, *words: str) -> bool:
    return span.attributes.mentions("metadata", *words)


def _metadata(span: Span) -> JsonObject:
    encoded = span.attributes.encoded("metadata")
    return {} if encoded is None else _object_in(encoded)


@cached_for_small(128)  # of a trace: the role, the agent and the session each look at them
def _object_in(any_value: bytes) -> JsonObject:
    return object_at(first_arguments(Attributes({"": any_value}), ("",)).value)


def _printed_agent(attributes: Attributes, key: str) -> str:
    return llama_index.agent_in_printed_step(attributes.text(key) or "")


def _name_in_span_name(span: Span) -> str:
    name = span.name
    if span.attributes.get(_KIND) == "CHAIN":
        return "" if "." in name else known_names.name_of_chain(name)
    name = name.removeprefix(_AGENT_SPAN_PREFIX)
    if name.startswith("agent_run [") and name.endswith("]"):
        return name[len("agent_run [") : -1]
    role, _, task = name.partition(".")
    if task.endswith(".execute"):
        return role
    for suffix in (".run", "._execute_core", ".kickoff", ".on_messages_stream", ".agent"):
        name = name.removesuffix(suffix)
    return name


def _delegated_work(tool: str, arguments: JsonValue) -> tuple[str, str] | None:
    """The agent that a call of `tool` gives work to, and the request; None for calls that name no agent."""
    agent = text_at(arguments, "coworker") if tool in known_names.DELEGATION_TOOL_NAMES else ""
    if not agent:
        return None
    task = value_at(arguments, "task")
    return agent, task if isinstance(task, str) else text_at(arguments, "question")


def _parameters_in_schema(parameters: JsonObject) -> JsonObject:
    """The parameters by name where these are a schema, nothing where they are arguments."""
    properties = parameters.get("properties")
    if isinstance(properties, dict):
        return properties
    is_schema = all(object_at(member).keys() & {"type", "title"} for member in parameters.values())
    return parameters if is_schema else {}


def _recorded_input(attributes: Attributes) -> DecodedValue:
    """What the run was given, as far as its own span shows it."""
    task = attributes.text("task_description")
    if task is not None:
        return text_value(task)
    decoded = first_input(attributes, (_INPUT,))
    value = decoded.value
    if not isinstance(value, dict):
        is_cut = decoded.state is ValueState.TRUNCATED
        return ABSENT if is_cut and (decoded.text or "").startswith('{"init_state": {') else decoded
    if value.keys() >= _WORKFLOW_KEYS:
        return ABSENT
    if value.keys() == _STEERING_KEYS:
        return _in_report(attributes, "description") or ABSENT
    printed = _printed_in(attributes, _INPUT)
    if printed:
        return last_content(printed, "user")
    text = last_printed_message(list_at(value, "messages"))
    return decoded if text is None else text_value(text)


def _recorded_output(attributes: Attributes) -> DecodedValue:
    """What the run answered, as far as its own span shows it."""
    raw = attributes.text(_OUTPUT) or ""
    if llama_index.is_printed_result(raw):
        return text_value(llama_index.answer_in_printed_result(raw))
    answer = answer_in_printed_steps(raw)
    if answer is not None:
        return decode_output(answer if isinstance(answer, (str, dict, list)) else json_text(answer))
    report = _in_report(attributes, "raw")
    if report is not None:
        return report
    printed = _printed_in(attributes, _OUTPUT)
    if printed:
        return last_content(printed, "assistant")
    decoded = first_output(attributes, (_OUTPUT,))
    if not isinstance(value_at(decoded.value, _TRAJECTORY), dict):
        return decoded
    # The fields that a program of prompts was to answer, without the way to them; one alone as it is.
    fields = object_at(decoded.value).items()
    answers = {key: field for key, field in fields if key not in (_TRAJECTORY, "reasoning")}
    return decode_output(next(iter(answers.values())) if len(answers) == 1 else answers)


def _in_report(attributes: Attributes, key: str) -> DecodedValue | None:
    """A text in the report of a finished task, which repeats the task; None where there is no report."""
    raw = attributes.text(_OUTPUT) or ""
    report = object_at(decode_result(raw).value) if '"expected_output"' in raw else {}
    if not report.keys() >= _REPORT_KEYS:
        return None
    text = report[key]
    return text_value(text if isinstance(text, str) else None)


DIALECT = Dialect(
    "openinference",
    (_KIND,),
    _role,
    _tool,
    _agent,
    _conversation,
    rank=50,
    usage=_usage,
    has_usage=_has_usage,
)
