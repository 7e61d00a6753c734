"""What hostile traces cost: CPU per span at three sizes side by side, and the memory above the spans' own."""

import gc
import tracemalloc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import process_time

from benchmarks.hostile_spans import TRACE_ID
from benchmarks.hostile_traces import HOSTILE_KINDS, HostileKind
from collector.criteria import load_criteria
from processors.criteria import CriteriaSet
from processors.evaluate import evaluate_run
from processors.model import AgentRun, FinishReason
from processors.reconstruction import reconstruct
from processors.spans import RawSpan

SIZES = (1_000, 10_000, 100_000)
"""Spans of the traces of each kind."""
MEMORY_SIZE = SIZES[1]
"""Spans of the traces whose memory is measured: that takes several times as long as grading them."""
GOAL = 2.0
"""How much more a span of the largest trace may cost than one of the smallest."""

_SECONDS = 0.5
_FEWEST, _MOST = 1, 25


@dataclass(frozen=True, slots=True)
class HostileCost:
    """CPU time of one trace in seconds: of rebuilding its runs, and of grading them with the default set."""

    spans: int
    reconstruction: float
    evaluation: float

    @property
    def total(self) -> float:
        """Both together."""
        return self.reconstruction + self.evaluation


def hostile_lines(kinds: Sequence[HostileKind] = HOSTILE_KINDS) -> Iterator[str]:
    """Measure kind after kind, one line each, with a heading."""
    criteria = load_criteria(None, environment={})
    sizes = " ".join(f"{size:>8,}" for size in SIZES)
    memory = f"MiB at {MEMORY_SIZE:,}: peak / spans"
    yield f"hostile     {'us/span at':<22}  {sizes}  ratio | grading {sizes}  ratio | {memory}"
    for kind in kinds:
        costs = [hostile_cost(kind.build(size), criteria) for size in SIZES]
        peak, held = peak_memory(kind.build(MEMORY_SIZE), criteria)
        rebuilt = [cost.reconstruction / cost.spans * 1e6 for cost in costs]
        graded = [cost.evaluation / cost.spans * 1e6 for cost in costs]
        yield (
            f"hostile     {kind.name:<22}  {_figures(rebuilt)} | {'':>7} {_figures(graded)} | "
            f"{peak / 2**20:6.1f} / {held / 2**20:.1f}"
        )


def hostile_cost(
    spans: Sequence[RawSpan], criteria: CriteriaSet, *, seconds: float = _SECONDS, passes: int = _FEWEST
) -> HostileCost:
    """The least CPU time of so many `passes` over one trace, or of more that fill `seconds`."""
    rebuilding = grading = float("inf")
    spent = 0.0
    done = 0
    while done < passes or (spent < seconds and done < _MOST):
        gc.collect()
        started = process_time()
        runs = _rebuilt(spans)
        between = process_time()
        _grade(runs, criteria)
        ended = process_time()
        del runs
        rebuilding = min(rebuilding, between - started)
        grading = min(grading, ended - between)
        spent += ended - started
        done += 1
    return HostileCost(len(spans), rebuilding, grading)


def peak_memory(spans: Sequence[RawSpan], criteria: CriteriaSet) -> tuple[int, int]:
    """Bytes at the peak of rebuilding and grading `spans`, beside them; and the bytes of the spans."""
    gc.collect()
    tracemalloc.start()
    try:
        _grade(_rebuilt(spans), criteria)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return peak, sum(len(raw) for _, raw, _ in spans)


def _rebuilt(spans: Sequence[RawSpan]) -> list[AgentRun]:
    return reconstruct(spans, trace_id=TRACE_ID, reason=FinishReason.ROOT)


def _grade(runs: Sequence[AgentRun], criteria: CriteriaSet) -> None:
    for run in runs:
        evaluate_run(run, criteria.evaluations_for(run.agent.name))


def _figures(micros: Sequence[float]) -> str:
    ratio = micros[-1] / micros[0]
    figures = " ".join(f"{value:8.2f}" for value in micros)
    return f"{figures} {ratio:6.2f}{' ' if ratio <= GOAL else '!'}"
