"""What a text states that can be looked up: addresses, dates, times, identifiers, numbers with their units.

Each piece is read as one kind only: what was read is masked before the next kind is looked for.
"""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache
from typing import Final, Literal

from processors.response_handling.lexicon import NEUTRAL, Lexicon, lexicon
from processors.response_handling.lexicons import patterns
from processors.response_handling.lexicons.units import (
    CURRENCIES,
    MINOR_WORDS,
    PERCENT,
    UNITS,
    unit_of_symbol,
)

MAX_TOKENS: Final = 500
"""Tokens that are read from one text."""

_HAS_DIGIT = re.compile(r"\d")
_MAY_BE_DATE = re.compile(r"(?<!\d)(?:19|20)\d{6}(?!\d)|\d[-/.]\s?\d{1,2}[-/.]|\d\s?[年月]")
_MAY_BE_TIME = re.compile(r"\d:[0-5]\d|\d\s?[hHapAP時时點点Uu]")
_LETTERS = re.compile(r"[^\W\d_]{2,24}")
_SPELLED = re.compile(r"[^\W\d_]{2,24}(?:-[^\W\d_]{2,24})?")
_NEAR_WORD = re.compile(r"[^\W\d_]{1,20}[-'’]?[^\W\d_]{0,12}")
_POINT_LANGUAGES = frozenset({"en", "ja", "zh", ""})

CalendarDay = tuple[int | None, int, int | None]
"""A date as it is written: year and day may be missing."""


@dataclass(slots=True)
class Token:
    """One thing that a text states. What a kind does not have is left at its default.

    A time has `minutes` since midnight and is exact where morning and evening are told apart. A number has
    `readings`, values with their decimals: several where the writing is ambiguous, and `reading` is the one
    by the custom of the language. `unit` is a symbol, empty without one.
    """

    kind: Literal["url", "email", "date", "time", "id", "number"]
    start: int
    end: int
    text: str
    dates: tuple[CalendarDay, ...] = ()
    minutes: int = 0
    is_exact: bool = True
    readings: tuple[tuple[float, int], ...] = ()
    reading: int = 0
    scale: float = 1.0
    unit: str = ""
    currencies: frozenset[str] = frozenset()
    is_minor: bool = False
    is_approximate: bool = False
    is_spelled: bool = False
    is_negative: bool = False

    @property
    def value(self) -> float:
        """The value of a number by the custom of its language."""
        return self.readings[self.reading][0] * self.scale

    @property
    def values(self) -> list[float]:
        """The values of a number in its unit, most natural first."""
        return [value * self.scale for value, _ in self.readings]

    def tolerance(self, value: float) -> float:
        """How far what was rounded to the reading `value` may lie from it."""
        decimals = next((places for read, places in self.readings if read * self.scale == value), 0)
        return 0.5 * 10.0**-decimals * self.scale * 1.0000001


class Reader:
    """Reads texts with the words of one language, and English months beside them."""

    def __init__(self, words: Lexicon) -> None:
        self.words = words
        self._months = {**lexicon("en").months, **words.months}
        self._first_words = {name.partition("-")[0] for name in words.numbers}
        names = sorted((name for name in self._months if name.isalpha()), key=len, reverse=True)
        starts = "|".join(sorted({name[:3] for name in names}))
        self._may_be_month = re.compile(rf"(?<![^\W_])(?:{starts})")
        month = rf"(?:{'|'.join(names)})(?![^\W\d_])\.?"
        named = patterns.NAMED_DATE.format(month=month, year=patterns.YEAR, L=patterns.L)
        self._dates = re.compile(rf"{patterns.NUMERIC_DATE}|{named}", re.IGNORECASE)

    def read(self, text: str, *, is_answer: bool = False, is_spelled: bool = True) -> list[Token]:
        """The tokens of `text`, in no order; words if `is_spelled`, what is approximate if `is_answer`."""
        tokens: list[Token] = []
        masked = text
        if "@" in text or "://" in text or "www." in text:
            masked = self._addresses(text, tokens)
        if _HAS_DIGIT.search(masked):
            if _MAY_BE_DATE.search(masked) or self._may_be_month.search(masked.lower()):
                masked = self._read_dates(masked, tokens)
            if _MAY_BE_TIME.search(masked):
                masked = self._times(masked, tokens)
            masked = patterns.LIST_MARK.sub(lambda mark: " " * len(mark[0]), masked)
            masked = self._numbers(masked, tokens, is_answer=is_answer)
        if is_spelled:
            self._spelled(masked, tokens)
        return tokens[:MAX_TOKENS]

    def _addresses(self, text: str, tokens: list[Token]) -> str:
        spans = []
        for match in patterns.ADDRESS.finditer(text):
            written = match[0].rstrip(".,;:!?*_")
            kind: Literal["url", "email"] = "url" if match["url"] else "email"
            tokens.append(Token(kind, match.start(), match.start() + len(written), written))
            spans.append((match.start(), match.start() + len(written)))
        return _masked(text, spans)

    def _read_dates(self, text: str, tokens: list[Token]) -> str:
        spans = []
        for match in self._dates.finditer(text):
            if days := tuple(dict.fromkeys(day for day in self._days(match) if _is_day(day))):
                tokens.append(Token("date", match.start(), match.end(), match[0], dates=days))
                spans.append(match.span())
        return _masked(text, spans)

    def _days(self, match: "re.Match[str]") -> list[CalendarDay]:
        first, second, third = [*map(int, re.findall(r"\d{1,8}", match[0])), 0, 0][:3]
        if match["compact"]:
            return [(first // 10000, first // 100 % 100, first % 100)]
        if match["dmy"]:
            year = third + (2000 if third < 100 else 0)
            return [(year, second, first), (year, first, second)]
        if match["dm"]:
            return [(None, second, first)]
        if name := match["month"] or match["day_month"] or match["only_month"]:
            month = self._months[name.rstrip(".").lower()]
            return [(first, month, None) if match["only_month"] else (second or None, month, first)]
        if match["cjk"] and not third:
            return [(first, second, None) if "年" in match[0] else (None, first, second)]
        return [(first, second, third)]

    def _times(self, text: str, tokens: list[Token]) -> str:
        spans = []
        for match in patterns.TIME.finditer(text):
            written, *others = re.findall(r"\d{1,2}", match[0])
            minute = int(others[0]) if others else 30 if match["cjk_30"] else 0
            hour, half, part = int(written), match["half"] or match["only_half"], match["part"]
            if half is not None and hour <= 12:
                hour = hour % 12 + (12 if half[0] in "pP" else 0)
            elif part is not None and hour < 12:
                hour += patterns.DAYPARTS[part] if part != "中午" or hour < 3 else 0
            if hour > 24 or minute > 59:
                continue
            is_exact = bool(half or part) or hour > 12 or hour == 0 or (len(written) == 2 and hour < 10)
            since = hour % 24 * 60 + minute
            tokens.append(Token("time", *match.span(), match[0], minutes=since, is_exact=is_exact))
            spans.append(match.span())
        return _masked(text, spans)

    def _numbers(self, text: str, tokens: list[Token], *, is_answer: bool) -> str:
        spans: list[tuple[int, int]] = []
        numbers: list[Token] = []
        for match in patterns.NUMBER.finditer(text):
            if (spans and match.start() < spans[-1][1]) or len(numbers) > MAX_TOKENS:
                continue
            glued = None if match["id"] else patterns.GLUED.match(text, match.end())
            end = match.end()
            if match["id"] or (glued is not None and not self._is_suffix(glued[0])):
                end = glued.end() if glued is not None else end
                tokens.append(Token("id", match.start(), end, text[match.start() : end].rstrip("./")))
            else:
                for start, stop in _parts(match["number"], match.start(), tokens):
                    number = self._number(text, start, stop, is_answer=is_answer)
                    if number is not None:
                        numbers.append(number)
                        end = max(end, number.end)
            spans.append((match.start(), end))
        tokens.extend(_joined(numbers, text))
        return _masked(text, spans)

    def _is_suffix(self, glued: str) -> bool:
        """Whether letters right behind a number are a unit, a scale or an ending."""
        word, mark, _ = glued.rstrip("_").lower().partition("-")
        if mark and (not word or any(map(str.isdigit, glued))):
            return not word
        known = (self.words.units, self.words.scales, CURRENCIES, patterns.SUFFIXES)
        is_known = any(word in names for names in known) or bool(unit_of_symbol(glued))
        return is_known or patterns.ORDINAL.fullmatch(word) is not None

    def _number(self, text: str, start: int, end: int, *, is_answer: bool) -> Token | None:
        readings = _readings(text[start:end])
        if not readings:
            return None
        token = Token("number", start, end, text[start:end], readings=readings)
        if len(readings) > 1:
            token.reading = int(("." in token.text) == (self.words.language in _POINT_LANGUAGES))
        if before := patterns.BEFORE.search(text, max(0, start - 6), start):
            money = before["code"] or before["sign"] or ""
            token.currencies = CURRENCIES.get(money.lower().rstrip("."), frozenset())
            token.is_negative = before["minus"] in ("-", "−")
        ordinal = patterns.ORDINAL.match(text, token.end)
        if ordinal is not None and not unit_of_symbol(ordinal[0]):
            return None
        self._follow(text, token)
        if is_answer:
            near = _NEAR_WORD.findall(re.split(r"[\d.:;(]", text[max(0, start - 28) : start])[-1])[-2:]
            near_words = (
                " ".join(near).lower() if self.words.is_spaced else text[max(0, start - 3) : token.end + 3]
            )
            token.is_approximate = "~" in text[
                max(0, start - 2) : start
            ] or "approx" in self.words.categories(near_words)
        return token

    def _follow(self, text: str, token: Token) -> None:
        """Read the scale, the currency and the unit that stand right of a number."""
        if not self.words.is_spaced and self._follow_cjk(text, token):
            return
        while (match := patterns.AFTER.match(text, token.end)) is not None:
            word, is_glued = (match["word"] or "").rstrip("."), not match[0][:1].isspace()
            low, end = word.lower(), match.end() - match[0].endswith(".")
            scale = self.words.scales.get(low, 0.0)
            if is_glued and not scale and (low != "m" or token.currencies or word == "M"):
                scale = patterns.GLUED_SCALES.get(low, 0.0)
            if scale and token.scale == 1.0 and (len(low) > 1 or is_glued):
                token.scale, token.end = scale, match.end() if low in ("tys", "mio") else end
                continue
            if match["percent"]:
                token.unit = PERCENT
            elif match["sign"] and not token.currencies:
                token.currencies = CURRENCIES[match["sign"]]
            elif match["degree"] is not None:
                token.unit = match["scale"] or "deg"
            elif match["square"]:
                token.unit = unit_of_symbol(match["square"])
            elif (
                low in CURRENCIES and (token.scale == 1.0 or not token.currencies) and low not in MINOR_WORDS
            ):
                token.currencies = token.currencies or CURRENCIES[low]
            elif low in MINOR_WORDS:
                token.is_minor = True
            elif word:
                symbol = self.words.units.get(low) if unit_of_symbol(word) != "MB" else ""
                unit = symbol if symbol in UNITS else unit_of_symbol(word)
                is_word = is_glued or (low != "in" and (len(word) > 1 or word in "mgshlLWCF"))
                if not (unit and is_word):
                    return
                power = patterns.POWER.match(text, match.end())
                token.unit, end = ("", power.end()) if power else (unit, end)
            else:
                return
            token.end = end
            return

    def _follow_cjk(self, text: str, token: Token) -> bool:
        match = patterns.CJK_AFTER.match(text, token.end)
        word = match["word"] if match else ""
        scale = next((name for name in self.words.scales if word.startswith(name)), "")
        start = token.end + (len(match[0]) - len(word) if match else 0) + len(scale)
        word = word[len(scale) :]
        if scale:
            token.scale, token.end = self.words.scales[scale], start
        for name in sorted({*self.words.units, *patterns.CJK_MONEY}, key=len, reverse=True):
            if word.startswith(name):
                if name in CURRENCIES:
                    token.currencies = token.currencies or CURRENCIES[name]
                else:
                    token.unit = self.words.units[name]
                token.end = start + len(name)
                return True
        return bool(scale) or word.startswith(self.words.counters)

    def _spelled(self, text: str, tokens: list[Token]) -> None:
        numbers = self.words.numbers
        low = text.lower() if numbers else ""
        if self._first_words.isdisjoint(_LETTERS.findall(low)):  # as in most texts
            return
        for match in _SPELLED.finditer(low):
            tens, _, ones = match[0].partition("-")
            value = numbers.get(match[0], numbers.get(tens))
            if value is not None:
                value += numbers.get(ones, 1.0 if ones == "one" else 0.0) if match[0] not in numbers else 0.0
                token = Token("number", *match.span(), match[0], readings=((value, 0),), is_spelled=True)
                self._follow(text, token)
                tokens.append(token)


@cache
def reader(language: str) -> Reader:
    """The reader for a language; for the empty name the one that knows English months alone."""
    return Reader(lexicon(language) if language else NEUTRAL)


def _masked(text: str, spans: list[tuple[int, int]]) -> str:
    """`text` with blanks in place of `spans`, which are in order."""
    pieces, end = [], 0
    for start, stop in spans:
        pieces += [text[end:start], " " * (stop - max(start, end))]
        end = stop
    return "".join([*pieces, text[end:]])


def _is_day(day: CalendarDay) -> bool:
    try:
        return bool(date(day[0] or 2024, day[1], day[2] or 1))
    except ValueError:
        return False


def agree(one: CalendarDay, other: CalendarDay) -> bool:
    """Whether all parts that both dates have are equal."""
    pairs = ((one[0], other[0]), (one[2], other[2]))
    return one[1] == other[1] and all(a is None or b is None or a == b for a, b in pairs)


def moment_of_number(value: float) -> datetime | None:
    """The moment that a number means if it looks like Unix seconds or milliseconds."""
    value = value / 1000 if 1e12 <= value < 4e12 else value
    return datetime.fromtimestamp(value, UTC) if 1e9 <= value < 4e9 else None


def _parts(written: str, start: int, tokens: list[Token]) -> list[tuple[int, int]]:
    """Where the numbers of a run of digits stand: none in codes, two in ranges, several in lists."""
    whole = (start, start + len(written))
    if not any(mark in written for mark in ":/-–"):
        if written.count(".") > 1 and not _readings(written):
            tokens.append(Token("id", *whole, written))
            return []
        return [whole]
    low, mark, high = [*re.split(r"([:/\-–])", written, maxsplit=1), "", ""][:3]
    if mark in "-–" and not any(other in high for other in ":/-–"):
        ends = _readings(low), _readings(high)
        is_range = bool(ends[0] and ends[1] and ends[0][0][0] < ends[1][0][0]) and not high.startswith("0")
        is_range = is_range and len(high) - len(low) <= 1 and (len(high) < 4 or low.endswith("00"))
        if is_range or mark == "–":
            return [(start, start + len(low)), (start + len(low) + 1, whole[1])]
    if sum(map(str.isdigit, written)) > 4 and not any(mark in written for mark in ":.,"):
        tokens.append(Token("id", *whole, written))
    return []


def _readings(written: str) -> tuple[tuple[float, int], ...]:
    """The values with decimals that a writing allows; none for versions and addresses."""
    if written.isdigit():
        return ((float(written), 0),) if len(written) < 16 else ()
    marks, groups = re.sub(r"\d", "", written), re.split(r"\D", written)
    tokens = []
    if len(set(marks)) == 1 and _is_grouped(groups, marks):
        tokens.append((float("".join(groups)), 0))
    is_mixed = len(set(marks)) == 2 and marks.count(marks[-1]) == 1 and _is_grouped(groups[:-1], marks[0])
    if marks[-1] in ".," and (len(marks) == 1 or is_mixed):
        tokens.append((float(f"{''.join(groups[:-1])}.{groups[-1]}"), len(groups[-1])))
    return tuple(tokens)


def _is_grouped(groups: list[str], marks: str) -> bool:
    """Whether digits are in groups of three; by commas also of two, but the last, as in India."""
    sizes = {3, 2} if marks[0] == "," else {3}
    is_begun = 0 < len(groups[0]) <= 3 and not groups[0].startswith("0")
    return is_begun and len(groups[-1]) == 3 and all(len(group) in sizes for group in groups[1:])


def _joined(numbers: list[Token], text: str) -> list[Token]:
    """`numbers` with the parts of one made one: 1億2,840万."""
    tokens: list[Token] = []
    for token in numbers:
        last = tokens[-1] if tokens else None
        if last is not None and token.start - last.end <= 5:
            between = text[last.end : token.start].strip(" ,\u00a0")
            is_part = token.scale > 1.0 or token.start == last.end  # 1億2,840万, 26万2,860
            if last.scale > token.scale and is_part and not between and not last.unit:
                last.readings, last.scale, last.unit = ((last.value + token.value, 0),), 1.0, token.unit
                last.currencies, last.end, last.reading = last.currencies or token.currencies, token.end, 0
                continue
        tokens.append(token)
    return tokens
