"""The console: what is shown, how it fits, and that nobody has to wait for it."""

import io
import os
import threading
from dataclasses import replace

import pytest

from collector.clock import ManualClock, SystemClock
from collector.commands.output import OutputConsole
from collector.exporters.debug import DebugConfig, DebugExporter
from collector.printing import RunPrintout, count_outcomes, counts_text
from processors.model import (
    AgentIdentity,
    AgentRun,
    CallCategory,
    EvaluationResult,
    GradedRun,
    NotEvaluatedReason,
    Outcome,
    Severity,
    Stage,
    ToolCall,
    ToolError,
    ValueState,
)
from tests.support.graded_runs import TRACE_ID, result, trace_of, weather_run

_PRINTOUT = RunPrintout(width=None, show_content=True, unicode=True)


def _lines(width: int | None = None, *, show_content: bool = True, unicode: bool = True) -> list[str]:
    printout = RunPrintout(width=width, show_content=show_content, unicode=unicode)
    return [line.plain for line in printout.lines(weather_run())]


def test_a_call_without_a_span_is_shown_as_missing_where_spans_are_missing() -> None:
    graded = weather_run()
    fragment = replace(graded, run=replace(graded.run, complete=False))

    lines = [line.plain.rstrip() for line in _PRINTOUT.lines(fragment)]

    assert "   3. send_mail <absent> ✗ no span of it arrived" in lines


async def _printed(config: DebugConfig, stream: io.TextIOBase, *runs: GradedRun) -> str:
    exporter = DebugExporter("debug", config, stream, ManualClock())  # type: ignore[arg-type]  # a text stream
    await exporter.start()
    exporter.export_results(trace_of(*runs))
    await exporter.shutdown(SystemClock().monotonic() + 3600)
    return stream.getvalue() if isinstance(stream, io.StringIO) else ""


def test_without_a_terminal_every_verdict_is_one_line_that_grep_finds() -> None:
    assert [
        f"FAIL, 1 of 4 not evaluated  weather_agent 1.2  trace_id={TRACE_ID.hex()}  3 calls, root",
        "  ended=2026-01-31T08:00:02.500Z  took=2.5s",
        '   1. get_temperature {"city": "Oslo"} → {"temperature": 21.5}',
        '   2. get_forecast {"days": 7} ✗ TimeoutError: took  [31mtoo long',
        "   3. send_mail <absent> ✗ not executed",
        "  pass          order        1.00  expected: [a]; actual: [a]",
        "  fail          args         0.50  needs 1; days: expected 5",
        "  not_evaluated output             content_not_captured",
        "  error         third-party        KeyError",
    ] == [line.rstrip() for line in _lines()]


def test_a_call_that_was_only_asked_for_is_printed_where_it_was_asked_for_with_what_was_told() -> None:
    refused = ToolCall(
        name="refund",
        result="Denied.",
        result_text="Denied.",
        result_state=ValueState.PRESENT,
        executed=False,
    )
    run = replace(weather_run().run, requested_calls=[(1, refused)])
    lines = RunPrintout(width=None, show_content=True, unicode=True).lines(GradedRun(run=run, results=()))
    hidden = RunPrintout(width=None, show_content=False, unicode=True).lines(GradedRun(run=run, results=()))

    shown = [line.plain for line in lines]
    assert "4 calls" in shown[0]
    assert "   2. refund <absent> ✗ not executed: Denied." == shown[3]
    assert "   2. refund ✗ not executed" in [line.plain for line in hidden]


def test_no_control_character_reaches_the_console() -> None:
    assert all(line.isprintable() for line in _lines())


def test_content_can_be_turned_off() -> None:
    shown = "\n".join(_lines(show_content=False))

    for content in ("Oslo", "21.5", "too long", "expected"):
        assert content not in shown
    assert "TimeoutError" in shown
    assert "needs 1" in shown


def test_without_content_an_explanation_stays_if_it_quotes_nothing() -> None:
    results = [
        result("kept", explanation="a: 2 calls", quotes_content=False),
        result("hidden", explanation="city: Oslo"),
        result("broken", Outcome.ERROR, error_type="KeyError", explanation="it broke", quotes_content=False),
    ]
    run = GradedRun(run=weather_run().run, results=results)
    lines = RunPrintout(width=None, show_content=False, unicode=True).lines(run)

    assert [
        "  pass  kept    1.00  a: 2 calls",
        "  pass  hidden  1.00",
        "  error broken        KeyError: it broke",
    ] == [line.plain.rstrip() for line in lines][-3:]


@pytest.mark.parametrize("width", [20, 40, 60, 80, 200])
def test_on_a_terminal_no_line_is_wider_than_it(width: int) -> None:
    assert max(len(line) for line in _lines(width)) <= width


def test_on_a_terminal_an_explanation_is_wrapped_not_cut() -> None:
    words = " ".join(f"word{number}" for number in range(60))
    run = GradedRun(run=weather_run().run, results=[result(explanation=words)])
    lines = [line.plain for line in RunPrintout(width=60, show_content=True, unicode=True).lines(run)]

    assert words.split() == [word for line in lines for word in line.split() if word.startswith("word")]


def test_a_console_of_ascii_gets_ascii() -> None:
    assert all(line.isascii() for line in _lines(unicode=False))


def test_a_handoff_is_a_name_where_nothing_else_is_told() -> None:
    calls = [
        ToolCall(name=name, category=category, arguments_state=state, result_state=state)
        for name, category, state in (
            ("handoff to billing", CallCategory.HANDOFF, ValueState.UNPARSED),
            ("refund", CallCategory.FUNCTION, ValueState.UNPARSED),
        )
    ]
    run = AgentRun(trace_id=TRACE_ID, span_id=None, agent=AgentIdentity(name="helper"), tool_calls=calls)
    printout = RunPrintout(width=None, show_content=True, unicode=True)

    assert ["   1. handoff to billing", "   2. refund <unparsed> → <unparsed>"] == [
        line.plain for line in printout.lines(GradedRun(run=run, results=()))
    ][1:]


def test_a_run_without_criteria_says_so() -> None:
    run = AgentRun(trace_id=TRACE_ID, span_id=None, agent=AgentIdentity(name="helper"))
    lines = RunPrintout(width=None, show_content=True, unicode=True).lines(GradedRun(run=run, results=()))

    assert [f"NOT_EVALUATED  helper  trace_id={TRACE_ID.hex()}  0 calls, root, no criteria"] == [
        line.plain for line in lines
    ]


ADVISORY_FAIL = result("a", Outcome.FAIL, severity=Severity.ADVISORY)
MUTED_FAIL = result("m", Outcome.FAIL, muted_until_unix_nano=1)
SHADOW_FAIL = result("s", Outcome.FAIL, stage=Stage.SHADOW)
PASS, FAIL, ERROR = result("p"), result("f", Outcome.FAIL), result("e", Outcome.ERROR, error_type="KeyError")
UNKNOWN = result("u", Outcome.NOT_EVALUATED, reason=NotEvaluatedReason.NOT_APPLICABLE)


@pytest.mark.parametrize(
    ("results", "headline", "notes", "counts"),
    [
        ([PASS, ADVISORY_FAIL], "PASS", ", 1 advisory failure", "1 pass, 1 advisory"),
        ([ADVISORY_FAIL, ADVISORY_FAIL], "PASS", ", 2 advisory failures", "2 advisory"),
        (
            [MUTED_FAIL, UNKNOWN],
            "PASS, 1 of 2 not evaluated",
            ", 1 muted failure",
            "1 not_evaluated, 1 muted",
        ),
        ([SHADOW_FAIL, UNKNOWN], "NOT_EVALUATED", ", 1 shadow failure", "1 not_evaluated, 1 shadow"),
        ([FAIL, ERROR, PASS], "FAIL", "", "1 pass, 1 fail, 1 error"),
        ([ERROR, ADVISORY_FAIL], "ERROR", ", 1 advisory failure", "1 error, 1 advisory"),
        ([PASS, UNKNOWN], "PASS, 1 of 2 not evaluated", "", "1 pass, 1 not_evaluated"),
    ],
)
def test_the_headline_of_a_run_is_what_the_exit_code_says(
    results: list[EvaluationResult], headline: str, notes: str, counts: str
) -> None:
    run = GradedRun(run=weather_run().run, results=results)
    head = next(RunPrintout(width=None, show_content=True, unicode=True).lines(run)).plain

    assert f"{headline}  weather_agent 1.2  trace_id={TRACE_ID.hex()}  3 calls, root{notes}" == head
    assert counts == counts_text(count_outcomes(run))


def test_what_a_failure_asks_of_people_is_told_where_it_is_no_ticket() -> None:
    results = [ADVISORY_FAIL, result("b", Outcome.FAIL, severity=Severity.PAGE), PASS]
    lines = RunPrintout(width=None, show_content=True, unicode=True).lines(
        GradedRun(
            run=AgentRun(trace_id=TRACE_ID, span_id=None, agent=AgentIdentity(name="a")), results=results
        )
    )

    assert ["  fail a (advisory)  0.50  needs 1", "  fail b (page)      0.50  needs 1", "  pass p"] == [
        line.plain.partition("  1.00")[0].rstrip() for line in list(lines)[1:]
    ]


async def test_runs_beyond_the_rate_are_counted_in_a_line() -> None:
    printed = await _printed(DebugConfig(max_runs_per_second=2), io.StringIO(), *[weather_run()] * 5)

    assert 2 == printed.count("FAIL, 1 of 4 not evaluated  weather_agent")
    assert "… 3 more runs\n" == printed[-len("… 3 more runs\n") :]


async def test_the_rate_starts_anew_each_second() -> None:
    stream, clock = io.StringIO(), ManualClock()
    exporter = DebugExporter("debug", DebugConfig(max_runs_per_second=1), stream, clock)
    await exporter.start()

    exporter.export_results(trace_of(weather_run(), weather_run()))
    clock.advance(1)
    exporter.export_results(trace_of(weather_run()))
    await exporter.shutdown(SystemClock().monotonic() + 3600)

    assert 2 == stream.getvalue().count("FAIL, 1 of 4 not evaluated  weather_agent")
    assert 1 == stream.getvalue().count("… 1 more run\n")


@pytest.mark.parametrize(("color", "has_escapes"), [("auto", False), ("never", False), ("always", True)])
async def test_colours_go_where_they_are_wanted(color: str, has_escapes: bool) -> None:
    printed = await _printed(DebugConfig.model_validate({"color": color}), io.StringIO(), weather_run())

    assert has_escapes == ("\x1b[" in printed)


async def test_a_console_nobody_reads_holds_up_neither_traces_nor_the_shutdown() -> None:
    reader, writer = os.pipe()
    with open(writer, "w", encoding="utf-8") as stream:
        exporter = DebugExporter("debug", DebugConfig(max_runs_per_second=100_000), stream, SystemClock())
        await exporter.start()

        for _ in range(2000):
            exporter.export_results(trace_of(weather_run()))
        await exporter.shutdown(SystemClock().monotonic() + 0.2)

        assert any(thread.name == "export-debug" for thread in threading.enumerate())
        drain = threading.Thread(target=lambda: _read_all(reader))
        drain.start()
        for thread in threading.enumerate():
            if thread.name == "export-debug":
                thread.join(0.5)
    drain.join(10)


async def test_a_closed_console_is_not_an_error() -> None:
    stream = io.StringIO()
    exporter = DebugExporter("debug", DebugConfig(), stream, ManualClock())
    await exporter.start()
    stream.close()

    exporter.export_results(trace_of(weather_run()))
    await exporter.shutdown(SystemClock().monotonic() + 3600)
    exporter.export_results(trace_of(weather_run()))


async def test_shutdown_is_safe_before_start_and_twice() -> None:
    exporter = DebugExporter("debug", DebugConfig(), io.StringIO(), ManualClock())

    await exporter.shutdown(0)
    await exporter.start()
    await exporter.shutdown(1)
    await exporter.shutdown(1)


def _read_all(descriptor: int) -> None:
    with open(descriptor, "rb") as stream:
        stream.read()


def test_a_call_that_was_refused_with_an_error_is_still_one_that_was_not_executed() -> None:
    refused = ToolCall(name="pay", executed=False, error=ToolError(type="", message="No such tool."))
    run = replace(weather_run().run, tool_calls=[refused])
    lines = RunPrintout(width=None, show_content=True, unicode=True).lines(GradedRun(run=run, results=()))

    assert "   1. pay <absent> ✗ not executed: No such tool." in [line.plain for line in lines]


def test_a_run_that_failed_says_with_what_and_whose_part_it_was() -> None:
    run = replace(
        weather_run().run, parent_agent="planner", error=ToolError(type="RuntimeError", message="no station")
    )
    graded = GradedRun(run=run, results=())
    shown = [line.plain for line in RunPrintout(width=None, show_content=True, unicode=True).lines(graded)]
    hidden = [line.plain for line in RunPrintout(width=None, show_content=False, unicode=True).lines(graded)]

    assert "parent=planner" in shown[1]
    assert "  ✗ the run ended with RuntimeError: no station" == shown[-1]
    assert "  ✗ the run ended with RuntimeError" == hidden[-1]


def test_what_is_printed_without_a_console_is_what_a_console_writes_to_a_file() -> None:
    written = '{"a": "b\nc"}'
    call = ToolCall(name="look\x1b[31m", arguments={"a": "b\nc"}, arguments_text=written, result="x" * 3000)
    verdict = result(explanation="ä\tb \x07 [bold]c[/bold]")
    run = replace(weather_run().run, content=None, tool_calls=(call,))
    graded = GradedRun(run=run, results=(verdict,))
    printout, file = RunPrintout(width=None, show_content=True, unicode=True), io.StringIO()

    OutputConsole(file=file).print(printout.block(graded))

    assert printout.plain_block(graded) == file.getvalue()
