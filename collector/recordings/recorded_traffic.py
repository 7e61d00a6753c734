"""Recorded traffic: OTLP export requests and hand-written agent runs from files and folders.

Reads what the Collector's file exporter, our own `file` exporter, a request dump or a person wrote. All
problems of all files are collected, so that a user mends them in one go.
"""

import codecs
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from collector.errors import MalformedRequest
from collector.otlp import SplitRequest, gzip_decompress, json_to_request, split_request
from collector.recordings.run_reader import run_from_json
from processors.documents import Problem
from processors.model import AgentRun, decode_json

MAX_REQUEST_BYTES = 1 << 30
"""What one recorded request may inflate to."""


class Encoding(Enum):
    """How a file holds its traffic."""

    REQUEST = "one serialised ExportTraceServiceRequest"
    JSON_REQUEST = "one OTLP/JSON request"
    JSON_LINES = "OTLP/JSON, one request a line"
    RUNS = "one agent run a line"


_ENDINGS = (
    (".runs.jsonl", Encoding.RUNS),
    (".jsonl", Encoding.JSON_LINES),
    (".otlp.json", Encoding.JSON_REQUEST),
    (".binpb", Encoding.REQUEST),
)


_REQUEST_KEYS = frozenset({"resourceSpans", "resource_spans"})


@dataclass(frozen=True, slots=True)
class RecordedFile:
    """A file of recorded traffic; `encoding` None: to be recognised by its content."""

    path: Path
    encoding: Encoding | None


def find_recorded_files(paths: Sequence[Path]) -> tuple[list[RecordedFile], list[Problem]]:
    """The files that `paths` stand for, in name order within each folder.

    In a folder (and the folders below it) only the known endings are read; a file that is named may have
    any ending.
    """
    files: list[RecordedFile] = []
    problems: list[Problem] = []
    for path in paths:
        if path.is_dir():
            found = [
                RecordedFile(file, encoding)
                for file in sorted(path.rglob("*"))
                if (encoding := _encoding_of(file)) is not None and file.is_file()
            ]
            if not found:
                endings = ", ".join(f"*{ending}" for ending, _ in _ENDINGS)
                problems.append(
                    Problem(str(path), 0, "", f"no recorded traffic in this folder, expected {endings}")
                )
            files.extend(found)
        elif path.exists():
            files.append(RecordedFile(path, _encoding_of(path)))
        else:
            problems.append(Problem(str(path), 0, "", "no such file or folder"))
    return files, problems


def recorded_requests(paths: Sequence[Path]) -> tuple[list[SplitRequest], list[Problem]]:
    """The export requests in `paths`, in order, and what could not be read; runs are left out."""
    files, problems = find_recorded_files(paths)
    traffic = RecordedTraffic()
    items = [item for file in files for item in traffic.read(file)]
    return [item for item in items if isinstance(item, SplitRequest)], problems + traffic.problems


class RecordedTraffic:
    """Reads recorded files one by one.

    What cannot be read ends up in `problems`; `warnings` tells of single spans that were left out, as the
    service would leave them out of a request.
    """

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []

    def read(self, file: RecordedFile) -> Iterator[SplitRequest | AgentRun]:
        """The requests and runs of one file, in order."""
        name = str(file.path)
        try:
            data = file.path.read_bytes()
            if data[:2] == b"\x1f\x8b":
                data = gzip_decompress(data, MAX_REQUEST_BYTES)
        except OSError as error:
            self.problems.append(Problem(name, 0, "", f"cannot be read: {error.strerror}"))
            return
        except MalformedRequest as error:
            self.problems.append(Problem(name, 0, "", str(error)))
            return
        encoding = file.encoding or _recognise(data)
        if encoding is not Encoding.REQUEST:
            data = data.removeprefix(codecs.BOM_UTF8)
        if encoding is Encoding.REQUEST:
            yield from self._request(name, 0, data)
        elif encoding is Encoding.JSON_REQUEST:
            yield from self._json_request(name, 0, data)
        else:
            for number, line in enumerate(data.split(b"\n"), start=1):
                if not line.strip():
                    continue
                if encoding is Encoding.JSON_LINES:
                    yield from self._json_request(name, number, line)
                else:
                    yield from self._run(name, number, line)

    def _request(self, name: str, line: int, body: bytes) -> Iterator[SplitRequest]:
        try:
            request = split_request(body)
        except MalformedRequest as error:
            self.problems.append(Problem(name, line, "", str(error)))
            return
        if request.rejected:
            self.warnings.append(
                Problem(
                    name,
                    line,
                    "",
                    f"{request.rejected} of {request.rejected + request.accepted} spans have an invalid id, "
                    "expected 16 bytes for a trace id and 8 for a span id, neither all zero",
                )
            )
        yield request

    def _json_request(self, name: str, line: int, text: bytes) -> Iterator[SplitRequest]:
        try:
            body = json_to_request(text)
        except MalformedRequest as error:
            self.problems.append(Problem(name, line, "", str(error)))
            return
        if not body and _is_run(text):  # OTLP ignores keys that it does not know: nothing is left of a run
            message = "not an OTLP request but an agent run: name such a file *.runs.jsonl"
            self.problems.append(Problem(name, line, "", message))
            return
        yield from self._request(name, line, body)

    def _run(self, name: str, line: int, text: bytes) -> Iterator[AgentRun]:
        where = f"{name}:{line}"
        try:
            entry = decode_json(text)
        except ValueError as error:
            self.problems.append(
                Problem(name, line, "", f"not valid JSON: {error}, expected one agent run a line")
            )
            return
        if isinstance(entry, dict) and "agent" not in entry and entry.keys() & _REQUEST_KEYS:
            message = "not an agent run but an OTLP request: name such a file *.jsonl or *.otlp.json"
            self.problems.append(Problem(name, line, "", message))
            return
        try:
            yield run_from_json(entry, where)
        except ValueError as error:
            prefix = f"{where}: "
            self.problems.extend(
                Problem(name, line, "", problem.removeprefix(prefix)) for problem in str(error).splitlines()
            )


def _encoding_of(path: Path) -> Encoding | None:
    return next((encoding for ending, encoding in _ENDINGS if path.name.endswith(ending)), None)


def _is_run(text: bytes) -> bool:
    entry = decode_json(text)
    return isinstance(entry, dict) and "agent" in entry


def _recognise(data: bytes) -> Encoding:
    head = data.removeprefix(codecs.BOM_UTF8).lstrip()
    if head[:1] != b"{":
        return Encoding.REQUEST
    try:
        first = decode_json(head.split(b"\n", 1)[0])
    except ValueError:
        return Encoding.JSON_REQUEST
    if isinstance(first, dict) and "agent" in first:
        return Encoding.RUNS
    return Encoding.JSON_LINES
