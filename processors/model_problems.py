"""Validation errors of Pydantic models as problems in the words and paths of the person who wrote the file.

Paths hold what stands in the file: keys as they are spelled there, list positions as `[0]`, none of the
steps that Pydantic adds for variants. Values are quoted only where they are short and no secrets.
"""

import re
import types
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr, ValidationError
from pydantic_core import ErrorDetails

from processors.located_yaml import LocatedYaml
from processors.problem import Problem, did_you_mean

Path = tuple[str | int, ...]

SECRET_KEY = re.compile(
    r"token|secret|password|passwd|authorization|credential|api_?key|headers?\Z", re.IGNORECASE
)
"""Keys whose values are never shown."""

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
}
_LIMITS = {
    "greater_than_equal": ("a number of at least", "ge"),
    "greater_than": ("a number above", "gt"),
    "less_than_equal": ("a number of at most", "le"),
    "less_than": ("a number below", "lt"),
    "multiple_of": ("a multiple of", "multiple_of"),
}


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
        key = next((candidate for candidate in _spellings(step) if candidate in place.children), None)
        if key is not None:
            written.append(key)
            place = place.children[key]
    return tuple(written)


def _spellings(step: str | int) -> tuple[str | int, ...]:
    """A step of a Pydantic location as the user may have written it, camelCase first."""
    if isinstance(step, int):
        return (step,)
    return step, camel_case(step), re.sub(r"(?<=[a-z0-9])[A-Z]", lambda found: "_" + found[0].lower(), step)


def camel_case(key: str) -> str:
    """`snake_case` as `snakeCase`."""
    head, *tail = key.split("_")
    return head + "".join(part.capitalize() for part in tail) if head else key


def _is_about_variants(several: Sequence[ErrorDetails]) -> bool:
    """True when the errors of one place say what each of several allowed types would have been."""
    return len({details["loc"] for details in several}) > 1 and all(_expected(details) for details in several)


def _problem(document: LocatedYaml, place: Path, details: ErrorDetails, model: type[BaseModel]) -> Problem:
    kind = details["type"]
    if kind == "missing":
        step = details["loc"][-1]
        what = f"entry {step + 1} of the list" if isinstance(step, int) else f'key "{_spellings(step)[-1]}"'
        return document.problem(place, f"missing {what}")
    if kind == "extra_forbidden":
        known = sorted(_keys_at(model, details["loc"][:-1]))
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
    message = document.without_environment(
        place, str(raised) if isinstance(raised, Exception) else details["msg"]
    )
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
        return "a text" if secret or len(value) > _MAX_SHOWN else f'the text "{value}"'
    if isinstance(value, Mapping):
        return "a mapping of keys to values"
    if isinstance(value, list | tuple):
        return "a list" if value else "an empty list"
    return "another value"


def _keys_at(model: type[BaseModel], location: Iterable[str | int]) -> set[str]:
    """The keys that models take at `location`; several models where there are variants."""
    kinds: list[Any] = [model]
    for step in location:
        inner = [kind for outer in kinds for kind in _step(outer, step)]
        kinds = inner or kinds  # a step that Pydantic added for a variant
    return {key for kind in kinds for model in _models(kind) for key in known_keys(model)}


def _variants(kind: Any) -> list[Any]:
    origin = get_origin(kind)
    if origin is Annotated:
        return _variants(get_args(kind)[0])
    if origin in (Union, types.UnionType):
        return [variant for argument in get_args(kind) for variant in _variants(argument)]
    return [kind]


def _models(kind: Any) -> list[type[BaseModel]]:
    return [found for found in _variants(kind) if isinstance(found, type) and issubclass(found, BaseModel)]


def _step(kind: Any, step: str | int) -> list[Any]:
    inner: list[Any] = []
    for variant in _variants(kind):
        arguments = get_args(variant)
        if isinstance(variant, type) and not arguments and issubclass(variant, BaseModel):
            spellings = _spellings(step)
            inner += [field.annotation for name, field in variant.model_fields.items() if name in spellings]
        elif arguments and isinstance(step, int):
            inner += [argument for argument in arguments if argument is not Ellipsis]
        elif len(arguments) == 2:
            inner.append(arguments[1])
    return inner
