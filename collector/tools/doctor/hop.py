"""One hop on the way of a trace, and what the check of it showed."""

from dataclasses import dataclass
from enum import StrEnum

from processors.model import JsonObject


class State(StrEnum):
    """The state of a hop."""

    WORKS = "works"
    BROKEN = "broken"
    UNKNOWN = "not checked"
    """It lies behind a broken one."""


@dataclass(frozen=True, slots=True)
class Hop:
    """Where, what the check found there, and if it does not work what was expected and what to do."""

    where: str
    state: State
    observed: str
    expected: str = ""
    advice: str = ""

    def to_json(self) -> JsonObject:
        """As `tracegrade doctor --json` prints it."""
        return {
            "hop": self.where,
            "state": self.state.value,
            "found": self.observed,
            "expected": self.expected,
            "do": self.advice,
        }


def works(where: str, observed: str) -> Hop:
    """A hop with nothing wrong."""
    return Hop(where, State.WORKS, observed)


def broken(where: str, observed: str, expected: str, advice: str) -> Hop:
    """A hop that does not work."""
    return Hop(where, State.BROKEN, observed, expected, advice)


def unknown(where: str, observed: str, advice: str) -> Hop:
    """A hop that could not be checked."""
    return Hop(where, State.UNKNOWN, observed, "", advice)
