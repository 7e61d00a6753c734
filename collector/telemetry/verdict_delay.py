"""How long verdicts take to come, as the people who wait for them count it: from the end of the run."""

from collector.telemetry.metrics import Metrics
from collector.trace import GradedTrace


def observe_verdict_delays(metrics: Metrics, graded: GradedTrace, unix_nano: int) -> None:
    """Observe for each run with results how long ago it ended; nothing for backfill.

    A run ends with the last of its own span and its tool calls. That time is the sender's word: a run that
    ends in the future by it has waited 0 s.
    """
    if graded.backfill:
        return
    for graded_run in graded.runs:
        run = graded_run.run
        end = run.end_unix_nano
        for call in run.tool_calls:
            if call.end_unix_nano > end:
                end = call.end_unix_nano
        if end and graded_run.results:
            metrics.verdict_delay_seconds.observe(max(0, unix_nano - end) / 1e9)
