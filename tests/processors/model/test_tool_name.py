import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.model import EVALUATED_CATEGORIES, CallCategory, ToolCall, ToolKeys, canonical_tool_name
from tests.strategies import run_with


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("get weather", "get_weather"),
        ("get  weather", "get_weather"),
        ("get\u00a0weather", "get_weather"),
        (" get_weather\n", "get_weather"),
        ("get.weather", "getweather"),
        ("a" * 64 + "x", "a" * 64 + "y"),
        ("天 気", "天_気"),
        ("é" * 300, "é" * 64),
    ],
)
def test_two_spellings_of_one_tool_are_equal(left: str, right: str) -> None:
    assert canonical_tool_name(left) == canonical_tool_name(right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("Get_Weather", "get_weather"),
        ("get-weather", "get_weather"),
        ("météo", "mto"),
        ("天気", "予報"),
        ("!!!", ""),
        ("!!!", "???"),
    ],
)
def test_different_tools_are_not_equal(left: str, right: str) -> None:
    assert canonical_tool_name(left) != canonical_tool_name(right)


@given(st.text())
def test_a_canonical_name_is_its_own_canonical_name(name: str) -> None:
    once = canonical_tool_name(name)

    assert once == canonical_tool_name(once)


def test_keys_select_ordinary_calls_and_those_they_mean_by_name_or_id() -> None:
    plain = ToolCall(name="search")
    handoff = ToolCall(name="transfer to b", category=CallCategory.HANDOFF)
    answer = ToolCall(name="final_answer", call_id="c-1", category=CallCategory.FINAL_ANSWER)
    unnamed = ToolCall(name="final_answer", category=CallCategory.FINAL_ANSWER)
    run = run_with([plain, handoff, answer, unnamed])

    selected = ToolKeys(["transfer_to_b", "c-1"]).select(run, EVALUATED_CATEGORIES)

    assert [plain, handoff, answer] == selected
