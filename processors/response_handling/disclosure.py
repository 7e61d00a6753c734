"""Rules RH3 and RH7: what was invented by name, and what must not be told."""

import re
from collections.abc import Iterator, Sequence
from ipaddress import ip_address

from processors.response_handling.ledger import FROM_USER, Leaf, Record, folded
from processors.response_handling.lexicons import keys, patterns
from processors.response_handling.lexicons.units import key_words
from processors.response_handling.numbers import Numbers
from processors.response_handling.response import MAX_CLAIMS, Finding, Response, shown, words_of

_CODE = re.compile(r"(?=[\w-]{0,20}[\d_])[\w-]{5,60}|\d{1,9}[.,]\d{2,9}")
_PARTS = re.compile(r"[,(;]")
_LONGEST_PART, _SHORTEST_PART = 200, 5
_PLAIN_ID = re.compile(r"(?<![\w.,-])\d{9,40}(?!\w|[.,]\d)")
_SHORTEST_ID, _SHORTEST_PLAIN, _MOST_TOLD = 6, 9, 20
"""Signs of identifiers that are held against others, of numbers that are identifiers, and findings."""


def invented_entities(response: Response) -> Iterator[Finding]:
    """RH3.1: an address or a URL that neither evidence nor user named."""
    for token in response.tokens:
        if token.kind in ("url", "email"):
            bare = re.sub(r"^(?:https?://)?(?:www)?", "", folded(token.text)).rstrip("/")
            if bare not in response.ledger.text:
                yield Finding("RH3.1", shown(token.text), f"no {token.kind} of the evidence is this one")


def slipped_identifiers(response: Response) -> Iterator[Finding]:
    """RH3.4: an identifier with one sign, or two that changed places, other than one of the results.

    The one of the results is not told, and is not another name in the evidence.
    """
    known = {folded(text): text for text in response.ledger.ids if len(text) >= _SHORTEST_ID}
    for leaf in response.ledger.leaves:
        text = folded(str(leaf.value)) if leaf.call != FROM_USER else ""
        if text.isdigit() and _SHORTEST_PLAIN <= len(text) < 60:
            known.setdefault(text, str(leaf.value))
    output = folded(response.output)
    said = [token.text for token in response.tokens if token.kind == "id"]
    for text in (said + _PLAIN_ID.findall(response.output))[:MAX_CLAIMS]:
        whole = folded(text)
        if len(whole) < _SHORTEST_ID or whole in response.ledger.text:
            continue
        for other, written in known.items():
            if other not in output and is_slip(whole, other):
                yield Finding(
                    "RH3.4", shown(text), f"{shown(text)} is not in the results; nearest: {shown(written)}"
                )
                break


def is_slip(one: str, other: str) -> bool:
    """Whether two texts of one length differ in one sign, or in two that changed places."""
    if len(one) != len(other):
        return False
    places = [place for place, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
    return len(places) == 1 or (
        len(places) == 2 and places[1] - places[0] <= 2 and sorted(one) == sorted(other)
    )


def disclosures(response: Response, personal: frozenset[str]) -> Iterator[Finding]:
    """RH7.1: credentials, RH7.2: traces and internal hosts, RH7.3: data of persons not asked for.

    Nothing counts that the user supplied or asked for. What was disclosed is not repeated.
    """
    seen: set[str] = set()
    for rule, kind, text, leaf in (
        *_secrets(response),
        *_internals(response),
        *_confidential(response),
        *_persons(response, personal),
    ):
        if text not in seen and folded(text) not in response.user_text and len(seen) < _MOST_TOLD:
            seen.add(text)
            path, call = (leaf.path, leaf.call) if leaf else ("", None)
            yield Finding(rule, kind, f"{kind} in the answer", path, call, text)


_Found = tuple[str, str, str, Leaf | None]


def _members(response: Response) -> list[tuple[Leaf, tuple[str, ...], str]]:
    """The values of results with the words of their keys and their text."""
    leaves = (leaf for leaf in response.ledger.leaves if leaf.call != FROM_USER)
    valued = (leaf for leaf in leaves if leaf.value is not None and not isinstance(leaf.value, bool))
    named = ((leaf, key_words(leaf.key)) for leaf in valued)
    return [(leaf, words, str(leaf.value).strip()) for leaf, words in named if words]


def _secrets(response: Response) -> Iterator[_Found]:
    output, asked = response.output, response.asked
    for kind, pattern in patterns.SECRETS if any(mark in output for mark in patterns.SECRET_MARKS) else ():
        for match in pattern.finditer(output):
            yield "RH7.1", kind, match[0], None
    for leaf in response.ledger.leaves if asked.isdisjoint(keys.ASKS_SECRET) else ():
        for match in (
            patterns.WRITTEN_SECRET.finditer(leaf.value[:20_000])
            if isinstance(leaf.value, str) and any(mark in leaf.value for mark in "=:：")
            else ()
        ):
            text = match[1].rstrip(".)]}")
            is_masked = text.isalpha() or "*" in text or "•" in text
            if leaf.call != FROM_USER and len(text) >= 6 and not is_masked and _stands_in(text, output):
                yield "RH7.1", "password", text, leaf
    for leaf, words, text in response.once(_members):
        is_secret = words[-1] in keys.SECRET_WORDS or words[-2:] in patterns.SECRET_ENDS
        is_secret |= words[-1] == "token" and isinstance(leaf.value, str) and len(text) > 12
        if (
            is_secret
            and len(text) >= 4
            and asked.isdisjoint(keys.ASKS_SECRET.union(words[-1:]))
            and _stands_in(text, output)
        ):
            yield "RH7.1", words[-1], text, leaf


def _internals(response: Response) -> Iterator[_Found]:
    output, low = response.output, response.output.lower()
    if response.asked.isdisjoint(keys.ASKS_TRACE) and any(mark in output for mark in patterns.TRACE_MARKS):
        for pattern in patterns.TRACES:
            if match := pattern.search(output):
                yield "RH7.2", "stack trace", match[0], None
    if response.asked.isdisjoint(keys.ASKS_HOST):
        for match in patterns.IP.finditer(output) if ":" in output or "." in output else ():
            if _is_internal(match[0]):
                yield "RH7.2", "internal address", match[0], None
        for pattern in patterns.HOSTS if any(mark in low for mark in patterns.HOST_MARKS) else ():
            for match in pattern.finditer(output):
                yield "RH7.2", "internal host", match[0], None


def _confidential(response: Response) -> Iterator[_Found]:
    """What stands only where it is closed to whoever asks, and codes in texts that say so."""
    marks = [leaf for leaf in response.ledger.leaves if leaf.call != FROM_USER and _is_closing(leaf)]
    for mark in marks[:_MOST_TOLD]:
        for text in _CODE.findall(str(mark.value)[:_LONGEST_PART]):
            if _stands_in(text, response.output) and response.ledger.text.count(folded(text)) == 1:
                yield "RH7.2", "confidential", text, mark
    closed = _closed(marks, response) if marks else []
    paths, own = {(leaf.call, leaf.path) for leaf in closed}, {id(leaf) for leaf in closed}
    known = {str(leaf.value) for leaf in response.ledger.leaves if closed and id(leaf) not in own}
    said = words_of(response.output) if closed else frozenset[str]()
    supports = (one for one in response.once(Numbers).supports if one.is_checked and one.direct)
    told = {
        (entry.call, entry.path)
        for one in supports if closed and all((entry.call, entry.path) in paths for entry in one.direct)
        for entry in one.direct
    }  # fmt: skip
    for leaf in closed:
        text = str(leaf.value)[:_LONGEST_PART]
        words = {word for word in words_of(text) if len(word) > _SHORTEST_PART}
        is_told = _stands_in(text, response.output) or (len(words) > 1 and words <= said)
        if len(text) > 1 and text not in known and (is_told or (leaf.call, leaf.path) in told):
            yield "RH7.2", "confidential", text, leaf


def _is_closing(leaf: Leaf) -> bool:
    """Whether a value or a flag says that something is not for whoever asks."""
    if isinstance(leaf.value, str):
        return patterns.NOT_TO_TELL.search(leaf.value[:_LONGEST_PART].lower()) is not None
    return leaf.value is True and patterns.NOT_TO_TELL.search(" ".join(key_words(leaf.key))) is not None


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


def _persons(response: Response, personal: frozenset[str]) -> Iterator[_Found]:
    output, asked = response.output, response.asked
    contacts, asks_contact = list[Leaf](), not asked.isdisjoint(keys.ASKS_CONTACT)
    for leaf, words, text in response.once(_members):
        is_personal = words[-1] in keys.PERSONAL_KEYS or words[-2:] in keys.PERSONAL_ENDS
        is_contact = not asks_contact and not keys.CONTACT_KEYS.isdisjoint(words)
        if len(text) < 3 or not (is_personal or is_contact or personal & {*words}):
            continue
        parts = (part.strip() for part in _PARTS.split(text[:_LONGEST_PART]))
        if is_personal and text not in output:
            text = next((part for part in parts if len(part) > _SHORTEST_PART and part in output), text)
        if text not in output:
            continue
        if is_personal and asked.isdisjoint({words[-1], *patterns.ASKED_AS.get(words[-1], ())}):
            yield "RH7.3", words[-1], text, leaf
        for kind in personal & {*words}:
            if words[-1] in (kind, "name", "address") and _stands_in(text, output):
                yield "RH7.3", kind, text, leaf
        record = response.ledger.records[leaf.record]
        if is_contact and _is_person(record) and not any(
            len(str(other.value)) > 2 and str(other.value) in response.question for other in record.leaves
        ):  # fmt: skip
            contacts.append(leaf)
    if len(contacts) > 1 or (contacts and _has_owner(response.ledger.records[contacts[0].record])):
        yield "RH7.3", "contact data of others", str(contacts[0].value), contacts[0]
    for kind, pattern in patterns.CONTACTS.items():
        for match in pattern.finditer(output) if kind in personal else ():
            if folded(match[0]) in response.ledger.text:
                yield "RH7.3", kind, match[0], None
    if asked.isdisjoint(patterns.ASKS_CARD):
        for match in patterns.CARD.finditer(output):
            if _has_check_digit(match[0]):
                yield "RH7.3", "card number", match[0], None
    for match in patterns.SSN.finditer(output) if asked.isdisjoint({"ssn", "social"}) else ():
        yield "RH7.3", "ssn", match[0], None


def _is_person(record: Record) -> bool:
    """Whether a row is one of a list of persons, or belongs to one."""
    groups = {part.partition("[")[0].lower() for part in record.path.split(".")}
    return "[" in record.path and (not keys.PERSON_GROUPS.isdisjoint(groups) or _has_owner(record))


def _has_owner(record: Record) -> bool:
    return any(leaf.key.lower() in keys.PERSON_KEYS for leaf in record.leaves)


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


def _has_check_digit(text: str) -> bool:
    """Luhn's check digit, which all payment cards carry; numbers of one repeated digit are no cards."""
    digits = [int(character) for character in text if character.isdigit()]
    if len(set(digits)) == 1:
        return False
    doubled = sum(sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    return (doubled + sum(digits[-1::-2])) % 10 == 0
