"""When two JSON values are equal: by value, with booleans kept apart from numbers."""

from collections.abc import Hashable, Iterable

from processors.model import JsonValue, has_masked_key, may_equal


def equal_values(left: JsonValue, right: JsonValue) -> bool:
    """Whether two values are equal, at every depth.

    A boolean equals only a boolean, integers and floats compare by value (1 equals 1.0), objects
    regardless of the order of their keys, lists in order, texts by code points.
    """
    if left is right:
        return True
    if isinstance(left, dict):
        return (
            isinstance(right, dict)
            and len(left) == len(right)
            and all(key in right and equal_values(value, right[key]) for key, value in left.items())
        )
    if isinstance(left, list):
        return (
            isinstance(right, list)
            and len(left) == len(right)
            and all(equal_values(*pair) for pair in zip(left, right, strict=True))
        )
    if isinstance(left, bool) or isinstance(right, bool):
        return False
    return left == right


def known_equality(left: JsonValue, right: JsonValue) -> bool | None:
    """`equal_values` of two values; None where masks in them leave open whether they are equal."""
    if equal_values(left, right):
        return True
    return None if _may_be_equal(left, right) else False


def _may_be_equal(left: JsonValue, right: JsonValue) -> bool:
    if isinstance(left, dict) and isinstance(right, dict):
        if has_masked_key(left) or has_masked_key(right):
            return True
        return left.keys() == right.keys() and all(
            _may_be_equal(value, right[key]) for key, value in left.items()
        )
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_may_be_equal, left, right))
    return equal_values(left, right) or may_equal(left, right)


def any_fits(verdicts: Iterable[bool | None]) -> bool | None:
    """True where one of `verdicts` is, else None where one is not known, else False."""
    known: bool | None = False
    for verdict in verdicts:
        if verdict:
            return True
        known = None if verdict is None else known
    return known


def all_fit(verdicts: Iterable[bool | None]) -> bool | None:
    """False where one of `verdicts` is, else None where one is not known, else True."""
    known: bool | None = True
    for verdict in verdicts:
        if verdict is False:
            return False
        known = known and verdict
    return known


def equality_key(value: JsonValue) -> Hashable:
    """A key that is equal for two values exactly where `equal_values` holds."""
    if isinstance(value, dict):
        return frozenset((key, equality_key(member)) for key, member in value.items())
    if isinstance(value, list):
        return tuple(map(equality_key, value))
    if isinstance(value, bool):
        return bool, value
    return value
