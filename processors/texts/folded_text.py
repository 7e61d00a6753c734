"""Text folded for look-ups: writing habits such as case, spaces and hyphens make no difference."""

import re
from collections.abc import Iterable
from functools import lru_cache

_DROPPED = re.compile(r"[\s\-_\u2010-\u2015\u2212'\u2018\u2019\u02bc.,()\[\]{}]+")
_CACHED_LENGTH = 64
_SHORTEST_PLURAL = 3
_DIGIT = re.compile(r"\d")
_WORD_BREAK = re.compile(r"[\W_]+|(?<=[a-z0-9])(?=[A-Z])")


def folded(text: str) -> str:
    """`text` in one case and without what people write differently.

    White space, hyphens, dashes, underscores, apostrophes, dots, commas and brackets are dropped.
    """
    return _DROPPED.sub("", text.casefold())


def folded_all(texts: Iterable[str]) -> list[str]:
    """Each of `texts`, folded."""
    texts = list(texts)
    together = folded("\0".join(texts)).split("\0")
    # A text that holds the separator itself was taken apart.
    return together if len(together) == len(texts) else list(map(folded, texts))


def key_words(key: str) -> tuple[str, ...]:
    """The words of a member's key in lower case: `amountCents` and `amount_cents` are amount and cents."""
    return _cached_words(key) if len(key) <= _CACHED_LENGTH else _words(key)


def _words(key: str) -> tuple[str, ...]:
    return tuple([word.lower() for word in _WORD_BREAK.split(key) if word])


_cached_words = lru_cache(maxsize=4096)(_words)


def has_digit(text: str) -> bool:
    """Whether `text` has a decimal digit, of whatever script."""
    return _DIGIT.search(text) is not None


def singular(word: str) -> str:
    """A word of a key or of prose without the s of its plural."""
    return word[:-1] if word.endswith("s") and len(word) > _SHORTEST_PLURAL else word


def blanked(text: str, spans: list[tuple[int, int]]) -> str:
    """`text` with the characters of `spans` replaced by blanks, so that positions stay."""
    if not spans:
        return text
    pieces = []
    end = 0
    for start, stop in sorted(spans):
        if stop <= end:
            continue
        start = max(start, end)
        pieces.append(text[end:start])
        pieces.append(" " * (stop - start))
        end = stop
    pieces.append(text[end:])
    return "".join(pieces)
