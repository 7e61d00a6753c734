"""Reads one criteria file: text in, ready evaluations out, or every mistake in it at once."""

from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import NamedTuple

from pydantic import BaseModel, ValidationError

from processors.criteria import AgentCriteria, Evaluation
from processors.criteria_file_model import AgentEntry, CriteriaFile, EvaluationEntry
from processors.environment import expand
from processors.evaluator import Evaluator
from processors.evaluator_discovery import evaluator_types
from processors.json_value import JsonObject, JsonValue
from processors.located_yaml import LocatedYaml, read_yaml
from processors.model_problems import Path, camel_case, known_keys, model_problems
from processors.problem import Problem, ProblemsFound, did_you_mean

_PREFIX = "uipath-"
_DEFAULT_CRITERIA = "default_evaluation_criteria"
_PLANNED_KEYS: Mapping[type[BaseModel], frozenset[str]] = {
    CriteriaFile: frozenset({"owner", "contact", "tests", "mute", "sample"}),
    AgentEntry: frozenset({"owner", "contact", "tests", "mute", "sample", "when"}),
    EvaluationEntry: frozenset({"when", "sample", "stage", "mute", "owner", "contact", "tests"}),
}
_PLANNED_MATCHERS = (
    "$regex",
    "$glob",
    "$in",
    "$range",
    "$approx",
    "$type",
    "$schema",
    "$present",
    "$absent",
    "$any",
    "$input",
    "$literal",
)


def read_criteria(
    text: str,
    file: str,
    environment: Mapping[str, str],
    evaluators: Mapping[str, type[Evaluator]] | None = None,
) -> list[AgentCriteria]:
    """The criteria in `text`, in its order.

    `file` is the name that messages use. `evaluators` are the known evaluators by id; None: all there are.

    Raises:
        ProblemsFound: with all problems of the file, in its order; none of the criteria can be used then.
    """
    document = read_yaml(text, file, partial(expand, environment=environment, dollars="criteria"))
    reader = _Reader(document, evaluator_types() if evaluators is None else evaluators)
    agents = reader.read()
    problems = document.all_problems(reader.problems)
    if problems:
        raise ProblemsFound(problems)
    return agents


class _Parts(NamedTuple):
    """`config` and `criteria` of an evaluation after validation."""

    config: BaseModel
    criteria: BaseModel | None


class _Reader:
    def __init__(self, document: LocatedYaml, evaluators: Mapping[str, type[Evaluator]]) -> None:
        self.problems: list[Problem] = []
        self._document = document
        self._evaluators = evaluators

    def read(self) -> list[AgentCriteria]:
        """The agents; only to be used when there are no problems."""
        content = self._own_keys(self._document.value)
        try:
            file = CriteriaFile.model_validate(content)
        except ValidationError as error:
            self.problems += model_problems(error, CriteriaFile, self._document)
            file = None
        agents = []
        for agent, path, entries in _entries(content):
            names: dict[str, int] = {}
            evaluations = []
            for index, entry in enumerate(entries):
                if not isinstance(entry, dict):
                    continue
                entry_path = (*path, index)
                evaluator = self._evaluator(entry, entry_path)
                if evaluator is None:
                    continue
                parsed = file.agents[agent].evaluations[index] if file else None
                self._check_name(entry.get("name"), evaluator.id, entry_path, names)
                ready = self._evaluation(evaluator, entry, entry_path, parsed)
                if ready is not None:
                    evaluations.append(ready)
            tenant = file.tenant if file else ""
            agents.append(AgentCriteria(pattern=agent, evaluations=tuple(evaluations), tenant=tenant))
        return agents

    def _problem(self, path: Path, message: str) -> None:
        self.problems.append(self._document.problem(path, message))

    def _own_keys(self, value: JsonValue) -> JsonValue:
        """`value` without keys that belong to features not built yet, each of them reported."""
        content = self._without_planned(value, CriteriaFile, ())
        agents = content.get("agents") if isinstance(content, dict) else None
        if not isinstance(content, dict) or not isinstance(agents, dict):
            return content
        return {
            **content,
            "agents": {name: self._own_agent_keys(name, agent) for name, agent in agents.items()},
        }

    def _own_agent_keys(self, name: str, value: JsonValue) -> JsonValue:
        agent = self._without_planned(value, AgentEntry, ("agents", name))
        entries = agent.get("evaluations") if isinstance(agent, dict) else None
        if not isinstance(agent, dict) or not isinstance(entries, list):
            return agent
        kept: list[JsonValue] = []
        for index, entry in enumerate(entries):
            own = self._without_planned(entry, EvaluationEntry, ("agents", name, "evaluations", index))
            kept.append(_prefer_camel_case(own) if isinstance(own, dict) else own)
        return {**agent, "evaluations": kept}

    def _without_planned(self, value: JsonValue, model: type[BaseModel], path: Path) -> JsonValue:
        planned = _PLANNED_KEYS[model]
        if not isinstance(value, dict) or planned.isdisjoint(value):
            return value
        for key in value:
            if key in planned:
                self._problem((*path, key), f'"{key}" is not supported by this version')
        return {key: inner for key, inner in value.items() if key not in planned}

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
            evaluator = kind(parts.config, parts.criteria)  # type: ignore[call-arg]  # protocols have no constructor
        except ValueError as error:
            self._problem((*path, "criteria") if "criteria" in entry else path, str(error))
            return None
        if parsed is None:
            return None
        return Evaluation(
            name=parsed.name or kind.id,
            evaluator=evaluator,
            pass_threshold=parsed.pass_threshold,
            severity=parsed.severity,
            criteria_hash=_criteria_hash(kind, parts, parsed.pass_threshold),
            enabled=parsed.enabled,
            source=f"{self._document.file}:{self._document.problem(path, '').line}",
        )

    def _parts(self, kind: type[Evaluator], entry: JsonObject, path: Path) -> _Parts | None:
        written = entry.get("config")
        if written is not None and not isinstance(written, dict):
            return None  # the model has reported it
        config_path: Path = (*path, "config")
        config = dict(written or {})
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
        return _Parts(valid_config, valid)

    def _criteria(self, kind: type[Evaluator], value: JsonValue, path: Path) -> BaseModel | None:
        if not isinstance(value, dict):
            if path[-1] != "criteria":  # there the model has reported it
                self._problem(path, "expected a mapping of keys to values")
            return None
        before = len(self.problems)
        self._refuse_matchers(value, path)
        refused = tuple(problem.path.rpartition(".")[0] for problem in self.problems[before:])
        if kind.Criteria is None:
            for key in value:
                self._problem((*path, key), f"unknown key; {kind.id} takes no criteria")
            return None
        before = len(self.problems)
        valid = self._validated(kind.Criteria, value, path)
        if refused:  # what the model says of the same values would only confuse
            shape = self.problems[before:]
            self.problems[before:] = [problem for problem in shape if not problem.path.startswith(refused)]
        return valid

    def _validated(self, model: type[BaseModel], value: JsonValue, path: Path) -> BaseModel | None:
        try:
            return model.model_validate(value)
        except ValidationError as error:
            self.problems += model_problems(error, model, self._document, path)
            return None

    def _refuse_matchers(self, value: JsonValue, path: Path) -> None:
        if isinstance(value, list):
            for index, item in enumerate(value):
                self._refuse_matchers(item, (*path, index))
        elif isinstance(value, dict):
            for key, item in value.items():
                if len(value) == 1 and key.startswith("$"):
                    if key in _PLANNED_MATCHERS:
                        self._problem((*path, key), f'matcher "{key}" is not supported by this version')
                    else:
                        hint = did_you_mean(key, _PLANNED_MATCHERS)
                        self._problem((*path, key), f'unknown matcher "{key[:100]}"{hint}')
                else:
                    self._refuse_matchers(item, (*path, key))


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


def _prefer_camel_case(value: JsonObject) -> JsonObject:
    """`value` with only the camelCase one where a key is there in both spellings."""
    both = {key for key in value if "_" in key and camel_case(key) in value}
    return {key: inner for key, inner in value.items() if key not in both}


def _criteria_hash(kind: type[Evaluator], parts: _Parts, pass_threshold: float) -> str:
    texts = [kind.id, kind.version, repr(pass_threshold), parts.config.model_dump_json()]
    if parts.criteria is not None:
        texts.append(parts.criteria.model_dump_json())
    return sha256("\n".join(texts).encode()).hexdigest()[:16]
