"""Claude Code, and the Claude Agent SDK that runs it: spans named `claude_code.*`, bare attribute names.

A sub-agent is started by a call of a tool that names the kind of agent. Under OpenInference its span does not
name the agent: it is named after the tool that started it, or after nothing where that call had ended before,
since a sub-agent may go on in the background. Then it lies next to the call.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from processors.model import (
    ABSENT,
    REDACTION_MARKERS,
    DecodedValue,
    JsonObject,
    ValueState,
    decode_arguments,
    decode_result,
    json_text,
    text_value,
    value_of,
)
from processors.shapes.attribute_reading import better, first_arguments, first_decoded, first_text
from processors.shapes.content_records import ContentRecords, ContentSpans
from processors.shapes.decisions import reported_decision
from processors.shapes.dialect import AgentReading, Dialect, SpanRole, ToolReading
from processors.shapes.dialect_functions import roles
from processors.shapes.members import failure, object_at, text_at
from processors.shapes.reported_runs import (
    ReportedCall,
    ReportedRun,
    call_in,
    merged_calls,
    turn_in,
)
from processors.shapes.result_envelope import open_result
from processors.shapes.rewriting import Outline, Trace
from processors.spans import Attributes, LogRecord, Span

SUB_AGENT = "subagent_type"
"""The argument that names the agent."""
AGENT_TOOLS = ("Agent", "Task")
"""The tool, by its name and the one that it had before."""


def called_sub_agent(tool: str, arguments: str | None) -> str:
    """The name of the agent that a call starts; empty for any other call, and where the name is hidden."""
    if tool not in AGENT_TOOLS or arguments is None or SUB_AGENT not in arguments:
        return ""
    name = text_at(decode_arguments(arguments).value, SUB_AGENT)
    return "" if name in REDACTION_MARKERS else name


_EXECUTION, _PERMISSION = "claude_code.tool.execution", "claude_code.tool.blocked_on_user"
_ROLES = roles(
    tool=("claude_code.tool", _EXECUTION, _PERMISSION),
    agent="claude_code.interaction",
    model="claude_code.llm_request",
)
_ANSWER = "response"
"""The attribute of the last text that the model gave, in a log record and from there on the interaction."""
_DETAILS = {
    "full_command": "command", "file_path": "file_path", "skill_name": "skill", SUB_AGENT: SUB_AGENT
}  # fmt: skip
"""Attributes of the span of a call that hold arguments, and what the tool calls these."""


def _role(span: Span) -> SpanRole | None:
    name = span.name
    return _ROLES.get(name, SpanRole.OTHER) if name.startswith("claude_code.") else None


def _tool(span: Span) -> ToolReading:
    attributes = span.attributes
    if span.name == _PERMISSION:
        decision = reported_decision(attributes.get("decision"), attributes.get("source"))
        return ToolReading(decision=decision, is_part=True)
    if span.name == _EXECUTION:
        failed = attributes.get("success") in (False, "false")
        error = failure(first_text(attributes, ("error",))) if failed else None
        return ToolReading(error=error, is_part=True)
    result = open_result(_output(span))
    return ToolReading(
        name=first_text(attributes, ("tool_name",)),
        call_id=first_text(attributes, ("tool_use_id", "gen_ai.tool.call.id")),
        arguments=better(first_arguments(attributes, ("tool_input",)), _details(attributes)),
        result=result.result,
        error=result.error,
        runs_agent=SUB_AGENT in attributes or attributes.get("tool_name") in AGENT_TOOLS,
    )


def _agent(span: Span) -> AgentReading:
    attributes = span.attributes
    name = first_text(attributes, (SUB_AGENT,))
    prompt = first_decoded(attributes, ("user_prompt",), decode_result)
    answer = first_decoded(attributes, (_ANSWER,), decode_result)
    return AgentReading(
        name="" if name in REDACTION_MARKERS else name,
        session=first_text(attributes, ("session.id",)),
        input=text_value(prompt.text) if prompt.state is ValueState.PRESENT else prompt,
        output=text_value(answer.text) if answer.state is ValueState.PRESENT else answer,
    )


def _details(attributes: Attributes) -> DecodedValue:
    """The arguments in attributes of their own; `REDACTED` where these are all masked."""
    details = {name: detail for key, name in _DETAILS.items() if (detail := attributes.text(key)) is not None}
    shown: JsonObject = {
        name: detail for name, detail in details.items() if detail.strip() not in REDACTION_MARKERS
    }
    if shown:
        return value_of(shown)
    return DecodedValue(None, "", ValueState.REDACTED) if details else ABSENT


def _output(span: Span) -> DecodedValue:
    result = ABSENT
    for event in span.events if span.has_events else ():
        if event.name == "tool.output":
            for key in ("output", "content", "diff"):
                if event.attributes.get(key) not in (None, ""):
                    result = better(result, decode_result(event.attributes.get(key)))
    return result


def _join_records(records: Sequence[LogRecord], content: ContentSpans) -> None:
    """What is of a call goes to that with the record's id, prompt and answer to the interaction named."""
    answers: dict[bytes, str | None] = {}
    for record in records:
        attributes = record.attributes
        if record.name in ("tool_result", "tool_decision"):
            call = content.call(attributes.text("tool_use_id") or "")
            if call is not None:
                content.offer(call, "tool_input", attributes.text("tool_input"))
                content.offer_decision(call, record)
            continue
        span = content.span(record.message.span_id)
        if span is None:
            continue
        if record.name == "user_prompt":
            content.offer(span, "user_prompt", attributes.text("prompt"))
        elif record.name == "assistant_response":
            answers[span.span_id] = attributes.text(_ANSWER)
    for span_id, answer in answers.items():
        span = content.span(span_id)
        if span is not None:
            content.offer(span, _ANSWER, answer)


def _reported_run(records: Sequence[LogRecord]) -> ReportedRun | None:
    """Without the tracing beta: a record for each call and each request to the model, none with a result.

    With it single requests may name no trace; the prompt always does.
    """
    if not any(record.name == "user_prompt" for record in records):
        return None
    run = ReportedRun(session=records[0].attributes.text("session.id") or "")
    reports: list[ReportedCall] = []
    for record in records:
        attributes = record.attributes
        if record.name == "user_prompt":
            run.prompt = attributes.text("prompt")
        elif record.name == "assistant_response":
            run.answer = attributes.text(_ANSWER)
        elif record.name in ("tool_decision", "tool_result"):  # a call that was refused has the first alone
            call = call_in(record, name="tool_name", call_id="tool_use_id", arguments="tool_input")
            reports.append(replace(call, arguments=call.arguments or _summarized_arguments(attributes)))
        elif record.name == "api_request":
            run.turns.append(turn_in(record))
    run.calls = merged_calls(reports)
    last = records[-1]
    # Beside an answer can be a call. Only where no person has to approve that, its decision comes at once.
    run.is_over = last.name == "assistant_response" and last.attributes.get("query_source") == "sdk"
    return run if run.calls or run.turns else None


def _summarized_arguments(attributes: Attributes) -> str | None:
    """The arguments that the summary in a record shows."""
    summary = object_at(decode_arguments(attributes.text("tool_parameters")).value)
    shown: JsonObject = {name: summary[key] for key, name in _DETAILS.items() if key in summary}
    return json_text(shown) if shown else None


DIALECT = Dialect("claude_code", ("span.type", "tool_name", "user_prompt"), _role, _tool, _agent, rank=5)


RECORDS = ContentRecords(
    _join_records,
    frozenset({"user_prompt", "tool_decision", "tool_result", "api_request", "assistant_response"}),
    scope="com.anthropic.claude_code.events",
    prompt_key="prompt.id",
    run=_reported_run,
)

_SPANS = ("ClaudeAgentSDK.Agent", "ClaudeAgentSDK.Task", "ClaudeAgentSDK.Subagent")
_MOST_UNDER_WAY = 64
"""Calls of sub-agents whose runs have not begun, beyond which none is named: keeps hostile traces linear."""


def rewrite_agents(trace: Trace, outline: Outline) -> None:
    """Name sub-agents of the Claude Agent SDK after the agent in the call that started them.

    In the background the first to begin is that of the first call. Where agents of several names are under
    way, it is unknown whose run it is, and it keeps its name.
    """
    if len(outline.runs) < 2 or not trace.is_read_by("openinference"):
        return
    sub_agents = [
        run for run in outline.runs if trace.tree.views[run.carrier].name in _SPANS and run.parent is not None
    ]
    if not sub_agents:
        return

    def started_by(call: int) -> str:
        return called_sub_agent(trace.tool(call).name, trace.tool(call).arguments.text)

    taken = {run.requested_by for run in outline.runs}
    started: dict[int, deque[tuple[int, str]]] = {}
    for call in sorted(outline.calls):
        name = "" if call in taken else started_by(call)
        if name:
            started.setdefault(trace.tree.parents[call], deque()).append((call, name))
    under_way: dict[int, deque[tuple[int, str]]] = {}
    for run in sorted(sub_agents, key=lambda run: run.carrier):
        if run.requested_by >= 0:
            run.agent_name = started_by(run.requested_by)
            continue
        parent = trace.tree.parents[run.carrier]
        due = started.get(parent, deque())
        begun = under_way.setdefault(parent, deque())
        while due and due[0][0] < run.carrier:
            begun.append(due.popleft())
        if 0 < len(begun) <= _MOST_UNDER_WAY and len({name for _, name in begun}) == 1:
            run.requested_by, run.agent_name = begun.popleft()
