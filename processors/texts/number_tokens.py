"""Numbers as people write them: grouped, with decimal points or commas, with signs, units and scale words."""

import re
from dataclasses import dataclass, field
from typing import Final

from processors.texts.units import GLUED_UNITS, UNITS, Unit
from processors.texts.word_list import words

MAX_NUMBERS = 1000
"""Numbers that are read from one text."""

_CHAIN = re.compile(
    r"(?<!\w)(?:\d{1,3}(?:[ \u00a0\u202f]\d{3})+(?![\d\w])(?:[.,]\d{1,9}(?!\d))?|\d+(?:[.,'\u2019]\d+){0,20})"
)
_BEFORE = re.compile(
    r"(?P<near>(?:\b(?:about|around|approximately|approx\.?|roughly|nearly|almost|over|under|above|below|"
    r"up to|more than|less than|fewer than|close to|at least|at most|some|circa|just)"
    r"|[~\u2248])\s*)?"
    r"(?P<money>(?:[A-Z]{2,3})?[$\u20ac\u00a3\u00a5\u20b9]|\b[A-Z]{3})?\s?[-+\u2212]?$",
    re.IGNORECASE,
)
_AFTER = re.compile(
    r"(?P<percent>\s?(?:%|\bper ?cent\b|\bpercentage points?\b))"
    r"|\s?(?:\u00b0|\b(?:degrees?|deg)\b)\s?(?P<scale>[CF]\b|celsius\b|fahrenheit\b)?(?P<degree>)"
    r"|(?P<gap>[\s-]?)(?P<word>km/h\b|m/s\b|[A-Za-z]+(?![\w])|[$\u20ac\u00a3\u00a5\u20b9])",
    re.IGNORECASE,
)
_SCALE_WORD = re.compile(r"\s(?P<word>[A-Za-z/]+)|\s?(?P<sign>[$\u20ac\u00a3\u00a5\u20b9%])")
_LETTER = re.compile(r"[^\W\d_]")

_SCALES: Final = {
    "k": 1e3, "thousand": 1e3, "million": 1e6, "millions": 1e6, "mn": 1e6, "mio": 1e6,
    "billion": 1e9, "billions": 1e9, "bn": 1e9, "trillion": 1e12, "lakh": 1e5, "crore": 1e7,
}  # fmt: skip
_GLUED_SCALES: Final = {"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}

_CODES = words(
    """
    usd eur gbp jpy cny inr aud cad nzd sgd hkd chf sek nok dkk pln czk huf mxn brl zar krw
    try thb ils aed sar
    """
)
CURRENCIES: Final = {
    "$": "USD AUD CAD NZD SGD HKD MXN CLP COP ARS TWD",
    "€": "EUR",
    "£": "GBP",
    "¥": "JPY CNY",
    "₹": "INR",
    "dollar": "USD AUD CAD NZD SGD HKD",
    "dollars": "USD AUD CAD NZD SGD HKD",
    "bucks": "USD",
    "euro": "EUR",
    "euros": "EUR",
    "yen": "JPY",
    "rupees": "INR",
    "francs": "CHF",
    "yuan": "CNY",
    "cents": "USD AUD CAD NZD EUR",
    **{code: code.upper() for code in _CODES},
    "pounds": "GBP",
}
"""Which ISO 4217 currencies a sign, word or code in lower case may mean."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read a number: its value without scale, its decimals, and its scale (a million: 1e6)."""

    value: float
    decimals: int
    scale: float = 1.0

    @property
    def magnitude(self) -> float:
        """The number that is meant."""
        return self.value * self.scale


@dataclass(slots=True)
class NumberToken:
    """A number in a text, always without its sign.

    `readings` has several entries where the writing is ambiguous (`1.299`). `currencies` are those that a
    sign, word or code beside it may mean. `temperature` is `C`, `F` or, for bare degrees, the empty text.
    """

    start: int
    end: int
    text: str
    readings: tuple[Reading, ...]
    is_approximate: bool = False
    is_percent: bool = False
    currencies: frozenset[str] = frozenset()
    unit: Unit | None = None
    temperature: str | None = None
    word: str = ""
    """The word that follows, in lower case."""

    @property
    def is_bare(self) -> bool:
        """Whether nothing beside the number says what is counted or measured in."""
        return not (self.is_percent or self.currencies or self.temperature is not None)


@dataclass(slots=True)
class _Surroundings:
    scales: tuple[float, ...] = (1.0,)
    is_percent: bool = False
    currencies: set[str] = field(default_factory=set)
    unit: Unit | None = None
    temperature: str | None = None
    word: str = ""
    is_identifier: bool = False


def number_tokens(text: str) -> list[NumberToken]:
    """The numbers of `text` in order: digit runs that are not glued to letters on their left.

    A run with letters on its right that are no unit or scale, and dotted runs such as versions, are no
    numbers. About 1,000 are read.
    """
    tokens: list[NumberToken] = []
    for match in _CHAIN.finditer(text):
        if len(tokens) >= MAX_NUMBERS:
            break
        for start, end in _parts(match[0], match.start()):
            readings = _readings(text[start:end])
            if not readings:
                continue
            found = _surroundings(text, end)
            if found.is_identifier:
                continue
            before = _BEFORE.search(text, max(0, start - 24), start)
            near = before is not None and before["near"] is not None
            if before is not None and before["money"] is not None:
                found.currencies.update(_currencies(before["money"]))
            tokens.append(
                NumberToken(
                    start=start,
                    end=end,
                    text=text[start:end],
                    readings=tuple(
                        Reading(value, decimals, scale)
                        for value, decimals in readings
                        for scale in found.scales
                    ),
                    is_approximate=near,
                    is_percent=found.is_percent,
                    currencies=frozenset(found.currencies),
                    unit=found.unit,
                    temperature=found.temperature,
                    word=found.word,
                )
            )
    return tokens


def _parts(chain: str, start: int) -> list[tuple[int, int]]:
    """Where the numbers of a chain stand: one, or several where commas only list them."""
    if "," in chain and "." not in chain and not _readings(chain):
        parts = []
        for piece in chain.split(","):
            parts.append((start, start + len(piece)))
            start += len(piece) + 1
        return parts
    return [(start, start + len(chain))]


def _readings(chain: str) -> list[tuple[float, int]]:
    """The values with decimals that the writing allows; none for versions and addresses."""
    if chain.isdigit():
        return [(float(chain), 0)] if len(chain) <= 300 else []
    separators = [character for character in chain if not character.isdigit()]
    groups = re.split(r"\D", chain)
    if len(chain) > 300:
        return []
    last = separators[-1]
    readings = []
    if len(set(separators)) == 1:
        if _is_grouped(groups, last):
            readings.append((float("".join(groups)), 0))
        if len(separators) == 1 and last in ".,":
            readings.append((float(f"{groups[0]}.{groups[1]}"), len(groups[1])))
    elif (
        len(set(separators)) == 2
        and separators.count(last) == 1
        and last in ".,"
        and _is_grouped(groups[:-1], separators[0])
    ):
        readings.append((float(f"{''.join(groups[:-1])}.{groups[-1]}"), len(groups[-1])))
    return readings


def _is_grouped(groups: list[str], separator: str) -> bool:
    if not 0 < len(groups[0]) <= 3 or len(groups[-1]) != 3 or groups[0].startswith("0"):
        return False
    return all(len(group) == 3 or (separator == "," and len(group) == 2) for group in groups[1:])


def _surroundings(text: str, end: int) -> _Surroundings:
    """What stands right of a number that ends at `end`."""
    found = _Surroundings()
    glued = _LETTER.match(text, end) is not None or text.startswith("_", end)
    match = _AFTER.match(text, end)
    if match is None:
        found.is_identifier = glued
        return found
    if match["percent"] is not None:
        found.is_percent = True
    elif match["degree"] is not None:
        found.temperature = (match["scale"] or "")[:1].upper()
    else:
        _read_word(text, match, found, glued=glued)
    return found


def _read_word(text: str, match: "re.Match[str]", found: _Surroundings, *, glued: bool) -> None:
    word = match["word"]
    lower = word.lower()
    found.word = lower
    if glued and word in _GLUED_SCALES:
        found.scales = (_GLUED_SCALES[word],) if word != "M" and word != "T" else (_GLUED_SCALES[word], 1.0)
    elif lower in _SCALES and match["gap"] != "-":
        found.scales = (_SCALES[lower],)
    if found.scales != (1.0,):
        after = _SCALE_WORD.match(text, match.end())
        if after is not None:
            lower = (after["word"] or after["sign"]).lower()
            found.word = lower
            found.currencies.update(_currencies(lower))
            found.unit = UNITS.get(lower)
        return
    found.currencies.update(_currencies(word))
    unit = UNITS.get(lower)
    if unit is not None and (glued or len(lower) > 1 or word in "mgshdl"):
        found.unit = unit
    elif (glued and word in ("C", "F")) or (match["gap"] == " " and word in ("C", "F")):
        found.temperature = word
    elif glued and not found.currencies:
        found.is_identifier = unit is None and lower not in GLUED_UNITS


def _currencies(sign: str) -> list[str]:
    known = CURRENCIES.get(sign.lower())
    if known is None and len(sign) > 1:
        known = CURRENCIES.get(sign[-1])
    return known.split() if known is not None else []
