"""What the store keeps of a graded run: its line, and beside it what people search by."""

import re
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from processors.annotation import format_run
from processors.model import (
    GradedRun,
    JsonObject,
    JsonValue,
    NotEvaluatedReason,
    decode_json,
)

_MAX_WORDS_CHARACTERS = 16_384
_MAX_TEXT_CHARACTERS = 2_048
_MAX_NAME_CHARACTERS = 300
_HOUR_MILLISECONDS = 3_600_000
_WORD = re.compile(r"[^\W_]+")

RUN, EVALUATION, TOOL, MISSING = "run", "evaluation", "tool", "missing"
"""What an hour counts of an agent."""
NO_CRITERIA, NO_CALLS, NO_CONTENT = "no_criteria", "no_calls", "content_not_captured"


class HourKey(NamedTuple):
    """What one count of an hour is of; `label` is an outcome, whether a call failed, or a dialect."""

    tenant: str
    agent: str
    kind: str
    name: str
    label: str
    version: str
    hour: int


HourSums: TypeAlias = dict[HourKey, tuple[int, float]]
"""How many, and the sum of their scores or seconds."""


@dataclass(frozen=True, slots=True)
class RunRows:
    """The rows of one run; the texts are those that SQLite can hold."""

    milliseconds: int
    run: tuple[str | int | float | None, ...]
    line: bytes
    words: str
    results: tuple[tuple[str, str], ...]
    tools: tuple[str, ...]
    hours: HourSums


def rows_of(graded: GradedRun, now_unix_nano: int) -> RunRows:
    """The rows of a run; `now_unix_nano` is its time where it does not say when it was graded."""
    run = graded.run
    line = format_run(graded)
    milliseconds = (graded.graded_unix_nano or now_unix_nano) // 1_000_000
    agent, version, tenant = _name(run.agent.name), _name(run.agent.version or ""), _name(run.tenant)
    tools = Counter(_name(call.name) for call in run.tool_calls)
    failed = sum(call.error is not None for call in run.tool_calls)
    outcome = graded.verdict.value
    row = (
        milliseconds,
        agent,
        version,
        _name(str(run.resource.get("service.name") or "")),
        tenant,
        run.trace_id.hex(),
        "" if run.span_id is None else run.span_id.hex(),
        _name(run.session or ""),
        run.finish_reason.value,
        outcome,
        len(run.tool_calls),
        failed,
        run.duration_seconds,
        _name(run.dialect),
    )
    results = {(_name(result.name), result.outcome.value) for result in graded.results}
    return RunRows(
        milliseconds,
        row,
        zlib.compress(line, 1),
        words_of(line),
        tuple(sorted(results)),
        tuple(tools),
        _hour_sums(graded, tenant, agent, version, milliseconds // _HOUR_MILLISECONDS),
    )


def words_of(line: bytes) -> str:
    """What a text search finds a run by: what was said, called, given and found, in a bounded length.

    The same line gives the same words, so that they can be taken out of the index again.
    """
    entry = decode_json(line)
    if not isinstance(entry, dict):
        return ""
    words = " ".join(_WORD.findall(" ".join(_texts(entry))[: 2 * _MAX_WORDS_CHARACTERS]))
    return words[:_MAX_WORDS_CHARACTERS]


def search_words(text: str) -> list[str]:
    """The words that a search for `text` looks for, all of them as beginnings."""
    return _WORD.findall(text[:_MAX_NAME_CHARACTERS])


def _texts(entry: JsonObject) -> Iterator[str]:
    yield from (_text(entry.get(key)) for key in ("input", "output"))
    for call in _objects(entry.get("tool_calls")):
        yield from (_text(call.get(key)) for key in ("name", "arguments_text", "result_text", "call_id"))
        error = call.get("error")
        if isinstance(error, dict):
            yield from map(_text, error.values())
    for result in _objects(entry.get("evaluations")):
        yield _text(result.get("explanation"))


def _objects(value: JsonValue) -> list[JsonObject]:
    return [inner for inner in value if isinstance(inner, dict)] if isinstance(value, list) else []


def _text(value: JsonValue) -> str:
    return "" if value is None else str(value)[:_MAX_TEXT_CHARACTERS]


def _hour_sums(graded: GradedRun, tenant: str, agent: str, version: str, hour: int) -> HourSums:
    run = graded.run
    sums: HourSums = {}

    def add(kind: str, name: str, label: str, amount: float = 0.0) -> None:
        key = HourKey(tenant, agent, kind, name, label, version, hour)
        count, total = sums.get(key, (0, 0.0))
        sums[key] = count + 1, total + amount

    add(RUN, "", graded.verdict.value, run.duration_seconds or 0.0)
    for result in graded.results:
        label = result.outcome.value
        if result.is_failure and not result.counts:
            label = result.exemption
        add(EVALUATION, _name(result.name), label, result.score or 0.0)
    for call in run.tool_calls:
        add(TOOL, _name(call.name), "error" if call.error is not None else "ok", call.duration_seconds or 0.0)
    if not graded.results:
        add(MISSING, NO_CRITERIA, "")
    if not run.tool_calls:
        add(MISSING, NO_CALLS, "")
    if any(result.reason is NotEvaluatedReason.CONTENT_NOT_CAPTURED for result in graded.results):
        add(MISSING, NO_CONTENT, _name(run.dialect))
    return sums


def _name(text: str) -> str:
    """`text` as SQLite holds it, in a bounded length."""
    return text[:_MAX_NAME_CHARACTERS].encode(errors="replace").decode()
