"""Tests that criteria files carry: what they see, and what they say when they fail."""

from pathlib import Path

import pytest

from collector.cli import run_command
from collector.criteria import CriteriaStore, run_criteria_tests
from processors.documents import Problem
from tests.support.corpus import CORPUS

CRITERIA = """\
agents:
  weather:
    evaluations:
      - evaluator: tool-call-args
        name: right-city
        when: {input: {action: get_forecast}}
        criteria: {tool_calls: [{name: look, args: {city: {$input: city}}}]}
      - evaluator: tool-call-count
        name: looks-once
        sample: 0.000001
        criteria: {tool_calls_count: {look: ["=", 1], book: ["=", 0]}}
"""
RUN = (
    "{agent: {name: weather}, input: {action: get_forecast, city: Oslo}, "
    "tool_calls: [{name: look, arguments: {city: Oslo}}]}"
)


def failures(folder: Path, tests: str, criteria: str = CRITERIA) -> list[str]:
    file = folder / "criteria.yaml"
    file.write_text(criteria + tests)
    store = CriteriaStore([file], environment={})
    return [
        str(problem).removeprefix(f"{file}:") for problem in run_criteria_tests(store.cases, store.current)
    ]


def test_a_test_that_is_met_says_nothing_and_every_trace_is_drawn(tmp_path: Path) -> None:
    tests = f"""\
tests:
  - name: the city of the question
    run: {RUN}
    expect: {{right-city: {{outcome: pass, score: 1}}, looks-once: pass}}
  - name: half of the counts
    run:
      agent: {{name: weather}}
      input: hello
      tool_calls: [{{name: look}}, {{name: look}}]
    expect: {{right-city: skipped, looks-once: {{outcome: fail, score: 0.5}}}}
  - name: no input
    run: {{agent: {{name: weather}}}}
    expect: {{right-city: {{outcome: not_evaluated, reason: content_not_captured}}}}
"""

    assert [] == failures(tmp_path, tests)


def test_what_is_not_as_expected_is_told_with_its_place(tmp_path: Path) -> None:
    tests = f"""\
tests:
  - name: first
    run: {RUN}
    expect:
      right-city: fail
      looks-once: {{outcome: pass, score: 0.5}}
      look-once: pass
  - name: second
    run: {{agent: {{name: weather}}, input: hi}}
    expect:
      right-city: pass
      looks-once: {{outcome: not_evaluated, reason: over_limit}}
"""

    assert [
        '16: tests[0].expect.right-city: "first": expected fail, found pass with score 1: '
        "look_0: Actual: {'city': 'Oslo'}, Expected: {'city': 'Oslo'}, Score: 1.0",
        '17: tests[0].expect.looks-once: "first": expected pass with score 0.5, found pass with score 1: '
        "look: Actual: 1, Expected: 1, Score: 1.0; book: Actual: 0, Expected: 0, Score: 1.0",
        '18: tests[0].expect.look-once: "first": "weather" has no evaluation "look-once"; '
        'did you mean "looks-once"?',
        '22: tests[1].expect.right-city: "second": expected pass, '
        "found skipped: it does not apply to this run",
        '23: tests[1].expect.looks-once: "second": expected not_evaluated (over_limit), '
        "found fail with score 0.5: look: Actual: 0, Expected: 1, Score: 0.0; "
        "book: Actual: 0, Expected: 0, Score: 1.0",
    ] == failures(tmp_path, tests)


def test_a_run_with_mistakes_is_told_with_the_lines_of_the_criteria_file(tmp_path: Path) -> None:
    tests = """\
tests:
  - name: first
    run:
      agent: {id: 5}
      tool_calls:
        - name: look
          aruments: {}
    expect: {right-city: pass}
"""

    assert [
        "15: tests[0].run.agent.name: missing, expected the name that criteria are keyed by",
        "15: tests[0].run.agent.id: expected a text, found 5",
        '18: tests[0].run.tool_calls[0].aruments: unknown key; did you mean "arguments"?',
    ] == failures(tmp_path, tests)


def test_a_recorded_trace_is_found_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "traces").symlink_to(CORPUS / "agent-framework" / "s1")
    criteria = """\
agents:
  "*":
    evaluations: [{evaluator: tool-repetition}]
"""
    tests = """\
tests:
  - {name: all, trace: traces, expect: {tool-repetition: pass}}
  - {name: nobody, trace: traces/0001.binpb, agent: nobody, expect: {tool-repetition: pass}}
  - {name: gone, trace: no.binpb, expect: {tool-repetition: pass}}
"""

    assert [
        '6: tests[1].trace: "nobody": there is no agent run of "nobody" in this trace',
        f"7: tests[2].trace: {tmp_path}/no.binpb: no such file or folder",
    ] == failures(tmp_path, tests, criteria)


def test_validate_runs_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "criteria.yaml"
    tests = f"tests:\n  - name: a\n    run: {RUN}\n    expect: {{looks-once: OUTCOME}}\n"

    file.write_text(CRITERIA + tests.replace("OUTCOME", "pass"))
    assert 0 == run_command(["validate", str(file)])
    file.write_text(CRITERIA + tests.replace("OUTCOME", "fail"))
    assert 2 == run_command(["validate", str(file)])

    told = capsys.readouterr()
    assert f"{file}: valid, criteria for 1 agent, 2 evaluations, 1 of 1 tests pass\n" == told.out
    assert f'{file}:15: tests[0].expect.looks-once: "a": expected fail, found pass' in told.err


def test_validate_warns_of_what_has_no_effect(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "criteria.yaml"
    file.write_text("agents: {a: {evaluations: [{evaluator: tool-repetition, enabled: false}]}}")

    assert 0 == run_command(["validate", str(file)])
    assert f"warning: {file}:1: " in capsys.readouterr().err


def test_validate_tells_all_problems_of_all_files_together_and_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, first, second = (tmp_path / name for name in ("tracegrade.yaml", "a.yaml", "b.yaml"))
    config.write_text("processors: {evaluation: {criteria: [a.yaml, b.yaml]}}")
    first.write_text(
        "agents: {a: {evaluations: [{evaluator: tool-repetition}, {evaluator: tool-call-ars}]}}\n"
        "tests:\n"
        "  - {name: t, run: {agent: {name: a}}, expect: {tool-repetition: fail, tool-call-args: pass}}\n"
        "  - {name: u, run: {agent: {nam: a}}, expect: {tool-repetition: fail}}\n"
    )
    second.write_text(
        "agents: {b: {evaluations: [{evaluator: tool-repetition, enabled: false}]}}\n"
        "tests:\n"
        "  - {name: t, run: {agent: {name: b}}, expect: {tool-repetition: skipped}}\n"
        "  - {name: u, run: {agent: {name: b}, calls: []}, expect: {tool-repetition: skipped}}\n"
    )

    assert 2 == run_command(["validate", "--config", str(config), str(first), str(second)])

    lines = capsys.readouterr().err.replace(f"{tmp_path}/", "").splitlines()
    assert len(set(lines)) == len(lines)
    assert [line.split(": ")[0:2] for line in lines if not line.startswith("warning")] == [
        ["a.yaml:1", "agents.a.evaluations[1].evaluator"],
        ["a.yaml:3", "tests[0].expect.tool-repetition"],
        ["a.yaml:4", "tests[1].run.agent.nam"],
        ["a.yaml:4", "tests[1].run.agent.name"],
        ["b.yaml:3", "tests[0].expect.tool-repetition"],
        ["b.yaml:4", "tests[1].run.calls"],
    ]


def test_of_evaluations_with_mistakes_a_test_says_nothing(tmp_path: Path) -> None:
    criteria = """\
agents:
  a:
    evaluations:
      - {evaluator: tool-repetition, name: broken, sample: 0}
      - {evaluator: tool-repetition, name: sound}
"""
    tests = """\
tests:
  - {name: t, run: {agent: {name: a}}, expect: {broken: fail, sound: fail, unknown: pass}}
"""
    file = tmp_path / "criteria.yaml"
    file.write_text(criteria + tests)
    problems: list[Problem] = []
    store = CriteriaStore([file], environment={}, problems=problems)

    found = run_criteria_tests(store.cases, store.current, refused=store.refused)

    assert ["agents.a.evaluations[0].sample"] == [problem.path for problem in problems]
    assert ["tests[0].expect.sound"] == [problem.path for problem in found]


def test_validate_says_whom_nobody_grades(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "criteria.yaml").write_text(CRITERIA.replace("tests:", "") + "  nobody: {evaluations: []}\n")
    config = tmp_path / "tracegrade.yaml"

    config.write_text("processors: {evaluation: {criteria: [criteria.yaml]}}")
    assert 0 == run_command(["validate", "--config", str(config)])
    alone = capsys.readouterr().err.splitlines()
    config.write_text("processors: {evaluation: {criteria: [builtin, criteria.yaml]}}")
    assert 0 == run_command(["validate", "--config", str(config)])
    beside = capsys.readouterr()

    assert [
        f'warning: {config}: no evaluation applies to "nobody"',
        f"warning: {config}: Agents that no pattern matches get no evaluation. With builtin in "
        "processors.evaluation.criteria every agent gets the checks that need no reference.",
    ] == alone
    assert "" == beside.err
    assert f"{config}: valid, criteria for 2 agents, 2 evaluations, and 6 built-in ones\n" == beside.out


def test_paths_in_constraints_that_no_run_of_the_tests_has_are_doubtful(tmp_path: Path) -> None:
    file = tmp_path / "criteria.yaml"
    file.write_text("""\
agents:
  support:
    evaluations:
      - evaluator: tool-constraints
        name: up-to-the-total
        criteria:
          constraints:
            - {precedence: [get_order, refund], where: refund.args.amuont <= get_order.result.total}
            - {absence: {tool: get_order, result: {status: lost}}}
            - {constant: args.user_id, of: refund}
tests:
  - name: enough
    run:
      agent: {name: support}
      available_tools: {refund: {properties: {user_id: {}, amount: {}}}}
      tool_calls:
        - {name: get_order, result: {total: 40, state: open}}
        - {name: refund, arguments: {amount: 30}}
    expect: {up-to-the-total: fail}
""")
    store = CriteriaStore([file], environment={})
    warnings: list[Problem] = []

    assert [] == run_criteria_tests(store.cases, store.current, warnings=warnings)

    precedence, absence = (
        "precedence(get_order, refund)",
        'absence(get_order that returned {"status": "lost"})',
    )
    where, none = f'{file}:4: "up-to-the-total"', "no call of"
    assert [
        f'{where}: {precedence}: {none} refund in the tests has args.amuont; did you mean "amount"?',
        f'{where}: {absence}: {none} get_order in the tests has result.status; did you mean "state"?',
    ] == list(map(str, warnings))


TRACE_CRITERIA = """\
agents:
  "*":
    evaluations:
      - evaluator: tool-constraints
        name: reviewed
        scope: trace
        criteria: {constraints: [{precedence: [{tool: review, agent: reviewer}, publish]}]}
  desk:
    evaluations:
      - {evaluator: token-budget, scope: trace, criteria: {max_total_tokens: 10}}
"""


def test_the_runs_of_a_trace_are_graded_together(tmp_path: Path) -> None:
    tests = """\
tests:
  - name: reviewed first
    runs:
      - {agent: {name: planner}}
      - {agent: {name: reviewer}, parent_agent: planner, tool_calls: [{name: review}]}
      - {agent: {name: writer}, parent_agent: planner, tool_calls: [{name: publish}]}
    expect: {reviewed: pass}
  - name: reviewed by its writer, in a service
    runs:
      - agent: {name: writer}
        resource_attributes: {service.name: desk}
        tool_calls: [{name: review}, {name: publish}]
        model_calls: [{model: m, usage: {input_tokens: 6, output_tokens: 1}}]
      - agent: {name: writer}
        model_calls: [{model: m, usage: {input_tokens: 6, output_tokens: 1}}]
    expect: {reviewed: fail, token-budget: fail}
  - name: two agents, none of which the key is for
    runs: [{agent: {name: a}}, {agent: {name: b}}]
    agent: a
    expect: {reviewed: fail}
"""

    (failure,) = failures(tmp_path, tests, TRACE_CRITERIA)

    assert "expected fail, found pass with score 1" in failure
    assert "two agents, none of which the key is for" in failure


def test_mistakes_in_the_runs_of_a_trace_have_their_places(tmp_path: Path) -> None:
    tests = """\
tests:
  - name: a run without an agent
    runs:
      - {agent: {name: planner}}
      - {tool_calls: []}
    expect: {reviewed: pass}
"""

    (failure,) = failures(tmp_path, tests, TRACE_CRITERIA)

    assert failure.startswith("15: tests[0].runs[1].agent")


def test_paths_in_constraints_over_a_trace_are_those_of_all_its_agents(tmp_path: Path) -> None:
    file = tmp_path / "criteria.yaml"
    file.write_text("""\
agents:
  planner:
    evaluations:
      - evaluator: tool-constraints
        name: reviewed
        scope: trace
        criteria: {constraints: [{absence: {tool: review, result: {verdcit: bad}}}]}
tests:
  - name: reviewed
    runs:
      - {agent: {name: planner}}
      - {agent: {name: reviewer}, parent_agent: planner, tool_calls: [{name: review, result: {verdict: ok}}]}
    expect: {reviewed: pass}
""")
    store = CriteriaStore([file], environment={})
    warnings: list[Problem] = []

    assert [] == run_criteria_tests(store.cases, store.current, warnings=warnings)

    (warning,) = map(str, warnings)
    assert 'no call of review in the tests has result.verdcit; did you mean "verdict"?' in warning
