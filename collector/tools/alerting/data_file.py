"""Reads the YAML and JSON files that rules are made from."""

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from collector.text_file import read_text_file
from processors.documents.models import validated
from processors.documents.problems import Problem, ProblemsFound
from processors.documents.yaml import LocatedYaml, read_yaml

ModelT = TypeVar("ModelT", bound=BaseModel)


def read_data_file(path: Path, model: type[ModelT]) -> tuple[ModelT, LocatedYaml]:
    """The content of the file as `model`, and as it is written, for messages.

    Raises:
        ProblemsFound: the file cannot be read or holds mistakes: all of them.
    """
    name = str(path)
    document = read_yaml(read_text_file(path), name)
    problems: list[Problem] = []
    content = validated(model, {} if document.value is None else document.value, document, problems)
    problems = document.all_problems(problems)
    if problems or content is None:
        raise ProblemsFound(problems)
    return content, document
