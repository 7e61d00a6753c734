"""What a constraint on a sequence of events is, and what is established of one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias

from processors.comparison.event_target import Target
from processors.comparison.event_values import Comparison, EventValue
from processors.comparison.json_paths import JsonPath

Reach: TypeAlias = Literal["any", "later", "next", "alternate", "beside"]


class Relation(NamedTuple):
    """Each call of one kind needs one of the other within reach.

    `sides` are the kinds whose calls need one: those of the first (0) after them, of the second (1) before
    them. `negative`: they must not have one. Only a call of the sides in `applies_by`, mostly the same, makes
    the constraint apply.
    """

    reach: Reach
    sides: tuple[int, ...]
    applies_by: tuple[int, ...]
    negative: bool = False


_FIRST, _SECOND, _BOTH = (0,), (1,), (0, 1)

RELATIONS: Mapping[str, Relation] = MappingProxyType({
    "responded_existence": Relation("any", _FIRST, _FIRST),
    "response": Relation("later", _FIRST, _FIRST),
    "precedence": Relation("later", _SECOND, _SECOND),
    "succession": Relation("later", _BOTH, _BOTH),
    "alternate_response": Relation("alternate", _FIRST, _FIRST),
    "alternate_precedence": Relation("alternate", _SECOND, _SECOND),
    "alternate_succession": Relation("alternate", _BOTH, _BOTH),
    "chain_response": Relation("next", _FIRST, _FIRST),
    "chain_precedence": Relation("next", _SECOND, _SECOND),
    "chain_succession": Relation("next", _BOTH, _BOTH),
    "co_existence": Relation("any", _BOTH, _BOTH),
    "not_co_existence": Relation("any", _FIRST, _BOTH, negative=True),
    "not_response": Relation("later", _FIRST, _FIRST, negative=True),
    "not_chain_response": Relation("next", _FIRST, _FIRST, negative=True),
    "not_parallel": Relation("beside", _FIRST, _FIRST, negative=True),
})  # fmt: skip
"""The templates that relate each call of one kind to calls of the other."""

CHOICES: Final = ("choice", "exclusive_choice")
"""The templates that require one of two kinds."""
COUNTS: Mapping[str, str] = MappingProxyType({"existence": ">=", "absence": "<", "exactly": "="})
"""The templates that bound a number of calls by `times`, and how it has to compare with that."""
ENDS: Final = ("init", "last")
"""The templates of how a run begins or ends."""

VALUES: Final = ("constant", "unique", "sum")
"""The templates about a value that all events of a kind have."""
COUNT: Final = "count"
"""The template that bounds a number of events, maybe for each value by itself."""


@dataclass(frozen=True, slots=True)
class CallConstraint:
    """One template with its kinds of events.

    `times` counts for `existence`, `absence` and `exactly`. `same` are paths into the arguments of the two
    calls of a relation, by which they belong together. `with_calls`: it applies only to runs with calls.
    Two events of a relation count only where all of `where` hold for them, and they are at most `within`
    seconds apart. `nearest`: only the last one before an event, or the next one after it, counts, whatever it
    returned and was decided about it.

    `value` is what `constant`, `unique` and `sum` are about, `least` and `most` bound a sum or a `count`;
    with `per` each of its values is looked at by itself.

    Raises ValueError where the template takes no messages, or events do not have what the rest requires.
    """

    template: str
    kinds: tuple[Target, ...]
    times: int = 1
    same: tuple[tuple[JsonPath, JsonPath], ...] = ()
    with_calls: bool = False
    where: tuple[Comparison, ...] = ()
    within: float | None = None
    nearest: bool = False
    value: EventValue | None = None
    per: EventValue | None = None
    least: float | None = None
    most: float | None = None
    weight: float = 1.0
    """How much it counts in the share of constraints that hold."""
    identities: tuple[Target, ...] = field(init=False, default=())
    """With `nearest`: the kinds, whatever their events returned or say."""
    roles: frozenset[str] = field(init=False, default=frozenset())
    """Whose messages stand in the sequence with the calls, and `answer` for the output; mostly none."""
    compares: bool = field(init=False, default=False)
    """Whether single events are compared with each other."""
    looks_at_turns: bool = field(init=False, default=False)
    """Whether it is about the model turns that requested calls, which only single runs have."""
    bounds: tuple[float | None, float | None] = field(init=False, default=(None, None))
    """The least and the most that a number of events, or a sum, may be; None: any."""

    def __post_init__(self) -> None:
        roles: set[str] = {str(kind.kind) for kind in self.kinds if kind.kind != "call"}
        if "message" in roles:
            roles = (roles - {"message"}) | {"user", "assistant"}
        if roles and self.template in (*ENDS, *CHOICES):
            raise ValueError(f"{self.template}: expected calls; messages and the answer cannot stand here")
        if roles and (self.template in VALUES or self.per is not None):
            raise ValueError(f"{self.template}: expected calls; messages and the answer have no such values")
        if roles and self.same:
            raise ValueError("same: it compares arguments, which messages and the answer do not have")
        relation = RELATIONS.get(self.template)
        if relation is None:
            for name, given in (("where", self.where), ("within", self.within), ("nearest", self.nearest)):
                if given:
                    raise ValueError(f"{name}: {self.template} relates no event to another one")
        elif self.nearest and (relation.negative or relation.reach != "later"):
            raise ValueError("nearest: expected response, precedence or succession")
        if roles and self.within is not None:
            raise ValueError("within: it compares times, which messages and the answer do not have")
        if roles and relation is not None and relation.reach == "beside":
            raise ValueError(f"{self.template}: expected calls; nothing runs in parallel to a message")
        if relation is not None and relation.reach != "any" and self.kinds[0].kind == "answer":
            raise ValueError("answer: nothing follows it: expected it as the second of the two")
        object.__setattr__(self, "roles", frozenset(roles))
        by_pair = bool(self.where) or self.within is not None or self.nearest
        object.__setattr__(self, "compares", by_pair or (relation is not None and relation.reach == "beside"))
        values = [value for comparison in self.where for value in comparison.values]
        looks_at_turns = any(value and value.part == "turn" for value in (*values, self.value, self.per))
        object.__setattr__(self, "looks_at_turns", looks_at_turns)
        bounds = {
            "existence": (self.times, None),
            "absence": (None, self.times - 1),
            "exactly": (self.times, self.times),
        }
        object.__setattr__(self, "bounds", bounds.get(self.template, (self.least, self.most)))
        if self.nearest:
            object.__setattr__(self, "identities", tuple(kind.identity for kind in self.kinds))

    @property
    def label(self) -> str:
        """The constraint as explanations name it."""
        shown = [kind.label for kind in self.kinds]
        if self.value is not None:
            shown = [self.value.written + ("" if shown == ["*"] else f" of {shown[0]}")]
        if self.per is not None:
            shown[0] += f" per {self.per.written}"
        if self.template in COUNTS and self.times != 1:
            shown.insert(0, str(self.times))
        return f"{self.template}({', '.join(shown)})"

    @property
    def only_counts_calls(self) -> bool:
        """Whether too many calls break it for good, by their tools and arguments, in whatever order."""
        if any(kind.kind != "call" or kind.has_facts or kind.result_cost for kind in self.kinds):
            return False
        if self.template == "not_co_existence":
            return not (self.same or self.where) and self.within is None
        return self.template in ("absence", "exactly") or (
            self.template == COUNT and self.per is None and self.most is not None
        )


@dataclass(slots=True)
class Finding:
    """The result of one constraint.

    `applies` and `holds` are None where arguments that are not known decide; `holds` means nothing where the
    constraint does not apply. `unmet` are the events that break it, by their places in `AgentRun.calls`;
    those of `messages` and then the answer are counted on from there. `text` states how the first of them,
    or the run, does. The rest is what further events could make of it.
    """

    constraint: CallConstraint
    applies: bool | None = True
    holds: bool | None = True
    unmet: list[int] = field(default_factory=list)
    text: str = ""
    can_hold: bool = True
    can_fail: bool = True
    can_lapse: bool = False


def share_of(findings: Sequence[Finding]) -> float:
    """The share by weight of the constraints that apply that hold; 1 where none applies."""
    held = broken = 0.0
    for finding in findings:
        if finding.applies:
            if finding.holds is True:
                held += finding.constraint.weight
            else:
                broken += finding.constraint.weight
    return _share(held, broken)


def attainable_share(findings: Sequence[Finding]) -> tuple[float, float]:
    """The lowest and the highest share of constraints that hold that any further calls could lead to.

    Exact for each constraint alone: whether it is settled, whatever calls come, wherever they stand.
    """
    failing = _weight(finding for finding in findings if finding.can_fail)
    settled = _weight(finding for finding in findings if not (finding.can_fail or finding.can_lapse))
    holding = _weight(finding for finding in findings if finding.can_hold)
    lost = _weight(finding for finding in findings if not (finding.can_hold or finding.can_lapse))
    return _share(settled, failing), _share(holding, lost)


def _weight(findings: Iterable[Finding]) -> float:
    return sum([finding.constraint.weight for finding in findings])


def _share(held: float, broken: float) -> float:
    return held / (held + broken) if broken else 1.0
