"""Every recipe is a criteria file whose tests hold, with a run that passes and one that fails."""

from collections import defaultdict
from pathlib import Path

import pytest

from collector.cli import run_command
from docs.generate.recipes import Recipe, read_recipes, recipes_in
from processors.criteria import read_criteria

RECIPES = read_recipes()


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.anchor)
def test_the_recipe_tells_good_runs_from_bad_ones(
    recipe: Recipe, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "criteria.yaml"
    file.write_text(recipe.criteria)

    code = run_command(["validate", str(file)])

    assert (0, "") == (code, capsys.readouterr().err)
    document = read_criteria(recipe.criteria, "criteria.yaml", {})
    outcomes = defaultdict(set)
    for case in document.cases:
        for name, expected in case.expect.items():
            outcomes[name].add(expected.outcome)
    names = {evaluation.name for agent in document.agents for evaluation in agent.evaluations}
    assert names == set(outcomes)
    assert all({"pass", "fail"} <= found for found in outcomes.values())


def test_there_are_enough_of_them_and_no_two_say_the_same() -> None:
    assert 25 <= len(RECIPES)
    assert len(RECIPES) == len({recipe.anchor for recipe in RECIPES})
    evaluations = [
        evaluation.name
        for recipe in RECIPES
        for agent in read_criteria(recipe.criteria, "criteria.yaml", {}).agents
        for evaluation in agent.evaluations
    ]
    assert len(set(evaluations)) >= len(RECIPES)


def test_a_recipe_without_criteria_is_refused() -> None:
    with pytest.raises(ValueError, match='"B" has 0 blocks of YAML, expected one'):
        recipes_in("### A\n```yaml\na: 1\n```\n### B\ntext\n## C\n```yaml\nb: 1\n```\n")
