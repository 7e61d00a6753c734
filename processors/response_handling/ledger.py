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
from typing import Final

from processors.comparison import value_written_in
from processors.model import JsonObject, JsonValue
from processors.response_handling.lexicons.keys import CURRENCY_KEYS, NO_OPERANDS, UNIT_KEYS
from processors.response_handling.lexicons.units import (
    CURRENCIES,
    MINOR,
    MINOR_OF,
    UNITS,
    Unit,
    key_words,
    unit_of_key,
    unit_of_symbol,
)
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
_PLAIN_NUMBER = re.compile(r"\s?[-+]?\d{1,15}(?:\.\d{1,12})?\s?")
_AMBIGUOUS = re.compile(r"\s?(?:\d{1,3}\.\d{3}|00\d{0,15})\s?")
_RULE_LINE = re.compile(r"[\s|:+=-]{3,400}")
_COLUMNS = re.compile(r"\s{2,40}")
_DURATION = re.compile(r"P(?:(\d{1,4})D)?(?:T(?:(\d{1,4})H)?(?:(\d{1,5})M)?(?:(\d{1,6})S)?)?")
_MEMBER = re.compile(r"\s{0,8}([^\W\d][\w .-]{0,30}?)\s{0,8}(?::\s|=)\s{0,8}(\S.{0,300})")
_ROW_END = re.compile(r"</tr>", re.IGNORECASE)
_CELL_END = re.compile(r"</t[dh]>", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]{1,200}>")
_DROPPED = re.compile(r"[\s\-_‐-―−'‘’ʼ.,()\[\]{}\"#*]")
_SCALES = {
    "thousand": 1e3,
    "thousands": 1e3,
    "million": 1e6,
    "millions": 1e6,
    "billion": 1e9,
    "billions": 1e9,
}
_MYRIADS = {"man": 1e4, "wan": 1e4, "oku": 1e8}
"""Words that scale amounts of money in yen and yuan, and mean other things elsewhere."""
_LONGEST_HEADER = 40


class OverLimitError(Exception):
    """The evidence or the answer is larger than what is checked; the message says which."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One plain value as it stands in the evidence; `made_for` is the call that it was an argument of."""

    value: str | int | float | bool | None
    key: str
    path: str
    call: int
    record: int
    made_for: int = -1


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
    numbers: "list[Quantity]" = field(default_factory=list)
    labels: list[tuple[str, str]] = field(default_factory=list)


@dataclass(slots=True)
class Quantity:
    """A number of the evidence. `is_whole`: it is the value of its member, not a number inside a text."""

    value: float
    key: str
    path: str
    call: int
    record: int
    unit: Unit | None = None
    currencies: frozenset[str] = frozenset()
    is_minor: bool = False
    is_operand: bool = True
    is_whole: bool = True

    @property
    def base(self) -> float:
        """The value in the base unit of its dimension."""
        return self.value * self.unit.factors[0] if self.unit else self.value


@dataclass(slots=True)
class Moment:
    """A date or a time of the evidence."""

    dates: tuple[CalendarDay, ...]
    minutes: int | None
    key: str
    path: str
    call: int
    record: int = -1
    zone: str = ""
    is_exact: bool = True
    is_whole: bool = True


@dataclass(slots=True)
class ListOf:
    """A list of the evidence: its key and path, and how many items it has."""

    key: str
    path: str
    call: int
    length: int


def folded(text: str) -> str:
    """`text` in one case and without white space, hyphens, dots and the like."""
    return _DROPPED.sub("", text.casefold())


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

    def add(self, value: JsonValue, call: int, name: str = "", arguments: JsonObject | None = None,
            *, made_for: int = -1) -> None:  # fmt: skip
        """Add a text or any JSON value; `arguments` label the records of the call that returned it."""
        self._made_for = made_for
        root = self._record(-1, call, name, name, "")
        for key, member in (arguments or {}).items():
            if isinstance(member, (str, int)) and not isinstance(member, bool):
                root.labels.append((key, str(member)))
        stack: list[tuple[JsonValue, str, str, Record]] = [(unwrapped(value), "", "", root)]
        while stack:  # an explicit stack, since depth is the telemetry's choice
            value, key, path, record = stack.pop()
            if isinstance(value, str):
                value = structured(value) or value
            if isinstance(value, dict):
                stack.extend(self._members(value, key, path, record))
            elif isinstance(value, list):
                self._count(0, len(value))
                self.lists.append(ListOf(key or record.key, path, record.call, len(value)))
                stack.extend((value[n], key, f"{path}[{n}]", record) for n in reversed(range(len(value))))
            else:
                self._leaf(value, key, path, record)

    def _members(
        self, value: JsonObject, key: str, path: str, record: Record
    ) -> Iterable[tuple[JsonValue, str, str, Record]]:
        self._count(sum(map(len, value)), len(value))
        value = _with_rows(value)
        self.keys.update(value)
        if path:
            parent = self.records[record.index]
            is_of_map = not path.endswith("]") and parent.group.endswith(".*")
            group = parent.group if is_of_map else re.sub(r"\[\d{1,6}\]", "[]", f"{parent.group}.{key}")
            record = self._record(
                record.index, record.call, group + ("[]" if path.endswith("]") else ""), key, path
            )
            if is_of_map:
                record.labels.append(("", key))
        inner = [member for member in value.values() if isinstance(member, dict)]
        if len(inner) > 1 and not inner[0].keys().isdisjoint(inner[1]):
            record.group += ".*"
        unit, scale, currencies = self._of_members(value)
        before = len(record.numbers)
        nested: list[tuple[JsonValue, str, str, Record]] = []
        for name, member in value.items():
            where = f"{path}.{name}" if path else name
            if isinstance(member, str):
                member = structured(member) or member
            if isinstance(member, (dict, list)):
                nested.append((member, name, where, record))
            else:
                self._leaf(member, name, where, record)
        for quantity in record.numbers[before:]:
            quantity.unit = quantity.unit or unit
            quantity.value *= scale if quantity.value > 9999 or scale == 1.0 else 1.0
            quantity.currencies = quantity.currencies or currencies
        return reversed(nested)

    def _of_members(self, value: JsonObject) -> tuple[Unit | None, float, frozenset[str]]:
        """What members such as `unit` and `currency` say of the numbers beside them."""
        unit, scale, currencies = None, 1.0, frozenset[str]()
        for key, member in value.items():
            if not isinstance(member, str) or len(member) > _LONGEST_HEADER:
                continue
            if key.lower() in CURRENCY_KEYS:
                currencies = CURRENCIES.get(member.lower(), frozenset())
            elif key.lower() in UNIT_KEYS or key_words(key)[-1:] in (("unit",), ("units",)):
                named = self._reader.words.units.get(member.lower())
                unit = unit_of_symbol(member) or (UNITS[named] if named else unit_of_key("x_" + member))
                scale = next((_SCALES[word] for word in key_words(member) if word in _SCALES), 1.0)
        self.currencies |= currencies
        return unit, scale, currencies

    def _record(self, parent: int, call: int, group: str, key: str, path: str) -> Record:
        record = Record(len(self.records), parent, call, group, key, path)
        if parent >= 0:
            record.labels = self.records[parent].labels[:8]
        self.records.append(record)
        return record

    def _count(self, characters: int, values: int) -> None:
        self._characters += characters
        if self._characters > MAX_EVIDENCE_CHARACTERS:
            raise OverLimitError(f"evidence of more than {MAX_EVIDENCE_CHARACTERS} characters")
        if len(self.leaves) + values > MAX_LEAVES:
            raise OverLimitError(f"evidence of more than {MAX_LEAVES} values")

    def _leaf(self, value: str | int | float | bool | None, key: str, path: str, record: Record) -> None:
        if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 60:
            value = str(value)[:400]
        leaf = Leaf(value, key, path, record.call, record.index, self._made_for)
        self.leaves.append(leaf)
        record.leaves.append(leaf)
        if isinstance(value, str):
            self._count(len(value), 1)
            self._text(value, leaf, record)
        elif value is not None and not isinstance(value, bool) and abs(value) < 1e18:
            self._number(float(value), leaf, record)

    def _number(self, value: float, leaf: Leaf, record: Record) -> None:
        words, unit = key_words(leaf.key), unit_of_key(leaf.key)
        named = (
            MINOR_OF.get(word, word if len(word) == 3 or not word.isascii() else "") for word in words[1:]
        )
        currencies = next((CURRENCIES[word] for word in named if word in CURRENCIES), frozenset())
        moment = moment_of_number(value) if value == int(value) and not currencies else None
        if moment is not None:
            day = (moment.year, moment.month, moment.day)
            minutes = moment.hour * 60 + moment.minute
            self.moments.append(Moment((day,), minutes, leaf.key, leaf.path, leaf.call, leaf.record, "Z"))
        is_yen = not {"yen", "jpy", "yuan", "cny", "rmb"}.isdisjoint(words)
        scaled = value
        for word in words:
            scaled *= _SCALES.get(word, _MYRIADS.get(word, 1.0) if is_yen else 1.0)
        is_name = NO_OPERANDS & {*words[-1:]} or leaf.key.lower() in ("month", "day", "room")
        self._add(Quantity(
            scaled, leaf.key, leaf.path, leaf.call, leaf.record, unit, currencies,
            is_minor=value == int(value) and not MINOR.isdisjoint(words),
            is_operand=moment is None and (unit is not None or not is_name),
        ), record)  # fmt: skip

    def _add(self, quantity: Quantity, record: Record) -> None:
        self.quantities.append(quantity)
        record.numbers.append(quantity)
        self.currencies |= quantity.currencies

    def _text(self, text: str, leaf: Leaf, record: Record) -> None:
        for code in _CODE.findall(text[:2000]) if len(text) in (3, 7) or not text.isupper() else ():
            self.currencies |= CURRENCIES.get(code.lower(), frozenset())
        if len(text) < 20 and _PLAIN_NUMBER.fullmatch(text) and not _AMBIGUOUS.fullmatch(text):
            self.ids.append(text.strip())
            self._number(float(text), leaf, record)
            return
        if text[:1] == "P" and (match := _DURATION.fullmatch(text)) is not None:
            parts = zip(match.groups(), (86400, 3600, 60, 1), strict=True)
            seconds = float(sum(int(number) * size for number, size in parts if number))
            self._add(Quantity(seconds, leaf.key, leaf.path, leaf.call, leaf.record, UNITS["s"]), record)
            return
        tokens = self._reader.read(text)
        self._tokens += len(tokens)
        if self._tokens > MAX_TEXT_TOKENS:
            raise OverLimitError(f"evidence of more than {MAX_TEXT_TOKENS} numbers and dates in texts")
        for token in tokens:
            self._note(token, leaf, record, is_whole=len(token.text) * 2 > len(text))

    def _note(self, token: Token, leaf: Leaf, record: Record, *, is_whole: bool) -> None:
        if token.kind == "number":
            is_name = bool(NO_OPERANDS & {*key_words(leaf.key)[-1:]})
            is_operand = not is_name and (not token.is_spelled or leaf.call == FROM_USER)
            unit = token.unit or unit_of_key(leaf.key)
            for value in token.values:
                value = token.total / token.unit.factors[0] if token.extra and token.unit else value
                self._add(Quantity(
                    -value if token.is_negative else value, leaf.key, leaf.path, leaf.call, leaf.record, unit,
                    token.currencies, token.is_minor, is_operand, is_whole,
                ), record)  # fmt: skip
        elif token.kind in ("date", "time"):
            minutes = token.minutes if token.kind == "time" else None
            self.moments.append(Moment(
                token.dates, minutes, leaf.key, leaf.path, leaf.call, leaf.record, token.zone, token.is_exact, is_whole
            ))  # fmt: skip
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
            if record.call >= 0 and (record.leaves or record.numbers):
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
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        return value_written_in(value)
    return value


def _with_rows(value: JsonObject) -> JsonObject:
    """`value`, with rows under named columns, and columns of one length beside each other, as objects."""
    names = next((value[key] for key in ("columns", "headers", "fields", "header") if value.get(key)), None)
    for key in ("rows", "data", "values") if isinstance(names, list) else ():
        rows = value.get(key)
        if isinstance(names, list) and isinstance(rows, list) and rows:
            if all(isinstance(row, list) and len(row) == len(names) for row in rows):
                made = [dict(zip(map(str, names), row, strict=True)) for row in rows if isinstance(row, list)]
                return {**value, key: [*made]}
    columns = {key: column for key, column in value.items() if isinstance(column, list) and len(column) > 1}
    sizes = {len(column) for column in columns.values()}
    if len(columns) > 1 and len(sizes) == 1:
        if not any(isinstance(cell, (dict, list)) for column in columns.values() for cell in column):
            rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
            return {**{key: member for key, member in value.items() if key not in columns}, "": [*rows]}
    return value


def structured(text: str) -> JsonValue:
    """JSON, or the rows of a table and the lines around it; None for anything else."""
    if text[:1] not in "{[" and "\n" not in text and "<tr" not in text:
        return None
    if text.lstrip()[:1] in ("{", "["):
        value = value_written_in(text)
        if isinstance(value, (dict, list)):
            return value
    if "<tr" in text.lower():
        *rows, rest = _ROW_END.split(text)
        cells = [[_TAG.sub("", cell).strip() for cell in _CELL_END.split(row)[:-1]] for row in rows]
        text = "\n".join([*(" | ".join(row) for row in cells), _TAG.sub(" ", rest).strip()])
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) < 2:
        return None
    members = {line: match for line in lines if (match := _MEMBER.fullmatch(line[:400]))}
    names = {match[1] for match in members.values()}
    if len(members) * 2 > len(lines) and len(names) == len(members):
        rest_of: list[JsonValue] = [line for line in lines if line not in members]
        return {
            **{m[1].strip(): m[2].strip() for m in members.values()},
            **({"": rest_of} if rest_of else {}),
        }
    for mark in ("|", "\t", ";", ",", ""):
        found = _table(lines, mark)
        if found:
            return found
    return [*lines]


def _table(lines: Sequence[str], mark: str) -> list[JsonValue]:
    """The rows of a table with a header whose cells `mark` parts (blanks, if empty), then the other lines."""
    header: list[str] = []
    rows: list[JsonValue] = []
    rest: list[JsonValue] = []
    for place, line in enumerate(lines):
        if _RULE_LINE.fullmatch(line[:400]):
            continue
        bare = line.strip().strip("|") if mark == "|" else line.strip()
        cells = [cell.strip() for cell in bare.split(mark)] if mark else _COLUMNS.split(bare)
        is_ruled = place + 1 < len(lines) and mark == "|" and _RULE_LINE.fullmatch(lines[place + 1][:400])
        if (
            (not header or is_ruled)
            and len(cells) > 1
            and all(cells)
            and max(map(len, cells)) < _LONGEST_HEADER
        ):
            if not any(_PLAIN_NUMBER.fullmatch(cell) for cell in cells):
                header = cells
                continue
        if header and len(cells) == len(header):
            rows.append(dict(zip(header, cells, strict=True)))
        else:
            rest.append(line)
    return [*rows, *rest] if len(rows) > 1 and len(rest) <= len(rows) + 2 else []
