"""What a check of an agent's response found."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

MAX_EVIDENCE_CHARACTERS = 80
"""Characters of evidence that a violation shows."""
HIDDEN = "[secret]"
"""What evidence shows in place of a secret."""

_WORD = re.compile(r"\S+")
_EDGES = ".,;:!?…\"'()[]{}<>`*"
_SHORTEST_PART, _PIECE = 3, 4
"""Words of so many characters may be parts of secrets; those that have so many in common hold parts."""


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
    """The answer of one check. Without `applies` nothing can be said and there are no violations.

    `secrets` are texts that no evidence may repeat, in whole or in part: neither this check's nor another's.
    """

    check: str
    applies: bool
    violations: tuple[Violation, ...] = ()
    secrets: tuple[str, ...] = ()


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


def without_secrets(results: Sequence[CheckResult]) -> list[CheckResult]:
    """`results` whose evidence repeats no secret that one of them found, and no part of one."""
    secrets = {secret.casefold() for result in results for secret in result.secrets}
    if not secrets:
        return list(results)
    return [
        replace(
            result,
            violations=tuple(
                replace(found, evidence=_hidden(found.evidence, secrets)) for found in result.violations
            ),
        )
        if not result.secrets  # its own evidence names kinds of secrets
        else result
        for result in results
    ]


def _hidden(evidence: str, secrets: Collection[str]) -> str:
    def shown(match: re.Match[str]) -> str:
        word = match[0].casefold()
        core = word.strip(_EDGES)
        is_part = len(core) >= _SHORTEST_PART and any(core in secret for secret in secrets)
        return HIDDEN if is_part or not pieces.isdisjoint(_pieces(word)) else match[0]

    pieces = {piece for secret in secrets for piece in _pieces(secret)}
    return _WORD.sub(shown, evidence)


def _pieces(text: str) -> Iterator[str]:
    """All that is long enough to tell something of a secret."""
    return (text[start : start + _PIECE] for start in range(len(text) - _PIECE + 1))
