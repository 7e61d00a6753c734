"""The command `tracegrade import`: converts other tools' evaluation files to a criteria file.

It reads the evaluation folder of a UiPath agent (`evaluators/` and `eval-sets/`), and the suite of a Letta
evaluation with its dataset.
"""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from collector.commands.arguments import NEW_FILE, add_argument, add_output, path_argument
from collector.commands.command import EXIT_FAILED, EXIT_OK, Command, CommandContext, unusable
from collector.commands.output import write_new, write_output
from collector.criteria import find_files
from collector.text_file import decoded_text
from processors.criteria import EVERY_AGENT, read_criteria, write_criteria
from processors.documents import InvalidInput, LocatedYaml, Problem, read_yaml
from processors.importers import Imported, import_letta, import_uipath, read_dataset, usable
from processors.model import JsonObject

_EVALUATORS, _SETS = "evaluators", "eval-sets"
_PROJECT_FOLDERS = ("evaluations", "evals")
_SUITES = ("suite.yaml", "suite.yml")
_DATASETS = (".jsonl", ".csv")

_ContentT = TypeVar("_ContentT")


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """The text of a criteria file, how many evaluations it holds, and what was left out."""

    text: str
    evaluations: int
    left_out: Sequence[Problem]


def import_criteria(path: Path, kind: str | None = None, agent: str = EVERY_AGENT) -> ImportedFile:
    """The criteria that the files at `path` hold, for the agent with this name or pattern.

    Args:
        path: For UiPath an evaluation folder, the folder of the project it is in, or one evaluation set. For
            Letta a suite, or the folder with a `suite.yaml`.
        kind: `uipath` or `letta`, whose tool wrote the files; None: detected from their content.
        agent: The agent that the criteria are for; neither kind of files names it.

    Raises:
        InvalidInput: files are missing or cannot be read, or no criteria file can name the agent.
    """
    try:
        read_criteria(write_criteria(agent, []), "", {})
    except (ValueError, InvalidInput) as error:
        raise unusable(f"the agent cannot have this name: {error}") from None
    kind = kind or _detected(path)
    items = usable(_KINDS[kind](path))
    left_out = [item for item in items if isinstance(item, Problem)]
    heading = [f"Imported from {path.resolve().name} with `tracegrade import {kind}`."]
    if left_out:
        heading.append(f"{len(left_out)} comments, which begin with Note, list what was not carried over.")
    if agent == EVERY_AGENT:
        heading.append('These criteria are for every agent: replace "*" with the name of yours.')
    entries: list[JsonObject | str] = []
    for item in items:
        if isinstance(item, Problem):
            entries.append(f"Note: {replace(item, file=Path(item.file).name)}")
        else:
            entries += [item.comment, item.entry()] if item.comment else [item.entry()]
    return ImportedFile(write_criteria(agent, entries, heading), len(items) - len(left_out), left_out)


def _detected(path: Path) -> str:
    if path.is_dir():
        if _evaluation_folder(path) is not None:
            return "uipath"
        if any((path / name).is_file() for name in _SUITES):
            return "letta"
        raise _expected(path, f"a folder with {_EVALUATORS}/ and {_SETS}/, or one with a {_SUITES[0]}")
    value = _documents(path)[0].value
    for key, kind in (("graders", "letta"), ("evaluations", "uipath")):
        if isinstance(value, dict) and key in value:
            return kind
    raise _expected(path, 'a Letta suite (with the key "graders") or a UiPath evaluation set ("evaluations")')


def _expected(path: Path, what: str) -> InvalidInput:
    return InvalidInput([Problem(str(path), 0, "", f"expected {what}")])


def _evaluation_folder(path: Path) -> Path | None:
    """The folder with the evaluation sets: `path`, or the one in the project folder `path`."""
    folders = [path, *(path / name for name in _PROJECT_FOLDERS)]
    return next((folder for folder in folders if (folder / _SETS).is_dir()), None)


def _read_uipath(path: Path) -> list[Imported]:
    if path.is_dir():
        folder = _evaluation_folder(path)
        if folder is None:
            raise _expected(path, f"a folder with {_EVALUATORS}/ and {_SETS}/")
        return import_uipath(_documents(folder / _EVALUATORS), _documents(folder / _SETS))
    return import_uipath(_documents(path.parent.parent / _EVALUATORS), _documents(path))


def _read_letta(path: Path) -> list[Imported]:
    if path.is_dir():
        path = next((path / name for name in _SUITES if (path / name).is_file()), path / _SUITES[0])
    suite = _documents(path)[0]
    content = suite.value if isinstance(suite.value, dict) else {}
    if not isinstance(content.get("graders"), dict):
        raise InvalidInput([suite.problem((), 'not a Letta suite: expected the key "graders" with objects')])
    dataset = content.get("dataset")
    if not isinstance(dataset, str) or not dataset.lower().endswith(_DATASETS):
        message = f"expected the path of a file that ends with {' or '.join(_DATASETS)}"
        raise InvalidInput([suite.problem(("dataset",), message)])
    (rows,) = _read(path.parent / dataset, read_dataset)
    return import_letta(suite, rows)


_KINDS: Mapping[str, Callable[[Path], list[Imported]]] = {"uipath": _read_uipath, "letta": _read_letta}


def _documents(path: Path) -> list[LocatedYaml]:
    return _read(path, _read_document)


def _read_document(text: str, name: str) -> LocatedYaml:
    # Tabs are white space in JSON, where none stands in a text, and nothing in YAML.
    document = read_yaml(text.replace("\t", " ") if name.endswith(".json") else text, name)
    if document.problems:
        raise InvalidInput(document.problems)
    return document


def _read(path: Path, read: Callable[[str, str], _ContentT]) -> list[_ContentT]:
    """The file at `path`, or the JSON files in that folder, each by `read`.

    Raises:
        InvalidInput: the problems of all of them.
    """
    files = find_files([str(path)], (".json",))
    problems = list(files.problems)
    contents: list[_ContentT] = []
    for name, content in files.contents.items():
        try:
            contents.append(read(decoded_text(content, name), name))
        except InvalidInput as error:
            problems += error.problems
    if problems:
        raise InvalidInput(problems)
    return contents


def _add_arguments(parser: ArgumentParser) -> None:
    folder = "a folder with evaluators/ and eval-sets/, or one evaluation set; or a suite.yaml"
    detected = "default: detected from the content of PATH"
    parser.add_argument("kind", nargs="?", choices=list(_KINDS), help=detected)
    add_argument(parser, "path", path_argument, "PATH", folder)
    agent = "the agent to grade (default: every agent)"
    add_argument(parser, "--agent", str, "NAME", agent, default=EVERY_AGENT)
    add_output(parser, NEW_FILE)


def _run(options: Namespace, _: CommandContext) -> int:
    imported = import_criteria(options.path, options.kind, options.agent)
    for problem in imported.left_out:
        print(problem, file=sys.stderr)
    counts = f"{imported.evaluations} evaluations imported, {len(imported.left_out)} notes"
    if not imported.evaluations:
        raise unusable(f"{counts}: nothing was written")
    write_output(options.output, imported.text, write_new)
    print(counts, file=sys.stderr)
    return EXIT_FAILED if imported.left_out else EXIT_OK


IMPORT = Command(
    _add_arguments,
    _run,
    "Write the deterministic evaluators and test cases of another tool as a criteria file. Standard error "
    "lists what could not be carried over, one item a line. Exit code 0: everything was carried over; 1: "
    "something was not; 2: the files are unusable, or nothing was carried over.",
)
