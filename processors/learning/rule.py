"""What good runs have in common: a rule that all of them keep, and the evaluations that rules make."""

import math
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import TypeAlias

from processors.model import JsonObject

RuleKey: TypeAlias = tuple[str, ...]
"""What a rule is about, without its numbers and values: the same rule has it in every part of the runs."""

PREFIX = "learned-"
"""The names of learned evaluations begin with it."""

CONFIDENCE = 0.95

_TOLERATED = 0.005


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that good runs have in common.

    The first part of the key names the evaluation that the rule belongs to, `part` is what it adds to it.
    `statement` is for people; the statements about one `subject` belong together. Of the `of` runs, `runs`
    could show it, and all but `broken` of these keep it. `weight` is how many more false alarms than others
    it may cost before it is given up.
    """

    key: RuleKey
    statement: str
    part: JsonObject
    runs: int
    of: int
    weight: float = 1.0
    subject: str = ""
    broken: int = 0

    @property
    def evidence(self) -> str:
        """How many runs show the rule, and the share that keeps it at least."""
        share = 1 - upper_bound(self.broken, self.runs)
        exceptions = f", but for {self.broken}" if self.broken else ""
        return f"{self.runs} of {self.of} runs{exceptions}; {math.floor(share * 1000) / 10:g} % sure"


def comments_of(rules: Iterable[Rule]) -> list[str]:
    """The rules with their evidence, for readers of a criteria file; those of one subject on one line."""
    lines: dict[tuple[str, str, str], list[str]] = {}
    for rule in rules:
        line = rule.subject, "" if rule.subject else rule.statement, rule.evidence
        lines.setdefault(line, []).append(rule.statement)
    return [
        f"- {f'{subject}: ' if subject else ''}{'; '.join(filter(None, statements))} ({evidence})"
        for (subject, _, evidence), statements in lines.items()
    ]


def tolerated(runs: int) -> int:
    """How many of `runs` may break a rule that all others keep: of many good runs, some are not."""
    return int(runs * _TOLERATED)


def upper_bound(hits: int, trials: int) -> float:
    """The upper bound of a rate of which `hits` in `trials` were seen, after Clopper and Pearson (1934).

    One-sided. 1 where there were no trials.
    """
    if hits >= trials:
        return 1.0
    low, high = hits / trials, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        if _at_most(hits, trials, middle) > 1 - CONFIDENCE:
            low = middle
        else:
            high = middle
    return high


def trials_needed(rate: float) -> int:
    """How many trials without a hit show that a rate is at most `rate`."""
    return math.ceil(math.log(1 - CONFIDENCE) / math.log1p(-rate)) if 0 < rate < 1 else 1


def _at_most(hits: int, trials: int, rate: float) -> float:
    """The probability of at most `hits` in `trials`."""
    if rate <= 0:
        return 1.0
    if rate >= 1:
        return 0.0
    return math.fsum(
        math.exp(
            math.lgamma(trials + 1)
            - math.lgamma(count + 1)
            - math.lgamma(trials - count + 1)
            + count * math.log(rate)
            + (trials - count) * math.log1p(-rate)
        )
        for count in range(hits + 1)
    )


def _merge(whole: JsonObject, part: JsonObject) -> None:
    """Add the members of `part` to those of `whole`; lists are joined."""
    for key, value in part.items():
        known = whole.get(key)
        if isinstance(known, dict) and isinstance(value, dict):
            _merge(known, value)
        elif isinstance(known, list) and isinstance(value, list):
            known += [item for item in value if item not in known]
        else:
            whole[key] = deepcopy(value)


_EVALUATORS: Mapping[str, str] = {
    "tools": "tool-permission",
    "calls": "tool-call-budget",
    "order": "tool-constraints",
    "results": "tool-constraints",
    "relations": "tool-constraints",
    "recovery": "tool-error-recovery",
    "repetition": "duplicate-side-effect",
    "arguments": "tool-args-schema",
    "sources": "tool-args-flow",
    "grounding": "tool-args-grounded",
    "duration": "run-duration",
    "tokens": "token-budget",
    "answer": "contains",
}
"""What holds the rules of a kind, which is the first part of their keys."""


def groups_of(rules: Iterable[Rule]) -> dict[str, list[Rule]]:
    """The rules by the name of the evaluation that they make together."""
    groups: dict[str, list[Rule]] = {}
    for rule in rules:
        name = PREFIX + rule.key[0]
        if rule.key[0] == "answer":  # it takes one text
            name += f"-{sum(other.startswith(name) for other in groups) + 1}"
        groups.setdefault(name, []).append(rule)
    return groups


def entry_of(name: str, rules: Sequence[Rule]) -> JsonObject:
    """The evaluation that `rules`, all of one kind, make, as it stands in a criteria file."""
    entry: JsonObject = {"evaluator": _EVALUATORS[rules[0].key[0]], "name": name}
    for rule in rules:
        _merge(entry, rule.part)
    return entry
