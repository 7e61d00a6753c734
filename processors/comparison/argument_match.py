"""When the arguments of an actual call are those of an expected one."""

import re
from collections.abc import Mapping
from fnmatch import translate
from typing import Literal, TypeAlias

from processors.comparison.expected_value import Expected, compile_expected, fits, fits_members, matching_cost
from processors.comparison.value_equality import equal_values
from processors.model.json_value import JsonObject

ArgumentMode: TypeAlias = Literal["exact", "partial", "partial_deep", "subset", "ignore"]
"""How expected and actual arguments are compared, always in the direction "actual satisfies expected":

- `exact`: the expected arguments and no other.
- `partial`: every expected argument with an equal value; the call may have further ones.
- `partial_deep`: as `partial`, at every depth of objects; lists have equal length.
- `subset`: every argument of the call is expected with an equal value; none is demanded.
- `ignore`: any arguments.
"""


class ArgumentMatch:
    """The arguments of one expected call, ready to be compared; values may hold matchers.

    Arguments whose name one of the globs in `ignored` matches are removed from both sides. Arguments of the
    call that equal their value in `defaults` are removed from the call where they are not expected. Without
    expected arguments every call fits.

    Raises:
        ValueError: a matcher in them cannot be used.
    """

    __slots__ = ("_defaults", "_expected", "_ignored", "_mode", "accepts_anything", "cost")

    def __init__(
        self,
        expected: JsonObject | None,
        mode: ArgumentMode,
        ignored: tuple[str, ...] = (),
        defaults: JsonObject | None = None,
    ) -> None:
        self._ignored = re.compile("|".join(map(translate, ignored))) if ignored else None
        compiled: dict[str, Expected] = {
            name: compile_expected(value)
            for name, value in (expected or {}).items()
            if self._ignored is None or self._ignored.match(name) is None
        }
        self._expected = compiled
        self._mode = mode
        self._defaults = defaults or {}
        self.accepts_anything = (
            expected is None or mode == "ignore" or (mode in ("partial", "partial_deep") and not compiled)
        )
        """True where the arguments of the call need not be known."""
        self.cost = max(map(matching_cost, compiled.values()), default=0)
        """What a character of the arguments costs at most to compare (`matching_cost`)."""

    def accepts(self, arguments: JsonObject) -> bool:
        """Whether `arguments` satisfy the expected ones.

        Raises:
            SchemaTooComplexError: a schema could not be checked within its bounds.
        """
        if self.accepts_anything:
            return True
        expected = self._expected
        if self._mode == "partial":
            return fits_members(expected, arguments, subset=True)
        if self._mode == "partial_deep":
            return _fits_deep(expected, arguments)
        actual = self._counted(arguments)
        if self._mode == "subset":
            return all(name in expected and fits(expected[name], value) for name, value in actual.items())
        return fits_members(expected, actual, subset=False)

    def _counted(self, arguments: JsonObject) -> JsonObject:
        """The arguments without those that are ignored or say no more than their default."""
        if self._ignored is None and not self._defaults:
            return arguments
        return {
            name: value
            for name, value in arguments.items()
            if (self._ignored is None or self._ignored.match(name) is None)
            and not (
                name in self._defaults
                and name not in self._expected
                and equal_values(self._defaults[name], value)
            )
        }


def _fits_deep(expected: Expected, actual: object) -> bool:
    if isinstance(expected, Mapping):
        if not isinstance(actual, dict):
            return False
        nested = {name for name, value in expected.items() if isinstance(value, (Mapping, list))}
        flat = {name: value for name, value in expected.items() if name not in nested}
        return fits_members(flat, actual, subset=True) and all(
            name in actual and _fits_deep(expected[name], actual[name]) for name in nested
        )
    if isinstance(expected, list):
        return (
            isinstance(actual, list)
            and len(expected) == len(actual)
            and all(_fits_deep(*pair) for pair in zip(expected, actual, strict=True))
        )
    return fits(expected, actual)  # type: ignore[arg-type]  # what stands in a JSON value
