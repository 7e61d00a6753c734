"""The series that agent runs count in: for each agent its label sets, evaluations, classes and tools.

Every label value that comes from telemetry is bounded here, so that the number of series is; every series is
shown at 0 before it counts; and series in which nothing was counted for long are taken away, so that their
label values give back their slots.
"""

from collections.abc import Container, Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

from collector.clock import Clock
from collector.telemetry.metrics import Counter, Exemplar, Histogram, Labels, Metrics
from processors.model import AgentRun, JsonValue, Outcome

MAX_AGENTS = 1000
"""Agents with series of their own beside those named exactly in criteria."""

MAX_VERSIONS = 100
"""Versions of one agent."""

MAX_RESOURCE_VALUES = 100
"""Values of one resource attribute, over all agents."""

MAX_LABEL_SETS = 2000
"""Sets of agent, version and resource attributes, over all agents; one more for each agent has none of them,
and one that stands for all others."""

MAX_TOOLS_PER_AGENT = 100
MAX_TOOLS = 5000
"""Pairs of agent and tool, over all agents not named exactly; beyond either bound tools share one value."""

MAX_CLASSES, MAX_CLASS_LENGTH = 30, 64
"""Classes of one evaluation of one label set, and their length: longer texts are no classes."""
MAX_CLASS_SERIES = 5000
"""Pairs of classes over all evaluations."""

MAX_LENGTH = 256
"""Longer names share the overflow value."""

OVERFLOW = "__overflow__"
"""The value that stands for every name that got no slot."""

HOLD_SECONDS = 15.0
"""How long, at most, the first increments of a new series wait for a scrape."""

MAX_INTERVAL_SECONDS = 60.0
"""How often, at most, idle series are looked for."""

InstrumentT = TypeVar("InstrumentT", Counter, Histogram)
KeyT = TypeVar("KeyT")
SeriesT = TypeVar("SeriesT", bound="CountedSeries")

_OUTCOMES = tuple(Outcome)
_TOKEN_TYPES = ("input", "output")


class LabelValues:
    """Gives the first `limit` names seen a value of their own, and `OVERFLOW` to all others.

    Reserved names always have one and take none of the slots. A name longer than `max_length` has one only
    if it is reserved.
    """

    def __init__(self, limit: int, max_length: int = MAX_LENGTH) -> None:
        self._limit = limit
        self._max_length = max_length
        self._taken: set[str] = set()
        self._reserved: set[str] = set()

    def reserve(self, names: Iterable[str]) -> None:
        """Give `names` a value whatever the limit. Names reserved before keep theirs in a slot."""
        self._taken |= self._reserved
        self._reserved = {_valid(name) for name in names}
        self._taken -= self._reserved

    def value(self, name: str) -> str:
        """The label value that `name` counts under; a new name takes a slot."""
        if name in self:
            return name
        value = _valid(name)
        if value in self:
            return value
        if len(self._taken) >= self._limit or len(name) > self._max_length or name == OVERFLOW:
            return OVERFLOW
        self._taken.add(value)
        return value

    def __contains__(self, name: str) -> bool:
        """Whether `name` has a value of its own."""
        return name in self._taken or name in self._reserved

    def __len__(self) -> int:
        """The number of slots taken."""
        return len(self._taken)

    def keep(self, values: Container[str]) -> None:
        """Free the slots of all values that are not among `values`; reserved ones stay."""
        self._taken = {value for value in self._taken if value in values}


class FirstSight(Generic[InstrumentT]):
    """Shows the series of an instrument at 0 before they take their first increment.

    Prometheus computes rates from differences: what a series held when it was scraped for the first time is
    lost to every rate. So increments of a series that just appeared wait until a scrape has shown it at 0, or
    for 15 s, so that a service nobody scrapes does not hold them for ever. They are held, never dropped.

    A series that was taken away and comes back before a scrape missed it waits for the scrape, however long:
    to whoever scrapes it never went away, and only its value of 0 says that it began anew.
    """

    def __init__(self, instrument: InstrumentT, clock: Clock) -> None:
        self.instrument: InstrumentT = instrument
        self.held: InstrumentT = instrument.twin()
        self._clock = clock
        self._waiting_since: dict[Labels, float] = {}
        self._waiting_for_scrape: list[Labels] = []
        self._gone: set[Labels] = set()

    def appear(self, labels: Labels) -> None:
        """Show the series at 0, if it is not there, and hold what it takes from now on."""
        if labels in self.instrument.values:
            return
        self.instrument.begin(labels)
        self.held.begin(labels)
        if labels in self._gone:
            self._waiting_for_scrape.append(labels)
        else:
            self._waiting_since[labels] = self._clock.monotonic()

    def open(self, labels: Labels) -> InstrumentT:
        """What increments of the series go into now; it is there, and a new series appears."""
        instrument, held = self.instrument, self.held
        if labels not in instrument.values:
            self.appear(labels)
        return held if held.values and labels in held.values else instrument

    def release(self, *, everything: bool) -> None:
        """Apply what was held for 15 s, or everything."""
        due = []
        due_until = self._clock.monotonic() - HOLD_SECONDS
        for labels, first_seen in self._waiting_since.items():
            if first_seen > due_until and not everything:
                break
            due.append(labels)
        for labels in due:
            del self._waiting_since[labels]
        if everything:
            due += self._waiting_for_scrape
            self._waiting_for_scrape.clear()
        for labels in due:
            self.instrument.take(self.held, labels)

    def show(self) -> None:
        """A scrape shows everything as it stands: which series are there, and which are gone."""
        self._gone.clear()

    def holds(self, labels: Labels) -> bool:
        """Whether some of what the series counts may be held."""
        return labels in self.held.values

    def remove(self, labels: Labels) -> bool:
        """Let a series disappear of which nothing is held; whether it was there."""
        if labels not in self.instrument.values:
            return False
        self.instrument.remove(*labels)
        self._gone.add(labels)
        return True


class CountedSeries:
    """Series of a counter that come and go together, with their scores where they have some.

    A series goes only if a scrape showed what it counts a whole expiry ago and shows the same now, and
    nothing is held back for it: no increment is lost to whoever scrapes.
    """

    __slots__ = ("_idle_since", "_total", "counted", "counter", "score", "scores")

    def __init__(
        self,
        counter: FirstSight[Counter],
        *counted: Labels,
        scores: FirstSight[Histogram] | None = None,
        score: Labels = (),
    ) -> None:
        self.counter = counter
        self.counted = counted
        self.scores = scores
        self.score = score
        self._total: float | None = None
        self._idle_since = 0.0
        if scores is not None:
            scores.appear(score)
        for labels in counted:
            counter.appear(labels)

    def count(self, amount: int = 1) -> None:
        """Add to the first of the series."""
        labels = self.counted[0]
        self.counter.open(labels).values[labels] += amount

    def is_idle(self, now: float, seconds: float) -> bool:
        """Whether nothing was counted for so long; to be asked when everything has been shown."""
        total = None
        if not any(map(self.counter.holds, self.counted)):
            total = sum(self.counter.instrument.value(*labels) for labels in self.counted)
        if total is None or total != self._total:
            self._total = total
            self._idle_since = now
            return False
        return now - self._idle_since >= seconds

    def remove(self) -> int:
        """Let the series disappear; the number of those that were there."""
        removed = sum(map(self.counter.remove, self.counted))
        return removed + (self.scores.remove(self.score) if self.scores is not None else 0)


class Amounts(NamedTuple):
    """What tokens and costs of runs are counted in."""

    tokens: FirstSight[Histogram]
    costs: FirstSight[Histogram]


class EvaluationSeries(CountedSeries):
    """The series of one evaluation for one label set: its scores, one for each outcome, those of classes."""

    __slots__ = ("class_values", "classes")

    def __init__(
        self, results: FirstSight[Counter], scores: FirstSight[Histogram], name: str, runs: "RunSeries"
    ) -> None:
        self.classes: dict[tuple[str, str], CountedSeries] = {}
        self.class_values = LabelValues(MAX_CLASSES, MAX_CLASS_LENGTH)
        outcomes = [(runs.agent, name, outcome.value, *runs.optional) for outcome in _OUTCOMES]
        super().__init__(results, *outcomes, scores=scores, score=(runs.agent, name, *runs.optional))

    def count_result(self, outcome: Outcome) -> None:
        """Count a result."""
        labels = self.counted[_OUTCOMES.index(outcome)]
        self.counter.open(labels).values[labels] += 1

    def observe(self, exemplar: Exemplar) -> None:
        """Count the score of a result, and name the span behind it."""
        if self.scores is not None:
            self.scores.open(self.score).observe_span(exemplar, self.score)

    def remove(self) -> int:
        """Let the series disappear, those of classes too; the number of those that were there."""
        return super().remove() + sum([pair.remove() for pair in self.classes.values()])


class RunSeries(CountedSeries):
    """The series of one label set: those of its runs, and those of its evaluations.

    Evaluations are keyed by whether they are in shadow, and by name. Tokens and costs have series from the
    first run on that tells them: of most agents either all runs do or none.
    """

    __slots__ = ("_amounts", "_cost", "_tokens", "agent", "evaluations", "optional")

    def __init__(
        self,
        runs: FirstSight[Counter],
        durations: FirstSight[Histogram],
        amounts: "Amounts",
        agent: str,
        optional: Labels,
    ) -> None:
        labels = (agent, *optional)
        super().__init__(runs, labels, scores=durations, score=labels)
        self._amounts = amounts
        self._cost = labels
        self._tokens = [(agent, kind, *optional) for kind in _TOKEN_TYPES]
        self.agent = agent
        self.optional = optional
        self.evaluations: dict[tuple[bool, str], EvaluationSeries] = {}

    def observe_run(self, run: AgentRun, span_id: bytes, unix_nano: int) -> None:
        """Count how long a run took, its tokens and its cost, as far as they are known, and name its span."""
        seconds = run.duration_seconds
        if seconds is not None and self.scores is not None:
            exemplar = Exemplar(seconds, run.trace_id, span_id, unix_nano)
            self.scores.open(self.score).observe_span(exemplar, self.score)
        usage = run.usage
        if usage is None:
            return
        tokens, costs = self._amounts
        given, made = self._tokens
        exemplar = Exemplar(usage.input_tokens, run.trace_id, span_id, unix_nano)
        tokens.open(given).observe_span(exemplar, given)
        tokens.open(made).observe(usage.output_tokens, *made)
        cost = run.cost
        if cost is not None:
            costs.open(self._cost).observe_span(Exemplar(cost, run.trace_id, span_id, unix_nano), self._cost)

    def remove(self) -> int:
        """Let the series disappear, those of tokens and costs too; the number of those that were there."""
        tokens, costs = self._amounts
        return super().remove() + sum(map(tokens.remove, self._tokens)) + costs.remove(self._cost)


class AgentSeries:
    """The series of one agent, or of all that got no slot.

    `lasting` are the keys of the evaluations whose series without optional labels stay for ever; they are
    those of an agent that is named exactly in criteria.
    """

    __slots__ = ("is_exact", "lasting", "name", "runs", "tool_values", "tools", "versions")

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_exact = False
        self.lasting: frozenset[tuple[bool, str]] = frozenset()
        self.runs: dict[Labels, RunSeries] = {}
        self.tools: dict[tuple[str, str], CountedSeries] = {}
        self.tool_values = LabelValues(MAX_TOOLS_PER_AGENT)
        self.versions = LabelValues(MAX_VERSIONS)

    @property
    def is_overflow(self) -> bool:
        """Whether this stands for all agents without a slot."""
        return self.name == OVERFLOW


class KnownAgents:
    """All agents with series, by label value, and the bounds over all of them.

    The series without optional labels of agents named exactly in criteria stay, as far as criteria are in
    force for them; all others, their versions, tools and classes too, go when they were idle for
    `expiry_seconds`.
    """

    def __init__(
        self, metrics: Metrics, clock: Clock, resource_attributes: Sequence[str], expiry_seconds: float
    ) -> None:
        self.agents: dict[str, AgentSeries] = {}
        self._names = LabelValues(MAX_AGENTS)
        self._resource_attributes = tuple(resource_attributes)
        self._resource_values = [LabelValues(MAX_RESOURCE_VALUES) for _ in resource_attributes]
        self._overflow = (OVERFLOW,) * (1 + len(self._resource_values))
        self._label_sets = self._tools = self._class_series = 0
        self._clock = clock
        self._expiry_seconds = expiry_seconds
        self._next_sweep = 0.0
        self._runs = FirstSight(metrics.agent_runs, clock)
        self._durations = FirstSight(metrics.run_duration_seconds, clock)
        self._amounts = Amounts(FirstSight(metrics.run_tokens, clock), FirstSight(metrics.run_cost, clock))
        self._scores = FirstSight(metrics.score, clock)
        self._results = FirstSight(metrics.results, clock)
        self._shadow_scores = FirstSight(metrics.shadow_score, clock)
        self._shadow_results = FirstSight(metrics.shadow_results, clock)
        self._classes = FirstSight(metrics.classifications, clock)
        self._tool_calls = FirstSight(metrics.tool_calls, clock)
        self._first_sights: tuple[FirstSight[Counter] | FirstSight[Histogram], ...] = (
            *(self._runs, self._results, self._shadow_results, self._classes, self._tool_calls),
            *(self._scores, self._shadow_scores, self._durations, *self._amounts),
        )

    def reserve(self, names: Iterable[str]) -> None:
        """Make `names` the agents that have a slot whatever the number of others."""
        self._names.reserve(names)

    def agent(self, name: str) -> tuple[AgentSeries, bool]:
        """The series of the agent called `name`, and whether it is new."""
        label = self._names.value(name)
        found = self.agents.get(label)
        if found is not None:
            return found, False
        made = self.agents[label] = AgentSeries(label)
        return made, True

    def series_of(self, agent: AgentSeries, run: AgentRun) -> RunSeries:
        """The series that `run` of `agent` counts in."""
        version = run.agent.version
        if not self._resource_attributes:
            optional: Labels = (version,) if version else ()
        else:
            resource = run.resource
            optional = _trimmed(
                (version or "", *(_text(resource.get(name)) for name in self._resource_attributes))
            )
        found = agent.runs.get(optional)
        return self._bounded(agent, optional) if found is None else found

    def plain_series(self, agent: AgentSeries) -> RunSeries:
        """The series of `agent` without optional labels."""
        return agent.runs.get(()) or self._made(agent, ())

    def evaluation_series(self, runs: RunSeries, name: str, *, in_shadow: bool) -> EvaluationSeries:
        """The series of an evaluation of `runs`."""
        found = runs.evaluations.get((in_shadow, name))
        if found is None:
            results = self._shadow_results if in_shadow else self._results
            scores = self._shadow_scores if in_shadow else self._scores
            found = runs.evaluations[in_shadow, name] = EvaluationSeries(results, scores, name, runs)
        return found

    def tool_series(self, agent: AgentSeries, tool: str, status: str) -> CountedSeries:
        """The series of calls of `tool` that ended in `status`."""
        values = agent.tool_values
        if tool in values or agent.is_exact:
            label = values.value(tool)
        elif self._tools < MAX_TOOLS:
            before = len(values)
            label = values.value(tool)
            self._tools += len(values) - before
        else:
            label = OVERFLOW
        found = agent.tools.get((label, status))
        if found is None:
            found = CountedSeries(self._tool_calls, (agent.name, label, status))
            agent.tools[label, status] = found
        return found

    def class_series(
        self, runs: RunSeries, series: EvaluationSeries, expected: str, predicted: str
    ) -> CountedSeries:
        """The series of results of one evaluation with these classes."""
        found = series.classes.get((expected, predicted))
        if found is not None:
            return found
        classes = OVERFLOW, OVERFLOW
        if self._class_series < MAX_CLASS_SERIES:
            classes = series.class_values.value(expected), series.class_values.value(predicted)
        found = series.classes.get(classes)
        if found is None:
            labels = (*series.score[:2], *classes, *runs.optional)
            found = series.classes[classes] = CountedSeries(self._classes, labels)
            self._class_series += 1
        return found

    def release(self, *, everything: bool) -> None:
        """Apply what was held for 15 s, or everything."""
        for first_sight in self._first_sights:
            if first_sight.held.values:  # asked for every trace, and mostly nothing is held
                first_sight.release(everything=everything)

    def show(self) -> None:
        """A scrape shows everything as it stands."""
        for first_sight in self._first_sights:
            first_sight.show()

    def sweep(self) -> int:
        """Take idle series away, if it is time to look for them; the number of those that were.

        To be called when a scrape has shown everything as it stands.
        """
        now = self._clock.monotonic()
        if now < self._next_sweep:
            return 0
        self._next_sweep = now + min(MAX_INTERVAL_SECONDS, self._expiry_seconds / 4)
        expired = sum([self._sweep_agent(agent, now) for agent in self.agents.values()])
        if expired:
            self._free_unused()
        return expired

    def _sweep_agent(self, agent: AgentSeries, now: float) -> int:
        expired = self._sweep(agent.tools, now)
        for optional, runs in list(agent.runs.items()):
            lasts = not optional and agent.is_exact
            for series in runs.evaluations.values():
                expired += self._sweep(series.classes, now)
            expired += self._sweep(runs.evaluations, now, agent.lasting if lasts else ())
            if not lasts and runs.is_idle(now, self._expiry_seconds) and not runs.evaluations:
                expired += runs.remove()
                del agent.runs[optional]
        return expired

    def _sweep(self, series: dict[KeyT, SeriesT], now: float, lasting: Container[KeyT] = ()) -> int:
        idle = [
            key
            for key, one in series.items()
            if key not in lasting and one.is_idle(now, self._expiry_seconds)
        ]
        return sum([series.pop(key).remove() for key in idle])

    def _free_unused(self) -> None:
        """Give back the slots of whatever has no series any more, agents without series among them."""
        for name, agent in list(self.agents.items()):
            agent.versions.keep({key[0] for key in agent.runs if key})
            agent.tool_values.keep({tool for tool, _ in agent.tools})
            if not agent.runs and not agent.tools and not agent.is_exact:
                del self.agents[name]
        self._names.keep(self.agents)
        agents = self.agents.values()
        used = [key for agent in agents for key in agent.runs]
        for position, values in enumerate(self._resource_values, start=1):
            values.keep({key[position] for key in used if len(key) > position})
        evaluations = [
            one for agent in agents for runs in agent.runs.values() for one in runs.evaluations.values()
        ]
        for series in evaluations:
            series.class_values.keep({value for classes in series.classes for value in classes})
        self._label_sets = sum(1 for key in used if key and key != self._overflow)
        self._tools = sum(len(agent.tool_values) for agent in agents if not agent.is_exact)
        self._class_series = sum(len(series.classes) for series in evaluations)

    def _bounded(self, agent: AgentSeries, optional: Labels) -> RunSeries:
        """The series of `optional` with values that have no slot as overflow; made if need be."""
        if agent.is_overflow and optional:
            optional = _trimmed(("", *optional[1:]))
        bounds = (agent.versions, *self._resource_values)
        bounded = tuple(
            bound.value(value) if value else "" for bound, value in zip(bounds, optional, strict=False)
        )
        found = agent.runs.get(bounded)
        if found is not None:
            return found
        if bounded and self._label_sets >= MAX_LABEL_SETS:
            bounded = self._overflow
        elif bounded and bounded != self._overflow:
            self._label_sets += 1
        return agent.runs.get(bounded) or self._made(agent, bounded)

    def _made(self, agent: AgentSeries, optional: Labels) -> RunSeries:
        made = agent.runs[optional] = RunSeries(
            self._runs, self._durations, self._amounts, agent.name, optional
        )
        return made


def _valid(name: str) -> str:
    """`name` as text that can be encoded: half a surrogate pair would make every later scrape fail."""
    return name.encode(errors="replace").decode()


def _trimmed(values: Labels) -> Labels:
    length = len(values)
    while length and not values[length - 1]:
        length -= 1
    return values[:length]


def _text(value: JsonValue) -> str:
    """A resource attribute as a label value; empty where it is missing, or a list or an object."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else ""
