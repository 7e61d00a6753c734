"""Names are in the words of the field, rooms are tested through their doors: what remains may only fall."""

import ast
import re
from collections import Counter
from collections.abc import Iterator

from tests.house.product_code import PRODUCT, modules

AVOIDED = {
    *("tell", "tells", "telling", "told", "hear", "hears", "heard", "say", "says", "said"),
    *("ask", "asks", "asked", "asking", "found", "made", "wanted", "aside", "twin", "whoever", "nobody"),
    *("gone", "came"),
}
"""Words for which the field has terms, see the glossary in CONTRIBUTING.md."""

NAMES_OF_OTHERS = {"connection_made": "asyncio", "_not_found": "HTTP"}
NAMES_LEFT: dict[str, int] = {}
"""How many names of a room still have such words; of a room that is not listed, none."""
IMPORTS_BEHIND_DOORS_LEFT = 372


def _names(module: ast.Module) -> Iterator[str]:
    """The names that a module defines: functions, classes, parameters, variables, attributes."""
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.id if isinstance(node, ast.Name) else node.attr


def _words(name: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}


def test_names_are_in_the_words_of_the_field() -> None:
    avoided = [
        (path, name)
        for path, module in modules(*PRODUCT).items()
        for name in sorted(set(_names(module)))
        if AVOIDED & _words(name) and name not in NAMES_OF_OTHERS
    ]
    left = Counter(room for path, _ in avoided for room in NAMES_LEFT if path.startswith(room))

    assert [] == [(path, name) for path, name in avoided if not path.startswith(tuple(NAMES_LEFT))]
    assert NAMES_LEFT == dict(left), "rename what is new; where it fell, lower the number here"


def test_fewer_tests_import_behind_doors() -> None:
    doors = {
        path.removesuffix("/__init__.py").replace("/", ".")
        for path in modules(*PRODUCT)
        if path.endswith("__init__.py")
    }
    count = sum(
        node.module not in doors
        for module in modules("tests").values()
        for node in ast.walk(module)
        if isinstance(node, ast.ImportFrom)
        and re.match(r"(collector|processors)(\.\w+){2}", node.module or "")
    )

    assert IMPORTS_BEHIND_DOORS_LEFT == count, "import through the door; where it fell, lower the number here"
