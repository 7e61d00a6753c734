"""The words of each language, and of keys and units, as data."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """A lexicon as it is written: words between blanks; `*` ends the beginning of words, `_` is a blank.

    `months` is a list with `|`, of which the first is called January. `others` only tell the language.
    `numbers` gives words their values, `scales` their powers of ten, `units` (`symbol: words;`) their unit.
    Without `is_spaced` words are looked for inside the text; `counters` are what follows a counted number
    there.
    """

    language: str
    function: str = ""
    others: str = ""
    months: str = ""
    numbers: str = ""
    scales: str = ""
    units: str = ""
    negation: str = ""
    nothing: str = ""
    failure: str = ""
    done: str = ""
    yes: str = ""
    no: str = ""
    approx: str = ""
    relative: str = ""
    harmless: str = ""
    absent: str = ""
    total: str = ""
    counters: str = ""
    is_spaced: bool = True
