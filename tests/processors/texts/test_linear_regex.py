"""Regular expressions on the linear engine mean what they mean to Python's `re`."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.model import MAX_SEARCH_STEPS
from processors.texts.linear_regex import compile_linear

_PATTERNS = (
    r"\d+", r"\D", r"\s", r"\S+", r"\w+", r"\W", r"[\w.-]+@[^\W_]+", r"[\s\S]", r"[\W\d]", r"[^\d\s]",
    r"(?a)\w+|\s", r"(?a:\w)\w", r"(?i)é|x", r"(?i:X)x", r"(?s)a.b", r"a.b", r"(?m)^\w*$", r"^\w*$",
    r"\Aa|b\Z", r"done$", r"(a$)$", r"\s*$", r"(?:done)?$", r"(?P<word>\w+)@(x)?", r"a{,2}b", r"a{2}|b{1,}",
    r"a*?b|q*", r"(?x) a \s b # comment", r"\u00e9|\x41|\012|\t", r"[a\-z\]^]", r"[^a]", r"[é-ü]", "|é",
    r"\$[\d,]+\.\d\d",
)  # fmt: skip
_texts = st.text(alphabet="aAbBxX1 ٣²éÉü@_.-$,]^\\\n\r\t\x1c\u3000\U0001f600z", max_size=12)


@given(pattern=st.sampled_from(_PATTERNS), text=_texts | st.sampled_from(("done", "done\n", "ann@x.org b")))
def test_matches_and_groups_are_those_of_python(pattern: str, text: str) -> None:
    expected = [(found.group(), *found.groups()) for found in re.finditer(pattern, text)]

    found = list(compile_linear(pattern).matches(text))

    if pattern == "|é":  # goes on behind an empty match
        expected = [texts for texts in expected if texts != ("é",)]
    assert expected == found


@given(text=st.text(st.characters(exclude_categories=("Cn", "Cs")), max_size=30))
def test_any_text_can_be_searched(text: str) -> None:
    assert (re.search(r"[^\W\d]\S", text) is not None) == (
        compile_linear(r"[^\W\d]\S").search(text) is not None
    )


def test_text_that_cannot_be_encoded_is_searched_with_marks_in_place_of_what_is_not_text() -> None:
    assert compile_linear("a.b").search("a\udc00b") is not None


def test_groups_are_known_by_number_and_name() -> None:
    pattern = compile_linear(r"(a$)|(?P<rest>b(c))")

    assert 3 == pattern.groups
    assert {"rest": 2} == pattern.group_names
    assert [("bc", None, "bc", "c"), ("a", "a", None, None)] == list(pattern.matches("bca\n"))


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(", "missing ), unterminated subpattern"),
        ("a{2,1}", "min repeat greater than max repeat"),
        ("\\", "bad escape"),
        ("(?=a)", "look-around"),
        ("(?<!a)b", "look-around"),
        (r"(a)\1", "reference back"),
        ("(a)?(?(1)b|c)", "condition on a group"),
        ("(?>a)", "atomic group"),
        ("a++", "possessive repetition"),
        ("a{1001}", "more than 1000 times"),
        ("(a{500}){500}", "invalid repetition size"),
        (r"\w{900}", "too large"),
        ("[[:alpha:]]", "can be misread"),
        ("(" * 5000 + ")" * 5000, "too deep"),
        ("a" * 10_001, "too long"),
    ],
)
def test_what_cannot_run_in_linear_time_or_does_not_compile_is_refused(pattern: str, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)) as refusal:
        compile_linear(pattern)

    assert str(refusal.value).startswith('pattern "')
    assert 1 == len(str(refusal.value).splitlines())
    assert 200 > len(str(refusal.value))


def test_patterns_that_take_exponential_time_elsewhere_are_answered() -> None:
    assert compile_linear(r"(x+x+)+y").search("x" * 100_000) is None
    assert compile_linear(r"(a|aa)*$").search("a" * 100_000 + "b") is not None


def test_finding_all_matches_is_given_up_where_each_could_read_the_whole_text() -> None:
    pattern = compile_linear("a")
    length = 10_000

    assert pattern.all_matches("a" * length) is None
    assert pattern.all_matches("ab" * 10 + "b" * length) is not None
    assert length < MAX_SEARCH_STEPS < length * length
