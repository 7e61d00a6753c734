"""One call, however many spans report it.

An agent framework, a protocol client and a server may each make a span for one execution of a tool, and
two instrumentations may watch one process. The outermost span is the call; the others fill in what it
leaves out, and an error that any of them tells is the call's.
"""

import re
from collections.abc import Sequence

from processors.frameworks.dialect import ToolReading
from processors.frameworks.shapes.attribute_reading import merged_error
from processors.frameworks.shapes.placeholder_names import INTERRUPTION_ERRORS, MCP_NAME_SEPARATORS
from processors.model.agent_run import ToolError
from processors.model.values import DecodedValue
from processors.reconstruction.requested_calls import is_call_id
from processors.reconstruction.span_reading import SpanReading, merged_tool
from processors.spans.span import KIND_SERVER, STATUS_ERROR, Span
from processors.spans.span_tree import SpanTree

_STATUS_OK = 1
_BEHIND_SEPARATOR = re.compile("|".join(f"(?<={re.escape(separator)})" for separator in MCP_NAME_SEPARATORS))
_MAX_SEPARATORS = 16
_SAME_TIME = 0.9
"""Share of the longer span that two reports of one call overlap by."""


class MergedCall:
    """One execution of a tool: the positions of the spans that report it, outermost first."""

    __slots__ = ("error", "name", "reading", "spans")

    def __init__(self, position: int, name: str, reading: ToolReading, error: ToolError | None) -> None:
        self.spans = [position]
        self.name = name
        self.reading = reading
        self.error = error

    def absorb(self, other: "MergedCall") -> None:
        """Take in another report of the same call."""
        self.spans.extend(other.spans)
        self.reading = merged_tool(self.reading, other.reading)
        self.error = merged_error(self.error, other.error)


def merge_calls(
    tools: Sequence[int], tool_above: Sequence[int], tree: SpanTree, readings: Sequence[SpanReading | None]
) -> list[MergedCall]:
    """The calls of one run out of its tool spans, parents before children in `tools`."""
    calls: list[MergedCall] = []
    call_of: dict[int, MergedCall] = {}
    for position in tools:
        reading = readings[position]
        if reading is None:
            continue
        fields = reading.tool
        name = fields.name or fields.inferred_name
        call = MergedCall(position, name, fields, _error_of(reading.span, fields))
        outer = call_of.get(tool_above[position])
        if outer is not None and (fields.is_part or _is_one_call(outer, call)):
            outer.absorb(call)
            call_of[position] = outer
            continue
        if fields.is_part:
            continue
        call_of[position] = call
        calls.append(call)
    return _merge_instrumentations(calls, tree, readings) if len(calls) > 1 else calls


def _is_one_call(outer: MergedCall, inner: MergedCall) -> bool:
    """Whether a span within a call reports that same call."""
    first, second = outer.reading.call_id, inner.reading.call_id
    if first != second and is_call_id(first) and is_call_id(second):
        return False
    return (
        outer.name == inner.name or is_prefixed(outer.name, inner.name) or is_prefixed(inner.name, outer.name)
    )


def is_prefixed(longer: str, shorter: str) -> bool:
    """Whether `longer` is `shorter` behind the name of a tool server."""
    return bool(shorter) and any(longer.endswith(separator + shorter) for separator in MCP_NAME_SEPARATORS)


def names_behind_servers(name: str) -> list[str]:
    """What `name` is where its beginning is the name of a tool server: all that it `is_prefixed` of.

    Where many separators stand in it, the last ones count.
    """
    ends = [match.end() for match in _BEHIND_SEPARATOR.finditer(name)]
    return [name[end:] for end in ends[-_MAX_SEPARATORS:] if end < len(name)]


def service_of_caller(position: int, tool_above: Sequence[int], tree: SpanTree) -> str:
    """The service that made the call at `position`, not the tool server whose view of a call that is."""
    views = tree.views
    above = tool_above[position]
    while above >= 0 and KIND_SERVER in (views[position].kind, views[above].kind):
        position, above = above, tool_above[above]
    return views[position].envelope.service_name


def _merge_instrumentations(
    calls: list[MergedCall], tree: SpanTree, readings: Sequence[SpanReading | None]
) -> list[MergedCall]:
    """Unite what two instrumentations of one process report side by side.

    Spans of one scope never report one call. Two scopes do where they give the same id, or the same
    arguments at the same time.
    """
    by_name: dict[str, list[MergedCall]] = {}
    for call in calls:
        by_name.setdefault(call.name, []).append(call)
    if len(by_name) == len(calls):
        return calls
    gone: set[int] = set()
    for same_name in by_name.values():
        if len(same_name) < 2:
            continue
        scopes = {_scope_of(call, readings) for call in same_name}
        if len(scopes) < 2:
            continue
        same_name.sort(key=lambda call: call.spans[0])
        previous: MergedCall | None = None
        by_id: dict[str, MergedCall] = {}
        for call in same_name:
            call_id = call.reading.call_id
            twin = by_id.get(call_id) if is_call_id(call_id) else None
            if twin is None and previous is not None and _is_side_by_side(previous, call, tree):
                twin = previous
            if twin is not None and _scope_of(twin, readings) != _scope_of(call, readings):
                twin.absorb(call)
                gone.add(call.spans[0])
                continue
            if is_call_id(call_id):
                by_id[call_id] = call
            previous = call
    return [call for call in calls if call.spans[0] not in gone] if gone else calls


def _scope_of(call: MergedCall, readings: Sequence[SpanReading | None]) -> str:
    reading = readings[call.spans[0]]
    return "" if reading is None else reading.span.envelope.scope_name


def _is_side_by_side(first: MergedCall, second: MergedCall, tree: SpanTree) -> bool:
    ids = first.reading.call_id, second.reading.call_id
    if all(map(is_call_id, ids)) and ids[0] != ids[1]:
        return False
    if not _are_equal(first.reading.arguments, second.reading.arguments):
        return False
    one, other = first.spans[0], second.spans[0]
    start, end = max(tree.starts[one], tree.starts[other]), min(tree.ends[one], tree.ends[other])
    longer = max(tree.ends[one] - tree.starts[one], tree.ends[other] - tree.starts[other])
    return end - start >= _SAME_TIME * longer


def _are_equal(first: DecodedValue, second: DecodedValue) -> bool:
    return first.state is second.state and first.value == second.value


def _error_of(span: Span, fields: ToolReading) -> ToolError | None:
    """Why the call failed, as this span tells it.

    An error type, the status, what the dialect read, or an exception event beside a status that is not OK
    make an error; the texts come from wherever there are any. A tool that stops to wait for an answer has
    not failed.
    """
    attributes = span.attributes
    error_type = (attributes.text("error.type") or "") if "error.type" in attributes else ""
    status = span.status_code
    has_exception = False
    exception_type = exception_message = ""
    if status != _STATUS_OK and span.has_events:
        for event in span.events:
            if event.name == "exception":
                has_exception = True
                exception_type = event.attributes.text("exception.type") or ""
                exception_message = event.attributes.text("exception.message") or ""
                break
    told = fields.error
    if not (error_type or status == STATUS_ERROR or told is not None or has_exception):
        return None
    message = exception_message or (told.message if told is not None else "") or span.status_message
    kind = error_type or exception_type or (told.type if told is not None else "")
    if kind.endswith(INTERRUPTION_ERRORS) or message.startswith(INTERRUPTION_ERRORS):
        return None
    return ToolError(type=kind, message=message)
