"""The ledger of evidence: every scalar that an agent could go by, with key, unit, record, path and source.

JSON in texts is parsed, MCP content unwrapped; CSV, Markdown and aligned tables, rows under named columns and
lines of `key: value` are read as records. A record is the nearest object, row or line. Records of one list or
map, and those of one tool over several calls, form groups. Evidence is in order: what a user wrote, the
arguments of each call, then its result.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from processors.comparison import value_written_in
from processors.model import JsonObject, JsonValue, OverLimitError, late

MAX_EVIDENCE_CHARACTERS: Final = 65_536
"""Characters of all texts and keys of the evidence together; with more, nothing is checked."""
MAX_LEAVES: Final = 2_500
"""Values of the evidence; with more, nothing is checked."""
FROM_USER: Final = -1
"""The call of evidence that stands in no result: what people wrote, and all arguments."""

PLAIN_NUMBER: Final = re.compile(r"\s?[-+]?\d{1,15}(?:\.\d{1,12})?\s?")
_RULE_LINE = re.compile(r"[\s|:+=-]{3,400}")
_COLUMNS = re.compile(r"\s{2,40}")
_MEMBER = re.compile(r"\s{0,8}([^\W\d][\w .-]{0,30}?)\s{0,8}(?::\s|=)\s{0,8}(\S.{0,300})")
_INDEX = re.compile(r"\[\d{1,6}\]")
_DROPPED: Final = dict.fromkeys(
    map(ord, re.findall(r"[\s\-_‐-―−'‘’ʼ.,()\[\]{}\"#*]", "".join(map(chr, range(0x3001)))))
)
_LONGEST_HEADER = 40


class Leaf(NamedTuple):
    """One plain value as it stands in the evidence, in the record with this index."""

    value: str | int | float | bool | None
    key: str
    path: str
    call: int
    record: int


@dataclass(slots=True)
class Record:
    """An object, a table row or a line of the evidence; `parent` is the index of the one around it, or -1."""

    index: int
    parent: int
    call: int
    group: str
    key: str
    path: str = ""
    leaves: list[Leaf] = field(default_factory=list)


_Work = tuple[JsonValue, str, str, Record]


def folded(text: str) -> str:
    """`text` in one case and without white space, hyphens, dots and the like."""
    return text.casefold().translate(_DROPPED)


class Ledger:
    """The evidence of one run so far, of at most so many characters and values.

    Raises:
        OverLimitError: on `add`, if there is more.
    """

    def __init__(self, most_characters: int = MAX_EVIDENCE_CHARACTERS, most_values: int = MAX_LEAVES) -> None:
        self.leaves: list[Leaf] = []
        self.records: list[Record] = []
        self.lists: list[tuple[str, int]] = []
        """The lists of the evidence: key, and how many items."""
        self.texts: list[str] = []
        """Every value as text, and every key where it first stands."""
        self.characters = 0
        self._most_characters, self._most_values = most_characters, most_values
        self._keys: set[str] = set()
        self._folded, self._folded_texts = "", 0

    def add(self, value: JsonValue, call: int, name: str = "") -> None:
        """Add a text or any JSON value, after what the run had before."""
        stack: list[_Work] = [(unwrapped(value), "", "", self._record(-1, call, name, name, ""))]
        while stack:  # an explicit stack, since depth is the telemetry's choice
            value, key, path, record = stack.pop()
            value = (structured(value) or value) if isinstance(value, str) else value
            if isinstance(value, dict):
                stack.extend(self._members(value, key, path, record))
            elif isinstance(value, list):
                self._count(0, len(value))
                self.lists.append((key or record.key, len(value)))
                stack.extend((value[n], key, f"{path}[{n}]", record) for n in reversed(range(len(value))))
            else:
                self._leaf(value, key, path, record)

    def _members(self, value: JsonObject, key: str, path: str, record: Record) -> Iterable[_Work]:
        self._count(sum(map(len, value)), len(value))
        value = _with_rows(value)
        self.texts += [key for key in value if key not in self._keys]
        self._keys.update(value)
        if path:
            is_of_map = not path.endswith("]") and record.group.endswith(".*")
            group = record.group if is_of_map else f"{record.group}.{key}" + "[]" * path.endswith("]")
            record = self._record(record.index, record.call, _INDEX.sub("[]", group), key, path)
        inner = [member for member in value.values() if isinstance(member, dict)]
        if len(inner) > 1 and not inner[0].keys().isdisjoint(inner[1]):
            record.group += ".*"
        nested = list[_Work]()
        for name, member in value.items():
            where = f"{path}.{name}" if path else name
            member = (structured(member) or member) if isinstance(member, str) else member
            if isinstance(member, (dict, list)):
                nested.append((member, name, where, record))
            else:
                self._leaf(member, name, where, record)
        return reversed(nested)

    def _record(self, parent: int, call: int, group: str, key: str, path: str) -> Record:
        record = Record(len(self.records), parent, call, group, key, path)
        self.records.append(record)
        return record

    def _count(self, characters: int, values: int) -> None:
        self.characters += characters
        if self.characters > self._most_characters:
            raise OverLimitError(f"evidence of more than {self._most_characters} characters")
        if len(self.leaves) + values > self._most_values:
            raise OverLimitError(f"evidence of more than {self._most_values} values")

    def _leaf(self, value: str | int | float | bool | None, key: str, path: str, record: Record) -> None:
        if isinstance(value, int) and value.bit_length() > 60:
            value = str(value)[:400]
        leaf = Leaf(value, key, path, record.call, record.index)
        self.leaves.append(leaf)
        record.leaves.append(leaf)
        self.texts.append(str(value))
        if isinstance(value, str):
            self._count(len(value), 1)

    @property
    def text(self) -> str:
        """All values and keys so far, folded; nothing matches across two of them."""
        if self._folded_texts < len(self.texts):
            fresh = folded("\0".join(self.texts[self._folded_texts :]))
            self._folded, self._folded_texts = f"{self._folded}\0{fresh}", len(self.texts)
        return self._folded

    @late
    def groups(self) -> list[list[Record]]:
        """The records of results that have siblings: items of a list or map, results of one tool."""
        groups: dict[str, list[Record]] = defaultdict(list)
        for record in self.records:
            if record.call >= 0 and record.leaves:
                groups[record.group].append(record)
        return [records for records in groups.values() if len(records) > 1]


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
    """`value`, with rows under named columns, as databases return them, as objects."""
    names = value.get("columns") or value.get("headers") or value.get("fields")
    for key in ("rows", "data", "values") if isinstance(names, list) else ():
        rows = value.get(key)
        if not (isinstance(names, list) and isinstance(rows, list) and rows):
            continue
        named = [dict(zip(map(str, names), row, strict=False)) for row in rows if isinstance(row, list)]
        if len(named) == len(rows):
            return {**value, key: [*named]}
    return value


def structured(text: str) -> JsonValue:
    """JSON, or the rows of a table and the lines around it; None for anything else."""
    if text[:1] not in ("{", "[") and "\n" not in text:
        return None
    value = value_written_in(text) if text.lstrip()[:1] in ("{", "[") else None
    if isinstance(value, (dict, list)):
        return value
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) < 2:
        return None
    if all(line.lstrip()[:1] == "{" for line in lines):
        values = [value_written_in(line) for line in lines]
        if all(isinstance(value, dict) for value in values):
            return values
    members = {line: match for line in lines if (match := _MEMBER.fullmatch(line[:400]))}
    members_read: JsonObject = {match[1].strip(): match[2].strip() for match in members.values()}
    if len(members) * 2 > len(lines) and len(members_read) == len(members):
        return {**members_read, "": [line for line in lines if line not in members]}
    return next(
        filter(None, (_table(lines, mark) for mark in ("|", "\t", ";", ",", ""))), list[JsonValue](lines)
    )


def _table(lines: Sequence[str], mark: str) -> list[JsonValue]:
    """The rows of a table with a header whose cells `mark` parts (blanks, if empty), then the other lines."""
    if mark and sum(mark in line for line in lines) < 2:
        return []
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
        if (not header or is_ruled) and is_header and not any(map(PLAIN_NUMBER.fullmatch, cells)):
            header = cells
        elif header and len(cells) == len(header):
            rows.append(dict(zip(header, cells, strict=True)))
        else:
            rest.append(line)
    return [*rows, *rest] if len(rows) > 1 and len(rest) <= len(rows) + 2 else []
