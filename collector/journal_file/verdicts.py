"""How a trace was graded, so that it can be delivered after a restart as it was graded.

The runs are not written: rebuilding is deterministic, so the results and the time of grading are enough.
Where no exporter takes runs, what grading added to the spans is written instead, and nothing is rebuilt.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import msgspec

from collector.journal_file.records import DamagedRecord
from collector.trace import FinishedTrace, GradedTrace
from collector.trace_forms import Additions, additions, decode_with_envelopes, encode_with_envelopes
from processors.model import EvaluationResult, FinishReason
from processors.spans import Envelope

EnvelopeSource: TypeAlias = Callable[[bytes, bytes], Envelope]


class StoredVerdicts(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag=True):
    """Why and how a trace left the buffer, when and by whom it was graded, and the results of each run.

    There are none for a trace that could not be graded and left unchanged. Of a `quarantined` one nothing is
    rebuilt (`FinishedTrace`).
    """

    reason: FinishReason
    was_quiet: bool = False
    interrupted: bool = False
    backfill: bool = False
    quarantined: bool = False
    unix_nano: int = 0
    instance: str = ""
    results: Sequence[Sequence[EvaluationResult]] = ()


def encode_graded(trace: FinishedTrace, graded: GradedTrace) -> bytes:
    """The content of the record: verdicts as they are, whatever of them may be shown.

    Without those that have no form, which no evaluator should give: after a restart such a trace has none.
    """
    runs = graded.graded_runs
    if not runs:
        return encode_with_envelopes(additions(trace, graded))
    verdicts = StoredVerdicts(
        reason=trace.reason,
        was_quiet=trace.was_quiet,
        interrupted=trace.interrupted,
        backfill=trace.backfill,
        quarantined=graded.quarantined,
        unix_nano=runs[0].graded_unix_nano,
        instance=runs[0].instance,
        results=[run.results for run in runs],
    )
    try:
        return encode_with_envelopes(verdicts)
    except (TypeError, ValueError, RecursionError):
        return encode_with_envelopes(msgspec.structs.replace(verdicts, results=()))


def decode_graded(content: bytes, envelope: EnvelopeSource) -> StoredVerdicts | Additions:
    """What `encode_graded` wrote.

    Raises:
        DamagedRecord: the content is not of that form.
    """
    try:
        kind: Any = StoredVerdicts | Additions
        stored: StoredVerdicts | Additions = decode_with_envelopes(content, kind, envelope)
    except (ValueError, LookupError, TypeError, msgspec.MsgspecError) as error:
        raise DamagedRecord(f"a record of a graded trace cannot be read: {error}") from error
    return stored
