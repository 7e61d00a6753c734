"""Criteria: which evaluations apply to an agent, by name."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import translate
from hashlib import sha256

from processors.criteria.criteria_template import CriteriaTemplate
from processors.criteria.selector import Selector
from processors.model import Evaluator, Scope, Severity, Stage

_MAX_CACHED_AGENTS = 10_000
_WILDCARDS = frozenset("*?[")
_BRACKETS = re.compile(r"\[!?\]?[^\]]*\]")


@dataclass(frozen=True, slots=True)
class Mute:
    """Until when the failures of an evaluation are muted, why, and by whom."""

    until_unix_nano: int
    reason: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """One evaluation of a criteria file, ready to run.

    `name` is unique among the evaluations of an agent. `criteria_hash` changes whenever anything that
    could change a verdict does. `source` is `file:line` for messages. `when` None applies to every run,
    `sample` is the share of traces that are taken. `template` makes the evaluator where criteria take
    values from the run; `evaluator` then only names it. `scope` is what its evaluator is shown.
    `early`: a failure that nothing can undo any more is reported while the run goes on.
    """

    name: str
    evaluator: Evaluator
    pass_threshold: float = 1.0
    severity: Severity = Severity.TICKET
    criteria_hash: str = ""
    enabled: bool = True
    source: str = ""
    when: Selector | None = None
    sample: float = 1.0
    stage: Stage = Stage.LIVE
    mute: Mute | None = None
    template: CriteriaTemplate | None = None
    scope: Scope = Scope.RUN
    early: bool = False
    is_plain: bool = field(init=False)
    """True where none of `when` to `scope` restricts it: every run is graded, and the results are live."""

    def __post_init__(self) -> None:
        restrictions = self.when, self.mute, self.template
        is_unrestricted = restrictions == (None, None, None) and self.sample >= 1.0
        is_plain = is_unrestricted and self.stage is Stage.LIVE and self.scope is Scope.RUN
        object.__setattr__(self, "is_plain", is_plain)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCriteria:
    """The evaluations that a file gives for the agents whose name matches `pattern`.

    In a pattern `*` stands for any characters, `?` for one, `[abc]`, `[a-z]` and `[!a]` for one of a set,
    as in `fnmatch.fnmatchcase`; `[*]`, `[?]` and `[[]` are the characters themselves. Case counts. A name
    that is written just like the pattern always matches.

    `owner` and `contact` are those of the file: who answers for these criteria, and where. `source` is
    `file:line` for messages. `is_builtin` marks the criteria that tracegrade brings: they apply to all
    tenants, and everything else overrides them.
    """

    pattern: str
    evaluations: Sequence[Evaluation]
    tenant: str = ""
    owner: str = ""
    contact: str = ""
    source: str = ""
    is_builtin: bool = False

    @property
    def is_exact(self) -> bool:
        """True when the pattern has no wildcard and so means one agent."""
        return _WILDCARDS.isdisjoint(self.pattern)


class CriteriaSet:
    """All criteria in force; immutable.

    Every pattern that matches an agent's name applies. Where several of them give an evaluation of one
    name, one counts: that of the pattern equal to the name, else of the glob with more literal
    characters, else the later one in `agents`; a built-in one only where there is no other. If the one that
    counts is switched off (`enabled: false`), there is none.
    """

    def __init__(self, agents: Sequence[AgentCriteria] = ()) -> None:
        self.agents = tuple(agents)
        """What the files hold, in their order."""
        self._cache: dict[tuple[str, str], tuple[Evaluation, ...]] = {}
        self._exact: dict[tuple[str, str], list[int]] = {}
        self._globs: list[tuple[str, re.Pattern[str], int]] = []
        self._builtin: list[tuple[re.Pattern[str], int]] = []
        for index, agent in enumerate(self.agents):
            if agent.is_builtin:
                self._builtin.append((re.compile(translate(agent.pattern)), index))
                continue
            self._exact.setdefault((agent.tenant, agent.pattern), []).append(index)
            if not agent.is_exact:
                self._globs.append((agent.tenant, re.compile(translate(agent.pattern)), index))
        self.hash = _hash(self.agents)
        evaluations = [evaluation for agent in self.agents for evaluation in agent.evaluations]
        self.looks_at_conversations = any(one.scope is Scope.CONVERSATION for one in evaluations)
        """Whether any evaluation has to know the other runs of a conversation."""
        self.looks_at_traces = any(one.scope is Scope.TRACE for one in evaluations)
        """Whether any evaluation is over all runs of a trace."""
        self.looks_early = any(one.early for one in evaluations)
        """Whether any evaluation reports failures of runs that go on."""
        self._early_for_all = _early_for_all(self.agents)

    def evaluations_for(self, agent_name: str, tenant: str = "") -> tuple[Evaluation, ...]:
        """What to run for an agent, in the order in which the evaluations stand in the files.

        Criteria of another tenant never apply. The answer is remembered for some thousand agents.
        """
        key = tenant, agent_name
        evaluations = self._cache.get(key)
        if evaluations is None:
            evaluations = tuple(evaluation for _, evaluation in self.sources_for(agent_name, tenant))
            if len(self._cache) >= _MAX_CACHED_AGENTS:
                self._cache.clear()
            self._cache[key] = evaluations
        return evaluations

    def sources_for(self, agent_name: str, tenant: str = "") -> tuple[tuple[AgentCriteria, Evaluation], ...]:
        """`evaluations_for`, each with the criteria that it is from, which name their owner. Not cached."""
        exact = self._exact.get((tenant, agent_name), [])
        ranked = [(1, 0, index) for index in exact]
        ranked += [(-1, 0, index) for pattern, index in self._builtin if pattern.match(agent_name)]
        for glob_tenant, pattern, index in self._globs:
            if glob_tenant == tenant and index not in exact and pattern.match(agent_name):
                outside_sets = _BRACKETS.sub("", self.agents[index].pattern)
                ranked.append((0, sum(character not in "*?" for character in outside_sets), index))
        winners: dict[str, tuple[int, int, Evaluation]] = {}
        for _, _, index in sorted(ranked):
            for position, evaluation in enumerate(self.agents[index].evaluations):
                winners[evaluation.name] = index, position, evaluation
        in_order = sorted(winners.values(), key=lambda winner: winner[:2])
        return tuple(
            (self.agents[index], evaluation) for index, _, evaluation in in_order if evaluation.enabled
        )

    def early_for(self, agent_name: str | None, tenant: str = "") -> tuple[Evaluation, ...]:
        """Those of `evaluations_for` that are `early`. None: the name is not known yet.

        Then those count that apply to every agent, whatever its name: no other pattern has one of that name.
        """
        if agent_name is None:
            return self._early_for_all.get(tenant, ())
        return tuple(one for one in self.evaluations_for(agent_name, tenant) if one.early)

    def exact_names(self, tenant: str = "") -> tuple[str, ...]:
        """The agents named without wildcards, each once, in the order of the files."""
        return tuple(
            dict.fromkeys(agent.pattern for agent in self.agents if agent.is_exact and agent.tenant == tenant)
        )

    def describe(self) -> str:
        """How much it is, for people: `2 agents and 1 pattern, 5 evaluations, and 6 built-in ones`."""
        written = [agent for agent in self.agents if not agent.is_builtin]
        exact = {(agent.tenant, agent.pattern) for agent in written if agent.is_exact}
        globs = {(agent.tenant, agent.pattern) for agent in written if not agent.is_exact}
        evaluations = sum(len(agent.evaluations) for agent in written)
        parts = [_count(len(exact), "agent")] if exact or not globs else []
        parts += [_count(len(globs), "pattern")] if globs else []
        shown = f"{' and '.join(parts)}, {_count(evaluations, 'evaluation')}"
        built_in = sum(len(agent.evaluations) for agent in self.agents if agent.is_builtin)
        if not built_in:
            return shown
        return f"{shown}, and {built_in} built-in ones" if written else f"{built_in} built-in evaluations"

    def without_evaluations(self) -> tuple[str, ...]:
        """The agents named without wildcards, of any tenant, to which no evaluation applies."""
        named = dict.fromkeys((agent.tenant, agent.pattern) for agent in self.agents if agent.is_exact)
        return tuple(name for tenant, name in named if not self.evaluations_for(name, tenant))

    @property
    def covers_every_agent(self) -> bool:
        """Whether agents of no tenant that no pattern but `*` matches have an evaluation."""
        winners: dict[str, Evaluation] = {}
        for agent in sorted(self.agents, key=lambda agent: not agent.is_builtin):
            if not agent.tenant and agent.pattern and not agent.pattern.strip("*"):
                winners |= {evaluation.name: evaluation for evaluation in agent.evaluations}
        return any(evaluation.enabled for evaluation in winners.values())


def _early_for_all(agents: Sequence[AgentCriteria]) -> dict[str, tuple[Evaluation, ...]]:
    """By tenant, the early evaluations that all agents have, and that no second pattern gives."""
    written = [agent for agent in agents if not agent.is_builtin]
    times = Counter((agent.tenant, one.name) for agent in written for one in agent.evaluations)
    applying: dict[str, tuple[Evaluation, ...]] = {}
    for agent in written:
        if agent.pattern and not agent.pattern.strip("*"):
            early = [one for one in agent.evaluations if one.early and one.enabled]
            alone = [one for one in early if times[agent.tenant, one.name] == 1]
            applying[agent.tenant] = (*applying.get(agent.tenant, ()), *alone)
    return applying


def _hash(agents: Sequence[AgentCriteria]) -> str:
    digest = sha256()
    for agent in agents:
        digest.update(repr((agent.tenant, agent.pattern, *(["builtin"] * agent.is_builtin))).encode())
        for evaluation in agent.evaluations:
            parts = evaluation.name, evaluation.criteria_hash, str(evaluation.severity), evaluation.enabled
            digest.update(repr((*parts, *["early"] * evaluation.early)).encode())
            if not evaluation.is_plain:
                digest.update(repr((evaluation.sample, str(evaluation.stage), evaluation.mute)).encode())
    return digest.hexdigest()[:16]


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
