"""One side of `benchmarks.versions`: grades requests with the code of one checkout.

`python version_worker.py CHECKOUT FOLDER` imports `collector` and `processors` of CHECKOUT and nothing else
of this project; each name is looked up where that checkout defines it, so it may keep its modules where it
likes. FOLDER holds the requests and the criteria. It announces itself with a digest of the graded spans and
one of the verdicts in them, and answers every line `STEP FIRST COUNT REPEATS` with the CPU-µs a trace.
"""

import gc
import hashlib
import importlib
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import Any

from opentelemetry.proto.trace.v1.trace_pb2 import Span

_ROOMS = ("collector", "processors")
_TIME_UNIX_NANO = 1_700_000_000_000_000_000
_VERDICT = ("gen_ai.evaluation.name", "gen_ai.evaluation.score.label", "gen_ai.evaluation.score.value")


class Checkout:
    """The code of one checkout, by names."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __getitem__(self, name: str) -> Any:
        """The function or class `name`, wherever the checkout defines it.

        Raises:
            LookupError: no module defines it, or several do.
        """
        module = importlib.import_module(self.module_of(name))
        if not str(module.__file__).startswith(str(self._folder)):
            raise LookupError(f"{name} was imported from {module.__file__}, not from {self._folder}")
        return getattr(module, name)

    def module_of(self, name: str) -> str:
        """The one module that defines `name`."""
        found = list(self._definitions(name))
        if len(found) != 1:
            raise LookupError(f"{name} is defined {len(found)} times in {self._folder}: {found}")
        return found[0]

    def _definitions(self, name: str) -> Iterator[str]:
        definition = re.compile(rf"^(?:class|def) {name}\b", re.MULTILINE)
        for room in _ROOMS:
            for path in sorted((self._folder / room).rglob("*.py")):
                if definition.search(path.read_text(encoding="utf-8")):
                    parts = path.relative_to(self._folder).with_suffix("").parts
                    yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


class Steps:
    """The traces of the requests in `folder`, and what is measured with each."""

    def __init__(self, code: Checkout, folder: Path) -> None:
        split_request, finished_trace = code["split_request"], code["FinishedTrace"]
        spans_of: dict[bytes, list[Any]] = {}
        for path in sorted(folder.glob("*.request")):
            for trace_id, spans in split_request(path.read_bytes()).traces.items():
                spans_of.setdefault(trace_id, []).extend(spans)
        reason = code["FinishReason"].ROOT
        self.traces = [
            finished_trace(trace_id=trace_id, spans=spans, reason=reason)
            for trace_id, spans in spans_of.items()
        ]
        document = code["read_criteria"]((folder / "criteria.yaml").read_text(), "criteria.yaml", {})
        criteria = code["CriteriaSet"](getattr(document, "agents", document))  # a list in older versions
        self._reconstruct = code["reconstruct"]
        self._grade = _grade_function(code, criteria)

    def reconstruct(self, trace: Any) -> Any:
        """The runs of a trace."""
        return self._reconstruct(trace.spans, trace_id=trace.trace_id, reason=trace.reason)

    def stage(self, trace: Any) -> Any:
        """The trace rebuilt, graded and annotated."""
        return self._grade(trace)

    def digests(self) -> tuple[str, str]:
        """What all graded spans are, in short; and what the name, label and score of every result in them."""
        spans, verdicts = hashlib.sha256(), hashlib.sha256()
        for trace in self.traces:
            for span in self.stage(trace).spans:
                spans.update(span[1])
                for event in Span.FromString(span[1]).events:
                    told = {attribute.key: str(attribute.value) for attribute in event.attributes}
                    verdicts.update(repr([told.get(key) for key in _VERDICT]).encode())
        return spans.hexdigest(), verdicts.hexdigest()


def _grade_function(code: Checkout, criteria: Any) -> Callable[[Any], Any]:
    """Grades a trace; checkouts of before November 2026 have another stage."""
    metrics, clock = code["Metrics"](), code["ManualClock"](unix_nano=_TIME_UNIX_NANO)
    settings = {"criteria": lambda: criteria, "clock": clock, "instance": "versions"}
    try:
        stage = code["GradingStage"](grader=code["Grader"](**settings), metrics=metrics, clock=clock)
    except LookupError:
        found: Callable[[Any], Any] = code["EvaluationStage"](metrics=metrics, **settings).grade
        return found
    found = stage.grade_now
    return found


def micros_per_trace(step: Callable[[Any], object], traces: list[Any], repeats: int) -> float:
    """CPU-µs of `step` over so many passes over `traces`."""
    gc.collect()
    started = process_time()
    for _ in range(repeats):
        for trace in traces:
            step(trace)
    return (process_time() - started) * 1e6 / repeats / len(traces)


def main() -> None:
    """Measure for every line on stdin."""
    checkout = Path(sys.argv[1]).resolve()
    sys.path[0] = str(checkout)
    steps = Steps(Checkout(checkout), Path(sys.argv[2]))
    spans, verdicts = steps.digests()
    told = f"spans={spans} verdicts={verdicts} traces={len(steps.traces)}"
    print(f"worker ready: {told}", file=sys.stderr, flush=True)
    gc.freeze()
    for line in sys.stdin:
        step, first, count, repeats = line.split()
        chosen = steps.traces[int(first) : int(first) + int(count)]
        print(micros_per_trace(getattr(steps, step), chosen, int(repeats)), flush=True)


if __name__ == "__main__":
    main()
