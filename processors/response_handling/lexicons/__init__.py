"""The words of each language, and of keys and units, as data."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """A lexicon as it is written: words between blanks; `*` ends the beginning of words, `_` is a blank.

    `months` and `weekdays` are lists with `|`, the first of each a month called January, a day called Monday.
    `numbers` gives words their values, `scales` their powers of ten, `units` (`symbol: words;`) their unit.
    Without `is_spaced` words are looked for inside the text; `counters` are what follows a counted number
    there.
    """

    language: str
    function: str = ""
    months: str = ""
    weekdays: str = ""
    numbers: str = ""
    scales: str = ""
    units: str = ""
    negation: str = ""
    nothing: str = ""
    failure: str = ""
    done: str = ""
    yes: str = ""
    no: str = ""
    up: str = ""
    down: str = ""
    approx: str = ""
    relative: str = ""
    harmless: str = ""
    absent: str = ""
    mean: str = ""
    total: str = ""
    counters: str = ""
    is_spaced: bool = True
