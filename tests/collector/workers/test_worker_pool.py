"""Custom evaluators in real worker processes: whatever they do, every question gets its answer."""

import asyncio
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from collector.clock import ManualClock
from collector.telemetry import Metrics
from collector.workers.custom_evaluators import CustomEvaluators
from collector.workers.pool import MAX_QUESTION_BYTES, WAIT_SECONDS, WorkerPool
from collector.workers.worker_evaluator import WorkerFailure, run_text
from processors.model import NotEvaluated, NotEvaluatedReason, Score
from tests.support.custom_evaluators import evaluator, loaded, running_pool
from tests.support.graded_runs import weather_run

RUN = weather_run().run


async def ask(
    pool: WorkerPool,
    evaluators: CustomEvaluators,
    name: str,
    config: object = None,
    criteria: object = None,
) -> Score | NotEvaluated:
    question = evaluator(evaluators, name, config, criteria).question(RUN, run_text(RUN))
    assert isinstance(question, bytes)
    return await pool.request(name, question)


async def failure_of(pool: WorkerPool, evaluators: CustomEvaluators, name: str) -> WorkerFailure:
    with pytest.raises(WorkerFailure) as caught:
        await ask(pool, evaluators, name)
    return caught.value


async def test_a_function_gets_the_run_the_config_and_the_criteria(tmp_path: Path) -> None:
    code = """
        def grade(run, config, criteria):
            names = [call["name"] for call in run["tool_calls"]]
            return 0.5, f"{run['agent']['name']} {names} {config} {criteria}"
    """
    evaluators = loaded(tmp_path, {"check": code})

    async with running_pool(evaluators) as pool:
        answer = await ask(pool, evaluators, "check", {"a": [1]}, {"b": {"c": None}})

    expected = "weather_agent ['get_temperature', 'get_forecast', 'send_mail'] {'a': [1]} {'b': {'c': None}}"
    assert Score(0.5, {}, (expected,)) == answer


async def test_a_class_is_built_once_for_its_config_and_criteria(tmp_path: Path) -> None:
    code = """
        class grade:
            built = 0
            def __init__(self, config, criteria):
                grade.built += 1
                self.wanted = config["wanted"]
            def evaluate(self, run):
                found = len(run["tool_calls"]) == self.wanted
                return {"score": found, "explanation": "counted", "details": {"built": grade.built}}
    """
    evaluators = loaded(tmp_path, {"check": code})

    async with running_pool(evaluators) as pool:
        answers = [await ask(pool, evaluators, "check", {"wanted": wanted}) for wanted in (3, 3, 2)]

    assert [
        Score(1.0, {"built": 1}, ("counted",)),
        Score(1.0, {"built": 1}, ("counted",)),
        Score(0.0, {"built": 2}, ("counted",)),
    ] == answers


async def test_a_grader_of_submissions_gets_what_the_extractor_takes_from_the_run(tmp_path: Path) -> None:
    code = """
        from types import SimpleNamespace
        def grade(sample, submission):
            rationale = f"{sample.input} {sample.ground_truth} {submission}"
            return SimpleNamespace(score=0.25, rationale=rationale)
    """
    evaluators = loaded(tmp_path, {"check": code})
    config = {"extractor": "tool_arguments", "extractor_config": {"tool_name": "get_forecast"}}

    async with running_pool(evaluators) as pool:
        answer = await ask(pool, evaluators, "check", config, {"ground_truth": "7"})

    assert isinstance(answer, Score)
    assert 0.25 == answer.value
    assert answer.lines[0].startswith("{'action': 'get_forecast'} 7 ")
    assert "days" in answer.lines[0]


@pytest.mark.parametrize(
    ("body", "error_type"),
    [
        ("raise KeyError('secret')", "KeyError"),
        ("raise SystemExit(0)", "SystemExit"),
        ("return bytearray(10 ** 10)", "MemoryError"),
        ("return 'good'", "InvalidAnswer"),
        ("return None", "InvalidAnswer"),
        ("return 1.5", "InvalidAnswer"),
        ("return float('nan')", "InvalidAnswer"),
        ("return {'score': 1, 'details': object()}", "InvalidAnswer"),
        ("return {'score': 1, 'details': [1]}", "InvalidAnswer"),
        ("return 1.0, 5", "InvalidAnswer"),
        ("return {'not_evaluated': 'tired'}", "InvalidAnswer"),
        ("import os; os._exit(0)", "WorkerDied"),
        ("return {'score': 1, 'explanation': 'x' * (2 << 20)}", "WorkerDied"),
    ],
)
async def test_what_is_no_verdict_is_an_error_and_the_next_question_is_answered(
    tmp_path: Path, body: str, error_type: str
) -> None:
    codes = {
        "bad": f"def grade(run, config, criteria):\n    {body}\n",
        "good": "def grade(run, config, criteria):\n    return True\n",
    }
    evaluators = loaded(tmp_path, codes)

    async with running_pool(evaluators) as pool:
        failure = await failure_of(pool, evaluators, "bad")
        answer = await ask(pool, evaluators, "good")

    assert error_type == failure.error_type
    assert "secret" not in str(failure)
    assert Score(1.0) == answer


async def test_a_hanging_evaluator_is_ended_at_its_time_limit(tmp_path: Path) -> None:
    codes = {
        "hangs": "def grade(run, config, criteria):\n    while True: pass\n",
        "good": "def grade(run, config, criteria):\n    return 1\n",
    }
    evaluators = loaded(tmp_path, codes, timeout="300ms")
    metrics = Metrics()

    async with running_pool(evaluators, metrics) as pool:
        failure = await failure_of(pool, evaluators, "hangs")
        answer = await ask(pool, evaluators, "good")

    assert ("WorkerTimeout", "evaluator hangs did not answer within 300ms") == (
        failure.error_type,
        str(failure),
    )
    assert Score(1.0) == answer
    assert 1 == metrics.worker_failures.value("timeout")


async def test_what_is_printed_does_not_disturb_the_answers(tmp_path: Path) -> None:
    code = """
        import os, sys
        print("loading")
        def grade(run, config, criteria):
            print("x" * 100_000, flush=True)
            os.write(1, b"\\0\\0\\0\\2{}")
            sys.stderr.write("y" * 100_000)
            return 1.0, sys.stdin.read()
    """
    evaluators = loaded(tmp_path, {"check": code})

    async with running_pool(evaluators) as pool:
        answers = [await ask(pool, evaluators, "check") for _ in range(2)]

    assert [Score(1.0)] * 2 == answers


async def test_a_worker_inherits_neither_environment_nor_descriptors_nor_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = """
        import os, resource
        def grade(run, config, criteria):
            links = []
            for number in os.listdir("/proc/self/fd"):
                try:
                    links.append(os.readlink(f"/proc/self/fd/{number}"))
                except OSError:
                    pass
            environment = {key: value for key, value in os.environ.items() if key != "LC_CTYPE"}
            return {"score": 1, "details": {
                "environment": environment,
                "files": [link for link in links if not link.startswith(("pipe:", "/proc/", "/dev/null"))],
                "pipes": sum(link.startswith("pipe:") for link in links),
                "folder": os.getcwd(),
                "memory": resource.getrlimit(resource.RLIMIT_AS)[1],
                "open_files": resource.getrlimit(resource.RLIMIT_NOFILE)[1],
            }}
    """
    monkeypatch.setenv("TRACEGRADE_SECRET", "x")
    evaluators = loaded(tmp_path, {"check": code}, memory_limit_mib=300)

    with (tmp_path / "open").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        async with running_pool(evaluators) as pool:
            answer = await ask(pool, evaluators, "check")

    assert isinstance(answer, Score)
    assert {
        "environment": {},
        "files": [],
        "pipes": 2,
        "folder": "/",
        "memory": 300 << 20,
        "open_files": 64,
    } == answer.details


async def test_an_evaluator_that_ends_worker_after_worker_is_left_alone_and_others_go_on(
    tmp_path: Path,
) -> None:
    codes = {
        "dies": "import os\ndef grade(run, config, criteria):\n    os._exit(3)\n",
        "good": "def grade(run, config, criteria):\n    return 1\n",
    }
    evaluators = loaded(tmp_path, codes)
    metrics = Metrics()

    async with running_pool(evaluators, metrics) as pool:
        failures = [(await failure_of(pool, evaluators, "dies")).error_type for _ in range(20)]
        answer = await ask(pool, evaluators, "good")

    assert ["WorkerDied"] * 3 + ["EvaluatorSuspended"] * 17 == failures
    assert Score(1.0) == answer
    assert 3 == metrics.worker_failures.value("died")


async def test_a_question_that_is_too_long_is_not_asked(tmp_path: Path) -> None:
    evaluators = loaded(tmp_path, {"check": "def grade(run, config, criteria):\n    return 1\n"})

    async with running_pool(evaluators) as pool:
        answer = await ask(pool, evaluators, "check", {"text": "x" * MAX_QUESTION_BYTES})

    assert NotEvaluated(NotEvaluatedReason.OVER_LIMIT, "the run has more than 16 MiB") == answer


async def test_a_question_that_no_worker_gets_to_is_not_evaluated(tmp_path: Path) -> None:
    evaluators = loaded(tmp_path, {"check": "def grade(run, config, criteria):\n    return 1\n"})
    clock = ManualClock()
    pool = WorkerPool(evaluators, metrics=Metrics(), clock=clock)

    asked = asyncio.create_task(ask(pool, evaluators, "check"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    clock.advance(WAIT_SECONDS + 5.0)
    answer = await asked

    assert NotEvaluated(NotEvaluatedReason.OVER_LIMIT, "no worker was free within 10s") == answer


async def test_closing_answers_what_is_open_and_ends_a_hanging_worker(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    code = f"""
        import os, pathlib, time
        def grade(run, config, criteria):
            pathlib.Path({str(pid_file)!r}).write_text(str(os.getpid()))
            time.sleep(3600)
    """
    evaluators = loaded(tmp_path, {"check": code}, timeout="1h")

    async with running_pool(evaluators) as pool:
        asked: Sequence[asyncio.Task[Score | NotEvaluated]] = [
            asyncio.create_task(ask(pool, evaluators, "check")) for _ in range(3)
        ]
        async with asyncio.timeout(30):
            while not (pid_file.exists() and pid_file.read_text()):
                await asyncio.sleep(0.01)
        pool.close()
        answers = await asyncio.gather(*asked)

    assert [NotEvaluatedReason.OVER_LIMIT] * 3 == [
        answer.reason for answer in answers if isinstance(answer, NotEvaluated)
    ]
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)


async def test_a_thousand_questions_are_answered_in_their_turn(tmp_path: Path) -> None:
    code = "def grade(run, config, criteria):\n    return 1.0, str(config['number'])\n"
    evaluators = loaded(tmp_path, {"check": code}, workers=2)

    async with running_pool(evaluators) as pool:
        await ask(pool, evaluators, "check", {"number": -1})
        started = time.monotonic()
        answers = await asyncio.gather(
            *[ask(pool, evaluators, "check", {"number": number}) for number in range(1000)]
        )
        seconds = time.monotonic() - started

    assert [Score(1.0, {}, (str(number),)) for number in range(1000)] == answers
    assert seconds < 10.0


async def test_a_worker_that_was_lost_while_idle_costs_no_verdict(tmp_path: Path) -> None:
    evaluators = loaded(
        tmp_path, {"pid": "import os\ndef grade(run, config, criteria):\n    return 1, str(os.getpid())\n"}
    )
    metrics = Metrics()
    async with running_pool(evaluators, metrics) as pool:
        first = await ask(pool, evaluators, "pid")
        assert isinstance(first, Score)
        os.kill(int(first.lines[0]), signal.SIGKILL)
        while not metrics.worker_failures.value("died"):
            await asyncio.sleep(0.01)
        second = await ask(pool, evaluators, "pid")

    assert isinstance(second, Score)
    assert second.lines != first.lines
    assert 1 == metrics.worker_failures.value("died")
