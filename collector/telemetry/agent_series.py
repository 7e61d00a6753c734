"""The series that agent runs count in: for each agent its label sets, evaluations, classes and tools.

Every label value that comes from telemetry is bounded here, so that the number of series is; every series is
shown at 0 before it counts; and series that were idle for long expire, which frees the slots of their label
values.
"""

import math
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from collector.clock import Clock
from collector.telemetry.metrics import (
    Counter,
    Histogram,
    HistogramSeries,
    Labels,
    Metrics,
    ObservedSpan,
)
from processors.model import AgentRun, JsonValue, Outcome


class Limits:
    """Bounds of label values that come from telemetry, and with them of the number of series."""

    AGENTS = 1000
    """Agents with series of their own, in addition to those named exactly in criteria."""
    VERSIONS = 100
    """Versions of one agent."""
    RESOURCE_VALUES = 100
    """Values of one resource attribute, over all agents."""
    LABEL_SETS = 2000
    """Sets of agent, version and resource attributes, over all agents; in addition each agent has one without
    optional labels, and one for all others."""
    TOOLS_PER_AGENT, TOOLS = 100, 5000
    """Tools of one agent, and pairs of both over all agents not named exactly; beyond either they share one
    value."""
    CLASSES, CLASS_LENGTH = 30, 64
    """Classes of one evaluation and label set, and their length: longer texts are not classes."""
    CLASS_SERIES = 5000
    """Pairs of classes over all evaluations."""
    NAME_LENGTH = 256
    """Longer names share the overflow value."""
    HOLD_SECONDS = 15.0
    """For how long after it appeared a new series is shown at 0 to the first scrape."""


OVERFLOW = "__overflow__"
"""The value of all names without a slot."""

_MAX_INTERVAL_SECONDS = 60.0
"""The longest time between two searches for idle series."""

_OUTCOMES = tuple(Outcome)
_OUTCOME_VALUES = tuple(outcome.value for outcome in Outcome)

KeyT = TypeVar("KeyT")
SeriesT = TypeVar("SeriesT", bound="Series")


class LabelValues:
    """Gives the first `limit` names a value of their own, and all others `OVERFLOW`.

    Reserved names always have their own value and take no slot. Other names longer than `max_length` have
    none.
    """

    def __init__(self, limit: int, max_length: int = Limits.NAME_LENGTH) -> None:
        self._limit = limit
        self._max_length = max_length
        self._taken: set[str] = set()
        self._reserved: frozenset[str] = frozenset()

    def reserve(self, names: Iterable[str]) -> None:
        """Reserve `names`, whatever the limit. Names reserved before retain theirs in a slot."""
        self._taken |= self._reserved
        self._reserved = frozenset(map(_valid, names))
        self._taken -= self._reserved

    def value(self, name: str) -> str:
        """The label value of `name`; a new name takes a slot."""
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
        """Free the slots of all values that are not in `values`; reserved ones remain."""
        self._taken = {value for value in self._taken if value in values}


class NewSeries:
    """Makes scrapes show every series at 0 before they show what it counts.

    Prometheus computes rates from differences: what a series held when it was scraped for the first time is
    missing from every rate. So a scrape shows a series that just appeared at 0, unless that was 15 s ago or
    longer: a scrape that late has missed the moment.

    A series that expired and reappears before a scrape could miss it is shown at 0 however late the scrape:
    to Prometheus it never went away, and only its value of 0 shows that it began anew.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._unseen: dict[int, Counter | Histogram] = {}
        self._removed: set[tuple[str, Labels]] = set()

    def add(self, instrument: Counter | Histogram, labels: Labels) -> None:
        """Create the series, unless it exists."""
        if labels in instrument.values:
            return
        instrument.begin(labels)
        was_removed = (instrument.name, labels) in self._removed
        instrument.unseen[labels] = math.inf if was_removed else self._clock.monotonic()
        self._unseen[id(instrument)] = instrument

    def remove(self, instrument: Counter | Histogram, labels: Labels) -> bool:
        """Remove the series; whether it existed."""
        if labels not in instrument.values:
            return False
        instrument.remove(*labels)
        self._removed.add((instrument.name, labels))
        return True

    def before_scrape(self) -> None:
        """A scrape is going to show which series there are, and which no longer."""
        self._removed.clear()
        latest = self._clock.monotonic() - Limits.HOLD_SECONDS
        for instrument in self._unseen.values():
            for labels in [labels for labels, since in instrument.unseen.items() if since <= latest]:
                del instrument.unseen[labels]

    def after_scrape(self) -> None:
        """Every series was shown: the next scrape shows what it counted."""
        for instrument in self._unseen.values():
            instrument.unseen.clear()
        self._unseen.clear()


class Series:
    """Series of a counter that appear and expire together, and series of histograms that belong to them.

    They are idle only if a scrape showed what they count a whole expiry ago and shows the same now: no
    increment is lost to Prometheus.
    """

    __slots__ = ("_counted", "_counter", "_histograms", "_idle_since", "_new", "_total")

    def __init__(self, new: NewSeries, counter: Counter, *counted: Labels) -> None:
        self._new = new
        self._counter = counter
        self._counted = counted
        self._histograms: list[HistogramSeries] = []
        self._total: float | None = None
        self._idle_since = 0.0
        for labels in counted:
            new.add(counter, labels)

    def add(self, histogram: Histogram, labels: Labels) -> HistogramSeries:
        """Add a series of a histogram."""
        self._new.add(histogram, labels)
        series = HistogramSeries(histogram, labels)
        self._histograms.append(series)
        return series

    def count(self, amount: int = 1) -> None:
        """Add to the first of the counted series."""
        self._counter.values[self._counted[0]] += amount

    def is_idle(self, now: float, seconds: float) -> bool:
        """Whether nothing was counted for that long; to be queried after a scrape."""
        total = None
        if self._counter.unseen.keys().isdisjoint(self._counted):
            total = sum([self._counter.values[labels] for labels in self._counted])
        if total is None or total != self._total:
            self._total = total
            self._idle_since = now
            return False
        return now - self._idle_since >= seconds

    def remove(self) -> int:
        """Remove the series; the number removed."""
        removed = [self._new.remove(self._counter, labels) for labels in self._counted]
        return sum(removed + [self._new.remove(one.histogram, one.labels) for one in self._histograms])


@dataclass(slots=True, eq=False)
class EvaluationClasses:
    """The pairs of classes of one evaluation and label set, and which classes have a value of their own."""

    series: dict[tuple[str, str], Series] = field(default_factory=dict)
    values: LabelValues = field(default_factory=lambda: LabelValues(Limits.CLASSES, Limits.CLASS_LENGTH))


class EvaluationSeries(Series):
    """The series of one evaluation for one label set: of its outcomes, its scores, and pairs of classes.

    Alerts need outcomes at 0 before there are any; scores have a series from the first one on.
    """

    __slots__ = ("_observed", "_scores", "classes", "labels", "plain_labels")

    def __init__(self, new: NewSeries, results: Counter, scores: Histogram, labels: Labels) -> None:
        agent, name, *optional = labels
        super().__init__(new, results, *((agent, name, outcome, *optional) for outcome in _OUTCOME_VALUES))
        self._scores = scores
        self._observed: HistogramSeries | None = None
        self.labels = labels
        self.plain_labels = labels[:2]
        self.classes: EvaluationClasses | None = None

    def count_result(self, outcome: Outcome, score: float | None, span: ObservedSpan | None) -> None:
        """Count a result; its score, if it has one, names the span behind it."""
        self._counter.values[self._counted[_OUTCOMES.index(outcome)]] += 1
        if score is not None:
            if self._observed is None:
                self._observed = self.add(self._scores, self.labels)
            self._observed.observe(score, span)

    def remove(self) -> int:
        """Remove the series, those of classes too; the number removed."""
        pairs = () if self.classes is None else self.classes.series.values()
        return super().remove() + sum([pair.remove() for pair in pairs])


class RunSeries(Series):
    """The series of one label set: those of its runs, and those of its evaluations.

    Evaluations are keyed by whether they are in shadow, and by name. Durations, tokens and costs have series
    from the first run on that reports them: of most agents either all runs do or none.
    """

    __slots__ = ("_cost", "_duration", "_metrics", "_tokens", "evaluations", "labels")

    def __init__(self, new: NewSeries, metrics: Metrics, agent: str, optional: Labels) -> None:
        self.labels = (agent, *optional)
        super().__init__(new, metrics.agent_runs, self.labels)
        self._metrics = metrics
        self.evaluations: dict[tuple[bool, str], EvaluationSeries] = {}
        self._duration: HistogramSeries | None = None
        self._tokens: tuple[HistogramSeries, HistogramSeries] | None = None
        self._cost: HistogramSeries | None = None

    def observe_run(self, run: AgentRun, span: ObservedSpan | None) -> None:
        """Count the duration, tokens and cost of a run as far as they are known, and name its span."""
        if (seconds := run.duration_seconds) is not None:
            if self._duration is None:
                self._duration = self.add(self._metrics.run_duration_seconds, self.labels)
            self._duration.observe(seconds, span)
        if (usage := run.usage) is None:
            return
        if self._tokens is None:
            tokens, (agent, *optional) = self._metrics.run_tokens, self.labels
            self._tokens = (
                self.add(tokens, (agent, "input", *optional)),
                self.add(tokens, (agent, "output", *optional)),
            )
        self._tokens[0].observe(usage.input_tokens, span)
        self._tokens[1].observe(usage.output_tokens, None)
        if (cost := run.cost) is not None:
            if self._cost is None:
                self._cost = self.add(self._metrics.run_cost, self.labels)
            self._cost.observe(cost, span)


@dataclass(slots=True, eq=False)
class AgentSeries:
    """The series of one agent, or of all agents without a slot.

    `lasting` are the keys of the evaluations whose series without optional labels never expire: those of an
    agent that is named exactly in criteria.
    """

    name: str
    is_exact: bool = False
    lasting: frozenset[tuple[bool, str]] = frozenset()
    runs: dict[Labels, RunSeries] = field(default_factory=dict)
    tools: dict[tuple[str, str], Series] = field(default_factory=dict)
    early: dict[tuple[bool, str], Series] = field(default_factory=dict)
    """Failures while runs go on, by the keys of their evaluations."""
    tool_values: LabelValues = field(default_factory=lambda: LabelValues(Limits.TOOLS_PER_AGENT))
    versions: LabelValues = field(default_factory=lambda: LabelValues(Limits.VERSIONS))

    @property
    def is_overflow(self) -> bool:
        """Whether this stands for all agents without a slot."""
        return self.name == OVERFLOW


@dataclass(eq=False)
class KnownAgents:
    """All agents with series, by label value, and the bounds over all of them.

    Series of agents named exactly in criteria never expire if they have no optional labels and their criteria
    are in force; all others, those of versions, tools and classes too, expire after `expiry_seconds` idle.
    """

    metrics: Metrics
    clock: Clock
    resource_attributes: Sequence[str]
    expiry_seconds: float

    def __post_init__(self) -> None:
        self.agents: dict[str, AgentSeries] = {}
        self._names = LabelValues(Limits.AGENTS)
        self._resource_values = [LabelValues(Limits.RESOURCE_VALUES) for _ in self.resource_attributes]
        self._overflow = (OVERFLOW,) * (1 + len(self._resource_values))
        self._label_sets = self._tools = self._class_series = 0
        self._next_sweep = 0.0
        self.new = NewSeries(self.clock)

    def reserve(self, names: Iterable[str]) -> None:
        """Give the agents of these `names`, and of no others, a slot whatever the number of others."""
        self._names.reserve(names)

    def agent(self, name: str) -> tuple[AgentSeries, bool]:
        """The series of the agent called `name`, and whether it is new."""
        label = self._names.value(name)
        match = self.agents.get(label)
        if match is not None:
            return match, False
        agent = self.agents[label] = AgentSeries(label)
        return agent, True

    def series_of(self, agent: AgentSeries, run: AgentRun) -> RunSeries:
        """The series that `run` of `agent` counts in."""
        version = run.agent.version
        if not self.resource_attributes:
            optional: Labels = (version,) if version else ()
        else:
            resource = run.resource
            optional = trimmed(
                (version or "", *(_text(resource.get(name)) for name in self.resource_attributes))
            )
        match = agent.runs.get(optional)
        return self._bounded(agent, optional) if match is None else match

    def plain_series(self, agent: AgentSeries) -> RunSeries:
        """The series of `agent` without optional labels."""
        return agent.runs.get(()) or self._add(agent, ())

    def evaluation_series(self, runs: RunSeries, name: str, *, in_shadow: bool) -> EvaluationSeries:
        """The series of an evaluation of `runs`."""
        result = runs.evaluations.get((in_shadow, name))
        if result is None:
            results, scores = self.metrics.results, self.metrics.score
            if in_shadow:
                results, scores = self.metrics.shadow_results, self.metrics.shadow_score
            agent, *optional = runs.labels
            result = EvaluationSeries(self.new, results, scores, (agent, name, *optional))
            runs.evaluations[in_shadow, name] = result
        return result

    def early_series(self, agent: AgentSeries, evaluation: str) -> Series:
        """The series of failures of an evaluation while runs of `agent` go on."""
        key = False, evaluation
        if key not in agent.early:
            agent.early[key] = Series(self.new, self.metrics.early_failures, (agent.name, evaluation))
        return agent.early[key]

    def tool_series(self, agent: AgentSeries, tool: str, status: str) -> Series:
        """The series of calls of `tool` that ended in `status`."""
        values = agent.tool_values
        if tool in values or agent.is_exact:
            label = values.value(tool)
        elif self._tools < Limits.TOOLS:
            before = len(values)
            label = values.value(tool)
            self._tools += len(values) - before
        else:
            label = OVERFLOW
        result = agent.tools.get((label, status))
        if result is None:
            labels = (agent.name, label, status)
            result = agent.tools[label, status] = Series(self.new, self.metrics.tool_calls, labels)
        return result

    def class_series(self, series: EvaluationSeries, expected: str, predicted: str) -> Series:
        """The series of results of one evaluation with these classes."""
        if series.classes is None:
            series.classes = EvaluationClasses()
        values, known = series.classes.values, series.classes.series
        result = known.get((expected, predicted))
        if result is not None:
            return result
        classes = OVERFLOW, OVERFLOW
        if self._class_series < Limits.CLASS_SERIES:
            classes = values.value(expected), values.value(predicted)
        result = known.get(classes)
        if result is None:
            agent, name, *optional = series.labels
            labels = (agent, name, *classes, *optional)
            result = known[classes] = Series(self.new, self.metrics.classifications, labels)
            self._class_series += 1
        return result

    def sweep(self) -> int:
        """Remove idle series, if it is time; the number removed. Call this after a scrape."""
        now = self.clock.monotonic()
        if now < self._next_sweep:
            return 0
        self._next_sweep = now + min(_MAX_INTERVAL_SECONDS, self.expiry_seconds / 4)
        expired = sum([self._sweep_agent(agent, now) for agent in self.agents.values()])
        if expired:
            self._free_unused()
        return expired

    def _sweep_agent(self, agent: AgentSeries, now: float) -> int:
        expired = self._sweep(agent.tools, now) + self._sweep(agent.early, now, agent.lasting)
        for optional, runs in list(agent.runs.items()):
            lasts = not optional and agent.is_exact
            for series in runs.evaluations.values():
                if series.classes is not None:
                    expired += self._sweep(series.classes.series, now)
            expired += self._sweep(runs.evaluations, now, agent.lasting if lasts else ())
            if not lasts and runs.is_idle(now, self.expiry_seconds) and not runs.evaluations:
                expired += runs.remove()
                del agent.runs[optional]
        return expired

    def _sweep(self, series: dict[KeyT, SeriesT], now: float, lasting: Container[KeyT] = ()) -> int:
        idle = [
            key for key, one in series.items() if key not in lasting and one.is_idle(now, self.expiry_seconds)
        ]
        return sum([series.pop(key).remove() for key in idle])

    def _free_unused(self) -> None:
        """Free the slots of label values without series, and remove agents without series."""
        for name, agent in list(self.agents.items()):
            agent.versions.keep({key[0] for key in agent.runs if key})
            agent.tool_values.keep({tool for tool, _ in agent.tools})
            if not (agent.runs or agent.tools or agent.early or agent.is_exact):
                del self.agents[name]
        self._names.keep(self.agents)
        agents = self.agents.values()
        used = [key for agent in agents for key in agent.runs]
        for position, values in enumerate(self._resource_values, start=1):
            values.keep({key[position] for key in used if len(key) > position})
        classified = [
            series.classes
            for agent in agents
            for runs in agent.runs.values()
            for series in runs.evaluations.values()
            if series.classes is not None
        ]
        for classes in classified:
            classes.values.keep({value for pair in classes.series for value in pair})
        self._label_sets = sum(1 for key in used if key and key != self._overflow)
        self._tools = sum(len(agent.tool_values) for agent in agents if not agent.is_exact)
        self._class_series = sum(len(classes.series) for classes in classified)

    def _bounded(self, agent: AgentSeries, optional: Labels) -> RunSeries:
        """The series of `optional`, with overflow for values without a slot; created if needed."""
        if agent.is_overflow and optional:
            optional = trimmed(("", *optional[1:]))
        bounds = (agent.versions, *self._resource_values)
        bounded = tuple(
            bound.value(value) if value else "" for bound, value in zip(bounds, optional, strict=False)
        )
        match = agent.runs.get(bounded)
        if match is not None:
            return match
        if bounded and self._label_sets >= Limits.LABEL_SETS:
            bounded = self._overflow
        elif bounded and bounded != self._overflow:
            self._label_sets += 1
        return agent.runs.get(bounded) or self._add(agent, bounded)

    def _add(self, agent: AgentSeries, optional: Labels) -> RunSeries:
        runs = agent.runs[optional] = RunSeries(self.new, self.metrics, agent.name, optional)
        return runs


def _valid(name: str) -> str:
    """`name` as encodable text: half a surrogate pair would make every later scrape fail."""
    return name.encode(errors="replace").decode()


def trimmed(values: Labels) -> Labels:
    """Without the empty values at the end: a series has one tuple of labels only."""
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
