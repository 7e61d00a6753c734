"""The service beside its peers in one interleaved run, as Markdown."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from statistics import median

from benchmarks.child_process import MeasurementRefused
from benchmarks.load import Order
from benchmarks.measure import Measurement, measure
from benchmarks.page import REFUSED, with_range
from benchmarks.servers import ServerUnderTest, Tracegrade
from benchmarks.workload import Shape

GOALS: Mapping[str, Sequence[tuple[Sequence[str], str, float]]] = {
    "512": [
        (["tracegrade"], "otelcol", 2.6),
        (["tracegrade"], "assembled", 0.5),
        (["tracegrade"], "naive", 0.25),
    ],
    "50": [(["tracegrade-uvicorn", "tracegrade-http"], "otelcol", 1.8)],
    "1-5": [(["tracegrade-uvicorn", "tracegrade-http"], "otelcol", 1.0)],
}
"""By shape, the largest ratio of any of these to a peer that is still a success, at saturation."""

_TRIES_OF_A_PEER = 3
"""A peer that loses spans now and then, as the Collector does when it is saturated, is measured again."""

_Measured = Mapping[str, Sequence[Measurement]]


def peers_lines(
    servers: Sequence[ServerUnderTest], shapes: Sequence[Shape], *, order: Order, rounds: int
) -> Iterator[str]:
    """Measure every shape, the servers in turn, their order reversed every other round.

    A shape of which any measurement cannot be trusted gets a line that begins with `REFUSED` instead. A peer
    is measured again before that, and a line says so; the service has one try.
    """
    missing = {server.name: why for server in servers if (why := server.missing())}
    for name, why in missing.items():
        yield f"{name} is left out: {why}"
    servers = [server for server in servers if server.name not in missing]
    for shape in shapes if servers else ():
        yield ""
        measured: dict[str, list[Measurement]] = {server.name: [] for server in servers}
        try:
            for number in range(rounds):
                for server in servers if number % 2 == 0 else reversed(servers):
                    measured[server.name].append((yield from _measured(server, shape, order)))
        except MeasurementRefused as refusal:
            yield f"{REFUSED} {shape.name}: {refusal}"
            continue
        yield from _figures(shape, order, measured)
        ours = [server.name for server in servers if isinstance(server, Tracegrade)]
        peers = [server.name for server in servers if server.name not in ours]
        if ours and peers:
            yield ""
            yield from _ratios(measured, ours, peers)
            if not order.rate:
                yield from _goals(shape, measured)


def _measured(server: ServerUnderTest, shape: Shape, order: Order) -> Generator[str, None, Measurement]:
    for _ in range(0 if isinstance(server, Tracegrade) else _TRIES_OF_A_PEER - 1):
        try:
            return measure(server, shape, order)
        except MeasurementRefused as refusal:
            yield f"measured again: {refusal}"
    return measure(server, shape, order)


def ratios(measured: _Measured, name: str, peer: str) -> list[float]:
    """CPU a span of `name` to that of `peer`, by round."""
    return [
        own.cpu_micros_per_span / other.cpu_micros_per_span
        for own, other in zip(measured[name], measured[peer], strict=True)
    ]


def _figures(shape: Shape, order: Order, measured: _Measured) -> Iterator[str]:
    load = f"{order.rate:,.0f} spans/s" if order.rate else "saturated"
    yield (
        f"| {shape.name} spans a request, {load} | CPU µs a span | µs a request | spans/s "
        "| acknowledged p50 / p99, ms | peak MiB |"
    )
    yield "| --- | --- | --- | --- | --- | --- |"
    for name, measurements in measured.items():

        def middle(value: Callable[[Measurement], float], of: Sequence[Measurement] = measurements) -> float:
            return median(value(measurement) for measurement in of)

        per_span = with_range([m.cpu_micros_per_span for m in measurements], ".1f")
        yield (
            f"| {name} | {per_span} | {middle(lambda m: m.cpu_micros_per_request):,.0f}"
            f" | {middle(lambda m: m.spans_per_second):,.0f}"
            f" | {middle(lambda m: m.latency_median) * 1e3:.1f} / {middle(lambda m: m.latency_p99) * 1e3:.1f}"
            f" | {middle(lambda m: m.peak_rss_mib):.0f} |"
        )


def _ratios(measured: _Measured, ours: Sequence[str], peers: Sequence[str]) -> Iterator[str]:
    yield f"| CPU a span, ratio to | {' | '.join(peers)} |"
    yield "| --- |" + " --- |" * len(peers)
    for name in ours:
        cells = [with_range(ratios(measured, name, peer), ".2f") for peer in peers]
        yield f"| {name} | {' | '.join(cells)} |"


def _goals(shape: Shape, measured: _Measured) -> Iterator[str]:
    yield ""
    for names, peer, goal in GOALS.get(shape.name, ()):
        found = {
            name: median(ratios(measured, name, peer)) for name in names if {name, peer} <= measured.keys()
        }
        if found:
            best = min(found, key=lambda name: found[name])
            verdict = "met" if found[best] <= goal else "MISSED"
            yield f"- {best} to {peer}, at most {goal:g}: {found[best]:.2f}, {verdict}"
