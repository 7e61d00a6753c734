"""From good runs to criteria: mining, the choice by cross-validation, and the report on runs held out."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from processors.comparison import looks_failed, parse_json_path
from processors.criteria import EVERY_AGENT, Evaluation, read_criteria, write_criteria
from processors.documents import InvalidInput
from processors.evaluate import evaluate_run
from processors.learning.argument_rules import argument_rules
from processors.learning.mutations import STRUCTURAL, BrokenRun, Population
from processors.learning.observed_run import EVERY_ITEM, ObservedRun, ToolPlace, observe
from processors.learning.relation_rules import relation_rules
from processors.learning.rule import PREFIX, Rule, RuleKey, entry_of, groups_of, trials_needed, upper_bound
from processors.learning.run_rules import run_rules
from processors.learning.tool_rules import tool_rules
from processors.model import AgentRun, JsonObject, Outcome, canonical_tool_name

MIN_LEARNED_FROM = 20
"""Complete runs of an agent from which on something can be learned."""

_HELD_OUT = 4
"""One run in this many is held out for the report."""
_FOLDS = 5
_FEWEST_FOLDS = 3
_MAX_BROKEN_RUNS = 250
"""Good runs that are broken for the report; each once for every kind of mutation."""
_MAX_WEIGHED_RUNS = 50

_OF_CALLS = frozenset(PREFIX + kind for kind in ("tools", "calls", "order", "recovery"))
_GROUNDING: JsonObject = {"evaluator": "tool-args-grounded", "name": "grounding"}


class TooFewRunsError(ValueError):
    """There are not enough complete runs to learn from; the message states how many are needed."""


@dataclass(frozen=True, slots=True)
class Caught:
    """Of the broken runs of one kind: how many there were, and how many the criteria fail."""

    broken: int = 0
    caught: int = 0

    def __add__(self, other: "Caught") -> "Caught":
        """Both kinds together."""
        return Caught(self.broken + other.broken, self.caught + other.caught)


@dataclass(frozen=True, slots=True)
class LearnedEvaluation:
    """One evaluation as it stands in a criteria file, with the rules in it and what it is worth.

    `worth` is the share of broken runs that it catches.
    """

    name: str
    entry: JsonObject
    rules: Sequence[Rule]
    worth: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What was learned of one agent, and how good it is.

    `evaluations` are sorted by worth. `runs` took part in choosing them; `held_out` did not, and
    `false_alarms` of these fail. `chosen_alarms` is the number of false alarms in cross-validation over
    `runs`, with `chosen_bound` the upper bound of their rate. `given_up` counts rules that would have brought
    more. `runs_needed` is how many runs would show the requested rate; None: there were enough.
    `examples` are runs to test the criteria by, `broken_examples` broken ones that fail.
    """

    agent: str
    evaluations: Sequence[LearnedEvaluation]
    runs: int
    held_out: int
    false_alarms: int
    chosen_alarms: int
    chosen_bound: float
    given_up: int
    runs_needed: int | None
    caught: Mapping[str, Caught]
    examples: Sequence[AgentRun]
    broken_examples: Sequence[BrokenRun]

    @property
    def caught_over_all(self) -> Caught:
        """Of all broken runs."""
        return sum(self.caught.values(), Caught())

    @property
    def caught_structural(self) -> Caught:
        """Of those with a missing, a forbidden or a reordered call."""
        return sum([self.caught[kind] for kind in STRUCTURAL if kind in self.caught], Caught())


def learn(
    agent: str,
    runs: Iterable[AgentRun],
    *,
    max_false_alarms: float = 0.02,
    examples: int = 3,
    advance: Callable[[], object] = lambda: None,
) -> Learned:
    """The criteria that good runs of one agent have in common.

    Rules are mined from three quarters of the runs, and given up by cross-validation over these until the
    upper bound of the false alarm rate (`CONFIDENCE`) is at most `max_false_alarms`, or, where there are too
    few runs to show that, until there is no false alarm. On the last quarter false alarms and broken runs are
    counted. Runs are divided by their ids, not by their order. Incomplete ones are left out.

    `advance` is called `STEPS` times for each run, once for an incomplete one. Raises TooFewRunsError where
    fewer than `MIN_LEARNED_FROM` are complete.
    """
    ground = _ReadyCriteria([_GROUNDING]).others
    observed: list[ObservedRun] = []
    for run in runs:
        advance()
        if run.complete:
            one = observe(run)
            one.ungrounded = _ungrounded(run, ground)
            observed.append(one)
    if len(observed) < MIN_LEARNED_FROM:
        raise TooFewRunsError(
            f"{len(observed)} complete runs of {agent}: at least {MIN_LEARNED_FROM} are needed"
        )
    observed.sort(key=lambda run: run.number)
    held_out = observed[::_HELD_OUT]
    learned_from = [run for index, run in enumerate(observed) if index % _HELD_OUT]
    names = _names(observed)
    rules = _mine(learned_from, names)
    broken, folds_of = _cross_validate(learned_from, names, advance)
    kept = {rule.key: rule for rule in rules if folds_of[rule.key] >= _FEWEST_FOLDS}
    alarms, is_shown = _choose(kept, broken, len(learned_from), max_false_alarms)
    evaluations = _weighed([*kept.values()], learned_from, names)
    ready = _ReadyCriteria([evaluation.entry for evaluation in evaluations])
    false_alarms = 0
    for one in held_out:
        advance()
        false_alarms += ready.fails(one.run)
    caught, broken_examples = _catch(held_out, observed, names, ready)
    return Learned(
        agent=agent,
        evaluations=evaluations,
        runs=len(learned_from),
        held_out=len(held_out),
        false_alarms=false_alarms,
        chosen_alarms=alarms,
        chosen_bound=upper_bound(alarms, len(learned_from)),
        given_up=len(rules) - len(kept),
        runs_needed=None if is_shown else -(-trials_needed(max_false_alarms) * _HELD_OUT // (_HELD_OUT - 1)),
        caught=caught,
        examples=_examples(learned_from, ready, examples),
        broken_examples=broken_examples[: min(examples, 3)],
    )


STEPS = 2
"""How often `learn` reports progress for each run: once when it is read, once when it is tried."""


def _names(runs: Sequence[ObservedRun]) -> dict[str, str]:
    """The tools by their canonical names, as they are written most often."""
    written: dict[str, Counter[str]] = {}
    for run in runs:
        for call in run.calls:
            written.setdefault(call.tool, Counter())[call.call.name] += 1
    return {
        tool: min(names, key=lambda name: (-names[name], name)) for tool, names in sorted(written.items())
    }


def _mine(runs: Sequence[ObservedRun], names: Mapping[str, str]) -> list[Rule]:
    """The rules that `runs` keep and a criteria file can express; some texts with dollar signs it cannot."""
    rules = [
        *tool_rules(runs, names),
        *argument_rules(runs, names),
        *relation_rules(runs, names),
        *run_rules(runs),
    ]
    return rules if _is_expressible(rules) else [rule for rule in rules if _is_expressible([rule])]


def _is_expressible(rules: Sequence[Rule]) -> bool:
    try:
        _ReadyCriteria([entry_of(name, of_group) for name, of_group in groups_of(rules).items()])
    except (ValueError, InvalidInput):
        return False
    return True


def _cross_validate(
    runs: Sequence[ObservedRun], names: Mapping[str, str], advance: Callable[[], object]
) -> tuple[list[set[RuleKey]], Counter[RuleKey]]:
    """For each run that fails the rules that it breaks; and in how many folds each rule is."""
    alarms: list[set[RuleKey]] = []
    folds_of: Counter[RuleKey] = Counter()
    for fold in range(_FOLDS):
        rules = _mine([run for index, run in enumerate(runs) if index % _FOLDS != fold], names)
        folds_of.update(rule.key for rule in rules)
        groups = groups_of(rules)
        whole = _ReadyCriteria([entry_of(name, of_group) for name, of_group in groups.items()])
        single: dict[RuleKey, _ReadyCriteria] = {}
        for run in runs[fold::_FOLDS]:
            advance()
            broken: set[RuleKey] = set()
            for name in whole.failing(run.run):
                for rule in groups[name]:
                    if rule.key not in single:
                        single[rule.key] = _ReadyCriteria([entry_of(name, [rule])])
                    if single[rule.key].fails(run.run):
                        broken.add(rule.key)
                if not broken.intersection(rule.key for rule in groups[name]):
                    broken.update(rule.key for rule in groups[name])  # they fail together only
            if broken:
                alarms.append(broken)
    return alarms, folds_of


def _choose(
    kept: dict[RuleKey, Rule], broken: Sequence[set[RuleKey]], runs: int, max_false_alarms: float
) -> tuple[int, bool]:
    """Give up rules of `kept`; their false alarms in cross-validation, and whether these show the rate."""
    is_shown = upper_bound(0, runs) <= max_false_alarms
    while True:
        alarms = [keys for rules in broken if (keys := rules & kept.keys())]
        if not alarms or (is_shown and upper_bound(len(alarms), runs) <= max_false_alarms):
            return len(alarms), is_shown
        costs = Counter(key for keys in alarms for key in keys)
        del kept[max(costs, key=lambda key: (costs[key] / kept[key].weight, key))]


def _weighed(
    rules: Sequence[Rule], runs: Sequence[ObservedRun], names: Mapping[str, str]
) -> list[LearnedEvaluation]:
    """The evaluations that `rules` make, those first that catch most."""
    population = Population(runs, [*names.values()])
    broken = [one for run in runs[:_MAX_WEIGHED_RUNS] for one in population.broken_runs(run)]
    groups = groups_of(rules)
    entries = {name: entry_of(name, of_group) for name, of_group in groups.items()}
    ready = _ReadyCriteria([*entries.values()])
    hits = Counter(name for one in broken for name in ready.failing(one.run))
    return [
        LearnedEvaluation(
            name,
            entries[name],
            sorted(groups[name], key=lambda rule: (-rule.weight, -rule.runs)),
            hits[name] / len(broken) if broken else 0.0,
        )
        for name in sorted(groups, key=lambda name: (-hits[name], name))
    ]


def _catch(
    held_out: Sequence[ObservedRun],
    runs: Sequence[ObservedRun],
    names: Mapping[str, str],
    ready: "_ReadyCriteria",
) -> tuple[dict[str, Caught], list[BrokenRun]]:
    population = Population(runs, [*names.values()])
    total: Counter[str] = Counter()
    caught: Counter[str] = Counter()
    examples: dict[str, BrokenRun] = {}
    for run in held_out[:_MAX_BROKEN_RUNS]:
        for broken in population.broken_runs(run):
            total[broken.kind] += 1
            if ready.fails(broken.run):
                caught[broken.kind] += 1
                examples.setdefault(broken.kind, broken)
    order = [kind for kind in (*STRUCTURAL, *total) if kind in examples]
    return (
        {kind: Caught(number, caught[kind]) for kind, number in total.items()},
        [examples[kind] for kind in dict.fromkeys(order)],
    )


def _examples(runs: Sequence[ObservedRun], ready: "_ReadyCriteria", number: int) -> list[AgentRun]:
    """Runs that differ in their calls, the most usual first, which none of the evaluations fails."""
    usual = Counter(run.signature for run in runs)
    chosen: dict[object, AgentRun] = {}
    for run in sorted(runs, key=lambda run: -usual[run.signature]):
        if len(chosen) >= number:
            break
        if run.signature not in chosen and not ready.fails(run.run):
            chosen[run.signature] = run.run
    return [*chosen.values()]


def _ungrounded(run: AgentRun, grounding: Sequence[Evaluation]) -> frozenset[ToolPlace] | None:
    (result,) = evaluate_run(run, grounding)
    listed = result.details.get("ungrounded")
    if result.score is None or not isinstance(listed, list):
        return None
    places = set()
    for written in map(str, listed):
        tool, _, place = written.partition("[")  # tool[position].path
        steps = parse_json_path(place.partition("]")[2]).steps
        shape = tuple(EVERY_ITEM if isinstance(step, int) else str(step) for step in steps)
        places.add((canonical_tool_name(tool), shape))
    return frozenset(places)


class _ReadyCriteria:
    """Evaluations that are ready to run, and their verdicts on runs.

    Rules on order and numbers look at the tools and at what became of the calls alone: of runs that have
    these in common only the first is held against them.
    """

    def __init__(self, entries: Sequence[JsonObject]) -> None:
        evaluations: Sequence[Evaluation] = ()
        if entries:
            (agent,) = read_criteria(write_criteria(EVERY_AGENT, entries), "", {}).agents
            evaluations = agent.evaluations
        self.of_calls = [item for item in evaluations if item.name in _OF_CALLS]
        self.others = [item for item in evaluations if item.name not in _OF_CALLS]
        self._known: dict[object, list[str]] = {}

    def failing(self, run: AgentRun) -> list[str]:
        """The evaluations that `run` does not pass; what could not be evaluated is no failure."""
        return [*self._by_calls(run), *_failing(run, self.others)]

    def fails(self, run: AgentRun) -> bool:
        """Whether there is one."""
        return bool(self._by_calls(run)) or any(_failing(run, [evaluation]) for evaluation in self.others)

    def _by_calls(self, run: AgentRun) -> list[str]:
        if not self.of_calls:
            return []
        key = tuple(
            (call.name, call.category, call.parallel_group, call.executed, looks_failed(call))
            for call in run.calls
        )
        failed = self._known.get(key)
        if failed is None:
            failed = self._known[key] = _failing(run, self.of_calls)
        return failed


def _failing(run: AgentRun, evaluations: Sequence[Evaluation]) -> list[str]:
    return [
        result.name
        for result in evaluate_run(run, evaluations)
        if result.outcome in (Outcome.FAIL, Outcome.ERROR)
    ]
