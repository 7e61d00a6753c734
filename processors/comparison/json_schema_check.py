"""Whether a JSON value follows a JSON Schema, with a bounded amount of work.

The keywords that tool definitions use, of draft 2020-12 and the forms that older drafts, OpenAPI (`nullable`)
and Gemini (`STRING`) give them. A keyword that is not known here asserts nothing, `format` included.
"""

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache

import re2

from processors.comparison.value_equality import any_fits, equality_key, known_equality
from processors.model import JsonObject, JsonValue, OverLimitError, contains_mask, has_mask, has_masked_key

MAX_STEPS = 10_000
"""Pairs of a value and a schema that are visited in one check; a step costs about two microseconds."""

MAX_VIOLATIONS = 20
"""Violations that one check lists; the search ends there."""

_COMPARISONS_OF_A_STEP = 8
_MAX_DEPTH = 128


class UnresolvedReferenceError(Exception):
    """A `$ref` that bears on the value leads to nothing inside its schema."""


def schema_violations(value: JsonValue, schema: JsonValue, *, resolve: bool = False) -> list[str] | None:
    """The places where `value` does not follow `schema`, in the order of the value; at most 20.

    Each is `a.b[0]: what was expected`, and never quotes the value. None: there is none, but something that
    redaction masked may be one.

    `$ref` is followed inside `schema` only. A reference that leads nowhere (with `resolve` an
    UnresolvedReferenceError) and a regular expression that cannot run in linear time assert nothing: schemas
    arrive with the traces. Raises OverLimitError beyond `MAX_STEPS` steps and where it descends too deep.
    """
    check = _Check(schema, resolve)
    check.visit(value, schema, "", 0)
    return None if check.is_open and not check.violations else check.violations


def check_schema(schema: JsonValue, path: str = "") -> None:
    """Refuse a schema that a person wrote with a ValueError if it has mistakes; see `schema_problems`."""
    problems = schema_problems(schema, path)
    if problems:
        raise ValueError("; ".join(problems))


@dataclass(slots=True)
class _Check:
    root: JsonValue
    resolves: bool = False
    violations: list[str] = field(default_factory=list)
    steps: int = 0
    is_open: bool = False
    """Whether something masked may be a violation."""

    def visit(self, value: JsonValue, schema: JsonValue, path: str, depth: int) -> None:
        self._spend(1)
        if depth > _MAX_DEPTH:
            raise OverLimitError
        if schema is False:
            self._add(path, "no value is allowed here")
        if not isinstance(schema, dict) or len(self.violations) >= MAX_VIOLATIONS:
            return
        reference = schema.get("$ref")
        if isinstance(reference, str):
            self.visit(value, self._resolve(reference), path, depth + 1)
        if value is None and schema.get("nullable") is True:
            return
        if isinstance(value, str) and schema and has_mask(value):
            self.is_open = True
            return
        self._check_value(value, schema, path)
        if isinstance(value, dict):
            self._check_object(value, schema, path, depth)
        elif isinstance(value, list):
            self._check_array(value, schema, path, depth)
        elif isinstance(value, str):
            self._check_text(value, schema, path)
        elif JSON_TYPES["number"](value):
            self._check_number(value, schema, path)  # type: ignore[arg-type]  # a number, by its type test
        self._check_combinations(value, schema, path, depth)

    def _check_value(self, value: JsonValue, schema: JsonObject, path: str) -> None:
        declared = schema.get("type")
        if declared is not None:
            names = [
                name.lower()
                for name in (declared if isinstance(declared, list) else [declared])
                if isinstance(name, str)
            ]
            is_known = names and all(name in JSON_TYPES for name in names)
            if is_known and not any(JSON_TYPES[name](value) for name in names):
                kind = next(name for name in ("integer", *JSON_TYPES) if JSON_TYPES[name](value))
                self._add(path, f"expected {' or '.join(names)}, found {kind}")
        allowed = schema.get("enum")
        if isinstance(allowed, list):
            self._spend(len(allowed) // _COMPARISONS_OF_A_STEP)
            is_allowed = any_fits(known_equality(value, option) for option in allowed)
            self._require(is_allowed, path, "not one of the allowed values")
        if "const" in schema:
            self._require(known_equality(value, schema["const"]), path, "not the one allowed value")

    def _check_number(self, value: int | float, schema: JsonObject, path: str) -> None:
        for inclusive, exclusive, is_beyond, side, other in _BOUNDS:
            limit, open_limit = _limit(schema, inclusive), _limit(schema, exclusive)
            if schema.get(exclusive) is True:  # draft 4
                limit, open_limit = None, limit
            if limit is not None and is_beyond(value, limit):
                self._add(path, f"{side} than {_shown(limit)}")
            if open_limit is not None and not is_beyond(open_limit, value):
                self._add(path, f"not {other} than {_shown(open_limit)}")
        step = _limit(schema, "multipleOf")
        if step is not None and step > 0 and not _is_multiple(value, step):
            self._add(path, f"no multiple of {_shown(step)}")

    def _check_text(self, value: str, schema: JsonObject, path: str) -> None:
        self._check_size(len(value), schema, "Length", "characters", path)
        written = schema.get("pattern")
        if isinstance(written, str):
            pattern = linear_pattern(written)
            if pattern is not None and pattern.search(value) is None:
                self._add(path, "does not match the pattern")

    def _check_array(self, value: list[JsonValue], schema: JsonObject, path: str, depth: int) -> None:
        self._check_size(len(value), schema, "Items", "entries", path)
        if schema.get("uniqueItems") is True:
            known = [equality_key(item) for item in value if not contains_mask(item)]
            is_unique = False if len({*known}) < len(known) else None if len(known) < len(value) else True
            self._require(is_unique, path, "an entry is repeated")
        items = schema.get("items")
        first = _list_in(schema, "prefixItems")
        if isinstance(items, list):  # before draft 2020-12
            first, items = items, schema.get("additionalItems")
        for index, item in enumerate(value):
            own = first[index] if index < len(first) else items
            if own is not None or index < len(first):
                self.visit(item, own, f"{path}[{index}]", depth + 1)
        contained = schema.get("contains")
        if contained is not None:
            is_contained = any_fits(self._follows(item, contained, depth) for item in value)
            self._require(is_contained, path, "no entry is of the kind that must be there")

    def _check_object(self, value: JsonObject, schema: JsonObject, path: str, depth: int) -> None:
        self._check_size(len(value), schema, "Properties", "members", path)
        required = _list_in(schema, "required")
        self._spend(len(required) // _COMPARISONS_OF_A_STEP)
        self._check_members(value, required, path, "missing")
        for name, needed in _object_in(schema, "dependentRequired").items():
            if name in value and isinstance(needed, list):
                self._check_members(value, needed, path, f"missing, required with {name}")
        for name, inner in _object_in(schema, "dependentSchemas").items():
            if name in value:
                self.visit(value, inner, path, depth + 1)
        named, by_pattern = _object_in(schema, "properties"), _object_in(schema, "patternProperties")
        self._spend(len(by_pattern) * len(value))
        others = schema.get("additionalProperties")
        names = schema.get("propertyNames")
        for key, member in value.items():
            place = _join(path, key)
            known = key in named
            if known:
                self.visit(member, named[key], place, depth + 1)
            for written, by_name in by_pattern.items():
                pattern = linear_pattern(written)
                if pattern is None or pattern.search(key) is not None:
                    known = True
                    if pattern is not None:
                        self.visit(member, by_name, place, depth + 1)
            if names is not None:
                self._require(self._follows(key, names, depth), place, "a name that is not allowed")
            if not known and (others is False or has_mask(key)):
                self._require(None if has_mask(key) else False, place, "unknown")
            elif not known and isinstance(others, dict):
                self.visit(member, others, place, depth + 1)

    def _check_members(self, value: JsonObject, names: list[JsonValue], path: str, message: str) -> None:
        for name in names:
            if isinstance(name, str) and name not in value:
                self._require(None if has_masked_key(value) else False, _join(path, name), message)

    def _check_combinations(self, value: JsonValue, schema: JsonObject, path: str, depth: int) -> None:
        for inner in _list_in(schema, "allOf"):
            self.visit(value, inner, path, depth + 1)
        options = _list_in(schema, "anyOf")
        if options:
            follows = any_fits(self._follows(value, option, depth) for option in options)
            self._require(follows, path, "follows none of the allowed schemas")
        options = _list_in(schema, "oneOf")
        if options:
            followed = [self._follows(value, option, depth) for option in options]
            is_one = None if None in followed else followed.count(True) == 1
            self._require(is_one, path, "does not follow exactly one of the allowed schemas")
        if "not" in schema:
            follows = self._follows(value, schema["not"], depth)
            is_free = None if follows is None else not follows
            self._require(is_free, path, "follows a schema that it must not follow")
        if "if" in schema:
            follows = self._follows(value, schema["if"], depth)
            branch = "then" if follows else "else"
            if follows is None:
                self.is_open = True
            elif branch in schema:
                self.visit(value, schema[branch], path, depth + 1)

    def _check_size(self, size: int, schema: JsonObject, what: str, unit: str, path: str) -> None:
        least, most = _limit(schema, f"min{what}"), _limit(schema, f"max{what}")
        if least is not None and size < least:
            self._add(path, f"fewer than {_shown(least)} {unit}")
        if most is not None and size > most:
            self._add(path, f"more than {_shown(most)} {unit}")

    def _require(self, holds: bool | None, path: str, message: str) -> None:
        """Take down `message` where what must hold does not; None: that is not known."""
        if holds is False:
            self._add(path, message)
        elif holds is None:
            self.is_open = True

    def _follows(self, value: JsonValue, schema: JsonValue, depth: int) -> bool | None:
        """Whether `value` follows `schema`; None: something masked decides."""
        inner = _Check(self.root, self.resolves, steps=self.steps)
        inner.visit(value, schema, "", depth + 1)
        self.steps = inner.steps
        return None if inner.is_open and not inner.violations else not inner.violations

    def _resolve(self, reference: str) -> JsonValue:
        """The schema that a local reference means; true, which allows everything, where it means none."""
        place, *steps = reference.split("/")
        target = self.root if place == "#" else None
        for step in steps:
            step = step.replace("~1", "/").replace("~0", "~")
            if isinstance(target, dict) and step in target:
                target = target[step]
            elif isinstance(target, list) and step.isdecimal() and int(step) < len(target):
                target = target[int(step)]
            else:
                target = None
        if target is None and self.resolves:
            raise UnresolvedReferenceError(reference)
        return True if target is None else target

    def _spend(self, steps: int) -> None:
        self.steps += steps
        if self.steps > MAX_STEPS:
            raise OverLimitError

    def _add(self, path: str, message: str) -> None:
        if len(self.violations) < MAX_VIOLATIONS:
            self.violations.append(_at(path, message))


def _list_in(schema: JsonObject, key: str) -> list[JsonValue]:
    value = schema.get(key)
    return value if isinstance(value, list) else []


def _object_in(schema: JsonObject, key: str) -> JsonObject:
    value = schema.get(key)
    return value if isinstance(value, dict) else {}


def _limit(schema: JsonObject, key: str) -> int | float | None:
    limit = schema.get(key)
    return limit if isinstance(limit, (int, float)) and not isinstance(limit, bool) else None


def _shown(limit: int | float) -> str:
    return str(limit) if isinstance(limit, int) else f"{limit:g}"


def _is_multiple(value: int | float, step: int | float) -> bool:
    if isinstance(value, int) and isinstance(step, int):
        return value % step == 0
    try:
        quotient = value / step
    except OverflowError:
        return True  # beyond the precision of floats
    return not math.isfinite(quotient) or math.isclose(quotient, round(quotient), rel_tol=1e-12, abs_tol=1e-9)


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


JSON_TYPES: Mapping[str, Callable[[JsonValue], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "integer": lambda value: (
        not isinstance(value, bool)
        and (isinstance(value, int) or (isinstance(value, float) and value.is_integer()))
    ),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
}
"""The types of JSON Schema; a whole number is an integer however it is written."""

_BOUNDS = (
    ("minimum", "exclusiveMinimum", operator.lt, "less", "more"),
    ("maximum", "exclusiveMaximum", operator.gt, "more", "less"),
)

_MAX_PATTERN_LENGTH = 1000
_SUBSCHEMAS = (
    "additionalProperties", "items", "contains", "propertyNames", "not", "if", "then", "else",
)  # fmt: skip
_SUBSCHEMA_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_SUBSCHEMA_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_NUMBERS = (
    "minimum", "maximum", "multipleOf", "minLength", "maxLength", "minItems", "maxItems", "minProperties",
    "maxProperties",
)  # fmt: skip

_KEYWORDS = frozenset((
    "$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$ref", "$comment", "$vocabulary",
    "title", "description", "default", "deprecated", "readOnly", "writeOnly", "examples", "example",
    "format", "contentEncoding", "contentMediaType", "contentSchema", "type", "enum", "const", "pattern",
    "required", "uniqueItems", "minContains", "maxContains", "dependentRequired", "dependencies",
    "additionalItems", "exclusiveMinimum", "exclusiveMaximum", "unevaluatedItems",
    "unevaluatedProperties", "nullable", "discriminator", "xml", "externalDocs", "propertyOrdering",
    "strict", "divisibleBy", "disallow", "extends",
    *_SUBSCHEMAS, *_SUBSCHEMA_LISTS, *_SUBSCHEMA_MAPS, *_NUMBERS,
))  # fmt: skip
"""The words of JSON Schema's drafts, OpenAPI and Gemini, whether they assert something here or not."""
_LIKE_A_KEYWORD = 0.8
_LONGEST_KEYWORD = max(map(len, _KEYWORDS))


def schema_problems(schema: JsonValue, path: str = "") -> list[str]:
    """What is wrong with a schema that a person wrote: one `path: what was expected` for each mistake.

    Types that do not exist, patterns that are no linear-time regular expression, and schemas, lists and
    limits of the wrong kind. Words that are not known are no mistake, as in JSON Schema itself, unless they
    look like a misspelt one, or hold objects where no word is known: arguments without `properties`.
    """
    return list(_problems(schema, path))


def _problems(schema: JsonValue, path: str) -> Iterator[str]:
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        yield _at(path, "expected a JSON schema: an object, true or false")
        return
    yield from _misspelt(schema, path)
    types = schema.get("type", [])
    for name in types if isinstance(types, list) else [] if types is None else [types]:
        if not isinstance(name, str) or name.lower() not in JSON_TYPES:
            yield _at(_join(path, "type"), f"expected one of {', '.join(JSON_TYPES)}")
    for pattern in [*_object_in(schema, "patternProperties"), schema.get("pattern")]:
        if pattern is not None and (not isinstance(pattern, str) or linear_pattern(pattern) is None):
            yield _at(_join(path, "pattern"), "expected a regular expression in the syntax of RE2")
    for key in _NUMBERS:
        if key in schema and not JSON_TYPES["number"](schema[key]):
            yield _at(_join(path, key), "expected a number")
    required = schema.get("required")
    is_list_of_texts = isinstance(required, list) and all(isinstance(name, str) for name in required)
    # A boolean is of draft 3, and still written: it asserts nothing.
    if not (required is None or isinstance(required, bool) or is_list_of_texts):
        yield _at(_join(path, "required"), "expected a list of texts")
    if "enum" in schema and not isinstance(schema["enum"], list):
        yield _at(_join(path, "enum"), "expected a list")
    reference = schema.get("$ref")
    if reference is not None and not (isinstance(reference, str) and reference.startswith("#")):
        yield _at(_join(path, "$ref"), "expected a reference inside the schema: #/...")
    for inner_path, inner in _subschemas(schema, path):
        yield from _problems(inner, inner_path)


def _misspelt(schema: JsonObject, path: str) -> Iterator[str]:
    unknown = [word for word in schema if word not in _KEYWORDS and not word.startswith(("x-", "$"))]
    near = {
        word: keywords[0]
        for word in unknown
        if (keywords := get_close_matches(word[:_LONGEST_KEYWORD], _KEYWORDS, n=1, cutoff=_LIKE_A_KEYWORD))
    }
    for word, keyword in near.items():
        yield _at(_join(path, word), f'expected a keyword of JSON Schema; did you mean "{keyword}"?')
    holds_objects = any(isinstance(schema[word], dict) for word in unknown)
    if not near and len(unknown) == len(schema) and holds_objects:
        names = ", ".join(unknown[:3])
        yield _at(path, f'expected keywords of JSON Schema, found {names}; did you mean "properties"?')


@lru_cache(maxsize=1024)
def linear_pattern(written: str) -> "re2._Regexp | None":
    """The regular expression in `written`, searched for anywhere, or None where RE2 cannot run it."""
    if len(written) > _MAX_PATTERN_LENGTH:
        return None
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(written, options)
    except re2.error:
        return None


def _subschemas(schema: JsonObject, path: str) -> Iterator[tuple[str, JsonValue]]:
    for key in (*_SUBSCHEMAS, *_SUBSCHEMA_LISTS, *_SUBSCHEMA_MAPS):
        inner, place = schema.get(key), _join(path, key)
        if isinstance(inner, list) and (key == "items" or key in _SUBSCHEMA_LISTS):
            yield from ((f"{place}[{index}]", item) for index, item in enumerate(inner))
        elif isinstance(inner, dict) and key in _SUBSCHEMA_MAPS:
            yield from ((_join(place, name), item) for name, item in inner.items())
        elif inner is not None:
            yield place, inner


def _at(path: str, message: str) -> str:
    return f"{path}: {message}" if path else message
