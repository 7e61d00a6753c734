import pytest

from processors.documents.yaml import Dollars, Expansion, expand

VARIABLES = {"HOST": "tempo", "PORT": "4317", "EMPTY": "", "DOLLAR": "${env:HOST}"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", Expansion("plain")),
        ("${env:HOST}", Expansion("tempo", is_reference=True, shown="${env:HOST}")),
        ("${env:HOST}:${env:PORT}", Expansion("tempo:4317", shown="${env:HOST}:${env:PORT}")),
        ("${env:NONE:-x:y}", Expansion("x:y", is_reference=True, shown="${env:NONE}")),
        ("${env:NONE:-}", Expansion("", is_reference=True, shown="${env:NONE}")),
        ("${env:EMPTY:-default}", Expansion("", is_reference=True, shown="${env:EMPTY}")),
        ("${env:DOLLAR}", Expansion("${env:HOST}", is_reference=True, shown="${env:DOLLAR}")),
    ],
)
@pytest.mark.parametrize("dollars", ["service", "criteria"])
def test_references_are_replaced_once(text: str, expected: Expansion, dollars: Dollars) -> None:
    assert expected == expand(text, VARIABLES, dollars)


@pytest.mark.parametrize(
    ("text", "service", "criteria"),
    [
        ("a$$b", "a$b", "a$$b"),
        ("$${env:HOST}", "${env:HOST}", "${env:HOST}"),
        ("costs $5", "costs $5", "costs $5"),
        ("$", "$", "$"),
    ],
)
def test_dollars_are_escaped_as_each_kind_of_file_needs(text: str, service: str, criteria: str) -> None:
    assert service == expand(text, VARIABLES, "service").text
    assert criteria == expand(text, VARIABLES, "criteria").text


def test_other_braces_are_plain_text_in_criteria_and_refused_in_a_service_file() -> None:
    assert expand("^${x}${", VARIABLES, "criteria").text == "^${x}${"
    with pytest.raises(ValueError, match="cannot read a reference"):
        expand("${HOST}", VARIABLES, "service")


@pytest.mark.parametrize("text", ["${env:}", "${env:A-B}", "${env:HOST", "${env:1X}"])
@pytest.mark.parametrize("dollars", ["service", "criteria"])
def test_a_broken_reference_is_refused(text: str, dollars: Dollars) -> None:
    with pytest.raises(ValueError, match="cannot read a reference"):
        expand(text, VARIABLES, dollars)


def test_a_variable_that_is_not_set_is_named() -> None:
    with pytest.raises(ValueError, match='environment variable "TOKEN" is not set'):
        expand("Bearer ${env:TOKEN}", VARIABLES, "service")


def test_a_variable_that_is_not_utf8_is_named_without_its_value() -> None:
    with pytest.raises(ValueError, match=r'^environment variable "RAW" holds bytes that are not UTF-8$'):
        expand("${env:RAW}", {"RAW": "secret\udcff"}, "service")
