"""The product's modules, parsed once for the checks of this folder."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRODUCT = ("collector", "processors")


@cache
def modules(*folders: str) -> dict[str, ast.Module]:
    """The modules below `folders` by their path from the root of the project."""
    return {
        str(path.relative_to(ROOT)): ast.parse(path.read_text("utf-8"))
        for folder in folders
        for path in sorted((ROOT / folder).rglob("*.py"))
    }
