"""What is written reads back as what it was."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.criteria import write_criteria
from processors.documents import expand, read_yaml
from processors.model import JsonObject, JsonValue

ENTRY: JsonObject = {
    "evaluator": "tool-call-args",
    "criteria": {"tool_calls": [{"name": "book", "args": {"seat": "4A"}}]},
}
# Lone surrogates are in no JSON file that can be read, and an even number of dollar signs before a brace is
# what no criteria file can say.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("${}:#-'\"\\ ")).filter(
    lambda text: "${" not in text
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def read_back(text: str, agent: str) -> JsonValue:
    document = read_yaml(text, "", partial(expand, environment={"HOME": "/root"}, dollars="criteria"))
    assert document.problems == []
    value = document.value
    return value["agents"][agent]["evaluations"]  # type: ignore[index,call-overload]  # the shape that is written


@given(VALUES)
def test_every_value_reads_back_as_it_was(value: JsonValue) -> None:
    entry: JsonObject = {"evaluator": "contains", "criteria": {"value": value}}

    assert [entry] == read_back(write_criteria("a", [entry]), "a")


@pytest.mark.parametrize(
    "text",
    [
        "${env:HOME}",
        "$$${env:HOME}",
        "${HOME}",
        "$$${x}",
        "$$",
        "${env:",
        "yes",
        "1.0",
        "2026-01-31",
        "~",
        "- a",
        "a: b",
    ],
)
def test_a_text_that_could_mean_something_else_stays_a_text(text: str) -> None:
    entry: JsonObject = {"evaluator": "contains", "criteria": {"search_text": text, text: 1}}

    assert [entry] == read_back(write_criteria(text, [entry]), text)


def test_what_no_criteria_file_can_say_is_refused() -> None:
    with pytest.raises(ValueError, match=r'cannot express the text "\$\$\{"'):
        write_criteria("a", [{"evaluator": "contains", "criteria": {"search_text": "costs $${x}"}}])


def test_a_file_without_evaluations_reads_back() -> None:
    assert [] == read_back(write_criteria("*", []), "*")


def test_people_can_read_what_is_written() -> None:
    text = write_criteria("weather*", ["Why it is so.", ENTRY], ["Heading."])

    assert text == (
        "# Heading.\n"
        "agents:\n"
        '  "weather*":\n'
        "    evaluations:\n"
        "      # Why it is so.\n"
        "      - evaluator: tool-call-args\n"
        '        criteria: {tool_calls: [{name: book, args: {seat: "4A"}}]}\n'
    )


def test_a_comment_cannot_break_out_of_its_line() -> None:
    text = write_criteria("a", ["one\nagents: {}\x85two", ENTRY])

    assert [ENTRY] == read_back(text, "a")
    assert "      # one agents: {} two\n" in text
