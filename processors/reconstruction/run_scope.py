"""What a run consists of: the spans that report it, its calls and its model turns."""

from dataclasses import dataclass
from enum import Enum, auto


class CarrierKind(Enum):
    """What stands for a run."""

    AGENT = auto()
    WORKFLOW = auto()
    LOCAL_ROOT = auto()
    NOTHING = auto()


class RunScope:
    """The spans of one run, as positions in the tree.

    Attributes:
        kind: What stands for the run.
        carrier: The span that stands for the run, or its first where nothing does.
        followed_by: The span with which another agent took over from this one within its workflow, or -1.
        layers: The reports of the invocation itself, outermost first.
        parent: The run that this one is part of.
        asked_by: The tool call of the parent run under which this run lies, or -1.
        tools: The calls.
        models: Model calls of the run's own turns, not those that a tool or another model call made.
        steps: Steps of the run that tell the agent's name.
        agent_name: The agent's name as its calls or steps tell it, where no span of its own does.
        is_whole: False where the span that stands for the run may lack what lies above it.
        has_lost_parents: True where some span of the run named a parent that never came.
        names: What the first `named_layers` of the layers call the agent.
        nested: The runs that are part of this one and lie under no call of it.
    """

    __slots__ = (
        "agent_name",
        "asked_by",
        "carrier",
        "followed_by",
        "has_lost_parents",
        "is_whole",
        "kind",
        "layers",
        "models",
        "named_layers",
        "names",
        "nested",
        "parent",
        "steps",
        "tools",
    )

    def __init__(
        self,
        kind: CarrierKind,
        carrier: int,
        layers: list[int],
        parent: "RunScope | None" = None,
        asked_by: int = -1,
        agent_name: str = "",
    ) -> None:
        self.kind = kind
        self.carrier = carrier
        self.layers = layers
        self.parent = parent
        self.asked_by = asked_by
        self.tools: list[int] = []
        self.models: list[int] = []
        self.steps: list[int] = []
        self.agent_name = agent_name
        self.is_whole = True
        self.followed_by = -1
        self.has_lost_parents = False
        self.names: set[str] = set()
        self.named_layers = 0
        self.nested: list[RunScope] = []


@dataclass(slots=True)
class Scopes:
    """All runs of a trace, in order of start, each known to the one that it is part of.

    `tool_above` holds for every call the nearest call above it in the same run, or -1; `agent_calls` the
    calls under which an agent ran.
    """

    runs: list[RunScope]
    tool_above: list[int]
    agent_calls: frozenset[int]

    def __post_init__(self) -> None:
        for run in self.runs:
            if run.parent is not None and run.asked_by < 0:
                run.parent.nested.append(run)
