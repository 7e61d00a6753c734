"""Grading in other processes: what handing traces over costs the one that receives, and what it gains."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from time import process_time

from benchmarks.agent_criteria import criteria_text
from benchmarks.page import with_range
from benchmarks.workload import SHAPES, process_requests
from collector.clock import SystemClock
from collector.criteria import CriteriaTexts, EvaluationConfig
from collector.grading import Form, Grader, GradingPool, GradingStage, WorkerSettings
from collector.otlp import split_request
from collector.results_config import ResultsConfig
from collector.task_supervisor import TaskSupervisor
from collector.telemetry import Metrics
from collector.trace import FinishedTrace
from processors.annotation import run_from_json
from processors.model import AgentRun, FinishReason, decode_json
from processors.spans import RawSpan

PROCESSES = (0, 1, 2)
_PASSES = 3


def processes_lines(*, rounds: int) -> Iterator[str]:
    """For each number of processes CPU of the receiving one for a span, and spans graded in a second."""
    yield from asyncio.run(_measured(rounds))


async def _measured(rounds: int) -> list[str]:
    texts = CriteriaTexts([("criteria.yaml", criteria_text().encode(), False)], {}, ())
    traces = _traces()
    spans = sum(len(trace.spans) for trace in traces)
    criteria = texts.read()
    clock = SystemClock()
    grader = Grader(criteria=lambda: criteria, clock=clock, instance="bench")
    tasks = TaskSupervisor(on_failure=lambda: None)
    stages = {
        count: GradingStage(
            grader=grader, metrics=Metrics(), clock=clock, pool=_pool(texts, count) if count else None
        )
        for count in PROCESSES
    }
    for stage in stages.values():
        stage.start(tasks)
        await _graded(stage, traces)  # nothing is measured that is done once
    figures: dict[int, list[tuple[float, float]]] = {count: [] for count in PROCESSES}
    for _ in range(rounds):
        for count in PROCESSES:
            began, used = time.perf_counter(), process_time()
            await _graded(stages[count], traces)
            figures[count].append(
                ((process_time() - used) * 1e6 / spans, spans / (time.perf_counter() - began))
            )
    for stage in stages.values():
        await stage.shutdown()
    await tasks.cancel()
    return [
        "| processes | CPU µs a span, in the one that receives | spans graded/s |",
        "| --- | --- | --- |",
        *(
            f"| {count} | {with_range([cpu for cpu, _ in found], '.1f')} | "
            f"{with_range([rate for _, rate in found], ',.0f')} |"
            for count, found in figures.items()
        ),
    ]


async def _graded(stage: GradingStage, traces: Sequence[FinishedTrace]) -> None:
    await asyncio.gather(*[stage.grade(trace) for trace in traces])


def _pool(texts: CriteriaTexts, count: int) -> GradingPool:
    settings = WorkerSettings(
        config=EvaluationConfig(),
        instance="bench",
        missing_parents="grade",
        uses_workers=False,
        results=ResultsConfig(),
        writes_scores=False,
        form=Form(lines=False, details=False, resource_attributes=()),
    )
    return GradingPool(
        settings,
        processes=count,
        criteria=lambda: texts,
        read_run=_read_run,
        metrics=Metrics(),
        clock=SystemClock(),
    )


def _read_run(line: bytes) -> AgentRun:
    return run_from_json(decode_json(line), "bench")


def _traces() -> list[FinishedTrace]:
    found: list[FinishedTrace] = []
    for number in range(_PASSES):
        for process in range(2):
            spans: dict[bytes, list[RawSpan]] = {}
            for request in process_requests(process, SHAPES[0], time.time_ns()):
                for trace_id, arrived in split_request(request.for_pass(number)).traces.items():
                    spans.setdefault(trace_id, []).extend(arrived)
            found += [
                FinishedTrace(trace_id=trace_id, spans=arrived, reason=FinishReason.ROOT)
                for trace_id, arrived in spans.items()
            ]
    return found
