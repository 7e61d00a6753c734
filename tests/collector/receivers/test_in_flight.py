"""Messages under way share one budget of bytes: nobody gets more, and somebody always gets on."""

import asyncio
import sys
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from collector.clock import SystemClock
from collector.receivers.in_flight import InFlightBudget
from collector.receivers.otlp_grpc import GrpcServerConfig, OtlpGrpcReceiver
from collector.telemetry import Metrics
from tests.support.otlp_senders import EXPORT_METHOD, SpanSink, export_request


@given(
    st.lists(st.lists(st.integers(1, 10), min_size=1, max_size=8), max_size=12),
    st.integers(0, 60),
    st.integers(0, 11),
)
@settings(deadline=None)
def test_every_message_is_received_and_all_together_keep_to_the_budget(
    messages: Sequence[Sequence[int]], room: int, gone: int
) -> None:
    largest = max((sum(pieces) for pieces in messages), default=1)
    budget = InFlightBudget(largest + room, largest)
    most = 0

    async def receive(number: int, pieces: Sequence[int]) -> None:
        nonlocal most
        share = budget.share()
        try:
            for piece in pieces:
                await share.take(piece)
                most = max(most, budget.used_bytes)
                await asyncio.sleep(0)
                if number == gone:
                    return  # the sender went away
        finally:
            share.give_back()

    async def receive_all() -> None:
        async with asyncio.timeout(20):
            await asyncio.gather(*(receive(*numbered) for numbered in enumerate(messages)))

    asyncio.run(receive_all())

    assert most <= budget.max_bytes
    assert 0 == budget.used_bytes
    assert not budget._waiting


async def test_who_waits_and_goes_away_leaves_no_gap() -> None:
    budget = InFlightBudget(10, 5)
    first, second, third = budget.share(), budget.share(), budget.share()
    await first.take(5)
    await second.take(5)
    waiting = asyncio.ensure_future(third.take(3))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    third.give_back()
    again = asyncio.ensure_future(third.take(4))
    second.give_back()
    async with asyncio.timeout(5):
        await again

    assert 9 == budget.used_bytes


def _resident_mib() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 2**20


async def test_messages_that_nobody_reads_yet_take_no_memory_of_grpcio() -> None:
    """Unlimited, 40 unread messages of 20 MB took 430 MB; here as many are held back by one slow reader."""
    size, count = 20 << 20, 24
    config = GrpcServerConfig(endpoint="127.0.0.1:0", max_request_bytes=32 << 20)
    budget = InFlightBudget(32 << 20, 32 << 20)
    receiver = OtlpGrpcReceiver(config, SpanSink(), Metrics(), clock=SystemClock(), budget=budget)
    await receiver.start()
    body = export_request(1, padding=size)
    await receiver._reading.acquire()  # the one place to read in is taken
    # The senders' own copies would be in this process too, so they are another's.
    script = (
        "import grpc, sys\n"
        "body = sys.stdin.buffer.read()\n"
        f"channels = [grpc.insecure_channel({receiver.endpoint!r},"
        " options=[('grpc.use_local_subchannel_pool', 1), ('grpc.max_send_message_length', -1)])"
        " for _ in range(6)]\n"
        f"calls = [channels[n % 6].unary_unary({EXPORT_METHOD!r}).future(body) for n in range({count})]\n"
        "print('sent', flush=True)\n"
        "[call.result(timeout=100) for call in calls]\n"
    )
    before = _resident_mib()
    sender = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert sender.stdin is not None
    assert sender.stdout is not None
    sender.stdin.write(body)
    sender.stdin.close()
    assert b"sent\n" == await sender.stdout.readline()
    while receiver._running < count:
        await asyncio.sleep(0.05)
    await asyncio.sleep(1)
    unread = _resident_mib() - before
    receiver._reading.release()
    async with asyncio.timeout(100):
        assert 0 == await sender.wait()
    await receiver.shutdown(SystemClock().monotonic() + 5)

    assert unread < 60, "a fraction of a message each"
