"""LiteLLM: the requests to providers that its `otel` callback records, each with the provider's own fields.

Where a span of the application is current, the callback makes no span of its own for a model call: it writes
on that span what it knows, each call over the one before, and only these requests show every call.
"""

from typing import Final

from processors.model import JsonObject, JsonValue, decode_result
from processors.shapes.available_tools import read_tool_definitions
from processors.shapes.dialect import Conversation, Dialect, SpanRole
from processors.shapes.messages import ChatMessage, read_messages, read_model_response
from processors.spans import Attributes, Span

_KEY = "litellm.call_id"
_OWN_SCOPE = "litellm"
_OWN_SPAN = "litellm_request"


def is_borrowed(span: Span) -> bool:
    """Whether what the span says of a model call was written on it by another than who made it."""
    return _KEY in span.by_key and span.envelope.scope_name != _OWN_SCOPE and span.name != _OWN_SPAN


_PROVIDERS = (
    "openai", "anthropic", "azure", "azure_ai", "bedrock", "cohere_chat", "databricks", "deepseek",
    "fireworks_ai", "gemini", "groq", "hosted_vllm", "lm_studio", "mistral", "ollama", "ollama_chat",
    "openrouter", "perplexity", "together_ai", "vertex_ai", "xai",
)  # fmt: skip
_SYSTEM = ("system", "instructions")
_ASKED = ("messages", "contents", "input")
_ANSWERED = ("choices", "candidates", "output", "content", "role")


def _role(span: Span) -> SpanRole | None:
    told = _fields(span.attributes, (*_ASKED, *_ANSWERED))
    is_chat = "messages" in told or "contents" in told or told.keys() >= {"input", "output"}
    return SpanRole.MODEL if is_chat else None


def _conversation(span: Span) -> Conversation:
    attributes = span.attributes
    return Conversation(
        lambda: _asked(attributes),
        lambda: _answered(attributes),
        lambda: read_tool_definitions(_fields(attributes, ("tools",)).get("tools")),
    )


def _fields(attributes: Attributes, names: tuple[str, ...]) -> JsonObject:
    """The fields of the provider's request and response, of which lists are written as Python prints them."""
    told: JsonObject = {}
    for key in attributes:
        namespace, _, rest = key.partition(".")
        name = rest.rpartition(".")[2]
        if namespace == "llm" and name in names and rest.count(".") == 1:
            told[name] = decode_result(attributes.get(key)).value
    return told


def _asked(attributes: Attributes) -> list[ChatMessage]:
    told = _fields(attributes, (*_SYSTEM, *_ASKED))
    messages: list[ChatMessage] = []
    for key in _SYSTEM:
        if isinstance(told.get(key), (str, list)):
            system: JsonValue = {"role": "system", "content": told[key]}
            messages.extend(read_messages(system))
    given: JsonValue = next((told[key] for key in _ASKED if key in told), None)
    return [*messages, *read_messages(given, "user")]


def _answered(attributes: Attributes) -> list[ChatMessage]:
    told = _fields(attributes, _ANSWERED)
    return read_model_response(told) if told.keys() - {"role"} else []


DIALECT: Final = Dialect(
    "litellm",
    tuple(f"llm.{provider}.{field}" for provider in _PROVIDERS for field in _ASKED),
    _role,
    conversation=_conversation,
    rank=70,
    scopes=("litellm",),
)
