r"""YAML as plain values, with the place of every node, for files that people write.

Stricter than a general YAML reader: keys are texts and occur once, tags are refused, and what aliases
and nesting may blow up to is bounded. JSON is read too, `\ud83d\ude00` pairs included.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

import yaml

from processors.documents.environment import Expansion
from processors.documents.problem import Problem, ProblemsFound, join_path
from processors.documents.yaml_scalar import plain_scalar
from processors.model.json_value import JsonObject, JsonValue

MAX_DEPTH = 100
"""Lists and mappings inside each other."""
MAX_ALIASED_NODES = 100_000
"""Nodes that aliases may add in all: against texts that double with every line."""

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NOT_PRINTABLE = yaml.reader.Reader.NON_PRINTABLE
_BARE_REFERENCE = re.compile(r"[{\[,:]\s*\$\{env:")
_SURROGATE_PAIR = re.compile(
    r"(?<!\\)((?:\\\\)*)\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})"
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node stands: for the value of a key, the place of the key. Both count from 1.

    `reference` is set for a scalar with an environment variable in it: the text with `${env:NAME}` in
    place of values.
    """

    line: int
    column: int
    children: Mapping[str | int, "Place"] = field(default_factory=dict)
    reference: str | None = None


@dataclass(frozen=True, slots=True)
class LocatedYaml:
    """The value of a YAML document and the place of each of its nodes.

    `problems` are mistakes that leave the rest of the document readable: duplicate keys, keys that are no
    texts, tags, scalars that cannot be expanded. A document with any must not be used.
    """

    file: str
    value: JsonValue
    place: Place
    problems: Sequence[Problem] = ()

    def all_problems(self, found: Iterable[Problem]) -> list[Problem]:
        """`problems` and those `found` in the content, in the order of the file, each once.

        Where reading already found a mistake, what is said of the value left in its place is dropped.
        """
        known = {(problem.line, problem.path) for problem in self.problems}
        others = [problem for problem in found if (problem.line, problem.path) not in known]
        return sorted(dict.fromkeys([*self.problems, *others]), key=lambda problem: problem.line)

    def problem(self, path: Sequence[str | int], message: str) -> Problem:
        """A problem with the node at `path`, or with its nearest ancestor that is there."""
        place = self.place
        text = ""
        for step in path:
            place = place.children.get(step, place)
            text = join_path(text, step)
        return Problem(self.file, place.line, text, message)

    def place_of(self, path: Sequence[str | int]) -> Place | None:
        """The place of the node at `path`, None if there is none."""
        place: Place | None = self.place
        for step in path:
            if place is None:
                return None
            place = place.children.get(step)
        return place

    def without_environment(self, path: Sequence[str | int], message: str) -> str:
        """`message` with references in place of values that came from the environment.

        Looked at are the values at `path` and below; texts of less than four characters stay.
        """
        for value, reference in _environment_values(self.value, self.place, path):
            if len(value) > 3:
                message = message.replace(value, reference)
        return message


def _environment_values(
    value: JsonValue, place: Place, path: Sequence[str | int]
) -> Iterator[tuple[str, str]]:
    if place.reference is not None:
        yield str(value), place.reference
    for step, inner in place.children.items():
        if not path or step == path[0]:
            child: JsonValue = value[step] if isinstance(value, dict | list) else None  # type: ignore[index]  # steps come from the value
            yield from _environment_values(child, inner, path[1:])


def read_yaml(text: str, file: str, expand: Callable[[str], Expansion] | None = None) -> LocatedYaml:
    """Read one YAML or JSON document; an empty one is None.

    `expand` is applied to every scalar and key and raises ValueError for what it cannot expand; a value
    that is one unquoted reference is read as YAML afterwards, everything else stays a text.

    Raises:
        ProblemsFound: the text cannot be read at all. Lesser mistakes are in `problems` of what is returned.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ProblemsFound([Problem(file, 0, "", "not valid UTF-8")]) from None
    forbidden = _NOT_PRINTABLE.search(text)
    if forbidden is not None:
        line = text.count("\n", 0, forbidden.start()) + 1
        raise ProblemsFound(
            [Problem(file, line, "", f"character {forbidden.group()!r} is not allowed in YAML")]
        )
    reader = _Reader(file, expand or Expansion)
    try:
        value, place = reader.read(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = " ".join(part for part in (error.problem, error.context) if part)
        line = mark.line + 1 if mark else 0
        problem = Problem(file, line, "", f"not valid YAML: {what}{_syntax_hint(text, line)}")
    except yaml.YAMLError as error:
        problem = Problem(file, 0, "", f"not valid YAML: {error}")
    except _Unreadable as error:
        problem = error.problem
    else:
        return LocatedYaml(file, value, place, reader.problems)
    raise ProblemsFound([*reader.problems, problem])


class _Unreadable(Exception):
    """Reading cannot go on."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


@dataclass(slots=True)
class _Node:
    """A value with its place; `size` and `height` are those of the tree with aliases written out."""

    value: JsonValue
    place: Place
    size: int = 1
    height: int = 0


class _Reader:
    """Builds values from parser events: those, unlike trees of nodes, come without recursion in C."""

    def __init__(self, file: str, expand: Callable[[str], Expansion]) -> None:
        self.problems: list[Problem] = []
        self._file = file
        self._expand = expand
        self._anchors: dict[str, _Node | None] = {}
        self._path: list[str | int] = []
        self._aliased = 0
        self._events: Iterator[yaml.Event] = iter(())

    def read(self, text: str) -> tuple[JsonValue, Place]:
        self._events = yaml.parse(_SURROGATE_PAIR.sub(_join_surrogates, text), Loader=_LOADER)
        node = _Node(None, Place(1, 1))
        documents = 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    self._stop(event, "expected one YAML document, found another")
                node = self._node(next(self._events))
        return node.value, node.place

    def _problem(self, event: yaml.Event, message: str) -> None:
        self.problems.append(self._make(event, message))

    def _stop(self, event: yaml.Event, message: str) -> NoReturn:
        raise _Unreadable(self._make(event, message))

    def _make(self, event: yaml.Event, message: str) -> Problem:
        path = ""
        for step in self._path:
            path = join_path(path, step)
        return Problem(self._file, _at(event).line, path, message)

    def _node(self, event: yaml.Event) -> _Node:
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        if not isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent):
            self._stop(event, "expected a value")
        if event.tag is not None:
            self._problem(event, "YAML tags are not supported; put a text in quotes")
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        if isinstance(event, yaml.ScalarEvent):
            node = self._scalar(event)
        else:
            if len(self._path) >= MAX_DEPTH:
                self._stop(event, f"nested more than {MAX_DEPTH} deep")
            is_list = isinstance(event, yaml.SequenceStartEvent)
            node = self._sequence(event) if is_list else self._mapping(event)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _alias(self, event: yaml.AliasEvent) -> _Node:
        name = event.anchor or ""
        if name not in self._anchors:
            self._stop(event, f'alias "*{name}" has no anchor "&{name}" before it')
        node = self._anchors[name]
        if node is None:
            self._stop(event, f'alias "*{name}" stands inside its own anchor')
        self._aliased += node.size
        if self._aliased > MAX_ALIASED_NODES:
            self._stop(event, f"aliases repeat more than {MAX_ALIASED_NODES} values")
        if len(self._path) + node.height > MAX_DEPTH:
            self._stop(event, f"nested more than {MAX_DEPTH} deep")
        return node

    def _scalar(self, event: yaml.ScalarEvent) -> _Node:
        try:
            expansion = self._expand(event.value)
            value: JsonValue = expansion.text
            if event.implicit[0] and (expansion.is_reference or expansion.text == event.value):
                value = plain_scalar(expansion.text)
        except ValueError as error:
            self._problem(event, str(error))
            return _Node(event.value, _at(event))
        return _Node(value, _at(event, reference=expansion.shown))

    def _sequence(self, event: yaml.Event) -> _Node:
        items: list[JsonValue] = []
        places: dict[str | int, Place] = {}
        size, height = 1, 0
        while not isinstance(inner := next(self._events), yaml.SequenceEndEvent):
            self._path.append(len(items))
            node = self._node(inner)
            self._path.pop()
            places[len(items)] = _at(inner, node.place.children, node.place.reference)
            items.append(node.value)
            size += node.size
            height = max(height, node.height)
        return _Node(items, _at(event, places), size, height + 1)

    def _mapping(self, event: yaml.Event) -> _Node:
        values: JsonObject = {}
        places: dict[str | int, Place] = {}
        merged: list[_Node] = []
        size, height = 1, 0
        while not isinstance(key_event := next(self._events), yaml.MappingEndEvent):
            key, is_merge = self._key(key_event)
            self._path.append(key)
            is_duplicate = not is_merge and key in values
            if is_duplicate:  # the first counts, so that its mistakes are told as well
                self._problem(key_event, f"duplicate key, first on line {places[key].line}")
            node = self._node(next(self._events))
            size += node.size
            height = max(height, node.height)
            if is_merge:
                merged += self._merged(key_event, node)
            elif not is_duplicate:
                values[key] = node.value
                places[key] = _at(key_event, node.place.children, node.place.reference)
            self._path.pop()
        for source in merged:  # keys written here win, then the earlier source
            if isinstance(source.value, dict):
                for key, value in source.value.items():
                    if key not in values:
                        values[key] = value
                        places[key] = source.place.children[key]
        return _Node(values, _at(event, places), size, height + 1)

    def _key(self, event: yaml.Event) -> tuple[str, bool]:
        """The key that `event` stands for, and whether it is the merge key `<<`."""
        if not isinstance(event, yaml.ScalarEvent):
            self._stop(event, "a key must be a text")
        if event.implicit[0] and event.value == "<<":
            return event.value, True
        node = self._node(event)
        if isinstance(node.value, str):
            return node.value, False
        if node.place.reference is None:
            self._problem(event, f'a key must be a text: put "{event.value[:50]}" in quotes')
        return str(node.value) if node.place.reference is None else event.value, False

    def _merged(self, event: yaml.Event, node: _Node) -> list[_Node]:
        sources = [node]
        if isinstance(node.value, list):
            sources = [_Node(item, node.place.children[index]) for index, item in enumerate(node.value)]
        if not all(isinstance(source.value, dict) for source in sources):
            self._problem(event, "expected a mapping, or a list of mappings, to merge")
            return []
        return sources


def _syntax_hint(text: str, line: int) -> str:
    """What the two most usual mistakes in the syntax of `line` are mended by."""
    written = text.split("\n")[line - 1] if 0 < line <= text.count("\n") + 1 else ""
    if "\t" in written[: len(written) - len(written.lstrip())]:
        return "; indent with spaces, not with tabs"
    if _BARE_REFERENCE.search(written):
        return "; inside { } and [ ] put a reference such as ${env:NAME} in quotes"
    return ""


def _at(
    event: yaml.Event, children: Mapping[str | int, Place] | None = None, reference: str | None = None
) -> Place:
    """The place where `event` starts."""
    mark = event.start_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
    return Place(line, column, children or {}, reference)


def _join_surrogates(match: re.Match[str]) -> str:
    high, low = int(match[2], 16), int(match[3], 16)
    return f"{match[1]}\\U{0x10000 + ((high & 0x3FF) << 10) + (low & 0x3FF):08x}"
