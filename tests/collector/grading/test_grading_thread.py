"""Work beside the loop, which gets its turn soon meanwhile."""

import sys
import threading

import pytest

from collector.errors import GradingCutShort
from collector.grading import GradingThread


async def test_the_loop_waits_a_millisecond_for_the_thread_and_only_while_it_works() -> None:
    before = sys.getswitchinterval()

    def work() -> tuple[str, float]:
        return threading.current_thread().name, sys.getswitchinterval()

    name, meanwhile = await GradingThread().run(work)

    assert name == "grade"
    assert 0.001 == pytest.approx(meanwhile)
    assert before == sys.getswitchinterval()


async def test_after_work_that_fails_the_interpreter_is_as_before() -> None:
    before = sys.getswitchinterval()

    with pytest.raises(ZeroDivisionError):
        await GradingThread().run(lambda: 1 // 0)

    assert before == sys.getswitchinterval()


async def test_what_is_closed_runs_nothing() -> None:
    thread = GradingThread()
    thread.close()

    with pytest.raises(GradingCutShort):
        await thread.run(lambda: None)
