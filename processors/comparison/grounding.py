"""Where the values of arguments come from: what an agent had been told or shown before a call.

Values are looked up as the checks of an agent's answer look theirs up: texts folded, numbers by value within
their rounding, dates by the parts that are written. What was never told is the agent's own invention.
"""

import math
import re
from bisect import bisect_left, insort
from collections.abc import Iterator
from itertools import combinations
from typing import Final, Literal

from processors.comparison.json_paths import leaves
from processors.model import JsonValue
from processors.texts.english import STOP_WORDS
from processors.texts.folded_text import blanked, folded
from processors.texts.moments import (
    CalendarDate,
    ClockTime,
    compact_dates,
    moment_of_number,
    written_moments,
)
from processors.texts.number_tokens import number_tokens
from processors.texts.spelled_numbers import spelled_numbers

MAX_EVIDENCE_CHARACTERS = 200_000
"""Characters of evidence that are read; a thousand take about a quarter of a millisecond."""

MAX_SEARCHED_CHARACTERS = 20_000_000
"""Characters that look-ups in one run search, all together."""

MAX_ARITHMETIC_NUMBERS = 12
"""Distinct numbers of the evidence up to which arithmetic between them is tried: more explain anything."""

_LARGEST_COUNT: Final = 10
"""Whole numbers up to this one are counts and choices that nobody need have told."""

_SHORTEST_PREFIX = 4
_SHORTEST_SEARCHED = 6
"""Shorter folded texts have to begin a word of the evidence: inside of words they occur by chance."""
_SHORTEST_WORD = 3
_STOP_WORDS = STOP_WORDS | {"the", "and", "for", "any", "all", "its", "our", "you"}
_LONG_DIGITS = 7
_FACTORS = range(2, 32)
_DIGIT = re.compile(r"[0-9]")
_WORD = re.compile(r"[^\W_]+")
_BETWEEN_WORDS = re.compile(r"[\s,;:/|()\[\]\"]+")
_NUMBER = re.compile(r"\s*[-+]?(?:\d[\d,' ]*)?\d(?:\.\d+)?\s*")
_BESIDE_MOMENTS = re.compile(r"[\s\dTZtz:+\-.,/]*")
_RELATIVE = re.compile(
    r"\b(?:to(?:day|night|morrow)|yesterday|now|next|coming|upcoming|weekend|(?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|days?|weeks?|months?|years?|ago|later|from now)\b",
    re.IGNORECASE,
)


class EvidenceTooLargeError(Exception):
    """There is more evidence, or more to look up in it, than is read."""


class Evidence:
    """What was told and shown so far; grows as a run goes on.

    Texts are kept as they come. They are folded, cut into words, and searched for numbers and dates when the
    first value is looked up that needs it.
    """

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._told: list[bool] = []
        self._plain_numbers: list[int | float] = []
        self._characters = 0
        self._searched = 0
        self._folded = ""
        self._folded_texts = 0
        self._words: set[str] = set()
        self._worded_texts = 0
        self._numbers: list[float] = []
        self._known_numbers: set[float] = set()
        self._numbered = 0
        self._dates: set[CalendarDate] = set()
        self._times: set[ClockTime] = set()
        self._has_relative_dates = False
        self._read_texts = 0

    def add(self, value: JsonValue, *, is_told: bool = False) -> None:
        """Add a text, or every key and value of anything else.

        `is_told` marks the words of people: in them "next Friday" stands for a date that is not written.

        Raises:
            EvidenceTooLargeError: there is too much of it.
        """
        keys: set[str] = set()
        texts: list[str] = []
        for place, leaf in leaves(value):
            if place and isinstance(place[-1], str):
                keys.add(place[-1])
            if isinstance(leaf, str):
                texts.append(leaf)
            elif isinstance(leaf, (int, float)) and not isinstance(leaf, bool):
                self._plain_numbers.append(leaf)
                texts.append(str(leaf))
        self._plain_numbers += _lengths(value)
        self._texts += texts
        self._texts += keys
        self._told += [is_told] * len(texts) + [False] * len(keys)
        self._characters += sum(map(len, texts)) + sum(map(len, keys))
        if self._characters > MAX_EVIDENCE_CHARACTERS:
            raise EvidenceTooLargeError

    def supports(self, value: str | int | float, text: Literal["words", "whole"]) -> bool:
        """Whether `value` was told or shown, or needs not to be.

        Empty texts and whole numbers up to 10 need not. With `words` a text is supported too when all its
        words are, short ones and stop words aside.

        Raises:
            EvidenceTooLargeError: too much was looked up.
        """
        if isinstance(value, str):
            return self._supports_text(value, text)
        return self._supports_number(value)

    def _supports_text(self, text: str, mode: Literal["words", "whole"]) -> bool:
        whole = folded(text)
        if not whole:
            return True
        if _NUMBER.fullmatch(text):
            digits = re.sub(r"\D", "", text)
            if self._is_number_text(text) or whole in self._all_words():
                return True
            return len(digits) >= _LONG_DIGITS and self._occurs(whole)
        if self._occurs(whole):
            return True
        moments = written_moments(text) if _DIGIT.search(text) else []
        spans = [(moment.start, moment.end) for moment in moments]
        if moments and not self._supports_moments(text):
            return False
        rest = blanked(text, spans)
        if moments and _BESIDE_MOMENTS.fullmatch(rest):
            return True
        return mode == "words" and self._supports_words(rest)

    def _supports_words(self, text: str) -> bool:
        # Hyphens and dots hold identifiers and addresses together, so these count as one word.
        words = [(word, folded(word)) for word in _BETWEEN_WORDS.split(text)]
        words = [(word, key) for word, key in words if key]
        telling = [
            (word, key)
            for word, key in words
            if (len(key) >= _SHORTEST_WORD and key not in _STOP_WORDS) or key.isdigit()
        ]
        for word, key in telling or words:
            if not (self._is_number_text(word) if _NUMBER.fullmatch(word) else self._occurs(key)):
                return False
        return bool(words)

    def _supports_moments(self, text: str) -> bool:
        self._read_moments_and_numbers()
        if self._has_relative_dates:
            return True
        for moment in written_moments(text):
            if moment.dates and not any(
                known.agrees(written) for known in self._dates for written in moment.dates
            ):
                return False
            time = moment.time
            # Midnight is what a day without a time is filled up with.
            if time is None or (time.hour, time.minute) == (0, 0):
                continue
            if not any(known.agrees(time) for known in self._times):
                return False
        return True

    def _is_number_text(self, text: str) -> bool:
        try:
            value = float(re.sub(r"[,' ]", "", text))
        except ValueError:
            return False
        return self._supports_number(int(value) if value.is_integer() and "." not in text else value)

    def _supports_number(self, value: int | float) -> bool:
        if value == int(value) and abs(value) <= _LARGEST_COUNT:
            return True
        number = _magnitude(value)
        if number is None:
            return self._occurs(folded(str(abs(value))))
        # A share may be told in percent, an amount in cents.
        decimals = _decimals(value)
        for scaled, digits in (
            (number, decimals),
            (number * 100, decimals - 2),
            (number / 100, decimals + 2),
        ):
            if self._is_rounded(scaled, max(0, digits)):
                return True
        moment = moment_of_number(number)
        if moment is not None:
            written = CalendarDate(moment.year, moment.month, moment.day)
            if self._has_relative_dates or any(known.agrees(written) for known in self._dates):
                return True
        return self._is_derived(number)

    def _is_rounded(self, value: float, decimals: int) -> bool:
        """Whether a number of the evidence is `value`, or rounds to it at so many decimals."""
        slack = 1e-9 * max(1.0, value)
        half = 0.5 * 10.0**-decimals if decimals or value >= _LARGEST_COUNT else 0.0
        numbers = self._all_numbers()
        position = bisect_left(numbers, value - half - slack)
        return position < len(numbers) and numbers[position] <= value + half + slack

    def _is_derived(self, value: float) -> bool:
        """Whether `value` is a sum, a difference or a small multiple of what few numbers there are."""
        numbers = self._all_numbers()
        if len(numbers) > MAX_ARITHMETIC_NUMBERS:
            return False
        made = [
            result
            for one, other in combinations(numbers, 2)
            for result in (one + other, one - other, *_products(one, other))
        ]
        return any(math.isclose(abs(result), value, rel_tol=1e-9, abs_tol=1e-6) for result in made)

    def _occurs(self, wanted: str) -> bool:
        """Whether a folded text is or begins a word of the evidence or, if it is long, is part of it."""
        # Scripts without blanks between words are not pure ASCII.
        is_word = len(wanted) < _SHORTEST_SEARCHED and wanted.isascii()
        if is_word and (wanted in self._all_words() or len(wanted) < _SHORTEST_PREFIX):
            return wanted in self._words
        self._searched += self._characters
        if self._searched > MAX_SEARCHED_CHARACTERS:
            raise EvidenceTooLargeError
        if is_word:
            return any(word.startswith(wanted) for word in self._words)
        return wanted in self._all_folded()

    def _all_folded(self) -> str:
        fresh = self._texts[self._folded_texts :]
        if fresh:
            self._folded_texts = len(self._texts)
            self._folded = "\0".join((self._folded, *map(folded, fresh)))
        return self._folded

    def _all_words(self) -> set[str]:
        for text in self._texts[self._worded_texts :]:
            self._words |= _words(text)
        self._worded_texts = len(self._texts)
        return self._words

    def _all_numbers(self) -> list[float]:
        self._read_moments_and_numbers()
        return self._numbers

    def _read_moments_and_numbers(self) -> None:
        """Read what was added since: dates, times and numbers, in texts and by themselves."""
        for number in self._plain_numbers[self._numbered :]:
            self._add_number(number)
        self._numbered = len(self._plain_numbers)
        for position in range(self._read_texts, len(self._texts)):
            text = self._texts[position]
            if self._told[position] and _RELATIVE.search(text) is not None:
                self._has_relative_dates = True
            for spelled in spelled_numbers(text):
                self._add_number(spelled)
            if _DIGIT.search(text) is None:
                continue
            moments = written_moments(text)
            for moment in moments:
                self._dates.update(moment.dates)
                if moment.time is not None:
                    self._times.add(moment.time)
            self._dates.update(compact_dates(text))
            for token in number_tokens(blanked(text, [(moment.start, moment.end) for moment in moments])):
                for reading in token.readings:
                    self._add_number(reading.magnitude)
        self._read_texts = len(self._texts)

    def _add_number(self, value: int | float) -> None:
        number = _magnitude(value)
        if number is None or number in self._known_numbers:
            return
        self._known_numbers.add(number)
        insort(self._numbers, number)
        moment = moment_of_number(number)
        if moment is not None:
            self._dates.add(CalendarDate(moment.year, moment.month, moment.day))
            self._times.add(ClockTime(moment.hour, moment.minute, True))


def _words(text: str) -> set[str]:
    """The words of a text, folded: between blanks, and between whatever is no letter or digit."""
    low = text.casefold()
    return {*_WORD.findall(low), *(folded(word) for word in low.split() if not word.isalnum())}


def _lengths(value: JsonValue) -> Iterator[int]:
    """The lengths of all lists in `value`."""
    if isinstance(value, list):
        yield len(value)
    if isinstance(value, (dict, list)):
        for member in value.values() if isinstance(value, dict) else value:
            yield from _lengths(member)


def _products(one: float, other: float) -> Iterator[float]:
    """The product of two numbers of which one is a small whole number."""
    if one in _FACTORS or other in _FACTORS:
        yield one * other


def _magnitude(value: int | float) -> float | None:
    """The number without its sign, or None where no float holds it."""
    try:
        number = abs(float(value))
    except OverflowError:
        return None
    return number if number < 2**53 else None


def _decimals(value: int | float) -> int:
    text = repr(value)
    return len(text.partition(".")[2]) if isinstance(value, float) and "e" not in text else 0
