"""Criteria from a Letta evaluation suite: its deterministic graders, held against each sample of its dataset.

A sample becomes an evaluation for each grader with a ground truth, selected by the sample's input; a grader
that needs none becomes one evaluation of every run. How the package runs the agent does not matter to
traffic that has already happened.
"""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, get_args

from pydantic import ValidationError

from processors.comparison import ExtractorName, ExtractorSettings
from processors.documents import LocatedYaml, Problem
from processors.importers.imported_criteria import Imported, ImportedEvaluation
from processors.model import JsonObject, JsonValue

_WITHOUT_TRUTH = "ascii-printable-only"
_FUNCTIONS = {
    "exact_match": "exact-match",
    "contains": "contains",
    "regex_match": "regex-match",
    "ascii_printable_only": _WITHOUT_TRUTH,
}
_EXTRACTORS = get_args(ExtractorName)
_NOT_GIVEN = frozenset({"", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "<NA>", "#N/A", "n/a"})
"""What the package reads as a cell without a value."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample. `turns` are the messages to the agent, one or more; `number` counts from 0.

    `agent_args` is true where the agent is set up for this sample in a way of its own.
    """

    number: int
    file: str
    line: int
    turns: tuple[str, ...]
    ground_truth: str | list[str] | None
    agent_args: bool

    def problem(self, message: str) -> Problem:
        """A problem with this sample."""
        return Problem(self.file, self.line, "", message)


_Truths: TypeAlias = dict[tuple[str, tuple[str, ...]], Sample]
"""The first sample by grader and input."""


def import_letta(suite: LocatedYaml, samples: Sequence[Sample | Problem]) -> list[Imported]:
    """The evaluations of a suite in its order, those of a sample together, and what was left out."""
    imported: list[Imported] = []
    graders: list[ImportedEvaluation] = []
    written = _object(suite.value)
    for metric, entry in _object(written.get("graders")).items():
        grader = _grader(suite, metric, entry, _object(written.get("gate")))
        if isinstance(grader, Problem) or grader.evaluator == _WITHOUT_TRUTH:
            imported.append(grader)
        else:
            graders.append(grader)
    for key in ("gate", "reward"):
        if written.get(key) is not None:
            message = "it sums up many results: write it as an alert rule on the metrics"
            imported.append(suite.problem((key,), message))
    if written.get("sample_tags"):
        imported.append(suite.problem(("sample_tags",), "samples are not chosen by tags: all were read"))
    limit = written.get("max_samples")
    truths: _Truths = {}
    for sample in samples[:limit] if isinstance(limit, int) and limit > 0 else samples:
        if isinstance(sample, Problem):
            imported.append(sample)
            continue
        if sample.agent_args and graders:
            message = "agent_args are not in a trace: runs of other agents with this input are graded too"
            imported.append(sample.problem(message))
        for grader in graders:
            imported += _graded_sample(grader, sample, truths)
    return imported


def _grader(suite: LocatedYaml, metric: str, entry: JsonValue, gate: JsonObject) -> Imported:
    """The evaluation that a grader is, without what a sample adds to it."""
    path = ("graders", metric)
    if not isinstance(entry, dict):
        return suite.problem(path, "expected a grader: an object")
    kind, function = entry.get("kind"), entry.get("function")
    if kind != "tool":
        calls_model = kind in ("rubric", "model_judge", "letta_judge")
        reason = "it calls a model" if calls_model else "expected the kind tool"
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
    threshold = gate.get("pass_threshold") if gate.get("metric_key") == metric else None
    is_score = isinstance(threshold, int | float) and not isinstance(threshold, bool) and 0 <= threshold < 1
    return ImportedEvaluation(
        evaluator=_FUNCTIONS[function],
        name=metric,
        origin=suite.problem(path, ""),
        config=config,
        pass_threshold=threshold if is_score else None,  # type: ignore[arg-type]  # a number, as just checked
    )


def _graded_sample(grader: ImportedEvaluation, sample: Sample, truths: _Truths) -> Iterator[Imported]:
    truth = sample.ground_truth
    if not truth:
        message = f"sample {sample.number} has no ground_truth to hold runs against"
        yield sample.problem(f"{grader.name}: {message}")
        return
    first = truths.setdefault((grader.name, sample.turns), sample)
    if first is not sample:
        if first.ground_truth != truth:
            message = f"sample {first.number} has the same input and another ground_truth; that one was taken"
            yield sample.problem(f"{grader.name}: {message}")
        return
    turns = len(sample.turns)
    yield replace(
        grader,
        name=f"{grader.name}/{sample.number}",
        origin=sample.problem(""),
        criteria={"ground_truth": list(truth) if isinstance(truth, list) else truth},
        when={"input": sample.turns[-1]},
        comment=f"A conversation of {turns} turns, selected by its last message." if turns > 1 else "",
    )


def _object(value: JsonValue) -> JsonObject:
    return value if isinstance(value, dict) else {}


def read_dataset(text: str, file: str) -> list[Sample | Problem]:
    """The samples in `text`, in their order; a problem in place of what is no sample.

    `file` is the name that messages use; by its ending the text is CSV, a sample a row, else JSON lines.
    """
    samples: list[Sample | Problem] = []
    for line, row in _csv_rows(text) if file.lower().endswith(".csv") else _json_rows(text):
        try:
            samples.append(_sample(len(samples), file, line, row))
        except ValueError as error:
            samples.append(Problem(file, line, "", str(error)))
    return samples


def _json_rows(text: str) -> Iterator[tuple[int, JsonObject | ValueError]]:
    for line, content in enumerate(text.split("\n"), start=1):
        if not content.strip():
            continue
        try:
            row = json.loads(content)
        except (ValueError, RecursionError):
            yield line, ValueError("not valid JSON: expected one sample on each line")
            continue
        if not isinstance(row, dict):
            yield line, ValueError('expected an object with the key "input"')
            continue
        further = _object(row.get("metadata")).get("agent_args")
        written = row.get("input") or row.get("prompt")
        yield line, {**row, "input": written, "agent_args": row.get("agent_args") or further}


def _csv_rows(text: str) -> Iterator[tuple[int, JsonObject | ValueError]]:
    reader = csv.DictReader(io.StringIO(text, newline=""))
    line = 2
    try:
        if "input" not in (reader.fieldnames or ()):
            yield 1, ValueError('expected a first row of names with "input" among them')
            return
        for cells in reader:
            try:
                yield line, {key: _cell(cells.get(key)) for key in ("input", "ground_truth", "agent_args")}
            except ValueError:
                yield line, ValueError("a cell in brackets has to be a JSON list of texts")
            line = reader.line_num + 1
    except csv.Error as error:
        yield line, ValueError(f"not valid CSV: {error}")


def _cell(written: str | None) -> JsonValue:
    """A text, or the list that a cell in brackets writes; None for a cell that holds nothing."""
    cell = (written or "").strip()
    if cell in _NOT_GIVEN:
        return None
    try:
        return json.loads(cell) if cell.startswith("[") and cell.endswith("]") else cell
    except RecursionError as error:
        raise ValueError from error


def _sample(number: int, file: str, line: int, row: JsonObject | ValueError) -> Sample:
    if isinstance(row, ValueError):
        raise row
    written, truth = row["input"], row.get("ground_truth")
    turns = _texts("input", [written] if isinstance(written, str) else written or None)
    ground_truth: str | list[str] | None
    if isinstance(truth, list):
        ground_truth = _texts("ground_truth", truth)
        if isinstance(written, str) or len(truth) != len(turns):
            raise ValueError("ground_truth: expected one text, or one for each text of a list of inputs")
    else:
        ground_truth = None if truth is None else _texts("ground_truth", [truth])[0]
    return Sample(number, file, line, tuple(turns), ground_truth, bool(row["agent_args"]))


def _texts(what: str, values: JsonValue) -> list[str]:
    texts = [value for value in values if isinstance(value, str)] if isinstance(values, list) else []
    if not isinstance(values, list) or len(texts) != len(values):
        raise ValueError(f"{what}: expected a text or a list of texts")
    return texts
