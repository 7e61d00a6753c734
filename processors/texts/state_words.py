"""English words for good and bad states, for rise and fall, and for states that exclude each other."""

from types import MappingProxyType
from typing import Final

from processors.texts.word_list import word_pattern, words

BAD_STATES: Final = words(
    """
    failed failure fail error errored declined rejected denied refused degraded down offline
    unhealthy critical cancelled canceled expired overdue late delayed lost blocked suspended
    disabled inactive closed terminated aborted timeout unavailable broken invalid unpaid returned
    refunded revoked banned stopped crashed unreachable stalled stuck incomplete unverified locked
    missing
    """
) | frozenset(
    {"timed out", "past due", "out of stock", "not found", "not available", "on hold", "insufficient funds"}
)
"""Values of a state member, in lower case with blanks, that mean trouble."""

GOOD_WORDS: Final = word_pattern(
    r"""
    yes|success\w*|succeeded|went through|gone through|great|good|fine|ok(?:ay)?|healthy|well|smooth\w*|
    normal\w*|operational|up and running|running|works?|working|online|active|available|in stock|ready|
    approved|accepted|confirmed|completed?|done|delivered|on (?:its|the) way|on time|on track|paid|
    valid|verified|enabled|open|all set|all clear|safe|passed|processed|current|up to date|in order|
    set to go|good to go|eligible|guaranteed
    """
)
"""Words that say that all is well."""

BAD_WORDS: Final = word_pattern(
    r"""
    fail\w*|errors?|problems?|troubles?|issues?|declin\w+|reject\w*|den(?:y|ied|ies)|refus\w+|degraded|
    down|offline|unhealthy|critical|cancel\w*|expir\w+|overdue|late|delay\w*|lost|block\w*|suspend\w*|
    disabl\w+|inactive|closed|terminated|abort\w*|time[ds]? out|unavailable|out of stock|sold out|
    broken|invalid|unpaid|insufficient|revoked|banned|stopped|crash\w*|unreachable|stuck|incomplete|
    unverified|locked|missing|unfortunately|sorry|unable|unsuccess\w*|past due|pending|on hold|however|
    degradation|slow\w*|wrong
    """
)
"""Words that say that something is wrong."""

GOOD_FLAGS: Final = words(
    """
    stock available availability healthy active valid approved open enabled verified eligible online
    paid confirmed delivered completed passed supported allowed authorized ready working operational
    success succeeded
    """
)
"""Words of the keys of flags that mean something good when true."""

RISING_WORDS: Final = word_pattern(
    r"""
    gain\w*|up|r[io]se|rises|risen|rising|increas\w*|higher|grew|grow\w*|growth|climb\w*|jump\w*|
    surg\w+|improv\w+|strong\w*|soar\w*|advanc\w+|upward\w*|added|better
    """
)
FALLING_WORDS: Final = word_pattern(
    r"""
    los[est]\w*|loss\w*|down|f[ae]ll\w*|decreas\w*|declin\w*|lower\w*|drop\w*|shr[aiu]nk\w*|slip\w*|
    slid\w*|plung\w*|tumbl\w*|weak\w*|negative\w*|reduc\w+|contract\w*|downward\w*|worse\w*|dip\w*
    """
)

_FAMILIES = (
    "open merged closed draft",
    "pending shipped delivered cancelled returned",
    "processing shipped delivered cancelled",
    "pending approved rejected declined",
    "pending accepted declined rejected",
    "pending paid refunded failed",
    "unpaid paid overdue refunded",
    "active inactive suspended cancelled expired",
    "enabled disabled",
    "running stopped paused terminated",
    "online offline",
    "locked unlocked",
    "open closed resolved",
    "queued running succeeded failed",
    "scheduled completed cancelled postponed",
    "verified unverified",
    "passed failed",
    "published draft archived",
    "available sold reserved occupied",
    "healthy degraded unhealthy",
    "subscribed unsubscribed",
    "todo done blocked",
    "won lost",
)  # fmt: skip
_IRREGULAR = {"canceled": "cancel", "cancelled": "cancel", "lost": "lost", "paid": "paid", "sold": "sold"}


def state_stem(word: str) -> str:
    """The part of a word that its forms share: shipped, ships and shipping give one stem."""
    word = word.lower()
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    for ending in ("ing", "ed", "es", "s", "d"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    if len(word) > 3 and word[-1] == word[-2]:
        word = word[:-1]
    return word.rstrip("e") or word


def _family(states: str) -> "MappingProxyType[str, frozenset[str]]":
    stems = [state_stem(word) for word in states.split()]
    return MappingProxyType({stem: frozenset(stems) - {stem} for stem in stems})


STATE_FAMILIES: Final = tuple(_family(words) for words in _FAMILIES)
"""States of one kind of thing: for the stem of each the stems of the others."""
