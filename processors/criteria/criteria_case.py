"""The tests that a criteria file carries: a run, and how its evaluations are to end."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from processors.documents.located_yaml import LocatedYaml
from processors.documents.model_problems import Path
from processors.documents.problem import Problem
from processors.model.json_value import JsonObject


@dataclass(frozen=True, slots=True)
class ExpectedResult:
    """How one evaluation is to end; a `score` or `reason` of None may be anything."""

    outcome: Literal["pass", "fail", "error", "not_evaluated", "skipped"]
    score: float | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CriteriaCase:
    """One test of a criteria file.

    Exactly one of `run` (an agent run in the form of a `*.runs.jsonl` line) and `trace` (a path as written,
    relative to the file) is set. `agent` restricts a trace to the runs of one agent. `expect` is by the name
    of the evaluation.
    """

    name: str
    run: JsonObject | None
    trace: str | None
    agent: str | None
    expect: Mapping[str, ExpectedResult]
    tenant: str
    document: LocatedYaml
    path: Path

    @property
    def file(self) -> str:
        """The file that the test stands in."""
        return self.document.file

    def problem(self, path: Path, message: str) -> Problem:
        """A problem with the part of this test at `path`."""
        return self.document.problem((*self.path, *path), message)
