"""Validation errors of Pydantic models as problems in the words and paths of the person who wrote the file.

Paths hold what stands in the file: keys as they are spelled there, list positions as `[0]`, none of the
steps that Pydantic adds for variants. Values are quoted only where they are short and no secrets.
"""

import re
from collections.abc import Mapping, Sequence
from typing import TypeVar

from pydantic import BaseModel, SecretStr, ValidationError
from pydantic_core import ErrorDetails

from processors.documents.located_yaml import LocatedYaml
from processors.documents.model_types import booleans_as_numbers, keys_at, spellings
from processors.documents.problem import Problem, did_you_mean
from processors.model.json_value import JsonValue

Path = tuple[str | int, ...]
ModelT = TypeVar("ModelT", bound=BaseModel)

SECRET_KEY = re.compile(
    r"token|secret|password|passwd|authorization|credential|api_?key|headers?\Z", re.IGNORECASE
)
"""Keys whose values are never shown."""

MASK = "**********"
"""Stands for a secret."""

_USER_INFO = re.compile(r"(?<=://)[^/@\s]+(?=@)")
_MAX_SHOWN = 40
_MAX_LISTED = 8
_EXPECTED = {
    "string": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "dict": "a mapping of keys to values",
    "mapping": "a mapping of keys to values",
    "model": "a mapping of keys to values",
    "list": "a list",
    "tuple": "a list",
    "set": "a list",
    "frozen_set": "a list",
    "none": "nothing",
    "is_instance": "a text",
    "path": "a text",
}
_LIMITS = {
    "greater_than_equal": ("a number of at least", "ge"),
    "greater_than": ("a number above", "gt"),
    "less_than_equal": ("a number of at most", "le"),
    "less_than": ("a number below", "lt"),
    "multiple_of": ("a multiple of", "multiple_of"),
}


def validated(
    model: type[ModelT],
    value: JsonValue,
    document: LocatedYaml,
    problems: list[Problem],
    path: Path = (),
) -> ModelT | None:
    """`value` as `model`; None where it is none, and `problems` then has more.

    `path` is where `value` stands in `document`. True and false are no numbers, other than for Pydantic.
    """
    found: list[Problem] = []
    content = None
    try:
        content = model.model_validate(value)
    except ValidationError as error:
        found = model_problems(error, model, document, path)
    known = {problem.path for problem in found}
    for place, boolean in booleans_as_numbers(value, model):
        problem = document.problem((*path, *place), f"expected a number; found {str(boolean).lower()}")
        if problem.path not in known:
            found.append(problem)
    problems += sorted(found, key=lambda problem: problem.line)
    return None if found else content


def model_problems(
    error: ValidationError, model: type[BaseModel], document: LocatedYaml, path: Path = ()
) -> list[Problem]:
    """The problems that `error` reports, in the order of the file, each place once.

    `model` is what was validated; `path` is where its value stands in `document`.
    """
    found: dict[Path, list[ErrorDetails]] = {}
    for details in error.errors(include_url=False):
        found.setdefault(_path_as_written(document, path, details), []).append(details)
    problems = []
    for place, several in found.items():
        has_inner = any(len(other) > len(place) and other[: len(place)] == place for other in found)
        if _is_about_variants(several):
            if not has_inner:
                expected = " or ".join(dict.fromkeys(_expected(details) or "" for details in several))
                message = f"expected {expected}; found {_found(document, place, several[0]['input'])}"
                problems.append(document.problem(place, message))
            continue
        for details in several:
            if not (has_inner and details["type"] == "too_short"):  # entries with mistakes are not counted
                problems.append(_problem(document, place, details, model))
    return sorted(dict.fromkeys(problems), key=lambda problem: problem.line)


def known_keys(model: type[BaseModel]) -> list[str]:
    """The keys that `model` takes, as they are written in documentation."""
    return list(model.model_fields)


def _path_as_written(document: LocatedYaml, base: Path, details: ErrorDetails) -> Path:
    written = list(base)
    place = document.place_of(base)
    for step in details["loc"]:
        if place is None:
            break
        key = next((candidate for candidate in spellings(step) if candidate in place.children), None)
        if key is not None:
            written.append(key)
            place = place.children[key]
    return tuple(written)


def _is_about_variants(several: Sequence[ErrorDetails]) -> bool:
    """True when the errors of one place say what each of several allowed types would have been."""
    return len({details["loc"] for details in several}) > 1 and all(_expected(details) for details in several)


def _problem(document: LocatedYaml, place: Path, details: ErrorDetails, model: type[BaseModel]) -> Problem:
    kind = details["type"]
    if kind == "missing":
        step = details["loc"][-1]
        what = f"entry {step + 1} of the list" if isinstance(step, int) else f'key "{spellings(step)[-1]}"'
        return document.problem(place, f"missing {what}")
    if kind == "extra_forbidden":
        known = sorted(keys_at(model, details["loc"][:-1]))
        return document.problem(place, unknown_key(str(details["loc"][-1]), known))
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        return _unknown_variant(document, place, details)
    expected = _expected(details)
    if expected:
        message = f"expected {expected}; found {_found(document, place, details['input'])}"
        if expected == "a text" and isinstance(details["input"], bool | int | float):
            message += "; put it in quotes"
        if kind in ("literal_error", "enum") and isinstance(details["input"], str):
            message += did_you_mean(details["input"], _options(details))
        return document.problem(place, message)
    raised = details.get("ctx", {}).get("error")
    text = str(raised) if isinstance(raised, Exception) else details["msg"]
    key, separator, rest = text.partition(": ")
    if separator and document.place_of((*place, key)) is not None:  # a check of the whole says which key
        place, text = (*place, key), rest
    message = without_user_info(document.without_environment(place, text))
    return document.problem(place, message[:1].lower() + message[1:] if message[1:2].islower() else message)


def _unknown_variant(document: LocatedYaml, place: Path, details: ErrorDetails) -> Problem:
    """The problem of an object whose one key tells what else it holds, where that key is missing or wrong."""
    context = details.get("ctx", {})
    key = str(context.get("discriminator")).strip("'")
    if "tag" not in context:
        return document.problem(place, f'missing key "{key}"')
    tag, tags = str(context["tag"]), re.findall(r"'([^']*)'", str(context["expected_tags"]))
    expected = ", ".join([f'"{known}"' for known in tags])
    written = details["input"]
    found = written.get(key, tag) if isinstance(written, Mapping) else tag
    place = (*place, key)
    hint = did_you_mean(tag, tags)
    return document.problem(
        place, f"expected one of {expected}; found {_found(document, place, found)}{hint}"
    )


def without_user_info(text: str) -> str:
    """`text` with a mask where a URL in it has credentials."""
    return _USER_INFO.sub(MASK, text)


def unknown_key(key: str, known: Sequence[str]) -> str:
    """The message for a key that is none of `known`."""
    hint = did_you_mean(key, known)
    if not hint and 0 < len(known) <= _MAX_LISTED:
        hint = f"; known: {', '.join(known)}"
    return f"unknown key{hint}"


def _options(details: ErrorDetails) -> list[str]:
    """The values that a literal or an enumeration allows."""
    return re.findall(r"'([^']*)'", str(details.get("ctx", {}).get("expected", "")))


def _expected(details: ErrorDetails) -> str | None:
    """What was expected, None where only the message of the error says it."""
    kind, context = details["type"], details.get("ctx", {})
    if kind in ("literal_error", "enum"):
        return str(context["expected"]).replace("'", '"')
    if kind in _LIMITS:
        text, key = _LIMITS[kind]
        return f"{text} {context[key]:g}"
    if kind == "string_pattern_mismatch":
        return f"a text of the form {context['pattern']}"
    if kind == "finite_number":
        return "a finite number"
    if kind in ("string_too_short", "string_too_long", "too_short", "too_long"):
        one, many = ("character", "characters") if kind.startswith("string") else ("entry", "entries")
        bound, limit = (
            ("at least", context["min_length"]) if "short" in kind else ("at most", context["max_length"])
        )
        return f"{bound} {limit} {one if limit == 1 else many}"
    stem = re.sub(
        r"_(?:type|parsing|parsing_size|from_float|attributes_type|required|str|sub_type|unicode)\Z", "", kind
    )
    return _EXPECTED.get(re.sub(r"_(?:attributes|of)\Z", "", stem))


def _found(document: LocatedYaml, path: Path, value: object) -> str:
    place = document.place_of(path)
    secret = isinstance(value, SecretStr) or any(
        isinstance(step, str) and SECRET_KEY.search(step) for step in path
    )
    if place is not None and place.reference is not None:
        return f"another value in {place.reference}"
    if value is None:
        return "nothing (null)"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        text = repr(value)
        return "a number" if secret or len(text) > _MAX_SHOWN else f"the number {text}"
    if isinstance(value, str):
        return "a text" if secret or len(value) > _MAX_SHOWN else f'the text "{without_user_info(value)}"'
    if isinstance(value, Mapping):
        return "a mapping of keys to values"
    if isinstance(value, list | tuple):
        return "a list" if value else "an empty list"
    return "another value"
