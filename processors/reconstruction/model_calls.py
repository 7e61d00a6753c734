"""The requests to models of each run of a trace, each once, however many spans report it.

A request is a model turn of the run, or came from one of the run's tools or judges. Other model spans report
the same requests again: those below a turn, and those that a rule left out as repeated. They fill in what the
turn's own span leaves out, and nothing is added up twice.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from processors.model import ModelCall, TokenUsage, late, seconds_between, sum_of_usage
from processors.reconstruction.second_reports import at_one_time, second_requests
from processors.shapes import RunScope, SpanRole, Trace, UsageReading, merged_usage
from processors.spans import STATUS_ERROR, SpanTree

_LOOK_BACK = 64
"""Turns around a span in time that are tried for it: keeps hostile traces linear."""
_MODEL = SpanRole.MODEL
_CALLERS = frozenset({SpanRole.TOOL, SpanRole.JUDGE})
"""What may itself call a model, on behalf of the run."""


class _Home(NamedTuple):
    """What a span lies in: its run, and the innermost call or judge, or request there, by position."""

    run: RunScope
    request: int = -1
    call: int = -1


class _Reports(NamedTuple):
    """What model spans report that are no turns themselves."""

    requests_of_tools: dict[RunScope, list[int]]
    """For a run: the model spans that are requests of its tools and judges."""
    repeated: dict[int, list[int]]
    """For a request: the model spans that report it again, in order of start."""


class TraceModels:
    """The requests of all runs of one trace, looked for when those of one run are needed."""

    def __init__(self, trace: Trace, runs: Sequence[RunScope]) -> None:
        self._trace = trace
        self._runs = runs

    def usage(self, run: RunScope) -> TokenUsage | None:
        """The tokens of all requests of `run`; else the total in its own spans; else None.

        A request that failed and reports no tokens used none. A turn's span around several requests may
        report the last one's alone: then a larger total precedes it.
        """
        readings, repeated = self._trace.readings, self._reports.repeated
        reported: list[TokenUsage] = []
        is_whole = True
        for position in self._requests(run):
            reading = readings[position]
            tokens = None if reading is None else reading.tokens
            if tokens is None and position in repeated:
                tokens = self._repeated_tokens(position)
            if tokens is not None:
                reported.append(tokens)
            elif reading is None or (reading.span.status_code != STATUS_ERROR and reading.is_request):
                is_whole = False
        parts = reported[0] if len(reported) == 1 else sum_of_usage(reported) if reported else None
        total: TokenUsage | None = None
        if not (parts and is_whole) or self._loop(run) >= 0:
            totals = [reading.tokens for reading in self._trace.readings_at(run.layers)]
            total = next((tokens for tokens in totals if tokens is not None), None)
        if total is not None and (parts is None or total.total_tokens >= parts.total_tokens):
            return total
        return parts if is_whole else None

    def _loop(self, run: RunScope) -> int:
        """The last turn, if its span is around the requests before and after a call; else -1."""
        if not run.tools or not run.models:
            return -1
        ends = self._trace.tree.ends
        turn, call = max(run.models), max(run.tools)  # positions are in order of start
        return turn if turn < call and ends[call] <= ends[turn] else -1

    def calls(self, run: RunScope) -> Sequence[ModelCall]:
        """The requests of `run`, in order of start."""
        tree = self._trace.tree
        loop = self._loop(run)
        requests: list[ModelCall] = []
        for position in sorted(self._requests(run)):
            reading = self._trace.readings[position]
            if reading is None:
                continue
            reported = reading.usage
            if not reported.is_request:
                continue
            for again in self._trace.readings_at(self._reports.repeated.get(position, ())):
                reported = merged_usage(reported, again.usage._replace(usage=None))
            usage = reported.usage or self._repeated_tokens(position)
            is_part = position == loop and self.usage(run) != usage
            call = ModelCall(
                model=reported.model or None,
                usage=None if is_part else usage,
                time_to_first_output_seconds=reported.time_to_first_output_seconds,
                start_unix_nano=tree.starts[position],
                duration_seconds=seconds_between(tree.starts[position], tree.ends[position]),
                failed=reading.span.status_code == STATUS_ERROR,
            )
            requests.append(call)
        return tuple(requests)

    def time_to_first_output(self, run: RunScope, calls: Sequence[ModelCall]) -> float | None:
        """The seconds from the start of `run` to the first output of its `calls`, else by its spans."""
        start = self._trace.tree.starts[run.carrier]
        reported = [
            call.start_unix_nano - start + call.time_to_first_output_seconds * 1e9
            for call in calls
            if call.time_to_first_output_seconds is not None and call.start_unix_nano >= start
        ]
        if reported:
            return min(reported) / 1e9
        by_layers = [reading.time_to_first_output_seconds for reading in self.reported_by_layers(run)]
        return next((seconds for seconds in by_layers if seconds is not None), None)

    def reported_by_layers(self, run: RunScope) -> list[UsageReading]:
        """What the spans of the invocation itself report."""
        return [reading.usage for reading in self._trace.readings_at(run.layers)]

    def _requests(self, run: RunScope) -> Sequence[int]:
        of_tools = self._reports.requests_of_tools.get(run)
        return run.models if of_tools is None else (*run.models, *of_tools)

    def _repeated_tokens(self, request: int) -> TokenUsage | None:
        """The tokens in the repeated reports of a request, outermost ones only."""
        tree, readings = self._trace.tree, self._trace.readings
        reported: list[TokenUsage] = []
        end = 0
        for position in self._reports.repeated.get(request, ()):
            reading = readings[position]
            if reading is None or (reported and tree.starts[position] < end):
                continue
            tokens = reading.tokens
            if tokens is not None:
                reported.append(tokens)
                end = tree.ends[position]
        return sum_of_usage(reported) if reported else None

    @late
    def _reports(self) -> _Reports:
        """What every model span that is no turn reports."""
        trace, tree, readings = self._trace, self._trace.tree, self._trace.readings
        of_tools: dict[RunScope, list[int]] = {}
        repeated: dict[int, list[int]] = {}
        all_turns = sorted([turn for run in self._runs for turn in run.models])  # in order of start
        models = [reading for reading in readings if reading is not None and reading.role is _MODEL]
        if len(models) <= len(all_turns):
            return _Reports(of_tools, repeated)
        own: dict[int, _Home] = {}
        for run in self._runs:
            own.update((call, _Home(run, call=call)) for call in run.tools)
        for run in self._runs:  # a call may stand for the agent that it ran
            own.update(dict.fromkeys(run.layers, _Home(run)))
            own.update((turn, _Home(run, request=turn)) for turn in run.models)
        starts = [tree.starts[turn] for turn in all_turns]
        homes: list[_Home | None] = [None] * len(readings)
        last_of_call: dict[int, int] = {}
        for position in tree.top_down:
            parent = tree.parents[position]
            home = own.get(position) or (homes[parent] if parent >= 0 else None)
            homes[position] = home
            reading = readings[position]
            if reading is None or position in own:
                continue
            if reading.role in _CALLERS and home is not None:
                homes[position] = _Home(home.run, call=position)
            elif reading.role is _MODEL:
                request = -1 if home is None else home.request
                if request < 0 and home is not None and home.call >= 0:
                    last = last_of_call.get(home.call, -1)
                    if _report_one_request(last, position, tree):
                        request = last
                    else:
                        last_of_call[home.call] = position
                        of_tools.setdefault(home.run, []).append(position)
                        homes[position] = _Home(home.run, position, home.call)
                        continue
                if request < 0:
                    request = _turn_beside(position, all_turns, starts, tree)
                if request >= 0:
                    repeated.setdefault(request, []).append(position)
        for run, requests in of_tools.items():
            again = second_requests(sorted(requests), trace)
            for position, request in again.items():
                repeated.setdefault(request, []).append(position)
            of_tools[run] = [request for request in requests if request not in again]
        for reports in repeated.values():
            reports.sort()
        return _Reports(of_tools, repeated)


def _turn_beside(position: int, turns: Sequence[int], starts: Sequence[int], tree: SpanTree) -> int:
    """The turn within whose time a span lies, else the first within the span's or almost in it, or -1."""
    start, end = tree.starts[position], tree.ends[position]
    place = bisect_right(starts, start)
    for turn in reversed(turns[max(place - _LOOK_BACK, 0) : place]):
        if tree.ends[turn] >= end:
            return turn
    place = bisect_left(starts, start)
    after = turns[place : place + 1]
    if after and tree.ends[after[0]] <= end:
        return after[0]
    near = (*reversed(turns[max(place - _LOOK_BACK, 0) : place]), *after)
    return next((turn for turn in near if at_one_time(turn, position, tree)), -1)


def _report_one_request(around: int, position: int, tree: SpanTree) -> bool:
    """Whether a span lies within the time of one before it of another instrumentation."""
    if around < 0 or tree.ends[around] < tree.ends[position]:
        return False
    return tree.views[around].envelope.scope_name != tree.views[position].envelope.scope_name
