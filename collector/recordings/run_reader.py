"""Reads agent runs from JSON objects, in the form that `processors.annotation.run_line` describes."""

import hashlib
import json
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Literal, TypeVar

from processors.annotation.run_line import incomplete_reason_of, is_complete_by_default
from processors.documents.problem import did_you_mean
from processors.model.agent_run import (
    AgentIdentity,
    AgentRun,
    CallCategory,
    IncompleteReason,
    Message,
    ToolCall,
    ToolError,
    ValueState,
)
from processors.model.finish_reason import FinishReason
from processors.model.json_value import JsonObject, JsonValue
from processors.model.values import ABSENT, DecodedValue, decode_arguments, decode_result

_RUN_KEYS = (
    "trace_id", "span_id", "agent", "parent_agent", "session", "input", "output", "finish_reason", "messages",
    "tool_calls", "evaluations", "input_state", "output_state", "complete", "incomplete_reason", "tenant",
    "available_tools", "requested_tools", "messages_state", "resource_attributes", "span_attributes",
)  # fmt: skip
_AGENT_KEYS = ("name", "id", "version")
_MESSAGE_KEYS = ("role", "content", "turn")
_CALL_KEYS = (
    "name", "arguments", "arguments_text", "arguments_state", "result", "result_text", "result_state",
    "error", "call_id", "span_id", "category", "parallel_group", "executed", "lenient_values",
    "attempt", "retry_of",
)  # fmt: skip
_INCOMPLETE_REASONS: dict[str, IncompleteReason] = {
    "incomplete_trace": "incomplete_trace",
    "over_limit": "over_limit",
    "content_not_captured": "content_not_captured",
}
_ERROR_KEYS = ("type", "message")
_ROLES: dict[str, Literal["system", "user", "assistant", "tool"]] = {
    "system": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}

_WordT = TypeVar("_WordT", bound=StrEnum)


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
    return _RunReader(where).read(entry)


class _RunReader:
    """Reads one line and gathers everything that is wrong with it."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._problems: list[str] = []

    def read(self, entry: object) -> AgentRun:
        if not isinstance(entry, dict):
            raise ValueError(f"{self._where}: expected an object that describes one agent run")
        run = self._object(entry, "", _RUN_KEYS)
        reason = self._word(run, "", "finish_reason", FinishReason, FinishReason.ROOT)
        incomplete_reason = self._text(run, "", "incomplete_reason") or incomplete_reason_of(reason)
        if incomplete_reason not in _INCOMPLETE_REASONS:
            expected = "incomplete_trace, over_limit or content_not_captured"
            self._expected("incomplete_reason", expected, incomplete_reason)
        run_input, input_state = self._captured(run, "input")
        run_output, output_state = self._captured(run, "output")
        span_id = self._id(run, "", 8, "span")
        result = AgentRun(
            trace_id=self._id(run, "", 16, "trace") or b"",
            span_id=span_id,
            carrier_span_id=span_id,
            agent=self._agent(run),
            parent_agent=self._text(run, "", "parent_agent"),
            session=self._text(run, "", "session"),
            input=run_input,
            input_state=input_state,
            output=run_output,
            output_state=output_state,
            messages=self._messages(run),
            messages_state=self._messages_state(run),
            tool_calls=[
                self._call(call, f"tool_calls[{index}]")
                for index, call in enumerate(self._list(run, "tool_calls"))
            ],
            finish_reason=reason,
            complete=self._flag(run, "", "complete", is_complete_by_default(reason)),
            incomplete_reason=_INCOMPLETE_REASONS.get(incomplete_reason, "incomplete_trace"),
            tenant=self._text(run, "", "tenant") or "",
            available_tools=self._available_tools(run),
            requested_tools=self._requested_tools(run),
            resource=self._attributes(run, "resource_attributes"),
            span_attributes=self._attributes(run, "span_attributes"),
        )
        if self._problems:
            raise ValueError("\n".join(self._problems))
        return result

    def _agent(self, run: JsonObject) -> AgentIdentity:
        agent = self._object(run.get("agent", {}), "agent", _AGENT_KEYS)
        name = self._text(agent, "agent", "name")
        if name is None:
            self._problem("agent.name", "missing, expected the name that criteria are keyed by")
        return AgentIdentity(
            name=name or "",
            id=self._text(agent, "agent", "id"),
            version=self._text(agent, "agent", "version"),
        )

    def _available_tools(self, run: JsonObject) -> dict[str, JsonValue] | None:
        tools = run.get("available_tools")
        if tools is None or isinstance(tools, dict):
            return tools
        self._expected("available_tools", "an object of tool names with their JSON schemas or null", tools)
        return None

    def _requested_tools(self, run: JsonObject) -> tuple[str, ...]:
        names = []
        for index, name in enumerate(self._list(run, "requested_tools")):
            if isinstance(name, str):
                names.append(name)
            else:
                self._expected(f"requested_tools[{index}]", "the name of a tool", name)
        return tuple(names)

    def _attributes(self, run: JsonObject, key: str) -> JsonObject:
        attributes = run.get(key, {})
        if isinstance(attributes, dict):
            return attributes
        self._expected(key, "an object of attribute names with their values", attributes)
        return {}

    def _messages_state(self, run: JsonObject) -> ValueState:
        """Absent where the line tells of other things only; a line of nothing is an empty trajectory."""
        tells_other = "input" in run or "output" in run or bool(run.get("tool_calls"))
        is_left_out = "messages" not in run and tells_other
        default = ValueState.ABSENT if is_left_out else ValueState.PRESENT
        return self._word(run, "", "messages_state", ValueState, default)

    def _messages(self, run: JsonObject) -> list[Message]:
        messages = []
        for index, item in enumerate(self._list(run, "messages")):
            path = f"messages[{index}]"
            message = self._object(item, path, _MESSAGE_KEYS)
            role = _ROLES.get(str(message.get("role")))
            if role is None:
                self._expected(f"{path}.role", "system, user, assistant or tool", message.get("role"))
                continue
            content = self._text(message, path, "content") or ""
            messages.append(
                Message(role=role, content=content, turn=self._number(message, path, "turn") or 0)
            )
        return messages

    def _call(self, item: JsonValue, path: str) -> ToolCall:
        call = self._object(item, path, _CALL_KEYS)
        name = self._text(call, path, "name")
        if name is None:
            self._problem(f"{path}.name", "missing, expected the name of the tool")
        arguments = self._value(call, path, "arguments", decode_arguments)
        result = self._value(call, path, "result", decode_result)
        return ToolCall(
            name=name or "",
            arguments=arguments.value,
            arguments_text=arguments.text,
            arguments_state=arguments.state,
            result=result.value,
            result_text=result.text,
            result_state=result.state,
            error=self._error(call, path),
            call_id=self._text(call, path, "call_id"),
            span_id=self._id(call, path, 8, "span"),
            category=self._word(call, path, "category", CallCategory, CallCategory.FUNCTION),
            parallel_group=self._number(call, path, "parallel_group"),
            executed=self._flag(call, path, "executed", True),
            lenient_values=self._flag(call, path, "lenient_values", False),
            attempt=self._attempt(call, path),
            retry_of=self._number(call, path, "retry_of"),
        )

    def _error(self, call: JsonObject, path: str) -> ToolError | None:
        error = call.get("error")
        if error is None:
            return None
        if isinstance(error, str):
            return ToolError(type="", message=error)
        where = f"{path}.error"
        fields = self._object(error, where, _ERROR_KEYS)
        return ToolError(
            type=self._text(fields, where, "type") or "", message=self._text(fields, where, "message") or ""
        )

    def _value(
        self, call: JsonObject, path: str, key: str, decode: Callable[[JsonValue], DecodedValue]
    ) -> DecodedValue:
        text = self._text(call, path, f"{key}_text")
        if key not in call:
            value = ABSENT if text is None else decode(text)._replace(text=text)
        elif f"{key}_text" in call:
            value = DecodedValue(call[key], text, ValueState.PRESENT)
        elif call.get(f"{key}_state") == ValueState.ABSENT:
            return ABSENT
        else:
            carried = call[key]
            value = decode(carried)
            if isinstance(carried, str):  # a text stays as it was carried, JSON of a text as well
                value = value._replace(text=carried)
        return value._replace(state=self._word(call, path, f"{key}_state", ValueState, value.state))

    def _captured(self, run: JsonObject, key: str) -> tuple[JsonValue, ValueState]:
        default = ValueState.PRESENT if key in run else ValueState.ABSENT
        return run.get(key), self._word(run, "", f"{key}_state", ValueState, default)

    def _id(self, owner: JsonObject, path: str, size: int, kind: str) -> bytes | None:
        key = f"{kind}_id"
        if key not in owner or (kind == "trace" and owner[key] is None):
            return hashlib.sha256(f"{self._where}\0{path}\0{kind}".encode()).digest()[:size]
        text = self._text(owner, path, key)
        if text is None:
            return None
        try:
            identifier = bytes.fromhex(text)
        except ValueError:
            identifier = b""
        if len(identifier) != size or not any(identifier):
            self._expected(_join(path, key), f"{2 * size} hexadecimal digits, not all zero", text)
        return identifier

    def _text(self, owner: JsonObject, path: str, key: str) -> str | None:
        value = owner.get(key)
        if value is None or isinstance(value, str):
            return value
        self._expected(_join(path, key), "a text", value)
        return None

    def _number(self, owner: JsonObject, path: str, key: str) -> int | None:
        value = owner.get(key)
        if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
            return value
        self._expected(_join(path, key), "an integer from 0", value)
        return None

    def _attempt(self, call: JsonObject, path: str) -> int:
        number = self._number(call, path, "attempt")
        return 1 if number is None else number

    def _flag(self, owner: JsonObject, path: str, key: str, default: bool) -> bool:
        value = owner.get(key, default)
        if isinstance(value, bool):
            return value
        self._expected(_join(path, key), "true or false", value)
        return default

    def _word(self, owner: JsonObject, path: str, key: str, words: type[_WordT], default: _WordT) -> _WordT:
        value = owner.get(key)
        if value is None:
            return default
        try:
            return words(str(value))
        except ValueError:
            self._expected(_join(path, key), "one of " + ", ".join(words), value)
            return default

    def _list(self, owner: JsonObject, key: str) -> list[JsonValue]:
        value = owner.get(key)
        if value is None or isinstance(value, list):
            return value or []
        self._expected(key, "a list", value)
        return []

    def _object(self, value: object, path: str, known: Sequence[str]) -> JsonObject:
        if not isinstance(value, dict):
            self._expected(path, "an object", value)
            return {}
        for key in value:
            if key not in known:
                self._problem(_join(path, key), f"unknown key{did_you_mean(key, known)}")
        return value

    def _expected(self, path: str, expected: str, found: object) -> None:
        text = json.dumps(found, ensure_ascii=False, default=str)
        shown = text if len(text) <= 60 else text[:59] + "…"
        self._problem(path, f"expected {expected}, found {shown}")

    def _problem(self, path: str, message: str) -> None:
        line = ": ".join(part for part in (self._where, path, message) if part)
        self._problems.append(" ".join(line.splitlines()))


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
