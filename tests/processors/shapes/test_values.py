"""Captured values: what is read, what stays text, and what nobody may parse."""

import time
from collections.abc import Callable

import pytest

from processors.model.agent_run import ValueState
from processors.model.json_values import JsonValue, decode_json, encode_json
from processors.model.python_literal import parse_python_literal
from processors.model.values import ABSENT, DecodedValue, decode_arguments, decode_result, json_text
from processors.spans.attributes import AttributeValue


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ('{"city": "Oslo"}', {"city": "Oslo"}),
        ('"{\\"city\\": \\"Oslo\\"}"', {"city": "Oslo"}),
        ("{'city': 'Oslo', 'now': True, 'none': None}", {"city": "Oslo", "now": True, "none": None}),
        ("{'at': (1, -2.5), 'tags': {'a'}}", {"at": [1, -2.5], "tags": ["a"]}),
        ({"city": "Oslo"}, {"city": "Oslo"}),
        ('{"n": 12345678901234567890123}', {"n": 12345678901234567890123}),
        ('{"a": 1, "a": 2}', {"a": 2}),
        ('{"bad": "\\ud800"}', {"bad": "\ufffd"}),
        ("", {}),
        ("null", {}),
        (None, {}),
    ],
)
def test_arguments_that_are_an_object_are_present(raw: JsonValue, value: JsonValue) -> None:
    decoded = decode_arguments(raw)

    assert (value, ValueState.PRESENT) == (decoded.value, decoded.state)


@pytest.mark.parametrize(
    "raw", ['{"name": "X", "prices": [NaN, -Infinity, 1]}', "{'name': 'X', 'prices': [nan, -inf, 1]}"]
)
@pytest.mark.parametrize("decode", [decode_arguments, decode_result])
def test_numbers_that_json_has_no_form_for_leave_the_other_members_readable(
    raw: str, decode: Callable[[str], DecodedValue]
) -> None:
    decoded = decode(raw)

    assert ValueState.PRESENT is decoded.state
    assert {"name": "X", "prices": ["NaN", "-Infinity", 1]} == decoded.value
    assert decoded.value == decode_json(encode_json(decoded.value))
    assert raw == decoded.text


@pytest.mark.parametrize(
    ("raw", "state"),
    [
        ("Oslo", ValueState.UNPARSED),
        ("12", ValueState.UNPARSED),
        ("[1, 2]", ValueState.UNPARSED),
        ('{"n": 1e999}', ValueState.UNPARSED),
        ("{1: 2}", ValueState.UNPARSED),
        ("dict(k=1)", ValueState.UNPARSED),
        ("x" * 300_000, ValueState.UNPARSED),
        ("[" * 200 + "]" * 200, ValueState.UNPARSED),
        ('{"text": "very lo', ValueState.TRUNCATED),
        ("Some words…", ValueState.TRUNCATED),
        ("__REDACTED__", ValueState.REDACTED),
        ("<REDACTED>", ValueState.REDACTED),
        (" [REDACTED] ", ValueState.REDACTED),
        ("HIDDEN:non-empty", ValueState.REDACTED),
        ("[Scrubbed due to 'session']", ValueState.REDACTED),
        ("""{"city": "Oslo", "token": "[Scrubbed due to 'auth']"}""", ValueState.REDACTED),
    ],
)
def test_other_arguments_keep_their_text_and_say_why(raw: str, state: ValueState) -> None:
    decoded = decode_arguments(raw)

    assert (raw, state) == (decoded.text, decoded.state)


@pytest.mark.parametrize(
    ("raw", "value", "text"),
    [
        ('{"t": 1}', {"t": 1}, '{"t": 1}'),
        ("{'t': 1}", {"t": 1}, "{'t': 1}"),
        ('"done"', "done", "done"),
        ("done", "done", "done"),
        ("", "", ""),
        ("42", 42, "42"),
        ({"a": [1, None]}, {"a": [1, None]}, '{"a": [1, null]}'),
        ("[note] see above", "[note] see above", "[note] see above"),
        ("Loading...", "Loading...", "Loading..."),
    ],
)
def test_results_are_values_with_their_text(raw: JsonValue, value: JsonValue, text: str) -> None:
    decoded = decode_result(raw)

    assert (value, text, ValueState.PRESENT) == (decoded.value, decoded.text, decoded.state)


def test_a_result_that_was_cut_off_is_no_text() -> None:
    assert ValueState.TRUNCATED is decode_result('{"rows": [1, 2,').state


def test_bytes_and_numbers_that_json_lacks_become_text() -> None:
    value: AttributeValue = {"b": b"\x00\xff", "n": float("nan")}

    assert '{"b": "00ff", "n": "NaN"}' == json_text(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (
            "[1, 'a', \"b\", 'it\\'s', '''c'd''', r'\\n', '\\x41\\u00e9\\n']",
            [1, "a", "b", "it's", "c'd", "\\n", "Aé\n"],
        ),
        ("('a' 'b', (1), (1,), ())", ["ab", 1, [1], []]),
        ("{'a': {}, 'b': [], }", {"a": {}, "b": []}),
        ("[0x10, 1_000, 1e3, .5, - 3, 1+2j, b'x', ...]", [16, 1000, 1000.0, 0.5, -3, "1+2j", "b'x'", "..."]),
    ],
)
def test_python_literals_are_read_as_json(text: str, value: JsonValue) -> None:
    assert value == parse_python_literal(text)


@pytest.mark.parametrize(
    "text",
    [
        "", "[1", "[1 2]", "{'a' 1}", "{'a': }", "{1: 2}", "f('x')", "x", "'a", "[1] tail", "{[1], 2}",
        "--1", "1__0", "True1", "[" * 102 + "]" * 102, "'" + "x" * 70_000 + "'",
    ],
)  # fmt: skip
def test_what_is_no_plain_literal_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_python_literal(text)


@pytest.mark.parametrize(
    "piece", ["-", "1+", "{'a':", "[", "(", "'", "'''", "\\", "not ", "'a' ", "1_", "b'"]
)
def test_hostile_texts_cost_little(piece: str) -> None:
    hostile = "{'k': " + piece * (60_000 // len(piece))
    started = time.process_time()

    decode_arguments(hostile)
    decode_result(hostile)

    assert time.process_time() - started < 2.0


@pytest.mark.parametrize("raw", ["[Scrubbed due to 'session']", """{"token": "[Scrubbed due to 'auth']"}"""])
def test_a_result_of_which_a_scrubber_took_a_part_is_not_known(raw: str) -> None:
    assert (None, raw, ValueState.REDACTED) == decode_result(raw)


@pytest.mark.parametrize(
    "raw", ["<app.Report object at 0x7f09e02811d0>", "[<a.B object at 0x1>, <a.B object at 0x2>]"]
)
def test_printed_objects_that_tell_nothing_but_their_address_are_no_result(raw: str) -> None:
    assert ABSENT == decode_result(raw)


@pytest.mark.parametrize("raw", ["saw <a.B object at 0x1>", "<b>bold</b>", "[<a.B object at 0x1>] and more"])
def test_what_says_more_than_printed_objects_is_a_result(raw: str) -> None:
    assert (raw, raw, ValueState.PRESENT) == decode_result(raw)
