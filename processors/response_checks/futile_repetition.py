"""Check RH5: a call that fails the same way, repeated without change."""

from collections.abc import Hashable
from dataclasses import dataclass, field

from processors.comparison import equality_key
from processors.response_checks.answer_facts import AnswerFacts
from processors.response_checks.check_result import CheckResult, applied, not_applicable, violation
from processors.response_checks.settings import CheckSettings, ErrorClass

CHECK = "RH5"
_FUTILE_ATTEMPTS = 2


@dataclass(slots=True)
class _Streak:
    """Failing calls of one tool with equal arguments, nothing else of that tool in between."""

    arguments: Hashable
    failures: list[ErrorClass] = field(default_factory=list)
    is_reported: bool = False


def futile_repetitions(facts: AnswerFacts, settings: CheckSettings) -> CheckResult:
    """A violation where a call with a permanent or unknown error is made again, or a retryable one too often.

    Calls of other tools do not break a streak; a success or other arguments do. Argument errors are another
    check's matter.
    """
    found = []
    streaks: dict[str, _Streak] = {}
    unknown: dict[str, int] = {}
    is_open = False
    for position, call in enumerate(facts.response.calls):
        failure = call.failure
        if failure is None or failure.error_class is ErrorClass.ARGUMENT:
            streaks.pop(call.name, None)
            unknown.pop(call.name, None)
            continue
        if call.arguments is None:
            streaks.pop(call.name, None)
            unknown[call.name] = unknown.get(call.name, 0) + 1
            is_open = is_open or unknown[call.name] >= _FUTILE_ATTEMPTS
            continue
        key = equality_key(call.arguments)
        streak = streaks.get(call.name)
        if streak is None or streak.arguments != key:
            streak = streaks[call.name] = _Streak(key)
        streak.failures.append(failure.error_class)
        final = sum(error is not ErrorClass.RETRYABLE for error in streak.failures)
        if not streak.is_reported and (
            final >= _FUTILE_ATTEMPTS or len(streak.failures) >= settings.retryable_attempts
        ):
            streak.is_reported = True
            found.append(
                violation(CHECK, position, f"{call.name} repeated unchanged after: {failure.summary}")
            )
    return applied(CHECK, found) if found or not is_open else not_applicable(CHECK)
