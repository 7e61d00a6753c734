"""Grades stored runs by other criteria, as they would have been graded then."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import structs

from collector.conversations import Conversations
from collector.criteria import EvaluationConfig
from collector.recordings import Change, RecordedStream, changes, whole_trace
from collector.regrading.verdict_export import verdict_records
from collector.store import ChangedResult, PackedRun, unpacked
from collector.workers.offline import OfflineWorkers
from processors.annotation import graded_run_from_json
from processors.criteria import CriteriaSet, applied_criteria
from processors.model import EvaluationResult, GradedRun
from processors.spans import RawSpan

HIDDEN = "only some runs of the store are graded"
"""Why not all runs of a conversation are known."""


class Regraded(NamedTuple):
    """Some runs, graded again: their ids, how many results are the same, and what differs.

    `verdicts` are log records of the new verdicts, where these are to be written. `unreadable` is how many
    runs are left out, since this version cannot read their lines.
    """

    runs: list[int]
    same: int
    differing: list[Change]
    verdicts: list[RawSpan]
    unreadable: int

    def to_store(self) -> tuple[list[int], list[ChangedResult], int, int]:
        """What `Regrades.add` takes of it."""
        changed = [
            ChangedResult(
                run=change.stored_id,
                agent=change.agent,
                evaluation=new.name,
                old="" if change.old is None else change.old.outcome.value,
                new=new.outcome.value,
                cause=change.cause,
                call=new.tool_call_id or ("" if new.tool_span_id is None else new.tool_span_id.hex()),
                score=new.score,
                explanation=": ".join(filter(None, (new.reason, new.explanation))),
            )
            for change in self.differing
            if (new := change.new) is not None
        ]
        return self.runs, changed, self.same, len(self.differing) - len(changed)


class Regrader:
    """Grades runs in the order in which it is given them.

    `unix_nano` is the present. `writes` is whether verdicts are to be written. `hidden` is why not all runs
    of a conversation are graded; empty: they are.
    """

    def __init__(
        self,
        criteria: CriteriaSet,
        evaluation: EvaluationConfig,
        unix_nano: int,
        *,
        writes: bool,
        hidden: str = "",
        workers: OfflineWorkers | None = None,
    ) -> None:
        self._criteria = criteria
        self._evaluation = evaluation
        self._unix_nano = unix_nano
        self._writes = writes
        self._hidden = hidden
        self._workers = workers
        self._stream: RecordedStream | None = None

    def grade(self, runs: Iterable[PackedRun]) -> Regraded:
        """The old and the new results of runs; where criteria look at traces, each has its whole trace."""
        graded = Regraded([], 0, [], [], 0)
        same = unreadable = 0
        for stored in runs:
            try:
                trace = [graded_run_from_json(unpacked(line), f"run {stored.id}") for line in stored.lines]
            except ValueError:
                unreadable += 1
                continue
            old = trace[stored.place]
            new = self._new_results(trace, stored.place)
            for change in changes(old.run, _plain(old.results), _plain(new), stored.id):
                if change.kind:
                    graded.differing.append(change)
                else:
                    same += 1
            if self._writes:
                graded.verdicts.extend(verdict_records(old.run, new, self._unix_nano))
            graded.runs.append(stored.id)
        return graded._replace(same=same, unreadable=unreadable)

    def _new_results(self, trace: Sequence[GradedRun], place: int) -> Sequence[EvaluationResult]:
        """The results of the run at `place` of its trace."""
        graded_unix_nano = trace[place].graded_unix_nano
        stream = self._stream or self._started(graded_unix_nano)
        runs = [stream.priced(one.run) for one in trace]
        run, evaluations = applied_criteria(runs, self._criteria)[place]
        return stream.evaluate(run, evaluations, self._criteria, whole_trace(runs), graded_unix_nano)

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


def _plain(results: Sequence[EvaluationResult]) -> list[EvaluationResult]:
    """`results` without their details, which are of no use here and made when somebody looks at them."""
    return [structs.replace(result, details={}) for result in results]
