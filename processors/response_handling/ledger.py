"""The ledger of evidence: every scalar that an agent could go by, with key, unit, record, path and source.

JSON in texts is parsed, MCP content unwrapped; CSV, Markdown, HTML and aligned tables, columns beside each
other and lines of `key: value` are read as records. A record is the nearest object, row or line. Records of
one list or map, and those of one tool over several calls, form groups.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple
from unicodedata import combining, normalize

from processors.comparison import value_written_in
from processors.model import JsonObject, JsonValue
from processors.response_handling.lexicons import keys, units
from processors.response_handling.lexicons.units import CURRENCIES, UNITS, Unit, key_words, unit_of_key
from processors.response_handling.reading import CalendarDay, Reader, Token, moment_of_number

MAX_OUTPUT_CHARACTERS: Final = 8_192
"""Answers that are longer are not checked."""
MAX_EVIDENCE_CHARACTERS: Final = 65_536
"""Characters of all texts and keys of the evidence together; with more, nothing is checked."""
MAX_TEXT_TOKENS: Final = 1_000
"""Numbers, dates and identifiers inside texts of the evidence; with more, nothing is checked."""
MAX_LEAVES: Final = 2_500
"""Values of the evidence; with more, nothing is checked."""
MAX_CALLS: Final = 200
"""Calls of one run; with more, nothing is checked."""
FROM_USER: Final = -1
"""The call of evidence that stands in no result: what people said, and all arguments."""

_CODE = re.compile(r"\b[A-Z]{3}\b")
_YEAR_MONTH = re.compile(r"((?:19|20)\d\d)-(0[1-9]|1[0-2])")
_OFFSET = re.compile(r"(?:UTC|GMT)?[+-]\d{2}:\d{2}")
_PLAIN_NUMBER = re.compile(r"\s?[-+]?\d{1,15}(?:\.\d{1,12})?\s?")
_AMBIGUOUS = re.compile(r"\s?(?:\d{1,3}\.\d{3}|00\d{0,15})\s?")
_RULE_LINE = re.compile(r"[\s|:+=-]{3,400}")
_COLUMNS = re.compile(r"\s{2,40}")
_DURATION = re.compile(r"P(?:(\d{1,4})D)?(?:T(?:(\d{1,4})H)?(?:(\d{1,5})M)?(?:(\d{1,6})S)?)?")
_MEMBER = re.compile(r"\s{0,8}([^\W\d][\w .-]{0,30}?)\s{0,8}(?::\s|=)\s{0,8}(\S.{0,300})")
_ROW_END = re.compile(r"</tr>", re.IGNORECASE)
_CELL_END = re.compile(r"</t[dh]>", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]{1,200}>")
_INDEX = re.compile(r"\[\d{1,6}\]")
_DROPPED = re.compile(r"[\s\-_‐-―−'‘’ʼ.,()\[\]{}\"#*]")
_LONGEST_HEADER = 40
_LARGE = 9_999
"""Numbers up to it (ten times it, in records within) are not scaled by what is said of a whole record."""


class OverLimitError(Exception):
    """The evidence or the answer is larger than what is checked; the message says which."""


class Leaf(NamedTuple):
    """One plain value as it stands in the evidence; `made_for` is the call that it was an argument of."""

    value: str | int | float | bool | None
    key: str
    path: str
    call: int
    record: int
    made_for: int = -1


@dataclass(slots=True)
class Quantity:
    """A number of the evidence. `is_whole`: it is the value of its member, not a number inside a text."""

    value: float
    key: str
    path: str
    call: int
    record: int
    made_for: int
    unit: Unit | None = None
    currencies: frozenset[str] = frozenset()
    is_minor: bool = False
    is_operand: bool = True
    is_whole: bool = True

    @property
    def base(self) -> float:
        """The value in the base unit of its dimension."""
        return self.value * self.unit.factors[0] if self.unit else self.value


class Moment(NamedTuple):
    """A date or a time of the evidence."""

    dates: tuple[CalendarDay, ...]
    minutes: int | None
    key: str
    path: str
    call: int
    record: int
    made_for: int = -1
    zone: str = ""
    is_exact: bool = True
    seconds: int = 0


class ListOf(NamedTuple):
    """A list of the evidence: its key and path, and how many items it has."""

    key: str
    path: str
    call: int
    length: int


@dataclass(slots=True)
class Record:
    """An object, a table row or a line of the evidence. Arguments label what their call returned."""

    index: int
    parent: int
    call: int
    group: str
    key: str
    path: str = ""
    leaves: list[Leaf] = field(default_factory=list)
    numbers: list[Quantity] = field(default_factory=list)
    labels: list[tuple[str, str]] = field(default_factory=list)
    unit: Unit | None = None
    """What a `unit` member here or above says of numbers without one."""
    scale: float = 1.0
    """By what large numbers are to be multiplied, as `USD thousands` says."""
    is_minor: bool = False


_Work = tuple[JsonValue, str, str, Record]


def folded(text: str) -> str:
    """`text` in one case and without white space, hyphens, dots and the like."""
    return _DROPPED.sub("", text.casefold())


def unaccented(text: str) -> str:
    """`text` in one case and without accents."""
    low = text.casefold()
    return low if low.isascii() else "".join(sign for sign in normalize("NFD", low) if not combining(sign))


class Ledger:
    """The evidence of one run; grows as values are added and is read when somebody asks.

    Raises:
        OverLimitError: on `add`, where there is more than can be checked in bounded time.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.leaves: list[Leaf] = []
        self.records: list[Record] = []
        self.quantities: list[Quantity] = []
        self.moments: list[Moment] = []
        self.lists: list[ListOf] = []
        self.ids: list[str] = []
        self.currencies: set[str] = set()
        self.keys: set[str] = set()
        self._characters = self._tokens = 0
        self._made_for = -1

    def add(self, value: JsonValue, call: int, name: str = "", labels: JsonObject | None = None) -> None:
        """Add a text or any JSON value; `labels`, the arguments, name the records of the result."""
        root = self._record(-1, call, name, name, "")
        root.labels = [(k, str(v)) for k, v in (labels or {}).items() if type(v) in (str, int)]
        stack: list[_Work] = [(unwrapped(value), "", "", root)]
        while stack:  # an explicit stack, since depth is the telemetry's choice
            value, key, path, record = stack.pop()
            value = (structured(value) or value) if isinstance(value, str) else value
            if isinstance(value, dict):
                stack.extend(self._members(value, key, path, record))
            elif isinstance(value, list):
                self._count(0, len(value))
                self.lists.append(ListOf(key or record.key, path, record.call, len(value)))
                stack.extend((value[n], key, f"{path}[{n}]", record) for n in reversed(range(len(value))))
            else:
                self._leaf(value, key, path, record)

    def add_arguments(self, arguments: JsonObject, call: int) -> None:
        """Add the arguments of a call: what the agent knew, but no result shows."""
        self._made_for = call
        self.add(arguments, FROM_USER)
        self._made_for = -1

    def _members(self, value: JsonObject, key: str, path: str, record: Record) -> Iterable[_Work]:
        self._count(sum(map(len, value)), len(value))
        value = _with_rows(value)
        self.keys.update(value)
        if path:
            is_of_map = not path.endswith("]") and record.group.endswith(".*")
            group = record.group if is_of_map else f"{record.group}.{key}" + "[]" * path.endswith("]")
            record = self._record(record.index, record.call, _INDEX.sub("[]", group), key, path)
            record.labels += [("", key)] if is_of_map else []
        inner = [member for member in value.values() if isinstance(member, dict)]
        if len(inner) > 1 and not inner[0].keys().isdisjoint(inner[1]):
            record.group += ".*"
        before, nested = len(record.numbers), list[_Work]()
        for name, member in value.items():
            where = f"{path}.{name}" if path else name
            member = (structured(member) or member) if isinstance(member, str) else member
            if isinstance(member, (dict, list)):
                nested.append((member, name, where, record))
            else:
                self._leaf(member, name, where, record)
        self._tell_of_units(value, record, record.numbers[before:])
        return reversed(nested)

    def _tell_of_units(self, value: JsonObject, record: Record, numbers: Sequence[Quantity]) -> None:
        """Give numbers what members such as `unit` and `currency` beside them say."""
        for key, member in value.items():
            if not isinstance(member, str) or len(member) > _LONGEST_HEADER:
                continue
            unit, scale, currencies = None, 1.0, frozenset[str]()
            is_minor = key.lower() in keys.UNIT_KEYS and not units.MINOR.isdisjoint(key_words(member))
            if key.lower() in keys.CURRENCY_KEYS:
                currencies = CURRENCIES.get(member.lower(), frozenset())
            elif key.lower() in keys.UNIT_KEYS or key_words(key)[-1:] in (("unit",), ("units",)):
                named = self._reader.words.units.get(member.lower())
                unit = units.unit_of_symbol(member) or (UNITS[named] if named else unit_of_key("x_" + member))
                scale = next((units.SCALES[word] for word in key_words(member) if word in units.SCALES), 1.0)
            if unit is None and scale == 1.0 and not currencies and not is_minor:
                continue
            self.currencies |= currencies
            record.unit, record.scale = unit or record.unit, scale
            record.is_minor = record.is_minor or is_minor
            for quantity in numbers:
                quantity.unit = quantity.unit or unit
                quantity.value *= scale if quantity.value > _LARGE else 1.0
                quantity.currencies = quantity.currencies or currencies
                quantity.is_minor = quantity.is_minor or is_minor

    def _record(self, parent: int, call: int, group: str, key: str, path: str) -> Record:
        record = Record(len(self.records), parent, call, group, key, path)
        if parent >= 0:
            above = self.records[parent]
            record.labels, record.unit, record.scale = above.labels[:8], above.unit, above.scale
            record.is_minor = above.is_minor
        self.records.append(record)
        return record

    def _count(self, characters: int, values: int) -> None:
        self._characters += characters
        if self._characters > MAX_EVIDENCE_CHARACTERS:
            raise OverLimitError(f"evidence of more than {MAX_EVIDENCE_CHARACTERS} characters")
        if len(self.leaves) + values > MAX_LEAVES:
            raise OverLimitError(f"evidence of more than {MAX_LEAVES} values")

    def _leaf(self, value: str | int | float | bool | None, key: str, path: str, record: Record) -> None:
        if isinstance(value, int) and value.bit_length() > 60:
            value = str(value)[:400]
        leaf = Leaf(value, key, path, record.call, record.index, self._made_for)
        self.leaves.append(leaf)
        record.leaves.append(leaf)
        if isinstance(value, str):
            self._count(len(value), 1)
            self._text(value, leaf)
        elif value is not None and not isinstance(value, bool) and abs(value) < 1e18:
            self._number(float(value), leaf)

    def _number(self, value: float, leaf: Leaf) -> None:
        words, unit = key_words(leaf.key), unit_of_key(leaf.key)
        named = (
            units.MINOR_OF.get(word, word if len(word) == 3 or not word.isascii() else "")
            for word in words[1:]
        )
        currencies = next((CURRENCIES[word] for word in named if word in CURRENCIES), frozenset[str]())
        moment = moment_of_number(value) if value == int(value) and not currencies else None
        if moment is not None:
            day, minutes = (moment.year, moment.month, moment.day), moment.hour * 60 + moment.minute
            self.moments.append(Moment((day,), minutes, *leaf[1:], "Z"))
        is_minor = not units.MINOR.isdisjoint(words)
        is_name = not keys.NO_OPERANDS.isdisjoint(words[-1:]) or leaf.key.lower() in ("month", "day", "room")
        for word in words:
            value *= units.SCALES.get(word, units.MYRIADS.get(word, 1.0) if units.YEN & {*words} else 1.0)
        is_operand = moment is None and (unit is not None or not is_name)
        self._add(Quantity(value, *leaf[1:], unit, currencies, is_minor, is_operand))

    def _add(self, quantity: Quantity) -> None:
        record = self.records[quantity.record]
        quantity.unit = quantity.unit or record.unit
        quantity.value *= record.scale if quantity.value > 10 * _LARGE else 1.0
        quantity.is_minor = quantity.is_minor or (record.is_minor and quantity.value == int(quantity.value))
        self.quantities.append(quantity)
        record.numbers.append(quantity)
        self.currencies |= quantity.currencies

    def _text(self, text: str, leaf: Leaf) -> None:
        for code in _CODE.findall(text[:2000]) if len(text) in (3, 7) or not text.isupper() else ():
            self.currencies |= CURRENCIES.get(code.lower(), frozenset())
        if len(text) < 20 and _PLAIN_NUMBER.fullmatch(text) and not _AMBIGUOUS.fullmatch(text):
            self.ids.append(text.strip())
            self._number(float(text), leaf)
        elif text[:1] == "P" and (match := _DURATION.fullmatch(text)) is not None:
            parts = zip(match.groups("0"), (86400, 3600, 60, 1), strict=True)
            self._add(Quantity(float(sum(int(n) * size for n, size in parts)), *leaf[1:], UNITS["s"]))
        elif (match := _YEAR_MONTH.fullmatch(text)) is not None:
            self.moments.append(Moment(((int(match[1]), int(match[2]), None),), None, *leaf[1:]))
        elif _OFFSET.fullmatch(text) is None:  # a difference from UTC is no time
            tokens = self._reader.read(text, is_spelled=leaf.call == FROM_USER)
            self._tokens += len(tokens)
            if self._tokens > MAX_TEXT_TOKENS:
                raise OverLimitError(f"evidence of more than {MAX_TEXT_TOKENS} numbers and dates in texts")
            for token in tokens:
                self._note(token, leaf, is_whole=len(token.text) * 2 > len(text))

    def _note(self, token: Token, leaf: Leaf, *, is_whole: bool) -> None:
        if token.kind == "number":
            is_name = not keys.NO_OPERANDS.isdisjoint(key_words(leaf.key)[-1:])
            is_operand = not is_name and (not token.is_spelled or leaf.call == FROM_USER)
            unit, currencies = token.unit or unit_of_key(leaf.key), token.currencies
            for value in token.values:
                value = token.total / token.unit.factors[0] if token.extra and token.unit else value
                value = -value if token.is_negative else value
                self._add(Quantity(value, *leaf[1:], unit, currencies, token.is_minor, is_operand, is_whole))
        elif token.kind in ("date", "time"):
            minutes = token.minutes if token.kind == "time" else None
            if minutes is not None and is_whole and not keys.LASTING.isdisjoint(key_words(leaf.key)):
                self._add(Quantity(minutes * 60.0, *leaf[1:], UNITS["s"]))
            self.moments.append(
                Moment(token.dates, minutes, *leaf[1:], token.zone, token.is_exact, token.seconds)
            )
        elif token.kind == "id":
            self.ids.append(token.text)

    @cached_property
    def text(self) -> str:
        """All values and keys, folded; nothing matches across two of them."""
        return folded("\0".join([str(leaf.value) for leaf in self.leaves] + [*self.keys]))

    @cached_property
    def groups(self) -> list[list[Record]]:
        """The records of results that have siblings: items of a list or map, results of one tool."""
        found: dict[str, list[Record]] = defaultdict(list)
        for record in self.records:
            if record.call >= 0 and record.leaves:
                found[record.group].append(record)
        return [records for records in found.values() if len(records) > 1]


def unwrapped(value: JsonValue) -> JsonValue:
    """What an MCP result holds, and what a text writes as JSON."""
    parts = value.get("content") if isinstance(value, dict) else None
    if isinstance(value, dict) and isinstance(parts, list):
        texts = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type") == "text"]
        is_mcp = value.keys() <= {"content", "isError", "structuredContent", "_meta"}
        if texts and is_mcp and all(isinstance(text, str) for text in texts):
            inner = [unwrapped(text) for text in texts]
            return inner[0] if len(inner) == 1 else inner
    is_json = isinstance(value, str) and value.lstrip()[:1] in ("{", "[")
    return value_written_in(value) if is_json and isinstance(value, str) else value


def _with_rows(value: JsonObject) -> JsonObject:
    """`value`, with rows under named columns, and columns of one length beside each other, as objects."""
    names = next((value[key] for key in ("columns", "headers", "fields", "header") if value.get(key)), None)
    for key in ("rows", "data", "values") if isinstance(names, list) else ():
        rows = value.get(key)
        if isinstance(names, list) and isinstance(rows, list) and rows:
            if all(isinstance(row, list) and len(row) == len(names) for row in rows):
                return {
                    **value,
                    key: [
                        dict(zip(map(str, names), row, strict=True)) for row in rows if isinstance(row, list)
                    ],
                }
    columns = {key: column for key, column in value.items() if isinstance(column, list) and len(column) > 1}
    is_plain = not any(isinstance(cell, (dict, list)) for column in columns.values() for cell in column)
    if len(columns) > 1 and len({len(column) for column in columns.values()}) == 1 and is_plain:
        cells = zip(*columns.values(), strict=True)
        rest = {key: member for key, member in value.items() if key not in columns}
        return {**rest, "": [dict(zip(columns, row, strict=True)) for row in cells]}
    return value


def structured(text: str) -> JsonValue:
    """JSON, or the rows of a table and the lines around it; None for anything else."""
    if text[:1] not in ("{", "[") and "\n" not in text and "<tr" not in text:
        return None
    value = value_written_in(text) if text.lstrip()[:1] in ("{", "[") else None
    if isinstance(value, (dict, list)):
        return value
    if "<tr" in text.lower():
        *rows, end = _ROW_END.split(text)
        cells = [[_TAG.sub("", cell).strip() for cell in _CELL_END.split(row)[:-1]] for row in rows]
        text = "\n".join([*(" | ".join(row) for row in cells), _TAG.sub(" ", end).strip()])
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) < 2:
        return None
    if all(line.lstrip()[:1] == "{" for line in lines):
        values = [value_written_in(line) for line in lines]
        if all(isinstance(value, dict) for value in values):
            return values
    members = {line: match for line in lines if (match := _MEMBER.fullmatch(line[:400]))}
    found: JsonObject = {match[1].strip(): match[2].strip() for match in members.values()}
    if len(members) * 2 > len(lines) and len(found) == len(members):
        return {**found, "": [line for line in lines if line not in members]}
    return next(
        filter(None, (_table(lines, mark) for mark in ("|", "\t", ";", ",", ""))), list[JsonValue](lines)
    )


def _table(lines: Sequence[str], mark: str) -> list[JsonValue]:
    """The rows of a table with a header whose cells `mark` parts (blanks, if empty), then the other lines."""
    header: list[str] = []
    rows: list[JsonValue] = []
    rest: list[JsonValue] = []
    indent = min(len(line) - len(line.lstrip()) for line in lines)
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        bare = line.strip().strip("|") if mark == "|" else line[indent:].rstrip()
        cells = [cell.strip() for cell in bare.split(mark)] if mark else _COLUMNS.split(bare)
        is_ruled = mark == "|" and _RULE_LINE.fullmatch(following[:400])
        is_header = len(cells) > 1 and all(0 < len(cell) < _LONGEST_HEADER for cell in cells[1:])
        is_header = is_header and not any(": " in cell or "**" in cell for cell in cells)  # lines of members
        is_header = is_header and (bool(mark) or not any(cell[:1].isdigit() for cell in cells))
        if _RULE_LINE.fullmatch(line[:400]):
            continue
        if (not header or is_ruled) and is_header and not any(map(_PLAIN_NUMBER.fullmatch, cells)):
            header = cells
        elif header and len(cells) == len(header):
            rows.append(dict(zip(header, cells, strict=True)))
        else:
            rest.append(line)
    return [*rows, *rest] if len(rows) > 1 and len(rest) <= len(rows) + 2 else []
