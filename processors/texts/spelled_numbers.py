"""Numbers written as English words."""

import re
from typing import Final

_WORDS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",
)  # fmt: skip
_TENS = {"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90}

SPELLED_NUMBERS: Final = {
    **{word: number for number, word in enumerate(_WORDS)},
    **_TENS,
    "dozen": 12,
    "hundred": 100,
    "once": 1,
    "twice": 2,
    "both": 2,
    "double": 2,
}
"""The value of each number word."""

_OPEN = frozenset({20, *_TENS.values()})
# In one case only: ignoring case takes four times as long.
_PATTERN = re.compile(rf"\b(?:{'|'.join(SPELLED_NUMBERS)})\b")


def spelled_numbers(text: str) -> list[int]:
    """The values of the number words of `text`, in order; compounds such as forty-two are read as one."""
    found: list[int] = []
    end = -2
    for match in _PATTERN.finditer(text.lower()):
        value = SPELLED_NUMBERS[match[0]]
        if found and match.start() == end + 1 and found[-1] in _OPEN and 0 < value < 10:
            found[-1] += value
        else:
            found.append(value)
        end = match.end()
    return found
