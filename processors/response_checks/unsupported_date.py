"""Check RH2: dates and clock times in the answer that no date or time of the evidence agrees with."""

import re
from datetime import timedelta

from processors.response_checks.answer_facts import AnswerFacts
from processors.response_checks.check_result import CheckResult, applied, violation
from processors.response_checks.number_support import minutes_of
from processors.response_checks.settings import CheckSettings
from processors.texts.moments import CalendarDate, Written

CHECK = "RH2"
_ZONE_STEP_MINUTES = 30
_ZONE_CUE = re.compile(
    r"\btime\b|\b(?:UTC|GMT|[ECMPA][SD]?T|CES?T|EES?T|WES?T|BST|IST|JST|KST|SGT|HKT|AE[SD]T|NZ[SD]T|MSK)\b"
    r"|\b[Ii]n [A-Z]\w+|\blocal\b"
)
_ASKED_ZONE_CUE = re.compile(
    r"\btime ?zone\b|\b(?:my|local) time\b|\b(?:UTC|GMT|[ECMP][SD]T|CES?T|BST|IST|JST)\b", re.IGNORECASE
)


def unsupported_dates(facts: AnswerFacts, settings: CheckSettings) -> CheckResult:
    """A violation for each stated date or time that the evidence does not hold, also not computed.

    Computed is what lies one length of time of the evidence from a date or time of the evidence. Where the
    evidence has a time zone and the answer speaks of one, times may be shifted by whole half hours and dates
    by one day.
    """
    return applied(
        CHECK,
        [
            violation(CHECK, None, f"not in the evidence: {stated.text}")
            for stated, is_known in known_moments(facts)
            if not is_known
        ],
    )


def known_moments(facts: AnswerFacts) -> list[tuple[Written, bool]]:
    """Each stated date or time, and whether the evidence holds it, moved or computed included."""
    found: list[tuple[Written, bool]] = []
    if not facts.moments:
        return found
    evidence = facts.evidence_moments
    lengths: list[float] | None = None
    is_zoned = evidence.has_zone and (
        _ZONE_CUE.search(facts.output) is not None
        or _ASKED_ZONE_CUE.search(facts.response.input or "") is not None
    )
    for stated in facts.moments:
        values = (*stated.dates, *(() if stated.time is None else (stated.time,)))
        is_known = any(map(evidence.holds, values)) or (is_zoned and _is_in_other_zone(facts, stated))
        if not is_known:
            if lengths is None:
                lengths = minutes_of(facts.evidence_numbers.written)
            is_known = bool(lengths) and any(evidence.is_shifted(value, lengths) for value in values)
        found.append((stated, is_known))
    return found


def _is_in_other_zone(facts: AnswerFacts, stated: Written) -> bool:
    evidence = facts.evidence_moments
    if stated.time is not None:
        return any((time.minute - stated.time.minute) % _ZONE_STEP_MINUTES == 0 for time in evidence.times)
    for known in evidence.dates:
        day = known.to_date()
        if day is None:
            continue
        for step in (-1, 1):
            try:
                moved = day + timedelta(days=step)
            except OverflowError:
                continue
            neighbour = CalendarDate(moved.year, moved.month, moved.day)
            if any(neighbour.agrees(value) for value in stated.dates):
                return True
    return False
