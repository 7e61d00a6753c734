"""One run that several instrumentations report, each with spans of its own: neither within the other.

Frameworks notify every instrumentation of each beginning and each end in turn, so the reports of one thing
overlap nearly wholly. What one instrumentation alone reports twice happened twice, but for a model's answer
of which both reports name the same response.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from processors.shapes import (
    CarrierKind,
    Outline,
    RunScope,
    SpanReading,
    Trace,
    after_results,
    last_text,
)
from processors.spans import SpanTree

_RESPONSE_ID = "gen_ai.response.id"
_LOOK_BACK = 64
"""Reports before one in time that are tried for it: keeps hostile traces linear."""
_SAME_TIME = 0.9
"""Share of the longer span that two reports of one thing overlap by."""
_HALF = 0.5
"""Share of the shorter span that two reports of one answer overlap by."""


def in_several_envelopes(positions: Sequence[int], trace: Trace) -> bool:
    """Whether the spans at `positions` came in several envelopes."""
    views = trace.tree.views
    envelope = views[positions[0]].envelope if positions else None
    for position in positions:  # noqa: SIM110  # for every trace: a generator costs twice as much
        if views[position].envelope is not envelope:
            return True
    return False


def merge_second_runs(trace: Trace, outline: Outline) -> None:
    """Count a second instrumentation's run as a report of the first one's, which gets what lies in it.

    Both are in one service and in the same run, have no different names, and come from different
    instrumentations. Of a workflow and an agent, which must be siblings, the agent stays.
    """
    if len(outline.runs) < 2 or not in_several_envelopes([run.carrier for run in outline.runs], trace):
        return
    tree = trace.tree
    siblings: dict[tuple[RunScope | None, str], list[_Reported]] = {}
    stays: dict[RunScope | None, RunScope] = {}

    def staying(run: RunScope | None) -> RunScope | None:
        while run in stays:
            run = stays[run]
        return run

    kinds = (CarrierKind.WORKFLOW, CarrierKind.AGENT)  # in this order parents come before what lies in them
    for run in [run for kind in kinds for run in outline.runs if run.kind is kind]:
        run.parent = staying(run.parent)
        envelope = tree.views[run.carrier].envelope
        reported = siblings.setdefault((run.parent, envelope.service_name), [])
        new = _Reported(run, names_of(run, trace), {envelope.scope_name})
        first = _same_run(new, reported[-_LOOK_BACK:], tree)
        if first is None:
            reported.append(new)
            continue
        one, other = first.run, run
        if one.kind is not CarrierKind.AGENT:
            one, other = other, one
        one.layers += other.layers
        one.tools += other.tools
        one.models += other.models
        one.steps = one.steps or other.steps
        one.requested_by = one.requested_by if one.requested_by >= 0 else other.requested_by
        one.has_lost_parents |= other.has_lost_parents
        stays[other] = one
        first.run, first.scopes, first.names = one, first.scopes | new.scopes, first.names | new.names
    for run in outline.runs:
        run.parent = staying(run.parent)
    outline.runs = [run for run in outline.runs if run not in stays]


@dataclass(slots=True, eq=False)
class _Reported:
    """A run with what its reports call it, and the instrumentations that they come from."""

    run: RunScope
    names: set[str]
    scopes: set[str]


def names_of(run: RunScope, trace: Trace) -> set[str]:
    """What the reports of a run call the agent."""
    agents = [reading.agent for reading in trace.readings_at(run.layers)]
    return {name for agent in agents for name in (agent.name, agent.inferred_name) if name}


def _same_run(new: _Reported, reported: Sequence[_Reported], tree: SpanTree) -> _Reported | None:
    """The run that another instrumentation reports; of several the one with most of the time in common."""
    result, most = None, -1
    carrier = new.run.carrier
    for other in reported:
        around = other.run.carrier
        are_agents = new.run.kind is other.run.kind is CarrierKind.AGENT
        is_beside = are_agents or tree.parents[carrier] == tree.parents[around] >= 0
        has_name = bool(new.names & other.names) or not (
            new.names if are_agents else new.names and other.names
        )
        if (
            is_beside
            and has_name
            and new.scopes.isdisjoint(other.scopes)
            and at_one_time(carrier, around, tree)
        ):
            shared = _shared_time(carrier, around, tree)
            if shared > most:
                result, most = other, shared
    return result


def give_calls_beside(trace: Trace, outline: Outline) -> None:
    """Give an agent with an empty span the calls and turns beside it that lie in its time.

    Where another instrumentation's spans are the current ones, those of calls and model turns may hang at the
    workflow. Agents that ran at one time get nothing of it: no one can know whose a call is.
    """
    tree = trace.tree
    agents = [run for run in outline.runs if run.kind is CarrierKind.AGENT]
    around = {run.carrier: run for run in outline.runs if run.kind is not CarrierKind.AGENT and run.layers}
    if not (agents and around):
        return
    with_children = set(tree.parents)
    empty: dict[int, list[tuple[int, RunScope]]] = {}
    for run in agents:
        for layer in run.layers:
            if layer not in with_children and tree.parents[layer] in around:
                empty.setdefault(tree.parents[layer], []).append((layer, run))
                break
    moved: dict[int, RunScope] = {}
    for carrier, beside in empty.items():
        beside.sort(key=lambda agent: agent[0])  # positions are in order of start
        if any(tree.starts[later] < tree.ends[earlier] for (earlier, _), (later, _) in pairwise(beside)):
            continue
        holder = around[carrier]
        starts = [tree.starts[layer] for layer, _ in beside]
        for position in (*holder.tools, *holder.models):
            place = bisect_right(starts, tree.starts[position]) - 1
            if place >= 0 and tree.ends[position] <= tree.ends[beside[place][0]]:
                moved[position] = beside[place][1]
    give_to_runs(moved, [around[carrier] for carrier in empty], outline)


def give_to_runs(moved: Mapping[int, RunScope], holders: Sequence[RunScope], outline: Outline) -> None:
    """Give calls and turns of `holders` to the runs in `moved`; but for agents, holders of neither go."""
    for holder in holders:
        for position in filter(moved.__contains__, holder.tools):
            moved[position].tools.append(position)
        for position in filter(moved.__contains__, holder.models):
            moved[position].models.append(position)
        holder.tools = [position for position in holder.tools if position not in moved]
        holder.models = [position for position in holder.models if position not in moved]
    left = {run for run in holders if not (run.kind is CarrierKind.AGENT or run.tools or run.models)}
    for run in outline.runs:
        caller = moved.get(run.requested_by)
        if caller is not None and caller is not run:
            run.parent = caller
        if run.parent in left:
            run.parent = None
    outline.runs = [run for run in outline.runs if run not in left]


def omit_second_turns(trace: Trace, outline: Outline) -> None:
    """Leave out a second report of a model turn of the same run.

    It is another instrumentation's, or names the same response.
    """
    has_several = in_several_envelopes(outline.turns, trace)
    for run in outline.runs:
        if len(run.models) > 1:
            positions = sorted(run.models)
            repeated = second_requests(positions, trace) if has_several else {}
            again = _of_one_response(positions, trace)
            if repeated or again:
                run.models = [turn for turn in run.models if turn not in repeated and turn not in again]


def _of_one_response(positions: Sequence[int], trace: Trace) -> Set[int]:
    """The model spans with the response of the span before them, in whose time they began."""
    tree = trace.tree
    again: set[int] = set()
    for before, position in pairwise(positions):
        if tree.starts[position] < tree.ends[before]:
            first, second = trace.readings[before], trace.readings[position]
            response = second and second.span.attributes.text(_RESPONSE_ID)
            if (
                response
                and first
                and first.span.attributes.text(_RESPONSE_ID) == response
                and agree(answer_of(first), answer_of(second)) is not False
            ):
                again.add(position)
    return again


def second_requests(positions: Sequence[int], trace: Trace) -> dict[int, int]:
    """The model spans that report a request of the same run once more, each with the one that stays.

    Of two reports the first stays, unless only the second has the answer. `positions` are in order
    of start.
    """
    tree = trace.tree
    collected: dict[int, int] = {}
    if len({tree.views[position].envelope.scope_name for position in positions}) < 2:
        return collected
    answers = {position: answer_of(trace.readings[position]) for position in positions}
    recent: list[list[int]] = []
    for position in positions:
        scope = tree.views[position].envelope.scope_name
        one: list[int] | None = None
        for reports in reversed(recent[-_LOOK_BACK:]):
            if scope in [tree.views[report].envelope.scope_name for report in reports]:
                continue
            is_one = _is_one_request(reports[0], position, answers, trace)
            if is_one or (is_one is None and one is None):
                one = reports
            if is_one:
                break
        if one is None:
            recent.append([position])
        elif answers[position].is_known and not answers[one[0]].is_known:
            collected[one[0]] = position
            one.insert(0, position)
        else:
            collected[position] = one[0]
            one.append(position)
    return {position: collected.get(first, first) for position, first in collected.items()}


def _is_one_request(first: int, second: int, answers: dict[int, "Answer"], trace: Trace) -> bool | None:
    """Whether two instrumentations' model spans are of one request; None where only the time shows it."""
    tree = trace.tree
    same = agree(answers[first], answers[second])
    if same is False or tree.ends[first] < tree.starts[second]:
        return False
    if same and answers[first].requested and answers[second].requested:
        return True
    if same:  # short requests: what each instrumentation does itself is a tenth of them and more
        shorter = min(tree.ends[first] - tree.starts[first], tree.ends[second] - tree.starts[second])
        return _shared_time(first, second, tree) >= _HALF * shorter
    if not at_one_time(first, second, tree):
        return False
    one, other = trace.readings[first], trace.readings[second]
    if one is None or other is None:
        return None
    if (
        one.model
        and other.model
        and not (one.model.startswith(other.model) or other.model.startswith(one.model))
    ):
        return False
    used, also = one.tokens, other.tokens
    return False if used and also and used.output_tokens != also.output_tokens else None


class Answer(NamedTuple):
    """What a model answered: the ids of the calls that it requested, and its text."""

    requested: Set[str]
    text: str

    @property
    def is_known(self) -> bool:
        """Whether there is any of it."""
        return bool(self.requested or self.text)


def answer_of(reading: SpanReading | None) -> Answer:
    """The answer in the span of a model call."""
    messages = [] if reading is None else after_results(reading.conversation.output)
    requested = {request.call_id for message in messages for request in message.requests if request.call_id}
    return Answer(requested, (last_text(messages, "assistant") or "").strip())


def agree(one: Answer, other: Answer) -> bool | None:
    """Whether both are the same answer of the model; None where not both are known."""
    if one.requested and other.requested:
        return not one.requested.isdisjoint(other.requested)
    if one.requested or other.requested or not one.text or not other.text:
        return None
    return one.text in other.text or other.text in one.text


def at_one_time(one: int, other: int, tree: SpanTree) -> bool:
    """Whether two spans overlap nearly wholly."""
    longer = max(tree.ends[one] - tree.starts[one], tree.ends[other] - tree.starts[other])
    return _shared_time(one, other, tree) >= _SAME_TIME * longer


def _shared_time(one: int, other: int, tree: SpanTree) -> int:
    return min(tree.ends[one], tree.ends[other]) - max(tree.starts[one], tree.starts[other])
