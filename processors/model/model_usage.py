"""Requests to the models of a run and what they used: tokens, time, and the cost by a table of prices."""

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import translate

from msgspec import Struct

_MILLION = 1_000_000
_MAX_KNOWN = 1024
"""Names of models whose price is remembered."""


class TokenUsage(Struct, frozen=True):
    """Tokens of one model call, or of all of a run. The last three are parts of the first two."""

    input_tokens: int
    """All that the model was given, including what was read from or written to a cache."""
    output_tokens: int
    """All that the model produced, its reasoning included."""
    cached_input_tokens: int | None = None
    """Input that was read from a cache; None: unknown, as for those below."""
    cache_write_tokens: int | None = None
    """Input that was written to a cache."""
    reasoning_tokens: int | None = None
    """Output that was reasoning."""

    @property
    def total_tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens


class ModelCall(Struct, frozen=True, kw_only=True):
    """One request to a model, however many spans report it."""

    model: str | None = None
    """The model that answered, else the one requested; None if unknown."""
    usage: TokenUsage | None = None
    """None unless both its input and its output tokens are known."""
    time_to_first_output_seconds: float | None = None
    """Time from the start of the call to the first output of a streamed answer, if known."""
    start_unix_nano: int = 0
    """When it began; 0 if unknown."""
    duration_seconds: float | None = None
    failed: bool = False
    """Whether the call ended in an error; one without usage used nothing."""


class ModelPrice(Struct, frozen=True, kw_only=True):
    """What a million tokens of one model cost, in whatever currency the table is."""

    input: float
    output: float
    cached_input: float | None = None
    """For input that was read from a cache; None: as other input."""
    cache_write: float | None = None
    """For input that was written to a cache; None: as other input."""

    def cost(self, usage: TokenUsage) -> float:
        """What `usage` costs."""
        cached, written = usage.cached_input_tokens or 0, usage.cache_write_tokens or 0
        rate_cached = self.input if self.cached_input is None else self.cached_input
        rate_written = self.input if self.cache_write is None else self.cache_write
        plain = max(usage.input_tokens - cached - written, 0)
        spent = plain * self.input + cached * rate_cached + written * rate_written
        return (spent + usage.output_tokens * self.output) / _MILLION


class PriceTable:
    """Prices by the names of models, in which `*` stands for any characters and `?` for one.

    Of several names that fit, the exact one counts, then the one with more characters that are neither `*`
    nor `?`, then the later one. Upper and lower case differ.
    """

    def __init__(self, prices: Mapping[str, ModelPrice]) -> None:
        globs = [name for name in prices if "*" in name or "?" in name]
        order = {name: place for place, name in enumerate(globs)}
        globs.sort(
            key=lambda name: (len(name) - name.count("*") - name.count("?"), order[name]), reverse=True
        )
        self._globs = [(name_pattern(name), prices[name]) for name in globs]
        self._exact = {name: price for name, price in prices.items() if name not in order}
        self._known: dict[str, ModelPrice | None] = {}

    def price(self, model: str) -> ModelPrice | None:
        """What the model called `model` costs; None if the table has no price."""
        match = self._exact.get(model)
        if match is not None or model in self._known:
            return match or self._known[model]
        match = next((price for pattern, price in self._globs if pattern.fullmatch(model)), None)
        if len(self._known) < _MAX_KNOWN:
            self._known[model] = match
        return match

    def cost(
        self, calls: Sequence[ModelCall], usage: TokenUsage | None, models: Sequence[str]
    ) -> float | None:
        """What a run with these `calls` costs; None if unknown.

        Where not every call has its usage, `usage`, the run's own, is what counts, if the run used one model
        only. A call that failed and has no usage costs nothing.
        """
        spent = 0.0
        for call in calls:
            if call.usage is None:
                if call.failed:
                    continue
                break
            price = None if call.model is None else self.price(call.model)
            if price is None:
                return None
            spent += price.cost(call.usage)
        else:
            if calls:
                return spent
        price = self.price(models[0]) if len(models) == 1 else None
        return None if usage is None or price is None else price.cost(usage)


def sum_of_usage(usages: Iterable[TokenUsage]) -> TokenUsage:
    """All of `usages` together; a part is known if any of them has it."""
    given = produced = 0
    cached: int | None = None
    written: int | None = None
    reasoning: int | None = None
    for usage in usages:
        given += usage.input_tokens
        produced += usage.output_tokens
        if usage.cached_input_tokens is not None:
            cached = (cached or 0) + usage.cached_input_tokens
        if usage.cache_write_tokens is not None:
            written = (written or 0) + usage.cache_write_tokens
        if usage.reasoning_tokens is not None:
            reasoning = (reasoning or 0) + usage.reasoning_tokens
    return TokenUsage(given, produced, cached, written, reasoning)


def seconds_between(start_unix_nano: int, end_unix_nano: int) -> float | None:
    """The time between two moments; None where one is not known (0) or they are the wrong way round."""
    return (end_unix_nano - start_unix_nano) / 1e9 if 0 < start_unix_nano <= end_unix_nano else None


def name_pattern(name: str) -> re.Pattern[str]:
    """What matches the models that `name` means: `*` stands for any characters, `?` for one."""
    return re.compile(translate(name.replace("[", "[[]")))
