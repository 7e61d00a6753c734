r"""YAML as plain values, with the line of every node, for files that people write.

Stricter than a general YAML reader: keys are texts and occur once, tags are refused, and what aliases
and nesting may blow up to is bounded. JSON is read too, `\ud83d\ude00` pairs included. References to
environment variables are as in the OpenTelemetry Collector: `${env:NAME}` is the variable,
`${env:NAME:-text}` has a default for a variable that is not set (one that is set but empty is empty).
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, NoReturn, TypeGuard

import yaml

from processors.documents.problems import InvalidInput, Path, Problem, path_text
from processors.model import JsonValue

MAX_DEPTH = 100
"""Lists and mappings inside each other."""
MAX_ALIASED_NODES = 100_000
"""Nodes that aliases may add in all: against texts that double with every line."""

Dollars = Literal["service", "criteria"]
"""Which dollar signs have a meaning in addition to `${env:...}`.

In a service file `$$` is a dollar sign and any other `${` is refused. In a criteria file, where tool
arguments and patterns are full of dollar signs, only `$${` is an escape (for `${`).
"""

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NODES = yaml.ScalarEvent, yaml.CollectionStartEvent
_NOT_PRINTABLE = yaml.reader.Reader.NON_PRINTABLE
_BARE_REFERENCE = re.compile(r"[{\[,:]\s*\$\{env:")
_SURROGATE_PAIR = re.compile(
    r"(?<!\\)((?:\\\\)*)\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})"
)
_REFERENCE = re.compile(r"\$\$\{?|\$\{([^{}]*)\}?")
_VARIABLE = re.compile(r"env:([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?\Z", re.DOTALL)
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS = {
    spelling: word in ("yes", "true", "on")
    for word in ("yes", "true", "on", "no", "false", "off")
    for spelling in (word, word.capitalize(), word.upper())
}
_WORDS = _NULL | _BOOLEANS.keys() | {"<<"}
"""Unquoted scalars that are no texts."""
_NUMBER_START = frozenset("+-.0123456789")
_DECIMAL = re.compile(r"[-+]?(?:0|[1-9][0-9_]*)\Z")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9_]+\Z")
_OTHER_BASE = re.compile(r"[-+]?0(?:x[0-9a-fA-F_]+|b[01_]+)\Z")
_FLOAT = re.compile(
    r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*|(?:0|[1-9][0-9]*)(?=[eE]))(?:[eE][-+]?[0-9]+)?\Z"
)
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)\Z|\.(?:nan|NaN|NAN)\Z")


class Place(NamedTuple):
    """A node of a document; for the value of a key, `line` (from 1) is that of the key.

    `reference` is set for a scalar with an environment variable in it: the text with `${env:NAME}` in
    place of values.
    """

    line: int
    value: JsonValue
    children: Mapping[Any, "Place"] = MappingProxyType({})
    reference: str | None = None


@dataclass(frozen=True)
class LocatedYaml:
    """A YAML document as a tree of places.

    `problems` are mistakes that leave the rest of the document readable: duplicate keys, keys that are no
    texts, tags, scalars that cannot be expanded. A document with any must not be used.
    `has_aliases`: some nodes stand at several paths.
    """

    file: str
    place: Place
    problems: Sequence[Problem] = ()
    has_aliases: bool = False

    @cached_property
    def _written(self) -> Mapping[int, Path]:
        """Where the nodes are written of a document in which some stand at several paths."""
        paths: dict[int, Path] = {}
        for path, place in _nodes(self.place) if self.has_aliases else ():
            paths.setdefault(id(place), path)
        return paths

    @property
    def value(self) -> JsonValue:
        """The value of the document."""
        return self.place.value

    def all_problems(self, collected: Iterable[Problem]) -> list[Problem]:
        """`problems` and those `found` in the content, in the order of the file, each once.

        Where reading already found a mistake, problems with the value left in its place are dropped.
        """
        known = {(problem.line, problem.path) for problem in self.problems}
        others = [problem for problem in collected if (problem.line, problem.path) not in known]
        return sorted(dict.fromkeys([*self.problems, *others]), key=lambda problem: problem.line)

    def line(self, path: Path) -> int:
        """The line of the node at `path`, or of its nearest ancestor that is there."""
        place = self.place
        for step in path:
            place = place.children.get(step, place)
        return place.line

    def problem(self, path: Path, message: str) -> Problem:
        """A problem with the node at `path`, or with its nearest ancestor that is there.

        Inside an anchor it is reported where it is written, so that it is one problem for all aliases.
        """
        place = self.place
        written: Path = ()
        for step in path:
            inner = place.children.get(step, place)
            written = (*written, step) if inner is place else self._written.get(id(inner), (*written, step))
            place = inner
        return Problem(self.file, place.line, path_text(written), message)

    def place_of(self, path: Path) -> Place | None:
        """The node at `path`, None if there is none."""
        place: Place | None = self.place
        for step in path:
            place = place.children.get(step) if place else None
        return place

    def references(self, path: Path = ()) -> Iterator[tuple[Path, Place]]:
        """The scalars at `path` and below that hold environment variables, with their paths."""
        start = self.place_of(path)
        for place_path, place in _nodes(start, path) if start else ():
            if place.reference is not None:
                yield place_path, place

    def without_environment(self, path: Path, message: str) -> str:
        """`message` with references in place of values that came from the environment.

        Looked at are the values at `path` and below; texts of less than four characters stay.
        """
        for _, place in self.references(path):
            if len(str(place.value)) > 3:
                message = message.replace(str(place.value), str(place.reference))
        return message


def _nodes(place: Place, path: Path = ()) -> Iterator[tuple[Path, Place]]:
    """The nodes at and below `place`, which is at `path`, in order."""
    yield path, place
    for step, inner in place.children.items():
        yield from _nodes(inner, (*path, step))


@dataclass(frozen=True, slots=True)
class Expansion:
    """A text with its references replaced.

    `is_reference`: the whole text was one reference, so its value may be of another type than text.
    `shown`: the text with references as `${env:NAME}`, without values and defaults: fit to be printed;
    None when there was no reference.
    """

    text: str
    is_reference: bool = False
    shown: str | None = None


def expand(text: str, environment: Mapping[str, str], dollars: Dollars) -> Expansion:
    """Replace every reference in `text` to a variable of `environment`.

    Raises ValueError for a variable that is not set and has no default or is not UTF-8, and for a reference
    that cannot be read. The message names the variable, never a value.
    """
    if "$" not in text:
        return Expansion(text)
    labels: list[str] = []

    def replaced(match: re.Match[str], *, with_label: bool = False) -> str:
        result = match.group()
        if result.startswith("$$"):
            return result[1:] if dollars == "service" or result == "$${" else result
        if dollars == "criteria" and not result.startswith("${env:"):
            return result
        name, value = _variable(result, match.group(1), environment)
        labels.append(f"${{env:{name}}}")
        return labels[-1] if with_label else value

    expanded = _REFERENCE.sub(replaced, text)
    if not labels:
        return Expansion(expanded)
    shown = _REFERENCE.sub(partial(replaced, with_label=True), text)
    return Expansion(expanded, _REFERENCE.fullmatch(text) is not None, shown)


def _variable(result: str, inner: str, environment: Mapping[str, str]) -> tuple[str, str]:
    """The name and the value of the variable in the reference `found`, which has `inner` in its braces."""
    reference = _VARIABLE.match(inner)
    if reference is None or not result.endswith("}"):
        raise ValueError('cannot read a reference: expected "${env:NAME}" or "${env:NAME:-default}"')
    name, default = reference.group(1, 2)
    value = environment.get(name, default)
    if value is None:
        raise ValueError(
            f'environment variable "{name}" is not set; set it, or write "${{env:{name}:-default}}"'
        )
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f'environment variable "{name}" holds bytes that are not UTF-8') from None
    return name, value


def plain_scalar(text: str) -> str | int | float | bool | None:
    """What the unquoted scalar `text` means: null, a boolean, a number, or the text as it stands.

    YAML 1.1 as most readers take it, and every JSON number; but dates, times and other things with colons
    stay texts. Raises ValueError for a number that is not finite, too long, or has a leading zero (octal in
    one YAML, decimal in the other).
    """
    if text in _NULL:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if text[0] not in _NUMBER_START:
        return text
    if _DECIMAL.match(text) or _OTHER_BASE.match(text):
        try:
            return int(text.replace("_", ""), 10 if _DECIMAL.match(text) else 0)
        except ValueError:  # more digits than Python reads, or none: 0x_
            raise ValueError("the number cannot be read; put a text in quotes") from None
    if _LEADING_ZERO.match(text):
        raise ValueError("a number with a leading zero could be octal: write it without, or put it in quotes")
    if _FLOAT.match(text):
        number = float(text.replace("_", ""))
        if math.isfinite(number):
            return number
        raise ValueError("the number is too large")
    if _NOT_FINITE.match(text):
        raise ValueError("infinity and not-a-number are not allowed; put a text in quotes")
    return text


def read_yaml(text: str, file: str, expand: Callable[[str], Expansion] | None = None) -> LocatedYaml:
    """Read one YAML or JSON document; an empty one is None.

    `expand` is applied to every scalar and key with a dollar sign; a value that is one unquoted reference is
    read as YAML afterwards, everything else stays a text. Raises InvalidInput where the text cannot be read
    at all; lesser mistakes are in `problems`.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInput([Problem(file, 0, "", "not valid UTF-8")]) from None
    forbidden = _NOT_PRINTABLE.search(text)
    if forbidden is not None:
        line = text.count("\n", 0, forbidden.start()) + 1
        raise InvalidInput(
            [Problem(file, line, "", f"character {forbidden.group()!r} is not allowed in YAML")]
        )
    reader = _Reader(file, expand or Expansion)
    try:
        return LocatedYaml(file, reader.read(text), reader.problems, reader.aliased > 0)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = " ".join(part for part in (error.problem, error.context) if part)
        line = mark.line + 1 if mark else 0
        problem = Problem(file, line, "", f"not valid YAML: {what}{_syntax_hint(text, line)}")
    except yaml.YAMLError as error:
        problem = Problem(file, 0, "", f"not valid YAML: {error}")
    raise InvalidInput([*reader.problems, problem])


class _Reader:
    """Builds places from parser events: those, unlike trees of nodes, come without recursion in C."""

    def __init__(self, file: str, expand: Callable[[str], Expansion]) -> None:
        self.problems: list[Problem] = []
        self._file = file
        self._expand = expand
        self._anchors: dict[str, Place | None] = {}
        self._path: list[str | int] = []
        self.aliased = 0
        """Nodes that aliases have added."""
        self._next: Callable[[], yaml.Event] = yaml.StreamEndEvent

    def read(self, text: str) -> Place:
        loader = _LOADER(_SURROGATE_PAIR.sub(_join_surrogates, text))
        self._next = loader.get_event
        place = None
        try:
            while not isinstance(event := self._next(), yaml.StreamEndEvent):
                if isinstance(event, yaml.DocumentStartEvent):
                    if place is not None:
                        self._stop(event, "expected one YAML document, found another")
                    event = self._next()
                    place = self._place(event, _line(event))
        finally:
            loader.dispose()
        return place or Place(1, None)

    def _problem(self, event: yaml.Event, message: str) -> None:
        self.problems.append(Problem(self._file, _line(event), path_text(self._path), message))

    def _stop(self, event: yaml.Event, message: str) -> NoReturn:
        self._problem(event, message)
        raise InvalidInput(self.problems)

    def _place(self, event: yaml.Event, line: int) -> Place:
        if _is_text(event):
            return Place(line, event.value)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)._replace(line=line)
        if not isinstance(event, _NODES):
            self._stop(event, "expected a value")
        if event.tag is not None:
            self._problem(event, "YAML tags are not supported; put a text in quotes")
        anchor = event.anchor
        if anchor is not None:
            self._anchors[anchor] = None
        if isinstance(event, yaml.ScalarEvent):
            place = self._scalar(event, line)
        else:
            if len(self._path) >= MAX_DEPTH:
                self._stop(event, f"nested more than {MAX_DEPTH} deep")
            is_list = isinstance(event, yaml.SequenceStartEvent)
            place = self._sequence(line) if is_list else self._mapping(line)
        if anchor is not None:
            self._anchors[anchor] = place
        return place

    def _alias(self, event: yaml.AliasEvent) -> Place:
        name = event.anchor or ""
        if name not in self._anchors:
            self._stop(event, f'alias "*{name}" has no anchor "&{name}" before it')
        place = self._anchors[name]
        if place is None:
            self._stop(event, f'alias "*{name}" stands inside its own anchor')
        size, height = _extent(place)
        self.aliased += size
        if self.aliased > MAX_ALIASED_NODES:
            self._stop(event, f"aliases repeat more than {MAX_ALIASED_NODES} values")
        if len(self._path) + height > MAX_DEPTH:
            self._stop(event, f"nested more than {MAX_DEPTH} deep")
        return place

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> Place:
        text: str = event.value
        reference = None
        is_plain: bool = event.implicit[0]
        try:
            if "$" in text:
                expansion = self._expand(text)
                is_plain = is_plain and (expansion.is_reference or expansion.text == text)
                text, reference = expansion.text, expansion.shown
            return Place(line, plain_scalar(text) if is_plain else text, reference=reference)
        except ValueError as error:
            self._problem(event, str(error))
            return Place(line, event.value)

    def _sequence(self, line: int) -> Place:
        places: dict[int, Place] = {}
        values: list[JsonValue] = []
        path = self._path
        while (event := self._next()).__class__ is not yaml.SequenceEndEvent:
            path.append(len(places))
            place = places[len(places)] = self._place(event, _line(event))
            values.append(place.value)
            path.pop()
        return Place(line, values, places)

    def _mapping(self, line: int) -> Place:
        places: dict[str, Place] = {}
        merged: list[Place] = []
        path = self._path
        while (key_event := self._next()).__class__ is not yaml.MappingEndEvent:
            key, is_merge = self._key(key_event)
            path.append(key)
            is_duplicate = not is_merge and key in places
            if is_duplicate:  # the first counts, so that its mistakes are reported as well
                self._problem(key_event, f"duplicate key, first on line {places[key].line}")
            place = self._place(self._next(), _line(key_event))
            if is_merge:
                merged += self._merged(key_event, place)
            elif not is_duplicate:
                places[key] = place
            path.pop()
        for source in merged:  # keys written here win, then the earlier source
            for key, place in source.children.items():
                places.setdefault(key, place)
        return Place(line, {key: place.value for key, place in places.items()}, places)

    def _key(self, event: yaml.Event) -> tuple[str, bool]:
        """The key that `event` stands for, and whether it is the merge key `<<`."""
        if _is_text(event):
            return event.value, False
        if not isinstance(event, yaml.ScalarEvent):
            self._stop(event, "a key must be a text")
        if event.implicit[0] and event.value == "<<":
            return event.value, True
        place = self._place(event, 0)
        if isinstance(place.value, str):
            return place.value, False
        if place.reference is not None:
            return event.value, False
        self._problem(event, f'a key must be a text: put "{event.value[:50]}" in quotes')
        return str(place.value), False

    def _merged(self, event: yaml.Event, place: Place) -> list[Place]:
        sources = list(place.children.values()) if isinstance(place.value, list) else [place]
        if all(isinstance(source.value, dict) for source in sources):
            return sources
        self._problem(event, "expected a mapping, or a list of mappings, to merge")
        return []


def _is_text(event: yaml.Event) -> TypeGuard[yaml.ScalarEvent]:
    """Whether `event` is nothing but a text, as most are."""
    if event.__class__ is not yaml.ScalarEvent or event.tag is not None or event.anchor is not None:
        return False
    text: str = event.value
    if "$" in text:
        return False
    return not event.implicit[0] or (text not in _WORDS and text[0] not in _NUMBER_START)


def _extent(place: Place) -> tuple[int, int]:
    """The nodes of the tree at `place` with aliases written out, and its height."""
    if not isinstance(place.value, dict | list):
        return 1, 0
    inner = [_extent(child) for child in place.children.values()]
    return 1 + sum(size for size, _ in inner), 1 + max((height for _, height in inner), default=0)


def _syntax_hint(text: str, line: int) -> str:
    """What the two most usual mistakes in the syntax of `line` are mended by."""
    written = text.split("\n")[line - 1] if 0 < line <= text.count("\n") + 1 else ""
    if "\t" in written[: len(written) - len(written.lstrip())]:
        return "; indent with spaces, not with tabs"
    if _BARE_REFERENCE.search(written):
        return "; inside { } and [ ] put a reference such as ${env:NAME} in quotes"
    return ""


def _line(event: yaml.Event) -> int:
    """The line on which `event` starts."""
    return event.start_mark.line + 1 if event.start_mark else 0


def _join_surrogates(match: re.Match[str]) -> str:
    high, low = int(match[2], 16), int(match[3], 16)
    return f"{match[1]}\\U{0x10000 + ((high & 0x3FF) << 10) + (low & 0x3FF):08x}"
