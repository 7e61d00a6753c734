"""Check RH6: an argument error after which nothing was corrected and nothing was said."""

from processors.comparison import equal_values
from processors.response_checks.answer_facts import AnswerFacts
from processors.response_checks.check_result import CheckResult, applied, not_applicable, violation
from processors.response_checks.settings import CheckSettings, ErrorClass
from processors.texts.english import Acknowledgement

CHECK = "RH6"


def uncorrected_arguments(facts: AnswerFacts, settings: CheckSettings) -> CheckResult:
    """A violation where the next call of the tool repeats the refused arguments and fails again.

    Also where the tool is not called again and the answer does not admit it. A question back to the user
    admits it only with a word of trouble in it.
    """
    calls = facts.response.calls
    found = []
    unsaid = []
    is_open = False
    next_of_tool: dict[str, int] = {}
    for position in range(len(calls) - 1, -1, -1):
        call = calls[position]
        later = next_of_tool.get(call.name)
        next_of_tool[call.name] = position
        failure = call.failure
        if failure is None or failure.error_class is not ErrorClass.ARGUMENT:
            continue
        if later is None:
            unsaid.append(violation(CHECK, position, f"neither corrected nor admitted: {failure.summary}"))
            continue
        following = calls[later]
        if following.failure is None:
            continue
        if call.arguments is None or following.arguments is None:
            is_open = True
        elif equal_values(call.arguments, following.arguments):
            found.append(violation(CHECK, later, f"{call.name} repeated unchanged after: {failure.summary}"))
    if unsaid:
        if not facts.is_english:
            is_open = True
        elif not Acknowledgement(settings.acknowledgements).found_in(facts.output):
            found.extend(unsaid)
    return applied(CHECK, found[::-1]) if found or not is_open else not_applicable(CHECK)
