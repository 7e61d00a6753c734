"""Recorded traffic: traces and hand-written agent runs from files and folders.

Reads what the Collector's file exporter, our own `file` exporter, a request dump, a trace backend's API or a
person wrote, also in gzip or zstd. All problems of all files are collected, so that a user mends them in one
go.
"""

import codecs
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import zstandard

from collector.errors import MalformedRequest, Refusal, RequestTooLarge
from collector.otlp import GZIP_MAGIC, SplitRequest, gzip_decompress, parse_json, split_request
from collector.recordings.trace_documents import requests_in_document
from processors.annotation import run_from_json
from processors.documents import Problem
from processors.model import AgentRun, decode_json

MAX_REQUEST_BYTES = 1 << 30
"""What one recorded request may inflate to."""


class Encoding(Enum):
    """How a file holds its traffic."""

    REQUEST = "one serialised ExportTraceServiceRequest"
    MESSAGES = "messages behind their length, as the Collector's file exporter writes `proto` and compressed"
    JSON_DOCUMENT = "one JSON document of a form that `trace_documents` knows"
    JSON_LINES = "such a document a line"
    RUNS = "one agent run a line"


_ENDINGS = (
    (".runs.jsonl", Encoding.RUNS),
    (".jsonl", Encoding.JSON_LINES),
    (".otlp.json", Encoding.JSON_DOCUMENT),
    (".binpb", Encoding.REQUEST),
)
_COMPRESSED = ("", ".gz", ".zst")
"""What may stand behind each of these endings."""

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_LENGTH_BYTES = 4
"""The file exporter writes the length of a message as a big-endian number of so many bytes before it."""
_STARTS_OF_MESSAGES = (b"\n", b"{", _ZSTD_MAGIC)
"""How a message begins: with the tag of `resource_spans`, as JSON, or compressed."""
_OTHER_FILES = (
    (b"PAR1", "a Parquet file"),
    (b"PK\x03\x04", "a ZIP file"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"<", "XML or HTML"),
)
"""How files begin that cannot be read, and what they are."""
_TEXT_BYTES = bytes([*range(0x20, 0x7F), *b"\t\r\n"])
"""ASCII alone: a serialised request has ids, which hardly ever are."""

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


class RecordedTraffic:
    """Reads recorded files one by one.

    What cannot be read ends up in `problems`. `warnings` has single spans that were left out, as the service
    would leave them out of a request, and files whose last part was cut off while it was written.
    """

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []

    def read(self, file: RecordedFile) -> Iterator[SplitRequest | AgentRun]:
        """The requests and runs of one file, in order."""
        name = str(file.path)
        try:
            data = _inflated(file.path.read_bytes())
        except OSError as error:
            self.problems.append(Problem(name, 0, "", f"cannot be read: {error.strerror}"))
            return
        except Refusal as error:
            self.problems.append(Problem(name, 0, "", str(error)))
            return
        encoding = _recognised(data, file.encoding)
        if encoding is Encoding.REQUEST:
            yield from self._request(name, 0, data)
        elif encoding is Encoding.MESSAGES:
            yield from self._messages(name, data)
        elif encoding is Encoding.JSON_DOCUMENT:
            yield from self._document(name, 0, data.removeprefix(codecs.BOM_UTF8))
        else:
            read = self._document if encoding is Encoding.JSON_LINES else self._run
            lines = data.removeprefix(codecs.BOM_UTF8).split(b"\n")
            last = lines.pop()
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield from read(name, number, line)
            if last.strip():
                if lines and not _is_json(last):
                    self._warn_of_cut(name, len(lines) + 1, len(last))
                else:
                    yield from read(name, len(lines) + 1, last)

    def _messages(self, name: str, data: bytes) -> Iterator[SplitRequest]:
        position = 0
        while position < len(data):
            start = position + _LENGTH_BYTES
            position = start + int.from_bytes(data[start - _LENGTH_BYTES : start])
            if position > len(data):
                self._warn_of_cut(name, 0, len(data) - start)
                return
            message = data[start:position]
            try:
                message = _inflated(message)
            except Refusal as error:
                self.problems.append(Problem(name, 0, f"byte {start}", str(error)))
                continue
            yield from (self._document if message[:1] == b"{" else self._request)(name, 0, message)

    def _warn_of_cut(self, name: str, line: int, length: int) -> None:
        message = (
            f"the file ends within its last message, after {max(length, 0)} bytes of it, which were left out"
        )
        self.warnings.append(Problem(name, line, "", message))

    def _request(self, name: str, line: int, body: bytes) -> Iterator[SplitRequest]:
        try:
            request = split_request(body)
        except MalformedRequest as error:
            form = next((form for start, form in _OTHER_FILES if body.startswith(start)), None)
            if form is None and body.translate(None, delete=_TEXT_BYTES) == b"":
                form = "text"
            message = str(error) if form is None else f"not an OTLP request, this looks like {form}"
            self.problems.append(Problem(name, line, "", message))
            return
        if request.rejected:
            self.warnings.append(Problem(name, line, "", request.rejection()))
        yield request

    def _document(self, name: str, line: int, text: bytes) -> Iterator[SplitRequest]:
        try:
            for body in requests_in_document(parse_json(text)):
                yield from self._request(name, line, body)
        except MalformedRequest as error:
            self.problems.append(Problem(name, line, "", str(error)))

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
    return next(
        (
            encoding
            for ending, encoding in _ENDINGS
            if path.name.endswith(tuple(ending + compressed for compressed in _COMPRESSED))
        ),
        None,
    )


def _inflated(data: bytes) -> bytes:
    """`data` as it was before gzip or zstd; of a zstd frame that was cut off, what is there of it.

    Raises:
        MalformedRequest: what is compressed is damaged.
        RequestTooLarge: it would take more than `MAX_REQUEST_BYTES`.
    """
    if data.startswith(GZIP_MAGIC):
        return gzip_decompress(data, MAX_REQUEST_BYTES)
    if not data.startswith(_ZSTD_MAGIC):
        return data
    with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
        try:
            content = reader.read(MAX_REQUEST_BYTES + 1)
        except zstandard.ZstdError as error:
            raise MalformedRequest(f"The zstd data is damaged: {error}.") from error
    if len(content) > MAX_REQUEST_BYTES:
        raise RequestTooLarge(f"The zstd data has more than {MAX_REQUEST_BYTES} bytes after decompression.")
    return content


def _is_json(text: bytes) -> bool:
    try:
        parse_json(text)
    except MalformedRequest:
        return False
    return True


def _recognised(data: bytes, by_name: Encoding | None) -> Encoding:
    """How `data` holds its traffic: by its beginning where that leaves no doubt, else by the file's name."""
    if data[_LENGTH_BYTES:].startswith(_STARTS_OF_MESSAGES) and data[0] == 0:  # no request begins with 0
        return Encoding.MESSAGES
    if by_name is not None:
        return by_name
    head = data.removeprefix(codecs.BOM_UTF8).lstrip()
    if head[:1] not in (b"{", b"["):
        return Encoding.REQUEST
    try:
        first = decode_json(head.split(b"\n", 1)[0])
    except ValueError:
        return Encoding.JSON_DOCUMENT
    if isinstance(first, dict) and "agent" in first:
        return Encoding.RUNS
    return Encoding.JSON_LINES
