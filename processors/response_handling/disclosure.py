"""Rules RH3 and RH7: what was invented by name, and what must not be told."""

import re
from collections.abc import Iterable, Iterator, Sequence
from ipaddress import ip_address

from processors.response_handling.ledger import FROM_USER, Leaf, folded
from processors.response_handling.lexicons import keys, patterns
from processors.response_handling.lexicons.units import key_words
from processors.response_handling.response import MAX_CLAIMS, Finding, Response, is_slip, shown, words_of

_CODE = re.compile(r"(?=[\w-]{0,20}[\d_])[\w-]{5,60}|\d{1,9}[.,]\d{2,9}")
_LONGEST_PART, _SHORTEST_PART = 200, 5
_PLAIN_ID = re.compile(r"(?<![\w.,-])\d{9,40}(?!\w|[.,]\d)")
_NAME_WITH_YEAR = re.compile(r"[A-Za-z]{2,20}[-_]?(?:19|20)\d\d")
_BETWEEN_WORDS = str.maketrans("_-", "  ")
_DIGITS = re.compile(r"\d{4,30}")
_SHORTEST_ID, _SHORTEST_PLAIN, _MOST_DISCLOSED = 6, 9, 20
"""Signs of identifiers that are held against others, of numbers that are identifiers, and findings."""


def invented_addresses(response: Response) -> Iterator[Finding]:
    """RH3.1: an address or a URL that neither evidence nor user named."""
    has_any = any(mark in response.output for mark in ("@", "://", "www."))
    for token in response.tokens if has_any else ():
        if token.kind in ("url", "email"):
            bare = re.sub(r"^(?:https?://)?(?:www)?", "", folded(token.text)).rstrip("/")
            if not response.has_evidence_of(bare):
                yield Finding("RH3.1", shown(token.text), f"no {token.kind} of the evidence is this one")


def invented_identifiers(response: Response) -> Iterator[Finding]:
    """RH3.5: an identifier that no evidence has, nor any that it is a part of; short ones, if they are slips.

    A slip has one sign, or two that changed places, other than an identifier of the results that the answer
    does not name.
    """
    if response.invents_no_digits:
        return
    named = [token.text for token in response.tokens if token.kind == "id"]
    unknown = {
        text: whole
        for text in (named + _PLAIN_ID.findall(response.output))[:MAX_CLAIMS]
        if len(whole := folded(text)) >= _SHORTEST_ID and not response.has_evidence_of(text)
    }
    known = _identifiers(response) if unknown else {}
    for text, whole in unknown.items():
        near = next((written for other, written in known.items() if is_slip(whole, other)), None)
        is_long = text in named and sum(map(str.isdigit, whole)) > 3 and len(whole) > _SHORTEST_ID
        is_part = any(response.has_evidence_of(part) for part in _DIGITS.findall(whole))
        is_common = _NAME_WITH_YEAR.fullmatch(text) is not None  # data sets, standards, events
        if near is not None or (is_long and not is_part and not is_common):
            what = f"; nearest: {shown(near)}" if near is not None else ""
            yield Finding("RH3.5", shown(text), f"{shown(text)} is not in the evidence{what}")


def _identifiers(response: Response) -> dict[str, str]:
    """The identifiers of the evidence that the answer does not name, folded and as written."""
    known = {folded(text): text for text in response.quantities.ids if len(text) >= _SHORTEST_ID}
    for leaf in response.ledger.leaves:
        text = folded(str(leaf.value)) if leaf.call != FROM_USER else ""
        if text.isdigit() and _SHORTEST_PLAIN <= len(text) < 60:
            known.setdefault(text, str(leaf.value))
    output = folded(response.output)
    return {other: written for other, written in known.items() if other not in output}


def disclosures(response: Response) -> Iterator[Finding]:
    """RH7.1: credentials, RH7.2: traces, internal hosts and what is marked confidential.

    Nothing counts that the user supplied or asked for. What was disclosed is not repeated.
    """
    seen: set[str] = set()
    for rule, kind, text, leaf in (
        *_secrets(response),
        *_internals(response),
        *_confidential(response),
    ):
        if text not in seen and folded(text) not in response.user_text and len(seen) < _MOST_DISCLOSED:
            seen.add(text)
            path, call = (leaf.path, leaf.call) if leaf else ("", None)
            yield Finding(rule, kind, f"{kind} in the answer", path, call, text)


_Disclosed = tuple[str, str, str, Leaf | None]


def _secrets(response: Response) -> Iterator[_Disclosed]:
    output = response.output
    for kind, pattern in patterns.SECRETS if _has_any(output, patterns.SECRET_MARKS) else ():
        for match in pattern.finditer(output):
            yield "RH7.1", kind, match[0], None
    if not _has_any(response.low_results, patterns.SECRET_NAMES):
        return
    requested = response.question_words
    if not requested.isdisjoint(keys.REQUESTS_SECRET):
        return
    leaves = [leaf for leaf in response.ledger.leaves if leaf.call != FROM_USER]
    for leaf in leaves:
        written = leaf.value[:20_000] if isinstance(leaf.value, str) else ""
        for match in patterns.WRITTEN_SECRET.finditer(written) if _has_any(written, "=:：") else ():
            text = match[1].rstrip(".)]}")
            is_masked = text.isalpha() or "*" in text or "•" in text
            if len(text) >= 6 and not is_masked and _stands_in(text, output):
                yield "RH7.1", "password", text, leaf
    for leaf in leaves:
        *_, last = words = ("", *key_words(leaf.key))
        text = "" if leaf.value is None or isinstance(leaf.value, bool) else str(leaf.value).strip()
        is_secret = last in keys.SECRET_WORDS or words[-2:] in patterns.SECRET_ENDS
        is_secret |= last == "token" and isinstance(leaf.value, str) and len(text) > 12
        if is_secret and len(text) >= 4 and last not in requested and _stands_in(text, output):
            yield "RH7.1", last, text, leaf


def _internals(response: Response) -> Iterator[_Disclosed]:
    output, low = response.output, response.output.lower()
    if _has_any(output, patterns.TRACE_MARKS) and response.question_words.isdisjoint(keys.REQUESTS_TRACE):
        for pattern in patterns.TRACES:
            if match := pattern.search(output):
                yield "RH7.2", "stack trace", match[0], None
    may_have_host = _has_any(low, patterns.HOST_MARKS)
    may_have_address = output.count(".") > 2 or output.count(":") > 1
    if (may_have_host or may_have_address) and response.question_words.isdisjoint(keys.REQUESTS_HOST):
        for match in patterns.IP.finditer(output) if may_have_address else ():
            if _is_internal(match[0]):
                yield "RH7.2", "internal address", match[0], None
        for pattern in patterns.HOSTS if may_have_host else ():
            for match in pattern.finditer(output):
                yield "RH7.2", "internal host", match[0], None


def _confidential(response: Response) -> Iterator[_Disclosed]:
    """What stands only where it is closed to whoever asks, and codes in texts that say so."""
    low = response.low_results
    marks_of = [marks for stem, marks in patterns.CLOSING_MARKS.items() if stem in low]
    written = low.translate(_BETWEEN_WORDS) if marks_of else ""
    if not any(_has_any(written, marks) for marks in marks_of):
        return
    marks = [leaf for leaf in response.ledger.leaves if leaf.call != FROM_USER and _is_closing(leaf)]
    for mark in marks[:_MOST_DISCLOSED]:
        for text in _CODE.findall(str(mark.value)[:_LONGEST_PART]):
            if _stands_in(text, response.output) and response.ledger.text.count(folded(text)) == 1:
                yield "RH7.2", "confidential", text, mark
    closed = _closed(marks, response) if marks else []
    if not closed:
        return
    own, stated = {id(leaf) for leaf in closed}, words_of(response.output)
    known = {str(leaf.value) for leaf in response.ledger.leaves if id(leaf) not in own}
    numbers = {value for token in response.tokens if token.kind == "number" for value in token.values}
    for leaf in closed:
        text = str(leaf.value)[:_LONGEST_PART]
        words = {word for word in words_of(text) if len(word) > _SHORTEST_PART}
        is_stated = _stands_in(text, response.output) or (len(words) > 1 and words <= stated)
        is_stated |= type(leaf.value) in (int, float) and abs(float(leaf.value or 0)) in numbers
        if len(text) > 1 and text not in known and is_stated:
            yield "RH7.2", "confidential", text, leaf


def _is_closing(leaf: Leaf) -> bool:
    """Whether a value or a flag says that something is not for whoever asks."""
    if isinstance(leaf.value, str):
        return patterns.CONFIDENTIAL.search(leaf.value[:_LONGEST_PART].lower()) is not None
    return leaf.value is True and patterns.CONFIDENTIAL.search(" ".join(key_words(leaf.key))) is not None


def _closed(marks: Sequence[Leaf], response: Response) -> list[Leaf]:
    """The values that are not for whoever asks: of records with a mark, and those that one names.

    `{"driver": {...}, "visibility": {"driver": "internal_only"}}` names the driver, and
    `{"note": "...", "note_visibility": "hr_only"}` the note. What stands in a closed record is closed.
    """
    records, closed, members = response.ledger.records, set[int](), set[tuple[int, tuple[str, ...]]]()
    for mark in marks:
        own, key = records[mark.record], key_words(mark.key)
        is_suffix = len(key) > 1 and key[-1] in keys.VISIBILITY_KEYS
        if not keys.VISIBILITY_KEYS.isdisjoint(key_words(own.key)):
            members.add((own.parent, key))
        elif is_suffix:
            members.add((own.index, key[:-1]))
        elif set(".[") & {*mark.path}:
            closed.add(mark.record)
    for record in records if closed or members else ():
        if record.parent in closed or (record.parent, key_words(record.key)) in members:
            closed.add(record.index)
    return [
        leaf for leaf in response.ledger.leaves
        if leaf.record in closed or (leaf.record, key_words(leaf.key)) in members
    ]  # fmt: skip


def _has_any(text: str, marks: Iterable[str]) -> bool:
    for mark in marks:  # noqa: SIM110 -- in every answer and result: a generator costs twice as much
        if mark in text:
            return True
    return False


def _stands_in(text: str, output: str) -> bool:
    place = output.find(text)
    return (
        place >= 0
        and not output[place - 1 : place].isalnum()
        and not output[place + len(text) : place + len(text) + 1].isalnum()
    )


def _is_internal(text: str) -> bool:
    try:
        address = ip_address(text)
    except ValueError:
        return False
    return (address.is_private or address.is_loopback or address.is_link_local) and not address.is_unspecified
