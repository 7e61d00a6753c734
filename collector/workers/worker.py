"""A worker process: takes the evaluators it may run, then answers one question at a time until its pipe ends.

Started by `collector.workers.worker_process` with an empty environment. What custom code prints goes
nowhere; the pipe to the service is out of its way.
"""

import json
import math
import resource
import signal
import time
from collections.abc import Mapping
from typing import Any, BinaryIO

from collector.workers.loading import LoadedEvaluator, load_evaluator
from collector.workers.protocol import ChannelClosed, end_with_the_service, frame, open_channel, read_frame

_OPEN_FILES = 64
_SPARE_SECONDS = 5
"""How much longer than its time limit a question may take before the process ends itself.

The service ends it much sooner; this is for the case that the service itself was killed.
"""


def main() -> None:
    """Serve until the service closes the pipe."""
    questions, answers = open_channel()
    try:
        order = json.loads(read_frame(questions))
        _limit_resources(order["memory_limit_bytes"])
        _limit_time(order["load_seconds"])
        evaluators: dict[str, LoadedEvaluator] = {}
        loaded: dict[str, dict[str, Any]] = {}
        for name, source in order["evaluators"].items():
            loaded[name] = _load(name, source, evaluators)
        signal.setitimer(signal.ITIMER_REAL, 0)
        _send(answers, loaded)
        end_with_the_service(questions)
        timeout = order["timeout_seconds"]
        while True:
            question = json.loads(read_frame(questions))
            _limit_time(timeout)
            answer = _answer(evaluators.get(question["evaluator"]), question)
            signal.setitimer(signal.ITIMER_REAL, 0)
            _send(answers, answer)
    except (ChannelClosed, BrokenPipeError):
        return


def _limit_resources(memory_bytes: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_NOFILE, (_OPEN_FILES, _OPEN_FILES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _limit_time(timeout_seconds: float) -> None:
    """Let this process end, by processor time and by the clock, should nobody else end it."""
    seconds = math.ceil(timeout_seconds) + _SPARE_SECONDS
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time()) + seconds, hard))
    signal.setitimer(signal.ITIMER_REAL, seconds)


def _load(name: str, source: Mapping[str, str], into: dict[str, LoadedEvaluator]) -> dict[str, Any]:
    try:
        evaluator = load_evaluator(name, source)
    except BaseException as error:  # the code of others may raise anything, SystemExit included
        text = str(error) if isinstance(error, LookupError) else f"{type(error).__name__}: {error}"
        return {"problem": text[:1000]}
    into[name] = evaluator
    return {"reads_submission": evaluator.reads_submission, "version": evaluator.version}


def _answer(evaluator: LoadedEvaluator | None, question: Mapping[str, Any]) -> dict[str, Any]:
    if evaluator is None:
        return {"error": "EvaluatorNotLoaded"}
    try:
        return _normalised(evaluator.grade(question))
    except BaseException as error:  # as above
        return {"error": type(error).__name__}


def _normalised(graded: object) -> dict[str, Any]:
    """What an evaluator returned as a JSON object; the service checks what stands in it."""
    match graded:
        case bool() | int() | float():
            return {"score": float(graded)}
        case (bool() | int() | float() as score, explanation):
            return {"score": float(score), "explanation": explanation}
        case dict():
            return _with_rationale(graded)
    grade: Any = graded
    rationale = getattr(grade, "rationale", None)
    return {"score": getattr(grade, "score", None), "explanation": rationale or ""}


def _with_rationale(graded: Mapping[str, Any]) -> dict[str, Any]:
    answer = dict(graded)
    if "rationale" in answer:
        answer.setdefault("explanation", answer.pop("rationale") or "")
    return answer


def _send(answers: BinaryIO, message: Mapping[str, Any]) -> None:
    try:
        text = json.dumps(message)
    except (TypeError, ValueError, RecursionError):
        text = '{"score": null}'
    answers.write(frame(text.encode()))
    answers.flush()


if __name__ == "__main__":
    main()
