"""The Levenshtein distance of two texts, and what it costs."""

from rapidfuzz.distance import Levenshtein

_BITS_PER_STEP = 64
_STEPS_PER_PAIR = 200


def edit_distance(left: str, right: str) -> int:
    """The least number of characters to insert, delete or replace that makes one text the other.

    Characters are code points. The work is about `edit_steps` steps of a few nanoseconds.
    """
    return Levenshtein.distance(left, right)


def edit_steps(left: str, right: str) -> int:
    """How many steps `edit_distance` takes at most: machine words of the distance table, and a fixed part."""
    shorter, longer = sorted((len(left), len(right)))
    return _STEPS_PER_PAIR + shorter * (1 + longer // _BITS_PER_STEP)
