"""The pages of recipes, read: what people want of agents, each with the criteria file that checks it."""

import re
from dataclasses import dataclass, replace
from pathlib import Path

_DOCS = Path(__file__).parents[1]
_PAGES = ("recipes.md", "coding-agents.md", "policies.md")
_BLOCK = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NO_ANCHOR = re.compile(r"[^\w\- ]")


@dataclass(frozen=True, slots=True)
class Recipe:
    """An intent, which is the heading, and the criteria file that states it."""

    intent: str
    criteria: str
    page: str = ""
    """The file in docs/ that it is in."""

    @property
    def anchor(self) -> str:
        """The part of a link that leads to the heading."""
        return _NO_ANCHOR.sub("", self.intent.lower()).replace(" ", "-")


def read_recipes() -> list[Recipe]:
    """The recipes of all pages; raises ValueError as `recipes_in` does."""
    return [
        replace(recipe, page=page)
        for page in _PAGES
        for recipe in recipes_in((_DOCS / page).read_text(encoding="utf-8"))
    ]


def recipes_in(page: str) -> list[Recipe]:
    """The recipes of a page in Markdown, in its order: headings of the third level, each with one block.

    Raises:
        ValueError: a recipe has no block, or more than one.
    """
    recipes = []
    for section in re.split(r"^### ", page, flags=re.MULTILINE)[1:]:
        intent, _, text = section.partition("\n")
        blocks = _BLOCK.findall(re.split(r"^## ", text, flags=re.MULTILINE)[0])
        if len(blocks) != 1:
            raise ValueError(f'"{intent}" has {len(blocks)} blocks of YAML, expected one')
        recipes.append(Recipe(intent.strip(), blocks[0]))
    return recipes
