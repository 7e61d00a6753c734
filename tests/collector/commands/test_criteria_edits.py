"""`promote` and `mute` change the criteria files that people write."""

from pathlib import Path

import pytest

from collector.cli import run_command

TEXT = """\
# Owned by the support team.
owner: support
agents:
  support_agent:
    evaluations:
      - evaluator: tool-permission
        name: learned-tools # from good runs
        stage: shadow
        criteria: {deny: [refund]}
      - {evaluator: tool_repetition, stage: shadow}
  "*":
    evaluations:
      - {evaluator: tool-permission, name: learned-all, stage: shadow, criteria: {deny: [rm]}}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "criteria.yaml").write_text(TEXT)
    (tmp_path / "tracegrade.yaml").write_text(
        "processors: {evaluation: {criteria: [builtin, criteria.yaml]}}\nexporters: {debug: {}}\n"
    )
    (tmp_path / "criteria.yaml").chmod(0o640)
    return tmp_path / "criteria.yaml"


def test_promoted_evaluations_are_live_and_all_else_stays(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["promote", "learned-*", "--agent", "support_agent", "--criteria", str(file)]

    assert 0 == run_command([*arguments, "--dry-run"])
    assert TEXT == file.read_text()
    assert "-        stage: shadow\n" in capsys.readouterr().out
    assert 0 == run_command(arguments)
    assert TEXT.replace("        stage: shadow\n", "", 1) == file.read_text()
    assert 0o640 == file.stat().st_mode & 0o777
    assert 0 == run_command(arguments)
    assert "no change: none of the 1 evaluations is in shadow" in capsys.readouterr().err


def test_the_files_of_the_service_are_changed(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = str(file.parent / "tracegrade.yaml")

    assert 0 == run_command(["promote", "tool-repetition", "learned-*", "--config", config])
    assert "shadow" not in file.read_text()
    assert 0 == run_command(["validate", "--config", config])


def test_a_mute_is_written_with_the_moment_at_which_it_ends(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["mute", "learned-tools", "--criteria", str(file)]

    assert 0 == run_command([*arguments, "--until", "2126-11-28", "--reason", "known: #12", "--by", "jane"])
    line = '        mute: {until: "2126-11-28T00:00:00Z", reason: "known: #12", by: jane}\n'
    name = "        name: learned-tools # from good runs\n"
    assert TEXT.replace(name, name + line) == file.read_text()
    assert "muted until 2126-11-28T00:00:00Z" in capsys.readouterr().err
    assert 0 == run_command(["validate", str(file)])
    assert 0 == run_command([*arguments, "--off"])
    assert TEXT == file.read_text()
    assert 0 == run_command([*arguments, "--for", "24h", "--reason", "x", "--by", "jane"])
    assert "mute: {until: " in file.read_text()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["promote", "learnt"], 'no evaluation "learnt" in the criteria files; did you mean "learned-'),
        (["promote", "*", "--agent", "suport_agent"], 'no agent "suport_agent"; did you mean "support_'),
        (["mute", "learned-*", "--for", "1h"], "expected --reason TEXT"),
        (["mute", "learned-*", "--for", "1h", "--reason", "${x}"], '--reason and --by cannot contain "${"'),
        (
            ["mute", "learned-*", "--until", "2025-01-31", "--reason", "x"],
            "the mute would have ended already: a date is 00:00 UTC at its start",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_changed_is_reported(
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    expected: str,
) -> None:
    monkeypatch.setenv("USER", "jane")

    assert 2 == run_command([*arguments, "--criteria", str(file)])
    assert expected in capsys.readouterr().err
    assert TEXT == file.read_text()
