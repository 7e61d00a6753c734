"""How similar an actual JSON value is to an expected one: the share of its leaves that are met."""

from dataclasses import dataclass, field

from processors.model.json_value import JsonValue
from processors.model.limits import MAX_EDIT_STEPS
from processors.texts.edit_distance import edit_distance, edit_steps

_ZERO = 1e-12


@dataclass(slots=True)
class LeafSimilarity:
    """Compares values and counts the work that it takes.

    `max_text_length` is the length from which on texts are only compared for equality; `unmeasured` counts
    the pairs of different texts to which that happened. Once `is_over_limit` holds, similarities mean
    nothing.
    """

    max_text_length: int
    unmeasured: int = 0
    _steps: int = field(default=0, init=False)

    @property
    def is_over_limit(self) -> bool:
        """Whether the texts of all comparisons so far were more than is worked through."""
        return self._steps > MAX_EDIT_STEPS

    def compare(self, expected: JsonValue, actual: JsonValue) -> tuple[float, int]:
        """How many leaves of `expected` are met, each from 0 to 1, and how many there are.

        A leaf is a number, a text, a boolean or null; what is no leaf is an object or a list. Numbers are
        floats, and are met by 1 - |expected - actual| / |expected|, at least 0 (an expected 0 only by 0).
        Texts are met by 1 - edit distance / length of the longer one; booleans and null by themselves only.
        Objects are compared key by key and lists entry by entry, as far as something is expected: what is
        missing, or of another type, meets none of its leaves, and what is there beyond it costs nothing.
        """
        if isinstance(expected, dict):
            if not isinstance(actual, dict):
                return 0.0, leaves(expected)
            pairs = [(value, key in actual, actual.get(key)) for key, value in expected.items()]
        elif isinstance(expected, list):
            if not isinstance(actual, list):
                return 0.0, leaves(expected)
            there = len(actual)
            pairs = [
                (value, index < there, actual[index] if index < there else None)
                for index, value in enumerate(expected)
            ]
        else:
            return self._leaf(expected, actual), 1
        met, total = 0.0, 0
        for value, is_there, found in pairs:
            inner_met, inner_total = self.compare(value, found) if is_there else (0.0, leaves(value))
            met += inner_met
            total += inner_total
        return met, total

    def _leaf(self, expected: JsonValue, actual: JsonValue) -> float:
        if type(expected) is not type(actual):
            return 0.0
        if isinstance(expected, str) and isinstance(actual, str):
            return self._text(expected, actual)
        if isinstance(expected, float) and isinstance(actual, float):
            return _number(expected, actual)
        return float(expected == actual)

    def _text(self, expected: str, actual: str) -> float:
        if expected == actual:
            return 1.0
        longer = max(len(expected), len(actual))
        if longer > self.max_text_length:
            self.unmeasured += 1
            return 0.0
        self._steps += edit_steps(expected, actual)
        if self.is_over_limit:
            return 0.0
        return 1.0 - edit_distance(expected, actual) / longer


def leaves(value: JsonValue) -> int:
    """The number of leaves in `value`; an empty object or list has none."""
    if isinstance(value, dict):
        return sum(map(leaves, value.values()))
    if isinstance(value, list):
        return sum(map(leaves, value))
    return 1


def _number(expected: float, actual: float) -> float:
    if abs(expected) <= _ZERO:
        return float(abs(actual) <= _ZERO)
    return max(0.0, 1.0 - abs(expected - actual) / abs(expected))
