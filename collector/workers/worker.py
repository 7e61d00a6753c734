"""A worker process: loads its custom evaluators, then answers one question at a time until its pipe ends.

Started by `collector.workers.worker_process` with an empty environment. The output of custom code is
discarded; it cannot reach the pipe to the service. Three kinds of code are supported, which differ in their
form: a function of `(run, config, criteria)`, a class created with `(config, criteria)` that has
`evaluate(run)`, and a function of `(sample, submission)`.
"""

import importlib
import inspect
import json
import math
import resource
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

from collector.workers.protocol import Answer, serve

_OPEN_FILES = 64
_SPARE_SECONDS = 5
"""How long after the time limit of a question the process ends itself, in case the service was killed."""
Question = Mapping[str, Any]
"""Has `run`, `config`, `criteria`, and for a function of a submission also `submission`."""

_MAX_INSTANCES = 256
_SUBMISSION_PARAMETERS = ["sample", "submission"]


class LoadedEvaluator(NamedTuple):
    """A custom evaluator; with `reads_submission` it grades the text that an extractor takes from the run.

    `version` changes with its code.
    """

    grade: Callable[[Question], object]
    reads_submission: bool
    version: str


def begin(order_text: bytes) -> tuple[bytes, Answer]:
    """Load the evaluators of an order; what became of each, and what answers questions to them."""
    order = json.loads(order_text)
    for kind, limit in (
        (resource.RLIMIT_AS, order["memory_limit_bytes"]),
        (resource.RLIMIT_NOFILE, _OPEN_FILES),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (limit, limit))
    _limit_time(order["load_seconds"])
    evaluators: dict[str, LoadedEvaluator] = {}
    loaded = {name: _load(name, source, evaluators) for name, source in order["evaluators"].items()}
    signal.setitimer(signal.ITIMER_REAL, 0)
    timeout = order["timeout_seconds"]

    def answer(message: bytes) -> bytes:
        question = json.loads(message)
        _limit_time(timeout)
        graded = _answer(evaluators.get(question["evaluator"]), question)
        signal.setitimer(signal.ITIMER_REAL, 0)
        return _json_text(graded)

    return _json_text(loaded), answer


def _limit_time(timeout_seconds: float) -> None:
    """End this process after that time on the processor or on the clock."""
    seconds = math.ceil(timeout_seconds) + _SPARE_SECONDS
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time()) + seconds, hard))
    signal.setitimer(signal.ITIMER_REAL, seconds)


def _load(name: str, source: Mapping[str, str], into: dict[str, LoadedEvaluator]) -> dict[str, Any]:
    try:
        evaluator = _load_evaluator(name, source)
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
    """The return value of an evaluator as a JSON object, which the service checks."""
    match graded:
        case bool() | int() | float():
            return {"score": float(graded)}
        case (bool() | int() | float() as score, explanation):
            return {"score": float(score), "explanation": explanation}
        case dict():
            answer = dict(graded)
            if "rationale" in answer:
                answer.setdefault("explanation", answer.pop("rationale") or "")
            return answer
    grade: Any = graded
    rationale = getattr(grade, "rationale", None)
    return {"score": getattr(grade, "score", None), "explanation": rationale or ""}


def _json_text(message: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(message).encode()
    except (TypeError, ValueError, RecursionError):
        return b'{"score": null}'


def _load_evaluator(name: str, source: Mapping[str, str]) -> LoadedEvaluator:
    """The evaluator of `source`, which has `code`, `file` and `function`, or `entry_point`.

    Raises:
        LookupError: the code has no such function or class.
        BaseException: whatever the code raises while it is loaded.
    """
    module, attribute = _module_of(name, source)
    result: Any = module
    for step in attribute.split("."):
        result = getattr(result, step, None)
    if not callable(result):
        raise LookupError(f'it has no function or class "{attribute}"')
    code, parameters = source.get("code", ""), list[str]()
    if not code:
        with suppress(OSError, TypeError):  # compiled modules
            code = inspect.getsource(module)
    version = sha256(f"{attribute}\n{code}".encode(errors="replace")).hexdigest()[:12]
    if inspect.isclass(result):
        if not callable(getattr(result, "evaluate", None)):
            raise LookupError(f'the class "{attribute}" has no method "evaluate"')
        return LoadedEvaluator(_by_instance(result), False, version)
    with suppress(TypeError, ValueError):  # callables without a signature
        parameters = list(inspect.signature(result).parameters)
    if parameters[:2] == _SUBMISSION_PARAMETERS:
        return LoadedEvaluator(_by_submission(result), True, version)
    return LoadedEvaluator(
        lambda question: result(question["run"], question["config"], question["criteria"]), False, version
    )


def _module_of(name: str, source: Mapping[str, str]) -> tuple[ModuleType, str]:
    if "entry_point" in source:
        module_name, _, attribute = source["entry_point"].partition(":")
        return importlib.import_module(module_name), attribute
    file = source["file"]
    module = ModuleType(f"custom_evaluator_{name.replace('-', '_')}")
    module.__file__ = file
    sys.modules[module.__name__] = module
    folder = str(Path(file).parent)
    if folder not in sys.path:
        sys.path.append(folder)
    exec(compile(source["code"], file, "exec"), vars(module))
    return module, source["function"]


def _by_instance(kind: Callable[..., Any]) -> Callable[[Question], object]:
    @lru_cache(_MAX_INSTANCES)
    def instance(config: str, criteria: str) -> Any:
        return kind(json.loads(config), json.loads(criteria))

    def grade(question: Question) -> object:
        evaluator = instance(json.dumps(question["config"]), json.dumps(question["criteria"]))
        return evaluator.evaluate(question["run"])

    return grade


def _by_submission(function: Callable[..., object]) -> Callable[[Question], object]:
    def grade(question: Question) -> object:
        sample = SimpleNamespace(
            input=question["run"].get("input"), ground_truth=question["criteria"].get("ground_truth")
        )
        return function(sample, question["submission"])

    return grade


if __name__ == "__main__":
    serve(begin)
