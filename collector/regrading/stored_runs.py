"""Grades stored runs by other criteria, as they would have been graded then."""

from collections.abc import Iterator, Sequence

from msgspec import structs

from collector.conversations import Conversations
from collector.criteria import EvaluationConfig
from collector.recordings import Change, RecordedStream, changes, whole_trace
from collector.store import ChangedResult, PackedRun, unpacked
from collector.workers.offline import OfflineWorkers
from processors.annotation import graded_run_from_json
from processors.criteria import CriteriaSet, applied_criteria
from processors.model import AgentRun, EvaluationResult, GradedRun

HIDDEN = "only some runs of the store are graded"
"""Why not all runs of a conversation are known."""


class Regrader:
    """Grades runs in the order in which it is given them.

    `unix_nano` is the present. `hidden` is why not all runs of a conversation are graded; empty: they are.
    """

    def __init__(
        self,
        criteria: CriteriaSet,
        evaluation: EvaluationConfig,
        unix_nano: int,
        hidden: str = "",
        workers: OfflineWorkers | None = None,
    ) -> None:
        self._criteria = criteria
        self._evaluation = evaluation
        self._unix_nano = unix_nano
        self._hidden = hidden
        self._workers = workers
        self._stream: RecordedStream | None = None

    def grade(self, stored: PackedRun) -> tuple[AgentRun, Sequence[EvaluationResult], Iterator[Change]]:
        """A run, its new results, and its old and new results in pairs.

        Where criteria look at traces, `stored` has all runs of its trace. Raises ValueError if a line cannot
        be read.
        """
        trace = [_graded(line, stored.id) for line in stored.lines]
        graded = trace[stored.place]
        stream = self._stream or self._started(graded.graded_unix_nano)
        runs = [stream.priced(one.run) for one in trace]
        run, evaluations = applied_criteria(runs, self._criteria)[stored.place]
        of_trace = whole_trace(runs)
        new = stream.evaluate(run, evaluations, self._criteria, of_trace, graded.graded_unix_nano)
        return graded.run, new, changes(graded.run, _plain(graded.results), _plain(new), stored.id)

    def _started(self, first_unix_nano: int) -> RecordedStream:
        """What runs are graded with: of conversations it knows what is graded from the first one on."""
        conversations = Conversations(self._evaluation.conversations, hidden=self._hidden)
        conversations.follow(self._criteria.looks_at_conversations, first_unix_nano)
        conversations.open(first_unix_nano)
        self._stream = RecordedStream(
            unix_nano=self._unix_nano,
            prices=self._evaluation.price_table(),
            workers=self._workers,
            conversations=conversations,
        )
        return self._stream


def stored_change(change: Change) -> ChangedResult:
    """As a store retains it; only for a change with a `new` result."""
    new = change.new
    assert new is not None  # what is removed has no row
    call = new.tool_call_id or ("" if new.tool_span_id is None else new.tool_span_id.hex())
    old = "" if change.old is None else change.old.outcome.value
    why = ": ".join(filter(None, (new.reason, new.explanation)))
    return ChangedResult(
        change.stored_id, change.agent, new.name, old, new.outcome.value, change.cause, call, new.score, why
    )


def _graded(line: bytes, run: int) -> GradedRun:
    return graded_run_from_json(unpacked(line), f"run {run}")


def _plain(results: Sequence[EvaluationResult]) -> list[EvaluationResult]:
    """`results` without their details, which are of no use here and made when somebody looks at them."""
    return [structs.replace(result, details={}) for result in results]
