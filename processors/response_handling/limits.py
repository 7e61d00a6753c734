"""Rule RH14: what the user asks for is affirmed, though a result gives a limit that forbids it."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import date
from typing import Final, NamedTuple

from processors.response_handling.ledger import FROM_USER, Moment, Quantity
from processors.response_handling.lexicons import keys
from processors.response_handling.lexicons.units import Unit, key_words
from processors.response_handling.reading import CalendarDay, Token
from processors.response_handling.response import Finding, Response, shown, words_of

_STEM: Final = 5
_MOST_LIMITS, _MOST_TEXTS, _LONGEST_TEXT = 60, 40, 2_000
_BEFORE: Final = 40
_DAY: Final = "date"


class Limit(NamedTuple):
    """What a result allows of one dimension: the least and the most, if it says so, and where it stands."""

    dimension: str
    least: float | None
    most: float | None
    path: str
    call: int

    def forbids(self, value: float) -> bool:
        """Whether a value is beyond the limit."""
        least = self.least if self.least is not None else value
        most = self.most if self.most is not None else value
        if least > most and self.dimension == "time of day":  # over midnight
            return most < value < least
        return value < least * 0.9999 or value > most * 1.0001


def ignored_limits(response: Response) -> Iterator[Finding]:
    """RH14: the answer affirms what was asked, of which a result allows less, or more, or no such time.

    The limit is told nowhere. Of several for one dimension those count whose path the question names best,
    and all of these have to be broken.
    """
    first = next(iter(response.sentences), None)
    if first is None or not response.starts_with_yes or "contrast" in first.kinds:
        return
    year = next((day[0] for one in response.ledger.moments for day in one.dates if day[0]), None)
    asked = _measures(response.reader.read(response.question), year)
    found: dict[str, list[Limit]] = defaultdict(list)
    for limit in _limits(response, {dimension for dimension, _ in asked}, year) if asked else ():
        found[limit.dimension].append(limit)
    told = _measures(response.tokens, year)
    known = {quantity.value for quantity in response.ledger.quantities if _is_known(quantity)}
    words = {word[:_STEM] for word in response.asked | words_of(first.text)}
    for dimension, value in asked:
        limits = found[dimension][:_MOST_LIMITS]
        named = [len({word[:_STEM] for word in key_words(limit.path)} & words) for limit in limits]
        limits = [limit for limit, size in zip(limits, named, strict=True) if size == max(named)]
        ends = [end for limit in limits for end in (limit.least, limit.most) if end is not None]
        is_told = any(
            kind == dimension and abs(end - own) <= abs(end) / 200 for kind, own in told for end in ends
        )
        is_name = dimension == "" and value in known
        if limits and not is_told and not is_name and all(limit.forbids(value) for limit in limits):
            what = f"{limits[0].path}: {_written(limits[0])}"
            yield Finding("RH14", shown(first.text), what, limits[0].path, limits[0].call)
            return


def _is_known(quantity: Quantity) -> bool:
    """Whether a number stands in a result, or names what a call was made for."""
    is_wanted = not keys.QUANTITY_KEYS.isdisjoint(key_words(quantity.key))
    return quantity.call != FROM_USER or (quantity.made_for >= 0 and not is_wanted)


def _measures(tokens: list[Token], year: int | None) -> list[tuple[str, float]]:
    """The numbers, times and dates of a text with their dimensions, in base units."""
    found: list[tuple[str, float]] = []
    for token in tokens:
        if token.kind == "time" and token.is_exact:
            found.append(("time of day", token.minutes))
        elif token.kind == "date" and (day := _ordinal(token.dates[0], year)) is not None:
            found.append((_DAY, day))
        elif token.kind == "number" and not token.is_approximate:
            value = token.total if token.unit else token.value
            found.append((_dimension(token.unit, token.currencies), value))
    return found


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
    for one in response.ledger.quantities:
        if one.call in response.last_calls and one.is_whole and one.is_operand:
            value = one.base / (100 if one.is_minor else 1)
            words = key_words(one.path.rpartition(".")[2] if len(key_words(one.key)) > 1 else one.path)
            is_paged = (
                not keys.MORE_KEYS.isdisjoint({leaf.key for leaf in response.current}) and one.key == "limit"
            )
            most, least = _directions(words, one.unit)
            if (most or least) and not is_paged and _dimension(one.unit, one.currencies) in dimensions:
                yield Limit(
                    _dimension(one.unit, one.currencies),
                    value if least else None,
                    value if most else None,
                    one.path,
                    one.call,
                )
    if not dimensions.isdisjoint({"time of day", _DAY}):
        yield from _limits_in_time(response, year)
    texts = [leaf for leaf in response.current if isinstance(leaf.value, str) and " " in leaf.value.strip()]
    for leaf in texts[:_MOST_TEXTS]:
        text = str(leaf.value)[:_LONGEST_TEXT]
        for token in response.reader.read(text) if any(map(str.isdigit, text)) else ():
            mark = keys.LIMITS_IN_TEXT.search(text, max(0, token.start - _BEFORE), token.start)
            for dimension, value in _measures([token], year) if mark else ():
                if mark and dimension:
                    yield Limit(
                        dimension,
                        None if mark["most"] else value,
                        value if mark["most"] else None,
                        leaf.path,
                        leaf.call,
                    )


def _directions(words: tuple[str, ...], unit: Unit | None) -> tuple[bool, bool]:
    """Whether a key says that its number is the most, and the least, that is allowed."""
    named = {*words} - (
        {"min"} if unit is not None and words[-1] == "min" and unit.symbol == "min" else set()
    )
    return not keys.MOST_WORDS.isdisjoint(named), not keys.LEAST_WORDS.isdisjoint(named)


def _limits_in_time(response: Response, year: int | None) -> Iterator[Limit]:
    """The earliest and latest times and dates that results allow: by their keys, or as two of one range."""
    ranges: dict[tuple[int, str], list[Moment]] = defaultdict(list)
    for moment in response.ledger.moments:
        if moment.call in response.last_calls:
            words = {*key_words(moment.key)}
            is_end, is_start = (
                not keys.LATEST_WORDS.isdisjoint(words),
                not keys.EARLIEST_WORDS.isdisjoint(words),
            )
            if not keys.ALLOWED_WORDS.isdisjoint(key_words(moment.path)):
                is_one = is_end != is_start
                ranges[moment.call, moment.path.rpartition(".")[0] if is_one else moment.path].append(moment)
            elif is_end and not is_start:
                ranges[moment.call, moment.path].append(moment)
    for (call, path), moments in ranges.items():
        dates = [day for one in moments for day in one.dates[:1]]
        kind, values = _DAY, [_ordinal(day, year) for day in dates]
        if not dates:
            kind, values = "time of day", [float(one.minutes) for one in moments if one.minutes is not None]
        if len(values) == 2 == len(moments):
            yield Limit(kind, values[0], values[1], path, call)
        elif len(values) == 1 == len(moments) and not keys.LATEST_WORDS.isdisjoint(key_words(moments[0].key)):
            yield Limit(kind, None, values[0], path, call)


def _written(limit: Limit) -> str:
    ends = [f"{end:.10g}" for end in (limit.least, limit.most) if end is not None]
    return f"{' to '.join(ends)} {limit.dimension}".strip()
