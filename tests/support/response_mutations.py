"""Sound answers made wrong on purpose: recall comes cheaply from them, precision never does."""

import re
from collections.abc import Iterator
from datetime import date, timedelta
from itertools import pairwise

from processors.response_handling.lexicon import detect
from processors.response_handling.reading import Token, reader

_UNITS = {
    "km": "miles",
    "kg": "lb",
    "kWh": "MWh",
    "GB": "MB",
    "MB": "GB",
    "ms": "s",
    "m": "km",
    "C": "°F",
    "mg": "g",
}
_CURRENCIES = {"€": "£", "$": "€", "£": "€", "zł": "€", "¥": "€", "₹": "€", "円": "ドル", "元": "美元"}


def mutations(output: str) -> Iterator[tuple[str, str]]:
    """Each kind of mutation that `output` allows, with the answer that it gives; the first place of each."""
    tokens = sorted(reader(detect(output).language).read(output), key=lambda token: token.start)
    done: set[str] = set()
    for token in tokens:
        for kind, text in _of_token(token, output):
            if kind not in done and text != token.text:
                done.add(kind)
                yield kind, output[: token.start] + text + output[token.end :]


def _of_token(token: Token, output: str) -> Iterator[tuple[str, str]]:
    written = output[token.start : token.end]
    if token.kind == "time":
        match = re.match(r"(\d{1,2})(:\d{2}.*)", written)
        if match:
            hour = int(match[1])
            yield "hour", f"{hour + 3 if hour < 9 else hour - 3}{match[2]}"
    elif token.kind == "date":
        year, month, day = token.dates[0]
        if day is not None:
            yield "date by a day", _with_day(written, date(year or 2024, month, day))
    elif token.kind == "number" and not token.is_spelled:
        digits = [place for place, character in enumerate(written) if character.isdigit()]
        if len(digits) >= 4 and token.scale == 1.0:
            for first, second in pairwise(digits):
                if (
                    written[first] != written[second]
                    and written[first] != "0"
                    and (first or written[second] != "0")
                ):
                    changed = [*written]
                    changed[first], changed[second] = written[second], written[first]
                    yield "transposed", "".join(changed)
                    break
            middle = digits[len(digits) // 2]
            yield "one digit", written[:middle] + str((int(written[middle]) + 4) % 10) + written[middle + 1 :]
        if token.unit:
            for unit, other in _UNITS.items():
                if written.endswith(unit) and token.values[0] > 12:
                    yield "unit", written.removesuffix(unit) + other
        for sign, other in _CURRENCIES.items():
            if (
                sign in output[max(0, token.start - 1) : token.end + 1]
                and token.currencies
                and sign in written
            ):
                yield "currency", written.replace(sign, other)


def _with_day(written: str, day: date) -> str:
    other = day + timedelta(days=1 if day.day < 28 else -1)
    plain = re.compile(rf"(?<!\d)0?{day.day}(?!\d)")
    if re.match(r"\d{4}", written):
        return (
            written[:8] + f"{other.day:02d}" + written[10:]
            if re.match(r"\d{4}-\d\d-\d\d", written)
            else written
        )
    return plain.sub(str(other.day), written, count=1)
