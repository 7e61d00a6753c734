"""Check RH4: an error that was neither retried, nor stood in for, nor admitted."""

from processors.response_checks.answer_facts import AnswerFacts
from processors.response_checks.check_result import CheckResult, applied, not_applicable, violation
from processors.response_checks.settings import CheckSettings, ErrorClass
from processors.texts.english import Acknowledgement

CHECK = "RH4"
_MAX_SHOWN = 5


def hidden_errors(facts: AnswerFacts, settings: CheckSettings) -> CheckResult:
    """A violation for each error that no later success makes good and that the answer does not admit.

    Argument errors are another check's matter, and that a thing does not exist often is the answer. With
    `require_retry` a retryable error without a later call of its tool is a violation also where it was
    admitted.
    """
    calls = facts.response.calls
    last_success = max((position for position, call in enumerate(calls) if call.failure is None), default=-1)
    last_of_tool = {call.name: position for position, call in enumerate(calls)}
    found = []
    hidden = []
    for position, call in enumerate(calls):
        failure = call.failure
        if failure is None or failure.error_class is ErrorClass.ARGUMENT:
            continue
        is_retryable = failure.error_class is ErrorClass.RETRYABLE
        if settings.require_retry and is_retryable and last_of_tool[call.name] == position:
            found.append(violation(CHECK, position, f"not tried again: {failure.summary}"))
        elif position > last_success and not failure.is_absence:
            hidden.append(violation(CHECK, position, f"not admitted: {failure.summary}"))
    if hidden:
        if not facts.is_english:
            return applied(CHECK, found) if found else not_applicable(CHECK)
        if not Acknowledgement(settings.acknowledgements).found_in(facts.output):
            found.extend(hidden[:_MAX_SHOWN])
    return applied(CHECK, found)
