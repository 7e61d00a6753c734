"""Interleaved rounds of measurements, and the lines that report them."""

from collections.abc import Callable, Mapping, Sequence
from statistics import median

from benchmarks.measure import Measurement, measure
from benchmarks.servers import NaivePeer, ServerUnderTest, Tracegrade
from benchmarks.workload import Shape

GOALS: Mapping[str, float] = {"512": 0.25}
"""The largest ratio of tracegrade to the naive peer that is still a success, by shape."""


def compare(servers: Sequence[ServerUnderTest], shape: Shape, *, seconds: float, rounds: int) -> list[str]:
    """Measure the servers in turn, the order reversed every other round, and return the report's lines.

    Raises:
        MeasurementRefused: any of the measurements cannot be trusted.
    """
    measured: dict[str, list[Measurement]] = {server.name: [] for server in servers}
    for number in range(rounds):
        for server in servers if number % 2 == 0 else reversed(servers):
            measured[server.name].append(measure(server, shape, seconds))
    lines = [_line(name, shape, measurements) for name, measurements in measured.items()]
    if Tracegrade.name in measured and NaivePeer.name in measured:
        lines.append(_ratio(shape, measured[Tracegrade.name], measured[NaivePeer.name]))
    return lines


def _line(name: str, shape: Shape, measurements: Sequence[Measurement]) -> str:
    def middle(value: Callable[[Measurement], float]) -> float:
        return median(value(measurement) for measurement in measurements)

    per_span = [measurement.cpu_micros_per_span for measurement in measurements]
    spans = sum(measurement.spans for measurement in measurements)
    return (
        f"{name:<12}{shape.name:>4}"
        f"  {median(per_span):8.2f} us/span [{min(per_span):.2f}-{max(per_span):.2f}]"
        f"  {middle(lambda m: m.cpu_micros_per_request):8.0f} us/request"
        f"  {middle(lambda m: m.spans_per_second):7.0f} spans/s"
        f"  ack {middle(lambda m: m.latency_median) * 1e3:.1f} ms"
        f" p99 {middle(lambda m: m.latency_p99) * 1e3:.1f} ms"
        f"  peak {middle(lambda m: m.peak_rss_mib):.0f} MiB"
        f"  ({spans} spans in {len(measurements)} rounds)"
    )


def _ratio(shape: Shape, ours: Sequence[Measurement], peers: Sequence[Measurement]) -> str:
    ratio = median(m.cpu_micros_per_span for m in ours) / median(m.cpu_micros_per_span for m in peers)
    by_round = [
        own.cpu_micros_per_span / peer.cpu_micros_per_span for own, peer in zip(ours, peers, strict=True)
    ]
    line = (
        f"{'ratio':<12}{shape.name:>4}  {ratio:8.3f} {Tracegrade.name} / {NaivePeer.name}"
        f" [{min(by_round):.3f}-{max(by_round):.3f}]"
    )
    goal = GOALS.get(shape.name)
    if goal is None:
        return line
    return f"{line}  goal {goal:g}: {'met' if ratio <= goal else 'MISSED'}"
