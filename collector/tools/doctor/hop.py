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
    """Where, and what the check observed there.

    A hop that does not work has what was `expected` and `advice` on what to do; one that could not be checked
    has advice alone.
    """

    where: str
    observed: str
    expected: str = ""
    advice: str = ""

    @property
    def state(self) -> State:
        """Whether it works."""
        if self.expected:
            return State.BROKEN
        return State.UNKNOWN if self.advice else State.WORKS

    def to_json(self) -> JsonObject:
        """As `tracegrade doctor --json` prints it."""
        return {
            "hop": self.where,
            "state": self.state.value,
            "found": self.observed,
            "expected": self.expected,
            "do": self.advice,
        }
