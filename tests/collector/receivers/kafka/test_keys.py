"""Which traces are known to lie in one partition."""

from confluent_kafka import fnv1a, murmur2

from collector.clock import ManualClock
from collector.receivers.kafka import keys
from collector.receivers.kafka.keys import TrustedKeys

ONE, OTHER = bytes([1]) * 16, bytes([2]) * 16


def _hex(trace_id: bytes) -> bytes:
    return trace_id.hex().encode()


def test_a_key_is_the_id_of_the_one_trace() -> None:
    trusted = TrustedKeys(None, ManualClock())

    found = [
        trusted.check(_hex(ONE), [ONE]),
        trusted.check(None, [OTHER]),
        trusted.check(_hex(ONE).upper() + b"x", [bytes([3]) * 16]),
        trusted.check(_hex(bytes([4]) * 16), [bytes([4]) * 16, bytes([5]) * 16]),
    ]

    assert [None, "missing", "foreign", "foreign"] == found
    assert [True, False, False, False, False] == [
        trusted.trusts(bytes([number]) * 16, 0) for number in range(1, 6)
    ]


def test_a_trace_in_the_partition_of_another_partitioner_is_not_trusted() -> None:
    trusted = TrustedKeys(fnv1a, ManualClock())
    trusted.note_partition_count(12)
    traces = [bytes([number]) * 16 for number in range(1, 200)]

    assert all(trusted.trusts(trace, fnv1a(_hex(trace), 12)) for trace in traces)
    astray = [trace for trace in traces if murmur2(_hex(trace), 12) != fnv1a(_hex(trace), 12)]
    assert 100 < len(astray)
    assert not any(trusted.trusts(trace, murmur2(_hex(trace), 12)) for trace in astray)


def test_after_partitions_were_added_a_trace_must_be_where_both_numbers_put_it() -> None:
    clock = ManualClock()
    trusted = TrustedKeys(fnv1a, clock)
    trusted.note_partition_count(4)
    trusted.note_partition_count(6)
    traces = [bytes([number]) * 16 for number in range(1, 200)]
    stays = {trace for trace in traces if fnv1a(_hex(trace), 4) == fnv1a(_hex(trace), 6)}

    before = {trace for trace in traces if trusted.trusts(trace, fnv1a(_hex(trace), 4))}
    after = {trace for trace in traces if trusted.trusts(trace, fnv1a(_hex(trace), 6))}
    clock.advance(keys.REFRESH_SECONDS + 1)
    later = {trace for trace in traces if trusted.trusts(trace, fnv1a(_hex(trace), 6))}

    assert 10 < len(stays) < 190
    assert (stays, stays, set(traces)) == (before, after, later)


def test_no_more_than_so_many_distrusted_traces_are_remembered() -> None:
    trusted = TrustedKeys(None, ManualClock())
    for number in range(keys.MAX_DISTRUSTED + 1):
        trusted.check(None, [number.to_bytes(16)])

    assert trusted.trusts(bytes(16), 0)
    assert not trusted.trusts((1).to_bytes(16), 0)
