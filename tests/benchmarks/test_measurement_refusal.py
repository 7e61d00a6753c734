import sys

import pytest

from benchmarks.child_process import ChildProcess, MeasurementRefused, cpu_seconds, peak_rss_mib
from benchmarks.load import Sent
from benchmarks.measure import require_exact
from benchmarks.servers import Naive, Rotel, Tracegrade
from benchmarks.sink import SinkCounts


def test_a_span_forwarded_once_each_is_accepted() -> None:
    require_exact(Naive(), Sent(spans=26, traces=2), SinkCounts(spans=26, distinct_spans=26))


@pytest.mark.parametrize(
    "counts",
    [
        pytest.param(SinkCounts(spans=25, distinct_spans=25), id="lost"),
        pytest.param(SinkCounts(spans=27, distinct_spans=26), id="doubled"),
        pytest.param(SinkCounts(spans=26, distinct_spans=25), id="lost and doubled"),
        pytest.param(SinkCounts(spans=26, distinct_spans=26, result_events=1), id="an event too many"),
    ],
)
def test_anything_else_is_refused(counts: SinkCounts) -> None:
    sent = Sent(spans=26, traces=2)

    with pytest.raises(MeasurementRefused):
        require_exact(Naive(), sent, counts)


def test_the_service_must_add_six_events_to_every_trace() -> None:
    sent = Sent(spans=26, traces=2)

    require_exact(Tracegrade(), sent, SinkCounts(spans=26, distinct_spans=26, result_events=12))
    with pytest.raises(MeasurementRefused, match="11 evaluation events"):
        require_exact(Tracegrade(), sent, SinkCounts(spans=26, distinct_spans=26, result_events=11))


def test_a_server_that_drops_may_forward_nothing() -> None:
    sent = Sent(spans=26, traces=2)

    require_exact(Rotel(), sent, SinkCounts())
    with pytest.raises(MeasurementRefused):
        require_exact(Rotel(), sent, SinkCounts(spans=26, distinct_spans=26))


def test_a_process_that_ends_before_it_is_ready_is_refused_with_its_last_words() -> None:
    command = [sys.executable, "-c", "import sys; sys.exit('no such port')"]

    with (
        ChildProcess("server", command) as process,
        pytest.raises(MeasurementRefused, match=r"(?s)server ended before.*no such port"),
    ):
        process.ready(20)


def test_cpu_time_and_memory_of_a_process_and_its_child_are_counted() -> None:
    child = "n = 0\nfor i in range(3_000_000): n += i\nblock = b'x' * 50_000_000\n"
    parent = (
        "import subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, '-c', {child!r} + 'print(1, flush=True); input()'],"
        " stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "child.stdout.readline()\n"
        "print('parent ready: a=b', file=sys.stderr, flush=True)\n"
        "input()\n"
        "child.communicate(b'\\n')\n"
        "print('ended', flush=True)\n"
        "input()\n"
    )

    with ChildProcess("parent", [sys.executable, "-c", parent]) as process:
        ready = process.ready(60)
        alive, peak = cpu_seconds(process.pid), peak_rss_mib(process.pid)
        process.ask("", 60)
        ended = cpu_seconds(process.pid)

    assert {"a": "b"} == ready
    assert alive > 0.05
    assert peak > 50
    assert ended >= alive
