"""What an answer states that can be looked up: numbers, dates, times, addresses, identifiers.

Each piece of the answer is read as one kind only: an address is no identifier, an identifier no number.
"""

import re
from functools import cached_property
from itertools import pairwise

from processors.response_checks.agent_response import AgentResponse
from processors.response_checks.evidence_moments import EvidenceMoments
from processors.response_checks.evidence_numbers import EvidenceNumbers
from processors.response_checks.number_support import HOURS, MINUTES, NumberSupport
from processors.texts.english import NEGATION, is_english
from processors.texts.folded_text import blanked, key_words
from processors.texts.identifiers import identifiers
from processors.texts.moments import Written, written_moments
from processors.texts.number_tokens import NumberToken, number_tokens
from processors.texts.spelled_numbers import spelled_numbers
from processors.texts.state_words import BAD_WORDS, GOOD_WORDS, state_stem

MAX_STATED_NUMBERS = 200
"""Numbers of an answer that are looked up; later ones are not checked."""
MAX_STATED_MOMENTS = 100
"""Dates and times of an answer that are looked up; later ones are not checked."""

_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@(?:[\w-]{1,63}\.){1,8}[A-Za-z]{2,24}")
_URL = re.compile(r"(?:https?://|\bwww\.)[^\s<>()\[\]\"'`|]+", re.IGNORECASE)
_LIST_MARK = re.compile(r"^[ \t]*(?:[-*\u2022][ \t]+)?\(?\d{1,3}[.)](?=\s)", re.MULTILINE)
_ORDINAL = re.compile(r"(?<!\w)\d+(?:st|nd|rd|th)\b|(?<![\w/])24/7(?![\w/])")
_PHONE = re.compile(r"(?<![\w.])\+?\(?\d[\d\s().\-\u2013]{5,24}\d(?!\w)")
_RATIO = re.compile(r"\b(?:average|mean|per|each|ratio|times as)\b", re.IGNORECASE)
_NAME_NUMBER = re.compile(r"\b[a-z]?[A-Z][A-Za-z]+ (?P<number>[A-Z]?\d+[A-Za-z]?) [A-Z][a-z]+")
_FEWEST_PHONE_DIGITS = 7
_LONGEST_JOIN = 12
_NOT_DIGIT = re.compile(r"\D+")


class AnswerFacts:
    """The facts of one answer; each is read when it is first asked for."""

    def __init__(self, response: AgentResponse) -> None:
        self.response = response
        self.output = response.output or ""

    @cached_property
    def is_english(self) -> bool:
        """Whether the English word lists cover the answer; without an answer they do not."""
        return self.response.output is not None and is_english(self.output)

    @cached_property
    def stems(self) -> frozenset[str]:
        """The stems of the answer's words."""
        return frozenset(map(state_stem, key_words(self.output)))

    @cached_property
    def is_negated(self) -> bool:
        """Whether the answer turns anything into its opposite."""
        return NEGATION.search(self.output) is not None

    @cached_property
    def has_good_words(self) -> bool:
        """Whether the answer says that all is well."""
        return GOOD_WORDS.search(self.output) is not None

    @cached_property
    def has_bad_words(self) -> bool:
        """Whether the answer says that something is wrong."""
        return BAD_WORDS.search(self.output) is not None

    @cached_property
    def addresses(self) -> list[tuple[int, int, str]]:
        """E-mail addresses and URLs: start, end, text."""
        found = [(match.start(), match.end(), match[0]) for match in _EMAIL.finditer(self.output)]
        for match in _URL.finditer(self.output):
            text = match[0].rstrip(".,;:!?*_")
            found.append((match.start(), match.start() + len(text), text))
        return found

    @cached_property
    def moments(self) -> list[Written]:
        """Dates and times."""
        return self._all_moments[:MAX_STATED_MOMENTS]

    @cached_property
    def _all_moments(self) -> list[Written]:
        return written_moments(self._without_addresses)

    @cached_property
    def identifiers(self) -> list[tuple[int, int, str]]:
        """Tokens of letters and digits that name a thing: start, end, text."""
        in_names = {match.start("number") for match in self._numbers_in_names}
        return [found for found in self._identifiers if found[0] not in in_names]

    @cached_property
    def _identifiers(self) -> list[tuple[int, int, str]]:
        return identifiers(self.text_without_moments)

    @cached_property
    def numbers(self) -> list[NumberToken]:
        """Numbers that are no part of anything else."""
        text = blanked(
            self.text_without_moments,
            [(start, end) for start, end, _ in self._identifiers],
        )
        spans = [match.span("number") for match in self._numbers_in_names]
        spans.extend(match.span() for match in _LIST_MARK.finditer(text))
        spans.extend(match.span() for match in _ORDINAL.finditer(text))
        spans.extend((start, end) for start, end, _ in self.phone_numbers)
        return number_tokens(blanked(text, spans))[:MAX_STATED_NUMBERS]

    @cached_property
    def phone_numbers(self) -> list[tuple[int, int, str]]:
        """Phone-like runs whose digits stand in the evidence: start, end, digits."""
        found = []
        for match in _PHONE.finditer(self.text_without_moments):
            digits = _NOT_DIGIT.sub("", match[0])
            if len(digits) >= _FEWEST_PHONE_DIGITS and digits in self._evidence_digits:
                found.append((match.start(), match.end(), digits))
        return found

    @cached_property
    def evidence_numbers(self) -> EvidenceNumbers:
        """The numbers of the evidence."""
        return EvidenceNumbers(self.response)

    @cached_property
    def evidence_moments(self) -> EvidenceMoments:
        """The dates and times of the evidence."""
        return EvidenceMoments(self.response)

    @cached_property
    def support(self) -> NumberSupport:
        """The look-up of stated numbers."""
        user = self.response.user_text
        factors: list[float] = [
            reading.value for token in number_tokens(user[:4096]) for reading in token.readings
        ]
        factors.extend(spelled_numbers(user[:4096]))
        factors.extend(spelled_numbers(self.output))
        moments = self.evidence_moments
        return NumberSupport(
            self.evidence_numbers,
            factors,
            moments.gaps_in_minutes(),
            moments.calls,
            allows_ratios=_RATIO.search(user[:4096]) is not None or _RATIO.search(self.output) is not None,
        )

    @cached_property
    def number_calls(self) -> list[tuple[NumberToken, set[int] | None]]:
        """Each number with the calls that support it, None where nothing does."""
        durations = self._durations
        return [
            (token, durations[token.start] if token.start in durations else self.support.calls(token))
            for token in self.numbers
        ]

    @cached_property
    def _durations(self) -> dict[int, set[int]]:
        """Where the tokens of supported lengths such as `2 hours 5 minutes` begin, with their calls."""
        found: dict[int, set[int]] = {}
        for first, second in pairwise(self.numbers):
            if first.unit is None or second.unit is None or second.start - first.end > _LONGEST_JOIN:
                continue
            if (first.unit.factors, second.unit.factors) != (HOURS.factors, MINUTES.factors):
                continue
            minutes = first.readings[0].value * 60 + second.readings[0].value
            calls = self.support.duration(minutes)
            if calls is not None:
                found[first.start] = found[second.start] = calls
        return found

    @cached_property
    def _without_addresses(self) -> str:
        return blanked(self.output, [(start, end) for start, end, _ in self.addresses])

    @cached_property
    def text_without_moments(self) -> str:
        """The answer with blanks for its addresses, dates and times; positions stay."""
        return blanked(self._without_addresses, [(moment.start, moment.end) for moment in self._all_moments])

    @cached_property
    def _numbers_in_names(self) -> "list[re.Match[str]]":
        """Numbers between two capitalised words: parts of a proper name such as that of a product."""
        return list(_NAME_NUMBER.finditer(self.text_without_moments))

    @cached_property
    def _evidence_digits(self) -> str:
        return "\0".join(_NOT_DIGIT.sub("", text) for text in self.response.evidence_texts)
