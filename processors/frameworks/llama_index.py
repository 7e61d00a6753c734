"""LlamaIndex: the workflows that its agents run as, its own instrumentation, and agents that share a run.

`llama-index-observability-otel` makes a span for each method, with its events. Steps show the event that they
were given as Python prints it, cut at some 200 characters; requests to models have all in their events. So
what is cut off in a step is taken from the model's messages.

The agents of one workflow share its run, and take turns: a step that names an agent begins after all that the
agent before it did, and before anything that this one does. So the times of the steps divide the run exactly.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from processors.model import (
    ABSENT,
    JsonObject,
    JsonValue,
    ValueState,
    decode_arguments,
    decode_result,
    json_value,
)
from processors.shapes.attribute_reading import first_text, first_value
from processors.shapes.available_tools import read_tool_definitions
from processors.shapes.dialect import AgentReading, Conversation, Dialect, SpanRole, ToolReading
from processors.shapes.members import objects_at, value_at
from processors.shapes.messages import ChatMessage, read_messages
from processors.shapes.model_usage import UsageReading, usage_in_object
from processors.shapes.printed_messages import QUOTED, printed_text
from processors.shapes.rewriting import CarrierKind, Outline, RunScope, Trace
from processors.spans import Attributes, Span

AGENT_WORKFLOW_SPANS = frozenset(
    {"AgentWorkflow.run", "CodeActAgent.run", "FunctionAgent.run", "ReAct.forward", "ReActAgent.run"}
)
"""Names of chains that are an agent's run as a workflow of steps; `ReAct.forward` is DSPy's."""

AGENT_STEP = ".setup_agent"
"""How the name of a step ends that names the agent which takes over."""

REQUEST_PREPARATION = "._prepare_chat_with_tools"
"""How the name of a span ends in which a model's class only prepares a request."""

AGENT_IN_STEP = '"current_agent_name": "'
"""What stands before that agent's name in the JSON of a step."""

_TEXT_BLOCK = re.compile(rf"TextBlock\(block_type='text', text={QUOTED}\)")
_STEP_AGENT = re.compile(r"current_agent_name='([^'\"\\]+)'\)(?:\"\})?")
_STEP_AGENT_LENGTH = 300


def is_printed_result(text: str) -> bool:
    """Whether `text` is the printed outcome of an agent's run, and no text that a model wrote."""
    return text.startswith("StopEvent(result=AgentOutput(")


def answer_in_printed_result(text: str) -> str | None:
    """The answer in the printed outcome of an agent's run; None where it was cut off."""
    return printed_text(_TEXT_BLOCK.search(text))


def agent_in_printed_step(text: str) -> str:
    """The name of the agent with which the printed object of a step ends, or the empty text."""
    tail = text[-_STEP_AGENT_LENGTH:]
    match = _STEP_AGENT.fullmatch(tail, max(tail.rfind("current_agent_name="), 0))
    return "" if match is None else match[1]


_SCOPES = ("llamaindex.opentelemetry.tracer",)
_GIVEN = "llamaindex.step.input_summary"
_CALL_STEP = ".call_tool"
_MODEL_METHODS = (".achat", ".chat", ".astream_chat", ".stream_chat")
_START, _END = "LLMChatStartEvent", "LLMChatEndEvent"
_NAME = re.compile(r"ToolCall\(tool_name='([^'\\]+)', tool_kwargs=")
_CALL_ID = re.compile(r", tool_id='([^'\\]*)'\)$")
_RESULT = re.compile(
    rf"tool_output=ToolOutput\(blocks=\[TextBlock\(block_type='text', text={QUOTED}\)\], tool_name="
)


def _role(span: Span) -> SpanRole | None:
    if span.envelope.scope_name not in _SCOPES:
        return None
    name = span.name
    if name.endswith(_CALL_STEP):
        is_call = (span.attributes.text(_GIVEN) or "").startswith("ToolCall(")
        return SpanRole.TOOL if is_call else SpanRole.OTHER
    if name.endswith((".acall", ".call")):
        return SpanRole.TOOL
    if name.endswith(AGENT_STEP):
        return SpanRole.STEP if agent_in_printed_step(span.attributes.text(_GIVEN) or "") else SpanRole.OTHER
    if name.endswith(".run"):
        return SpanRole.AGENT if name in AGENT_WORKFLOW_SPANS else SpanRole.WORKFLOW
    if name.endswith(_MODEL_METHODS) and not name.endswith(REQUEST_PREPARATION):
        # A wrapper has the name of the method that it wraps, and no events.
        return SpanRole.MODEL if span.has_events else SpanRole.OTHER
    return SpanRole.OTHER


def _tool(span: Span) -> ToolReading:
    if not span.name.endswith(_CALL_STEP):
        return ToolReading(is_part=True)
    given = span.attributes.text(_GIVEN) or ""
    named, ended = _NAME.match(given), _CALL_ID.search(given)
    arguments = ABSENT
    if named is not None and ended is not None:
        arguments = decode_arguments(given[named.end() : ended.start()])
    output = _event(span, "step.output").text("output") or ""
    result = printed_text(_RESULT.search(output))  # none where it was cut off
    return ToolReading(
        name="" if named is None else named[1],
        call_id="" if ended is None else ended[1],
        arguments=arguments if arguments.state is ValueState.PRESENT else ABSENT,
        result=ABSENT if result is None else decode_result(result),
    )


def _agent(span: Span) -> AgentReading:
    given = span.attributes.text(_GIVEN) or ""
    return AgentReading(name=agent_in_printed_step(given) if span.name.endswith(AGENT_STEP) else "")


def _conversation(span: Span) -> Conversation:
    if not span.name.endswith(_MODEL_METHODS):
        return Conversation()
    start, end = _event(span, _START), _event(span, _END)
    return Conversation(
        lambda: read_messages(
            [_message(message) for message in objects_at(first_value(start or end, ("messages",)))], "user"
        ),
        lambda: _answered(end),
        lambda: read_tool_definitions(start.get("additional_kwargs.tools")),
    )


def _usage(span: Span) -> UsageReading:
    start, end = _event(span, _START), _event(span, _END)
    tokens: JsonObject = {}
    for key in ("prompt_tokens", "completion_tokens"):
        places = (f"response.raw.usage.{key}", f"response.additional_kwargs.{key}")
        counts = (decode_result(json_value(end.get(place))).value for place in places)
        tokens[key] = next((count for count in counts if isinstance(count, int)), None)
    model = first_text(end, ("response.raw.model",)) or first_text(start, ("model_dict.model_name",))
    return UsageReading(model=model, usage=usage_in_object(tokens))


def _event(span: Span, name: str) -> Attributes:
    """The attributes of the first event of this name."""
    events = span.events if span.has_events else ()
    return next((event.attributes for event in events if event.name == name), Attributes({}))


def _answered(event: Attributes) -> list[ChatMessage]:
    if "response.message.blocks" not in event:
        return []
    message: JsonObject = {
        "role": json_value(event.get("response.message.role")),
        "blocks": first_value(event, ("response.message.blocks",)),
    }
    return read_messages([_message(message)], "assistant")


def _message(message: JsonObject) -> JsonValue:
    """A message of LlamaIndex, whose content is blocks, in the common shape."""
    parts: list[JsonValue] = []
    for block in objects_at(message, "blocks"):
        if block.get("block_type") == "text":
            parts.append({"type": "text", "text": block.get("text")})
        elif block.get("block_type") == "tool_call":
            call_id, name, arguments = map(block.get, ("tool_call_id", "tool_name", "tool_kwargs"))
            parts.append({"type": "tool_call", "id": call_id, "name": name, "arguments": arguments})
    answered = value_at(message, "additional_kwargs", "tool_call_id")
    return {"role": message.get("role"), "content": parts, "tool_call_id": answered}


DIALECT = Dialect(
    "llama_index",
    (_GIVEN, "llamaindex.run_id"),
    _role,
    _tool,
    _agent,
    _conversation,
    rank=8,
    has_usage=lambda span: span.name.endswith(_MODEL_METHODS),
    usage=_usage,
    scopes=_SCOPES,
)


def rewrite_runs(trace: Trace, outline: Outline) -> None:
    """Name the runs that no span of their own names after the agent in their steps.

    Where steps have several names, every stay of an agent becomes a run; the stay's first step stands for it.
    A run stays whole and nameless where a step has no name, where steps belong to different workflows, or
    where two agents' steps began at once.
    """
    if not trace.has(SpanRole.STEP):
        return
    stays_of: dict[int, _Stays] = {}
    for scope in outline.runs:
        if not scope.steps or scope.agent_name or any(map(trace.agent_name, scope.layers)):
            continue
        turns = _takeovers(scope, trace)
        if len(turns) == 1:
            scope.agent_name = turns[0][1]
        elif turns and _can_be_divided(scope, [at for at, _ in turns], trace):
            stays_of[id(scope)] = _Stays(scope, turns, trace)
    divided: list[RunScope] = []
    for scope in outline.runs:
        own = stays_of.get(id(scope))
        divided += [scope] if own is None else own.runs
    for run in divided:
        around = stays_of.get(id(run.parent))
        if around is not None:
            run.parent = around.of_call(run.requested_by if run.requested_by >= 0 else run.carrier)
    outline.runs = divided


def _takeovers(scope: RunScope, trace: Trace) -> list[tuple[int, str]]:
    """The first step of every stay with the agent's name, in order; nothing where a step has none."""
    collected: list[tuple[int, str]] = []
    for at in sorted(scope.steps):
        name = trace.agent(at).name
        if not name:
            return []
        if not collected or collected[-1][1] != name:
            collected.append((at, name))
    return collected


def _can_be_divided(scope: RunScope, takeovers: Sequence[int], trace: Trace) -> bool:
    """Whether the steps are those of the run's one workflow, and no two of the agents began at once."""
    is_one = scope.kind is CarrierKind.AGENT and len(scope.layers) == 1
    starts = {trace.tree.starts[at] for at in takeovers}
    are_own = all(trace.tree.parents[at] == scope.carrier for at in scope.steps)
    return is_one and len(starts) == len(takeovers) and are_own


class _Stays:
    """The runs that one run is divided into, in order."""

    def __init__(self, scope: RunScope, takeovers: Sequence[tuple[int, str]], trace: Trace) -> None:
        self._trace = trace
        self._starts = [trace.tree.starts[at] for at, _ in takeovers]
        self.runs: list[RunScope] = []
        for at, name in takeovers:
            stay = RunScope(CarrierKind.AGENT, at, scope.layers, scope.parent, scope.requested_by, name)
            stay.is_whole, stay.has_lost_parents = scope.is_whole, scope.has_lost_parents
            if self.runs:
                self.runs[-1].followed_by = at
            self.runs.append(stay)
        for position in scope.tools:
            self.of_call(position).tools.append(position)
        for position in scope.models:
            turn = bisect_right(self._starts, trace.tree.starts[position]) - 1
            self.runs[max(turn, 0)].models.append(position)

    def of_call(self, position: int) -> RunScope:
        """The stay that the call at `position` is part of.

        An agent's model answers before its first call, so a call that began together with a stay belongs to
        the stay before: clocks of senders are coarse.
        """
        return self.runs[max(bisect_left(self._starts, self._trace.tree.starts[position]) - 1, 0)]
