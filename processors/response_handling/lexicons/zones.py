"""Where people say that they are, and what the clock shows there: minutes from UTC and the rule of daylight saving."""

from datetime import date, timedelta
from typing import Final

_ZONES: Final = """
0/eu: london uk england scotland dublin ireland irlanda lisbon lisboa lissabon lisbonne lizbona portugal edinburgh manchester glasgow bst londra londres londen londyn ロンドン 伦敦 リスボン
0/: utc gmt reykjavik iceland accra
-60/eu: azores açores
60/eu: paris berlin madrid rome roma rom milan milano mailand amsterdam brussels brüssel bruxelles bruselas vienna wien viena zurich zürich geneva genève genf warsaw warszawa warszaw warschau varsovie prague prag praha budapest stockholm oslo copenhagen københavn kopenhagen hamburg munich münchen frankfurt köln barcelona lyon turin torino naples napoli germany deutschland allemagne alemania alemanha france frankreich francia frança spain spanien españa espagne espanha italy italien italia italie poland polen polska pologne netherlands nederland cet cest mez mesz kraków krakow gdańsk rotterdam antwerpen seville sevilla valencia bilbao marseille 巴黎 柏林 パリ ベルリン 马德里 罗马 mitteleuropäische
120/eu: athens athen helsinki kyiv kiev bucharest sofia vilnius riga tallinn eet eest
180/: istanbul moscow moskau moscou riyadh doha nairobi kuwait 莫斯科
240/: dubai abu_dhabi gst 迪拜
330/: india mumbai delhi bangalore bengaluru chennai kolkata hyderabad pune ist 孟买
420/: bangkok jakarta hanoi ho_chi_minh
480/: china beijing peking pékin pekín shanghai singapore singapur singapour shenzhen guangzhou hong_kong hongkong taipei perth kuala_lumpur manila 北京 上海 深圳 广州 香港 台北 新加坡 シンガポール 北京时间 中国
540/: japan tokyo tokio osaka kyoto jst seoul korea 東京 日本 大阪 京都 ソウル 日本時間 东京 首尔
600/: brisbane
600/au: sydney melbourne canberra aest aedt シドニー 悉尼
720/nz: auckland wellington new_zealand
-180/: são_paulo sao_paulo brasília brasilia rio_de_janeiro buenos_aires brasil brazil argentina salvador recife fortaleza
-300/: lima bogotá bogota quito panama
-360/: mexico_city ciudad_de_méxico méxico guatemala
-300/us: new_york nueva_york nova_york nova_iorque nowym_jorku newyork boston washington miami toronto atlanta philadelphia eastern est edt montreal montréal detroit ニューヨーク 纽约
-360/us: chicago houston dallas austin central cst cdt minneapolis シカゴ 芝加哥
-420/us: denver salt_lake_city mountain mst mdt calgary
-420/: phoenix arizona
-480/us: los_angeles san_francisco seattle vancouver pacific pst pdt california portland san_diego las_vegas ロサンゼルス サンフランシスコ 洛杉矶 旧金山
-540/us: anchorage alaska
-600/: honolulu hawaii
"""
ZONES: Final = {
    name.replace("_", " "): (int(offset), rule)
    for line in _ZONES.strip().splitlines()
    for head, _, names in [line.partition(": ")]
    for offset, _, rule in [head.partition("/")]
    for name in names.split()
}
"""Minutes from UTC in winter and the rule of daylight saving, by places and abbreviations in lower case."""

_RULES: Final = {"eu": (3, -1, 10, -1), "us": (3, 2, 11, 1), "au": (10, 1, 4, 1), "nz": (9, -1, 4, 1)}
"""Months and which of their Sundays (the last, if negative) clocks go forward and back."""


def offset_at(name: str, day: date) -> int:
    """The minutes from UTC at a place on a day."""
    offset, rule = ZONES[name]
    if not rule:
        return offset
    month, nth, last_month, last_nth = _RULES[rule]
    start, end = _sunday(day.year, month, nth), _sunday(day.year, last_month, last_nth)
    is_summer = start <= day < end if start < end else not end <= day < start
    return offset + 60 * is_summer


def _sunday(year: int, month: int, nth: int) -> date:
    first = date(year, month, 1)
    first += timedelta(days=(6 - first.weekday()) % 7)
    if nth > 0:
        return first + timedelta(days=7 * (nth - 1))
    last = first + timedelta(days=28)
    return last if last.month == month else last - timedelta(days=7)
