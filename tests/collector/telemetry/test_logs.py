"""One line for each record, at a bounded rate."""

import io
import json
import logging
from collections.abc import Iterator

import pytest

from collector.clock import ManualClock
from collector.telemetry import RateLimitedLogger, configure_logging


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _restored_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name in ("collector", "processors"):
        logging.getLogger(name).setLevel(logging.NOTSET)
    logging.captureWarnings(False)


def json_lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_record_is_one_json_line_where_nobody_reads_along() -> None:
    stream = io.StringIO()
    configure_logging(stream)

    logging.getLogger("collector.service").info(
        "Line one\nand two.", extra={"spans": 3, "trace_id": "ab" * 16}
    )

    [entry] = json_lines(stream)
    assert {
        "level": "info",
        "logger": "collector.service",
        "message": "Line one\nand two.",
        "spans": 3,
        "trace_id": "ab" * 16,
    } == {name: value for name, value in entry.items() if name != "time"}
    assert 1 == stream.getvalue().count("\n")


def test_a_record_is_one_readable_line_on_a_terminal() -> None:
    stream = Terminal()
    configure_logging(stream)

    logging.getLogger("collector.service").warning(
        "Sent \x1b[31mback\n.", extra={"reason": "overloaded", "detail": 'a "b"', "again": True}
    )

    time, _, rest = stream.getvalue().partition(" ")
    assert time.endswith("Z")
    assert (
        "level=warning logger=collector.service "
        'message="Sent \\u001b[31mback\\n." reason=overloaded detail="a \\"b\\"" again=true\n'
    ) == rest


@pytest.mark.parametrize(("encoding", "is_json"), [("json", True), ("console", False)])
def test_the_encoding_can_be_chosen(encoding: str, is_json: bool) -> None:
    stream = Terminal()
    configure_logging(stream, encoding="json" if is_json else "console")

    logging.getLogger("collector").info("Hello.")

    assert is_json == stream.getvalue().startswith("{")


def test_an_exception_stays_on_its_line() -> None:
    for encoding in ("json", "console"):
        stream = io.StringIO()
        configure_logging(stream, encoding="json" if encoding == "json" else "console")

        try:
            raise ValueError("broken")
        except ValueError:
            logging.getLogger("collector").exception("It broke.")

        assert 1 == stream.getvalue().count("\n")
        assert "ValueError: broken" in stream.getvalue()
        assert "test_logs.py" in stream.getvalue()


def test_a_lone_surrogate_can_be_written() -> None:
    stream = io.StringIO()
    for encoding in ("json", "console"):
        configure_logging(stream, encoding="json" if encoding == "json" else "console")
        logging.getLogger("collector").info("Half \ud800.", extra={"name_": "\udfff"})

    assert 2 == len(stream.getvalue().encode().splitlines())


def test_the_level_holds_for_the_project_and_libraries_speak_from_warning_on() -> None:
    stream = io.StringIO()
    configure_logging(stream, level="debug")

    logging.getLogger("collector.buffer").debug("Shown.")
    logging.getLogger("grpc").info("Not shown.")
    logging.getLogger("grpc").warning("Shown too.")

    assert ["Shown.", "Shown too."] == [entry["message"] for entry in json_lines(stream)]


def test_a_second_set_up_replaces_the_first() -> None:
    first, second = io.StringIO(), io.StringIO()
    configure_logging(first)
    configure_logging(second)

    logging.getLogger("collector").info("Once.")

    assert "" == first.getvalue()
    assert 1 == len(json_lines(second))


def test_a_reason_is_logged_once_in_ten_seconds_with_the_number_left_out() -> None:
    stream, clock = io.StringIO(), ManualClock()
    configure_logging(stream, clock=clock)
    log = RateLimitedLogger(logging.getLogger("collector.exporters"), clock)

    for _ in range(5):
        log.warning("queue_full", "Spans were dropped.", exporter="otlp", name="x")
        clock.advance(1)
    log.warning("refused", "Spans were refused.")
    clock.advance(5)
    log.warning("queue_full", "Spans were dropped.", exporter="otlp")

    entries = json_lines(stream)
    assert [("queue_full", None), ("refused", None), ("queue_full", 4)] == [
        (entry["reason"], entry.get("suppressed")) for entry in entries
    ]
    assert "x" == entries[0]["name_"]


def test_a_rate_limited_exception_carries_its_traceback_and_the_caller() -> None:
    stream = io.StringIO()
    handler = configure_logging(stream)
    paths: list[str] = []

    def note_origin(record: logging.LogRecord) -> bool:
        paths.append(record.pathname)
        return True

    handler.addFilter(note_origin)
    log = RateLimitedLogger(logging.getLogger("collector.path"), ManualClock())

    try:
        raise KeyError("tool")
    except KeyError:
        log.exception("trace_failed", "A trace failed.", trace_id="ab")

    [entry] = json_lines(stream)
    assert "KeyError: 'tool'" == entry["error"]
    assert [__file__] == paths


def test_below_the_level_nothing_is_counted_as_left_out() -> None:
    stream, clock = io.StringIO(), ManualClock()
    configure_logging(stream, level="error", clock=clock)
    log = RateLimitedLogger(logging.getLogger("collector.x"), clock)

    log.info("same", "Not shown.")
    log.error("same", "Shown.")

    assert ["Shown."] == [entry["message"] for entry in json_lines(stream)]


def test_libraries_are_held_to_the_rate_by_template_and_not_by_text() -> None:
    stream, clock = io.StringIO(), ManualClock()
    configure_logging(stream, clock=clock)

    for number in range(100):
        logging.getLogger("uvicorn.error").warning("Invalid request %d.", number)
    clock.advance(10)
    logging.getLogger("uvicorn.error").warning("Invalid request %d.", 100)

    assert [("Invalid request 0.", None), ("Invalid request 100.", 99)] == [
        (entry["message"], entry.get("suppressed")) for entry in json_lines(stream)
    ]
