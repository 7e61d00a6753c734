"""The model, the tokens and the time to the first output on a span.

One table for all conventions: the names of these attributes mean the same wherever they are. What a single
convention does in another way a dialect reads itself (`Dialect.usage`).
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Final, NamedTuple

from processors.model import JsonObject, JsonValue, TokenUsage, decode_result
from processors.shapes.attribute_reading import first_text, first_value
from processors.shapes.members import text_at
from processors.spans import Attributes, Span

_MODELS: Final = (
    "gen_ai.response.model", "ai.response.model", "llm.response.model", "ai.observability.cost.model",
    "gen_ai.request.model", "llm.model_name", "llm.request.model", "judgment.llm.model",
    "langfuse.observation.model.name", "mlflow.llm.model", "ai.model.id", "ai.model.name", "llm.model",
    "model_name", "model",
)  # fmt: skip
"""Names of the attributes of each fact, in the order in which they are tried: what answered before what was
requested, and the conventions' names before those of single emitters."""
_INPUT: Final = (
    "gen_ai.usage.input_tokens", "llm.token_count.prompt", "gen_ai.aggregated_usage.input_tokens",
    "gen_ai.usage.prompt_tokens", "ai.usage.inputTokens", "ai.usage.promptTokens", "llm.usage.prompt_tokens",
    "llm.usage.input_tokens", "gen_ai.response.prompt_tokens", "ai.observability.cost.num_prompt_tokens",
    "judgment.usage.non_cached_input_tokens", "usage.prompt_tokens", "usage.input_tokens",
    "input_token_count", "input_tokens",
)  # fmt: skip
_OUTPUT: Final = (
    "gen_ai.usage.output_tokens", "llm.token_count.completion", "gen_ai.aggregated_usage.output_tokens",
    "gen_ai.usage.completion_tokens", "ai.usage.outputTokens", "ai.usage.completionTokens",
    "llm.usage.completion_tokens", "llm.usage.output_tokens", "gen_ai.response.completion_tokens",
    "ai.observability.cost.num_completion_tokens", "judgment.usage.output_tokens",
    "usage.completion_tokens", "usage.output_tokens", "output_token_count", "output_tokens",
)  # fmt: skip
_CACHED: Final = (
    "gen_ai.usage.cache_read.input_tokens", "llm.token_count.prompt_details.cache_read",
    "gen_ai.usage.cache_read_input_tokens", "gen_ai.usage.cached_input_tokens", "gen_ai.usage.cached_tokens",
    "gen_ai.usage.cache_read_tokens", "gen_ai.aggregated_usage.cache_read.input_tokens",
    "gen_ai.usage.details.cache_read_tokens", "gen_ai.usage.details.cached_tokens",
    "gen_ai.usage.details.cache_read_input_tokens", "ai.usage.inputTokenDetails.cacheReadTokens",
    "ai.usage.cachedInputTokens", "llm.usage.cache_read_input_tokens",
    "judgment.usage.cache_read_input_tokens", "usage.cached_tokens", "cached_content_token_count",
    "cache_read_tokens",
)  # fmt: skip
_WRITTEN: Final = (
    "gen_ai.usage.cache_creation.input_tokens", "gen_ai.usage.cache_write.input_tokens",
    "llm.token_count.prompt_details.cache_write", "gen_ai.usage.cache_creation_input_tokens",
    "gen_ai.usage.cache_write_input_tokens", "gen_ai.usage.cache_create_input_tokens",
    "gen_ai.aggregated_usage.cache_creation.input_tokens", "gen_ai.usage.cache_creation_tokens",
    "gen_ai.usage.details.cache_write_tokens", "gen_ai.usage.details.cache_creation_input_tokens",
    "ai.usage.inputTokenDetails.cacheWriteTokens", "llm.usage.cache_creation_input_tokens",
    "judgment.usage.cache_creation_input_tokens", "cache_creation_tokens",
)  # fmt: skip
_REASONING: Final = (
    "gen_ai.usage.reasoning.output_tokens", "llm.token_count.completion_details.reasoning",
    "gen_ai.usage.reasoning_tokens", "gen_ai.usage.thinking_tokens", "gen_ai.usage.details.reasoning_tokens",
    "gen_ai.usage.experimental.reasoning_tokens", "ai.usage.outputTokenDetails.reasoningTokens",
    "ai.usage.reasoningTokens", "llm.usage.reasoning_tokens", "usage.reasoning_tokens",
    "thoughts_token_count",
)  # fmt: skip
_WITHOUT_CACHE: Final = frozenset(
    {"judgment.usage.non_cached_input_tokens", "input_tokens"}  # Judgment; Claude Code
)
"""Names of an input without the tokens that were read from caches or written to them."""
_WITHOUT_REASONING: Final = frozenset({"gen_ai.usage.experimental.reasoning_tokens", "thoughts_token_count"})
"""Names of reasoning that the output does not include: Gemini counts its thoughts separately."""
_USAGE_OBJECTS: Final = (
    "langfuse.observation.usage_details", "mlflow.chat.tokenUsage", "langfuse.observation.usage",
)  # fmt: skip
_SECONDS: Final = (
    "gen_ai.response.time_to_first_chunk", "gen_ai.client.operation.time_to_first_chunk",
    "gen_ai.server.time_to_first_token", "gen_ai.server.ttft", "lk.response.ttft", "metrics.ttfb",
)  # fmt: skip
_MILLISECONDS: Final = ("ai.response.msToFirstChunk", "ttft_ms")
_FIRST_OUTPUT: Final = "langfuse.observation.completion_start_time"
_WHOLE_IS_MILLISECONDS: Final = "gen_ai.server.time_to_first_token"
"""A whole number under this name is in milliseconds: Strands writes it so."""
_FIRST_OUTPUT_EVENTS: Final = frozenset(
    {"First Token Stream Event", "ai.stream.firstChunk", "llm.content.completion.chunk"}
)
"""Events of the first output: OpenInference for LlamaIndex, the AI SDK, Traceloop for OpenAI."""

_TIMES: Final = (*_SECONDS, *_MILLISECONDS, _FIRST_OUTPUT)

USAGE_KEYS: Final = frozenset(
    (*_MODELS, *_INPUT, *_OUTPUT, *_CACHED, *_WRITTEN, *_REASONING, *_USAGE_OBJECTS, *_TIMES)
)
"""Every attribute that is looked at."""
_PARTS_IN_OBJECT: Final = (
    ("cachereadinputtokens", "cachedtokens", "cachedinputtokens", "cachedcontenttokens"),
    ("cachecreationinputtokens", "cachewritetokens"),
    ("reasoningtokens", "thoughtstokens"),
)
"""Names of the members of an object for tokens read from caches, written to them, and of reasoning."""
_VARINT, _MAX_SECONDS = 0x18, 86_400.0


class UsageReading(NamedTuple):
    """What one span reports of a model call, or of all of a run. An empty text means: unknown."""

    model: str = ""
    usage: TokenUsage | None = None
    """None unless input and output are both known."""
    time_to_first_output_seconds: float | None = None
    is_request: bool = True
    """False for a span that shows what went to a model and is no request to one."""


NO_USAGE: Final = UsageReading()


def merged_usage(first: UsageReading, second: UsageReading) -> UsageReading:
    """One call out of two reports of it: what the first leaves out is taken from the second."""
    seconds = first.time_to_first_output_seconds
    return UsageReading(
        first.model or second.model,
        first.usage or second.usage,
        second.time_to_first_output_seconds if seconds is None else seconds,
        first.is_request and second.is_request,
    )


class UsagePlan:
    """Reads spans on which the same of `USAGE_KEYS` are present."""

    def __init__(self, present: frozenset[str]) -> None:
        def first(keys: Iterable[str]) -> str:
            return next((key for key in keys if key in present), "")

        self._models = [key for key in _MODELS if key in present]
        self._input, self._output = first(_INPUT), first(_OUTPUT)
        self._cached, self._written, self._reasoning = first(_CACHED), first(_WRITTEN), first(_REASONING)
        self._has_parts = bool(self._cached or self._written or self._reasoning)
        self._is_counted = bool(self._input and self._output)
        self._object = first(_USAGE_OBJECTS)
        self._time = first(_TIMES)

    def read(self, span: Span) -> UsageReading:
        """Everything."""
        return UsageReading(self.model(span), self.tokens(span), self.first_output(span))

    def model(self, span: Span) -> str:
        """The name of the model, empty where it is unknown."""
        return first_text(span.attributes, self._models)

    def tokens(self, span: Span) -> TokenUsage | None:
        """The tokens, None unless input and output are both known, and not 0 together."""
        encoded = span.by_key.get
        if self._is_counted:
            given, generated = _count(encoded(self._input)), _count(encoded(self._output))
            if given is not None and generated is not None:
                if not self._has_parts:
                    # No request is of no tokens at all: some write 0 where a provider reported none.
                    return TokenUsage(given, generated, None, None, None) if given or generated else None
                usage = _usage(
                    given,
                    generated,
                    _count(encoded(self._cached)),
                    _count(encoded(self._written)),
                    _count(encoded(self._reasoning)),
                    cache_is_apart=self._input in _WITHOUT_CACHE,
                    reasoning_is_apart=self._reasoning in _WITHOUT_REASONING,
                )
                return usage if usage.total_tokens else None
        if self._object:
            return usage_in_object(decode_result(span.attributes.get(self._object)).value)
        return None

    def first_output(self, span: Span) -> float | None:
        """The time from the start of the span to the first output, in seconds."""
        key, attributes = self._time, span.attributes
        seconds: float | None = None
        if key == _FIRST_OUTPUT:
            seconds = _seconds_until(attributes, span.start_unix_nano)
        elif key:
            value = attributes.get(key)
            is_whole = key == _WHOLE_IS_MILLISECONDS and isinstance(value, int)
            seconds = _in_seconds(value, 1000 if is_whole or key in _MILLISECONDS else 1)
        if seconds is not None or not span.has_events:
            return seconds
        start = span.start_unix_nano
        for event in span.events:
            if event.name in _FIRST_OUTPUT_EVENTS and event.time_unix_nano >= start:
                return _in_seconds((event.time_unix_nano - start) / 1e9, 1)
        return None


@lru_cache(1024)
def usage_plan(present: frozenset[str]) -> UsagePlan:
    """What reads spans on which `present` are there of `USAGE_KEYS`."""
    return UsagePlan(present)


def usage_under(
    model: Sequence[str], given: Sequence[str], generated: Sequence[str], cached: Sequence[str] = ()
) -> Callable[[Span], UsageReading]:
    """Reads the model and its tokens under names of one's own, of each the first that is there."""

    def count(span: Span, keys: Sequence[str]) -> int | None:
        return next((_count(span.by_key[key]) for key in keys if key in span.by_key), None)

    def read(span: Span) -> UsageReading:
        input_tokens, output_tokens = count(span, given), count(span, generated)
        usage = None
        if input_tokens is not None and output_tokens is not None:
            usage = _usage(input_tokens, output_tokens, count(span, cached), None, None)
        return UsageReading(first_text(span.attributes, model), usage)

    return read


def _usage(
    given: int,
    generated: int,
    cached: int | None,
    written: int | None,
    reasoning: int | None,
    *,
    cache_is_apart: bool = False,
    reasoning_is_apart: bool = False,
) -> TokenUsage:
    """The usage with parts that are parts: one larger than the whole was counted in addition to it."""
    from_cache = (cached or 0) + (written or 0)
    if cache_is_apart or from_cache > given:
        given += from_cache
    if reasoning is not None and (reasoning_is_apart or reasoning > generated):
        generated += reasoning
    return TokenUsage(given, generated, cached, written, reasoning)


def usage_in_object(value: JsonValue) -> TokenUsage | None:
    """The usage in an object of counts: its members' names show which are input and which output.

    `input`, `input_cached_tokens` and `cache_read_input_tokens` are apart from each other, as Langfuse has
    them; names of whole counts (`input_tokens`, `prompt_tokens`, `inputTokens`) include what is in the
    details. Thoughts (Genkit) are apart from the output where only so the members add up to the total.
    """
    if not isinstance(value, dict):
        return None
    counts = _counts(value)
    for given, generated in (("inputtokens", "outputtokens"), ("prompttokens", "completiontokens")):
        if given in counts and generated in counts:
            parts = dict(counts)
            for key, member in value.items():
                if key.lower().endswith("details") and isinstance(member, dict):
                    parts = _counts(member) | parts
            cached, written, reasoning = (
                next((parts[key] for key in keys if key in parts), None) for keys in _PARTS_IN_OBJECT
            )
            apart = counts[given] + counts[generated] + (reasoning or 0) == counts.get("totaltokens")
            return _usage(
                counts[given], counts[generated], cached, written, reasoning, reasoning_is_apart=apart
            )
    inputs = {key: count for key, count in counts.items() if "input" in key}
    outputs = {key: count for key, count in counts.items() if "output" in key}
    if "input" not in inputs or "output" not in outputs:
        return None
    caches = {key: count for key, count in inputs.items() if "cache" in key}
    writes = [count for key, count in caches.items() if "creat" in key or "write" in key]
    thoughts = [count for key, count in outputs.items() if "reasoning" in key]
    return TokenUsage(
        sum(inputs.values()),
        sum(outputs.values()),
        sum(caches.values()) - sum(writes) if len(caches) > len(writes) else None,
        sum(writes) if writes else None,
        sum(thoughts) if thoughts else None,
    )


def _counts(members: JsonObject) -> dict[str, int]:
    """The counts among the members, under their names in lower case without underscores."""
    return {
        key.lower().replace("_", ""): value
        for key, value in members.items()
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0
    }


def _count(encoded: bytes | None) -> int | None:
    """The count in an AnyValue message: an integer from 0, also one that is written as a number or a text."""
    if encoded is None:
        return None
    if len(encoded) == 3 and encoded[0] == _VARINT and encoded[2] < 0x80:  # most counts have four digits
        return encoded[1] & 0x7F | encoded[2] << 7
    if len(encoded) == 2 and encoded[0] == _VARINT:
        return encoded[1]
    value = Attributes({"": encoded}).get("")
    if isinstance(value, str) and value.isdecimal() and len(value) < 16:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        return None
    return int(value)


def _in_seconds(value: object, parts: int) -> float | None:
    """A time of `parts` to the second that makes sense for one answer: from 0 to a day."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value / parts if 0 <= value / parts <= _MAX_SECONDS else None


def _seconds_until(attributes: Attributes, start_unix_nano: int) -> float | None:
    """The time from the start to the moment of the first output, written as text or as JSON of one."""
    try:
        moment = datetime.fromisoformat(text_at(first_value(attributes, (_FIRST_OUTPUT,))))
    except ValueError:
        return None
    return None if moment.tzinfo is None else _in_seconds(moment.timestamp() - start_unix_nano / 1e9, 1)
