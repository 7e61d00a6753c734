"""What a text states that can be looked up: addresses, dates, times, identifiers, numbers with their units.

Each piece is read as one kind only: what was read is masked before the next kind is looked for. Every
pattern here has a bounded length, so that reading takes time linear in the text.
"""

import re
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cache
from typing import Final, Literal

from processors.response_handling.lexicon import Lexicon, lexicon
from processors.response_handling.lexicons.units import CURRENCIES, MINOR_WORDS, UNITS, Unit, unit_of_symbol

MAX_TOKENS: Final = 500
"""Tokens that are read from one text."""

_L = "A-Za-z_\u00c0-\u024f"
_ADDRESS = re.compile(
    r"(?P<url>(?:https?://|\bwww\.)[^\s<>()\[\]\"'`|、。，]{1,400})"
    r"|(?P<email>(?<![\w.+-])[A-Za-z0-9_.+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,6}[A-Za-z]{2,24})"
)
_NUMERIC_DATE = (
    rf"(?<![\d{_L}./-])(?P<iso>\d{{4}}-\d{{1,2}}-\d{{1,2}})(?!\d)"
    r"|(?<!\d)(?P<compact>(?:19|20)\d{2}(?:0[1-9]|1[0-2])[0-3]\d)(?!\d)"
    r"|(?<![\d./-])(?P<ymd>\d{4}(?P<y_mark>[/.])\d{1,2}(?P=y_mark)\d{1,2})(?![\d/])"
    r"|(?P<cjk>(?:\d{4}\s?年\s?)?\d{1,2}\s?月\s?\d{1,2}\s?[日号號]|\d{4}\s?年\s?\d{1,2}\s?月)"
    r"|(?<![\d./,-])(?P<dmy>\d{1,2}(?P<d_mark>[/.-])\s?\d{1,2}(?P=d_mark)\s?(?:\d{4}|\d{2}))(?![\d/]|[.,-]\d)"
)
_TIME = re.compile(
    rf"(?:(?<=[\d ]T)|(?<![\d{_L}.:,]))(?P<hour>[01]?\d|2[0-4]):(?P<minute>[0-5]\d)(?P<second>:[0-5]\d(?:\.\d{{1,9}})?)?(?![\d:])"  # noqa: E501
    r"\s?(?P<half>[ap]\.?\s?m\b\.?|[AP]\.?M\b\.?)?(?P<zone>\s?(?:Z|UTC|GMT)\b|(?(second)[+-]|\+)\d{2}:?\d{2}(?!\d))?"
    rf"|(?<![\d{_L}.:,])(?P<only>1[0-2]|[1-9])(?:[.:](?P<only_minute>[0-5]\d))?\s?(?P<only_half>[ap]\.?\s?m\b\.?|[AP]\.?M\b\.?)"
    rf"|(?<![\d{_L}.,:])(?P<h>[01]?\d|2[0-4])\s?[hH]\s?(?P<h_minute>[0-5]\d)(?![\d{_L}]|\s?m)"
    rf"|(?<![\d{_L}.,:])(?P<uhr>[01]?\d|2[0-4])(?:[.:](?P<uhr_minute>[0-5]\d))?\s?(?:Uhr|(?(uhr_minute)uur|Uhr))\b(?:\s(?P<uhr_after>[0-5]\d)(?!\d))?"
    r"|(?P<cjk_half>上午|下午|晚上|早上|中午|午前|午後)?\s?(?<!\d)(?P<cjk_hour>\d{1,2})\s?[时時点點](?!間|间)\s?(?:(?P<cjk_minute>\d{1,2})\s?分|(?P<cjk_30>半))?"
)
_YEAR = r"(?:19|20)\d{2}(?!\d)"
_NUMBER = re.compile(
    rf"(?P<id>(?<![\w])#?(?=[A-Za-z][A-Za-z_./-]{{0,30}}\d)[A-Za-z][A-Za-z0-9]{{0,40}}(?:[-_./][A-Za-z0-9]{{1,40}}){{0,8}})"
    rf"|(?<![{_L}\d])(?P<number>\d{{1,3}}(?:[ \u00a0\u202f]\d{{3}}){{1,5}}(?![\d{_L}])(?:[.,]\d{{1,9}}(?!\d))?"  # noqa: E501
    r"|\d{1,30}(?:[.,'’:/\-–]\d{1,30}){0,12})"
)
_GLUED = re.compile(rf"[{_L}][{_L}\d_-]{{0,40}}")
_BEFORE = re.compile(
    r"(?:(?P<code>\b[A-Z]{3})|(?P<sign>(?:US|R|AU|CA|MX|A|C|NZ|HK|S)?[$€£¥￥₹₩]|\bzł|\bkr\.?))?\s?(?P<minus>[-−+])?(?P<open>\()?$"
)
_AFTER = re.compile(
    r"[\s\u00a0\u202f]?-?(?:(?P<percent>%|％|‰)|(?P<sign>[$€£¥￥₹₩])|°\s?(?P<scale>[CF]\b)?(?P<degree>)|(?P<square>m²|㎡|km²|m³|℃)"
    rf"|(?P<word>(?:km/h|m/s|Mbit/s|sq\sft|[{_L}]{{1,20}}\d?(?![{_L}\d]))\.?))"
)
_CJK_AFTER = re.compile(r"\s?(?P<word>[ぁ-んァ-ヶー一-鿿]{1,6})")
_ORDINAL = re.compile(r"(?:st|nd|rd|th|er|ère|re|e|ème|nd|de|ste|º|ª|o|a)\b|[º°ª](?!\s?[CF])", re.IGNORECASE)
_LIST_MARK = re.compile(r"(?:^|\n)[ \t]{0,12}(?:[-*•]\s)?\(?\d{1,3}[.)](?=\s)")
_SPELLED = re.compile(r"[^\W\d_]{2,24}(?:-[^\W\d_]{2,24})?")
_HAS_DIGIT = re.compile(r"\d")
_MAY_BE_DATE = re.compile(r"(?<!\d)(?:19|20)\d{6}(?!\d)|\d[-/.]\s?\d{1,2}[-/.]|\d\s?[年月]")
_MAY_BE_TIME = re.compile(r"\d:[0-5]\d|\d\s?[hHapAP时時点點Uu]")
_POINT_LANGUAGES = frozenset({"en", "ja", "zh", ""})
_NEAR_WORD = re.compile(r"[^\W\d_]{1,20}[-'’]?[^\W\d_]{0,12}")
_JOINTS = frozenset({"", "and", "und", "et", "y", "e", "en", "i", "と"})
_POWER = re.compile(
    r"\s(?:cub[eioí]c?[a-z]{0,3}|quadr[a-z]{1,4}|cuadrad[a-z]{1,2}|carrés?|cubes?)(?![^\W\d_])", re.IGNORECASE
)
_FRACTIONS = {"½": 0.5, "¼": 0.25, "¾": 0.75}
_DAYPARTS = {"下午": 12, "晚上": 12, "午後": 12, "上午": 0, "早上": 0, "午前": 0, "中午": 12}

CalendarDay = tuple[int | None, int, int | None]
"""A date as it is written: year and day may be missing."""


@dataclass(slots=True)
class Token:
    """One thing that a text states. What a kind does not have is left at its default."""

    kind: Literal["url", "email", "date", "time", "id", "number"]
    start: int
    end: int
    text: str
    dates: tuple[CalendarDay, ...] = ()
    minutes: int = 0
    """Of a time: minutes since midnight."""
    is_exact: bool = True
    """Of a time: whether morning and evening are told apart."""
    zone: str = ""
    readings: tuple[tuple[float, int], ...] = ()
    """Of a number: its values with their decimals; several where the writing is ambiguous."""
    scale: float = 1.0
    unit: Unit | None = None
    currencies: frozenset[str] = frozenset()
    is_minor: bool = False
    is_approximate: bool = False
    is_spelled: bool = False
    is_fraction: bool = False
    """Of a number: whether it ends with a sign such as ½."""
    is_negative: bool = False
    word: str = ""
    """The word that follows a number, in lower case."""
    extra: "list[tuple[float, Unit]]" = field(default_factory=list)

    reading: int = 0
    """Of a number: which of its readings is the one by the custom of the language."""

    @property
    def value(self) -> float:
        """The value of a number by the custom of its language."""
        return self.readings[self.reading][0] * self.scale

    @property
    def values(self) -> list[float]:
        """The values of a number in its unit, most natural first."""
        return [value * self.scale for value, _ in self.readings]

    @property
    def total(self) -> float:
        """The value of a number in the base unit of its dimension, with all its parts."""
        factor = self.unit.factors[0] if self.unit else 1.0
        return self.value * factor + sum(value * unit.factors[0] for value, unit in self.extra)

    def tolerance(self, value: float) -> float:
        """How far what was rounded to the reading `value` may lie from it."""
        if self.is_fraction:
            return 0.25 * self.scale
        decimals = next((places for read, places in self.readings if read * self.scale == value), 0)
        return 0.5 * 10.0**-decimals * self.scale * 1.0000001


class Reader:
    """Reads texts with the words of one language, and English months beside them."""

    def __init__(self, words: Lexicon) -> None:
        self.words = words
        self.months = {**lexicon("en").months, **words.months}
        names = "|".join(sorted((name for name in self.months if name.isalpha()), key=len, reverse=True))
        self._month_starts = tuple({name[:3] for name in self.months if name.isalpha()})
        month = rf"(?:{names})(?![^\W\d_])\.?"
        link = r"(?:\s(?:de|del|of))?\s"
        self._dates = re.compile(
            rf"{_NUMERIC_DATE}"
            rf"|(?<![\w])(?P<month>{month})\s(?P<month_day>\d{{1,2}})(?:st|nd|rd|th)?(?![\d:%]|[.,]\d)(?:,?\s(?P<md_year>{_YEAR}))?"
            rf"|(?<![\d{_L}.,:/-])(?P<day>\d{{1,2}})(?:st|nd|rd|th|er|º|°|\.)?{link}(?P<day_month>{month})(?!['’]s\s\d)(?:(?:,|\sde|\sdel)?\s(?P<dm_year>{_YEAR}))?"
            rf"|(?<![\w])(?P<only_month>{month})(?:,|\sde|\sdel|\sof)?\s(?P<only_year>{_YEAR})",
            re.IGNORECASE,
        )

    def read(self, text: str, *, is_answer: bool = False) -> list[Token]:
        """The tokens of `text`, in no particular order; what is said to be approximate only of an answer."""
        found: list[Token] = []
        if not _HAS_DIGIT.search(text):
            if "@" in text or "www." in text or "://" in text:
                self._addresses(text, found)
            self._spelled(text, found)
            return found
        masked = self._addresses(text, found)
        if _MAY_BE_DATE.search(masked) or self._names_month(masked.lower()):
            masked = self._read_dates(masked, found)
        if _MAY_BE_TIME.search(masked):
            masked = self._times(masked, found)
        if "\n" in masked or ")" in masked or "." in masked:
            masked = _LIST_MARK.sub(lambda mark: " " * len(mark[0]), masked)
        masked = self._numbers(masked, found, is_answer=is_answer)
        self._spelled(masked, found)
        return found[:MAX_TOKENS]

    def _names_month(self, low: str) -> bool:
        return any(start in low for start in self._month_starts)

    def _addresses(self, text: str, found: list[Token]) -> str:
        if "@" not in text and "://" not in text and "www." not in text:
            return text
        spans = []
        for match in _ADDRESS.finditer(text):
            written = match[0].rstrip(".,;:!?*_")
            kind: Literal["url", "email"] = "url" if match["url"] else "email"
            found.append(Token(kind, match.start(), match.start() + len(written), written))
            spans.append((match.start(), match.start() + len(written)))
        return _masked(text, spans)

    def _read_dates(self, text: str, found: list[Token]) -> str:
        spans = []
        for match in self._dates.finditer(text):
            days = self._days(match)
            if days:
                found.append(Token("date", match.start(), match.end(), match[0], dates=days))
                spans.append(match.span())
        return _masked(text, spans)

    def _days(self, match: "re.Match[str]") -> tuple[CalendarDay, ...]:
        if (written := match["iso"] or match["ymd"]) is not None:
            year, month, day = (int(part) for part in re.split(r"\D", written))
            return _valid((year, month, day))
        if (written := match["compact"]) is not None:
            return _valid((int(written[:4]), int(written[4:6]), int(written[6:])))
        if (written := match["cjk"]) is not None:
            parts = [int(part) for part in re.findall(r"\d{1,4}", written)]
            if len(parts) == 3:
                return _valid((parts[0], parts[1], parts[2]))
            return _valid((None, parts[0], parts[1]) if "年" not in written else (parts[0], parts[1], None))
        if (written := match["dmy"]) is not None:
            first, second, year = (int(part) for part in re.split(r"\D{1,2}", written))
            year += 2000 if year < 100 else 0
            return tuple(dict.fromkeys((*_valid((year, second, first)), *_valid((year, first, second)))))
        if (name := match["month"]) is not None:
            return _valid((_year(match["md_year"]), self._month(name), int(match["month_day"])))
        if (name := match["day_month"]) is not None:
            return _valid((_year(match["dm_year"]), self._month(name), int(match["day"])))
        return ((int(match["only_year"]), self._month(match["only_month"]), None),)

    def _month(self, name: str) -> int:
        return self.months[name.rstrip(".").lower()]

    def _times(self, text: str, found: list[Token]) -> str:
        spans = []
        for match in _TIME.finditer(text):
            hour_text = match["hour"] or match["only"] or match["h"] or match["uhr"] or match["cjk_hour"]
            if self.words.language == "ja" and "点" in match[0]:
                continue
            hour = int(hour_text)
            minute = int(
                match["minute"] or match["only_minute"] or match["h_minute"] or match["uhr_minute"]
                or match["uhr_after"] or match["cjk_minute"] or (match["cjk_30"] and 30) or 0
            )  # fmt: skip
            half = match["half"] or match["only_half"]
            part = match["cjk_half"]
            is_exact = half is not None or hour > 12 or hour_text.startswith("0") or match["only"] is None
            if half is not None and hour <= 12:
                hour = hour % 12 + (12 if half[0] in "pP" else 0)
            elif part is not None and hour < 12:
                hour += _DAYPARTS[part] if part != "中午" or hour < 3 else 0
            if hour > 24 or minute > 59:
                continue
            zone = (match["zone"] or "").strip()
            is_exact = half is not None or part is not None or hour > 12 or len(hour_text) == 2 or hour == 0
            found.append(Token("time", match.start(), match.end(), match[0], minutes=hour % 24 * 60 + minute,
                               is_exact=is_exact and not (half is None and 9 < hour <= 12), zone=zone))  # fmt: skip  # noqa: E501
            spans.append(match.span())
        return _masked(text, spans)

    def _numbers(self, text: str, found: list[Token], *, is_answer: bool) -> str:
        spans = []
        numbers: list[Token] = []
        covered = 0
        for match in _NUMBER.finditer(text):
            if match.start() < covered:
                continue
            if len(numbers) > MAX_TOKENS:
                break
            if match["id"] is not None:
                token = Token("id", match.start(), match.end(), match[0].rstrip("./"))
                found.append(token)
                spans.append(match.span())
                covered = match.end()
                continue
            glued = _GLUED.match(text, match.end())
            end = match.end()
            if glued is not None and not self._is_suffix(glued[0]):
                found.append(Token("id", match.start(), glued.end(), text[match.start() : glued.end()]))
                spans.append((match.start(), glued.end()))
                covered = glued.end()
                continue
            for start, stop in _parts(match["number"], match.start(), found):
                number = self._number(text, start, stop, is_answer=is_answer)
                if number is not None:
                    numbers.append(number)
                    end = max(end, number.end)
            spans.append((match.start(), end))
            covered = match.end()
        found.extend(_joined(numbers, text))
        return _masked(text, spans)

    def _is_suffix(self, glued: str) -> bool:
        """Whether letters right behind a number are a unit, a scale or an ending."""
        word = glued.rstrip("_").lower()
        if "-" in word:
            word = word.partition("-")[0]
            if not word:
                return True
            if any(character.isdigit() for character in glued):
                return False
        return (
            word in self.words.units or word in self.words.scales or word in CURRENCIES or word in ("x", "s", "k", "bn", "m", "bps", "pp", "p", "fps", "px", "mp", "mah", "v", "a", "pt")  # noqa: E501
            or unit_of_symbol(glued) is not None or _ORDINAL.fullmatch(word) is not None
        )  # fmt: skip

    def _number(self, text: str, start: int, end: int, *, is_answer: bool) -> Token | None:
        readings = _readings(text[start:end])
        if not readings:
            return None
        token = Token("number", start, end, text[start:end], readings=readings)
        if len(readings) > 1:
            is_point = "." in token.text
            token.reading = int(is_point == (self.words.language in _POINT_LANGUAGES))
        if (part := _FRACTIONS.get(text[end : end + 1])) is not None:
            token.readings, token.end, token.is_fraction = ((readings[0][0] + part, 0),), end + 1, True
        before = _BEFORE.search(text, max(0, start - 6), start)
        if before is not None:
            money = before["code"] or before["sign"]
            if money is not None:
                token.currencies = CURRENCIES.get(money.lower().rstrip("."), frozenset())
            token.is_negative = before["minus"] in ("-", "−")
        if self._follows(text, token):
            return None
        if not is_answer:
            return token
        before_it = re.split(r"[\d.:;(]", text[max(0, start - 28) : start])[-1]
        near = _NEAR_WORD.findall(before_it)[-2:]
        low = " ".join(near).lower()
        token.is_approximate = "~" in text[max(0, start - 2) : start] or (
            "approx" in self.words.categories(low if self.words.is_spaced else text[max(0, start - 3) : token.end + 3])  # noqa: E501
            if low or not self.words.is_spaced else False
        )  # fmt: skip
        return token

    def _follows(self, text: str, token: Token) -> bool:
        """Read what stands right of a number; whether that makes it an ordinal."""
        if (
            not token.is_spelled
            and (ending := _ORDINAL.match(text, token.end))
            and not unit_of_symbol(ending[0])
        ):
            return True
        if not self.words.is_spaced and self._follows_cjk(text, token):
            return False
        for _ in range(2):
            match = _AFTER.match(text, token.end)
            if match is None:
                return False
            if match["percent"]:
                token.unit = UNITS["%"]
            elif match["sign"]:
                if token.currencies:
                    return False
                token.currencies = CURRENCIES[match["sign"]]
            elif match["degree"] is not None:
                token.unit = UNITS[match["scale"] or "deg"]
            elif match["square"]:
                token.unit = unit_of_symbol(match["square"])
            else:
                word = match["word"].rstrip(".")
                low = word.lower()
                is_glued = not match[0][:1].isspace()
                power = self.words.scales.get(low) or (
                    {"k": 1e3, "m": 1e6, "bn": 1e9, "b": 1e9}.get(low)
                    if is_glued and (low != "m" or token.currencies or word == "M")
                    else None
                )
                if power is not None and token.scale == 1.0 and (len(low) > 1 or is_glued):
                    token.scale = power
                    token.end = match.end() - (
                        1 if match[0].endswith(".") and low not in ("tys", "mio") else 0
                    )
                    continue
                token.word = token.word or low
                if (
                    (token.scale == 1.0 or not token.currencies)
                    and low in CURRENCIES
                    and (not token.currencies or low not in MINOR_WORDS)
                ):
                    token.currencies = token.currencies or CURRENCIES[low]
                elif low in MINOR_WORDS:
                    token.is_minor = True
                else:
                    symbol = self.words.units.get(low) if unit_of_symbol(word) is not UNITS["MB"] else None
                    unit = UNITS[symbol] if symbol in UNITS else unit_of_symbol(word)
                    if (
                        unit is None
                        or (low == "in" and not is_glued)
                        or (len(word) == 1 and not is_glued and word not in "mgshlLWCF")
                    ):
                        if low in ("s", "x"):
                            token.end = match.end()
                        return False
                    token.unit = unit
                    if (power_of := _POWER.match(text, match.end())) is not None:
                        token.unit, token.end = None, power_of.end()
                        return False
            token.end = match.end() - (1 if match[0].endswith(".") else 0)
            return False
        return False

    def _follows_cjk(self, text: str, token: Token) -> bool:
        match = _CJK_AFTER.match(text, token.end)
        if match is None:
            return False
        word = match["word"]
        start = match.start("word")
        for name, power in self.words.scales.items():
            if word.startswith(name):
                token.scale = power
                token.end = start + len(name)
                word = word[len(name) :]
                start = token.end
                break
        for name in sorted(
            {*self.words.units, "円", "元", "块", "ドル", "美元", "欧元", "ユーロ", "日元"},
            key=len,
            reverse=True,
        ):
            if word.startswith(name):
                if name in CURRENCIES:
                    token.currencies = token.currencies or CURRENCIES[name]
                else:
                    token.unit = UNITS[self.words.units[name]]
                token.end = start + len(name)
                return True
        token.word = next((name for name in self.words.counters if word.startswith(name)), "")
        return bool(token.word) or token.scale != 1.0

    def _spelled(self, text: str, found: list[Token]) -> None:
        numbers = self.words.numbers
        if not numbers:
            return
        if not self.words.is_spaced:
            for match in _cjk_counts(self.words).finditer(text):
                found.append(Token("number", match.start(), match.end(), match[0], readings=((numbers[match[1]], 0),),  # noqa: E501
                                   is_spelled=True, word=match[2]))  # fmt: skip
            return
        for match in _SPELLED.finditer(text.lower()):
            word = match[0]
            value = numbers.get(word)
            if value is None and "-" in word:
                tens, _, ones = word.partition("-")
                if tens in numbers and ones in (*numbers, "one"):
                    value = numbers[tens] + numbers.get(ones, 1.0)
                elif tens in numbers:
                    value = numbers[tens]
            if value is None:
                continue
            token = Token(
                "number", match.start(), match.end(), match[0], readings=((value, 0),), is_spelled=True
            )
            self._follows(text, token)
            found.append(token)


@cache
def reader(language: str) -> Reader:
    """The reader for a language; for the empty name the one that knows English months alone."""
    from processors.response_handling.lexicon import NEUTRAL

    return Reader(lexicon(language) if language else NEUTRAL)


@cache
def _cjk_counts(words: Lexicon) -> "re.Pattern[str]":
    return re.compile(rf"([{''.join(words.numbers)}])({'|'.join(words.counters)})")


def _masked(text: str, spans: list[tuple[int, int]]) -> str:
    """`text` with blanks in place of `spans`, which are in order."""
    if not spans:
        return text
    pieces, end = [], 0
    for start, stop in spans:
        pieces.append(text[end:start])
        pieces.append(" " * (stop - max(start, end)))
        end = stop
    pieces.append(text[end:])
    return "".join(pieces)


def _year(text: str | None) -> int | None:
    return int(text) if text else None


def _valid(day: CalendarDay) -> tuple[CalendarDay, ...]:
    year, month, number = day
    try:
        date(year or 2024, month, number or 1)
    except ValueError:
        return ()
    return (day,)


def to_date(day: CalendarDay) -> date | None:
    """The day, where all its parts are written and there is such a day."""
    year, month, number = day
    try:
        return date(year, month, number) if year and number else None
    except ValueError:
        return None


def agree(one: CalendarDay, other: CalendarDay) -> bool:
    """Whether all parts that both dates have are equal."""
    return one[1] == other[1] and all(
        a is None or b is None or a == b for a, b in ((one[0], other[0]), (one[2], other[2]))
    )


def moment_of_number(value: float) -> datetime | None:
    """The moment that a number means if it looks like Unix seconds or milliseconds."""
    if 1e12 <= value < 4e12:
        value /= 1000
    return datetime.fromtimestamp(value, UTC) if 1e9 <= value < 4e9 else None


def _parts(written: str, start: int, found: list[Token]) -> list[tuple[int, int]]:
    """Where the numbers of a run of digits stand: none in codes, two in ranges, several in lists."""
    if not any(mark in written for mark in ":/-–"):
        if "," in written and not _readings(written):
            parts, at = [], start
            for piece in written.split(","):
                parts.append((at, at + len(piece)))
                at += len(piece) + 1
            return parts
        if written.count(".") > 1 and not _readings(written):
            found.append(Token("id", start, start + len(written), written))
            return []
        return [(start, start + len(written))]
    pieces = re.split(r"([:/\-–])", written)
    if len(pieces) == 3 and pieces[1] in "-–":
        low, high = _readings(pieces[0]), _readings(pieces[2])
        is_range = (
            low and high and low[0][0] < high[0][0] and not pieces[2].startswith("0")
            and len(pieces[2]) - len(pieces[0]) <= 1 and (len(pieces[2]) < 4 or pieces[0].endswith("00"))
        )  # fmt: skip
        if is_range or pieces[1] == "–":
            middle = start + len(pieces[0])
            return [(start, middle), (middle + 1, start + len(written))]
    if sum(len(piece) for piece in pieces[::2]) > 4 and not any(mark in written for mark in ":."):
        found.append(Token("id", start, start + len(written), written))
    return []


def _readings(written: str) -> tuple[tuple[float, int], ...]:
    """The values with decimals that a writing allows; none for versions and addresses."""
    if written.isdigit():
        return ((float(written), 0),) if len(written) < 16 else ()
    separators = [character for character in written if not character.isdigit()]
    groups = re.split(r"\D", written)
    last = separators[-1]
    found = []
    if len(set(separators)) == 1:
        if _is_grouped(groups, last):
            found.append((float("".join(groups)), 0))
        if len(separators) == 1 and last in ".,":
            found.append((float(f"{groups[0]}.{groups[1]}"), len(groups[1])))
    elif (
        len(set(separators)) == 2
        and separators.count(last) == 1
        and last in ".,"
        and _is_grouped(groups[:-1], separators[0])
    ):
        found.append((float(f"{''.join(groups[:-1])}.{groups[-1]}"), len(groups[-1])))
    return tuple(found)


def _is_grouped(groups: list[str], separator: str) -> bool:
    if not 0 < len(groups[0]) <= 3 or len(groups[-1]) != 3 or groups[0].startswith("0"):
        return False
    return all(len(group) == 3 or (separator == "," and len(group) == 2) for group in groups[1:])


def _joined(numbers: list[Token], text: str) -> list[Token]:
    """`numbers` with the parts of one quantity made one: 1億2,840万, 8 hours 30 minutes, 5 h 20."""
    found: list[Token] = []
    for token in numbers:
        last = found[-1] if found else None
        if last is not None and token.start - last.end <= 5 and last.readings and token.readings:
            between = text[last.end : token.start].strip(" ,\u00a0")
            if last.scale > token.scale > 1.0 and not between and last.unit is None:
                last.readings = ((last.values[0] + token.values[0], 0),)
                last.scale, last.currencies, last.end = 1.0, last.currencies or token.currencies, token.end
                last.unit = token.unit
                continue
            one, other = last.unit, token.unit
            if one is not None and other is not None and one.dimension == other.dimension == "time" and (
                other.factors[0] < one.factors[0] and between in _JOINTS
            ):  # fmt: skip
                last.extra.append((token.values[0], other))
                last.end = token.end
                continue
        found.append(token)
    return found
