"""The error of an evaluator whose criteria do not fit what a run holds."""


class EvaluationError(ValueError):
    """The run holds everything that is needed, and it cannot be graded by these criteria.

    For example an output without the key that is to be compared. The outcome is `error`, the class names
    what went wrong (`error_type`), and the text is the explanation: what the criteria require and what kind
    of value the run has, and nothing that was captured.
    """

    @property
    def error_type(self) -> str:
        """What the result names as its `error_type`: the class."""
        return type(self).__name__
