"""The table of checks: which there are, and all of them run on one response."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from processors.response_checks.agent_response import AgentResponse
from processors.response_checks.answer_facts import AnswerFacts
from processors.response_checks.check_result import CheckResult, not_applicable, without_secrets
from processors.response_checks.disclosure import disclosures
from processors.response_checks.futile_repetition import futile_repetitions
from processors.response_checks.hidden_error import hidden_errors
from processors.response_checks.ignored_result import ignored_results
from processors.response_checks.reversed_meaning import (
    false_success,
    reversed_flag,
    reversed_state,
    reversed_trend,
)
from processors.response_checks.settings import DEFAULT_SETTINGS, CheckSettings
from processors.response_checks.uncorrected_argument import uncorrected_arguments
from processors.response_checks.unsupported_date import unsupported_dates
from processors.response_checks.unsupported_entity import (
    unsupported_addresses,
    unsupported_identifiers,
    unsupported_names,
)
from processors.response_checks.unsupported_number import unsupported_numbers


@dataclass(frozen=True, slots=True)
class ResponseCheck:
    """A check: its id with its part, what it looks for, and its function.

    `reads_content` marks checks that say nothing unless the input, the answer and all results are known.
    """

    id: str
    finds: str
    reads_content: bool
    run: Callable[[AnswerFacts, CheckSettings], CheckResult]


RESPONSE_CHECKS: Final = (
    ResponseCheck("RH1", "a number without support", True, unsupported_numbers),
    ResponseCheck("RH2", "a date or time without support", True, unsupported_dates),
    ResponseCheck("RH3.1", "an invented address or URL", True, unsupported_addresses),
    ResponseCheck("RH3.2", "an invented identifier", True, unsupported_identifiers),
    ResponseCheck("RH3.3", "an invented name", True, unsupported_names),
    ResponseCheck("RH4", "an error hidden or not retried", False, hidden_errors),
    ResponseCheck("RH5", "a futile repetition", False, futile_repetitions),
    ResponseCheck("RH6", "an argument error not corrected", False, uncorrected_arguments),
    ResponseCheck("RH7", "a disclosure", True, disclosures),
    ResponseCheck("RH8", "a result ignored", True, ignored_results),
    ResponseCheck("RH9.a", "success claimed after an error", True, false_success),
    ResponseCheck("RH9.b", "a state reversed", True, reversed_state),
    ResponseCheck("RH9.c", "a flag reversed", True, reversed_flag),
    ResponseCheck("RH9.d", "a trend reversed", True, reversed_trend),
)
"""All checks in the order of their ids."""

CHECK_IDS: Final = tuple(check.id for check in RESPONSE_CHECKS)


def group_of(check: str) -> str:
    """The id of a check without its part: `RH9` of `RH9.a`."""
    return check.partition(".")[0]


def check_response(
    response: AgentResponse,
    settings: CheckSettings = DEFAULT_SETTINGS,
    wanted: frozenset[str] = frozenset(CHECK_IDS),
) -> list[CheckResult]:
    """The results of the `wanted` checks, in the order of the table; each can be reported by itself."""
    return check_answer(AnswerFacts(response), settings, wanted)


def check_answer(facts: AnswerFacts, settings: CheckSettings, wanted: frozenset[str]) -> list[CheckResult]:
    """The results of the `wanted` checks by facts of the answer that other checks may have read already.

    No evidence repeats a secret that RH7 found.
    """
    is_captured = facts.response.is_captured
    results = [
        check.run(facts, settings) if is_captured or not check.reads_content else not_applicable(check.id)
        for check in RESPONSE_CHECKS
        if check.id in wanted
    ]
    return without_secrets(results)
