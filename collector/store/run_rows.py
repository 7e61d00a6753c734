"""What the store holds of a graded run: its line, and what people search by."""

import math
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from processors.annotation import run_to_json
from processors.model import (
    GradedRun,
    JsonObject,
    JsonValue,
    NotEvaluatedReason,
    Outcome,
    decode_json,
    encode_json,
)

_MAX_WORDS_CHARACTERS = 16_384
_MAX_TEXT_CHARACTERS = 2_048
_MAX_NAME_CHARACTERS = 300
HOUR_MILLISECONDS = 3_600_000
TEXT_COLUMNS = ("answer", "reason", "input", "call", "other")
"""Parts of a run that a text search distinguishes; if they are too long, the last ones are cut off."""

RUN, EVALUATION, TOOL, MISSING = "run", "evaluation", "tool", "missing"
CAUSE, NOT_STORED, COST, TOKENS = "cause", "not_stored", "cost", "tokens"
"""What an hour counts of an agent."""
NO_CRITERIA, NO_CALLS, NO_CONTENT = "no_criteria", "no_calls", "content_not_captured"
NO_VERDICT = "passed_without_a_check"
"""Passed, but a check whose failure would have counted gave no verdict."""


class HourKey(NamedTuple):
    """What one count of an hour is of.

    `label` is an outcome; whether a call failed, and its `duration_bucket` if known; a dialect; why a run was
    not stored; or a cause: `OUTCOME EXEMPTION: text`, with `EvaluationResult.cause` as the text.
    """

    tenant: str
    agent: str
    kind: str
    name: str
    label: str
    version: str
    hour: int


@dataclass(frozen=True, slots=True)
class RunRows:
    """The rows of one run; the texts are those that SQLite can hold.

    `results` are name, outcome, why a failure alerts no one (`EvaluationResult.exemption`), and the cause.
    `line` is compressed once they are `packed`. `texts` are what a text search finds it by: `texts_of` its
    line. `hours` are what its hour counts, each once, with its score or its seconds.
    """

    milliseconds: int
    run: tuple[str | int | float | None, ...]
    line: bytes
    texts: tuple[str, ...]
    results: tuple[tuple[str, str, str, str], ...]
    tools: tuple[str, ...]
    hours: Sequence[tuple[HourKey, float]]

    @property
    def size(self) -> int:
        """Bytes that they take while they wait to be written, about."""
        return len(self.line) + sum(map(len, self.texts))

    def packed(self) -> "RunRows":
        """The same, as the store takes them."""
        return replace(self, line=zlib.compress(self.line, 1))


def rows_of(graded: GradedRun, now_unix_nano: int) -> RunRows:
    """The rows of a run with its line uncompressed, which is quick.

    `now_unix_nano` is its time if it was not graded by a service.
    """
    run = graded.run
    entry = decode_json(graded.line) if graded.line else run_to_json(graded)
    line = graded.line or encode_json(entry)
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
    results: dict[tuple[str, str], tuple[str, str]] = {}
    for result in graded.results:
        exemption = result.exemption if result.is_failure else ""
        key, cause = (_name(result.name), result.outcome.value), as_held(result.cause)
        if results.setdefault(key, (exemption, cause))[1] != cause and not result.is_failure:
            results[key] = exemption, ""  # several reasons: its line has them
    return RunRows(
        milliseconds,
        row,
        line,
        texts_of(entry),
        tuple(sorted((*key, *rest) for key, rest in results.items())),
        tuple(tools),
        tuple(_hour_counts(graded, tenant, agent, version, milliseconds // HOUR_MILLISECONDS)),
    )


def not_stored_key(graded: GradedRun | RunRows, reason: str, now_unix_nano: int) -> HourKey:
    """What counts a run that is not stored."""
    if isinstance(graded, RunRows):
        return graded.hours[0][0]._replace(kind=NOT_STORED, label=reason)  # the first counts the run
    run = graded.run
    hour = (graded.graded_unix_nano or now_unix_nano) // 1_000_000 // HOUR_MILLISECONDS
    agent, version, tenant = _name(run.agent.name), _name(run.agent.version or ""), _name(run.tenant)
    return HourKey(tenant, agent, NOT_STORED, "", reason, version, hour)


def duration_bucket(seconds: float) -> int:
    """The bucket of a duration, from -40 for up to a microsecond; each ends at 1.41 times the one before."""
    return max(math.ceil(2 * math.log2(seconds)), -40) if seconds > 0 else -40


def texts_of(entry: JsonValue) -> tuple[str, ...]:
    """What a text search finds a run by, for each of `TEXT_COLUMNS`, in a bounded length."""
    line = entry if isinstance(entry, dict) else {}
    calls: list[str] = []
    reasons: list[str] = []
    others = [_text(line.get("trace_id")), _text(line.get("session"))]
    for call in _objects(line.get("tool_calls")):
        calls += [_text(call.get(key)) for key in ("name", "arguments_text", "result_text", "call_id")]
        error = call.get("error")
        if isinstance(error, dict):
            calls += map(_text, error.values())
    for result in _objects(line.get("evaluations")):
        texts = others if result.get("outcome") == Outcome.PASS else reasons
        texts += _text(result.get("reason")), _text(result.get("explanation"))
    room = _MAX_WORDS_CHARACTERS
    bounded = []
    for texts in ([_text(line.get("output"))], reasons, [_text(line.get("input"))], calls, others):
        bounded.append(as_held(" ".join(texts)[:room]))
        room -= len(bounded[-1])
    return tuple(bounded)


def _objects(value: JsonValue) -> list[JsonObject]:
    return [inner for inner in value if isinstance(inner, dict)] if isinstance(value, list) else []


def _text(value: JsonValue) -> str:
    return "" if value is None else str(value)[:_MAX_TEXT_CHARACTERS]


def _hour_counts(
    graded: GradedRun, tenant: str, agent: str, version: str, hour: int
) -> Iterator[tuple[HourKey, float]]:
    run = graded.run

    def counted(kind: str, name: str, label: str, amount: float | None = None) -> tuple[HourKey, float]:
        return HourKey(tenant, agent, kind, name, label, version, hour), amount or 0.0

    yield counted(RUN, "", graded.verdict.value, run.duration_seconds)
    if run.cost is not None:
        yield counted(COST, "", "", run.cost)
    if run.usage is not None:
        yield counted(TOKENS, "", "", run.usage.input_tokens + run.usage.output_tokens)
    for result in graded.results:
        is_exempt = result.is_failure and not result.counts
        label = result.exemption if is_exempt else result.outcome.value
        yield counted(EVALUATION, _name(result.name), label, result.score)
        if result.is_failure:
            cause = f"{result.outcome.value} {result.exemption}: {as_held(result.cause)}"
            yield counted(CAUSE, _name(result.name), cause)
    for call in run.tool_calls:
        label = "ok" if call.error is None else "error"
        if (seconds := call.duration_seconds) is not None:
            label = f"{label} {duration_bucket(seconds)}"
        yield counted(TOOL, _name(call.name), label, seconds)
    if not graded.results:
        yield counted(MISSING, NO_CRITERIA, "")
    if not run.tool_calls:
        yield counted(MISSING, NO_CALLS, "")
    if any(result.reason is NotEvaluatedReason.CONTENT_NOT_CAPTURED for result in graded.results):
        yield counted(MISSING, NO_CONTENT, _name(run.dialect))
    undecided = any(result.outcome is Outcome.NOT_EVALUATED and result.counts for result in graded.results)
    if undecided and graded.verdict is Outcome.PASS:
        yield counted(MISSING, NO_VERDICT, "")


def _name(text: str) -> str:
    return as_held(text[:_MAX_NAME_CHARACTERS])


def as_held(text: str) -> str:
    """`text` as SQLite holds it: without lone surrogates."""
    return text if text.isascii() else text.encode(errors="replace").decode()
