"""The operation of a span by the GenAI conventions, in the conventions' own spelling."""

import re
from typing import Final

from processors.spans import Attributes

OPERATION: Final = "gen_ai.operation.name"
_WORD_STARTS = re.compile("(?<=[a-z0-9])(?=[A-Z])")


def operation_name(attributes: Attributes) -> str:
    """The operation, empty where none is named.

    Microsoft's Agent 365 SDK wrote the names of its enumeration until 2.0: `Chat`, `GenerateContent`.
    """
    name = attributes.text(OPERATION) or ""
    return name if name.islower() else _WORD_STARTS.sub("_", name).lower()
