"""The evaluation stage: a finished trace in, the same trace graded and annotated out.

This is the boundary behind which a trace cannot harm the service: whatever goes wrong while one trace is
rebuilt or graded is logged and counted, and its spans leave unchanged.
"""

import logging
from collections.abc import Callable
from typing import Literal

from collector.clock import Clock
from collector.telemetry.logs import RateLimitedLogger
from collector.telemetry.metrics import Metrics
from collector.trace import FinishedTrace, GradedRun, GradedTrace
from processors.annotation import append_results, count_results
from processors.criteria import CriteriaSet
from processors.evaluate import evaluate_run
from processors.evaluation_result import NotEvaluatedReason
from processors.reconstruction import reconstruct

_logger = logging.getLogger(__name__)


class EvaluationStage:
    """Rebuilds the agent runs of finished traces, grades them and writes the results onto the spans.

    `criteria` is asked for the set in force once per trace, so a reload never mixes two sets in one.
    """

    def __init__(
        self,
        *,
        criteria: Callable[[], CriteriaSet],
        metrics: Metrics,
        clock: Clock,
        instance: str,
        missing_parents: Literal["grade", "not_evaluated"] = "grade",
    ) -> None:
        self._criteria = criteria
        self._metrics = metrics
        self._clock = clock
        self._instance = instance
        self._missing_parents = missing_parents
        self._log = RateLimitedLogger(_logger, clock)

    def grade(self, trace: FinishedTrace) -> GradedTrace:
        """Grade one trace; never raises for what a trace can hold."""
        started = self._clock.monotonic()
        try:
            graded = self._grade(trace)
        except Exception:  # one trace must not take the others down
            self._metrics.traces_failed.add(1)
            self._log.exception(
                "trace_failed",
                "A trace could not be evaluated; it is forwarded unchanged.",
                trace_id=trace.trace_id.hex(),
            )
            graded = GradedTrace(
                trace_id=trace.trace_id, spans=trace.spans, backfill=trace.backfill, tenant=trace.tenant
            )
        self._metrics.evaluation_seconds.observe(self._clock.monotonic() - started)
        return graded

    def _grade(self, trace: FinishedTrace) -> GradedTrace:
        foreign = count_results(trace.spans)
        if foreign:
            self._metrics.foreign_results.add(foreign)
        criteria = self._criteria()
        runs: list[GradedRun] = []
        for run in reconstruct(
            trace.spans,
            trace_id=trace.trace_id,
            reason=trace.reason,
            was_quiet=trace.was_quiet,
            interrupted=trace.interrupted,
            missing_parents=self._missing_parents,
            tenant=trace.tenant,
        ):
            evaluations = criteria.evaluations_for(run.agent.name, run.tenant)
            if not evaluations:
                self._metrics.not_evaluated.add(1, NotEvaluatedReason.NO_CRITERIA.value)
            runs.append(GradedRun(run=run, results=evaluate_run(run, evaluations)))
        return GradedTrace(
            trace_id=trace.trace_id,
            spans=append_results(
                trace.spans,
                ((graded.run, graded.results) for graded in runs),
                time_unix_nano=self._clock.unix_nano(),
                instance=self._instance,
            ),
            runs=runs,
            backfill=trace.backfill,
            tenant=trace.tenant,
        )
