"""Units of measure and currencies: what a symbol, or a word of a member's key, means."""

import re
from functools import cache, lru_cache
from typing import Final, NamedTuple

_WORD_BREAK = re.compile(r"[\W_]+|(?<=[a-z0-9])(?=[A-Z])(?!(?<=[KMGTP]i)B)|(?<=[KMGTP]iB)(?=[A-Z])")


class Unit(NamedTuple):
    """A unit: its dimension and how many base units it is (two where usage differs, as of kB)."""

    dimension: str
    factors: tuple[float, ...]
    symbol: str = ""


def _table(dimension: str, **factors: float | tuple[float, ...]) -> dict[str, Unit]:
    return {
        symbol: Unit(dimension, factor if isinstance(factor, tuple) else (float(factor),), symbol)
        for symbol, factor in factors.items()
    }


UNITS: Final = {
    **_table(
        "length",
        mm=0.001,
        cm=0.01,
        m=1,
        km=1000,
        ft=0.3048,
        yd=0.9144,
        mi=1609.344,
        nmi=1852,
        pc=3.0857e16,
        ly=9.4607e15,
    ),
    "in": Unit("length", (0.0254,), "in"),
    **_table(
        "mass",
        ug=1e-6,
        mg=0.001,
        g=1,
        hg=100,
        kg=1000,
        oz=28.349523,
        lb=453.59237,
        t=(1e6, 907184.74),
        jin=500,
    ),
    **_table("time", ms=0.001, s=1, min=60, h=3600, d=86400, wk=604800, mo=(2629800, 2592000, 2678400)),
    "y": Unit("time", (31557600.0, 31536000.0), "y"),
    **_table("bytes", B=1, kB=(1e3, 1024), MB=(1e6, 1024**2), GB=(1e9, 1024**3), TB=(1e12, 1024**4)),
    **_table("bits", kbps=1e3, Mbps=1e6, Gbps=1e9),
    **_table("speed", mph=0.44704, kn=0.514444),
    "km/h": Unit("speed", (1 / 3.6,), "km/h"),
    "m/s": Unit("speed", (1.0,), "m/s"),
    **_table("volume", ml=0.001, cl=0.01, l=1, gal=(3.785412, 4.54609), m3=1000),
    **_table("power", W=1, kW=1e3, MW=1e6),
    **_table("energy", Wh=1, kWh=1e3, MWh=1e6, GWh=1e9, MJ=1e3 / 3.6, GJ=1e6 / 3.6),
    **_table("nutrition", kcal=1, kJ=0.239006),
    **_table("area", m2=1, km2=1e6, ha=1e4, sqft=0.092903, acre=4046.86),
    **_table("frequency", Hz=1, kHz=1e3, MHz=1e6, GHz=1e9),
    "deg": Unit("temperature", (1.0,), ""),
    "C": Unit("temperature", (1.0,), "C"),
    "F": Unit("temperature", (1.0,), "F"),
    "K": Unit("temperature", (1.0,), "K"),
    "%": Unit("percent", (1.0,), "%"),
    "bps": Unit("percent", (0.01,), "bps"),
}
"""Units by their symbols."""

_ALIASES: Final = {
    "°": "deg", "°c": "C", "°f": "F", "℃": "C", "kmh": "km/h", "kph": "km/h", "sq ft": "sqft", "m²": "m2", "㎡": "m2",
    "km²": "km2", "m³": "m3", "kb": "kB", "kib": "kB", "mb": "MB", "mib": "MB", "gb": "GB", "gib": "GB", "tb": "TB",
    "tib": "TB", "gj": "GJ", "kwh": "kWh", "mwh": "MWh", "wh": "Wh", "kw": "kW", "mw": "MW", "mbps": "Mbps", "gbps": "Gbps",
    "mbit/s": "Mbps", "mcg": "ug", "µg": "ug", "μg": "ug", "lbs": "lb", "kj": "kJ", "hrs": "h", "hr": "h", "mins": "min", "sec": "s", "secs": "s",
    "kgs": "kg", "kms": "km", "sqm": "m2", "pct": "%", "hz": "Hz", "mhz": "MHz", "ghz": "GHz", "khz": "kHz",
    "bp": "bps", "kt": "kn", "knots": "kn", "qm": "m2", "mph": "mph", "w": "W",
}  # fmt: skip
_BINARY: Final = {"Ki": "kB", "Mi": "MB", "Gi": "GB", "Ti": "TB"}
"""Bytes as clusters write them; in lower case some are miles."""
_KEY_UNITS: Final = {
    **{symbol.lower(): unit for symbol, unit in UNITS.items() if len(symbol) > 1 and symbol not in ("min", "in", "deg")},
    **{alias: UNITS[symbol] for alias, symbol in _ALIASES.items() if alias.isalpha() and len(alias) > 1},
    **{
        word: UNITS[symbol]
        for symbol, names in {
            "ms": "millis milliseconds", "s": "seconds second sekunden secondes segundos secondi", "%": "percent percentage prozent pourcent procent proc perc",
            "min": "minutes minute minuten minutos minuti mins", "h": "hours stunden heures horas ore uren",
            "d": "days tage jours dias giorni dagen nights", "wk": "weeks wochen semaines semanas settimane",
            "mo": "months mnd monate mois meses mesi maanden", "y": "years jahre años anos anni jaren",
            "km": "kilometers kilometres kilometer kilometri", "m": "meters metres meter metri metros metry", "mi": "miles millas", "kg": "kilograms", "g": "grams",
            "ft": "feet", "B": "bytes", "C": "celsius tempc", "F": "fahrenheit", "l": "liters litres litros litri",
        }.items()
        for word in names.split()
    },
}  # fmt: skip
_LAST_WORD_UNITS: Final = {
    "c": UNITS["C"], "f": UNITS["F"], "m": UNITS["m"], "g": UNITS["g"], "s": UNITS["s"], "h": UNITS["h"],
    "min": UNITS["min"], "l": UNITS["l"], "t": UNITS["t"], "b": UNITS["B"],
}  # fmt: skip
"""Short symbols, which name a unit only at the end of a key of several words."""

_MIXED_CASE: Final = frozenset(symbol for symbol in UNITS if not (symbol.islower() or symbol.isupper()))
"""Symbols that parting words where the case changes would take apart: `kWh`."""

_SPEEDS: Final = {("km", "h"): "km/h", ("km", "hour"): "km/h", ("m", "s"): "m/s", ("mi", "h"): "mph"}
_TIMES_OF_SPEED: Final = frozenset("h hour s second sec min minute".split())

MINOR: Final = frozenset(
    "cents cent minor pence gr grosze groszy fen centimes centavos centesimi ore øre paise ct subunits".split()
)
"""Words of keys whose amounts are in hundredths of a currency."""

SCALES: Final = {
    "thousand": 1e3,
    "thousands": 1e3,
    "million": 1e6,
    "millions": 1e6,
    "billion": 1e9,
    "billions": 1e9,
}
"""Words of keys that scale their numbers."""
MYRIADS: Final = {"man": 1e4, "wan": 1e4, "oku": 1e8}
YEN: Final = frozenset({"yen", "jpy", "yuan", "cny", "rmb"})
"""Words that scale amounts of money in yen and yuan, beside these words, and mean other things elsewhere."""
MINOR_OF: Final = {
    "grosze": "pln",
    "groszy": "pln",
    "gr": "pln",
    "fen": "cny",
    "pence": "gbp",
    "öre": "sek",
    "øre": "nok",
}
"""The currencies of which some of those words are parts."""

_CODES = (
    "usd eur gbp jpy cny inr aud cad nzd sgd hkd chf sek nok dkk pln czk huf mxn brl zar krw try thb ils aed sar "
    "ars clp cop twd php idr myr vnd rub uah ron bgn egp ngn kes"
).split()
_DOLLARS = "USD AUD CAD NZD SGD HKD MXN CLP COP ARS TWD"
CURRENCIES: Final = {
    name: frozenset(codes.split())
    for name, codes in {
        "$": _DOLLARS, "us$": "USD", "r$": "BRL", "a$": "AUD", "au$": "AUD", "c$": "CAD", "ca$": "CAD", "nz$": "NZD", "hk$": "HKD", "s$": "SGD", "mx$": "MXN", "€": "EUR", "£": "GBP", "¥": "JPY CNY", "￥": "JPY CNY",
        "₹": "INR", "₩": "KRW", "zł": "PLN", "zl": "PLN", "kr": "SEK NOK DKK", "kč": "CZK", "円": "JPY", "元": "CNY",
        "块": "CNY", "人民币": "CNY", "ドル": "USD", "美元": "USD", "ユーロ": "EUR", "欧元": "EUR", "日元": "JPY",
        **dict.fromkeys("dollar dollars dólares dólar dollari dollaro dolares dolar dolary dolarów".split(), "USD AUD CAD NZD SGD HKD TWD"),
        **dict.fromkeys("euro euros eur €".split(), "EUR"),
        **dict.fromkeys("yen yens".split(), "JPY"), "yuan": "CNY", "rmb": "CNY", "rupees": "INR", "quid": "GBP",
        **dict.fromkeys("zloty złoty złote złotych zlotys".split(), "PLN"), "reais": "BRL", "real": "BRL",
        **dict.fromkeys("franken francs chf".split(), "CHF"), "pesos": "MXN ARS CLP COP", "libras": "GBP",
        **{code: code.upper() for code in _CODES},
    }.items()
}  # fmt: skip
"""Which ISO 4217 currencies a sign, word or code in lower case may mean."""
MINOR_WORDS: Final = frozenset(
    "cent cents pence centavos centesimi centimes grosze groszy gr 分 p ct".split()
)


@cache
def factors_of(dimension: str) -> tuple[float, ...]:
    """How many base units the units of a dimension are."""
    return tuple(
        {factor for unit in UNITS.values() if unit.dimension == dimension for factor in unit.factors}
    )


@lru_cache(maxsize=4096)
def key_words(key: str) -> tuple[str, ...]:
    """The words of a member's key in lower case: `amountCents` and `amount_cents` are amount and cents."""
    return tuple([word.lower() for word in _WORD_BREAK.split(key[:200]) if word])


@lru_cache(maxsize=4096)
def unit_of_key(key: str) -> Unit | None:
    """The unit that a key names, as `weight_kg` and `durationSeconds` do."""
    if (whole := UNITS.get(key)) is not None and len(key) > 1:
        return whole
    words = key_words(key.partition("/")[0])
    if "per" in words[1:]:  # the unit of a rate is that of what is counted; a speed has one of its own
        of, by = words[: words.index("per", 1)], words[words.index("per", 1) + 1 :]
        speed = _SPEEDS.get((of[-1], by[0])) if by else None
        words = of if by and by[0] not in _TIMES_OF_SPEED else ()
        if speed is not None:
            return UNITS[speed]
    if not words or "by" in words:
        return None
    if len(words) > 1 and words[-1] in _LAST_WORD_UNITS:
        return _LAST_WORD_UNITS[words[-1]]
    if key.endswith("_K"):
        return UNITS["K"]
    if (written := UNITS.get(key.rpartition("_")[2])) is not None and written.symbol in _MIXED_CASE:
        return written
    for word in reversed(words[-2:]):
        if (unit := _KEY_UNITS.get(word)) is not None:
            return unit
    return None


def unit_of_symbol(symbol: str) -> Unit | None:
    """The unit of a written symbol; the case of short ones counts (`m`, `M`)."""
    unit = UNITS.get(_BINARY.get(symbol, symbol))
    if unit is None:
        alias = _ALIASES.get(symbol.lower())
        unit = UNITS[alias] if alias is not None else UNITS.get(symbol.lower()) if len(symbol) > 1 else None
    return unit
