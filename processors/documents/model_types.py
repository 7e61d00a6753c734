"""What the fields of Pydantic models take, at a path in what was written."""

import re
import types
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from processors.model.json_value import JsonValue


def camel_case(key: str) -> str:
    """`snake_case` as `snakeCase`."""
    head, *tail = key.split("_")
    return head + "".join(part.capitalize() for part in tail) if head else key


def spellings(step: str | int) -> tuple[str | int, ...]:
    """A step of a Pydantic location as the user may have written it, camelCase first."""
    if isinstance(step, int):
        return (step,)
    return step, camel_case(step), re.sub(r"(?<=[a-z0-9])[A-Z]", lambda found: "_" + found[0].lower(), step)


def keys_at(model: type[BaseModel], location: Iterable[str | int]) -> set[str]:
    """The keys that models take at `location`; several models where there are variants."""
    kinds: list[Any] = [model]
    for step in location:
        inner = [kind for outer in kinds for kind in _step(outer, step)]
        kinds = inner or kinds  # a step that Pydantic added for a variant
    return {key for kind in kinds for found in _models(kind) for key in found.model_fields}


def booleans_as_numbers(
    written: JsonValue, model: type[BaseModel]
) -> Iterator[tuple[tuple[str | int, ...], bool]]:
    """The path and value of every true or false in `written` where `model` takes a number.

    Pydantic reads them as 1 and 0; of a person who wrote `yes` that is not the meaning.
    """
    return _booleans(written, [model], ())


def _booleans(
    written: JsonValue, kinds: list[Any], path: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], bool]]:
    if isinstance(written, bool):
        variants = [variant for kind in kinds for variant in _variants(kind)]
        if (int in variants or float in variants) and bool not in variants and str not in variants:
            yield path, written
    elif isinstance(written, dict | list):
        for step, inner in written.items() if isinstance(written, dict) else enumerate(written):
            inner_kinds = [found for kind in kinds for found in _step(kind, step)]
            if inner_kinds:
                yield from _booleans(inner, inner_kinds, (*path, step))


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
            names = spellings(step)
            inner += [field.annotation for name, field in variant.model_fields.items() if name in names]
        elif arguments and isinstance(step, int):
            inner += [argument for argument in arguments if argument is not Ellipsis]
        elif len(arguments) == 2:
            inner.append(arguments[1])
    return inner
