"""Identifiers in prose: order numbers, flight numbers, codes."""

import re

from processors.texts.units import GLUED_UNITS
from processors.texts.word_list import words

_TOKEN = re.compile(r"(?<![\w./@-])[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*(?!\w)")
_LETTER = re.compile(r"[A-Za-z]")
_DIGIT = re.compile(r"\d")
_NUMBER_WITH_UNIT = re.compile(rf"\d+(?:{'|'.join(sorted(GLUED_UNITS))}|h\d+m?|m\d+s?|d\d+h?)", re.IGNORECASE)
_HYPHENATED_NUMBER = re.compile(r"\d+(?:-[a-z]+)+")
_PREFIXED_NUMBER = re.compile(
    r"(?:mid|pre|post|top|sub|non|early|late|under|over|plus|ages?|day|week|level|phase|part|step|the)-\d+s?"
)
_PERIOD = re.compile(
    r"(?:FY|Q[1-4]|H[12]|CY)[-_]?\d{2,4}|\d{4}-?(?:Q[1-4]|H[12])|Q[1-4]|H[12]", re.IGNORECASE
)
_SIZE = re.compile(r"\d+x\d+(?:x\d+)?", re.IGNORECASE)
_LETTER_AND_DIGIT = re.compile(r"[A-Za-z]-?\d|\d-?[A-Za-z]")
_GENERAL_TERMS = words(
    """
    covid19 mp3 mp4 utf8 utf16 sha1 sha256 sha512 md5 base64 ipv4 ipv6 http2 http3 oauth2 i18n l10n
    k8s s3 ec2 x86 x64 arm64 amd64 win32 win64 h264 h265 p2p b2b b2c c2c o2o co2 ch4 h2o pm10 pm25
    omega3 vitaminb12 type1 type2 web2 web3 3d 2d 4k 8k python3 python2 ps4 ps5 401k 403b w2 1099k
    9to5 2fa mfa2 rs256 aes256 p50 p75 p90 p95 p99 p999 gpt4 es6 html5 css3 log4j neo4j g7 g8 g20
    """
)


def identifiers(text: str) -> list[tuple[int, int, str]]:
    """The tokens of `text` with letters and digits, three characters at least: start, end, token.

    Numbers with a unit, ordinals, periods, sizes, one letter with one digit, and general terms are none.
    """
    return [
        (match.start(), match.end(), match[0])
        for match in _TOKEN.finditer(text)
        if len(match[0]) >= 3 and _is_identifier(match[0])
    ]


def _is_identifier(token: str) -> bool:
    if _LETTER.search(token) is None or _DIGIT.search(token) is None:
        return False
    if any(
        pattern.fullmatch(token)
        for pattern in (
            _NUMBER_WITH_UNIT,
            _HYPHENATED_NUMBER,
            _PREFIXED_NUMBER,
            _PERIOD,
            _SIZE,
            _LETTER_AND_DIGIT,
        )
    ):
        return False
    return token.lower().replace("-", "").replace("_", "") not in _GENERAL_TERMS
