"""When two spellings mean one tool, and which calls criteria speak of."""

import re
from collections.abc import Iterable, Sequence

from processors.model.agent_run import AgentRun, CallCategory, ToolCall

MAX_NAME_LENGTH = 64
"""Characters of a name that count, as model providers cut function names."""

_DROPPED = re.compile(r"[\x00-\x7f](?<![A-Za-z0-9_-])")
_CACHED_LENGTH = 256
_CACHED_NAMES = 4096


def canonical_tool_name(name: str) -> str:
    """The form in which two names of one tool are equal.

    White space of any kind and length becomes one `_` (none at the ends), ASCII characters other than
    letters, digits, `_` and `-` are dropped, and 64 characters remain; case and other scripts stay.
    A name of which nothing would be left is its own form, so it equals only itself.
    """
    return _FORMS[name]


def canonical_tool_names(calls: Iterable[ToolCall]) -> list[str]:
    """The canonical name of each call's tool."""
    forms = _FORMS
    return [forms[call.name] for call in calls]


class ToolKeys:
    """The keys of a set of criteria: names of tools or ids of calls."""

    __slots__ = ("_names", "_texts")

    def __init__(self, keys: Iterable[str]) -> None:
        self._texts = frozenset(keys)
        self._names = frozenset(map(canonical_tool_name, self._texts))

    def __contains__(self, call: ToolCall) -> bool:
        """Whether some key is the id of `call` or a spelling of its name."""
        return canonical_tool_name(call.name) in self._names or call.call_id in self._texts

    def select(self, run: AgentRun, categories: frozenset[CallCategory]) -> Sequence[ToolCall]:
        """The calls of `run` of one of `categories`, and those of any category that a key means, in order."""
        calls = run.calls
        for call in calls:
            if call.category not in categories:
                return [call for call in calls if call.category in categories or call in self]
        return calls  # so it mostly is


def _canonical(name: str) -> str:
    return _DROPPED.sub("", "_".join(name.split()))[:MAX_NAME_LENGTH] or name


class _Forms(dict[str, str]):
    """Canonical forms by name, computed when first needed; starts over when it is full."""

    def __missing__(self, name: str) -> str:
        form = _canonical(name)
        if len(name) <= _CACHED_LENGTH:
            if len(self) >= _CACHED_NAMES:
                self.clear()
            self[name] = form
        return form


_FORMS = _Forms()
