"""The JSON schema of a line of a runs file: its keys, what each may hold, and what it means.

It describes what is written (`run_line`) and what is read (`collector.recordings`), in both versions.
"""

from collections.abc import Iterable
from typing import Any, TypeAlias, get_args

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
)

SCHEMA_VERSION = 2
"""What lines are written in."""
KNOWN_VERSIONS = (1, SCHEMA_VERSION)
"""What is read. Lines of version 1 do not say so; keys that came with version 2 may stand in them too."""

JsonSchema: TypeAlias = dict[str, Any]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def _text(description: str) -> JsonSchema:
    return {"type": "string", "description": description}


def _words(words: Iterable[str], description: str) -> JsonSchema:
    return {"enum": [str(word) for word in words], "description": description}


def _id(size: int, description: str) -> JsonSchema:
    return {"type": "string", "pattern": f"^[0-9a-fA-F]{{{2 * size}}}$", "description": description}


def _flag(description: str) -> JsonSchema:
    return {"type": "boolean", "description": description}


def _count(description: str) -> JsonSchema:
    return {"type": "integer", "minimum": 0, "maximum": 2**63 - 1, "description": description}


def _share(description: str) -> JsonSchema:
    return {"type": "number", "minimum": 0, "maximum": 1, "description": description}


def _amount(description: str) -> JsonSchema:
    return {"type": "number", "minimum": 0, "maximum": 1e12, "description": description}


def _names(description: str) -> JsonSchema:
    return {"type": "array", "items": {"type": "string"}, "description": description}


def _time(description: str) -> JsonSchema:
    return {"type": "string", "format": "date-time", "description": f"{description}, in RFC 3339."}


def _any(description: str) -> JsonSchema:
    return {"description": description}


def _members(description: str) -> JsonSchema:
    return {"type": "object", "description": description}


def _or_null(schema: JsonSchema) -> JsonSchema:
    """The same, or null: written where it is not known, as it may be left out."""
    description = schema.pop("description")
    return {"anyOf": [schema, {"type": "null"}], "description": description}


def _list_of(name: str, description: str) -> JsonSchema:
    return {"type": "array", "items": {"$ref": f"#/$defs/{name}"}, "description": description}


def _object(properties: JsonSchema, *required: str) -> JsonSchema:
    schema = {"type": "object", "additionalProperties": False, "properties": properties}
    return {**schema, "required": [*required]} if required else schema


def _error(description: str) -> JsonSchema:
    return {
        "anyOf": [{"$ref": "#/$defs/error"}, {"type": "string"}, {"type": "null"}],
        "description": description,
    }


def _usage(description: str) -> JsonSchema:
    return {"$ref": "#/$defs/usage", "description": description}


_RUN: JsonSchema = {
    "schema": {"enum": [*KNOWN_VERSIONS], "description": "The version of this form; 1 if left out."},
    "trace_id": _or_null(_id(16, "Left out or null: made from file and line.")),
    "span_id": _or_null(
        _id(8, "The agent's own span. Left out: made from file and line; null: there is none.")
    ),
    "agent": {"$ref": "#/$defs/agent"},
    "parent_agent": _or_null(_text("The agent that this one was called by.")),
    "session": _or_null(
        _text(
            "The conversation (`gen_ai.conversation.id`), of the run's span, its turns, a span above it "
            "or the resource."
        )
    ),
    "start_time": _time("When the run began"),
    "end_time": _time("When the run ended"),
    "graded_time": _time("When a service reached the verdicts"),
    "instance": _text("Which service reached them."),
    "input": _any("What the agent was asked: a text, or the value that it was given."),
    "output": _any("What it answered, likewise."),
    "finish_reason": _words(FinishReason, "Why its trace was taken as finished."),
    "messages": _list_of("message", "The conversation, as far as the trace shows it."),
    "tool_calls": _list_of("tool_call", "What the agent called, in order."),
    "evaluations": _list_of("evaluation", "The verdicts; not read when the run is graded again."),
    "input_state": _words(ValueState, "`present` if left out, and the input is there."),
    "output_state": _words(ValueState, "`present` if left out, and the output is there."),
    "messages_state": _words(
        ValueState,
        "`absent`: no answer of the agent was captured. `redacted`, `truncated`: content was left out "
        "(`results.content`, `results.redact`); only verdicts that it could not change are reached again.",
    ),
    "complete": _flag("Whether all spans of the run came. Left out: as the finish reason tells."),
    "incomplete_reason": _or_null(
        _words(get_args(IncompleteReason), "Why a run that is not complete is not.")
    ),
    "error": _error("Why the run failed; left out: nobody told that it did."),
    "tenant": _or_null(_text("Whose run it is; left out: nobody's in particular.")),
    "available_tools": _members("The tools that the run could call, with their JSON schemas or null."),
    "requested_tools": {
        "type": "array",
        "items": {"type": "string"},
        "description": "Tools that a model asked for and that no call went to, as lines had them before "
        "there were `requested_calls`.",
    },
    "requested_calls": _list_of(
        "requested_call", "What models asked for and was never executed, where spans tell of what was."
    ),
    "duration_seconds": _or_null(_amount("How long the run took; not read beside `end_time`.")),
    "time_to_first_output_seconds": _or_null(_amount("Until a model gave its first output.")),
    "model_calls": _list_of("model_call", "The requests to models, in order."),
    "models": _names("The models that answered, each once. Left out: those of `model_calls`."),
    "usage": _or_null(_usage("The tokens of all model calls. Left out: their sum.")),
    "cost": _or_null(_amount("What they cost by the configured prices, in their currency.")),
    "carrier_span_id": _or_null(_id(8, "The span that bears the verdicts, if it is not the agent's own.")),
    "resource_attributes": _members("Attributes of the resource, which `when` can select runs by."),
    "span_attributes": _members("Attributes of the span that bears the verdicts, likewise."),
}

_AGENT: JsonSchema = {
    "name": _text("What criteria are keyed by."),
    "id": _or_null(_text("`gen_ai.agent.id`")),
    "version": _or_null(_text("`gen_ai.agent.version`")),
}

_MESSAGE: JsonSchema = {
    "role": _words(("system", "user", "assistant", "tool"), "Whose message it is."),
    "content": _or_null(_text("Its text.")),
    "turn": _or_null(_count("The turn of the conversation, from 0.")),
}

_CALL: JsonSchema = {
    "name": _text("The tool."),
    "arguments": _any("What it was given: a value, or the text that was captured."),
    "arguments_text": _or_null(_text("The text of the arguments as captured.")),
    "arguments_state": _words(ValueState, "Whether they are known."),
    "result": _any("What it gave, as the arguments."),
    "result_text": _or_null(_text("The text of the result as captured.")),
    "result_state": _words(ValueState, "Whether it is known."),
    "error": _error("Why the call failed."),
    "call_id": _or_null(_text("The id that the model gave the call.")),
    "span_id": _or_null(
        _id(8, "The span of the call. Left out: made from file and line; null: there is none.")
    ),
    "category": _words(CallCategory, "What kind of tool it is."),
    "parallel_group": _or_null(_count("Calls with one number ran side by side.")),
    "start_time": _time("When the call began"),
    "end_time": _time("When it ended"),
    "duration_seconds": _or_null(_amount("How long it took; not read beside `end_time`.")),
    "executed": _flag("False: a model asked for it, and nothing shows that it ran."),
    "decision": _words(
        Decision,
        "What was decided before it could run. `pending` and `denied`: not executed, and no failure.",
    ),
    "decision_source": _text("The word of the framework that shows the decision."),
    "lenient_values": _flag("True: missing arguments count as {} and a missing result as the empty text."),
    "attempt": _count("1, or one more than that of the call which it tries again."),
    "retry_of": _or_null(_count("The place of that call in `tool_calls`, from 0.")),
}

_REQUESTED_CALL: JsonSchema = {
    "after": _count("How many of `tool_calls` stand before it; left out: all."),
    **_CALL,
}

_MODEL_CALL: JsonSchema = {
    "model": _or_null(_text("The model that answered, else the one that was asked for.")),
    "usage": _or_null(_usage("Its tokens; left out or null: not told.")),
    "time_to_first_output_seconds": _or_null(_amount("Until the first output of a streamed answer.")),
    "duration_seconds": _or_null(_amount("How long it took.")),
    "failed": _flag("True: it ended in an error; without `usage` it used nothing."),
}

_USAGE: JsonSchema = {
    "input_tokens": _count("All that the model was given, from caches and to caches included."),
    "output_tokens": _count("All that the model made, reasoning included."),
    "cached_input_tokens": _or_null(_count("Input out of a cache.")),
    "cache_write_tokens": _or_null(_count("Input into a cache.")),
    "reasoning_tokens": _or_null(_count("Output that was reasoning.")),
}

_ERROR: JsonSchema = {
    "type": _or_null(_text("A class or a code.")),
    "message": _or_null(_text("What people read.")),
}

_EVALUATION: JsonSchema = {
    "name": _text("The evaluation, unique for the agent."),
    "evaluator": _text("The id of the evaluator."),
    "outcome": _words(Outcome, "How it ended. Only pass and fail have a score."),
    "score": _or_null(_share("From 0 to 1.")),
    "explanation": _text("Why, in at most 1,024 characters."),
    "details": _members("From which the score can be worked out again."),
    "reason": _or_null(_words(NotEvaluatedReason, "Why it was not evaluated.")),
    "severity": _words(Severity, "What a failure asks of people."),
    "pass_threshold": _share("The score from which on it passes."),
    "evaluator_version": _text("Another one may give the same run another score."),
    "criteria_hash": _text("Changes with everything in the criteria that could change a verdict."),
    "error_type": _text("What the evaluator broke with."),
    "tool_call_id": _text("The call that the verdict is on, if it is on one."),
    "tool_span_id": _or_null(_id(8, "The span of that call.")),
    "conversation_runs": _names(
        "The runs that an evaluation over a conversation looked at, in order of start: trace id, and span id "
        "if there is one, joined by a hyphen. Others have none."
    ),
    "stage": _words(Stage, "`shadow`: shown, and neither alerts anybody nor gates anything."),
    "muted": _flag("True: a mute was in force."),
    "muted_until": _time("When that mute ends"),
}


def run_line_schema() -> JsonSchema:
    """The JSON schema of one line; each of its objects takes the keys that it names, and no others."""
    return {
        "$schema": _DIALECT,
        "title": "tracegrade agent run",
        "description": "A line of a *.runs.jsonl file, as results_file and replay write and replay reads it. "
        "Version 2 holds times, attributes, severity and criteria. A release may add keys to it: "
        "pass over those that you do not know.",
        **_object(_RUN, "agent"),
        "$defs": {
            "agent": _object(_AGENT, "name"),
            "message": _object(_MESSAGE, "role"),
            "tool_call": _object(_CALL, "name"),
            "model_call": _object(_MODEL_CALL),
            "usage": _object(_USAGE, "input_tokens", "output_tokens"),
            "requested_call": _object(_REQUESTED_CALL, "name"),
            "error": _object(_ERROR),
            "evaluation": _object(_EVALUATION, "name", "evaluator", "outcome"),
        },
    }


(
    RUN_KEYS,
    AGENT_KEYS,
    MESSAGE_KEYS,
    CALL_KEYS,
    REQUESTED_CALL_KEYS,
    MODEL_CALL_KEYS,
    USAGE_KEYS,
    ERROR_KEYS,
) = map(tuple, (_RUN, _AGENT, _MESSAGE, _CALL, _REQUESTED_CALL, _MODEL_CALL, _USAGE, _ERROR))
"""The keys that each kind of object takes."""
