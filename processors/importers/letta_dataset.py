"""The dataset of a Letta suite: samples, one a line of JSON or one a row of CSV."""

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass

from processors.documents.problem import Problem
from processors.model.json_value import JsonObject, JsonValue

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


def read_dataset(text: str, file: str) -> list[Sample | Problem]:
    """The samples in `text`, in their order; a problem in place of what is no sample.

    `file` is the name that messages use; by its ending the text is CSV, else JSON lines.
    """
    rows = _csv_rows(text, file) if file.lower().endswith(".csv") else _json_rows(text, file)
    samples: list[Sample | Problem] = []
    for number, (line, row) in enumerate(rows):
        if isinstance(row, str):
            samples.append(Problem(file, line, "", row))
            continue
        try:
            samples.append(_sample(number, file, line, row))
        except ValueError as error:
            samples.append(Problem(file, line, "", str(error)))
    return samples


def _json_rows(text: str, file: str) -> Iterator[tuple[int, JsonObject | str]]:
    for line, content in enumerate(text.split("\n"), start=1):
        if not content.strip():
            continue
        try:
            row = json.loads(content)
        except (ValueError, RecursionError):
            yield line, "not valid JSON: expected one sample on each line"
            continue
        if isinstance(row, dict):
            metadata = row.get("metadata")
            further = metadata.get("agent_args") if isinstance(metadata, dict) else None
            yield (
                line,
                {
                    "input": row.get("input") or row.get("prompt"),
                    "ground_truth": row.get("ground_truth"),
                    "agent_args": row.get("agent_args") or further,
                },
            )
        else:
            yield line, 'expected an object with the key "input"'


def _csv_rows(text: str, file: str) -> Iterator[tuple[int, JsonObject | str]]:
    reader = csv.DictReader(io.StringIO(text, newline=""))
    line = 2
    try:
        if "input" not in (reader.fieldnames or ()):
            yield 1, 'expected a first row of names with "input" among them'
            return
        for cells in reader:
            try:
                yield line, {key: _cell(cells.get(key)) for key in ("input", "ground_truth", "agent_args")}
            except ValueError as error:
                yield line, str(error)
            line = reader.line_num + 1
    except csv.Error as error:
        yield line, f"not valid CSV: {error}"


def _cell(written: str | None) -> JsonValue:
    """A text, or the list that a cell in brackets writes; None for a cell that holds nothing."""
    if written is None or written.strip() in _NOT_GIVEN:
        return None
    cell = written.strip()
    if cell.startswith("[") and cell.endswith("]"):
        try:
            value: JsonValue = json.loads(cell)
        except (ValueError, RecursionError):
            raise ValueError("a cell in brackets has to be a JSON list of texts") from None
        return value
    return cell


def _sample(number: int, file: str, line: int, row: JsonObject) -> Sample:
    turns = row["input"]
    turns = [turns] if isinstance(turns, str) else turns
    if not isinstance(turns, list) or not turns:
        raise ValueError("input: expected a text or a list of texts")
    texts = _texts("input", turns)
    truth = row["ground_truth"]
    if isinstance(truth, list):
        truths = _texts("ground_truth", truth)
        if isinstance(row["input"], str) or len(truths) != len(texts):
            raise ValueError("ground_truth: expected one text, or one for each text of a list of inputs")
        return Sample(number, file, line, tuple(texts), truths, bool(row["agent_args"]))
    if truth is not None and not isinstance(truth, str):
        raise ValueError("ground_truth: expected a text or a list of texts")
    return Sample(number, file, line, tuple(texts), truth, bool(row["agent_args"]))


def _texts(what: str, values: list[JsonValue]) -> list[str]:
    texts = [value for value in values if isinstance(value, str)]
    if len(texts) != len(values):
        raise ValueError(f"{what}: expected a text or a list of texts")
    return texts
