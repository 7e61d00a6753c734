"""Evaluations in criteria files are changed where they stand: all else stays as it is written."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from processors.criteria import Change, edit_evaluations
from processors.documents import InvalidInput, read_yaml

PROJECT = Path(__file__).parents[3]
MUTE: dict[str, Any] = {"mute": {"until": "2026-11-28T00:00:00Z", "reason": "known: #12", "by": "me"}}
WRITTEN = 'mute: {until: "2026-11-28T00:00:00Z", reason: "known: #12", by: me}'


def edited(text: str, change: Change, name: str = "a") -> str:
    return edit_evaluations(
        text, "criteria.yaml", lambda agent, entry: change if entry.get("name") == name else None
    )


BLOCKS = """\
# Who owns this: the travel team.
agents:
    travel: # all of them
        evaluations:
        -   evaluator: tool-permission   # checked by hand
            name: a # the first
            # Why it is in shadow.
            stage: shadow  # since May

            criteria:
                deny: [refund]  # never
                # trailing
        # between

        - name: b
          evaluator: tool-permission
          stage: shadow
          criteria: {deny: [mail]}
"""


def test_a_key_in_blocks_goes_with_its_line_and_nothing_else() -> None:
    lines = BLOCKS.splitlines(keepends=True)

    assert edited(BLOCKS, {"stage": None}) == "".join(lines[:7] + lines[8:])
    assert edited(BLOCKS, {"stage": None}, "b") == "".join(lines[:16] + lines[17:])


def test_a_new_key_stands_below_the_name() -> None:
    lines = BLOCKS.splitlines(keepends=True)

    muted = edited(BLOCKS, MUTE)

    assert muted == "".join([*lines[:6], f"            {WRITTEN}\n", *lines[6:]])
    assert edited(muted, {"mute": None}) == BLOCKS
    crlf = BLOCKS.replace("\n", "\r\n")
    assert edited(crlf, MUTE) == muted.replace("\n", "\r\n")


def test_a_key_that_is_there_is_replaced_whatever_its_form() -> None:
    text = """\
agents:
  x:
    evaluations:
      - name: a
        evaluator: tool-permission
        mute:
          until: 2026-01-31 # a Saturday
          reason: |
            long
            story
          by: me

        # the criteria
        criteria: {deny: [refund]}
"""
    muted = edited(text, MUTE)

    assert muted.splitlines() == [
        *text.splitlines()[:5],
        f"        {WRITTEN}",
        *text.splitlines()[11:],
    ]
    assert edited(text, {"mute": None}).splitlines() == [*text.splitlines()[:5], *text.splitlines()[11:]]


@pytest.mark.parametrize(
    ("entry", "promoted"),
    [
        ("{name: a, stage: shadow, evaluator: tool-known}", "{name: a, evaluator: tool-known}"),
        ("{stage: shadow, name: a, evaluator: tool-known}", "{name: a, evaluator: tool-known}"),
        ("{name: a, evaluator: tool-known, stage: shadow}", "{name: a, evaluator: tool-known}"),
        (
            "stage: shadow\n        name: a\n        evaluator: tool-known",
            "name: a\n        evaluator: tool-known",
        ),
        (
            'name: a\n        evaluator: tool-known\n        stage: "shadow"',
            "name: a\n        evaluator: tool-known",
        ),
    ],
)
def test_a_key_is_removed_wherever_it_stands(entry: str, promoted: str) -> None:
    text = "agents:\n  x:\n    evaluations:\n      - {}\n".format

    assert edited(text(entry), {"stage": None}).rstrip() == text(promoted).rstrip()
    muted = edited(text(entry), MUTE)
    assert MUTE["mute"] == read_yaml(muted, "").value["agents"]["x"]["evaluations"][0]["mute"]  # type: ignore[index, call-overload]
    assert edited(muted, {"mute": None}) == text(entry)


def test_json_stays_json() -> None:
    content = {
        "agents": {"x": {"evaluations": [{"name": "a", "evaluator": "tool-known", "stage": "shadow"}]}}
    }
    text = json.dumps(content, indent=2)

    changed = edited(text, {**MUTE, "stage": None})

    (entry,) = json.loads(changed)["agents"]["x"]["evaluations"]
    assert ["name", "mute", "evaluator"] == list(entry)
    assert changed.startswith(text[: text.index("name") + 9])


@pytest.mark.parametrize(
    "text",
    [
        "agents:\n  x: &x\n    evaluations:\n      - {name: a, stage: shadow}\n  y: *x\n",
        "base: &base\n  stage: shadow\nagents:\n  x:\n    evaluations:\n      - <<: *base\n        name: a\n",
        "agents:\n  x:\n    evaluations:\n      - {name: a, # why\n         stage: shadow}\n",
        "agents:\n  x:\n    evaluations:\n      - stage: shadow # why\n        name: a\n",
    ],
    ids=["alias", "merge", "comment-in-braces", "comment-after-dash"],
)
def test_what_would_touch_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="cannot be changed without touching what is written around it"):
        edit_evaluations(
            text,
            "criteria.yaml",
            lambda agent, entry: {"stage": None} if agent == "x" and entry.get("name") == "a" else None,
        )


def _written() -> Iterator[tuple[str, str]]:
    for path in sorted((PROJECT / "config" / "criteria").glob("*.yaml")):
        yield path.name, path.read_text("utf-8")
    recipes = (PROJECT / "docs" / "recipes.md").read_text("utf-8")
    for number, block in enumerate(re.findall(r"```yaml\n(.*?)```", recipes, re.DOTALL)):
        yield f"recipe-{number}", block


@pytest.mark.parametrize(("name", "text"), list(_written()), ids=lambda value: str(value)[:12])
def test_a_mute_that_ends_leaves_the_file_as_it_was(name: str, text: str) -> None:
    muted = edit_evaluations(text, name, lambda agent, entry: None if "mute" in entry else MUTE)

    assert muted != text or "mute:" in text
    assert text == edit_evaluations(
        muted, name, lambda agent, entry: {"mute": None} if entry.get("mute") == MUTE["mute"] else None
    )
