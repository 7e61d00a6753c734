import asyncio
import gc
import json
import logging
from pathlib import Path

import pytest

from collector.clock import ManualClock
from collector.configuration import schema_documents
from collector.criteria import UNCOVERED_AGENTS, CriteriaFollower, CriteriaStore, default_file, load_criteria
from collector.telemetry import Metrics, Readiness
from collector.text_file import KeptFile
from processors.criteria import CriteriaSet
from processors.documents import InvalidInput


def agent(pattern: str, *names: str) -> str:
    lines = [f'  "{pattern}":', "    evaluations:"]
    lines += [f"      - {{evaluator: tool-repetition, name: {name}}}" for name in names]
    return "agents:\n" + "\n".join(lines) + "\n"


def names(criteria: CriteriaSet, agent_name: str = "weather") -> list[str]:
    return [evaluation.name for evaluation in criteria.evaluations_for(agent_name)]


def store(*patterns: Path) -> CriteriaStore:
    return CriteriaStore(patterns, environment={})


def refused(*patterns: Path) -> list[str]:
    with pytest.raises(InvalidInput) as found:
        load_criteria(patterns, environment={})
    return str(found.value).splitlines()


def test_without_patterns_the_built_in_criteria_apply_to_everyone() -> None:
    criteria = load_criteria(None, environment={})

    assert names(criteria, "anyone") == [
        "tool-repetition",
        "honest-response",
        "tool-args-schema",
        "tool-known",
        "tool-error-recovery",
        "supported-response",
    ]


def test_files_folders_and_globs_are_found_in_order_and_once(tmp_path: Path) -> None:
    for file in ("b.yaml", "a.json", "c.yml", "d.txt", ".hidden.yaml", "deep/e.yaml"):
        path = tmp_path / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(agent("weather", path.stem.strip(".")))

    assert names(load_criteria([tmp_path], environment={})) == ["a", "b", "c"]
    assert names(load_criteria([tmp_path / "d.txt"], environment={})) == ["d"]
    assert names(load_criteria([tmp_path / "**" / "*.yaml"], environment={})) == ["b", "e"]
    assert names(load_criteria([tmp_path / "c.yml", tmp_path], environment={})) == ["c", "a", "b"]


def test_a_json_schema_beside_criteria_is_not_read_as_criteria(tmp_path: Path) -> None:
    schema = json.dumps(schema_documents()["criteria"])
    (tmp_path / "a.json").write_text(
        '{"$schema": "./schema.json", "agents": {"weather": {"evaluations": []}}}'
    )
    (tmp_path / "schema.json").write_text(schema)
    (tmp_path / "own.schema.yaml").write_text("$schema: https://json-schema.org/draft/2020-12/schema\n")

    for pattern in (tmp_path, tmp_path / "*"):
        assert [agent.pattern for agent in load_criteria([pattern], environment={}).agents] == ["weather"]
    assert refused(tmp_path / "schema.json") == [
        f"{tmp_path}/schema.json:1: this is a JSON schema, not criteria"
    ]
    (tmp_path / "a.json").unlink()
    assert refused(tmp_path) == [f"{tmp_path}: no file in this folder"]


def test_environment_variables_expand(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(agent("${env:AGENT}", "a"))

    assert names(load_criteria([tmp_path], environment={"AGENT": "weather"})) == ["a"]


def test_every_problem_of_every_file_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("agents: {x: {}}")
    (tmp_path / "b.yaml").write_bytes(b"agents: {}\n# \xff")
    (tmp_path / "empty").mkdir()

    assert refused(tmp_path, tmp_path / "no.yaml", tmp_path / "*.json", tmp_path / "empty") == [
        f"{tmp_path}/no.yaml: no such file",
        f"{tmp_path}/*.json: no file matches",
        f"{tmp_path}/empty: no file in this folder",
        f'{tmp_path}/a.yaml:1: agents.x: missing key "evaluations"',
        f"{tmp_path}/b.yaml:2: not valid UTF-8",
    ]


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    assert refused(Path("/dev/null")) == ["/dev/null: cannot be read: not a regular file"]
    assert refused(tmp_path / "a\0b")[0].endswith("no such file")


def test_an_agent_in_two_files_unites(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(agent("weather", "a"))
    (tmp_path / "b.yaml").write_text(agent("weather", "b"))

    assert names(load_criteria([tmp_path], environment={})) == ["a", "b"]


def test_one_evaluation_of_an_agent_in_two_files_is_refused_with_both_places(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(agent("weather", "a"))
    (tmp_path / "b.yaml").write_text(agent("weather", "b", "a"))

    assert refused(tmp_path) == [
        f"{tmp_path}/b.yaml:5: agents.weather.evaluations[1]: "
        f'"a" of this agent is also in {tmp_path}/a.yaml:4'
    ]


def test_the_same_name_under_different_patterns_or_tenants_is_no_conflict(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(agent("weather", "a"))
    (tmp_path / "b.yaml").write_text(agent("w*", "a"))
    (tmp_path / "c.yaml").write_text("tenant: blue\n" + agent("weather", "a"))

    assert names(load_criteria([tmp_path], environment={})) == ["a"]


def test_a_change_of_content_is_seen_and_a_rewrite_is_not(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(agent("weather", "a"))
    criteria = store(tmp_path)

    file.write_text(agent("weather", "a"))
    assert not criteria.changed()
    file.write_text(agent("weather", "b"))
    assert criteria.changed()
    assert criteria.reload() == []
    assert not criteria.changed()
    (tmp_path / "b.yaml").write_text(agent("x", "b"))
    assert criteria.changed()


def test_a_reload_replaces_the_set_and_leaves_the_old_one_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(agent("weather", "a"))
    criteria = store(tmp_path)
    before = criteria.current
    names(before)

    file.write_text(agent("weather", "b"))
    criteria.reload()

    assert names(before) == ["a"]
    assert names(criteria.current) == ["b"]
    assert before.hash != criteria.current.hash


def test_a_bad_file_counts_with_its_last_good_version_and_the_others_with_their_new_one(
    tmp_path: Path,
) -> None:
    good, bad = tmp_path / "a.yaml", tmp_path / "b.yaml"
    good.write_text(agent("weather", "a"))
    bad.write_text(agent("weather", "b"))
    criteria = store(tmp_path)

    good.write_text(agent("weather", "a2"))
    bad.write_text("agents: [")
    problems = criteria.reload()

    assert [problem.file for problem in problems] == [str(bad)]
    assert names(criteria.current) == ["a2", "b"]
    assert not criteria.changed()

    bad.write_text(agent("weather", "b2"))
    assert criteria.reload() == []
    assert names(criteria.current) == ["a2", "b2"]


def test_a_new_file_that_is_bad_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(agent("weather", "a"))
    criteria = store(tmp_path)

    (tmp_path / "b.yaml").write_text("agents: 5")

    assert len(criteria.reload()) == 1
    assert names(criteria.current) == ["a"]


def test_a_file_that_is_gone_counts_no_more(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(agent("weather", "a"))
    (tmp_path / "b.yaml").write_text(agent("weather", "b"))
    criteria = store(tmp_path)

    (tmp_path / "b.yaml").unlink()

    assert criteria.changed()
    assert criteria.reload() == []
    assert names(criteria.current) == ["a"]


def test_while_a_pattern_matches_nothing_its_files_count_as_they_were(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        folder.mkdir()
        (folder / "a.yaml").write_text(agent("weather", folder.name))
    criteria = store(one, two)

    (two / "a.yaml").unlink()
    two.rmdir()

    for _ in range(2):
        assert [str(problem) for problem in criteria.reload()] == [f"{two}: no such file"]
        assert names(criteria.current) == ["one", "two"]

    two.mkdir()
    (two / "b.yaml").write_text(agent("weather", "three"))
    assert criteria.reload() == []
    assert names(criteria.current) == ["one", "three"]


def test_a_change_that_conflicts_with_another_file_is_taken_back(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(agent("weather", "a"))
    (tmp_path / "b.yaml").write_text(agent("weather", "b"))
    criteria = store(tmp_path)

    (tmp_path / "b.yaml").write_text(agent("weather", "b2", "a"))
    (tmp_path / "c.yaml").write_text(agent("weather", "c"))
    problems = criteria.reload()

    assert [problem.file for problem in problems] == [str(tmp_path / "b.yaml")]
    assert names(criteria.current) == ["a", "b", "c"]


def test_an_evaluation_can_move_from_one_file_to_another(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(agent("weather", "a", "x"))
    (tmp_path / "b.yaml").write_text(agent("weather", "b"))
    criteria = store(tmp_path)

    (tmp_path / "a.yaml").write_text(agent("weather", "a"))
    (tmp_path / "b.yaml").write_text(agent("weather", "x", "b"))

    assert criteria.reload() == []
    assert names(criteria.current) == ["a", "x", "b"]


@pytest.mark.parametrize("name", ["default.yaml", "demo.yaml", "weather.example.yaml"])
def test_the_criteria_that_are_shipped_are_sound(name: str) -> None:
    criteria = load_criteria([default_file(f"criteria/{name}")], environment={})

    assert names(criteria, "weather_agent")


BUILT_IN = [
    "tool-repetition",
    "honest-response",
    "tool-args-schema",
    "tool-known",
    "tool-error-recovery",
    "supported-response",
]


def both(*patterns: Path) -> CriteriaStore:
    """The criteria of `[builtin, *patterns]`; they do not depend on the place of `builtin`."""
    first = CriteriaStore(["builtin", *patterns], environment={})
    last = CriteriaStore([*patterns, "builtin"], environment={})
    assert first.current.hash == last.current.hash
    return first


def test_built_in_criteria_stay_beside_files(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(agent("weather", "a"))

    assert ["a"] == names(store(tmp_path).current)
    assert [] == names(store(tmp_path).current, "other")
    assert [*BUILT_IN, "a"] == names(both(tmp_path).current)
    assert BUILT_IN == names(both(tmp_path).current, "other")
    assert "1 agent, 1 evaluation, and 6 built-in ones" == both(tmp_path).current.describe()
    assert [] == both(tmp_path).warnings


@pytest.mark.parametrize("pattern", ["weather", "w*", "*"])
def test_every_pattern_of_a_file_comes_before_a_built_in_evaluation(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "a.yaml").write_text(
        f"agents:\n  '{pattern}':\n    evaluations:\n"
        "      - {evaluator: tool-repetition, severity: page}\n"
        "      - {evaluator: tool-known, enabled: false}\n"
    )
    criteria = both(tmp_path)

    found = {entry.name: entry for entry in criteria.current.evaluations_for("weather")}
    assert {*BUILT_IN} - {"tool-known"} == set(found)
    assert ("page", f"{tmp_path}/a.yaml:4") == (
        found["tool-repetition"].severity, found["tool-repetition"].source
    )  # fmt: skip
    assert [] == criteria.warnings


def test_switching_off_what_is_not_built_in_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(
        "agents: {'*': {evaluations: [{evaluator: tool-repetition, name: tool-repetitions, enabled: false}]}}"
    )

    assert [
        f'{tmp_path}/a.yaml:1: agents.*.evaluations[0]: "tool-repetitions" switches nothing off: '
        'no other pattern gives it; did you mean "tool-repetition"?'
    ] == [str(warning) for warning in both(tmp_path).warnings]


def test_built_in_criteria_apply_to_every_tenant(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("tenant: blue\n" + agent("*", "tool-known", "b"))
    criteria = both(tmp_path).current

    assert [*(name for name in BUILT_IN if name != "tool-known"), "tool-known", "b"] == [
        evaluation.name for evaluation in criteria.evaluations_for("weather", "blue")
    ]
    assert BUILT_IN == [evaluation.name for evaluation in criteria.evaluations_for("weather", "red")]


def test_a_folder_that_holds_the_built_in_file_adds_nothing_to_it() -> None:
    folder = default_file("criteria/default.yaml").parent / "de*fault.yaml"

    assert both(folder).current.hash == load_criteria(None, environment={}).hash


def test_a_file_called_builtin_is_reached_by_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "builtin").write_text(agent("weather", "a"))
    monkeypatch.chdir(tmp_path)

    assert ["a"] == names(load_criteria(["./builtin"], environment={}))
    assert BUILT_IN == names(load_criteria(["builtin"], environment={}))


@pytest.mark.parametrize(
    ("text", "nobody", "everyone"),
    [
        (agent("weather", "a"), (), False),
        (agent("*", "a"), (), True),
        (agent("w*", "a"), (), False),
        ("agents: {weather: {evaluations: []}, '*': {evaluations: []}}", ("weather",), False),
        ("tenant: blue\n" + agent("*", "a"), (), False),
    ],
)
def test_a_set_knows_whom_it_leaves_without_evaluations(
    tmp_path: Path, text: str, nobody: tuple[str, ...], everyone: bool
) -> None:
    (tmp_path / "a.yaml").write_text(text)
    alone, beside = store(tmp_path).current, both(tmp_path).current

    assert (nobody, everyone) == (alone.without_evaluations(), alone.covers_every_agent)
    assert ((), True) == (beside.without_evaluations(), beside.covers_every_agent)


def test_built_in_evaluations_that_are_all_switched_off_cover_nobody(tmp_path: Path) -> None:
    entries = ", ".join(f"{{evaluator: tool-known, name: {name}, enabled: false}}" for name in BUILT_IN)
    (tmp_path / "a.yaml").write_text(f"agents: {{'*': {{evaluations: [{entries}]}}}}")

    assert not both(tmp_path).current.covers_every_agent


async def test_the_log_says_at_the_start_whom_the_criteria_leave_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    (tmp_path / "a.yaml").write_text(agent("weather", "a"))

    alone = await _told_at_the_start(store(tmp_path), caplog)
    beside = await _told_at_the_start(both(tmp_path), caplog)

    assert ["Criteria are in force for 1 agent, 1 evaluation.", UNCOVERED_AGENTS] == alone
    assert ["Criteria are in force for 1 agent, 1 evaluation, and 6 built-in ones."] == beside


def test_what_was_in_force_before_a_restart_counts_as_it_does_before_a_reload(tmp_path: Path) -> None:
    first, second = tmp_path / "a.yaml", tmp_path / "b.yaml"
    first.write_text(agent("weather", "one"))
    second.write_text(agent("weather", "two"))
    kept = store(tmp_path).last_good(0)
    first.write_text("agents: [")
    second.write_text(agent("weather", "one"))  # what the last good version of the other has

    criteria = CriteriaStore([tmp_path], environment={}, last_good=lambda: kept)

    assert ["one", "two"] == names(criteria.current)
    assert [str(first), str(second)] == criteria.stale
    assert {str(first), str(second)} == {problem.file for problem in criteria.problems}
    assert kept == criteria.last_good(0)


def test_a_kept_version_that_this_version_does_not_understand_is_no_help(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("agents: [")
    kept = [KeptFile(path=str(file), pattern=str(file), content=b"agints: {}", kept_unix_nano=0)]

    with pytest.raises(InvalidInput):
        CriteriaStore([file], environment={}, last_good=lambda: kept)


def test_a_file_that_is_gone_from_its_folder_is_not_brought_back(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.yaml").write_text(agent("weather", name))
    kept = store(tmp_path).last_good(0)
    (tmp_path / "a.yaml").unlink()
    (tmp_path / "b.yaml").write_text("agents: [")

    criteria = CriteriaStore([tmp_path], environment={}, last_good=lambda: kept)

    assert ["b", "c"] == names(criteria.current)


async def _told_at_the_start(criteria: CriteriaStore, caplog: pytest.LogCaptureFixture) -> list[str]:
    caplog.clear()
    follower = CriteriaFollower(
        criteria, lambda _: None, metrics=Metrics(), clock=ManualClock(), readiness=Readiness()
    )
    following = asyncio.ensure_future(follower.follow())
    await asyncio.sleep(0)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    return [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize("is_on", [True, False])
def test_no_garbage_is_collected_while_files_are_read(is_on: bool, tmp_path: Path) -> None:
    path = tmp_path / "criteria.yaml"
    path.write_text(agent("weather", *(f"check-{number}" for number in range(200))))
    started: list[str] = []
    was_on, thresholds = gc.isenabled(), gc.get_threshold()
    (gc.enable if is_on else gc.disable)()
    gc.set_threshold(100)
    gc.callbacks.append(lambda phase, _: started.append(phase))
    try:
        criteria = store(path)
        noticed = len(started)
        criteria.reload()
        assert gc.isenabled() is is_on
    finally:
        gc.callbacks.pop()
        gc.set_threshold(*thresholds)
        (gc.enable if was_on else gc.disable)()

    assert noticed <= 2  # at most one collection, of what stands around the reading
