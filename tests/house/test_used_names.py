"""Every function, class, method and constant of the product is used, and not by tests alone."""

import ast
import re
from collections.abc import Iterator

from tests.house.product_code import PRODUCT, ROOT, modules

USERS = (*PRODUCT, "benchmarks", "deploy", "docs")
TEXTS = ("collector/**/*.html", "collector/**/*.yaml", "docs/**/*.md", "config/*.yaml", "pyproject.toml")
_REGISTERS = ("validator", "serializer", "override")
"""How decorators end that hand what they decorate to a library, which calls it."""


def _definitions(module: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            is_special = node.name.startswith("__") or any(map(_is_registered, node.decorator_list))
            if not is_special and not _is_discovered(node):
                yield node.name, node.lineno
    for statement in module.body:
        if isinstance(statement, ast.Assign) and not ast.unparse(statement.value).startswith("Command("):
            for target in statement.targets:  # a command is loaded by its name
                if isinstance(target, ast.Name) and not target.id.startswith("__"):
                    yield target.id, statement.lineno


def _is_registered(decorator: ast.expr) -> bool:
    name = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(name).endswith(_REGISTERS)


def _is_discovered(node: ast.AST) -> bool:
    """Whether it is an evaluator, which is found by its folder and known by its id."""
    return isinstance(node, ast.ClassDef) and any(
        isinstance(each, ast.Assign | ast.AnnAssign) and ast.unparse(each).startswith("id")
        for each in node.body
    )


def _uses(path: str, module: ast.Module) -> Iterator[str]:
    """The names that a module reads; a door that passes a name on does not use it."""
    for node in ast.walk(module):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node.value.rpartition(":")[2].isidentifier()
        ):
            yield node.value.rpartition(":")[2]  # what is loaded by its name
        elif isinstance(node, ast.ImportFrom) and not path.endswith("__init__.py"):
            yield from (alias.name for alias in node.names)


def test_no_name_of_the_product_is_used_by_tests_alone() -> None:
    used = {name for path, module in modules(*USERS).items() for name in _uses(path, module)}
    for (
        pattern
    ) in TEXTS:  # templates call functions, and documents promise names to those who extend the product
        used.update(
            word for path in ROOT.glob(pattern) for word in re.findall(r"\w+", path.read_text("utf-8"))
        )

    unused = [
        f"{path}:{line}: {name}"
        for path, module in modules(*PRODUCT).items()
        for name, line in _definitions(module)
        if name not in used
    ]

    assert not unused, "\n".join(unused)
