"""What the process that grades a draft has to know."""

import pickle
from dataclasses import dataclass

from collector.criteria.criteria_files import CriteriaTexts
from collector.criteria.evaluation_config import EvaluationConfig


@dataclass(frozen=True, slots=True)
class DraftSettings:
    """How the service grades: the criteria in force, and its configuration.

    `custom_order` is the message from which a worker loads custom evaluators.
    """

    texts: CriteriaTexts
    evaluation: EvaluationConfig
    custom_order: bytes = b""

    def order(self, draft: str, replaced: str, tenant: str | None, is_partial: bool, writes: bool) -> bytes:
        """The first message to the process: a draft, as `CriteriaTexts.read_with_draft` has it.

        With `is_partial`, not all runs of a conversation are graded. With `writes`, the process answers with
        the verdicts for exporters of scores, not with what differs.
        """
        return pickle.dumps((self, draft, replaced, tenant, is_partial, writes))
