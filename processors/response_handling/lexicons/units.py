"""Units of measure and currencies: what a symbol after a number, or a word of a member's key, means."""

import re
from functools import lru_cache
from typing import Final

_WORD_BREAK = re.compile(r"[\W_]+|(?<=[a-z0-9])(?=[A-Z])(?!(?<=[KMGTP]i)B)|(?<=[KMGTP]iB)(?=[A-Z])")

PERCENT: Final = "%"
PERCENT_WORDS: Final = frozenset("pct percent percentage prozent pourcent procent proc perc".split())
"""Words of keys whose numbers are hundredths."""
UNITS: Final = frozenset(
    """
    mm cm m km in ft yd mi nmi pc ly ug mg g hg kg oz lb t jin ms s min h d wk mo y B kB MB GB TB kbps Mbps Gbps
    mph kn km/h m/s ml cl l gal m3 W kW MW Wh kWh MWh GWh MJ GJ kcal kJ m2 km2 ha sqft acre Hz kHz MHz GHz
    deg C F K % bps
    """.split()
)
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


@lru_cache(maxsize=4096)
def key_words(key: str) -> tuple[str, ...]:
    """The words of a member's key in lower case: `amountCents` and `amount_cents` are amount and cents."""
    return tuple([word.lower() for word in _WORD_BREAK.split(key[:200]) if word])


def unit_of_symbol(symbol: str) -> str:
    """The unit of a written symbol, empty if there is none; the case of short ones counts (`m`, `M`)."""
    unit = _BINARY.get(symbol, symbol)
    if unit in UNITS:
        return unit
    low = symbol.lower()
    return _ALIASES.get(low) or (low if len(symbol) > 1 and low in UNITS else "")
