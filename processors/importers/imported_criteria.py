"""Criteria from other tools' files, and what of those could not be carried over."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from pydantic.alias_generators import to_camel

from processors.comparison import LITERAL, is_matcher
from processors.criteria import EVERY_AGENT, read_criteria, write_criteria
from processors.documents import InvalidInput, Problem
from processors.model import JsonObject, JsonValue

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
        """The evaluation as a criteria file holds it; empty parts are left out."""
        parts: JsonObject = {
            "evaluator": self.evaluator,
            "name": None if self.name == self.evaluator else self.name,
            "config": self.config or None,
            "criteria": self.criteria,
            "when": self.when,
            "pass_threshold": self.pass_threshold,
        }
        return {key: value for key, value in parts.items() if value is not None}


Imported: TypeAlias = ImportedEvaluation | Problem
"""An evaluation, or something that was not carried over: where it stands, and why."""


def usable(collected: Iterable[Imported]) -> list[Imported]:
    """`found`, in its order, with names that are unique and a problem in place of what would not load.

    Every evaluation left is one that a criteria file may hold.
    """
    names: set[str] = set()
    named = [item if isinstance(item, Problem) else _named(item, names) for item in collected]
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
    written: Mapping[str, JsonValue], fields: Sequence[str]
) -> tuple[JsonObject, list[str]]:
    """The members of `written` that are among `fields`, by these names, and the keys of all others.

    Where a key is there in camelCase as well, that one counts; null is left out.
    """
    collected = {name: written.get(to_camel(name), written.get(name)) for name in fields}
    spellings = {*fields, *map(to_camel, fields)}
    return (
        {name: value for name, value in collected.items() if value is not None},
        [key for key in written if key not in spellings],
    )


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
    except InvalidInput as error:
        start = f"agents.{EVERY_AGENT}.evaluations[0]"
        texts = [
            ": ".join(filter(None, (problem.path.removeprefix(start).lstrip("."), problem.message)))
            for problem in error.problems
        ]
        return "; ".join(texts)
    except ValueError as error:
        return str(error)
    return None
