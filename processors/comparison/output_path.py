"""Paths into an agent's output: `answer`, `answer.city`, `items[0].name`, and `*` for all of it."""

import re

from processors.model.evaluation_error import EvaluationError
from processors.model.json_value import JsonValue

WHOLE_OUTPUT = "*"

_STEP = re.compile(r"\[([0-9]+)\]|([^.\[\]]+)")


class OutputPathError(EvaluationError):
    """A value has nothing at the path that criteria name."""


class OutputPath:
    """Where in an output a value stands.

    A path is read from left to right: characters other than `.`, `[` and `]` are the key of an object,
    digits in brackets the position in a list, counted from 0. Further dots say nothing (`a..b` is `a.b`),
    so a key that has a dot or a bracket in it cannot be reached. `*` is the whole output.
    """

    def __init__(self, text: str) -> None:
        """Read a path; raises ValueError when there is no key and no position in it."""
        self.text = text
        self._steps: list[str | int] = []
        if text == WHOLE_OUTPUT:
            return
        for index, key in _STEP.findall(text):
            self._steps.append(int(index) if index else key)
        if not self._steps:
            raise ValueError(f'expected "{WHOLE_OUTPUT}" or a path such as "answer" or "items[0].name"')

    @property
    def is_whole(self) -> bool:
        """True for `*`."""
        return not self._steps

    @property
    def is_one_key(self) -> bool:
        """True when the path is a single key, written as it stands in the object."""
        return self._steps == [self.text]

    def resolve(self, output: JsonValue) -> JsonValue:
        """The value at this path; raises OutputPathError where there is none."""
        value = output
        for step in self._steps:
            if isinstance(step, str):
                if not isinstance(value, dict):
                    raise OutputPathError(f'no "{self.text}": "{step}" is asked of {kind_of(value)}')
                if step not in value:
                    raise OutputPathError(f'no "{self.text}": there is no key "{step}"')
                value = value[step]
            else:
                if not isinstance(value, list):
                    raise OutputPathError(f'no "{self.text}": entry [{step}] is asked of {kind_of(value)}')
                if step >= len(value):
                    raise OutputPathError(f'no "{self.text}": the list has no entry [{step}]')
                value = value[step]
        return value


def kind_of(value: JsonValue) -> str:
    """What kind of value this is, for messages: "an object", "a list", "a text", ..."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, str):
        return "a text"
    if isinstance(value, dict):
        return "an object"
    return "a list" if isinstance(value, list) else "a number"
