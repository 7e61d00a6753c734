"""What an unquoted YAML scalar means: null, a boolean, a number, or the text as it stands.

YAML 1.1 as most readers take it, and every JSON number. It departs from YAML 1.1 where that would change
what people mean: dates, times and other things with colons stay texts, and a number with a leading zero
(octal in one YAML, decimal in the other) is refused.
"""

import math
import re

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS = {
    spelling: value
    for word, value in (
        ("yes", True),
        ("true", True),
        ("on", True),
        ("no", False),
        ("false", False),
        ("off", False),
    )
    for spelling in (word, word.capitalize(), word.upper())
}
_NUMBER_START = frozenset("+-.0123456789")
_DECIMAL = re.compile(r"[-+]?(?:0|[1-9][0-9_]*)\Z")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9_]+\Z")
_OTHER_BASE = re.compile(r"[-+]?0(?:x[0-9a-fA-F_]+|b[01_]+)\Z")
_FLOAT = re.compile(
    r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*|(?:0|[1-9][0-9]*)(?=[eE]))(?:[eE][-+]?[0-9]+)?\Z"
)
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)\Z|\.(?:nan|NaN|NAN)\Z")


def plain_scalar(text: str) -> str | int | float | bool | None:
    """The value of the unquoted scalar `text`.

    Raises:
        ValueError: the number is not finite, too long, or has a leading zero.
    """
    if text in _NULL:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if text[0] not in _NUMBER_START:
        return text
    if _DECIMAL.match(text):
        return _whole_number(text, 10)
    if _OTHER_BASE.match(text):
        return _whole_number(text, 0)
    if _LEADING_ZERO.match(text):
        raise ValueError("a number with a leading zero could be octal: write it without, or put it in quotes")
    if _FLOAT.match(text):
        number = float(text.replace("_", ""))
        if math.isfinite(number):
            return number
        raise ValueError("the number is too large")
    if _NOT_FINITE.match(text):
        raise ValueError("infinity and not-a-number are not allowed; put a text in quotes")
    return text


def _whole_number(text: str, base: int) -> int:
    try:
        return int(text.replace("_", ""), base)
    except ValueError:  # more digits than Python reads, or none: 0x_
        raise ValueError("the number cannot be read; put a text in quotes") from None
