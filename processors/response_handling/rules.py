"""The rules of response handling: which there are, and all of them held against one response."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from processors.response_handling import (
    completeness,
    counts,
    dates,
    disclosure,
    errors,
    fields,
    names,
    numbers,
    reckoning,
    rows,
    states,
)
from processors.response_handling.response import Finding, Response, Settings


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: its id, what it finds, whether it needs all content, and whether it gates."""

    id: str
    finds: str
    reads_content: bool = True
    is_gating: bool = False


RULES: Final = (
    Rule("RH1.1", "a long number that is a slip of one of the results", is_gating=True),
    Rule("RH1.2", "a number that no evidence supports"),
    Rule("RH1.5", "a count of rows that the rows do not give", is_gating=True),
    Rule("RH1.7", "a wrong total, average, share, length or short number", is_gating=True),
    Rule("RH2.1", "a date that no evidence supports"),
    Rule("RH2.3", "a weekday that its date does not have", is_gating=True),
    Rule("RH2.5", "a date that is a slip of one of the results", is_gating=True),
    Rule("RH2.6", "a time of day that is a slip of one of the results", is_gating=True),
    Rule("RH3.1", "an invented address, URL, person or organisation", is_gating=True),
    Rule("RH3.4", "an identifier that is a slip of one of the results", is_gating=True),
    Rule("RH3.5", "an identifier that no evidence has", is_gating=True),
    Rule("RH4", "an error hidden or not retried", reads_content=False, is_gating=True),
    Rule("RH5", "a futile repetition", reads_content=False, is_gating=True),
    Rule("RH6", "an argument error not corrected", reads_content=False, is_gating=True),
    Rule("RH7.1", "a credential in the answer", is_gating=True),
    Rule("RH7.2", "a stack trace, an internal host or address, a record marked confidential", is_gating=True),
    Rule("RH7.3", "data of a person that nobody asked for", is_gating=True),
    Rule("RH8", "a result ignored"),
    Rule("RH9.a", "success claimed after an error", is_gating=True),
    Rule("RH9.b", "a state told as done that is not, or as its opposite", is_gating=True),
    Rule("RH9.c", "a flag reversed", is_gating=True),
    Rule("RH9.d", "a trend reversed", is_gating=True),
    Rule("RH9.e", "a prohibition or denial of a result told without its negation", is_gating=True),
    Rule("RH10.1", "values of two rows that changed places", is_gating=True),
    Rule("RH10.2", "a value of another row than the one named, whose own is told nowhere", is_gating=True),
    Rule("RH10.3", "a number of another member, whose own is told nowhere"),
    Rule("RH11.1", "the digits of a result with another unit", is_gating=True),
    Rule("RH11.2", "an amount in a currency that no evidence, or not its row, has", is_gating=True),
    Rule("RH12.1", "a partial failure told as a whole success", is_gating=True),
    Rule("RH12.2", "a first page taken for everything", is_gating=True),
    Rule("RH12.3", "a dry run told as done", is_gating=True),
    Rule("RH12.4", "a value that a later call replaced", is_gating=True),
    Rule("RH12.5", "a number or a name where the result has null", is_gating=True),
    Rule("RH12.7", "told of all what holds for some", is_gating=True),
    Rule("RH12.8", "an empty result told as if something had been found", is_gating=True),
    Rule("RH13", "told as not known though a result has it"),
)
"""All rules in the order of their ids."""

HIDDEN: Final = "[secret]"
"""What a finding shows in place of a secret."""

_SPACED = re.compile(r"\S{1,4096}")
_EDGES = ".,;:!?…\"'()[]{}<>`*"
_SHORTEST_PART, _PIECE = 3, 4
"""Words of so many characters may be parts of secrets; those that have so many in common hold parts."""
RULE_IDS: Final = tuple(rule.id for rule in RULES)
_ORDER: Final = {rule: number for number, rule in enumerate(RULE_IDS)}
_OF_WORDS: Final = frozenset(
    {
        "RH1.5",
        "RH9.a",
        "RH9.b",
        "RH9.c",
        "RH9.d",
        "RH9.e",
        "RH12.1",
        "RH12.3",
        "RH12.7",
        "RH12.8",
        "RH13",
    }
)
"""Rules that read the words of an answer, and so need a lexicon."""

_Check = Callable[[Response, Settings], Iterable[Finding]]


def _plain(check: Callable[[Response], Iterable[Finding]]) -> _Check:
    return lambda response, _: check(response)


_CHECKS: Final[tuple[tuple[str, _Check], ...]] = (
    ("RH1.1 RH1.2 RH1.7 RH11.1", _plain(reckoning.unsupported_numbers)),
    ("RH1.5", _plain(counts.wrong_counts)),
    ("RH2.1 RH2.3 RH2.5 RH2.6", _plain(dates.unsupported_dates)),
    ("RH3.1", _plain(disclosure.invented_entities)),
    ("RH3.1", _plain(names.invented_names)),
    ("RH3.4", _plain(disclosure.slipped_identifiers)),
    ("RH3.5", _plain(numbers.invented_identifiers)),
    ("RH4 RH6 RH9.a", errors.hidden_errors),
    ("RH5 RH6", errors.futile_repetitions),
    ("RH7.1 RH7.2 RH7.3", lambda one, settings: disclosure.disclosures(one, settings.personal_data)),
    ("RH8", _plain(completeness.ignored_results)),
    ("RH9.b RH12.1", _plain(states.reversed_states)),
    ("RH9.c", _plain(states.reversed_flags)),
    ("RH9.c", _plain(states.undone_actions)),
    ("RH9.c", _plain(states.undone_counts)),
    ("RH9.c", _plain(states.denied_things)),
    ("RH9.d", _plain(states.reversed_trends)),
    ("RH9.e", _plain(states.unheard_negations)),
    ("RH10.1 RH10.2", _plain(rows.wrong_rows)),
    ("RH10.3", _plain(fields.wrong_fields)),
    ("RH11.2", _plain(numbers.wrong_currencies)),
    ("RH12.1", _plain(completeness.partial_failures)),
    ("RH12.1", _plain(completeness.failed_rows)),
    ("RH12.2", _plain(completeness.first_pages)),
    ("RH12.3", _plain(completeness.dry_runs)),
    ("RH12.4", _plain(completeness.replaced_values)),
    ("RH12.5", _plain(completeness.null_values)),
    ("RH12.7", _plain(completeness.all_for_some)),
    ("RH12.8", _plain(completeness.empty_results)),
    ("RH13", _plain(completeness.denied_results)),
)
_RULES_OF_CHECKS: Final = tuple((frozenset(rules.split()), check) for rules, check in _CHECKS)


def group_of(rule: str) -> str:
    """The id of a rule without its part: `RH9` of `RH9.a`."""
    return rule.partition(".")[0]


def applicable_rules(response: Response) -> frozenset[str]:
    """The rules that can say something about what was captured, in the language of the answer."""
    found = {rule.id for rule in RULES if not rule.reads_content or response.is_captured}
    if not response.words.language:
        found -= _OF_WORDS
    if any(call.failure is not None for call in response.calls):
        if not (response.words.language and response.is_answered):
            found -= {"RH4", "RH9.a"}
    return frozenset(found)


def findings_of(response: Response, settings: Settings, wanted: frozenset[str]) -> list[Finding]:
    """What the `wanted` rules find, in the order of their ids, each rule once at a path."""
    found: dict[tuple[str, str, str], Finding] = {}
    for finding in _all_findings(response, settings, wanted):
        found.setdefault((finding.rule, finding.path, finding.evidence), finding)
    return without_secrets(sorted(found.values(), key=lambda finding: _ORDER[finding.rule]))


def _all_findings(response: Response, settings: Settings, wanted: frozenset[str]) -> Iterator[Finding]:
    for rules, check in _RULES_OF_CHECKS:
        if not wanted.isdisjoint(rules):
            yield from (finding for finding in check(response, settings) if finding.rule in wanted)


def without_secrets(findings: list[Finding]) -> list[Finding]:
    """`findings` that repeat no secret that one of them found, and no part of one."""
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
