"""What the reports say of measurements, how figures get into a page, and what the peers do with spans."""

from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from benchmarks import peers
from benchmarks.agent_criteria import criteria_text
from benchmarks.assembled_peer import read_spans
from benchmarks.child_process import MeasurementRefused
from benchmarks.load import Connection, Order
from benchmarks.measure import Measurement
from benchmarks.page import write_figures
from benchmarks.peers import peers_lines
from benchmarks.scaling import held_point
from benchmarks.servers import Naive, Otelcol, ServerUnderTest, Tracegrade
from benchmarks.sink import span_payloads
from benchmarks.workload import SHAPES, Shape, agent_name, process_requests
from processors.criteria.agent_criteria import CriteriaSet
from processors.criteria.criteria_file import read_criteria

START = 1_700_000_000_000_000_000
MIDDLE = SHAPES[1]


def _measurement(cpu_seconds: float) -> Measurement:
    return Measurement(
        spans=1_000_000,
        requests=1_000,
        cpu_seconds=cpu_seconds,
        load_seconds=10.0,
        latency_median=0.001,
        latency_p99=0.01,
        peak_rss_mib=100.0,
    )


def test_servers_take_turns_and_their_ratio_is_that_of_each_round(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter([20.0, 10.0, 10.0, 30.0])  # the second round begins with the last server
    asked: list[str] = []

    def measure(server: ServerUnderTest, shape: Shape, order: Order) -> Measurement:
        asked.append(server.name)
        return _measurement(next(seconds))

    monkeypatch.setattr(peers, "measure", measure)

    lines = list(peers_lines([Tracegrade(), Naive()], SHAPES[:1], order=Order(seconds=1), rounds=2))

    assert ["tracegrade", "naive", "naive", "tracegrade"] == asked
    assert "| tracegrade | 25.0 [20.0–30.0] | 25,000 | 100,000 | 1.0 / 10.0 | 100 |" in lines
    assert "| tracegrade | 2.50 [2.00–3.00] |" in lines
    assert "- tracegrade to naive, at most 0.25: 2.50, MISSED" in lines


def test_a_shape_that_is_refused_has_no_figures_and_the_next_is_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def measure(server: ServerUnderTest, shape: Shape, order: Order) -> Measurement:
        if shape.name == "512":
            raise MeasurementRefused("a span was lost")
        return _measurement(10.0)

    monkeypatch.setattr(peers, "measure", measure)

    lines = list(peers_lines([Naive()], SHAPES[:2], order=Order(seconds=1), rounds=1))

    assert "REFUSED 512: a span was lost" in lines
    assert [f"| naive | {10.0} | 10,000 | 100,000 | 1.0 / 10.0 | 100 |"] == lines[-1:]


def test_a_peer_that_loses_a_span_once_is_measured_again_and_the_service_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refused: set[str] = set()

    def measure(server: ServerUnderTest, shape: Shape, order: Order) -> Measurement:
        if server.name not in refused:
            refused.add(server.name)
            raise MeasurementRefused(f"{server.name} lost a span")
        return _measurement(10.0)

    monkeypatch.setattr(peers, "measure", measure)

    lines = list(peers_lines([Naive()], SHAPES[:1], order=Order(seconds=1), rounds=1))
    assert "measured again: naive lost a span" in lines
    assert "| naive | 10.0 | 10,000 | 100,000 | 1.0 / 10.0 | 100 |" in lines
    lines = list(peers_lines([Tracegrade()], SHAPES[:1], order=Order(seconds=1), rounds=1))
    assert ["", "REFUSED 512: tracegrade lost a span"] == lines


def test_what_is_missing_is_left_out_with_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Otelcol, "missing", lambda _: "it takes Go")

    assert ["otelcol is left out: it takes Go"] == list(
        peers_lines([Otelcol()], SHAPES, order=Order(), rounds=1)
    )


def test_figures_stand_between_their_marks_unless_something_was_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- figures: some -->\nold\n<!-- end -->\nafter\n")

    assert ["# how", "| 1 |"] == list(write_figures(page, "some", ["# how", "| 1 |"]))
    written = page.read_text()
    list(write_figures(page, "some", ["# how", "REFUSED: lost"]))

    assert (
        "before\n<!-- figures: some -->\n\nhow\n\n| 1 |\n\n<!-- end -->\nafter\n"
        == written
        == page.read_text()
    )
    with pytest.raises(MeasurementRefused, match="no mark"):
        list(write_figures(page, "other", ["| 1 |"]))


def test_the_assembled_peer_sends_the_spans_that_it_took() -> None:
    for request in process_requests(0, MIDDLE, START):
        body = request.for_pass(1)

        spans = list(read_spans(ExportTraceServiceRequest.FromString(body)))

        assert sorted(span_payloads(body)) == sorted(span_payloads(encode_spans(spans).SerializeToString()))


def test_a_connection_sends_whole_passes_of_agents_in_turn() -> None:
    bodies: list[bytes] = []

    def export(body: bytes) -> bytes:
        bodies.append(body)
        return b""

    requests = process_requests(0, MIDDLE, START)
    sent = Connection(export, MIDDLE, requests, number=0, of=1, agents=7).send(Order(passes=2))

    sent_bytes = b"".join(bodies)
    assert 2 * MIDDLE.spans == sent.spans == sum(len(span_payloads(body)) for body in bodies)
    assert 2 * MIDDLE.traces == sent.traces
    assert sent.bytes == len(sent_bytes)
    assert [30, 28] == [sent_bytes.count(agent_name(number).encode()) for number in (0, 6)]
    assert 0 == sent_bytes.count(agent_name(7).encode())


def test_a_rate_spreads_the_requests_over_time() -> None:
    shape = SHAPES[2]
    requests = process_requests(0, shape, START)

    sent = Connection(lambda body: b"", shape, requests, number=0, of=1, agents=0).send(Order(rate=1_000))

    assert shape.spans / 1_000 * 0.9 < sent.seconds


def test_criteria_have_as_many_evaluations_and_agents_as_asked_for() -> None:
    criteria = CriteriaSet(read_criteria(criteria_text(20, ["first", "second"]), "criteria.yaml", {}).agents)

    assert [20, 20] == [len(criteria.evaluations_for(agent)) for agent in ("first", "second")]


def test_held_spans_cost_something_in_and_out() -> None:
    point = held_point(100)

    assert all(value > 0 for value in point.values())
