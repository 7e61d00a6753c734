"""Why a model ended its answer: whether it asked for calls, also where the answer itself was not captured."""

import re
from collections.abc import Iterable
from typing import Final

from processors.model import json_text
from processors.shapes.messages import ChatMessage
from processors.spans import Attributes, Span

_KEYS: Final = (
    "gen_ai.response.finish_reasons", "gen_ai.response.finish_reason", "ai.response.finishReason",
    "llm.finish_reason", "llm.response.finish_reason", "llm.response.stop_reason",
    "gen_ai.completion.0.finish_reason", "llm.completions.0.finish_reason", "anthropic.message.stop_reason",
    "stop_reason",
)  # fmt: skip
_ASKS: Final = frozenset({"functioncall", "toolcall", "toolcalls", "toolexecution", "tooluse"})
_ASKS_FOR_NOTHING: Final = frozenset({"contentfilter", "endturn", "refusal", "stop", "stopsequence"})
"""Of an answer that was cut at its longest (`length`) nobody knows."""
_CLASS: Final = "finishreason"
"""The class of an enumeration that was written with its member."""
_PROVIDERS: Final = ("gen_ai.provider.name", "gen_ai.system")
_STOPS_ANYHOW: Final = ("gemini", "google", "gcp", "vertex", "ollama")
"""Providers that end with `stop` where calls are asked for, too."""
_WORD: Final = re.compile(r"[A-Za-z]+(?:[_-][A-Za-z]+)*")


def asks_for_calls(span: Span, output: Iterable[ChatMessage]) -> bool | None:
    """Whether the answer ended for calls to be made; None where that is not known.

    The reason stands in an attribute or in the messages, as a word, a list of words or its text.
    """
    attributes = span.attributes
    told = [json_text(attributes.get(key)) for key in _KEYS if key in attributes]
    told.extend(message.finish_reason for message in output)
    words = {
        word.lower().replace("_", "").replace("-", "") for text in told for word in _WORD.findall(text)
    } - {_CLASS}
    if words & _ASKS:
        return True
    return False if words and words <= _ASKS_FOR_NOTHING else None


def stops_anyhow(attributes: Attributes) -> bool:
    """Whether the provider's answers end with `stop` whether or not they ask for calls."""
    provider = next((attributes.text(key) or "" for key in _PROVIDERS if key in attributes), "").lower()
    return any(name in provider for name in _STOPS_ANYHOW)
