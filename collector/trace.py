"""Traces on their way through the service."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias, overload

from processors.model import FinishReason, GradedRun, value_type
from processors.spans import RawRecord, RawSpan

if TYPE_CHECKING:  # the process that inspects a journal reconstructs nothing
    from processors.reconstruction import Scopes

Signal: TypeAlias = Literal["traces", "logs"]
"""What OTLP carries here: spans, and log records."""

SPAN_OVERHEAD_BYTES = 256
"""Counted for every held span (or log record) in addition to its bytes: tuple, id, entry in an index."""
DELIVERY_OVERHEAD_BYTES = 384
"""Counted for all that leaves together, in addition to its spans: the delivery and its place in a queue."""
RECEIPT_BYTES = 512
"""Counted as long as a trace is held whose delivery is recorded, as the journal does."""


class UnsplitRecords(Sequence[RawRecord]):
    """The log records of a request that nobody has looked at: it is split when one of them is needed.

    Most requests hold log lines of programs alone, which leave as they came; to split one costs as much as
    all else that is done with it.
    """

    __slots__ = ("_count", "_records", "_split", "body")

    def __init__(self, body: bytes, count: int, split: Callable[[bytes], Sequence[RawRecord]]) -> None:
        self.body = body
        self._count = count
        self._split = split
        self._records: Sequence[RawRecord] | None = None

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[RawRecord]:
        return iter(self._all())

    @overload
    def __getitem__(self, place: int) -> RawRecord: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[RawRecord]: ...

    def __getitem__(self, place: int | slice) -> RawRecord | Sequence[RawRecord]:
        return self._all()[place]

    def _all(self) -> Sequence[RawRecord]:
        if self._records is None:
            self._records = self._split(self.body)
        return self._records


def held_bytes(spans: Sequence[RawSpan]) -> int:
    """What holding `spans` counts against the memory limit."""
    if type(spans) is UnsplitRecords:  # an abstract class is slow to recognise
        return len(spans.body) + SPAN_OVERHEAD_BYTES * len(spans)
    return sum([len(span[1]) for span in spans]) + SPAN_OVERHEAD_BYTES * len(spans)


class Receipt(Protocol):
    """Records who has received something that leaves: each exporter, and each form of it, by name."""

    def expects(self, holder: str) -> bool:
        """Whether `holder` is to receive it; if so, `delivered` must be called for it once."""

    def delivered(self, holder: str) -> None:
        """`holder` has received it, or never will: it was dropped for a reason that is counted."""

    def seal(self) -> None:
        """`expects` was called for all holders."""


class CountedReceipt:
    """A receipt that calls `settle` once: when it is sealed, and all holders have received it."""

    __slots__ = ("_open", "_settle")

    def __init__(self, settle: Callable[[], None]) -> None:
        self._settle = settle
        self._open = 1  # until it is sealed

    def expects(self, holder: str) -> bool:
        """See `Receipt`; all holders are to receive it."""
        self._open += 1
        return True

    def delivered(self, holder: str = "") -> None:
        """See `Receipt`."""
        self._open -= 1
        if not self._open:
            self._settle()

    def seal(self) -> None:
        """See `Receipt`."""
        self.delivered()


class RecordReceipt(Receipt, Protocol):
    """The receipt of a trace out of records that can be read again, by this process or another."""

    def permission(self, trace_id: bytes) -> "Awaitable[bool] | None":
        """Whether the trace may be graded, if that has to be waited for; None: it may.

        Where a process died that had the records, the next one announces what it grades before it does. A
        trace that was being graded again when a process died is not graded any more.
        """


class JoinedReceipt:
    """The receipt of a trace whose log records are from other sources than its spans."""

    __slots__ = ("_receipts",)

    def __init__(self, of_spans: RecordReceipt, of_records: Iterable[RecordReceipt]) -> None:
        self._receipts = of_spans, *of_records

    def expects(self, holder: str) -> bool:
        """See `Receipt`; all holders are to receive it."""
        return all(receipt.expects(holder) for receipt in self._receipts)

    def delivered(self, holder: str) -> None:
        """See `Receipt`."""
        for receipt in self._receipts:
            receipt.delivered(holder)

    def seal(self) -> None:
        """See `Receipt`."""
        for receipt in self._receipts:
            receipt.seal()

    def permission(self, trace_id: bytes) -> "Awaitable[bool] | None":
        """See `RecordReceipt`."""
        return self._receipts[0].permission(trace_id)


class RecordSource(Protocol):
    """Where spans are read from in records that can be read again, until nothing of them is held."""

    def hold(self, record: int) -> None:
        """A trace holds spans of this record."""

    @property
    def has_room(self) -> bool:
        """Whether further traces should be finished for now."""

    def receipt(self, records: Sequence[int]) -> RecordReceipt:
        """Records who has received what was held of `records`, each once."""

    def has_all(self, trace_id: bytes) -> bool:
        """Whether all records of the trace are from here."""


Origin: TypeAlias = tuple[RecordSource, int]
"""Where something was read from: the source, and the number of the record there."""


def receipts(origins: Iterable[Origin]) -> list[RecordReceipt]:
    """A receipt for each source that is in `origins`."""
    numbers: dict[int, tuple[RecordSource, list[int]]] = {}
    for source, number in origins:
        numbers.setdefault(id(source), (source, []))[1].append(number)
    return [source.receipt(of_source) for source, of_source in numbers.values()]


class SpanBatch(NamedTuple):
    """The spans of one trace out of one request, in the order of the request."""

    trace_id: bytes
    spans: Sequence[RawSpan]
    tenant: str = ""
    is_run: bool = False
    """Whether these are log records that name no trace: those of one prompt, which make a run by themselves.
    Its id (`RecordHead.run_id`) stands for the trace id."""


@value_type
class FinishedTrace:
    """A trace taken out of the buffer, its spans in order of arrival.

    `was_quiet`: no span had arrived for its grace when it was taken out, so that what had ended in it was
    whole even if the trace was cut short. `interrupted`: spans of it may have been lost while the service
    refused or could not receive, or have gone to another replica (`split`, if nothing else interrupted it);
    its runs then count as incomplete whatever the reason. `backfill`: it arrived much later than it happened.
    `continues`: an earlier part of the trace was graded before, and is not in it.
    `quarantined`: processes crashed while they graded it, so nothing of it is rebuilt. `held_seconds` is the
    time since its first span arrived. `latest_end` (Unix nanoseconds) is when the last of its spans ended,
    where more can go on in the trace after that; else 0. `receipt` is for the source that its spans were read
    from. `scopes` are its runs where they were read to see that the trace is finished; they stay here.
    `records` are the log records with content of its agents, in order of arrival: its runs are rebuilt from
    both, while `scopes` are of its spans alone. Without any span they report a run by themselves.
    """

    trace_id: bytes
    spans: Sequence[RawSpan]
    reason: FinishReason
    was_quiet: bool = False
    interrupted: bool = False
    split: bool = False
    backfill: bool = False
    continues: bool = False
    quarantined: bool = False
    held_seconds: float = 0.0
    latest_end: int = 0
    tenant: str = ""
    receipt: RecordReceipt | None = None
    scopes: "Scopes | None" = None
    records: Sequence[RawRecord] = ()

    @property
    def size(self) -> int:
        """Bytes of its spans and records."""
        return sum([len(item[1]) for item in self.spans]) + sum([len(item[1]) for item in self.records])


class RunningFailure(NamedTuple):
    """A failure that nothing can undo, of a run that goes on; the explanation is as it may be shown."""

    trace_id: bytes
    tenant: str
    agent: str
    evaluation: str
    severity: str
    explanation: str
    unix_nano: int


@value_type
class GradedTrace:
    """What exporters receive: spans as they are to leave, and the graded runs (none: nothing to grade).

    `spans` is empty where the spans were forwarded when they arrived. `log_records` and `evaluation_spans`
    are the results in forms of their own, as (span id, encoded message, envelope), not received spans.

    All of these show no more of the content than `results.content` and `results.redact` allow: all that
    leaves is made of them. `hidden_runs` are the same runs as they were graded, where `runs` does not show
    all: for counting and for going on after a restart, never for showing.
    """

    trace_id: bytes
    spans: Sequence[RawSpan]
    runs: Sequence[GradedRun] = ()
    hidden_runs: Sequence[GradedRun] = ()
    log_records: Sequence[RawSpan] = ()
    evaluation_spans: Sequence[RawSpan] = ()
    backfill: bool = False
    quarantined: bool = False
    tenant: str = ""

    def without_runs(self) -> "GradedTrace":
        """What exporters of spans, log records and spans of verdicts receive of it."""
        return replace(self, runs=(), hidden_runs=())

    @property
    def graded_runs(self) -> Sequence[GradedRun]:
        """The runs as they were graded; all that leaves is made of `runs`."""
        return self.hidden_runs or self.runs
