"""The example that every evaluator gives of itself, in the form of a criteria file and a test in it."""

from dataclasses import dataclass
from inspect import cleandoc


@dataclass(frozen=True, slots=True)
class EvaluatorExample:
    """An evaluation and a run that it grades; the reference page shows both with the verdict.

    `evaluation` is the YAML of one entry below `evaluations:`, `run` that of a test's `run:` without its
    agent. Common indentation is taken away from both.
    """

    evaluation: str
    run: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "evaluation", cleandoc(self.evaluation))
        object.__setattr__(self, "run", cleandoc(self.run))
