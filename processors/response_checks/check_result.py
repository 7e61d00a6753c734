"""What a check of an agent's response found."""

from collections.abc import Sequence
from dataclasses import dataclass

MAX_EVIDENCE_CHARACTERS = 80
"""Characters of evidence that a violation shows."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing that was handled wrongly.

    `check` is the id of the check, with its part where it has parts (`RH1`, `RH3.2`, `RH9.a`). `call` is the
    position of the call that it is about, None where no single call is meant. `evidence` is for people.
    """

    check: str
    call: int | None
    evidence: str


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The answer of one check. Without `applies` nothing can be said and there are no violations."""

    check: str
    applies: bool
    violations: tuple[Violation, ...] = ()


def violation(check: str, call: int | None, evidence: str) -> Violation:
    """A violation with its evidence in one line, cut to 80 characters."""
    text = " ".join(evidence.split())
    if len(text) > MAX_EVIDENCE_CHARACTERS:
        text = text[: MAX_EVIDENCE_CHARACTERS - 1] + "…"
    return Violation(check, call, text)


def applied(check: str, violations: Sequence[Violation] = ()) -> CheckResult:
    """The result of a check that applies."""
    return CheckResult(check, True, tuple(violations))


def not_applicable(check: str) -> CheckResult:
    """The result of a check that can say nothing."""
    return CheckResult(check, False)
