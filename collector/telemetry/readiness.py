"""What must hold before the service may be sent traffic."""

from typing import NamedTuple


class Condition(NamedTuple):
    """One thing that must hold; `detail` says for people why it does not."""

    is_ready: bool
    detail: str = ""


class Readiness:
    """Named conditions, in the order in which they were first set; ready when every one holds."""

    def __init__(self) -> None:
        self._conditions: dict[str, Condition] = {}

    def set(self, name: str, ready: bool, detail: str = "") -> None:
        """State whether `name` holds."""
        self._conditions[name] = Condition(ready, detail)

    @property
    def is_ready(self) -> bool:
        """Whether every condition holds; not so before the first was set."""
        return bool(self._conditions) and all(condition.is_ready for condition in self._conditions.values())

    @property
    def conditions(self) -> dict[str, Condition]:
        """All conditions by name."""
        return dict(self._conditions)
