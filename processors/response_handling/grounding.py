"""Where the values of arguments come from: what an agent had been given before a call.

Values are looked up in a ledger that grows with the run: texts folded, numbers by value within their
rounding, dates by the parts that are written. What was never given is the agent's own invention.
"""

import math
import re
from bisect import bisect_left, insort
from collections.abc import Iterator
from itertools import combinations
from typing import Final, Literal

from processors.model import JsonValue, OverLimitError
from processors.response_handling.ledger import FROM_USER, PLAIN_NUMBER, Ledger, folded
from processors.response_handling.lexicon import lexicon
from processors.response_handling.reading import CalendarDay, agree, moment_of_number, reader

MAX_ARGUMENT_EVIDENCE: Final = 200_000
"""Characters, and values, of evidence that arguments are looked up in."""
MAX_SEARCHED_CHARACTERS: Final = 20_000_000
"""Characters that look-ups in one run search, all together."""
MAX_ARITHMETIC_NUMBERS: Final = 12
"""Distinct numbers of the evidence up to which arithmetic between them is tried: more explain anything."""

_LARGEST_COUNT: Final = 10
"""Whole numbers up to this one are counts and choices that nobody need have told."""
_SHORTEST_PREFIX = 4
_SHORTEST_SEARCHED = 6
"""Shorter folded texts have to begin a word of the evidence: inside of words they occur by chance."""
_SHORTEST_WORD = 3
_LONG_DIGITS = 7
_FACTORS = range(2, 32)
_WORD = re.compile(r"[^\W_]{1,200}")
_BETWEEN_WORDS = re.compile(r"[\s,;:/|()\[\]\"]")
_NUMBER = re.compile(r"\s{0,9}[-+]?(?:\d[\d,' ]{0,30})?\d(?:\.\d{1,15})?\s{0,9}")
_BESIDE_MOMENTS = re.compile(r"[\sTZtz:+\-.,/0]*")


class Evidence:
    """What an agent was given so far; grows as a run goes on.

    Texts are cut into words, and searched for numbers and dates, when the first value is looked up that
    needs it.

    Raises:
        OverLimitError: on any call, if there is more evidence, or more to look up in it, than is searched.
    """

    def __init__(self) -> None:
        self._ledger = Ledger(MAX_ARGUMENT_EVIDENCE, MAX_ARGUMENT_EVIDENCE)
        self._searched = 0
        self._words: set[str] = set()
        self._worded_texts = self._read_leaves = self._read_lists = 0
        self._numbers: list[float] = []
        self._known: set[float] = set()
        self._dates: set[CalendarDay] = set()
        self._times: set[tuple[int, bool]] = set()
        self._has_relative_dates = False
        self._reader = reader("en")
        self._stop_words = lexicon("en").function

    def add(self, value: JsonValue, call: int) -> None:
        """Add a text or any JSON value that `call` returned, or people wrote if that is `FROM_USER`.

        In the words of people "next Friday" stands for a date that is not written.
        """
        self._ledger.add(value, call)

    def supports(self, value: str | int | float, text: Literal["words", "whole"]) -> bool:
        """Whether `value` was given, or needs not to be.

        Empty texts and whole numbers up to 10 need not. With `words` a text is supported too when all its
        words are, but for short ones and stop words.
        """
        return self._supports_text(value, text) if isinstance(value, str) else self._supports_number(value)

    def _supports_text(self, text: str, mode: Literal["words", "whole"]) -> bool:
        whole = folded(text)
        if not whole:
            return True
        if _NUMBER.fullmatch(text):
            if self._is_number_text(text) or whole in self._all_words():
                return True
            return sum(map(str.isdigit, text)) >= _LONG_DIGITS and self._occurs(whole)
        if self._occurs(whole):
            return True
        moments = [token for token in self._reader.read(text[:2000]) if token.kind in ("date", "time")]
        rest = text
        if moments:
            self._read_all()
            for moment in moments:
                if not self._has_relative_dates and not self._holds(moment.dates, moment.minutes):
                    return False
                rest = rest[: moment.start] + " " * (moment.end - moment.start) + rest[moment.end :]
            if _BESIDE_MOMENTS.fullmatch(rest):
                return True
        return mode == "words" and self._supports_words(rest)

    def _holds(self, dates: tuple[CalendarDay, ...], minutes: int) -> bool:
        if dates:
            return any(agree(day, other) for day in dates for other in self._dates)
        # Midnight is what a day without a time is filled up with.
        return minutes == 0 or any(
            known == minutes or (not is_exact and (known - minutes) % 720 == 0)
            for known, is_exact in self._times
        )

    def _supports_words(self, text: str) -> bool:
        # Hyphens and dots hold identifiers and addresses together, so these count as one word.
        words = [(word, key) for word in _BETWEEN_WORDS.split(text) if (key := folded(word))]
        significant = [
            (word, key)
            for word, key in words
            if (len(key) >= _SHORTEST_WORD and key not in self._stop_words) or key.isdigit()
        ]
        for word, key in significant or words:
            if not (self._is_number_text(word) if _NUMBER.fullmatch(word) else self._occurs(key)):
                return False
        return bool(words)

    def _is_number_text(self, text: str) -> bool:
        value = float(re.sub(r"[,' ]", "", text))
        return self._supports_number(int(value) if value.is_integer() and "." not in text else value)

    def _supports_number(self, value: int | float) -> bool:
        if value == int(value) and abs(value) <= _LARGEST_COUNT:
            return True
        number = _magnitude(value)
        if number is None:
            return self._occurs(folded(str(abs(value))))
        self._read_all()
        # A share may be told in percent, an amount in cents.
        written = repr(value)
        decimals = 0 if "e" in written else len(written.partition(".")[2])
        if any(self._is_rounded(number * 10.0**by, max(0, decimals - by)) for by in (0, 2, -2)):
            return True
        moment = moment_of_number(number)
        if moment is not None:
            day = (moment.year, moment.month, moment.day)
            if self._has_relative_dates or any(agree(day, other) for other in self._dates):
                return True
        return len(self._numbers) <= MAX_ARITHMETIC_NUMBERS and any(
            math.isclose(abs(result), number, rel_tol=1e-9, abs_tol=1e-6)
            for one, other in combinations(self._numbers, 2)
            for result in (one + other, one - other, *_products(one, other))
        )

    def _is_rounded(self, value: float, decimals: int) -> bool:
        """Whether a number of the evidence is `value`, or rounds to it at so many decimals."""
        slack = 1e-9 * max(1.0, value)
        half = 0.5 * 10.0**-decimals if decimals or value >= _LARGEST_COUNT else 0.0
        position = bisect_left(self._numbers, value - half - slack)
        return position < len(self._numbers) and self._numbers[position] <= value + half + slack

    def _occurs(self, needle: str) -> bool:
        """Whether a folded text is or begins a word of the evidence or, if it is long, is part of it."""
        # Scripts without blanks between words are not pure ASCII.
        is_word = len(needle) < _SHORTEST_SEARCHED and needle.isascii()
        if is_word and (needle in self._all_words() or len(needle) < _SHORTEST_PREFIX):
            return needle in self._words
        self._searched += self._ledger.characters
        if self._searched > MAX_SEARCHED_CHARACTERS:
            raise OverLimitError(f"arguments looked up in more than {MAX_SEARCHED_CHARACTERS} characters")
        if is_word:
            return any(word.startswith(needle) for word in self._words)
        return needle in self._ledger.text

    def _all_words(self) -> set[str]:
        for text in self._ledger.texts[self._worded_texts :]:
            low = text.casefold()
            self._words.update(_WORD.findall(low))
            self._words.update(folded(word) for word in low.split() if not word.isalnum())
        self._worded_texts = len(self._ledger.texts)
        return self._words

    def _read_all(self) -> None:
        """Read what was added since: dates, times and numbers, in texts and by themselves."""
        for leaf in self._ledger.leaves[self._read_leaves :]:
            if isinstance(leaf.value, str):
                if leaf.call == FROM_USER and "relative" in self._reader.words.categories(leaf.value):
                    self._has_relative_dates = True
                self._read_text(leaf.value, is_from_people=leaf.call == FROM_USER)
            elif leaf.value is not None and not isinstance(leaf.value, bool):
                self._add_number(leaf.value)
        for _, length in self._ledger.lists[self._read_lists :]:
            self._add_number(length)
        self._read_leaves, self._read_lists = len(self._ledger.leaves), len(self._ledger.lists)

    def _read_text(self, text: str, *, is_from_people: bool) -> None:
        if PLAIN_NUMBER.fullmatch(text):
            self._add_number(float(text))
            return
        for token in self._reader.read(text, is_spelled=is_from_people):
            self._dates.update(token.dates)
            if token.kind == "time":
                self._times.add((token.minutes, token.is_exact))
            for value in token.values:
                self._add_number(value)

    def _add_number(self, value: int | float) -> None:
        number = _magnitude(value)
        if number is None or number in self._known:
            return
        self._known.add(number)
        insort(self._numbers, number)
        moment = moment_of_number(number)
        if moment is not None:
            self._dates.add((moment.year, moment.month, moment.day))
            self._times.add((moment.hour * 60 + moment.minute, True))


def _products(one: float, other: float) -> Iterator[float]:
    """The product of two numbers of which one is a small whole number."""
    if one in _FACTORS or other in _FACTORS:
        yield one * other


def _magnitude(value: int | float) -> float | None:
    """The number without its sign, or None where no float holds it."""
    return abs(float(value)) if abs(value) < 2**53 else None
