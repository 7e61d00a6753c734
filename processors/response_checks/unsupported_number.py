"""Check RH1: numbers in the answer that nothing in the evidence supports."""

from collections.abc import Sequence

from processors.response_checks.agent_response import FROM_USER
from processors.response_checks.answer_facts import AnswerFacts
from processors.response_checks.check_result import CheckResult, Violation, applied, violation
from processors.response_checks.evidence_numbers import EvidenceNumber
from processors.response_checks.misplaced_number import misplaced_numbers
from processors.response_checks.settings import CheckSettings
from processors.texts.folded_text import key_words, singular
from processors.texts.number_tokens import NumberToken
from processors.texts.units import Unit

CHECK = "RH1"
_SMALL = 10
_CONSTANTS = frozenset(
    {(24.0, "hours"), (24.0, "hour"), (60.0, "minutes"), (60.0, "seconds"), (365.0, "days"), (366.0, "days"),
     (52.0, "weeks"), (12.0, "months"), (1000.0, "meters"), (100.0, "cm"), (1024.0, "bytes")}
)  # fmt: skip
_HIDING_WORDS = ("ending", "ends", "last", "x", "*", "•")
_SHORT_WORD = 3


def unsupported_numbers(facts: AnswerFacts, settings: CheckSettings) -> CheckResult:
    """Violations for numbers without support, under a wrong unit, or said of another thing.

    Whole numbers up to 10 are too common to be looked up, except where one number of the results has the
    word or the dimension that stands beside them, and with a currency, percent or degree sign.
    """
    found: list[Violation] = []
    for token, calls in facts.number_calls:
        if _is_constant(token) or _is_tail(facts, token):
            continue
        if calls is None:
            if not _is_small(token) or _contradicts_key(facts, token):
                found.append(violation(CHECK, None, f"not in the evidence: {_shown(token)}"))
        elif (known := _wrong_unit(facts, token)) is not None:
            found.append(violation(CHECK, _call(known), f"given in another unit: {_shown(token)}"))
    found.extend(misplaced_numbers(CHECK, facts))
    return applied(CHECK, found)


def _is_small(token: NumberToken) -> bool:
    return token.is_bare and all(
        reading.decimals == 0 and reading.magnitude <= _SMALL for reading in token.readings
    )


def _is_constant(token: NumberToken) -> bool:
    """Whether everybody knows the number: the hours of a day, the days of a year."""
    return any((reading.value, token.word) in _CONSTANTS for reading in token.readings)


def _is_tail(facts: AnswerFacts, token: NumberToken) -> bool:
    """Whether the token is the visible end of a longer number, as in "card ending in 4242"."""
    if len(token.text) != 4 or not token.text.isdigit():
        return False
    before = facts.output[max(0, token.start - 20) : token.start].lower()
    if not any(word in before for word in _HIDING_WORDS):
        return False
    return any(text.rstrip().endswith(token.text) for text in facts.response.evidence_texts)


def _contradicts_key(facts: AnswerFacts, token: NumberToken) -> bool:
    """Whether the results hold just one number of the word or the dimension that stands with a small one."""
    meant = facts.evidence_numbers.values_by_meaning
    values: set[float] = set()
    for word in _neighbours(facts.output, token):
        if len(word) > _SHORT_WORD:
            values |= meant.get(word, set())
    if token.unit is not None:
        values |= meant.get(token.unit.dimension, set())
    return len(values) == 1


def _neighbours(output: str, token: NumberToken) -> list[str]:
    before = key_words(output[max(0, token.start - 30) : token.start])[-1:]
    after = key_words(output[token.end : token.end + 40])[:2]
    return [singular(word) for word in (*before, *after)]


def _wrong_unit(facts: AnswerFacts, token: NumberToken) -> EvidenceNumber | None:
    """The number that the token repeats under a unit, scale or currency other than the only one known."""
    sources = [
        number
        for number in facts.support.written(token)
        if FROM_USER not in number.calls and number.is_written
    ]
    if not sources or len(sources) != len(facts.support.written(token)):
        return None
    if token.temperature:
        scales = {number.temperature for number in sources}
        return sources[0] if len(scales) == 1 and scales.isdisjoint({None, token.temperature}) else None
    if token.unit is not None:
        return sources[0] if _is_other_unit(token.unit, sources) else None
    if token.currencies:
        known = facts.evidence_numbers.currencies
        if len(known) == 1 and known.isdisjoint(token.currencies):
            return sources[0]
    return None


def _is_other_unit(unit: Unit, sources: Sequence[EvidenceNumber]) -> bool:
    for number in sources:
        known = number.unit
        if (
            known is None
            or known.is_ambiguous
            or known.dimension != unit.dimension
            or known.factors == unit.factors
        ):
            return False
    return True


def _call(number: EvidenceNumber) -> int | None:
    return min(number.calls) if len(number.calls) == 1 else None


def _shown(token: NumberToken) -> str:
    """The number with its word only: what stands around it could be a secret."""
    sign = "%" if token.is_percent else ""
    return f"{token.text}{sign} {token.word}".rstrip()
