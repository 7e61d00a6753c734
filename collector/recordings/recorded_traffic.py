"""Recorded traffic: traces, logs and hand-written agent runs from files and folders.

Reads what the Collector's file exporter, our own `file` exporter, a request dump, a trace backend's API or a
person wrote, also in gzip or zstd. All problems of all files are collected, so that a user can fix them at
once.
"""

import codecs
from collections.abc import Iterable, Iterator
from enum import Enum
from io import BytesIO
from pathlib import Path

import zstandard

from collector.errors import MalformedRequest, Refusal, RequestTooLarge
from collector.otlp import (
    GZIP_MAGIC,
    SplitRecords,
    SplitRequest,
    gzip_decompress,
    parse_json,
    split_records,
    split_request,
)
from collector.recordings.trace_documents import requests_in_document
from collector.trace import Signal
from processors.annotation import run_from_json
from processors.documents import Problem
from processors.model import AgentRun, decode_json
from processors.spans import LogRecord

MAX_REQUEST_BYTES = 1 << 30
"""What one recorded request may inflate to."""


class Encoding(Enum):
    """How a file holds its traffic."""

    REQUEST = "one serialised export request of traces or logs"
    MESSAGES = (
        "messages, each after its length, as the Collector's file exporter writes `proto` or compressed"
    )
    JSON_DOCUMENT = "one JSON document of a form that `trace_documents` reads"
    JSON_LINES = "such a document a line"
    RUNS = "one agent run a line"


_ENDINGS = {
    ".runs.jsonl": Encoding.RUNS,
    ".jsonl": Encoding.JSON_LINES,
    ".otlp.json": Encoding.JSON_DOCUMENT,
    ".binpb": Encoding.REQUEST,
}
"""Each also with .gz or .zst after it."""

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_LENGTH_BYTES = 4
"""Before each message its length is written, as a big-endian number of this size."""
_STARTS_OF_MESSAGES = (b"\n", b"{", _ZSTD_MAGIC)
"""How a message begins: with the tag of `resource_spans` or `resource_logs`, as JSON, or compressed."""
_OTHER_FILES = (
    (b"PAR1", "a Parquet file"),
    (b"PK\x03\x04", "a ZIP file"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"<", "XML or HTML"),
)
"""How files that cannot be read begin, and what they are."""
_TEXT_BYTES = bytes([*range(0x20, 0x7F), *b"\t\r\n"])
"""ASCII alone: a serialised request has ids, which hardly ever are."""

_REQUEST_KEYS = frozenset({"resourceSpans", "resource_spans", "resourceLogs", "resource_logs"})


class RecordedTraffic:
    """Reads recorded files one by one.

    `problems` lists what could not be read. `warnings` lists spans and log records that were left out, as the
    service would leave them out of a request, and files whose last part was cut off while it was written.
    """

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []

    def find(self, paths: Iterable[Path]) -> list[Path]:
        """The files in `paths`, in name order within each folder.

        Of a folder, with the folders below it, only files with a known ending; a file given by itself may
        have any.
        """
        files: list[Path] = []
        for path in paths:
            if not path.is_dir():
                files.append(path)
                continue
            in_folder = [file for file in sorted(path.rglob("*")) if _by_ending(file) and file.is_file()]
            if not in_folder:
                endings = ", ".join(f"*{ending}" for ending in _ENDINGS)
                self._problem(str(path), f"no recorded traffic in this folder, expected {endings}")
            files += in_folder
        return files

    def read(self, path: Path) -> Iterator[SplitRequest | SplitRecords | AgentRun]:
        """The requests and runs of one file, in order."""
        name = str(path)
        try:
            data = _inflated(path.read_bytes())
        except FileNotFoundError:
            self._problem(name, "no such file or folder")
            return
        except OSError as error:
            self._problem(name, f"cannot be read: {error.strerror}")
            return
        except Refusal as error:
            self._problem(name, str(error))
            return
        encoding = _encoding(data, path)
        if encoding is Encoding.REQUEST:
            yield from self._request(name, 0, data)
        elif encoding is Encoding.MESSAGES:
            yield from self._messages(name, data)
        elif encoding is Encoding.JSON_DOCUMENT:
            yield from self._document(name, 0, data.removeprefix(codecs.BOM_UTF8))
        else:
            read = self._document if encoding is Encoding.JSON_LINES else self._run
            # One after the other, since all of them take as much memory as the file once more.
            for number, ended in enumerate(BytesIO(data.removeprefix(codecs.BOM_UTF8)), start=1):
                line = ended.removesuffix(b"\n")
                if not line.strip():
                    continue
                if line is ended and number > 1 and not _is_json(line):
                    self._warn_of_cut(name, number, len(line))
                else:
                    yield from read(name, number, line)

    def _messages(self, name: str, data: bytes) -> Iterator[SplitRequest | SplitRecords]:
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
                self._problem(name, str(error), path=f"byte {start}")
                continue
            yield from (self._document if message[:1] == b"{" else self._request)(name, 0, message)

    def _warn_of_cut(self, name: str, line: int, length: int) -> None:
        message = f"the file ends within its last message, whose {max(length, 0)} bytes were left out"
        self.warnings.append(Problem(name, line, "", message))

    def _request(
        self, name: str, line: int, body: bytes, signal: Signal | None = None
    ) -> Iterator[SplitRequest | SplitRecords]:
        """Split a request; without `signal` it is one of logs if that is what it can be read as alone."""
        request: SplitRequest | SplitRecords
        try:
            if signal == "logs":
                request = split_records(body)
            else:
                request = _split(body) if signal is None else split_request(body)
        except MalformedRequest as error:
            form = next((form for start, form in _OTHER_FILES if body.startswith(start)), None)
            if form is None and body.translate(None, delete=_TEXT_BYTES) == b"":
                form = "text"
            message = str(error) if form is None else f"not an OTLP request, this looks like {form}"
            self._problem(name, message, line)
            return
        if request.rejected:
            self.warnings.append(Problem(name, line, "", request.rejection()))
        yield request

    def _document(self, name: str, line: int, text: bytes) -> Iterator[SplitRequest | SplitRecords]:
        try:
            for signal, body in requests_in_document(parse_json(text)):
                yield from self._request(name, line, body, signal)
        except MalformedRequest as error:
            self._problem(name, str(error), line)

    def _run(self, name: str, line: int, text: bytes) -> Iterator[AgentRun]:
        where = f"{name}:{line}"
        try:
            entry = decode_json(text)
        except ValueError as error:
            self._problem(name, f"not valid JSON: {error}, expected one agent run a line", line)
            return
        if isinstance(entry, dict) and "agent" not in entry and entry.keys() & _REQUEST_KEYS:
            message = "not an agent run but an OTLP request: name such a file *.jsonl or *.otlp.json"
            self._problem(name, message, line)
            return
        try:
            yield run_from_json(entry, where)
        except ValueError as error:
            for problem in str(error).splitlines():
                self._problem(name, problem.removeprefix(f"{where}: "), line)

    def _problem(self, name: str, message: str, line: int = 0, path: str = "") -> None:
        self.problems.append(Problem(name, line, path, message))


def _split(body: bytes) -> SplitRequest | SplitRecords:
    """Split a request of traces or logs, which differ in nothing but what their items hold.

    Raises:
        MalformedRequest: it is neither.
    """
    refusal: MalformedRequest | None = None
    try:
        spans = split_request(body)
        if spans.accepted or not spans.rejected:
            return spans
    except MalformedRequest as error:
        refusal = error
    try:
        records = split_records(body)
    except MalformedRequest:
        records = SplitRecords([], 0)
    # A span has no time where a record has its own, and a record no trace id where a span has it.
    if any(LogRecord(payload).unix_nano for _, payload, _ in records.records[:1]):
        return records
    if refusal is not None:
        raise refusal
    return spans


def _by_ending(path: Path) -> Encoding | None:
    for ending, encoding in _ENDINGS.items():
        if path.name.endswith((ending, f"{ending}.gz", f"{ending}.zst")):
            return encoding
    return None


def _inflated(data: bytes) -> bytes:
    """`data` before gzip or zstd compression; of a zstd frame that was cut off, the readable part.

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


def _encoding(data: bytes, path: Path) -> Encoding:
    """How `data` holds its traffic: by its beginning where that is conclusive, else by the file's name."""
    if data.startswith(_STARTS_OF_MESSAGES, _LENGTH_BYTES) and data[0] == 0:  # no request begins with 0
        return Encoding.MESSAGES
    if by_ending := _by_ending(path):
        return by_ending
    head = data.removeprefix(codecs.BOM_UTF8).lstrip()
    if head[:1] not in (b"{", b"["):
        return Encoding.REQUEST
    try:
        first = decode_json(head.split(b"\n", 1)[0])
    except ValueError:
        return Encoding.JSON_DOCUMENT
    return Encoding.RUNS if isinstance(first, dict) and "agent" in first else Encoding.JSON_LINES
