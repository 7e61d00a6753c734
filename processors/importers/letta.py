"""Criteria from a Letta evaluation suite: its deterministic graders, held against each sample.

A sample becomes an evaluation for each grader with a ground truth, selected by the sample's input; a grader
that needs none becomes one evaluation of every run. How the package runs the agent says nothing of traffic
that has already happened.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import get_args

from pydantic import ValidationError

from processors.comparison.extractors import ExtractorName
from processors.comparison.letta_grading import ExtractorSettings
from processors.criteria.imported_criteria import Imported, ImportedEvaluation
from processors.documents.located_yaml import LocatedYaml
from processors.documents.problem import Problem
from processors.importers.letta_dataset import Sample
from processors.model.json_value import JsonObject, JsonValue

_WITHOUT_TRUTH = "ascii_printable_only"
_FUNCTIONS = {
    "exact_match": "exact-match",
    "contains": "contains",
    "regex_match": "regex-match",
    _WITHOUT_TRUTH: "ascii-printable-only",
}
_EXTRACTORS = get_args(ExtractorName)


@dataclass(slots=True)
class _Grader:
    metric: str
    function: str
    config: JsonObject
    pass_threshold: float | None
    truths: dict[tuple[str, ...], tuple[int, str | list[str]]] = field(default_factory=dict)
    """By input the first sample with it, and its truth."""


def import_letta(suite: LocatedYaml, samples: Sequence[Sample | Problem]) -> list[Imported]:
    """The evaluations of a suite in its order, those of a sample together, and what was left out."""
    found: list[Imported] = []
    graders: list[_Grader] = []
    written = suite.value if isinstance(suite.value, dict) else {}
    for metric, entry in _members(written.get("graders")).items():
        grader = _grader(suite, metric, entry, _threshold(written.get("gate"), metric))
        if isinstance(grader, Problem):
            found.append(grader)
        elif grader.function == _WITHOUT_TRUTH:
            found.append(_evaluation(grader, metric, suite.problem(("graders", metric), "")))
        else:
            graders.append(grader)
    for key in ("gate", "reward"):
        if written.get(key) is not None:
            message = "it sums up many results: write it as an alert rule on the metrics"
            found.append(suite.problem((key,), message))
    if written.get("sample_tags"):
        found.append(suite.problem(("sample_tags",), "samples are not chosen by tags: all were read"))
    limit = written.get("max_samples")
    taken = samples[:limit] if isinstance(limit, int) and limit > 0 else samples
    for sample in taken:
        if isinstance(sample, Problem):
            found.append(sample)
            continue
        if sample.agent_args and graders:
            message = "agent_args are not in a trace: runs of other agents with this input are graded too"
            found.append(sample.problem(message))
        for grader in graders:
            found += _graded_sample(grader, sample)
    return found


def _grader(suite: LocatedYaml, metric: str, entry: JsonValue, threshold: float | None) -> _Grader | Problem:
    path = ("graders", metric)
    if not isinstance(entry, dict):
        return suite.problem(path, "expected a grader: an object")
    kind, function = entry.get("kind"), entry.get("function")
    if kind != "tool":
        asks = kind in ("rubric", "model_judge", "letta_judge")
        reason = "it asks a model" if asks else "expected the kind tool"
        return suite.problem((*path, "kind"), f"a grader of kind {kind} is not carried over: {reason}")
    if not isinstance(function, str) or function not in _FUNCTIONS:
        known = ", ".join(_FUNCTIONS)
        message = f"function {function} is not carried over: it is Python code, none of {known}"
        return suite.problem((*path, "function"), message)
    config: JsonObject = {}
    extractor = entry.get("extractor", "last_assistant")
    if extractor not in _EXTRACTORS:
        reason = "traces hold no memory blocks" if extractor == "memory_block" else "it is Python code"
        return suite.problem((*path, "extractor"), f"extractor {extractor} is not carried over: {reason}")
    if extractor != "last_assistant":
        config["extractor"] = extractor
    if entry.get("extractor_config"):
        config["extractor_config"] = entry["extractor_config"]
    try:
        ExtractorSettings.model_validate(config)
    except ValidationError as error:
        reasons = "; ".join([details["msg"].removeprefix("Value error, ") for details in error.errors()])
        return suite.problem((*path, "extractor_config"), f"{extractor} cannot take this: {reasons}")
    return _Grader(metric, function, config, threshold)


def _threshold(gate: JsonValue, metric: str) -> float | None:
    """From which score on a sample passes, where a gate on this metric says so."""
    members = _members(gate)
    value = members.get("pass_threshold")
    if members.get("metric_key") != metric or isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if 0 <= value < 1 else None


def _graded_sample(grader: _Grader, sample: Sample) -> Iterator[Imported]:
    truth = sample.ground_truth
    if not truth:
        yield sample.problem(
            f"{grader.metric}: sample {sample.number} has no ground_truth to hold runs against"
        )
        return
    first = grader.truths.setdefault(sample.turns, (sample.number, truth))
    if first[0] != sample.number:
        if first[1] != truth:
            message = f"sample {first[0]} has the same input and another ground_truth; that one was taken"
            yield sample.problem(f"{grader.metric}: {message}")
        return
    turns = len(sample.turns)
    comment = f"A conversation of {turns} turns, selected by its last message." if turns > 1 else ""
    yield _evaluation(
        grader,
        f"{grader.metric}/{sample.number}",
        sample.problem(""),
        criteria={"ground_truth": list(truth) if isinstance(truth, list) else truth},
        when={"input": sample.turns[-1]},
        comment=comment,
    )


def _evaluation(
    grader: _Grader,
    name: str,
    origin: Problem,
    *,
    criteria: JsonObject | None = None,
    when: JsonObject | None = None,
    comment: str = "",
) -> ImportedEvaluation:
    return ImportedEvaluation(
        evaluator=_FUNCTIONS[grader.function],
        name=name,
        origin=origin,
        config=grader.config,
        criteria=criteria,
        when=when,
        pass_threshold=grader.pass_threshold,
        comment=comment,
    )


def _members(value: JsonValue) -> JsonObject:
    return value if isinstance(value, dict) else {}
