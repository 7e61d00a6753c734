"""Paths into JSON values as criteria write them: `flights[0].id`, `items[*].price`, `$.user["first name"]`.

The part of JSONPath (RFC 9535) that picks values by name, by position and all of them; no filters and no
descent, so a path costs what it picks.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from processors.model import JsonValue

_STEP = re.compile(
    r"""\.?\[(?:(?P<index>-?\d{1,9})|(?P<every>\*)|"(?P<double>[^"]*)"|'(?P<single>[^']*)')\]"""
    r"""|\.?(?P<name>[^.\[\]]+)"""
)


class _Every:
    """The step that stands for all members of a list or an object."""


EVERY: Final = _Every()

Step: TypeAlias = str | int | _Every

Place: TypeAlias = tuple[str | int, ...]
"""Where a value stands in another: names of members and positions in lists."""


@dataclass(frozen=True, slots=True)
class JsonPath:
    """A path; `text` is how it was written."""

    text: str
    steps: tuple[Step, ...]

    def values(self, root: JsonValue) -> list[JsonValue]:
        """The values of `root` that the path picks, in order; none where it leads nowhere.

        A name picks a member of an object, a number an entry of a list (from the end when negative), `*`
        all members of either. The empty path picks `root`.
        """
        values = [root]
        for step in self.steps:
            values = [member for value in values for member in _members(value, step)]
        return values

    def covers(self, place: Place) -> bool:
        """Whether `place` is one that the path picks, or lies inside one."""
        return len(self.steps) <= len(place) and all(
            isinstance(step, _Every) or step == name for step, name in zip(self.steps, place, strict=False)
        )


def parse_json_path(text: str) -> JsonPath:
    """The path that `text` writes; raises ValueError, which names the place, where it is none.

    A leading `$` is optional. Names stand between dots, or in brackets and quotes where they hold dots or
    brackets themselves.
    """
    rest = text[1:] if text == "$" or text.startswith(("$.", "$[")) else text
    steps: list[Step] = []
    position = 0
    while position < len(rest):
        match = _STEP.match(rest, position)
        if match is None:
            raise ValueError(
                f'"{text[:100]}" is no path: expected names between dots, [0], [*] or ["name"] '
                f"at character {len(text) - len(rest) + position + 1}"
            )
        steps.append(_step(match))
        position = match.end()
    return JsonPath(text, tuple(steps))


def leaves(value: JsonValue, place: Place = ()) -> Iterator[tuple[Place, str | int | float | bool | None]]:
    """The texts, numbers, booleans and nulls in `value`, each with its place, in order."""
    if isinstance(value, dict):
        for key, member in value.items():
            yield from leaves(member, (*place, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from leaves(item, (*place, index))
    else:
        yield place, value


def place_text(place: Place) -> str:
    """The path to `place`, as criteria would write it."""
    text = ""
    for step in place:
        if isinstance(step, int):
            text += f"[{step}]"
        elif not step or any(character in step for character in ".[]"):
            quote = "'" if '"' in step else '"'
            text += f"[{quote}{step}{quote}]"
        else:
            text += f".{step}" if text else step
    return text


def _step(match: re.Match[str]) -> Step:
    index = match["index"]
    if index is not None:
        return int(index)
    if match["every"] is not None or match["name"] == "*":
        return EVERY
    for group in ("double", "single"):
        if match[group] is not None:
            return match[group]
    return match["name"]


def _members(value: JsonValue, step: Step) -> list[JsonValue]:
    if isinstance(value, dict):
        if isinstance(step, _Every):
            return list(value.values())
        return [value[step]] if isinstance(step, str) and step in value else []
    if isinstance(value, list):
        if isinstance(step, _Every):
            return value
        if isinstance(step, int) and -len(value) <= step < len(value):
            return [value[step]]
    return []
