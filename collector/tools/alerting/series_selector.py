"""Label matchers of PromQL that pick the series of agents and evaluations by name or pattern."""

import re
from collections.abc import Iterable

from collector.tools.alerting.name_pattern import NamePattern

Pair = tuple[str, str]
"""The names of an agent and of one of its evaluations."""

_AGENT, _EVALUATION = "gen_ai_agent_name", "gen_ai_evaluation_name"


def quoted(text: str) -> str:
    """`text` as a string of PromQL, which is one of YAML as well."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(map(_printable, escaped)) + '"'


def pattern_matchers(agent: NamePattern, evaluation: NamePattern) -> str:
    """Matchers, without braces, for what two patterns mean; empty where they mean everything."""
    both = ((_AGENT, agent), (_EVALUATION, evaluation))
    return ",".join(_matcher(label, pattern) for label, pattern in both if pattern.text != "*")


def pair_matchers(pairs: Iterable[Pair]) -> list[str]:
    """Matchers, without braces, that together mean exactly `pairs`; as few as agents have sets in common."""
    by_agent: dict[str, set[str]] = {}
    for agent, evaluation in pairs:
        by_agent.setdefault(agent, set()).add(evaluation)
    agents_with: dict[tuple[str, ...], list[str]] = {}
    for agent in sorted(by_agent):
        agents_with.setdefault(tuple(sorted(by_agent[agent])), []).append(agent)
    return [
        f"{_any_of(_AGENT, agents)},{_any_of(_EVALUATION, evaluations)}"
        for evaluations, agents in agents_with.items()
    ]


def _matcher(label: str, pattern: NamePattern) -> str:
    operator, value = ("=", pattern.text) if pattern.is_exact else ("=~", pattern.regex())
    return f"{label}{operator}{quoted(value)}"


def _any_of(label: str, names: Iterable[str]) -> str:
    several = list(names)
    if len(several) == 1:
        return f"{label}={quoted(several[0])}"
    return f"{label}=~{quoted('|'.join(map(re.escape, several)))}"


def _printable(character: str) -> str:
    if character.isprintable():
        return character
    number = ord(character)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
