"""Whether all records of a trace lie in one partition: by their keys and the partitioner."""

from collections import OrderedDict
from collections.abc import Callable, Collection

from collector.clock import Clock

MAX_DISTRUSTED = 100_000
REFRESH_SECONDS = 660.0
"""How long producers may use an old number of partitions: the Collector refreshes it every 10 min."""


class TrustedKeys:
    """Which traces are known to lie in one partition; one for all partitions of a topic.

    A trace is not trusted if a record of it had a key other than its id, or lay in another partition than
    `partition_of` gives for its id, by the number of partitions now or by one of the last 11 min. At most
    100,000 traces are remembered for their keys.

    Attributes:
        partition_count: How many partitions the topic has; 0 if that is not known yet.

    Args:
        partition_of: The partition of a key among so many; None where that is not known.
        clock: What time passes on.
    """

    def __init__(self, partition_of: Callable[[bytes, int], int] | None, clock: Clock) -> None:
        self._partition_of = partition_of
        self._clock = clock
        self._distrusted: OrderedDict[bytes, None] = OrderedDict()
        self.partition_count = 0
        self._former: list[tuple[int, float]] = []

    def note_partition_count(self, count: int) -> None:
        """The topic has `count` partitions now."""
        if count == self.partition_count:
            return
        if self.partition_count:
            self._former.append((self.partition_count, self._clock.monotonic() + REFRESH_SECONDS))
        self.partition_count = count

    def check(self, key: bytes | None, trace_ids: Collection[bytes]) -> str | None:
        """What is wrong with the key of a record with these traces: `missing`, `foreign` or nothing."""
        if key is not None and len(trace_ids) == 1 and next(iter(trace_ids)).hex().encode() == key:
            return None
        for trace_id in trace_ids:
            self._distrusted[trace_id] = None
            self._distrusted.move_to_end(trace_id)
        while len(self._distrusted) > MAX_DISTRUSTED:
            self._distrusted.popitem(last=False)
        return "foreign" if key else "missing"

    def trusts(self, trace_id: bytes, partition: int) -> bool:
        """Whether all records of the trace are in `partition`."""
        if trace_id in self._distrusted:
            return False
        if self._partition_of is None:
            return True
        key = trace_id.hex().encode()
        if self._partition_of(key, self.partition_count) != partition:
            return False
        if self._former:
            now = self._clock.monotonic()
            self._former = [(count, until) for count, until in self._former if until > now]
            return all(self._partition_of(key, count) == partition for count, _ in self._former)
        return True
