"""The attributes of one evaluation result, encoded for whatever message carries them.

`gen_ai.evaluation.*` and `error.type` are those that the OpenTelemetry GenAI semantic conventions give the
event `gen_ai.evaluation.result`; everything of our own is under `tracegrade.`.
"""

import struct
from collections.abc import Iterable
from functools import lru_cache

from processors.model import AgentRun, EvaluationResult, NotEvaluatedReason, Scope, Stage
from processors.spans import encode_field

EVENT_NAME = "gen_ai.evaluation.result"

EVENT_ATTRIBUTE, LOG_ATTRIBUTE, SPAN_ATTRIBUTE = 0x1A, 0x32, 0x4A
"""The tags of the attributes of a span event, of a log record and of a span."""

_DOUBLE = struct.Struct("<d")
_NO_CRITERIA = NotEvaluatedReason.NO_CRITERIA


def makes_event(result: EvaluationResult) -> bool:
    """False for the one result that leaves no trace in telemetry: nothing applied to the run."""
    return result.reason is not _NO_CRITERIA


def encode_result_attributes(result: EvaluationResult, run: AgentRun, instance: str, tag: int) -> bytes:
    """The attributes of `result`, each as a field with `tag`; `instance` names who graded."""
    key = (
        result.name,
        result.evaluator,
        result.evaluator_version,
        result.outcome,
        result.pass_threshold,
        result.criteria_hash,
        result.severity,
        result.scope,
        result.stage,
        run.finish_reason,
        run.tenant,
        instance,
        tag,
    )
    constant = _CONSTANT.get(key)
    if constant is None:
        if len(_CONSTANT) >= _MAX_CONSTANT:
            _CONSTANT.clear()
        constant = _CONSTANT[key] = _constant_attributes(result, run, instance, tag)
    parts = [constant]
    if result.score is not None:
        parts += _SCORE_VALUE[tag], _DOUBLE.pack(result.score)
    if result.explanation:
        text = result.explanation.encode("utf-8", "replace")
        parts += _head(tag, _EXPLANATION, len(text)), text
    if result.error_type is not None:
        parts.append(encode_text_attribute(tag, _ERROR_TYPE, result.error_type))
    if result.reason is not None:
        parts.append(encode_text_attribute(tag, _REASON, result.reason.value))
    if result.muted_until_unix_nano:
        parts.append(encode_field(tag, _MUTED))
    if result.tool_call_id is not None:
        parts.append(encode_text_attribute(tag, _CALL_ID, result.tool_call_id))
    if result.tool_span_id is not None:
        parts.append(encode_text_attribute(tag, _CALL_SPAN_ID, result.tool_span_id.hex()))
    if result.conversation_runs:
        parts.append(encode_texts_attribute(tag, _CONVERSATION_RUNS, map(str, result.conversation_runs)))
    return b"".join(parts)


def encode_run_attributes(run: AgentRun, tag: int) -> bytes:
    """Whose run it is, each as a field with `tag`: for forms that do not ride on the agent's own span.

    The agent's name, id and version and the conversation, each if it is known.
    """
    attributes = (
        (_AGENT_NAME, run.agent.name),
        (_AGENT_ID, run.agent.id),
        (_AGENT_VERSION, run.agent.version),
        (_CONVERSATION, run.session),
    )
    return b"".join([encode_text_attribute(tag, key, value) for key, value in attributes if value])


def encode_text_attribute(tag: int, key: bytes, value: str) -> bytes:
    """An attribute with a text; `key` comes from `encode_key`."""
    text = value.encode("utf-8", "replace")
    return _head(tag, key, len(text)) + text


@lru_cache(maxsize=4096)
def _head(tag: int, key: bytes, size: int) -> bytes:
    """What precedes the text, of `size` bytes, in an attribute."""
    text = bytes(size)
    return encode_field(tag, key + encode_field(0x12, encode_field(0x0A, text))).removesuffix(text)


def encode_texts_attribute(tag: int, key: bytes, values: Iterable[str]) -> bytes:
    """An attribute with an array of texts; `key` comes from `encode_key`."""
    texts = [encode_field(0x0A, encode_field(0x0A, value.encode("utf-8", "replace"))) for value in values]
    return encode_field(tag, key + encode_field(0x12, encode_field(0x2A, b"".join(texts))))


def encode_double_attribute(tag: int, key: bytes, value: float) -> bytes:
    """An attribute with a double; `key` comes from `encode_key`."""
    return encode_field(tag, key + b"\x12\x09\x21" + _DOUBLE.pack(value))


def encode_key(key: str) -> bytes:
    """The key of an attribute."""
    return encode_field(0x0A, key.encode("utf-8", "replace"))


_MAX_CONSTANT = 4096
_CONSTANT: dict[tuple[str | float, ...], bytes] = {}
"""What is the same for all results of one evaluation that end alike."""


def _constant_attributes(result: EvaluationResult, run: AgentRun, instance: str, tag: int) -> bytes:
    texts = {
        "gen_ai.evaluation.name": result.name,
        "gen_ai.evaluation.score.label": result.outcome.value,
        "tracegrade.evaluator.id": result.evaluator,
        "tracegrade.evaluator.version": result.evaluator_version,
        "tracegrade.criteria.hash": result.criteria_hash,
        "tracegrade.severity": result.severity.value,
        "tracegrade.finish_reason": run.finish_reason.value,
        "tracegrade.instance": instance,
    }
    if run.tenant:
        texts["tracegrade.tenant"] = run.tenant
    if result.scope is not Scope.RUN:
        texts["tracegrade.scope"] = result.scope.value
    if result.stage is not Stage.LIVE:
        texts["tracegrade.stage"] = result.stage.value
    attributes = [encode_text_attribute(tag, encode_key(key), value) for key, value in texts.items()]
    threshold = encode_double_attribute(tag, encode_key("tracegrade.pass_threshold"), result.pass_threshold)
    return b"".join(attributes) + threshold


_SCORE_VALUE = {
    tag: encode_double_attribute(tag, encode_key("gen_ai.evaluation.score.value"), 0.0)[: -_DOUBLE.size]
    for tag in (EVENT_ATTRIBUTE, LOG_ATTRIBUTE, SPAN_ATTRIBUTE)
}
"""The attribute without the eight bytes of its double, by tag."""

_EXPLANATION = encode_key("gen_ai.evaluation.explanation")
_ERROR_TYPE = encode_key("error.type")
_REASON = encode_key("tracegrade.not_evaluated.reason")
_CALL_ID = encode_key("tracegrade.tool.call.id")
_CALL_SPAN_ID = encode_key("tracegrade.tool.span.id")
_AGENT_NAME = encode_key("gen_ai.agent.name")
_AGENT_ID = encode_key("gen_ai.agent.id")
_AGENT_VERSION = encode_key("gen_ai.agent.version")
_CONVERSATION = encode_key("gen_ai.conversation.id")
_CONVERSATION_RUNS = encode_key("tracegrade.conversation.runs")
_MUTED = encode_key("tracegrade.muted") + encode_field(0x12, b"\x10\x01")
