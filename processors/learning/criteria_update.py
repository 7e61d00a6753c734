"""Learned evaluations in a criteria file that is in use: exchanged for new ones, all else as it was."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from processors.documents import LocatedYaml, Path, ProblemsFound, read_yaml
from processors.importers import write_criteria, write_criteria_file
from processors.learning.criteria_text import COMMENT, TEST_PREFIX, LearnedText
from processors.learning.rule import PREFIX
from processors.model import JsonValue


@dataclass(frozen=True, slots=True)
class _Edit:
    """Lines from `start` to before `end` (from 0) become `lines`."""

    start: int
    end: int
    lines: Sequence[str]


def updated_file(text: str, file: str, learned: Mapping[str, LearnedText]) -> str:
    """The criteria file `text` with what was `learned` of each agent.

    Evaluations with learned names, and tests with learned names, of these agents are exchanged, where they
    stand; agents and tests that are new come last. Every other line stays as it is, comments included.

    Raises:
        ProblemsFound: the text cannot be read, or is not written in blocks where something has to change.
    """
    document = read_yaml(text, file)
    if document.problems:
        raise ProblemsFound(list(document.problems))
    lines = text.removesuffix("\n").split("\n")
    end_of_line = "\r" if lines[0].endswith("\r") else ""
    edits: list[_Edit] = []
    new_agents: list[str] = []
    for agent, found in learned.items():
        path: Path = ("agents", agent, "evaluations")
        if document.place_of(path) is None:
            if document.place_of(("agents", agent)) is not None:
                raise ProblemsFound([document.problem(("agents", agent), "expected a list of evaluations")])
            new_agents += write_criteria(agent, found.entries).splitlines()[1:]
            continue
        rendered = write_criteria(agent, found.entries).splitlines()[3:]
        edits += _exchange(document, lines, path, PREFIX, rendered, 6)
    tests = [line for found in learned.values() for line in _rendered_tests(found)]
    prefixes = tuple(f"{TEST_PREFIX}{agent}: " for agent in learned)
    if document.place_of(("tests",)) is not None:
        edits += _exchange(document, lines, ("tests",), prefixes, tests, 2)
        tests = []
    if new_agents:
        edits.append(_after_agents(document, lines, new_agents))
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end), reverse=True):
        lines[edit.start : edit.end] = [line.rstrip("\r") + end_of_line for line in edit.lines]
    if tests:
        lines += [line + end_of_line for line in ("tests:", *tests)]
    updated = "\n".join(lines) + "\n"
    if _by_hand(read_yaml(updated, file), prefixes) != _by_hand(document, prefixes):
        problem = "learned criteria cannot be exchanged without touching others: it is not written in blocks"
        raise ProblemsFound([document.problem(("agents",), problem)])
    return updated


def _rendered_tests(found: LearnedText) -> list[str]:
    return write_criteria_file({}, tests=found.tests).splitlines()[2:] if found.tests else []


def _exchange(
    document: LocatedYaml,
    lines: Sequence[str],
    path: Path,
    prefix: str | tuple[str, ...],
    rendered: Sequence[str],
    indent: int,
) -> list[_Edit]:
    """The edits that put `rendered` in the place of the members of a list with learned names."""
    place = document.place_of(path)
    assert place is not None
    items = place.value if isinstance(place.value, list) else []
    if not items:
        head = place.line - 1
        written = lines[head].split("#")[0].rstrip()
        if not written.endswith(("[]", ":")):
            raise ProblemsFound([document.problem(path, "expected a list with a line for each member")])
        key = written.removesuffix("[]").rstrip()
        return [_Edit(head, head + 1, [key, *rendered])] if rendered else []
    if not rendered and all(_is_learned(item, prefix) for item in items):
        head = place.line - 1
        end = _end_of_block(lines, head, len(lines[head]) - len(lines[head].lstrip()))
        return [_Edit(head, end, [f"{lines[head].rstrip()} []"])]
    starts = [place.children[index].line - 1 for index in range(len(items))]
    if any(not lines[start].lstrip().startswith("-") for start in starts):
        raise ProblemsFound([document.problem(path, "expected a list with a line for each member")])
    dash = len(lines[starts[0]]) - len(lines[starts[0]].lstrip())
    shifted = [_shifted(line, dash - indent) for line in rendered]
    edits: list[_Edit] = []
    for index, (item, start) in enumerate(zip(items, starts, strict=True)):
        if not _is_learned(item, prefix):
            continue
        end = starts[index + 1] if index + 1 < len(starts) else _end_of_block(lines, start, dash)
        while end > start + 1 and _says_nothing(lines[end - 1]):
            end -= 1
        edits.append(_Edit(_with_comment(lines, start), end, shifted))
        shifted = []
    if shifted:
        at = _end_of_block(lines, starts[-1], dash)
        while _says_nothing(lines[at - 1]):
            at -= 1
        edits.append(_Edit(at, at, shifted))
    return edits


def _is_learned(item: JsonValue, prefix: str | tuple[str, ...]) -> bool:
    name = item.get("name") if isinstance(item, dict) else None
    return isinstance(name, str) and name.startswith(prefix)


def _says_nothing(line: str) -> bool:
    stripped = line.lstrip()
    return not stripped or stripped.startswith("#")


def _end_of_block(lines: Sequence[str], start: int, indent: int) -> int:
    """The first line after `start` that says something and is not indented by more than `indent`."""
    for index in range(start + 1, len(lines)):
        line = lines[index]
        if not _says_nothing(line) and len(line) - len(line.lstrip()) <= indent:
            return index
    return len(lines)


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
    if place is None or not place.children:
        raise ProblemsFound([document.problem((), "expected agents with a line for each")])
    first = min(child.line for child in place.children.values()) - 1
    indent = len(lines[first]) - len(lines[first].lstrip())
    at = _end_of_block(lines, place.line - 1, indent - 1) if indent else 0
    if not at:
        raise ProblemsFound([document.problem(("agents",), "expected agents with a line for each")])
    while _says_nothing(lines[at - 1]):
        at -= 1
    return _Edit(at, at, [_shifted(line, indent - 2) for line in new])


def _shifted(line: str, by: int) -> str:
    if by >= 0:
        return " " * by + line
    return line[min(-by, len(line) - len(line.lstrip())) :]


def _by_hand(document: LocatedYaml, test_prefixes: tuple[str, ...]) -> JsonValue:
    """What the file says without anything that was learned."""
    value = document.value
    if not isinstance(value, dict):
        return value
    kept: dict[str, JsonValue] = {
        key: member for key, member in value.items() if key not in ("agents", "tests")
    }
    agents = value.get("agents")
    if isinstance(agents, dict):
        by_agent: dict[str, JsonValue] = {}
        for agent, entry in agents.items():
            listed = entry.get("evaluations") if isinstance(entry, dict) else None
            others = (
                [item for item in listed or [] if not _is_learned(item, PREFIX)]
                if isinstance(listed, list)
                else entry
            )
            if others:
                by_agent[agent] = others
        kept["agents"] = by_agent
    tests = value.get("tests")
    if isinstance(tests, list):
        by_hand: list[JsonValue] = [test for test in tests if not _is_learned(test, test_prefixes)]
        if by_hand:
            kept["tests"] = by_hand
    return kept
