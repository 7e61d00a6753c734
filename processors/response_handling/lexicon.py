"""The words of a language, ready for look-ups, and which language a text is in.

Short words collide between languages (Dutch `en`, German `wie`, Polish `i`), so that an answer is read
with the
lexicon of its own language alone. A text in a language without a lexicon gets `NEUTRAL`, which knows no
words.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from importlib import import_module
from typing import Final

LANGUAGES: Final = ("en", "de", "fr", "es", "pt", "it", "nl", "pl", "ja", "zh")
CATEGORIES: Final = (
    "negation", "failure", "pending", "done", "all", "yes", "no", "up", "down", "approx", "relative",
    "secret", "contrast", "absent", "mean", "harmless",
)  # fmt: skip

_WORD = re.compile(r"[^\W\d_]{1,40}(?:['’\-][^\W\d_]{1,40}){0,2}")
_KANA = re.compile(r"[぀-ヿ]")
_HAN = re.compile(r"[一-鿿]")
_DETECTED_CHARACTERS = 2_000
_MOST_KNOWN = 50_000
_OTHER = frozenset(
    """
    och att det som på av är för med till inte jag har ett av du vi kan om så ikke jeg og til af der blev
    på hvad
    ja ei se että ja on oli mutta tai bir ve bu için ile değil olarak nie je sa na že v ktoré jsem jsou ale
    by pro
    и в не на я что с это как по а к у из за от о для до și este nu cu pentru din la mai az és nem hogy egy
    van de
    """.split()
)
"""Small words of languages without a lexicon: Nordic, Slavic, Turkish, Romanian, Hungarian."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """A lexicon as it is written: words between blanks; `*` ends the beginning of words, `_` is a blank.

    `months` and `weekdays` are lists with `|`, the first of each a month called January, a day called Monday.
    `numbers` gives words their values, `scales` their powers of ten, `units` (`symbol: words;`) their unit.
    Without `is_spaced` words are looked for inside the text; `counters` are what follows a counted number
    there.
    """

    language: str
    function: str
    months: str
    weekdays: str
    numbers: str
    scales: str
    units: str
    negation: str
    failure: str
    pending: str
    done: str
    all: str
    yes: str
    no: str
    up: str
    down: str
    approx: str
    relative: str
    secret: str
    contrast: str = ""
    harmless: str = ""
    absent: str = ""
    mean: str = ""
    counters: str = ""
    is_spaced: bool = True


class Lexicon:
    """The words of one language."""

    def __init__(self, words: Words) -> None:
        self.language = words.language
        self.is_spaced = words.is_spaced
        self.function = frozenset(words.function.split())
        self.months = _ordered(words.months)
        self.weekdays = {word: number - 1 for word, number in _ordered(words.weekdays).items()}
        self.numbers = {word: float(value) for word, value in _pairs(words.numbers)}
        self.scales = {word: 10.0 ** int(power) for word, power in _pairs(words.scales)}
        self.counters = tuple(sorted(words.counters.split(), key=len, reverse=True))
        self.units: dict[str, str] = {}
        for entry in words.units.split(";"):
            symbol, _, names = entry.partition(":")
            self.units.update(dict.fromkeys((name.strip("_") for name in names.split()), symbol.strip()))
        self._exact: dict[str, int] = {}
        self._starts: dict[str, int] = {}
        self._phrases: dict[str, list[tuple[str, int]]] = defaultdict(list)
        self._known_bits: dict[str, int] = {}
        self._means = [word.rstrip("*").replace("_", " ") for word in words.mean.split()]
        phrases = sorted((p.replace("_", " ") for p in words.harmless.split()), key=len, reverse=True)
        self._harmless = [
            (first[0] if (first := _WORD.match(p)) and self.is_spaced else "", p) for p in phrases
        ]
        for bit, category in enumerate(CATEGORIES[:-1]):
            for word in getattr(words, category).split():
                if not self.is_spaced or "_" in word:
                    phrase = word.strip("*").replace("_", " ")
                    first = _WORD.match(phrase) if self.is_spaced else None
                    self._phrases[first[0] if first else ""].append((phrase, 1 << bit))
                elif word.endswith("*"):
                    self._starts[word[:-1]] = self._starts.get(word[:-1], 0) | 1 << bit
                else:
                    self._exact[word] = self._exact.get(word, 0) | 1 << bit
        self._lengths = sorted({len(start) for start in self._starts})

    def categories(self, text: str) -> frozenset[str]:
        """The categories of which `text` has a word."""
        low = text.lower()
        found = 0
        if self.is_spaced:
            words = {*_WORD.findall(low)}
            for word in words:
                found |= self._bits_of(word)
            for first in words & self._phrases.keys():
                for phrase, bits in self._phrases[first]:
                    if bits & ~found and phrase in low:
                        found |= bits
        else:
            for phrase, bits in self._phrases[""]:
                if bits & ~found and phrase in low:
                    found |= bits
        return _names_of(found)

    def _bits_of(self, word: str) -> int:
        bits = self._known_bits.get(word)
        if bits is None:
            bits = self._exact.get(word, 0)
            for length in self._lengths:
                if length <= len(word):
                    bits |= self._starts.get(word[:length], 0)
            if len(self._known_bits) < _MOST_KNOWN:
                self._known_bits[word] = bits
        return bits

    def mean_places(self, text: str) -> list[int]:
        """Where words of averages begin in `text`."""
        low = text.lower()
        return [place for word in self._means for place in [low.find(word)] if place >= 0]

    def said(self, text: str) -> frozenset[str]:
        """The categories of which `text` has a word outside of set phrases that say nothing."""
        low = text.lower()
        words = {*_WORD.findall(low)} if self.is_spaced else {""}
        for first, phrase in self._harmless:
            if first in words and phrase in low:
                low = low.replace(phrase, " ")
        return self.categories(low)

    @cached_property
    def known(self) -> frozenset[str]:
        """All words by which the language is recognised."""
        names = {*self.numbers, *self.units, *self.weekdays}
        return self.function | {word for word in (*self._exact, *names) if len(word) > 2}


@lru_cache(maxsize=4096)
def _names_of(bits: int) -> frozenset[str]:
    return frozenset(category for bit, category in enumerate(CATEGORIES[:-1]) if bits >> bit & 1)


def _ordered(written: str) -> dict[str, int]:
    return {name: number for number, names in enumerate(written.split("|"), 1) for name in names.split()}


def _pairs(written: str) -> list[tuple[str, str]]:
    return [(word, value) for word, _, value in (entry.partition("=") for entry in written.split())]


NEUTRAL: Final = Lexicon(
    Words(language="", function="", months="", weekdays="", numbers="", scales="", units="", negation="", failure="",  # noqa: E501
          pending="", done="", all="", yes="", no="", up="", down="", approx="", relative="", secret="")
)  # fmt: skip
"""The lexicon of languages that are not known."""


@cache
def lexicon(language: str) -> Lexicon:
    """The lexicon of a language, one of `LANGUAGES`."""
    return Lexicon(import_module(f"processors.response_handling.lexicons.{language}").WORDS)


def detect(text: str, context: str = "") -> Lexicon:
    """The lexicon for `text`; where it has too few words, by `context`, and English without any hint."""
    for sample in (text[:_DETECTED_CHARACTERS], context[:_DETECTED_CHARACTERS]):
        if _KANA.search(sample):
            return lexicon("ja")
        if len(_HAN.findall(sample[:400])) > 1:
            return lexicon("zh")
        found = _by_words(_WORD.findall(sample.lower()))
        if found is not None:
            return found
    return lexicon("en") if text.isascii() else NEUTRAL


def _by_words(words: Sequence[str]) -> Lexicon | None:
    scores: dict[str, float] = {}
    table = _languages_of_words()
    for word in words:
        for piece in word.replace("’", "'").split("'") if "'" in word or "’" in word else (word,):
            owners = table.get(piece)
            if owners is not None:
                for owner in owners:
                    scores[owner] = scores.get(owner, 0.0) + 1.0 / len(owners)
    if not scores:
        return None
    best = max(scores, key=lambda language: scores[language])
    return NEUTRAL if best == "" else lexicon(best)


@cache
def _languages_of_words() -> dict[str, tuple[str, ...]]:
    """For each telling word the languages that have it; the empty name stands for those without a lexicon."""
    found: dict[str, tuple[str, ...]] = {}
    spaced = [(language, lexicon(language).known) for language in LANGUAGES if lexicon(language).is_spaced]
    for language, words in (*spaced, ("", _OTHER)):
        for word in words:
            found[word] = (*found.get(word, ()), language)
    return found
