"""Rules about arguments: their schemas, ranges, formats and constants, and where their values come from."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from processors.comparison import equality_key
from processors.learning.observed_run import EVERY_ITEM, ObservedRun, Shape, ToolPlace, shape_text
from processors.learning.order_rules import MIN_RUNS
from processors.learning.rule import Rule
from processors.model import JsonObject, JsonValue, json_text

MIN_VALUES_RUNS = 20
"""Runs that must show values before there is a rule about all of them."""

_MAX_CHOICES = 12
_MAX_DEPTH = 4
_MAX_SEGMENTS = 12
_SPARE_RANGE = 0.5
_FLOW_VALUES = 3
"""Different values that an argument must have had: one that never changes does not show where it is from."""

_FORMATS = (
    ("a date", re.compile(r"^\d{4}-\d{2}-\d{2}$")),
    ("a time", re.compile(r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?$")),
    ("a time of day", re.compile(r"^\d{2}:\d{2}(:\d{2})?$")),
    ("an e-mail address", re.compile(r"^[^@\s]+@[^@\s]+\.[^@\s]+$")),
    ("a UUID", re.compile(r"^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$")),
    ("a web address", re.compile(r"^https?://\S+$")),
)
_SEGMENT = re.compile(r"[0-9]+|[A-Z]+|[a-z]+|.", re.DOTALL)


@dataclass(slots=True)
class _Node:
    """What was seen at one place of the arguments of one tool."""

    types: Counter[str] = field(default_factory=Counter)
    runs: set[int] = field(default_factory=set)
    keys: Counter[str] = field(default_factory=Counter)
    key_runs: dict[str, set[int]] = field(default_factory=dict)
    values: dict[Any, tuple[JsonValue, set[int]]] = field(default_factory=dict)


def argument_rules(runs: Sequence[ObservedRun], names: Mapping[str, str]) -> Iterator[Rule]:
    """The rules on arguments that all `runs` keep; `names` are the tools as they are written."""
    nodes: dict[ToolPlace, _Node] = {}
    for number, run in enumerate(runs):
        for call in run.calls:
            if call.arguments is not None:
                _visit(nodes, call.tool, (), call.arguments, number, 0)
    closed: set[ToolPlace] = set()
    for (tool, shape), node in nodes.items():
        for rule in _schema_rules(tool, shape, node, len(runs), names):
            if rule.key[1] == "values":
                closed.add((tool, shape))
            yield rule
    flows = list(_flow_rules(runs, nodes, closed, names))
    yield from flows
    flowing = {(rule.key[1], rule.key[2:]) for rule in flows}
    yield from _grounding_rules(runs, closed | flowing, names)
    yield from _repetition_rules(runs, names)


def _visit(
    nodes: dict[ToolPlace, _Node], tool: str, shape: Shape, value: JsonValue, run: int, depth: int
) -> None:
    node = nodes.get((tool, shape))
    if node is None:
        node = nodes[tool, shape] = _Node()
    node.types[_TYPES[type(value)]] += 1
    node.runs.add(run)
    if isinstance(value, dict):
        for key, member in value.items():
            node.keys[key] += 1
            node.key_runs.setdefault(key, set()).add(run)
            if depth < _MAX_DEPTH and key not in (EVERY_ITEM, "*"):
                _visit(nodes, tool, (*shape, key), member, run, depth + 1)
    elif isinstance(value, list):
        for item in value:
            if depth < _MAX_DEPTH:
                _visit(nodes, tool, (*shape, EVERY_ITEM), item, run, depth + 1)
    else:
        known = node.values.setdefault(equality_key(value), (value, set()))
        known[1].add(run)


_TYPES: Mapping[type, str] = {
    type(None): "null", bool: "boolean", int: "integer", float: "number", str: "string", list: "array",
    dict: "object",
}  # fmt: skip


def _schema_rules(
    tool: str, shape: Shape, node: _Node, total: int, names: Mapping[str, str]
) -> Iterator[Rule]:
    """What the schema of the tool requires at one place."""
    if len(node.runs) < MIN_RUNS:
        return
    path = f"{shape_text(shape)} " if shape else ""

    def rule(about: str, statement: str, keywords: JsonObject, weight: float = 1.0) -> Rule:
        schema: JsonObject = keywords if shape else {"type": "object", **keywords}
        for step in reversed(shape):
            schema = {"items": schema} if step == EVERY_ITEM else {"properties": {step: schema}}
        key = ("arguments", about, tool, *shape)
        part: JsonObject = {"criteria": {"schemas": {names[tool]: schema}}}
        statement = statement and path + statement
        return Rule(key, statement, part, len(node.runs), total, weight, subject=names[tool])

    types: list[JsonValue] = [*sorted(node.types)]
    if "number" in types and "integer" in types:
        types.remove("integer")
    more: list[Rule] = []
    if types == ["object"]:
        more += _object_rules(node, rule)
    elif len(types) == 1 and types[0] in ("string", "integer", "number", "boolean"):
        more += _value_rules(node, str(types[0]), rule)
    if shape:
        statement = "" if more else f"is of type {' or '.join(map(str, types))}"
        yield rule("type", statement, {"type": types[0] if len(types) == 1 else types}, 2.0)
    yield from more


def _object_rules(node: _Node, rule: Callable[..., Rule]) -> Iterator[Rule]:
    required: list[JsonValue] = [key for key, count in node.keys.items() if count == node.types.total()]
    if required:
        shown = ", ".join(map(str, required))
        yield rule("required", f"has {shown}", {"required": required}, 2.0)
    if len(node.runs) >= MIN_VALUES_RUNS and all(len(runs) > 1 for runs in node.key_runs.values()):
        known: JsonObject = {key: {} for key in node.keys}
        others = [key for key in node.keys if key not in required]
        shown = f" but {', '.join(others)}" if others else " else" if required else ""
        yield rule("closed", f"has nothing{shown}", {"properties": known, "additionalProperties": False}, 2.0)


def _value_rules(node: _Node, kind: str, rule: Callable[..., Rule]) -> Iterator[Rule]:
    runs = len(node.runs)
    if runs < MIN_VALUES_RUNS:
        return
    values = [value for value, _ in node.values.values()]
    is_closed = (
        len(values) <= _MAX_CHOICES
        and runs >= 5 * len(values)
        # After Good and Turing: what was seen once shows how much was not seen at all.
        and all(len(seen) > 1 for _, seen in node.values.values())
    )
    if is_closed and (kind == "string" or len(values) == 1):
        choices: list[JsonValue] = sorted(values, key=str)
        shown = ", ".join(map(json_text, choices))
        statement = f"is one of {shown}" if len(values) > 1 else f"is {shown}"
        yield rule("values", statement, {"enum": choices})
    elif kind in ("integer", "number"):
        low, high = _range([value for value in values if isinstance(value, int | float)], is_closed)
        yield rule("range", f"is from {low:g} to {high:g}", {"minimum": low, "maximum": high})
    elif kind == "string":
        texts = [value for value in values if isinstance(value, str)]
        form = _format(texts)
        if form is not None:
            yield rule("format", f"is written as {form[0]}", {"pattern": form[1]})
        elif all(texts):
            yield rule("length", "is never empty", {"minLength": 1})


def _range(values: Sequence[int | float], is_closed: bool) -> tuple[int | float, int | float]:
    """The smallest and largest value, with room for those that were not seen where not all were."""
    low, high = min(values), max(values)
    if is_closed:
        return low, high
    spare = (high - low) * _SPARE_RANGE
    wide_low, wide_high = low - spare, high + spare
    if low >= 0 > wide_low:
        wide_low = 0 if low < 1 else min(low, 1)
    if high <= 0 < wide_high:
        wide_high = 0
    if all(isinstance(value, int) for value in values):
        return math.floor(wide_low), math.ceil(wide_high)
    return float(f"{wide_low:.3g}"), float(f"{wide_high:.3g}")  # for people


def _format(texts: Sequence[str]) -> tuple[str, str] | None:
    """How all `texts` are written, in words and as a pattern; None where they have no form in common."""
    for name, form in _FORMATS:
        if all(form.search(text) for text in texts):
            return name, form.pattern
    split = [_SEGMENT.findall(text) for text in texts]
    first = split[0]
    if not first or len(first) > _MAX_SEGMENTS or any(len(parts) != len(first) for parts in split):
        return None
    pattern, is_specific = "", False
    for column in zip(*split, strict=True):
        classes = {_class_of(segment) for segment in column}
        if len(classes) > 1:
            return None
        (kind,) = classes
        if len(set(column)) == 1:
            pattern += re.escape(column[0])
        elif kind is None:
            return None
        else:
            lengths = {len(segment) for segment in column}
            is_fixed = len(lengths) == 1
            pattern += kind + ("{" + str(*lengths) + "}" if is_fixed else "+")
            is_specific = is_specific or kind == "[0-9]" or (kind == "[A-Z]" and is_fixed)
    if not is_specific:
        return None
    return min(texts), f"^{pattern}$"


def _class_of(segment: str) -> str | None:
    return next((form for form in ("[0-9]", "[A-Z]", "[a-z]") if re.match(form, segment)), None)


def _flow_rules(
    runs: Sequence[ObservedRun],
    nodes: Mapping[ToolPlace, _Node],
    closed: set[ToolPlace],
    names: Mapping[str, str],
) -> Iterator[Rule]:
    sources: dict[ToolPlace, frozenset[ToolPlace]] = {}
    seen_in: Counter[ToolPlace] = Counter()
    values: dict[ToolPlace, set[Any]] = {}
    for run in runs:
        for place, uses in run.flows.items():
            seen_in[place] += 1
            for value, origins in uses:
                known = sources.get(place)
                sources[place] = origins if known is None else known & origins
                held = values.setdefault(place, set())
                if len(held) < _FLOW_VALUES:
                    held.add(value)
    for (tool, shape), origins in sources.items():
        place = tool, shape
        if not origins or place in closed or len(values[place]) < _FLOW_VALUES:
            continue
        if seen_in[place] < MIN_VALUES_RUNS or any(step == "*" for step in shape):
            continue
        origin, path = min(origins, key=lambda source: (source[0] == tool, len(source[1]), source))
        whole = nodes[tool, ()].types.total()
        is_optional = EVERY_ITEM in shape or nodes[place].types.total() < whole
        flow: JsonObject = {"tool": names[tool], "argument": shape_text(shape), "from_tool": names[origin]}
        if path:
            flow["from_path"] = shape_text(path)
        if is_optional:
            flow["required"] = False
        where = f"{names[origin]}.{shape_text(path)}" if path else names[origin]
        statement = f"{names[tool]}.{shape_text(shape)} is what {where} returned before"
        part: JsonObject = {"criteria": {"flows": [flow]}}
        yield Rule(("sources", tool, *shape), statement, part, seen_in[place], len(runs), weight=2.0)


def _grounding_rules(
    runs: Sequence[ObservedRun], explained: set[ToolPlace], names: Mapping[str, str]
) -> Iterator[Rule]:
    seen_in: Counter[ToolPlace] = Counter()
    ungrounded: set[ToolPlace] = set()
    for run in runs:
        if run.ungrounded is None:
            continue
        ungrounded |= run.ungrounded
        seen_in.update(run.flows.keys())
    for (tool, shape), number in seen_in.items():
        place = tool, shape
        if place in ungrounded or place in explained or number < MIN_VALUES_RUNS or "*" in shape:
            continue
        statement = f"{names[tool]}.{shape_text(shape)} was shown to the agent before"
        part: JsonObject = {"config": {"only": {names[tool]: [shape_text(shape)]}}}
        yield Rule(("grounding", tool, *shape), statement, part, number, len(runs), weight=2.0)


def _repetition_rules(runs: Sequence[ObservedRun], names: Mapping[str, str]) -> Iterator[Rule]:
    """Tools that were never called again with equal arguments after they succeeded."""
    seen_in: Counter[str] = Counter()
    repeated: set[str] = set()
    for run in runs:
        known: dict[str, set[Any]] = {}
        for call in run.calls:
            if call.arguments is None:
                repeated.add(call.tool)
                continue
            done, key = known.setdefault(call.tool, set()), equality_key(call.arguments)
            if key in done:
                repeated.add(call.tool)
            if call.took_effect:
                done.add(key)
        seen_in.update(known.keys())
    for tool, number in seen_in.items():
        if tool not in repeated and number >= MIN_VALUES_RUNS:
            statement = f"{names[tool]} is never repeated with equal arguments once it succeeded"
            part: JsonObject = {"criteria": {"tools": [names[tool]]}}
            yield Rule(("repetition", tool), statement, part, number, len(runs))
