"""Which calls criteria are about: by category, by name, by a glob."""

import re
from collections.abc import Iterable, Sequence
from fnmatch import translate
from functools import lru_cache
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from processors.documents import EvaluatorModel
from processors.model import EVALUATED_CATEGORIES, AgentRun, CallCategory, ToolCall, canonical_tool_name


class ToolSelectionConfig(EvaluatorModel):
    """Which calls an evaluator sees."""

    include_categories: tuple[Literal["handoff", "final_answer"], ...] = ()
    """Categories of calls to see in addition to ordinary ones, named by criteria or not."""

    def categories(self) -> frozenset[CallCategory]:
        """All categories that are seen without being named."""
        return EVALUATED_CATEGORIES | {CallCategory(name) for name in self.include_categories}


IncludeFailed: TypeAlias = Annotated[
    bool,
    Field(description="Whether calls that ended in an error, or were never executed, count as calls."),
]
"""The setting that `without_failed` carries out."""


ToolOrCallId: TypeAlias = Annotated[str, Field(description="Tool name (or call id).")]
ExpectedId: TypeAlias = Annotated[
    str | None, Field(description="Id of the call; calls without an id are matched by name.")
]


class ToolCallConfig(ToolSelectionConfig):
    """Settings of the evaluators that hold calls against expectations."""

    strict: bool = False
    """All or nothing: 1 when every expectation is met, else 0."""


def without_failed(calls: Iterable[ToolCall]) -> list[ToolCall]:
    """The calls that `include_failed: false` leaves: executed, and without an error of their own."""
    return [call for call in calls if call.error is None and call.executed]


def without_invented(run: AgentRun, calls: Sequence[ToolCall]) -> Sequence[ToolCall]:
    """`calls` of `run` without requests for tools that it did not have, and so were never executed.

    A framework's message that there is no such tool is no result of one. Where telemetry lists no tools,
    every call stays.
    """
    for call in calls:  # for every trace: a generator costs twice as much
        if not call.executed:
            break
    else:
        return calls
    if not run.available_tools:
        return calls
    known = set(map(canonical_tool_name, run.available_tools))
    return [call for call in calls if call.executed or canonical_tool_name(call.name) in known]


_WILDCARD = re.compile(r"([*?])")
_REMEMBERED_NAMES, _REMEMBERED_LENGTH = 256, 64


class ToolPatterns:
    """A set of tool names in which `*` stands for any characters and `?` for one.

    Names without these mean what they mean everywhere in criteria (`processors.model.tool_name`); in a
    pattern the same holds for the text between them.
    """

    __slots__ = ("_globs", "_is_all", "_known", "_names")

    def __init__(self, patterns: Iterable[str]) -> None:
        self._is_all = False
        self._names: set[str] = set()
        self._globs: list[re.Pattern[str]] = []
        self._known: dict[str, bool] = {}
        for pattern in patterns:
            if pattern == "*":
                self._is_all = True
            elif _WILDCARD.search(pattern) is None:
                self._names.add(canonical_tool_name(pattern))
            else:
                self._globs.append(_compiled(pattern))

    def __bool__(self) -> bool:
        return self._is_all or bool(self._names or self._globs)

    def __contains__(self, name: str) -> bool:
        """Whether the tool `name`, in any spelling, is one of them."""
        is_known = self._known.get(name)  # as most are: agents have few tools
        if is_known is None:
            canonical = canonical_tool_name(name)
            is_named = self._is_all or canonical in self._names
            is_known = is_named or any(glob.match(canonical) for glob in self._globs)
            if len(self._known) < _REMEMBERED_NAMES and len(name) <= _REMEMBERED_LENGTH:
                self._known[name] = is_known
        return is_known

    def select(self, run: AgentRun, categories: frozenset[CallCategory]) -> list[ToolCall]:
        """The calls of `run` of one of `categories`, and those of any category that are named, in order."""
        return [call for call in run.calls if call.category in categories or call.name in self]


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    pieces = [
        piece if piece in ("*", "?") else canonical_tool_name(piece) for piece in _WILDCARD.split(pattern)
    ]
    return re.compile(translate("".join(pieces).replace("[", "[[]")))


def argument_names(globs: Sequence[str]) -> re.Pattern[str] | None:
    """What matches the names that one of `globs` does; None: there are none."""
    return re.compile("|".join(map(translate, globs))) if globs else None
