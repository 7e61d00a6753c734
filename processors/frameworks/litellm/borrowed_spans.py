"""Spans of an application on which LiteLLM's callback wrote the model calls that it watched."""

from processors.spans import Span

_KEY = "litellm.call_id"
_OWN_SCOPE = "litellm"
_OWN_SPAN = "litellm_request"


def is_borrowed(span: Span) -> bool:
    """Whether what the span says of a model call was written on it by another than who made it."""
    return _KEY in span.by_key and span.envelope.scope_name != _OWN_SCOPE and span.name != _OWN_SPAN
