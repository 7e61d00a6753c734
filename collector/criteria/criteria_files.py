"""Criteria files on disk: loading them as one set, and following their changes.

Criteria can change while the service runs. A mistake in a file never takes away what was in force
before: that file's last good version stays until it is mended.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

from collector.clock import Clock, ends_within
from collector.config_fields import BUILTIN
from collector.criteria.files import LocatedFiles, default_file, find_files
from collector.garbage_collection import collection_paused
from collector.telemetry import Metrics, Readiness
from collector.text_file import KeptFile, decoded_text
from collector.workers.custom_evaluators import evaluator_kind
from collector.workers.worker_evaluator import SubmissionEvaluator, WorkerEvaluator
from processors.criteria import (
    CriteriaCase,
    CriteriaDocument,
    CriteriaSet,
    Evaluation,
    criteria_warnings,
    evaluator_types,
    is_schema,
    read_criteria,
)
from processors.documents import InvalidInput, Problem, path_text
from processors.model import Evaluator, time_text

_BUILTIN_FILE = "criteria/default.yaml"
"""The shipped criteria that `builtin` stands for: they need no reference."""

RELOAD_INTERVAL_SECONDS = 2.0
"""How often the files are looked at for changes."""

UNCOVERED_AGENTS = (
    "Agents that no pattern matches get no evaluation. With builtin in processors.evaluation.criteria every "
    "agent gets the checks that need no reference."
)
"""The warning about criteria that do not cover every agent."""

DRAFT = "draft"
"""The name of a draft in messages about it."""

_ENDINGS = (".yaml", ".yml", ".json")

_logger = logging.getLogger(__name__)


def load_criteria(
    patterns: Sequence[str | Path] | None,
    *,
    environment: Mapping[str, str],
    evaluators: Mapping[str, type[Evaluator]] | None = None,
) -> CriteriaSet:
    """All criteria in the files that `patterns` name; None means the built-in ones.

    A pattern is `builtin`, a file, a folder (its `.yaml`, `.yml` and `.json` files, not those of folders in
    it) or a glob, relative to the working directory. A file that several name counts once. Raises
    InvalidInput with the problems of all files, of patterns that match nothing, and of evaluations that two
    files give one agent under one name.
    """
    return CriteriaStore(patterns, environment=environment, evaluators=evaluators).current


@dataclass(frozen=True, slots=True)
class CriteriaTexts:
    """Criteria as the texts of their files, which another process can read.

    `files` are names, contents, and whether it is the built-in file; `custom` evaluators have a name, a
    version, and whether they are graded a submission.
    """

    files: Sequence[tuple[str, bytes, bool]]
    environment: Mapping[str, str]
    custom: Sequence[tuple[str, str, bool]]

    def read(self) -> CriteriaSet:
        """The criteria that were in force, made from their texts."""
        return _united(self._documents())

    def read_with_draft(self, draft: str, replaced: str, tenant: str | None) -> CriteriaSet:
        """These criteria with a draft in place of the file `replaced`, of all (`*`) or of none (empty).

        With a `tenant`, only criteria of that tenant and the built-in ones count. Drafts have no variables of
        the environment: their authors need not be allowed to know them. Raises InvalidInput with all mistakes
        of the draft.
        """
        documents = {}
        for name, document in self._documents(without=replaced).items():
            agents = [
                agent for agent in document.agents if agent.is_builtin or tenant in (None, agent.tenant)
            ]
            documents[name] = replace(document, agents=agents)
        drafted = _parse(DRAFT, draft.encode(), {}, self._evaluators())
        problems = [*drafted.problems]
        documents[DRAFT] = drafted
        problems += [problem for problem, _ in _conflicts(documents)]
        if problems:
            raise InvalidInput(problems)
        return _united(documents)

    @collection_paused()
    def _documents(self, without: str = "") -> dict[str, CriteriaDocument]:
        """The files by their names, without one of them or all (`*`)."""
        evaluators = self._evaluators()
        documents = {}
        for name, content, is_builtin in self.files:
            if without in (name, "*"):
                continue
            document = _parse(name, content, self.environment, evaluators, is_builtin=is_builtin)
            if document.problems:
                raise InvalidInput(document.problems)
            documents[name] = document
        return documents

    def _evaluators(self) -> dict[str, type[Evaluator]]:
        kinds = {
            name: evaluator_kind(name, version, reads_submission=reads_submission)
            for name, version, reads_submission in self.custom
        }
        return {**evaluator_types(), **kinds}


def _united(documents: Mapping[str, CriteriaDocument]) -> CriteriaSet:
    return CriteriaSet([agent for document in documents.values() for agent in document.agents])


class CriteriaStore:
    """The criteria in force, and how they follow the files.

    Constructing it loads the files as `load_criteria` does. `current` is replaced as a whole, never
    changed: a caller that holds a set keeps grading by it. The methods read the disk.
    """

    def __init__(
        self,
        patterns: Sequence[str | Path] | None,
        *,
        environment: Mapping[str, str],
        evaluators: Mapping[str, type[Evaluator]] | None = None,
        problems: list[Problem] | None = None,
        last_good: Callable[[], Sequence[KeptFile]] = tuple,
    ) -> None:
        """Load the files; with `problems` given, mistakes are added to it instead of raised.

        `last_good` is called where there are mistakes: what a process before had in force then counts as it
        does in a reload, and only mistakes in files that were never good are raised.
        """
        named = [str(pattern) for pattern in patterns or [BUILTIN]]
        self._builtin = str(default_file(_BUILTIN_FILE)) if BUILTIN in named else ""
        self._patterns = [name for name in (self._builtin, *named) if name not in ("", BUILTIN)]
        self._environment = environment
        self._evaluators = evaluators
        self._good: dict[str, _CriteriaFile] = {}
        self._matches: dict[str, list[str]] = {}
        self._seen = ""
        self.current = CriteriaSet()
        """The criteria in force."""
        self.texts = CriteriaTexts((), environment, ())
        """The criteria in force as texts; another object after each reload."""
        self.warnings: list[Problem] = []
        """What is in the criteria in force without effect (`processors.criteria.doubtful_criteria`)."""
        self._refused: dict[str, CriteriaDocument] = {}
        self.stale: list[str] = []
        """The files that count with their last good version, which is not what is on disk."""
        self.problems: list[Problem] = []
        """What the last load found wrong."""
        result = self.reload()
        if result and (kept := last_good()):
            self._take_up(kept)
            result = self.reload()
            for file in kept:
                if file.path in self.stale:
                    since = time_text(file.kept_unix_nano)
                    _logger.warning(
                        "A criteria file counts with its last good version.",
                        extra={"file": file.path, "in_force_since": since},
                    )
            covered = {name for file in kept if file.path in self._good for name in (file.path, file.pattern)}
            if all(problem.file in covered for problem in result):
                return
        if problems is not None:
            problems += result
        elif result:
            raise InvalidInput(result)

    @property
    def names(self) -> list[str]:
        """The files in force."""
        return list(self._good)

    @property
    def cases(self) -> list[CriteriaCase]:
        """The tests in the files in force, in their order."""
        return [case for file in self._good.values() for case in file.document.cases]

    @property
    def refused(self) -> list[CriteriaDocument]:
        """What could be read of the files that the last load refused."""
        return list(self._refused.values())

    def last_good(self, now_unix_nano: int) -> list[KeptFile]:
        """The files in force, for a later `CriteriaStore`; without the built-in one."""
        patterns = {name: pattern for pattern, names in self._matches.items() for name in names}
        return [
            KeptFile(path=name, pattern=patterns[name], content=file.content, kept_unix_nano=now_unix_nano)
            for name, file in self._good.items()
            if name != self._builtin
        ]

    def changed(self) -> bool:
        """True when the files are not those of the last load: by their content, not by their times."""
        return self._find().digest != self._seen

    @collection_paused()
    def reload(self) -> list[Problem]:
        """Read all files again and put into force what is good; the problems of what is not.

        File by file: a file with a problem counts with its last good version, a file that is gone counts no
        more. While a pattern matches nothing, the files that it named before count as they were. Where two
        files give one evaluation of an agent, those of them that changed count with their last good version.
        """
        result = self._find()
        problems = list(result.problems)
        self._refused = {}
        files = self._read(result, problems)
        problems += self._settle_conflicts(files)
        self._seen = result.digest
        self._good = files
        self._matches |= {pattern: list(names) for pattern, names in result.matches.items()}
        self.current = _united({name: file.document for name, file in files.items()})
        self.texts = CriteriaTexts(
            [(name, file.content, name == self._builtin) for name, file in files.items()],
            dict(self._environment),
            [
                (kind.id, kind.version, issubclass(kind, SubmissionEvaluator))
                for kind in (self._evaluators or {}).values()
                if issubclass(kind, WorkerEvaluator)
            ],
        )
        self.warnings = [warning for file in files.values() for warning in file.document.warnings]
        self.warnings += criteria_warnings(self.current.agents)
        self.stale = [name for name, file in files.items() if result.contents.get(name) != file.content]
        self.problems = list(dict.fromkeys(problems))
        return self.problems

    def _take_up(self, kept: Sequence[KeptFile]) -> None:
        """Let what was in force before this process count as it does before a reload."""
        self._good = {}
        self._matches = {}
        for file in kept:
            document = _parse(file.path, file.content, self._environment, self._evaluators)
            if not document.problems:  # by this version, with this environment
                self._good[file.path] = _CriteriaFile(file.content, document)
                self._matches.setdefault(file.pattern, []).append(file.path)

    def _find(self) -> LocatedFiles:
        return find_files(self._patterns, _ENDINGS, is_schema)

    def _read(self, result: LocatedFiles, problems: list[Problem]) -> "dict[str, _CriteriaFile]":
        files: dict[str, _CriteriaFile] = {}
        for pattern in self._patterns:
            for name in result.matches.get(pattern, self._matches.get(pattern, ())):
                content = result.contents.get(name)
                file = self._good.get(name)
                if content is not None and (file is None or file.content != content):
                    document = _parse(
                        name, content, self._environment, self._evaluators, is_builtin=name == self._builtin
                    )
                    if document.problems:
                        problems += document.problems
                        self._refused[name] = document
                    else:
                        file = _CriteriaFile(content, document)
                if file is not None:
                    files[name] = file
        return files

    def _settle_conflicts(self, files: "dict[str, _CriteriaFile]") -> list[Problem]:
        """Take back changed files until no two give one evaluation: the files before did not."""
        problems: list[Problem] = []
        while conflicts := list(_conflicts({name: file.document for name, file in files.items()})):
            for problem, names in conflicts:
                problems.append(problem)
                for name in names:
                    before = self._good.get(name)
                    if before is not None:
                        files[name] = before
                    elif name in files:
                        self._refused[name] = files.pop(name).document
        return problems


class CriteriaFollower:
    """Reloads criteria while the service runs: when a file changes, and on request.

    `on_criteria` is called with the criteria in force, at once and after each reload. What a reload finds
    wrong is logged; counters and gauges show how it ended and what is in force, and the readiness page names
    files that count with their last good version. `keep` is called with what is in force once this follows
    the files, and after each reload.
    """

    def __init__(
        self,
        store: CriteriaStore,
        on_criteria: Callable[[CriteriaSet], None],
        *,
        metrics: Metrics,
        clock: Clock,
        readiness: Readiness,
        keep: Callable[[Sequence[KeptFile]], None] | None = None,
    ) -> None:
        self._store = store
        self._on_criteria = on_criteria
        self._metrics = metrics
        self._clock = clock
        self._readiness = readiness
        self._keep = keep
        self._reload_requested = asyncio.Event()
        self._publish()

    def request_reload(self) -> None:
        """Have the files read again soon; safe in a signal handler of the loop."""
        self._reload_requested.set()

    async def follow(self) -> NoReturn:
        """Follow the files until cancelled; a bad file never takes good ones down."""
        for problem in self._store.problems:
            _logger.error("A criteria file was not loaded: %s", problem)
        self._log_coverage()
        self._keep_last_good()
        while True:
            await ends_within(RELOAD_INTERVAL_SECONDS, self._reload_requested.wait(), self._clock)
            was_requested = self._reload_requested.is_set()
            self._reload_requested.clear()
            if was_requested or await asyncio.to_thread(self._store.changed):
                problems = await asyncio.to_thread(self._store.reload)
                self._publish()
                self._keep_last_good()
                self._metrics.criteria_reloads.add(1, "failure" if problems else "success")
                for problem in problems:
                    _logger.error("A criteria file was not reloaded: %s", problem)
                if not problems:
                    _logger.info("Criteria are reloaded.", extra={"criteria_hash": self._store.current.hash})
                    self._log_coverage()

    def _log_coverage(self) -> None:
        criteria = self._store.current
        _logger.info("Criteria are in force for %s.", criteria.describe())
        if not criteria.covers_every_agent:
            _logger.warning(UNCOVERED_AGENTS)

    def _keep_last_good(self) -> None:
        if self._keep is not None:
            self._keep(self._store.last_good(self._clock.unix_nano()))

    def _publish(self) -> None:
        criteria = self._store.current
        stale = self._store.stale
        self._metrics.criteria_last_reload_successful.set(not self._store.problems)
        self._metrics.criteria_file_stale.values.clear()
        for name in self._store.names:
            self._metrics.criteria_file_stale.set(name in stale, name)
        detail = f"last good version in force of {', '.join(stale)}" if stale else ""
        self._readiness.set("criteria", True, detail)
        self._metrics.criteria_info.values.clear()
        self._metrics.criteria_info.set(1, criteria.hash)
        for warning in self._store.warnings:
            _logger.warning("A criteria file may not do what is intended: %s", warning)
        self._on_criteria(criteria)


@dataclass(frozen=True, slots=True)
class _CriteriaFile:
    """One file as it was last good."""

    content: bytes
    document: CriteriaDocument


def _parse(
    name: str,
    content: bytes,
    environment: Mapping[str, str],
    evaluators: Mapping[str, type[Evaluator]] | None,
    *,
    is_builtin: bool = False,
) -> CriteriaDocument:
    try:
        text = decoded_text(content, name)
    except InvalidInput as error:
        return CriteriaDocument(problems=error.problems)
    document = read_criteria(text, name, environment, evaluators, strict=False)
    if not is_builtin:
        return document
    return replace(document, agents=[replace(agent, is_builtin=True) for agent in document.agents])


def _conflicts(documents: Mapping[str, CriteriaDocument]) -> Iterator[tuple[Problem, tuple[str, str]]]:
    """Evaluations that two files give one agent, each with the names of the two files."""
    first: dict[tuple[str, str, str], tuple[str, Evaluation]] = {}
    for name, document in documents.items():
        for agent in document.agents:
            if agent.is_builtin:
                continue  # files are there to change it
            for index, evaluation in enumerate(agent.evaluations):
                key = agent.tenant, agent.pattern, evaluation.name
                other, other_evaluation = first.setdefault(key, (name, evaluation))
                if other != name:
                    path = path_text(("agents", agent.pattern, "evaluations", index))
                    message = f'"{evaluation.name}" of this agent is also in {other_evaluation.source}'
                    yield Problem.at(evaluation.source, path, message), (other, name)
