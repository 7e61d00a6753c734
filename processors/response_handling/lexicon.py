"""The words of a language, ready for look-ups, and which language a text is in.

Short words collide between languages (Dutch `en`, German `wie`, Polish `i`), so that an answer is read with
the lexicon of its own language alone. A text in a language without a lexicon gets `NEUTRAL`, which knows no
words.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Final

from processors.model import late
from processors.response_handling.lexicons import Words

LANGUAGES: Final = ("en", "de", "fr", "es", "pt", "it", "nl", "pl", "ja", "zh")
CATEGORIES: Final = (
    "negation", "failure", "done", "yes", "no", "approx", "relative", "absent", "total",
)  # fmt: skip
"""The kinds of words that lexicons list."""

STEM: Final = 4
"""How many letters of two words are alike where they are about the same."""
_WORD = re.compile(r"[^\W\d_]{1,40}(?:['’\-][^\W\d_]{1,40}){0,2}")
_DOUBLY_NEGATING = ("fr", "es", "pt", "it", "pl")
"""Languages in which a negated verb goes with a word for nothing."""
_CLAUSE_END = re.compile(r"[,.!?;。！？\n]")
_KANA = re.compile(r"[぀-ヿ]")
_HAN = re.compile(r"[一-鿿]")
_DETECTED_CHARACTERS = 2_000
_FEWEST = 1.5
"""What known words of an answer have to weigh for its language to be told by them alone."""
_MOST_KNOWN = 50_000
_OTHER = frozenset(
    """
    och att det som på av är för med till inte jag har ett av du vi kan om så ikke jeg og til af der blev
    på hvad ja ei se että ja on oli mutta tai bir ve bu için ile değil olarak nie je sa na že v ktoré jsem
    jsou ale by pro и в не на я что с это как по а к у из за от о для до și este nu cu pentru din la mai az és
    nem hogy egy van de
    """.split()
)
"""Small words of languages without a lexicon: Nordic, Slavic, Turkish, Romanian, Hungarian."""


class Lexicon:
    """The words of one language."""

    def __init__(self, words: Words) -> None:
        self.language = words.language
        self.is_spaced = words.is_spaced
        self.function = frozenset(words.function.split())
        self.months = _ordered(words.months)
        self._others = frozenset(words.others.split())
        self.numbers = {word: float(value) for word, value in _pairs(words.numbers, "=")}
        self.scales = {word: 10.0 ** int(power) for word, power in _pairs(words.scales, "=")}
        self.counters = tuple(sorted(words.counters.split(), key=len, reverse=True))
        units = (entry.partition(":") for entry in words.units.split(";"))
        self.units = {name.strip("_"): symbol.strip() for symbol, _, names in units for name in names.split()}
        self._exact: dict[str, set[str]] = defaultdict(set)
        self._starts: dict[str, set[str]] = defaultdict(set)
        self._phrases: dict[str, list[tuple[str, str]]] = defaultdict(list)
        self._read: dict[str, frozenset[str]] = {}
        harmless = (phrase.replace("_", " ") for phrase in words.harmless.split())
        self._harmless: dict[str, list[str]] = defaultdict(list)
        for phrase in harmless:
            self._harmless[self._first(phrase)].append(phrase)
        for category in CATEGORIES:
            for word in getattr(words, category).split():
                if not self.is_spaced or "_" in word:
                    phrase = word.strip("*").replace("_", " ")
                    self._phrases[self._first(phrase)].append((phrase, category))
                else:
                    table = self._starts if word.endswith("*") else self._exact
                    table[word.rstrip("*")].add(category)
        self._lengths = sorted({len(start) for start in self._starts})
        nothing = (_written(word) for word in sorted(words.nothing.split(), key=len, reverse=True))
        edges = (r"(?<!\w)", r"(?!\w)") if self.is_spaced else ("", "")
        self._nothing = re.compile("|".join(nothing).join((f"{edges[0]}(?:", f"){edges[1]}")))

    def _first(self, phrase: str) -> str:
        """The word by which a phrase is looked for: the first, and none where nothing parts words."""
        match = _WORD.match(phrase) if self.is_spaced else None
        return match[0] if match else ""

    def categories(self, text: str) -> frozenset[str]:
        """The categories of which `text` has a word."""
        low = text.lower()
        return self._categories(low, self._words(low))

    def _words(self, low: str) -> set[str]:
        return {*_WORD.findall(low)} if self.is_spaced else {""}

    def _categories(self, low: str, words: set[str]) -> frozenset[str]:
        matched, read = set[str](), self._read
        for word in words if self.is_spaced else ():
            matched |= read[word] if word in read else self._categories_of(word)
        for first in words & self._phrases.keys():
            for phrase, category in self._phrases[first]:
                if category not in matched and phrase in low:
                    matched.add(category)
        return frozenset(matched)

    def _categories_of(self, word: str) -> frozenset[str]:
        begun = (self._starts.get(word[:length], ()) for length in self._lengths)
        categories = frozenset(self._exact.get(word, ())).union(*begun)
        if len(self._read) < _MOST_KNOWN:
            self._read[word] = categories
        return categories

    def kinds_in(self, text: str) -> frozenset[str]:
        """The categories of which `text` has a word outside of set phrases that say nothing."""
        low = text.lower()
        words = self._words(low)
        remaining = self._without_set_phrases(low, words)
        return self._categories(remaining, words if remaining is low else self._words(remaining))

    def _without_set_phrases(self, low: str, words: set[str]) -> str:
        """A text in lower case, of those words, without set phrases."""
        firsts = words & self._harmless.keys()
        matched = [phrase for first in firsts for phrase in self._harmless[first] if phrase in low]
        for phrase in sorted(matched, key=lambda phrase: (-len(phrase), phrase)):
            low = low.replace(phrase, " ")
        return low

    def admits_failure(self, text: str, known: frozenset[str]) -> bool:
        """Whether `text` says that something did not work or is not known, by words of no `known` stem.

        That there is nothing of a kind says neither: people say so of what they looked up and did not find.
        """
        remaining = self._without_set_phrases(text.lower(), self._words(text.lower()))
        low = _WORD.sub(lambda word: " " if word[0][:STEM] in known else word[0], remaining)
        if not self.categories(low).isdisjoint({"failure", "absent"}):
            return True
        parts = [part for part in _CLAUSE_END.split(remaining) if " " in part.strip() or not self.is_spaced]
        if self.language in _DOUBLY_NEGATING:
            parts = [part for part in parts if not self._nothing.search(part)]
        return any("negation" in self.categories(self._nothing.sub(" ", part)) for part in parts)

    @late
    def known(self) -> frozenset[str]:
        """All words by which the language is recognised."""
        names = {*self.numbers, *self.units}
        return self.function | self._others | {word for word in (*self._exact, *names) if len(word) > 2}


def _written(word: str) -> str:
    """The pattern of a word as lexicons write it."""
    return re.escape(word.rstrip("*").replace("_", " ")) + r"\w{0,20}" * word.endswith("*")


def _ordered(written: str) -> dict[str, int]:
    return {name: number for number, names in enumerate(written.split("|"), 1) for name in names.split()}


def _pairs(written: str, mark: str) -> list[tuple[str, str]]:
    return [(word, value) for word, _, value in (entry.partition(mark) for entry in written.split())]


NEUTRAL: Final = Lexicon(Words(language=""))
"""The lexicon of languages that are not known."""


@cache
def lexicon(language: str) -> Lexicon:
    """The lexicon of a language, one of `LANGUAGES`."""
    return Lexicon(import_module(f"processors.response_handling.lexicons.{language}").WORDS)


def detect(text: str, context: str = "") -> Lexicon:
    """The lexicon for `text`; where it has too few words, by `context`, and English without any hint."""
    own, other = text[:_DETECTED_CHARACTERS], context[:_DETECTED_CHARACTERS]
    for sample, least in ((own, _FEWEST), (f"{own} {other}", _FEWEST), (own, 0.0), (other, 0.0)):
        if _KANA.search(sample):
            return lexicon("ja")
        if len(_HAN.findall(sample[:400])) > 1:
            return lexicon("zh")
        matched = _by_words(_WORD.findall(sample.lower().replace("’", "'")), least)
        if matched is not None:
            return matched
    return lexicon("en") if text.isascii() else NEUTRAL


def _by_words(words: Sequence[str], least: float) -> Lexicon | None:
    scores: dict[str, float] = defaultdict(float)
    for word in words:
        for piece in word.split("'"):
            owners = _languages_of_words().get(piece, ())
            for owner in owners:
                scores[owner] += 1.0 / len(owners)
    best = max(scores, key=lambda language: scores[language], default=None)
    return None if best is None or scores[best] < least else lexicon(best) if best else NEUTRAL


@cache
def _languages_of_words() -> dict[str, tuple[str, ...]]:
    """For each telling word the languages that have it; the empty name stands for those without a lexicon."""
    matched: dict[str, tuple[str, ...]] = {}
    spaced = [(language, lexicon(language).known) for language in LANGUAGES if lexicon(language).is_spaced]
    for language, words in (*spaced, ("", _OTHER)):
        for word in words:
            matched[word] = (*matched.get(word, ()), language)
    return matched
