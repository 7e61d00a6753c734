"""The thread that writes: in order, bounded for those who do not wait, and closed behind what waits."""

import threading

import pytest

from collector.errors import RetryableExportError
from collector.exporters.writer_thread import WriterThread


async def test_calls_are_made_in_order_and_their_outcome_returns() -> None:
    thread = WriterThread("export-test")
    thread.start()
    done: list[int] = []
    for number in range(50):
        thread.submit(done.append, number)

    assert 50 == await thread.run(len, done)
    with pytest.raises(ZeroDivisionError):
        await thread.run(divmod, 1, 0)
    assert list(range(50)) == done
    thread.close(lambda: None).result(10)


async def test_before_the_start_and_after_the_end_a_retry_is_requested() -> None:
    thread = WriterThread("export-test")
    thread.close(lambda: None).result(0)
    with pytest.raises(RetryableExportError, match="not started"):
        await thread.run(len, "")
    thread.start()
    done: list[str] = []
    thread.submit(done.append, "waits")

    ended = thread.close(lambda: done.append("last"))

    assert not thread.has_room
    with pytest.raises(RetryableExportError, match="not started"):
        thread.submit(done.append, "late")
    ended.result(10)
    thread.close(lambda: done.append("twice")).result(0)
    assert ["waits", "last"] == done


def test_those_who_do_not_wait_see_when_there_is_no_room() -> None:
    thread, goes_on = WriterThread("export-test"), threading.Event()
    thread.start()
    submitted = 0
    while thread.has_room and submitted < 1000:
        thread.submit(goes_on.wait)
        submitted += 1

    assert 100 <= submitted <= 101
    goes_on.set()
    thread.close(lambda: None).result(10)
    assert not thread.has_room
