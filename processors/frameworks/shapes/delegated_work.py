"""Work that an agent gives to another one with a tool: who is asked, and what."""

from typing import NamedTuple

from processors.frameworks.shapes.placeholder_names import DELEGATION_TOOL_NAMES
from processors.model.json_value import JsonValue

_WHO = "coworker"
_WHAT = ("task", "question")


class DelegatedWork(NamedTuple):
    """The name of the agent that is asked, and what it is asked; empty where that is not told."""

    agent: str
    asked: str


def delegated_work(tool: str, arguments: JsonValue) -> DelegatedWork | None:
    """What a call of `tool` gives to whom; None if it is no such call or does not tell to whom."""
    if tool not in DELEGATION_TOOL_NAMES or not isinstance(arguments, dict):
        return None
    agent = arguments.get(_WHO)
    if not isinstance(agent, str) or not agent:
        return None
    asked = next((told for key in _WHAT if isinstance(told := arguments.get(key), str)), "")
    return DelegatedWork(agent, asked)
