"""Reads the YAML and JSON files that rules are made from."""

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from processors.located_yaml import LocatedYaml, read_yaml
from processors.model_problems import model_problems
from processors.problem import Problem, ProblemsFound

ModelT = TypeVar("ModelT", bound=BaseModel)


def read_data_file(path: Path, model: type[ModelT]) -> tuple[ModelT, LocatedYaml]:
    """The content of the file as `model`, and as it is written, for messages.

    Raises:
        ProblemsFound: the file cannot be read or holds mistakes: all of them.
    """
    name = str(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ProblemsFound([Problem(name, 0, "", "not valid UTF-8")]) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ProblemsFound([Problem(name, 0, "", f"cannot be read: {reason}")]) from None
    document = read_yaml(text, name)
    problems: list[Problem] = []
    try:
        content = model.model_validate({} if document.value is None else document.value)
    except ValidationError as error:
        problems += model_problems(error, model, document)
    problems = document.all_problems(problems)
    if problems:
        raise ProblemsFound(problems)
    return content, document
