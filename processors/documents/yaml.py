r"""YAML as plain values, with the line of every node, for files that people write.

Stricter than a general YAML reader: keys are texts and occur once, tags are refused, and what aliases
and nesting may blow up to is bounded. JSON is read too, `\ud83d\ude00` pairs included. References to
environment variables are as in the OpenTelemetry Collector: `${env:NAME}` is the variable,
`${env:NAME:-text}` has a default for a variable that is not set (one that is set but empty is empty).
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Literal, NamedTuple, NoReturn, TypeAlias, TypeGuard

import yaml

from processors.documents.problems import InvalidInput, Path, Problem, path_text
from processors.model import JsonObject, JsonValue

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
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
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


_Member: TypeAlias = tuple[int, str | int]
"""A member of a list or mapping: the identity of that, and the position or key."""


class Place(NamedTuple):
    """A node of a document; for the value of a key, `line` (from 1) is that of the key.

    `reference` is set for a scalar with an environment variable in it: the text with `${env:NAME}` in
    place of values.
    """

    line: int
    value: JsonValue
    reference: str | None = None


@dataclass(slots=True)
class _Places:
    """Where the nodes of a document stand.

    `lines` of the members of each list and mapping, by its identity; a member without one is on the line of
    what it is in. `merged` has the origin of what merge keys have brought, and `sources` keeps the mappings
    alive that it came from.
    """

    line: int = 1
    lines: dict[int, dict[str | int, int]] = field(default_factory=dict)
    references: dict[_Member, str] = field(default_factory=dict)
    merged: dict[_Member, _Member] = field(default_factory=dict)
    sources: list[JsonValue] = field(default_factory=list)
    has_aliases: bool = False
    reference: str | None = None
    """The reference of the document where it is one scalar."""


@dataclass(frozen=True)
class LocatedYaml:
    """The value of a YAML document, and where its parts stand.

    `problems` are mistakes that leave the rest of the document readable: duplicate keys, keys that are no
    texts, tags, scalars that cannot be expanded. A document with any must not be used.
    """

    file: str
    value: JsonValue
    _places: _Places = field(repr=False, compare=False)
    problems: Sequence[Problem] = ()

    @cached_property
    def _written(self) -> Mapping[_Member, Path]:
        """Where the nodes are written of a document in which some stand at several paths."""
        paths: dict[_Member, Path] = {}
        for path, member in _members(self.value, ()) if self._places.has_aliases else ():
            paths.setdefault(self._origin(member), path)
        return paths

    def _origin(self, member: _Member) -> _Member:
        while member in self._places.merged:
            member = self._places.merged[member]
        return member

    def all_problems(self, collected: Iterable[Problem]) -> list[Problem]:
        """`problems` and those `found` in the content, in the order of the file, each once.

        Where reading already found a mistake, problems with the value left in its place are dropped.
        """
        known = {(problem.line, problem.path) for problem in self.problems}
        others = [problem for problem in collected if (problem.line, problem.path) not in known]
        return sorted(dict.fromkeys([*self.problems, *others]), key=lambda problem: problem.line)

    def line(self, path: Path) -> int:
        """The line of the node at `path`, or of its nearest ancestor that is there."""
        node, line = self.value, self._places.line
        for step in path:
            if _has(node, step):
                line = self._places.lines.get(id(node), {}).get(step, line)
                node = node[step]  # type: ignore[index]
        return line

    def problem(self, path: Path, message: str) -> Problem:
        """A problem with the node at `path`, or with its nearest ancestor that is there.

        Inside an anchor it is reported where it is written, so that it is one problem for all aliases.
        """
        node = self.value
        written: Path = ()
        for step in path:
            written = (*written, step)
            if _has(node, step):
                written = self._written.get(self._origin((id(node), step)), written)
                node = node[step]  # type: ignore[index]
        return Problem(self.file, self.line(path), path_text(written), message)

    def place_of(self, path: Path) -> Place | None:
        """The node at `path`, None if there is none."""
        node, reference = self.value, self._places.reference
        for step in path:
            if not _has(node, step):
                return None
            reference = self._places.references.get((id(node), step))
            node = node[step]  # type: ignore[index]
        return Place(self.line(path), node, reference)

    def paths(self) -> Iterator[Path]:
        """The paths of all nodes but the document itself, in order."""
        return (path for path, _ in _members(self.value, ()))

    def references(self, path: Path = ()) -> Iterator[tuple[Path, Place]]:
        """The scalars at `path` and below that hold environment variables, with their paths."""
        start = self.place_of(path)
        if start is None:
            return
        if start.reference is not None:
            yield path, start
        for inner, member in _members(start.value, path) if self._places.references else ():
            if member in self._places.references and (place := self.place_of(inner)):
                yield inner, place

    def without_environment(self, path: Path, message: str) -> str:
        """`message` with references in place of values that came from the environment.

        Looked at are the values at `path` and below; texts of less than four characters stay.
        """
        for _, place in self.references(path):
            if len(str(place.value)) > 3:
                message = message.replace(str(place.value), str(place.reference))
        return message


def _has(node: JsonValue, step: str | int) -> bool:
    if isinstance(node, dict):
        return step in node
    return isinstance(node, list) and isinstance(step, int) and step < len(node)


def _members(node: JsonValue, path: Path) -> Iterator[tuple[Path, _Member]]:
    """The nodes below `node`, which is at `path`, in order."""
    steps: Iterable[tuple[str | int, JsonValue]] = ()
    if isinstance(node, dict | list):
        steps = node.items() if isinstance(node, dict) else enumerate(node)
    for step, inner in steps:
        yield (*path, step), (id(node), step)
        yield from _members(inner, (*path, step))


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
    document = _json_line(text, file)
    if document is not None:
        return document
    reader = _Reader(file, expand or Expansion)
    try:
        return LocatedYaml(file, reader.read(text), reader.places, reader.problems)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = " ".join(part for part in (error.problem, error.context) if part)
        line = mark.line + 1 if mark else 0
        problem = Problem(file, line, "", f"not valid YAML: {what}{_syntax_hint(text, line)}")
    except yaml.YAMLError as error:
        problem = Problem(file, 0, "", f"not valid YAML: {error}")
    raise InvalidInput([*reader.problems, problem])


def _json_line(text: str, file: str) -> LocatedYaml | None:
    """The document where it is JSON on one line, as programs write it, in which nothing is special."""
    content = text.strip()
    if content[:1] not in ("{", "[") or "$$" in content or "${" in content or _SURROGATE.search(content):
        return None
    if len(content.splitlines()) > 1:
        return None
    try:
        value = json.loads(
            content,
            object_pairs_hook=_with_unique_keys,
            parse_float=plain_scalar,
            parse_constant=_not_plain,
        )
    except (ValueError, RecursionError):  # the other reader says what is wrong
        return None
    level = [value]
    for _ in range(MAX_DEPTH):
        members = (node.values() if isinstance(node, dict) else node for node in level)
        level = [inner for of_node in members for inner in of_node if isinstance(inner, dict | list)]
    if level:
        return None
    return LocatedYaml(file, value, _Places(1 + text.count("\n", 0, text.index(content[0]))))


def _with_unique_keys(members: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    unique = dict(members)
    return unique if len(unique) == len(members) else _not_plain()


def _not_plain(_: object = None) -> NoReturn:
    raise ValueError


class _Reader:
    """Builds values from parser events: those, unlike trees of nodes, come without recursion in C."""

    def __init__(self, file: str, expand: Callable[[str], Expansion]) -> None:
        self.problems: list[Problem] = []
        self.places = _Places()
        self._file = file
        self._expand = expand
        self._anchors: dict[str, tuple[JsonValue, str | None] | None] = {}
        self._path: list[str | int] = []
        self._aliased = 0
        """Nodes that aliases have added."""
        self._reference: str | None = None
        """What the last scalar refers to, until it is put where it belongs."""
        self._next: Callable[[], yaml.Event] = yaml.StreamEndEvent

    def read(self, text: str) -> JsonValue:
        if _SURROGATE.search(text):
            text = _SURROGATE_PAIR.sub(_join_surrogates, text)
        loader = _LOADER(text)
        self._next = loader.get_event
        value = None
        is_read = False
        try:
            while not isinstance(event := self._next(), yaml.StreamEndEvent):
                if isinstance(event, yaml.DocumentStartEvent):
                    if is_read:
                        self._stop(event, "expected one YAML document, found another")
                    is_read = True
                    event = self._next()
                    self.places.line = _line(event)
                    value = self._value(event)
                    self.places.reference = self._reference
        finally:
            loader.dispose()
        return value

    def _problem(self, event: yaml.Event, message: str) -> None:
        self.problems.append(Problem(self._file, _line(event), path_text(self._path), message))

    def _stop(self, event: yaml.Event, message: str) -> NoReturn:
        self._problem(event, message)
        raise InvalidInput(self.problems)

    def _value(self, event: yaml.Event) -> JsonValue:
        """The value that begins with `event`."""
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        if not isinstance(event, _NODES):
            self._stop(event, "expected a value")
        if event.tag is not None:
            self._problem(event, "YAML tags are not supported; put a text in quotes")
        anchor = event.anchor
        if anchor is not None:
            self._anchors[anchor] = None
        value: JsonValue
        if isinstance(event, yaml.ScalarEvent):
            value = self._scalar(event)
        else:
            if len(self._path) >= MAX_DEPTH:
                self._stop(event, f"nested more than {MAX_DEPTH} deep")
            value = self._sequence() if isinstance(event, yaml.SequenceStartEvent) else self._mapping()
        if anchor is not None:
            self._anchors[anchor] = value, self._reference
        return value

    def _alias(self, event: yaml.AliasEvent) -> JsonValue:
        name = event.anchor or ""
        if name not in self._anchors:
            self._stop(event, f'alias "*{name}" has no anchor "&{name}" before it')
        anchored = self._anchors[name]
        if anchored is None:
            self._stop(event, f'alias "*{name}" stands inside its own anchor')
        value, self._reference = anchored
        size, height = _extent(value)
        self.places.has_aliases = True
        self._aliased += size
        if self._aliased > MAX_ALIASED_NODES:
            self._stop(event, f"aliases repeat more than {MAX_ALIASED_NODES} values")
        if len(self._path) + height > MAX_DEPTH:
            self._stop(event, f"nested more than {MAX_DEPTH} deep")
        return value

    def _scalar(self, event: yaml.ScalarEvent) -> JsonValue:
        text: str = event.value
        is_plain: bool = event.implicit[0]
        try:
            if "$" in text:
                expansion = self._expand(text)
                is_plain = is_plain and (expansion.is_reference or expansion.text == text)
                value = plain_scalar(expansion.text) if is_plain else expansion.text
                self._reference = expansion.shown
                return value
            return plain_scalar(text) if is_plain else text
        except ValueError as error:
            self._problem(event, str(error))
            return text

    def _sequence(self) -> JsonValue:
        values: list[JsonValue] = []
        lines: dict[str | int, int] = {}
        path = self._path
        while (event := self._next()).__class__ is not yaml.SequenceEndEvent:
            position = len(values)
            lines[position] = _line(event)
            path.append(position)
            values.append(event.value if _is_text(event) else self._value(event))
            if self._reference is not None:
                self.places.references[id(values), position] = self._reference
                self._reference = None
            path.pop()
        self.places.lines[id(values)] = lines
        return values

    def _mapping(self) -> JsonValue:
        values: JsonObject = {}
        lines: dict[str | int, int] = {}
        merged: list[JsonObject] = []
        path = self._path
        while (key_event := self._next()).__class__ is not yaml.MappingEndEvent:
            key, is_merge = self._key(key_event)
            path.append(key)
            is_duplicate = not is_merge and key in values
            if is_duplicate:  # the first counts, so that its mistakes are reported as well
                self._problem(key_event, f"duplicate key, first on line {lines[key]}")
            event = self._next()
            value = event.value if _is_text(event) else self._value(event)
            if is_merge:
                merged += self._merged(key_event, value)
            elif not is_duplicate:
                values[key] = value
                lines[key] = _line(key_event)
            if self._reference is not None:
                if values.get(key) is value:
                    self.places.references[id(values), key] = self._reference
                self._reference = None
            path.pop()
        self.places.lines[id(values)] = lines
        for source in merged:  # keys written here win, then the earlier source
            self._merge(values, source)
        return values

    def _merge(self, values: JsonObject, source: JsonObject) -> None:
        places = self.places
        places.sources.append(source)
        for key in [key for key in source if key not in values]:
            values[key] = source[key]
            places.lines[id(values)][key] = places.lines[id(source)][key]
            places.merged[id(values), key] = id(source), key
            if (reference := places.references.get((id(source), key))) is not None:
                places.references[id(values), key] = reference

    def _key(self, event: yaml.Event) -> tuple[str, bool]:
        """The key that `event` stands for, and whether it is the merge key `<<`."""
        if _is_text(event):
            return event.value, False
        if not isinstance(event, yaml.ScalarEvent):
            self._stop(event, "a key must be a text")
        if event.implicit[0] and event.value == "<<":
            return event.value, True
        value = self._value(event)
        is_reference = self._reference is not None
        self._reference = None
        if isinstance(value, str):
            return value, False
        if is_reference:
            return event.value, False
        self._problem(event, f'a key must be a text: put "{event.value[:50]}" in quotes')
        return str(value), False

    def _merged(self, event: yaml.Event, value: JsonValue) -> list[JsonObject]:
        sources = value if isinstance(value, list) else [value]
        if all(isinstance(source, dict) for source in sources):
            return sources  # type: ignore[return-value]
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


def _extent(value: JsonValue) -> tuple[int, int]:
    """The nodes of `value` with aliases written out, and its height."""
    if not isinstance(value, dict | list):
        return 1, 0
    inner = list(map(_extent, value.values() if isinstance(value, dict) else value))
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
