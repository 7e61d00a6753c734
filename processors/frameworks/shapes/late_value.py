"""A captured value that is read only when somebody looks at it."""

from collections.abc import Callable
from typing import Protocol

from processors.model.agent_run import ValueState
from processors.model.json_value import JsonValue
from processors.model.values import DecodedValue


class CapturedValue(Protocol):
    """What is known of a value; see `DecodedValue`."""

    @property
    def value(self) -> JsonValue:
        """The value, while the state is `PRESENT`."""
        ...

    @property
    def text(self) -> str | None:
        """The text that it was read from."""
        ...

    @property
    def state(self) -> ValueState:
        """What is known."""
        ...


class LateValue:
    """Stands for the value that `read` gives; `read` is called at most once."""

    __slots__ = ("_found", "_read")

    def __init__(self, read: Callable[[], DecodedValue]) -> None:
        self._read = read
        self._found: DecodedValue | None = None

    def _now(self) -> DecodedValue:
        if self._found is None:
            self._found = self._read()
        return self._found

    @property
    def value(self) -> JsonValue:
        """The value, while the state is `PRESENT`."""
        return self._now().value

    @property
    def text(self) -> str | None:
        """The text that it was read from."""
        return self._now().text

    @property
    def state(self) -> ValueState:
        """What is known."""
        return self._now().state


def decoded(captured: CapturedValue) -> DecodedValue:
    """What is known now."""
    return DecodedValue(captured.value, captured.text, captured.state)
