"""Decisions hold: each page of `docs/decisions` names what holds it, and that exists."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.product_code import PRODUCT, ROOT, modules

PAGES = sorted((ROOT / "docs" / "decisions").glob("*.md"))
LATE = "processors/model/late_values.py"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_ends_with_what_holds_the_decision(page: Path) -> None:
    last = page.read_text("utf-8").rstrip().splitlines()[-1]

    assert last.startswith("Held by: "), last
    holders = re.findall(r"`((?:[\w.-]+/)*[\w.-]+\.(?:py|toml)|(?:[\w.-]+/)+[\w.-]+)(?:::(\w+))?`", last)
    assert holders
    for path, name in holders:
        assert (ROOT / path).exists(), path
        assert name in (ROOT / path).read_text("utf-8") if name else True, name


def _executed(module: ast.Module) -> Iterator[ast.AST]:
    """The nodes of a module but those that only type checkers see."""
    waiting: list[ast.AST] = [module]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            waiting += node.orelse
        else:
            waiting += ast.iter_child_nodes(node)


def test_nothing_but_late_values_defers() -> None:
    deferring = [
        f"{path}:{node.lineno}: {node.name}"
        for path, module in modules(*PRODUCT).items()
        for node in _executed(module)
        if path != LATE
        and (
            (isinstance(node, ast.FunctionDef) and node.name == "__getattr__")
            or (isinstance(node, ast.ClassDef) and re.search("Late(?!ness)", node.name))
        )
    ]

    assert not deferring, "\n".join(deferring)
