"""Two runs side by side: every call appears once, what is equal is aligned, and what differs is named."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from collector.page.run_comparison import aligned_calls, compared_runs
from processors.annotation import run_to_json
from processors.model import GradedRun, JsonObject, Outcome, ToolCall, ToolError, ValueState
from tests.support.graded_runs import result, weather_run


def _calls(text: str) -> list[ToolCall]:
    """A call for each letter; one in upper case has other arguments; those after a dot are parallel."""
    calls: list[ToolCall] = []
    is_parallel = False
    for letter in text:
        if letter == ".":
            is_parallel = not is_parallel
            continue
        arguments: JsonObject = {"upper": letter.isupper()}
        group = 1 if is_parallel else None
        calls.append(ToolCall(name=letter.lower(), arguments=arguments, parallel_group=group))
    return calls


def _aligned(left: str, right: str) -> str:
    letters = [text.replace(".", "") for text in (left, right)]
    return " ".join(
        ("-" if before is None else letters[0][before]) + ("-" if after is None else letters[1][after])
        for before, after in aligned_calls(_calls(left), _calls(right))
    )


def test_calls_of_one_tool_are_aligned_those_with_equal_arguments_first() -> None:
    assert "aa bb cc" == _aligned("abc", "abc")
    assert "aa b- cc -d" == _aligned("abc", "acd")
    assert "aA bb" == _aligned("ab", "Ab")
    assert "-a AA bb" == _aligned("Ab", "aAb")
    assert "a- bb -c" == _aligned("ab", "bc")
    assert "aa bb cc" == _aligned(".ba.c", "abc")  # in parallel
    assert "-a -b" == _aligned("", "ab")
    assert "" == _aligned("", "")


@given(st.text("abAB.", max_size=12), st.text("abAB.", max_size=12))
def test_every_call_of_two_runs_appears_once(left: str, right: str) -> None:
    calls = _calls(left), _calls(right)
    pairs = list(aligned_calls(*calls))

    before, after = [[pair[side] for pair in pairs if pair[side] is not None] for side in (0, 1)]
    assert [*range(len(calls[0]))] == sorted(place for place in before if place is not None)
    assert [*range(len(calls[1]))] == after
    for first, second in pairs:
        if first is not None and second is not None:
            assert calls[0][first].name == calls[1][second].name


def _line(run: GradedRun, **fields: object) -> JsonObject:
    return run_to_json(replace(run, run=replace(run.run, **fields)))  # type: ignore[arg-type]


def test_what_differs_between_two_runs_is_named_with_its_place() -> None:
    run = weather_run()
    first, second, third = run.run.tool_calls
    warmer = structs.replace(first, result={"temperature": 25.0}, result_text='{"temperature": 25.0}')
    failed = structs.replace(
        second, error=ToolError(type="Timeout", message="after 30 s"), arguments={"days": 5}
    )
    other = replace(run, results=[result("order", Outcome.FAIL, explanation="b before a"), *run.results[1:]])

    of = compared_runs(_line(run), _line(other, tool_calls=(warmer, failed), output="It is hot."))

    by_name = {part.name: part for part in of.calls}
    assert ["get_temperature", "get_forecast", "send_mail"] == [part.name for part in of.calls]
    assert ["result"] == by_name["get_temperature"].differs
    assert [("result: temperature", "21.5", "25.0")] == [
        (one.place, one.left, one.right) for one in by_name["get_temperature"].differences
    ]
    assert {"arguments", "error"} <= set(by_name["get_forecast"].differs)
    assert (["call"], 3, None) == (
        by_name["send_mail"].differs,
        by_name["send_mail"].left_number,
        by_name["send_mail"].right_number,
    )
    assert ("order", "pass", "fail") == (of.verdicts[0].name, of.verdicts[0].left, of.verdicts[0].right)
    assert [["outcome"], [], [], []] == [part.differs for part in of.verdicts]
    assert [[], ["output"]] == [part.differs for part in of.texts]
    assert third.name == "send_mail"
    assert not any(part.differs for part in of.facts)


def test_what_was_not_captured_is_not_the_same() -> None:
    run = weather_run()
    hidden = [
        structs.replace(call, arguments=None, arguments_text=None, arguments_state=ValueState.REDACTED)
        for call in run.run.tool_calls
    ]
    line = _line(run, tool_calls=tuple(hidden))

    of = compared_runs(line, line)
    one_side = compared_runs(line, _line(run))

    assert all("unknown" in part.differs for part in of.calls)
    assert all("arguments" in part.differs for part in one_side.calls)
