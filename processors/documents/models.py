"""Pydantic models of what people write, and their validation errors in the words and paths of the writer.

Paths hold what stands in the file: keys as they are spelled there, list positions as `[0]`, none of the
steps that Pydantic adds for variants. Values are quoted only where they are short and no secrets.
"""

import ast
import inspect
import re
import sys
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Annotated, Any, Self, TypeVar, Union, get_args, get_origin

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    GetJsonSchemaHandler,
    JsonValue,
    SecretStr,
    SerializerFunctionWrapHandler,
    ValidationError,
    ValidationInfo,
    model_serializer,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, ErrorDetails
from typing_extensions import TypeAliasType

from processors.documents.problems import Path, Problem, did_you_mean
from processors.documents.yaml import LocatedYaml

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
_KIND_OF_FAILURE = re.compile(
    r"_(?:type|parsing|parsing_size|from_float|attributes_type|required|str|sub_type|unicode)\Z"
)
_EXPECTED = {
    **dict.fromkeys(("string", "is_instance", "path"), "a text"),
    **dict.fromkeys(("dict", "mapping", "model"), "a mapping of keys to values"),
    **dict.fromkeys(("list", "tuple", "set", "frozen_set"), "a list"),
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "none": "nothing",
    "greater_than_equal": "a number of at least {ge:.15g}",
    "greater_than": "a number above {gt:.15g}",
    "less_than_equal": "a number of at most {le:.15g}",
    "less_than": "a number below {lt:.15g}",
    "multiple_of": "a multiple of {multiple_of:.15g}",
    "string_pattern_mismatch": "a text of the form {pattern}",
    "finite_number": "a finite number",
    "string_too_short": "at least {min_length} characters",
    "string_too_long": "at most {max_length} characters",
    "too_short": "at least {min_length} entries",
    "too_long": "at most {max_length} entries",
}
"""What was expected, by the type of an error or, of those that name what a value is not, its beginning."""


class StrictModel(BaseModel):
    """Part of a file: unknown keys are refused, and values are fixed once validated.

    The docstring below a field is its description. It is read where a JSON schema is generated, and not, as
    by `use_attribute_docstrings` of Pydantic, whenever the class is imported.
    """

    # Built when first needed: a command checks few of the hundred models that it loads.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for kind in cls.__mro__[: -len(BaseModel.__mro__)]:
            for name, text in _field_docstrings(kind.__module__).get(kind.__qualname__, {}).items():
                for key in {name, to_camel(name)} & properties.keys():
                    properties[key].setdefault("description", text)
        return schema


@cache
def _field_docstrings(module: str) -> Mapping[str, Mapping[str, str]]:
    """The docstrings below the fields of the classes at the top of `module`, by class and field."""
    documented: dict[str, dict[str, str]] = {}
    nodes = ast.parse(inspect.getsource(sys.modules[module])).body
    for node in [node for node in nodes if isinstance(node, ast.ClassDef)]:
        for pair in pairwise(node.body):
            match pair:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    documented.setdefault(node.name, {})[name] = " ".join(text.split())
    return documented


class EvaluatorModel(StrictModel):
    """Configuration or criteria of an evaluator.

    Keys are written in snake_case or in camelCase; both spellings of one key are refused.
    """

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)

    @model_serializer(mode="wrap")
    def _without_defaults(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """What is no default, and nulls that are given: so that a key that a version adds changes no hash."""
        nulls = {name for name in self.model_fields_set if getattr(self, name) is None}
        given = {*_given(self), *nulls}
        given |= set(map(_camel, given))
        return {key: value for key, value in handler(self).items() if key in given}


class AnyKeyCriteria(EvaluatorModel):
    """Criteria of which at least one key is given; a default is not."""

    @model_validator(mode="after")
    def _any_key_is_given(self) -> Self:
        if not _given(self):
            raise ValueError(f"expected at least one of {', '.join(type(self).model_fields)}")
        return self


class OneKeyCriteria(EvaluatorModel):
    """Criteria of which exactly one key is given; null is not."""

    @model_validator(mode="after")
    def _one_key_is_given(self) -> Self:
        given = _given(self)
        if len(given) != 1:
            result = f"found {' and '.join(given)}" if given else "found none of them"
            raise ValueError(f"expected exactly one of {', '.join(type(self).model_fields)}; {result}")
        return self


_camel = cache(to_camel)
"""For names of fields: there are few."""


def _given(criteria: EvaluatorModel) -> list[str]:
    fields = type(criteria).model_fields.items()
    return [
        name
        for name, field in fields
        if getattr(criteria, name) != field.get_default(call_default_factory=True)
    ]


def _note_place(value: object, info: ValidationInfo) -> object:
    if isinstance(info.context, set) and isinstance(value, dict | list):
        info.context.add(id(value))
    return value


ExpectedJson = TypeAliasType("ExpectedJson", Annotated[JsonValue, BeforeValidator(_note_place)])
"""An expected value in which matchers may stand (`processors.comparison.expected_value`).

The evaluator compiles it with `compile_expected` and compares with `fits`. In a field of any other type a
matcher is refused when criteria are loaded. A set as validation context takes the ids of such values.
"""

ExpectedObject = TypeAliasType(
    "ExpectedObject", Annotated[dict[str, JsonValue], BeforeValidator(_note_place)]
)
"""An expected object in which matchers may stand, or a matcher for an object as a whole."""


def validated(
    model: type[ModelT],
    value: JsonValue,
    document: LocatedYaml,
    problems: list[Problem],
    path: Path = (),
    context: object = None,
) -> ModelT | None:
    """`value` as `model`; None where it is none, and `problems` then has more.

    `path` is where `value` stands in `document`; validators get `context`. True and false are no numbers,
    other than for Pydantic.
    """
    result: list[Problem] = []
    content = None
    try:
        content = model.model_validate(value, context=context)
    except ValidationError as error:
        result = model_problems(error, model, document, path)
    known = {problem.path for problem in result}
    for place, boolean in _booleans_as_numbers(value, model):
        problem = document.problem((*path, *place), f"expected a number; found {str(boolean).lower()}")
        if problem.path not in known:
            result.append(problem)
    problems += sorted(result, key=lambda problem: problem.line)
    return None if result else content


def model_problems(
    error: ValidationError, model: type[BaseModel], document: LocatedYaml, path: Path = ()
) -> list[Problem]:
    """The problems that `error` reports, in the order of the file, each place once.

    `model` is what was validated; `path` is where its value stands in `document`.
    """
    collected: dict[Path, list[ErrorDetails]] = {}
    for details in error.errors(include_url=False):
        collected.setdefault(_path_as_written(document, path, details), []).append(details)
    problems = []
    for place, several in collected.items():
        has_inner = any(other != place and other[: len(place)] == place for other in collected)
        if _is_about_variants(several):
            if not has_inner:
                expected = " or ".join(dict.fromkeys(_expected(details) or "" for details in several))
                message = f"expected {expected}; found {_described(document, place, several[0]['input'])}"
                problems.append(document.problem(place, message))
            continue
        for details in several:
            if not (has_inner and details["type"] == "too_short"):  # entries with mistakes are not counted
                problems.append(_problem(document, place, details, model))
    return sorted(dict.fromkeys(problems), key=lambda problem: problem.line)


def second_spelling(key: str) -> str:
    """What is wrong with a key that is there in its other spelling, `key`, as well."""
    return f'the same key as "{key}": expected one of the two'


def without_user_info(text: str) -> str:
    """`text` with a mask where a URL in it has credentials."""
    return _USER_INFO.sub(MASK, text)


def _path_as_written(document: LocatedYaml, base: Path, details: ErrorDetails) -> Path:
    written = base
    for step in details["loc"]:
        spelled = ((*written, key) for key in _spellings(step))
        written = next(filter(document.place_of, spelled), written)
    return written


def _is_about_variants(several: Sequence[ErrorDetails]) -> bool:
    """True when the errors of one place say what each of several allowed types would have been."""
    return len({details["loc"] for details in several}) > 1 and all(_expected(details) for details in several)


def _problem(document: LocatedYaml, place: Path, details: ErrorDetails, model: type[BaseModel]) -> Problem:
    kind, value, context = details["type"], details["input"], details.get("ctx", {})
    step = details["loc"][-1] if details["loc"] else ""
    if kind == "missing":
        what = f"entry {step + 1} of the list" if isinstance(step, int) else f'key "{_spellings(step)[-1]}"'
        return document.problem(place, f"missing {what}")
    if kind == "extra_forbidden":
        known = sorted(_keys_at(model, details["loc"][:-1]))
        if step in known:  # it was read under its other spelling
            return document.problem(place, second_spelling(to_camel(str(step))))
        return document.problem(place, _unknown_key(str(step), known))
    if kind == "union_tag_not_found":
        return document.problem(place, f"missing key {_quoted(str(context['discriminator']))}")
    if kind == "union_tag_invalid":  # the key that decides what else an object contains
        key, tag = str(context["discriminator"]).strip("'"), str(context["tag"])
        result = value.get(key, tag) if isinstance(value, Mapping) else tag
        tags = str(context["expected_tags"])
        message = f"expected one of {_quoted(tags)}; found {_described(document, (*place, key), result)}"
        return document.problem((*place, key), message + did_you_mean(tag, _words(tags)))
    expected = _expected(details)
    if expected:
        message = f"expected {expected}; found {_described(document, place, value)}"
        if expected == "a text" and isinstance(value, bool | int | float):
            message += "; put it in quotes"
        if kind in ("literal_error", "enum") and isinstance(value, str):
            message += did_you_mean(value, _words(str(context["expected"])))
        return document.problem(place, message)
    raised = context.get("error")
    text = str(raised) if isinstance(raised, Exception) else details["msg"]
    key, separator, rest = text.partition(": ")
    if separator and document.place_of((*place, key)) is not None:  # a check of the whole says which key
        place, text = (*place, key), rest
    message = without_user_info(document.without_environment(place, text))
    return document.problem(place, message[:1].lower() + message[1:] if message[1:2].islower() else message)


def _unknown_key(key: str, known: Sequence[str]) -> str:
    hint = did_you_mean(key, known)
    if not hint and 0 < len(known) <= _MAX_LISTED:
        hint = f"; known: {', '.join(known)}"
    return f"unknown key{hint}"


def _quoted(words: str) -> str:
    """`words` in Pydantic's quotes in ours."""
    return words.replace("'", '"')


def _words(quoted: str) -> list[str]:
    """The values that a literal, an enumeration or a tag may have, from Pydantic's list of them."""
    return re.findall(r"'([^']*)'", quoted)


def _expected(details: ErrorDetails) -> str | None:
    """What was expected, None where only the message of the error says it."""
    kind, context = details["type"], details.get("ctx", {})
    if kind in ("literal_error", "enum"):
        return _quoted(str(context["expected"]))
    stem = re.sub(r"_(?:attributes|of)\Z", "", _KIND_OF_FAILURE.sub("", kind))
    template = _EXPECTED.get(kind) or _EXPECTED.get(stem)
    if template is None:
        return None
    text = template.format(**context)
    return text.replace(" 1 characters", " 1 character").replace(" 1 entries", " 1 entry")


def _described(document: LocatedYaml, path: Path, value: object) -> str:
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


def _spellings(step: str | int) -> tuple[str | int, ...]:
    """A step of a Pydantic location as the user may have written it, camelCase first."""
    if isinstance(step, int):
        return (step,)
    return step, to_camel(step), re.sub(r"(?<=[a-z0-9])[A-Z]", lambda match: "_" + match[0].lower(), step)


def _keys_at(model: type[BaseModel], location: Iterable[str | int]) -> set[str]:
    """The keys that models take at `location`; several models where there are variants."""
    kinds: list[Any] = [model]
    for step in location:
        kinds = _inner(kinds, step) or kinds  # a step that Pydantic added for a variant
    return {key for kind in _variants(kinds) if _is_model(kind) for key in kind.model_fields}


def _booleans_as_numbers(written: JsonValue, model: type[BaseModel]) -> Iterator[tuple[Path, bool]]:
    """The path and value of every true or false in `written` where `model` takes a number.

    Pydantic reads them as 1 and 0; that is not what a person means by `yes`.
    """
    for path, boolean in _booleans(written, ()):
        kinds: list[Any] = [model]
        for step in path:
            kinds = _inner(kinds, step)
        variants = _variants(kinds)
        if (int in variants or float in variants) and bool not in variants and str not in variants:
            yield path, boolean


def _booleans(written: JsonValue, path: Path) -> Iterator[tuple[Path, bool]]:
    """Every true and false in `written`, with its path."""
    members: Iterable[tuple[str | int, JsonValue]] = ()
    if isinstance(written, dict):
        members = written.items()
    elif isinstance(written, list):
        members = enumerate(written)
    for step, inner in members:
        if isinstance(inner, bool):
            yield (*path, step), inner
        elif isinstance(inner, dict | list):
            yield from _booleans(inner, (*path, step))


def _inner(kinds: list[Any], step: str | int) -> list[Any]:
    """The types of what stands at `step` in values of `kinds`."""
    inner: list[Any] = []
    for variant in _variants(kinds):
        arguments = get_args(variant)
        if _is_model(variant):
            inner += _kinds_by_key(variant).get(step, ())
        elif arguments and isinstance(step, int):
            inner += [argument for argument in arguments if argument is not Ellipsis]
        elif len(arguments) == 2:
            inner.append(arguments[1])
    return inner


@cache
def _kinds_by_key(model: type[BaseModel]) -> dict[str | int, list[Any]]:
    """The types of the fields of `model` by each of their spellings."""
    fields = model.model_fields.items()
    return {key: [field.annotation] for name, field in fields for key in (name, to_camel(name))}


def _variants(kinds: Iterable[Any]) -> list[Any]:
    """`kinds` without annotations, and of each union its members."""
    collected: list[Any] = []
    for kind in kinds:
        origin = get_origin(kind)
        if origin is Annotated:
            collected += _variants(get_args(kind)[:1])
        else:
            collected += _variants(get_args(kind)) if origin in (Union, types.UnionType) else [kind]
    return collected


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and not get_args(kind) and issubclass(kind, BaseModel)
