"""Rule RH3.1: a person or an organisation that nobody named."""

from collections.abc import Iterator
from itertools import islice

from processors.response_handling.ledger import unaccented
from processors.response_handling.lexicons import names
from processors.response_handling.response import Finding, Response, shown

_BEGINNING, _MOST_NAMES, _BEFORE = 4, 40, 60
"""Letters by which a word is known in any form, names that are looked up, and characters before one."""

_BEHIND_LABELS = ("", "\n", ":", "–", "—", "-", "(", "=", "*", "|")


def invented_names(response: Response) -> Iterator[Finding]:
    """RH3.1: a name no word of which stands in any result, argument or question, in any form."""
    told = ""
    for place, name in islice(_names(response), _MOST_NAMES):
        told = told or unaccented(response.ledger.text)
        words = [word for word in name.split() if not word.islower()]
        if response.tells(place) and not any(unaccented(word)[:_BEGINNING] in told for word in words):
            yield Finding("RH3.1", shown(name.strip()), "nobody and nothing of this name is in the evidence")


def _names(response: Response) -> Iterator[tuple[int, str]]:
    """What is written as names are, and where."""
    output, lexicon = response.output, response.words
    if not lexicon.is_spaced:
        for match in (match for sign in names.SIGNS for match in sign.finditer(output)):
            if match[1] not in names.NO_NAMES:
                yield match.start(1), match[1][:2]
        return
    known = (lexicon.known, lexicon.months, lexicon.weekdays, names.NO_NAMES)
    for pattern in (names.TITLED, names.CALLED, names.GERMAN if lexicon.language == "de" else names.SEVERAL):
        for match in pattern.finditer(output):
            begin = output.rfind("\n", 0, match.start()) + 1
            line = output[max(begin, match.start() - _BEFORE) : match.start()]
            name, before = match[match.lastindex or 0], line.split()[-1:]
            is_place = pattern is names.SEVERAL and not names.PLACE_CUES.isdisjoint(
                word.lower() for word in before
            )
            words = [word.lower() for word in name.replace("’", "'").split() if word[:1].isupper()]
            is_known = any(word in some for word in words for some in known)
            is_label = (
                not any(map(str.isalpha, line))
                and output[match.end() : match.end() + 2].lstrip(" ")[:1] in _BEHIND_LABELS
            )
            if not (is_place or is_known or is_label or output[begin] in "#|"):
                yield match.start(), name
