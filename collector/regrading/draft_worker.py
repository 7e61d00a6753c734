"""The process that grades stored runs by a draft of criteria, apart from the service and at low priority.

It is started by `collector.page.drafts`. Whatever a draft does to it, the process is all that is lost.
"""

import os
import pickle
import resource
from pathlib import Path

from collector.clock import SystemClock
from collector.regrading.stored_runs import HIDDEN, Regrader
from collector.regrading.verdict_export import verdict_requests
from collector.workers.custom_evaluators import CustomEvaluators, evaluator_kind
from collector.workers.offline import OfflineWorkers
from collector.workers.protocol import Answer, serve
from processors.documents import InvalidInput

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
    hidden = HIDDEN if is_partial else ""
    regrader = Regrader(criteria, settings.evaluation, now, writes=writes, hidden=hidden, workers=workers)
    loaded = {
        "problems": [],
        "digest": criteria.hash,
        "with_traces": criteria.looks_at_traces,
        "over_conversations": criteria.looks_at_conversations,
    }

    def answer(message: bytes) -> bytes:
        graded = regrader.grade(pickle.loads(message))
        verdicts = len(graded.runs), list(verdict_requests(graded.verdicts))
        return pickle.dumps(verdicts if writes else graded.to_store())

    return pickle.dumps(loaded), answer


if __name__ == "__main__":
    serve(begin)
