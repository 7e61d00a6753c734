"""Reads agent runs from JSON objects, in the form that `processors.annotation.run_schema` describes."""

import hashlib
import json
import sys
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, Literal, TypeVar, get_args

from msgspec.structs import replace

from processors.annotation import (
    AGENT_KEYS,
    CALL_KEYS,
    ERROR_KEYS,
    KNOWN_VERSIONS,
    MESSAGE_KEYS,
    MODEL_CALL_KEYS,
    REQUESTED_CALL_KEYS,
    RUN_KEYS,
    USAGE_KEYS,
    incomplete_reason_of,
    is_complete_by_default,
)
from processors.documents import did_you_mean
from processors.model import (
    ABSENT,
    AgentIdentity,
    AgentRun,
    CallCategory,
    Decision,
    DecodedValue,
    EvaluationResult,
    FinishReason,
    GradedRun,
    IncompleteReason,
    JsonObject,
    JsonValue,
    Message,
    ModelCall,
    NotEvaluatedReason,
    Outcome,
    RunReference,
    Severity,
    Stage,
    TokenUsage,
    ToolCall,
    ToolError,
    ValueState,
    decode_arguments,
    decode_result,
    sum_of_usage,
    unix_nano_of,
)

_INCOMPLETE_REASONS: dict[str, IncompleteReason] = {reason: reason for reason in get_args(IncompleteReason)}
_Role = Literal["system", "user", "assistant", "tool"]
_ROLES: dict[str, _Role] = {role: role for role in get_args(_Role)}

_LARGEST_INTEGER = 2**63 - 1
"""What attributes of spans can hold."""
_LARGEST_AMOUNT = 1e12
"""Of seconds and of money; nanoseconds of it are counted."""

_WordT = TypeVar("_WordT", bound=StrEnum)
_DefaultT = TypeVar("_DefaultT", bound=StrEnum | None)
_KindT = TypeVar("_KindT")


def run_from_json(entry: object, where: str) -> AgentRun:
    """The agent run that a parsed line describes; `where` (`file:line`) names it in messages.

    Every key but the agent's name may be missing, and `evaluations` is ignored. A value whose key is missing
    is `absent`, one whose key is there, null included, is `present`. A call's `arguments` and `result` are
    what telemetry carried, decoded as such (texts as JSON where they are JSON); with `arguments_text` or
    `result_text` beside them, as printed lines have it, they are taken as they stand. A missing trace or
    span id is derived from `where`; ids that are null stay unknown.

    Raises:
        ValueError: one line `where: path: what is wrong, what was expected` for every problem.
    """
    if not isinstance(entry, dict):
        raise ValueError(f"{where}: expected an object that describes one agent run")
    problems: list[str] = []
    run = _Object(entry, "", RUN_KEYS, where, problems)
    if entry.get("schema", 1) not in KNOWN_VERSIONS:
        run.expected("schema", " or ".join(map(str, KNOWN_VERSIONS)), entry["schema"])
    reason = run.word("finish_reason", FinishReason, FinishReason.ROOT)
    incomplete_reason = run.text("incomplete_reason") or incomplete_reason_of(reason)
    if incomplete_reason not in _INCOMPLETE_REASONS:
        *others, last = _INCOMPLETE_REASONS
        run.expected("incomplete_reason", f"{', '.join(others)} or {last}", incomplete_reason)
    run_input, input_state = run.captured("input")
    run_output, output_state = run.captured("output")
    span_id = run.id("span", 8)
    # A line that tells of other things only has no messages; a line of nothing is an empty trajectory.
    tells_other = "input" in entry or "output" in entry or bool(entry.get("tool_calls"))
    is_left_out = "messages" not in entry and tells_other
    messages_state = run.word(
        "messages_state", ValueState, ValueState.ABSENT if is_left_out else ValueState.PRESENT
    )
    is_complete = run.flag("complete", is_complete_by_default(reason))
    if is_complete and messages_state in (ValueState.REDACTED, ValueState.TRUNCATED):
        # Whoever wrote the line left out content: only verdicts that none of it could change may count.
        is_complete, incomplete_reason = False, "content_not_captured"
    model_calls = tuple(map(_model_call, run.objects("model_calls", MODEL_CALL_KEYS)))
    start, end = _times(run)
    tools = "an object of tool names with their JSON schemas or null"
    attributes = "an object of attribute names with their values"
    result = AgentRun(
        trace_id=run.id("trace", 16) or b"",
        span_id=span_id,
        carrier_span_id=run.id("carrier_span", 8) if "carrier_span_id" in entry else span_id,
        agent=_agent(run),
        parent_agent=run.text("parent_agent"),
        session=run.text("session"),
        input=run_input,
        input_state=input_state,
        output=run_output,
        output_state=output_state,
        error=_error(run),
        messages=_messages(run),
        messages_state=messages_state,
        tool_calls=[_call(call) for call in run.objects("tool_calls", CALL_KEYS)],
        finish_reason=reason,
        complete=is_complete,
        incomplete_reason=_INCOMPLETE_REASONS.get(incomplete_reason, "incomplete_trace"),
        start_unix_nano=start,
        end_unix_nano=end,
        tenant=run.text("tenant") or "",
        available_tools=run.typed("available_tools", dict, tools),
        requested_calls=(
            *map(_requested_call, run.objects("requested_calls", REQUESTED_CALL_KEYS)),
            *(
                (sys.maxsize, ToolCall(name=name, executed=False))
                for name in _names(run, "requested_tools", "the name of a tool")
            ),
        ),
        model_calls=model_calls,
        models=_models(run, model_calls),
        usage=_usage_of_run(run, model_calls),
        time_to_first_output_seconds=run.amount("time_to_first_output_seconds"),
        cost=run.amount("cost"),
        resource=run.typed("resource_attributes", dict, attributes, {}),
        span_attributes=run.typed("span_attributes", dict, attributes, {}),
    )
    if problems:
        raise ValueError("\n".join(problems))
    return result


def graded_run_from_json(entry: JsonValue, where: str) -> GradedRun:
    """A graded run as `processors.annotation.run_line` writes it; of version 1, what it tells of its results.

    Raises:
        ValueError: as `run_from_json`.
        KeyError: a result lacks a key that is always written.
    """
    run = run_from_json(entry, where)
    written: Any = entry
    return GradedRun(
        run=run,
        results=[_result(result) for result in written["evaluations"]],
        graded_unix_nano=_moment(written, "graded_time"),
        instance=written.get("instance", ""),
    )


def _result(written: Any) -> EvaluationResult:
    tool_span_id = written.get("tool_span_id")
    return EvaluationResult(
        name=written["name"],
        evaluator=written["evaluator"],
        evaluator_version=written.get("evaluator_version", ""),
        outcome=Outcome(written["outcome"]),
        score=written["score"],
        explanation=written["explanation"],
        details=written["details"],
        reason=None if written["reason"] is None else NotEvaluatedReason(written["reason"]),
        error_type=written.get("error_type"),
        pass_threshold=written.get("pass_threshold", 1.0),
        severity=Severity(written.get("severity", Severity.TICKET)),
        criteria_hash=written.get("criteria_hash", ""),
        stage=Stage(written.get("stage", Stage.LIVE)),
        # Version 1 says that there was a mute, and not until when.
        muted_until_unix_nano=_moment(written, "muted_until") or int(written.get("muted", False)),
        tool_call_id=written.get("tool_call_id"),
        tool_span_id=None if tool_span_id is None else bytes.fromhex(tool_span_id),
        conversation_runs=tuple(map(RunReference.parsed, written.get("conversation_runs", ()))),
    )


def _moment(written: Any, key: str) -> int:
    return unix_nano_of(written[key]) if key in written else 0


def _agent(run: "_Object") -> AgentIdentity:
    agent = _Object(run.values.get("agent", {}), "agent", AGENT_KEYS, run.where, run.problems)
    name = agent.name("the name that criteria are keyed by")
    return AgentIdentity(name=name, id=agent.text("id"), version=agent.text("version"))


def _times(entry: "_Object") -> tuple[int, int]:
    """When something began and ended, 0 where that is not told.

    Where `duration_seconds` stands in place of times they are the right time apart.
    """
    start, end = entry.time("start_time"), entry.time("end_time")
    seconds = entry.amount("duration_seconds")
    if seconds is None or end:
        return start, end
    return start or 1, (start or 1) + round(seconds * 1e9)


def _model_call(call: "_Object") -> ModelCall:
    return ModelCall(
        model=call.text("model"),
        usage=_usage(call),
        time_to_first_output_seconds=call.amount("time_to_first_output_seconds"),
        duration_seconds=call.amount("duration_seconds"),
        failed=call.flag("failed", False),
    )


def _models(run: "_Object", calls: Sequence[ModelCall]) -> tuple[str, ...]:
    """The models that are listed, else those of the calls."""
    if "models" in run.values:
        return _names(run, "models", "the name of a model")
    return tuple(dict.fromkeys(call.model for call in calls if call.model))


def _usage_of_run(run: "_Object", calls: Sequence[ModelCall]) -> TokenUsage | None:
    """The usage that is told, else the sum of that of the calls, if all that did not fail tell theirs."""
    told = _usage(run)
    parts = [call.usage for call in calls if call.usage is not None]
    is_whole = all(call.usage is not None or call.failed for call in calls)
    return told or (sum_of_usage(parts) if parts and is_whole else None)


def _usage(entry: "_Object") -> TokenUsage | None:
    told = entry.values.get("usage")
    if told is None:
        return None
    usage = _Object(told, entry.path_of("usage"), USAGE_KEYS, entry.where, entry.problems)
    given, made = usage.number("input_tokens"), usage.number("output_tokens")
    for key in ("input_tokens", "output_tokens"):
        if usage.values.get(key) is None:
            usage.expected(key, "an integer from 0", None)
    return TokenUsage(
        given or 0,
        made or 0,
        usage.number("cached_input_tokens"),
        usage.number("cache_write_tokens"),
        usage.number("reasoning_tokens"),
    )


def _names(run: "_Object", key: str, expected: str) -> tuple[str, ...]:
    names = []
    for index, name in enumerate(run.typed(key, list, "a list", [])):
        if isinstance(name, str):
            names.append(name)
        else:
            run.expected(f"{key}[{index}]", expected, name)
    return tuple(names)


def _messages(run: "_Object") -> list[Message]:
    messages = []
    for message in run.objects("messages", MESSAGE_KEYS):
        role = _ROLES.get(str(message.values.get("role")))
        if role is None:
            message.expected("role", "system, user, assistant or tool", message.values.get("role"))
            continue
        content, turn = message.text("content") or "", message.number("turn") or 0
        messages.append(Message(role=role, content=content, turn=turn))
    return messages


def _call(call: "_Object") -> ToolCall:
    arguments = _value(call, "arguments", decode_arguments)
    result = _value(call, "result", decode_result)
    attempt = call.number("attempt")
    decision = call.word("decision", Decision, None)
    start, end = _times(call)
    return ToolCall(
        name=call.name("the name of the tool"),
        arguments=arguments.value,
        arguments_text=arguments.text,
        arguments_state=arguments.state,
        result=result.value,
        result_text=result.text,
        result_state=result.state,
        error=_error(call),
        call_id=call.text("call_id"),
        span_id=call.id("span", 8),
        category=call.word("category", CallCategory, CallCategory.FUNCTION),
        parallel_group=call.number("parallel_group"),
        executed=call.flag("executed", decision is None or decision is Decision.APPROVED),
        decision=decision,
        decision_source=call.text("decision_source") or "",
        lenient_values=call.flag("lenient_values", False),
        start_unix_nano=start,
        end_unix_nano=end,
        attempt=1 if attempt is None else attempt,
        retry_of=call.number("retry_of"),
    )


def _requested_call(call: "_Object") -> tuple[int, ToolCall]:
    after = call.number("after")
    return sys.maxsize if after is None else after, replace(_call(call), executed=False)


def _error(owner: "_Object") -> ToolError | None:
    """Why the call or the run failed."""
    error = owner.values.get("error")
    if error is None:
        return None
    if isinstance(error, str):
        return ToolError(type="", message=error)
    fields = _Object(error, owner.path_of("error"), ERROR_KEYS, owner.where, owner.problems)
    return ToolError(type=fields.text("type") or "", message=fields.text("message") or "")


def _value(call: "_Object", key: str, decode: Callable[[JsonValue], DecodedValue]) -> DecodedValue:
    text = call.text(f"{key}_text")
    if key not in call.values:
        value = ABSENT if text is None else decode(text)._replace(text=text)
    elif f"{key}_text" in call.values:
        value = DecodedValue(call.values[key], text, ValueState.PRESENT)
    elif call.values.get(f"{key}_state") == ValueState.ABSENT:
        return ABSENT
    else:
        carried = call.values[key]
        value = decode(carried)
        if isinstance(carried, str):  # a text stays as it was carried, JSON of a text as well
            value = value._replace(text=carried)
    return value._replace(state=call.word(f"{key}_state", ValueState, value.state))


class _Object:
    """One object of a line, whose keys are read as what they have to be; what they are not is a problem."""

    def __init__(
        self, value: object, path: str, known: Sequence[str], where: str, problems: list[str]
    ) -> None:
        self.values: JsonObject = value if isinstance(value, dict) else {}
        self.where = where
        self.problems = problems
        self._path = path
        if not isinstance(value, dict):
            self.expected("", "an object", value)
        for key in self.values:
            if key not in known:
                self._problem(key, f"unknown key{did_you_mean(key, known)}")

    def path_of(self, key: str) -> str:
        return f"{self._path}.{key}" if self._path and key else self._path or key

    def typed(self, key: str, kind: type[_KindT], expected: str, default: Any = None) -> Any:
        """The value of `key`; `default` where it is null, left out or of another type, which is a problem."""
        value = self.values.get(key)
        if isinstance(value, kind):
            return value
        if value is not None:
            self.expected(key, expected, value)
        return default

    def text(self, key: str) -> str | None:
        text: str | None = self.typed(key, str, "a text")
        return text

    def name(self, meaning: str) -> str:
        name = self.text("name")
        if name is None:
            self._problem("name", f"missing, expected {meaning}")
        return name or ""

    def number(self, key: str) -> int | None:
        value = self.values.get(key)
        if value is None or (
            isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST_INTEGER
        ):
            return value
        self.expected(key, "an integer from 0", value)
        return None

    def amount(self, key: str) -> float | None:
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _LARGEST_AMOUNT:
            return float(value)
        self.expected(key, "a number from 0 to 1e12", value)
        return None

    def time(self, key: str) -> int:
        text = self.text(key)
        if text is None:
            return 0
        try:
            return unix_nano_of(text)
        except ValueError:
            self.expected(key, 'a time from 1970 on such as "2026-01-31T08:00:00.5Z"', text)
            return 0

    def flag(self, key: str, default: bool) -> bool:
        value = self.values.get(key, default)
        if isinstance(value, bool):
            return value
        self.expected(key, "true or false", value)
        return default

    def word(self, key: str, words: type[_WordT], default: _DefaultT) -> _WordT | _DefaultT:
        value = self.values.get(key)
        if value is None:
            return default
        try:
            return words(str(value))
        except ValueError:
            self.expected(key, "one of " + ", ".join(words), value)
            return default

    def captured(self, key: str) -> tuple[JsonValue, ValueState]:
        default = ValueState.PRESENT if key in self.values else ValueState.ABSENT
        return self.values.get(key), self.word(f"{key}_state", ValueState, default)

    def objects(self, key: str, known: Sequence[str]) -> "list[_Object]":
        return [
            _Object(value, f"{key}[{index}]", known, self.where, self.problems)
            for index, value in enumerate(self.typed(key, list, "a list", []))
        ]

    def id(self, kind: str, size: int) -> bytes | None:
        key = f"{kind}_id"
        if key not in self.values or (kind == "trace" and self.values[key] is None):
            return hashlib.sha256(f"{self.where}\0{self._path}\0{kind}".encode()).digest()[:size]
        text = self.text(key)
        if text is None:
            return None
        try:
            identifier = bytes.fromhex(text)
        except ValueError:
            identifier = b""
        if len(identifier) != size or not any(identifier):
            self.expected(key, f"{2 * size} hexadecimal digits, not all zero", text)
        return identifier

    def expected(self, key: str, expected: str, found: object) -> None:
        text = json.dumps(found, ensure_ascii=False, default=str)
        shown = text if len(text) <= 60 else text[:59] + "…"
        self._problem(key, f"expected {expected}, found {shown}")

    def _problem(self, key: str, message: str) -> None:
        line = ": ".join(part for part in (self.where, self.path_of(key), message) if part)
        self.problems.append(" ".join(line.splitlines()))
