"""Names that everybody may use for a code: giving the city of an airport is no invention."""

from types import MappingProxyType
from typing import Final

_AIRPORTS = """
ATL atlanta; AUS austin; BOS boston; BWI baltimore; CLT charlotte; DCA washington; DEN denver; DFW dallas
fort worth; DTW detroit; EWR newark new york; FLL fort lauderdale; IAD washington dulles; IAH houston; JFK
john f kennedy new york; LAS las vegas; LAX los angeles; LGA laguardia new york; MCO orlando; MDW chicago
midway; MIA miami; MSP minneapolis; ORD chicago o'hare; PDX portland; PHL philadelphia; PHX phoenix; SAN san
diego; SEA seattle tacoma; SFO san francisco; SJC san jose; SLC salt lake city; TPA tampa; YUL montreal; YVR
vancouver; YYZ toronto pearson; MEX mexico city; GRU sao paulo são guarulhos; EZE buenos aires; BOG bogota
bogotá; LIM lima; SCL santiago; LHR london heathrow; LGW london gatwick; STN london stansted; LTN london
luton; MAN manchester; EDI edinburgh; DUB dublin; CDG paris charles de gaulle; ORY paris orly; NCE nice; AMS
amsterdam schiphol; BRU brussels; FRA frankfurt; MUC munich; BER berlin brandenburg; HAM hamburg; DUS
dusseldorf düsseldorf; ZRH zurich zürich; GVA geneva; VIE vienna; PRG prague; WAW warsaw; BUD budapest; CPH
copenhagen; ARN stockholm arlanda; OSL oslo; HEL helsinki; MAD madrid; BCN barcelona; LIS lisbon; OPO porto;
FCO rome fiumicino; MXP milan malpensa; VCE venice; ATH athens; IST istanbul; SVO moscow; DXB dubai; AUH abu
dhabi; DOH doha; TLV tel aviv; CAI cairo; JNB johannesburg; CPT cape town; NBO nairobi; LOS lagos; DEL delhi
new; BOM mumbai; BLR bangalore bengaluru; MAA chennai; SIN singapore changi; KUL kuala lumpur; BKK bangkok
suvarnabhumi; HKG hong kong; PEK beijing; PVG shanghai pudong; ICN seoul incheon; NRT tokyo narita; HND
tokyo haneda; KIX osaka kansai; SYD sydney; MEL melbourne; BNE brisbane; AKL auckland; HNL honolulu
"""
_REGIONS = """
US united states of america; USA united states of america; UK united kingdom; GB united kingdom great
britain; NZ new zealand; ZA south africa; KR south korea; SA saudi arabia; AE united arab emirates; CZ czech
republic; CR costa rica; LK sri lanka; DO dominican republic; EU european union; HK hong kong; NY new york;
NJ new jersey; NM new mexico; NH new hampshire; NC north carolina; SC south carolina; ND north dakota; SD
south dakota; WV west virginia; RI rhode island; BC british columbia; NSW new south wales; NYC new york
city; SF san francisco; DC district columbia; PST pacific standard time; PDT pacific daylight time; EST
eastern standard time; EDT eastern daylight time; CET central european time; GMT greenwich mean time; UTC
coordinated universal time
"""


def _read(*tables: str) -> dict[str, tuple[str, ...]]:
    names: dict[str, tuple[str, ...]] = {}
    for table in tables:
        for entry in " ".join(table.split()).split("; "):
            code, _, name = entry.strip().partition(" ")
            names[code] = (*names.get(code, ()), name)
    return names


NAMES_OF_CODES: Final = MappingProxyType(_read(_AIRPORTS, _REGIONS))
"""For each code the names it may be given, in lower case: airports (IATA), countries, regions, time zones."""
