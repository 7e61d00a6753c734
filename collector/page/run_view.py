"""A run line as the page shows it: calls in their order and time, each with the verdicts about it."""

import json
from dataclasses import dataclass
from typing import Any

import yaml

from processors.model import JsonObject, JsonValue, encode_json, unix_nano_of

_SHORT = 160
_LONG = 20_000
_MAX_CALLS = 500


@dataclass(slots=True)
class ShownText:
    """A text, and one line of it where it is long."""

    text: str
    state: str = "present"

    @property
    def short(self) -> str:
        """One line of it."""
        flat = " ".join(self.text[: 2 * _SHORT].split())
        return flat if len(flat) <= _SHORT else flat[: _SHORT - 1] + "…"

    @property
    def is_long(self) -> bool:
        """Whether `short` leaves something out."""
        return len(self.text) > _SHORT or "\n" in self.text


def shown_run(line: JsonObject) -> dict[str, Any]:
    """What the template of a run shows of its line, of any version and with any part missing."""
    start, end = _nanos(line.get("start_time")), _nanos(line.get("end_time"))
    raw = _calls(line)
    times = [(_nanos(call.get("start_time")), _nanos(call.get("end_time"))) for call in raw]
    begin = min([moment for moment in (start, *(first for first, _ in times)) if moment], default=0)
    last = max([moment for moment in (end, *(after for _, after in times)) if moment], default=0)
    span = max(last - begin, 1)
    groups = [None, *(call.get("parallel_group") for call in raw), None]
    calls = []
    for number, (call, (first, after)) in enumerate(zip(raw[:_MAX_CALLS], times, strict=False), start=1):
        is_timed = bool(first and after and begin)
        group = groups[number]
        calls.append(
            {
                "number": number,
                "name": str(call.get("name") or ""),
                "arguments": _captured(call, "arguments"),
                "result": _captured(call, "result"),
                "error": _error(call.get("error")),
                "notes": _notes(call),
                "group": group if isinstance(group, int) else None,
                "group_starts": group is not None and groups[number - 1] != group,
                "group_ends": group is not None and groups[number + 1] != group,
                # The bar of the call: thousandths of the time of the run.
                "left": 1000 * (first - begin) / span if is_timed else 0,
                "width": max(1000 * (after - first) / span, 4) if is_timed else 0,
                "seconds": (after - first) / 1e9 if first and after else None,
                "executed": call.get("executed") is not False,
                "verdicts": [],
            }
        )
    verdicts = _objects(line.get("evaluations"))
    of_run = [verdict for verdict in verdicts if not _attached(verdict, raw[:_MAX_CALLS], calls)]
    return {
        "line": line,
        "calls": calls,
        "calls_left_out": max(len(raw) - _MAX_CALLS, 0),
        "verdicts": sorted(of_run, key=_rank),
        "messages": [
            (str(message.get("role") or ""), ShownText(_text(message.get("content"))))
            for message in _objects(line.get("messages"))
        ],
        "input": _captured(line, "input"),
        "output": _captured(line, "output"),
        "facts": _facts(line, start, end),
        "replay_line": encode_json(
            {key: value for key, value in line.items() if key != "evaluations"}
        ).decode(),
        "test_case": _test_case(line, verdicts),
    }


def _rank(verdict: JsonObject) -> int:
    order = ("fail", "error", "not_evaluated", "pass")
    outcome = verdict.get("outcome")
    return order.index(outcome) if isinstance(outcome, str) and outcome in order else len(order)


def _attached(verdict: JsonObject, raw: list[JsonObject], calls: list[dict[str, Any]]) -> bool:
    """Attach a verdict to the call that it is about; False if it is about the run."""
    for place, key in (("tool_span_id", "span_id"), ("tool_call_id", "call_id")):
        if named := verdict.get(place):
            for call, shown in zip(raw, calls, strict=True):
                if call.get(key) == named:
                    shown["verdicts"].append(verdict)
                    return True
    return False


def _calls(line: JsonObject) -> list[JsonObject]:
    calls = _objects(line.get("tool_calls"))
    requested = [(call, call.get("after")) for call in _objects(line.get("requested_calls"))]
    for call, before in reversed(requested):
        place = before if isinstance(before, int) else len(calls)
        calls.insert(min(place, len(calls)), {"executed": False, **call})
    return calls


def _notes(call: JsonObject) -> list[str]:
    attempt = call.get("attempt")
    notes = [f"attempt {attempt}"] if isinstance(attempt, int) and attempt > 1 else []
    if decision := call.get("decision"):
        source = call.get("decision_source")
        notes.append(f"{decision} ({source})" if source else str(decision))
    elif call.get("executed") is False:
        notes.append("requested, not executed")
    if call.get("category") not in (None, "function"):
        notes.append(str(call.get("category")).replace("_", " "))
    return notes


def _error(error: JsonValue) -> str:
    if not isinstance(error, dict):
        return ""
    return ": ".join(str(error[key]) for key in ("type", "message") if error.get(key)) or "failed"


def _captured(entry: JsonObject, key: str) -> ShownText:
    default = "present" if key in entry else "absent"
    state = str(entry.get(f"{key}_state") or default)
    value = entry.get(key)
    text = entry.get(f"{key}_text")
    return ShownText(_text(value if value is not None else text), state)


def _text(value: JsonValue) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if not isinstance(value, str) and len(text) > _SHORT:
        text = json.dumps(value, ensure_ascii=False, indent=2)
    text = text.encode(errors="replace").decode()
    return text if len(text) <= _LONG else f"{text[:_LONG]}\n… {len(text) - _LONG} more characters"


def _facts(line: JsonObject, start: int, end: int) -> list[tuple[str, str]]:
    resource, agent, usage = (_object(line.get(key)) for key in ("resource_attributes", "agent", "usage"))
    tokens = [usage.get(key) for key in ("input_tokens", "output_tokens")]
    models = line.get("models")
    facts = {
        "Version": agent.get("version"),
        "Agent id": agent.get("id"),
        "Parent agent": line.get("parent_agent"),
        "Service": resource.get("service.name"),
        "Tenant": line.get("tenant"),
        "Conversation": line.get("session"),
        "Started": str(line.get("start_time") or "")[:23].replace("T", " "),  # to the millisecond
        "Took": f"{(end - start) / 1e9:.3g} s" if start and end else None,
        "Finished by": line.get("finish_reason"),
        "Models": ", ".join(map(str, models)) if isinstance(models, list) else None,
        "Tokens": " in, ".join(map(str, tokens)) + " out" if None not in tokens else None,
        "Cost": line.get("cost"),
        "Graded by": line.get("instance"),
        "Span": line.get("span_id"),
    }
    return [(name, str(value)) for name, value in facts.items() if value not in (None, "")]


def _test_case(line: JsonObject, verdicts: list[JsonObject]) -> str:
    """The run as a test in a criteria file that expects the verdicts it got."""
    left_out = ("evaluations", "instance", "graded_time", "schema", "resource_attributes", "span_attributes")
    name = _object(line.get("agent")).get("name", "")
    case: dict[str, Any] = {
        "name": f"{name} as in {line.get('trace_id')}",
        "run": {key: value for key, value in line.items() if key not in left_out},
        "expect": {
            str(verdict.get("name")): verdict.get("outcome")
            for verdict in verdicts
            if verdict.get("outcome") in ("pass", "fail") and not verdict.get("conversation_runs")
        },
    }
    return yaml.safe_dump({"tests": [case]}, sort_keys=False, allow_unicode=True, width=110)


def _object(value: JsonValue) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _objects(value: JsonValue) -> list[JsonObject]:
    return [inner for inner in value if isinstance(inner, dict)] if isinstance(value, list) else []


def _nanos(value: JsonValue) -> int:
    try:
        return unix_nano_of(value) if isinstance(value, str) else 0
    except ValueError:
        return 0
