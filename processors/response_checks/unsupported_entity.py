"""Check RH3: addresses, identifiers and names in the answer that occur nowhere in the evidence."""

import re

from processors.response_checks.agent_response import AgentResponse
from processors.response_checks.answer_facts import AnswerFacts
from processors.response_checks.check_result import CheckResult, applied, not_applicable, violation
from processors.response_checks.known_names import NAMES_OF_CODES
from processors.response_checks.settings import CheckSettings
from processors.texts.folded_text import folded

ADDRESSES = "RH3.1"
IDENTIFIERS = "RH3.2"
NAMES = "RH3.3"
_MAX_CHECKED = 200

_SCHEME = re.compile(r"^(?:https?://)?(?:www\.)?", re.IGNORECASE)
_WORD = r"[A-Z][A-Za-z\u00c0-\u024f]*(?:['\u2019-][A-Za-z\u00c0-\u024f]+)*|[a-z]{1,2}[A-Z][a-z]+"
_RUN = re.compile(rf"(?<![\w'\u2019-])(?:{_WORD})(?: (?:{_WORD}|[A-Z]?\d+[A-Za-z]?(?= [A-Z])))+(?![\w])")
_SENTENCE_START = re.compile(
    r"(?:^|[.!?:;\u2013\u2014|*_#>\"\u201c(\[\n\r\t\u2022-]\s*|\n\s*(?:\d+[.)]\s*)?)$"
)
_SHORTEST_NAME_WORD = 2
_VERSION = re.compile(r"[vV](\d.*)")


def unsupported_addresses(facts: AnswerFacts, settings: CheckSettings) -> CheckResult:
    """RH3.1: e-mail addresses and URLs that the evidence does not hold."""
    found = [
        violation(ADDRESSES, None, f"not in the evidence: {text}")
        for _, _, text in facts.addresses[:_MAX_CHECKED]
        if folded(_SCHEME.sub("", text).rstrip("/")) not in facts.response.folded_evidence
    ]
    return applied(ADDRESSES, found)


def unsupported_identifiers(facts: AnswerFacts, settings: CheckSettings) -> CheckResult:
    """RH3.2: tokens of letters and digits that the evidence does not hold."""
    found = []
    for _, _, text in facts.identifiers[:_MAX_CHECKED]:
        evidence = facts.response.folded_evidence
        version = _VERSION.fullmatch(text)
        if folded(text) in evidence or (version is not None and folded(version[1]) in evidence):
            continue
        found.append(violation(IDENTIFIERS, None, f"not in the evidence: {text}"))
    return applied(IDENTIFIERS, found)


def unsupported_names(facts: AnswerFacts, settings: CheckSettings) -> CheckResult:
    """RH3.3: runs of capitalised words within a sentence of which no word occurs in the evidence.

    A name is also supported by its initials and by the code that stands for it (airports, countries, states).
    Languages that capitalise differently are not judged.
    """
    output = facts.text_without_moments
    if not facts.is_english:
        return not_applicable(NAMES)
    response = facts.response
    found = []
    for count, match in enumerate(_RUN.finditer(output)):
        if count >= _MAX_CHECKED:
            break
        names = match[0].split()
        if _SENTENCE_START.search(output, max(0, match.start() - 12), match.start()):
            names = names[1:]
        if len(names) < 2 or _is_heading(output, match.start(), match.end()):
            continue
        evidence = response.folded_evidence
        if any(len(name) >= _SHORTEST_NAME_WORD and folded(name) in evidence for name in names):
            continue
        initials = "".join(name[0] for name in names).lower()
        if initials in response.evidence_words or _is_expansion(names, response):
            continue
        found.append(violation(NAMES, None, f"not in the evidence: {' '.join(names)}"))
    return applied(NAMES, found)


def _is_expansion(names: list[str], response: AgentResponse) -> bool:
    """Whether some word of a name belongs to what a code in the evidence stands for."""
    meant = {
        word for code in response.codes for known in NAMES_OF_CODES.get(code, ()) for word in known.split()
    }
    return not meant.isdisjoint(name.casefold() for name in names)


def _is_heading(output: str, start: int, end: int) -> bool:
    """Whether the run is all of its line, as titles are."""
    line_start = output.rfind("\n", 0, start) + 1
    line_end = output.find("\n", end)
    line = output[line_start : line_end if line_end >= 0 else len(output)]
    return line.strip(" \t*#_:-") == output[start:end] and len(output) > len(line)
