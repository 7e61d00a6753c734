"""A thread for blocking work: in order, bounded for those who do not wait, and closed behind what waits."""

import threading

import pytest

from collector.errors import RetryableExportError
from collector.work_thread import WorkThread


async def test_calls_are_made_in_order_and_their_outcome_returns() -> None:
    thread = WorkThread("export-test")
    thread.start()
    done: list[int] = []
    for number in range(50):
        thread.run(done.append, number)

    assert 50 == await thread.run(len, done)
    with pytest.raises(ZeroDivisionError):
        await thread.run(divmod, 1, 0)
    assert list(range(50)) == done
    await thread.close()


async def test_before_the_start_and_after_the_end_a_retry_is_requested() -> None:
    thread = WorkThread("export-test")
    await thread.close()
    with pytest.raises(RetryableExportError, match="not started"):
        await thread.run(len, "")
    thread.start()
    done: list[str] = []
    thread.run(done.append, "waits")

    ended = thread.close(lambda: done.append("last"))

    assert not thread.has_room
    with pytest.raises(RetryableExportError, match="not started"):
        thread.run(done.append, "late")
    await ended
    await thread.close(lambda: done.append("twice"))
    assert ["waits", "last"] == done


async def test_those_who_do_not_wait_see_when_there_is_no_room() -> None:
    thread, goes_on = WorkThread("export-test"), threading.Event()
    thread.start()
    submitted = 0
    while thread.has_room and submitted < 1000:
        thread.run(goes_on.wait)
        submitted += 1

    assert 100 <= submitted <= 101
    goes_on.set()
    await thread.close()
    assert not thread.has_room
