"""Reads one criteria file: text in, ready evaluations out, or every mistake in it at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from typing import NamedTuple

from pydantic import BaseModel, ValidationError

from processors.comparison.expected_value import (
    KNOWN_MATCHERS,
    expected_value_problems,
    is_matcher,
)
from processors.criteria.agent_criteria import AgentCriteria, Evaluation, Mute
from processors.criteria.criteria_case import CriteriaCase, ExpectedResult
from processors.criteria.criteria_file_model import CriteriaFile, EvaluationEntry, MuteEntry
from processors.criteria.criteria_template import CriteriaTemplate, has_references
from processors.criteria.evaluator_discovery import evaluator_types
from processors.criteria.reserved_agents import SELF_CHECK_AGENT
from processors.criteria.when_entry import selector_of, when_problems
from processors.documents.environment import expand
from processors.documents.located_yaml import LocatedYaml, read_yaml
from processors.documents.model_problems import Path, known_keys, model_problems, validated
from processors.documents.model_types import camel_case
from processors.documents.problem import Problem, ProblemsFound, did_you_mean
from processors.model.evaluator import Evaluator
from processors.model.json_value import JsonObject, JsonValue

_PREFIX = "uipath-"
_DEFAULT_CRITERIA = "default_evaluation_criteria"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class CriteriaDocument:
    """What a criteria file holds: its criteria in their order, and the tests of them."""

    agents: Sequence[AgentCriteria]
    cases: Sequence[CriteriaCase] = ()


def read_criteria(
    text: str,
    file: str,
    environment: Mapping[str, str],
    evaluators: Mapping[str, type[Evaluator]] | None = None,
) -> list[AgentCriteria]:
    """The criteria in `text`, in its order; as `read_criteria_file`."""
    return list(read_criteria_file(text, file, environment, evaluators).agents)


def read_criteria_file(
    text: str,
    file: str,
    environment: Mapping[str, str],
    evaluators: Mapping[str, type[Evaluator]] | None = None,
) -> CriteriaDocument:
    """The criteria and tests in `text`, in its order.

    `file` is the name that messages use. `evaluators` are the known evaluators by id; None: all there are.

    Raises:
        ProblemsFound: with all problems of the file, in its order; none of the criteria can be used then.
    """
    document = read_yaml(text, file, partial(expand, environment=environment, dollars="criteria"))
    reader = _Reader(document, evaluator_types() if evaluators is None else evaluators)
    found = reader.read()
    problems = document.all_problems(reader.problems)
    if problems:
        raise ProblemsFound(problems)
    return found


class _Parts(NamedTuple):
    """`config` and `criteria` of an evaluation after validation, and the latter as written."""

    config: BaseModel
    criteria: BaseModel | None
    written: JsonObject | None


class _Reader:
    def __init__(self, document: LocatedYaml, evaluators: Mapping[str, type[Evaluator]]) -> None:
        self.problems: list[Problem] = []
        self._document = document
        self._evaluators = evaluators

    def read(self) -> CriteriaDocument:
        """What the file holds; only to be used when there are no problems."""
        content = _with_preferred_keys(self._document.value)
        file = validated(CriteriaFile, content, self._document, self.problems)
        self._check_agent_names(content)
        agents = []
        for agent, path, entries in _entries(content):
            names: dict[str, int] = {}
            evaluations = []
            for index, entry in enumerate(entries):
                if not isinstance(entry, dict):
                    continue
                entry_path = (*path, index)
                is_selectable = self._check_when(entry.get("when"), (*entry_path, "when"))
                evaluator = self._evaluator(entry, entry_path)
                if evaluator is None:
                    continue
                parsed = file.agents[agent].evaluations[index] if file and is_selectable else None
                self._check_name(entry.get("name"), evaluator.id, entry_path, names)
                ready = self._evaluation(evaluator, entry, entry_path, parsed)
                if ready is not None:
                    evaluations.append(ready)
            agents.append(
                AgentCriteria(
                    pattern=agent,
                    evaluations=tuple(evaluations),
                    tenant=file.tenant if file else "",
                    owner=(file.owner if file else None) or "",
                    contact=(file.contact if file else None) or "",
                    source=self._source(("agents", agent)),
                )
            )
        return CriteriaDocument(tuple(agents), self._cases(file) if file else ())

    def _problem(self, path: Path, message: str) -> None:
        self.problems.append(self._document.problem(path, message))

    def _source(self, path: Path) -> str:
        return f"{self._document.file}:{self._document.problem(path, '').line}"

    def _cases(self, file: CriteriaFile) -> tuple[CriteriaCase, ...]:
        cases = []
        for index, test in enumerate(file.tests):
            path: Path = ("tests", index)
            if (test.run is None) == (test.trace is None):
                self._problem(path, 'expected one of the keys "run" and "trace"')
            if test.run is not None and test.agent is not None:
                self._problem((*path, "agent"), 'the agent of a "run" is named in it')
            expect = {
                name: ExpectedResult(expected)
                if isinstance(expected, str)
                else ExpectedResult(expected.outcome, expected.score, expected.reason)
                for name, expected in test.expect.items()
            }
            cases.append(
                CriteriaCase(
                    name=test.name,
                    run=test.run,
                    trace=test.trace,
                    agent=test.agent,
                    expect=expect,
                    tenant=file.tenant,
                    document=self._document,
                    path=path,
                )
            )
        return tuple(cases)

    def _check_agent_names(self, content: JsonValue) -> None:
        agents = content.get("agents") if isinstance(content, dict) else None
        if isinstance(agents, dict) and SELF_CHECK_AGENT in agents:
            message = "this agent is tracegrade's check of itself, which has criteria of its own"
            self._problem(("agents", SELF_CHECK_AGENT), message)

    def _check_when(self, written: JsonValue, path: Path) -> bool:
        """Whether there is no mistake in `written` but such as the model reports."""
        problems = list(when_problems(written)) if isinstance(written, dict) else []
        for inner_path, message in problems:
            self._problem((*path, *inner_path), message)
        return not problems

    def _evaluator(self, entry: JsonObject, path: Path) -> type[Evaluator] | None:
        written = entry.get("evaluator")
        if not isinstance(written, str) or not written:
            return None  # the model has reported it
        found = self._evaluators.get(evaluator_id(written))
        if found is None:
            hint = did_you_mean(evaluator_id(written), list(self._evaluators))
            self._problem((*path, "evaluator"), f'unknown evaluator "{written[:100]}"{hint}')
        return found

    def _check_name(self, written: JsonValue, default: str, path: Path, names: dict[str, int]) -> None:
        name = default if written is None else written
        if not isinstance(name, str) or not name:
            return  # the model has reported it
        line = self._document.problem(path, "").line
        if name in names:
            hint = "" if self._document.place_of((*path, "name")) else "; give one of them a name"
            self._problem(path, f'second evaluation named "{name}", the first is on line {names[name]}{hint}')
        else:
            names[name] = line

    def _evaluation(
        self, kind: type[Evaluator], entry: JsonObject, path: Path, parsed: EvaluationEntry | None
    ) -> Evaluation | None:
        before = len(self.problems)
        parts = self._parts(kind, entry, path)
        if parts is None or len(self.problems) > before:
            return None
        try:
            evaluator = kind(parts.config, parts.criteria)
        except ValueError as error:
            self._problem((*path, "criteria") if "criteria" in entry else path, str(error))
            return None
        if parsed is None:
            return None
        is_template = parts.written is not None and has_references(parts.written)
        return Evaluation(
            name=parsed.name or kind.id,
            evaluator=evaluator,
            pass_threshold=parsed.pass_threshold,
            severity=parsed.severity,
            criteria_hash=_criteria_hash(kind, parts, parsed),
            enabled=parsed.enabled,
            source=self._source(path),
            when=None if parsed.when is None else selector_of(parsed.when),
            sample=parsed.sample,
            stage=parsed.stage,
            mute=None if parsed.mute is None else _mute(parsed.mute),
            template=CriteriaTemplate(kind, parts.config, parts.written)
            if is_template and parts.written is not None
            else None,
        )

    def _parts(self, kind: type[Evaluator], entry: JsonObject, path: Path) -> _Parts | None:
        written_config = entry.get("config")
        if written_config is not None and not isinstance(written_config, dict):
            return None  # the model has reported it
        config_path: Path = (*path, "config")
        config = dict(written_config or {})
        default, default_key = None, ""
        for key in (_DEFAULT_CRITERIA, camel_case(_DEFAULT_CRITERIA)):  # of both, camelCase counts
            if key in config:
                default, default_key = config.pop(key), key
        for key in ("name", "description"):
            if key in config and key not in kind.Config.model_fields:
                if not isinstance(config[key], str):
                    self._problem((*config_path, key), "expected a text")
                del config[key]
        valid_config = self._validated(kind.Config, config, config_path)

        given = entry.get("criteria")
        criteria_path: Path = (*path, "criteria")
        valid = self._criteria(kind, default, (*config_path, default_key)) if default is not None else None
        if given is not None:
            valid = self._criteria(kind, given, criteria_path)
        elif default is None and kind.Criteria is not None:
            try:
                valid = kind.Criteria.model_validate({})
            except ValidationError:
                keys = ", ".join(known_keys(kind.Criteria))
                self._problem(path, f'missing key "criteria": {kind.id} needs {keys}')
        if valid_config is None or not isinstance(given, dict | None):
            return None
        written = default if given is None else given
        return _Parts(valid_config, valid, written if isinstance(written, dict) else None)

    def _criteria(self, kind: type[Evaluator], value: JsonValue, path: Path) -> BaseModel | None:
        if not isinstance(value, dict):
            if path[-1] != "criteria":  # there the model has reported it
                self._problem(path, "expected a mapping of keys to values")
            return None
        if kind.Criteria is None:
            for key in value:
                self._problem((*path, key), f"unknown key; {kind.id} takes no criteria")
            return None
        before = len(self.problems)
        places: set[int] = set()
        valid = self._validated(kind.Criteria, value, path, places)
        shape = self.problems[before:]
        self.problems[before:] = []
        self._check_matchers(value, path, places)
        refused = tuple(problem.path.rpartition(".")[0] for problem in self.problems[before:])
        if refused:  # what the model says of the same values would only confuse
            shape = [problem for problem in shape if not problem.path.startswith(refused)]
        self.problems += shape
        return valid

    def _validated(
        self, model: type[BaseModel], value: JsonValue, path: Path, places: set[int] | None = None
    ) -> BaseModel | None:
        """`value` as `model`; the ids of the expected values in it are added to `places`.

        Evaluation sets may write true for 1 here, as the packages take them that wrote the sets.
        """
        try:
            return model.model_validate(value, context=places)
        except ValidationError as error:
            self.problems += model_problems(error, model, self._document, path)
            return None

    def _check_matchers(self, value: JsonValue, path: Path, places: set[int]) -> None:
        """Report matchers with mistakes, and those that stand where the evaluator takes none."""
        if id(value) in places:
            for place, message in expected_value_problems(value, path):
                self._problem(place, message)
        elif is_matcher(value) and next(iter(value)) in KNOWN_MATCHERS:
            self._problem((*path, next(iter(value))), "a matcher cannot stand here")
        elif isinstance(value, dict):
            for key, item in value.items():
                self._check_matchers(item, (*path, key), places)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                self._check_matchers(item, (*path, index), places)


def evaluator_id(written: str) -> str:
    """The short id with hyphens of an evaluator as people write it, `uipath-` and underscores included."""
    return written.replace("_", "-").removeprefix(_PREFIX)


def _entries(content: JsonValue) -> list[tuple[str, Path, Sequence[JsonValue]]]:
    """Each agent with a list of evaluations, the path of that list and the list, whatever else is wrong."""
    agents = content.get("agents") if isinstance(content, dict) else None
    found: list[tuple[str, Path, Sequence[JsonValue]]] = []
    for name, agent in agents.items() if isinstance(agents, dict) else ():
        entries = agent.get("evaluations") if isinstance(agent, dict) else None
        if isinstance(entries, list):
            found.append((name, ("agents", name, "evaluations"), entries))
    return found


def _with_preferred_keys(content: JsonValue) -> JsonValue:
    """`content` with only the camelCase one where a key of an evaluation is there in both spellings."""
    agents = content.get("agents") if isinstance(content, dict) else None
    if not isinstance(content, dict) or not isinstance(agents, dict):
        return content
    preferred: JsonObject = {}
    for name, agent in agents.items():
        entries = agent.get("evaluations") if isinstance(agent, dict) else None
        if isinstance(agent, dict) and isinstance(entries, list):
            preferred[name] = {**agent, "evaluations": [_prefer_camel_case(entry) for entry in entries]}
        else:
            preferred[name] = agent
    return {**content, "agents": preferred}


def _prefer_camel_case(value: JsonValue) -> JsonValue:
    if not isinstance(value, dict):
        return value
    both = {key for key in value if "_" in key and camel_case(key) in value}
    return {key: inner for key, inner in value.items() if key not in both} if both else value


def _mute(entry: MuteEntry) -> Mute:
    microseconds = (entry.until - _EPOCH) // timedelta(microseconds=1)
    return Mute(until_unix_nano=microseconds * 1000, reason=entry.reason, by=entry.by)


def _criteria_hash(kind: type[Evaluator], parts: _Parts, entry: EvaluationEntry) -> str:
    texts = [kind.id, kind.version, repr(entry.pass_threshold), parts.config.model_dump_json()]
    if parts.criteria is not None:
        texts.append(parts.criteria.model_dump_json())
    if entry.when is not None:
        texts.append(entry.when.model_dump_json(exclude_unset=True))
    return sha256("\n".join(texts).encode()).hexdigest()[:16]
