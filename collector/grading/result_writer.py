"""Results in every form in which they leave."""

from collections.abc import Sequence

from collector.results_config import ResultsConfig
from collector.trace import FinishedTrace, GradedTrace
from processors.annotation import append_results, evaluation_spans, result_records
from processors.model import GradedRun
from processors.spans import RawSpan


class ResultWriter:
    """Writes results in every form that `config` names.

    Where spans are forwarded when they come (`stream`), what it makes holds none of them.
    """

    def __init__(self, config: ResultsConfig, *, writes_scores: bool) -> None:
        self._spans_left_already = config.mode == "stream"
        self._writes_events = "span_event" in config.emit
        self._writes_records = writes_scores or "log" in config.emit
        self._writes_spans = "span" in config.emit
        self._openinference = "openinference" in config.annotations
        self._content = config.content_rules()
        self._writes_on_spans = config.holds_spans and (self._writes_events or self._openinference)

    def write(self, trace: FinishedTrace, runs: Sequence[GradedRun]) -> GradedTrace:
        """`trace` as it is to leave, with the results of `runs`, which were graded together."""
        spans: Sequence[RawSpan] = () if self._spans_left_already else trace.spans
        log_records: Sequence[RawSpan] = ()
        spans_of_results: Sequence[RawSpan] = ()
        shown = runs if self._content.shows_all else [self._content.shown(run) for run in runs]
        if runs:
            graded = [(run.run, run.results) for run in shown]
            unix_nano, instance = runs[0].graded_unix_nano, runs[0].instance
            if self._writes_on_spans:
                spans = append_results(
                    spans,
                    graded,
                    time_unix_nano=unix_nano,
                    instance=instance,
                    events=self._writes_events,
                    openinference=self._openinference,
                )
            if self._writes_records:
                log_records = self._content.shown_records(
                    result_records(trace.spans, graded, time_unix_nano=unix_nano, instance=instance)
                )
            if self._writes_spans:
                spans_of_results = self._content.shown_records(
                    evaluation_spans(
                        trace.spans,
                        graded,
                        time_unix_nano=unix_nano,
                        instance=instance,
                        openinference=self._openinference,
                    )
                )
        return GradedTrace(
            trace_id=trace.trace_id,
            spans=spans,
            runs=shown,
            hidden_runs=() if shown is runs else runs,
            log_records=log_records,
            evaluation_spans=spans_of_results,
            backfill=trace.backfill,
            quarantined=trace.quarantined,
            tenant=trace.tenant,
        )
