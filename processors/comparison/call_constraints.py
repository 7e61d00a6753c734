"""Constraints on the sequence of events: the templates of DECLARE, checked on one run.

Names and meaning are those of process mining (Pesic, Schonenberg and van der Aalst, "DECLARE: Full Support
for Loosely-Structured Processes", 2007; chain precedence with the past as Di Ciccio and Montali, "Declarative
Process Specifications", 2022). Where a call is of both kinds that a template relates, the other one has to
be another call. Calls that ran side by side stand at one place of the sequence.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from processors.comparison.captured_value import readable_arguments, unknown_arguments
from processors.comparison.constraint_events import Event, EventSequence, turn_of
from processors.comparison.constraint_groups import check_group
from processors.comparison.constraint_relations import check_relation
from processors.comparison.constraint_terms import (
    CHOICES,
    COUNT,
    COUNTS,
    ENDS,
    RELATIONS,
    VALUES,
    CallConstraint,
    Finding,
    attainable_share,
)
from processors.comparison.event_target import Target, messages_are_known
from processors.comparison.event_values import UNKNOWN, EventValue, NoValue, number_of
from processors.comparison.json_paths import JsonPath, leaves, place_text
from processors.comparison.tool_selection import ToolPatterns
from processors.documents import did_you_mean
from processors.model import (
    EVALUATED_CATEGORIES,
    MAX_ORDERED_CALLS,
    AgentRun,
    CallCategory,
    NotEvaluated,
    OverLimitError,
    ToolCall,
    ValueState,
    may_be_masked,
)

_MAX_PLACES: Final = 200
"""Places in recorded values among which one is proposed for a path that none has."""


class CallConstraints:
    """Constraints, ready to be checked on runs.

    They look at the calls of `categories`, and at those of any category that the constraints name. `strict`:
    calls that ran side by side stand neither before nor after each other; else in whichever order a
    constraint requires.
    """

    def __init__(
        self,
        constraints: Sequence[CallConstraint],
        categories: frozenset[CallCategory],
        *,
        strict: bool = False,
    ) -> None:
        self._constraints = constraints
        self._categories = categories
        self._named = ToolPatterns(
            kind.tool
            for constraint in constraints
            for kind in constraint.kinds
            if kind.kind == "call" and not (constraint.template in VALUES and kind.tool == "*")
        )
        self._beside = not strict

    def check(self, run: AgentRun, *, may_change: bool = False) -> list[Finding] | NotEvaluated:
        """A finding for each constraint; over the limits none. `may_change`: how calls ended may change."""
        named, categories = self._named, self._categories
        seen = [at for at, call in enumerate(run.calls) if call.category in categories or call.name in named]
        sequence = EventSequence(run, seen, may_change, self._beside)
        if sequence.length > MAX_ORDERED_CALLS:
            return NotEvaluated.over_limit(f"{sequence.length} tool calls, at most {MAX_ORDERED_CALLS}")
        try:
            return [_finding(constraint, sequence) for constraint in self._constraints]
        except OverLimitError:
            return NotEvaluated.over_limit("more calls or arguments than are compared in one evaluation")

    def evaluate(self, run: AgentRun) -> list[Finding] | NotEvaluated:
        """`check`, or why arguments that are not known decide the share of those that hold."""
        findings = self.check(run)
        if isinstance(findings, NotEvaluated):
            return findings
        fails = any(finding.applies and finding.holds is False for finding in findings)
        for finding in findings:
            if finding.holds is None or (fails and finding.applies is None):
                return self._unknown(run, finding.constraint)
        return findings

    def attainable(self, run: AgentRun) -> tuple[float, float]:
        """`attainable_share` of the constraints; over the limits anything."""
        findings = self.check(run, may_change=True)
        return (0.0, 1.0) if isinstance(findings, NotEvaluated) else attainable_share(findings)

    def doubts(self, runs: Sequence[AgentRun]) -> Iterator[str]:
        """The values that constraints look at and that no call in `runs` has, though some are known whole.

        Arguments that the schema of the tool has are in no doubt.
        """
        for constraint in self._constraints:
            for side, kind in enumerate(constraint.kinds):
                calls = [(run, call) for run in runs for call in run.calls if call.name in kind.tools]
                for value in dict.fromkeys(_values_in(constraint, side)):
                    roots = [(run, call, value.root_of(call)) for run, call in calls]
                    known = [(run, call, root) for run, call, root in roots if isinstance(root, dict | list)]
                    if known and not any(value.path.values(root) for _, _, root in known):
                        if value.part == "args" and any(
                            _is_in_schema(run, call, value) for run, call, _ in known
                        ):
                            continue
                        places = {place_text(place) for _, _, root in known for place, _ in leaves(root)}
                        hint = did_you_mean(value.path.text, sorted(places)[:_MAX_PLACES])
                        yield (
                            f"{constraint.label}: no call of {kind.tool} in the tests has "
                            f"{value.part}.{value.path.text}{hint}"
                        )

    def _unknown(self, run: AgentRun, constraint: CallConstraint) -> NotEvaluated:
        """Which fact is missing that decides `constraint`."""
        masked: ToolCall | None = None
        needs_turns = constraint.looks_at_turns
        for at, call in enumerate(run.calls):
            for kind in constraint.kinds:
                if call.name not in kind.tools:
                    continue
                if needs_turns and turn_of(run, at) is UNKNOWN:
                    return NotEvaluated.not_captured(f"turn of {call.name}: no captured answer requests it")
                if constraint.same and readable_arguments(call) is None:
                    return unknown_arguments(call)
                missing = kind.missing_fact(call, run.agent.name) or _missing_value(constraint, kind, call)
                if missing is not None:
                    return missing
                if masked is None and may_be_masked(call.arguments_text):
                    masked = call
        is_chain = constraint.template in RELATIONS and RELATIONS[constraint.template].reach == "next"
        roles = [kind.role or "answer" for kind in constraint.kinds if kind.kind != "call"]
        for role in [*roles, *(sorted(constraint.roles) if is_chain else ())]:
            if role == "answer" and run.output_state is not ValueState.PRESENT:
                return NotEvaluated.not_captured(f"answer: {run.output_state}")
            if role != "answer" and not messages_are_known(run, role):
                return NotEvaluated.not_captured(
                    f"messages: telemetry does not show all of the {role}'s and their places among the calls"
                )
        if masked is not None:
            return unknown_arguments(masked)
        if constraint.where:
            written = " and ".join(f'"{comparison.written}"' for comparison in constraint.where)
            return NotEvaluated.not_captured(
                f"{written}: values that do not compare, such as a text and a list"
            )
        return NotEvaluated.not_captured(f"{constraint.label}: redacted in part")


def _values_in(constraint: CallConstraint, side: int) -> Iterator[EventValue]:
    """The arguments and results that calls of one kind of `constraint` are looked at for."""
    for comparison in constraint.where:
        yield comparison.value_of(side)
    yield from filter(None, (constraint.value, constraint.per))
    for paths in constraint.same:
        yield EventValue(f"args.{paths[side].text}", "args", paths[side])
    for part, name in constraint.kinds[side].members:
        yield EventValue(f"{part}.{name}", part, JsonPath(name, (name,)))


def _is_in_schema(run: AgentRun, call: ToolCall, value: EventValue) -> bool:
    """Whether the schema of the tool has the argument that `value` begins with."""
    schema = (run.available_tools or {}).get(call.name)
    properties = schema.get("properties") if isinstance(schema, dict) and value.part == "args" else None
    return isinstance(properties, dict) and any(step in properties for step in value.path.steps[:1])


def _missing_value(constraint: CallConstraint, kind: Target, call: ToolCall) -> NotEvaluated | None:
    """What is not known of `call`, of a kind of `constraint`, that is compared; None: nothing."""
    side = constraint.kinds.index(kind)
    values = [comparison.value_of(side) for comparison in constraint.where]
    for value in [*values, *filter(None, (constraint.value, constraint.per))]:
        if value.part != "turn" and value.of_call(call, "") is UNKNOWN:
            return value.unknown_of(call)
    if constraint.template == "sum" and constraint.value is not None:
        value = constraint.value
        read = value.of_call(call, "")
        if isinstance(read, NoValue) or number_of(read) is None:
            return NotEvaluated.not_captured(f"{value.written} of {call.name}: expected a number to add up")
    if constraint.within is not None and not call.end_unix_nano:
        return NotEvaluated.not_captured(f"times of {call.name}: absent")
    return None


def occurs(target: Target, run: AgentRun) -> bool | NotEvaluated:
    """Whether an event of this kind is in `run` as it stands, or why that is not known.

    Of a run that is not complete more may come.
    """
    findings = CallConstraints([CallConstraint("existence", (target,))], EVALUATED_CATEGORIES).evaluate(run)
    return findings if isinstance(findings, NotEvaluated) else findings[0].holds is True


def _end(constraint: CallConstraint, sequence: EventSequence) -> Finding:
    if not sequence.length:
        return Finding(constraint, applies=False, can_lapse=True)
    finding = Finding(constraint)
    init = constraint.template == "init"
    standing = sequence.at_end("init" if init else "last")
    events = {event.at: event.sure for event in sequence.events(constraint.kinds[0])}
    if any(events.get(at) for at, _ in standing):
        return finding
    finding.holds = None if any(at in events for at, _ in standing) else False
    if finding.holds is False:
        at, name = standing[0 if init else -1]
        finding.unmet = [at]
        finding.text = f"the {'first' if init else 'last'} call is {name}"
    return finding


def _choice(constraint: CallConstraint, sequence: EventSequence) -> Finding:
    first, second = (sequence.events(kind) for kind in constraint.kinds)
    finding = Finding(constraint)
    has_sure = any(event.sure for event in (*first, *second))
    finding.can_fail = not has_sure
    finding.holds = True if has_sure else None if first or second else False
    if finding.holds is False:
        finding.text = "neither was called"
    if constraint.template == "exclusive_choice":
        finding.can_fail = True
        sure_pair = _pair([event for event in first if event.sure], [event for event in second if event.sure])
        if sure_pair:
            finding.holds, finding.can_hold = False, False
            finding.unmet, finding.text = sorted(sure_pair), "both were called"
        elif _pair(first, second):
            finding.holds = None
    return finding


def _pair(first: Sequence[Event], second: Sequence[Event]) -> tuple[int, int] | None:
    """Two different calls, one of each."""
    pairs = ((one.at, other.at) for one in first[:2] for other in second[:2] if one.at != other.at)
    return next(pairs, None)


_CHECKS: Mapping[str, Callable[[CallConstraint, EventSequence], Finding]] = {
    **dict.fromkeys(ENDS, _end),
    **dict.fromkeys(CHOICES, _choice),
    **dict.fromkeys(RELATIONS, check_relation),
    **dict.fromkeys((*COUNTS, *VALUES, COUNT), check_group),
}


def _finding(constraint: CallConstraint, sequence: EventSequence) -> Finding:
    finding = _CHECKS[constraint.template](constraint, sequence)
    if constraint.with_calls and not sequence.length:
        finding.applies, finding.can_lapse = False, True
    return finding
