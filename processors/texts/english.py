"""The English words that the checks of errors and of meaning look for, and which answers they cover."""

import re
from collections.abc import Sequence
from typing import Final

from processors.texts.word_list import word_pattern, words

_LETTER = re.compile(r"[^\W\d_]")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?")
_MAX_WORDS = 400

_ENGLISH: Final = words(
    """
    a about after all also an and any are as at be been but by can could did do does done for found
    from get had has have he her here his how i if in into is it its let me more my no not now of on
    or our out over please she should so sorry some than that the their them then there these they
    this to today tomorrow unable until up us was we were what when where which who will with would
    yes yesterday you your
    """
)
_OTHER_LANGUAGES: Final = words(
    """
    aber als auf aus bei das dem den der des die ein eine einen einer es für haben hat ich ihr ihre
    im ist kein keine konnte mit nach nicht oder sich sie sind über und von werden wird wir wurde zu
    zum zur aan dat de deze een en geen het hij met naar niet ook op te uw van voor werd zijn au aux
    avec ce cette dans du elle est et il ils je la le les leur mais ne nous ont ou par pas pour que
    qui sa ses sont sur un une vos votre vous été al con del el ella esta este fue ha han hay las lo
    los más muy para pero por se sin son su sus tiene una uno y alla che chi come da dal della delle
    di gli ho non nel nella più questo sei sono stato suo tra è ao com do dos e em foi mas na nas
    não no nos o os pela pelo são sua um uma você att av det ett för har inte jag är med och om på
    som till vi af blev ikke er jeg og til czy jest nie się to w z przez został bir bu için ile ve
    değil
    """
)
"""Small words of German, Dutch, French, Spanish, Italian, Portuguese, Nordic languages, Polish, Turkish."""
_ONLY_ENGLISH: Final = _ENGLISH - _OTHER_LANGUAGES
_NEVER_ENGLISH: Final = _OTHER_LANGUAGES - _ENGLISH


def is_english(text: str) -> bool:
    """Whether the word lists cover `text`: its script is Latin and its small words are mostly English.

    A text too short to have small words counts as English. The first words decide.
    """
    text = text[:4096]
    if not text.isascii():
        letters = len(_LETTER.findall(text))
        if letters and len(_LATIN.findall(text)) * 2 < letters:
            return False
    found = [word.lower() for word in _WORD.findall(text)[:_MAX_WORDS]]
    english = sum(map(_ONLY_ENGLISH.__contains__, found))
    other = sum(map(_NEVER_ENGLISH.__contains__, found))
    if other > english:
        return False
    foreign_letters = sum(not word.isascii() for word in found)
    return english > 0 or foreign_letters * 4 <= len(found)


_NO_TROUBLE = word_pattern(
    r"(?:no|without|zero|any|free of)(?: \w+)? (?:errors?|problems?|troubles?|issues?|failures?)"
)
_ACKNOWLEDGEMENT = word_pattern(
    r"""
    could ?n[o'\u2019]?t|could not|can ?not|can['\u2019]t|won['\u2019]t|unable|inability|sorry|
    apolog\w*|regret\w*|unfortunately|fail\w*|errors?|problems?|troubles?|troubled|difficult\w*|issues?|
    hiccups?|glitch\w*|went wrong|goes wrong|
    (?:not|\w+n['\u2019]t) (?:\w+ )?(?:able|possible|valid|available|working|accessible|supported|allowed|
    permitted|authori[sz]ed|reachable|responding|recogni[sz]ed|accepted|enough|found|successful|complete)|
    (?:not|\w+n['\u2019]t) been \w+|
    (?:did not|didn['\u2019]t) (?:work|go|succeed|find|get|let|respond|answer|reply|accept|recogni[sz]e|load|
    return|complete|come|allow|exist)|
    no (?:access|response|answer|reply|connection|luck)|unavailable|unreachable|unresponsive|offline|
    (?:is|are|was|were|seems|be) down|maintenance|outage|out of service|overloaded|busy|
    try again|retry|retried|time[ds]? out|timeout|denied|den(?:y|ies)|declin\w+|reject\w*|refus\w+|block\w*|
    unsuccessful\w*|impossible|unauthori[sz]ed|permissions?|privileges?|forbidden|prohibited|
    (?:have|has|had|lack\w*|without|need\w*|requires?) (?:\w+ ){0,2}(?:access|rights)|
    exhausted|exceed\w*|quota|rate limit\w*|too many requests|locked|expired|insufficient|invalid|unsupported|
    malformed|interrupted|crash\w*
    """
)


class Acknowledgement:
    """Recognises answers that admit trouble, by built-in English words and by `extra` phrases."""

    def __init__(self, extra: Sequence[str] = ()) -> None:
        self._extra = tuple(phrase.casefold() for phrase in extra if phrase.strip())

    def found_in(self, output: str) -> bool:
        """Whether `output` says that something did not work. Words such as "no errors" do not count."""
        if _ACKNOWLEDGEMENT.search(_NO_TROUBLE.sub(" ", output)):
            return True
        text = output.casefold()
        return any(phrase in text for phrase in self._extra)


NEGATION: Final = re.compile(
    r"\b(?:not?|never|none|nothing|neither|nor|without|cannot|unable|hardly|yet to)\b|n['\u2019]t\b",
    re.IGNORECASE,
)
"""Words that turn what stands beside them into its opposite."""

STOP_WORDS: Final = words(
    """
    about above after again against also another because been before being below between both could
    does doing done down during each ever every from further given have having here hers herself
    himself into itself just like made make many more most much must myself none only other ours
    over please same should since some such than that their theirs them then there these they this
    those through true false null under until upon very want well were what when where which while
    whom will with within without would your yours
    """
)
"""Words of four and more letters that say nothing about what a text is about."""
