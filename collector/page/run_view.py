"""A run line as the page shows it: calls in their order and time, each with the verdicts about it."""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeAlias

import yaml

from collector.store import Answer, Review, VerdictKey, verdict_key
from processors.model import CUT_SHORT, JsonObject, JsonValue, encode_json, unix_nano_of

_SHORT = 160
_MAX_LINKED_CALLS = 12
_OPEN_CALLS = 20
"""Calls whose values are shown at once; of further ones only those that failed or have a verdict."""
_TICKS = 4
_MANY = 3
"""Verdicts that lack the same are folded from this number on."""
_GAPS = {
    "content_not_captured": "an answer of its model was not captured",
    "interrupted": "spans may have been lost in a restart or an outage",
    "over_limit": "its trace is over a limit",
}
"""Why a run is not complete, by the reason in its line; for all others spans are missing."""
_LONG = 20_000
MAX_CALLS = 500

_OTHER: Mapping[str, str] = {"pass": "fail", "fail": "pass"}

VerdictReviews: TypeAlias = Mapping[VerdictKey, Sequence[Review]]
"""The reviews of each verdict, newest first."""


DIRECTION_MARKS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""Characters that turn the text after them around."""
_WORD = re.compile(r"[\w.-]*\w")
_NOT_TESTED = {
    "evaluations", "instance", "graded_time", "schema", "resource_attributes", "span_attributes", "trace_id",
    "span_id", "carrier_span_id", "session", "parent_agent", "tenant", "call_id",
}  # fmt: skip
_MEASURED = {
    "start_time", "end_time", "duration_seconds", "time_to_first_output_seconds", "model_calls", "models",
    "usage", "cost",
}  # fmt: skip
_MEASURING = ("run-duration", "tool-duration", "token-budget", "cost-budget", "model-allowed")


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


def shown_run(
    line: JsonObject, testable: Collection[str] | None = (), reviews: VerdictReviews | None = None
) -> dict[str, Any]:
    """What the template of a run shows of its line, of any version and with any part missing.

    `testable` are the evaluations of criteria files: a test case in such a file may expect their outcomes. Of
    verdicts that `reviews` answer as wrong it expects the other outcome, of those answered as unclear none.
    """
    start, end = _nanos(line.get("start_time")), _nanos(line.get("end_time"))
    gap = _gap(line)
    raw = _calls(line)
    times = [(_nanos(call.get("start_time")), _nanos(call.get("end_time"))) for call in raw]
    turns = _turns(line)
    moments = [*times, *((turn["start"], turn["end"]) for turn in turns)]
    begin = min([moment for moment in (start, *(first for first, _ in moments)) if moment], default=0)
    last = max([moment for moment in (end, *(after for _, after in moments)) if moment], default=0)
    span = max(last - begin, 1)
    groups = [None, *(call.get("parallel_group") for call in raw), None]
    calls: list[dict[str, Any]] = []
    for number, (call, (first, after)) in enumerate(zip(raw[:MAX_CALLS], times, strict=False), start=1):
        group = groups[number]
        calls.append(
            {
                "number": number,
                "key": id(call),
                "name": str(call.get("name") or ""),
                "arguments": captured_text(call, "arguments"),
                "result": captured_text(call, "result"),
                "error": _error(call.get("error")),
                "failed": call.get("error") is not None,
                "notes": _notes(call, is_complete=gap is None),
                "group": group if isinstance(group, int) else None,
                "group_starts": group is not None and groups[number - 1] != group,
                "group_ends": group is not None and groups[number + 1] != group,
                **_bar(first, after, begin, span),
                "start": first,
                "executed": call.get("executed") is not False,
                "verdicts": [],
            }
        )
    verdicts = [_linked(verdict, line, calls) for verdict in _objects(line.get("evaluations"))]
    of_run = [verdict for verdict in verdicts if not _attached(verdict, raw[:MAX_CALLS], calls)]
    for shown in calls:
        shown["open"] = shown["number"] <= _OPEN_CALLS or shown["error"] or shown["verdicts"]
    for turn in turns:
        turn |= _bar(turn["start"], turn["end"], begin, span)
    return {
        "line": line,
        "calls": calls,
        "steps": _in_order(calls, [turn for turn in turns if turn["start"]]),
        "calls_left_out": max(len(raw) - MAX_CALLS, 0),
        "verdicts": _folded(sorted(of_run, key=_rank)),
        "ticks": [(1000 * part // _TICKS, span * part / _TICKS / 1e9) for part in range(_TICKS + 1)],
        "model_calls": turns,
        "messages": [
            (str(message.get("role") or ""), ShownText(_text(message.get("content"))))
            for message in _objects(line.get("messages"))
        ],
        "input": captured_text(line, "input"),
        "output": captured_text(line, "output"),
        "facts": run_facts(line),
        "replay_line": encode_json({key: value for key, value in line.items() if key != "evaluations"})
        .decode()
        .translate({ord(mark): f"\\u{ord(mark):04x}" for mark in DIRECTION_MARKS}),
        "test_case": _test_case(line, list(_answered(line, verdicts, reviews or {})), testable),
    }


def _linked(verdict: JsonObject, line: JsonObject, calls: list[dict[str, Any]]) -> dict[str, Any]:
    """A verdict with the calls that it counts, and with the messages of those that a rule blames."""
    by_key = {call["key"]: call for call in calls}
    executed = [by_key.get(id(call)) for call in _objects(line.get("tool_calls"))]
    violations: list[dict[str, Any]] = []
    for violation in _objects(_object(verdict.get("details")).get("violations")):
        index = violation.get("call")
        is_call = isinstance(index, int) and index in range(len(executed))
        call = executed[index] if isinstance(index, int) and is_call else None
        blamed = None if call is None else (call["number"], call["name"], call["error"])
        violations.append(
            {key: _text(violation.get(key) or "") for key in ("check", "evidence", "claim")}
            | {"call": blamed}
        )
    text = str(verdict.get("explanation") or "")
    named = set(_WORD.findall(text)) if verdict.get("outcome") == "fail" and not violations else ()
    linked = [(call["number"], call["name"]) for call in calls if call["name"] in named]
    return {**verdict, "violations": violations, "calls": linked[:_MAX_LINKED_CALLS]}


def _folded(verdicts: Sequence[JsonObject]) -> list[tuple[str, list[JsonObject]]]:
    """Neighbours that share a fold, with its heading: passes, and many that lack the same; else empty."""
    folds = []
    for (outcome, reason), some in groupby(verdicts, lambda of: (of.get("outcome"), of.get("reason"))):
        group = list(some)
        heading = ""
        if outcome == "pass":
            heading = f"{len(group)} passed"
        elif outcome == "not_evaluated" and len(group) >= _MANY:
            heading = f"{len(group)} not evaluated: {str(reason).replace('_', ' ')}"
        folds.append((heading, group))
    return folds


def _rank(verdict: JsonObject) -> tuple[int, str]:
    order = ("fail", "error", "not_evaluated", "pass")
    outcome = verdict.get("outcome")
    place = order.index(outcome) if isinstance(outcome, str) and outcome in order else len(order)
    return place, str(verdict.get("reason") or "")


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


def call_numbers(line: JsonObject) -> list[int]:
    """The number of each of the `tool_calls` of a run line, as `shown_run` counts calls."""
    numbers = {id(call): number for number, call in enumerate(_calls(line), start=1)}
    return [numbers[id(call)] for call in _objects(line.get("tool_calls"))]


def _gap(line: JsonObject) -> str | None:
    """Why spans or content of the run may be missing; None if it is complete."""
    is_cut_short = line.get("finish_reason") in {reason.value for reason in CUT_SHORT}
    if not line.get("complete", not is_cut_short):
        gap = _GAPS.get(str(line.get("incomplete_reason") or ""), "spans are missing")
        return gap if line.get("span_id") else f"{gap}, including its own"
    return None


def _notes(call: JsonObject, *, is_complete: bool) -> list[str]:
    attempt = call.get("attempt")
    notes = [f"attempt {attempt}"] if isinstance(attempt, int) and attempt > 1 else []
    if decision := call.get("decision"):
        source = call.get("decision_source")
        notes.append(f"{decision} ({source})" if source else str(decision))
    elif call.get("executed") is False:
        notes.append("requested, not executed" if is_complete else "requested; its span is missing")
    if call.get("category") not in (None, "function"):
        notes.append(str(call.get("category")).replace("_", " "))
    return notes


def _error(error: JsonValue) -> str:
    if not isinstance(error, dict):
        return ""
    return ": ".join(str(error[key]) for key in ("type", "message") if error.get(key)) or "failed"


def captured_text(entry: JsonObject, key: str) -> ShownText:
    """A value of a run line or of a call in it, as text with its state."""
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


def run_facts(line: JsonObject) -> list[tuple[str, str]]:
    """What is known about a run as a whole: names and values."""
    start, end = _nanos(line.get("start_time")), _nanos(line.get("end_time"))
    resource, agent, usage = (_object(line.get(key)) for key in ("resource_attributes", "agent", "usage"))
    tokens = [usage.get(key) for key in ("input_tokens", "output_tokens")]
    models, cost = line.get("models"), line.get("cost")
    facts = {
        "Version": agent.get("version"),
        "Agent id": agent.get("id"),
        "Stands for": "the trace, by its workflow or service" if line.get("stands_for") else None,
        "Parent agent": line.get("parent_agent"),
        "Service": resource.get("service.name"),
        "Tenant": line.get("tenant"),
        "Conversation": line.get("session"),
        "Started": str(line.get("start_time") or "")[:23].replace("T", " "),  # to the millisecond
        "Took": seconds_text((end - start) / 1e9) if start and end else None,
        "Finish reason": line.get("finish_reason"),
        "Incomplete": _gap(line),
        "Models": ", ".join(map(str, models)) if isinstance(models, list) else None,
        "Tokens": " in, ".join(f"{count:,}" for count in tokens) + " out" if None not in tokens else None,
        "Cost, in the currency of the prices": cost_text(cost) if isinstance(cost, int | float) else None,
        "Graded by": line.get("instance"),
        "Span": line.get("span_id"),
    }
    return [(name, str(value)) for name, value in facts.items() if value not in (None, "")]


def _turns(line: JsonObject) -> list[dict[str, Any]]:
    """The requests to models; those of lines of older versions state no start."""
    turns = []
    for number, call in enumerate(_objects(line.get("model_calls"))[:MAX_CALLS], start=1):
        start, seconds = _nanos(call.get("start_time")), call.get("duration_seconds")
        taken = float(seconds) if isinstance(seconds, int | float) else None
        turns.append(
            {
                "number": number,
                "name": str(call.get("model") or "unknown model"),
                "input": _object(call.get("usage")).get("input_tokens"),
                "output": _object(call.get("usage")).get("output_tokens"),
                "first": call.get("time_to_first_output_seconds"),
                "failed": call.get("failed") is True,
                "start": start,
                "end": start + round((taken or 0) * 1e9),
                "duration": taken,
            }
        )
    return turns


def _bar(first: int, after: int, begin: int, span: int) -> dict[str, Any]:
    """Where something stands in the time of its run, in thousandths, and how long it took."""
    is_timed = bool(first and after and begin)
    return {
        "left": 1000 * (first - begin) / span if is_timed else 0,
        "width": max(1000 * (after - first) / span, 4) if is_timed else 0,
        "seconds": (after - first) / 1e9 if is_timed else None,
    }


def _in_order(calls: list[dict[str, Any]], turns: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """Calls in their order, with each turn of a model before the first call that began after it."""
    steps: list[tuple[str, dict[str, Any]]] = []
    waiting = sorted(turns, key=lambda turn: turn["start"])[::-1]
    for call in calls:
        while waiting and call["start"] >= waiting[-1]["start"]:
            steps.append(("turn", waiting.pop()))
        steps.append(("call", call))
    return steps + [("turn", turn) for turn in waiting[::-1]]


def agent_tree(lines: Sequence[JsonObject]) -> list[dict[str, Any]]:
    """The runs of a trace as a tree, each with its place in `lines`, its bar and the runs that it called.

    A run belongs to the last run before it of its parent agent in whose time it began, else to the last one
    of that agent; without one it is a root.
    """
    times = [(_nanos(line.get("start_time")), _nanos(line.get("end_time"))) for line in lines]
    begin = min([start for start, _ in times if start], default=0)
    span = max(max([end for _, end in times], default=0) - begin, 1)
    roots: list[dict[str, Any]] = []
    earlier: dict[str, list[dict[str, Any]]] = {}
    for place in sorted(range(len(lines)), key=lambda place: (times[place][0], -times[place][1])):
        node = {"place": place, "children": [], "time": times[place], **_bar(*times[place], begin, span)}
        called = earlier.get(str(lines[place].get("parent_agent") or ""), [])
        around = [parent for parent in called if parent["time"][1] >= times[place][0]]
        siblings = (around or called)[-1]["children"] if called else roots
        siblings.append(node)
        earlier.setdefault(str(_object(lines[place].get("agent")).get("name") or ""), []).append(node)
    return roots


def cost_text(cost: float) -> str:
    """A cost to three digits, in the currency of the configured prices, which has no name."""
    return f"{cost:.3g}" if cost < 1000 else f"{cost:,.0f}"


def seconds_text(seconds: float | None) -> str:
    """A time to three digits in the unit that fits, from microseconds to seconds; a dash for None."""
    if seconds is None:
        return "–"
    for unit, size in (("µs", 1e-6), ("ms", 1e-3)):
        if seconds < 999.5 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s" if seconds < 999.5 else f"{seconds:,.0f} s"


def test_case(line: JsonObject, reviews: Sequence[Review]) -> str:
    """A run as a test for a criteria file: YAML with the one entry of `tests`.

    `reviews` are those of its trace, newest first: what they answer as wrong is expected otherwise.
    """
    by_verdict: dict[VerdictKey, list[Review]] = {}
    for review in reviews:
        key = VerdictKey(review.span_id, review.evaluation, review.tool_call_id)
        by_verdict.setdefault(key, []).append(review)
    return _test_case(line, list(_answered(line, _objects(line.get("evaluations")), by_verdict)), None)


def _answered(line: JsonObject, verdicts: list[JsonObject], reviews: VerdictReviews) -> Iterator[JsonObject]:
    """The verdicts as the newest review of each says that they should be."""
    for verdict in verdicts:
        answers = reviews.get(verdict_key(str(line.get("span_id") or ""), verdict))
        answer = answers[0].answer if answers else Answer.RIGHT
        if answer == Answer.RIGHT:
            yield verdict
        elif answer == Answer.WRONG:
            yield {**verdict, "outcome": _OTHER.get(str(verdict.get("outcome")))}


def _test_case(line: JsonObject, verdicts: list[JsonObject], testable: Collection[str] | None) -> str:
    """The run as a test in a criteria file that expects the verdicts it got there; empty without any.

    It has only what decides such verdicts: no ids, and times and tokens only where they are measured.
    """
    expected = [
        verdict
        for verdict in verdicts
        if (testable is None or verdict.get("name") in testable)
        and verdict.get("outcome") in ("pass", "fail")
        and not (verdict.get("scope") or verdict.get("conversation_runs"))
    ]
    if not expected:
        return ""
    left_out = _NOT_TESTED
    if not any(verdict.get("evaluator") in _MEASURING for verdict in expected):
        left_out = left_out | _MEASURED
    name = _object(line.get("agent")).get("name", "")
    run = {key: value for key, value in line.items() if key not in left_out and value not in (None, [], {})}
    run["agent"] = {key: value for key, value in _object(line.get("agent")).items() if value is not None}
    for key in ("tool_calls", "requested_calls"):
        if calls := _objects(run.get(key)):
            run[key] = [_tested_call(call, left_out) for call in calls]
    case = {
        "name": f"{name} as in {line.get('trace_id')}",
        "run": run,
        "expect": {str(verdict.get("name")): verdict.get("outcome") for verdict in expected},
    }
    has_marks = any(mark in str(case) for mark in DIRECTION_MARKS)
    return yaml.safe_dump({"tests": [case]}, sort_keys=False, allow_unicode=not has_marks, width=110)


def _tested_call(call: JsonObject, left_out: Collection[str]) -> JsonObject:
    """A call without its ids, and without what follows from its values."""
    kept = {key: value for key, value in call.items() if key not in left_out}
    for key in ("arguments", "result"):
        state = kept.pop(f"{key}_state", "present")
        if state == "absent":
            kept.pop(key, None)
        elif state != "present":
            kept[f"{key}_state"] = state
        value, text = kept.get(key), kept.pop(f"{key}_text", None)
        if text is not None and text not in (value, json.dumps(value, ensure_ascii=False)):
            kept[f"{key}_text"] = text
    for key, default in (("error", None), ("category", "function"), ("parallel_group", None)):
        if kept.get(key) == default:
            kept.pop(key, None)
    return kept


def _object(value: JsonValue) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _objects(value: JsonValue) -> list[JsonObject]:
    return [inner for inner in value if isinstance(inner, dict)] if isinstance(value, list) else []


def _nanos(value: JsonValue) -> int:
    try:
        return unix_nano_of(value) if isinstance(value, str) else 0
    except ValueError:
        return 0
