"""Names of agents and evaluations as people write them in data for rules, and their label matchers."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

Pair = tuple[str, str]
"""The names of an agent and of one of its evaluations."""

_AGENT, _EVALUATION = "gen_ai_agent_name", "gen_ai_evaluation_name"
_TOKEN = re.compile(r"\*|\?|\[!?+.[^\]]*\]|.", re.DOTALL)
_MEMBER = re.compile(r"(.)-(.)|.", re.DOTALL)
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
        return f"(?s:{''.join(map(_token_regex, _TOKEN.findall(self.text)))})"


def pattern_matchers(agent: NamePattern, evaluation: NamePattern) -> str:
    """Matchers, without braces, for what two patterns mean; empty where they mean everything."""
    both = ((_AGENT, agent), (_EVALUATION, evaluation))
    return ",".join(
        f"{label}={quoted(pattern.text)}" if pattern.is_exact else f"{label}=~{quoted(pattern.regex())}"
        for label, pattern in both
        if pattern.text != "*"
    )


def pair_matchers(pairs: Iterable[Pair]) -> list[str]:
    """Matchers, without braces, that together mean exactly `pairs`; as few as agents have sets in common."""
    by_agent: dict[str, set[str]] = {}
    for agent, evaluation in pairs:
        by_agent.setdefault(agent, set()).add(evaluation)
    agents_with: dict[tuple[str, ...], list[str]] = {}
    for agent in sorted(by_agent):
        agents_with.setdefault(tuple(sorted(by_agent[agent])), []).append(agent)
    return [
        f"{_any_name(_AGENT, agents)},{_any_name(_EVALUATION, evaluations)}"
        for evaluations, agents in agents_with.items()
    ]


def quoted(text: str) -> str:
    """`text` as a string of PromQL, which is one of YAML as well."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(map(_printable, escaped)) + '"'


def _token_regex(token: str) -> str:
    if token == "*":
        return ".*"
    if token == "?":
        return "."
    return _class_regex(token[1:-1]) if len(token) > 1 else re.escape(token)


def _class_regex(content: str) -> str:
    """A set in brackets; a range that ends before it begins holds nothing."""
    negated = content.startswith("!")
    members = ""
    for member in _MEMBER.finditer(content.removeprefix("!")):
        first, last = member.groups()
        if first is None:
            members += re.escape(member[0])
        elif first <= last:
            members += f"{re.escape(first)}-{re.escape(last)}"
    if not members:
        return "." if negated else _NOTHING
    return f"[{'^' if negated else ''}{members}]"


def _any_name(label: str, names: Iterable[str]) -> str:
    several = list(names)
    if len(several) == 1:
        return f"{label}={quoted(several[0])}"
    return f"{label}=~{quoted('|'.join(map(re.escape, several)))}"


def _printable(character: str) -> str:
    if character.isprintable():
        return character
    number = ord(character)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
