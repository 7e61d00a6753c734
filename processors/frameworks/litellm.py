"""LiteLLM: the requests to providers that its `otel` callback records, each with the provider's own fields.

Where a span of the application is current, the callback makes no span of its own for a model call: it writes
on that span what it knows, each call over the one before, and only these requests show every call.
"""

from collections.abc import Sequence

from processors.model import JsonObject, decode_result
from processors.shapes.available_tools import read_tool_definitions
from processors.shapes.content_records import ContentRecords, ContentSpans
from processors.shapes.dialect import Conversation, Dialect, SpanRole
from processors.shapes.messages import ChatMessage, read_messages, read_model_response
from processors.shapes.record_messages import message_in_body, records_by_turn
from processors.shapes.reported_runs import INPUT_MESSAGES, OUTPUT_MESSAGES
from processors.shapes.rewriting import CarrierKind, Outline, RunScope, Trace
from processors.spans import Attributes, LogRecord, Span

_PROVIDERS = (
    "openai", "anthropic", "azure", "azure_ai", "bedrock", "cohere_chat", "databricks", "deepseek",
    "fireworks_ai", "gemini", "groq", "hosted_vllm", "lm_studio", "mistral", "ollama", "ollama_chat",
    "openrouter", "perplexity", "together_ai", "vertex_ai", "xai",
)  # fmt: skip
_SYSTEM = ("system", "instructions")
_REQUEST = ("messages", "contents", "input")
_RESPONSE = ("choices", "candidates", "output", "content", "role")

_PROXIED_REQUEST = "Received Proxy Server Request"
_LOOK_BACK = 64
"""Runs of one caller that a request may continue: keeps hostile traces linear."""

_PROMPT_RECORD, _COMPLETION_RECORD = "gen_ai.content.prompt", "gen_ai.content.completion"


def is_borrowed(span: Span) -> bool:
    """Whether the callback wrote a model call on a span of the application."""
    # The key first: roles are remembered by what they look at, and names differ.
    if "litellm.call_id" not in span.by_key:
        return False
    return span.envelope.scope_name != "litellm" and span.name != "litellm_request"


def _role(span: Span) -> SpanRole | None:
    fields = _keys(span.attributes, (*_REQUEST, *_RESPONSE))
    is_chat = "messages" in fields or "contents" in fields or fields.keys() >= {"input", "output"}
    return SpanRole.MODEL if is_chat else None


def _conversation(span: Span) -> Conversation:
    attributes = span.attributes
    return Conversation(
        lambda: _given(attributes),
        lambda: _answered(attributes),
        lambda: read_tool_definitions(_fields(attributes, ("tools",)).get("tools")),
    )


def _keys(attributes: Attributes, names: tuple[str, ...]) -> dict[str, str]:
    """For the fields of the provider's request and response that are there, the attributes that hold them."""
    paths = ((key.split("."), key) for key in attributes.beginning_with("llm."))
    return {path[2]: key for path, key in paths if len(path) == 3 and path[2] in names}


def _fields(attributes: Attributes, names: tuple[str, ...]) -> JsonObject:
    """The fields of the provider's request and response, of which lists are written as Python prints them."""
    return {
        field: decode_result(attributes.get(key)).value for field, key in _keys(attributes, names).items()
    }


def _given(attributes: Attributes) -> list[ChatMessage]:
    fields = _fields(attributes, (*_SYSTEM, *_REQUEST))
    messages: list[ChatMessage] = []
    for key in _SYSTEM:
        if isinstance(fields.get(key), (str, list)):
            messages.extend(read_messages({"role": "system", "content": fields[key]}))
    request = next((fields[key] for key in _REQUEST if key in fields), None)
    return [*messages, *read_messages(request, "user")]


def _answered(attributes: Attributes) -> list[ChatMessage]:
    fields = _fields(attributes, _RESPONSE)
    return read_model_response(fields) if fields.keys() - {"role"} else []


def _join_records(records: Sequence[LogRecord], content: ContentSpans) -> None:
    for span, of_turn in records_by_turn(records, content):
        given = [message_in_body(record, "user") for record in of_turn if record.name == _PROMPT_RECORD]
        answered = [
            message_in_body(record, "assistant") for record in of_turn if record.name == _COMPLETION_RECORD
        ]
        content.offer_messages(span, INPUT_MESSAGES, given)
        content.offer_messages(span, OUTPUT_MESSAGES, answered)


def rewrite_runs(trace: Trace, outline: Outline) -> None:
    """Make one run of the requests in which a client of the proxy, whose own span is not here, goes on.

    They name one span of the client, and each is given the messages of the one before it, and more.
    """
    if len(outline.runs) < 2:
        return
    tree = trace.tree
    open_runs: dict[bytes, list[tuple[RunScope, list[str]]]] = {}
    continuing: set[RunScope] = set()
    for run in sorted(outline.runs, key=lambda run: run.carrier):
        parent = tree.parent_ids[run.carrier]
        is_request = tree.views[run.carrier].name == _PROXIED_REQUEST
        if run.kind is not CarrierKind.LOCAL_ROOT or not is_request or not parent or not run.models:
            continue
        reading = trace.readings[run.models[0]]
        given = [] if reading is None else [message.text for message in reading.conversation.input]
        of_client = open_runs.setdefault(parent, [])
        del of_client[_LOOK_BACK:]
        for place, (earlier, history) in enumerate(of_client):
            if len(history) < len(given) and history == given[: len(history)]:
                earlier.layers[:0] = run.layers  # the last request ends the run
                earlier.models += run.models
                earlier.tools += run.tools
                continuing.add(run)
                del of_client[place]
                run = earlier
                break
        of_client.insert(0, (run, given))
    if continuing:
        outline.runs = [run for run in outline.runs if run not in continuing]


DIALECT = Dialect(
    "litellm",
    tuple(f"llm.{provider}.{field}" for provider in _PROVIDERS for field in _REQUEST),
    _role,
    conversation=_conversation,
    rank=70,
    scopes=("litellm",),
)

RECORDS = ContentRecords(_join_records, frozenset({_PROMPT_RECORD, _COMPLETION_RECORD}))
