"""Single keys of evaluations in a criteria file, set and removed; everything else stays as it is written.

The text is edited at the places of its nodes rather than written anew, since comments and layout are the
user's. What comes out is read again: if more than the requested change differs, the file is refused.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import yaml

from processors.criteria.criteria_file import evaluator_id
from processors.criteria.criteria_writer import flow_text
from processors.documents import InvalidInput, LocatedYaml, Path, read_yaml
from processors.model import JsonObject, JsonValue

Change: TypeAlias = Mapping[str, JsonValue]
"""New values by key of an evaluation; None removes the key."""


class _Edit(NamedTuple):
    """The characters from `start` to before `end` become `text`."""

    start: int
    end: int
    text: str


def evaluation_name(entry: Mapping[str, JsonValue]) -> str:
    """The name of an evaluation as a criteria file writes it; empty if it has none."""
    name, evaluator = entry.get("name"), entry.get("evaluator")
    return name if isinstance(name, str) else evaluator_id(evaluator) if isinstance(evaluator, str) else ""


def edit_evaluations(text: str, file: str, change: Callable[[str, JsonObject], Change | None]) -> str:
    """The criteria file `text` with the changes to its evaluations.

    `change` is called with the agent and the entry of each evaluation, and returns what is to change in it.
    `file` is the name in messages. Raises InvalidInput where the text cannot be read, or where a change is
    impossible without touching anything else: behind an alias or a merge key, or around a comment.
    """
    document = read_yaml(text, file)
    if document.problems:
        raise InvalidInput(document.problems)
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    expected: Any = json.loads(json.dumps(document.value))  # without what aliases share
    edits: list[_Edit] = []
    for path, entry in _entries(document):
        changes = change(str(path[1]), entry)
        node = _node(root, path) if changes else None
        for key, value in (changes or {}).items():
            if not isinstance(node, yaml.MappingNode):
                raise _refusal(document, path)
            edits += _edits(text, node, key, value, lambda path=path: _refusal(document, path))  # type: ignore[misc]
            target = expected["agents"][path[1]]["evaluations"][path[3]]
            if value is None:
                target.pop(key, None)
            else:
                target[key] = value
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    if read_yaml(text, file).value != expected:
        raise _refusal(document, ("agents",))
    return text


def _refusal(document: LocatedYaml, path: Path) -> InvalidInput:
    message = "cannot be changed without touching what is written around it: edit it by hand"
    return InvalidInput([document.problem(path, message)])


def _entries(document: LocatedYaml) -> Iterator[tuple[Path, JsonObject]]:
    content = document.value
    agents = content.get("agents") if isinstance(content, dict) else None
    for name, agent in agents.items() if isinstance(agents, dict) else ():
        entries = agent.get("evaluations") if isinstance(agent, dict) else None
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            if isinstance(entry, dict):
                yield ("agents", name, "evaluations", index), entry


def _node(node: yaml.Node | None, path: Path) -> yaml.Node | None:
    for step in path:
        if isinstance(node, yaml.MappingNode):
            node = next((value for key, value in node.value if key.value == step), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int):
            node = node.value[step]
        else:
            return None
    return node


def _edits(
    text: str, entry: yaml.MappingNode, key: str, value: JsonValue, refusal: Callable[[], InvalidInput]
) -> Iterator[_Edit]:
    pairs = entry.value
    position = next((at for at, (name, _) in enumerate(pairs) if name.value == key), None)
    is_quoted = pairs[0][0].style == '"'  # as in JSON
    if position is None:
        if value is not None:
            yield _inserted(text, entry, f"{flow_text(key, is_quoted)}: {flow_text(value, is_quoted)}")
        return
    name, old = pairs[position]
    if value is not None:
        yield _Edit(name.end_mark.index, _end(text, old), f": {flow_text(value, is_quoted)}")
        return
    start, end = name.start_mark.index, _end(text, old)
    line = text.rfind("\n", 0, start) + 1
    if not entry.flow_style and text[line:start].isspace():  # a line or more of its own
        yield _Edit(line, _end_of_line(text, end), "")
        return
    if entry.flow_style and position:
        start = _end(text, pairs[position - 1][1])
    elif position + 1 < len(pairs):
        end = pairs[position + 1][0].start_mark.index
    if "#" in text[start : name.start_mark.index] + text[_end(text, old) : end]:
        raise refusal()
    yield _Edit(start, end, "")


def _inserted(text: str, entry: yaml.MappingNode, written: str) -> _Edit:
    """A new key after the name of an evaluation, or else after its evaluator."""
    known = {name.value: (name, value) for name, value in entry.value}
    name, value = known.get("name") or known.get("evaluator") or entry.value[0]
    end = _end(text, value)
    if entry.flow_style:
        return _Edit(end, end, f", {written}")
    line = _end_of_line(text, end)
    end_of_line = "\r\n" if text[:line].endswith("\r\n") else "\n"
    before = "" if text[:line].endswith("\n") else end_of_line
    return _Edit(line, line, f"{before}{' ' * name.start_mark.column}{written}{end_of_line}")


def _end(text: str, node: yaml.Node) -> int:
    """Where a value ends: the marks of blocks are behind the comments and empty lines after them."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    return node.start_mark.index + len(text[node.start_mark.index : node.end_mark.index].rstrip())


def _end_of_line(text: str, position: int) -> int:
    """Behind the end of the line of `position`."""
    return (text.find("\n", position) + 1) or len(text)
