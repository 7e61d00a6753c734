"""Names of agents and evaluations as people write them in data for rules: a name, or a glob."""

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

_TOKEN = re.compile(r"\*|\?|\[!?+.[^\]]*\]|.", re.DOTALL)
_NOTHING = "[^\\x00-\\x{10FFFF}]"


@dataclass(frozen=True, slots=True)
class NamePattern:
    """A name or a glob, with the meaning that it has in criteria files: case counts, `*`, `?`, `[abc]`."""

    text: str

    @property
    def is_exact(self) -> bool:
        """True when it has no wildcard and so means one name."""
        return not any(character in self.text for character in "*?[")

    @property
    def literal_characters(self) -> int:
        """How many characters stand for themselves: of two globs the one with more is more specific."""
        return sum(len(token) == 1 and token not in "*?" for token in _TOKEN.findall(self.text))

    def matches(self, name: str) -> bool:
        """Whether it means `name`."""
        return name == self.text or fnmatchcase(name, self.text)

    def regex(self) -> str:
        """The regular expression of Prometheus, which anchors it, that matches the same names."""
        tokens = [_token_regex(token) for token in _TOKEN.findall(self.text)]
        return f"(?s:{''.join(tokens)})"


def _token_regex(token: str) -> str:
    if token == "*":
        return ".*"
    if token == "?":
        return "."
    return _class_regex(token[1:-1]) if len(token) > 1 else re.escape(token)


def _class_regex(content: str) -> str:
    """A set in brackets; a range that ends before it begins holds nothing."""
    negated = content.startswith("!")
    left = content.removeprefix("!")
    members = ""
    while left:
        if len(left) > 2 and left[1] == "-":
            members += f"{re.escape(left[0])}-{re.escape(left[2])}" if left[0] <= left[2] else ""
            left = left[3:]
        else:
            members += re.escape(left[0])
            left = left[1:]
    if not members:
        return "." if negated else _NOTHING
    return f"[{'^' if negated else ''}{members}]"
