"""Captured arguments and results: from what telemetry carries to JSON values, never by guessing.

Telemetry writes a value as an attribute map, as JSON, as JSON inside a JSON string, as the `repr` of
Python data, or as bare text; it also hides values and cuts them off. What cannot be read stays text
with a state that is the reason.
"""

import json
import math
import re
from typing import NamedTuple

import orjson

from processors.model.agent_run import ValueState
from processors.model.json_values import DIGITS_TO_ZEROS, LONG_NUMBER, JsonValue
from processors.model.masks import REDACTION_MARKERS, has_mask, is_cut, is_mask
from processors.model.python_literal import parse_python_literal
from processors.spans import NATIVE, AttributeValue, text_in

MAX_TEXT_LENGTH = 256 * 1024
"""Longer texts are not parsed."""
MAX_DEPTH = 100
"""Values nested deeper are not taken."""

_SCRUBBED = "[Scrubbed due to "
"""How the text begins that a scrubber leaves in place of a value, or of a part of one."""

_KEPT_BACK = ('{"omitted":true,"sha256":"', '{"truncated":true,"prefix":"')
_HASHED = re.compile(r'"sha256":"[0-9a-f]{64}","original_bytes":[0-9]{1,20}\}$')
"""How the objects begin and end that a policy of the sender leaves in place of a value that is too long."""

_MORE_ROUNDS = 2
_SHALLOW = 2 * MAX_DEPTH
"""Bytes in which nothing can be nested too deep."""
_PRESENT = ValueState.PRESENT
_MARKER_BYTES = frozenset(marker.encode() for marker in REDACTION_MARKERS)
_SCRUBBED_BYTES = _SCRUBBED.encode()
_KEPT_BACK_BYTES = tuple(text.encode() for text in _KEPT_BACK)
_SAMPLED_NUMBER = b"0" * 3
_LONGEST_MARKER = max(map(len, REDACTION_MARKERS))
_LOOKS_STRUCTURED = re.compile(r"""\{\s*(?:["'}]|$)|\[\s*(?:[\[{"'\]]|$)""")
_PRINTED_OBJECTS = re.compile(r"\[?<[\w.]+ object at 0x[0-9a-f]+>(?:, <[\w.]+ object at 0x[0-9a-f]+>)*\]?")
_OMITTED = '{"omitted":true}'
_MASKS_BEGIN = frozenset("*<[_RrH")
_TEXT_OR_MASKED_NUMBER = re.compile(r'"(?:[^"\\]|\\.)*"|[-+.\w]{0,40}\*{3,}[-+.*\w]*')
_ONLY_PYTHON_READS = ("\\u", "NaN", "Infinity")
"""Every JSON text that the fast parser refuses and Python's accepts contains one of these."""


class DecodedValue(NamedTuple):
    """A decoded value with the text it was read from.

    `value` counts only while `state` is `PRESENT`, with one exception: arguments that are valid but no
    object (a bare text, a number, a list) are `UNPARSED` and keep what was read, for a caller who knows
    what parameter it belongs to. `text` is None only for `ABSENT`.
    """

    value: JsonValue
    text: str | None
    state: ValueState


ABSENT = DecodedValue(None, None, ValueState.ABSENT)
"""Nothing was captured."""


def text_value(text: str | None) -> DecodedValue:
    """`text` as it stands, `ABSENT` for None, and `REDACTED` where all of it is a mask."""
    if text is None:
        return ABSENT
    if _may_be_mask(text) and is_mask(text):
        return DecodedValue(None, text, ValueState.REDACTED)
    return DecodedValue(text, text, ValueState.PRESENT)


def value_of(value: JsonValue) -> DecodedValue:
    """`value` as it is."""
    return DecodedValue(value, value if isinstance(value, str) else json_text(value), ValueState.PRESENT)


def decode_arguments(raw: "AttributeValue | JsonValue") -> DecodedValue:
    """Decode the arguments of a call, given as text or as a value.

    Objects are taken as they are; text is read as JSON (also JSON inside a JSON string, twice more) and
    then as a Python literal. An empty text and null mean a call without arguments. Never raises.
    """
    if not isinstance(raw, str):
        return _arguments_of_value(json_value(raw), json_text(raw))
    text = raw.strip()
    if not text or text == "null":
        return DecodedValue({}, raw, ValueState.PRESENT)
    state = _state_unparsed(text)
    if state is not None:
        return DecodedValue(None, raw, state)
    try:
        value = parse_text(text)
    except ValueError:
        if is_cut(text):
            state = ValueState.TRUNCATED
        elif has_mask(text):
            state = ValueState.REDACTED
        else:
            state = ValueState.TRUNCATED if _is_cut(text) else ValueState.UNPARSED
        return DecodedValue(text, raw, state)
    return _arguments_of_value(value, raw)


def plain_object(any_value: bytes | None) -> DecodedValue | None:
    """The object that the text in an AnyValue message plainly writes, straight from its bytes.

    It is what `decode_arguments` and `decode_result` give. None where they have to look closer: at what is no
    text, no object, long, withheld, or not exact as parsed.
    """
    if NATIVE is not None:
        return None if any_value is None else _object_in(NATIVE.plain_object(any_value))
    encoded = None if any_value is None else text_in(any_value)
    if encoded is None or encoded[0] != 0x7B or encoded[-1] != 0x7D:  # { and }
        return None
    size = len(encoded)
    if size <= _LONGEST_MARKER:
        if encoded in _MARKER_BYTES:
            return None
    elif encoded.partition(_SCRUBBED_BYTES)[1] or encoded.startswith(_KEPT_BACK_BYTES):
        # `in` makes and drops an exception for every search in bytes, `find` takes its arguments apart.
        return None
    # Of the digits of a long number every sixth byte shows three in a row at least: a look at so few spares
    # most texts the look at all. And where few bytes are taken out, that costs a tenth of counting them.
    if encoded[::6].translate(DIGITS_TO_ZEROS).partition(_SAMPLED_NUMBER)[1] and (
        encoded.translate(DIGITS_TO_ZEROS).find(LONG_NUMBER) >= 0
    ):
        return None
    if size > _SHALLOW and size - len(encoded.replace(b"{", b"").replace(b"[", b"")) > MAX_DEPTH:
        return None
    try:
        value = orjson.loads(encoded)
    except ValueError:
        return None
    # As DecodedValue(...), without the call in between that costs more than the tuple.
    return tuple.__new__(DecodedValue, (value, encoded.decode(), _PRESENT))


def _object_in(text: str | None) -> DecodedValue | None:
    """The object in a text that begins and ends as one, unless all or a part of it is withheld."""
    if text is None or (
        text in REDACTION_MARKERS
        if len(text) <= _LONGEST_MARKER
        else text.startswith(_KEPT_BACK) or _SCRUBBED in text
    ):
        return None
    try:
        return tuple.__new__(DecodedValue, (orjson.loads(text), text, _PRESENT))
    except ValueError:
        return None


def decode_result(raw: "AttributeValue | JsonValue") -> DecodedValue:
    """Decode the result of a call, given as text or as a value, without looking for envelopes.

    Text that is neither JSON nor a Python literal is a result as it stands, but for printed objects that show
    nothing but their address. A JSON string counts as the string in it, in `text` too. Never raises.
    """
    if not isinstance(raw, str):
        value = json_value(raw)
        return DecodedValue(value, value if isinstance(value, str) else json_text(value), ValueState.PRESENT)
    text = raw.strip()
    state = _state_unparsed(text)
    if state is not None:
        return DecodedValue(None, raw, state)
    if not text:
        return DecodedValue(raw, raw, ValueState.PRESENT)
    try:
        value = parse_text(text)
    except ValueError:
        if _is_cut(text):
            return DecodedValue(None, raw, ValueState.TRUNCATED)
        if " object at 0x" in text and _PRINTED_OBJECTS.fullmatch(text) is not None:
            return ABSENT
        return DecodedValue(raw, raw, ValueState.PRESENT)
    if isinstance(value, str):
        return DecodedValue(value, value, ValueState.PRESENT)
    if text[0] == '"':
        return DecodedValue(value, json_text(value), ValueState.PRESENT)
    return DecodedValue(value, raw, ValueState.PRESENT)


def parse_text(text: str) -> JsonValue:
    """The value that `text` writes as JSON (up to three layers deep) or as a Python literal in brackets.

    Raises:
        ValueError: it does neither.
    """
    try:
        value = parse_json(text)
    except ValueError:
        if text[:1] in ("{", "[", "("):
            return parse_python_literal(text)
        raise
    for _ in range(_MORE_ROUNDS):
        if not isinstance(value, str):
            return value
        inner = value.strip()
        if inner[:1] not in ("{", "[", '"'):
            break
        try:
            value = parse_json(inner)
        except ValueError:
            break
    return value


def parse_json(text: str) -> JsonValue:
    """The value of a JSON document with exact integers; of repeated keys the last counts.

    A number of which asterisks hide a part (`{"amount": ****4}`) is the text of what is left of it.
    Numbers that JSON has no form for and Python's encoder writes all the same, in a data frame's results for
    one, become the texts `NaN`, `Infinity` and `-Infinity`: one member leaves the others readable.

    Raises:
        ValueError: no JSON, a number out of range, longer than 256 Ki characters or nested deeper than 100.
    """
    if len(text) > MAX_TEXT_LENGTH:
        raise ValueError("text too long")
    try:
        return _parsed_json(text)
    except ValueError:
        if "***" not in text:
            raise
    return _parsed_json(_TEXT_OR_MASKED_NUMBER.sub(_quoted, text))


def _quoted(result: re.Match[str]) -> str:
    return result[0] if result[0][0] == '"' else f'"{result[0]}"'


def _parsed_json(text: str) -> JsonValue:
    value: JsonValue
    is_plain = NATIVE is not None and NATIVE.is_plain_json(text)
    # Integers of up to 18 digits are exact to the fast parser; what opens a level is counted separately.
    encoded = b"" if is_plain else text.encode(errors="surrogatepass")
    scanned = b"" if is_plain else encoded.translate(DIGITS_TO_ZEROS, b"[{")
    if scanned.find(LONG_NUMBER) < 0:  # `in` makes and drops an exception for every search in bytes
        try:
            value = orjson.loads(text if is_plain else encoded)
        except ValueError:
            if not any(sign in text for sign in _ONLY_PYTHON_READS):
                raise
        else:
            if len(encoded) - len(scanned) > MAX_DEPTH:
                json_value(value, strict=True)
            return value
    try:
        value = json.loads(text, parse_constant=str)
    except RecursionError:
        raise ValueError("nested too deep") from None
    return json_value(value, strict=True)


def json_value(value: "AttributeValue | JsonValue", *, strict: bool = False, depth: int = 0) -> JsonValue:
    """`value` as JSON can hold it: bytes as hex, lone surrogates replaced, `NaN` and infinities as texts.

    What is nested deeper than 100 becomes null, or with `strict` an error, as do infinities.

    Raises:
        ValueError: only with `strict`.
    """
    if isinstance(value, str):
        return value if value.isascii() else _without_surrogates(value)
    if isinstance(value, float) and not math.isfinite(value):
        if strict:
            raise ValueError("number out of range")
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, (dict, list)) and depth > MAX_DEPTH:
        if strict:
            raise ValueError("nested too deep")
        return None
    if isinstance(value, dict):
        return {
            key if key.isascii() else _without_surrogates(key): json_value(
                member, strict=strict, depth=depth + 1
            )
            for key, member in value.items()
        }
    if isinstance(value, list):
        return [json_value(member, strict=strict, depth=depth + 1) for member in value]
    return value.hex() if isinstance(value, bytes) else value


def _without_surrogates(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def json_text(value: "AttributeValue | JsonValue") -> str:
    """`value` as JSON text with `", "` and `": "` between its parts."""
    return json.dumps(json_value(value), ensure_ascii=False)


def _state_unparsed(text: str) -> ValueState | None:
    """The state of a text that is not parsed, because its value was withheld or it is too long; else None."""
    if (_may_be_mask(text) and is_mask(text)) or text == _OMITTED:
        return ValueState.REDACTED
    if len(text) > MAX_TEXT_LENGTH:
        return ValueState.UNPARSED
    if text.startswith(_KEPT_BACK) and _HASHED.search(text, max(0, len(text) - 120)) is not None:
        return ValueState.TRUNCATED
    return ValueState.REDACTED if _SCRUBBED in text else None


def _may_be_mask(text: str) -> bool:
    """A first look at how `text` begins: most texts, and all JSON but lists, are no mask by that."""
    return text[:1] in _MASKS_BEGIN and (text[:1] != "[" or text[1:2].isalpha())


def _arguments_of_value(value: JsonValue, text: str) -> DecodedValue:
    if isinstance(value, dict):
        return DecodedValue(value, text, ValueState.PRESENT)
    if value is None:
        return DecodedValue({}, text, ValueState.PRESENT)
    return DecodedValue(value, text, ValueState.UNPARSED)


def _is_cut(text: str) -> bool:
    """Whether `text` begins like an object or a list of data and is not closed."""
    if _LOOKS_STRUCTURED.match(text) is None:
        return False
    if text[-1] != ("}" if text[0] == "{" else "]"):
        return True
    opened, closed = (sum(map(text.count, brackets)) for brackets in ("{[", "}]"))
    return opened > closed  # what was cut may end with a bracket that closes a part of it


def is_broken_data(text: str) -> bool:
    """Whether `text` begins like an object or a list of data and cannot be read as any: it was cut, mostly.

    What has further text after the data is a text, not broken data.
    """
    text = text.strip()
    if _LOOKS_STRUCTURED.match(text) is None:
        return False
    if len(text) > MAX_TEXT_LENGTH:
        return True
    try:
        parse_text(text)
    except ValueError:
        pass
    else:
        return False
    try:
        json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return True
    return False
