"""Masks: what redaction leaves in place of a value, or of a part of a text.

Senders and Collectors mask values, in whole or in part. What a mask hides is
unknown: it neither equals nor differs. Comparisons are therefore of three values: True and False
where the known part decides, None where the masked part does.

Known forms: `[REDACTED]` with its kin in brackets (OpenInference, Mastra, LangSmith, LangChain's
`[REDACTED_EMAIL]`, Logfire's `[Scrubbed due to 'password']`, `[MASKED]`, `[Filtered]`), Presidio's entities
such as `<PERSON>`, and runs of asterisks: four or more anywhere (the Collector's redaction processor writes
`****` for each match), three as a word of their own. A run on a line of its own in a longer text is a rule of
Markdown. Where a text was cut, a mark such as `...[truncated, original 90000 chars]` (VS Code) or, at its
end, `[TRUNCATED - Content exceeds 60KB limit]` (Claude Code) hides what is missing. `<not serializable>`
(Google ADK, Langfuse), `<replaced>` (Strands) and `[object Object]` (JavaScript) stand for what an encoder
could not write. A value that is as a whole the hex digest of MD5, SHA-1, SHA-256 or SHA-512 (the Collector's
`hash`) may be one of a hidden value: it is masked where it is not what is expected, unless a digest of that
length is. `NaN`, `Infinity` and `-Infinity` as a whole value show no more of it than a mask.
"""

import re
from collections.abc import Iterator

from processors.model.json_values import JsonValue

REDACTION_MARKERS: frozenset[str] = frozenset(
    {
        "__REDACTED__", "<REDACTED>", "[REDACTED]", "REDACTED", "<redacted>", "[redacted]",
        "HIDDEN:non-empty", '{"omitted":true}', "****", "<replaced>",
        "[object Object]",
    }
)  # fmt: skip
"""What redacting instrumentations and Collectors leave in place of a whole value."""

_WORDS = (
    "redacted", "masked", "filtered", "hidden", "scrubbed due to", "sensitive data", "not serializable",
)  # fmt: skip
_ENTITIES = (
    "PERSON", "EMAIL_ADDRESS", "PHONE_NUMBER", "CREDIT_CARD", "IBAN_CODE", "IP_ADDRESS", "LOCATION",
    "DATE_TIME", "NRP", "URL", "CRYPTO", "MEDICAL_LICENSE", "US_SSN", "US_BANK_NUMBER", "US_DRIVER_LICENSE",
    "US_ITIN", "US_PASSPORT", "UK_NHS", "UK_NINO",
)  # fmt: skip
_IN_BRACKETS = (*(form for word in _WORDS for form in (word, word.capitalize(), word.upper())), *_ENTITIES)
_FURTHER = ("fully masked due to", "sensitive_redacted", "SENSITIVE_REDACTED")
_IN_SQUARES, _IN_ANGLES = (
    re.compile(rf"{left}(?:{'|'.join((*_IN_BRACKETS, *_FURTHER))})") for left in (r"\[", "<")
)
"""Of masks in brackets every text has one of these in it; each begins with a letter, which is found fast."""
_CUT_AT_END = re.compile(r"\s{0,4}[\[(<](?i:truncated)[^\])>\n]{0,80}[\])>]\s{0,4}$")
_MASK = re.compile(
    r"\*{4,}"
    r"|(?<=\w)\*{3}(?=[\w@])"
    r"|(?:(?<![^\s=:])|(?<=['\"]))\*{3}(?=[\s,.;:)&'\"@-]|$)"
    rf"|[\[<](?:{'|'.join((*_IN_BRACKETS[: -len(_ENTITIES)], *_FURTHER))})[^\]>\n]{{0,80}}[\]>]"
    rf"|[\[<](?:{'|'.join(_ENTITIES)})(?:_\d{{1,4}})?[\]>]"
    r"|<\w{1,30}_hash:[0-9a-f]{4,128}>"
    r"|__REDACTED__"
    r"|\s{0,4}(?:\.{3}|…)\s{0,4}[\[(<](?i:truncated)[^\])>\n]{0,80}[\])>](?:\.{3}|…)?"
    rf"|{_CUT_AT_END.pattern}"
)
_CUT = ("runcated", "RUNCATED")
_WHOLE = re.compile(r"\*{3,}|.{3}….{3}|NaN|-?Infinity")  # `.{3}….{3}`: Mastra's partial style
_LONGEST_WHOLE = 200
_LONGEST_MARKER = max(map(len, REDACTION_MARKERS))
_DIGEST = re.compile(r"(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f]{128})")
_HEX = re.compile("[0-9a-f]{32}")
_ESCAPED = ("…", "\\u2026", "\\u003c", "\\u003C")  # what some encoders make of "…" and "<"
_DIGEST_LENGTHS = (32, 40, 64, 128)


def is_mask(text: str) -> bool:
    """Whether `text` as a whole is a mask, so that nothing of the value is known."""
    if len(text) > _LONGEST_WHOLE:
        return False
    text = text.strip()
    return text in REDACTION_MARKERS or (has_mask(text) and not "".join(known_parts(text)).strip())


def is_digest(text: str) -> bool:
    """Whether `text` as a whole is a hex digest, which may be that of a hidden value."""
    return len(text) in _DIGEST_LENGTHS and _DIGEST.fullmatch(text) is not None


def is_cut(text: str) -> bool:
    """Whether `text` ends with the mark of a sender that cut it off there."""
    if text.endswith(("…", "...")):
        return True
    return any(mark in text[-100:] for mark in _CUT) and _CUT_AT_END.search(text) is not None


def has_mask(text: str) -> bool:
    """Whether `text` contains a mask."""
    if (
        "***" in text
        or ("_" in text and ("__REDACTED__" in text or "_hash:" in text))
        or ("[" in text and _IN_SQUARES.search(text))
        or ("<" in text and _IN_ANGLES.search(text))
        or any(mark in text for mark in _CUT)
    ):
        return next(mask_places(text), None) is not None
    return len(text) <= _LONGEST_MARKER and (text in REDACTION_MARKERS or _WHOLE.fullmatch(text) is not None)


def mask_places(text: str) -> Iterator[tuple[int, int]]:
    """Where the masks in `text` begin and end, in order."""
    if text in REDACTION_MARKERS or _WHOLE.fullmatch(text):
        yield (3, 4) if "…" in text else (0, len(text))
        return
    for result in _MASK.finditer(text):
        first, last = result.span()
        if (
            text[first] == "*"
            and (first == 0 or text[first - 1] == "\n")
            and text[last : last + 1] in ("", "\n")
        ):
            continue  # a rule of Markdown: a value of nothing else was looked at above
        yield first, last


def known_parts(text: str) -> list[str]:
    """What is known of `text`: the parts before, between and after its masks."""
    parts: list[str] = []
    start = 0
    for first, last in mask_places(text):
        parts.append(text[start:first])
        start = last
    return [*parts, text[start:]]


def contains_mask(value: JsonValue) -> bool:
    """Whether `value` contains a mask, also in the names of members."""
    if isinstance(value, str):
        return has_mask(value)
    if isinstance(value, dict):
        return any(has_mask(key) or contains_mask(member) for key, member in value.items())
    return isinstance(value, list) and any(map(contains_mask, value))


def may_be_masked(text: str | None) -> bool:
    """Whether the JSON document or text `text` may contain a mask or a digest; None: it may.

    Quick: where it is False no value in the document is masked.
    """
    if text is None or has_mask(text) or _HEX.search(text) is not None:
        return True
    return any(beginning in text for beginning in _ESCAPED)


def has_masked_key(value: JsonValue) -> bool:
    """Whether the name of a member of the object `value` is masked, so that any name may be that one."""
    return isinstance(value, dict) and any(map(has_mask, value))


def same_text(expected: str, actual: str, *, fold: bool = False) -> bool | None:
    """Whether `actual` is `expected`; None where that depends on what a mask hides.

    `fold`: case does not count. False where `expected` does not contain the known parts in their order.
    """
    if expected == actual or (fold and expected.lower() == actual.lower()):
        return True
    if is_digest(actual):
        return False if len(expected) == len(actual) and is_digest(expected) else None
    if not has_mask(actual):
        return False
    parts = known_parts(actual)
    if fold:
        expected, parts = expected.lower(), [part.lower() for part in parts]
    end = len(expected) - len(parts[-1])
    if not expected.startswith(parts[0]) or not expected.endswith(parts[-1]) or len(parts[0]) > end:
        return False
    at = len(parts[0])
    for part in parts[1:-1]:
        at = expected.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return None


def contains_text(actual: str, searched: str, *, fold: bool = False) -> bool | None:
    """Whether `actual` contains `searched`; None where a mask may hide it. `fold`: ignoring case."""
    if not searched:
        return True
    folded = actual.lower() if fold else actual
    if (searched.lower() if fold else searched) in folded:
        return True
    return None if is_digest(actual) or has_mask(actual) else False


def may_equal(left: JsonValue, right: JsonValue) -> bool:
    """Whether two different values may be equal behind the masks in them.

    Digests count as what they are: both values come from the same telemetry.
    """
    if isinstance(left, str) and isinstance(right, str):
        if has_mask(left) and has_mask(right):
            one, other = known_parts(left), known_parts(right)
            return _begin_alike(one[0], other[0]) and _begin_alike(one[-1][::-1], other[-1][::-1])
        if has_mask(left):
            left, right = right, left
        return not is_digest(right) and same_text(left, right) is not False
    return any(isinstance(value, str) and has_mask(value) for value in (left, right))


def _begin_alike(left: str, right: str) -> bool:
    return left.startswith(right) or right.startswith(left)
