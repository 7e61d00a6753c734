"""Learned evaluations in a criteria file that is in use: replaced by new ones, line by line.

The text is edited rather than written anew, since comments and the way of writing are the user's. What comes
out is read again: unless everything written by hand is still there, the file is refused.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from processors.criteria import write_criteria, write_criteria_file
from processors.documents import InvalidInput, LocatedYaml, Path, read_yaml
from processors.learning.criteria_text import COMMENT, TEST_PREFIX, LearnedText
from processors.learning.rule import PREFIX
from processors.model import JsonValue

_ONE_LINE_EACH = "expected a list with a line for each member"


class _Edit(NamedTuple):
    """Lines from `start` to before `end` (from 0) become `lines`."""

    start: int
    end: int
    lines: Sequence[str]


def updated_file(text: str, file: str, learned: Mapping[str, LearnedText]) -> str:
    """The criteria file `text` with what was `learned` of each agent.

    Evaluations and tests of these agents with learned names are replaced where they are; what is new comes
    last. Every other line stays as it is. Raises InvalidInput where the text cannot be read, or is not
    written in blocks where something has to change.
    """
    document = read_yaml(text, file)
    if document.problems:
        raise InvalidInput(document.problems)
    lines = text.removesuffix("\n").split("\n")
    end_of_line = "\r" if lines[0].endswith("\r") else ""
    prefixes = (PREFIX, *(f"{TEST_PREFIX}{agent}: " for agent in learned))
    edits: list[_Edit] = []
    new_agents: list[str] = []
    for agent, fresh in learned.items():
        written = write_criteria(agent, fresh.entries).splitlines()
        if document.place_of(("agents", agent)) is None:
            new_agents += written[1:]
        elif document.place_of(("agents", agent, "evaluations")) is None:
            raise _refusal(document, ("agents", agent), "expected a list of evaluations")
        else:
            edits += _replaced(document, lines, ("agents", agent, "evaluations"), prefixes, written[3:], 6)
    if new_agents:
        edits.append(_after_agents(document, lines, new_agents))
    new_tests = [test for fresh in learned.values() for test in fresh.tests]
    tests = write_criteria_file({}, tests=new_tests).splitlines()[1:]
    if document.place_of(("tests",)) is not None:
        edits += _replaced(document, lines, ("tests",), prefixes, tests[1:], 2)
        tests = []
    for start, end, new in sorted(edits, key=lambda edit: edit[:2], reverse=True):
        lines[start:end] = [line.rstrip("\r") + end_of_line for line in new]
    updated = "\n".join([*lines, *(line + end_of_line for line in tests)]) + "\n"
    if _by_hand(read_yaml(updated, file).value, prefixes) != _by_hand(document.value, prefixes):
        problem = "learned criteria cannot be replaced without touching others: it is not written in blocks"
        raise _refusal(document, ("agents",), problem)
    return updated


def _refusal(document: LocatedYaml, path: Path, message: str) -> InvalidInput:
    return InvalidInput([document.problem(path, message)])


def _replaced(
    document: LocatedYaml,
    lines: Sequence[str],
    path: Path,
    prefixes: tuple[str, ...],
    new: Sequence[str],
    indent: int,
) -> Iterator[_Edit]:
    """The edits that put `new`, indented by `indent`, in the place of the learned members of a list."""
    place = document.place_of(path)
    assert place is not None
    items = place.value if isinstance(place.value, list) else []
    head = place.line - 1
    if not items:
        key = lines[head].split("#")[0].rstrip()
        if not key.endswith(("[]", ":")):
            raise _refusal(document, path, _ONE_LINE_EACH)
        if new:
            yield _Edit(head, head + 1, [key.removesuffix("[]").rstrip(), *new])
        return
    if not new and all(_is_learned(item, prefixes) for item in items):
        yield _Edit(head, _end_of_block(lines, head, _indent(lines[head])), [f"{lines[head].rstrip()} []"])
        return
    starts = [document.line((*path, index)) - 1 for index in range(len(items))]
    if any(not lines[start].lstrip().startswith("-") for start in starts):
        raise _refusal(document, path, _ONE_LINE_EACH)
    dash = _indent(lines[starts[0]])
    new = [_shifted(line, dash - indent) for line in new]
    ends = [*starts[1:], _end_of_block(lines, starts[-1], dash)]
    for item, start, end in zip(items, starts, ends, strict=True):
        if _is_learned(item, prefixes):
            yield _Edit(_with_comment(lines, start), _without_comments(lines, end), new)
            new = ()
    end = _without_comments(lines, ends[-1])
    yield _Edit(end, end, new)


def _is_learned(item: JsonValue, prefixes: tuple[str, ...]) -> bool:
    name = item.get("name") if isinstance(item, dict) else None
    return isinstance(name, str) and name.startswith(prefixes)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _has_content(line: str) -> bool:
    return not line.lstrip().startswith("#") and not line.isspace() and line != ""


def _end_of_block(lines: Sequence[str], start: int, indent: int) -> int:
    """The first line after `start` with content that is not indented by more than `indent`."""
    for index in range(start + 1, len(lines)):
        if _has_content(lines[index]) and _indent(lines[index]) <= indent:
            return index
    return len(lines)


def _without_comments(lines: Sequence[str], end: int) -> int:
    """`end` without the comments and empty lines before it."""
    while not _has_content(lines[end - 1]):
        end -= 1
    return end


def _with_comment(lines: Sequence[str], start: int) -> int:
    """Where the comment begins that was written with the learned entry at `start`."""
    index = start
    while index and lines[index - 1].lstrip().startswith("#"):
        index -= 1
        if lines[index].lstrip().startswith(f"# {COMMENT}"):
            return index
    return start


def _after_agents(document: LocatedYaml, lines: Sequence[str], new: Sequence[str]) -> _Edit:
    place = document.place_of(("agents",))
    agents = place.value if place and isinstance(place.value, dict) else {}
    first = min((document.line(("agents", name)) for name in agents), default=0) - 1
    indent = _indent(lines[first]) if first >= 0 else 0
    if place is None or not indent:
        raise _refusal(document, ("agents",), "expected agents with a line for each")
    end = _without_comments(lines, _end_of_block(lines, place.line - 1, indent - 1))
    return _Edit(end, end, [_shifted(line, indent - 2) for line in new])


def _shifted(line: str, by: int) -> str:
    return " " * by + line if by >= 0 else line[min(-by, _indent(line)) :]


def _by_hand(value: JsonValue, prefixes: tuple[str, ...]) -> JsonValue:
    """`value` without anything that was learned, and without what is empty then."""
    if isinstance(value, dict):
        members = {key: _by_hand(member, prefixes) for key, member in value.items()}
        return {key: member for key, member in members.items() if member not in ({}, [], None)}
    if isinstance(value, list):
        return [_by_hand(item, prefixes) for item in value if not _is_learned(item, prefixes)]
    return value
