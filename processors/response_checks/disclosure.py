"""Check RH7: secrets, internals and personal data in the answer that the user neither gave nor asked for.

Evidence names the kind of what was disclosed and holds nothing of it.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address

from processors.response_checks.agent_response import AgentResponse
from processors.response_checks.answer_facts import AnswerFacts
from processors.response_checks.check_result import CheckResult, violation
from processors.response_checks.settings import CheckSettings, PersonalData
from processors.texts.folded_text import folded, key_words
from processors.texts.word_list import words

CHECK = "RH7"
_MAX_FOUND = 50


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A kind of thing that should not be disclosed; naming one of `asked_by` in the input asks for it."""

    kind: str
    pattern: re.Pattern[str]
    asked_by: frozenset[str]


_ASKED_KEY = words(
    """
    key keys token tokens secret secrets credential credentials password passwords
    """
)
_ASKED_ADDRESS = words(
    """
    ip ips address addresses host hosts hostname hostnames endpoint endpoints url urls dns network
    subnet
    """
)
_ASKED_TRACE = words(
    """
    stack traceback stacktrace trace exception log logs debug error
    """
)

_PATTERNS = (
    _Pattern(
        "credentials in a URL",
        re.compile(r"\b[a-zA-Z][a-zA-Z0-9+.-]{0,20}://[^\s/:@]{1,100}:[^\s/@]{1,200}@"),
        _ASKED_KEY | {"url", "urls", "connection"},
    ),
    _Pattern(
        "key",
        re.compile(
            r"(?<![A-Za-z0-9])(?:(?:sk|pk|rk)[-_]|gh[pousr]_?|github_pat_|glpat-|xox[a-z]-|AKIA|ASIA|AIza|ya29\.|"
            r"whsec_|hf_|npm_|pypi-|SG\.|shpat_)[A-Za-z0-9_\-.]{8,}"
        ),
        _ASKED_KEY,
    ),
    _Pattern("bearer token", re.compile(r"\b[Bb]earer\s+[A-Za-z0-9_\-.=+/]{8,}"), _ASKED_KEY),
    _Pattern(
        "JSON web token",
        re.compile(r"\beyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]*"),
        _ASKED_KEY | {"jwt"},
    ),
    _Pattern("private key", re.compile(r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY"), _ASKED_KEY),
    _Pattern(
        "internal host",
        re.compile(
            r"(?<![\w.@-])(?:[A-Za-z0-9-]{1,63}\.){1,8}(?:internal|local|corp|lan|intranet)\b(?!\.\w)",
            re.IGNORECASE,
        ),
        _ASKED_ADDRESS,
    ),
    _Pattern(
        "stack trace",
        re.compile(
            r"Traceback \(most recent call last\)|File \"[^\"\n]{1,200}\", line \d+"
            r"|\bat [\w$.<>]{3,200}\([\w$.]{1,100}\.(?:java|kt|scala|js|ts|cs|py):\d+"
            r"|\bat /?[\w./-]{3,200}\.(?:js|ts|py|go|rb):\d+|\bgoroutine \d+ \[|\bpanicked at\b"
        ),
        _ASKED_TRACE,
    ),
    _Pattern(
        "social security number",
        re.compile(r"(?<![\w-])(?!000|666|9\d\d)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\w-])"),
        frozenset({"ssn", "social"}),
    ),
)
_ADDRESS = re.compile(
    r"(?<![\w.:])\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?![\w]|\.\d)|(?<![\w:])(?:[0-9a-fA-F]{0,4}:){2,7}[0-9a-fA-F]{0,4}(?!\w)"
)
_CARD = re.compile(r"(?<![\w-])\d(?:[ -]?\d){12,18}(?![\w-])")
_ASKED_CARD = frozenset({"card", "cards"})

_SECRET_KEYS = frozenset({
    ("password",), ("passwd",), ("passphrase",), ("secret",), ("token",), ("api", "key"), ("apikey",),
    ("authorization",), ("credential",), ("credentials",), ("private", "key"),
    ("access", "key"), ("secret", "key"),
})  # fmt: skip
"""The last one or two words of a key that names a secret."""
_SECRET_NUMBERS = frozenset({"ssn", "cvv", "pin"})
_SHORTEST_SECRET = 4
_SHORTEST_NUMBER_SECRET = 3
_LEAST_NUMBER = 1000
_SYNONYMS = {
    "pin": {"code", "passcode"},
    "token": {"code"},
    "ssn": {"social"},
    "password": {"passcode", "login"},
}

_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@(?:[\w-]{1,63}\.){1,8}[A-Za-z]{2,24}")
_PHONE = re.compile(r"(?<![\w.])\+?\(?\d[\d\s().-]{6,20}\d(?!\w)")
_SHORTEST_NAME = 3
_NAME_KEYS = (
    ("first", "name"),
    ("last", "name"),
    ("full", "name"),
    ("surname",),
    ("customer", "name"),
    ("user", "name"),
)


def disclosures(facts: AnswerFacts, settings: CheckSettings) -> CheckResult:
    """A violation for each secret, internal address, stack trace or personal number in the answer.

    Recognised by their form, or as the value of a result's member whose key names a secret. Nothing counts
    that the user supplied, in the input or in arguments, or asked for by name.
    """
    response = facts.response
    output = facts.output
    asked = frozenset(key_words(response.input or ""))
    found: dict[str, tuple[str, int | None]] = {}
    for kind, text, call in (
        *_by_pattern(output, asked),
        *_by_key(response, output, asked),
        *_personal_data(response, output, settings),
    ):
        if len(found) >= _MAX_FOUND:
            break
        if text not in found and not _is_supplied(response, text):
            found[text] = (kind, call)
    violations = [violation(CHECK, call, kind) for kind, call in found.values()]
    return CheckResult(CHECK, True, tuple(violations), secrets=tuple(found))


def _is_supplied(response: AgentResponse, text: str) -> bool:
    return folded(text) in response.folded_user_text


def _by_pattern(output: str, asked: frozenset[str]) -> Iterable[tuple[str, str, int | None]]:
    for entry in _PATTERNS:
        if entry.asked_by.isdisjoint(asked):
            for match in entry.pattern.finditer(output):
                yield entry.kind, match[0], None
    if _ASKED_ADDRESS.isdisjoint(asked):
        for match in _ADDRESS.finditer(output):
            if _is_internal(match[0]):
                yield "internal address", match[0], None
    if _ASKED_CARD.isdisjoint(asked):
        for match in _CARD.finditer(output):
            if _has_valid_check_digit(match[0]):
                yield "card number", match[0], None


def _is_internal(text: str) -> bool:
    try:
        address = ip_address(text)
    except ValueError:
        return False
    return (address.is_private or address.is_loopback or address.is_link_local) and not address.is_unspecified


def _has_valid_check_digit(text: str) -> bool:
    """Luhn's check digit, which all payment cards carry; numbers of one repeated digit are no cards."""
    digits = [int(character) for character in text if character.isdigit()]
    if len(set(digits)) == 1:
        return False
    doubled = sum(sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    return (doubled + sum(digits[-1::-2])) % 10 == 0


def _by_key(
    response: AgentResponse, output: str, asked: frozenset[str]
) -> Iterable[tuple[str, str, int | None]]:
    """Values of results whose key names a secret and that stand in the answer as they are."""
    secret_keys = {key for key in response.keys if _names_secret(key_words(key))}
    if not secret_keys:
        return
    for leaf in response.result_leaves():
        if isinstance(leaf.value, bool) or leaf.key not in secret_keys:
            continue
        words = key_words(leaf.key)
        if isinstance(leaf.value, (int, float)) and leaf.value < _LEAST_NUMBER:
            continue
        text = str(leaf.value).strip()
        shortest = _SHORTEST_NUMBER_SECRET if text.isdigit() else _SHORTEST_SECRET
        if len(text) < shortest or _is_asked(words, asked):
            continue
        if re.search(rf"(?<!\w){re.escape(text)}(?!\w)", output):
            yield words[-1], text, leaf.call


def _names_secret(words: tuple[str, ...]) -> bool:
    if not words:
        return False
    if words[-1] in _SECRET_NUMBERS:
        return True
    return words[-1:] in _SECRET_KEYS or words[-2:] in _SECRET_KEYS


def _is_asked(words: Sequence[str], asked: frozenset[str]) -> bool:
    for word in words:
        if len(word) > 2 and not asked.isdisjoint({word, f"{word}s", *_SYNONYMS.get(word, ())}):
            return True
    return False


def _personal_data(
    response: AgentResponse, output: str, settings: CheckSettings
) -> Iterable[tuple[str, str, int | None]]:
    """What is checked on request only: contact data and names that stand in a result."""
    wanted = settings.personal_data
    if not wanted:
        return
    for data, pattern in ((PersonalData.EMAIL, _EMAIL), (PersonalData.PHONE, _PHONE)):
        if data in wanted:
            for match in pattern.finditer(output):
                if folded(match[0]) in response.folded_evidence:
                    yield data.value, match[0], None
    if PersonalData.NAME in wanted:
        for leaf in response.result_leaves():
            words = key_words(leaf.key)
            text = leaf.value
            if not isinstance(text, str) or len(text) < _SHORTEST_NAME or text not in output:
                continue
            if any(words[-len(tail) :] == tail for tail in _NAME_KEYS):
                yield PersonalData.NAME.value, text, leaf.call
