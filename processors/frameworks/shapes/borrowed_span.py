"""Spans of an application on which a callback wrote the model calls that it watched."""

from processors.frameworks.shapes.placeholder_names import (
    MODEL_CALLBACK_KEY,
    MODEL_CALLBACK_SCOPE,
    MODEL_CALLBACK_SPAN,
)
from processors.spans.span import Span


def is_borrowed(span: Span) -> bool:
    """Whether what the span says of a model call was written on it by another than who made it."""
    return (
        MODEL_CALLBACK_KEY in span.attributes
        and span.envelope.scope_name != MODEL_CALLBACK_SCOPE
        and span.name != MODEL_CALLBACK_SPAN
    )
