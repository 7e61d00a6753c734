"""The series that agent runs count in: for each agent its label sets, evaluations, classes and tools.

Every value that comes from telemetry is bounded here, so that the number of series is.
"""

from collections.abc import Iterable, Sequence

from collector.telemetry.instruments import Labels
from collector.telemetry.label_values import OVERFLOW, LabelValues
from processors.model.agent_run import AgentRun
from processors.model.json_value import JsonValue

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


class WatchedSeries:
    """Series that are counted together; `total` and `idle_since` tell since when nothing was."""

    __slots__ = ("idle_since", "total")

    def __init__(self) -> None:
        self.total = -1.0
        self.idle_since = 0.0


class CountedSeries(WatchedSeries):
    """One series of a counter."""

    __slots__ = ("labels",)

    def __init__(self, labels: Labels) -> None:
        super().__init__()
        self.labels = labels


class EvaluationSeries(WatchedSeries):
    """The series of one evaluation for one label set: its scores, one for each outcome, those of classes."""

    __slots__ = ("class_values", "classes", "error", "failed", "not_evaluated", "passed", "score")

    def __init__(self, agent: str, evaluation: str, optional: Labels) -> None:
        super().__init__()
        self.score: Labels = (agent, evaluation, *optional)
        self.passed: Labels = (agent, evaluation, "pass", *optional)
        self.failed: Labels = (agent, evaluation, "fail", *optional)
        self.error: Labels = (agent, evaluation, "error", *optional)
        self.not_evaluated: Labels = (agent, evaluation, "not_evaluated", *optional)
        self.classes: dict[tuple[str, str], CountedSeries] = {}
        self.class_values = LabelValues(MAX_CLASSES, MAX_CLASS_LENGTH)

    @property
    def outcomes(self) -> tuple[Labels, ...]:
        """The labels of the results of each outcome."""
        return self.passed, self.failed, self.error, self.not_evaluated


class RunSeries(CountedSeries):
    """The series of one label set: that of its runs, and those of its evaluations by name."""

    __slots__ = ("agent", "evaluations", "optional", "shadow")

    def __init__(self, agent: str, optional: Labels) -> None:
        super().__init__((agent, *optional))
        self.agent = agent
        self.optional = optional
        self.evaluations: dict[str, EvaluationSeries] = {}
        self.shadow: dict[str, EvaluationSeries] = {}


class AgentSeries:
    """The series of one agent, or of all that got no slot.

    `lasting` and `lasting_shadow` name the evaluations, live and in shadow, whose series without optional
    labels stay for ever; they are those of an agent that is named exactly in criteria.
    """

    __slots__ = (
        "is_exact",
        "lasting",
        "lasting_shadow",
        "name",
        "runs",
        "tool_values",
        "tools",
        "versions",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_exact = False
        self.lasting: frozenset[str] = frozenset()
        self.lasting_shadow: frozenset[str] = frozenset()
        self.runs: dict[Labels, RunSeries] = {}
        self.tools: dict[tuple[str, str], CountedSeries] = {}
        self.tool_values = LabelValues(MAX_TOOLS_PER_AGENT)
        self.versions = LabelValues(MAX_VERSIONS)

    @property
    def is_overflow(self) -> bool:
        """Whether this stands for all agents without a slot."""
        return self.name == OVERFLOW


class KnownAgents:
    """All agents with series, by label value, and the bounds over all of them."""

    def __init__(self, resource_attributes: Sequence[str] = ()) -> None:
        self.agents: dict[str, AgentSeries] = {}
        self._names = LabelValues(MAX_AGENTS)
        self._resource_attributes = tuple(resource_attributes)
        self._resource_values = [LabelValues(MAX_RESOURCE_VALUES) for _ in resource_attributes]
        self._overflow = (OVERFLOW,) * (1 + len(self._resource_values))
        self._label_sets = self._tools = self._class_series = 0

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
            values = [version or "", *(_text(resource.get(name)) for name in self._resource_attributes)]
            while values and not values[-1]:
                values.pop()
            optional = tuple(values)
        found = agent.runs.get(optional)
        return self._bounded(agent, optional) if found is None else found

    def plain_series(self, agent: AgentSeries) -> RunSeries:
        """The series of `agent` without optional labels."""
        return agent.runs.get(()) or self._made(agent, ())

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
            found = agent.tools[label, status] = CountedSeries((agent.name, label, status))
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
            found = series.classes[classes] = CountedSeries(labels)
            self._class_series += 1
        return found

    def free_unused(self) -> None:
        """Give back the slots of whatever has no series any more, agents without series among them."""
        for name, agent in list(self.agents.items()):
            agent.versions.keep({key[0] for key in agent.runs if key})
            agent.tool_values.keep({tool for tool, _ in agent.tools})
            if not agent.runs and not agent.tools and not agent.is_exact:
                del self.agents[name]
            for runs in agent.runs.values():
                for series in runs.evaluations.values():
                    series.class_values.keep({value for classes in series.classes for value in classes})
        self._names.keep(self.agents)
        used = [key for agent in self.agents.values() for key in agent.runs]
        for position, values in enumerate(self._resource_values, start=1):
            values.keep({key[position] for key in used if len(key) > position})
        self._label_sets = sum(1 for key in used if key and key != self._overflow)
        self._tools = sum(len(agent.tool_values) for agent in self.agents.values() if not agent.is_exact)
        self._class_series = sum(
            len(series.classes)
            for agent in self.agents.values()
            for runs in agent.runs.values()
            for series in runs.evaluations.values()
        )

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
        made = agent.runs[optional] = RunSeries(agent.name, optional)
        return made


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
