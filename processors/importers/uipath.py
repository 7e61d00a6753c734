"""Criteria from the evaluation folder of a UiPath agent: evaluators, and sets of items for them.

An item becomes an evaluation for each evaluator that it has criteria for, selected by the item's inputs.
How the package runs the agent (models, mocks) does not matter to traffic that has already happened; mocks are
reported, since expected values may come from them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from processors.criteria import evaluator_id, evaluator_types
from processors.documents import LocatedYaml, Path, Problem
from processors.importers.imported_criteria import (
    Imported,
    ImportedEvaluation,
    as_literal,
    written_in_snake_case,
)
from processors.model import Evaluator, JsonObject, JsonValue

_EVALUATORS = frozenset({
    "tool-call-count", "tool-call-order", "tool-call-args", "tool-call-output", "exact-match", "contains",
    "json-similarity", "binary-classification", "multiclass-classification",
})  # fmt: skip
_CRITERIA: Mapping[str, tuple[str, ...]] = {
    "exact-match": ("expected_output",),
    "contains": ("search_text",),
}
"""The keys that count where an evaluator also takes criteria of other origins."""
_DEFAULT_CRITERIA = "default_evaluation_criteria"
_NAMING = ("name", "description")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_EXPECTED_IN_RECORDS = {"tool_calls": "args", "tool_outputs": "output"}


def import_uipath(evaluators: Sequence[LocatedYaml], sets: Sequence[LocatedYaml]) -> list[Imported]:
    """The evaluations of all items, in the order of the files, and what was left out.

    An evaluator that cannot be carried over is reported once, with the number of items that use it.
    """
    collected: list[Imported] = []
    known: dict[str, _Definition] = {}
    for document in evaluators:
        definition = _definition(document)
        if isinstance(definition, Problem):
            collected.append(definition)
        else:
            known[definition.id] = definition
    items: list[Imported] = []
    for document in sets:
        prefix = f"{_label(document.value)}/" if len(sets) > 1 else ""
        items += _set(document, known, prefix)
    return [
        *collected,
        *(problem for definition in known.values() for problem in definition.problems()),
        *items,
    ]


@dataclass(slots=True)
class _Definition:
    """An evaluator file. `refusal` is why it cannot be carried over; `kind` is None then."""

    document: LocatedYaml
    id: str
    label: str
    kind: type[Evaluator] | None = None
    refusal: str = ""
    config: JsonObject = field(default_factory=dict)
    default: JsonValue = None
    unknown: Sequence[str] = ()
    uses: int = 0

    def problems(self) -> Iterator[Problem]:
        if self.refusal:
            items = f"; {self.uses} items use it" if self.uses != 1 else "; 1 item uses it"
            yield self.document.problem(("evaluatorTypeId",), self.refusal + items)
        for key in self.unknown:
            yield self.document.problem(("evaluatorConfig", key), "this evaluator has no such setting")


def _definition(document: LocatedYaml) -> _Definition | Problem:
    written = document.value
    identity = written.get("id") if isinstance(written, dict) else None
    if not isinstance(written, dict) or not isinstance(identity, str) or not identity:
        return document.problem((), 'not an evaluator: expected an object with an "id"')
    config = written.get("evaluatorConfig")
    name = config.get("name") if isinstance(config, dict) else written.get("name")
    definition = _Definition(document, identity, _readable(identity, name))
    type_id = written.get("evaluatorTypeId")
    if not isinstance(type_id, str):
        definition.refusal = "an evaluator of the older kind, which has no evaluatorTypeId"
    elif type_id.startswith("file:"):
        definition.refusal = "an evaluator in Python code"
    elif "llm-judge" in type_id:
        definition.refusal = f"{type_id} calls a model"
    elif evaluator_id(type_id) not in _EVALUATORS:
        definition.refusal = f'unknown evaluator "{type_id}"'
    elif config is not None and not isinstance(config, dict):
        definition.refusal = "evaluatorConfig: expected an object"
    else:
        kind = evaluator_types()[evaluator_id(type_id)]
        names = [*kind.Config.model_fields, *_NAMING, _DEFAULT_CRITERIA]
        settings, unknown = written_in_snake_case(config or {}, names)
        definition.kind, definition.unknown = kind, unknown
        definition.default = settings.pop(_DEFAULT_CRITERIA, None)
        definition.config = {key: value for key, value in settings.items() if key not in _NAMING}
    return definition


def _set(document: LocatedYaml, known: Mapping[str, _Definition], prefix: str) -> Iterator[Imported]:
    written = document.value
    items = written.get("evaluations") if isinstance(written, dict) else None
    refs = written.get("evaluatorRefs") if isinstance(written, dict) else None
    if not isinstance(items, list):
        yield document.problem((), 'not an evaluation set: expected an object with a list "evaluations"')
        return
    refs = refs if isinstance(refs, list) else []
    used = [ref.get("ref") if isinstance(ref, dict) else ref for ref in refs]
    for index, item in enumerate(items):
        path = ("evaluations", index)
        criteria = item.get("evaluationCriterias") if isinstance(item, dict) else None
        if not isinstance(item, dict) or not isinstance(criteria, dict):
            yield document.problem(path, 'expected an item with "evaluationCriterias" by evaluator id')
        elif item.get("nodeId") is not None:
            message = "this item is about one node of a graph, not about a run"
            yield document.problem((*path, "nodeId"), message)
        else:
            if item.get("mockingStrategy"):
                message = "answers are mocked for this item; real ones may differ from what it expects"
                yield document.problem((*path, "mockingStrategy"), message)
            if not item.get("inputs"):
                message = "there are no inputs to select runs by: the item applies to every run"
                yield document.problem((*path, "inputs"), message)
            for key, given in criteria.items():
                place = (*path, "evaluationCriterias", key)
                if key not in known:
                    yield document.problem(place, "no evaluator has this id")
                elif used and key not in used:
                    yield document.problem(place, "the set does not name this evaluator in evaluatorRefs")
                else:
                    known[key].uses += 1
                    yield from _evaluation(known[key], item, given, document, place, prefix)


def _evaluation(
    definition: _Definition, item: JsonObject, given: JsonValue, document: LocatedYaml, path: Path, set_: str
) -> Iterator[Imported]:
    kind, inputs = definition.kind, item.get("inputs")
    if kind is None or kind.Criteria is None:
        return
    names = _CRITERIA.get(kind.id, tuple(kind.Criteria.model_fields))
    source = given
    if source is None and "expected_output" in names and item.get("expectedOutput") is not None:
        source = {"expected_output": item["expectedOutput"]}  # given once for all evaluators of the item
    if source is None:
        source = definition.default
    if not isinstance(source, dict):
        yield document.problem(path, "there are no criteria, and the evaluator has no default ones")
        return
    fields, unknown = written_in_snake_case(source, names)
    for extra in unknown:
        yield document.problem((*path, extra), f"{kind.id} has no such criteria")
    yield ImportedEvaluation(
        evaluator=kind.id,
        name=f"{set_}{_label(item)}/{definition.label}",
        origin=document.problem(path, ""),
        config=definition.config,
        criteria=_literal_criteria(kind.id, fields),
        when={"input": as_literal(inputs)} if inputs else None,
    )


def _literal_criteria(evaluator: str, criteria: JsonObject) -> JsonObject:
    """`criteria` with expected values that stand for themselves, wherever matchers could stand."""
    literal = dict(criteria)
    if evaluator == "exact-match" and "expected_output" in literal:
        literal["expected_output"] = as_literal(literal["expected_output"])
    for key, inner in _EXPECTED_IN_RECORDS.items():
        records = literal.get(key)
        if isinstance(records, list):
            literal[key] = [
                record | {inner: as_literal(record[inner])}
                if isinstance(record, dict) and inner in record
                else record
                for record in records
            ]
    return literal


def _label(written: JsonValue) -> str:
    """What people call an item or a set."""
    if not isinstance(written, dict):
        return "item"
    return _readable(written.get("id"), written.get("name"))


def _readable(identity: JsonValue, name: JsonValue) -> str:
    """The id, or the name where there is no id or it is generated."""
    texts = [text for text in (identity, name) if isinstance(text, str) and text]
    return next((text for text in texts if not _UUID.fullmatch(text)), texts[0] if texts else "item")
