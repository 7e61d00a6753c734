"""What is recorded reads the same with the reader in Rust as with the Python code, however it arrives."""

import random
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

from collector.otlp import SplitRequest
from collector.recordings.recorded_traffic import RecordedTraffic
from processors.annotation import format_run
from processors.model import REDACTION_MARKERS, FinishReason, GradedRun, JsonValue, parse_json, plain_object
from processors.reconstruction import reconstruct, span_reader
from processors.reconstruction.reading import SpanReader
from processors.shapes import Dialect, SpanRole
from processors.shapes.attribute_reading import flattened_value
from processors.spans import RawSpan, Span, SpanTree, encoded_text
from tests.support.agent_spans import span as agent_span
from tests.support.readers import READERS, reader

DATA = Path(__file__).parents[2] / "data"
FOLDERS = sorted(
    folder
    for holder in ("both_signals", "corpus", "recordings")
    for folder in (DATA / holder).iterdir()
    if folder.is_dir()
)
UNKNOWN_GROUP = b"\xa3\x06\xa4\x06"
"""A field that the protobuf runtime skips, and that the reader in Rust leaves to it."""


@cache
def _traces(folder: Path) -> list[tuple[bytes, list[RawSpan]]]:
    traffic = RecordedTraffic()
    traces: dict[bytes, list[RawSpan]] = {}
    for file in traffic.find([folder]):
        for item in traffic.read(file):
            for trace_id, spans in item.traces.items() if isinstance(item, SplitRequest) else ():
                traces.setdefault(trace_id, []).extend(spans)
    return list(traces.items())


def _variants(spans: list[RawSpan], number: int) -> Iterator[list[RawSpan]]:
    """The spans as recorded; in another order; without some; one of them twice; and with cut texts."""
    order = random.Random(number)
    yield spans
    yield order.sample(spans, len(spans))
    yield order.sample(spans, (len(spans) + 1) // 2)
    yield [*spans, order.choice(spans)]
    yield [(span_id, _cut(raw, order), envelope) for span_id, raw, envelope in spans]


def _cut(raw: bytes, order: random.Random) -> bytes:
    """A span with one of its texts cut off, and sometimes a field more that nobody knows."""
    message = SpanMessage.FromString(raw)
    if message.attributes:
        value = order.choice(message.attributes).value
        if value.HasField("string_value"):
            value.string_value = value.string_value[: len(value.string_value) // 2]
    return message.SerializeToString() + order.choice((b"", b"", UNKNOWN_GROUP))


def _lines(trace_id: bytes, spans: Sequence[RawSpan], with_reader: SpanReader) -> list[bytes]:
    runs = reconstruct(spans, trace_id=trace_id, reason=FinishReason.ROOT, reader=with_reader)
    return [format_run(GradedRun(run=run, results=())) for run in runs]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: f"{folder.parent.name}/{folder.name}")
def test_recordings_give_the_same_runs(folder: Path) -> None:
    readers = {name: span_reader(shared=False) for name in READERS}  # each learns by itself
    for trace_id, recorded in _traces(folder):
        for spans in _variants(recorded, len(recorded)):
            lines = {}
            for name in READERS:
                with reader(name):
                    lines[name] = _lines(trace_id, spans, readers[name])
            assert lines["python"] == lines["native"]


def test_recorded_spans_are_read_in_rust() -> None:
    with reader("native"):
        for folder in FOLDERS:
            for _, spans in _traces(folder):
                for view in SpanTree(list({span[0]: span for span in spans}.values())).views:
                    assert "tracegrade_native" == type(view).__module__


def test_words_in_a_text_distinguish_spans_in_rust(monkeypatch: pytest.MonkeyPatch) -> None:
    def role(view: Span) -> SpanRole:
        return SpanRole.AGENT if view.attributes.mentions("k", "word", "other") else SpanRole.MODEL

    texts = [f"{number}{'x' * 100}{word}" for number in range(3) for word in ("", "word", "other")]
    own = SpanReader([Dialect("d", ("k",), role, rank=1)])
    with reader("native"):
        views = SpanTree(
            [agent_span(number, None, "a", {"k": text}) for number, text in enumerate(texts, 1)]
        ).views
        first = [reading and reading.role for reading in own.read_all(views)]
        monkeypatch.setattr(SpanReader, "_read_each", None)
        again = [reading and reading.role for reading in own.read_all(views)]

    assert [SpanRole.MODEL, SpanRole.AGENT, SpanRole.AGENT] * 3 == first == again


_numbers = st.sampled_from(["1" * digits for digits in (3, 18, 19, 20, 40)])
_texts = st.lists(
    st.sampled_from(["{", "}", "[", "]", '"a":', '"x"', ",", "1.5", "é", "NaN"]) | _numbers
).map("".join)


@given(
    st.dictionaries(
        st.text("a1.-", max_size=6),
        st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.just("x")
        | st.just({"a": 1}),
    )
)  # fmt: skip
def test_flattened_attributes_are_spelled_out_alike(members: dict[str, JsonValue]) -> None:
    spans = [agent_span(1, None, "a", {f"p.{key}": value for key, value in members.items()})]
    values = {}
    for name in READERS:
        with reader(name):
            values[name] = repr(flattened_value(SpanTree(spans).views[0].attributes, "p."))

    assert values["python"] == values["native"]


@given(_texts | _texts.map('{{"a":{}}}'.format) | st.sampled_from(sorted(REDACTION_MARKERS)))
def test_json_is_parsed_alike(text: str) -> None:
    values = {}
    for name in READERS:
        with reader(name):
            try:
                parsed = repr(parse_json(text))
            except ValueError:
                parsed = "no JSON"
            values[name] = parsed, repr(plain_object(encoded_text(text)))

    assert values["python"] == values["native"]
