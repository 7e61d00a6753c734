"""Criteria files as people write them: YAML in blocks, short values on one line, with comments."""

import json
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence

from processors.documents import plain_scalar
from processors.model import JsonObject, JsonValue

EVERY_AGENT = "*"

_MAX_WIDTH = 110
_INDENT = 6
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*(?: [A-Za-z0-9_./-]+)*")
_BRACE = re.compile(r"(\$+)\{(env:)?")


def write_criteria(agent: str, entries: Sequence[JsonObject | str], heading: Sequence[str] = ()) -> str:
    """A criteria file with the evaluations of one agent; as `write_criteria_file`."""
    return write_criteria_file({agent: entries}, heading)


def write_criteria_file(
    agents: Mapping[str, Sequence[JsonObject | str]],
    heading: Sequence[str] = (),
    *,
    tests: Sequence[JsonObject] = (),
    tenant: str = "",
) -> str:
    """A criteria file with the evaluations of each agent, and with tests of them.

    An entry that is a text becomes a comment; `heading` are the comments at the top. The file reads back as
    exactly these values. Raises ValueError for what no criteria file can express: an even number of dollar
    signs before `{`, a number that is not finite.
    """
    lines = [line for text in heading for line in _comment(text, 0)]
    lines += [f"tenant: {_scalar(tenant)}"] if tenant else []
    lines.append("agents:")
    for agent, entries in agents.items():
        is_empty = all(isinstance(entry, str) for entry in entries)
        lines += [f"  {_scalar(agent)}:", "    evaluations: []" if is_empty else "    evaluations:"]
        for entry in entries:
            lines += _comment(entry, _INDENT) if isinstance(entry, str) else _item(entry, _INDENT)
    if tests:
        lines.append("tests:")
        for test in tests:
            first, *others = _block(test, 4)
            lines += [f"  - {first[4:]}", *others]
    return "\n".join(lines) + "\n"


def _comment(text: str, indent: int) -> list[str]:
    flat = "".join(character if character.isprintable() else " " for character in text)
    wrapped = textwrap.wrap(flat, _MAX_WIDTH - indent - 2, break_long_words=False, break_on_hyphens=False)
    return [f"{' ' * indent}# {line}" for line in wrapped]


def _block(value: JsonObject | list[JsonValue], indent: int) -> Iterator[str]:
    """The lines of an object or a list that is not empty, a member on each or more."""
    padding = " " * indent
    if isinstance(value, list):
        for member in value:
            yield from _item(member, indent)
        return
    for key, member in value.items():
        head = f"{padding}{_scalar(key)}:"
        line = f"{head} {flow_text(member)}"
        if len(line) <= _MAX_WIDTH or not isinstance(member, dict | list) or not member:
            yield line
        else:
            yield head
            yield from _block(member, indent + 2)


def _item(value: JsonValue, indent: int) -> Iterator[str]:
    """The lines of one member of a list; an entry of a criteria file always takes a line for each key."""
    padding = " " * indent
    line = f"{padding}- {flow_text(value)}"
    is_entry = indent == _INDENT
    if not isinstance(value, dict | list) or not value or (len(line) <= _MAX_WIDTH and not is_entry):
        yield line
        return
    lines = _block(value, indent + 2)
    yield f"{padding}- {next(lines)[indent + 2 :]}"
    yield from lines


def flow_text(value: JsonValue, is_quoted: bool = False) -> str:
    """A value on one line, with `is_quoted` as JSON has it; raises ValueError as `write_criteria_file`."""
    if isinstance(value, dict):
        members = (
            f"{_scalar(key, is_quoted)}: {flow_text(member, is_quoted)}" for key, member in value.items()
        )
        return "{" + ", ".join(members) + "}"
    if isinstance(value, list):
        return "[" + ", ".join([flow_text(member, is_quoted) for member in value]) + "]"
    return _scalar(value, is_quoted)


def _scalar(value: str | int | float | bool | None, is_quoted: bool = False) -> str:
    if not isinstance(value, str):
        return json.dumps(value, allow_nan=False)
    if not is_quoted and _PLAIN.fullmatch(value) and plain_scalar(value) == value:
        return value
    quoted = json.dumps(_BRACE.sub(_escaped, value), ensure_ascii=False)
    return "".join(character if character.isprintable() else _code(character) for character in quoted)


def _escaped(result: re.Match[str]) -> str:
    dollars, env = result.groups()
    if len(dollars) % 2 == 0:
        raise ValueError(f'a criteria file cannot express the text "{dollars}{{"')
    return f"${result.group()}" if env else result.group()


def _code(character: str) -> str:
    number = ord(character)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
