"""Response handling: claims of an answer held against a ledger of evidence by a short list of rules.

`rules.py` lists the rules. They know no configuration file and no score; words come from `lexicons/`, one
file a language, by the language in which the answer is written.
"""

from processors.response_handling.errors import open_failures
from processors.response_handling.failures import ErrorClass, ErrorClassifier
from processors.response_handling.grounding import Evidence
from processors.response_handling.ledger import FROM_USER
from processors.response_handling.response import MAX_CALLS, ObservedCall, Response, Settings
from processors.response_handling.rules import (
    REMOVED_RULES,
    RULE_IDS,
    RULES,
    applicable_rules,
    findings_of,
    group_of,
)

__all__ = [
    "FROM_USER", "MAX_CALLS", "REMOVED_RULES", "RULES", "RULE_IDS", "ErrorClass", "ErrorClassifier",
    "Evidence", "ObservedCall", "Response", "Settings", "applicable_rules", "findings_of",
    "group_of", "open_failures",
]  # fmt: skip
