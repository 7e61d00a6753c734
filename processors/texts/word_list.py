"""Word lists and patterns of words, written over several lines."""

import re


def words(text: str) -> frozenset[str]:
    """The words of `text`, which stand between white space."""
    return frozenset(text.split())


def word_pattern(pattern: str, flags: re.RegexFlag = re.IGNORECASE) -> re.Pattern[str]:
    """Matches one of the alternatives of `pattern` as whole words; line ends and indentation do not count."""
    alternatives = "".join(line.strip() for line in pattern.splitlines())
    return re.compile(rf"\b(?:{alternatives})\b", flags)
