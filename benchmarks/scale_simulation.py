"""`python -m benchmarks.scale_simulation`: 10^5 traces a second through Kafka, on paper.

No machine here carries that, so the parts that decide are taken from the code itself (which partition a trace
lies in, what a commit's metadata holds) and everything else is arithmetic by the second over the measured
costs below. It prints the same on every machine; `scale_simulation.txt` is its output.
"""

import itertools
import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import confluent_kafka

from collector.receivers.kafka.offsets import MAX_METADATA_BYTES, OffsetTracker, Progress

TRACES_A_SECOND = 100_000
SPANS_A_TRACE = 13
BYTES_A_SPAN = 1700
SPANS_A_RECORD = 1.5  # what a Collector with 200 ms batches writes
MICROS_A_SPAN = (
    90.0  # six evaluations a trace (docs/performance.md); `python -m benchmarks sizing` measures yours
)
MICROS_A_RECORD = 13.0  # to receive and split, no more: what is read again costs this alone
TRACE_SECONDS, GRACE_SECONDS = 8.0, 2.0
SESSION_SECONDS, LOOKBACK_SECONDS = 15, 120
PROCESS_MIB = 100
PREFETCH_MIB = 32
MEMORY_FACTOR = 2.0  # resident a byte held

SPANS = TRACES_A_SECOND * SPANS_A_TRACE
RECORDS = SPANS / SPANS_A_RECORD
_SAMPLE = 300_000
_HORIZON = 3600


@dataclass(frozen=True, slots=True)
class HandOver:
    """What a hand-over did: seconds until nobody lags, and the longest lag of a partition."""

    catch_up_seconds: float
    longest_lag_seconds: float
    most_partitions: int


def main() -> None:
    """Print all tables."""
    for line in lines():
        print(line)


def lines() -> Iterator[str]:
    """The tables as Markdown."""
    yield (
        f"{TRACES_A_SECOND:,} traces/s of {SPANS_A_TRACE} spans of {BYTES_A_SPAN} bytes: {SPANS:,} spans/s, "
        f"{RECORDS:,.0f} records/s, {SPANS * BYTES_A_SPAN / 1e9:.1f} GB/s to the brokers before replication; "
        f"{SPANS * MICROS_A_SPAN / 1e6:.0f} cores busy at {MICROS_A_SPAN:g} µs a span."
    )
    yield from ["", "How evenly traces spread (random trace ids, the partitioner of the code):", ""]
    yield "| partitions | fullest to mean, sample noise included | fullest to mean, noise alone |"
    yield "| --- | --- | --- |"
    for partitions in (200, 400, 800, 1600):
        yield f"| {partitions} | {skew(partitions):.2f} | {noise(partitions):.2f} |"
    yield from ["", "One process of the group is killed, by how busy the processes are:", ""]
    yield (
        "| busy | processes | partitions a process | all have caught up after | longest lag | "
        "resident a process |"
    )
    yield "| --- | --- | --- | --- | --- | --- |"
    for busy, share in itertools.product((0.5, 0.7, 0.8, 0.9), (2, 6)):
        processes = math.ceil(SPANS * MICROS_A_SPAN / 1e6 / busy)
        hand_over = killed(processes, share)
        end = (
            "never (within an hour)"
            if math.isinf(hand_over.catch_up_seconds)
            else f"{hand_over.catch_up_seconds:.0f} s"
        )
        yield (
            f"| {busy:.0%} | {processes} | {share} | {end} | {hand_over.longest_lag_seconds:.0f} s | "
            f"{resident_mib(processes, hand_over.most_partitions / share):.0f} MiB |"
        )
    yield from [
        "",
        f"What a commit has to say of a partition (a broker takes {MAX_METADATA_BYTES} bytes):",
        "",
    ]
    yield "| records/s of the partition | open records | metadata wanted | done records that are left out |"
    yield "| --- | --- | --- | --- |"
    for rate in (50, 100, 200, 500, 1000, 2000):
        opened, wanted, left_out = commit_size(rate)
        yield f"| {rate} | {opened:,} | {wanted:,} bytes | {left_out:,} |"
    yield ""
    for partitions in (200, 800, 3200):
        yield f"{partitions} partitions have {RECORDS / partitions:,.0f} records/s each."


def skew(partitions: int) -> float:
    """The fullest partition to the mean, for random trace ids."""
    random = Random(partitions)
    counts = [0] * partitions
    for _ in range(_SAMPLE):
        counts[confluent_kafka.fnv1a(random.randbytes(16).hex().encode(), partitions)] += 1
    return max(counts) * partitions / _SAMPLE


def noise(partitions: int) -> float:
    """The same where every partition is as likely as the others."""
    random = Random(partitions + 1)
    counts = [0] * partitions
    for _ in range(_SAMPLE):
        counts[random.randrange(partitions)] += 1
    return max(counts) * partitions / _SAMPLE


def killed(processes: int, share: int) -> HandOver:
    """One of `processes` with `share` partitions each dies, and is not replaced.

    For the length of a session nobody reads its partitions. Then each goes to another process, which first
    reads the lookback again (receive and split alone), then what waited, beside its own partitions.
    """
    partitions = processes * share
    records = RECORDS / partitions
    cost = MICROS_A_SPAN * SPANS_A_RECORD / 1e6
    own = share * records * cost  # of one second
    taken = math.ceil(share / (processes - 1))
    free = 1.0 - own - taken * records * cost
    again = taken * LOOKBACK_SECONDS * records * MICROS_A_RECORD / 1e6
    lag = float(SESSION_SECONDS)
    longest = lag
    for second in range(SESSION_SECONDS, _HORIZON):
        room = 1.0 - own  # for the partitions that were taken over; its own come first
        read_again = min(again, room)
        again -= read_again
        room -= read_again
        lag += 1.0 - room / (taken * records * cost)
        longest = max(longest, lag)
        if lag <= 0:
            return HandOver(second + 1, longest, share + taken)
        if free <= 0 and not again:
            break
    return HandOver(math.inf, longest, share + taken)


def resident_mib(processes: int, factor: float) -> float:
    """A process's memory with `factor` times its usual partitions."""
    held = SPANS / processes * factor * BYTES_A_SPAN * (TRACE_SECONDS / 2 + GRACE_SECONDS)
    return PROCESS_MIB + PREFETCH_MIB + MEMORY_FACTOR * held / 2**20


def commit_size(rate: int) -> tuple[int, int, int]:
    """Open records, bytes of metadata wanted, and done records that do not fit, of a partition in its stride.

    The records of a trace are spread over its duration and done when it is finished.
    """
    random = Random(rate)
    tracker = OffsetTracker(Progress(0))
    per_trace = SPANS_A_TRACE / SPANS_A_RECORD
    events: list[tuple[float, int]] = []
    seconds = 3 * (TRACE_SECONDS + GRACE_SECONDS)
    for trace in range(round(rate / per_trace * seconds)):
        begin = random.uniform(0, seconds)
        length = random.uniform(0.5, 1.5) * TRACE_SECONDS
        events += [(begin + random.uniform(0, length), trace) for _ in range(round(per_trace))]
    events.sort()
    last = {trace: when for when, trace in events}
    records: dict[int, list[int]] = {}
    finishing = deque(sorted((when + GRACE_SECONDS, trace) for trace, when in last.items()))
    end = 2 * (TRACE_SECONDS + GRACE_SECONDS)
    for offset, (when, trace) in enumerate(events):
        if when > end:
            break
        while finishing and finishing[0][0] <= when:
            for record in records.pop(finishing.popleft()[1], ()):
                tracker.release(record)
        records.setdefault(trace, []).append(tracker.add(offset, int(when * 1000)))
    whole = tracker.commit(max_bytes=1 << 30)
    cut = tracker.commit()
    return tracker.open_records, len(whole.metadata), _done(whole.metadata) - _done(cut.metadata)


def _done(metadata: str) -> int:
    steps = metadata.split(" ")[2].split(",")
    return sum(int(step, 16) for step in steps[1::2])


if __name__ == "__main__":
    main()
