"""The id of a conversation where conventions share its attribute, on spans of any kind and on resources."""

from typing import Final

from processors.frameworks.shapes.attribute_reading import first_text
from processors.spans import Attributes

_KEYS: Final = ("gen_ai.conversation.id", "session.id", "langfuse.session.id")
CONVERSATION_KEYS: Final = frozenset(_KEYS)
"""Every attribute that is looked at."""


def conversation_id(attributes: Attributes) -> str:
    """The conversation that these attributes name; empty where they name none."""
    return first_text(attributes, _KEYS)
