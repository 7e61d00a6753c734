"""Strategies for values of any type, made from the types of their fields: a new field is covered at once."""

from collections.abc import Mapping, Sequence
from enum import Enum
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st
from msgspec import Struct, structs

_texts = st.text(st.characters(exclude_categories=()), max_size=8)
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_texts, inner, max_size=2),
    max_leaves=4,
)
_LEAVES: dict[object, st.SearchStrategy[Any]] = {
    Any: _json,
    str: _texts,
    bytes: st.binary(max_size=16),
    int: st.integers(0, 2**64 - 1),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    type(None): st.none(),
}


def values_of(kind: Any) -> st.SearchStrategy[Any]:
    """Any value of the type `kind`, with text that UTF-8 cannot hold and integers of any size in JSON."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in _LEAVES:
        return _LEAVES[kind]
    if origin in (Union, UnionType):
        return st.one_of(*map(values_of, arguments))
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin in (Mapping, dict):
        return st.dictionaries(*map(values_of, arguments), max_size=2)
    if origin is tuple and arguments[-1] is not Ellipsis:
        return st.tuples(*map(values_of, arguments))
    if origin is tuple:
        return st.lists(values_of(arguments[0]), max_size=2).map(tuple)
    if origin in (Sequence, list):
        return st.lists(values_of(arguments[0]), max_size=2)
    if issubclass(kind, Enum):
        return st.sampled_from(kind)
    if issubclass(kind, Struct):
        types = {field.name: field.type for field in structs.fields(kind)}
    else:
        types = get_type_hints(kind)
    return st.builds(kind, **{name: values_of(inner) for name, inner in types.items()})
