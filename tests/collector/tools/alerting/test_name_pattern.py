import re

import pytest
import re2
from hypothesis import example, given
from hypothesis import strategies as st

from collector.tools.alerting.selectors import NamePattern, pair_matchers, pattern_matchers, quoted

CHARACTERS = "ab*?[]!-^\\. \n"


@given(st.text(CHARACTERS, max_size=8), st.text(CHARACTERS, max_size=6))
@example("weather_*", "weather_agent")
@example("[!a]b", "cb")
@example("[z-a]", "z")
@example("[]", "[]")
@example("[]a]", "]")
@example("[!]", "[!]")
@example("[^a]", "^")
def test_the_regular_expression_of_a_pattern_matches_the_same_names(pattern: str, name: str) -> None:
    named = NamePattern(pattern)

    as_prometheus = re2.compile(f"^(?:{named.regex()})$").search(name) is not None

    # a name that is written just like its pattern always matches in criteria; Prometheus knows the glob alone
    assert as_prometheus == named.matches(name) or name == pattern


@pytest.mark.parametrize(
    ("pattern", "count"), [("weather_*", 8), ("*", 0), ("a?c", 2), ("[abc]x", 1), ("plain", 5)]
)
def test_more_literal_characters_are_more_specific(pattern: str, count: int) -> None:
    assert count == NamePattern(pattern).literal_characters


def test_matchers_of_patterns() -> None:
    everything, exact, glob = NamePattern("*"), NamePattern("a.b"), NamePattern("a.*")

    assert "" == pattern_matchers(everything, everything)
    assert 'gen_ai_agent_name="a.b"' == pattern_matchers(exact, everything)
    assert 'gen_ai_evaluation_name=~"(?s:a\\\\..*)"' == pattern_matchers(everything, glob)


def test_pairs_are_grouped_without_adding_any() -> None:
    pairs = [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y"), ("c", "x")]

    found = pair_matchers(pairs)

    selected = set()
    for matchers in found:
        agents, evaluations = re.findall(r'=~?"([^"]*)"', matchers)
        selected |= {(one, other) for one in agents.split("|") for other in evaluations.split("|")}
    assert 2 == len(found)
    assert set(pairs) == selected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", '"plain"'),
        ('say "a\\b"', '"say \\"a\\\\b\\""'),
        ("line\nfeed", '"line\\u000afeed"'),
        ("z\u2028", '"z\\u2028"'),
        ("größe", '"größe"'),
        ("\U000e0001", '"\\U000e0001"'),
    ],
)
def test_any_text_can_be_quoted(text: str, expected: str) -> None:
    assert expected == quoted(text)
