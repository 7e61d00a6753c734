"""Units of measure: what a unit word means, in an answer or in the key of a member.

Temperatures are not in the table, since their scales do not share a zero; nor is money.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from processors.texts.folded_text import key_words
from processors.texts.word_list import words


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit: its dimension, and how many base units it is (several where usage differs)."""

    dimension: str
    factors: tuple[float, ...]
    is_ambiguous: bool = False
    """Whether the word has other meanings as well, as `m` and `min` have."""


def _units(dimension: str, *entries: "tuple[str, tuple[float, ...] | float]") -> dict[str, Unit]:
    found = {}
    for names, factor in entries:
        factors = factor if isinstance(factor, tuple) else (factor,)
        for word in names.split():
            found[word] = Unit(
                dimension, factors, len(word) == 1 or word in ("min", "mins", "pound", "pounds")
            )
    return found


UNITS: Final = MappingProxyType(
    {
        **_units(
            "length",
            ("mm millimeter millimeters millimetre millimetres", 0.001),
            ("cm centimeter centimeters centimetre centimetres", 0.01),
            ("m meter meters metre metres", 1.0),
            ("km kms kilometer kilometers kilometre kilometres", 1000.0),
            ("inch inches", 0.0254),
            ("ft foot feet", 0.3048),
            ("yd yard yards", 0.9144),
            ("mi mile miles", 1609.344),
        ),
        **_units(
            "mass",
            ("mg milligram milligrams", 0.001),
            ("g gram grams", 1.0),
            ("kg kgs kilo kilos kilogram kilograms", 1000.0),
            ("tonne tonnes ton tons", (1e6, 907184.74)),
            ("oz ounce ounces", 28.349523),
            ("lb lbs pound pounds", 453.59237),
        ),
        **_units(
            "time",
            ("ms msec msecs millis millisecond milliseconds", 0.001),
            ("s sec secs second seconds", 1.0),
            ("min mins minute minutes", 60.0),
            ("h hr hrs hour hours", 3600.0),
            ("d day days night nights", 86400.0),
            ("week weeks wk wks", 604800.0),
            ("month months", (2629800.0, 2592000.0)),
            ("year years yr yrs", (31557600.0, 31536000.0)),
        ),
        **_units(
            "bytes",
            ("byte bytes", 1.0),
            ("kb kib kilobyte kilobytes kibibytes", (1e3, 1024.0)),
            ("mb mib megabyte megabytes mebibytes", (1e6, 1024.0**2)),
            ("gb gib gigabyte gigabytes gibibytes", (1e9, 1024.0**3)),
            ("tb tib terabyte terabytes tebibytes", (1e12, 1024.0**4)),
        ),
        **_units(
            "speed",
            ("kmh km/h kph kmph", 1 / 3.6),
            ("mph", 0.44704),
            ("m/s mps", 1.0),
            ("knot knots kt kts", 0.514444),
        ),
        **_units(
            "volume",
            ("ml milliliter milliliters millilitre millilitres", 0.001),
            ("l liter liters litre litres", 1.0),
            ("gal gallon gallons", (3.785412, 4.54609)),
        ),
        **_units(
            "power", ("watt watts", 1.0), ("kw kilowatt kilowatts", 1e3), ("mw megawatt megawatts", 1e6)
        ),
        **_units("energy", ("wh", 1.0), ("kwh", 1e3), ("mwh", 1e6)),
    }
)
"""Unit words in lower case."""

_QUANTITIES: Final = MappingProxyType(
    {
        **dict.fromkeys(
            ("duration", "elapsed", "uptime", "runtime", "latency", "timeout", "ttl"),
            Unit("time", (1.0, 0.001, 60.0), True),
        ),
        **dict.fromkeys(
            ("distance", "length", "altitude", "elevation", "height", "width", "depth"),
            Unit("length", (1.0, 1000.0), True),
        ),
        **dict.fromkeys(("weight", "mass"), Unit("mass", (1.0, 1000.0), True)),
        **dict.fromkeys(("filesize", "memory", "disk"), Unit("bytes", (1.0,), True)),
    }
)
GLUED_UNITS: Final = words(
    """
    st nd rd th s x k m b t bn mn p px pt pp bps am pm c f d g l v w h hz khz mhz ghz kw mw gw wh
    kwh mwh mah ah kv mv db dpi fps rpm kbps mbps gbps kcal cal kj ms ns us sec secs min mins hr hrs
    wk wks mo mos yr yrs mm cm km ft in yd mi mg kg lb lbs oz ml cl dl gal kb mb gb tb pb kib mib
    gib tib kph mph kmh kt kts kn hpa kpa bar psi ppm usd eur gbp
    """
)
"""What may stand right behind the digits of a number without making it an identifier, in lower case."""

_CELSIUS = frozenset({"c", "celsius", "centigrade", "degc", "metric"})
_FAHRENHEIT = frozenset({"f", "fahrenheit", "degf", "imperial"})
_UNIT_KEYS = frozenset({"unit", "units", "uom"})


def unit_of_words(words: Sequence[str]) -> Unit | None:
    """The unit that the words of a key name, the last one first; else the quantity that they name.

    A unit beside its own quantity is not ambiguous: the m of `height_m` is the metre.
    """
    quantity = next((_QUANTITIES[word] for word in words if word in _QUANTITIES), None)
    for word in reversed(words):
        unit = UNITS.get(word)
        if unit is not None:
            if quantity is not None and quantity.dimension == unit.dimension:
                return Unit(unit.dimension, unit.factors)
            return unit
    return quantity


def temperature_scale(words: Sequence[str]) -> str | None:
    """`C` or `F` where the words name a scale of temperature."""
    for word in reversed(words):
        if word in _CELSIUS:
            return "C"
        if word in _FAHRENHEIT:
            return "F"
    return None


def names_a_unit(key: str) -> bool:
    """Whether the text member of this key holds the unit of its neighbours, as `unit` and `temp_unit` do."""
    words = key_words(key)
    return bool(words) and words[-1] in _UNIT_KEYS
