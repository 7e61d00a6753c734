"""The process that grades stored runs by a draft of criteria, apart from the service and at low priority.

It is started by `collector.page.drafts`. Whatever a draft does to it, the process is all that is lost.
"""

import os
import pickle
import resource
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from collector.clock import SystemClock
from collector.regrading.stored_runs import HIDDEN, Regrader, stored_change
from collector.regrading.verdict_export import verdict_records, verdict_requests
from collector.store import ChangedResult, PackedRun
from collector.workers.custom_evaluators import CustomEvaluators, evaluator_kind
from collector.workers.offline import OfflineWorkers
from collector.workers.protocol import Answer, serve
from processors.documents import InvalidInput
from processors.spans import RawSpan

_NICE = 10
_MEMORY_BYTES = 512 << 20
"""How much more than at its start the process may take."""
_MAX_PROBLEMS = 100


def begin(order: bytes) -> tuple[bytes, Answer]:
    """Read a draft; the answer is what is wrong with it, or what it is, and grades runs from then on."""
    settings, draft, replaced, tenant, is_partial, writes = pickle.loads(order)
    os.nice(_NICE)
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + _MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (size, resource.getrlimit(resource.RLIMIT_AS)[1]))
    try:
        criteria = settings.texts.read_with_draft(draft, replaced, tenant)
    except InvalidInput as error:
        problems = [(problem.line, str(problem)) for problem in error.problems[:_MAX_PROBLEMS]]
        return pickle.dumps({"problems": problems}), lambda message: b""
    kinds = {
        name: evaluator_kind(name, version, reads_submission=reads)
        for name, version, reads in settings.texts.custom
    }
    workers = OfflineWorkers(CustomEvaluators(settings.evaluation, kinds, settings.custom_order))
    workers.__enter__()  # it ends with this process
    now = SystemClock().unix_nano()
    regrader = Regrader(criteria, settings.evaluation, now, HIDDEN if is_partial else "", workers)
    loaded = {
        "problems": [],
        "digest": criteria.hash,
        "with_traces": criteria.looks_at_traces,
        "over_conversations": criteria.looks_at_conversations,
    }
    answer = partial(_verdicts, unix_nano=now) if writes else _graded
    return pickle.dumps(loaded), lambda message: pickle.dumps(answer(regrader, pickle.loads(message)))


def _verdicts(
    regrader: Regrader, runs: Sequence[PackedRun], unix_nano: int
) -> tuple[int, list[tuple[bytes, int]]]:
    """The number of runs that could be read, and requests with their new verdicts."""
    records: list[RawSpan] = []
    read = 0
    for stored in runs:
        try:
            run, new, _ = regrader.grade(stored)
        except ValueError:  # a line that this version cannot read
            continue
        read += 1
        records += verdict_records(run, new, unix_nano)
    return read, list(verdict_requests(records))


def _graded(regrader: Regrader, runs: Sequence[PackedRun]) -> tuple[list[int], list[ChangedResult], int, int]:
    """The runs that could be read; of their results those that differ, how many stay, how many go."""
    graded: list[int] = []
    changed: list[ChangedResult] = []
    same = removed = 0
    for run in runs:
        try:
            _, _, pairs = regrader.grade(run)
        except ValueError:  # a line that this version cannot read
            continue
        graded.append(run.id)
        for change in pairs:
            if not change.kind:
                same += 1
            elif change.new is None:
                removed += 1
            else:
                changed.append(stored_change(change))
    return graded, changed, same, removed


if __name__ == "__main__":
    serve(begin)
