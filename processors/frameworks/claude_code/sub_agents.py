"""Claude's sub-agents, as several conventions tell of them: calls of a tool that names the kind of agent."""

from typing import Final

from processors.model import REDACTION_MARKERS, decode_arguments

SUB_AGENT: Final = "subagent_type"
"""The argument that names the agent."""
AGENT_TOOLS: Final = ("Agent", "Task")
"""The tool, by its name and the one that it had before."""


def called_sub_agent(tool: str, arguments: str | None) -> str:
    """The name of the agent that a call starts; empty for any other call, and where the name is hidden."""
    if tool not in AGENT_TOOLS or arguments is None or SUB_AGENT not in arguments:
        return ""
    given = decode_arguments(arguments).value
    name = given.get(SUB_AGENT) if isinstance(given, dict) else None
    return name if isinstance(name, str) and name not in REDACTION_MARKERS else ""
