"""What frameworks write of a call that waits for a decision, or was refused.

All of it is bound to versions of the frameworks that write it. It is data, so that a new one is one line.
"""

import re
from typing import NamedTuple

from processors.model import Decision
from processors.spans import Span

INTERRUPTION_ERRORS: tuple[str, ...] = (
    "ApprovalRequired",  # Pydantic AI
    "CallDeferred",  # Pydantic AI
    "GraphInterrupt",  # LangGraph
    "InterruptException",  # Strands Agents
)
"""Exceptions by which a tool or a node stops its run until there is an answer; they are no errors."""

_DEFERRAL = "pydantic_ai.tool.deferral.name"
"""The attribute in which Pydantic AI names that exception, in every format."""
_STATUS_ERROR = 2

DECISION, DECISION_SOURCE = "tracegrade.tool.call.decision", "tracegrade.tool.call.decision.source"
"""The attributes of a call's span in which a decision is put that something else reports."""


class CallDecision(NamedTuple):
    """What was decided about a call, and the word of the framework that shows it."""

    decision: Decision
    source: str


_PENDING, _DENIED = Decision.PENDING, Decision.DENIED
_WORDS: dict[str, Decision] = {
    "accept": Decision.APPROVED,  # Claude Code, Gemini CLI, Qwen Code
    "auto_accept": Decision.APPROVED,  # Gemini CLI, Qwen Code: nobody had to be asked
    "modify": Decision.APPROVED,  # Gemini CLI, Qwen Code: with other arguments
    "reject": _DENIED,  # Claude Code, Gemini CLI, Qwen Code
    "approved": Decision.APPROVED,  # Codex, and those that begin so, such as `approved_for_session`
    "denied": _DENIED,  # Codex, likewise
    "abort": _DENIED,  # Codex: and the turn ended
    "timed_out": _DENIED,  # Codex: nobody answered in time
}
"""What coding agents call the decision about a call."""
_ANSWERS: dict[str, CallDecision] = {
    "This tool call requires confirmation, please approve or reject.": (
        CallDecision(_PENDING, "require_confirmation")  # Google ADK
    ),
    "This tool call is rejected.": CallDecision(_DENIED, "require_confirmation"),  # Google ADK
    "Tool execution was not approved.": CallDecision(_DENIED, "needs_approval"),  # OpenAI Agents
    "User rejected the tool call for `": CallDecision(_DENIED, "HumanInTheLoopMiddleware"),  # LangChain
    "Error: Tool call invocation was rejected by user.": (
        CallDecision(_DENIED, "approval_mode")  # Microsoft Agent Framework
    ),
    "The tool call was denied.": CallDecision(_DENIED, "ToolDenied"),  # Pydantic AI
    "Tool call was not approved by the user": CallDecision(_DENIED, "requireApproval"),  # Mastra
    '{"type": "execution-denied"': CallDecision(_DENIED, "needsApproval"),  # Vercel AI SDK
    "The user doesn't want to proceed with this tool use.": CallDecision(_DENIED, "reject"),  # Claude Code
    "The user doesn't want to take this action right now.": CallDecision(_DENIED, "reject"),  # Claude Code
    "[Operation Cancelled] Reason: User denied execution": CallDecision(_DENIED, "reject"),  # Gemini CLI
    "[Operation Cancelled] Reason: User did not allow": CallDecision(_DENIED, "reject"),  # Gemini CLI
    "Error: request to call tool denied.": CallDecision(_DENIED, "requires_approval"),  # Letta
    "Function call was rejected by the user": CallDecision(_DENIED, "requires_confirmation"),  # Agno
    "Tool execution blocked by hook. Tool: ": CallDecision(_DENIED, "HookAborted"),  # CrewAI
    "tool cancelled by user": CallDecision(_DENIED, "cancel_tool"),  # Strands Agents
}
"""How what a model is given in place of a result begins, where the tool was not allowed to run."""
_IN_PLACE_OF_RESULT = re.compile(
    r'(?:\{"(?:error|output|result)": ?)?"?(' + "|".join(map(re.escape, _ANSWERS)) + ")"
)


def reported_decision(word: object, source: object) -> CallDecision | None:
    """The decision for which a coding agent has this word, with who or what decided; None for other words."""
    if not isinstance(word, str):
        return None
    decision = _WORDS.get(word) or _WORDS.get(word.partition("_")[0])
    return None if decision is None else CallDecision(decision, source if isinstance(source, str) else word)


def decision_at(span: Span) -> CallDecision | None:
    """The decision that `DECISION` on the span of a call has."""
    if DECISION not in span.by_key:
        return None
    return reported_decision(span.attributes.get(DECISION), span.attributes.get(DECISION_SOURCE))


def decision_in_place_of_result(text: str | None) -> CallDecision | None:
    """The decision that `text`, given to a model as the result of a call or as its error, shows."""
    if not text:
        return None
    match = _IN_PLACE_OF_RESULT.match(text)
    return None if match is None else _ANSWERS[match[1]]


def interruption_of(span: Span) -> str:
    """The exception by which what `span` reports stopped to wait for an answer; the empty text: it did not.

    The status is not looked at: some senders set it to OK, others to an error.
    """
    if not (span.event_count or span.status_code == _STATUS_ERROR or _DEFERRAL in span.by_key):
        return ""
    texts = [span.attributes.text(_DEFERRAL) or "", span.attributes.text("error.type") or ""]
    if span.has_events:
        for event in span.events:
            if event.name == "exception":
                texts.append(event.attributes.text("exception.type") or "")
    status = span.status_message
    for name in INTERRUPTION_ERRORS:
        if any(text.endswith(name) for text in texts) or status.startswith(name):
            return name
    return texts[0]
