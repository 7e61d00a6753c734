import json
import re
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from processors.documents import InvalidInput, LocatedYaml, expand, read_yaml
from processors.model import JsonValue


def json_values(texts: st.SearchStrategy[str]) -> st.SearchStrategy[JsonValue]:
    numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    return st.recursive(
        st.none() | st.booleans() | numbers | texts,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
        max_leaves=20,
    )


ANY_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x7f"), max_size=20)
PRINTABLE_TEXT = st.text(st.characters(exclude_categories=["Cc", "Cs", "Cn", "Zl", "Zp"]), max_size=20)


def read(text: str, **environment: str) -> LocatedYaml:
    return read_yaml(text, "file.yaml", partial(expand, environment=environment, dollars="service"))


def problems(text: str, **environment: str) -> list[str]:
    try:
        found = read(text, **environment).all_problems([])
    except InvalidInput as error:
        found = list(error.problems)
    return [str(problem) for problem in found]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("# only a comment", None),
        ("a: [1, -2, 0x1F, 1_000]", {"a": [1, -2, 31, 1000]}),
        ("a: [1.5, 1., .5, 1e5, 1.0e-07, -2.5E+3]", {"a": [1.5, 1.0, 0.5, 100000.0, 1e-07, -2500.0]}),
        ("a: [yes, No, TRUE, off]", {"a": [True, False, True, False]}),
        ("a: [~, null, NULL]\nb:", {"a": [None, None, None], "b": None}),
        ("a: ['1', \"yes\", '~']", {"a": ["1", "yes", "~"]}),
        ("a: [y, n, 12:30, 2024-01-01, 1.2.3, =, -, nope]".replace("-, ", ""), {
            "a": ["y", "n", "12:30", "2024-01-01", "1.2.3", "=", "nope"]
        }),
        ("a: |\n  two\n  lines\n", {"a": "two\nlines\n"}),
        ("a: &x {q: 1, r: 2}\nb: {<<: *x, q: 3}", {"a": {"q": 1, "r": 2}, "b": {"q": 3, "r": 2}}),
        ("a: &x {q: 1}\nb: &y {q: 2, s: 4}\nc: {<<: [*x, *y]}", {
            "a": {"q": 1}, "b": {"q": 2, "s": 4}, "c": {"q": 1, "s": 4}
        }),
        (r'{"a": "\ud83d\ude00 \\ud83d\\ude00 \/"}', {"a": r"😀 \ud83d\ude00 /"}),
        ("\ufeff{}", {}),
    ],
)  # fmt: skip
def test_a_document_is_read_as_plain_values(text: str, value: JsonValue) -> None:
    assert value == read(text).value
    assert problems(text) == []


@pytest.mark.parametrize(
    "content",
    [
        '{"a": 1, "b": [{"a": 2, "a": 3}]}',
        '{"a": [1e999, 1e5, -0, 0.50]}',
        '{"a": NaN}',
        '{"a": -Infinity}',
        '{"a": %s}' % ("7" * 5000),
        r'{"a": "\ud800"}',
        r'{"a": "\ud83d\ude00 \u00e9 \/"}',
        '{"a": "$${x} $$ ${env:A}", "$regex": "b$"}',
        '{"a": "${x}"}',
        '{"a": yes}',
        "[1] [2]",
        "[" * 99 + '{"a": []}' + "]" * 99,
        "[" * 100 + '{"a": []}' + "]" * 100,
        "[" * 100_000,
    ],
)
def test_json_is_read_alike_on_one_line_and_on_two(content: str) -> None:
    def shown(text: str) -> object:
        return problems(text, A="x") or read(text, A="x").value

    def without_lines(found: object) -> object:
        return re.sub(r"yaml:\d+|line \d+", "", repr(found))

    assert without_lines(shown(content)) == without_lines(shown(f"{content[:1]}\n{content[1:]}"))


@settings(deadline=None)
@given(json_values(ANY_TEXT), st.sampled_from([None, 2]))
def test_json_in_ascii_is_read_as_json(value: JsonValue, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)

    assert value == read_yaml(text, "file.json").value


@settings(deadline=None)
@given(json_values(PRINTABLE_TEXT), st.sampled_from([None, 2]))
def test_json_with_other_letters_is_read_as_json(value: JsonValue, indent: int | None) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=False)

    assert value == read_yaml(text, "file.json").value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\nb:\n  c: 2\n  c: 3\n", ["file.yaml:4: b.c: duplicate key, first on line 3"]),
        ("a: 1\na: 2\nb: 1\nb: 2", [
            "file.yaml:2: a: duplicate key, first on line 1",
            "file.yaml:4: b: duplicate key, first on line 3",
        ]),
        ("a: !!str 1", ["file.yaml:1: a: YAML tags are not supported; put a text in quotes"]),
        ("a:\n- !include x", ["file.yaml:2: a[0]: YAML tags are not supported; put a text in quotes"]),
        ("1: x\nno: y", [
            'file.yaml:1: a key must be a text: put "1" in quotes',
            'file.yaml:2: a key must be a text: put "no" in quotes',
        ]),
        ("{[a]: b}", ["file.yaml:1: a key must be a text"]),
        ("a: 007", [
            "file.yaml:1: a: a number with a leading zero could be octal: write it without, "
            "or put it in quotes"
        ]),
        ("a: .nan", [
            "file.yaml:1: a: infinity and not-a-number are not allowed; put a text in quotes"
        ]),
        ("a: 1.0e999", ["file.yaml:1: a: the number is too large"]),
        ("a: " + "9" * 5000, ["file.yaml:1: a: the number cannot be read; put a text in quotes"]),
        ("a: *x", ['file.yaml:1: a: alias "*x" has no anchor "&x" before it']),
        ("a: &x\n  b: *x", ['file.yaml:2: a.b: alias "*x" stands inside its own anchor']),
        ("a: 1\n---\nb: 1", ["file.yaml:2: expected one YAML document, found another"]),
        ("a: {b", [
            "file.yaml:2: not valid YAML: did not find expected ',' or '}' while parsing a flow mapping"
        ]),
        ("a: \x07", [r"file.yaml:1: character '\x07' is not allowed in YAML"]),
        ("a: 1\nb: \ud800", ["file.yaml: not valid UTF-8"]),
        ("<<: 1", ["file.yaml:1: <<: expected a mapping, or a list of mappings, to merge"]),
        ("a: ${env:NO}\nb: ${env:NEITHER}", [
            'file.yaml:1: a: environment variable "NO" is not set; set it, or write "${env:NO:-default}"',
            'file.yaml:2: b: environment variable "NEITHER" is not set; '
            'set it, or write "${env:NEITHER:-default}"',
        ]),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_with_its_place(text: str, expected: list[str]) -> None:
    assert expected == problems(text)


def test_nesting_is_bounded() -> None:
    assert read("[" * 100 + "]" * 100).value is not None
    assert problems("[" * 101 + "]" * 101)[0].endswith("nested more than 100 deep")
    assert problems("{a: " * 50_000)[0].endswith("nested more than 100 deep")


def test_nesting_through_aliases_is_bounded() -> None:
    lines = ["a0: &a0 [x]", *(f"a{index}: &a{index} [*a{index - 1}]" for index in range(1, 200))]

    assert problems("\n".join(lines))[0].endswith("nested more than 100 deep")


def test_aliases_cannot_blow_a_document_up() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{index}: &a{index} [{', '.join([f'*a{index - 1}'] * 10)}]" for index in range(1, 10)]

    assert problems("\n".join(lines)) == ["file.yaml:5: a4[7]: aliases repeat more than 100000 values"]


def test_every_node_knows_its_line() -> None:
    document = read("agents:\n  a:\n    evaluations:\n      - name: x\n      - name: y\n")

    assert document.problem(("agents", "a"), "").line == 2
    assert document.problem(("agents", "a", "evaluations", 1, "name"), "").line == 5
    assert document.problem(("agents", "a", "evaluations", 1, "config", "x"), "").line == 5


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${env:N}", 4317),
        ("'${env:N}'", "4317"),
        ("x${env:N}", "x4317"),
        ("${env:ZERO}", None),
        ("${env:B:-yes}", True),
        ("a: b$$c", {"a": "b$c"}),
        ("${env:WORD}: 1", {"w": 1}),
    ],
)
def test_an_unquoted_reference_has_the_type_of_its_value(text: str, value: JsonValue) -> None:
    assert value == read(text, N="4317", ZERO="", WORD="w").value


@settings(deadline=None)
@given(st.text(st.sampled_from("ab1: -[]{},&*!|>'\"#%@`\n\t<~?.$0e+\\ud8")))
def test_any_text_is_either_read_or_refused(text: str) -> None:
    try:
        document = read_yaml(text, "file.yaml")
    except InvalidInput:
        return

    json.dumps(document.value, allow_nan=False)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("a:\n\tb: 1\n", "indent with spaces, not with tabs"),
        ("a: {b: ${env:B}}\n", "inside { } and [ ] put a reference such as ${env:NAME} in quotes"),
        ("a: [${env:B}]\n", "inside { } and [ ] put a reference such as ${env:NAME} in quotes"),
    ],
)
def test_a_usual_mistake_in_the_syntax_comes_with_what_mends_it(text: str, hint: str) -> None:
    (problem,) = problems(text, B="5")

    assert problem.endswith(f"; {hint}")
