"""Criteria that were found in other tools' files, what of those could not be carried over, and their writing.

They are written as people write them: YAML in blocks, short values on one line, with comments.
"""

import json
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from pydantic.alias_generators import to_camel

from processors.comparison import LITERAL, is_matcher
from processors.criteria import read_criteria
from processors.documents import Problem, ProblemsFound, plain_scalar
from processors.model import JsonObject, JsonValue

MAX_NAME_CHARACTERS = 200
EVERY_AGENT = "*"

_MAX_WIDTH = 110
_INDENT = 6
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*(?: [A-Za-z0-9_./-]+)*")
_BRACE = re.compile(r"(\$+)\{(env:)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedEvaluation:
    """One evaluation, as it is to stand in a criteria file.

    `origin` is the place it came from, a problem without a message. `comment` is for readers of the
    criteria file.
    """

    evaluator: str
    name: str
    origin: Problem
    config: JsonObject = field(default_factory=dict)
    criteria: JsonObject | None = None
    when: JsonObject | None = None
    pass_threshold: float | None = None
    comment: str = ""

    def entry(self) -> JsonObject:
        """The evaluation as a criteria file holds it; parts that say nothing are left out."""
        parts: JsonObject = {
            "evaluator": self.evaluator,
            "name": None if self.name == self.evaluator else self.name,
            "config": self.config or None,
            "criteria": self.criteria,
            "when": self.when,
            "pass_threshold": self.pass_threshold,
        }
        return {key: value for key, value in parts.items() if value is not None}


Imported: TypeAlias = ImportedEvaluation | Problem
"""An evaluation, or something that was not carried over: where it stands, and why."""


def usable(found: Iterable[Imported]) -> list[Imported]:
    """`found`, in its order, with names that are unique and a problem in place of what would not load.

    Every evaluation left is one that a criteria file may hold.
    """
    names: set[str] = set()
    named = [item if isinstance(item, Problem) else _named(item, names) for item in found]
    evaluations = [item for item in named if isinstance(item, ImportedEvaluation)]
    if _refusal(evaluations) is None:  # the usual case, and cheaper than one by one
        return named
    return [item if isinstance(item, Problem) else _checked(item) for item in named]


def as_literal(value: JsonValue) -> JsonValue:
    """`value` as an expected value that stands for itself, also where objects in it look like matchers."""
    if is_matcher(value):
        return {LITERAL: value}
    if isinstance(value, dict):
        return {key: as_literal(member) for key, member in value.items()}
    if isinstance(value, list):
        return [as_literal(member) for member in value]
    return value


def written_in_snake_case(
    written: Mapping[str, JsonValue], fields: Sequence[str]
) -> tuple[JsonObject, list[str]]:
    """The members of `written` that are among `fields`, by these names, and the keys of all others.

    Where a key is there in camelCase as well, that one counts; null is left out.
    """
    found = {name: written.get(to_camel(name), written.get(name)) for name in fields}
    spellings = {*fields, *map(to_camel, fields)}
    return (
        {name: value for name, value in found.items() if value is not None},
        [key for key in written if key not in spellings],
    )


def _named(item: ImportedEvaluation, taken: set[str]) -> ImportedEvaluation:
    """`item` with a name that is not among those `taken`, and now is."""
    name = item.name[:MAX_NAME_CHARACTERS]
    candidate, number = name, 2
    while candidate in taken:
        suffix = f" ({number})"
        candidate = name[: MAX_NAME_CHARACTERS - len(suffix)] + suffix
        number += 1
    taken.add(candidate)
    return replace(item, name=candidate)


def _checked(item: ImportedEvaluation) -> Imported:
    refusal = _refusal([item])
    if refusal is None:
        return item
    return replace(item.origin, message=f"{item.evaluator} cannot take this: {refusal}")


def _refusal(items: Sequence[ImportedEvaluation]) -> str | None:
    """Why a criteria file with `items` could not be read, in words that fit the first of them."""
    try:
        read_criteria(write_criteria(EVERY_AGENT, [item.entry() for item in items]), "", {})
    except ProblemsFound as found:
        start = f"agents.{EVERY_AGENT}.evaluations[0]"
        texts = [
            ": ".join(filter(None, (problem.path.removeprefix(start).lstrip("."), problem.message)))
            for problem in found.problems
        ]
        return "; ".join(texts)
    except ValueError as error:
        return str(error)
    return None


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

    An entry that is a text becomes a comment; `heading` are the comments at the top. The file reads back
    (`processors.criteria.criteria_file`) as exactly these values, whatever dollar signs are in them.

    Raises:
        ValueError: a text holds an even number of dollar signs before `{`, or a number is not finite: no
            criteria file can say that.
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
        line = f"{head} {_flow(member)}"
        if len(line) <= _MAX_WIDTH or not isinstance(member, dict | list) or not member:
            yield line
        else:
            yield head
            yield from _block(member, indent + 2)


def _item(value: JsonValue, indent: int) -> Iterator[str]:
    """The lines of one member of a list; an entry of a criteria file always takes a line for each key."""
    padding = " " * indent
    line = f"{padding}- {_flow(value)}"
    is_entry = indent == _INDENT
    if not isinstance(value, dict | list) or not value or (len(line) <= _MAX_WIDTH and not is_entry):
        yield line
        return
    lines = _block(value, indent + 2)
    yield f"{padding}- {next(lines)[indent + 2 :]}"
    yield from lines


def _flow(value: JsonValue) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_scalar(key)}: {_flow(member)}" for key, member in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return _scalar(value)


def _scalar(value: str | int | float | bool | None) -> str:
    if not isinstance(value, str):
        return json.dumps(value, allow_nan=False)
    if _PLAIN.fullmatch(value) and plain_scalar(value) == value:
        return value
    quoted = json.dumps(_BRACE.sub(_escaped, value), ensure_ascii=False)
    return "".join(character if character.isprintable() else _code(character) for character in quoted)


def _escaped(found: re.Match[str]) -> str:
    dollars, env = found.groups()
    if len(dollars) % 2 == 0:
        raise ValueError(f'a criteria file cannot say the text "{dollars}{{"')
    return f"${found.group()}" if env else found.group()


def _code(character: str) -> str:
    number = ord(character)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
