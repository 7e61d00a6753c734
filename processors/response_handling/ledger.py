"""The ledger of evidence: every scalar that an agent could go by, with its unit, record, path and source.

JSON in texts is parsed, MCP content unwrapped, and CSV, Markdown, HTML and aligned tables are read as
rows. A record
is the nearest object, table row or line; records of one list, and those of one tool over several calls,
form groups.
"""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from processors.comparison import value_written_in
from processors.model import JsonObject, JsonValue
from processors.response_handling.lexicons.keys import (
    CURRENCY_KEYS,
    LABEL_KEYS,
    NAME_KEYS,
    NO_OPERANDS,
    UNIT_KEYS,
)
from processors.response_handling.lexicons.units import (
    CURRENCIES,
    MINOR,
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

MAX_MATCHES: Final = 60
"""Numbers of the evidence that are looked at for one reading of a number of the answer."""

FROM_USER: Final = -1
"""The call of evidence that stands in no result: what people said, and all arguments."""

_CODE = re.compile(r"\b[A-Z]{3}\b")
_WHOLE_NUMBER = re.compile(r"\s?[-+]?\d{1,15}(?:\.\d{1,12})?\s?")
_PIPE_RULE = re.compile(r"[\s|:+=-]{3,400}")
_COLUMNS = re.compile(r"\s{2,40}")
_DURATION = re.compile(r"P(?:(\d{1,4})D)?(?:T(?:(\d{1,4})H)?(?:(\d{1,5})M)?(?:(\d{1,6})S)?)?")
_MEMBER = re.compile(r"\s{0,8}([^\W\d][\w .-]{0,30}?)\s{0,8}(?::\s|=)\s{0,8}(\S.{0,300})")
_ROW_END = re.compile(r"</tr>", re.IGNORECASE)
_CELL_END = re.compile(r"</t[dh]>", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]{1,200}>")
_DROPPED = re.compile(r"[\s\-_‐-―−'‘’ʼ.,()\[\]{}\"#*]")
_LABEL_WORD = re.compile(r"[^\W_]{1,40}")
_SCALE_WORDS = {
    "thousand": 1e3,
    "thousands": 1e3,
    "million": 1e6,
    "millions": 1e6,
    "billion": 1e9,
    "billions": 1e9,
}
_MYRIADS = {"man": 1e4, "wan": 1e4, "oku": 1e8}
"""Words that scale amounts of money in yen and yuan, and mean other things elsewhere."""


class OverLimitError(Exception):
    """The evidence or the answer is larger than what is checked; the message says which."""


@dataclass(slots=True)
class Record:
    """An object, a table row or a line of the evidence; `labels` are the words that name it."""

    index: int
    parent: int
    call: int
    group: str
    key: str
    texts: list[tuple[str, str]] = field(default_factory=list)
    numbers: "list[Quantity]" = field(default_factory=list)
    flags: list[tuple[str, bool]] = field(default_factory=list)
    is_item: bool = False
    made_for: int = -1
    """Of arguments: the call that was made with them."""


@dataclass(slots=True)
class Quantity:
    """A number of the evidence. `key` is the member's, `path` where it stands, `call` whose it is."""

    value: float
    key: str
    path: str
    call: int
    record: int
    unit: Unit | None = None
    currencies: frozenset[str] = frozenset()
    is_minor: bool = False
    is_operand: bool = True
    is_member: bool = True
    """Whether it is the whole value of a member, not a number inside a text."""
    made_for: int = -1

    @property
    def dimension(self) -> str:
        """What may be added up with it: a dimension, `money`, or nothing known."""
        return "money" if self.currencies or self.is_minor else self.unit.dimension if self.unit else ""


@dataclass(slots=True)
class Moment:
    """A date or a time of the evidence."""

    dates: tuple[CalendarDay, ...]
    minutes: int | None
    key: str
    path: str
    call: int
    record: int
    zone: str = ""
    is_exact: bool = True
    is_whole: bool = True
    """Whether it is the whole value of a member, not a part of a longer text."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One plain value as it stands in the evidence."""

    value: str | int | float | bool | None
    key: str
    path: str
    call: int
    record: int
    made_for: int = -1


@dataclass(slots=True)
class ListOf:
    """A list of the evidence: its key and path, how many items, and which records they are."""

    key: str
    path: str
    call: int
    length: int
    records: list[int]
    values: list[JsonValue]


def folded(text: str) -> str:
    """`text` in one case and without white space, hyphens, dots and the like."""
    return _DROPPED.sub("", text.casefold())


class Ledger:
    """The evidence of one run; grows as values are added and is read when somebody asks.

    Raises:
        OverLimitError: on `add`, where there is more than can be checked in bounded time.
    """

    def __init__(self, reader: Reader, most_characters: int = MAX_EVIDENCE_CHARACTERS) -> None:
        self._reader = reader
        self._most = most_characters
        self.leaves: list[Leaf] = []
        self.records: list[Record] = []
        self.quantities: list[Quantity] = []
        self.moments: list[Moment] = []
        self.lists: list[ListOf] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.currencies: set[str] = set()
        self.keys: set[str] = set()
        self._characters = self._tokens = 0

    def add(self, value: JsonValue, call: int, name: str = "", arguments: JsonObject | None = None,
            *, made_for: int = -1) -> None:  # fmt: skip
        """Add a text or any JSON value; `arguments` label the records of the call that returned it."""
        root = self._record(-1, call, name, name)
        root.made_for = made_for
        if arguments and call >= 0:
            root.texts.extend(
                (key, str(value)) for key, value in arguments.items() if isinstance(value, (str, int))
            )
        self._take(unwrapped(value), "", "", root)

    def _record(self, parent: int, call: int, group: str, key: str) -> Record:
        record = Record(len(self.records), parent, call, group, key)
        record.made_for = self.records[parent].made_for if parent >= 0 else -1
        self.records.append(record)
        return record

    def _count(self, characters: int, values: int) -> None:
        self._characters += characters
        if self._characters > self._most:
            raise OverLimitError(f"evidence of more than {self._most} characters")
        if len(self.leaves) + values > MAX_LEAVES:
            raise OverLimitError(f"evidence of more than {MAX_LEAVES} values")

    def _take(self, value: JsonValue, key: str, path: str, record: Record) -> None:
        """Take `value` apart; an explicit stack, since depth is the telemetry's choice."""
        stack: list[tuple[JsonValue, str, str, Record]] = [(value, key, path, record)]
        while stack:
            value, key, path, record = stack.pop()
            if isinstance(value, dict):
                self._count(sum(map(len, value)), len(value))
                value = _with_rows(value)
                self.keys.update(value)
                inner = (
                    record
                    if not path
                    else self._record(record.index, record.call, f"{record.group}.{key}", key)
                )
                inner.is_item = inner.is_item or path.endswith("]")
                if path.endswith("]") and self.lists:
                    self._item_of(path, inner)
                self._note_money(value, record.call)
                for name, member in reversed(value.items()):
                    stack.append((member, name, f"{path}.{name}" if path else name, inner))
            elif isinstance(value, list):
                self._count(0, len(value))
                if record.call >= 0:
                    self.lists.append(ListOf(key or record.key, path, record.call, len(value), [], value))
                stack.extend(
                    (member, key, f"{path}[{number}]", record)
                    for number, member in reversed([*enumerate(value)])
                )
            elif isinstance(value, str):
                self._count(len(value), 1)
                parsed = (
                    _structured(value)
                    if len(value) > 1 and ("\n" in value or value[:1] in "{[" or "<tr" in value)
                    else None
                )
                if parsed is not None:
                    stack.append((parsed, key, path, record))
                else:
                    self._text(value, key, path, record)
            else:
                self._scalar(value, key, path, record)

    def _item_of(self, path: str, record: Record) -> None:
        owner = path[: path.rfind("[")]
        for entry in reversed(self.lists[-8:]):
            if entry.path == owner and entry.call == record.call:
                entry.records.append(record.index)
                return

    def _note_money(self, value: JsonObject, call: int) -> None:
        for key, member in value.items():
            if isinstance(member, str) and len(member) < 20 and key.lower() in CURRENCY_KEYS:
                self.currencies |= CURRENCIES.get(member.lower(), frozenset())
            for word in key_words(key)[1:]:
                if len(word) == 3 and word in CURRENCIES:
                    self.currencies |= CURRENCIES[word]

    def _scalar(self, value: bool | int | float | None, key: str, path: str, record: Record) -> None:
        if isinstance(value, int) and value.bit_length() > 60 and not isinstance(value, bool):
            self._text(str(value)[:400], key, path, record)
            return
        self.leaves.append(Leaf(value, key, path, record.call, record.index, record.made_for))
        if isinstance(value, bool):
            record.flags.append((key, value))
        elif value is not None and abs(value) < 1e18:
            self._quantity(float(value), key, path, record)

    def _quantity(self, value: float, key: str, path: str, record: Record) -> None:
        words = key_words(key)
        unit = unit_of_key(key)
        currencies: frozenset[str] = frozenset()
        for word in words[1:]:
            if len(word) == 3 and word in CURRENCIES:
                currencies = CURRENCIES[word]
        is_minor = value == int(value) and not MINOR.isdisjoint(words)
        is_name = key.lower() in ("month", "day", "room", "exp_month", "exp_day")
        is_operand = not (is_name or NO_OPERANDS & {*words[-1:]}) or unit is not None
        moment = moment_of_number(value) if value == int(value) and not currencies else None
        if moment is not None:
            day = (moment.year, moment.month, moment.day)
            self.moments.append(
                Moment((day,), moment.hour * 60 + moment.minute, key, path, record.call, record.index, "Z")
            )
            is_operand = False
        for word in words:
            value *= _SCALE_WORDS.get(word, 1.0)
            if not {"yen", "jpy", "yuan", "cny", "rmb"}.isdisjoint(words):
                value *= _MYRIADS.get(word, 1.0)
        quantity = Quantity(
            value,
            key,
            path,
            record.call,
            record.index,
            unit,
            currencies,
            is_minor,
            is_operand,
            made_for=record.made_for,
        )
        self._add(quantity, record)

    def _add(self, quantity: Quantity, record: Record) -> None:
        quantity.made_for = record.made_for
        self.quantities.append(quantity)
        record.numbers.append(quantity)

    def _text(self, text: str, key: str, path: str, record: Record) -> None:
        self.leaves.append(Leaf(text, key, path, record.call, record.index, record.made_for))
        record.texts.append((key, text))
        for code in _CODE.findall(text[:2000]) if text.upper() != text or len(text) in (3, 7) else ():
            self.currencies |= CURRENCIES.get(code.lower(), frozenset())
        if len(text) < 20 and _WHOLE_NUMBER.fullmatch(text) and not text.strip().startswith("0" * 2):
            self.ids.append(text.strip())
            self._quantity(float(text), key, path, record)
            return
        if text[:1] == "P" and (match := _DURATION.fullmatch(text)) is not None:
            parts = zip(match.groups(), (86400, 3600, 60, 1), strict=True)
            self._add(
                Quantity(
                    float(sum(int(n) * s for n, s in parts if n)),
                    key,
                    path,
                    record.call,
                    record.index,
                    UNITS["s"],
                ),
                record,
            )
            return
        tokens = self._reader.read(text)
        self._tokens += len(tokens)
        if self._tokens > MAX_TEXT_TOKENS:
            raise OverLimitError(f"evidence of more than {MAX_TEXT_TOKENS} numbers and dates in texts")
        for token in tokens:
            self._note(token, key, path, record, is_whole=len(token.text) * 2 > len(text))
        if len(text) < 40 and (key.lower() in UNIT_KEYS or key_words(key)[-1:] in (("unit",), ("units",))):
            unit = unit_of_symbol(text) or next(
                (UNITS[s] for w, s in self._reader.words.units.items() if w == text.lower()), None
            )
            unit = unit or unit_of_key("x_" + text)
            for word in key_words(text):
                if word in _SCALE_WORDS:
                    self._scales[record.index] = _SCALE_WORDS[word]
                self.currencies |= CURRENCIES.get(word, frozenset()) if len(word) == 3 else frozenset()
            if unit is not None:
                for quantity in record.numbers:
                    quantity.unit = quantity.unit or unit
                record.flags.append(("\0unit", True))
                self._units[record.index] = unit

    @cached_property
    def _scales(self) -> dict[int, float]:
        return {}

    @cached_property
    def _units(self) -> dict[int, Unit]:
        return {}

    def _note(self, token: Token, key: str, path: str, record: Record, *, is_whole: bool) -> None:
        call, index = record.call, record.index
        if token.kind == "number":
            words = key_words(key)
            unit = token.unit or unit_of_key(key)
            self.currencies |= token.currencies
            for value in token.values:
                quantity = Quantity(
                    -value if token.is_negative else value, key, path, call, index, unit, token.currencies, token.is_minor,  # noqa: E501
                    not (NO_OPERANDS & {*words[-1:]}) and (not token.is_spelled or call == FROM_USER), is_whole,  # noqa: E501
                )  # fmt: skip
                self._add(quantity, record)
            for value, other in token.extra:
                self.quantities.append(Quantity(value, key, path, call, index, other))
            if token.extra and token.unit is not None:
                total = token.values[0] * token.unit.factors[0] + sum(
                    v * u.factors[0] for v, u in token.extra
                )
                self.quantities.append(Quantity(total, key, path, call, index, UNITS["s"]))
        elif token.kind in ("date", "time"):
            minutes = token.minutes if token.kind == "time" else None
            self.moments.append(
                Moment(token.dates, minutes, key, path, call, index, token.zone, token.is_exact, is_whole)
            )
        elif token.kind == "id":
            self.ids.append(token.text)
        else:
            self.addresses.append(token.text.lower())

    def finish(self) -> None:
        """Give records the units that their own `unit` members name."""
        for index, unit in self._units.items():
            for quantity in self.records[index].numbers:
                quantity.unit = quantity.unit or unit
            for child in self.records:
                if child.parent == index:
                    for quantity in child.numbers:
                        quantity.unit = quantity.unit or unit

        for index, scale in self._scales.items():
            for record in self.records:
                if index in (record.index, record.parent):
                    for quantity in record.numbers:
                        if quantity.value > 9999:
                            quantity.value *= scale

    @cached_property
    def _by_value(self) -> tuple[list[float], list[Quantity]]:
        ordered = sorted(self.quantities, key=lambda quantity: abs(quantity.value))
        return [abs(quantity.value) for quantity in ordered], ordered

    def between(self, lowest: float, highest: float) -> list[Quantity]:
        """The first numbers, without their sign, from `lowest` to `highest`."""
        values, ordered = self._by_value
        start = bisect_left(values, lowest)
        return ordered[start : min(bisect_right(values, highest), start + MAX_MATCHES)]

    @cached_property
    def folded_texts(self) -> str:
        """All values and keys, folded; nothing matches across two of them."""
        joined = "\0".join([str(leaf.value) for leaf in self.leaves] + [*self.keys])
        return folded(joined)

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of all texts and keys, in lower case."""
        joined = " ".join([str(leaf.value) for leaf in self.leaves] + [*self.keys])
        return frozenset(
            word.lower() for word in _LABEL_WORD.findall(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", joined))
        )

    @cached_property
    def result_lists(self) -> list[ListOf]:
        """The lists of results, those of one tool over several calls included."""
        return [entry for entry in self.lists if entry.call >= 0]

    @cached_property
    def groups(self) -> dict[str, list[Record]]:
        """Records that have siblings: items of a list, members of a map, results of one tool.

        By their group.
        """
        found: dict[str, list[Record]] = defaultdict(list)
        for record in self.records:
            if record.call >= 0 and (record.texts or record.numbers or record.flags):
                parent = self.records[record.parent].group if record.parent >= 0 else ""
                found[record.group if record.is_item or record.parent < 0 else parent + ".*"].append(record)
        return {name: records for name, records in found.items() if len(records) > 1}

    def labels(self, record: Record, *, names_only: bool = False) -> set[str]:
        """The words that name a record: of its texts, of its map key, and of the objects that hold it.

        With `names_only` of those texts alone whose keys say that they are names.
        """
        words = {
            word.lower()
            for key, text in record.texts
            if len(text) < 120 and (not names_only or NAME_KEYS & {*key_words(key)})
            for word in _LABEL_WORD.findall(text)
        }
        if record.parent >= 0 and not record.is_item:
            words.update(key_words(record.key))
        for quantity in record.numbers:
            if quantity.key.lower() in LABEL_KEYS and quantity.value == int(quantity.value):
                words.add(str(int(quantity.value)))
        if record.parent >= 0 and not self.records[record.parent].is_item and len(self.records) > 2:
            parent = self.records[record.parent]
            words.update(
                word.lower()
                for key, text in parent.texts
                if len(text) < 60
                for word in _LABEL_WORD.findall(text)
            )
        return words


def unwrapped(value: JsonValue) -> JsonValue:
    """What an MCP result holds, and what a text writes as JSON."""
    parts = value.get("content") if isinstance(value, dict) else None
    if isinstance(value, dict) and isinstance(parts, list):
        texts = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type") == "text"]
        if (
            texts
            and all(isinstance(text, str) for text in texts)
            and set(value) <= {"content", "isError", "structuredContent", "_meta"}
        ):
            inner = [unwrapped(text) for text in texts]
            return inner[0] if len(inner) == 1 else inner
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        return value_written_in(value)
    return value


def _with_rows(value: JsonObject) -> JsonObject:
    """`value`, with rows of values under named columns as objects."""
    names = value.get("columns") or value.get("headers") or value.get("fields") or value.get("header")
    if isinstance(names, list) and all(isinstance(name, str) for name in names) and names:
        for key in ("rows", "data", "values"):
            rows = value.get(key)
            if (
                isinstance(rows, list)
                and rows
                and all(isinstance(row, list) and len(row) == len(names) for row in rows)
            ):
                return {
                    **value,
                    key: [
                        dict(zip(map(str, names), row, strict=True)) for row in rows if isinstance(row, list)
                    ],
                }
    return value


def _structured(text: str) -> JsonValue:
    """JSON, or the rows of a table and the lines around it; None for anything else."""
    if text.lstrip()[:1] in ("{", "["):
        value = value_written_in(text)
        if isinstance(value, (dict, list)):
            return value
    if "<tr" in text.lower():
        rows = _ROW_END.split(text)
        text = "\n".join(
            " | ".join(_TAG.sub("", c).strip() for c in _CELL_END.split(row)[:-1]) for row in rows[:-1]
        )
        text += "\n" + _TAG.sub(" ", rows[-1]).strip()
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) < 2:
        return None
    members = [match for line in lines if (match := _MEMBER.fullmatch(line[:400]))]
    if len(members) * 2 > len(lines) and len({match[1] for match in members}) == len(members):
        rest: list[JsonValue] = [line for line in lines if not _MEMBER.fullmatch(line[:400])]
        return {**{match[1].strip(): match[2].strip() for match in members}, **({"": rest} if rest else {})}
    for mark in ("|", "\t", ";", ",", ""):
        rows, rest = _rows(lines, mark)
        if len(rows) > 1:
            return [*rows, *rest]
    return [*lines] if len(lines) > 1 else None


def _rows(lines: Sequence[str], mark: str) -> tuple[list[JsonValue], list[JsonValue]]:
    """The rows of a table with a header whose cells `mark` parts (blanks, if empty), and the other lines."""
    header: list[str] = []
    rows: list[JsonValue] = []
    rest: list[JsonValue] = []
    for line in lines:
        if mark and mark not in line and not _PIPE_RULE.fullmatch(line) and (rows or not header):
            rest.append(line)
            continue
        if _PIPE_RULE.fullmatch(line[:400]):
            if mark == "|" and len(rows) > 1 and (last := rows.pop()) and isinstance(last, dict):
                header = [str(cell) for cell in last.values()]
            continue
        cells = (
            [cell.strip() for cell in (line.strip().strip("|") if mark == "|" else line.strip()).split(mark)]
            if mark
            else _COLUMNS.split(line.strip())
        )
        if not header:
            if (
                len(cells) > 1
                and all(cells)
                and not any(_WHOLE_NUMBER.fullmatch(cell) for cell in cells)
                and all(len(cell) < 40 for cell in cells)
            ):
                header = cells
            else:
                rest.append(line)
        elif len(cells) == len(header):
            rows.append(dict(zip(header, cells, strict=True)))
        else:
            rest.append(line)
    return (rows, rest) if len(rows) >= 1 and len(rest) <= len(rows) + 2 else ([], [])
