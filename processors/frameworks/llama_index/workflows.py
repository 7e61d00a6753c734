"""The workflows that LlamaIndex's agents run as, in the spans of all instrumentations.

Some record the framework's objects as Python prints them.
"""

import re
from typing import Final

from processors.frameworks.shapes.printed_messages import QUOTED, printed_text

AGENT_WORKFLOW_SPANS: Final[frozenset[str]] = frozenset(
    {"AgentWorkflow.run", "CodeActAgent.run", "FunctionAgent.run", "ReAct.forward", "ReActAgent.run"}
)
"""Names of chains that are an agent's run as a workflow of steps; `ReAct.forward` is DSPy's."""

AGENT_STEP: Final = ".setup_agent"
"""How the name of a step ends that tells the agent which takes over."""

REQUEST_PREPARATION: Final = "._prepare_chat_with_tools"
"""How the name of a span ends in which a model's class puts a request together and asks nobody."""

AGENT_IN_STEP: Final = '"current_agent_name": "'
"""What stands before that agent's name in the JSON of a step."""

_TEXT_BLOCK = re.compile(rf"TextBlock\(block_type='text', text={QUOTED}\)")
_STEP_AGENT = re.compile(r"current_agent_name='([^'\"\\]+)'\)(?:\"\})?")
_STEP_AGENT_LENGTH = 300
_RUN_RESULT = "StopEvent(result=AgentOutput("


def is_printed_result(text: str) -> bool:
    """Whether `text` is the printed outcome of an agent's run, and no text that a model wrote."""
    return text.startswith(_RUN_RESULT)


def answer_in_printed_result(text: str) -> str | None:
    """The answer in the printed outcome of an agent's run; None where it was cut off."""
    return printed_text(_TEXT_BLOCK.search(text))


def agent_in_printed_step(text: str) -> str:
    """The name of the agent with which the printed object of a step ends, or the empty text."""
    tail = text[-_STEP_AGENT_LENGTH:]
    match = _STEP_AGENT.fullmatch(tail, max(tail.rfind("current_agent_name="), 0))
    return "" if match is None else match[1]
