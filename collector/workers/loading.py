"""In a worker: custom evaluators from their source, as functions that all take the same question.

Three kinds of code are known: a function of `(run, config, criteria)`, a class built with
`(config, criteria)` that has `evaluate(run)`, and a function of `(sample, submission)`. Which one it is shows
in the code.
"""

import importlib
import inspect
import json
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

Question = Mapping[str, Any]
"""What is asked: `run`, `config`, `criteria`, and for a function of a submission also `submission`."""

_MAX_INSTANCES = 256
_SUBMISSION_PARAMETERS = ["sample", "submission"]


class LoadedEvaluator(NamedTuple):
    """A custom evaluator, ready to be asked.

    `reads_submission`: it is graded what an extractor takes from the run. `version` changes with its code.
    """

    grade: Callable[[Question], object]
    reads_submission: bool
    version: str


def load_evaluator(name: str, source: Mapping[str, str]) -> LoadedEvaluator:
    """The evaluator that `source` says: `code`, `file` and `function`, or `entry_point`.

    Raises:
        LookupError: the code has no such function or class; the message is for people.
        BaseException: whatever the code raises while it is loaded.
    """
    module, attribute = _module_of(name, source)
    found: Any = module
    for step in attribute.split("."):
        found = getattr(found, step, None)
    if not callable(found):
        raise LookupError(f'there is no function or class "{attribute}" in it')
    code = source.get("code") or _code_of(module)
    version = sha256(f"{attribute}\n{code}".encode(errors="replace")).hexdigest()[:12]
    if inspect.isclass(found):
        if not callable(getattr(found, "evaluate", None)):
            raise LookupError(f'the class "{attribute}" has no method "evaluate"')
        return LoadedEvaluator(_by_instance(found), False, version)
    if _parameters(found)[:2] == _SUBMISSION_PARAMETERS:
        return LoadedEvaluator(_by_submission(found), True, version)
    return LoadedEvaluator(_by_run(found), False, version)


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


def _code_of(module: ModuleType) -> str:
    try:
        return inspect.getsource(module)
    except (OSError, TypeError):  # compiled modules
        return ""


def _parameters(function: Callable[..., object]) -> list[str]:
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []


def _by_run(function: Callable[..., object]) -> Callable[[Question], object]:
    return lambda question: function(question["run"], question["config"], question["criteria"])


def _by_instance(kind: Callable[..., Any]) -> Callable[[Question], object]:
    @lru_cache(_MAX_INSTANCES)
    def instance(config: str, criteria: str) -> Any:
        return kind(json.loads(config), json.loads(criteria))

    def grade(question: Question) -> object:
        made = instance(json.dumps(question["config"]), json.dumps(question["criteria"]))
        return made.evaluate(question["run"])

    return grade


def _by_submission(function: Callable[..., object]) -> Callable[[Question], object]:
    def grade(question: Question) -> object:
        sample = SimpleNamespace(
            input=question["run"].get("input"), ground_truth=question["criteria"].get("ground_truth")
        )
        return function(sample, question["submission"])

    return grade
