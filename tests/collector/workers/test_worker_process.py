"""A worker process can be ended whatever it did, and nothing of it is left."""

import asyncio
import json
import os
import signal
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop

from collector.workers.custom_evaluators import CustomEvaluators
from collector.workers.worker_evaluator import run_text
from collector.workers.worker_process import WorkerDied, WorkerProcess
from tests.support.custom_evaluators import evaluator, loaded
from tests.support.graded_runs import weather_run

RUN = weather_run().run


async def started(evaluators: CustomEvaluators) -> WorkerProcess:
    worker = await WorkerProcess.start()
    await worker.request(evaluators.order)
    return worker


def question(evaluators: CustomEvaluators, name: str) -> bytes:
    message = evaluator(evaluators, name, None, None).question(RUN, run_text(RUN))
    assert isinstance(message, bytes)
    return message


async def test_a_worker_that_says_far_too_much_can_be_ended(tmp_path: Path) -> None:
    code = "def grade(run, config, criteria):\n    return {'score': 1, 'explanation': 'x' * (16 << 20)}\n"
    evaluators = loaded(tmp_path, {"loud": code})
    worker = await started(evaluators)

    pipe = worker.transport.get_pipe_transport(1)
    assert isinstance(pipe, asyncio.ReadTransport)

    with pytest.raises(WorkerDied):
        await worker.request(question(evaluators, "loud"))
    async with asyncio.timeout(30):
        while pipe.is_reading():  # until too much waits to be read
            await asyncio.sleep(0)
        await worker.end()


async def test_a_process_that_a_worker_left_behind_does_not_hold_up_its_end(tmp_path: Path) -> None:
    code = """
        import os, time
        def grade(run, config, criteria):
            child = os.fork()
            if child:
                return {"score": 1, "details": {"child": child}}
            os.setsid()
            time.sleep(600)
    """
    evaluators = loaded(tmp_path, {"forks": code})
    worker = await started(evaluators)
    answer = json.loads(await worker.request(question(evaluators, "forks")))
    child = answer["details"]["child"]

    try:
        async with asyncio.timeout(30):
            await worker.end()
    finally:
        os.kill(child, 9)


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_a_message_to_a_process_that_has_ended_reports_its_end(
    run: Callable[[Coroutine[Any, Any, None]], None],
) -> None:
    async def send_to_killed() -> None:
        worker = await WorkerProcess.start()
        try:
            os.kill(worker.pid, signal.SIGKILL)
            await worker.wait()
            with pytest.raises(WorkerDied):
                worker.send(b"{}")
        finally:
            await worker.end()

    run(send_to_killed())
