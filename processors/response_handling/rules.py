"""The rules of response handling: which there are, and all of them held against one response.

A rule is here if at least twice as many of its findings on runs of real models were right as wrong, or if it
guards against harm and is silent on sound runs. It gates if nine of ten were right.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, Literal

from processors.response_handling import disclosure, errors, numbers
from processors.response_handling.response import Finding, Response


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: its id, what it finds, and how far it has held.

    `right` and `wrong` are findings on runs of real models that were read by hand. `reads_content`: it needs
    the input, the answer and every result to be known.
    """

    id: str
    finds: str
    right: int
    wrong: int
    is_gating: bool = True
    reads_content: bool = True
    stability: Literal["stable", "beta"] = "stable"


RULES: Final = (
    Rule("RH1.2", "a number of the kind and size of the results that none supports", 62, 2, is_gating=False),
    Rule("RH1.7", "a wrong total, average, share or length, or a slip of a number of the results", 15, 0),
    Rule("RH3.1", "an invented e-mail address or URL", 0, 0),
    Rule("RH3.5", "an identifier that no evidence has", 1, 0),
    Rule("RH4", "an error neither made good nor admitted", 49, 0, reads_content=False),
    Rule("RH5", "a futile repetition", 15, 0, reads_content=False),
    Rule("RH6", "an argument error not corrected", 28, 1, reads_content=False),
    Rule("RH7.1", "a credential in the answer", 0, 0),
    Rule("RH7.2", "a stack trace, an internal host or address, a record marked confidential", 0, 0),
    Rule("RH9.a", "success claimed after an error", 13, 0, reads_content=False),
    Rule("RH15.1", "the text of a tool call in place of an answer", 15, 0, stability="beta"),
    Rule("RH15.2", "only a promise to act", 7, 0, is_gating=False, stability="beta"),
    Rule("RH15.3", "a notice of the program around the model", 0, 0, is_gating=False, stability="beta"),
    Rule("RH16", "a write that returned another value than given", 15, 0, is_gating=False, stability="beta"),
)
"""All rules in the order of their ids."""

RULE_IDS: Final = tuple(rule.id for rule in RULES)
REMOVED_RULES: Final = {
    rule: reason
    for reason, rules in {
        "it was wrong on runs of real models": "RH1.5 RH2.6 RH8 RH9.b RH9.e RH10 RH10.1 RH10.2 RH10.3 RH12 "
        "RH11 RH11.1 RH12.1 RH12.2 RH12.3 RH12.4 RH12.5 RH12.7 RH12.8 RH13 RH2 RH2.1",
        "it never applied on runs of real models": "RH2.3 RH2.5 RH7.3 RH9.c RH9.d RH11.2",
        "RH1.2 and RH1.7 cover its findings": "RH1.1 RH1.3 RH1.4 RH1.6",
        "RH3.5 covers its findings": "RH3.4",
        "it was wrong too often": "RH2.2 RH2.4 RH3.2 RH3.3 RH9.f RH12.6 RH14",
    }.items()
    for rule in rules.split()
}
"""Rules of earlier versions, which criteria may still name, and why they were removed."""

HIDDEN: Final = "[secret]"
"""What a finding shows in place of a secret."""

_SPACED = re.compile(r"\S{1,4096}")
_EDGES = ".,;:!?…\"'()[]{}<>`*"
_SHORTEST_PART, _PIECE = 3, 4
"""Words of so many characters may be parts of secrets; those that have so many in common hold parts."""

_CHECKS: Final[tuple[tuple[frozenset[str], Callable[[Response], Iterable[Finding]]], ...]] = (
    (frozenset({"RH1.2", "RH1.7"}), numbers.unsupported_numbers),
    (frozenset({"RH3.1"}), disclosure.invented_addresses),
    (frozenset({"RH3.5"}), disclosure.invented_identifiers),
    (frozenset({"RH4", "RH6", "RH9.a"}), errors.hidden_errors),
    (frozenset({"RH5", "RH6"}), errors.futile_repetitions),
    (frozenset({"RH7.1", "RH7.2"}), disclosure.disclosures),
    (frozenset({"RH15.1", "RH15.2", "RH15.3"}), errors.answers_that_are_none),
    (frozenset({"RH16"}), errors.contradicted_writes),
)


def group_of(rule: str) -> str:
    """The id of a rule without its part: `RH9` of `RH9.a`."""
    return rule.partition(".")[0]


def applicable_rules(response: Response) -> frozenset[str]:
    """The rules that can find something in what was captured, in the language of the answer."""
    has_failure = any(call.failure is not None for call in response.calls)
    return _applicable(response.is_captured, response.is_answered, bool(response.words.language), has_failure)


@cache
def _applicable(captured: bool, answered: bool, readable: bool, failed: bool) -> frozenset[str]:
    applicable = {rule.id for rule in RULES if not rule.reads_content or captured}
    if not readable:
        applicable.discard("RH9.a")
    if failed and not (readable and answered):
        applicable -= {"RH4", "RH9.a"}
    return frozenset(applicable)


def findings_of(response: Response, selected: frozenset[str]) -> list[Finding]:
    """What the `selected` rules find, in the order of their ids, each rule once at a path.

    Raises:
        OverLimitError: there is more evidence than can be checked in bounded time.
    """
    findings: dict[tuple[str, str, str], Finding] = {}
    for rules, check in _CHECKS:
        for finding in check(response) if not selected.isdisjoint(rules) else ():
            if finding.rule in selected:
                findings.setdefault((finding.rule, finding.path, finding.evidence), finding)
    if not findings:
        return []
    return without_secrets(sorted(findings.values(), key=lambda finding: RULE_IDS.index(finding.rule)))


def without_secrets(findings: list[Finding]) -> list[Finding]:
    """`findings` that repeat no secret that one of them has, and no part of one."""
    secrets = {finding.secret.casefold() for finding in findings if finding.secret}
    pieces = frozenset[str]().union(*map(_pieces, secrets))

    def hidden(text: str) -> str:
        return _SPACED.sub(shown, text)

    def shown(match: re.Match[str]) -> str:
        word = match[0].casefold()
        core = word.strip(_EDGES)
        is_part = len(core) >= _SHORTEST_PART and any(core in secret for secret in secrets)
        return HIDDEN if is_part or not pieces.isdisjoint(_pieces(word)) else match[0]

    return [
        one
        if one.secret or not secrets
        else replace(one, claim=hidden(one.claim), evidence=hidden(one.evidence))
        for one in findings
    ]


def _pieces(text: str) -> set[str]:
    return {text[start : start + _PIECE] for start in range(len(text) - _PIECE + 1)}
