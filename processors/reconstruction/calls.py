"""The tool calls of one run, from its spans and, where those leave something out, its messages.

One call is one, however many spans report it: an agent framework, a protocol client and a server may each
make a span for one execution of a tool, and two instrumentations may watch one process. The outermost span
is the call; the others fill in what it leaves out, and an error that any of them reports is the call's.
"""

import re
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from msgspec.structs import replace

from processors.model import (
    ABSENT,
    CallCategory,
    Decision,
    DecodedValue,
    JsonValue,
    ToolCall,
    ToolError,
    ValueState,
    canonical_tool_name,
    decode_arguments,
    decode_result,
    late,
    parse_text,
)
from processors.reconstruction.call_order import NOT_REQUESTED, order_calls
from processors.reconstruction.requested_calls import (
    RequestedCall,
    RequestedCalls,
    leaves_calls_out,
    requests_of_run,
    shows_calls,
)
from processors.shapes import (
    FINAL_ANSWER_TOOL_NAMES,
    FINAL_ANSWER_TOOL_PREFIX,
    HANDOFF_TOOL_PREFIXES,
    INTERRUPTION_ERRORS,
    MCP_NAME_SEPARATORS,
    NOTHING_AWAITED,
    PROVIDER_CALL_MARKERS,
    AwaitedCall,
    CallDecision,
    CallRequest,
    CallResponse,
    Conversation,
    OpenedResult,
    RunScope,
    SpanRole,
    ToolReading,
    Trace,
    after_results,
    better,
    decision_at,
    decision_in_place_of_result,
    decoded,
    interruption_of,
    is_call_id,
    merged_error,
    merged_tool,
    open_result,
)
from processors.spans import KIND_CLIENT, KIND_SERVER, STATUS_ERROR, Span, SpanTree, contains_any

_TO_BE_LOOKED_UP = frozenset({ValueState.ABSENT, ValueState.REDACTED, ValueState.UNPARSED})
"""States of arguments for which the model's request is looked up."""
_UNSEEN = frozenset({ValueState.ABSENT, ValueState.REDACTED})
"""States of a result for which what the model received is looked up."""
_PRESENT, _FUNCTION = ValueState.PRESENT, CallCategory.FUNCTION
_ENDED_FOR_CALL = (b'"finish_reason":"tool_call', b'"finish_reason": "tool_call')
"""What in an answer names calls and is none."""
_REQUEST_WORDS = (b'call"', b'Call"', b"tool", b"function")
"""Words without which no answer requests a call, however it is written."""


_STATUS_OK = 1
_BEHIND_SEPARATOR = re.compile("|".join(f"(?<={re.escape(separator)})" for separator in MCP_NAME_SEPARATORS))
_MAX_SEPARATORS = 16
_SAME_TIME = 0.5
"""Share of the shorter span that two reports of one call overlap by."""
_LOOK_BACK = 64
"""Calls of one tool that are tried for another report of one of them: keeps hostile traces linear."""
_OPENLLMETRYS_SERVER = "mcp.server"
"""The span that OpenLLMetry makes of a request to a FastMCP server, of no kind of its own."""
_ANSWERED_ERROR = "tool_error"
"""The error type of a call over MCP whose answer was the error."""


@dataclass(eq=False)
class TraceRuns:
    """All runs of a trace, in order of start, and how they and their calls lie in each other."""

    trace: Trace
    runs: list[RunScope]
    call_above: Mapping[int, int]
    """For every call under another call of the same run: the nearest one."""
    agent_calls: Set[int]
    """The calls under which an agent ran."""
    nested: Mapping[RunScope, Sequence[RunScope]]
    """The runs that are part of a run and lie under no call of it."""

    def is_executed(self, requested: CallRequest, call_id: str) -> bool:
        """Whether some call has the id `call_id`, the tool and, as far as they are known, the arguments."""
        if not is_call_id(call_id):
            return False
        arguments = decode_arguments(requested.arguments) if requested.has_arguments else ABSENT
        for name in (requested.name, *names_behind_servers(requested.name)):
            call = self._calls_by_id.get((call_id, canonical_tool_name(name)))
            if call is not None and not _differ(call.comparable, _comparable(arguments)):
                return True
        return False

    @late
    def _calls_by_id(self) -> Mapping[tuple[str, str], "MergedCall"]:
        collected: dict[tuple[str, str], MergedCall] = {}
        for run in self.runs:
            for position in run.tools:
                call = report_at(position, self.trace)
                for name in (call.name, *names_behind_servers(call.name)):
                    collected.setdefault((call.reading.call_id, canonical_tool_name(name)), call)
        return collected


class RunCalls:
    """Builds the calls of one run. `from_messages` is true where no span reports any of them."""

    def __init__(self, run: RunScope, known: TraceRuns) -> None:
        self._run = run
        self._known = known
        self._trace = trace = known.trace
        self._offered: dict[int, RequestedCalls] = {}
        self.turns = _in_order_of_end(run.models, trace)
        """The run's own model spans in order of their end."""
        self._merged = _resumed(merge_calls(run.tools, known.call_above, trace)) if run.tools else []
        for call in self._merged if run.renamed else ():
            call.name = run.renamed.get(call.spans[0], call.name)
        self.from_messages = not self._merged

    def build(self) -> list[ToolCall]:
        """The calls in order of execution."""
        calls = self._in_order()
        for call in calls[:-1]:
            if call.error is not None:
                return mark_retries(calls)
        return calls

    def may_be_hidden(self, needs_turns: bool) -> bool:
        """Whether calls may have been made that nothing shows.

        Where no call has a span, every answer of a model has to show what it requested: itself, by the reason
        for which it ended, or in the next turn's history; the last one by the answer of the run. A run
        without any turn, which `needs_turns` then, has nothing else to show it by. A client's answer shows
        nothing of what an agent elsewhere did.
        """
        if self._merged:
            return False
        hidden = self._requests.hidden if self.turns else []
        if not (hidden if self.turns else needs_turns):
            return False
        layers = self._trace.readings_at(self._run.layers)
        is_answered = any(
            shows_calls(output := reading.conversation.output, None)
            and (
                any(message.requests for message in output)
                or (decoded(reading.agent.output) is not ABSENT and reading.span.kind != KIND_CLIENT)
            )
            for reading in layers
        )
        return not is_answered or hidden not in ([], self.turns[-1:])

    def all_arrived(self) -> bool:
        """Whether every turn has a readable answer, the last one requests nothing, and every request a span.

        Every call has to be requested, too: else the messages do not show what is to come. What the last
        turn's history requested counts as well, as the turn that did may not be here. A call at the model's
        provider has no span; its result has to be in the messages.
        """
        turns = self._trace.readings_at(self.turns)
        if not turns:
            return False
        last = turns[-1].conversation
        answer = after_results(last.output)
        if not any(message.text for message in answer) or any(
            message.requests or message.unreadable for message in answer
        ):
            return False
        if not any(message.role == "user" and not message.responses for message in last.input):
            return False  # not the whole history: the provider keeps it, and earlier turns may be missing
        before = requests_of_run(last.input)
        requesting = self._requesting_these_alone
        if requesting is not None:
            return all(request.call_id.encode() in requesting for request in before)
        if any(not turn.conversation.output or leaves_calls_out(turn.conversation.output) for turn in turns):
            return False
        requests = self._requests
        if requests.hidden:
            return False
        in_order = requests.in_order
        ids = {requested.request.call_id for requested in in_order}
        if len(before) > len(in_order) or any(request.call_id not in ids for request in before):
            return False
        names = [
            canonical_tool_name(requested.request.name)
            for requested in in_order
            if not requested.request.runs_at_provider or requests.answer(requested) is None
        ]
        executed = [canonical_tool_name(call.name) for call in self._merged]
        return sorted(names) == sorted(executed) and not self._never_executed()

    def requested_among(self, executed: Sequence[ToolCall]) -> list[tuple[int, ToolCall]]:
        """The calls that were never executed, each with how many of those that were stand before it."""
        if not self._merged or self._requesting_these_alone is not None:
            return []  # the calls are what models requested
        never_executed = self._never_executed()
        if not never_executed:
            return []
        requested = [
            replace(self._message_call(requested, None, requested.model in self.turns[-1:]), executed=False)
            for requested in never_executed
        ]

        def place(position: int) -> int | None:
            if position < len(executed):
                return self._place(executed[position])
            return never_executed[position - len(executed)].place

        order, groups = self._ordered([*executed, *requested], place)
        group_of = {groups[at]: call.parallel_group for at, call in enumerate(executed) if at in groups}
        collected: list[tuple[int, ToolCall]] = []
        before = 0
        for position in order:
            if position < len(executed):
                before += 1
                continue
            group = groups.get(position)
            number = None if group is None else group_of.get(group, len(executed) + group)
            collected.append((before, replace(requested[position - len(executed)], parallel_group=number)))
        return collected

    def _in_order(self) -> list[ToolCall]:
        merged = self._merged
        if not merged:
            return [*self._message_calls(self._requests.in_order), *self._awaited_calls()]
        calls = [self._span_call(call) for call in merged]
        if self.turns:
            calls.extend(self._calls_without_span())
        calls.extend(self._awaited_calls())
        if len(calls) == 1:
            return calls
        order, groups = self._ordered(calls, lambda position: self._place(calls[position]))
        if not self.turns:
            self._group_by_history(calls, groups)
        if not groups:
            return [calls[position] for position in order]
        return [
            replace(calls[position], parallel_group=groups[position])
            if position in groups
            else calls[position]
            for position in order
        ]

    def _ordered(
        self, calls: Sequence[ToolCall], place_of: Callable[[int], int | None]
    ) -> tuple[list[int], dict[int, int]]:
        """The order and the groups of calls, as `order_calls` gives them."""
        tree = self._trace.tree
        times = [
            (call.start_unix_nano, -call.end_unix_nano, call.span_id or (call.call_id or "").encode())
            for call in calls
        ]
        numbers = {position: number for number, position in enumerate(self.turns)}
        under_turn = {
            tree.span_ids[first]: numbers[parent]
            for merged in self._merged
            if (parent := tree.parents[first := merged.spans[0]]) in numbers
        }
        turns_around = {
            position: under_turn[call.span_id]
            for position, call in enumerate(calls if under_turn else ())
            if call.span_id in under_turn
        }
        turns = [(tree.starts[position], tree.ends[position]) for position in self.turns]
        return order_calls(times, turns, place_of, turns_around)

    @late
    def _nth(self) -> Mapping[bytes | None, int]:
        """For the id of each call's span: how many calls of its name there are before it."""
        counts: dict[str, int] = {}
        collected: dict[bytes | None, int] = {}
        for first, name in sorted([(call.spans[0], call.name) for call in self._merged]):
            count = counts.get(name, 0)
            collected[self._trace.tree.span_ids[first]] = count
            counts[name] = count + 1
        return collected

    def _group_by_history(self, calls: Sequence[ToolCall], groups: dict[int, int]) -> None:
        """Group what one message of the run's own history requested, where no model span shows the turns."""
        by_id = {call.call_id: position for position, call in enumerate(calls) if call.call_id}
        if len(by_id) < 2:
            return
        for _, reported in self._conversations(self._run.layers):
            for message in (*reported.input, *reported.output):
                members = {by_id[request.call_id] for request in message.requests if request.call_id in by_id}
                if len(members) > 1 and groups.keys().isdisjoint(members):
                    groups.update(dict.fromkeys(members, len(calls) + len(groups)))

    @late
    def _requests(self) -> RequestedCalls:
        conversations = self._conversations(self.turns)
        requests = RequestedCalls(conversations, self._requests_calls)
        if self._run.tools or requests.in_order or any(reported.output for _, reported in conversations):
            return requests
        # A run's own messages repeat what its turns report; they count only where no turn reports it.
        own = RequestedCalls(self._conversations(self._run.layers[:1]))
        own.hidden = [] if own.in_order else requests.hidden
        return own

    def _requests_calls(self, turn: int) -> bool | None:
        """Whether a model turn shows by its end that it requested calls."""
        reading = self._trace.readings[turn]
        if reading is None:
            return None
        views = self._trace.tree.views
        in_loop = views[self._run.carrier].envelope.scope_name == views[turn].envelope.scope_name
        return reading.requests_calls(in_loop=in_loop)

    def _conversations(self, positions: Iterable[int]) -> list[tuple[int, Conversation]]:
        readings = self._trace.readings
        return [
            (position, reading.conversation)
            for position in positions
            if (reading := readings[position]) is not None
        ]

    def _span_call(self, merged: "MergedCall") -> ToolCall:
        fields, error = merged.reading, merged.error
        first = merged.spans[0]
        lenient, call_id = fields.lenient_values, fields.call_id
        arguments, result = fields.arguments, fields.result
        if not lenient:
            if not is_call_id(call_id):
                call_id = ""
            if fields.arguments_are_doubtful or arguments.state in _TO_BE_LOOKED_UP:
                given, given_id = self._requested_arguments(merged, call_id)
                call_id = call_id or given_id
                if given.state is _PRESENT:
                    arguments = given
            if result.state in _UNSEEN and error is None and is_call_id(call_id):
                answered = _opened(self._requests.result(call_id))
                result, error = better(result, answered.result), answered.error
        category = fields.category
        agent_calls = self._known.agent_calls
        if category is _FUNCTION and agent_calls and not agent_calls.isdisjoint(merged.spans):
            category = CallCategory.AGENT
        tree = self._trace.tree
        arguments_value, arguments_text, arguments_state = arguments
        result_value, result_text, result_state = result
        interruption = merged.interruption
        if self._awaited and call_id in self._awaited:
            interruption = self._awaited[call_id].source
        shown = merged.decision
        if shown is None or shown.decision is Decision.APPROVED:
            shown = _decision(interruption, result, error) or shown
        call = ToolCall(  # by position, which costs half of what names cost here
            merged.name,
            call_id or None,
            tree.span_ids[first],
            category,
            arguments_value if lenient or arguments_state is _PRESENT else None,
            arguments_text,
            arguments_state,
            result_value if lenient or result_state is _PRESENT else None,
            result_text,
            result_state,
            error,
            lenient,
            None,  # its group is known when all calls are
            tree.starts[first],
            tree.ends[first],
        )
        return call if shown is None else _decided(call, shown)

    def _requested_arguments(self, merged: "MergedCall", call_id: str) -> tuple[DecodedValue, str]:
        """The arguments that the node above the call was given, else those a model requested; and the id."""
        parent = self._trace.tree.parents[merged.spans[0]]
        node = self._trace.readings[parent] if parent >= 0 else None
        nth = self._nth[self._trace.tree.span_ids[merged.spans[0]]]
        if node is not None and node.role is SpanRole.OTHER:
            if parent not in self._offered:
                self._offered[parent] = RequestedCalls([(parent, node.conversation)])
            offered = self._offered[parent]
            given = offered.find(call_id, merged.name, 0 if len(offered.in_order) == 1 else nth)
            if given is not None and given.request.has_arguments:
                return decode_arguments(given.request.arguments), given.request.call_id
        requested = self._requests.find(call_id, merged.name, nth)
        if requested is None or not requested.request.has_arguments:
            return ABSENT, ""
        return decode_arguments(requested.request.arguments), requested.request.call_id

    def _place(self, call: ToolCall) -> int | None:
        """The place of a call in its model's answer; None where the messages do not show it."""
        requests = self._requests
        if not requests.in_order:
            return None
        match = requests.find(call.call_id or "", call.name, self._nth.get(call.span_id, 0))
        return NOT_REQUESTED if match is None else match.place

    def turns_of(self, calls: Sequence[ToolCall]) -> Sequence[int | None]:
        """For each of `calls`, all of the run, the number of the turn that requested it; see `call_turns`.

        Where neither has an id, the calls of a tool are its requests if there are as many.
        """
        places = self._turns_by_bytes(calls)
        if places is not None:
            numbers_of = {place: number for number, place in enumerate(sorted(set(places)), 1)}
            return [numbers_of[place] for place in places]
        requests = self._requests
        turns: dict[tuple[int, int], int] = {}
        for requested in requests.in_order:
            turns.setdefault((requested.model, requested.after), len(turns) + 1)
        if not turns:
            return ()
        shows_all = not requests.hidden
        numbers = Counter(call.name for call in calls)
        of_name = Counter(requested.request.name for requested in requests.in_order)
        seen: Counter[str] = Counter()
        of_calls: list[int | None] = []
        for call in calls:
            nth = self._nth.get(call.span_id, seen[call.name])
            seen[call.name] += 1
            match = requests.find(call.call_id or "", call.name, nth)
            if match is not None and (
                requests.call_id(match) == call.call_id or numbers[call.name] == of_name[call.name]
            ):
                of_calls.append(turns[match.model, match.after])
            else:
                of_calls.append(0 if match is None and shows_all and call.name not in of_name else None)
        return of_calls if any(of_calls) else ()

    def _turns_by_bytes(self, calls: Sequence[ToolCall]) -> list[int] | None:
        """For each of `calls` the place of the turn in whose answer its id stands; None: not all ids do."""
        reported = self._requesting_these_alone if self._merged else None
        if reported is None:
            return None
        answers = [reading.answer() or b"" for reading in self._trace.readings_at(self.turns)]
        ends = [*accumulate(len(answer) + 1 for answer in answers)]
        places = [reported.find(f'"{call.call_id}"'.encode(errors="replace")) for call in calls]
        return None if -1 in places else [bisect_right(ends, at) for at in places]

    def _calls_without_span(self) -> list[ToolCall]:
        """Calls that models requested and that were executed, though no span reports them.

        They ran at the model's provider, or are answered in its own output; or the last turn passed the
        conversation on, where the framework does that without a call; or only the span of the agent that
        was requested by its name reports them.
        """
        nested, alone = self._nested_agents(), self._requesting_these_alone
        if not nested and alone is not None and not contains_any(alone, *PROVIDER_CALL_MARKERS):
            return []
        ids = {call.reading.call_id for call in self._merged}
        reported = Counter(call.name for call in self._merged)
        others = reported.copy()
        hands_over = not any(call.reading.category is CallCategory.HANDOFF for call in self._merged)
        answered = {id(requested) for requested in self._without_call if requested.is_answered}
        at_provider: list[RequestedCall] = []
        handoffs: list[ToolCall] = []
        of_agents: dict[str, deque[RequestedCall]] = {}
        for requested in self._requests.in_order:
            request = requested.request
            name, call_id = request.name, request.call_id
            if others[name]:
                others[name] -= 1
            else:
                of_agents.setdefault(name, deque()).append(requested)
            if id(requested) in answered or (
                request.runs_at_provider
                and (call_id not in ids if is_call_id(call_id) else name not in reported)
            ):
                at_provider.append(requested)
            elif (
                hands_over
                and requested.model == self.turns[-1]
                and name.startswith(HANDOFF_TOOL_PREFIXES)
                and not (call_id in ids or name in reported)
            ):
                handoffs.append(self._message_call(requested, None, is_last_turn=False))
        agents = [
            self._call_of_agent(of_agents[name].popleft(), carrier)
            for name, carrier in nested
            if of_agents.get(name)
        ]
        return [*self._message_calls(at_provider), *handoffs, *agents]

    def _never_executed(self) -> list[RequestedCall]:
        """The requests that models waited for and no call of the run answers."""
        return [requested for requested in self._without_call if not requested.is_answered]

    @late
    def _without_call(self) -> Sequence[RequestedCall]:
        """The requests that no call answers.

        Those for tools that were not called at all, and, where all calls of a tool carry ids of requests,
        those for it whose id none of them has. Calls at the provider, handoffs and final answers do not
        count, as mostly no span reports them; nor does a request whose id a call of another run has, because
        turns may hang at another run than their calls do.
        """
        requests = self._requests
        known = {(call.reading.call_id, call.name) for call in self._merged}
        others = [
            requested
            for requested in requests.in_order
            if (requested.request.call_id, requested.request.name) not in known
        ]
        if not others:
            return ()
        ids_of: dict[str, set[str]] = {}
        behind_servers: dict[str, set[str]] = {}
        for call in self._merged:
            ids_of.setdefault(canonical_tool_name(call.name), set()).add(call.reading.call_id)
            for name in names_behind_servers(call.name):
                behind_servers.setdefault(name, set()).add(call.reading.call_id)
        for name, _ in self._nested_agents():
            ids_of.setdefault(canonical_tool_name(name), set()).add("")
        request_ids = {requests.call_id(requested) for requested in requests.in_order}
        called: dict[str, tuple[set[str], bool]] = {}
        """For each name the ids of its calls, and whether all of them are ids of requests."""
        collected: list[RequestedCall] = []
        for requested in others:
            name = requested.request.name
            if not name or category_of(requested.request) is not CallCategory.FUNCTION:
                continue
            if name not in called:
                ids = set(ids_of.get(canonical_tool_name(name), ())) | behind_servers.get(name, set())
                for shorter in names_behind_servers(name):
                    ids |= ids_of.get(canonical_tool_name(shorter), set())
                called[name] = ids, "" not in ids and ids <= request_ids
            ids, are_requested = called[name]
            call_id = requests.call_id(requested)
            if (
                not ids or (is_call_id(call_id) and call_id not in ids and are_requested)
            ) and not self._known.is_executed(requested.request, call_id):
                collected.append(requested)
        return collected

    @late
    def _requesting_these_alone(self) -> bytes | None:
        """All answers in one, where their bytes show that they request the calls that ran, each once."""
        answers: list[bytes] = []
        request_count = 0
        for turn, reading in enumerate(self._trace.readings_at(self.turns), 1):
            held = reading.answer()
            if held is None:
                return None
            count = held.count(b"tool_call") - sum(map(held.count, _ENDED_FOR_CALL))
            # An answer without a call may leave it to the next turn's history.
            if not count and (turn < len(self.turns) or contains_any(held, *_REQUEST_WORDS)):
                return None
            request_count += count
            answers.append(held)
        ids = {call.reading.call_id for call in self._merged}
        if "" in ids or not request_count == len(ids) == len(self._merged):
            return None
        reported = b"\n".join(answers)
        for call_id in ids:
            if reported.find(call_id.encode()) < 0:
                return None
        return reported

    def _nested_agents(self) -> list[tuple[str, int]]:
        """The names and spans of the agents that ran within this run and under no call, in order of start."""
        return [
            (name, run.carrier)
            for run in self._known.nested.get(self._run, ())
            if (name := self._trace.agent_name(run.carrier))
        ]

    def _call_of_agent(self, requested: RequestedCall, carrier: int) -> ToolCall:
        """The call that started the agent whose span is at `carrier`: what it answered is the result."""
        call = self._message_call(requested, None, is_last_turn=False)
        if call.result_state is ValueState.ABSENT:
            answer = decoded(self._trace.agent(carrier).output)
            result = answer.value if answer.state is _PRESENT else None
            call = replace(call, result=result, result_text=answer.text, result_state=answer.state)
        return replace(
            call,
            category=CallCategory.AGENT,
            span_id=self._trace.tree.span_ids[carrier],
            start_unix_nano=self._trace.tree.starts[carrier],
            end_unix_nano=self._trace.tree.ends[carrier],
        )

    def _message_calls(self, requested: Sequence[RequestedCall]) -> list[ToolCall]:
        per_turn = Counter((call.model, call.after) for call in requested)
        groups = {turn: number for number, turn in enumerate(per_turn) if per_turn[turn] > 1}
        last = self.turns[-1] if self.turns else -1
        return [
            self._message_call(call, groups.get((call.model, call.after)), call.model == last)
            for call in requested
        ]

    def _message_call(self, requested: RequestedCall, group: int | None, is_last_turn: bool) -> ToolCall:
        request = requested.request
        arguments = decode_arguments(request.arguments) if request.has_arguments else ABSENT
        response = self._requests.answer(requested)
        result, _, error = _opened(response)
        executed = response is not None or requested.is_answered or not is_last_turn
        shown = _decision("" if executed else self._interruption(request.call_id), result, error)
        call = ToolCall(
            name=request.name,
            call_id=self._requests.call_id(requested) or None,
            category=category_of(request),
            arguments=arguments.value if arguments.state is ValueState.PRESENT else None,
            arguments_text=arguments.text,
            arguments_state=arguments.state,
            result=result.value if result.state is ValueState.PRESENT else None,
            result_text=result.text,
            result_state=result.state,
            error=error,
            parallel_group=group,
            start_unix_nano=self._trace.tree.ends[requested.model],
            executed=executed,
        )
        return call if shown is None else _decided(call, shown)

    @late
    def _awaited(self) -> Mapping[str, AwaitedCall]:
        """The calls that the run waits for by its own spans, by id."""
        reported = self._trace.readings_at(self._run.layers)
        return next((reading.agent.awaited for reading in reported if reading.agent.awaited), NOTHING_AWAITED)

    def _awaited_calls(self) -> list[ToolCall]:
        """Calls that the run waits for, and that neither a span nor a model's answer shows."""
        if not self._awaited:
            return []
        known = {call.reading.call_id for call in self._merged}
        known |= {requested.request.call_id for requested in self._requests.in_order}
        last = self.turns[-1] if self.turns else self._run.carrier
        return [
            self._message_call(RequestedCall(awaited.request, last, -1), None, is_last_turn=True)
            for call_id, awaited in self._awaited.items()
            if call_id not in known and awaited.request.name
        ]

    def _interruption(self, call_id: str) -> str:
        """The word for why a call of the last turn waits: the run, or a node of it, stopped for a decision.

        Only steps right below the run are looked at: that is where a framework lets people approve.
        """
        if self._awaited:
            return self._awaited[call_id].source if call_id in self._awaited else ""
        interruptions = self._trace.interruptions
        return next((interruptions[layer] for layer in self._run.layers if layer in interruptions), "")


def _decision(interruption: str, result: DecodedValue, error: ToolError | None) -> CallDecision | None:
    """What was decided about a call: it stopped to wait, or the model was given word of the decision."""
    if interruption and result.state is ValueState.ABSENT:
        return CallDecision(Decision.PENDING, interruption)
    return decision_in_place_of_result(result.text if error is None else error.message or result.text)


def _decided(call: ToolCall, shown: CallDecision) -> ToolCall:
    """`call` with its decision: where it waits, or was refused, nothing was executed, and nothing failed."""
    decided = replace(call, decision=shown.decision, decision_source=shown.source)
    return replace(decided, executed=False, error=None) if decided.is_held_back else decided


def _opened(response: CallResponse | None) -> OpenedResult:
    """The result in a message out of its envelopes, and the failure that they or the message show."""
    opened = OpenedResult(ABSENT)
    if response is not None and response.has_content:
        opened = open_result(decode_result(response.content))
    if response is not None and response.failed and opened.error is None:
        return opened._replace(error=ToolError(type="", message=opened.result.text or ""))
    return opened


def _in_order_of_end(models: Sequence[int], trace: Trace) -> list[int]:
    """Model spans in order of their end; of two at one time the one with the longer history is the later."""
    tree, readings = trace.tree, trace.readings
    turns = sorted(sorted(models), key=tree.ends.__getitem__)
    if len({*map(tree.ends.__getitem__, turns)}) == len(turns):
        return turns

    def after(turn: int) -> tuple[int, int, int]:
        reading = readings[turn]
        return tree.ends[turn], tree.starts[turn], 0 if reading is None else len(reading.conversation.input)

    return sorted(turns, key=after)


def category_of(request: CallRequest) -> CallCategory:
    """What kind of call a model requested, by its name and by what the span says of it."""
    name = request.name
    if request.runs_at_provider:
        return CallCategory.SERVER
    if name.startswith(HANDOFF_TOOL_PREFIXES):
        return CallCategory.HANDOFF
    is_answer = name in FINAL_ANSWER_TOOL_NAMES or name.startswith(FINAL_ANSWER_TOOL_PREFIX)
    return CallCategory.FINAL_ANSWER if is_answer or request.gives_answer else CallCategory.FUNCTION


@dataclass(slots=True, eq=False)
class MergedCall:
    """One execution of a tool."""

    spans: list[int]
    """The spans that report it, outermost first."""
    name: str
    reading: ToolReading
    error: ToolError | None
    interruption: str
    """The exception by which it stopped to wait for a person or a process; empty: it did not."""
    decision: CallDecision | None
    """What its spans report to have been decided about it."""
    _compared: tuple[DecodedValue, JsonValue] | None = None

    @property
    def comparable(self) -> JsonValue:
        """The arguments however they are written, None where they are not known; read once."""
        arguments = self.reading.arguments
        if self._compared is None or self._compared[0] is not arguments:
            self._compared = arguments, _comparable(arguments)
        return self._compared[1]

    def absorb(self, other: "MergedCall") -> None:
        """Take in another report of the same call."""
        self.spans.extend(other.spans)
        self.reading = merged_tool(self.reading, other.reading)
        self.error = merged_error(self.error, other.error)
        self.interruption = self.interruption or other.interruption
        self.decision = self.decision or other.decision


def report_at(position: int, trace: Trace) -> MergedCall:
    """The call that the span at `position` reports by itself."""
    fields, span = trace.tool(position), trace.tree.views[position]
    name = fields.name or fields.inferred_name
    decision = fields.decision or decision_at(span)
    return MergedCall([position], name, fields, error_of(span, fields), interruption_of(span), decision)


def merge_calls(tools: Sequence[int], call_above: Mapping[int, int], trace: Trace) -> list[MergedCall]:
    """The calls of one run out of its tool spans, parents before children in `tools`."""
    calls: list[MergedCall] = []
    call_of: dict[int, MergedCall] = {}
    attempts: dict[int, list[int]] = {}
    for position in tools:
        call = report_at(position, trace)
        is_part = call.reading.is_part
        above = call_above.get(position, -1)
        outer = call_of.get(above)
        if outer is not None and (is_part or _is_one_call(outer, call, trace)):
            outer.absorb(call)
            call_of[position] = outer
            attempts.setdefault(above, []).append(position)
        elif not is_part:
            call_of[position] = call
            calls.append(call)
    if attempts:
        for call in calls:
            if call.error is not None and len(call.spans) > 1:
                _let_last_attempt_decide(call, attempts, trace)
    return _merge_instrumentations(calls, trace) if len(calls) > 1 else calls


def _resumed(calls: list[MergedCall]) -> list[MergedCall]:
    """The calls without those that stopped to wait and went on in a later span of their id."""
    waiting: dict[tuple[str, str], MergedCall] = {}
    removed: set[int] = set()
    for call in calls:
        key = call.name, call.reading.call_id
        before = waiting.pop(key, None) if waiting else None
        if before is not None:
            removed.add(before.spans[0])
            call.spans.extend(before.spans)
        if call.interruption and is_call_id(call.reading.call_id):
            waiting[key] = call
    return [call for call in calls if call.spans[0] not in removed] if removed else calls


def _is_one_call(outer: MergedCall, inner: MergedCall, trace: Trace) -> bool:
    """Whether a span within a call reports that same call.

    Other arguments make it another call of the tool, such as one that the tool makes of itself, unless its
    result is the same, or it is another instrumentation that reports no result: that may show what became of
    the arguments on their way.
    """
    first, second = outer.reading, inner.reading
    if first.call_id != second.call_id and is_call_id(first.call_id) and is_call_id(second.call_id):
        return False
    if not name_one_tool(outer.name, inner.name):
        return False
    if (first.call_id == second.call_id and is_call_id(first.call_id)) or not _differ(
        outer.comparable, inner.comparable
    ):
        return True
    if first.result.state is second.result.state is _PRESENT:
        return first.result.value == second.result.value
    return _scope_of(outer, trace) != _scope_of(inner, trace)


class _Outcome(NamedTuple):
    """How a call went by one of its spans and those below it."""

    error: ToolError | None
    result: DecodedValue


def _let_last_attempt_decide(call: MergedCall, attempts: Mapping[int, list[int]], trace: Trace) -> None:
    """Give `call` the error and the result that its spans report, the last of several attempts first.

    `attempts` are, for a span, the reports of the call right below it.
    """
    outcomes: dict[int, _Outcome] = {}
    for position in reversed(call.spans):  # what lies below a span comes after it
        outcomes[position] = _outcome(position, sorted(attempts.get(position, ())), outcomes, trace)
    call.error, result = outcomes[call.spans[0]]
    call.reading = replace(call.reading, result=result)


def _outcome(
    position: int, attempts: Sequence[int], outcomes: Mapping[int, _Outcome], trace: Trace
) -> _Outcome:
    """How the call went by the span at `position`, with `attempts` below it in order of start.

    The error of the last attempt counts unless the span itself is OK and bears another result: a tool may
    do without what it could not reach.
    """
    span, own = trace.tree.views[position], trace.tool(position)
    error, result = error_of(span, own), own.result
    starts, ends = trace.tree.starts, trace.tree.ends
    below: ToolError | None = None
    begin = starts[attempts[-1]] if attempts else 0
    for attempt in reversed(attempts):
        result = better(result, outcomes[attempt].result)
        if starts[attempt] < begin and ends[attempt] <= begin:
            continue  # another one followed it
        begin = min(begin, starts[attempt])
        below = merged_error(outcomes[attempt].error, below)
    if error is not None or below is None:
        return _Outcome(merged_error(error, below), result)
    is_overcome = (
        span.status_code == _STATUS_OK
        and own.result.state is _PRESENT
        and below.type != _ANSWERED_ERROR
        and not (below.message and below.message in (own.result.text or ""))
    )
    return _Outcome(None if is_overcome else below, result)


def is_prefixed(longer: str, shorter: str) -> bool:
    """Whether `longer` is `shorter` behind the name of a tool server."""
    return bool(shorter) and any(longer.endswith(separator + shorter) for separator in MCP_NAME_SEPARATORS)


def name_one_tool(first: str, second: str) -> bool:
    """Whether two reports name the same tool, one of them perhaps with its server."""
    return first == second or is_prefixed(first, second) or is_prefixed(second, first)


def names_behind_servers(name: str) -> list[str]:
    """What `name` is where its beginning is the name of a tool server: all that it `is_prefixed` of.

    Where many separators stand in it, the last ones count.
    """
    ends = [match.end() for match in _BEHIND_SEPARATOR.finditer(name)]
    return [name[end:] for end in ends[-_MAX_SEPARATORS:] if end < len(name)]


def is_servers_view(position: int, tree: SpanTree) -> bool:
    """Whether the span of a call is as a tool server saw the call."""
    parent = tree.parents[position]
    return tree.views[position].kind == KIND_SERVER or (
        parent >= 0 and tree.views[parent].name == _OPENLLMETRYS_SERVER
    )


def service_of_caller(position: int, call_above: Mapping[int, int], tree: SpanTree) -> str:
    """The service that made the call at `position`, not the tool server whose view of a call that is."""
    views = tree.views
    above = call_above.get(position, -1)
    while above >= 0 and KIND_SERVER in (views[position].kind, views[above].kind):
        position, above = above, call_above.get(above, -1)
    return views[position].envelope.service_name


def _merge_instrumentations(calls: list[MergedCall], trace: Trace) -> list[MergedCall]:
    """Unite what two instrumentations of one process report side by side.

    Two scopes report one call where they give the same id, or, in order of start, arguments that do not
    differ at the same time. Spans of one scope do where they do both, in different conventions.
    """
    if len({call.name for call in calls}) == len(calls):
        return calls
    by_name: dict[str, list[MergedCall]] = {}
    for call in calls:
        by_name.setdefault(call.name, []).append(call)
    removed: set[int] = set()
    for same_name in by_name.values():
        if len(same_name) < 2:
            continue
        scopes = {_scope_of(call, trace) for call in same_name}
        if len(scopes) < 2 and len({call.reading.call_id for call in same_name}) == len(same_name):
            continue
        same_name.sort(key=lambda call: call.spans[0])
        known: list[tuple[MergedCall, set[str]]] = []
        by_id: dict[str, tuple[MergedCall, set[str]]] = {}
        for call in same_name:
            scope, call_id = _scope_of(call, trace), call.reading.call_id
            reported = by_id.get(call_id) if is_call_id(call_id) else None
            for other in () if reported else known[-_LOOK_BACK:]:
                if scope not in other[1] and _is_side_by_side(other[0], call, trace.tree):
                    reported = other
                    break
            if reported is not None and (
                scope not in reported[1] or _is_in_other_form(reported[0], call, trace)
            ):
                reported[0].absorb(call)
                reported[1].add(scope)
                removed.add(call.spans[0])
            else:
                reported = call, {scope}
                known.append(reported)
            if is_call_id(call_id):
                by_id[call_id] = reported
    return [call for call in calls if call.spans[0] not in removed] if removed else calls


def _scope_of(call: MergedCall, trace: Trace) -> str:
    return trace.tree.views[call.spans[0]].envelope.scope_name


def _is_in_other_form(first: MergedCall, second: MergedCall, trace: Trace) -> bool:
    """Whether two spans side by side report a call in conventions of which none is of both."""
    one, other = (reading.shape.dialects for reading in trace.readings_at((first.spans[0], second.spans[0])))
    return not any(dialect in other for dialect in one) and _is_side_by_side(first, second, trace.tree)


def _is_side_by_side(first: MergedCall, second: MergedCall, tree: SpanTree) -> bool:
    one, other = first.spans[0], second.spans[0]
    start, end = max(tree.starts[one], tree.starts[other]), min(tree.ends[one], tree.ends[other])
    shorter = min(tree.ends[one] - tree.starts[one], tree.ends[other] - tree.starts[other])
    return end >= start and end - start >= _SAME_TIME * shorter and may_be_one_call(first, second)


def may_be_one_call(first: MergedCall, second: MergedCall) -> bool:
    """Whether two reports of calls of one tool have neither other ids nor other arguments."""
    ids = first.reading.call_id, second.reading.call_id
    if ids[0] != ids[1] and all(map(is_call_id, ids)):
        return False
    return not _differ(first.comparable, second.comparable)


def _differ(first: JsonValue, second: JsonValue) -> bool:
    """Whether two reports give other values for one argument; one may give fewer arguments, or none."""
    if isinstance(first, dict) and isinstance(second, dict):
        return any(first[name] != second[name] for name in first.keys() & second.keys())
    return type(first) is type(second) and first != second


def _comparable(arguments: DecodedValue) -> JsonValue:
    """Arguments however they are written: an object, or a list or text that is none; None if not known."""
    if arguments.state is _PRESENT:
        return _read_alike(arguments.value)
    return _read_alike(arguments.text) if arguments.state is ValueState.UNPARSED else None


def _read_alike(value: JsonValue) -> JsonValue:
    """`value` with the texts in it that are written values read as those: however they are spaced."""
    if isinstance(value, dict):
        return {name: _read_alike(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_read_alike(member) for member in value]
    if not isinstance(value, str):
        return value
    try:
        read = parse_text(value)
    except ValueError:
        return value
    return read if isinstance(read, str) else _read_alike(read)


def error_of(span: Span, fields: ToolReading) -> ToolError | None:
    """Why the call or the run failed by this span.

    An error type, the status, what the dialect read, or an exception event beside a status that is not OK
    make an error; the texts come from wherever there are any. What stops to wait for an answer has not
    failed.
    """
    status, has_type = span.status_code, "error.type" in span.by_key
    if not (has_type or fields.error is not None or status == STATUS_ERROR or span.has_events):
        return None
    error_type = (span.attributes.text("error.type") or "") if has_type else ""
    has_exception = False
    exception_type = exception_message = ""
    if status != _STATUS_OK and span.has_events:
        for event in span.events:
            if event.name == "exception":
                has_exception = True
                exception_type = event.attributes.text("exception.type") or ""
                exception_message = event.attributes.text("exception.message") or ""
                break
    reported = fields.error
    if not (error_type or status == STATUS_ERROR or reported is not None or has_exception):
        return None
    message = exception_message or (reported.message if reported is not None else "") or span.status_message
    kind = error_type or exception_type or (reported.type if reported is not None else "")
    if kind.endswith(INTERRUPTION_ERRORS) or message.startswith(INTERRUPTION_ERRORS):
        return None
    return ToolError(type=kind, message=message)


def mark_retries(calls: Sequence[ToolCall]) -> list[ToolCall]:
    """The calls, in order of execution, with `attempt` and `retry_of` set.

    A chain of attempts ends with the first that does not fail.
    """
    marked: list[ToolCall] = []
    last_of: dict[str, int] = {}
    for position, call in enumerate(calls):
        before = last_of.get(call.name)
        if before is not None:
            failed = marked[before]
            is_beside = call.parallel_group is not None and call.parallel_group == failed.parallel_group
            if failed.error is not None and not is_beside:
                call = replace(call, attempt=failed.attempt + 1, retry_of=before)
        last_of[call.name] = position
        marked.append(call)
    return marked
