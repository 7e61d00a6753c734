"""The custom evaluators of a service file, loaded once to check them."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import orjson

from collector.config_fields import format_duration
from collector.workers.config import WorkersConfig
from collector.workers.protocol import LENGTH, frame
from collector.workers.worker_evaluator import SubmissionEvaluator, WorkerEvaluator
from collector.workers.worker_process import COMMAND
from processors.criteria import evaluator_types
from processors.documents import InvalidInput, Problem
from processors.model import Evaluator, JsonObject, encode_json

LOAD_SECONDS = 15.0
"""How long the custom evaluators of a worker may take to load, all together."""

_PATH = "processors.evaluation.custom_evaluators"
_MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class CustomEvaluators:
    """Custom evaluators that could be loaded.

    `kinds` are their classes by name, for criteria. `order` is the message from which a worker loads them. It
    contains the code of files, so that all workers run the same code even if the files change.
    """

    config: WorkersConfig = field(default_factory=WorkersConfig)
    kinds: Mapping[str, type[WorkerEvaluator]] = field(default_factory=dict)
    order: bytes = b""

    @property
    def known(self) -> Mapping[str, type[Evaluator]]:
        """All evaluators that criteria may name, the built-in ones included."""
        return {**evaluator_types(), **self.kinds} if self.kinds else evaluator_types()


def load_custom_evaluators(config: WorkersConfig) -> CustomEvaluators:
    """The custom evaluators of `config`, each loaded once in a worker process; without any, nothing runs.

    Raises:
        InvalidInput: a file cannot be read, or code cannot be loaded within the limits.
    """
    if not config.custom_evaluators:
        return CustomEvaluators(config)
    order = _order(config)
    problems: list[Problem] = []
    kinds: dict[str, type[WorkerEvaluator]] = {}
    for name, loaded in _loaded(order, config).items():
        if isinstance(loaded, dict) and "problem" not in loaded:
            reads_submission = loaded.get("reads_submission") is True
            kinds[name] = evaluator_kind(name, str(loaded.get("version")), reads_submission=reads_submission)
        else:
            text = loaded.get("problem") if isinstance(loaded, dict) else loaded
            evaluator = config.custom_evaluators[name]
            place = evaluator.entry_point if evaluator.file is None else evaluator.file
            problems.append(_problem(name, f"cannot be loaded from {place}: {text}"))
    if problems:
        raise InvalidInput(problems)
    return CustomEvaluators(config, MappingProxyType(kinds), order)


def evaluator_kind(name: str, version: str, *, reads_submission: bool) -> type[WorkerEvaluator]:
    """The class of a custom evaluator, for criteria."""
    base = SubmissionEvaluator if reads_submission else WorkerEvaluator
    return type(base.__name__, (base,), {"id": name, "version": version, "__doc__": base.__doc__})


def _order(config: WorkersConfig) -> bytes:
    sources: JsonObject = {}
    problems = []
    for name, evaluator in config.custom_evaluators.items():
        if evaluator.file is None:
            sources[name] = {"entry_point": evaluator.entry_point}
            continue
        try:
            code = evaluator.file.read_text(encoding="utf-8-sig")
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else "not valid UTF-8"
            problems.append(_problem(name, f"{evaluator.file} cannot be read: {reason}"))
        else:
            file = str(evaluator.file.absolute())
            sources[name] = {"file": file, "function": evaluator.function, "code": code}
    if problems:
        raise InvalidInput(problems)
    return encode_json(
        {
            "memory_limit_bytes": config.memory_limit_mib * _MEBIBYTE,
            "load_seconds": LOAD_SECONDS,
            "timeout_seconds": config.timeout,
            "evaluators": sources,
        }
    )


def _loaded(order: bytes, config: WorkersConfig) -> JsonObject:
    """What a worker process reports on each evaluator after it has loaded them all."""
    try:
        process = subprocess.run(
            COMMAND,
            input=frame(order),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
            cwd="/",
            timeout=LOAD_SECONDS,
            check=False,
            start_new_session=True,
        )
        answer = orjson.loads(process.stdout[LENGTH.size :])
    except subprocess.TimeoutExpired:
        text = f"not loaded within {format_duration(LOAD_SECONDS)}"
    except (orjson.JSONDecodeError, OSError):
        text = f"the worker process ended while loading them (memory limit {config.memory_limit_mib} MiB)"
    else:
        return {name: answer.get(name) for name in config.custom_evaluators}
    raise InvalidInput([Problem("", 0, _PATH, text)])


def _problem(name: str, message: str) -> Problem:
    return Problem("", 0, f"{_PATH}.{name}", message)
