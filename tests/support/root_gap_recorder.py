"""Records when spans come after their roots: `python -m tests.support.root_gap_recorder`, for root_gaps.json.

Agents run in threads and end their spans through the SDK's own batch processor; what its exporter is given,
and when, is what a service would see. In `quick` everything ends before the root and is exported twice a
second. In `background` every third run saves its memory in a span that ends up to 50 ms after the root, and
exports go out with 512 spans, about every second, so that the two are sometimes in different ones.
"""

import json
import random
import sys
import threading
import time
from collections.abc import Sequence

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

_SECONDS, _THREADS = 90.0, 40


class _Arrivals(SpanExporter):
    """Takes note of when each trace's root came, and when spans came after it."""

    def __init__(self) -> None:
        self.roots: dict[int, float] = {}
        self.after: dict[int, list[float]] = {}

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        now = time.monotonic()
        came: dict[int, bool] = {}
        for span in spans:
            context = span.get_span_context()
            assert context is not None
            trace = context.trace_id
            came[trace] = came.get(trace, False) or span.parent is None
        for trace, has_root in came.items():
            if trace in self.roots:
                self.after.setdefault(trace, []).append(now - self.roots[trace])
            elif has_root:
                self.roots[trace] = now
        return SpanExportResult.SUCCESS


def _record(delay_milliseconds: int, background: bool) -> dict[str, object]:
    arrivals = _Arrivals()
    provider = TracerProvider()
    provider.add_span_processor(
        BatchSpanProcessor(arrivals, schedule_delay_millis=delay_milliseconds, max_queue_size=100_000)
    )
    tracer = provider.get_tracer("agent")
    ends = time.monotonic() + _SECONDS

    def work(seed: int) -> None:
        chance = random.Random(seed)
        while time.monotonic() < ends:
            saving = None
            with tracer.start_as_current_span("invoke_agent"):
                for _ in range(chance.randint(1, 3)):
                    with tracer.start_as_current_span("execute_tool"):
                        time.sleep(chance.uniform(0.01, 0.2))
                if background and chance.random() < 1 / 3:
                    saving = tracer.start_span("save_memory")
            if saving is not None:
                time.sleep(chance.uniform(0, 0.05))
                saving.end()

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    provider.shutdown()
    after = {
        place: [round(1000 * gap) for gap in arrivals.after[trace]]
        for place, trace in enumerate(arrivals.roots)
        if trace in arrivals.after
    }
    return {"traces": len(arrivals.roots), "milliseconds_after_root": after}


if __name__ == "__main__":
    recorded = {"quick": _record(500, background=False), "background": _record(5000, background=True)}
    json.dump(recorded, sys.stdout, separators=(",", ":"))
