"""Criteria that were found in other tools' files, and what of those files could not be carried over."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from processors.comparison.expected_value import LITERAL, is_matcher
from processors.criteria.criteria_file import read_criteria
from processors.criteria.criteria_writer import EVERY_AGENT, write_criteria
from processors.documents.problem import Problem, ProblemsFound
from processors.model.json_value import JsonObject, JsonValue

MAX_NAME_CHARACTERS = 200


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
        entry: JsonObject = {"evaluator": self.evaluator}
        if self.name != self.evaluator:
            entry["name"] = self.name
        if self.config:
            entry["config"] = self.config
        if self.criteria is not None:
            entry["criteria"] = self.criteria
        if self.when is not None:
            entry["when"] = self.when
        if self.pass_threshold is not None:
            entry["pass_threshold"] = self.pass_threshold
        return entry


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
    written: Mapping[str, JsonValue], fields: Sequence[str], camel_case: Mapping[str, str]
) -> tuple[JsonObject, list[str]]:
    """The members of `written` that are among `fields`, by these names, and the keys of all others.

    `camel_case` has the other spelling of each field. It counts where both are there; null is left out.
    """
    known: JsonObject = {}
    for name in fields:
        value = written.get(camel_case[name], written.get(name))
        if value is not None:
            known[name] = value
    spellings = {*fields, *(camel_case[name] for name in fields)}
    return known, [key for key in written if key not in spellings]


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
