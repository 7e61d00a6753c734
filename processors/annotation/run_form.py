"""The form of a run as a line of JSON: the keys, what each may hold, and what it means.

It is what is read (`run_reader`), and published as a JSON schema; what is written (`run_line`) follows it. A
null is read as a key that is left out, but where it means something: there a key that is left out is `UNSET`.
"""

from inspect import cleandoc
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from processors.model import (
    CallCategory,
    Decision,
    FinishReason,
    IncompleteReason,
    NotEvaluatedReason,
    Outcome,
    Scope,
    Severity,
    Stage,
    ValueState,
    unix_nano_of,
)

SCHEMA_VERSION = 2
"""What lines are written in. Lines of version 1 need not state it, and may have keys that version 2 added."""


def _as(expected: str, **limits: Any) -> Meta:
    """What a value has to be, in words and by limits."""
    return Meta(extra={"expected": expected}, **limits)


def doc(description: str, expected: str = "") -> Meta:
    """What a key means, and what its value has to be where the type does not say it."""
    return Meta(description=description, extra={"expected": expected} if expected else None)


Count: TypeAlias = Annotated[int, _as("an integer from 0", ge=0, le=2**63 - 1)]
"""Up to what attributes of spans can hold."""
Amount: TypeAlias = Annotated[float, _as("a number from 0 to 1e12", ge=0, le=1e12)]
"""Of seconds and of money; nanoseconds of it are counted."""
Share: TypeAlias = Annotated[float, _as("a number from 0 to 1", ge=0, le=1)]
SpanId: TypeAlias = Annotated[
    str, _as("16 hexadecimal digits, not all zero", pattern="^(?!0+$)[0-9a-fA-F]{16}$")
]
OwnId: TypeAlias = SpanId | UnsetType | None
TraceId: TypeAlias = Annotated[
    str, _as("32 hexadecimal digits, not all zero", pattern="^(?!0+$)[0-9a-fA-F]{32}$")
]
Attributes: TypeAlias = Annotated[dict[str, Any], _as("an object of attribute names with their values")]
Tools: TypeAlias = Annotated[dict[str, Any], _as("an object of tool names with their JSON schemas or null")]
Words: TypeAlias = Annotated[list[str], _as("a list")]


class Time(int):
    """A moment of RFC 3339, as nanoseconds since 1970."""


class _Part(Struct, forbid_unknown_fields=True):
    """Takes the keys that it names, and no others."""


class Agent(_Part):
    """Whose run it is."""

    name: Annotated[str, doc("What criteria are keyed by.", "the name that criteria are keyed by")]
    id: Annotated[str | None, doc("`gen_ai.agent.id`")] = None
    version: Annotated[str | None, doc("`gen_ai.agent.version`")] = None


class Message(_Part):
    """A message of the conversation."""

    role: Annotated[Literal["system", "user", "assistant", "tool"], doc("Whose message it is.")]
    content: Annotated[str | None, doc("Its text.")] = None
    turn: Annotated[Count | None, doc("The turn of the conversation, from 0.")] = None
    after: Annotated[
        Count | None, doc("How many calls precede it, requested ones included; left out: unknown.")
    ] = None


class Error(_Part):
    """Why a call or a run failed."""

    type: Annotated[str | None, doc("A class or a code.")] = None
    message: Annotated[str | None, doc("What people read.")] = None


class Call(_Part):
    """A tool call."""

    name: Annotated[str, doc("The tool.", "the name of the tool")]
    arguments: Annotated[Any, doc("What it was given: a value, or the captured text.")] = UNSET
    arguments_text: Annotated[str | UnsetType | None, doc("Their text as captured.")] = UNSET
    arguments_state: Annotated[ValueState | None, doc("Whether they are known.")] = None
    result: Annotated[Any, doc("What it returned, as the arguments.")] = UNSET
    result_text: Annotated[str | UnsetType | None, doc("Its text as captured.")] = UNSET
    result_state: Annotated[ValueState | None, doc("Whether it is known.")] = None
    error: Annotated[Error | str | None, doc("Why the call failed.")] = None
    call_id: Annotated[str | None, doc("The id that the model gave the call.")] = None
    span_id: Annotated[OwnId, doc("Left out: derived from file and line; null: there is none.")] = UNSET
    category: Annotated[CallCategory | None, doc("What kind of tool it is.")] = None
    turn: Annotated[
        Count | None, doc("The model turn that requested it, from 1; 0: none did; left out: unknown.")
    ] = None
    parallel_group: Annotated[Count | None, doc("Calls with one number ran in parallel.")] = None
    start_time: Annotated[Time | None, doc("When the call began, in RFC 3339.")] = None
    end_time: Annotated[Time | None, doc("When it ended, in RFC 3339.")] = None
    duration_seconds: Annotated[Amount | None, doc("How long it took; ignored with `end_time`.")] = None
    executed: Annotated[bool | UnsetType, doc("False: requested, and nothing shows that it ran.")] = UNSET
    decision: Annotated[
        Decision | None, doc("What was decided before it ran: pending and denied calls did not run.")
    ] = None
    decision_source: Annotated[str | None, doc("The framework's word for it.")] = None
    lenient_values: Annotated[bool, doc('Missing arguments count as {}, a missing result as "".')] = False
    attempt: Annotated[Count | None, doc("1, or one more than that of the retried call.")] = None
    retry_of: Annotated[Count | None, doc("The place of that call in `tool_calls`, from 0.")] = None
    agent: Annotated[str | None, doc("The agent that made the call; left out: that of the run.")] = None


class RequestedCall(Call):
    """A call that a model requested and that was never executed."""

    after: Annotated[Count | None, doc("How many of `tool_calls` precede it; left out: all.")] = None


class Usage(_Part):
    """Tokens."""

    input_tokens: Annotated[Count, doc("All that the model was given, cached input included.")]
    output_tokens: Annotated[Count, doc("All that the model produced, reasoning included.")]
    cached_input_tokens: Annotated[Count | None, doc("Input out of a cache.")] = None
    cache_write_tokens: Annotated[Count | None, doc("Input into a cache.")] = None
    reasoning_tokens: Annotated[Count | None, doc("Output that was reasoning.")] = None


class ModelRequest(_Part):
    """A request to a model."""

    model: Annotated[str | None, doc("The model that answered, else the one requested.")] = None
    usage: Annotated[Usage | None, doc("Its tokens; left out or null: not known.")] = None
    time_to_first_output_seconds: Annotated[Amount | None, doc("Until its first output, if streamed.")] = None
    start_time: Annotated[Time | None, doc("When it began, in RFC 3339.")] = None
    duration_seconds: Annotated[Amount | None, doc("How long it took.")] = None
    failed: Annotated[bool, doc("It ended in an error; without `usage` it used nothing.")] = False


class Evaluation(_Part):
    """A verdict."""

    name: Annotated[str, doc("The evaluation, unique for the agent.")]
    evaluator: Annotated[str, doc("The id of the evaluator.")]
    outcome: Annotated[Outcome, doc("How it ended. Only pass and fail have a score.")]
    score: Annotated[Share | None, doc("From 0 to 1.")] = None
    explanation: Annotated[str, doc("Why, in up to 1,024 characters.")] = ""
    details: Annotated[dict[str, Any], doc("From which the score can be worked out again.")] = {}
    reason: Annotated[NotEvaluatedReason | None, doc("Why it was not evaluated.")] = None
    severity: Annotated[Severity, doc("What a failure requires of people.")] = Severity.TICKET
    pass_threshold: Annotated[Share, doc("The score from which on it passes.")] = 1.0
    evaluator_version: Annotated[str, doc("Another version may give another score.")] = ""
    criteria_hash: Annotated[str, doc("Changes with what in the criteria could change a verdict.")] = ""
    error_type: Annotated[str | None, doc("What the evaluator broke with.")] = None
    tool_call_id: Annotated[str | None, doc("The call that the verdict is on, if it is on one.")] = None
    tool_span_id: Annotated[SpanId | None, doc("The span of that call.")] = None
    conversation_runs: Annotated[
        Words | None, doc("The runs that were looked at in a conversation: trace id, or trace id-span id.")
    ] = None
    scope: Annotated[Scope, doc("What the verdict is over: the run, its conversation, its trace.")] = (
        Scope.RUN
    )
    stage: Annotated[Stage, doc("`shadow`: shown; alerts no one and gates nothing.")] = Stage.LIVE
    muted: Annotated[bool, doc("True: a mute was in force.")] = False
    muted_until: Annotated[Time | None, doc("When that mute ends, in RFC 3339.")] = None


class Run(_Part, kw_only=True):
    """A line of a *.runs.jsonl file, as results_file and replay write and replay reads it.

    Version 2 has times, attributes, severity and criteria. A release may add keys: ignore unknown ones.
    """

    schema: Annotated[Literal[1, 2], doc("The version of this form; 1 if left out.", "1 or 2")] = 1
    trace_id: Annotated[TraceId | None, doc("Left out or null: derived from file and line.")] = None
    span_id: Annotated[OwnId, doc("The agent's. Left out: derived from file and line; null: none.")] = UNSET
    agent: Annotated[Agent, doc("Whose run it is.")]
    parent_agent: Annotated[str | None, doc("The agent that this one was called by.")] = None
    stands_for: Annotated[
        Literal["trace"] | None,
        doc("`trace`: no run of an agent; named as workflow or service, it has verdicts over the trace."),
    ] = None
    session: Annotated[str | None, doc("The conversation (`gen_ai.conversation.id`).")] = None
    start_time: Annotated[Time | None, doc("When the run began, in RFC 3339.")] = None
    end_time: Annotated[Time | None, doc("When the run ended, in RFC 3339.")] = None
    graded_time: Annotated[Time | None, doc("When a service reached the verdicts, in RFC 3339.")] = None
    instance: Annotated[str, doc("Which service reached them.")] = ""
    input: Annotated[Any, doc("What the agent was given: a text or a value.")] = UNSET
    output: Annotated[Any, doc("What it answered, likewise.")] = UNSET
    finish_reason: Annotated[FinishReason | None, doc("Why its trace was taken as finished.")] = None
    messages: Annotated[list[Message] | UnsetType | None, doc("The conversation, as far as known.")] = UNSET
    tool_calls: Annotated[list[Call] | None, doc("What the agent called, in order.")] = None
    evaluations: Annotated[list[Evaluation], doc("The verdicts; ignored when the run is graded again.")] = []
    input_state: Annotated[ValueState | None, doc("`present` if left out and the input is there.")] = None
    output_state: Annotated[ValueState | None, doc("`present` if left out and the output is there.")] = None
    error: Annotated[Error | str | None, doc("Why the run failed; left out: no failure is known.")] = None
    messages_state: Annotated[
        ValueState | None,
        doc(
            "`absent`: no answer was captured. `redacted`, `truncated`: content is missing: only "
            "verdicts that it could not change are reached again."
        ),
    ] = None
    complete: Annotated[
        bool | UnsetType, doc("Whether all spans arrived. Left out: as the finish reason shows.")
    ] = UNSET
    incomplete_reason: Annotated[IncompleteReason | None, doc("Why the run is not complete.")] = None
    tenant: Annotated[str | None, doc("Whose run it is; left out: no one's in particular.")] = None
    available_tools: Annotated[Tools | None, doc("The tools that the run could call.")] = None
    requested_calls: Annotated[list[RequestedCall] | None, doc("Requested, but never executed.")] = None
    duration_seconds: Annotated[Amount | None, doc("How long it took; ignored with `end_time`.")] = None
    time_to_first_output_seconds: Annotated[Amount | None, doc("Until a model's first output.")] = None
    model_calls: Annotated[list[ModelRequest] | None, doc("The requests to models, in order.")] = None
    models: Annotated[Words | None, doc("The models that answered. Left out: those of `model_calls`.")] = None
    usage: Annotated[Usage | None, doc("The tokens of all model calls. Left out: their sum.")] = None
    cost: Annotated[Amount | None, doc("What they cost by the configured prices.")] = None
    carrier_span_id: Annotated[OwnId, doc("The span with the verdicts, if not the agent's own.")] = UNSET
    resource_attributes: Annotated[
        Attributes | None, doc("Attributes of the resource, which `when` can select runs by.")
    ] = None
    span_attributes: Annotated[Attributes | None, doc("Attributes of the span with the verdicts.")] = None


def run_line_schema() -> dict[str, Any]:
    """The JSON schema of one line; each of its objects takes the keys that it names, and no others."""
    (reference,), definitions = msgspec.json.schema_components(
        [Run], schema_hook=_schema_of, ref_template="#/$defs/{name}"
    )
    schema = definitions.pop(reference["$ref"].rpartition("/")[2])
    schema |= {"title": "tracegrade agent run", "description": cleandoc(Run.__doc__ or "")}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "$defs": definitions}


def line_of_json(entry: object) -> Run:
    """A parsed line.

    Raises:
        msgspec.ValidationError: it does not have this form.
        OverflowError: a number is larger than any that it can have.
    """
    return msgspec.convert(entry, Run, dec_hook=decode_part)


def decode_part(kind: type, value: Any) -> object:
    """The part of a line that is not of a kind that msgspec knows: a time."""
    return kind(unix_nano_of(value))


def _schema_of(kind: type) -> dict[str, Any]:
    return {"type": "string", "format": "date-time"}
