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
    Severity,
    Stage,
    ValueState,
    unix_nano_of,
)

SCHEMA_VERSION = 2
"""What lines are written in. Lines of version 1 do not say so; they may have keys that version 2 brought."""


def _as(expected: str, **limits: Any) -> Meta:
    """What a value has to be, in words and by limits."""
    return Meta(extra={"expected": expected}, **limits)


def _about(description: str, expected: str = "") -> Meta:
    return Meta(description=description, extra={"expected": expected} if expected else None)


Count: TypeAlias = Annotated[int, _as("an integer from 0", ge=0, le=2**63 - 1)]
"""Up to what attributes of spans can hold."""
Amount: TypeAlias = Annotated[float, _as("a number from 0 to 1e12", ge=0, le=1e12)]
"""Of seconds and of money; nanoseconds of it are counted."""
Share: TypeAlias = Annotated[float, _as("a number from 0 to 1", ge=0, le=1)]
SpanId: TypeAlias = Annotated[
    str, _as("16 hexadecimal digits, not all zero", pattern="^(?!0+$)[0-9a-fA-F]{16}$")
]
TraceId: TypeAlias = Annotated[
    str, _as("32 hexadecimal digits, not all zero", pattern="^(?!0+$)[0-9a-fA-F]{32}$")
]
Attributes: TypeAlias = Annotated[dict[str, Any], _as("an object of attribute names with their values")]
Words: TypeAlias = Annotated[list[str], _as("a list")]


class Time(int):
    """A moment of RFC 3339, as nanoseconds since 1970."""


class _Part(Struct, forbid_unknown_fields=True):
    """Takes the keys that it names, and no others."""


class Agent(_Part):
    """Whose run it is."""

    name: Annotated[str, _about("What criteria are keyed by.", "the name that criteria are keyed by")]
    id: Annotated[str | None, _about("`gen_ai.agent.id`")] = None
    version: Annotated[str | None, _about("`gen_ai.agent.version`")] = None


class Message(_Part):
    """A message of the conversation."""

    role: Annotated[
        Literal["system", "user", "assistant", "tool"],
        _about("Whose message it is.", "system, user, assistant or tool"),
    ]
    content: Annotated[str | None, _about("Its text.")] = None
    turn: Annotated[Count | None, _about("The turn of the conversation, from 0.")] = None


class Error(_Part):
    """Why a call or a run failed."""

    type: Annotated[str | None, _about("A class or a code.")] = None
    message: Annotated[str | None, _about("What people read.")] = None


class Call(_Part):
    """A tool call."""

    name: Annotated[str, _about("The tool.", "the name of the tool")]
    arguments: Annotated[Any, _about("What it was given: a value, or the text that was captured.")] = UNSET
    arguments_text: Annotated[str | UnsetType | None, _about("Their text as captured.")] = UNSET
    arguments_state: Annotated[ValueState | None, _about("Whether they are known.")] = None
    result: Annotated[Any, _about("What it gave, as the arguments.")] = UNSET
    result_text: Annotated[str | UnsetType | None, _about("Its text as captured.")] = UNSET
    result_state: Annotated[ValueState | None, _about("Whether it is known.")] = None
    error: Annotated[Error | str | None, _about("Why the call failed.")] = None
    call_id: Annotated[str | None, _about("The id that the model gave the call.")] = None
    span_id: Annotated[
        SpanId | UnsetType | None,
        _about("The span of the call. Left out: made from file and line; null: there is none."),
    ] = UNSET
    category: Annotated[CallCategory | None, _about("What kind of tool it is.")] = None
    parallel_group: Annotated[Count | None, _about("Calls with one number ran in parallel.")] = None
    start_time: Annotated[Time | None, _about("When the call began, in RFC 3339.")] = None
    end_time: Annotated[Time | None, _about("When it ended, in RFC 3339.")] = None
    duration_seconds: Annotated[Amount | None, _about("Not read if `end_time` is there.")] = None
    executed: Annotated[
        bool | UnsetType, _about("False: a model requested it, and nothing shows that it ran.")
    ] = UNSET
    decision: Annotated[
        Decision | None,
        _about("What was decided before it could run. `pending` and `denied`: not executed, and no failure."),
    ] = None
    decision_source: Annotated[str | None, _about("The framework's word for it.")] = None
    lenient_values: Annotated[
        bool,
        _about("True: missing arguments count as {} and a missing result as the empty text."),
    ] = False
    attempt: Annotated[Count | None, _about("1, or one more than that of the call that it retries.")] = None
    retry_of: Annotated[Count | None, _about("The place of that call in `tool_calls`, from 0.")] = None


class RequestedCall(Call):
    """A call that a model requested and that was never executed."""

    after: Annotated[Count | None, _about("How many of `tool_calls` stand before it; left out: all.")] = None


class Usage(_Part):
    """Tokens."""

    input_tokens: Annotated[
        Count, _about("All that the model was given, from caches and to caches included.")
    ]
    output_tokens: Annotated[Count, _about("All that the model produced, reasoning included.")]
    cached_input_tokens: Annotated[Count | None, _about("Input out of a cache.")] = None
    cache_write_tokens: Annotated[Count | None, _about("Input into a cache.")] = None
    reasoning_tokens: Annotated[Count | None, _about("Output that was reasoning.")] = None


class ModelRequest(_Part):
    """A request to a model."""

    model: Annotated[str | None, _about("The model that answered, else the one that was requested.")] = None
    usage: Annotated[Usage | None, _about("Its tokens; left out or null: not known.")] = None
    time_to_first_output_seconds: Annotated[
        Amount | None, _about("Until a streamed answer's first output.")
    ] = None
    duration_seconds: Annotated[Amount | None, _about("How long it took.")] = None
    failed: Annotated[bool, _about("It ended in an error; without `usage` it used nothing.")] = False


class Evaluation(_Part):
    """A verdict."""

    name: Annotated[str, _about("The evaluation, unique for the agent.")]
    evaluator: Annotated[str, _about("The id of the evaluator.")]
    outcome: Annotated[Outcome, _about("How it ended. Only pass and fail have a score.")]
    score: Annotated[Share | None, _about("From 0 to 1.")] = None
    explanation: Annotated[str, _about("Why, in at most 1,024 characters.")] = ""
    details: Annotated[dict[str, Any], _about("From which the score can be worked out again.")] = {}
    reason: Annotated[NotEvaluatedReason | None, _about("Why it was not evaluated.")] = None
    severity: Annotated[Severity, _about("What a failure asks of people.")] = Severity.TICKET
    pass_threshold: Annotated[Share, _about("The score from which on it passes.")] = 1.0
    evaluator_version: Annotated[str, _about("Another one may give the same run another score.")] = ""
    criteria_hash: Annotated[
        str, _about("Changes with everything in the criteria that could change a verdict.")
    ] = ""
    error_type: Annotated[str | None, _about("What the evaluator broke with.")] = None
    tool_call_id: Annotated[str | None, _about("The call that the verdict is on, if it is on one.")] = None
    tool_span_id: Annotated[SpanId | None, _about("The span of that call.")] = None
    conversation_runs: Annotated[
        Words | None,
        _about(
            "The runs that an evaluation over a conversation looked at, in order of start: trace id, and "
            "span id if there is one, joined by a hyphen. Others have none."
        ),
    ] = None
    stage: Annotated[Stage, _about("`shadow`: shown, and neither alerts anyone nor gates anything.")] = (
        Stage.LIVE
    )
    muted: Annotated[bool, _about("True: a mute was in force.")] = False
    muted_until: Annotated[Time | None, _about("When that mute ends, in RFC 3339.")] = None


class Run(_Part, kw_only=True):
    """A line of a *.runs.jsonl file, as results_file and replay write and replay reads it.

    Version 2 has times, attributes, severity and criteria. A release may add keys: ignore unknown ones.
    """

    schema: Annotated[Literal[1, 2], _about("The version of this form; 1 if left out.", "1 or 2")] = 1
    trace_id: Annotated[TraceId | None, _about("Left out or null: made from file and line.")] = None
    span_id: Annotated[
        SpanId | UnsetType | None,
        _about("The agent's own span. Left out: made from file and line; null: there is none."),
    ] = UNSET
    agent: Annotated[Agent, _about("Whose run it is.")]
    parent_agent: Annotated[str | None, _about("The agent that this one was called by.")] = None
    session: Annotated[
        str | None,
        _about(
            "The conversation (`gen_ai.conversation.id`), of the run's span, its turns, a span above it "
            "or the resource."
        ),
    ] = None
    start_time: Annotated[Time | None, _about("When the run began, in RFC 3339.")] = None
    end_time: Annotated[Time | None, _about("When the run ended, in RFC 3339.")] = None
    graded_time: Annotated[Time | None, _about("When a service reached the verdicts, in RFC 3339.")] = None
    instance: Annotated[str, _about("Which service reached them.")] = ""
    input: Annotated[Any, _about("What the agent was asked: a text, or the value that it was given.")] = UNSET
    output: Annotated[Any, _about("What it answered, likewise.")] = UNSET
    finish_reason: Annotated[FinishReason | None, _about("Why its trace was taken as finished.")] = None
    messages: Annotated[
        list[Message] | UnsetType | None, _about("The conversation, as far as the trace shows it.")
    ] = UNSET
    tool_calls: Annotated[list[Call] | None, _about("What the agent called, in order.")] = None
    evaluations: Annotated[
        list[Evaluation], _about("The verdicts; not read when the run is graded again.")
    ] = []
    input_state: Annotated[ValueState | None, _about("`present` if left out and the input is there.")] = None
    output_state: Annotated[ValueState | None, _about("`present` if left out and the output is there.")] = (
        None
    )
    error: Annotated[Error | str | None, _about("Why the run failed; left out: no failure is known.")] = None
    messages_state: Annotated[
        ValueState | None,
        _about(
            "`absent`: no answer of the agent was captured. `redacted`, `truncated`: content was left out "
            "(`results.content`, `results.redact`); only verdicts that it could not change are reached again."
        ),
    ] = None
    complete: Annotated[
        bool | UnsetType,
        _about("Whether all spans of the run arrived. Left out: as the finish reason shows."),
    ] = UNSET
    incomplete_reason: Annotated[
        IncompleteReason | None, _about("Why a run that is not complete is not.")
    ] = None
    tenant: Annotated[str | None, _about("Whose run it is; left out: no one's in particular.")] = None
    available_tools: Annotated[
        dict[str, Any] | None,
        _about(
            "The tools that the run could call, with their JSON schemas or null.",
            "an object of tool names with their JSON schemas or null",
        ),
    ] = None
    requested_tools: Annotated[
        Words | None,
        _about(
            "Tools that a model requested and that no call went to, as lines had them before there were "
            "`requested_calls`."
        ),
    ] = None
    requested_calls: Annotated[
        list[RequestedCall] | None,
        _about("What models requested and was never executed, where spans show what was."),
    ] = None
    duration_seconds: Annotated[Amount | None, _about("Not read if `end_time` is there.")] = None
    time_to_first_output_seconds: Annotated[Amount | None, _about("Until a model's first output.")] = None
    model_calls: Annotated[list[ModelRequest] | None, _about("The requests to models, in order.")] = None
    models: Annotated[
        Words | None,
        _about("The models that answered, each once. Left out: those of `model_calls`."),
    ] = None
    usage: Annotated[Usage | None, _about("The tokens of all model calls. Left out: their sum.")] = None
    cost: Annotated[Amount | None, _about("Their cost by the configured prices, in their currency.")] = None
    carrier_span_id: Annotated[
        SpanId | UnsetType | None, _about("The span that carries the verdicts, if it is not the agent's own.")
    ] = UNSET
    resource_attributes: Annotated[
        dict[str, Any] | None,
        _about(
            "Attributes of the resource, which `when` can select runs by.",
            "an object of attribute names with their values",
        ),
    ] = None
    span_attributes: Annotated[
        dict[str, Any] | None,
        _about(
            "Attributes of the span that carries the verdicts, likewise.",
            "an object of attribute names with their values",
        ),
    ] = None


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
