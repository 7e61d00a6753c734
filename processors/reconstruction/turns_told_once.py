"""Model turns without the second report that an instrumentation of the model's client makes of them.

Where a framework's instrumentation does not make its spans current, the client's span does not lie below the
framework's own span of that model call, but beside it or further up, within its time.
"""

from collections.abc import Iterable, Sequence, Set
from typing import NamedTuple

from processors.frameworks.dialect import SpanRole
from processors.frameworks.shapes.messages import after_results, last_text
from processors.reconstruction.span_reading import SpanReading
from processors.spans.span_tree import SpanTree

_LOOK_BACK = 64
"""Model calls under way that are tried for one within them: keeps hostile traces linear."""


def turns_told_once(
    turns: Sequence[int], wrappers: Set[int], tree: SpanTree, readings: Sequence[SpanReading | None]
) -> list[int]:
    """The `turns` that are no `wrappers` of others and that no model call around them tells already.

    A span tells of the same call as another if it comes from another instrumentation scope, lies within the
    other's time, hangs at the same span or further up, and does not say that something else was answered.
    Where its parent is not known, it must say that the same was answered.
    """
    own = [position for position in turns if position not in wrappers]
    if len({tree.views[position].envelope.scope_name for position in own}) < 2:
        return own
    models = [
        position
        for position, reading in enumerate(readings)
        if reading is not None and reading.role is SpanRole.MODEL
    ]
    told_twice = _told_twice(models, tree, readings)
    return [position for position in own if position not in told_twice]


def _told_twice(models: Iterable[int], tree: SpanTree, readings: Sequence[SpanReading | None]) -> set[int]:
    parents, starts, ends, views = tree.parents, tree.starts, tree.ends, tree.views
    first, last = _numbered(tree)
    answers: dict[int, _Answer] = {}
    found: set[int] = set()
    under_way: list[int] = []
    for position in models:  # in order of start
        while under_way and ends[under_way[-1]] < starts[position]:
            under_way.pop()
        parent = parents[position]
        scope = views[position].envelope.scope_name
        for around in reversed(under_way[-_LOOK_BACK:]):
            if ends[around] < ends[position] or views[around].envelope.scope_name == scope:
                continue
            if parent >= 0 and not first[parent] < first[around] <= last[parent]:
                continue
            for told in (around, position):
                if told not in answers:
                    answers[told] = _answer(readings[told])
            agree = _agree(answers[around], answers[position])
            is_beside = parent >= 0 or tree.parent_ids[position] == tree.parent_ids[around]
            if agree or (agree is None and is_beside):
                found.add(position)
                break
        under_way.append(position)
    return found


def _numbered(tree: SpanTree) -> tuple[list[int], list[int]]:
    """Numbers for all spans, such that those below a span have its own plus one up to its last one."""
    count = len(tree)
    size = [1] * count
    for position in reversed(tree.top_down):
        parent = tree.parents[position]
        if parent >= 0:
            size[parent] += size[position]
    first = [0] * count
    free = [0] * count
    next_root = 0
    for position in tree.top_down:
        parent = tree.parents[position]
        if parent >= 0:
            first[position] = free[parent]
            free[parent] += size[position]
        else:
            first[position] = next_root
            next_root += size[position]
        free[position] = first[position] + 1
    return first, [begin + below - 1 for begin, below in zip(first, size, strict=True)]


class _Answer(NamedTuple):
    """What a model answered: the ids of the calls that it asked for, and its text."""

    asked: Set[str]
    text: str


def _answer(reading: SpanReading | None) -> _Answer:
    messages = [] if reading is None else after_results(reading.conversation.output)
    asked = {request.call_id for message in messages for request in message.requests if request.call_id}
    return _Answer(asked, (last_text(messages, "assistant") or "").strip())


def _agree(one: _Answer, other: _Answer) -> bool | None:
    """Whether both tell the same answer of the model; None where not both tell one."""
    if one.asked and other.asked:
        return not one.asked.isdisjoint(other.asked)
    if one.asked or other.asked or not one.text or not other.text:
        return None
    return one.text in other.text or other.text in one.text
