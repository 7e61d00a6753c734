"""Rule RH14: what the user asks for is affirmed, though a result gives a limit that forbids it."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import date
from itertools import islice
from typing import Final, NamedTuple

from processors.response_handling.ledger import FROM_USER, Moment, Quantity, folded
from processors.response_handling.lexicons import keys
from processors.response_handling.lexicons.units import UNITS, Unit, key_words, unit_of_key
from processors.response_handling.reading import CalendarDay, Token
from processors.response_handling.response import Finding, Response, shown, words_of

_STEM: Final = 5
_MOST_LIMITS, _MOST_MARKS, _BEHIND = 60, 40, 36
_END = re.compile(r"[.;,\n](?!\d)")
_DAY, _TIME = "date", "time of day"


class Limit(NamedTuple):
    """What a result allows of one dimension: the least and the most, if it says so, and where it stands."""

    dimension: str
    least: float | None
    most: float | None
    path: str
    call: int
    record: int = -1

    def forbids(self, value: float) -> bool:
        """Whether a value is beyond the limit."""
        is_less = self.least is not None and value < self.least - abs(self.least) * 1e-9
        is_more = self.most is not None and value > self.most + abs(self.most) * 1e-9
        if self.least is not None and self.most is not None and self.least > self.most:  # over midnight
            return is_less and is_more
        return is_less or is_more


def ignored_limits(response: Response) -> Iterator[Finding]:
    """RH14: the answer affirms what was asked, of which a result allows less, or more, or no such time.

    The limit is told nowhere, and nothing else of its dimension is asked. Of several limits those count whose
    path the question names best, and all of these have to be broken.
    """
    first = next(iter(response.sentences), None)
    if first is None or not response.starts_with_yes or "contrast" in first.kinds:
        return
    years = {day[0] for one in response.ledger.moments for day in one.dates} - {None}
    year = years.pop() if len(years) == 1 else None
    asked = {*_measures(response.reader.read(response.question), year)}
    sizes = Counter(dimension for dimension, _ in asked)
    found: dict[str, list[Limit]] = defaultdict(list)
    for limit in _limits(response, {*sizes}, year) if asked else ():
        found[limit.dimension].append(limit)
    told = _measures(response.tokens, year)
    known = _known(response, year)
    words = {word[:_STEM] for word in response.asked | words_of(first.text)}
    for dimension, value in sorted(one for one in asked if sizes[one[0]] == 1):
        limits = found[dimension][:_MOST_LIMITS]
        named = [
            len({word[:_STEM] for word in key_words(limit.path)} & words)
            + _is_of_row(limit, response, first.text)
            for limit in limits
        ]
        limits = [limit for limit, size in zip(limits, named, strict=True) if size == max(named)]
        ends = [end for limit in limits for end in (limit.least, limit.most) if end is not None]
        slack = 0.0 if dimension in (_DAY, _TIME) else 0.005
        is_told = any(
            kind == dimension and abs(end - own) <= abs(end) * slack for kind, own in told for end in ends
        )
        is_open = is_told or (dimension, value) in known
        if limits and not is_open and all(limit.forbids(value) for limit in limits):
            what = f"{limits[0].path}: {' to '.join(f'{end:.10g}' for end in ends[:2])} {dimension}".rstrip()
            yield Finding("RH14", shown(first.text), what, limits[0].path, limits[0].call)
            return


def _is_of_row(limit: Limit, response: Response, text: str) -> bool:
    """Whether a text names the row that a limit stands in."""
    leaves = response.ledger.records[limit.record].leaves if "[" in limit.path else ()
    return any(isinstance(leaf.value, str) and folded(leaf.value) in folded(text) for leaf in leaves)


def _known(response: Response, year: int | None) -> set[tuple[str, float]]:
    """What stands in a result as it was asked, and numbers that name what a call was made for."""
    found = set[tuple[str, float]]()
    for one in response.ledger.quantities:
        is_wanted = one.made_for < 0 or _is_one_of(key_words(one.key), keys.QUANTITY_KEYS)
        if one.call != FROM_USER or not is_wanted:
            found.add((_dimension(one.unit, one.currencies), _value(one)))
    for moment in response.ledger.moments:
        if moment.call != FROM_USER:
            found |= {(_DAY, _ordinal(day, year) or 0) for day in moment.dates}
            found |= {(_TIME, moment.minutes)} if moment.minutes is not None else set()
    return found


def _measures(tokens: list[Token], year: int | None) -> list[tuple[str, float]]:
    """The numbers, times and dates of a text with their dimensions, in base units."""
    found: list[tuple[str, float]] = []
    for token in tokens:
        if token.kind == "time" and token.is_exact:
            found.append((_TIME, token.minutes))
        elif token.kind == "date" and (day := _ordinal(token.dates[0], year)) is not None:
            found.append((_DAY, day))
        elif token.kind == "number" and not token.is_approximate:
            value = token.total if token.unit else token.value
            found.append((_dimension(token.unit, token.currencies), value))
    return found


def _value(quantity: Quantity) -> float:
    return quantity.base / (100 if quantity.is_minor else 1)


def _dimension(unit: Unit | None, currencies: frozenset[str]) -> str:
    if currencies:
        return "money"
    return "" if unit is None else unit.symbol if unit.dimension == "temperature" else unit.dimension


def _ordinal(day: CalendarDay, year: int | None) -> float | None:
    try:
        return date(day[0] or year or 0, day[1], day[2] or 0).toordinal()
    except ValueError:
        return None


def _limits(response: Response, dimensions: set[str], year: int | None) -> Iterator[Limit]:
    """What the results allow of some dimensions."""
    is_paged = any(leaf.key.lower() in keys.MORE_KEYS for leaf in response.current)
    for one in response.ledger.quantities:
        unit = one.unit or unit_of_key(response.ledger.records[one.record].key)
        dimension = _dimension(unit, one.currencies)
        is_plain = one.is_whole and one.is_operand and not (is_paged and one.key == "limit")
        if dimension in dimensions and is_plain and one.call in response.last_calls:
            value = _value(one) * (unit.factors[0] if unit and one.unit is None else 1)
            words = key_words(one.path.rpartition(".")[2] if len(key_words(one.key)) > 1 else one.path)
            named = [word for word in words if word != "min" or one.unit is not UNITS["min"]]
            least = value if _is_one_of(named, keys.LEAST_WORDS) else None
            most = value if _is_one_of(named, keys.MOST_WORDS) else None
            if least is not None or most is not None:
                yield Limit(dimension, least, most, one.path, one.call, one.record)
    if not dimensions.isdisjoint({_TIME, _DAY}):
        yield from _limits_in_time(response, year)
    texts = (
        (leaf, leaf.value) for leaf in response.current if isinstance(leaf.value, str) and " " in leaf.value
    )
    marks = ((leaf, text, mark) for leaf, text in texts for mark in keys.LIMITS_IN_TEXT.finditer(text))
    for leaf, text, mark in islice(marks, _MOST_MARKS):
        behind = _END.split(text[mark.end() : mark.end() + _BEHIND])[0]
        tokens = sorted(response.reader.read(behind), key=lambda token: token.start)
        for dimension, value in _measures(tokens, year)[:1]:
            if dimension:
                least, most = (None, value) if mark["most"] else (value, None)
                yield Limit(dimension, least, most, leaf.path, leaf.call)


def _is_one_of(words: Iterable[str], wanted: frozenset[str]) -> bool:
    """Whether a word is wanted, or has a wanted word in it where nothing parts words."""
    return any(
        word in wanted or (not word.isascii() and any(sign in word for sign in wanted if sign >= "ぁ"))
        for word in words
    )


def _limits_in_time(response: Response, year: int | None) -> Iterator[Limit]:
    """The latest times and dates that results allow, and ranges: two values of a member or a record."""
    ranges: dict[tuple[int, str], list[Moment]] = defaultdict(list)
    for moment in (one for one in response.ledger.moments if one.call in response.last_calls):
        words = key_words(moment.key)
        is_end = _is_one_of(words, keys.LATEST_WORDS | keys.END_WORDS)
        if _is_one_of(key_words(moment.path), keys.ALLOWED_WORDS):
            is_one = is_end != _is_one_of(words, keys.EARLIEST_WORDS)
            ranges[moment.call, moment.path.rpartition(".")[0] if is_one else moment.path].append(moment)
        elif is_end:
            ranges[moment.call, moment.path].append(moment)
    for (call, path), moments in ranges.items():
        days = [_ordinal(day, year) for one in moments for day in one.dates[:1]]
        values = days or [one.minutes for one in moments]
        is_latest = len(values) == 1 and _is_one_of(key_words(moments[0].key), keys.LATEST_WORDS)
        if len(values) == len(moments) and None not in values and (is_latest or len(values) == 2):
            yield Limit(_DAY if days else _TIME, None if is_latest else values[0], values[-1], path, call)
