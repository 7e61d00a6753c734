"""Reads one criteria file: text in, ready evaluations out, or every mistake in it at once."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError
from pydantic.alias_generators import to_camel

from processors.comparison import KNOWN_MATCHERS, expected_value_problems, is_matcher
from processors.criteria.agent_criteria import AgentCriteria, Evaluation, Mute
from processors.criteria.any_of import Alternative, AnyOf
from processors.criteria.criteria_file_model import (
    CriteriaFile,
    CriteriaTestEntry,
    EvaluationEntry,
    ExpectedResultEntry,
)
from processors.criteria.criteria_template import CriteriaTemplate, has_references
from processors.criteria.evaluator_discovery import evaluator_types
from processors.criteria.selector import selector_of, when_problems
from processors.documents import (
    InvalidInput,
    LocatedYaml,
    Path,
    Problem,
    did_you_mean,
    expand,
    model_problems,
    read_yaml,
    second_spelling,
    validated,
)
from processors.model import Evaluator, JsonObject, JsonValue, Scope, Stage, can_grade

SELF_CHECK_AGENT = "tracegrade.self-check"
"""The agent of the traces by which the service checks itself. Criteria files cannot name it."""

SCHEMA_KEY = "$schema"
"""Where a JSON file names the schema by which editors check it; tracegrade ignores it."""

_SCHEMA_SITE = b"json-schema.org"

_TEXTS_ARE = "messages, the answer and model turns are"
_DEFAULT_CRITERIA = "default_evaluation_criteria"


@dataclass(frozen=True, slots=True, kw_only=True)
class CriteriaCase:
    """One test of a criteria file.

    Exactly one of `run` (an agent run in the form of a `*.runs.jsonl` line), `runs` (those of one trace) and
    `trace` (a path as written, relative to the file) is set. `earlier` are runs that are known before `run`,
    None where none are written. `agent` restricts a trace to the runs of one agent. `expect` is by the name
    of the evaluation.
    """

    name: str
    run: JsonObject | None
    runs: Sequence[JsonObject] | None
    earlier: Sequence[JsonObject] | None
    trace: str | None
    agent: str | None
    expect: Mapping[str, ExpectedResultEntry]
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


@dataclass(frozen=True, slots=True)
class CriteriaDocument:
    """What a criteria file holds: its criteria in their order, and the tests of them.

    With `problems` the file must not be used: `agents` and `cases` then lack what has mistakes, so that the
    rest can be checked as well, and `broken` has the names of the evaluations that are missing, empty where
    unknown.
    """

    agents: Sequence[AgentCriteria] = ()
    cases: Sequence[CriteriaCase] = ()
    problems: Sequence[Problem] = ()
    warnings: Sequence[Problem] = ()
    broken: frozenset[str] = frozenset()


def read_criteria(
    text: str,
    file: str,
    environment: Mapping[str, str],
    evaluators: Mapping[str, type[Evaluator]] | None = None,
    *,
    strict: bool = True,
) -> CriteriaDocument:
    """The criteria and tests in `text`; `file` is the name that messages use.

    The text may refer to variables of `environment`. `evaluators` are the known ones by id; None: all there
    are. With `strict`, mistakes raise InvalidInput with all problems, in the order of the file; else the
    document contains them.
    """
    try:
        source = read_yaml(text, file, partial(expand, environment=environment, dollars="criteria"))
    except InvalidInput as error:
        document = CriteriaDocument(problems=error.problems)
    else:
        if _is_schema(source.value):
            document = CriteriaDocument(problems=[source.problem((), "this is a JSON schema, not criteria")])
        else:
            document = _Reader(source, evaluator_types() if evaluators is None else evaluators).read()
    if strict and document.problems:
        raise InvalidInput(document.problems)
    return document


class _Ready(NamedTuple):
    """An evaluator with what it was created from; `template` where that takes values from the run."""

    evaluator: Evaluator
    config: BaseModel
    criteria: BaseModel | None
    template: CriteriaTemplate | None


@dataclass(slots=True)
class _Entry:
    """An evaluation as files of many agents repeat it: its model and what it became, None for mistakes."""

    parsed: EvaluationEntry | None
    evaluation: Evaluation | None = None


class _Reader:
    def __init__(self, document: LocatedYaml, evaluators: Mapping[str, type[Evaluator]]) -> None:
        self._problems: list[Problem] = []
        self._warnings: list[Problem] = []
        self._broken: set[str] = set()
        self._document = document
        self._evaluators = evaluators
        self._by_text: dict[str, _Entry] = {}
        self._entries: dict[int, _Entry] = {}
        """By the identity of what is written."""

    def read(self) -> CriteriaDocument:
        """What the file holds."""
        content = self._document.value
        if isinstance(content, dict):
            content = {key: value for key, value in content.items() if key != SCHEMA_KEY}
            if content.get("agents", "") in ({}, None):
                message = "there are no agents: nothing is evaluated by this file"
                self._warnings.append(self._document.problem(("agents",), message))
                content["agents"] = {}
        written = content if isinstance(content, dict) else {}
        # Entries without mistakes are not validated again with the file, those with mistakes are reported.
        shape = (
            {**written, "agents": self._validated_entries(written["agents"])}
            if "agents" in written
            else content
        )
        validated(CriteriaFile, shape, self._document, self._problems)
        agents = tuple(self._agents(written))
        cases = tuple(self._cases(written))
        problems = tuple(self._document.all_problems(self._problems))
        return CriteriaDocument(agents, cases, problems, tuple(self._warnings), frozenset(self._broken))

    def _validated_entries(self, agents: JsonValue) -> Any:
        """`agents` with each evaluation as its model, where it has no mistakes."""
        if not isinstance(agents, dict):
            return agents
        shapes: dict[str, object] = {}
        for name, agent in agents.items():
            entries = agent.get("evaluations") if isinstance(agent, dict) else None
            if isinstance(agent, dict) and isinstance(entries, list):
                shapes[name] = {**agent, "evaluations": [self._entry(entry) or entry for entry in entries]}
            else:
                shapes[name] = agent
        return shapes

    def _entry(self, written: JsonValue) -> EvaluationEntry | None:
        """The model of an evaluation; None where it has mistakes."""
        text = repr(written)
        entry = self._by_text.get(text)
        if entry is None:
            parsed = validated(EvaluationEntry, written, self._document, [])
            entry = self._by_text[text] = _Entry(parsed)
        self._entries[id(written)] = entry
        return entry.parsed

    def _agents(self, content: JsonObject) -> Iterator[AgentCriteria]:
        tenant, owner, contact = (_text(content.get(key)) for key in ("tenant", "owner", "contact"))
        written = content.get("agents")
        for name, agent in written.items() if isinstance(written, dict) else ():
            if name == SELF_CHECK_AGENT:
                message = "this agent is tracegrade's check of itself, which has criteria of its own"
                self._problem(("agents", name), message)
            entries = agent.get("evaluations") if isinstance(agent, dict) else None
            if not isinstance(entries, list):
                self._broken.add("")
                continue
            yield AgentCriteria(
                pattern=name,
                evaluations=tuple(self._evaluations(name, entries)),
                tenant=tenant,
                owner=owner,
                contact=contact,
                source=self._source(("agents", name)),
            )

    def _problem(self, path: Path, message: str) -> None:
        self._problems.append(self._document.problem(path, message))

    def _source(self, path: Path) -> str:
        return f"{self._document.file}:{self._document.line(path)}"

    def _cases(self, content: JsonObject) -> Iterator[CriteriaCase]:
        tests = content.get("tests")
        names: dict[str, Path] = {}
        for index, written in enumerate(tests if isinstance(tests, list) else ()):
            if not isinstance(written, dict):
                continue  # the model has reported it
            path: Path = ("tests", index)
            run, name = written.get("run"), _text(written.get("name"))
            if sum(written.get(key) is not None for key in ("run", "runs", "trace")) != 1:
                self._problem(path, 'expected one of the keys "run", "runs" and "trace"')
            if run is not None and written.get("agent") is not None:
                self._problem((*path, "agent"), 'the agent of a "run" is named in it')
            if run is None and written.get("earlier") is not None:
                self._problem((*path, "earlier"), 'expected only together with a "run"')
            self._check_name("test", name, path, names)
            case = partial(
                CriteriaCase, tenant=_text(content.get("tenant")), document=self._document, path=path
            )
            entry = validated(CriteriaTestEntry, written, self._document, [], path)
            if entry is not None:
                yield case(**dict(entry))
            elif isinstance(run, dict):  # what is wrong with the run is reported as well
                yield case(name=name, run=run, runs=None, earlier=None, trace=None, agent=None, expect={})

    def _evaluations(self, agent: str, entries: Sequence[JsonValue]) -> Iterator[Evaluation]:
        names: dict[str, Path] = {}
        for index, entry in enumerate(entries):
            if not isinstance(entry, dict):
                continue  # the model has reported it, as it does with whatever is passed over below
            path: Path = ("agents", agent, "evaluations", index)
            written = self._entries[id(entry)]
            known = written.evaluation
            if known is not None:
                self._check_name("evaluation", known.name, path, names)
                source = self._source(path)
                # Those over a trace are distinguished by identity.
                is_same = source == known.source and known.scope is not Scope.TRACE
                yield known if is_same else replace(known, source=source)
                continue
            when = entry.get("when")
            conditions = list(when_problems(when)) if isinstance(when, dict) else []
            for inner, message in conditions:
                self._problem((*path, "when", *inner), message)
            kind = self._evaluator(entry.get("evaluator"), path)
            name = _text(entry.get("name"), "" if kind is None else kind.id)
            evaluation = None
            if kind is not None or _alternatives(entry):
                self._check_name("evaluation", name, path, names)
                evaluation = self._evaluation(kind, entry, path, None if conditions else written.parsed)
            if evaluation is not None:
                written.evaluation = evaluation
                yield evaluation
            else:
                self._broken.add(name)

    def _evaluator(self, written: JsonValue, path: Path) -> type[Evaluator] | None:
        if not isinstance(written, str) or not written:
            return None
        kind = self._evaluators.get(evaluator_id(written))
        if kind is None:
            hint = did_you_mean(evaluator_id(written), list(self._evaluators))
            self._problem((*path, "evaluator"), f'unknown evaluator "{written[:100]}"{hint}')
        return kind

    def _check_name(self, what: str, name: str, path: Path, names: dict[str, Path]) -> None:
        if name in names:
            hint = "" if self._document.place_of((*path, "name")) else "; give one of them a name"
            first = self._document.line(names[name])
            self._problem(path, f'second {what} named "{name}", the first is on line {first}{hint}')
        elif name:
            names[name] = path

    def _evaluation(
        self, kind: type[Evaluator] | None, entry: JsonObject, path: Path, parsed: EvaluationEntry | None
    ) -> Evaluation | None:
        """The evaluation of `entry`; None where it has mistakes, or `parsed`, its validated form, is None."""
        before = len(self._problems)
        ready: list[_Ready] = []
        several = _alternatives(entry)
        for at, alternative in several:
            ready += self._alternative(kind, entry, path, alternative, at)
        if kind is not None and not several:
            ready += self._ready(kind, entry, path, entry.get("config"), (*path, "config"))
        if parsed is None or not ready or len(self._problems) > before:
            return None
        for one in ready:
            if not can_grade(one.evaluator, parsed.scope):
                self._refuse_scope(one.evaluator, parsed.scope, path)
                return None
        only = ready[0]
        evaluator = only.evaluator
        if several:
            labels = [
                f"alternative {number}" if one.name is None else one.name
                for number, one in enumerate(parsed.any_of or (), 1)
            ]
            of_labels = zip(labels, ready, strict=True)
            evaluator = AnyOf(
                [Alternative(label, one.evaluator, one.template) for label, one in of_labels],
                parsed.pass_threshold,
            )
        mute = parsed.mute
        evaluation = Evaluation(
            name=parsed.name or evaluator.id,
            evaluator=evaluator,
            pass_threshold=parsed.pass_threshold,
            severity=parsed.severity,
            criteria_hash=_criteria_hash(ready, parsed),
            enabled=parsed.enabled,
            source=self._source(path),
            when=None if parsed.when is None else selector_of(parsed.when),
            sample=parsed.sample,
            stage=parsed.stage,
            mute=None if mute is None else Mute(until_unix_nano=mute.until, reason=mute.reason, by=mute.by),
            template=None if several else only.template,
            scope=parsed.scope,
            early=parsed.early,
        )
        if refusal := self._too_late(evaluation) if parsed.early else "":
            self._problem((*path, "early"), refusal)
            return None
        return evaluation

    def _alternative(
        self, kind: type[Evaluator] | None, entry: JsonObject, path: Path, written: JsonObject, at: Path
    ) -> "list[_Ready]":
        """One of several alternatives of `entry`, at the place `at` in it; none where it has mistakes."""
        path_of_config = (*path, *at, "config")
        settings = written.get("config")
        if written.get("evaluator") is not None:
            kind = self._evaluator(written.get("evaluator"), (*path, *at))
        elif settings is None:
            path_of_config, settings = (*path, "config"), entry.get("config")
        if kind is None:
            if written.get("evaluator") is None and entry.get("evaluator") is None:
                self._problem((*path, *at), 'missing key "evaluator"')
            return []
        if kind.id not in evaluator_types():
            self._problem((*path, *at), f"{kind.id}: custom evaluators cannot be alternatives")
            return []
        return self._ready(kind, written, (*path, *at), settings, path_of_config)

    def _refuse_scope(self, evaluator: Evaluator, scope: Scope, path: Path) -> None:
        what = "what runs in parallel is" if can_grade(evaluator, Scope.CONVERSATION) else _TEXTS_ARE
        message = f"{what} known of single runs: expected run"
        if not can_grade(type(evaluator), scope):
            able = ", ".join(name for name, other in self._evaluators.items() if can_grade(other, scope))
            refusal = f"looks at more than calls, and cannot grade a {scope}"
            message = f"{evaluator.id} {refusal}; these can: {able}"
        self._problem((*path, "scope"), message)

    def _ready(
        self,
        kind: type[Evaluator],
        entry: JsonObject,
        path: Path,
        written_settings: JsonValue,
        config_path: Path,
    ) -> "list[_Ready]":
        """The evaluator with the criteria of `entry`, ready to run; none where it has mistakes."""
        before = len(self._problems)
        given = entry.get("criteria")
        settings = dict(written_settings) if isinstance(written_settings, dict) else {}
        default, default_key = None, ""
        for key in (to_camel(_DEFAULT_CRITERIA), _DEFAULT_CRITERIA):
            if key in settings:
                if default_key:
                    self._problem((*config_path, key), second_spelling(default_key))
                default, default_key = settings.pop(key), key
        for key in ("name", "description"):
            if key not in kind.Config.model_fields and not isinstance(settings.pop(key, ""), str):
                self._problem((*config_path, key), "expected a text")
        config = None
        if isinstance(written_settings, dict | None):  # if not, the model has reported it
            config = self._validated(kind.Config, settings, config_path)
        criteria = None
        if default is not None:
            criteria = self._criteria(kind, default, (*config_path, default_key))
        if given is not None:
            criteria = self._criteria(kind, given, (*path, "criteria"))
        elif default is None and kind.Criteria is not None:
            try:
                criteria = kind.Criteria.model_validate({})
            except ValidationError:
                keys = ", ".join(kind.Criteria.model_fields)
                self._problem(path, f'missing key "criteria": {kind.id} needs {keys}')
        written = default if given is None else given
        if config is None or len(self._problems) > before or not isinstance(written, dict | None):
            return []
        try:
            evaluator = kind(config, criteria)
        except ValueError as error:
            self._problem((*path, "criteria") if "criteria" in entry else path, str(error))
            return []
        template = CriteriaTemplate(kind, config, written) if written and has_references(written) else None
        return [_Ready(evaluator, config, criteria, template)]

    def _too_late(self, evaluation: Evaluation) -> str:
        """Why `evaluation` can be certain of no failure before a run is over; empty where it can."""
        evaluator = evaluation.evaluator
        if not type(evaluator).can_fail_early:
            able = ", ".join(name for name, other in self._evaluators.items() if other.can_fail_early)
            return f"later spans can undo a failure of {evaluator.id}; these can be early: {able}"
        if not evaluator.can_fail_early:
            return (
                "later spans can undo a failure by these criteria; expected upper limits of calls, failed "
                "ones included: max_calls or max of tool-call-budget; absence, exactly, count with max, or "
                "not_co_existence of tool-constraints, by tool and args alone; tool-repetition without "
                "window and cycle_threshold"
            )
        for key, is_given in (
            ("when", evaluation.when is not None),
            ("$input", evaluation.template is not None),
            ("scope", evaluation.scope is not Scope.RUN),
            ("stage: shadow", evaluation.stage is not Stage.LIVE),
        ):
            if is_given:
                return f"cannot stand with {key}: expected an evaluation of its own that is early"
        return ""

    def _criteria(self, kind: type[Evaluator], value: JsonValue, path: Path) -> BaseModel | None:
        if not isinstance(value, dict):
            if path[-1] != "criteria":
                self._problem(path, "expected a mapping of keys to values")
            return None
        if kind.Criteria is None:
            for key in value:
                self._problem((*path, key), f"unknown key; {kind.id} takes no criteria")
            return None
        before = len(self._problems)
        places: set[int] = set()
        valid = self._validated(kind.Criteria, value, path, places)
        shape = self._problems[before:]
        self._problems[before:] = []
        self._check_matchers(value, path, places)
        refused = tuple(problem.path.rpartition(".")[0] for problem in self._problems[before:])
        if refused:  # the model's problems with the same values would only confuse
            shape = [problem for problem in shape if not problem.path.startswith(refused)]
        self._problems += shape
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
            self._problems += model_problems(error, model, self._document, path)
            return None

    def _check_matchers(self, value: JsonValue, path: Path, places: set[int]) -> None:
        """Report matchers with mistakes, and those that stand where the evaluator takes none."""
        if id(value) in places:
            for place, message in expected_value_problems(value, path):
                self._problem(place, message)
        elif is_matcher(value) and next(iter(value)) in KNOWN_MATCHERS:
            self._problem((*path, next(iter(value))), "a matcher cannot stand here")
        elif isinstance(value, dict | list):
            for step, item in value.items() if isinstance(value, dict) else enumerate(value):
                self._check_matchers(item, (*path, step), places)


def is_schema(content: bytes) -> bool:
    """Whether the file with `content` is a JSON schema, such as may lie next to criteria for editors."""
    if _SCHEMA_SITE not in content:
        return False
    try:
        return _is_schema(read_yaml(content.decode("utf-8-sig"), "").value)
    except (InvalidInput, UnicodeDecodeError):
        return False


def _is_schema(value: JsonValue) -> bool:
    return isinstance(value, dict) and isinstance(value.get(SCHEMA_KEY), str) and "agents" not in value


def evaluator_id(written: str) -> str:
    """The short id with hyphens of an evaluator as people write it, `uipath-` and underscores included."""
    return written.replace("_", "-").removeprefix("uipath-")


def _alternatives(entry: JsonObject) -> list[tuple[Path, JsonObject]]:
    """The entries of `any_of` with their places in `entry`; the model reports those that are no objects."""
    key = "any_of" if "any_of" in entry else "anyOf"
    written = entry.get(key)
    places = enumerate(written if isinstance(written, list) else ())
    return [((key, at), alternative) for at, alternative in places if isinstance(alternative, dict)]


def _text(written: JsonValue, default: str = "") -> str:
    """`written` where it is a text; `default` where there is none."""
    if written is None:
        return default
    return written if isinstance(written, str) else ""


def _criteria_hash(evaluators: "Sequence[_Ready]", entry: EvaluationEntry) -> str:
    texts: list[str] = []
    for one in evaluators:
        texts += [
            one.evaluator.id,
            one.evaluator.version,
            repr(entry.pass_threshold),
            one.config.model_dump_json(),
        ]
        if one.criteria is not None:
            texts.append(one.criteria.model_dump_json())
    if entry.when is not None:
        texts.append(entry.when.model_dump_json(exclude_unset=True))
    if entry.scope is not Scope.RUN:
        texts.append(f"scope: {entry.scope}")
    return sha256("\n".join(texts).encode()).hexdigest()[:16]
