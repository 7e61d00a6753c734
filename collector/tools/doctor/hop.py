"""One hop of a trace's way, and what was found out about it."""

from dataclasses import dataclass
from enum import StrEnum

from processors.model import JsonObject


class State(StrEnum):
    """How a hop stands."""

    WORKS = "works"
    BROKEN = "broken"
    UNKNOWN = "not checked"
    """It lies behind one that is broken."""


@dataclass(frozen=True, slots=True)
class Hop:
    """Where, what was found there, and if it does not work what was expected and what to do."""

    where: str
    state: State
    found: str
    expected: str = ""
    advice: str = ""

    def to_json(self) -> JsonObject:
        """As `tracegrade doctor --json` prints it."""
        return {
            "hop": self.where,
            "state": self.state.value,
            "found": self.found,
            "expected": self.expected,
            "do": self.advice,
        }


@dataclass(frozen=True, slots=True)
class Trouble:
    """What is wrong with a hop, without saying which one it is."""

    found: str
    expected: str
    advice: str

    def at(self, where: str) -> Hop:
        """The broken hop."""
        return Hop(where, State.BROKEN, self.found, self.expected, self.advice)


def works(where: str, found: str) -> Hop:
    """A hop with nothing wrong."""
    return Hop(where, State.WORKS, found)


def unknown(where: str, behind: str, advice: str) -> Hop:
    """A hop that could not be looked at."""
    return Hop(where, State.UNKNOWN, behind, "", advice)
