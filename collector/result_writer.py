"""From graded runs to what leaves: the configured forms of a verdict, and the spans if they waited for it."""

from collections.abc import Sequence

from collector.results_config import ResultsConfig
from collector.trace import FinishedTrace, GradedTrace
from processors.annotation.evaluation_span import evaluation_spans
from processors.annotation.log_record import result_records
from processors.annotation.span_event import append_results
from processors.model.graded_run import GradedRun
from processors.spans.span import RawSpan


class ResultWriter:
    """Writes results in every form that `config` names; `instance` says who graded.

    Where spans are forwarded when they come (`stream`), what it makes holds none of them.
    """

    def __init__(self, config: ResultsConfig, instance: str) -> None:
        self._instance = instance
        self._spans_left_already = config.mode == "stream"
        self._writes_events = "span_event" in config.emit
        self._writes_records = "log" in config.emit
        self._writes_spans = "span" in config.emit
        self._openinference = "openinference" in config.annotations
        self._writes_on_spans = config.holds_spans and (self._writes_events or self._openinference)

    def write(self, trace: FinishedTrace, runs: Sequence[GradedRun], unix_nano: int) -> GradedTrace:
        """`trace` as it is to leave, with the results of `runs`, reached at `unix_nano`."""
        spans: Sequence[RawSpan] = () if self._spans_left_already else trace.spans
        log_records: Sequence[RawSpan] = ()
        spans_of_results: Sequence[RawSpan] = ()
        if runs:
            graded = [(run.run, run.results) for run in runs]
            if self._writes_on_spans:
                spans = append_results(
                    spans,
                    graded,
                    time_unix_nano=unix_nano,
                    instance=self._instance,
                    events=self._writes_events,
                    openinference=self._openinference,
                )
            if self._writes_records:
                log_records = result_records(
                    trace.spans, graded, time_unix_nano=unix_nano, instance=self._instance
                )
            if self._writes_spans:
                spans_of_results = evaluation_spans(
                    trace.spans,
                    graded,
                    time_unix_nano=unix_nano,
                    instance=self._instance,
                    openinference=self._openinference,
                )
        return GradedTrace(
            trace_id=trace.trace_id,
            spans=spans,
            runs=runs,
            log_records=log_records,
            evaluation_spans=spans_of_results,
            backfill=trace.backfill,
            tenant=trace.tenant,
        )
